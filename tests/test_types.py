"""Types of the public functions, as a user's type checker sees them."""

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SCRIPT = """\
import vmdpotential as vp

mean = vp.average("a.psf", "a.dcd", frames="::5", spacing=2.0, ionic_strength=0.15)
reveal_type(mean.grid)
reveal_type(vp.energy("a.prmtop", between=("protein", "water")).to_dataframe)
vp.average("a.psf", "a.dcd", spacin=2.0)
vp.average("a.psf", "a.dcd", spacing="wide")
vp.density("a.psf", "a.dcd", atoms="water").gird
"""


def test_a_type_checker_knows_results_and_options(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "-m", "mypy", "--no-error-summary", "--config-file", "", "script.py"],
                          cwd=tmp_path, capture_output=True, text=True, env={"PATH": "", "MYPYPATH": str(ROOT)})
    said: dict[str, str] = {}
    for line in done.stdout.splitlines():
        _, number, text = line.split(":", 2)
        said[number] = said.get(number, "") + text
    assert "vmdpotential.grid.lattice.Grid" in said["4"], done.stdout + done.stderr
    assert "DataFrame" in said["5"] or "Any" in said["5"]
    assert "spacin" in said["6"]
    assert "spacing" in said["7"]
    assert "gird" in said["8"]
    assert "3" not in said


def test_the_signatures_are_those_of_the_commands():
    loader = importlib.machinery.SourceFileLoader("make_task_types", str(ROOT / "scripts" / "make_task_types"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_task_types", loader))
    loader.exec_module(module)
    assert module.TARGET.read_text() == module.text()
