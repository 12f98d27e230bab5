"""Completing deposited structures: hydrogens, missing atoms, states, charges, radii."""

from dataclasses import replace

import numpy as np
import pytest
from entries import ENTRIES, heavy
from helpers import slow
from messages import naming
from rigid_hydrogens import FAR, by_bonded_terms, compared, keys, of_modeller, of_pdb2pqr, protein

from vmdpotential.errors import IncompleteError, TaskError, UsageError
from vmdpotential.io import read_structure
from vmdpotential.molecule.selection import ResolvedSelection, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.preparation.components import find_component
from vmdpotential.plugins.preparation.prepare import prepare_structure
from vmdpotential.preparation.charged import charge_structure


@pytest.mark.parametrize("name", slow(list(ENTRIES), ["19HC", "6MSM", "1BD2", "1A28", "1OSM", "1HVR", "4E43"]))
def test_every_atom_of_an_entry_has_a_charge_and_a_radius_and_none_is_lost(name):
    structure = read_structure(ENTRIES[name])
    made = prepare_structure(structure)
    done = made.structure
    assert np.isfinite(done.known_charges).all()
    assert (done.radii > 0).all()
    assert abs(done.net_charge - round(done.net_charge)) < 1e-3
    # heavy atoms are where they were, and what they were
    old, new = heavy(structure), heavy(done)
    kept = np.flatnonzero(new)
    known = dict(zip(map(tuple, done.positions[kept].tolist()), done.atom_names[kept], strict=True))
    for place, atom in zip(structure.positions[old].tolist(), structure.atom_names[old], strict=True):
        assert known[tuple(place)] == atom
    added = sum(len(row.added_atoms) for row in made.rows)
    assert new.sum() == old.sum() + added
    assert len(made.rows) == done.residue_count
    np.testing.assert_allclose(sum(row.net_charge for row in made.rows), done.net_charge, atol=1e-2)
    # every hydrogen is at its atom
    hydrogens = np.flatnonzero(done.elements == "H")
    apart = np.linalg.norm(done.positions[hydrogens, None] - done.positions[None, kept[:, None]][..., 0, :], axis=-1) \
        if len(done) < 5000 else None
    if apart is not None:
        assert apart.min(1).min() > 0.7
        assert apart.min(1).max() < 1.45


@pytest.mark.slow
def test_states_follow_ph():
    structure = read_structure(ENTRIES["1OSM"])
    charges = [prepare_structure(structure, ph=ph).structure.net_charge for ph in (1.0, 4.2, 7.0, 9.5, 13.0)]
    assert (np.diff(charges) < 0).all()
    acid = prepare_structure(structure, ph=1.0)
    assert {row.state for row in acid.rows if row.residue == "ASP"} == {"ASH"}
    assert {row.state.partition("+")[0] for row in acid.rows if row.residue == "HIS"} <= {"HIP"}
    # one proton each, of every acid and histidine and the end of the chain
    names = [row.residue for row in acid.rows]
    sites = sum(names.count(name) for name in ("ASP", "GLU", "HIS")) + 1
    assert round(charges[0] - charges[2]) == sites


def test_disulfides_and_deuterium():
    structure = read_structure(ENTRIES["5PTI"])
    assert (structure.elements == "D").any()
    made = prepare_structure(structure)
    assert [row.state.partition("+")[0] for row in made.rows if row.residue == "CYS"] == ["CYX"] * 6
    # the neutron entry has them all, but for the one of the phosphate
    assert {row.residue: row.added_hydrogens for row in made.rows if row.added_hydrogens} == {"PO4": 1}
    assert not (made.structure.elements == "D").any()


def check_residue(made, rows, name):
    """Check that a residue has the heavy atoms of its component, and bonds as long; return their positions."""
    place = dict(zip(made.atom_names[rows].tolist(), made.positions[rows], strict=True))
    ideal = find_component(name)
    assert set(place) | {"OXT"} == set(ideal.atoms)
    for a, b, _ in ideal.bonds.tolist():
        ends = ideal.atoms[a], ideal.atoms[b]
        if set(ends) <= set(place):
            length = np.linalg.norm(ideal.positions[a] - ideal.positions[b])
            assert abs(np.linalg.norm(place[ends[0]] - place[ends[1]]) - length) < 0.08, ends
    # left-handed would be a mistake
    hands = [np.linalg.det([places[atom] - places["CA"] for atom in ("N", "C", "CB")])
             for places in (place, dict(zip(ideal.atoms, ideal.positions, strict=True)))]
    assert hands[0] * hands[1] > 0
    return place


