"""Every engine's sums over pairs against the definition in float64, and at points."""

import itertools
from functools import cache

import numpy as np
import pytest
import sums
from helpers import FOREIGN, OURS, definition, interaction, random_charges, relative_errors, relative_rms
from tolerances import ANY_INTERACTION, FIELD, PAIRS

from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.coulomb import optimal_splitting
from vmdpotential.sums.potential_sum import PRECISIONS

# shapes straddle the edges of leaves and cubes (4), tiles (8) and rows of threads (32)
SHAPES = [(1, 1, 1), (3, 4, 5), (7, 8, 9), (8, 17, 4), (16, 1, 23), (9, 31, 33), (17, 9, 65)]
CELLS = [Cell.from_parameters(24, 25, 26), Cell.from_parameters(24, 25, 26, 70, 80, 110),
         Cell.from_parameters(30, 30, 30, 60, 60, 90), Cell.from_parameters(9, 10, 40)]
FEW_ATOMS = np.array([[1.0, 1.5, 2.0], [3.0, 3.0, 3.004], [2.2, 2.2, 2.2]]), np.array([0.7, -0.4, 1.0])


def lattice_of(shape):
    return Lattice(np.array([-3.0, 1.7, 2.2]), np.array([0.5, 0.7, 0.9]), shape)


def charges_for(method, count):
    positions, charges = random_charges(1100, -6, 14) if method == "direct" else random_charges(3000, -10, 20)
    return positions[:count], charges[:count]


@cache
def reference(method, shape, count=None, cutoff=9.0, field=False):
    """Return the map by definition, once for all precisions and engines."""
    bound = interaction("coulomb") if method == "direct" else interaction("shifted_coulomb", cutoff=cutoff)
    values = definition(lattice_of(shape).points(), *charges_for(method, count), bound, field=field)
    return values.reshape(4, *shape) if field else values.reshape(shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_direct_equals_definition(engine, shape, precision):
    lattice, bound = lattice_of(shape), interaction("coulomb")
    for count in (1, 255, 257, 1100):  # the last is more than two chunks of atoms
        values = sums.direct(engine, lattice, *charges_for("direct", count), bound, precision)
        assert values.shape == shape
        assert values.dtype == np.float32
        assert relative_rms(values, reference("direct", shape, count)) < PAIRS[engine.name][precision]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("cutoff", [2.3, 9.0])
def test_cutoff_equals_definition(engine, shape, precision, cutoff):
    values = sums.cutoff(engine, lattice_of(shape), *charges_for("cutoff", None),
                           interaction("shifted_coulomb", cutoff=cutoff), precision)
    expected = reference("cutoff", shape, cutoff=cutoff)
    # relative to what a map has, where a single point may have next to nothing
    worst = np.abs(values - expected).max()
    assert worst < 3 * PAIRS[engine.name][precision] * max(1, np.abs(expected).max())


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 8, 9), (8, 17, 4), pytest.param((17, 9, 65), marks=pytest.mark.slow)])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("method", ["direct", "cutoff"])
def test_field_equals_definition(engine, shape, precision, method):
    bound = interaction("coulomb") if method == "direct" else interaction("shifted_coulomb", cutoff=9.0)
    compute, given = getattr(sums, method), (engine, lattice_of(shape), *charges_for(method, None), bound, precision)
    values = compute(*given, field=True)
    assert values.shape == (4, *shape)
    assert values.dtype == np.float32
    potential, field = relative_errors(values, reference(method, shape, field=True))
    assert potential < 2 * PAIRS[engine.name][precision] * (10 if shape == (1, 1, 1) else 1)
    assert field < FIELD[engine.name][precision]
    alone = compute(*given)
    assert relative_rms(values[0], alone) < 3 * PAIRS[engine.name][precision] * (10 if shape == (1, 1, 1) else 1)


# On the CPU the potential without a cutoff is that of every operation, and of the
# sums of fields below, and in double precision there are every operation and erfc, a call for each lane
@pytest.mark.parametrize(("bound", "precision"), [
    *((bound, "single") for bound in [*OURS, *FOREIGN]), (FOREIGN[0], "double"), (FOREIGN[1], "double")],
    ids=lambda value: value if isinstance(value, str) else value.interaction.name)
