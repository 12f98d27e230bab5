"""Charges and radii of prepared structures: against RDKit, PDB2PQR and the rules of functional groups."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from entries import ENTRIES, heavy
from helpers import TOOLS

from vmdpotential.errors import InputError
from vmdpotential.io import read_structure, write_structure
from vmdpotential.molecule.radii import atomic_radii
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.forcefields.residue_charges import read_residue_charges
from vmdpotential.plugins.preparation.components import find_component
from vmdpotential.plugins.preparation.prepare import prepare_structure


def test_nucleic_acids_have_templates_and_one_charge_for_each_phosphate():
    path = TOOLS / "dna_dodecamer_explicit" / "4c64_no_mg.pdb"
    structure = read_structure(path)
    made = prepare_structure(structure)
    assert not made.charges.approximate
    phosphates = int(((structure.elements == "P")).sum())
    assert round(made.structure.net_charge) == -phosphates
    names = {str(name) for name in made.structure.atom_names}
    assert {"HO5'", "HO3'", "H2''"} <= names


@pytest.mark.slow
def test_radii_of_parse_are_those_of_pdb2pqr(tmp_path):
    structure = read_structure(ENTRIES["1OSM"])
    bare = replace(structure.take(heavy(structure) & ~structure.hetero), cell=None)
    made = prepare_structure(bare, radii="parse").structure
    write_structure(made, tmp_path / "made.pdb")
    subprocess.run([sys.executable, "-m", "pdb2pqr", "--ff", "PARSE", "--assign-only", "--keep-chain",
                    tmp_path / "made.pdb", tmp_path / "made.pqr"], check=True, capture_output=True)
    other = read_structure(tmp_path / "made.pqr")

    def keys_of(s: Structure) -> list[tuple[int, str, str]]:
        return list(zip(s.residue_ids.tolist(), s.insertion_codes.tolist(), s.atom_names.tolist(), strict=True))

    theirs = dict(zip(keys_of(other), other.radii.tolist(), strict=True))
    keys = keys_of(made)
    both = [(made.radii[row], theirs[key]) for row, key in enumerate(keys) if key in theirs]
    assert len(both) > 0.95 * len(made)
    np.testing.assert_allclose(*np.array(both).T, atol=1e-6)


def test_radii_of_residues_that_parse_does_not_cover():
    structure = read_structure(ENTRIES["1HVR"])
    whole = prepare_structure(structure.take(structure.residue_names == "XK2"), radii="parse")
    assert (whole.structure.radii > 0).all()
    assert "XK2" in whole.radii
    with pytest.raises(InputError):
        atomic_radii(whole.structure, np.ones(len(whole.structure), bool), "parse")


def test_guanine_and_amidines():
    """An imine of a ring is no base near pH 7; benzamidine and arginine are."""
    from vmdpotential.plugins.preparation.draft import draft_of
    from vmdpotential.plugins.preparation.states import assign

    for name, net in (("GUN", 0), ("BEN", 1), ("ADE", 0), ("ACT", -1), ("SO4", -2), ("TRS", 1), ("EPE", 0), ("ATP", -4),
                      ("NAG", 0), ("IMD", 1), ("GOL", 0), ("SPM", 4), ("GBS", 0), ("PO4", -2)):
        result = find_component(name)
        count = len(result.atoms)
        structure = Structure(result.positions, result.atoms, [name] * count, [1] * count, [0] * count,
                              elements=result.elements)
        draft = draft_of(structure, np.ones(count, bool))
        assert draft.residues[0].component is not None, name
        assert assign(draft, result.bonds, 7.0, {}, {}).charges.sum() == net, name


def test_a_ligand_whose_charges_name_all_its_atoms_keeps_its_hydrogens():
    """Toluene in lysozyme, whose MOL2 file has Amber's types of atoms, which are no elements."""
    folder = TOOLS / "T4-lysozyme-L99A-implicit"
    whole = read_structure(folder / "complex.pdb")
    near = whole.take(np.flatnonzero((whole.residue_names == "TMP") | (
        ~np.isin(whole.elements, ["H"]) & (whole.residue_ids > 90) & (whole.residue_ids < 104))))
    ligand = near.residue_names == "TMP"
    made = prepare_structure(near, charges=read_residue_charges(folder / "ligand.mol2")).structure
    kept = made.residue_names == "TMP"
    assert (made.atom_names[kept] == near.atom_names[ligand]).all()
    assert np.abs(made.positions[kept] - near.positions[ligand]).max() < 1e-6
    assert made.known_charges[kept].sum() == pytest.approx(2e-4, abs=1e-6)  # as the file's charges add up
