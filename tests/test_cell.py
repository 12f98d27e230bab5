"""Cells: parameters, wrapping, minimum images, images in a box."""

import itertools

import numpy as np
import pytest

from vmdpotential.errors import InputError
from vmdpotential.molecule.cell import Cell

CELLS = [(30, 40, 50, 90, 90, 90), (40, 40, 40, 60, 60, 90), (40, 50, 60, 75, 65, 110), (20, 90, 30, 45, 80, 60),
         (50, 50, 50, 70.5288, 109.4712, 70.5288)]


@pytest.mark.parametrize("parameters", CELLS)
def test_parameters_round_trip(parameters):
    cell = Cell.from_parameters(*parameters)
    assert cell.parameters == pytest.approx(parameters)
    assert cell.orthogonal == (parameters[3:] == (90, 90, 90))
    cos = np.cos(np.radians(parameters[3:]))
    volume = np.prod(parameters[:3]) * np.sqrt(1 - (cos**2).sum() + 2 * cos.prod())
    assert cell.volume == pytest.approx(volume)


@pytest.mark.parametrize("parameters", CELLS)
def test_minimum_image_is_the_nearest_of_all(parameters):
    cell = Cell.from_parameters(*parameters)
    d = np.random.default_rng(3).uniform(-200, 200, (300, 3))
    base = d - np.rint(cell.fractional(d)) @ cell.vectors
    shifts = np.array(list(itertools.product(range(-3, 4), repeat=3))) @ cell.vectors
    nearest = np.linalg.norm(base[:, None] + shifts, axis=2).min(1)
    image = cell.minimum_image(d)
    np.testing.assert_allclose(np.linalg.norm(image, axis=1), nearest, rtol=1e-12)
    steps = cell.fractional(d - image)
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-9)


@pytest.mark.parametrize("parameters", CELLS)
def test_wrap_moves_by_lattice_vectors_into_the_cell(parameters):
    cell = Cell.from_parameters(*parameters)
    points = np.random.default_rng(4).uniform(-300, 300, (200, 3))
    origin = np.array([-7.0, 3.0, 11.0])
    wrapped = cell.wrap(points, origin)
    fraction = cell.fractional(wrapped - origin)
    assert fraction.min() > -1e-12
    assert fraction.max() < 1 + 1e-12
    steps = cell.fractional(points - wrapped)
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-9)


@pytest.mark.parametrize("parameters", CELLS)
def test_images_in_box_are_all_and_each_once(parameters):
    cell = Cell.from_parameters(*parameters)
    atoms = np.random.default_rng(5).uniform(-100, 100, (12, 3))
    low, high = np.array([-20.0, -35, 5]), np.array([60.0, 30, 70])
    images, index = cell.images_in_box(atoms, low, high)
    expected = []
    for n, atom in enumerate(cell.wrap(atoms)):
        for step in itertools.product(range(-9, 10), repeat=3):
            image = atom + step @ cell.vectors
            if (image >= low).all() and (image <= high).all():
                expected.append((n, *np.round(image, 6)))
    assert sorted((int(n), *np.round(x, 6)) for n, x in zip(index, images, strict=True)) == sorted(expected)


@pytest.mark.parametrize("parameters", [(0, 10, 10), (10, -1, 10), (10, 10, np.nan), (10, 10, 10, 90, 90, 180),
                                        (10, 10, 10, 30, 30, 120)])
def test_impossible_cells_are_refused(parameters):
    with pytest.raises(InputError, match="cell"):
        Cell.from_parameters(*parameters)


def test_flat_vectors_are_refused():
    with pytest.raises(InputError, match="volume"):
        Cell(np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 0]]))
