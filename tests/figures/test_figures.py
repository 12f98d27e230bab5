"""What figures leave out and add so that they can be read: ticks, shared axes, keys, contours around atoms."""

import warnings
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from drawn import atoms_of, axes, make, protein_like
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure

from vmdpotential.figures import atoms, layout, slices
from vmdpotential.figures import page as figures
from vmdpotential.figures.style import figure_style
from vmdpotential.grid.lattice import Provenance
from vmdpotential.grid.planes import Plane
from vmdpotential.molecule import elements


def compose(grid, *planes, profile="", **settings):
    panels = [figures.Panel(grid, Plane.parse(text)) for text in planes]
    return figures.compose_slices(panels, profiles=[("", grid)] if profile else [],
                                  profile_axis="xyz".index(profile or "z"),
                           **settings)


def shown(axis):
    """Return the ticks of an axis that lie within its limits."""
    low, high = axis.get_view_interval()
    return [x for x in axis.get_major_locator()() if low <= x <= high]


def place(page, n):
    ax = page.axes[n]
    ax.apply_aspect()
    return ax.get_window_extent(FigureCanvasAgg(page.figure).get_renderer())


@pytest.mark.parametrize("shape", [(16, 16, 161), (161, 16, 16), (17, 33, 9)])
def test_a_short_axis_has_ticks_too_and_long_pages_end(shape):
    page = compose(make(shape=shape, spacing=1.0, origin=(0, 0, 0)), "y=8", "x=8", "z=4")
    for ax in page.axes:
        assert len(shown(ax.xaxis)) >= 2
        assert len(shown(ax.yaxis)) >= 2
    width, height = page.figure.get_size_inches()
    assert height <= 1.65 * width


@pytest.mark.parametrize(("plane", "axis", "side"), [("x=5", "z", "y"), ("y=15", "z", "y"), ("y=15", "x", "x")])
def test_a_profile_shares_the_axis_of_its_slice(plane, axis, side):
    page = compose(make(), plane, profile=axis)
    top, bottom = (place(page, n) for n in (0, 1))
    slice_, curve = page.axes
    interval = f"get_{side}lim"
    assert getattr(slice_, interval)() == pytest.approx(getattr(curve, interval)())
    # the same place on the axis is at the same place on the page
    ends = ("y0", "y1") if side == "y" else ("x0", "x1")
    assert [getattr(top, end) for end in ends] == pytest.approx([getattr(bottom, end) for end in ends], abs=0.5)
    x, y = curve.lines[0].get_data()
    np.testing.assert_allclose(y if side == "y" else x, make().lattice.axes()["xyz".index(axis)])
    # and the page is used: what both cover is most of the width
    assert max(top.x1, bottom.x1) - min(top.x0, bottom.x0) > 0.75 * page.figure.bbox.width


def test_alike_panels_share_their_axes():
    grid = make()
    page = figures.compose_slices([figures.Panel(grid, Plane.parse("z=15"), name) for name in "ab"])
    assert [ax.get_ylabel() for ax in page.axes] == ["y (Å)", ""]
    assert [ax.get_xlabel() for ax in page.axes] == ["x (Å)", "x (Å)"]
    assert not page.axes[1].yaxis.get_tick_params()["labelleft"]
    different = compose(grid, "z=15", "x=5")
    assert all(ax.get_ylabel() for ax in different.axes)


def test_letters_of_a_row_are_at_one_height():
    grid = make()
    long, short = (figures.Panel(grid, Plane.parse("z=15"), name) for name in ("a name with 24 letters..", "b"))
    page = figures.compose_slices([long, short], width=70)
    first, second = (ax._left_title for ax in page.axes[:2])
    assert first.get_text().count("\n") == second.get_text().count("\n") == 2


@pytest.mark.parametrize(("limits", "few", "expected"), [
    ((-5, 5), False, [-5, -2.5, 0, 2.5, 5]), ((-5, 5), True, [-5, 0, 5]),
    ((0, 1.5), False, [0, 0.3, 0.6, 0.9, 1.2, 1.5]), ((-600, 0), True, [-600, -300, 0]),
    ((-2, 7), False, None), ((-1.234, 1.234), False, None)])
