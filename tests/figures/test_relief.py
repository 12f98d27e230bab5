"""Hollows and edges of surfaces in pictures, compared with spheres."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from vmdpotential.figures.relief import SurfaceRelief
from vmdpotential.figures.surfaces import draw_view, figure
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces import molecular_surface


def spheres(positions, radii):
    """Return the surface of the union of spheres."""
    names = np.array(["C"] * len(radii))
    structure = Structure(np.array(positions, float), names, names, np.arange(1, len(radii) + 1),
                          np.arange(len(radii)), elements=names)
    return molecular_surface(structure, atoms="all", radii=np.array(radii, float), kind="accessible", probe=0,
                             spacing=0.4)


def relief_of(surface):
    return SurfaceRelief(surface.vertices, surface.normals, surface.triangles)


def lengths(segments):
    return np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1)


def test_the_edge_of_a_sphere_is_its_circle_and_it_has_no_hollows():
    relief = relief_of(spheres([[1, 2, 3]], [5]))
    segments, outer = relief.edges()
    assert outer.all()
    assert lengths(segments).sum() == pytest.approx(2 * np.pi * 5, rel=0.05)
    assert np.hypot(*(segments.reshape(-1, 2) - [1, 2]).T) == pytest.approx(5, abs=0.05)
    light, away = relief.light(), relief.normals[:, 2]
    assert light[away > 0.6].min() > 0.97
    assert light[away > 0.3].min() > 0.9  # steep, where a pixel has a range of depths


@pytest.mark.parametrize(("height", "seen"), [(14, True), (-14, False)])
def test_a_part_in_front_has_an_edge_and_one_behind_has_none(height, seen):
    segments, outer = relief_of(spheres([[0, 0, 0], [2, 0, height]], [8, 2])).edges()
    assert lengths(segments[outer]).sum() == pytest.approx(2 * np.pi * 8, rel=0.05)
    inner = segments[~outer]
    assert lengths(inner).sum() == pytest.approx(2 * np.pi * 2 * seen, rel=0.15)
    assert np.hypot(*(inner.reshape(-1, 2) - [2, 0]).T) == pytest.approx(2, abs=0.05)


def test_hollows_are_darker():
    """The middle of a ring of spheres gets less light than their tops, and than the middle without the ring."""
    angles = np.arange(6) * np.pi / 3
    ring = [(5 * np.cos(a), 5 * np.sin(a), 0.0) for a in angles]
    whole, alone = relief_of(spheres([(0, 0, -3), *ring], [3] * 7)), relief_of(spheres([(0, 0, -3)], [3]))
    middle, tops = (np.hypot(*whole.places[:, :2].T) < 1) & (whole.places[:, 2] > -1), whole.places[:, 2] > 2.8
    light = whole.light()
    assert light[middle].max() < 0.85
    assert light[tops].min() > 0.97
    assert alone.light()[alone.places[:, 2] > -0.2].min() > 0.97


def test_pictures_have_lines_and_dark_hollows():
    surface = spheres([[0, 0, 0], [2, 0, 14]], [8, 2])
    ax = Figure().add_axes((0, 0, 1, 1))
    draw_view(ax, surface, np.zeros(len(surface.vertices)), "z", (-1, 1))
    lines, = (item for item in ax.collections if isinstance(item, LineCollection))
    assert len(set(lines.get_linewidths())) == 2
    assert {width > 0.5 for width in lines.get_linewidths()} == {True, False}


def test_the_boundary_of_a_part_is_drawn_where_it_is_seen():
    """Half of a sphere's meridian faces the viewer, and nothing of one that another sphere covers is seen."""
    relief = relief_of(spheres([[0, 0, 0]], [5]))
    segments = relief.boundary(relief.places[:, 0] > 0)
    assert lengths(segments).sum() == pytest.approx(2 * 5, rel=0.1)
    assert np.abs(segments[..., 0]).max() < 0.5
    covered = relief_of(spheres([[0, 0, 0], [0, 0, 12]], [3, 5]))
    assert not len(covered.boundary((covered.places[:, 0] > 0) & (covered.places[:, 2] < 5)))


def test_the_name_of_a_patch_is_where_the_viewer_sees_it():
    """A belt around a ball has no side and its middle is inside; a cap is named only from its own side, and where no
    other ball hides it.
    """
    made = spheres([(0, 0, 0), (0, 14, 0)], [10, 3])
    z = made.vertices[:, 2]
    names = np.select([(abs(z) < 2) & (made.atoms == 0), (z > 7) & (made.atoms == 0)], ["-1", "+1"], "")
    drawn = figure(made, z, ["x", "-x", "-y", "z", "-z"], (-10, 10), "", patches=names)
    shown = [{text.get_text(): text.xy for text in ax.texts if "Å" not in text.get_text()} for ax in drawn.axes]
    middle = made.vertices[:, 1:].min(0) + np.ptp(made.vertices[:, 1:], axis=0) / 2
    for at in (shown[0]["−1"], shown[1]["−1"]):
        assert abs(at[1] + middle[1]) < 1.5  # in the belt
    assert list(shown[2]) == list(shown[0]) == ["−1", "+1"]
    assert list(shown[3]) == ["+1"]  # which hides the belt but for its edge
    assert not shown[4]
    hidden = spheres([(0, 0, 0), (0, -14, 0)], [5, 6])
    assert not draw_view(Figure().add_subplot(), hidden, np.zeros(len(hidden.vertices)), "-y", (-1, 1),
                         np.where(hidden.atoms == 0, "+1", "")).texts


def test_names_of_patches_do_not_overlap():
    made = spheres([(0, 0, 0)], [10])
    x, y, z = made.vertices.T
    names = np.array([f"+{n}" for n in range(6)])[np.clip(np.arctan2(y, x) // (np.pi / 3), -3, 2).astype(int) + 3]
    ax = draw_view(Figure(figsize=(1.5, 1.5)).add_subplot(), made, z, "z", (-10, 10), np.where(z > -1, names, ""))
    places = np.array([text.xy for text in ax.texts])
    assert len(places) == 6
    assert min(np.linalg.norm(a - b) for n, a in enumerate(places) for b in places[:n]) > 2 * 0.05 * 20
