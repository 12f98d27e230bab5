"""Values that programs give: what does not fit is refused in one line, and nothing is guessed or lost."""

import re
from dataclasses import replace

import golden
import numpy as np
import pytest

from vmdpotential import io, place_ions
from vmdpotential.errors import InputError, UsageError
from vmdpotential.frontend import cli
from vmdpotential.ions.counts import Species
from vmdpotential.ions.salts import Salt, plan_mixture
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.radii import atomic_radii
from vmdpotential.molecule.selection import select


@pytest.mark.parametrize("rows", [
    np.ones(5, bool), np.ones((2, 3), bool), np.array([1.5, 2.0]), np.array(["CA"]), np.array([[0, 1]]), np.array(3),
])
def test_an_array_that_selects_nothing_sensible(rows):
    with pytest.raises(UsageError, match=r"is (a mask|an array) of"):
        select(golden.structure(), rows)


@pytest.mark.parametrize(("suffix", "speed"), [(".gro", 9999.0), (".gro", -999.0), (".rst7", 20_440.0)])
def test_velocities_that_columns_do_not_hold(suffix, speed, tmp_path):
    structure = golden.structure()
    fits, wide = np.zeros((len(structure), 3)), np.zeros((len(structure), 3))
    fits[-1, 2], wide[-1, 2] = 0.999 * speed, speed
    io.write_structure(replace(structure, velocities=fits), tmp_path / f"fits{suffix}")
    with pytest.raises(UsageError, match=r"velocities of 999|velocities of 20434"):
        io.write_structure(replace(structure, velocities=wide), tmp_path / f"wide{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == [f"fits{suffix}"]


def test_files_that_say_no_directions_of_a_cell_are_told_of(tmp_path, caplog):
    structure = golden.structure()
    a, b, c = structure.cell.vectors
    turned = replace(structure, cell=Cell(np.stack([b, -a, c])))
    assert turned.cell.rotated
    assert not structure.cell.rotated
    for suffix in (".rst7", ".cif", ".pdb"):
        caplog.clear()
        io.write_structure(turned, tmp_path / f"a{suffix}")
        assert "the rotation of its vectors is lost" in caplog.text, suffix
    with pytest.raises(UsageError, match="rotated"):
        io.write_structure(turned, tmp_path / "a.gro")


def test_radii_of_a_file_outlive_ions_and_are_never_guessed(tmp_path):
    given = np.arange(len(golden.structure())) % 5 + 1.25
    placed = place_ions(replace(golden.structure(), radii=given), site="random", seed=1)
    kept = placed.kept_atoms
    io.write_structure(placed.structure, tmp_path / "a.pqr")
    written = io.read_structure(tmp_path / "a.pqr").radii
    np.testing.assert_array_equal(written[: len(kept)], given[kept])
    assert (written[len(kept):] > 1).all()  # of the table
    chosen = np.ones(len(placed.structure), bool)
    with pytest.raises(InputError, match=r"SOD1:SOD.* has no radius; name a set"):
        atomic_radii(placed.structure, chosen)
    chosen[len(kept):] = False
    np.testing.assert_array_equal(atomic_radii(placed.structure, chosen)[0], given[kept])
    for wrong in (-1.0, np.inf):
        with pytest.raises(InputError, match=r"atom 1 .* has no radius"):
            atomic_radii(replace(golden.structure(), radii=np.full(len(given), wrong)), np.ones(len(given), bool))


SOD, POT, CLA = Species("SOD", 1), Species("POT", 1), Species("CLA", -1)


def test_mixtures_know_the_methods_and_ions_by_any_name():
    salts = [Salt("NaCl", SOD, CLA, 0.5), Salt("KCl", POT, CLA, 0.5)]
    with pytest.raises(UsageError, match="choose one of add"):
        plan_mixture(0, 10_000, salts, SOD, CLA, concentration=0.15, method="guess")
    # all is there already: nothing is added for a purpose, and nothing taken away
    whole = plan_mixture(0, 10_000, salts, SOD, CLA, concentration=0.15, existing=[(SOD, 25), (POT, 13), (CLA, 27)])
    assert (whole.added, whole.neutralizing, whole.salt) == ((), {}, {})
    structure, expected = golden.structure(), {"concentration": 0.4, "salt": {"NaCl": 0.5, "KCl": 0.5}, "seed": 1,
                                             "site": "random", "from_solute": 4, "between": 4}
    first = place_ions(structure, **expected)
    again = place_ions(first.structure, naming="amber", **expected)
    assert again.counts.total < 0.2 * first.counts.total
    assert sum(again.counts.existing.values()) == first.counts.total


@pytest.mark.parametrize(("words", "said"), [
    ("field in.pqr --at all --resume", "--resume: needs an output file.*; name a file as --output"),
    ("profile in.pqr --resume -o -", "--resume: needs an output file"),
    ("ionize in.pqr --parameters frcmod -o out.pdb", "--parameters.*: are only used when a prmtop is written"),
])
def test_options_that_would_do_nothing(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    io.write_structure(golden.structure(), tmp_path / "in.pqr")
    assert cli.main(words.split()) == 2
    assert re.search(said, capsys.readouterr().err)
    assert [path.name for path in tmp_path.iterdir()] == ["in.pqr"]
