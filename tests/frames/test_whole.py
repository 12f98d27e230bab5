"""Frames made comparable, against MDAnalysis and against what has to stay."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import water
from measured_pka import PROTEINS
from messages import Words, naming

from vmdpotential.errors import InputError
from vmdpotential.frames.whole import FrameAlignment, reference_group
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io import read_structure
from vmdpotential.maps import potential_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure, Topology
from vmdpotential.molecule.whole import MoleculeTrees, WholeComplex, whole_molecules

TRICLINIC = Cell.from_parameters(30, 32, 28, 75, 65, 80)


def chain(count, seed=0, residues=None, names=("ALA",), bonds=True):
    """Return a random walk with branches and a ring: the first half is one molecule, the rest another."""
    rng = np.random.default_rng(seed)
    parent = np.array([0] + [int(rng.integers(max(0 if n < count // 2 else min(n - 1, count // 2), n - 4), n))
                            for n in range(1, count)])
    parent[count // 2] = count // 2
    steps = rng.normal(size=(count, 3))
    steps *= 1.5 / np.linalg.norm(steps, axis=1)[:, None]
    positions = np.zeros((count, 3))
    for n in range(1, count):
        positions[n] = positions[parent[n]] + steps[n] + (20.0 if n == count // 2 else 0.0)
    pairs = np.array([(p, n) for n, p in enumerate(parent) if p != n] + [(0, 2)])[:, ::-1]
    topology = Topology("psf", np.full(count, "C"), rng.uniform(1, 16, count), rng.permutation(pairs))
    index = np.arange(count) // 10 if residues is None else residues
    return Structure(positions, np.full(count, "C"), np.resize(names, count), index, index,
                     charges=rng.normal(size=count), topology=topology if bonds else None)


def broken(structure, cell, seed=1):
    """Return positions whose atoms are each in another image."""
    return structure.positions + np.random.default_rng(seed).integers(-1, 2, (len(structure), 3)) @ cell.vectors


@pytest.mark.parametrize("cell", [TRICLINIC, Cell.from_parameters(30, 32, 28)])
def test_molecules_are_whole_as_mdanalysis_makes_them(cell):
    mda = pytest.importorskip("MDAnalysis")
    structure = chain(120)
    structure = replace(structure, positions=cell.wrap(structure.positions))
    molecules = MoleculeTrees.of(structure)
    assert len(molecules.starts) == 2
    assert sorted(molecules.atoms) == list(range(120))
    assert (molecules.ends[molecules.starts] == np.append(molecules.starts[1:], 120)).all()
    whole = molecules.whole(structure.positions[molecules.atoms], cell)
    universe = mda.Universe.empty(120, trajectory=True)
    universe.add_TopologyAttr("bonds", structure.topology.bonds)
    universe.atoms.positions = structure.positions
    universe.dimensions = cell.parameters
    expected = universe.atoms.unwrap(reference=None)[molecules.atoms]
    for molecule in np.split(np.arange(120), molecules.starts[1:]):
        np.testing.assert_allclose(whole[molecule] - whole[molecule[0]], expected[molecule] - expected[molecule[0]],
                                   atol=1e-4)
    assert np.abs(np.diff(structure.positions[structure.topology.bonds], axis=1)).max() > 10  # it was broken


def test_without_bonds_molecules_are_residues_at_the_distance_of_a_bond():
    names = np.repeat(["ALA", "ALA", "TIP3", "TIP3"], 3)
    structure = chain(12, residues=np.arange(12) // 3, names=names, bonds=False)
    molecules = MoleculeTrees.of(structure)
    assert molecules.by == "distances"
    assert np.split(molecules.atoms, molecules.starts[1:])[0].tolist() == list(range(6))
    assert len(molecules.starts) == 3
    apart = replace(structure, positions=structure.positions + 4.0 * (np.arange(12) < 3)[:, None])
    assert len(MoleculeTrees.of(apart).starts) == 4  # equal names of chains connect nothing
    # a site without bonds belongs to its residue, also where it is the first
    topology = Topology("psf", np.full(6, "C"), np.ones(6), np.array([(1, 2), (3, 4)]))
    sites = replace(apart.take(np.arange(6)), topology=topology)
    assert len(MoleculeTrees.of(sites).starts) == 2


@pytest.fixture
def dimer():
    """Return two peptides in contact whose chain has one name, in a box."""
    peptide = read_structure(Path(__file__).parents[1] / "data" / "models.pdb")
    peptide = peptide.take(peptide.residue_names != "HOH")
    size = np.ptp(peptide.positions, axis=0)
    shift = np.array([next(x for x in np.arange(0.0, 40.0, 0.1) if np.linalg.norm(
        peptide.positions[:, None] - peptide.positions - [x, 0, 0], axis=2).min() > 2.8), 0.0, 0.0])
    count = len(peptide)
    both = peptide.take(np.tile(np.arange(count), 2))
    return replace(both, positions=np.concatenate([peptide.positions, peptide.positions + shift]),
                   residue_index=np.concatenate([peptide.residue_of, peptide.residue_of + len(peptide.residue_starts)]),
                   cell=Cell.from_parameters(2 * size[0] + 25, size[1] + 25, size[2] + 25))


def pair_distances(positions):
    return np.linalg.norm(positions[:, None] - positions, axis=2)


@pytest.mark.parametrize("angles", [(90, 90, 90), (75, 110, 60)])
def test_monomers_of_one_name_stay_where_they_are_in_contact(dimer, angles):
    cell = Cell.from_parameters(*dimer.cell.parameters[:3], *angles)
    dimer = replace(dimer, cell=cell)
    half = len(dimer) // 2
    assert len(MoleculeTrees.of(dimer).starts) == 2
    assert WholeComplex.of(dimer, np.ones(len(dimer), bool))(dimer.positions, cell) is dimer.positions
    for seed in range(3):  # each atom in another image
        split = replace(dimer, positions=cell.wrap(dimer.positions + np.random.default_rng(seed).uniform(0, 40, 3)))
        together = WholeComplex.of(split, np.ones(len(dimer), bool))(split.positions, cell)
        for part in (slice(half), slice(half, None)):
            np.testing.assert_allclose(pair_distances(together[part]), pair_distances(dimer.positions[part]), atol=1e-9)
        np.testing.assert_allclose(pair_distances(together), pair_distances(dimer.positions), atol=1e-9)


def test_an_entry_that_touches_its_own_image_stays_whole():
    """As with the cell of a crystal whose symmetry is not in the file: atoms are then 2 A from another's image."""
    ubiquitin = replace(PROTEINS["ubiquitin"].structure(), cell=Cell.from_parameters(50.84, 42.77, 28.95))
    assert whole_molecules(ubiquitin) is ubiquitin