def test_ticks_of_a_colour_bar_include_its_ends(limits, few, expected):
    ticks = slices.bar_ticks(limits, few)
    assert ticks is None if expected is None else ticks == pytest.approx(expected)


def test_a_colour_bar_shows_its_range():
    page = compose(make(), "z=15", value_range=(-5.0, 5.0))
    assert page.figure.axes[-1].get_yticks() == pytest.approx([-5, -2.5, 0, 2.5, 5])


def test_labels_are_broken_between_words_not_between_a_number_and_its_unit():
    text = ("Electrostatic potential, water (Poisson-Boltzmann), 0.15 M, ion radius 2 A, dielectric 78.5, 2 inside "
            "(kT/e, T = 298.15 K)")
    for letters in range(20, 80):
        lines = layout.wrap(text, letters)
        assert " ".join(lines) == text
        assert max(map(len, lines)) <= max(letters, 19)
        for whole in ("0.15 M", "dielectric 78.5", "T = 298.15 K", "(Poisson-Boltzmann)"):
            assert any(whole in line for line in lines)


def test_sites_that_are_no_atoms_are_not_drawn():
    structure = protein_like()
    names = np.array(["N", "CA", "C", "O", "H", "M", "SG", "SOD"])  # the water's oxygen becomes its M site
    sites = replace(structure, atom_names=names, elements=np.where(names == "M", "", structure.elements))
    for shown, number in ((structure, 6), (sites, 5)):
        ax = axes()
        slices.draw_slice(ax, make(), Plane.parse("z=15"), structure=shown, slab=2, waters=True)
        assert len(atoms_of(ax)[0]) == number
    flags = elements.is_massless_site(np.array(["M", "MW", "OW", "LP1", "M", "CA"]),
                                      np.array([*["HOH"] * 3, "LIG", "LIG", "ALA"]))
    assert flags.tolist() == [True, True, False, True, False, False]


def test_a_key_of_elements_and_ions():
    structure = protein_like()
    structure = replace(structure, positions=structure.positions * [1, 1, 0] + [0, 0, 15])
    page = compose(make(), "z=15", drawn=slices.AtomsOnSlice(structure, waters=True))
    (key,) = page.figure.legends
    assert [text.get_text() for text in key.get_texts()] == ["C", "N", "O", "S", "Na⁺"]
    renderer = FigureCanvasAgg(page.figure).get_renderer()
    box = key.get_window_extent(renderer)
    assert box.y0 >= -0.5
    assert box.y1 < page.axes[0].get_tightbbox(renderer).y0 + 0.5
    assert not compose(make(), "z=15").figure.legends


def test_letters_that_a_font_lacks_are_of_another():
    with figure_style():
        matplotlib.rcParams["font.family"][0] = "cmr10"  # has no raised signs
        warnings.simplefilter("error")
        figure = Figure()
        figure.text(0.5, 0.5, "Na\u207a, Cl\u207b, \u00c5")
        FigureCanvasAgg(figure).draw()


def test_contours_leave_single_atoms_out():
    grid = make(lambda p: 4 * np.sin(p[..., 0] / 4), spacing=0.5, shape=(49, 49, 3), origin=(0, 0, 0))
    values = grid.values.copy()
    values[30, 20] = 40
    spiked = grid.with_values(values)
    for item in (grid, spiked):
        ax = axes()
        slices.draw_slice(ax, item, Plane.parse("z=0.5"), value_range=(-5, 5), contours=4)
        (contours,) = [artist for artist in ax.collections if isinstance(artist, ContourSet)]
        pieces = [piece for path in contours.get_paths() for piece in path.to_polygons(closed_only=False)]
        assert not any(np.ptp(piece, axis=0).max() < 2 for piece in pieces)
        assert sum(np.ptp(piece, axis=0).max() > 20 for piece in pieces) >= 4


