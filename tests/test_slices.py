"""Slices: the values on planes against closed forms, and what stands on the figure."""

from __future__ import annotations

import itertools
import json
import re
import zlib
from importlib import resources

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from PIL import Image

from vmdpotential.commands.slice import command
from vmdpotential.errors import OutputError, UsageError
from vmdpotential.figures import page as figures
from vmdpotential.figures import slices
from vmdpotential.frontend import cli
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.grid.means import mean_over_planes
from vmdpotential.grid.planes import Plane, middle, outline, smooth_values_on, values_on
from vmdpotential.io import read_structure
from vmdpotential.io.maps import read_map, write_map
from vmdpotential.maps import potential_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import coulomb_constant


def linear(p):
    return 2 * p[..., 0] - 3 * p[..., 1] + 0.5 * p[..., 2] + 4


def wave(p):
    return 5 * np.sin(p[..., 0] / 4) * np.cos(p[..., 1] / 5) + np.sin(p[..., 2] / 3)


def make(function=wave, shape=(25, 31, 41), spacing=(1.0, 0.75, 0.5), origin=(-3, 4, 7.5), **changes):
    lattice = Lattice(origin, spacing, shape)
    settings = {"unit": "kT/e", "temperature": 298.15} | changes
    return Grid(lattice, function(lattice.points()).reshape(shape).astype(np.float32), **settings)


def protein_like():
    """Eight atoms: a chain of C, N, O in the plane z = 15, waters, a hydrogen, an ion above it."""
    names = ["N", "CA", "C", "O", "H", "OW", "SG", "SOD"]
    elements = ["N", "C", "C", "O", "H", "O", "S", "Na"]
    residues = ["ALA"] * 5 + ["HOH", "CYS", "SOD"]
    positions = [[2, 10, 15], [3.4, 10, 15], [4.6, 10.8, 15.2], [5.8, 10.8, 15], [2, 9, 15], [10, 15, 15],
                 [12, 20, 15.5], [8, 8, 18]]
    return Structure(
        positions=np.array(positions, float), atom_names=np.array(names), residue_names=np.array(residues),
        residue_ids=np.arange(8), residue_index=np.array([0, 0, 0, 0, 0, 1, 2, 3]), elements=np.array(elements))


def axes(width=4, height=3):
    return Figure(figsize=(width, height)).add_axes((0.1, 0.1, 0.8, 0.8))


# --- planes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "axis", "position", "label"),
    [("z=12.5", 2, 12.5, "z = 12.5 Å"), ("x=-3", 0, -3, "x = −3 Å"), (" Y = 1e1 A ", 1, 10, "y = 10 Å")],
)
def test_parse(text, axis, position, label):
    plane = Plane.parse(text)
    assert (plane.axis, plane.point[axis], plane.label) == (axis, position, label)


@pytest.mark.parametrize("text", ["q=3", "z", "z=", "z=abc", "z=nan", "z=inf", "12", "", "z=1,2"])
def test_parse_refuses(text):
    with pytest.raises(UsageError, match="write an axis and a position"):
        Plane.parse(text)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_axis_plane_through_nodes_has_the_values_of_the_map(axis):
    grid = make()
    index = 7
    plane = Plane.across(axis, float(grid.lattice.axes()[axis][index]))
    values, (left, right, bottom, top) = values_on(grid, plane)
    across, up = (d for d in range(3) if d != axis)
    np.testing.assert_allclose(values, np.take(grid.values, index, axis).T, rtol=1e-6)
    low, high = grid.lattice.origin, grid.lattice.last
    assert (left, right, bottom, top) == pytest.approx((low[across], high[across], low[up], high[up]))
    smooth, extent = smooth_values_on(grid, plane, 4)
    np.testing.assert_allclose(smooth[::4, ::4], values, rtol=1e-6, atol=1e-6)  # nodes keep their values
    assert extent == (left, right, bottom, top)


