"""Types of the public functions, as a user's type checker sees them."""

import subprocess
import sys
from pathlib import Path

from helpers import script_module

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """\
import numpy as np
import vmdpotential as vp

mean = vp.average("a.psf", "a.dcd", frames="::5", spacing=2.0, ionic_strength=0.15, stat=("mean", "sem"))
reveal_type(mean.grid)
reveal_type(vp.energy("a.prmtop", between=("protein", "water")).to_dataframe)
vp.average("a.psf", "a.dcd", frames=range(1, 5), medium=vp.Medium.screened(0.15), charges=np.zeros(3), cell=(9, 9, 9))
vp.energy(object(), between=(np.arange(3), [4, 5]), charges=["a.itp", "b.mol2"], set={"salt": 0.1}, solvent="pb")
vp.field("a.pqr", points=[[1.0, 2.0, 3.0]], unit="V", frames=slice(2, 5))
"""

#: Packages whose types do not matter here are passed over, and so are the bodies of this one's functions, which
#: scripts/check checks.
CONFIGURATION = """\
[mypy]
[mypy-matplotlib.*,xarray.*,pandas.*,h5py.*,zarr.*,dask.*,distributed.*,molviewspec.*]
follow_imports = skip
[mypy-vmdpotential.*]
ignore_errors = true
"""

#: Wrong arguments, and a word of the message about each.
WRONG = {
    "spacin=2.0": "spacin", 'spacing="wide"': "spacing", "frames=2.5": "frames", "frames=[1, 2]": "frames",
    'medium="wather"': "medium", "medium=0.15": "medium", "charges=1.0": "charges", "cell=20.0": "cell",
    'unit="kT"': "unit", "atoms=3.5": "atoms", "stat=3": "stat", "set=0.15": "set", 'boundary="closed"': "boundary",
}


def test_a_type_checker_knows_results_and_options(tmp_path):
    wrong = [f'vp.average("a.psf", "a.dcd", {words})' for words in WRONG]
    first = SCRIPT.count("\n") + 1
    (tmp_path / "script.py").write_text("\n".join([SCRIPT[:-1], *wrong, 'vp.average("a.psf", "a.dcd").gird']))
    (tmp_path / "mypy.ini").write_text(CONFIGURATION)
    done = subprocess.run([sys.executable, "-m", "mypy", "--no-error-summary", "script.py"], cwd=tmp_path,
                          capture_output=True, text=True, env={"PATH": "", "MYPYPATH": str(ROOT)})
    said: dict[int, str] = {}
    for line in done.stdout.splitlines():
        file, number, text = line.split(":", 2)
        assert file == "script.py", line
        said[int(number)] = said.get(int(number), "") + text
    assert "vmdpotential.grid.lattice.Grid" in said.pop(5), done.stdout + done.stderr
    table = said.pop(6)
    assert "DataFrame" in table or "Any" in table
    assert sorted(said) == list(range(first, first + len(wrong) + 1)), done.stdout
    for number, word in enumerate([*WRONG.values(), "gird"], first):
        assert f'"{word}"' in said[number]


def test_files_made_from_the_declarations_are_up_to_date():
    module = script_module("make_task_types")
    assert {path: content() for path, content in module.FILES.items()} == {
        path: path.read_text() for path in module.FILES}
