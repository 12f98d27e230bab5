"""Names and values with mathematics, odd bytes or nothing in them."""

import os
from pathlib import Path

import pytest
from damaged import DX
from fuzz import seeds

from vmdpotential.errors import UsageError
from vmdpotential.frontend import cli


def test_mathematics_and_odd_bytes_in_figures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text_ = DX.replace("unit: kT/e", "unit: $\\foo$ %FF%0A" + "x" * 500).replace("quantity: electrostatic potential",
                                                                            "quantity: $\\frac{$")
    for name in ("$a$.dx", "b.dx", os.fsdecode(b"c\xff.dx")):
        Path(name).write_text(text_)
    names = ["$a$.dx", "b.dx", os.fsdecode(b"c\xff.dx")]
    for options in (["b.dx"], ["b.dx", "--profile", "z"], [*names, "--profile", "x"]):
        assert cli.main(["slice", *options, "-o", "a.png", "--force", "--dpi", "50"]) == 0, capsys.readouterr()


@pytest.mark.parametrize("command", [
    "map in.pqr -o m.dx --topology=", "map in.pqr -o m.dx --field=", "map in.pqr -o m.dx --set=", "map in.pqr -o=",
    "map in.pqr -o m.dx --atoms=", "map in.pqr -o m.dx --cutoff=", "ionize in.pqr --dry-run --keep=",
    "ionize in.pqr --dry-run --ions=", "ionize in.pqr --dry-run --table=", "ionize in.pqr --dry-run --seed=",
    "ionize in.pqr -o=", "slice m.dx -o f.png --structure=", "slice m.dx -o f.png --plane=",
    "slice m.dx -o f.png --range=", "view in.pqr -o p.html --ions=", "view in.pqr -o p.html --title=",
])
def test_an_empty_value_is_not_none(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.pqr").write_text("ATOM 1 C X 1 0.0 0.0 0.0 1.0 1.0\n")
    assert cli.main(command.split()) == 2
    line = capsys.readouterr().err
    assert "is empty; give a value, or leave it out" in line
    assert command.split()[-1].rstrip("=").strip("-").replace("o", "output", command.endswith(" -o=")) in line
    assert os.listdir(tmp_path) == ["in.pqr"]


def test_an_empty_value_in_python():
    from vmdpotential import place_ions
    from vmdpotential.molecule.selection import select

    structure = seeds.system()
    for call in (lambda: place_ions(structure, keep="", ions={"SOD": 1}), lambda: select(structure, "")):
        with pytest.raises(UsageError, match="is empty"):
            call()
