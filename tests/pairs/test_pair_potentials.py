"""Pair potentials against closed forms: their pages, rules, slopes, units, and what C makes of them."""

import ctypes

import compiled
import numpy as np
import pytest
from helpers import refused
from scipy import special

from vmdpotential import registry
from vmdpotential.interactions import Interaction, coulomb
from vmdpotential.interactions.csource import CSource
from vmdpotential.interactions.program import evaluate_all, run_program
from vmdpotential.plugins.historical import buckingham
from vmdpotential.plugins.historical.polynomial import ewald_polynomial
from vmdpotential.plugins.pairs import lennard_jones
from vmdpotential.plugins.pairs.pair_terms import (
    CHARGES_RULE,
    GEOMETRIC_RULE,
    LORENTZ_BERTHELOT,
    TABLE_RULE,
    CombinationRule,
    PairPotential,
    PairTerm,
)

R = np.linspace(0.9, 9.9, 40)
PAGES = {name: registry.get("interaction", name).bind() for name in registry.available("interaction")}
PAGES |= {name: registry.get("pair", name).bind() for name in registry.available("pair")}
PAGES |= {"cut_coulomb": coulomb.CUT.bind(), "ewald_polynomial": ewald_polynomial(12.0, 0.26)}
RULES = {"a": buckingham.RULE, "a6": GEOMETRIC_RULE}


def of(bound, cutoff=None):
    """Return a page as a pair potential, ended at a cutoff where it has none of its own."""
    rule = RULES[next(iter(bound.interaction.pair))] if bound.interaction.pair else CHARGES_RULE
    if cutoff and bound.cutoff is None:
        bound = bound.truncated(cutoff)
    return PairPotential((PairTerm("only", bound, rule),))


def values(potential, r, outputs, parameters, length=1.0, excluded=False):
    """Return results of a potential's program by numpy for parameters in A and kcal/mol."""
    scaled = potential.scaled(outputs, length, excluded)
    powers = {f"{side}.{n}": p for side in "ij" for n, p in potential.atoms.items()}
    powers |= {f"pair.{n}": p for n, p in potential.tables.items()}
    inputs = {name: parameters[name] / length**power for name, power in powers.items()}
    inputs |= dict(zip(scaled.program.parameters, scaled.values, strict=True))
    x = r / length
    result = evaluate_all(scaled.program, inputs | {"r2": x * x, "rinv": 1 / x})
    return [np.broadcast_to(v, r.shape) for v in result]


def sample(potential):
    """Return parameters of two atoms."""
    rng = np.random.default_rng(3)
    names = [*(f"{side}.{n}" for side in "ij" for n in potential.atoms), *(f"pair.{n}" for n in potential.tables)]
    return {name: rng.uniform(0.5, 1.5) for name in names}


