"""Device code of a traced radial function, and the constants that it reads."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from vmdpotential.errors import UsageError
from vmdpotential.interactions import Scaled
from vmdpotential.interactions.csource import CSource
from vmdpotential.interactions.derivative import Dual
from vmdpotential.interactions.program import NumpyBackEnd, TracedProgram, run_program

#: Factor by which the kernels' inverse square root in software is too large.
SOFTWARE_SCALE = 16.0

#: Largest number of constants in maps.TASK.
MAX_UNIFORMS = 32


class DeviceSource(CSource):
    """Back end that writes C for the device, where max(a, 0) of a value that is at most 1 is a free saturation."""

    def __init__(self, real: str, at_most_one: dict[str, tuple[str, str]]) -> None:
        super().__init__(real)
        self.at_most_one = at_most_one  # a difference and its two terms

    def max(self, a: str, b: str) -> str:
        """Return the larger value."""
        zero = self.const(0.0)
        for value, other in ((a, b), (b, a)):
            if other == zero and value in self.at_most_one and self.real == "float":
                return self._let(f"saturated_difference({', '.join(self.at_most_one[value])})")
        return super().max(a, b)


@lru_cache(maxsize=64)
def radial_source(scaled: Scaled, real: str, field: bool = False) -> str:
    """Return the C function ``real radial(real r2, real rinv, const real *u)``; with `field` it returns a ``Slope``.

    `u` are the constants of :func:`uniforms`: values that are the same for all pairs are computed on the host and
    stored in constant memory, from which instructions read them without a register.

    Parameters
    ----------
    scaled : Scaled
        The traced radial function with its parameters.
    real : {"float", "double"}
        Type of all numbers.
    field : bool, optional
        Whether the function also returns dV/d(r^2).
    """
    program = scaled.program
    numbers = _uniform_steps(program)
    terms: dict[str, tuple[str, str]] = {}
    device = DeviceSource(real, terms)
    dual = Dual(device)
    back_end = dual if field else device
    inputs: dict[str, Any] = dual.inputs("r2", "rinv") if field else {"r2": "r2", "rinv": "rinv"}
    done = {number: (f"u[{k}]", None) if field else f"u[{k}]" for k, number in enumerate(numbers)}
    names: dict[int, Any] = {}  # names, or with `field` pairs of the names of a value and its derivative
    bounded = _at_most_one(scaled)
    for number, (operation, *arguments) in enumerate(program.steps):
        if number in done:
            names[number] = done[number]
        elif operation == "const":
            names[number] = back_end.const(arguments[0])
        elif operation == "input":
            names[number] = inputs[arguments[0]]
        elif not program.uniform()[number]:
            names[number] = getattr(back_end, operation)(*(names[a] for a in arguments))
            if number in bounded:
                value, *of = ((names[n][0] if field else names[n]) for n in (number, *arguments))
                terms[value] = (of[0], of[1])
    lines, result = "\n".join(device.lines), names[len(program.steps) - 1]
    kind, text = ("Slope", f"{{{result[0]}, {result[1]}}}") if field else (real, result)
    return (f"__device__ __forceinline__ {kind} radial({real} r2, {real} rinv, const {real} *u)\n"
            f"{{\n{lines}\n  return {text};\n}}\n")


@lru_cache(maxsize=64)
def uniforms(scaled: Scaled) -> tuple[float, ...]:
    """Return the values that the radial function reads from `u`.

    Raises
    ------
    UsageError
        If there are more than :data:`MAX_UNIFORMS`.
    """
    program = scaled.program
    values = dict(zip(program.parameters, scaled.values, strict=True)) | {"r2": 1.0, "rinv": 1.0}
    steps = run_program(program, NumpyBackEnd, values)
    results = tuple(float(steps[number]) for number in _uniform_steps(program))
    if len(results) > MAX_UNIFORMS:
        raise UsageError("interaction", f"needs {len(results)} constants, and the cuda engine takes {MAX_UNIFORMS}",
                         "use {engine cpu}")
    return results


def _uniform_steps(program: TracedProgram) -> list[int]:
    """Return the steps that are the same for all pairs and needed by steps that differ, without constants."""
    uniform = program.uniform()
    used = {a for step, same in zip(program.steps, uniform, strict=True)
            if not same and step[0] != "input" for a in step[1:]}
    return [n for n in sorted(used) if uniform[n] and program.steps[n][0] != "const"]


def _at_most_one(scaled: Scaled) -> set[int]:
    """Return the steps of the form u - r^2 whose u, the same for all pairs, is at most 1."""
    program = scaled.program
    values = dict(zip(program.parameters, scaled.values, strict=True)) | {"r2": 1.0, "rinv": 1.0}
    steps, uniform = run_program(program, NumpyBackEnd, values), program.uniform()
    return {number for number, step in enumerate(program.steps)
            if step[0] == "sub" and uniform[step[1]] and program.steps[step[2]] == ("input", "r2")
            and float(steps[step[1]]) <= 1}


def software_charge(program: TracedProgram) -> float | None:
    """Return the factor of charges that corrects for :data:`SOFTWARE_SCALE`; None if no factor does."""
    degree = program.degree()
    return None if degree is None else SOFTWARE_SCALE**-degree


def is_plain(program: TracedProgram) -> bool:
    """Return whether the function is 1/r, so that its time is that of inverse square roots."""
    return program.steps[-1] == ("input", "rinv")
