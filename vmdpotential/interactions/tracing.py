"""Tracing: conversion of a radial function, written once in Python, to vector LLVM code and C.

A radial function takes ``(r2, rinv, p)``: the squared distance (A^2), its inverse square root
(1/A) and the named parameters, and returns the potential of a unit charge (1/A). It uses
arithmetic and the functions of this module (:func:`fma`, :func:`minimum`, :func:`maximum`,
:func:`less`, :func:`select`, :func:`sqrt`, :func:`exp`, :func:`erfc`, :func:`interpolate`), no ``if``.

Parameters of the two atoms are also leaves, ``i.name`` and ``j.name``, and values that a table has for their types are
``pair.name``.

Called with numpy arrays, it computes the reference in float64. Called with :class:`TracedNode` leaves, it
records a :class:`~vmdpotential.interactions.program.TracedProgram`, which every engine evaluates in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from vmdpotential.interactions.program import NumpyBackEnd, TracedProgram

Scalar: TypeAlias = Any  # a number, a numpy array or a TracedNode

#: Leaves of every radial function.
INPUTS = ("r2", "rinv")

#: Arguments of :func:`exp`: the results are normal numbers in single precision, 1.6e-38 to 1.7e38.
EXP_DOMAIN = (-87.0, 88.0)


class TracedNode:
    """A value that records the operation and the arguments of which it is the result."""

    def __init__(self, operation: str, *arguments: Any) -> None:
        self.operation = operation
        self.arguments = arguments
        #: Whether it depends only on parameters and constants.
        self.uniform: bool = operation != "input" and all(a.uniform for a in arguments if isinstance(a, TracedNode))

    def __add__(self, other: Scalar) -> TracedNode:
        return _record("add", self, other)

    def __radd__(self, other: Scalar) -> TracedNode:
        return _record("add", other, self)

    def __sub__(self, other: Scalar) -> TracedNode:
        return _record("sub", self, other)

    def __rsub__(self, other: Scalar) -> TracedNode:
        return _record("sub", other, self)

    def __mul__(self, other: Scalar) -> TracedNode:
        return _record("mul", self, other)

    def __rmul__(self, other: Scalar) -> TracedNode:
        return _record("mul", other, self)

    def __truediv__(self, other: Scalar) -> TracedNode:
        return _record("div", self, other)

    def __rtruediv__(self, other: Scalar) -> TracedNode:
        return _record("div", other, self)

    def __neg__(self) -> TracedNode:
        return _record("sub", 0.0, self)

    def __pow__(self, power: int) -> TracedNode:
        if not isinstance(power, int) or power < 1:
            raise TypeError("a radial function may raise to positive whole powers only")
        if power == 1:
            return self
        half = self ** (power // 2)
        return half * half * self if power % 2 else half * half

    def __bool__(self) -> bool:
        raise TypeError("a radial function cannot branch with 'if'; use select(condition, a, b)")


def _record(operation: str, *arguments: Scalar) -> TracedNode:
    return TracedNode(operation, *(a if isinstance(a, TracedNode) else TracedNode("const", float(a))
                                   for a in arguments))


def _traced(*arguments: Scalar) -> bool:
    return any(isinstance(a, TracedNode) for a in arguments)


def fma(a: Scalar, b: Scalar, c: Scalar) -> Scalar:
    """Return a * b + c, rounded once where the engine can."""
    return _record("fma", a, b, c) if _traced(a, b, c) else NumpyBackEnd.fma(a, b, c)


def minimum(a: Scalar, b: Scalar) -> Scalar:
    """Return the smaller of two values."""
    return _record("min", a, b) if _traced(a, b) else np.minimum(a, b)


def maximum(a: Scalar, b: Scalar) -> Scalar:
    """Return the larger of two values."""
    return _record("max", a, b) if _traced(a, b) else np.maximum(a, b)


def less(a: Scalar, b: Scalar) -> Scalar:
    """Return the condition a < b, for :func:`select`."""
    return _record("less", a, b) if _traced(a, b) else np.less(a, b)


def select(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """Return a where the condition holds, else b; both are computed."""
    return _record("select", condition, a, b) if _traced(condition, a, b) else np.where(condition, a, b)


def sqrt(a: Scalar) -> Scalar:
    """Return the square root."""
    return _record("sqrt", a) if _traced(a) else np.sqrt(a)


def exp(a: Scalar) -> Scalar:
    """Return the exponential of a, clipped to :data:`EXP_DOMAIN`, the range of single precision, on every engine."""
    a = minimum(maximum(a, EXP_DOMAIN[0]), EXP_DOMAIN[1])
    return _record("exp", a) if _traced(a) else np.exp(a)


def erfc(a: Scalar) -> Scalar:
    """Return the complementary error function; its error on engines of single precision is at most 5e-7."""
    return _record("erfc", a) if _traced(a) else NumpyBackEnd.erfc(a)


def interpolate(a: Scalar, values: Sequence[Scalar]) -> Scalar:
    """Return the linear interpolation between values[k] and values[k + 1] at a = k + fraction; constant beyond the end.

    The values must be consecutive parameters, and a must not be negative. Only CPU engines have this operation.
    """
    a = minimum(a, len(values) - 1.001)
    return _record("interpolate", a, *values) if _traced(a) else NumpyBackEnd.interpolate(a, *values)


def trace_radial(radial: Callable[..., Scalar], parameters: Sequence[str]) -> tuple[TracedProgram, TracedProgram]:
    """Return the program of a radial function, and that of a factor which was separated from it.

    The factor depends on parameters alone; an engine multiplies the charges by it instead of
    every term.

    Parameters
    ----------
    radial : callable
        ``radial(r2, rinv, p)``.
    parameters : sequence of str
        Names that the function may read as attributes of ``p``.

    Raises
    ------
    TypeError
        When the function branches or uses an operation that cannot be traced.
    """
    leaves = {name: TracedNode("input", name) for name in INPUTS}
    names = SimpleNamespace(**{name: TracedNode("param", name) for name in parameters})
    result = radial(leaves["r2"], leaves["rinv"], names)
    if not isinstance(result, TracedNode) or result.uniform:
        raise TypeError("the radial function does not depend on r2 and rinv")
    factor, rest = _split(result, {})
    assert rest is not None
    return linear_program([rest], parameters), linear_program([factor], parameters)


def _split(node: TracedNode, known: dict[TracedNode, Any]) -> tuple[TracedNode, TracedNode | None]:
    """Return the constant factor of a node, and the rest, or None if nothing varies.

    `known` holds the results of earlier nodes: without it, a node that is used twice would be visited
    twice, and the nodes below it many times.
    """
    if node not in known:
        known[node] = _split_one(node, known)
    factor, rest = known[node]
    return factor, rest


def _split_one(node: TracedNode, known: dict[TracedNode, Any]) -> tuple[TracedNode, TracedNode | None]:
    if node.uniform:
        return node, None
    if node.operation in ("mul", "div"):
        (factor_a, a), (factor_b, b) = (_split(argument, known) for argument in node.arguments)
        factor = factor_a * factor_b if node.operation == "mul" else factor_a / factor_b
        if a is None or b is None:
            if node.operation == "div" and a is None:
                return factor, _record("div", 1.0, b)
            return factor, b if a is None else a
        return factor, a * b if node.operation == "mul" else a / b
    return TracedNode("const", 1.0), node


def linear_program(results: Sequence[Scalar], parameters: Sequence[str]) -> TracedProgram:
    """Return a program with the steps of some expressions, each once, with constants folded."""
    steps: list[tuple[Any, ...]] = []
    numbers: dict[tuple[Any, ...], int] = {}

    def add(*step: Any) -> int:
        if step not in numbers:
            numbers[step] = len(steps)
            steps.append(step)
        return numbers[step]

    def constant(number: int) -> float | None:
        return steps[number][1] if steps[number][0] == "const" else None

    visited: dict[TracedNode, int] = {}

    def visit(node: TracedNode) -> int:
        if node not in visited:
            visited[node] = step_of(node)
        return visited[node]

    def step_of(node: TracedNode) -> int:
        if node.operation in ("const", "input", "param"):
            return add(node.operation, *node.arguments)
        arguments = [visit(a) for a in node.arguments]
        values = [constant(a) for a in arguments]
        if node.operation in _FOLD:
            if None not in values:
                return add("const", _FOLD[node.operation](*values))
            if node.operation == "div" and values[1] is not None:  # a constant divisor becomes a factor
                node = TracedNode("mul")
                values[1] = 1.0 / values[1]
                arguments[1] = add("const", values[1])
            unit = {"mul": 1.0, "add": 0.0}.get(node.operation)
            for value, other in ((values[0], arguments[1]), (values[1], arguments[0])):
                if unit is not None and value == unit:
                    return other
        return add(node.operation, *arguments)

    requested = [visit(r if isinstance(r, TracedNode) else TracedNode("const", float(r))) for r in results]
    return _without_dead_steps(steps, requested, parameters)


_FOLD: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
}


def _without_dead_steps(steps: list[tuple[Any, ...]], results: Sequence[int],
                        parameters: Sequence[str]) -> TracedProgram:
    """Return the program of some results, without the steps that are no longer used after folding."""
    leaves = ("const", "input", "param")
    needed = set(results)
    for number in range(max(results), -1, -1):
        if number in needed and steps[number][0] not in leaves:
            needed.update(steps[number][1:])
    order = {number: new for new, number in enumerate(sorted(needed))}
    kept = tuple(
        steps[n] if steps[n][0] in leaves else (steps[n][0], *(order[a] for a in steps[n][1:])) for n in order
    )
    return TracedProgram(kept, tuple(parameters), tuple(order[r] for r in results))


class RecordingBackEnd:
    """Back end that records operations, so that a program or its derivative can be traced again."""

    def const(self, value: float) -> TracedNode:
        """Return a number."""
        return TracedNode("const", float(value))

    def __getattr__(self, operation: str) -> Callable[..., TracedNode]:
        """Return the function that records an operation."""
        return partial(_record, operation)
