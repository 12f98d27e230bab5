"""The electric field as part of a map: units, files, the command's option."""


import numpy as np
import pytest
from helpers import charges_at
from messages import naming
from scipy import constants
from scipy.spatial import cKDTree

from vmdpotential import memory
from vmdpotential.errors import MemoryPlanError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io import maps, read_map
from vmdpotential.io.files import output
from vmdpotential.io.maps.field import field_paths, put_field
from vmdpotential.maps import potential_map
from vmdpotential.molecule.cell import Cell

VOLT = constants.e / (4 * np.pi * constants.epsilon_0) * 1e10  # V A / e


def write_field(components, path):
    """Write a field as the command `map`."""
    paths = field_paths(path, components[0].lattice)
    with output.writing_files(paths) as places:
        put_field(components, places)
    return paths



DIPOLE = charges_at([[0, 0, 0.5], [0, 0, -0.5]], [1, -1])


def test_field_is_in_volt_per_angstrom_whatever_the_unit_of_the_potential():
    grid = potential_map(DIPOLE, unit="kT/e", temperature=310, dielectric=4, padding=3, field=True, precision="double",
        medium="explicit")
    points = grid.lattice.points()
    expected = np.zeros((3, len(points)))
    for z, q in ((0.5, 1.0), (-0.5, -1.0)):
        d = (points - [0, 0, z]).T
        r = np.linalg.norm(d, axis=0)
        expected += np.where(r < 0.01, 0, q * d / np.maximum(r, 0.01) ** 3)
    for axis, component, values in zip("xyz", grid.field, VOLT / 4 * expected, strict=True):
        np.testing.assert_allclose(component.values.ravel(), values, rtol=1e-5, atol=1e-5)
        assert (component.unit, component.dielectric) == ("V/A", 4)
        assert component.provenance.quantity == f"electric field along {axis}"
        assert component.provenance.method == grid.provenance.method
    np.testing.assert_array_equal(grid.values, potential_map(
        DIPOLE, unit="kT/e", temperature=310, dielectric=4, padding=3, precision="double", medium="explicit").values)
    assert potential_map(DIPOLE, padding=1, medium="explicit").field is None
    assert grid.with_values(grid.values).field is None


@pytest.mark.slow
@pytest.mark.parametrize("method", ["cutoff", "pme", "msm"])
@pytest.mark.parametrize("boundary", ["open", "periodic"])
def test_every_method_has_the_field_of_its_potential(method, boundary):
    rng = np.random.default_rng(0)
    charges = rng.normal(size=80)
    structure = charges_at(rng.uniform(0, 16, (80, 3)), charges - charges.mean(), Cell.from_parameters(16, 17, 18))
    middle, h = np.array([8.13, 8.29, 8.41]), 0.02
    lattice = Lattice(middle - h, h, (3, 3, 3))  # central differences in a cube so small that the map is linear there
    tolerance = 1e-4 if method == "msm" else 1e-5  # which holds for the field, too
    grid = potential_map(structure, method=method, boundary=boundary, unit="V", tolerance=tolerance, lattice=lattice,
                         precision="double", field=True)
    slopes = np.array([edge[1, 1, 1] for edge in np.gradient(grid.values.astype(float), h)])
    result = np.array([component.values[1, 1, 1] for component in grid.field])
    np.testing.assert_allclose(result, -slopes, rtol=0, atol=2e-3 * np.abs(slopes).max())


def test_errors_of_potential_and_field_are_kept_in_their_files(tmp_path):
    """Four of them: of all points and of those away from charges."""
    rng = np.random.default_rng(3)
    structure = charges_at(rng.uniform(0, 12, (60, 3)), np.tile([0.5, -0.5], 30))
    grid = potential_map(structure, method="pme", tolerance=1e-3, spacing=1, padding=5, field=True, engine="cpu")
    made = grid.provenance
    errors = [made.error, made.error_away, made.error_field, made.error_field_away]
    assert all(0 < error <= 1e-3 for error in errors)
    assert len(set(errors)) == 4
    maps.write_map(grid, tmp_path / "v.dx")
    kept = read_map(tmp_path / "v.dx").provenance
    assert [kept.error, kept.error_away, kept.error_field, kept.error_field_away] == pytest.approx(errors, rel=1e-8)
    for path in write_field(grid.field, tmp_path / "e.dx"):
        kept = read_map(path).provenance
        assert [kept.error, kept.error_away] == pytest.approx(errors[2:], rel=1e-8)
        assert kept.error_field is kept.error_field_away is None
    # they are what they say
    exact = potential_map(structure, method="direct", precision="double", lattice=grid.lattice, field=True,
                          engine="cpu")
    assert exact.provenance.error is exact.provenance.error_field is None
    away = cKDTree(structure.positions).query(grid.lattice.points())[0].reshape(grid.lattice.shape) > 2
    actual, expected = (np.stack([part.values for part in made.field]) for made in (grid, exact))
    for where, stated in ((np.ones_like(away), errors[2]), (away, errors[3])):
        true = np.sqrt(np.mean((actual - expected)[:, where] ** 2) / np.mean(expected[:, where] ** 2))
        assert true == pytest.approx(stated, rel=0.5)


def test_a_field_counts_in_the_plan_of_memory(monkeypatch):
    monkeypatch.setattr(memory, "limit", lambda **_: 10**6)
    potential_map(DIPOLE, padding=10, spacing=0.5, medium="explicit")
    with pytest.raises(MemoryPlanError):
        potential_map(DIPOLE, padding=10, spacing=0.5, field=True, medium="explicit")


@pytest.mark.parametrize("suffix", [".dx", ".mrc"])
def test_scalar_formats_make_three_files(tmp_path, suffix):
    grid = potential_map(DIPOLE, padding=2, field=True, medium="explicit")
    paths = write_field(grid.field, tmp_path / f"a.field{suffix}")
    assert [path.name for path in paths] == [f"a.field_{axis}{suffix}" for axis in "xyz"]
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    for path, component in zip(paths, grid.field, strict=True):
        again = read_map(path)
        np.testing.assert_allclose(again.values, component.values, rtol=1e-5, atol=1e-5)
        assert again.unit == "V/A"
        assert again.provenance.quantity == component.provenance.quantity
    with naming(UsageError, "a.field_x"):
        write_field(grid.field, tmp_path / f"a.field{suffix}")


def test_npz_holds_all_three(tmp_path):
    grid = potential_map(DIPOLE, padding=2, field=True, medium="explicit")
    assert write_field(grid.field, tmp_path / "field.npz") == [tmp_path / "field.npz"]
    with np.load(tmp_path / "field.npz") as archive:
        for axis, component in zip("xyz", grid.field, strict=True):
            np.testing.assert_array_equal(archive[axis], component.values)
        np.testing.assert_array_equal(archive["origin"], grid.lattice.origin)
        assert str(archive["unit"]) == "V/A"
        assert str(archive["quantity"]) == "electric field"


def test_a_field_needs_a_map_format():
    with naming(UsageError, "field.txt"):
        field_paths("field.txt")