@pytest.mark.slow
@pytest.mark.parametrize("name", ["5PTI", "1HVR"])
def test_rigid_hydrogens_are_where_others_have_them(name):
    """Each is within 0.1 A, or there is a reason; the bonds of a force field decide between two programs."""
    bare = protein(read_structure(ENTRIES[name]))
    made = prepare_structure(bare).structure
    minimum = by_bonded_terms(made)
    own = compared(made, minimum, minimum)
    assert {hydrogen.reason for hydrogen in own if hydrogen.alike > FAR} <= {"a peptide that is not planar"}
    assert np.median([member.plain for member in own]) < 0.03
    assert np.mean([hydrogen.plain < FAR for hydrogen in own]) > 0.98
    assert max(entry.alike for entry in own) < 0.25
    other, failure = of_pdb2pqr(bare)
    assert other is not None, failure
    for theirs in (dict(zip(keys(other), other.positions, strict=True)), of_modeller(made, charges=False)[0]):
        result = compared(made, theirs, minimum)
        assert not [hydrogen for hydrogen in result if not hydrogen.alike < FAR and not hydrogen.reason]
        apart = np.array([item.alike for item in result if item.reason not in ("built otherwise", "another state")])
        assert len(apart) > 0.98 * len(own)
        assert np.median(apart) < 0.05
        assert np.mean(apart < FAR) > 0.9


def test_side_chains_that_are_flipped_are_named_and_left():
    structure = read_structure(ENTRIES["5PTI"])  # by neutrons, which distinguish nitrogen and oxygen
    bare = structure.take(heavy(structure))
    assert not [row for row in prepare_structure(bare).rows if "flipped" in row.note]
    positions = bare.positions.copy()
    for residue, first, second in (("ASN", "OD1", "ND2"), ("GLN", "OE1", "NE2")):
        rows = [np.flatnonzero((bare.residue_names == residue) & (bare.atom_names == name)) for name in (first, second)]
        positions[np.concatenate(rows)] = bare.positions[np.concatenate(rows[::-1])]
    made = prepare_structure(replace(bare, positions=positions))
    flipped = [row.residue for row in made.rows if "flipped" in row.note]
    assert flipped
    assert set(flipped) <= {"ASN", "GLN"}
    known = {tuple(place) for place in made.structure.positions.tolist()}
    assert all(tuple(place) in known for place in positions.tolist())


def test_gaps_are_capped_and_named():
    structure = read_structure(ENTRIES["1BHL"])
    made = prepare_structure(structure)
    assert len(made.gaps) == 1
    caps = [row for row in made.rows if row.residue in ("ACE", "NME")]
    assert [row.residue for row in caps] == ["NME", "ACE"]
    assert all(abs(row.net_charge) < 1e-3 for row in caps)
    done = made.structure
    carbon, nitrogen = (done.positions[(done.residue_names == name) & (done.atom_names == atom)][0]
                        for name, atom in (("ACE", "C"), ("NME", "N")))
    bonds = [np.linalg.norm(done.positions[(done.atom_names == atom)] - place, axis=1)
             for atom, place in (("N", carbon), ("C", nitrogen))]
    assert all(1.25 < length[length > 0.1].min() < 1.45 for length in bonds)


@pytest.mark.parametrize(("residue", "left"), [
    ("LYS", ("N", "CA", "C", "O", "CB")), ("PHE", ("N", "CA", "C", "O")), ("ARG", ("N", "CA", "C", "O", "CB", "CG")),
    ("HIS", ("N", "CA", "C", "O", "CB"))])
def test_side_chains_are_completed(residue, left):
    structure = read_structure(ENTRIES["5PTI" if residue in ("LYS", "PHE", "ARG") else "1OSM"])
    structure = structure.take(heavy(structure))
    first = structure.residue_index[structure.residue_names == residue][0]
    cut = structure.take((structure.residue_index != first) | np.isin(structure.atom_names, left))
    made = prepare_structure(cut).structure
    rows = (made.residue_index == first) & heavy(made)
    place = check_residue(made, rows, residue)
    others = made.positions[heavy(made) & (made.residue_index != first)]
    new = np.array([place[name] for name in place if name not in left])
    assert np.linalg.norm(others[:, None] - new, axis=-1).min() > 1.8