@pytest.mark.parametrize(
    ("point", "normal"),
    [((9, 15, 17), (0, 0, 1)), ((9.3, 15, 17), (1, 0, 0)), ((9, 15, 17), (1, 1, 0)), ((9, 15, 17), (1, 2, 3)),
     ((5, 20, 12), (-1, 0.2, 0.4)), ((9, 15, 17), (0, 0.001, 1))],
)
def test_any_plane_of_a_linear_field_is_exact(point, normal):
    grid = make(linear)
    plane = Plane.through(point, normal)
    values, (left, right, bottom, top) = values_on(grid, plane, 2)
    s, t = np.meshgrid(np.linspace(left, right, values.shape[1]), np.linspace(bottom, top, values.shape[0]))
    positions = plane.positions(s, t)
    np.testing.assert_allclose((positions - point) @ np.array(normal), 0, atol=1e-12)  # they lie on the plane
    inside = np.isfinite(values)
    assert inside.mean() > 0.3
    np.testing.assert_allclose(values[inside], linear(positions)[inside], atol=2e-5)
    # and nothing that is inside the map is left out
    really = ((positions >= grid.lattice.origin - 1e-9) & (positions <= grid.lattice.last + 1e-9)).all(-1)
    np.testing.assert_array_equal(inside, really)


@pytest.mark.parametrize("normal", [(0, 0, 1), (1, 1, 0), (1, 2, 3)])
def test_smooth_values_follow_a_wave(normal):
    grid = make(wave)
    plane = Plane.through((9.2, 15.1, 17.3), normal)
    values, (left, right, bottom, top) = smooth_values_on(grid, plane)
    s, t = np.meshgrid(np.linspace(left, right, values.shape[1]), np.linspace(bottom, top, values.shape[0]))
    error = values - wave(plane.positions(s, t))
    assert np.nanmax(np.abs(error)) < 0.08  # of an amplitude of 6, at a spacing of 1/25 of the wave
    edge = outline(grid.lattice, plane)
    np.testing.assert_allclose((left, bottom), edge.min(0), atol=1e-9)


def test_smooth_values_do_not_overshoot_beside_a_spike():
    values = np.full((9, 9, 3), -2.0)
    values[4, 4, 1] = 5000
    grid = Grid(Lattice((0, 0, 0), 1, (9, 9, 3)), values)
    smooth = smooth_values_on(grid, Plane.parse("z=1"), 8)[0]
    assert smooth.min() == pytest.approx(-2, abs=1e-6)
    assert smooth.max() == pytest.approx(5000, rel=1e-6)


def test_in_plane_axes_are_right_handed_and_z_is_up():
    for normal in ((1, 1, 0), (1, 2, 3), (-1, 0.5, 0.1)):
        plane = Plane.through((0, 0, 0), normal)
        np.testing.assert_allclose(np.cross(plane.right, plane.up), plane.normal, atol=1e-12)
        assert plane.up[2] > 0
        assert abs(plane.right[2]) < 1e-12
    plane = Plane.through((1, 2, 3), (1, 1, 0))
    assert plane.axis_label(plane.up) == "z (Å)"
    assert plane.axis_label(plane.right) == "along (−0.71, 0.71, 0) (Å)"
    np.testing.assert_allclose(plane.coordinates((1, 2, 10)), (0, 10, 0), atol=1e-12)
    np.testing.assert_allclose(plane.coordinates((2, 3, 3)), (0, 3, np.sqrt(2)), atol=1e-12)
    assert Plane.through((1, 2, 3), (0.5, 0.5, 0)).label == "normal (1, 1, 0)"
    assert Plane.through((1, 2, 3), (0, 0, -7)).label == "z = 3 Å"


@pytest.mark.parametrize("normal", [(0, 0, 0), (np.nan, 0, 1), (1, 2)])
def test_normal_without_direction(normal):
    with pytest.raises(UsageError, match="normal="):
        Plane.through((0, 0, 0), normal)


def test_planes_outside_the_map_are_named():
    grid = make()
    with pytest.raises(UsageError, match=r"plane=z=90: misses the map, which covers z from 7\.5 to 27\.5 A"):
        values_on(grid, Plane.parse("z=90"))
    with pytest.raises(UsageError, match=r"normal \(1, 1, 0\) through 99 99 0 A misses"):
        values_on(grid, Plane.through((99, 99, 0), (1, 1, 0)))
    values_on(grid, Plane.parse("z=27.5"))  # the last layer is in


# --- scales --------------------------------------------------------------------------------------


