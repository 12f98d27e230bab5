"""Traced radial functions: numpy, C compiled on the host, and vector code agree."""


import numpy as np
import pytest
from helpers import FOREIGN

from vmdpotential import registry
from vmdpotential.interactions import tracing
from vmdpotential.interactions.program import evaluate
from vmdpotential.interactions.tracing import less

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
        np.testing.assert_allclose(evaluate(scaled.program, values) * scaled.factor, bound(r), rtol=1e-12,
                                   atol=1e-15)


def test_functions_that_cannot_be_traced_are_refused():
    with pytest.raises(TypeError, match="branch"):
        tracing.trace(lambda r2, rinv, p: rinv if less(r2, 4.0) else r2, [])
    with pytest.raises(TypeError, match="powers"):
        tracing.trace(lambda r2, rinv, p: r2**0.5, [])
    with pytest.raises(TypeError, match="depend"):
        tracing.trace(lambda r2, rinv, p: p.a * 2, ["a"])


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