def test_names_that_viewers_give_to_hydrogens_are_understood():
    structure = read_structure(ENTRIES["1YJP"])
    made = prepare_structure(structure).structure
    hydrogens = np.flatnonzero(made.elements == "H")
    names = made.atom_names.astype("<U4")
    for residue in np.unique(made.residue_index[hydrogens]):
        rows = hydrogens[made.residue_index[hydrogens] == residue]
        names[rows] = [f"H{n:02d}" for n in range(1, len(rows) + 1)]
    again = prepare_structure(replace(made, atom_names=names, charges=None, charge_source="", radii=None, origins=None))
    assert sum(row.added_hydrogens for row in again.rows) == 0
    order = np.lexsort(made.positions.round(4).T), np.lexsort(again.structure.positions.round(4).T)
    np.testing.assert_allclose(again.structure.positions[order[1]], made.positions[order[0]])
    np.testing.assert_allclose(again.structure.known_charges[order[1]], made.known_charges[order[0]], atol=1e-9)


def test_unknown_residues_are_refused_and_can_be_left_out():
    structure = read_structure(ENTRIES["1YJP"])
    names = structure.residue_names.astype("<U5")
    names[structure.residue_names == "TYR"] = "QQ9Q"
    odd = replace(structure, residue_names=names)
    with naming(TaskError, "QQ9Q (1)"):
        prepare_structure(odd)
    made = prepare_structure(odd, leave_out=["QQ9Q"])
    assert made.left_out == {"atoms of QQ9Q": int((names == "QQ9Q").sum())}
    number = int(odd.residue_ids[names == "QQ9Q"][0])
    made = prepare_structure(odd, leave_out=[f"QQ9Q{number}"])
    assert made.left_out == {f"atoms of QQ9Q{number}": int((names == "QQ9Q").sum())}
    with pytest.raises(UsageError) as caught:
        prepare_structure(odd, leave_out=["NONE"])
    assert caught.value.parameter == "leave_out"


def test_a_trace_of_alpha_carbons_cannot_be_completed():
    structure = read_structure(ENTRIES["1YJP"])
    with pytest.raises(TaskError):
        prepare_structure(structure.take(structure.atom_names == "CA"))


def test_selections_of_a_viewer_are_those_of_the_atoms_it_has():
    structure = read_structure(ENTRIES["1YJP"])
    with pytest.raises(IncompleteError):
        charge_structure(structure, "auto", "auto")
    rows = np.flatnonzero(structure.residue_names == "TYR")
    made, report = charge_structure(structure.part(rows), "auto", "auto", prepare="auto")
    assert report.prepared
    assert set(made.residue_names.tolist()) == {"TYR"}
    assert (made.elements == "H").any()
    whole, _ = charge_structure(structure, "auto", "auto", prepare="auto")
    mask = select(whole, ResolvedSelection("picked", rows))
    assert set(whole.residue_names[mask].tolist()) == {"TYR"}
    assert mask.sum() == len(made)
    tail = structure.part(structure.residue_ids > 3)
    made, _ = charge_structure(tail, "auto", "auto", prepare="auto")
    for number in (4, 6):
        picked = ResolvedSelection("picked", np.flatnonzero(tail.residue_ids == number))
        assert set(made.residue_ids[select(made, picked)].tolist()) == {number}


def test_a_selection_of_atoms_that_were_left_out_selects_no_others():
    structure = read_structure(ENTRIES["1YJP"])
    water = np.flatnonzero(structure.residue_names == "HOH")
    made = prepare_structure(structure, leave_out=["HOH"]).structure
    for rows in (water, water - water[0]):  # those of the first atoms select these
        picked = ResolvedSelection("picked", rows)
        if rows is water:
            with pytest.raises(UsageError) as caught:
                select(made, picked, "around")
            assert caught.value.parameter == "around"
        else:
            assert set(made.origins[select(made, picked)].tolist()) <= set(rows.tolist())
    low = ResolvedSelection("picked", [])
    with pytest.raises(UsageError):
        select(made, low)