def test_range_is_symmetric_round_and_blind_to_spikes():
    values = np.random.default_rng(0).normal(size=10_000)
    values[:20] = 1e6
    low, high = slices.robust_range([values, np.array([np.nan])])
    assert low == -high
    assert high == pytest.approx(np.quantile(np.abs(values), 0.98), rel=0.5)
    assert high in (2.5, 3)
    assert slices.robust_range([np.zeros(5)]) == (-1, 1)
    assert slices.robust_range([np.array([1000.0, -1000])]) == (-1000, 1000)
    # of one sign, as of a standard deviation, or of hardly another one: no half of the colours is wasted
    assert slices.robust_range([np.full(3, 1e-12)]) == pytest.approx((0, 1e-12))
    assert slices.robust_range([np.abs(values)])[0] == 0
    assert slices.robust_range([np.append(-np.abs(values[20:]), 0.01)])[1] == 0


def test_colours_have_white_at_zero_whatever_the_range():
    for low, high in ((-8, 8), (-2, 8), (-8, 1), (0, 5), (-5, 0)):
        cmap = slices.colours((low, high))
        norm = matplotlib.colors.Normalize(low, high)
        red, green, blue, _ = cmap(norm(0.0))
        assert min(red, green, blue) > 0.93
        if low < 0:
            red, green, blue, _ = cmap(norm(low))
            assert red > blue  # negative is red
        if high > 0:
            red, green, blue, _ = cmap(norm(high))
            assert blue > red
    # the same distance from 0 has the same strength
    np.testing.assert_allclose(slices.colours((-2, 8))(0.0), slices.colours((-8, 8))(6 / 16), atol=0.02)


def test_levels_are_round_and_inside():
    assert slices.levels((-8, 8), 7).tolist() == [-6, -4, -2, 0, 2, 4, 6]
    assert slices.levels((-500, 500), 4).tolist() == [-250, 0, 250] or len(slices.levels((-500, 500), 4)) >= 3
    for number in (1, 3, 5, 10, 20):
        found = slices.levels((-3, 17), number)
        assert 1 <= len(found) <= number + 2
        assert ((found > -3) & (found < 17)).all()


# --- drawing into an Axes ------------------------------------------------------------------------


def test_draw_slice():
    grid, ax = make(), axes()
    image = slices.draw_slice(ax, grid, Plane.parse("z=15"), value_range=(-4, 4), contours=3)
    assert isinstance(image, AxesImage)
    assert image.axes is ax
    assert image.get_clim() == (-4, 4)
    assert image.origin == "lower"
    assert ax.get_xlim() == pytest.approx((-3, 21))
    assert ax.get_ylim() == pytest.approx((4, 26.5))
    # a pixel's centre, not its corner, is where its value is
    left, right, bottom, top = image.get_extent()
    rows, columns = image.get_array().shape
    assert left + (right - left) / columns / 2 == pytest.approx(-3)
    assert top - (top - bottom) / rows / 2 == pytest.approx(26.5)
    assert image.get_array()[0, 0] == pytest.approx(float(wave(np.array([-3, 4, 15.0]))), abs=1e-4)
    assert ax.get_aspect() == 1
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x (Å)", "y (Å)")
    (contours,) = [artist for artist in ax.collections if isinstance(artist, ContourSet)]
    assert contours.levels.tolist() == slices.levels((-4, 4), 3).tolist()
    for text in contours.labelTexts:
        assert float(text.get_text().replace("−", "-")) in contours.levels
    assert len(contours.labelTexts) >= 1
    assert len(ax.figure.axes) == 1  # nothing was made but artists


def test_colours_are_those_of_a_figure():
    """Pixels between the points are smoother than the map, and would have a narrower range."""
    noise = np.random.default_rng(3).normal(size=25 * 31 * 41) ** 5
    grid, plane = make(lambda _: noise), Plane.parse("z=15")
    image = slices.draw_slice(axes(), grid, plane)
    assert image.get_clim() == figures.compose([figures.Panel(grid, plane)]).value_range


def test_oblique_slice_is_blank_outside_the_map():
    ax = axes()
    image = slices.draw_slice(ax, make(), Plane.through((9, 15, 17), (1, 2, 3)))
    assert 0.1 < image.get_array().mask.mean() < 0.7
    assert image.get_cmap()(np.ma.masked_all(1))[0, 3] == 0  # transparent


@pytest.mark.parametrize("shape", [(1, 5, 5), (5, 1, 5), (5, 5, 1), (1, 1, 1), (2, 2, 2)])
@pytest.mark.parametrize("plane", ["x", "y", "z"])
def test_thin_maps(shape, plane):
    grid = make(shape=shape)
    position = grid.lattice.origin["xyz".index(plane)]
    page = figures.compose([figures.Panel(grid, Plane.parse(f"{plane}={position}"))], contours=3)
    image = page.axes[0].images[0]
    assert np.isfinite(image.get_array()).all()


