"""The worked examples run, and draw pictures, which scripts/docs shows; nothing of them is warned of.

Texts of the pictures have at least 6 points in print, and none is cut off or over another (``drawn_texts``).
"""

import ast
import os
import re
import runpy
import subprocess
from pathlib import Path

import pytest
from forked_program import write_client
from pictures import assert_drawn

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "scripts" / "examples").glob("*.py"))


def test_examples_use_what_the_reference_describes():
    """Readers copy them."""
    pages = runpy.run_path(str(ROOT / "scripts" / "site" / "pages.py"))
    for script in EXAMPLES:
        for node in ast.walk(ast.parse(script.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("vmdpotential"):
                assert {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)} & {*pages["modules"]()}


@pytest.mark.slow
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_an_example(script, forks, tmp_path):
    folder = ROOT / "build" / "examples" / script.stem  # ignored by git, and where scripts/docs looks for pictures
    for old in folder.glob("*.png"):
        old.unlink()
    done = subprocess.run([write_client(tmp_path / "python", forks), script, folder], cwd=ROOT, capture_output=True,
                          text=True, timeout=300, env=os.environ | {"CHECK_FIGURES": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout
    if script.stem == "membrane_profile":  # V; with charges that the frame was not simulated with it is 0.1
        assert 0.5 < float(re.search(r"at ([+-][\d.]+) V", done.stdout)[1]) < 2
    pictures = list(folder.glob("*.png"))
    assert pictures
    for path in pictures:
        assert_drawn(path)
