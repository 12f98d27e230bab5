"""Slices: the values on planes against closed forms, and what is drawn of them."""

import matplotlib
import numpy as np
import pytest
from drawn import atoms_of, axes, linear, make, protein_like, wave
from helpers import refused
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.contour import ContourSet
from matplotlib.image import AxesImage
from messages import naming

from vmdpotential.errors import UsageError
from vmdpotential.figures import page as figures
from vmdpotential.figures import slices
from vmdpotential.figures.colours import robust_range
from vmdpotential.figures.contours import contour_levels
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.grid.planes import Plane, plane_outline, smooth_values_on, values_on
from vmdpotential.molecule.cell import Cell

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
    with refused("plane"):
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
    edge = plane_outline(grid.lattice, plane)
    np.testing.assert_allclose((left, bottom), edge.min(0), atol=1e-9)


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


def test_planes_outside_the_map_are_named():
    grid = make()
    with refused("plane", "z=90"):
        values_on(grid, Plane.parse("z=90"))
    with naming(UsageError, "(1, 1, 0) through 99 99 0 A"):
        values_on(grid, Plane.through((99, 99, 0), (1, 1, 0)))
    values_on(grid, Plane.parse("z=27.5"))  # the last layer is in


# --- scales --------------------------------------------------------------------------------------


def test_range_is_symmetric_round_and_blind_to_spikes():
    values = np.random.default_rng(0).normal(size=10_000)
    values[:20] = 1e6
    low, high = robust_range([values, np.array([np.nan])])
    assert low == -high
    assert high == pytest.approx(np.quantile(np.abs(values), 0.98), rel=0.5)
    assert high in (2.5, 3)
    assert robust_range([np.zeros(5)]) == (-1, 1)
    assert robust_range([np.array([1000.0, -1000])]) == (-1000, 1000)
    # of one sign, as of a standard deviation, or of hardly another one: no half of the colours is wasted
    assert robust_range([np.full(3, 1e-12)]) == pytest.approx((0, 1e-12))
    assert robust_range([np.abs(values)])[0] == 0
    assert robust_range([np.append(-np.abs(values[20:]), 0.01)])[1] == 0


# --- drawing into an Axes ------------------------------------------------------------------------


def test_labels_say_unit_and_temperature():
    assert slices.quantity_label(make()) == "Electrostatic potential (kT/e, T = 298.15 K)"
    assert slices.quantity_label(make(unit="V")) == "Electrostatic potential (V)"
    for unit, expected in (("A^-3/2", "Å⁻³ᐟ²"), ("e/A^3", "e/Å³"), ("bohr^-3/2", "bohr⁻³ᐟ²"), ("g/cm^3", "g/cm³"),
                           ("V/A", "V/Å"), ("kcal/mol", "kcal/mol")):
        assert slices.unit_label(make(unit=unit)) == expected
    assert slices.quantity_label(make(unit="", provenance=Provenance(quantity=""))) == "Value"


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
    assert contours.levels.tolist() == contour_levels((-4, 4), 3).tolist()
    for text in contours.labelTexts:
        assert float(text.get_text().replace("−", "-")) in contours.levels
    assert len(contours.labelTexts) >= 1
    assert len(ax.figure.axes) == 1  # nothing was made but artists


def test_colours_are_those_of_a_figure():
    """Pixels between the points are smoother than the map, and would have a narrower range."""
    noise = np.random.default_rng(3).normal(size=25 * 31 * 41) ** 5
    grid, plane = make(lambda _: noise), Plane.parse("z=15")
    image = slices.draw_slice(axes(), grid, plane)
    assert image.get_clim() == figures.compose_slices([figures.Panel(grid, plane)]).ranges[0]


@pytest.mark.parametrize("shape", [(1, 5, 5), (5, 1, 5), (5, 5, 1), (1, 1, 1), (2, 2, 2)])
@pytest.mark.parametrize("plane", ["x", "y", "z"])
def test_thin_maps(shape, plane):
    grid = make(shape=shape)
    position = grid.lattice.origin["xyz".index(plane)]
    page = figures.compose_slices([figures.Panel(grid, Plane.parse(f"{plane}={position}"))], contours=3)
    image = page.axes[0].images[0]
    assert np.isfinite(image.get_array()).all()


def test_constant_map():
    page = figures.compose_slices([figures.Panel(make(lambda p: 0 * p[..., 0]), Plane.parse("z=15"))], contours=5)
    assert page.ranges == ((-1, 1),)


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


def test_colours_have_white_at_zero_whatever_the_range():
    for low, high in ((-8, 8), (-2, 8), (-8, 1), (0, 5), (-5, 0)):
        cmap = slices.diverging_colours((low, high))
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
    np.testing.assert_allclose(slices.diverging_colours((-2, 8))(0.0), slices.diverging_colours((-8, 8))(6 / 16),
                               atol=0.02)
