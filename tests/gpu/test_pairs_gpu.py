"""Sums over pairs and counts of distances on a GPU against their definitions."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import relative_rms
from pairs import distances, reference
from pairs_on_gpus import EWALD, FIELD, TOLERANCE, TRICLINIC, check, some_atoms, split

from vmdpotential.engines import get_engine
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.plugins.historical import nbody
from vmdpotential.plugins.historical.lists import ListedPairs
from vmdpotential.plugins.pairs import all_pairs, clusters, in_range
from vmdpotential.plugins.pairs.distances import count_distances
from vmdpotential.plugins.pairs.generalized_born import MODELS, GeneralizedBorn
from vmdpotential.plugins.pairs.in_range import Atoms, PairList

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("count", [2, 127, 128, 129, 700, 40000])
def test_all_pairs(engine, count):
    rng = np.random.default_rng(count)
    x, q = rng.uniform(0, 30, (count, 3)), rng.normal(size=count)
    y, p = rng.uniform(0, 30, (700, 3)), rng.normal(size=700)
    for others in (None, (y, p)):
        expected = all_pairs.sum_coulomb(get_engine("cpu"), x, q, others)
        for actual, exact in zip(all_pairs.sum_coulomb(engine, x, q, others), expected, strict=True):
            assert relative_rms(actual, exact) < 1e-11
    for kernel in ("gravity", "gravity_jerk", *nbody.DIELECTRICS):
        numbers = {"gravity": 1, "gravity_jerk": 4}.get(kernel, 3)
        columns = np.column_stack([x, rng.uniform(0.5, 1, (count, numbers))]).T
        for precision, tolerance in (("single", 1e-5), ("double", 1e-10)):
            actual, exact = (nbody.sum_bodies(one, kernel, columns, precision, softening=0.1)
                             for one in (engine, get_engine("cpu")))
            assert relative_rms(actual, exact) < tolerance


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("count", [1, 130, 3000])
def test_generalized_born(engine, model, count):
    rng = np.random.default_rng(count)
    nodes = np.argwhere(np.ones((15, 15, 15)))[rng.permutation(3375)[:count]]
    places = 1.6 * nodes + rng.uniform(-0.2, 0.2, (count, 3))
    sizes, kinds, charges = np.array([1.2, 1.3, 1.55, 1.7]), rng.integers(0, 4, count), rng.normal(size=count)
    necks = np.stack([rng.uniform(2, 3, (4, 4)), rng.uniform(0, 0.05, (4, 4))])
    # exponentials have the precision of float32 on both, 6e-8 each, and terms of charges of both signs cancel
    tolerance = 3e-7
    for kappa in (0.0, 0.1):
        born = GeneralizedBorn(MODELS[model], charges, sizes[kinds], np.full(count, 0.8),
                               np.tile([1.0, 0.8, 4.85], (count, 1)), kinds, necks, 1.0, 78.5, kappa, "cpu")
        on_gpu = replace(born, engine=engine.name)
        assert relative_rms(on_gpu.energies(places), born.energies(places)) < tolerance
        if count > 1:
            rows = np.arange(count // 3), np.arange(count // 3, count)
            between = []
            for model_of in (on_gpu, born):
                (a, x), (b, y) = ((model_of.take(each), places[each]) for each in rows)
                radii = a.born_radii(a.integrals_between(x, b, y)[0])
                between.append([*a.integrals_between(x, b, y), a.changes_of(x, radii, a.radii),
                                *a.energies_between(x, a.radii, b, y, b.radii)])
            for actual, expected in zip(*between, strict=True):
                assert relative_rms(actual, expected) < tolerance


@pytest.mark.parametrize("potential", [FIELD, EWALD], ids=["field", "ewald"])
@pytest.mark.parametrize("cell", [None, TRICLINIC, Cell.from_parameters(10.4, 10.2, 10.8)],
                         ids=["open", "triclinic", "orthogonal"])
@pytest.mark.parametrize("precision", TOLERANCE)
def test_pairs_in_range(engine, potential, cell, precision):
    atoms = some_atoms(cell=cell)
    prepared = ListedPairs(engine, potential, cell, precision, energy=True, buffer=0.5)
    actual = prepared.search(atoms)
    check(actual.run(), reference(potential, atoms, cell), tolerance=TOLERANCE[precision])
    moved = atoms.positions + np.random.default_rng(5).uniform(-0.1, 0.1, atoms.positions.shape)
    expected = reference(potential, replace(atoms, positions=moved), cell)
    if cell is not None:  # wrapped in another way
        moved += np.random.default_rng(6).integers(-2, 3, moved.shape) @ cell.vectors
    check(actual.run_moved(moved), expected, tolerance=TOLERANCE[precision])


@pytest.mark.parametrize("cell", [None, Cell.from_parameters(14, 15, 16, 70, 80, 110)], ids=["open", "triclinic"])
def test_pairs_in_range_of_many_atoms_and_of_two_sets(engine, cell, monkeypatch):
    atoms = some_atoms(200, 14.0, cell=cell)
    shifted = list(split(some_atoms(200, 14.0, 2, cell)))
    for energy in (False, True):
        prepared = ListedPairs(engine, FIELD, cell, energy=energy)
        expected = reference(FIELD, atoms, cell)
        actual = prepared.run(atoms)
        assert relative_rms(actual.forces, expected.forces) < 3e-6
        if energy:
            check(actual, expected)
            check(prepared.run(*shifted), reference(FIELD, shifted[0], cell, shifted[1]))
    monkeypatch.setattr(PairList, "_expected", lambda *_: 1.0)  # too little room at first
    np.testing.assert_allclose(prepared.run(atoms).forces, actual.forces, atol=1e-4 * np.abs(actual.forces).max())


def test_water_keeps_its_momentum_and_any_sizes_of_work_give_the_same(engine, monkeypatch):
    positions, charges = water_box(40.0)
    oxygen = np.arange(len(charges)) % 3 == 0
    first = np.flatnonzero(oxygen)
    exclusions = np.concatenate([np.stack([first + a, first + b], 1) for a, b in ((0, 1), (0, 2), (1, 2))])
    atoms = Atoms(positions, {"charge": 18.2 * charges, "root_a6": np.where(oxygen, 60.0, 0.0),
                              "root_a12": np.where(oxygen, 2500.0, 0.0)}, exclusions=exclusions)
    prepared = ListedPairs(engine, EWALD, Cell.from_parameters(40, 40, 40))
    actual = prepared.run(atoms).forces
    assert np.abs(actual.sum(0)).max() < 1e-4 * np.sqrt((actual**2).sum())
    for warps, entries in ((1, 8), (4, 128)):
        monkeypatch.setattr(clusters, "LIST_THREADS", 32 * warps)
        monkeypatch.setattr(in_range, "WARPS", dict.fromkeys(in_range.WARPS, warps))
        monkeypatch.setattr(PairList, "_item_entries", lambda *_, entries=entries: entries)
        assert relative_rms(prepared.run(atoms).forces, actual) < 1e-6


@pytest.mark.parametrize("cell", [None, Cell.from_parameters(17, 18, 19, 70, 80, 110)], ids=["open", "triclinic"])
def test_distances(engine, cell):
    atoms, others = some_atoms(400, edge=17.0).positions, some_atoms(200, edge=17.0, seed=3).positions
    for second in (None, others):
        for bins in (14, 20_000):  # counted in shared memory, and without
            actual = count_distances(engine, atoms, second, cell, 12.0, bins)
            expected = distances(atoms, second, cell, 12.0, bins)
            np.testing.assert_allclose(actual.cumsum(), expected.cumsum(), atol=3)  # rounding at the edges of ranges
