"""Maps whose rms says little of what people look at: the tolerance holds away from charges too, and for the field."""

import ewald
import numpy as np
import pytest
from helpers import charges_at, definition, interaction

from vmdpotential.grid.lattice import Lattice
from vmdpotential.maps import potential_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.units import coulomb_constant

POINTS = 600


def errors(structure, lattice, exact, **options):
    """Return the errors of a map everywhere, and farther than 2 A from every charge; `exact` gives the truth."""
    grid = potential_map(structure, lattice=lattice, unit="V", engine="cpu", **options)
    indices = np.random.default_rng(77).integers(0, lattice.shape, (POINTS, 3))
    points = lattice.points(indices)
    expected = np.atleast_2d(exact(points)) * coulomb_constant("V")
    vectors = np.eye(3) * 1e6 if structure.cell is None or options.get("boundary") == "open" else structure.cell.vectors
    nearest = np.concatenate([ewald.shortest(part[:, None] - structure.positions, vectors).min(1)
                              for part in np.array_split(points, 40)])
    away = nearest > 2
    if 4 * away.sum() < POINTS:
        away = nearest >= np.sort(nearest)[-POINTS // 4]
    actual = np.array([grid.values, *(part.values for part in grid.field or ())])[:, *indices.T]

    def relative(rows, where):
        difference = (actual - expected)[rows][:, where]
        return np.sqrt((difference**2).sum() / (expected[rows][:, where] ** 2).sum())

    everywhere = np.ones(POINTS, bool)
    # at the edge of the soft core the field jumps
    result = {"everywhere": relative([0], everywhere), "away": relative([0], away)}
    if len(actual) > 1:
        result |= {"field": relative([1, 2, 3], abs(nearest - 0.01) > 1e-3), "field away": relative([1, 2, 3], away)}
    return grid, result


def open_sum(structure, field=False):
    coulomb = interaction("coulomb")
    return lambda points: definition(points, structure.positions, structure.known_charges, coulomb, None, field)


@pytest.fixture(scope="module")
def lattice_water():
    """Waters whose oxygens are on points of the lattice, where their potential is a hundred times any other."""
    rng = np.random.default_rng(1)
    oxygens = np.stack(np.meshgrid(*[np.arange(8) * 3.2] * 3, indexing="ij"), -1).reshape(-1, 3)
    waters = []
    for oxygen in oxygens:
        along = rng.normal(size=3)
        across = np.cross(along, rng.normal(size=3))
        along, across = 0.586 * along / np.linalg.norm(along), 0.757 * across / np.linalg.norm(across)
        waters += [oxygen, oxygen + along + across, oxygen + along - across]
    return charges_at(waters, np.tile([-0.834, 0.417, 0.417], len(oxygens)), Cell(np.eye(3) * 25.6))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "tolerance", "field"), [
    ("pme", 1e-2, False), ("pme", 1e-4, True), ("msm", 1e-3, True)])
def test_oxygens_on_points_of_the_lattice(lattice_water, method, tolerance, field):
    lattice = Lattice(np.zeros(3), np.full(3, 0.4), (64, 64, 64))
    exact = open_sum(lattice_water, field)
    options = {"method": method, "tolerance": tolerance, "boundary": "open", "field": field}
    grid, result = errors(lattice_water, lattice, exact, **options)
    assert result["everywhere"] < 0.2 * result["away"]  # the map's rms is that of its oxygens
    assert max(result.values()) <= 1.1 * tolerance, result
    assert grid.provenance.error_away == pytest.approx(result["away"], rel=0.4)
    if field:
        assert grid.provenance.error_field_away == pytest.approx(result["field away"], rel=0.4)


@pytest.mark.slow
def test_a_truncated_octahedron():
    vectors = 26.0 * np.array([[1, 0, 0], [1 / 3, 8**0.5 / 3, 0], [-1 / 3, 2**0.5 / 3, 6**0.5 / 3]])
    waters, charges = (array.reshape(-1, 3, *array.shape[1:]) for array in water_box(40.0))
    fraction = waters[:, 0] @ np.linalg.inv(vectors)
    inside = ((fraction >= 0) & (fraction < 1)).all(1)
    structure = charges_at(waters[inside].reshape(-1, 3), charges[inside].ravel(), Cell(vectors))
    lattice = Lattice(np.full(3, 1.3), np.full(3, 0.6), (30, 35, 32))
    _, result = errors(structure, lattice, lambda points: ewald.potential(
        points, structure.positions, structure.known_charges, vectors), method="pme", tolerance=1e-2)
    assert max(result.values()) <= 1.1e-2, result


@pytest.mark.parametrize("seed", range(4))
def test_charges_astray_far_away(seed):
    rng = np.random.default_rng(seed)
    positions = np.concatenate([rng.uniform(0, 15, (300, 3)), [[300.0, 200, 250]]])
    structure = charges_at(positions, np.append(np.tile([0.8, -0.8], 150), 3.0))
    tolerance = 10.0 ** -(2 + seed // 2)
    for lattice in (Lattice.around(positions, 4.0, 5.0), Lattice(np.full(3, -2.0), np.full(3, 0.5), (40, 40, 40))):
        _, worst = errors(structure, lattice, open_sum(structure), method=("pme", "msm")[seed % 2], tolerance=tolerance)
        assert max(worst.values()) <= 1.1 * tolerance, worst
