"""Derivatives: a traced radial function evaluated together with its derivative with respect to r^2.

The field of an interaction V follows from its radial function, without another formula::

    E = -q grad V = -2 q (x - x_j) dV/d(r^2)

Differentiation is by dual numbers (R. E. Wengert, "A simple automatic derivative evaluation program",
Commun. ACM 7 (1964) 463-464): :class:`DualNumber` is a back end of
:func:`vmdpotential.interactions.program.run_program` around another one, numpy, vector code or C source, and carries
each value with its derivative.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import pi, sqrt
from typing import Any, TypeAlias

from vmdpotential.interactions.program import NumpyBackEnd, TracedProgram, run_program
from vmdpotential.interactions.tracing import EXP_DOMAIN, RecordingBackEnd, Scalar, TracedNode, linear_program

#: A value of the back end and its derivative, or None if that is zero everywhere.
Pair: TypeAlias = tuple[Any, Any]


class DualNumber:
    """Back end that computes pairs of a value and its derivative with respect to r2.

    Parameters
    ----------
    back_end : object
        The back end of :func:`vmdpotential.interactions.program.run_program` that computes values and derivatives.
    """

    def __init__(self, back_end: Any) -> None:
        self._of = back_end

    def inputs(self, r2: Any, rinv: Any) -> dict[str, Pair]:
        """Return the inputs of a radial function as pairs: d rinv / d r2 = -rinv^3 / 2."""
        of = self._of
        return {"r2": (r2, of.const(1.0)),
                "rinv": (rinv, of.mul(of.mul(of.const(-0.5), rinv), of.mul(rinv, rinv)))}

    def _product(self, derivative: Any, value: Any) -> Any:
        return None if derivative is None else self._of.mul(derivative, value)

    def _sum(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return self._of.add(a, b)

    def _choice(self, condition: Any, a: Any, b: Any) -> Any:
        if a is None and b is None:
            return None
        zero = self._of.const(0.0)
        return self._of.select(condition, zero if a is None else a, zero if b is None else b)

    def const(self, value: float) -> Pair:
        """Return a number."""
        return self._of.const(value), None

    def add(self, a: Pair, b: Pair) -> Pair:
        """Return a + b."""
        return self._of.add(a[0], b[0]), self._sum(a[1], b[1])

    def sub(self, a: Pair, b: Pair) -> Pair:
        """Return a - b."""
        value = self._of.sub(a[0], b[0])
        if a[1] is None or b[1] is None:
            return value, self._product(b[1], self._of.const(-1.0)) if a[1] is None else a[1]
        return value, self._of.sub(a[1], b[1])

    def mul(self, a: Pair, b: Pair) -> Pair:
        """Return a * b."""
        return self._of.mul(a[0], b[0]), self._sum(self._product(a[1], b[0]), self._product(b[1], a[0]))

    def div(self, a: Pair, b: Pair) -> Pair:
        """Return a / b; (a / b)' = (a' - (a / b) b') / b."""
        value = self._of.div(a[0], b[0])
        top = self.sub((value, a[1]), (value, self._product(b[1], value)))[1]
        return value, None if top is None else self._of.div(top, b[0])

    def fma(self, a: Pair, b: Pair, c: Pair) -> Pair:
        """Return a * b + c."""
        derivative = c[1]
        for d, value in ((a[1], b[0]), (b[1], a[0])):
            if d is not None:
                derivative = self._of.mul(d, value) if derivative is None else self._of.fma(d, value, derivative)
        return self._of.fma(a[0], b[0], c[0]), derivative

    def min(self, a: Pair, b: Pair) -> Pair:
        """Return the smaller."""
        return self._of.min(a[0], b[0]), self._choice(self._of.less(a[0], b[0]), a[1], b[1])

    def max(self, a: Pair, b: Pair) -> Pair:
        """Return the larger."""
        return self._of.max(a[0], b[0]), self._choice(self._of.less(b[0], a[0]), a[1], b[1])

    def less(self, a: Pair, b: Pair) -> Pair:
        """Return the condition a < b."""
        return self._of.less(a[0], b[0]), None

    def select(self, condition: Pair, a: Pair, b: Pair) -> Pair:
        """Return a where the condition holds, else b."""
        return self._of.select(condition[0], a[0], b[0]), self._choice(condition[0], a[1], b[1])

    def sqrt(self, a: Pair) -> Pair:
        """Return the square root."""
        value = self._of.sqrt(a[0])
        return value, None if a[1] is None else self._of.div(self._of.mul(self._of.const(0.5), a[1]), value)

    def exp(self, a: Pair) -> Pair:
        """Return the exponential."""
        value = self._of.exp(a[0])
        return value, self._product(a[1], value)

    def erfc(self, a: Pair) -> Pair:
        """Return the complementary error function; erfc'(a) = -2 / sqrt(pi) exp(-a^2)."""
        value = self._of.erfc(a[0])
        if a[1] is None:
            return value, None
        square = self._of.min(self._of.mul(a[0], a[0]), self._of.const(-EXP_DOMAIN[0]))
        bell = self._of.exp(self._of.mul(self._of.const(-1.0), square))
        return value, self._of.mul(a[1], self._of.mul(self._of.const(-2 / sqrt(pi)), bell))


def evaluate_derivative(program: TracedProgram, values: Mapping[str, Any]) -> Any:
    """Return the derivative of a program with respect to r2 with numpy; values of inputs and parameters by name."""
    dual = DualNumber(NumpyBackEnd)
    pairs = {name: (value, None) for name, value in values.items()} | dual.inputs(values["r2"], values["rinv"])
    return run_program(program, dual, pairs)[len(program.steps) - 1][1]


def differentiate_trace(value: Scalar, r2: TracedNode, rinv: TracedNode) -> TracedNode | None:
    """Return d/d(r^2) of a traced expression of these inputs, or None if it is zero."""
    if not isinstance(value, TracedNode):
        return None
    program = linear_program([value], [])
    degree = program.degree()
    if degree and "r2" not in program.inputs:  # a power of 1/r: d/d(r^2) r^-d = -d/2 r^-d / r^2
        return value * (rinv * rinv) * (-degree / 2)
    dual = DualNumber(RecordingBackEnd())
    leaves = {step[1]: TracedNode(step[0], step[1]) for step in program.steps if step[0] in ("input", "param")}
    leaves |= {"r2": r2, "rinv": rinv}
    values = run_program(program, RecordingBackEnd(), leaves)
    # derivatives of powers take one product, where the product rule would take several
    done = {number: (values[number], None if power == 0 else values[number] * (rinv * rinv) * (-0.5 * power))
            for number, power in enumerate(program.powers())
            if power is not None and program.steps[number][0] != "input"}
    pairs = {name: (leaf, None) for name, leaf in leaves.items()} | dual.inputs(r2, rinv)
    return run_program(program, dual, pairs, done=done)[program.results[0]][1]
