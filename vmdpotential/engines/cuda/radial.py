"""Device code of a traced radial function, and the constants that it reads."""

from __future__ import annotations

from functools import lru_cache

from vmdpotential.errors import UsageError
from vmdpotential.interactions import ScaledInteraction
from vmdpotential.interactions.compiled import uniform_steps, uniform_values
from vmdpotential.interactions.csource import CSource
from vmdpotential.interactions.derivative import DualNumber
from vmdpotential.interactions.program import TracedProgram, run_program

#: Factor by which the kernels' inverse square root in software is too large.
SOFTWARE_SCALE = 16.0

#: Largest number of constants in maps.TASK.
MAX_UNIFORMS = 32


class DeviceSource(CSource):
    """Back end that writes C for the device, where max(u - r2, 0) of a u that is at most 1 is a free saturation.

    Parameters
    ----------
    real : {"float", "double"}
    small : set of str
        Names of values that are at most 1; constants are added to them.
    """

    def __init__(self, real: str, small: set[str]) -> None:
        super().__init__(real)
        self.small = small
        self.differences: dict[str, str] = {}  # the value from which r2 is subtracted

    def const(self, value: float) -> str:
        """Return a literal."""
        literal = super().const(value)
        if value <= 1:
            self.small.add(literal)
        return literal

    def write(self, operation: str, *arguments: str) -> str:
        """Write an operation, and return the name of its result."""
        if operation == "max" and self.real == "float":
            for value, other in (arguments, arguments[::-1]):
                if other == self.const(0.0) and value in self.differences:
                    self.lines.append(f"  const float t{len(self.lines)} = "
                                      f"saturated_difference({self.differences[value]}, r2);")
                    return f"t{len(self.lines) - 1}"
        name = super().write(operation, *arguments)
        if operation == "sub" and arguments[1] == "r2" and arguments[0] in self.small:
            self.differences[name] = arguments[0]
        return name


@lru_cache(maxsize=64)
def radial_source(scaled: ScaledInteraction, real: str, field: bool = False) -> str:
    """Return the C function ``real radial(real r2, real rinv, const real *u)``; with `field` it returns a ``Slope``.

    `u` are the constants of :func:`uniforms`: values that are the same for all pairs are computed on the host and
    stored in constant memory, from which instructions read them without a register.

    Parameters
    ----------
    scaled : ScaledInteraction
        The traced radial function with its parameters.
    real : {"float", "double"}
        Type of all numbers.
    field : bool, optional
        Whether the function also returns dV/d(r^2).
    """
    program, constants = scaled.program, uniforms(scaled)
    device = DeviceSource(real, {f"u[{k}]" for k, value in enumerate(constants) if value <= 1})
    dual = DualNumber(device)
    # names, or with `field` pairs of the names of a value and its derivative; other uniform values are not needed
    known = {number: "" for number, same in enumerate(program.uniform())
             if same and program.steps[number][0] != "const"}
    known |= {number: f"u[{k}]" for k, number in enumerate(uniform_steps(program))}
    if field:
        steps = run_program(program, dual, dual.inputs("r2", "rinv"), done={n: (u, None) for n, u in known.items()})
    else:
        steps = run_program(program, device, {"r2": "r2", "rinv": "rinv"}, done=known)
    lines, result = "\n".join(device.lines), steps[program.results[0]]
    kind, text = ("Slope", f"{{{result[0]}, {result[1]}}}") if field else (real, result)
    return (f"__device__ __forceinline__ {kind} radial({real} r2, {real} rinv, const {real} *u)\n"
            f"{{\n{lines}\n  return {text};\n}}\n")


@lru_cache(maxsize=64)
def uniforms(scaled: ScaledInteraction) -> tuple[float, ...]:
    """Return the values that the radial function reads from `u`.

    Raises
    ------
    UsageError
        If there are more than :data:`MAX_UNIFORMS`.
    """
    results = tuple(uniform_values(scaled.program, scaled.values).tolist())
    if len(results) > MAX_UNIFORMS:
        raise UsageError("interaction", f"needs {len(results)} constants, and the cuda engine takes {MAX_UNIFORMS}",
                         "use {engine cpu}")
    return results


def software_charge(program: TracedProgram) -> float | None:
    """Return the factor of charges that corrects for :data:`SOFTWARE_SCALE`; None if no factor does."""
    degree = program.degree()
    return None if degree is None else SOFTWARE_SCALE**-degree


def is_plain(program: TracedProgram) -> bool:
    """Return whether the function is 1/r, so that its time is that of inverse square roots."""
    return program.steps[-1] == ("input", "rinv")
