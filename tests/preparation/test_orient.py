"""Directions in which hydrogens of waters are tried."""

import numpy as np

from vmdpotential.plugins.preparation.orient import random_rotations


def test_rotations_are_spread_evenly_and_always_the_same():
    turns = random_rotations(4000)
    assert np.allclose(turns @ turns.transpose(0, 2, 1), np.eye(3))
    assert np.allclose(np.linalg.det(turns), 1)
    assert np.abs(turns.mean(0)).max() < 0.05
    assert np.abs((turns**2).mean(0) - 1 / 3).max() < 0.03
    assert np.array_equal(random_rotations(20), random_rotations(20))
