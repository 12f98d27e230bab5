"""Traced radial functions: numpy, C compiled on the host, and vector code agree."""

import ctypes

import compiled
import numpy as np
import pytest
from helpers import FOREIGN

from vmdpotential import registry
from vmdpotential.interactions import Interaction, tracing
from vmdpotential.interactions.csource import CSource
from vmdpotential.interactions.program import evaluate, run
from vmdpotential.interactions.tracing import exp, fma, less, select

INTERACTIONS = [*(registry.get("interaction", name) for name in registry.available("interaction")),
                *(bound.interaction for bound in FOREIGN)]


def c_function(program, name, real):
    """Return C source of ``real name(real r2, real rinv, const real *p)``; p holds the parameters in order."""
    back_end = CSource(real)
    values = {"r2": "r2", "rinv": "rinv"} | {p: f"p[{i}]" for i, p in enumerate(program.parameters)}
    result = run(program, back_end, values)[len(program.steps) - 1]
    lines = "\n".join(back_end.lines)
    return f"{real} {name}({real} r2, {real} rinv, const {real} *p)\n{{\n{lines}\n  return {result};\n}}\n"


def in_c(program, real):
    """Return the traced C function, compiled for this machine."""
    function = compiled.library("#include <math.h>\n" + c_function(program, "radial", real), "-ffp-contract=off",
                                "-Wall", "-Wno-unused-variable", "-Werror", "-lm", suffix=".c").radial
    kind = ctypes.c_float if real == "float" else ctypes.c_double
    function.restype = kind
    function.argtypes = [kind, kind, ctypes.POINTER(kind)]
    return lambda r2, rinv, values: function(r2, rinv, (kind * max(1, len(values)))(*values))


@pytest.mark.parametrize("interaction", INTERACTIONS, ids=lambda i: i.name)
@pytest.mark.parametrize(("real", "tolerance"), [("float", 3e-6), ("double", 1e-14)])
def test_c_source_equals_numpy(interaction, real, tolerance):
    bound = interaction.bind()
    scaled = bound.scaled(length=3.0)
    function = in_c(scaled.program, real)
    for r in np.random.default_rng(5).uniform(0.05, (bound.cutoff or 30) * 0.999, 200):
        x = r / scaled.length
        value = function(x * x, 1 / x, scaled.values) * scaled.factor
        # a shifted potential loses digits where it nears zero; its size at the origin sets the scale
        assert value == pytest.approx(float(bound(r)), rel=tolerance, abs=tolerance * abs(float(bound(r / 2))))


@pytest.mark.parametrize("interaction", INTERACTIONS, ids=lambda i: i.name)
def test_program_evaluated_with_numpy_equals_the_function(interaction):
    bound = interaction.bind()
    r = np.linspace(0.1, (bound.cutoff or 40) * 0.99, 300)
    for length in (1.0, 0.7, 16.0):
        scaled = bound.scaled(length)
        x = r / length
        values = dict(zip(scaled.program.parameters, scaled.values, strict=True)) | {"r2": x * x, "rinv": 1 / x}
        np.testing.assert_allclose(evaluate(scaled.program, values) * scaled.factor, bound(r), rtol=1e-12,
                                   atol=1e-15)


def test_the_exponential_of_points_is_exact_in_its_domain():
    from vmdpotential.engines.cpu.scalar import exponential

    low, high = tracing.EXP_DOMAIN
    x = np.append(np.random.default_rng(1).uniform(low, high, 1000), [low, high, 0.0, -1e-300])
    values = np.array([exponential()(each) for each in x])
    assert np.allclose(values, np.exp(x), 5e-15, 0)


def test_degree_tells_how_the_result_scales_with_rinv():
    def degree(function):
        return tracing.trace(function, ["a"])[0].degree()

    assert degree(lambda r2, rinv, p: rinv) == 1
    assert degree(lambda r2, rinv, p: rinv * rinv * rinv / (r2 + p.a)) == 3
    assert degree(lambda r2, rinv, p: (p.a - r2) * rinv * (p.a - r2)) == 1
    assert degree(lambda r2, rinv, p: rinv - p.a * r2) is None
    assert degree(lambda r2, rinv, p: exp(-r2 * rinv) * rinv) is None
    assert degree(lambda r2, rinv, p: select(less(r2, p.a), rinv, rinv * r2)) == 1
    assert degree(lambda r2, rinv, p: fma(rinv, r2, rinv)) == 1


def test_factors_of_parameters_alone_are_taken_out():
    program, factor = tracing.trace(lambda r2, rinv, p: p.a * rinv * r2 / (p.b * p.b), ["a", "b"])
    assert [step[0] for step in program.steps] == ["input", "input", "mul"]
    assert evaluate(factor, {"a": 6.0, "b": 2.0}) == pytest.approx(1.5)


def test_constants_are_folded_and_common_parts_computed_once():
    program, _ = tracing.trace(lambda r2, rinv, p: (r2 * (2.0 * 3.0)) * (r2 * 6.0) + 0.0 * 1.0, [])
    assert [step[0] for step in program.steps].count("mul") == 2
    assert ("const", 6.0) in program.steps


def test_functions_that_cannot_be_traced_are_refused():
    with pytest.raises(TypeError, match="branch"):
        tracing.trace(lambda r2, rinv, p: rinv if less(r2, 4.0) else r2, [])
    with pytest.raises(TypeError, match="powers"):
        tracing.trace(lambda r2, rinv, p: r2**0.5, [])
    with pytest.raises(TypeError, match="depend"):
        tracing.trace(lambda r2, rinv, p: p.a * 2, ["a"])


def test_a_length_that_is_no_parameter_is_refused():
    hidden = Interaction("hidden", lambda r2, rinv, p: rinv / (1 + r2))
    with pytest.raises(ValueError, match="length"):
        hidden.bind().scaled(2.0)


def test_a_value_used_many_times_is_walked_once():
    def nested(r2, rinv, p):
        x = rinv
        for _ in range(60):
            x = x * x * 0.5 + rinv
        return x

    program, _ = tracing.trace(nested, [])
    assert len(program.steps) < 250
    values = {"r2": 16.0, "rinv": 0.25}
    assert evaluate(program, values) == pytest.approx(nested(16.0, 0.25, None))
