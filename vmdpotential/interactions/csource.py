"""C source: the back end of traced radial functions for a host or CUDA compiler."""

from __future__ import annotations

from vmdpotential.errors import UsageError


class CSource:
    """Back end that writes C statements, for a host or CUDA compiler.

    Parameters
    ----------
    real : {"float", "double"}
        Type of the arithmetic.
    """

    def __init__(self, real: str = "float") -> None:
        self.real = real
        self.lines: list[str] = []
        self._suffix = "f" if real == "float" else ""

    def _let(self, text: str, kind: str = "") -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"  const {kind or self.real} {name} = {text};")
        return name

    def const(self, value: float) -> str:
        """Return a literal."""
        literal = repr(float(value))
        return f"{literal}{self._suffix}"

    def add(self, a: str, b: str) -> str:
        """Return a + b."""
        return self._let(f"{a} + {b}")

    def sub(self, a: str, b: str) -> str:
        """Return a - b, written as -b if a is zero."""
        return self._let(f"-{b}" if a in ("0.0", "0.0f") else f"{a} - {b}")

    def mul(self, a: str, b: str) -> str:
        """Return a * b."""
        return self._let(f"{a} * {b}")

    def div(self, a: str, b: str) -> str:
        """Return a / b."""
        return self._let(f"{a} / {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        """Return a * b + c, rounded once."""
        return self._let(f"fma{self._suffix}({a}, {b}, {c})")

    def min(self, a: str, b: str) -> str:
        """Return the smaller."""
        return self._let(f"fmin{self._suffix}({a}, {b})")

    def max(self, a: str, b: str) -> str:
        """Return the larger."""
        return self._let(f"fmax{self._suffix}({a}, {b})")

    def less(self, a: str, b: str) -> str:
        """Return the condition a < b."""
        return self._let(f"{a} < {b}", "int")

    def select(self, condition: str, a: str, b: str) -> str:
        """Return a where the condition holds, else b."""
        return self._let(f"{condition} ? {a} : {b}")

    def sqrt(self, a: str) -> str:
        """Return the square root."""
        return self._let(f"sqrt{self._suffix}({a})")

    def exp(self, a: str) -> str:
        """Return the exponential."""
        return self._let(f"exp{self._suffix}({a})")

    def erfc(self, a: str) -> str:
        """Return the complementary error function."""
        return self._let(f"erfc{self._suffix}({a})")

    def interpolate(self, a: str, first: str, *others: str) -> str:
        """Raise UsageError, as there are no tables in C: computing is faster on a GPU."""
        raise UsageError("interaction", "tables can only be used for sums over pairs on the CPU",
                         "use the interaction without a table")
