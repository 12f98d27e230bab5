"""Interactions against their definitions; traced functions in numpy, C and vector code, to the ends of domains."""

import numpy as np
import pytest
from cuda_kernels import traced_on_the_host
from helpers import FOREIGN
from messages import naming
from scipy import constants, special

from vmdpotential import registry, units
from vmdpotential.engines import get_engine
from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import Interaction, Quantity, tracing
from vmdpotential.interactions.program import evaluate_program
from vmdpotential.interactions.tracing import erfc, exp, less
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum
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
        with naming(UsageError, quantity.name):
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


def test_an_interaction_ends_at_the_parameter_that_says_so():
    """Whatever its name; a parameter that is only called cutoff does not end it."""
    ending, other = (
        Interaction("inverse", lambda r2, rinv, p: rinv, [Quantity(name, "A", 5.0, 0.1, 10, "end", ends=ends)]).bind()
        for name, ends in (("reach", True), ("cutoff", False)))
    assert (ending.cutoff, other.cutoff) == (5.0, None)
    np.testing.assert_array_equal(ending([4.9, 5.1]) != 0, [True, False])
    assert other.truncated(3.0).cutoff == 3.0
    with pytest.raises(UsageError):
        ending.truncated(3.0)


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


INTERACTIONS = [*(registry.get("interaction", name) for name in registry.available("interaction")),
                *(bound.interaction for bound in FOREIGN)]


@pytest.mark.parametrize("interaction", INTERACTIONS, ids=lambda i: i.name)
def test_program_evaluated_with_numpy_equals_the_function(interaction):
    bound = interaction.bind()
    r = np.linspace(0.1, (bound.cutoff or 40) * 0.99, 300)
    for length in (1.0, 0.7, 16.0):
        scaled = bound.scaled(length)
        x = r / length
        values = dict(zip(scaled.program.parameters, scaled.values, strict=True)) | {"r2": x * x, "rinv": 1 / x}
        np.testing.assert_allclose(evaluate_program(scaled.program, values) * scaled.factor, bound(r), rtol=1e-12,
                                   atol=1e-15)


def test_functions_that_cannot_be_traced_are_refused():
    with naming(TypeError, "branch"):
        tracing.trace_radial(lambda r2, rinv, p: rinv if less(r2, 4.0) else r2, [])
    with naming(TypeError, "powers"):
        tracing.trace_radial(lambda r2, rinv, p: r2**0.5, [])
    with naming(TypeError, "depend"):
        tracing.trace_radial(lambda r2, rinv, p: p.a * 2, ["a"])


def test_a_value_used_many_times_is_walked_once():
    def nested(r2, rinv, p):
        x = rinv
        for _ in range(60):
            x = x * x * 0.5 + rinv
        return x

    program, _ = tracing.trace_radial(nested, [])
    assert len(program.steps) < 250
    values = {"r2": 16.0, "rinv": 0.25}
    assert evaluate_program(program, values) == pytest.approx(nested(16.0, 0.25, None))


#: Where the argument of the function is zero.
MIDDLE = {"exp": 14.0, "erfc": 14.0}
FUNCTIONS = {
    "exp": lambda r2, rinv, p: exp((r2 - p.middle**2) / p.width**2) * rinv * 1e-19,  # 1e38 charges would not fit
    "erfc": lambda r2, rinv, p: erfc((r2 * rinv - p.middle) / p.width) * rinv,
}
#: Distances at and around the ends of the domain of exp, and far beyond.
ENDS = np.sqrt(MIDDLE["exp"] ** 2 + np.array([-195.9, -88.0, -87.01, -87.0, -86.5, -1.0, 0.0, 1.0, 86.9, 87.99, 88.0,
                                              88.2, 89.2, 100.0, 1e4]))
DISTANCES = {"exp": ENDS, "erfc": np.array([0.05, 1.0, 4.6, 4.8, 9.0, 13.9, 14.0, 14.1, 20.0, 23.2, 23.4, 30.0, 1e4])}
#: Of the values; in single precision the arguments are rounded.
TOLERANCE = {"float": 2e-5, "double": 1e-11}


def bound(name):
    return Interaction(name, FUNCTIONS[name], [
        Quantity("middle", "A", MIDDLE[name], 0.1, 1000, "any"), Quantity("width", "A", 1.0, 0.1, 10, "any")]).bind()


def expected(name, r):
    if name == "exp":
        return np.exp(np.clip(r * r - MIDDLE[name] ** 2, *tracing.EXP_DOMAIN)) / r * 1e-19
    return special.erfc(r - MIDDLE[name]) / r


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpy(name):
    np.testing.assert_allclose(bound(name)(DISTANCES[name]), expected(name, DISTANCES[name]), rtol=1e-11)


@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_c_on_the_host(name, real):
    r = DISTANCES[name]
    zero = 1e-6 if name == "erfc" else 0.0  # in single precision its tail is not held
    np.testing.assert_allclose(traced_on_the_host(bound(name), 1.0, real, False, r), expected(name, r),
                               rtol=TOLERANCE[real], atol=zero)
    slopes = traced_on_the_host(bound(name), 1.0, real, True, r)
    assert np.isfinite(slopes).all()
    inside = np.abs((r * r)[:, None] - MIDDLE[name] ** 2 - tracing.EXP_DOMAIN).min(1) > 0.1  # ends have no derivative
    np.testing.assert_allclose(slopes[inside], (bound(name).derivative(r) / (2 * r))[inside],
                               rtol=2 * TOLERANCE[real], atol=max(zero, 1e-39))


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "field"), [("single", True), ("double", False)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_cpu_engine(name, precision, field):
    """One atom, and points along x."""
    lattice = Lattice(np.array([0.5, 0.0, 0.0]), np.array([0.25, 8.0, 8.0]), (100, 1, 1))
    of = bound(name)
    r = lattice.points()[:, 0]
    result = prepare_sum(get_engine("cpu"), PotentialSum(lattice, of, precision=precision, field=field)).run(
        np.zeros((1, 3)), np.ones(1))
    np.testing.assert_allclose(result.values()[:, 0, 0], expected(name, r), rtol=2e-5, atol=1e-6)
    if field:
        assert np.isfinite(result.field()).all()