def test_constant_map():
    page = figures.compose([figures.Panel(make(lambda p: 0 * p[..., 0]), Plane.parse("z=15"))], contours=5)
    assert page.value_range == (-1, 1)


def test_no_line_of_zero_where_all_is_zero():
    grid = make(lambda p: np.maximum(0, 10 - 2 * np.abs(p[..., 0] - 9)) * np.where(p[..., 1] > 15, 1, -1))
    ax = axes()
    slices.draw_slice(ax, grid, Plane.parse("z=15"), value_range=(-5, 5), contours=3)
    (contours,) = [artist for artist in ax.collections if isinstance(artist, ContourSet)]
    zero = contours.get_paths()[list(contours.levels).index(0)].vertices
    # the field changes sign at y = 15 for 4 < x < 14; elsewhere it is 0 and has no line
    assert zero[:, 0].min() > 2.5
    assert zero[:, 0].max() < 15.5
    assert np.ptp(zero[:, 0]) > 8


def atoms_of(ax):
    (atoms,) = [artist for artist in ax.collections if isinstance(artist, EllipseCollection)]
    return atoms.get_offsets(), atoms.get_facecolors()


def test_atoms_in_the_slab_are_drawn_where_they_are():
    ax = axes()
    slices.draw_slice(ax, make(), Plane.parse("z=15"), structure=protein_like(), slab=2)
    offsets, colours = atoms_of(ax)
    # N, C, C, O and S; not the hydrogen, not the water, not the ion 3 A above
    assert sorted(map(tuple, np.round(offsets, 3).tolist())) == [
        (2, 10), (3.4, 10), (4.6, 10.8), (5.8, 10.8), (12, 20)]
    blue = colours[np.flatnonzero((offsets == [2, 10]).all(1))[0]]
    assert blue[2] > 0.9  # nitrogen
    (bonds,) = [artist for artist in ax.collections if isinstance(artist, LineCollection)
                and not isinstance(artist, ContourSet)]
    assert len(bonds.get_segments()) == 3
    assert ax.get_xlim() == pytest.approx((-3, 21))  # atoms do not change what is shown


def test_waters_and_thicker_slabs():
    for waters, slab, number in ((True, 2, 6), (False, 7, 6), (True, 7, 7), (False, 0.01, 3)):
        ax = axes()
        slices.draw_slice(ax, make(), Plane.parse("z=15"), structure=protein_like(), slab=slab, waters=waters)
        assert len(atoms_of(ax)[0]) == number
    ax = axes()
    slices.draw_slice(ax, make(), Plane.parse("z=25"), structure=protein_like(), slab=1)
    assert not any(isinstance(artist, EllipseCollection) for artist in ax.collections)


def test_images_of_atoms_on_periodic_maps_only():
    from dataclasses import replace

    structure = replace(protein_like(), cell=Cell.from_parameters(10, 50, 50))
    for boundary, number in (("periodic", 12), ("open", 5)):
        grid = make(provenance=Provenance(boundary=boundary))
        ax = axes()
        slices.draw_slice(ax, grid, Plane.parse("z=15"), structure=structure, slab=2)
        points = atoms_of(ax)[0]
        x = structure.positions[[0, 1, 2, 3, 6], 0]
        images = sum(((x + 10 * n >= -3) & (x + 10 * n <= 21)).sum() for n in range(-3, 4))
        assert len(points) == (images if boundary == "periodic" else number)


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
        assert ax.get_ylabel() == "Mean electrostatic potential (kT/e, T = 298.15 K)"
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
    """Return a map of a function over a cell, which lies anywhere."""
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
        x, found = mean_over_planes(grid, d)
        np.testing.assert_array_equal(x, grid.lattice.axes()[d])
        errors.append(np.abs(found - mean(x)).max() / np.abs(mean(x)).max())
    assert errors[0] < 0.12
    assert errors[1] < 0.02


def mean_potential(x, along, charges, period, volume):
    """Return the mean over planes of the potential, e/A, of charges, their images and a background: parabolas."""
    u = (x[:, None] - along) / period % 1
    return 2 * np.pi * period**2 / volume * (u * u - u + 1 / 6) @ charges


