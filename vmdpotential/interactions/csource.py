"""C source: the back end of traced radial functions for a host or CUDA compiler."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vmdpotential.errors import UsageError

#: C of each operation on its arguments; {f} is the suffix of functions of the type.
OPERATIONS = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "fma": "fma{f}({}, {}, {})",
    "min": "fmin{f}({}, {})", "max": "fmax{f}({}, {})", "less": "{} < {}", "select": "{} ? {} : {}",
    "sqrt": "sqrt{f}({})", "exp": "exp{f}({})", "erfc": "erfc{f}({})",
}


class CSource:
    """Back end that writes C statements, for a host or CUDA compiler.

    Parameters
    ----------
    real : {"float", "double"}
        Type of the arithmetic.
    operations : dict
        The text of each operation.
    condition : str
        Type of a condition.
    """

    def __init__(self, real: str = "float", operations: dict[str, str] = OPERATIONS, condition: str = "int") -> None:
        self.real, self.operations, self.condition = real, operations, condition
        self.lines: list[str] = []
        self._suffix = "f" if real == "float" else ""

    def const(self, value: float) -> str:
        """Return a literal."""
        return f"{float(value)!r}{self._suffix}"

    def __getattr__(self, operation: str) -> Callable[..., str]:
        """Return the function that writes an operation."""
        return partial(self.write, operation)

    def write(self, operation: str, *arguments: str) -> str:
        """Write an operation, and return the name of its result.

        Raises
        ------
        UsageError
            For tables, as computing is faster on a GPU.
        """
        if operation not in self.operations:
            raise UsageError("interaction", "tables can only be used for sums over pairs on the CPU",
                             "use the interaction without a table")
        text = self.operations[operation].format(*arguments, f=self._suffix)
        if operation == "sub" and arguments[0] == self.const(0.0):
            text = f"-{arguments[1]}"
        name, kind = f"t{len(self.lines)}", self.condition if operation == "less" else self.real
        self.lines.append(f"  const {kind} {name} = {text};")
        return name