def test_bonds_of_a_few_atoms_do_not_cut_others_into_residues(dimer):
    """As in files whose CONECT records list the bonds of ligands and disulfides alone."""
    peptide = dimer.take(np.arange(len(dimer) // 2))
    topology = Topology("pdb", np.full(len(peptide), ""), np.zeros(len(peptide)), np.array([[5, 6]]))
    assert len(MoleculeTrees.of(replace(peptide, topology=topology)).starts) == 1


@pytest.mark.parametrize("weights", ["mass", "equal"])
def test_fit_is_mdanalysis_rotation(weights):
    align = pytest.importorskip("MDAnalysis.analysis.align")
    structure = chain(50)
    rng = np.random.default_rng(3)
    positions = structure.positions[:, [1, 2, 0]] * [1, -1, -1] + rng.normal(size=(50, 3)) + [5, 6, 7]
    group = np.arange(50) < 25
    alignment = FrameAlignment.of(structure, group, "open", weights=weights)
    got = pickle.loads(pickle.dumps(alignment)).align(positions, None)
    weight = structure.topology.masses[group] if weights == "mass" else np.ones(25)
    middle, place = (np.average(x[group], axis=0, weights=weight) for x in (positions, structure.positions))
    turn, _ = align.rotation_matrix(positions[group] - middle, structure.positions[group] - place, weights=weight)
    np.testing.assert_allclose(got, (positions - middle) @ turn.T + place, atol=1e-5)
    assert ("mass-weighted" in str(alignment)) == (weights == "mass")


def test_a_mirror_image_is_turned_not_reflected():
    structure = chain(20)
    got = FrameAlignment.of(structure, np.ones(20, bool), "open").align(structure.positions * [1, 1, -1], None)
    assert np.abs(got - structure.positions).max() > 0.5
    bond = structure.topology.bonds
    length = np.linalg.norm(np.diff(structure.positions[bond], axis=1), axis=2)
    np.testing.assert_allclose(np.linalg.norm(np.diff(got[bond], axis=1), axis=2), length)


def test_an_open_boundary_has_all_molecules_turned_and_beside_the_group():
    """Two molecules far apart in a turned cell, broken: they come back as they were, whichever image they were in."""
    structure = replace(chain(60), cell=TRICLINIC)
    alignment = FrameAlignment.of(structure, np.ones(60, bool), "open")
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    turned = Cell(TRICLINIC.vectors @ turn.T)
    frame = replace(structure, positions=structure.positions @ turn.T + [3, 1, 2])
    np.testing.assert_allclose(alignment.align(broken(frame, turned), turned), structure.positions, atol=1e-9)
    # molecules that are not of the group come to the image nearest to it
    group = np.arange(60) < 30
    got = FrameAlignment.of(structure, group, "open").align(broken(frame, turned), turned)
    np.testing.assert_allclose(got[group], structure.positions[group], atol=1e-9)
    apart = got[~group].mean(0) - np.average(got[group], axis=0, weights=structure.topology.masses[group])
    np.testing.assert_allclose(TRICLINIC.minimum_image(apart), apart, atol=1e-9)


def test_a_periodic_group_is_translated_to_the_same_fraction_of_each_cell():
    structure = replace(chain(60), cell=TRICLINIC)
    alignment = FrameAlignment.of(structure, np.arange(60) < 30, "periodic")
    moved = broken(replace(structure, positions=structure.positions + np.array([7, -8, 9])), TRICLINIC)
    got = alignment.align(moved.astype(np.float32), TRICLINIC)
    np.testing.assert_allclose(TRICLINIC.minimum_image(got - structure.positions), 0, atol=1e-4)
    larger = Cell(TRICLINIC.vectors * 1.1)
    got = alignment.align(structure.positions + np.array([7, -8, 9]), larger)
    middle = alignment.weights @ alignment.molecules.whole(got[alignment.molecules.atoms], larger)[alignment.members]
    place = TRICLINIC.fractional(alignment.weights @ alignment.reference)
    difference = larger.fractional(middle) - place
    np.testing.assert_allclose(difference - np.rint(difference), 0, atol=1e-9)
    with naming(InputError, Words.NO_CELL):
        alignment.align(moved, None)


def test_wrapping_leaves_a_periodic_potential_and_molecules():
    cell = Cell.from_parameters(12, 12, 12)
    box = water(12, cell)
    frame = broken(box, cell) + 5.0
    alignment = FrameAlignment.of(box, None, "periodic", wrap=True)
    got = alignment.align(frame, cell)
    for molecule in got.reshape(-1, 3, 3):
        assert np.ptp(molecule, axis=0).max() < 2
        assert np.abs(molecule.mean(0) - alignment.middle).max() <= 6
    lattice = Lattice.over_cell(cell, 1.5)
    wrapped, other = [potential_map(replace(box, positions=x), method="pme", engine="cpu", lattice=lattice)
                  for x in (frame, got)]
    np.testing.assert_allclose(other.values, wrapped.values, atol=1e-4 * np.abs(wrapped.values).max())


def test_the_group_is_the_solute_unless_another_is_asked_for():
    names = np.repeat(["ALA", "TIP3", "POPC"], 6)
    structure = chain(18, residues=np.arange(18) // 6, names=names)
    group, name = reference_group(structure, "auto")
    assert np.flatnonzero(group).tolist() == list(range(6))
    assert "protein" in name
    assert reference_group(structure.take(np.arange(6, 18)), "auto")[1] == "lipids"
    assert reference_group(structure.take(np.arange(6, 12)), "auto") == (None, "")
    assert reference_group(structure, "none") == (None, "")
    assert reference_group(structure, "(POPC)")[0].sum() == 6


def test_a_group_of_many_molecules_moves_by_the_mean_of_theirs():
    """Lipids or waters that cross the cell, one by one, do not move the whole."""
    cell = Cell.from_parameters(30, 30, 30)
    box = water(30, cell)
    alignment = FrameAlignment.of(box, np.ones(len(box), bool), "periodic")
    drift = np.array([0.0, 4.0, 13.0])
    got = alignment.align(broken(box, cell) + drift, cell)
    np.testing.assert_allclose(cell.minimum_image(got - box.positions), 0, atol=1e-9)
