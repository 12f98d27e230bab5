"""Cube files by a second reader, and of other programs."""

from __future__ import annotations

import numpy as np
import pytest
from map_files import BOHR, COUNTING, FAR, cube_text, make

from vmdpotential.grid.lattice import Provenance
from vmdpotential.io.maps import read_map, write_map


def plain_cube(path):
    """A second reader of cube files, by the letter of their description."""
    with open(path) as stream:
        comments = [stream.readline() for _ in range(2)]
        words = stream.read().split()
    atoms, origin = int(words[0]), np.array(words[1:4], float)
    rows = [words[4 + 4 * n : 8 + 4 * n] for n in range(3)]
    shape = [int(row[0]) for row in rows]
    steps = np.array([row[1:] for row in rows], float)
    data = words[16 + 5 * atoms :]
    assert len(data) == np.prod(shape)
    return comments, atoms, origin * BOHR, steps * BOHR, np.array(data, np.float32).reshape(shape)


def test_the_far_corner_is_right(tmp_path):
    grid = make(**FAR)
    write_map(grid, tmp_path / "map.cube")
    _, _, origin, steps, _ = plain_cube(tmp_path / "map.cube")
    last = origin + (np.array(grid.lattice.shape) - 1) @ steps
    np.testing.assert_allclose(last, grid.lattice.last, rtol=0, atol=1e-6)


def test_cube_by_a_second_reader(tmp_path):
    grid = make()
    write_map(grid, tmp_path / "map.cube")
    comments, atoms, origin, steps, values = plain_cube(tmp_path / "map.cube")
    assert atoms == 1  # VMD takes a file without atoms for one of orbitals
    # the buffers of VMD's reader
    assert len(comments[0]) < 255
    assert len(comments[1]) < 1023
    np.testing.assert_allclose(origin, grid.lattice.origin, atol=1e-6)
    np.testing.assert_allclose(steps, np.diag(grid.lattice.spacing), atol=1e-6)
    np.testing.assert_allclose(values, grid.values, rtol=6e-6)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (cube_text(), BOHR),
        (cube_text(extra=" 1"), BOHR),  # NVAL
        (cube_text(natoms="-1", atom="8 8.0 0 0 0\n 1 27\n"), BOHR),  # one orbital
        (cube_text(counts=(-2, -2, -2)), 1.0),  # angstrom
        (cube_text(natoms="0", atom=""), BOHR),
    ],
)
def test_dialects_of_cube(tmp_path, text, unit):
    (tmp_path / "map.cube").write_text(text)
    grid = read_map(tmp_path / "map.cube")
    np.testing.assert_array_equal(grid.values, COUNTING)
    np.testing.assert_allclose(grid.lattice.origin, np.array([1, 2, 3]) * unit)
    np.testing.assert_allclose(grid.lattice.spacing, 0.5 * unit)


def test_cube_comments_stay_short_whatever_the_names(tmp_path):
    names = tuple(f"/some/very/long/folder/{'n' * 100}/{i}.pdb" for i in range(20))
    grid = make(provenance=Provenance(method="direct", inputs=names))
    write_map(grid, tmp_path / "map.cube")
    comments = plain_cube(tmp_path / "map.cube")[0]
    assert len(comments[1]) < 1023
    back = read_map(tmp_path / "map.cube")
    assert back.provenance.inputs == tuple(f"{i}.pdb" for i in range(20))
    assert (back.provenance.method, back.temperature) == ("direct", 298.15)
