"""Names of files that are unusual and must work, in figures too."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from broken_inputs import PROGRAM, one_line, without_progress
from damaged import DX

from vmdpotential import read_map, read_structure
from vmdpotential.frontend import cli

NAMES = [
    "with blanks  two", "it's \"quoted\"", "[x] {y} (z)", "$HOME `ls` \\ * ? ; | & # ~", "é ü 日本 🧂", "a;b%20=c|d",
    "-dash", "--force", "-1", ".hidden", "two\nlines", "many.dots.in.it", "n" * 230, os.fsdecode(b"bytes\xff\xfe"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[1:21])
def test_unusual_names_work(name, here, capfd):
    """Files of every command under the name, given in the ways that a shell user has."""
    shutil.copy("in/ion.pqr", f"./{name}.pqr")
    shutil.copy("in/box.pdb", f"./{name}.pdb")
    shutil.copy("in/box.psf", f"./{name}.psf")
    safe = f"./{name}" if name.startswith("-") else name
    for suffix in ("dx", "mrc", "cube", "npz"):
        assert cli.main(["map", f"{safe}.pqr", f"-o={name}.{suffix}", "--padding", "1"]) == 0, capfd.readouterr()
        grid = read_map(Path(f"./{name}.{suffix}"))
        assert grid.lattice.shape == (5, 5, 5)
        if "|" not in name:  # which separates the names in a map
            assert grid.provenance.inputs == (f"{name}.pqr",)
    assert cli.main(["slice", f"{safe}.dx", "in/good.dx", f"--structure={name}.pdb", "-o", f"{safe}.svg"]) == 0
    assert cli.main(["ionize", f"--topology={name}.psf", "--ions=SOD=1", f"-o={name}-2.pdb", f"-o={name}-2.psf",
                     f"-o={name}-2.cif", f"--table={name}.csv", "--json", "--", f"{name}.pdb"]) == 0
    for suffix in ("pdb", "cif"):
        again = read_structure(Path(f"./{name}-2.{suffix}"), topology=Path(f"./{name}-2.psf"))
        assert again.net_charge == pytest.approx(1, abs=1e-6)
    err = capfd.readouterr().err
    assert "Traceback" not in err
    assert "Warning" not in err
    assert cli.main(["map", "--padding", "1", f"--output={name}.dx", "--", f"{name}.pqr"]) == 2
    line = one_line(capfd.readouterr().err)
    assert "exists; use --force" in line


def test_names_that_the_terminal_cannot_show(here):
    shutil.copy("in/ion.pqr", "é.pqr")
    done = subprocess.run([*PROGRAM, "map", "é.pqr", "-o", "日本.dx", "--padding", "1"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    assert done.stdout.splitlines()[-1] == "wrote \\u65e5\\u672c.dx"
    assert Path("日本.dx").exists()


def test_mathematics_and_odd_bytes_in_figures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text_ = DX.replace("unit: kT/e", "unit: $\\foo$ %FF%0A" + "x" * 500).replace("quantity: electrostatic potential",
                                                                            "quantity: $\\frac{$")
    for name in ("$a$.dx", "b.dx", os.fsdecode(b"c\xff.dx")):
        Path(name).write_text(text_)
    names = ["$a$.dx", "b.dx", os.fsdecode(b"c\xff.dx")]
    for options in (["b.dx"], ["b.dx", "--profile", "z"], [*names, "--profile", "x"]):
        assert cli.main(["slice", *options, "-o", "a.png", "--force", "--dpi", "50"]) == 0, capsys.readouterr()
