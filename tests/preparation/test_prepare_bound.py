"""Completion of residues that are bound to others: caps, and side chains with a covalent bond."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import openmm.app
import pytest
from entries import ENTRIES
from helpers import slow
from scipy.spatial.transform import Rotation

from vmdpotential.io import read_structure
from vmdpotential.molecule.charges import charges_and_report
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.preparation.components import find_component
from vmdpotential.plugins.preparation.draft import UNUSUAL_NOTE
from vmdpotential.plugins.preparation.prepare import prepare_structure
from vmdpotential.preparation.charged import charge_structure

DATA = Path(__file__).parents[1] / "data"


def prepared(name, **options):
    return prepare_structure(read_structure(DATA / name), **options)


def net(result, residue):
    return [row.net_charge for row in result.rows if row.residue == residue]


def no_residue_is_without_charges(structure):
    """Residues of different elements have charges."""
    for start, stop in zip(structure.residue_starts[:-1], structure.residue_starts[1:], strict=True):
        if len(np.unique(structure.elements[start:stop])) > 1:
            assert structure.known_charges[start:stop].any(), structure.label(int(start))


@pytest.mark.parametrize("name", ["caps_amber.pdb", "caps_charmm.pdb", "caps_amber_heavy.pdb"])
def test_caps_keep_their_atoms_and_neutralise_the_ends(name):
    written = read_structure(DATA / name)
    result = prepared(name)
    done = result.structure
    assert round(done.net_charge, 3) == 1
    assert len(done) == 54
    assert not [atom for row in result.rows for atom in row.added_atoms]
    assert [row.residue for row in result.rows] == ["ACE", "ALA", "LYS", "ALA", "NME"]
    assert [round(row.net_charge, 3) for row in result.rows] == [0, 0, 1, 0, 0]
    no_residue_is_without_charges(done)
    # every atom is where it was
    assert set(map(tuple, written.positions)) <= set(map(tuple, done.positions))
    assert done.origins is not None
    heavy = done.elements != "H"
    np.testing.assert_array_equal(written.positions[done.origins[heavy]], done.positions[heavy])


def test_caps_within_residues_have_the_charges_of_charmm_as_without_completion():
    written = read_structure(DATA / "caps_charmm.pdb")
    direct, _ = charges_and_report(written)
    result = prepared("caps_charmm.pdb")
    assert result.charges.source == "charmm36"
    by_place = dict(zip(map(tuple, direct.positions), direct.known_charges, strict=True))
    for place, charge in zip(map(tuple, result.structure.positions), result.structure.known_charges, strict=True):
        assert by_place[place] == pytest.approx(charge, abs=1e-9)


def test_atoms_of_a_cap_may_be_anywhere_in_its_residue():
    written = read_structure(DATA / "caps_charmm.pdb")
    order = np.lexsort([written.atom_names, written.residue_index])
    result = prepare_structure(written.take(order))
    assert round(result.structure.net_charge, 3) == 1
    np.testing.assert_array_equal(written.take(order).positions[result.structure.origins], result.structure.positions)


@pytest.mark.parametrize("names", [
    {"CH3": "CA", "N": "N"}, {"CH3": "C", "N": "N"}, {"CH3": "CAT", "N": "NT"}])
@pytest.mark.parametrize("residue", ["NMA", "NME", "CT3"])
def test_names_of_programs_for_the_cap_of_an_amide(residue, names):
    written = read_structure(DATA / "caps_amber_heavy.pdb")
    last = written.residue_names == "NME"
    atoms = [names[atom] if cap else atom for atom, cap in zip(written.atom_names.tolist(), last, strict=True)]
    result = prepare_structure(replace(written, atom_names=np.array(atoms),
                                       residue_names=np.where(last, residue, written.residue_names)))
    assert len(result.structure) == 54
    assert round(result.structure.net_charge, 3) == 1
    assert not result.charges.approximate


@pytest.mark.parametrize("force_field", ["amber14", "charmm36"])
@pytest.mark.parametrize("name", ["NHE", "NH2"])
def test_an_amide_at_the_end_is_a_cap(name, force_field):
    written = read_structure(DATA / "amide_nhe.pdb")
    names = np.where(written.residue_names == "NHE", name, written.residue_names)
    result = prepare_structure(replace(written, residue_names=names), force_field=force_field)
    assert round(result.structure.net_charge, 3) == 1
    assert net(result, name) == [pytest.approx(0)]
    assert [row.added_hydrogens for row in result.rows] == [7, 3, 2]
    assert not result.charges.approximate


def test_a_lipid_of_a_force_field_stays_whole_while_a_peptide_is_completed():
    peptide = read_structure(DATA / "caps_amber_heavy.pdb")
    bilayer = read_structure(Path(openmm.app.__file__).parent / "data" / "POPC.pdb")
    lipid = bilayer.take(bilayer.residue_of == 0)
    place = {"positions": np.concatenate([peptide.positions, lipid.positions + 30])}
    both = Structure(**place, **{name: np.concatenate([getattr(peptide, name), getattr(lipid, name)]) for name in (
        "atom_names", "elements", "residue_names", "residue_ids")},
        residue_index=np.concatenate([peptide.residue_index, lipid.residue_index + 10]))
    result = prepare_structure(both)
    assert not result.charges.approximate
    no_residue_is_without_charges(result.structure)
    assert len(result.structure) == 54 + 134
    assert round(result.structure.net_charge, 3) == 1
    assert result.rows[-1].kept_hydrogens == 82


def test_a_cysteine_that_is_bound_covalently_is_no_thiolate():
    result = prepared("covalent_cys.pdb")
    sulphur = result.structure.known_charges[result.structure.atom_names == "SG"][0]
    assert sulphur == pytest.approx(-0.1081)  # ff14SB, CYX
    assert net(result, "CYS") == [pytest.approx(0, abs=1e-4)]
    assert net(result, "ACM") == [pytest.approx(0, abs=1e-3)]
    # the same without completion, with charges of the ligand
    done = replace(result.structure, charges=None)
    ligand = done.residue_names == "ACM"
    again, _ = charges_and_report(done, "amber14", needed=~ligand)
    assert again.known_charges[done.atom_names == "SG"][0] == pytest.approx(-0.1081)


@pytest.mark.slow
def test_hemes_bound_to_cysteines_have_their_own_charge():
    result = prepare_structure(read_structure(ENTRIES["19HC"]))
    assert len(net(result, "CYS")) == 36
    assert np.allclose(net(result, "CYS"), 0, atol=1e-3)
    assert np.allclose(net(result, "HEM"), -2, atol=1e-3)


@pytest.mark.parametrize(("residue", "oxygen", "carbon"), [("ASP", "OD2", "CG"), ("GLU", "OE1", "CD")])
def test_an_ester_is_neutral(residue, oxygen, carbon):
    written = read_structure(ENTRIES["1OSM"])
    first = int(np.flatnonzero((written.residue_names == residue) & (written.atom_names == oxygen))[0])
    own = written.residue_of == written.residue_of[first]
    part = written.take(own)
    place = part.positions[part.atom_names == oxygen][0]
    axis = place - part.positions[part.atom_names == carbon][0]
    methyl = Structure(positions=[place + 1.43 * axis / np.linalg.norm(axis)], atom_names=["C"], elements=["C"],
                       residue_names=["MOH"], residue_ids=[900], residue_index=[1], hetero=[True])
    both = Structure(**{name: np.concatenate([getattr(part, name), getattr(methyl, name)]) for name in (
        "positions", "atom_names", "elements", "residue_names", "residue_ids", "hetero")},
        residue_index=np.concatenate([np.zeros(len(part), int), [1]]))
    result = prepare_structure(both)
    assert net(result, residue)[0] + net(result, "MOH")[0] == pytest.approx(0, abs=1e-3)
    assert abs(net(result, residue)[0]) < 0.3


@pytest.mark.parametrize("name", slow(["1YJP", "5PTI", "1HVR", "NMR", "1BHL", "4E43", "19HC"],
                                      ["1HVR", "1BHL", "4E43", "19HC"]))
def test_templates_give_each_residue_the_charge_of_its_state(name):
    result = prepare_structure(read_structure(ENTRIES[name]))
    no_residue_is_without_charges(result.structure)
    charged = {"ASP": -1, "GLU": -1, "LYS": 1, "ARG": 1, "HIP": 1, "CYM": -1, "TYM": -1, "N-terminus": 1,
               "C-terminus": -1}
    rows = [row for row in result.rows if row.charges in ("amber14", "charmm36") and row.state]
    assert rows
    for row in rows:
        assert row.net_charge == pytest.approx(sum(charged.get(word, 0) for word in row.state.split("+")), abs=2e-3)


def residues(*parts):
    """A structure of residues in chains of their own, each of a name, atom names, elements and positions."""
    names, atoms, elements, positions = zip(*parts, strict=True)
    lengths = [len(part) for part in atoms]
    return Structure(positions=np.concatenate(positions), atom_names=np.concatenate(atoms),
                     elements=np.concatenate(elements), residue_names=np.repeat(names, lengths),
                     residue_ids=np.repeat(np.arange(len(parts)) + 1, lengths),
                     chain_ids=np.repeat(list("ABC"[:len(parts)]), lengths),
                     residue_index=np.repeat(np.arange(len(parts)), lengths))


def part_of(entry, residue, without=()):
    """The heavy atoms of the first residue with a name."""
    first = int(np.flatnonzero(entry.residue_names == residue)[0])
    rows = np.flatnonzero((entry.residue_of == entry.residue_of[first]) & ~np.isin(entry.atom_names, [*without, "OXT"])
                          & (entry.elements != "H"))
    return entry.atom_names[rows], entry.elements[rows], entry.positions[rows]


def test_an_acid_that_is_an_amide_by_its_side_chain_gets_no_third_oxygen():
    names, elements, positions = part_of(read_structure(ENTRIES["1OSM"]), "GLU")
    oxygen, carbon = positions[names == "OE2"][0], positions[names == "CD"][0]
    beyond = oxygen + 1.45 * (oxygen - carbon) / np.linalg.norm(oxygen - carbon)
    stay = names != "OE2"
    # gamma-glutamate in the dictionary; its OE2 is not among the atoms that bonds replace
    result = prepare_structure(residues(("DGL", names[stay], elements[stay], positions[stay]),
                                        ("NME", ["N", "C"], ["N", "C"], np.array([oxygen, beyond]))))
    assert [row.added_atoms for row in result.rows] == [("OXT",), ()]
    assert round(result.structure.net_charge, 3) == 0  # an amine and one carboxylate


@pytest.mark.parametrize("length", [1.45, 1.9, 2.3])
def test_a_sugar_on_an_asparagine_is_bonded_also_by_a_long_bond(length):
    names, elements, positions = part_of(read_structure(ENTRIES["1OSM"]), "ASN")
    nitrogen, carbon = positions[names == "ND2"][0], positions[names == "CG"][0]
    sugar = find_component("NAG")
    anomeric, leaving = sugar.row["C1"], sugar.row["O1"]
    rotation, _ = Rotation.align_vectors([carbon - nitrogen], [sugar.positions[leaving] - sugar.positions[anomeric]])
    stay = np.arange(len(sugar.atoms)) != leaving
    away = (nitrogen - carbon) / np.linalg.norm(nitrogen - carbon)
    places = rotation.apply(sugar.positions - sugar.positions[anomeric]) + nitrogen + length * away
    result = prepare_structure(residues(
        ("ASN", names, elements, positions),
        ("NAG", np.array(sugar.atoms)[stay], np.array(sugar.elements)[stay], places[stay])))
    assert [row.added_atoms for row in result.rows] == [("OXT",), ()]
    done = result.structure
    assert round(done.net_charge, 3) == 0
    assert ((done.residue_names == "ASN") & np.char.startswith(done.atom_names, "HD2")).sum() == 1
    assert (UNUSUAL_NOTE in result.summary()) == (length > 1.8)
    no_residue_is_without_charges(done)


def attached(residue, atom, behind, ligand, holder, replaced, length):
    """A residue, and a component of the dictionary without the atom that the bond replaces."""
    names, elements, positions = part_of(read_structure(ENTRIES["1OSM"]), residue)
    first, second = positions[names == atom][0], positions[names == behind][0]
    other = find_component(ligand)
    centre, row = other.row[holder], other.row[replaced]
    rotation, _ = Rotation.align_vectors([second - first], [other.positions[row] - other.positions[centre]])
    stay = np.arange(len(other.atoms)) != row
    away = (first - second) / np.linalg.norm(first - second)
    places = rotation.apply(other.positions - other.positions[centre]) + first + length * away
    return residues((residue, names, elements, positions),
                    (ligand, np.array(other.atoms)[stay], np.array(other.elements)[stay], places[stay]))


@pytest.mark.parametrize(("atoms", "ligand", "net_charge", "hydrogens"), [
    # hydrogens of the ligand as in the dictionary, less those of the atom that the bond replaces
    (("LYS", "NZ", "CE", "RET", "C15", "O1", 1.30), "RET", 1, 28),
    (("LYS", "NZ", "CE", "PLP", "C4A", "O4A", 1.30), "PLP", 1 - 2, 8),
    (("LYS", "NZ", "CE", "BTN", "C11", "O12", 1.33), "BTN", 0, 15),
    (("SER", "OG", "CB", "NGA", "C1", "O1", 1.43), "NGA", 0, 14),
    (("THR", "OG1", "CB", "MAN", "C1", "O1", 1.43), "MAN", 0, 11),
    (("TYR", "OH", "CZ", "PO4", "P", "O4", 1.60), "PO4", -2, 0)])
def test_side_chains_bound_to_cofactors_sugars_and_phosphates(atoms, ligand, net_charge, hydrogens):
    result = prepare_structure(attached(*atoms))
    assert round(result.structure.net_charge, 3) == net_charge  # the ends of the amino acid add 0
    assert [row.added_atoms for row in result.rows] == [("OXT",), ()]
    assert result.rows[1].residue == ligand
    assert result.rows[1].added_hydrogens == hydrogens
    no_residue_is_without_charges(result.structure)


@pytest.mark.parametrize(("name", "net_charge"), [
    ("SEC", -1), ("CSD", -1), ("OCS", -1), ("PCA", -1), ("FME", -1), ("SEP", -2), ("M3L", 1), ("MSE", 0), ("KCX", -1)])
def test_charges_of_modified_amino_acids(name, net_charge):
    other = find_component(name)
    result = prepare_structure(residues((name, other.atoms, other.elements, other.positions)))
    assert round(result.structure.net_charge, 3) == net_charge  # with both ends, of which PCA and FME have one


@pytest.mark.parametrize(("residue", "atom", "behind", "hydrogen"), [
    ("TYR", "CE2", "CG", "HE2"), ("GLN", "CD", "CG", "")])
def test_a_cysteine_bound_to_another_amino_acid_has_no_hydrogen_at_its_sulphur(residue, atom, behind, hydrogen):
    entry = read_structure(ENTRIES["1OSM"])
    names, elements, positions = part_of(entry, residue, () if residue == "TYR" else ("NE2",))
    other = find_component("CYS")
    stay = np.array([name != "OXT" for name in other.atoms])
    sulphur = other.positions[other.row["SG"]]
    first = positions[names == atom][0]
    # where the bond points to: away from the ring, or where the amide's nitrogen was
    amide = part_of(entry, residue)
    away = first - positions[names == behind][0] if residue == "TYR" else (
        amide[2][amide[0] == "NE2"][0] - first)
    away = away / np.linalg.norm(away)
    rotation, _ = Rotation.align_vectors([away], [other.positions[other.row["CB"]] - sulphur])
    places = rotation.apply(other.positions - sulphur) + first + 1.78 * away
    result = prepare_structure(residues(
        (residue, names, elements, positions),
        ("CYS", np.array(other.atoms)[stay], np.array(other.elements)[stay], places[stay])))
    assert result.rows[1].state.startswith("CYX")
    assert [row.added_atoms for row in result.rows] == [("OXT",), ("OXT",)]
    assert round(result.structure.net_charge, 3) == 0
    assert not hydrogen or hydrogen not in result.structure.atom_names
    no_residue_is_without_charges(result.structure)


def test_a_map_of_a_file_that_lacks_one_hydrogen_has_the_caps_charges():
    written = read_structure(DATA / "caps_amber.pdb")
    done, report = charge_structure(written.take(written.atom_names != "HB1"), "auto", "auto", prepare="auto")
    assert round(done.net_charge, 3) == 1
    assert report.prepared
    no_residue_is_without_charges(done)
