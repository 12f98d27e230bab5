"""A package that extends vmdpotential, in tests/extension, passes its tests, is short and uses nothing private."""

import ast
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "extension"


@pytest.mark.slow
def test_its_tests_pass():
    path = os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", FOLDER, "-p",
                           "no:cacheprovider", FOLDER], env=os.environ | {"PYTHONPATH": path}, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_part_is_short_and_public():
    text = (FOLDER / "example_extension.py").read_text()
    assert text.count("# ---- ") == 4  # an interaction, a method, a task over frames, a command
    for part in text.split("# ---- ")[1:]:
        tree = ast.parse(part.partition("\n")[2].partition("def add()")[0])
        documented = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        lines = {node.lineno for node in ast.walk(tree) if hasattr(node, "lineno")} - documented
        assert 2 < len(lines) <= 15
    names = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
    names |= {alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom | ast.Import)
              for alias in node.names}
    assert not {name for name in names if name.startswith("_")}


def test_what_it_imports_is_in_the_reference():
    """The documents describe whatever another package needs."""
    described = runpy.run_path(str(ROOT / "scripts" / "site" / "pages.py"))["modules"]()
    for path in FOLDER.glob("[!t]*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("vmdpotential."):
                assert {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)} & {*described}, path
