"""Device C of a traced radial function, and the macros that go with it."""

from __future__ import annotations

from collections.abc import Mapping

from vmdpotential.interactions import Scaled
from vmdpotential.interactions.tracing import CSource, Program, evaluate, run

#: How much too large the kernels' software inverse root is.
SOFTWARE_SCALE = 16.0

#: Parameters that fit into maps.TASK.
MAX_PARAMETERS = 16


class DeviceSource(CSource):
    """C for the device: a value known to be at most 1 is cut off at 0 by saturation, which is free."""

    def __init__(self, real: str, at_most_one: frozenset[str]) -> None:
        super().__init__(real)
        self.at_most_one = at_most_one

    def max(self, a: str, b: str) -> str:
        """Return the larger."""
        zero = self.const(0.0)
        for value, other in ((a, b), (b, a)):
            if other == zero and value in self.at_most_one and self.real == "float":
                return self._let(f"__saturatef({value})")
        return super().max(a, b)


def source(scaled: Scaled, real: str) -> str:
    """Return ``real radial(real r2, real rinv, const real *p)`` for the device.

    Parameters
    ----------
    scaled : Scaled
    real : {"float", "double"}
    """
    program = scaled.program
    inputs = {"r2": "r2", "rinv": "rinv"} | {name: f"p[{k}]" for k, name in enumerate(program.parameters)}
    bounded = _at_most_one(program, dict(zip(program.parameters, scaled.values, strict=True)))
    names = run(program, CSource(real), inputs)
    back_end = DeviceSource(real, frozenset(names[n] for n in bounded))
    result = run(program, back_end, inputs)[len(program.steps) - 1]
    lines = "\n".join(back_end.lines)
    return (f"__device__ __forceinline__ {real} radial({real} r2, {real} rinv, const {real} *p)\n"
            f"{{\n{lines}\n  return {result};\n}}\n")


def _at_most_one(program: Program, values: Mapping[str, float]) -> list[int]:
    """Return the steps of the form u - r^2 whose u, the same for all pairs, is at most 1."""
    found = []
    for number, (step, uniform) in enumerate(zip(program.steps, program.uniform(), strict=True)):
        if step[0] != "sub" or uniform:
            continue
        first, second = step[1:]
        if program.uniform()[first] and program.steps[second] == ("input", "r2"):
            left = Program(program.steps[: first + 1], program.parameters)
            if float(evaluate(left, dict(values) | {"r2": 1.0, "rinv": 1.0})) <= 1:
                found.append(number)
    return found


def software_charge(program: Program) -> float | None:
    """Return the factor of charges that makes up for :data:`SOFTWARE_SCALE`, None where there is none."""
    degree = program.degree()
    return None if degree is None else SOFTWARE_SCALE**-degree


def is_plain(program: Program) -> bool:
    """Return whether the function is 1/r alone, so that inverse roots are all its work."""
    return program.steps[-1] == ("input", "rinv")