@pytest.mark.parametrize(("name", "axis", "period"), [
    ("hexagonal", "x", 10), ("hexagonal", "y", 20 * np.sqrt(3) / 2), ("hexagonal", "z", 22),
    ("truncated octahedron", "x", 22 / 3), ("truncated octahedron", "y", 22 * np.sqrt(2) / 3),
    ("truncated octahedron", "z", 22 * np.sqrt(2 / 3)),
])
def test_profile_of_charges(tmp_path, name, axis, period):
    """Through a file, with points near atoms: their noise falls with the spacing, and nothing else is left."""
    cell, d, rng = CELLS[name][0], "xyz".index(axis), np.random.default_rng(2)
    charges = rng.choice([-1.0, 1.0], 300)
    places = rng.random((300, 3)) @ cell.vectors
    structure = Structure(
        places, ["X"] * 300, ["ION"] * 300, np.arange(300), np.arange(300), charges=charges, cell=cell)
    errors = []
    for spacing in (0.8, 0.4):
        path = tmp_path / f"{spacing}.npz"
        write_map(potential_map(structure, method="pme", unit="V", spacing=spacing, engine="cpu"), path)
        x, found = mean_over_planes(read_map(path), d)
        exact = coulomb_constant("V") * mean_potential(x, places[:, d], charges, period, cell.volume)
        errors.append(np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2)))
    assert errors[1] < 0.08
    assert errors[1] < 0.7 * errors[0]


def test_maps_know_their_cell_where_they_are_periodic():
    cell = CELLS["triclinic"][0]
    structure = Structure(np.array([[1.0, 2, 3]]), ["X"], ["ION"], [1], [0], charges=np.ones(1), cell=cell)
    for boundary, vectors in (("periodic", tuple(cell.vectors.ravel())), ("open", None)):
        grid = potential_map(structure, method="cutoff", boundary=boundary, spacing=3.0, field=True, engine="cpu")
        assert [one.provenance.cell for one in (grid, *grid.field)] == [vectors] * 4


def test_profile_where_the_plain_mean_is_right_or_all_that_is_known():
    right = over(Cell.from_parameters(20, 22, 24), waves(Cell.from_parameters(20, 22, 24), 0)[0], 1.0)
    unknown = over(CELLS["hexagonal"][0], wave, 1.0, provenance=Provenance(boundary="periodic"))
    for grid, axis in itertools.product((right, unknown), range(3)):
        mean = grid.values.mean(axis=tuple({0, 1, 2} - {axis}), dtype=float)
        np.testing.assert_array_equal(mean_over_planes(grid, axis)[1], mean)


TURNED = Cell(np.diag([18.0, 21.0, 24.0]) @ np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0])


@pytest.mark.parametrize(("cell", "axis", "cure"), [
    (CELLS["triclinic"][0], "x", "use profile=z"), (CELLS["monoclinic"][0], "x", "use profile=y or profile=z"),
    (TURNED, "z", "use a map of the structure turned"),
])
def test_profile_across_planes_without_a_period(cell, axis, cure):
    with pytest.raises(UsageError, match=f"profile={axis}: planes across {axis} have no period .*; {cure}") as caught:
        command(maps=[over(cell, wave, 2.0)], profile=axis)
    assert "\n" not in str(caught.value)


def test_labels_say_unit_and_temperature():
    assert slices.quantity_label(make()) == "Electrostatic potential (kT/e, T = 298.15 K)"
    assert slices.quantity_label(make(unit="V")) == "Electrostatic potential (V)"
    assert slices.quantity_label(make(unit="", provenance=Provenance(quantity=""))) == "Value"


# --- figures -------------------------------------------------------------------------------------

EVERY_LAYOUT = {
    "one": (["z=15"], [], False, 89),
    "one flat": (["y=15"], [], False, 89),
    "two": (["z=15", "x=5"], [], False, 89),
    "three wide": (["z=15", "x=5", "y=20"], [(1, 2, 3)], False, 183),
    "five": (["z=15", "x=5", "y=20", "z=9"], [(1, 1, 0)], False, 183),
    "with profile": (["z=15"], [(1, 1, 0)], True, 183),
    "profile": ([], [], True, 89),
    "profile whose ticks come and go": ([], [], True, 91),
    "narrow": (["z=15"], [], False, 40),
    "narrow pair": (["z=15", "y=15"], [], False, 60),
    "narrow profile": ([], [], True, 40),
}


