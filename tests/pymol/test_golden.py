"""The golden case through PyMOL: values of the map and places of the ions, to the precision of PyMOL's numbers."""


import golden
import numpy as np
import pytest
from numpy.testing import assert_allclose

MAP = ", ".join(f"{key}={value}" for key, value in golden.VIEWER_OPTIONS.items())
IONS = ", ".join(f"{key}={value}" for key, value in golden.ION_OPTIONS.items())


@pytest.fixture
def box(cmd, tmp_path):
    """The case as PyMOL loads it: coordinates and cell of the PDB; charges come with the PSF."""
    paths = golden.write(tmp_path)
    cmd.load(str(paths["pdb"]), "box")
    return cmd, paths["psf"]


def values_at(cmd, name, points):
    """Return PyMOL's map at points, trilinearly between the nodes where PyMOL says that they are."""
    values = np.asarray(cmd.get_volume_field(name), float)
    low, high = np.array(cmd.get_extent(name))
    place = (points - low) / (high - low) * (np.array(values.shape) - 1)
    base = np.minimum(np.floor(place).astype(int), np.array(values.shape) - 2)
    result = np.zeros(len(points))
    for corner in np.ndindex(2, 2, 2):
        weight = np.where(corner, place - base, 1 - (place - base)).prod(axis=1)
        result += weight * values[tuple((base + corner).T)]
    return result


def test_map(box, do):
    cmd, psf = box
    assert "Error" not in do(f"potential_map box, golden, '{psf}', {MAP}")
    nodes = golden.lattice_points()
    expected = golden.potential(nodes)
    scale = np.abs(expected).max()
    assert_allclose(values_at(cmd, "golden", nodes), expected, atol=1e-4 * scale)
    atoms = golden.structure().positions[::2]
    low, high = np.array(cmd.get_extent("golden"))
    atoms = atoms[((atoms > low) & (atoms < high)).all(axis=1)]  # those at the rim are beyond the last nodes
    assert len(atoms) > 400
    expected = golden.interpolated(atoms)
    assert_allclose(values_at(cmd, "golden", atoms), expected, atol=1e-4 * np.abs(expected).max())


def test_ions(box, do):
    cmd, psf = box
    assert "Error" not in do(f"potential_ionize box, golden, '{psf}', {IONS}")
    actual = []
    cmd.iterate_state(1, "golden_ions", "found.append((rank, resn, x, y, z))", space={"found": actual})
    actual = [entry[1:] for entry in sorted(actual)]
    expected = golden.ions()
    assert len(expected) > 3
    assert [name for name, *_ in actual] == [name for name, _ in expected]
    assert_allclose([place for _, *place in actual], [place for _, place in expected], atol=1e-5)
