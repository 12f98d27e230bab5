"""A voltage across a membrane: linear in an empty slab, closed forms with salt and with a ball; symmetry in a pore."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at

from vmdpotential import born, field, potential_at, potential_map, solvation_energy
from vmdpotential.engines import get_engine
from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.plugins.continuum.voltage import AppliedPotential
from vmdpotential.plugins.pores.check import ATOM, in_membrane, tube
from vmdpotential.plugins.pores.energies import Ion, ion_energies
from vmdpotential.units import coulomb_constant, debye_length

WATER, KAPPA = 78.5, 1 / debye_length(0.15, 298.15, 78.5)


def ball(radius, charge=0.0, height=0.0):
    return replace(charges_at([[0.1, 0.2, height]], [charge]), radii=np.array([radius]))


@pytest.mark.parametrize("salt", [0.0, 0.15])
def test_empty_slab_is_exact(salt):
    values = {"salt": salt, "membrane": 30, "membrane_centre": 2, "voltage": 0.1}
    lattice = Lattice((-3, -3, -25), 1.0, (7, 7, 53))
    made = potential_map(ball(0.0), method="pb", lattice=lattice, parameters=values, unit="V")
    z = lattice.points()[:, 2]
    if salt:
        lost = 0.1 * 2 / (WATER * KAPPA * 30 + 4)  # on each side, by the continuity of the flux
        exact = np.where(z < -13, 0.1 - lost * np.exp(KAPPA * (z + 13)), lost * np.exp(-KAPPA * (z - 17)))
        inside = (z >= -13) & (z <= 17)
        exact[inside] = lost + (0.1 - 2 * lost) * (17 - z[inside]) / 30
    else:
        exact = 0.1 * np.clip((17 - z) / 30, 0, 1)
    assert made.values.ravel() == pytest.approx(exact, abs=1e-7)
    points = np.array([[0, 0, -60.0], [1, 2, 9.5], [0, 3, 2.0], [5, 0, 60.0]])
    there = potential_at(ball(0.0), points, method="pb", parameters=values, unit="V")
    lost = lost if salt else 0.0
    assert there == pytest.approx([0.1, lost + (0.1 - 2 * lost) * 7.5 / 30, 0.05, 0.0], abs=1e-5)
    assert made.solvation is None


def test_flux_and_field_of_the_applied_potential():
    applied = AppliedPotential(-10.0, 20.0, 2 / WATER, KAPPA, 4.0)
    z, step = np.linspace(-40, 50, 901), 1e-5
    numeric = (applied.at(z + step) - applied.at(z - step)) / (2 * step)
    away = np.minimum(abs(z + 10), abs(z - 20)) > 0.05
    assert applied.slope(z)[away] == pytest.approx(numeric[away], abs=1e-8)
    for face in (-10.0, 20.0):
        slab, water = sorted(abs(applied.slope(np.array([face - step, face + step]))), reverse=True)
        assert 2 * slab == pytest.approx(WATER * water, rel=1e-4)


def test_ball_in_a_slab_has_the_field_of_a_ball_in_a_uniform_field():
    """Inside, 3 e / (2 e + e') times the field (J. D. Jackson, Classical Electrodynamics, section 4.4)."""
    lattice = Lattice((-1.9, -1.8, -2.0), 0.5, (9, 9, 9))
    values = {"salt": 0.0, "membrane": 80, "voltage": 1.0, "inside": 8.0, "probe": 1.4}
    made = potential_map(ball(5.0), method="pb", lattice=lattice, parameters=values, unit="V")
    slope = (made.values[..., -1] - made.values[..., 0]) / 4.0
    assert slope == pytest.approx(-1 / 80 * 3 * 2 / (2 * 2 + 8), rel=0.02)


@pytest.mark.parametrize("salt", [0.0, 0.15])
def test_halves_of_a_pore_add_up_to_the_voltage(salt):
    wall = tube(5.0, 24.0, 1.5)
    structure = replace(charges_at(wall, np.zeros(len(wall))), radii=np.full(len(wall), ATOM))
    lattice = Lattice((0.0, 0.0, -18.0), 1.0, (2, 2, 37))
    made = potential_map(structure, method="pb", lattice=lattice, unit="V", parameters={
        "salt": salt, "membrane": 20, "voltage": 0.2})
    along = made.values[0, 0].astype(float)
    assert along + along[::-1] == pytest.approx(0.2, abs=2e-3)
    assert (np.diff(along) < 1e-4).all()
    assert (along[0], along[-1]) == (pytest.approx(0.2, abs=0.03), pytest.approx(0.0, abs=0.03))


def test_charge_adds_its_potential_in_the_linear_equation():
    lattice = Lattice((-5, -5, -20), 1.0, (11, 11, 41))
    values = {"membrane": 20, "salt": 0.15}
    both, charge, volts = (potential_map(ball(2.0, q), method="pb", lattice=lattice, unit="kT/e",
                                         parameters={**values, "voltage": v}).values
                           for q, v in ((1.0, 0.1), (1.0, 0.0), (0.0, 0.1)))
    assert both == pytest.approx(charge + volts, abs=2e-3 * float(abs(charge).max()))


def test_sign_and_unit():
    """Positive below: 25.7 mV are 1 kT/e at 298.15 K; the field in the slab points upwards."""
    volt = coulomb_constant("kT/e", 298.15) / coulomb_constant("V", 298.15)
    values = {"salt": 0.0, "membrane": 20, "voltage": 0.0257}
    below, above = potential_at(ball(0.0), [[0, 0, -30.0], [0, 0, 30.0]], method="pb", parameters=values, unit="kT/e")
    assert (below, above) == (pytest.approx(0.0257 * volt), pytest.approx(0.0, abs=1e-9))


@pytest.mark.parametrize("values", [{"voltage": 0.1}, {"voltage": 0.1, "membrane": 30, "nonlinear": 1},
                                    {"voltage": 20, "membrane": 30}])
def test_refused(values):
    with pytest.raises(UsageError):
        potential_map(ball(2.0, 1.0), method="pb", spacing=2.0, parameters=values)


@pytest.mark.parametrize("salt", [0.0, 0.15])
def test_ion_in_an_empty_slab_has_its_charge_times_the_linear_potential(salt):
    """And that of its side in the solutions; the other parts are those without a voltage."""
    heights, volts, ion = np.array([-40.0, -9.0, 0.3, 8.0, 40.0]), 4.0, Ion(-2.0, 1.5)
    nothing = replace(in_membrane(np.array([[30.0, 0, 0]]), np.zeros(1), 30.0), kappa=KAPPA if salt else 0.0)
    under = replace(nothing, membrane=replace(nothing.membrane, voltage=volts))
    points = np.stack([0 * heights, 0 * heights, heights], 1)
    found, before = (list(ion_energies(each, points, ion, 1.0, get_engine("cpu"))) for each in (under, nothing))
    lost = volts * 0.2 / (30 * KAPPA + 0.4) if salt else 0.0  # the permittivities are 2 and 10
    slope = (volts - 2 * lost) / 30
    left = lost * np.exp(-nothing.kappa * 25)  # in the solutions, 25 A from the faces
    exact = [volts - left, *(lost + slope * (15 - heights[1:4])), left]
    assert [each.voltage for each in found] == pytest.approx(ion.charge * np.array(exact), abs=2e-3 * volts)
    for each, other in zip(found, before, strict=True):
        assert each.total == pytest.approx(other.total + each.voltage, abs=1e-9)
        assert other.voltage == 0


def test_voltage_of_a_command(tmp_path):
    """The molecule's charges are moved by the voltage with and without the ion; the sum of parts is the total."""
    wall = tube(4.0, 24.0, 1.5)
    charges = np.zeros(len(wall))
    charges[::41] = np.resize([0.5, -0.3], len(charges[::41]))
    structure = replace(charges_at(wall, charges), radii=np.full(len(wall), ATOM))
    made = born(structure, atoms="all", ion="K+", positions=3, spacing=1.5,
                parameters={"membrane": 20, "voltage": 0.1, "salt": 0.15})
    below, middle, above = made.table()["voltage"] / 0.1 / 23.06  # kcal/mol of a charge at 1 V
    assert (below, middle, above) == (pytest.approx(1, abs=0.1), pytest.approx(0.5, abs=0.1), pytest.approx(0, abs=0.1))
    total, _, *parts = made.energies.T
    assert total == pytest.approx(np.sum(parts, axis=0))


def test_energies_are_refused():
    with pytest.raises(UsageError):
        solvation_energy(ball(2.0, 1.0), parameters={"voltage": 0.1, "membrane": 30})
    with pytest.raises(UsageError):
        field(ball(2.0, 1.0), points=np.zeros((1, 3)), from_=("all",), method="pb",
              parameters={"voltage": 0.1, "membrane": 30})