def page_of(name, **settings):
    planes, normals, profile, width = EVERY_LAYOUT[name]
    grid = make()
    chosen = [Plane.parse(text) for text in planes] + [Plane.through((9, 15, 17), n) for n in normals]
    return figures.compose(
        [figures.Panel(grid, plane) for plane in chosen], profiles=[grid] if profile else [], width=width,
        structure=protein_like(), contours=4, **settings)


@pytest.mark.parametrize("name", EVERY_LAYOUT)
def test_nothing_is_cut_and_nothing_overlaps(name):
    page = page_of(name)
    with figures.style():
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        renderer = FigureCanvasAgg(page.figure).get_renderer()
        whole = page.figure.bbox
        boxes = [ax.get_tightbbox(renderer) for ax in page.figure.axes]
        scales = []
        for ax in page.axes:
            inner = ax.get_window_extent(renderer)
            scales.append(inner.width / np.ptp(ax.get_xlim()))
    for box in boxes:
        assert box.x0 > -1
        assert box.y0 > -1
        assert box.x1 < whole.width + 1
        assert box.y1 < whole.height + 1
    for n, one in enumerate(boxes):
        for other in boxes[:n]:
            assert one.x1 < other.x0 + 1 or other.x1 < one.x0 + 1 or one.y1 < other.y0 + 1 or other.y1 < one.y0 + 1
    # the width is used: at most 2 mm are left on either side, and all slices have the same scale
    assert min(box.x0 for box in boxes) < 2 / 25.4 * page.figure.dpi
    number = len(EVERY_LAYOUT[name][0]) + len(EVERY_LAYOUT[name][1])
    assert np.ptp(scales[:number]) < 1e-3 * scales[0] if number else True
    assert page.figure.get_figwidth() * 25.4 == pytest.approx(EVERY_LAYOUT[name][3])


def test_names_of_maps_are_drawn_as_they_are(tmp_path):
    grid, plane = make(), Plane.parse("z=15")
    names = [r"$\frac{a}$_x%", "a$b$c_{d}^2"]
    page = figures.compose([figures.Panel(grid, plane, name) for name in names], profiles=[grid, grid], names=names)
    figures.save(page.figure, tmp_path / "names.svg")
    text = (tmp_path / "names.svg").read_text()
    assert all(text.count(f">{name}<") == 2 for name in names)  # title and legend


def test_a_profile_is_as_wide_as_the_widest_map():
    small, large = make(shape=(5, 5, 5)), make()
    panels = [figures.Panel(grid, Plane.through(grid.lattice.origin + 1, (0, 0, 1))) for grid in (small, large)]
    for order in (panels, panels[::-1]):
        page = figures.compose(order, profiles=[large])
        widths = [ax.get_position().width for ax in page.axes]
        assert widths[-1] == pytest.approx(max(widths))


def test_panels_share_one_scale_and_one_colour_bar():
    page = page_of("three wide")
    assert len(page.axes) == 4
    assert len(page.figure.axes) == 5  # and the colour bar
    assert {ax.images[0].get_clim() for ax in page.axes} == {page.value_range}
    assert [ax.get_title(loc="left") for ax in page.axes] == ["a", "b", "c", "d"]
    assert [ax.get_title() for ax in page.axes] == ["z = 15 Å", "x = 5 Å", "y = 20 Å", "normal (1, 2, 3)"]
    assert page.figure.axes[-1].get_xlabel() == "Electrostatic potential (kT/e, T = 298.15 K)"


def test_one_panel_has_no_letter():
    page = page_of("one")
    assert page.axes[0].get_title(loc="left") == ""
    assert "kT/e, T = 298.15 K" in page.figure.axes[-1].get_ylabel()


def test_range_of_a_figure():
    assert page_of("two", value_range=(-1, 3)).value_range == (-1, 3)
    for bad in ((3, 3), (3, -3), (0, np.nan)):
        with pytest.raises(UsageError, match="range="):
            page_of("two", value_range=bad)


def test_print_sizes_of_text_and_lines():
    page = page_of("two")
    for ax in page.figure.axes:
        for text in (ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels()):
            assert 6 <= text.get_fontsize() <= 8
        assert all(0.25 <= spine.get_linewidth() <= 1 for spine in ax.spines.values() if spine.get_visible())


