"""Completion of chains: atoms missing between residues, bonds of unusual length, gaps, and room for added atoms."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from entries import ENTRIES
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from vmdpotential.io import read_structure
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.preparation.bridges import UNUSUAL_NOTE
from vmdpotential.plugins.preparation.components import find_component
from vmdpotential.plugins.preparation.draft import CROWDED_NOTE, PHOSPHATE, Draft, Residue
from vmdpotential.plugins.preparation.prepare import prepare_structure
from vmdpotential.plugins.preparation.propka import _records

DATA = Path(__file__).parents[1] / "data"


def read(name):
    return read_structure(DATA / name)


def heavy(structure):
    return structure.elements != "H"


def added(result):
    return [atom for row in result.rows for atom in row.added_atoms]


def apart_from(result, structure, removed):
    """Distances, A, of removed atoms from the nearest heavy atom of the completed structure."""
    done = result.structure
    return cKDTree(done.positions[heavy(done)]).query(structure.positions[removed])[0]


def test_a_long_peptide_bond_is_no_gap():
    result = prepare_structure(read("bond_long.pdb"))
    assert len(result.structure) == 53
    assert round(result.structure.net_charge, 3) == 0
    assert not result.gaps
    assert [row.number for row in result.rows if UNUSUAL_NOTE in row.note] == ["2"]
    assert UNUSUAL_NOTE in result.summary()


@pytest.mark.parametrize(("length", "chain"), [(0.79, True), (1.6, True), (1.8, True), (2.4, True), (3.4, True),
                                               (9.0, False)])
def test_a_chain_is_one_up_to_distances_at_which_nothing_can_be_missing(length, chain):
    structure = read("bond_long.pdb")
    after = structure.residue_of >= 2
    carbon = structure.positions[(structure.residue_of == 1) & (structure.atom_names == "C")][0]
    nitrogen = structure.positions[(structure.residue_of == 2) & (structure.atom_names == "N")][0]
    axis = (nitrogen - carbon) / np.linalg.norm(nitrogen - carbon)
    moved = structure.positions + np.outer(after, (length - np.linalg.norm(nitrogen - carbon)) * axis)
    result = prepare_structure(replace(structure, positions=moved))
    assert round(result.structure.net_charge, 3) == 0
    assert (len(result.structure) == 53) == chain
    assert len(result.gaps) == (not chain)
    assert len(added(result)) == 0 if chain else set(added(result)) == {"N", "C", "O", "CH3"}


@pytest.mark.parametrize("missing", [["C"], ["N"], ["C", "O"], ["O"]])
def test_a_residue_without_a_part_of_its_backbone_stays_within_the_chain(missing):
    entry = read_structure(ENTRIES["1OSM"])
    removed = np.isin(entry.atom_names, missing) & (entry.residue_of % 7 == 3) & (entry.residue_of < 300)
    result = prepare_structure(entry.take(~removed))
    assert not result.gaps
    assert len(result.structure) == 2731
    assert round(result.structure.net_charge) == -12
    assert np.median(apart_from(result, entry, removed)) < 0.15


def test_a_residue_without_its_carbonyl_carbon():
    result = prepare_structure(read("no_backbone_c.pdb"))
    assert len(result.structure) == 53
    assert added(result) == ["C"]
    assert [round(row.net_charge, 3) for row in result.rows] == [1, 0, 0, 0, -1]


def test_the_oxygen_of_an_amide_may_be_called_oxt():
    result = prepare_structure(read("carbonyl_named_oxt.pdb"))
    assert not added(result)
    assert round(result.structure.net_charge, 3) == 0
    assert len(set(zip(result.structure.residue_index, result.structure.atom_names, strict=True))) == len(
        result.structure)


@pytest.mark.parametrize("missing", [["P"], ["P", "OP1", "OP2"], ["O3'"], ["OP1"], ["OP1", "OP2"], ["O5'"]])
def test_nucleotides_without_a_part_of_their_phosphate(missing):
    whole = read("dna.pdb")
    removed = np.isin(whole.atom_names, missing) & (whole.residue_of > 0) & (whole.residue_of < 4)
    result = prepare_structure(whole.take(~removed))
    assert round(result.structure.net_charge, 3) == -4
    assert len(result.structure) == 160
    assert not result.breaks
    assert apart_from(result, whole, removed).max() < 0.6
    # OP1 is where OP1 was
    done = result.structure
    for name in set(missing) & {"OP1", "OP2", "P"}:
        new = done.positions[(done.atom_names == name) & (done.residue_index > 0) & (done.residue_index < 4)]
        old = whole.positions[(whole.atom_names == name) & removed]
        assert np.linalg.norm(new - old, axis=1).max() < 0.3


def test_all_phosphates_of_a_nucleic_acid_can_be_missing():
    whole = read("dna.pdb")
    phosphate = np.isin(whole.atom_names, ["P", "OP1", "OP2"])
    assert round(prepare_structure(whole.take(~phosphate)).structure.net_charge, 3) == -4


def test_the_first_phosphate_of_a_strand_is_completed_from_its_oxygens():
    whole = read("dna_phosphate_first.pdb")
    first = (whole.residue_of == 0) & (whole.atom_names == "P")
    base, result = prepare_structure(whole), prepare_structure(whole.take(~first))
    assert len(result.structure) == len(base.structure)
    assert round(result.structure.net_charge, 3) == round(base.structure.net_charge, 3)
    assert apart_from(result, whole, first).max() < 0.3


def test_gaps_of_nucleic_acids_are_listed_and_not_charged():
    result = prepare_structure(read("dna_gap.pdb"))
    assert len(result.breaks) == 1
    assert not result.gaps
    assert result.data["gaps"] == result.breaks
    assert round(result.structure.net_charge, 3) == -3  # of three phosphates


def test_a_lone_phosphate_is_a_phosphate():
    whole = read("dna.pdb")
    last = whole.residue_of == 4
    lone = whole.take(~last | np.isin(whole.atom_names, ["P", "OP1", "OP2"]))
    result = prepare_structure(lone)
    assert len(added(result)) == 1
    assert result.rows[-1].note == PHOSPHATE
    assert round(result.structure.net_charge, 3) == -3 - 2  # a phosphate at the 3' end has two charges


def test_added_atoms_without_room_are_named():
    whole = read("dna.pdb")
    wall = read("bond_long.pdb")
    # a side chain that has to be where another molecule is
    cut = wall.take(~((wall.residue_of == 2) & (wall.atom_names == "CB")))
    place = wall.positions[(wall.residue_of == 2) & (wall.atom_names == "CB")][0]
    other = replace(whole.take([0]), positions=place[None] + 0.4, atom_names=np.array(["CL"]),
                    elements=np.array(["Cl"]), residue_names=np.array(["CL"]))
    fields = ("positions", "atom_names", "elements", "residue_names", "residue_ids", "chain_ids")
    both = replace(cut, **{name: np.concatenate([getattr(cut, name), getattr(other, name)]) for name in fields},
                   residue_index=np.concatenate([cut.residue_index, [99]]), hetero=None, segment_ids=None,
                   insertion_codes=None, occupancies=None, b_factors=None)
    result = prepare_structure(both)
    assert [row.number for row in result.rows if CROWDED_NOTE in row.note] == ["3"]
    assert CROWDED_NOTE in result.summary()


def test_histidines_that_all_have_both_hydrogens_are_named():
    entry = read_structure(ENTRIES["1HVR"])
    part = entry.take(((entry.chain_ids == "A") & ~entry.hetero | (entry.residue_names == "HIS")) & heavy(entry))
    acid = prepare_structure(part, ph=1.0).structure
    histidines = int((part.residue_names == "HIS")[part.atom_names == "CA"].sum())
    result = prepare_structure(replace(acid, charges=None, radii=None))
    named = [row for row in result.rows if "histidines" in row.note]
    assert len(named) == histidines > 1


def test_records_for_propka_number_every_residue():
    count = 10050
    structure = Structure(
        positions=np.arange(3 * count).reshape(-1, 3) / 1000, atom_names=np.full(count, "N"),
        elements=np.full(count, "N"), residue_names=np.full(count, "GLY"), residue_ids=np.arange(count),
        residue_index=np.arange(count), chain_ids=np.full(count, "A"))
    residues = [Residue("GLY", find_component("GLY"), n) for n in range(count)]
    draft = Draft(structure.atom_names, structure.elements, structure.positions, np.arange(count), np.arange(count),
                  residues)
    text, rows = _records(structure, draft)
    written = [(line[21], int(line[22:26])) for line in text.splitlines() if line.startswith("ATOM")]
    assert len(set(written)) == count
    assert [rows[key] for key in written] == list(range(count))


@pytest.mark.parametrize("kind", ["gap", "end"])
def test_rounding_decides_no_torsion(kind):
    """Programs that keep float32 positions complete an entry as others do, farthest from what can be farther."""
    structure = read_structure(ENTRIES["1HVR"])
    structure = structure.take(heavy(structure) & np.isin(structure.chain_ids, ["A"]) & (structure.residue_ids < 90))
    at = structure.residue_ids
    left = (at < 40) | (at > 43) if kind == "gap" else (at < 89) | np.isin(structure.atom_names, ["N", "CA"])
    structure = structure.take(left)
    made = [prepare_structure(replace(structure, positions=structure.positions + shift)).structure for shift in (
        0.0, *np.random.default_rng(1).uniform(-1e-5, 1e-5, (4, *structure.positions.shape)))]
    new = heavy(made[0]) & (np.isin(made[0].residue_names, ["ACE"]) if kind == "gap" else made[0].residue_ids == 89)
    assert new.sum() > 2
    for other in made[1:]:
        assert np.abs(other.positions - made[0].positions)[new].max() < 1e-3
    done = made[0].positions[heavy(made[0])]
    names, residues = made[0].atom_names[new], made[0].residue_names
    if kind == "gap":  # turn the cap about the bond N-CA of the next residue
        cap = made[0].positions[new][np.isin(names, ["O", "CH3"])]
        nitrogen = int(np.flatnonzero(residues == "ACE")[-1]) + 1
        ends = made[0].positions[nitrogen : nitrogen + 2]
        others = done[~(done[:, None] == np.concatenate([made[0].positions[new], ends])).all(-1).any(1)]
        axis = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
        clear = [cKDTree(others).query(Rotation.from_rotvec(turn * axis).apply(cap - ends[0]) + ends[0])[0].min()
                 for turn in np.radians(np.arange(0, 360, 15))]
        assert clear[0] > max(clear) - 0.01