@pytest.mark.parametrize("left", [("N",), ("N", "CA")])
def test_a_chain_that_ends_after_a_nitrogen_is_completed(left):
    structure = read_structure(ENTRIES["5PTI"])
    structure = structure.take(heavy(structure))
    row = np.flatnonzero(structure.atom_names == "OXT")[0]
    last = structure.residue_index == structure.residue_index[row]
    cut = structure.take(~last | np.isin(structure.atom_names, left))
    made = prepare_structure(cut).structure
    rows = np.flatnonzero((made.residue_ids == 58) & (made.residue_names == "ALA") & heavy(made))
    assert "OXT" in check_residue(made, rows, "ALA")


def test_added_atoms_follow_those_they_belong_to():
    from vmdpotential.preparation.follow import Follower

    structure = read_structure(ENTRIES["1YJP"])
    made = prepare_structure(structure).structure
    follow = Follower(structure, made)
    np.testing.assert_allclose(follow.of_positions(structure.positions), made.positions, atol=1e-9)
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    turned = follow.of_positions(structure.positions @ turn.T + 3)
    np.testing.assert_allclose(turned, made.positions @ turn.T + 3, atol=1e-9)


def test_atoms_listed_twice_and_dummy_atoms_are_named():
    structure = read_structure(ENTRIES["1YJP"])
    rows = np.concatenate([np.arange(len(structure)), [len(structure) - 1]])
    fields = {name: getattr(structure, name)[rows] for name in (
        "positions", "atom_names", "residue_names", "residue_ids", "residue_index", "chain_ids", "elements")}
    fields["positions"] = fields["positions"] + np.where(rows == len(structure) - 1, 9.0, 0.0)[:, None]
    fields["residue_names"] = np.where(np.arange(len(rows)) >= len(rows) - 2, "DUM", fields["residue_names"])
    fields["residue_index"] = np.where(np.arange(len(rows)) >= len(rows) - 2, fields["residue_index"][-1] + 1,
                                       fields["residue_index"])
    fields["positions"][-2:, 2] = 40.0, 10.0
    made = prepare_structure(Structure(**fields))
    assert list(made.left_out.values()) == [2]
    assert "membrane=30.0,membrane_centre=25.0" in made.summary()
    assert made.charges.source == "amber14"  # also if CHARMM has a residue of this name
    doubled = structure.take(np.arange(len(structure)))
    names = doubled.atom_names.copy()
    names[3] = "CA"  # the oxygen of the first residue
    made = prepare_structure(replace(doubled, atom_names=names))
    assert made.left_out == {f"atoms that their residues list twice ({doubled.label(3)[:-2]}:CA)": 1}


def test_a_ligand_with_other_names_is_recognised_by_its_bonds():
    structure = read_structure(ENTRIES["1HVR"])
    ligand = structure.take(structure.residue_names == "XK2")
    expected = prepare_structure(ligand)
    names = np.array([f"{element}Q{n}" for n, element in enumerate(ligand.elements)])
    made = prepare_structure(replace(ligand, atom_names=names))
    assert "bonds" in made.rows[0].note
    assert not expected.rows[0].note
    np.testing.assert_allclose(made.structure.net_charge, expected.structure.net_charge, atol=1e-9)
    assert len(made.structure) == len(expected.structure)
    # symmetric atoms may be exchanged, so charges are compared by element
    for element in ("C", "N", "O", "H"):
        first, second = (np.sort(done.known_charges[done.elements == element])
                    for done in (made.structure, expected.structure))
        np.testing.assert_allclose(first, second, atol=1e-6)
    # of another molecule that has this name nothing is known
    with pytest.raises(TaskError):
        prepare_structure(replace(ligand, atom_names=names).take(np.arange(len(ligand)) > 4))


def test_of_an_ion_its_centre_is_enough():
    made = prepare_structure(Structure([[1.0, 2, 3]], ["S"], ["SO4"], [1], [0], elements=["S"])).structure
    oxygens = made.positions[made.elements == "O"] - made.positions[0]
    assert len(oxygens) == 4
    np.testing.assert_allclose(np.linalg.norm(oxygens, axis=1), 1.45, atol=0.05)
    assert round(made.net_charge) == -2