@pytest.mark.parametrize("name", registry.available("pair"))
def test_checks_on_the_page(name):
    page = registry.get("pair", name)
    assert page.name == name
    assert page.checks
    for check in page.checks:
        own = {q.name for q in page.quantities}
        bound = page.bind(**{n: v for n, v in check.parameters.items() if n in own})
        pair = {n: v for n, v in check.parameters.items() if n not in own}
        assert float(bound(check.r, **pair)) == pytest.approx(check.value, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", PAGES)
def test_slope_is_the_derivative(name):
    """-1/r dE/dr, whether a page writes its slope or not."""
    potential = of(PAGES[name])
    atoms, h = sample(potential), 1e-4
    slope, = values(potential, R, ("slope",), atoms)
    energy = [values(potential, R + s * h, ("energy",), atoms)[0] for s in (-2, -1, 1, 2)]
    by_difference = -(energy[0] - 8 * energy[1] + 8 * energy[2] - energy[3]) / (12 * h) / R
    # the polynomials of potential and slope are fitted each for itself
    tolerance = 2e-5 if name == "ewald_polynomial" else 1e-8
    np.testing.assert_allclose(slope, by_difference, rtol=tolerance, atol=tolerance * np.abs(slope).max() * 1e-3)


def test_a_length_that_is_a_plain_number_is_refused():
    page = Interaction("careless", lambda r2, rinv, p: rinv - r2 / 100.0)
    with refused("interaction"):
        PairPotential((PairTerm("x", page.bind(), CHARGES_RULE),)).scaled(length=2.0)


def test_a_rule_of_one_of_two_atoms_is_refused():
    """The forces on both would not be opposite."""
    rule = CombinationRule("sources", {"source": 1}, {}, lambda i, j, pair: {"weight": j.source})
    with refused("interaction") as caught:
        PairPotential((PairTerm("x", coulomb.INTERACTION.bind(), rule),)).scaled()
    assert caught.value.parameter == "interaction"


def test_rules_make_the_usual_lennard_jones():
    sigma, epsilon = np.array([3.15, 2.2]), np.array([0.152, 0.03])
    page = lennard_jones.INTERACTION.bind()

    def energy(s, e):
        return 4 * e * ((s / R) ** 12 - (s / R) ** 6)

    rmin = 2 ** (1 / 6) * sigma
    atoms = {f"{side}.{n}": v[k] for k, side in enumerate("ij")
             for n, v in (("half_rmin", rmin / 2), ("root_depth", np.sqrt(12 * epsilon)))}
    mixed = values(PairPotential((PairTerm("lj", page, LORENTZ_BERTHELOT),)), R, ("energy",), atoms)[0]
    np.testing.assert_allclose(mixed, energy(sigma.mean(), np.sqrt(epsilon.prod())), rtol=1e-12)

    c6, c12 = 4 * epsilon * sigma**6, 4 * epsilon * sigma**12
    atoms = {f"{side}.{n}": v[k] for k, side in enumerate("ij")
             for n, v in (("root_a6", np.sqrt(6 * c6)), ("root_a12", np.sqrt(12 * c12)))}
    mixed = values(PairPotential((PairTerm("lj", page, GEOMETRIC_RULE),)), R, ("energy",), atoms)[0]
    np.testing.assert_allclose(mixed, np.sqrt(c12.prod()) / R**12 - np.sqrt(c6.prod()) / R**6, rtol=1e-12)

    table = {"pair.a6": 6 * c6[0], "pair.a12": 12 * c12[0]}
    mixed = values(PairPotential((PairTerm("lj", page, TABLE_RULE),)), R, ("energy",), table)[0]
    np.testing.assert_allclose(mixed, energy(sigma[0], epsilon[0]), rtol=1e-12)


@pytest.mark.parametrize("beta_cutoff", [2.6, 3.12, 3.5])
def test_ewalds_polynomials_keep_the_forces(beta_cutoff):
    cutoff = 10.0
    beta = beta_cutoff / cutoff
    potential = PairPotential((PairTerm("coulomb", ewald_polynomial(cutoff, beta), CHARGES_RULE),))
    atoms = {"i.charge": 1.0, "j.charge": 1.0}
    for excluded, bare in ((False, special.erfc), (True, lambda x: -special.erf(x))):
        slope, energy = values(potential, R, ("slope", "energy"), atoms, excluded=excluded)
        bell = 2 * beta / np.sqrt(np.pi) * np.exp(-((beta * R) ** 2))
        exact = (bare(beta * R) / R + bell) / R**2
        # relative to the force of two bare charges at a usual distance, as errors of all forces are
        assert np.abs((slope - exact) * R).max() < 1e-6 / 3.0**2
        np.testing.assert_allclose(energy, bare(beta * R) / R, atol=4e-6)


def test_terms_that_do_not_fit_are_refused():
    with refused("interaction"):
        PairTerm("lj", lennard_jones.INTERACTION.bind(), CHARGES_RULE)
    with refused("cutoff"):
        PairPotential((PairTerm("a", coulomb.INTERACTION.bind(), CHARGES_RULE),
                       PairTerm("b", lennard_jones.SHIFTED.bind(cutoff=9.0), GEOMETRIC_RULE)))


@pytest.mark.parametrize(("real", "tolerance"), [("float", 2e-5), ("double", 1e-12)])
def test_c_source_equals_numpy(real, tolerance):
    """All pages with slope and energy, in one library, for all distances at once."""
    kind = ctypes.c_float if real == "float" else ctypes.c_double
    text, programs = "#include <math.h>\n", {}
    for name, bound in PAGES.items():
        potential = of(bound)
        for excluded in (False, True):
            program = potential.scaled(("slope", "energy"), 2.0, excluded).program
            back_end = CSource(real)
            leaves = [*program.inputs, *program.parameters]
            steps = run_program(program, back_end, {leaf: f"in[{k}]" for k, leaf in enumerate(leaves)})
            body = "\n".join(back_end.lines)
            results = "".join(f"  out[{k}] = {steps[r]};\n" for k, r in enumerate(program.results))
            function = f"{name}_{int(excluded)}"
            text += f"void {function}(const {real}* in, {real}* out)\n{{\n{body}\n{results}}}\n"
            programs[function] = potential, program, excluded
    library = compiled.library(text, "-ffp-contract=off", "-lm", suffix=".c")
    for function, (potential, program, excluded) in programs.items():
        scaled, atoms = potential.scaled(("slope", "energy"), 2.0, excluded), sample(potential)
        expected = values(potential, R, ("slope", "energy"), atoms, 2.0, excluded)
        # what is left of an excluded pair is a difference of two terms of the size of the whole
        sizes = values(potential, R, ("slope", "energy"), atoms, 2.0)
        powers = {**potential.atoms, **potential.tables}
        inputs = {n: v / 2.0 ** powers[n.partition(".")[2]] for n, v in atoms.items()}
        inputs |= dict(zip(program.parameters, scaled.values, strict=True))
        for k, r in enumerate(R / 2.0):
            given = inputs | {"r2": r * r, "rinv": 1 / r}
            leaves = [given[leaf] for leaf in (*program.inputs, *program.parameters)]
            out = (kind * 2)()
            getattr(library, function)((kind * max(1, len(leaves)))(*leaves), out)
            for actual, required, whole in zip(out, expected, sizes, strict=True):
                size = np.abs(whole[max(0, k - 10): k + 1]).max()  # where terms cancel, those 2 A nearer are the scale
                assert actual == pytest.approx(required[k], rel=tolerance, abs=tolerance * size), (function, r)


def test_reaction_field_of_a_conductor_ends_without_force():
    bound = registry.get("interaction", "reaction_field").bind(cutoff=9.0, permittivity=0.0)
    potential = PairPotential((PairTerm("coulomb", bound, CHARGES_RULE),))
    atoms = {"i.charge": 1.0, "j.charge": 1.0}
    slope, energy = values(potential, np.array([9.0]), ("slope", "energy"), atoms)
    assert abs(slope) < 1e-15
    assert abs(energy) < 1e-15
    # excluded pairs keep the medium's part
    both = values(potential, R, ("energy",), atoms, excluded=True)[0]
    np.testing.assert_allclose(both + 1 / R, values(potential, R, ("energy",), atoms)[0], rtol=1e-12, atol=1e-15)
    assert potential.corrects_excluded
