"""Multilevel summation against closed forms, Ewald's sum and direct sums over images."""

import itertools

import ewald
import numpy as np
import pytest
import sums
from helpers import relative_rms

from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, MemoryPlanError, TaskError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import coulomb
from vmdpotential.methods import Charges, Request
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.plugins.historical import images, levels, msm

ENGINE = get_engine("cpu")
COULOMB = coulomb.INTERACTION.bind()
SLANTED = Cell.from_parameters(26, 24, 28, 70, 80, 110)
#: Along some axes alone.
MIXED = [axes for axes in itertools.product([False, True], repeat=3) if 0 < sum(axes) < 3]


def random_nodes(lattice, count=200, seed=1):
    indices = np.random.default_rng(seed).integers(0, lattice.shape, (count, 3))
    return tuple(indices.T), lattice.points(indices)


def direct(points, positions, charges):
    return (charges / np.linalg.norm(points[:, None] - positions, axis=-1)).sum(1)


@pytest.mark.parametrize("smoothness", levels.SMOOTHNESS)
def test_the_smooth_part_goes_over_into_1_over_r(smoothness):
    r = np.linspace(0.01, 9, 200)
    plan = sums.levels_around(Lattice(np.zeros(3), 1.0, (8, 8, 8)), np.zeros((1, 3)), radius=5.0, smoothness=smoothness)
    smooth = levels.smooth(r, 5.0, smoothness)
    np.testing.assert_allclose(plan.short(r) + smooth, 1 / r, rtol=1e-12)
    np.testing.assert_allclose(smooth[r >= 5], 1 / r[r >= 5], rtol=1e-14)
    # inside it differs from 1/r by the first term of Taylor's series that it leaves out: (1 - s)^(smoothness + 1)
    difference = [1 / x - levels.smooth(x, 5.0, smoothness) for x in (5 * (1 - 1e-2), 5 * (1 - 2e-2))]
    assert np.log2(difference[1] / difference[0]) == pytest.approx(smoothness + 1, abs=0.1)


def test_the_cubic_splitting_is_that_of_the_paper():
    s = np.linspace(0, 1, 20)
    np.testing.assert_allclose(levels.smooth(7 * s, 7.0, 2) * 7, 15 / 8 - 5 / 4 * s**2 + 3 / 8 * s**4)


@pytest.mark.parametrize("order", levels.ORDERS)
@pytest.mark.parametrize("cell", [None, Cell(np.diag([100.0, 57.0, 80.0]))])
def test_restriction_is_the_transpose_of_prolongation(order, cell):
    plan = sums.levels_around(Lattice(np.zeros(3), 2.0, (40, 45, 50)), np.zeros((1, 3)), cell, order=order, radius=8.0)
    assert len(plan.levels) > 2
    for level in range(len(plan.levels) - 1):
        coarse, fine = plan.levels[level + 1], plan.levels[level]
        for axis, (down, up) in enumerate(zip(plan.prolongation(level), plan.restriction(level), strict=True)):
            assert (down is not None) == (up is not None) == coarse.halved[axis]
            if down is None:
                continue
            matrices = []
            for nodes, weights, columns in ((*down, coarse.shape[axis]), (*up, fine.shape[axis])):
                matrix = np.zeros((len(nodes), columns))
                np.add.at(matrix, (np.arange(len(nodes))[:, None], nodes), weights)
                matrices.append(matrix)
            np.testing.assert_array_equal(matrices[0], matrices[1].T)
            np.testing.assert_allclose(matrices[0].sum(1), 1)  # a constant stays one, no charge is lost


def test_levels_of_a_cell_halve_evenly():
    lattice = Lattice(np.zeros(3), 1.0, (4, 4, 4))
    plan = sums.levels_around(lattice, np.zeros((1, 3)), Cell(np.diag([231.0, 49.0, 7.0])), spacing=1.7)
    for finer, coarser in itertools.pairwise(plan.levels):
        for n, less, half in zip(finer.shape, coarser.shape, coarser.halved, strict=True):
            assert n == (2 * less if half else less)
    assert (np.linalg.norm(plan.steps, axis=1) <= 1.75).all()
    assert max(plan.levels[-1].shape) <= 32


