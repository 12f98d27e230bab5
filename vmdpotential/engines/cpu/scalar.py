"""Traced pair potentials as scalar Numba code; LLVM vectorises the loop around it where it can."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from vmdpotential.interactions.csource import CSource
from vmdpotential.interactions.program import Program, run


class PythonSource(CSource):
    """Back end that writes Python statements, in which numbers have the type ``real``."""

    def _let(self, text: str, kind: str = "") -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"    {name} = {text}")
        return name

    def const(self, value: float) -> str:
        """Return a literal."""
        return f"real({float(value)!r})"

    def fma(self, a: str, b: str, c: str) -> str:
        """Return a * b + c."""
        return self._let(f"{a} * {b} + {c}")

    def min(self, a: str, b: str) -> str:
        """Return the smaller."""
        return self._let(f"min({a}, {b})")

    def max(self, a: str, b: str) -> str:
        """Return the larger."""
        return self._let(f"max({a}, {b})")

    def select(self, condition: str, a: str, b: str) -> str:
        """Return a where the condition holds, else b."""
        return self._let(f"{a} if {condition} else {b}")

    def sqrt(self, a: str) -> str:
        """Return the square root."""
        return self._let(f"math.sqrt({a})")

    def exp(self, a: str) -> str:
        """Return the exponential."""
        return self._let(f"exp({a})")

    def erfc(self, a: str) -> str:
        """Return the complementary error function."""
        return self._let(f"math.erfc({a})")

    def interpolate(self, a: str, first: str, *others: str) -> str:
        """Return the linear interpolation at `a` in a table whose first value is `first`, as ``values[...]``."""
        k, table = self._let(f"int({a})"), first.removesuffix("]")
        low, high = self._let(f"{table} + {k}]"), self._let(f"{table} + {k} + 1]")
        return self._let(f"{low} + ({a} - {k}) * ({high} - {low})")


@cache
def exponential() -> Any:
    """Return a Numba function exp(x) in float64 that LLVM can vectorise, unlike that of the C library.

    It is four times as fast in loops. The argument is in :data:`vmdpotential.interactions.tracing.EXP_DOMAIN`, and the
    relative error at most 4e-15: exp(x) is 2^k exp(r) with |r| <= ln(2) / 2, by the terms of its series up to r^12.
    """
    import numba

    per_two, high, low = 1 / math.log(2), 0.6931471803691238, 1.9082149292705877e-10
    terms = tuple(1 / math.factorial(n) for n in range(13))

    def exp(x: float) -> float:
        k = np.rint(x * per_two)
        r = (x - k * high) - k * low
        total = terms[12]
        for n in range(11, -1, -1):
            total = total * r + terms[n]
        return total * np.int64((np.int64(k) + 1023) << 52).view(np.float64)

    return numba.njit(exp, fastmath=True, error_model="numpy", nogil=True)


def scalar_pairs(program: Program, real: Any, names: Sequence[str], tables: Sequence[str]) -> Any:
    """Return a Numba function ``pair(r2, rinv, i, j, table, values)`` of all results of a pair potential's program.

    Parameters
    ----------
    program : Program
        The traced pair potential.
    real : type
        np.float32 or np.float64, the type of all arguments.
    names, tables : sequence of str
        Names of an atom's parameters in the order of `i` and `j`, and of two types' parameters in that of `table`.
    """
    import numba

    back_end = PythonSource()
    values = {name: f"values[{k}]" for k, name in enumerate(program.parameters)} | {"r2": "r2", "rinv": "rinv"}
    values |= {f"{side}.{name}": f"{side}[{k}]" for side in "ij" for k, name in enumerate(names)}
    values |= {f"pair.{name}": f"table[{k}]" for k, name in enumerate(tables)}
    steps = run(program, back_end, values)
    results = ", ".join(f"real({steps[r]})" for r in program.results)
    text = "\n".join(["def pair(r2, rinv, i, j, table, values):", *back_end.lines, f"    return ({results},)\n"])
    space: dict[str, Any] = {
        "math": math, "real": real, "exp": exponential() if real is np.float64 else math.exp, "__name__": __name__}
    exec(compile(text, "<pair program>", "exec"), space)
    return numba.njit(space["pair"], fastmath=True, error_model="numpy", nogil=True)
