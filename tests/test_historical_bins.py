"""The bins of 2008 against brute force."""

import numpy as np
import pytest
from historical_sums import LATTICE, atoms

from vmdpotential.engines.cuda import maps
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.samples import water_box
from vmdpotential.plugins.historical import bins, cutoff


@pytest.mark.parametrize(("spacing", "side", "reach"), [
    (0.5, 4.0, 12.0), ([0.5, 0.7, 0.9], 4.0, 9.0), (0.5, 2.9, 7.0), (2.0, 4.0, 3.0), (0.2, 4.0, 0.7)])
def test_the_list_reaches_all_that_is_in_range_of_a_region(spacing, side, reach):
    lattice = Lattice(np.array([-3.0, 1.7, 2.2]), spacing, (33, 20, 9))
    result, homes, steps = bins.small_bins(lattice, reach, side)
    positions = np.random.default_rng(1).uniform(lattice.origin - reach, lattice.last + reach, (400, 3))
    number = result.numbers(positions)
    assert (number >= 0).all()
    for region in np.ndindex(*(len(h) for h in homes)):
        first = 8 * np.array(region)
        last = np.minimum(first + 7, np.array(lattice.shape) - 1)
        low, high = lattice.origin + first * lattice.spacing, lattice.origin + last * lattice.spacing
        gap = np.maximum(0, np.maximum(low - positions, positions - high))
        x, y, z = (homes[d][region[d]] for d in range(3))
        home = (x * result.shape[1] + y) * result.shape[2] + z
        listed = set((home + steps).tolist())
        assert min(listed) >= 0
        assert max(listed) < result.size
        assert {int(n) for n in number[(gap**2).sum(1) < reach**2]} <= listed


def test_the_list_of_the_paper_is_short():
    """Regions of 4 A in bins of 4 A: no bin is listed that is out of range of the home bin's inside."""
    _, _, steps = bins.small_bins(Lattice(np.zeros(3), 0.5, (200, 200, 200)), 12.0, 4.0)
    place = np.arange(-4, 5)
    gap = np.maximum(0, np.maximum(4 * place - 3.75, 0.25 - 4 * (place + 1))) ** 2
    assert len(steps) == np.count_nonzero(gap[:, None, None] + gap[:, None] + gap < 144)


def test_bins_hold_every_atom_once_or_leave_it_over():
    positions, charges = atoms(6000)
    charges[::5] = 0
    four = np.column_stack([positions, charges]).astype(np.float32)
    actual = bins.small_bins(LATTICE, 6.0, 4.0)[0]
    filled, overflow = bins.fill(actual, positions, four)
    number = actual.numbers(positions)
    expected = np.flatnonzero((number >= 0) & (charges != 0))
    counts = np.bincount(number[expected], minlength=actual.size)
    assert len(overflow) == np.maximum(counts - bins.CAPACITY, 0).sum() > 0
    full = filled[..., 3] != 0
    np.testing.assert_array_equal(full.sum(1), np.minimum(counts, bins.CAPACITY))
    assert (np.diff(full.astype(int), axis=1) <= 0).all()  # from the front
    kept = np.setdiff1d(expected, overflow)
    np.testing.assert_array_equal(np.sort(filled[full], axis=0), np.sort(four[kept], axis=0))


def test_large_bins_are_sorted_runs():
    positions, charges = atoms(500)
    four = np.column_stack([positions, charges]).astype(np.float32)
    planned = bins.place("largebin", LATTICE, positions, four, 5.0)
    starts, sorted_atoms = planned.arrays["starts"], planned.arrays["atoms"]
    number = planned.bins.numbers(sorted_atoms[:, :3].astype(float))
    assert starts[-1] == len(sorted_atoms) == np.count_nonzero(planned.bins.numbers(positions) >= 0)
    for k in range(planned.bins.size):
        assert (number[starts[k] : starts[k + 1]] == k).all()
    assert (planned.bins.side >= np.maximum(5.0, 8 * LATTICE.spacing)).all()


def test_overlap_takes_bins_of_which_few_overflow():
    positions, charges = atoms(6000, 0, 25)
    four = np.column_stack([positions, charges]).astype(np.float32)
    lattice = Lattice(np.zeros(3), 0.5, (50, 50, 50))
    few = len(bins.place("overlap", lattice, positions, four, 8.0).overflow)
    assert few <= bins.OVERFLOW * len(positions) < len(bins.place("smallbin", lattice, positions, four, 8.0).overflow)
    assert bins.overlap_side(lattice, 8.0, np.ones((100, 3))) >= 0.9 * bins.SMALLEST  # no side is small enough


def test_a_long_list_takes_several_launches():
    steps = np.arange(2 * cutoff.LISTED + 5)
    tasks = [np.frombuffer(t, cutoff.LIST_TASK)[0] for t in cutoff.list_tasks(np.zeros((), maps.TASK), steps)]
    assert [t["count"] for t in tasks] == [cutoff.LISTED, cutoff.LISTED, 5]
    np.testing.assert_array_equal(np.concatenate([t["steps"][: t["count"]] for t in tasks]), steps)
    assert cutoff.LIST_TASK.itemsize <= 4096  # bytes of arguments that every GPU takes


def pairs_tested(placed, lattice):
    """Return how many pairs of a point and an atom a kernel with small bins tests."""
    count = (placed.arrays["atoms"][..., 3] != 0).sum(1)
    x, y, z = np.split(placed.arrays["index"], np.cumsum([-(-n // bins.REGION) for n in lattice.shape])[:2])
    home = ((x[:, None, None] * placed.bins.shape[1] + y[:, None]) * placed.bins.shape[2] + z).ravel()
    return bins.REGION**3 * sum(int(count[home + step].sum()) for step in placed.steps)


def test_few_tested_pairs_are_out_of_range():
    """A region's list leads to 3 times the atoms in range: what estimates take for granted."""
    positions, charges = water_box(60.0)
    lattice = Lattice(np.full(3, 20.25), 0.5, (40, 40, 40))  # all in range are in the box
    placed = bins.place("smallbin", lattice, positions, np.column_stack([positions, charges]).astype(np.float32), 12.0)
    in_range = lattice.size * len(positions) / 60**3 * 4 / 3 * np.pi * 12**3
    assert 2 < pairs_tested(placed, lattice) / in_range < 3.5
    assert 0 < len(placed.overflow) < 0.05 * len(positions)
