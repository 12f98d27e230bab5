"""Directions from which pictures show a surface."""

import numpy as np
import pytest

from vmdpotential import errors
from vmdpotential.figures import surfaces
from vmdpotential.figures.directions import parse_view, principal_axes, view_along, view_of_part
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces import molecular_surface


@pytest.fixture(scope="module")
def row():
    """Return a row of three carbons along 3,0,1 with a fourth beside the middle, and their surface."""
    axis = np.array([3, 0, 1]) / np.sqrt(10)
    beside = np.array([-1, 0, 3]) / np.sqrt(10)
    positions = np.array([-4 * axis, 0 * axis, 4 * axis, 3 * beside])
    names = np.array(["C"] * 4)
    structure = Structure(positions, names, np.array(["UNK"] * 4), np.arange(1, 5), np.arange(4), elements=names)
    return axis, beside, molecular_surface(structure, atoms="all", spacing=0.5)


@pytest.mark.parametrize(("word", "right", "up"), [
    ("x", (0, 1, 0), (0, 0, 1)), ("-x", (0, -1, 0), (0, 0, 1)), ("y", (-1, 0, 0), (0, 0, 1)),
    ("-y", (1, 0, 0), (0, 0, 1)), ("z", (1, 0, 0), (0, 1, 0)), ("-z", (-1, 0, 0), (0, 1, 0)),
    ("2,0,0", (0, 1, 0), (0, 0, 1)), ("1,1,0", (-np.sqrt(0.5), np.sqrt(0.5), 0), (0, 0, 1))])
def test_pictures_are_turned_to_the_viewer(row, word, right, up):
    view = view_along(parse_view(word), row[2])
    assert view.right == pytest.approx(right)
    assert view.up == pytest.approx(up)


def test_the_chosen_direction_is_up_as_far_as_it_can_be(row):
    view = view_along("1,1,1", row[2], "x")
    assert view.up == pytest.approx(np.array([2, -1, -1]) / np.sqrt(6))
    assert view.towards == pytest.approx(np.ones(3) / np.sqrt(3))
    with pytest.raises(errors.UsageError) as raised:
        view_along("0,0,3", row[2], "-z")
    assert raised.value.parameter == "up"


def test_the_widest_side_is_seen_along_the_shortest_axis(row):
    axis, beside, surface = row
    axes = principal_axes(surface)
    assert np.linalg.det(axes) == pytest.approx(1)
    assert abs(axes[0] @ axis) > 0.99
    assert abs(axes[1] @ beside) > 0.99
    sizes = {word: surfaces.SurfacePanel.of_view(surface, surface.areas, word).extent
             for word in ("short", "-short", "middle", "long")}
    assert sizes["short"] == pytest.approx(sizes["-short"])
    assert sizes["short"][0] > sizes["short"][1]  # the longest side is horizontal
    assert np.prod(sizes["short"]) > np.prod(sizes["middle"]) > np.prod(sizes["long"])


def test_a_residue_is_turned_to_the_viewer(row):
    _, beside, surface = row
    view = view_of_part(np.arange(4) == 3, surface, "//A/4")
    assert view.towards @ beside > 0.95
    assert "//A/4" in view.title
    for atoms in (np.zeros(4, bool), np.ones(4, bool)):  # none, and all around
        with pytest.raises(errors.UsageError) as raised:
            view_of_part(atoms, surface, "name")
        assert raised.value.parameter == "facing"


@pytest.mark.parametrize("word", ["short", "z", "1,1,1"])
def test_a_molecule_is_drawn_where_its_surface_is(row, word):
    """The atoms' places in the picture relative to the middle of the surface, whose extent the panel has."""
    positions = 10 + np.array([[0, 0, 0], [1.4, 0, 0], [2.1, 1.2, 0.4]])
    names = np.array(["C"] * 3)
    molecule = Structure(positions, names, np.array(["UNK"] * 3), np.arange(1, 4), np.arange(3), elements=names)
    surface = molecular_surface(molecule, atoms="all", spacing=0.5)
    drawn = surfaces.figure(surface, surface.areas, [word], (-1, 1), "", structure=molecule)
    view = view_along(word, surface)
    flat = np.stack([view.right, view.up], 1)
    corners = surface.vertices @ flat
    expected = positions @ flat - (corners.min(0) + corners.max(0)) / 2
    (places,) = [collection.get_offsets() for collection in drawn.axes[0].collections
                 if len(collection.get_offsets()) == 3]
    np.testing.assert_allclose(places[np.lexsort(places.T)], expected[np.lexsort(expected.T)], atol=1e-9)