@pytest.mark.parametrize("axes", list(itertools.product([False, True], repeat=3)))
def test_images_do_not_depend_on_the_splitting(axes):
    steps, shape = np.diag([1.0, 1.2, 0.9]), (6, 5, 7)
    offsets = [np.arange(n) if around else np.arange(1 - n, n) for n, around in zip(shape, axes, strict=True)]
    points = np.stack(np.meshgrid(*offsets, indexing="ij"), -1) @ steps
    counts = tuple(n if around else None for n, around in zip(shape, axes, strict=True))
    sums = [images.all_images(lambda r, a=a, n=n: levels.smooth(r, a, n), a, points, counts, steps)
            for a, n in ((3.0, 2), (5.1, 4))]
    between = images.near_images(lambda r: levels.smooth(r, 3.0, 2) - levels.smooth(r, 5.1, 4), 5.1, points,
                                 (steps * np.array(shape)[:, None])[list(axes)])
    np.testing.assert_allclose(sums[0] - sums[1], between, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(("axes", "constant"), [
    ((False, True, False), 2 * np.log(2)),  # a chain of ions
    ((True, False, True), 1.6155426267128247),  # a square net (J. M. Borwein et al., Lattice Sums, 2013)
    ((True, True, True), 1.7475645946331822),  # NaCl
])
def test_madelung_constants(axes, constant):
    repeat = np.where(axes, 2, 1)
    positions = np.argwhere(np.ones(repeat)).astype(float)
    charges = (-1.0) ** positions.sum(1)
    lattice = Lattice(np.zeros(3), 1.0, tuple(repeat))
    plan = sums.levels_around(lattice, positions, Cell(np.diag([2.0, 2.0, 2.0])), periodic=axes, order=8, radius=4.0,
                       spacing=0.25)
    values = sums.by_levels(ENGINE, lattice, positions, charges, plan, "double").ravel()
    own = charges / 0.01  # of the ion at the point itself, at the distance of the soft core
    np.testing.assert_allclose((own - values) * charges, constant, rtol=1e-5)


@pytest.mark.parametrize(("order", "error"), [(4, 3e-3), (6, 6e-4), (8, 2e-4)])
def test_a_charge_and_a_dipole(order, error):
    lattice = Lattice(np.array([-20.0, -21, -22]), 1.1, (40, 40, 40))
    where, points = random_nodes(lattice)
    for positions, charges in (([[0.3, 0.2, 0.1]], [1.0]), ([[0.3, 0.2, 0.1], [0.3, 0.2, 1.1]], [1.0, -1.0])):
        positions, charges = np.array(positions), np.array(charges)
        plan = sums.levels_around(lattice, positions, order=order)
        values = sums.by_levels(ENGINE, lattice, positions, charges, plan)[where]
        reference = direct(points, positions, charges)
        # of a charge's potential at the radius: 1 / 12 A
        assert np.abs(values - reference).max() < error / 12


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
def test_errors_fall_with_order_radius_and_spacing():
    rng = np.random.default_rng(3)
    positions, charges = rng.uniform(0, 30, (2000, 3)), rng.normal(size=2000)
    lattice = Lattice.around(positions, 1.1, 3.0)
    where, points = random_nodes(lattice)
    reference = sums.at_points(ENGINE, points, positions, charges)

    def error(**options):
        plan = sums.levels_around(lattice, positions, **options)
        return relative_rms(sums.by_levels(ENGINE, lattice, positions, charges, plan, "double")[where], reference)

    orders = [error(order=order, radius=9.0, spacing=1.5) for order in levels.ORDERS]
    assert orders[0] > 3 * orders[1] > 6 * orders[2]
    for order, power in ((4, 2.5), (8, 4.0)):
        radii = [error(order=order, radius=radius, spacing=1.5) for radius in (6.0, 12.0)]
        assert radii[0] > 2**power * radii[1]
        spacings = [error(order=order, radius=9.0, spacing=spacing) for spacing in (2.25, 1.125)]
        assert spacings[0] > 2**power * spacings[1]


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["single", "compensated", "double"])
def test_a_shift_of_the_origin_leaves_the_error(precision):
    positions, charges = water_box(25.0)
    errors = []
    for shift in (0.0, 0.37, 0.5, 1.31):
        lattice = Lattice(np.full(3, -2.0) + shift, 0.8, (36, 36, 36))
        where, points = random_nodes(lattice)
        reference = sums.at_points(ENGINE, points, positions, charges)
        plan = sums.levels_around(lattice, positions, order=6)
        values = sums.by_levels(ENGINE, lattice, positions, charges, plan, precision)
        assert values.dtype == np.float32
        errors.append(relative_rms(values[where], reference))
    assert max(errors) < 2e-3
    assert max(errors) < 3 * min(errors)


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


@pytest.mark.slow
@pytest.mark.parametrize("axes", MIXED)
def test_mixed_boundaries_equal_a_sum_over_images(axes):
    rng = np.random.default_rng(7)
    lengths = np.array([14.0, 16.0, 13.0])
    positions = rng.uniform(0, 1, (24, 3)) * lengths
    # charges without charge, dipole and quadrupole: their images' sum converges fast
    x, y, z = (positions - lengths / 2).T
    moments = np.array([np.ones(24), x, y, z, x * y, x * z, y * z, x * x - y * y, 2 * z * z - x * x - y * y])
    charges = 3 * rng.normal(size=15) @ np.linalg.svd(moments)[2][9:]
    lattice = Lattice(np.array([-6.0, -7.0, -8.0]), 1.6, (16, 17, 18))
    where, points = random_nodes(lattice, 30)
    many = {1: 200, 2: 25}[sum(axes)]
    counts = [np.arange(-many, many + 1) if around else np.zeros(1) for around in axes]
    shifts = np.stack(np.meshgrid(*counts), -1).reshape(-1, 3) * lengths
    shifts = shifts[np.linalg.norm(shifts, axis=1) <= many * 13.0]
    reference = sum(direct(points, positions + shift, charges) for shift in shifts)
    for order, spacing, error in ((4, 2.0, 5e-3), (8, 1.0, 1e-4)):
        plan = sums.levels_around(lattice, positions, Cell(np.diag(lengths)), periodic=axes, order=order,
                                  spacing=spacing)
        values = sums.by_levels(ENGINE, lattice, positions, charges, plan, "double")[where]
        assert relative_rms(values, reference) < error


