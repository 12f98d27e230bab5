"""A membrane in the continuum: energies and potentials of ions against images and integrals, with and without salt."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at, slow
from slabs import SLAB, around_ion
from test_pb import PLACE, WATER, C

from vmdpotential import potential_at, potential_map, solvation_energy
from vmdpotential.grid.lattice import Lattice
from vmdpotential.plugins.continuum.layers import Slab, potential
from vmdpotential.units import coulomb_constant, debye_length


def membrane(thickness, salt):
    """Return an ion of 2 A, and the parameters of a slab that it is in the middle of."""
    return replace(charges_at([PLACE], [1.0]), radii=np.array([2.0])), {
        "salt": salt, "inside": SLAB, "membrane": thickness, "membrane_centre": PLACE[2], "membrane_inside": SLAB}


def test_integral_is_the_sum_of_the_images():
    ratio = (SLAB - WATER) / (SLAB + WATER)
    images = sum(2 * ratio**n / (30 * n) for n in range(1, 1000)) / SLAB
    assert around_ion(0.0, 0.0, 30.0, 0.0) == pytest.approx(images, rel=1e-6)


@pytest.mark.parametrize("spacing", [1.0, 0.5])
@pytest.mark.parametrize("salt", [0.0, 0.15])
@pytest.mark.parametrize("thickness", [30.0, 60.0, 100.0, 1000.0])
def test_energy_of_an_ion(thickness, salt, spacing):
    ion, values = membrane(thickness, salt)
    exact = 0.5 * coulomb_constant("kcal/mol/e") * around_ion(0.0, 0.0, thickness, salt)
    for result in (solvation_energy(ion, spacing=spacing, parameters=values), potential_map(
            ion, method="pb", lattice=Lattice.around(ion.positions, spacing, 10.0), parameters=values).solvation):
        assert abs(result.total - exact) < result.error
        assert result.total == pytest.approx(exact, abs=0.2 * spacing**3)


@pytest.mark.parametrize("spacing", slow([1.0, 0.5], [1.0]))
@pytest.mark.parametrize("salt", [0.0, 0.15])
def test_potential_in_a_membrane_and_behind_it(salt, spacing):
    """Also where the map ends in the membrane, next to its faces, and beyond the map."""
    ion, values = membrane(20.0, salt)
    lattice = Lattice((-5, -5, -14), spacing, (*(round(10 / spacing) + 1,) * 2, round(28 / spacing) + 1))
    result = potential_map(ion, method="pb", lattice=lattice, parameters=values)
    away = lattice.points() - PLACE
    heights = abs(away[:, 2])
    rng = np.random.default_rng(5)
    for chosen, limit in (((np.linalg.norm(away, axis=1) > 2.5) & (heights < 9.5), 0.01), (heights > 10.5, 0.02)):
        rows = rng.permutation(np.flatnonzero(chosen))[:100]
        exact = C * np.array([around_ion(np.hypot(x, y), z, 20.0, salt) for x, y, z in away[rows]])
        error = np.sqrt(np.mean((result.values.ravel()[rows] - exact) ** 2) / np.mean(exact**2))
        assert error < limit * spacing**2
    points = PLACE + np.array([[40.0, 0.0, 3.0], [0.0, 0.0, 40.0], [20.0, 25.0, -11.0]])
    exact = C * np.array([around_ion(np.hypot(x, y), z, 20.0, salt) for x, y, z in points - PLACE])
    far = potential_at(ion, points, method="pb", spacing=spacing, parameters=values)
    assert far == pytest.approx(exact, rel=0.1 * spacing)


@pytest.mark.parametrize("height", [55.0, 47.0])
def test_charge_next_to_a_face(height):
    """In water and in a slab, which is so thick that only one image counts."""
    slab = Slab(-1e5, 50.0, 2.0, 80.0, 0.0)
    points = np.array([[12.0, 5.0, 58.0], [3.0, -14.0, 51.0], [0.0, 15.0, 49.0], [20.0, 0.0, 40.0], [0.0, 1.0, 75.0]])
    own, other = (80.0, 2.0) if height > 50 else (2.0, 80.0)
    same = (points[:, 2] > 50) == (height > 50)
    r, image = (np.linalg.norm(points - [1.0, 0.0, z], axis=1) for z in (height, 100 - height))
    exact = np.where(same, (1 / r + (own - other) / (own + other) / image) / own, 2 / (own + other) / r)
    values = potential(slab, points, np.array([[1.0, 0.0, height]]), np.ones(1), 2.0)
    assert values == pytest.approx(exact, rel=6e-3)


def test_slab_of_water_in_water():
    points, place = np.array([[0.0, 20.0, 30.0], [15.0, 0.0, 0.0], [0.0, 0.0, -20.0]]), np.array([[2.0, 1.0, 9.0]])
    values = potential(Slab(-10.0, 10.0, 80.0, 80.0, 0.0), points, place, np.array([-0.5]), 2.0)
    assert values == pytest.approx(-0.5 / 80 / np.linalg.norm(points - place, axis=1), rel=2e-3)


@pytest.mark.parametrize("salt", [0.0, 0.15])
def test_potential_of_an_ion_in_a_slab_at_any_point(salt):
    """Between tabulated heights and distances, next to the faces, and where few of the heights are needed."""
    rng = np.random.default_rng(7)
    points = rng.normal(size=(60, 3))
    points *= rng.uniform(12, 50, (60, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    points[:10, 2] = np.resize([10.0, -10.0, 9.7, 10.3, 3000.0], 10)
    slab = Slab(-10.0, 10.0, SLAB, WATER, 1 / debye_length(salt, 298.15, WATER) if salt else 0.0)
    exact = np.array([around_ion(np.hypot(x, y), z, 20.0, salt) for x, y, z in points])
    apart = np.hypot(points[:, 0], points[:, 1]) > 10
    values = potential(slab, points, np.zeros((1, 3)), np.ones(1), 2.0)
    size = np.sqrt(np.mean(exact[abs(points[:, 2]) > 10] ** 2))
    assert values[apart] == pytest.approx(exact[apart], rel=5e-3, abs=1e-3 * size)
    assert values == pytest.approx(exact, rel=0.02, abs=1e-3 * size)
