"""Interactions against their definitions."""

import numpy as np
import pytest
from scipy import constants

from vmdpotential import registry, units
from vmdpotential.errors import UsageError
from vmdpotential.interactions import Interaction, Quantity
from vmdpotential.units import POTENTIAL_UNITS, coulomb_constant

NAMES = registry.available("interaction")


@pytest.mark.parametrize("name", NAMES)
def test_checks_on_the_page(name):
    interaction = registry.get("interaction", name)
    assert interaction.name == name
    assert interaction.checks
    for check in interaction.checks:
        assert float(interaction.bind(**check.parameters)(check.r)) == pytest.approx(check.value, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_have_limits_and_meaning(name):
    for quantity in registry.get("interaction", name).quantities:
        assert quantity.low <= quantity.default <= quantity.high
        assert quantity.description
        with pytest.raises(UsageError, match=quantity.name):
            registry.get("interaction", name).bind(**{quantity.name: quantity.low / 2 - 1})


def test_screened_coulomb_solves_the_linear_poisson_boltzmann_equation():
    # (r V)'' = V r / L^2 away from the charge
    length, h = 6.0, 1e-3
    bound = registry.get("interaction", "screened_coulomb").bind(debye_length=length)
    for r in (1.0, 5.0, 20.0):
        rv = [(r + k * h) * float(bound(r + k * h)) for k in (-1, 0, 1)]
        assert (rv[0] - 2 * rv[1] + rv[2]) / h**2 == pytest.approx(rv[1] / length**2, rel=1e-5)


def test_truncation_ends_an_interaction():
    bound = registry.get("interaction", "coulomb").bind().truncated(5.0)
    np.testing.assert_allclose(bound([4.999, 5.0, 6.0]), [1 / 4.999, 0, 0])
    assert "truncated at 5 A" in str(bound)
    with pytest.raises(UsageError):
        registry.get("interaction", "shifted_coulomb").bind().truncated(5.0)


def test_scaling_keeps_a_function_of_several_lengths():
    def radial(r2, rinv, p):
        return rinv * p.a / (p.a + p.b * r2)  # a in A, b in 1/A

    bound = Interaction("two", radial, [Quantity("a", "A", 3, 0, 9, ""), Quantity("b", "1/A", 0.5, 0, 9, "")]).bind()
    assert bound.scaled(7.0).values == pytest.approx((3 / 7, 3.5))


def test_constants_are_codatas():
    for name, value in (("e", units.ELEMENTARY_CHARGE), ("k", units.BOLTZMANN), ("N_A", units.AVOGADRO),
                        ("calorie", units.CALORIE), ("angstrom", units.ANGSTROM)):
        assert value == getattr(constants, name)
    assert pytest.approx(constants.epsilon_0, rel=1e-9) == units.EPSILON_0  # the last digits are newer than some scipy


def test_coulomb_constants():
    assert coulomb_constant("kT/e") == pytest.approx(560.46, abs=0.01)
    assert coulomb_constant("V") == pytest.approx(14.3996, abs=1e-4)
    assert coulomb_constant("kcal/mol/e") == pytest.approx(332.06, abs=0.01)
    table = constants.physical_constants
    volt_bohr = table["Hartree energy in eV"][0] * table["Bohr radius"][0]
    assert coulomb_constant("V") == pytest.approx(volt_bohr * 1e10, rel=1e-8)
    assert coulomb_constant("kT/e", 300.0, 80.0) == pytest.approx(coulomb_constant() * 298.15 / 300 / 80)
    for unit in POTENTIAL_UNITS:
        assert coulomb_constant(unit, dielectric=4) == pytest.approx(coulomb_constant(unit) / 4)
    for wrong in ({"unit": "eV"}, {"temperature": 0.0}, {"dielectric": -1.0}):
        with pytest.raises(UsageError):
            coulomb_constant(**wrong)
