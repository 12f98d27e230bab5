"""Multilevel summation against closed forms, Ewald's sum and direct sums over images."""


import ewald
import numpy as np
import pytest
import sums
from helpers import relative_rms
from messages import naming

from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, MemoryPlanError, TaskError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import coulomb
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.plugins.historical import levels, msm
from vmdpotential.sums import ChargeStatistics, Request

ENGINE = get_engine("cpu")
COULOMB = coulomb.INTERACTION.bind()
SLANTED = Cell.from_parameters(26, 24, 28, 70, 80, 110)


def random_nodes(lattice, count=200, seed=1):
    indices = np.random.default_rng(seed).integers(0, lattice.shape, (count, 3))
    return tuple(indices.T), lattice.points(indices)


def direct(points, positions, charges):
    return (charges / np.linalg.norm(points[:, None] - positions, axis=-1)).sum(1)


def test_the_cubic_splitting_is_that_of_the_paper():
    s = np.linspace(0, 1, 20)
    np.testing.assert_allclose(levels.smooth(7 * s, 7.0, 2) * 7, 15 / 8 - 5 / 4 * s**2 + 3 / 8 * s**4)


def test_madelung_constant_of_sodium_chloride():
    positions = np.argwhere(np.ones((2, 2, 2))).astype(float)
    charges = (-1.0) ** positions.sum(1)
    lattice = Lattice(np.zeros(3), 1.0, (2, 2, 2))
    plan = sums.levels_around(lattice, positions, Cell(np.diag([2.0, 2.0, 2.0])), order=8, radius=4.0, spacing=0.25)
    values = sums.by_levels(ENGINE, lattice, positions, charges, plan, "double").ravel()
    own = charges / 0.01  # of the ion at the point itself, at the distance of the soft core
    np.testing.assert_allclose((own - values) * charges, 1.7475645946331822, rtol=1e-5)


def test_cubic_error_of_water_as_published():
    """cionize at 12 A and 2 A has a root mean square error of 0.46 %."""
    positions, charges = water_box(47.0)
    lattice = Lattice.around(positions, 0.7, 4.0)
    where, points = random_nodes(lattice, 500)
    reference = sums.at_points(ENGINE, points, positions, charges)
    plan = sums.levels_around(lattice, positions, radius=12.0, spacing=2.0, order=4)
    values = sums.by_levels(ENGINE, lattice, positions, charges, plan)
    assert relative_rms(values[where], reference) < 0.0046


@pytest.mark.slow
@pytest.mark.parametrize("cell", [Cell(np.diag([26.0, 11.0, 60.0])), SLANTED, Cell(SLANTED.vectors[[2, 0, 1]])])
@pytest.mark.parametrize("total", [0.0, 3.0])
def test_periodic_cells_equal_ewald(cell, total):
    rng = np.random.default_rng(5)
    positions = (rng.uniform(-1, 2, (60, 3))) @ cell.vectors  # also outside the cell
    charges = rng.normal(size=60)
    charges += total / 60 - charges.mean()
    lattice = Lattice(np.array([-9.0, -7, -8]), np.array([1.0, 1.2, 1.1]), (25, 26, 27))
    where, points = random_nodes(lattice, 60)
    reference = ewald.with_field(points, positions, charges, cell.vectors)[0]
    for order, error in ((4, 4e-3), (8, 3e-5)):
        plan = sums.levels_around(lattice, positions, cell, order=order, spacing=1.0, radius=9.0)
        values = sums.by_levels(ENGINE, lattice, positions, charges, plan, "double")[where]
        assert relative_rms(values, reference) < error
        assert abs((values - reference).mean()) < error * reference.std()


def test_in_a_periodic_cell_charges_may_be_anywhere():
    """What was planned for one frame runs for the next, in which atoms went over the periods."""
    positions, charges = water_box(12.0)
    cell = Cell(np.diag([12.0, 12.0, 12.0]))
    lattice = Lattice(np.zeros(3), 1.0, (12, 12, 12))
    plan = sums.levels_around(lattice, positions, cell, spacing=1.0, radius=5.0)
    values = sums.by_levels(ENGINE, lattice, positions, charges, plan)
    moved = positions + np.random.default_rng(1).integers(-2, 3, (len(positions), 3)) * 12.0
    np.testing.assert_allclose(sums.by_levels(ENGINE, lattice, moved, charges, plan), values, atol=2e-5)
    plan = sums.levels_around(lattice, positions, spacing=1.0, radius=5.0)
    with pytest.raises(InputError):
        sums.by_levels(ENGINE, lattice, positions + np.array([0.0, 0.0, 3.0]), charges, plan)


def test_what_does_not_fit_is_refused(monkeypatch):
    lattice, positions = Lattice(np.zeros(3), 1.0, (9, 9, 9)), np.zeros((1, 3))
    for parameter, options in (("order", {"order": 5}), ("order", {"smoothness": 9}), ("spacing", {"spacing": 0.0}),
                               ("spacing", {"spacing": 3.0, "radius": 2.0}), ("spacing", {"radius": np.inf})):
        with pytest.raises(UsageError) as error:
            sums.levels_around(lattice, positions, **options)
        assert error.value.parameter == parameter
    water, charges = water_box(9.0)
    with naming(TaskError, parameter="tolerance"):
        sums.to_tolerance(msm.METHOD, lattice, water, charges, None, COULOMB, 1e-9)
    request = Request(lattice, None, COULOMB, ChargeStatistics.of(water, charges), tolerance=1e-9, error=1e-9)
    assert msm.METHOD.estimate(request, ENGINE).error is TaskError  # before any map is made
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "1M")
    large = Lattice(np.zeros(3), 1.0, (300, 300, 300))
    with naming(MemoryPlanError, "level"):
        msm.METHOD.plan(Request(large, None, COULOMB, ChargeStatistics.of(water, charges), error=1e-3), ENGINE)
