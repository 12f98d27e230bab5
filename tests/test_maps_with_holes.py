"""Pictures of maps that have no values in places, as a difference where the other map ends."""

import numpy as np

from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.grid.planes import Plane, smooth_values_on


def test_what_is_there_is_drawn():
    values = np.random.default_rng(0).normal(size=(12, 10, 4)).astype(np.float32)
    lattice = Lattice(np.zeros(3), np.ones(3), values.shape)
    values[8:] = np.nan
    plane = Plane.across(2, 1.5)
    result, extent = smooth_values_on(Grid(lattice, values), plane)
    assert extent == (0, 11, 0, 9)
    known = np.isfinite(result)
    assert known[:, : 6 * 4 + 1].all()  # four steps to a spacing
    assert not known[:, 7 * 4 + 1 :].any()
    np.testing.assert_allclose(result[::4, : 6 * 4 + 1 : 4].T, values[:7, :, 1:3].mean(2), atol=1e-6)
    values[:] = np.nan
    assert np.isnan(smooth_values_on(Grid(lattice, values), plane)[0]).all()
