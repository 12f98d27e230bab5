"""Memory, engines and packages that the shell program lacks: one line with the hint."""

import importlib.util
import os
import subprocess
import sys

import pytest
from broken_inputs import AGAIN, FILES, MAP_OF_ION, PROGRAM, Case, check, one_line, result

from vmdpotential.frontend import cli


@pytest.mark.parametrize(("variable", "code", "hint"), [
    ("VMDPOTENTIAL_MEMORY=20k", 3, "use a larger --spacing"),
    ("VMDPOTENTIAL_MEMORY=lots", 2, "give bytes, such as 8G"),
    ("VMDPOTENTIAL_MEMORY=-5", 2, "give bytes, such as 8G"),
    ("VMDPOTENTIAL_MEMORY=infG", 2, "give bytes, such as 8G"),
    ("VMDPOTENTIAL_THREADS=0", 2, "a positive whole number"),
])
def test_bad_environment(variable, code, hint, here, monkeypatch, capfd):
    monkeypatch.setenv(*variable.split("="))
    case = Case(code, "map in/ion.pqr -o m.dx", "memory" if code == 3 else variable.partition("=")[0], hint)
    check(case, cli.main(case.command.split()), *capfd.readouterr())
    assert os.listdir(here) == ["in"]


def test_an_image_larger_than_memory(here, monkeypatch, capfd):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "10M")
    case = Case(3, "slice in/good.dx -o f.png --width double --dpi 2400", "f.png: a figure of", "use a lower --dpi")
    check(case, cli.main(case.command.split()), *capfd.readouterr())
    assert os.listdir(here) == ["in"]


def test_a_cutoff_that_needs_more_bins_than_fit(here, monkeypatch, capfd):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "1M")
    case = Case(3, "map in/box.pdb -o m.dx --method cutoff --cutoff 0.5 --spacing 3", "a cutoff of 0.5 A",
                "use a longer --cutoff")
    check(case, cli.main(case.command.split()), *capfd.readouterr())


def test_an_engine_that_is_not_there(here, capfd, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # where there is a GPU, it is hidden
    code = cli.main([*MAP_OF_ION, "--engine", "cuda"])
    out, err = capfd.readouterr()
    assert code in (2, 4)  # 4 where the engine is known
    assert out == ""
    assert "cuda" in one_line(err).lower()
    assert os.listdir(here) == ["in"]


WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "MDAnalysis":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
from vmdpotential.frontend.cli import main
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("selection", "code"), [
    ("chain A", 2), ("protien and name CA", 2), ("(solut or resid 5)", 2), ("protein and name CA", 4)])
def test_a_mistyped_selection_is_no_missing_package(selection, code, here):
    done = subprocess.run([sys.executable, "-c", WITHOUT, "map", "in/box.pdb", "--atoms", selection, "-o", "m.dx"],
                          capture_output=True, text=True)
    assert done.returncode == code
    assert ("MDAnalysis" in done.stderr) == (code == 4)


@pytest.mark.parametrize("arguments", [
    "map in/cut.tpr -o m.dx", "map in/box.pdb --topology in/cut.tpr -o m.dx",
    "map in/other.xtc --topology in/box.psf -o m.dx",
])
def test_a_package_that_is_not_installed(arguments, here):
    done = subprocess.run([sys.executable, "-c", WITHOUT, *arguments.split()], capture_output=True, text=True)
    check(Case(4, arguments, "needs MDAnalysis", "pip install 'vmdpotential[traj]'"), *result(done))
    assert os.listdir(here) == ["in"]


def test_a_format_for_which_another_package_is_missing(here, capfd):
    (here / "a.h5md").write_text("something")
    if importlib.util.find_spec("h5py"):
        case = Case(2, "map a.h5md --topology in/box.psf -o m.dx", "a.h5md", AGAIN)
    else:
        case = Case(4, "map a.h5md --topology in/box.psf -o m.dx", "a.h5md: needs h5py", "pip install h5py")
    check(case, cli.main(case.command.split()), *capfd.readouterr())


@pytest.mark.slow
def test_other_packages_warn_nobody(here):
    command = [*PROGRAM, "map", FILES / "tip125_tric_C36.dcd", "--topology=in/other.psf", "-o", "m.dx", "--spacing=2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
