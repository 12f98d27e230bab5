"""Selections inside a command are PyMOL's own; words of the program are what PyMOL does not know."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from vmdpotential import registry
from vmdpotential.plugins.pymol import commands
from vmdpotential.plugins.pymol.convert import read_selection, rows_of


@pytest.fixture
def peptide(cmd):
    cmd.fab("AKDE", "pep", hydro=1)
    cmd.alter("pep", "partial_charge=0.1")
    cmd.alter("pep and elem O", "partial_charge=-0.3")
    return cmd


def test_rows_are_those_of_the_structure(peptide):
    source = read_selection(peptide, "pep and not elem H")
    structure = source.structure
    for text, expected in (
        ("name CA", structure.atom_names == "CA"), ("resi 2+3 and name N", np.isin(structure.residue_ids, [2, 3])
                                                    & (structure.atom_names == "N")),
        ("all", np.ones(len(structure), bool)), ("elem H", np.zeros(len(structure), bool)),
    ):
        assert_array_equal(rows_of(peptide, source, text), np.flatnonzero(expected), err_msg=text)
    assert rows_of(peptide, source, "solute") is None
    assert not [name for name in peptide.get_names("all") if name.startswith("_potential")]


def test_distances_are_those_of_the_state_that_is_shown(peptide):
    peptide.create("pep", "pep", 1, 2)
    peptide.translate([90, 0, 0], "pep and resi 4", state=2, camera=0)
    near = [rows_of(peptide, read_selection(peptide, "pep"), "byres (resi 3 around 4)")
            for state in (1, 2) if peptide.set("state", state) is None or True]
    structure = read_selection(peptide, "pep").structure
    assert [4 in structure.residue_ids[rows] for rows in near] == [True, False]


def test_commands_take_them(peptide, do, monkeypatch):
    class CalledError(Exception):
        """Raised in place of the computation."""

    given = []
    command = registry.get("command", "energy")

    def run(self, **values):
        given.append(values)
        raise CalledError

    monkeypatch.setattr(type(command), "__call__", run)
    for line in ("potential_energy pep, ['name CA' 'resi 2 and not hydro']", "potential_energy pep, [polymer solute]",
                 "potential_map pep, atoms=resi 3-4", "potential_map pep, atoms=protein"):
        with pytest.raises(CalledError):
            commands.adapt(registry.get("command", line.split()[0].removeprefix("potential_")))(
                *[], **dict(_arguments(line)), _self=peptide)
    structure = read_selection(peptide, "pep").structure
    second = given[0]["between"][1]
    assert second == "resi 2 and not hydro"
    assert_array_equal(second.rows, np.flatnonzero((structure.residue_ids == 2) & (structure.elements != "H")))
    assert given[1]["between"][1] == "solute"  # the program's word
    assert set(structure.residue_ids[given[2]["atoms"].rows]) == {3, 4}
    assert given[3]["atoms"] == "protein"
    assert not hasattr(given[3]["atoms"], "rows")


def _arguments(line):
    """Return the arguments of a line as PyMOL parses them."""
    first, *others = line.partition(" ")[2].split(", ")
    yield "selection", first
    for other in others:
        name, equal, value = other.partition("=")
        yield (name, value) if equal else ("between", other)


def test_what_is_none_is_one_line(peptide, do):
    for line, said in (
        ("potential_map pep, atoms=nonsense and name", "atoms=nonsense and name: this is neither a selection in the"),
        ("potential_map pep, atoms=resn XYZ", "atoms=resn XYZ: selects no atoms of the system"),
    ):
        assert said in do(line)


def test_a_map_of_some_atoms(peptide, do):
    assert "Error" not in do("potential_map pep, part, atoms=resi 3 and elem O, spacing=2, method=direct, slices=no"
                             .replace(", slices=no", ""))
    assert "part" in peptide.get_names()