def test_every_interaction_in_every_traversal(engine, bound, precision):
    positions, charges = random_charges(400, 0, 16)
    lattice = Lattice(np.array([4.0, 4.1, 4.2]), np.full(3, 0.8), (9, 9, 9))
    tolerance = ANY_INTERACTION[engine.name][precision]
    if bound.cutoff is None:
        if engine.name != "cpu" or (bound is FOREIGN[0] and precision == "single"):
            exact = definition(lattice.points(), positions, charges, bound).reshape(lattice.shape)
            values = sums.direct(engine, lattice, positions, charges, bound, precision)
            assert relative_rms(values, exact) < tolerance
        bound = bound.truncated(5.0)
    exact = definition(lattice.points(), positions, charges, bound).reshape(lattice.shape)
    values = sums.cutoff(engine, lattice, positions, charges, bound, precision)
    assert relative_rms(values, exact) < tolerance
    at_points = sums.at_points(engine, lattice.points(), positions, charges, bound)
    np.testing.assert_allclose(at_points, exact.ravel(), atol=1e-12 * np.abs(exact).max())


@pytest.mark.parametrize("bound", [*OURS, FOREIGN[0], optimal_splitting(4.0, 1.3, 6)[0].short()],
                         ids=lambda b: b.interaction.name)
def test_every_interaction_has_a_field(engine, bound):
    positions, charges = random_charges(400, 0, 16)
    lattice = Lattice(np.array([4.0, 4.1, 4.2]), np.full(3, 0.8), (9, 9, 9))
    values = sums.direct(engine, lattice, positions, charges, bound, "single", field=True)
    exact = definition(lattice.points(), positions, charges, bound, field=True).reshape(values.shape)
    potential, field = relative_errors(values, exact)
    assert potential < 2 * ANY_INTERACTION[engine.name]["single"]
    assert field < 2 * FIELD[engine.name]["single"]


@pytest.mark.parametrize("cell", [*CELLS, Cell.from_parameters(3, 4, 35, 70, 100, 95),
                                  Cell(np.array([[20.0, 3, 2], [1, 22, 4], [2, -3, 21]]))],
                         ids=lambda c: " ".join(f"{x:.4g}" for x in c.parameters))
def test_periodic_cutoff_counts_every_image(engine, cell):
    positions, charges = random_charges(300, -40, 40)  # many outside the cell
    lattice = Lattice.over_cell(cell, 1.3, [-5.0, 2.0, 1.0])
    bound = interaction("shifted_coulomb", cutoff=11.0)  # longer than half of each cell, and than one edge
    values = sums.cutoff(engine, lattice, positions, charges, bound, "single", cell)
    pick = np.random.default_rng(2).integers(0, lattice.shape, (300, 3))
    exact = definition(lattice.points(pick), positions, charges, bound, cell, field=True)
    assert relative_rms(values[tuple(pick.T)], exact[0]) < PAIRS[engine.name]["single"]
    field = sums.cutoff(engine, lattice, positions, charges, bound, "single", cell, True)
    assert max(relative_errors(field[(slice(None), *pick.T)], exact)) < FIELD[engine.name]["single"]
    np.testing.assert_array_equal(sums.cutoff(engine, lattice, positions, charges, bound, "single", cell), values)
    # moving the origin by lattice vectors changes nothing
    moved = Lattice(lattice.origin + 3 * cell.vectors[0] - cell.vectors[2], lattice.spacing, lattice.shape)
    again = sums.cutoff(engine, moved, positions, charges, bound, "single", cell)
    assert relative_rms(again, values) < 2 * PAIRS[engine.name]["single"]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("method", ["direct", "cutoff"])
