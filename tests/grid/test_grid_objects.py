"""Maps as objects: sums, values at points, and the objects of GridDataFormats and xarray."""

from dataclasses import replace

import gridData
import numpy as np
import pytest
import xarray
from helpers import water

import vmdpotential as vp
from vmdpotential.grid.lattice import Provenance
from vmdpotential.grid.solvation import Solvation
from vmdpotential.surfaces import molecular_surface


@pytest.fixture
def grid():
    return vp.potential_map(water(14), spacing=2.0, padding=2.0, boundary="open", unit="kT/e", engine="cpu",
        medium="explicit")


def test_arithmetic(grid):
    values = grid.values
    np.testing.assert_allclose((grid + grid).values, 2 * values, rtol=1e-6)
    np.testing.assert_array_equal((grid - grid).values, 0)
    np.testing.assert_allclose((1 - 2 * grid / 4 + 0.5).values, 1.5 - values / 2, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal((-grid).values, -values)
    volts = vp.potential_map(water(14), lattice=grid.lattice, boundary="open", unit="V", engine="cpu",
        medium="explicit")
    assert np.abs((grid - volts).values).max() < 1e-3 * np.abs(values).max()  # in the first one's unit
    assert (grid - volts).unit == "kT/e"
    with pytest.raises(TypeError):
        grid + "1"
    with pytest.raises(vp.InputError):
        grid - vp.Grid(grid.lattice, values, "e/A3")


def test_values(grid):
    points = grid.lattice.points().reshape(-1, 3)
    np.testing.assert_allclose(grid(points), grid.values.reshape(-1), rtol=1e-5)
    assert np.isnan(grid([1e3, 0, 0]))
    np.testing.assert_array_equal(np.asarray(grid), grid.values)


@pytest.mark.parametrize("package", ["griddata", "xarray"])
def test_there_and_back(grid, package):
    theirs = getattr(grid, f"to_{package}")()
    assert isinstance(theirs, {"griddata": gridData.Grid, "xarray": xarray.DataArray}[package])
    back = getattr(vp.Grid, f"from_{package}")(theirs)
    np.testing.assert_allclose(back.values, grid.values)
    np.testing.assert_allclose(back.lattice.origin, grid.lattice.origin)
    np.testing.assert_allclose(back.lattice.spacing, grid.lattice.spacing)
    assert (back.unit, back.temperature) == (grid.unit, grid.temperature)
    assert back.provenance.method == grid.provenance.method


def test_what_the_others_say_of_points(grid):
    point = grid.lattice.origin + 2.7 * grid.lattice.spacing
    array = grid.to_xarray().interp(x=point[0], y=point[1], z=point[2])
    assert float(array) == pytest.approx(float(grid(point)), rel=1e-5)


def test_uneven_coordinates_are_refused(grid):
    array = grid.to_xarray()
    with pytest.raises(vp.InputError):
        vp.Grid.from_xarray(array.isel(x=[0, 1, 3]))


def test_a_solvation_energy_belongs_to_the_map_it_was_computed_with(grid):
    solvated = replace(grid, solvation=Solvation(np.full(6, -40.0), 0.1))
    window = solvated.window((0, 0, 0), np.array(grid.lattice.shape) - 1)
    for other in (2 * solvated, solvated / 2, -solvated, solvated + 1, solvated - grid, solvated + solvated, window):
        assert other.solvation is None


@pytest.mark.parametrize("angles", [(90, 90, 90), (80, 95, 100)])
def test_a_periodic_map_is_continued_by_its_images(angles, tmp_path):
    """Waves of the cell; also for a map in a file, and on a molecular surface around the corner of the cell."""
    cell = vp.Cell.from_parameters(12, 14, 16, *angles)
    inverse = np.linalg.inv(cell.vectors)

    def wave(points):
        return np.cos(2 * np.pi * points @ inverse).sum(-1)

    lattice = vp.Lattice.over_cell(cell, 0.25, (3.0, -2.0, 1.0))
    made = vp.Grid(lattice, wave(lattice.points()).reshape(lattice.shape), "V",
                   provenance=Provenance(boundary="periodic", cell=tuple(cell.vectors.ravel().tolist())))
    positions = np.array([lattice.origin - 7.0, lattice.last + 3.0])
    exact = 1e-5 if cell.orthogonal else 0.03
    vp.write_map(made, tmp_path / "wave.mrc")
    for grid in (made, vp.open_map(tmp_path / "wave.mrc")):
        wider = grid.covering(positions, 2.0)
        assert (wider.lattice.origin <= positions[0] - 2).all()
        assert (wider.lattice.last >= positions[1] + 2).all()
        np.testing.assert_allclose(wider.values.ravel(), wave(wider.lattice.points()), atol=exact)
        assert grid.covering(lattice.points()[:1]) is grid
        molecule = water(6)
        surface = molecular_surface(replace(molecule, positions=molecule.positions + lattice.origin), atoms="all")
        assert np.isnan(grid.sample(surface.vertices)).any()
        np.testing.assert_allclose(surface.sample(grid), wave(surface.vertices), atol=0.03)
    part = made.window((0, 0, 0), (8, 8, 8))
    unknown = replace(made, provenance=replace(made.provenance, boundary="open"))
    for grid in (part, unknown):  # an image is not known, or there is none
        assert grid.covering(positions) is grid