def test_settings_of_the_session_stay_and_do_not_matter(tmp_path):
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "image.cmap": "jet", "svg.fonttype": "path"}):
        page = page_of("one")
        figures.save(page.figure, tmp_path / "a.svg")
        assert matplotlib.rcParams["font.size"] == 30
    figures.save(page_of("one").figure, tmp_path / "b.svg")
    assert dict(matplotlib.rcParams) == before
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("width", [89, 183, 120.5])
def test_png_has_the_size_and_resolution_asked_for(tmp_path, width):
    page = figures.compose([figures.Panel(make(), Plane.parse("z=15"))], width=width)
    figures.save(page.figure, tmp_path / "f.png", dpi=300, title="a title")
    with Image.open(tmp_path / "f.png") as image:
        assert image.width == pytest.approx(width / 25.4 * 300, abs=1)
        assert image.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        assert image.info["Software"].startswith("vmdpotential ")
        assert image.info["Title"] == "a title"
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(int)
    assert ((pixels[:, 0] - pixels[:, 2]) > 60).any()  # red
    assert ((pixels[:, 2] - pixels[:, 0]) > 60).any()  # blue


def test_svg_has_text_as_text(tmp_path):
    figures.save(page_of("three wide").figure, tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text()
    for word in ("x (Å)", "z = 15 Å", "normal (1, 2, 3)", "Electrostatic potential (kT/e, T = 298.15 K)"):
        assert f">{word}</text>" in text
    width = float(re.search(r'width="([\d.]+)pt"', text).group(1))
    assert width / 72 * 25.4 == pytest.approx(183, abs=0.01)


def test_pdf_embeds_truetype_and_has_its_size(tmp_path):
    figures.save(page_of("two").figure, tmp_path / "f.pdf")
    raw = (tmp_path / "f.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", raw)
    assert float(box.group(1)) / 72 * 25.4 == pytest.approx(89, abs=0.01)
    streams = b"".join(
        zlib.decompress(part) for part in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", raw, re.DOTALL)
        if part[:1] == b"x")
    assert b"/FontFile2" in raw + streams  # 42: TrueType, which journals take
    assert b"/Type3" not in raw + streams


def test_a_figure_that_exists_or_cannot_be_written(tmp_path):
    page = page_of("one")
    path = tmp_path / "f.png"
    path.write_text("precious")
    with pytest.raises(UsageError, match="exists; use force"):
        figures.save(page.figure, path)
    assert path.read_text() == "precious"
    figures.save(page.figure, path, dpi=100, force=True)
    assert path.read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(OutputError, match="does not exist"):
        figures.save(page.figure, tmp_path / "none" / "f.png")


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def map_file(tmp_path):
    write_map(make(), tmp_path / "my map.dx")
    return tmp_path / "my map.dx"


def test_command_writes_and_reports(map_file, tmp_path):
    report = command(
        maps=str(map_file), plane=["z=15", "x=5"], normal="1,1,0", point="9,15,17", range="-5,5", contours="4",
        profile="z", width="double", dpi="150", output=str(tmp_path / "f.png"))
    assert (tmp_path / "f.png").is_file()
    data = json.loads(json.dumps(report.data, allow_nan=False))
    assert data["range"] == [-5, 5]
    assert data["unit"] == "kT/e"
    assert data["width_mm"] == 183
    assert [panel["plane"] for panel in data["panels"]] == ["z = 15 Å", "x = 5 Å", "normal (1, 1, 0)"]
    values = values_on(make(), Plane.parse("z=15"))[0]
    assert data["panels"][0]["minimum"] == pytest.approx(values.min(), rel=1e-5)
    assert data["panels"][0]["within_range"] == pytest.approx((abs(values) <= 5).mean(), abs=1e-3)
    assert data["panels"][2]["point"] == [9, 15, 17]
    text = "\n".join(report.lines)
    for word in ("f.png: 183 x ", "a: z = 15 Å", "normal (1, 1, 0), through 9 15 17 A", "colours: -5 to 5 kT/e",
                 "along z"):
        assert word in text
    assert len(report.objects["figure"].axes) == 5


def test_structure_file_and_topology(map_file):
    folder = resources.files("openmmtools") / "data" / "dhfr"
    whole = read_structure(str(folder / "JAC.inpcrd"), str(folder / "JAC.prmtop"))
    structure = whole.take(np.arange(2489))
    low, high = structure.positions.min(0), structure.positions.max(0)
    shape = tuple(((high - low) // 2).astype(int) + 2)
    grid = make(origin=low, spacing=(2, 2, 2), shape=shape)
    z = float(structure.positions[:, 2].mean())
    report = command(
        maps=grid, plane=f"z={z}", structure=str(folder / "JAC.inpcrd"), topology=folder / "JAC.prmtop", slab=4)
    heavy = np.array([name[0] != "H" for name in structure.atom_names])
    near = heavy & (np.abs(structure.positions[:, 2] - z) <= 2)
    points = atoms_of(report.objects["figure"].axes[0])[0]
    np.testing.assert_allclose(
        sorted(map(tuple, points)), sorted(map(tuple, structure.positions[near][:, :2])), atol=1e-6)


def test_default_is_the_middle_and_no_file(map_file):
    report = command(maps=[map_file])
    grid = make()
    assert report.data["panels"][0]["point"][2] == middle(grid.lattice).point[2] == 17.5
    assert report.data["figure"] is None
    assert report.data["range"][0] == -report.data["range"][1]
    assert isinstance(report.objects["figure"], Figure)


def test_objects_instead_of_files():
    grid = make()
    report = command(maps=grid, plane=[Plane.parse("z=15")], structure=protein_like())
    assert len(atoms_of(report.objects["figure"].axes[0])[0]) == 5
    report = command(maps=[grid, grid], plane="z=15")
    assert [ax.get_title() for ax in report.objects["figure"].axes[:2]] == ["map 1\nz = 15 Å", "map 2\nz = 15 Å"]


def test_profile_alone_and_legend(map_file):
    report = command(maps=[map_file, map_file], profile="x")
    (ax,) = report.objects["figure"].axes
    assert len(ax.lines) == 3  # two curves and zero
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["my map", "my map"]
    assert report.data["panels"] == []


def test_shell(map_file, tmp_path, capsys):
    out = tmp_path / "fig 1.svg"
    assert cli.main(["slice", str(map_file), "--plane", "z=15", "--range", "-3,3", "-o", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["range"] == [-3, 3]
    assert "z = 15 Å" in out.read_text()
    assert cli.main(["slice", str(map_file), "--plane", "z=15", "-o", str(out)]) == 2
    error = capsys.readouterr().err
    assert error == f"vmdpotential: {out}: exists; use --force to replace it\n"
    assert cli.main(["slice", str(map_file), "--plane", "z=15", "-o", str(out), "--force"]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"plane": "z=99"}, "misses the map, which covers z"),
        ({"plane": "w=1"}, "write an axis"),
        ({"normal": "0,0,0"}, "three numbers, not all 0"),
        ({"normal": "1,0"}, "three numbers"),
        ({"point": "1,2,3"}, "give normal too"),
        ({"point": "99,99,99", "normal": "1,1,0"}, "misses the map"),
        ({"range": "5,-5"}, "the first value must be below"),
        ({"range": "5"}, "two numbers"),
        ({"range": "a,b"}, "two numbers"),
        ({"contours": "-1"}, "must be at least 0"),
        ({"width": "wide"}, "say single"),
        ({"width": "5"}, "say single"),
        ({"dpi": "10"}, "must be at least 50"),
        ({"slab": "0"}, "must be above 0"),
        ({"profile": "w"}, "choose one of x, y, z"),
        ({"maps": []}, "a map file is needed"),
    ],
)
def test_wrong_usage(map_file, options, message):
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        command(**{"maps": [map_file], **options})
    assert caught.value.parameter == next(iter(options))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": "f.jpg"}, "f.jpg: the suffix is of no figure format; choose one of .png"),
        ({"maps": ["none.dx"]}, "none.dx: there is no such file"),
    ],
)
def test_wrong_files(map_file, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        command(**{"maps": [map_file], **options})


def test_maps_that_cannot_share_a_scale():
    with pytest.raises(UsageError, match=r"different units \(kT/e and V\)"):
        command(maps=[make(), make(unit="V")], plane="z=15")
    with pytest.raises(UsageError, match="different temperatures"):
        command(maps=[make(), make(temperature=310.0)], plane="z=15")
    with pytest.raises(UsageError, match=r"different units \(none stated and V\)"):
        command(maps=[make(unit=""), make(unit="V")], profile="z")