def test_contours_are_labelled_and_marked_on_the_bar():
    structure = protein_like()
    page = compose(make(), "z=15", drawn=slices.AtomsOnSlice(structure), value_range=(-5, 5), contours=4)
    ax, bar = page.figure.axes
    (contours,) = [artist for artist in ax.collections if isinstance(artist, ContourSet)]
    shown = {level for level, path in zip(contours.levels, contours.get_paths(), strict=True) if len(path.vertices)}
    assert shown == {-4, -2, 0, 2}  # of 4 there are only small loops
    assert {float(text.get_text().replace("−", "-")) for text in contours.labelTexts} == shown
    marks = {line.get_ydata()[0]: line.get_linestyle() for line in bar.lines if np.ptp(line.get_ydata()) == 0}
    assert marks == {-4: "--", -2: "--", 0: "-", 2: "-", 4: "-"}
    assert set(bar.get_yticks()) == {*marks, -5, 5}
    # so many levels that numbers would overlap have lines only
    bar = compose(make(), "z=15", value_range=(-5, 5), contours=20).figure.axes[-1]
    assert bar.get_yticks() == pytest.approx([-5, -2.5, 0, 2.5, 5])
    assert len(bar.lines) >= 15


def test_a_bar_has_a_short_label_or_the_callers():
    water = Provenance(medium="water (Poisson-Boltzmann), 0.15 M, ion radius 2 A, dielectric 78.5, 2 inside",
                       medium_kind="water")
    grid = make(provenance=water)
    page = compose(grid, "z=15")
    assert page.figure.axes[-1].get_ylabel() == "kT/e"
    density = make(unit="e/A^3", provenance=Provenance(quantity="charge density"))
    assert compose(density, "z=15").figure.axes[-1].get_ylabel() == "Charge density (e/Å³)"
    error = make(provenance=Provenance(quantity="standard error of the electrostatic potential"))
    assert compose(error, "z=15").figure.axes[-1].get_ylabel().startswith("Standard error")
    assert place(page, 0).width > 0.7 * page.figure.bbox.width
    assert compose(grid, "z=15", label="phi, $kT/e").figure.axes[-1].get_ylabel() == r"phi, \$kT/e"
    assert compose(grid, profile="z", label="phi").axes[0].get_ylabel() == "phi"


def test_colours_of_elements_differ():
    """Distances are those of CIELAB (CIE 1976), of which 2.3 can just be seen; sodium and nitrogen once had 21."""
    codes = [*atoms._ELEMENT_COLOURS.values(), atoms._OTHER_COLOUR]
    rgb = np.array([tuple(bytes.fromhex(code[1:])) for code in codes]) / 255
    linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    xyz = linear @ np.array([[0.4124564, 0.2126729, 0.0193339], [0.3575761, 0.7151522, 0.1191920],
                             [0.1804375, 0.0721750, 0.9503041]]) / (0.95047, 1, 1.08883)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    lab = np.stack([116 * f[:, 1], 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1)
    apart = np.linalg.norm(lab[:, None] - lab, axis=2)[np.triu_indices(len(lab), 1)]
    assert apart.min() > 25
    structure = replace(protein_like(), positions=protein_like().positions * [1, 1, 0] + [0, 0, 15])
    _, drawn = atoms_of(compose(make(), "z=15", drawn=slices.AtomsOnSlice(structure)).axes[0])
    assert bytes.fromhex(atoms._ELEMENT_COLOURS["NA"][1:]) in [bytes(np.round(255 * c[:3]).astype(np.uint8).tolist())
                                                               for c in drawn]


def test_the_bar_points_where_values_lie_beyond():
    grid = make()
    values = grid.values - grid.values.min()
    for shown, ends in ((grid.with_values(values), "max"), (grid.with_values(-values), "min")):
        page = compose(shown, "z=15")
        assert 0 in page.ranges[0]
        bar = page.figure.axes[-1]
        assert bar._colorbar.extend in (ends, "neither")
    assert compose(grid, "z=15", value_range=(-1, 1)).figure.axes[-1]._colorbar.extend == "both"
    assert compose(grid, "z=15", value_range=(-100, 100)).figure.axes[-1]._colorbar.extend == "neither"