def test_a_point_on_an_atom_has_the_potential_at_the_soft_core(engine, precision, method):
    lattice = Lattice(np.zeros(3), np.full(3, 0.5), (10, 10, 10))
    bound = interaction("coulomb") if method == "direct" else interaction("shifted_coulomb", cutoff=4.0)
    exact = definition(lattice.points(), *FEW_ATOMS, bound).reshape(lattice.shape)
    values = getattr(sums, method)(engine, lattice, *FEW_ATOMS, bound, precision)
    np.testing.assert_allclose(values, exact, rtol=2e-6, atol=2e-7 if engine.name == "cpu" else 1e-6)
    assert values[2, 3, 4] == pytest.approx(0.7 / 0.01, rel=0.01)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_atom_on_a_point_makes_no_field_there(engine, precision):
    lattice = Lattice(np.zeros(3), np.full(3, 0.5), (10, 10, 10))
    positions, charges = FEW_ATOMS
    bound = interaction("shifted_coulomb", cutoff=9.0)
    values = sums.cutoff(engine, lattice, positions, charges, bound, precision, field=True)
    expected = definition(lattice.points(), positions, charges, bound, field=True).reshape(4, 10, 10, 10)
    np.testing.assert_allclose(values, expected, rtol=2e-5, atol=2e-6)
    others = definition(lattice.points([[2, 3, 4]]), positions[1:], charges[1:], bound, field=True)
    np.testing.assert_allclose(values[1:, 2, 3, 4], others[1:, 0], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("cell", [None, *CELLS], ids=str)
@pytest.mark.parametrize("count", [1, 150, pytest.param(3000, marks=pytest.mark.nightly)])
def test_pairs_at_points_take_the_nearest_image(engine, cell, count):
    positions, charges = random_charges(count + 1, -60, 60)
    bound = interaction("coulomb")
    if cell is not None:
        bound = bound.truncated(0.4999 * np.linalg.norm(cell.reduced, axis=1).min())
    points = np.random.default_rng(7).uniform(-60, 60, (131, 3))  # more than two blocks
    points[0] = positions[0]
    d = points[:, None] - positions
    r2 = (d * d).sum(2)
    if cell is not None:
        d -= np.rint(cell.fractional(d)) @ cell.vectors
        for step in itertools.product(range(-2, 3), repeat=3):
            r2 = np.minimum(r2, ((d + np.array(step) @ cell.vectors) ** 2).sum(2))
    exact = (charges * bound(np.maximum(np.sqrt(r2), 0.01))).sum(1)
    nearest = np.empty(len(points))
    actual = sums.at_points(engine, points, positions, charges, bound, cell, nearest=nearest)
    np.testing.assert_allclose(actual, exact, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(nearest, np.sqrt(r2.min(1)), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("field", [False, True], ids=["potential", "field"])
def test_no_atoms_and_atoms_out_of_reach_give_a_map_of_zeros(engine, field):
    lattice = Lattice(np.zeros(3), np.ones(3), (3, 3, 3))
    nothing = np.zeros((0, 3)), np.zeros(0)
    far = np.full((2, 3), 1e3), np.ones(2)
    for values in (sums.direct(engine, lattice, *nothing, interaction("coulomb"), field=field),
                   sums.cutoff(engine, lattice, *nothing, interaction("shifted_coulomb"), field=field),
                   sums.cutoff(engine, lattice, *far, interaction("shifted_coulomb"), field=field)):
        assert values.shape == ((4, 3, 3, 3) if field else (3, 3, 3))
        assert not values.any()


def test_points_see_all_images_in_reach_in_long_thin_cells(engine):
    cell = Cell.from_parameters(10, 10, 1000)
    random = np.random.default_rng(6)
    positions, points = (random.random((count, 3)) @ cell.vectors for count in (200, 30))
    charges, bound = random.normal(size=200), interaction("shifted_coulomb", cutoff=11.0)
    exact = definition(points, positions, charges, bound, cell)
    closest = np.linalg.norm(cell.minimum_image((points[:, None] - positions).reshape(-1, 3)), axis=1).reshape(30, 200)
    for nearest in (None, np.empty(len(points))):
        actual = sums.at_points(engine, points, positions, charges, bound, cell, nearest=nearest)
        np.testing.assert_allclose(actual, exact, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(nearest, closest.min(1), rtol=1e-9)
    on_map = sums.cutoff(engine, Lattice(points[0], np.ones(3), (1, 1, 1)), positions, charges, bound, "double", cell)
    np.testing.assert_allclose(on_map[0, 0, 0], exact[0], rtol=1e-6)
