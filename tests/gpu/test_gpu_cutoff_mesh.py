"""The cutoff method on a mesh on a GPU, against the CPU engine and the sum pair by pair."""

from functools import partial

import numpy as np
import pytest
import sums
from helpers import relative_rms

from vmdpotential import engines, registry
from vmdpotential.grid.lattice import Lattice
from vmdpotential.methods import cutoff
from vmdpotential.molecule.samples import water_box
from vmdpotential.splitting.mesh import over_cell
from vmdpotential.splitting.shifted import optimal_for_cutoff

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("boundary", sums.CELLS)
@pytest.mark.parametrize("reach", [9.0, 20.0])
def test_both_engines_agree(engine, boundary, reach):
    cell = sums.CELLS[boundary]
    positions, charges = water_box(30.0)
    charges = charges + 0.01  # k = 0 counts
    lattice = Lattice(np.array([-1.0, 0.3, 2.0]), np.full(3, 0.7), (41, 43, 45))
    split = partial(optimal_for_cutoff, reach)
    mesh = (sums.mesh_around(lattice, positions, 0.9, 6, 4.0, split) if cell is None
            else over_cell(cell, 0.9, 6, 4.0, split))
    cpu = sums.by_mesh(engines.get_engine("cpu"), lattice, positions, charges, mesh, "double")
    for precision, tolerance in (("single", 2e-5), ("double", 5e-6)):
        assert relative_rms(sums.by_mesh(engine, lattice, positions, charges, mesh, precision), cpu) < tolerance


@pytest.mark.parametrize("boundary", sums.CELLS)
def test_the_tolerance_is_kept(engine, boundary):
    positions, charges = water_box(30.0)
    lattice = Lattice(np.array([-1.0, 0.3, 2.0]), np.full(3, 0.7), (41, 43, 45))
    shifted = registry.get("interaction", "shifted_coulomb").bind(cutoff=10.0)
    values, errors = sums.to_tolerance(cutoff.BY_MESH, lattice, positions, charges, sums.CELLS[boundary], shifted, 1e-3,
                                       engine)
    assert errors.largest <= 1e-3
    exact = sums.cutoff(engine, lattice, positions, charges, shifted, "double", sums.CELLS[boundary]).astype(np.float64)
    assert relative_rms(values, exact) < 1.2e-3
