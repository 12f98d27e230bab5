"""Device code of traced pair programs, and the records of atoms, tables and constants that it reads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda.radial import DeviceSource
from vmdpotential.engines.pairs import Atoms, PairSum
from vmdpotential.errors import UsageError
from vmdpotential.interactions.compiled import uniform_steps
from vmdpotential.interactions.pairs import ScaledPairs
from vmdpotential.interactions.program import NumpyBackEnd, run_program

#: Largest number of constants in a task.
MAX_UNIFORMS = 96

#: Index of the first constant, the square of the cutoff, A^2.
CUTOFF2 = 0

Records = NDArray[Any]


class Programs:
    """Device code of a pair potential, for pairs and for excluded pairs if these contribute a correction.

    Parameters
    ----------
    work : PairSum

    Attributes
    ----------
    macros : dict
        Macros of the kernels.
    source : str
        C code of the struct Atom, a record of numbers with the atom's parameters and type, the struct Table of the
        parameters of two types, and the functions ``pair_values`` and, if CORRECTS is 1, ``excluded_values``.
    uniforms : (U,)
        Constants that kernels and functions read from the task's field UNIFORMS.
    real : dtype
        Type of the terms and sums.
    """

    def __init__(self, work: PairSum) -> None:
        potential = work.potential
        outputs = ("slope", *(("energy",) if work.energy else ()))
        self.scaled = potential.scaled(outputs)
        self.real = np.dtype(np.float32 if work.precision == "single" else np.float64)
        self._c = "float" if work.precision == "single" else "double"
        self._parameters, self._tables = list(potential.atoms), list(potential.tables)
        self.words = -(-(3 + len(self._parameters) + bool(self._tables)) // 4)
        programs = {"pair_values": self.scaled}
        if potential.corrects_excluded:
            programs["excluded_values"] = potential.scaled(outputs, excluded=True)
        functions = ""
        values = [self.scaled.cutoff2]
        for name, scaled in programs.items():
            functions += self._function(name, scaled, len(values))
            values += _uniforms(scaled)
        if len(values) > MAX_UNIFORMS:
            raise UsageError("interaction", f"needs {len(values)} constants, and the cuda engine takes {MAX_UNIFORMS}",
                             "use {engine cpu}")
        self.uniforms = np.array(values, self.real)
        own = "".join(f", p_{name}" for name in self._parameters)
        table = "".join(f"REAL p_{name}; " for name in self._tables)
        self.source = (
            f"struct alignas(4 * sizeof(REAL)) Atom {{ REAL x, y, z{own};{' int type;' if self._tables else ''} }};\n"
            f"static_assert(sizeof(Atom) == sizeof(Four) * WORDS, \"Atom\");\nstruct Table {{ {table}}};\n"
            f"struct Values {{ REAL slope, energy[TERMS]; }};\n{functions}")
        self.macros: dict[str, object] = {
            "REAL": self._c, "UNIFORMS": self.field, "CUTOFF2": CUTOFF2, "WORDS": self.words,
            "TERMS": len(potential.terms), "ENERGY": int(work.energy),
            "CORRECTS": int(potential.corrects_excluded), "TABLES": int(bool(self._tables))}

    @property
    def field(self) -> str:
        """Name of the task's field with the constants."""
        return "u" if self._c == "float" else "doubles"

    def _function(self, name: str, scaled: ScaledPairs, first: int) -> str:
        """Return the C function of a program."""
        program = scaled.program
        device = DeviceSource(self._c, {})
        names: dict[int, Any] = {n: f"u[{first + k}]" for k, n in enumerate(uniform_steps(program))}
        uniform = program.uniform()
        for number, (operation, *arguments) in enumerate(program.steps):
            if operation == "const":
                names[number] = device.const(arguments[0])
            elif operation == "input":
                side, _, own = arguments[0].partition(".")
                names[number] = f"{side}.p_{own}" if own else side
            elif number not in names and not uniform[number]:
                names[number] = getattr(device, operation)(*(names[a] for a in arguments))
        slope, *energies = (names[r] for r in program.results)
        return (f"__device__ __forceinline__ Values {name}(REAL r2, REAL rinv, const Atom &i, const Atom &j, "
                "const Table &pair, const REAL *u)\n{\n" + "\n".join(device.lines)
                + f"\n  return Values{{{slope}, {{{', '.join(energies)}}}}};\n}}\n")

    def records(self, atoms: Atoms) -> Records:
        """Return records (N, 4 words) of atoms, with coordinates of 0."""
        records = np.zeros((len(atoms), 4 * self.words), self.real)
        for column, name in enumerate(self._parameters, 3):
            records[:, column] = atoms.parameters[name]
        if self._tables:
            assert atoms.types is not None
            records.view(np.int32)[:, (3 + len(self._parameters)) * (self.real.itemsize // 4)] = atoms.types
        return records

    def table(self, atoms: Atoms) -> Records:
        """Return the tables (types, types, names); a single 0 if the potential has none."""
        if not self._tables:
            return np.zeros((1, 1, 1), self.real)
        return np.stack([np.asarray(atoms.tables[name], self.real) for name in self._tables], -1)


def _uniforms(scaled: ScaledPairs) -> list[float]:
    program = scaled.program
    steps = run_program(program, NumpyBackEnd, dict(zip(program.parameters, scaled.values, strict=True)), "uniform")
    return [float(steps[n]) for n in uniform_steps(program)]
