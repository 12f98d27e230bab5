"""Amber's topologies against ParmEd and OpenMM, and broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from numpy.testing import assert_allclose, assert_array_equal
from structure_files import AMBER, PRMTOP, amber_of, bonded_atoms, ordered

from vmdpotential.io.topologies import prmtop

# ---- prmtop


@pytest.mark.slow
@pytest.mark.parametrize("path", PRMTOP, ids=lambda path: path.name)
def test_prmtop_agrees_with_parmed(path: Path) -> None:
    structure = prmtop.read_prmtop(path)
    topology = structure.topology
    theirs = amber_of(path)
    assert topology.source == "prmtop"
    assert_allclose(structure.charges, [atom.charge for atom in theirs.atoms], atol=3.1e-9)
    assert_array_equal(structure.atom_names, [atom.name for atom in theirs.atoms])
    assert_array_equal(structure.residue_names, [atom.residue.name for atom in theirs.atoms])
    assert_array_equal(structure.residue_index, [atom.residue.idx for atom in theirs.atoms])
    assert_array_equal(topology.types, [atom.type for atom in theirs.atoms])
    assert_allclose(topology.masses, [atom.mass for atom in theirs.atoms])
    if path.name != "JAC.prmtop":  # heavy hydrogens: ParmEd takes them for helium
        numbers = [atom.element_name.replace("EP", "") for atom in theirs.atoms]
        assert_array_equal(structure.elements, numbers)
    for term, size in (("bonds", 2), ("angles", 3)):
        assert_array_equal(bonded_atoms(getattr(theirs, term), size), ordered(getattr(topology, term)), err_msg=term)
    assert_array_equal(bonded_atoms(theirs.dihedrals, 4, lambda term: not term.improper), ordered(topology.dihedrals))
    impropers = [*(term for term in theirs.dihedrals if term.improper), *theirs.impropers]
    assert_array_equal(bonded_atoms(impropers, 4), ordered(topology.impropers))
    assert_array_equal(bonded_atoms(theirs.cmaps, 5), ordered(topology.cross_terms[:, [0, 1, 2, 3, 7]]))
    assert_array_equal(topology.cross_terms[:, 1:4], topology.cross_terms[:, 4:7])
    if theirs.box is None:
        assert structure.cell is None
    else:
        assert_allclose(structure.cell.parameters, theirs.box, rtol=1e-9)


def test_prmtop_names_residues_as_the_pdb_did() -> None:
    structure = prmtop.read_prmtop(AMBER / "ache_chainid.prmtop.bz2")
    assert structure.residue_ids[structure.residue_starts[:15]].tolist() == [*range(1, 15), 1]
    assert set(structure.chain_ids) == {"A", "B", "C"}
