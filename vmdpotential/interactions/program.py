"""Programs: radial functions as sequences of steps, and their evaluation.

:func:`run_program` evaluates a program with a back end, an object that has the operations as methods: numpy in
float64, the reference (:class:`NumpyBackEnd`), C source (:mod:`~vmdpotential.interactions.csource`), C++
(:mod:`~vmdpotential.interactions.compiled`), or LLVM code.
:mod:`~vmdpotential.interactions.derivative` adds the derivative to any of them, so that every interaction has a field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class TracedProgram:
    """A traced radial function in static single assignment form.

    Parameters
    ----------
    steps : tuple of tuples
        ``(operation, argument, ...)``: arguments are indices of earlier steps, except those of
        ``const`` (a number), ``input`` and ``param`` (a name).
    parameters : tuple of str
        Names of the parameters, in the order their values are passed.
    results : tuple of int
        Numbers of the steps that are results; the last step unless given.
    """

    steps: tuple[tuple[Any, ...], ...]
    parameters: tuple[str, ...]
    results: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.results:
            object.__setattr__(self, "results", (len(self.steps) - 1,))

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the leaves that vary, sorted."""
        return tuple(sorted(step[1] for step in self.steps if step[0] == "input"))

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Return the level of each step: 0 for constant steps, 1 for those that vary with atom i, 2 with every pair.

        An engine computes each step in the outermost loop that its level allows.
        """
        result: list[int] = []
        for operation, *arguments in self.steps:
            if operation in ("const", "param"):
                result.append(0)
            elif operation == "input":
                result.append(1 if arguments[0].startswith("i.") else 2)
            else:
                result.append(max(result[a] for a in arguments))
        return tuple(result)

    def uniform(self) -> list[bool]:
        """Return for each step whether it depends only on parameters and constants.

        An engine computes those once, before the loop over atoms.
        """
        return [level == 0 for level in self.levels]

    def powers(self) -> list[int | None]:
        """Return n for each step that is 1/r^n times a factor independent of the distance, and None for others."""
        result: list[int | None] = []
        for operation, *arguments in self.steps:
            if operation in ("const", "param", "input"):
                result.append({"rinv": 1, "r2": -2}.get(arguments[0], 0) if operation == "input" else 0)
                continue
            of = [result[a] for a in arguments]
            if all(n == 0 for n in of):
                result.append(0)
            elif None in of or operation not in ("mul", "div"):
                result.append(None)
            else:
                result.append(of[0] + of[1] if operation == "mul" else of[0] - of[1])  # type: ignore[operator]
        return result

    def degree(self) -> int | None:
        """Return d if the first result is proportional to rinv^d at constant r2, else None.

        An engine whose inner loop computes ``2 rinv`` faster than ``rinv`` can then multiply the
        charges by ``2^-d``.
        """
        degrees: list[int | None] = []
        for operation, *arguments in self.steps:
            if operation in ("const", "param"):
                degrees.append(0)
            elif operation == "input":
                degrees.append(1 if arguments[0] == "rinv" else 0)
            else:
                degrees.append(_degree(operation, [degrees[a] for a in arguments]))
        return degrees[self.results[0]]


def _degree(operation: str, of: Sequence[int | None]) -> int | None:
    known = [d for d in of if d is not None]
    if len(known) < len(of):
        return None
    if operation == "mul":
        return known[0] + known[1]
    if operation == "div":
        return known[0] - known[1]
    if operation in ("add", "sub", "min", "max"):
        return known[0] if known[0] == known[1] else None
    if operation == "fma":
        return known[2] if known[0] + known[1] == known[2] else None
    if operation == "select":
        return known[1] if known[1] == known[2] and known[0] == 0 else None
    return 0 if all(d == 0 for d in known) else None


def run_program(program: TracedProgram, back_end: Any, values: Mapping[str, Any], part: str = "all",
        done: Mapping[int, Any] | None = None) -> dict[int, Any]:
    """Evaluate a program with the operations of a back end.

    Parameters
    ----------
    program : Program
    back_end : object
        An object with ``const(number)`` and a method for each operation (``add``, ``sub``, ``mul``, ``div``,
        ``fma``, ``min``, ``max``, ``less``, ``select``, ``sqrt``, ``exp``, ``erfc``, and on the CPU ``interpolate``).
    values : mapping
        Inputs and parameters that this part needs, by name.
    part : {"all", "uniform", "own", "varying"}
        Steps to evaluate: ``uniform`` those that never change, ``own`` those that depend on atom i alone, ``varying``
        the rest.
    done : mapping
        Values of steps that were evaluated before, by number.

    Returns
    -------
    dict
        Value of every step evaluated so far, by its number.
    """
    results = dict(done or {})
    last = {"uniform": 0, "own": 1}.get(part, 2)
    for number, (level, (operation, *arguments)) in enumerate(zip(program.levels, program.steps, strict=True)):
        if number in results or level > last:
            continue
        if operation == "const":
            results[number] = back_end.const(arguments[0])
        elif operation in ("input", "param"):
            results[number] = values[arguments[0]]
        else:
            results[number] = getattr(back_end, operation)(*(results[a] for a in arguments))
    return results


class NumpyBackEnd:
    """Back end that computes with numpy, in the type of the values."""

    const = staticmethod(float)
    add = staticmethod(np.add)
    sub = staticmethod(np.subtract)
    mul = staticmethod(np.multiply)
    div = staticmethod(np.divide)
    fma = staticmethod(lambda a, b, c: a * b + c)
    min = staticmethod(np.minimum)
    max = staticmethod(np.maximum)
    less = staticmethod(np.less)
    select = staticmethod(np.where)
    sqrt = staticmethod(np.sqrt)
    exp = staticmethod(np.exp)

    @staticmethod
    def erfc(a: Any) -> Any:
        """Return the complementary error function."""
        from scipy import special

        return special.erfc(a)

    @staticmethod
    def interpolate(a: Any, *values: Any) -> Any:
        """Return the linear interpolation between values[k] and values[k + 1] at a = k + fraction."""
        k = np.asarray(a).astype(np.int64)
        low, high = np.asarray(values)[k], np.asarray(values)[k + 1]
        return low + (a - k) * (high - low)


def evaluate_program(program: TracedProgram, values: Mapping[str, Any]) -> Any:
    """Return the result of a program with numpy; values of inputs and parameters by name."""
    return run_program(program, NumpyBackEnd, values)[program.results[0]]


def evaluate_all(program: TracedProgram, values: Mapping[str, Any]) -> list[Any]:
    """Return all results of a program with numpy."""
    steps = run_program(program, NumpyBackEnd, values)
    return [steps[r] for r in program.results]
