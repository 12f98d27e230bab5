"""The bins of 2008 against brute force."""

import numpy as np
import pytest
from historical_sums import LATTICE, atoms

from vmdpotential.grid.lattice import Lattice
from vmdpotential.plugins.historical import bins


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
