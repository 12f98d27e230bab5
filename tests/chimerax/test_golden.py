"""The golden case: values at lattice points and atoms, and ions, as in every other viewer."""


import golden
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal


@pytest.fixture
def files(opened, tmp_path):
    paths = golden.write(tmp_path)
    return opened(paths["pdb"]), paths["psf"]


def keywords(options):
    return " ".join(f"{name} {value}" for name, value in options.items())


def test_map(files, do):
    model, psf = files
    volume = do(f'potential map #1 topology "{psf}" {keywords(golden.VIEWER_OPTIONS)}')
    nodes = golden.lattice_points()
    expected = golden.potential(nodes)
    close = {"rtol": 2e-5, "atol": 1e-5 * np.abs(expected).max()}
    index = np.rint((nodes - volume.data.origin) / volume.data.step).astype(int)
    assert_allclose(volume.data.full_matrix()[tuple(index.T[::-1])], expected, **close)
    # as ChimeraX looks a value up; the last plane of points is outside for it
    values, outside = volume.interpolated_values(nodes, out_of_bounds_list=True)
    assert set(outside) == set(np.flatnonzero((index == np.array(volume.data.size) - 1).any(1)))
    inside = np.setdiff1d(np.arange(len(nodes)), outside)
    assert len(inside) > 30
    assert_allclose(values[inside], expected[inside], **close)
    solute = model.atoms[:5].coords
    expected = golden.interpolated(solute)
    assert_allclose(volume.interpolated_values(solute), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_ions(files, do):
    model, psf = files
    new = do(f'potential ionize #1 topology "{psf}" {keywords(golden.ION_OPTIONS)}')
    expected = golden.ions()
    ions = new.atoms[new.num_atoms - len(expected):]
    assert_array_equal(ions.residues.names, [name for name, _ in expected])
    assert_allclose(ions.coords, [place for _, place in expected], atol=1e-3)
    charge = sum(atom.charge for atom in new.atoms)
    assert abs(charge) < 1e-4
    assert new.num_atoms == model.num_atoms - 2 * len(expected)


def test_orbital(session, do, tmp_path):
    golden.write(tmp_path)
    nuclei, volume = do(f'potential orbital "{tmp_path / "golden.molden"}" orbital 2')
    assert nuclei.num_atoms == 2
    levels = sorted(surface.level for surface in volume.surfaces)
    assert_allclose(levels, [-0.08, 0.08])
    values = volume.data.full_matrix()  # z, y, x: the node is between the nuclei
    assert_allclose(values, -values[::-1], atol=1e-4 * np.abs(values).max())
    # on the grid of the nuclei: the largest value is next to one of them
    at = np.array(np.unravel_index(np.argmax(values), values.shape))[::-1]
    place = volume.data.origin + at * volume.data.step
    assert np.linalg.norm(nuclei.atoms.coords - place, axis=1).min() < 0.3
