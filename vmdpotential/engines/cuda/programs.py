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
from vmdpotential.interactions.program import Numpy, Program, run

#: Largest number of constants in a task.
MAX_UNIFORMS = 96

#: Indices of the first two constants: the squares of the cutoff and of the softening length, A^2.
CUTOFF2, SOFTENING2 = 0, 1

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
        outputs = ("slope", *(("bend",) if work.jerk else ()), *(("energy",) if work.energy else ()))
        self.scaled = potential.scaled(outputs)
        self.real = np.dtype(np.float32 if work.precision == "single" else np.float64)
        self._c = "float" if work.precision == "single" else "double"
        self._parameters, self._tables = list(potential.atoms), list(potential.tables)
        self.words = -(-(3 + len(self._parameters) + bool(self._tables)) // 4)
        programs = {"pair_values": self.scaled}
        if potential.corrects_excluded:
            programs["excluded_values"] = potential.scaled(outputs, excluded=True)
        bends = [_bend(scaled.program) for scaled in programs.values()] if work.jerk else []
        #: Constant factor of the bend, and whether the kernel also multiplies the bend by the slope.
        self._bend, self._by_slope = bends[0][0] if bends else 1.0, all(over is not None for _, _, over in bends)
        functions = ""
        values = [self.scaled.cutoff2, self.scaled.softening2]
        for name, scaled in programs.items():
            functions += self._function(name, scaled, outputs, len(values))
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
            f"struct Values {{ REAL slope, bend, energy[TERMS]; }};\n{functions}")
        self.macros: dict[str, object] = {
            "REAL": self._c, "UNIFORMS": self.field, "CUTOFF2": CUTOFF2, "SOFTENING2": SOFTENING2,
            "WORDS": self.words, "TERMS": len(potential.terms), "ENERGY": int(work.energy),
            "CORRECTS": int(potential.corrects_excluded), "TABLES": int(bool(self._tables)),
            "TWICE_BEND": f"(REAL){2 * self._bend!r}", "BEND_BY_SLOPE": int(self._by_slope)}

    @property
    def field(self) -> str:
        """Name of the task's field with the constants."""
        return "u" if self._c == "float" else "doubles"

    def _function(self, name: str, scaled: ScaledPairs, outputs: tuple[str, ...], first: int) -> str:
        """Return the C function of a program; common factors of the bend are left to the kernel."""
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
        results = list(program.results)
        slope, bend, energies = names[results[0]], "0", [names[r] for r in results[1:]]
        if "bend" in outputs:
            before, rest, over = _bend(program)
            bend, energies = names[over if self._by_slope and over is not None else rest], energies[1:]
            if before != self._bend:
                bend = device.mul(bend, device.const(before / self._bend))
        return (f"__device__ __forceinline__ Values {name}(REAL r2, REAL rinv, const Atom &i, const Atom &j, "
                "const Table &pair, const REAL *u)\n{\n" + "\n".join(device.lines)
                + f"\n  return Values{{{slope}, {bend}, {{{', '.join(energies)}}}}};\n}}\n")

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


def _bend(program: Program) -> tuple[float, int, int | None]:
    """Return the constant factor of the bend, the step of the rest, and the step of rest / slope if there is one.

    The bend, the slope's derivative, is often a multiple of the slope: for gravity by -1.5 / r^2.
    """
    slope, bend = program.results[:2]
    number = 1.0
    operation, *factors = program.steps[bend]
    constants = [a for a in factors if program.steps[a][0] == "const"]
    if operation == "mul" and constants:
        number, bend = float(program.steps[constants[0]][1]), factors[1 - factors.index(constants[0])]
        operation, *factors = program.steps[bend]
    return number, bend, factors[1 - factors.index(slope)] if operation == "mul" and slope in factors else None


def _uniforms(scaled: ScaledPairs) -> list[float]:
    program = scaled.program
    steps = run(program, Numpy, dict(zip(program.parameters, scaled.values, strict=True)), "uniform")
    return [float(steps[n]) for n in uniform_steps(program)]
