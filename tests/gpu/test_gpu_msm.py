"""Multilevel sums on a GPU, against the CPU engine and sums over all atoms.

Run with ``pytest -m gpu``, as tests/gpu/test_cuda.py.
"""

import numpy as np
import pytest
import sums
from helpers import random_charges, relative_rms

from vmdpotential import engines
from vmdpotential.engines import LatticeSum
from vmdpotential.errors import MemoryPlanError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.plugins.historical import levels
from vmdpotential.plugins.historical.msm_cuda import LevelSum

pytestmark = pytest.mark.gpu


LATTICE = Lattice(np.array([-1.0, 2.0, 0.3]), np.array([0.5, 0.6, 0.7]), (17, 33, 40))
POSITIONS, CHARGES = random_charges(2000, -3, 27)
CELL = Cell(np.diag([30.0, 34.0, 42.0]))
SLANTED = Cell.from_parameters(30, 31, 32, 70, 80, 110)
ROTATED = Cell(SLANTED.vectors @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0])
PLANS = {
    "open": {"spacing": 1.0, "radius": 5.0},
    "one level": {"spacing": 4.0, "radius": 24.0},
    "periodic": {"cell": CELL, "spacing": 1.2, "radius": 4.0},
    "slanted": {"cell": SLANTED, "spacing": 1.5, "radius": 6.0},
    "rotated": {"cell": ROTATED, "spacing": 1.5, "radius": 4.0},
    "wire": {"cell": CELL, "periodic": (False, False, True), "spacing": 1.2, "radius": 3.0},
    "slab": {"cell": CELL, "periodic": (True, False, True), "spacing": 1.2, "radius": 3.0},
}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("order", levels.ORDERS)
def test_the_map_is_that_of_the_cpu_engine_and_the_same_every_time(engine, name, order):
    plan = sums.levels_around(LATTICE, POSITIONS, order=order, **PLANS[name])
    reference = sums.by_levels(engines.get_engine("cpu"), LATTICE, POSITIONS, CHARGES, plan, "double", field=True)
    for precision, accuracy in (("single", 1e-5), ("compensated", 3e-6), ("double", 1e-7)):
        prepared = engine.prepare(LatticeSum.split(LATTICE, plan, precision, field=True))
        result, again = (prepared.run(POSITIONS, CHARGES) for _ in range(2))
        assert result.device_seconds > 0
        for actual, expected in zip([result.values(), *result.field()], reference, strict=True):
            assert relative_rms(actual, expected) < accuracy
        np.testing.assert_array_equal(again.values(), result.values())
        np.testing.assert_array_equal(again.field(), result.field())
        alone = sums.by_levels(engine, LATTICE, POSITIONS, CHARGES, plan, precision)
        assert relative_rms(alone, reference[0]) < accuracy


@pytest.mark.parametrize(("order", "error"), [(4, 2e-2), (6, 1e-3), (8, 3e-4)])
def test_the_sum_is_that_over_all_atoms(engine, order, error):
    positions, charges = water_box(60.0)
    lattice = Lattice(np.full(3, -2.0), 0.8, (80, 80, 80))
    plan = sums.levels_around(lattice, positions, order=order, spacing=1.5, radius=9.0)
    assert len(plan.levels) >= 3
    indices = np.random.default_rng(1).integers(0, lattice.shape, (500, 3))
    exact = sums.at_points(engine, lattice.points(indices), positions, charges)
    assert relative_rms(sums.by_levels(engine, lattice, positions, charges, plan)[tuple(indices.T)], exact) < error


def test_a_map_in_slabs_and_one_that_does_not_fit(engine, monkeypatch):
    positions, charges = water_box(30.0)
    lattice = Lattice(np.full(3, 0.3), 0.25, (119, 119, 119))
    plan = sums.levels_around(lattice, positions, spacing=1.5, radius=5.0)
    whole = sums.by_levels(engine, lattice, positions, charges, plan).copy()
    seen = []
    launch = LevelSum.launch
    monkeypatch.setattr(LevelSum, "launch", lambda self, job, slab, *rest: (
        seen.append(slab), launch(self, job, slab, *rest)))
    needed = LevelSum(LatticeSum.split(lattice, plan)).fixed_bytes(len(charges))
    monkeypatch.setenv("VMDPOTENTIAL_GPU_MEMORY", str(needed + 10**6))
    np.testing.assert_array_equal(sums.by_levels(engine, lattice, positions, charges, plan), whole)
    assert len(seen) == 15
    monkeypatch.setenv("VMDPOTENTIAL_GPU_MEMORY", str(needed))
    with pytest.raises(MemoryPlanError, match="GPU memory"):
        sums.by_levels(engine, lattice, positions, charges, plan)
