"""Cells: parameters, wrapping, minimum images, images in a box."""

import itertools

import numpy as np
import pytest
from messages import naming

from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.files.cellfile import boundary_text, parse_cell, with_cell
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure

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
    expected, steps = [], np.array(list(itertools.product(range(-9, 10), repeat=3))) @ cell.vectors
    for n, atom in enumerate(cell.wrap(atoms)):
        every = atom + steps
        inside = ((every >= low) & (every <= high)).all(1)
        expected += [(n, *image) for image in np.round(every[inside], 6)]
    assert sorted((int(n), *np.round(x, 6)) for n, x in zip(index, images, strict=True)) == sorted(expected)


@pytest.mark.parametrize("parameters", [(0, 10, 10), (10, -1, 10), (10, 10, np.nan), (10, 10, 10, 90, 90, 180),
                                        (10, 10, 10, 30, 30, 120)])
def test_impossible_cells_are_refused(parameters):
    with naming(InputError, "cell"):
        Cell.from_parameters(*parameters)


def test_flat_vectors_are_refused():
    with naming(InputError, "volume"):
        Cell(np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 0]]))


@pytest.mark.parametrize(
    "cell",
    [
        Cell.from_parameters(43, 43, 43, 90, 90, 90.00001),  # DCD, and MDAnalysis' single precision
        Cell.from_parameters(43, 43, 43, 90.0009, 89.9991, 90),
        Cell([[43, 0, 0], [-7.5e-6, 43, 0], [1e-5, 2e-5, 43]]),  # XTC, GRO
    ],
)
def test_a_cell_within_the_rounding_of_files_has_right_angles(cell):
    assert cell.orthogonal
    assert cell.parameters == (43, 43, 43, 90, 90, 90)
    lattice = Lattice.over_cell(cell, 1.0, np.zeros(3))
    assert lattice.shape == (43, 43, 43)  # divides the cell, as one of 45 x 44 x 44 points does not
    np.testing.assert_array_equal(lattice.spacing, 1.0)


def test_a_cell_of_other_angles_stays_as_it_is():
    assert Cell.from_parameters(43, 43, 43, 90, 90, 90.01).parameters[5] == pytest.approx(90.01)
    vectors = [[43, 0, 0], [1e-5, 43, 0], [0.5, 0, 43]]
    np.testing.assert_array_equal(Cell(vectors).vectors, vectors)


XSC = """# NAMD extended system configuration output file
#$LABELS step a_x a_y a_z b_x b_y b_z c_x c_y c_z o_x o_y o_z s_x s_y s_z s_u s_v s_w
500 60.5 0 0 0 61.25 0 0 -2.5 62 1 2 3 0 0 0 0 0 0
"""


@pytest.mark.parametrize(
    ("text", "vectors"),
    [
        ("60,61.5,62", np.diag([60, 61.5, 62])),
        (" 60 61.5  62 ", np.diag([60, 61.5, 62])),
        ("60,60,80,90,90,60", [[60, 0, 0], [30, 30 * 3**0.5, 0], [0, 0, 80]]),
    ],
)
def test_cells_as_users_give_them(text, vectors):
    np.testing.assert_allclose(parse_cell(text).vectors, vectors, atol=1e-12)


@pytest.mark.parametrize(
    ("content", "vectors"),
    [
        (XSC, [[60.5, 0, 0], [0, 61.25, 0], [0, -2.5, 62]]),
        (XSC.replace("-2.5 62", "0 0"), None),  # periodic in two directions only
        ("cellBasisVector1 60. 0. 0.\n cellbasisvector2  0 61. 0 ;# y\ncellBasisVector3 = 20 0 62.\n",
         [[60, 0, 0], [0, 61, 0], [20, 0, 62]]),
        ("no cell here\n", None),
        (XSC.split("500")[0], None),
    ],
)
def test_cells_of_namds_files(tmp_path, content, vectors):
    path = tmp_path / "box.xsc"
    path.write_text(content)
    if vectors is None:
        with naming(InputError, "box.xsc: "):
            parse_cell(str(path))
    else:
        np.testing.assert_allclose(parse_cell(str(path)).vectors, vectors)


@pytest.mark.parametrize("text", ["60", "60,60", "1,2,3,4", "60,60,x", "no/such.xsc"])
def test_what_is_no_cell_is_refused(text):
    with pytest.raises(ValueError, match=r"three lengths|give lengths"):
        parse_cell(text)
    with naming(InputError, "lengths"):
        parse_cell("60,-60,60")


def test_a_cell_given_replaces_that_of_the_file(caplog):
    structure = Structure(np.zeros((1, 3)), ["O"], ["HOH"], [1], [0], cell=Cell.from_parameters(10, 10, 10),
                          sources=("a.pdb",))
    assert with_cell(structure, None) is structure
    assert boundary_text(with_cell(structure, parse_cell("10,10,10.005")).cell) == (
        "periodic boundary (cell 10 x 10 x 10.005 A)")
    assert not caplog.records
    assert with_cell(structure, parse_cell("12,12,12")).cell.volume == pytest.approx(12**3)
    assert "a.pdb: its cell (10 x 10 x 10 A) is replaced by the one given (12 x 12 x 12 A)" in caplog.text
    assert boundary_text(None) == "open boundary"
    assert str(parse_cell("9,9,9,90,90,60")) == "9 x 9 x 9 A, angles 90 90 60"
