"""Profiles: means over planes, of cells of every shape."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from drawn import axes, make, wave
from messages import naming

from vmdpotential.commands.slice import command
from vmdpotential.errors import UsageError
from vmdpotential.figures import slices
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.grid.means import mean_over_planes
from vmdpotential.maps import potential_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure


def test_profile_is_the_mean_over_planes():
    grid = make()
    for axis in range(3):
        ax = axes()
        slices.draw_profile(ax, [grid], axis)
        x, y = ax.lines[0].get_data()
        np.testing.assert_allclose(x, grid.lattice.axes()[axis])
        expected = [np.take(grid.values, n, axis).astype(float).mean() for n in range(grid.lattice.shape[axis])]
        np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-7)
        assert ax.get_xlabel() == f"{'xyz'[axis]} (Å)"
        assert ax.get_ylabel() == "Mean electrostatic potential (kT/e)"
    assert ax.get_legend() is None


#: Cells, and the axes along which planes repeat.
CELLS = {
    "hexagonal": (Cell.from_parameters(20, 20, 22, 90, 90, 120), "xyz"),
    "rhombic, of another sign": (Cell.from_parameters(21, 21, 19, 90, 90, 60), "xyz"),
    "truncated octahedron": (Cell.from_parameters(22, 22, 22, 109.4712206, 109.4712206, 109.4712206), "xyz"),
    "truncated octahedron, rounded": (Cell.from_parameters(22, 22, 22, 70.53, 109.47, 70.53), "xyz"),
    "triclinic": (Cell.from_parameters(20, 24, 22, 80, 75, 100), "z"),
    "monoclinic": (Cell.from_parameters(19, 21, 24, 90, 105, 90), "yz"),
    "sheared by a quarter": (Cell(np.array([[20.0, 0, 0], [0, 18, 0], [5, 4.5, 21]])), "xyz"),
    "turned by 45 degrees": (Cell(np.array([[15.0, 15, 0], [-15, 15, 0], [0, 0, 20]])), "xyz"),
    "axes exchanged": (Cell(np.array([[0, 0, 21.0], [18.0, 0, 0], [0, 24.0, 0]])), "xyz"),
    "left-handed": (Cell(np.array([[18.0, 0, 0], [4.0, 21, 0], [0, 0, -24]])), "yz"),
}
EVERY_PLANE = [(name, axis) for name, (_, along) in CELLS.items() for axis in along]


def waves(cell, axis):
    """Return a function with the periods of a cell, and its mean over planes across an axis as one of a coordinate."""
    reciprocal = 2 * np.pi * np.linalg.inv(cell.vectors).T
    numbers = np.array(list(itertools.product(range(-4, 5), repeat=3)))
    numbers = numbers[(numbers @ (81, 9, 1)) > 0]  # the others are complex conjugates
    flat = np.linalg.norm(np.delete(numbers @ reciprocal, axis, 1), axis=1) < 2e-3  # along the axis, to rounding
    rng = np.random.default_rng(3)
    others = numbers[~flat & (np.abs(numbers).max(1) <= 2)]
    numbers = np.concatenate([numbers[flat], rng.permutation(others)[:20]])
    k, phase = numbers @ reciprocal, rng.uniform(0, 6, len(numbers))
    along = k[: flat.sum(), axis], phase[: flat.sum()]
    assert len(along[0])
    return (lambda p: sum(np.cos(p @ vector + angle) for vector, angle in zip(k, phase, strict=True)),
            lambda x: sum(np.cos(x * size + angle) for size, angle in zip(*along, strict=True)))


def over(cell, function, spacing, **changes):
    """Return a map of a function over a cell, which is anywhere."""
    lattice = Lattice.over_cell(cell, spacing, (-3.3, 4.1, 7.7))
    made = Provenance(boundary="periodic", cell=tuple(cell.vectors.ravel().tolist()))
    return Grid(lattice, function(lattice.points()).reshape(lattice.shape), **{"provenance": made} | changes)


@pytest.mark.parametrize(("name", "axis"), EVERY_PLANE)
def test_profile_of_a_slanted_cell_is_the_mean_over_a_period(name, axis):
    cell, d = CELLS[name][0], "xyz".index(axis)
    function, mean = waves(cell, d)
    errors = []
    for spacing in (1.0, 0.5):
        grid = over(cell, function, spacing)
        x, result = mean_over_planes(grid, d)
        np.testing.assert_array_equal(x, grid.lattice.axes()[d])
        errors.append(np.abs(result - mean(x)).max() / np.abs(mean(x)).max())
    assert errors[0] < 0.12
    assert errors[1] < 0.02


def test_maps_know_their_cell_where_they_are_periodic():
    cell = CELLS["triclinic"][0]
    structure = Structure(np.array([[1.0, 2, 3]]), ["X"], ["ION"], [1], [0], charges=np.ones(1), cell=cell)
    for boundary, vectors in (("periodic", tuple(cell.vectors.ravel())), ("open", None)):
        grid = potential_map(structure, method="cutoff", boundary=boundary, spacing=3.0, field=True, engine="cpu")
        assert [item.provenance.cell for item in (grid, *grid.field)] == [vectors] * 4


def test_profile_where_the_plain_mean_is_right_or_all_that_is_known():
    right = over(Cell.from_parameters(20, 22, 24), waves(Cell.from_parameters(20, 22, 24), 0)[0], 1.0)
    unknown = over(CELLS["hexagonal"][0], wave, 1.0, provenance=Provenance(boundary="periodic"))
    for grid, axis in itertools.product((right, unknown), range(3)):
        mean = grid.values.mean(axis=tuple({0, 1, 2} - {axis}), dtype=float)
        np.testing.assert_array_equal(mean_over_planes(grid, axis)[1], mean)


TURNED = Cell(np.diag([18.0, 21.0, 24.0]) @ np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0])


@pytest.mark.parametrize(("cell", "axis", "hint"), [
    (CELLS["triclinic"][0], "x", "use profile=z"), (CELLS["monoclinic"][0], "x", "use profile=y or profile=z"),
    (TURNED, "z", "use a map of the rotated structure"),
])
def test_profile_across_planes_without_a_period(cell, axis, hint):
    with naming(UsageError, f"profile={axis}: ", hint) as caught:
        command(maps=[over(cell, wave, 2.0)], profile=axis)
    assert "\n" not in str(caught.value)
