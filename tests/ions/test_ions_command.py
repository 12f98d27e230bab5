"""The command ionize: what is said, what is refused, and that nothing is written then."""

import json
from pathlib import Path

import pytest
from helpers import TOOLS, shell

DHFR = TOOLS / "dhfr" / "JAC.inpcrd", "--topology", TOOLS / "dhfr" / "JAC.prmtop"


def test_dry_run_says_where_and_writes_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = shell(capsys, "ionize", *DHFR, "--dry-run", "--verbose", "-o", "a.pdb", "--table",
                             "a.csv")
    assert code == 0
    assert "neutralising ions: 11 Na+" in out
    assert len([line for line in out.splitlines() if line.split()[:1] == ["Na+"]]) == 11
    assert not list(tmp_path.iterdir())
    (tmp_path / "a.pdb").write_text("another run's")
    assert shell(capsys, "ionize", *DHFR, "--dry-run", "-o", "a.pdb")[0] == 0
    assert (tmp_path / "a.pdb").read_text() == "another run's"
    code, out, _ = shell(capsys, "ionize", *DHFR, "--dry-run", "--json", "--site", "random", "--seed", "4")
    data = json.loads(out)
    assert data["seed"] == 4
    assert data["counts"]["net_charge_after"] == pytest.approx(0, abs=2e-4)
    assert len(data["ions"]) == 11


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 2, "--output: a file for the result is needed"),
        (["--dry-run", "--cation", "CLA"], 2, "--cation CLA: its charge is -1"),
        (["--dry-run", "--concentration", "150"], 2, "at most 6 mol/L"),
        (["--dry-run", "--ions", "SOD:3"], 2, "NAME=NUMBER"),
        (["--dry-run", "--ions", "SOD=3,NA=1"], 2, "same ion"),
        (["--dry-run", "--ions", "SOD=3", "--concentration", "1"], 2, "leave out --concentration"),
        (["--dry-run", "--keep", "//*/99999"], 2, "no atoms"),
        (["-o", "a.prmtop"], 2, "prmtop"),
        (["-o", "a.pdb", "--table", "a.pdb"], 2, "named twice"),
        (["-o", "no/a.pdb"], 3, "does not exist"),
        (["-o", "a.pdb", "--table", "there.pdb"], 2, "--force"),
        (["-o", "a.pdb", "a.psf", "--table", "a.csv", "--between", "45"], 3, "of 11 ions placed"),
    ],
)
def test_wrong_usage_is_one_line_and_writes_nothing(options, code, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("there.pdb").write_text("mine\n")
    result, out, error = shell(capsys, "ionize", *DHFR, *options)
    assert (result, out) == (code, "")
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["there.pdb"]
    assert Path("there.pdb").read_text() == "mine\n"
