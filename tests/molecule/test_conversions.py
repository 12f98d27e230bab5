"""Structures of other packages become ours, and ours theirs, with the same atoms; their objects are accepted."""

from pathlib import Path

import gemmi
import MDAnalysis
import numpy as np
import openmm.app
import pytest
from helpers import TOOLS
from MDAnalysisTests import datafiles

import vmdpotential as vp

PDB = Path(__file__).parents[2] / "data" / "1hvr.pdb.gz"
AMBER = TOOLS / "cb7-viologen" / "leap" / "complex-explicit"
PACKAGES = ("mdanalysis", "biotite", "parmed", "openmm", "gemmi")


def amber():
    return vp.read_structure(AMBER.with_suffix(".inpcrd"), topology=AMBER.with_suffix(".prmtop"))


def same(made, expected):
    np.testing.assert_allclose(made.positions, expected.positions, atol=2e-3)
    for name in ("atom_names", "residue_names", "insertion_codes"):
        np.testing.assert_array_equal(getattr(made, name), getattr(expected, name))
    np.testing.assert_array_equal(np.char.upper(made.elements), np.char.upper(expected.elements))
    np.testing.assert_array_equal(made.residue_starts, expected.residue_starts)
    np.testing.assert_array_equal(made.residue_ids, expected.residue_ids)


@pytest.mark.parametrize("package", PACKAGES)
def test_there_and_back(package):
    structure = vp.read_structure(PDB)
    theirs = getattr(structure, f"to_{package}")()
    back = getattr(vp.Structure, f"from_{package}")(*(theirs if package == "openmm" else (theirs,)))
    same(back, structure)
    if package == "gemmi":
        assert back.cell.space_group == structure.cell.space_group


@pytest.mark.parametrize("package", PACKAGES)
def test_charges_bonds_and_a_cell_survive(package, tmp_path):
    structure = amber()
    theirs = getattr(structure, f"to_{package}")()
    back = getattr(vp.Structure, f"from_{package}")(*(theirs if package == "openmm" else (theirs,)))
    same(back, structure)
    np.testing.assert_allclose(back.cell.parameters, structure.cell.parameters, atol=2e-3)
    if package not in ("openmm", "gemmi"):  # which have no partial charges in what they call a structure
        np.testing.assert_allclose(back.charges, structure.charges, atol=1e-5)
    if package != "gemmi":
        assert {frozenset(pair) for pair in back.topology.bonds.tolist()} == {
            frozenset(pair) for pair in structure.topology.bonds.tolist()}


def test_what_other_programs_read_of_a_file():
    group = MDAnalysis.Universe(datafiles.PSF, datafiles.DCD).select_atoms("protein and resid 5:30")
    made = vp.Structure.from_mdanalysis(group)
    np.testing.assert_allclose(made.positions, group.positions, atol=1e-5)
    np.testing.assert_allclose(made.charges, group.charges)
    assert len(made.topology.bonds) == len(group.intra_bonds)
    # gemmi joins what the file has of a chain in several places
    made, expected = (each.take(np.lexsort((each.residue_ids, each.chain_ids))) for each in (
        vp.Structure.from_gemmi(gemmi.read_structure(str(PDB))), vp.read_structure(PDB)))
    same(made, expected)


def test_charges_of_an_openmm_system():
    topology = openmm.app.AmberPrmtopFile(str(AMBER.with_suffix(".prmtop")))
    positions = openmm.app.AmberInpcrdFile(str(AMBER.with_suffix(".inpcrd"))).positions
    made = vp.Structure.from_openmm(topology.topology, positions, topology.createSystem())
    expected = amber()
    np.testing.assert_allclose(made.charges, expected.charges, atol=1e-6)
    np.testing.assert_allclose(made.positions, expected.positions, atol=1e-4)


def test_objects_are_accepted_where_a_structure_is():
    structure = amber()
    expected = vp.potential_map(structure, atoms="not water", spacing=3.0, boundary="open", engine="cpu",
        medium="explicit")
    group = structure.to_mdanalysis()
    made = vp.potential_map(group, atoms="not water", spacing=3.0, boundary="open", engine="cpu", medium="explicit")
    np.testing.assert_allclose(made.values, expected.values, rtol=1e-3, atol=1e-2)
    array = structure.to_biotite()
    points = structure.positions[:5] + 1.5
    np.testing.assert_allclose(vp.potential_at(array, points, boundary="open"),
                               vp.potential_at(structure, points, boundary="open"), rtol=1e-3, atol=1e-2)
    for wrong in (7, None, {"a": 1}, type("Universe", (), {})()):
        with pytest.raises(vp.UsageError) as error:
            vp.potential_map(wrong, medium="explicit")
        assert error.value.parameter == "structure"
