"""The worked examples run, and draw pictures, which scripts/docs shows; nothing of them is warned of."""

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
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
def test_an_example(script):
    folder = ROOT / "build" / "examples" / script.stem  # ignored by git, and where scripts/docs looks for pictures
    for old in folder.glob("*.png"):
        old.unlink()
    done = subprocess.run([sys.executable, script, folder], cwd=ROOT, env={**os.environ, "MPLBACKEND": "agg"},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    if script.stem == "membrane_profile":  # V; with charges that the frame was not simulated with it is 0.1
        assert 0.5 < float(re.search(r"at ([+-][\d.]+) V", done.stdout)[1]) < 2
    pictures = list(folder.glob("*.png"))
    assert pictures
    for path in pictures:
        assert_drawn(path)