def test_along_periodic_axes_charges_may_be_anywhere():
    """What was planned for one frame runs for the next, in which atoms went over the periods."""
    positions, charges = water_box(12.0)
    cell = Cell(np.diag([12.0, 12.0, 12.0]))
    lattice = Lattice(np.zeros(3), 1.0, (12, 12, 12))
    plan = sums.levels_around(lattice, positions, cell, periodic=(True, True, False), spacing=1.0, radius=5.0)
    values = sums.by_levels(ENGINE, lattice, positions, charges, plan)
    moved = positions + np.random.default_rng(1).integers(-2, 3, (len(positions), 3)) * [12.0, 12.0, 0.0]
    np.testing.assert_allclose(sums.by_levels(ENGINE, lattice, moved, charges, plan), values, atol=2e-5)
    with pytest.raises(InputError, match="outside of the box"):
        sums.by_levels(ENGINE, lattice, positions + np.array([0.0, 0.0, 3.0]), charges, plan)


@pytest.mark.slow
def test_a_long_slab_and_a_long_wire():
    """Levels go on along the open axis after those along the periodic ones have ended."""
    rng = np.random.default_rng(8)
    positions = rng.uniform(0, 1, (400, 3)) * [12.0, 110.0, 13.0]
    charges = rng.normal(size=400)
    charges -= charges.mean()
    lattice = Lattice(np.array([0.0, -3.0, 0.0]), 2.1, (6, 55, 6))
    for axes in ((True, False, True), (False, False, True)):
        cell = Cell(np.diag([12.0, 5.0, 13.0]))
        plans = [sums.levels_around(lattice, positions, cell, periodic=axes, radius=6.0, **options)
                 for options in ({"spacing": 1.0, "order": 6}, {"spacing": 0.6, "order": 8})]
        assert len(plans[0].levels) > 2
        rough, fine = (sums.by_levels(ENGINE, lattice, positions, charges, plan, "double") for plan in plans)
        assert relative_rms(rough, fine) < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("cell", [None, Cell(np.diag([31.0, 31.0, 31.0]))])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_the_method_keeps_the_tolerance(cell, tolerance):
    positions, charges = water_box(31.0)
    lattice = Lattice.around(positions, 0.6)
    values, errors = sums.to_tolerance(msm.METHOD, lattice, positions, charges, cell, COULOMB, tolerance)
    assert errors.largest <= tolerance
    where, points = random_nodes(lattice, 40, seed=11)
    reference = direct(points, positions, charges) if cell is None else ewald.potential(
        points, positions, charges, cell.vectors)
    assert relative_rms(values[where], reference) < 1.5 * tolerance


def test_a_field_is_the_slope_of_the_potential():
    positions, charges = water_box(12.0)
    lattice = Lattice(np.array([-3.0, -3.0, -3.0]), 1.0, (4, 15, 15))
    plan = sums.levels_around(lattice, positions, order=8, radius=9.0, spacing=1.0)
    field = sums.by_levels(ENGINE, lattice, positions, charges, plan, "double", field=True)
    where, points = random_nodes(lattice, 50)
    d = points[:, None] - positions
    reference = (charges[:, None] * d / np.linalg.norm(d, axis=-1, keepdims=True) ** 3).sum(1).T
    assert relative_rms(field[0][where], direct(points, positions, charges)) < 1e-4
    assert relative_rms(field[(slice(1, 4), *where)], reference) < 1e-3


def test_what_does_not_fit_is_refused(monkeypatch):
    lattice, positions = Lattice(np.zeros(3), 1.0, (9, 9, 9)), np.zeros((1, 3))
    for parameter, options in (("order", {"order": 5}), ("order", {"smoothness": 9}), ("spacing", {"spacing": 0.0}),
                               ("spacing", {"spacing": 3.0, "radius": 2.0}), ("spacing", {"radius": np.inf})):
        with pytest.raises(UsageError) as error:
            sums.levels_around(lattice, positions, **options)
        assert error.value.parameter == parameter
    with pytest.raises(UsageError, match="right angles"):
        sums.levels_around(lattice, positions, SLANTED, periodic=(True, True, False))
    water, charges = water_box(9.0)
    with pytest.raises(TaskError, match="reached") as error:
        sums.to_tolerance(msm.METHOD, lattice, water, charges, None, COULOMB, 1e-9)
    assert error.value.parameter == "tolerance"
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "1M")
    large = Lattice(np.zeros(3), 1.0, (300, 300, 300))
    with pytest.raises(MemoryPlanError, match="level"):
        msm.METHOD.plan(Request(large, None, COULOMB, Charges.of(water, charges), error=1e-3), ENGINE)
