"""Pair potentials as the kernels of sums.cu need them: functions or programs of a CPU, and device code of a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.errors import UsageError
from vmdpotential.interactions.compiled import (
    PAIR_RESULTS,
    interpreter_instructions,
    number_of,
    uniform_steps,
    uniform_values,
)
from vmdpotential.interactions.csource import CSource

from .pair_terms import PairPotential, ScaledPairs

#: A CPU's unit of length, A: 1/r in this unit is 2/r in 1/A, which the kernels' inverse square roots yield.
CPU_LENGTH = 2.0

#: Largest number of terms of a potential, and of their parameters of an atom.
MAX_TERMS, MAX_PARAMETERS = 8, 17

#: Largest number of constants of a GPU's functions.
MAX_CONSTANTS = 96


class PairProgram:
    """A pair potential as the kernels need it.

    On a CPU, terms are functions of :mod:`~vmdpotential.interactions.compiled`, or one of them has none, and an
    interpreter runs all of them. For a GPU, :attr:`macros` and :attr:`source` are compiled with the kernel.

    Parameters
    ----------
    potential : PairPotential
    energy : bool
        Whether energies are computed.
    real : numpy type
        Type of the kernels' numbers.

    Attributes
    ----------
    order : list of int
        The terms in the order of the rows, and of a CPU's energies.
    rows, tables : list of str
        Names of the parameters of an atom, and of two types.
    """

    def __init__(self, potential: PairPotential, energy: bool, real: Any) -> None:
        self.potential, self.energy, self.real = potential, energy, real
        self._outputs = PAIR_RESULTS if energy else PAIR_RESULTS[:1]
        columns: list[list[int]] = []
        values: list[Floats] = []
        for term in potential.terms:
            alone = PairPotential((term,))
            numbers, places = [-1, -1], [0, 0]
            for k, excluded in enumerate((False, True)[: 1 + (term.bound.interaction.excluded is not None)]):
                scaled = alone.scaled(PAIR_RESULTS, CPU_LENGTH, excluded)
                numbers[k], places[k] = number_of(scaled.program), sum(map(len, values))
                values.append(uniform_values(scaled.program, scaled.values))
            columns.append([*numbers, *places, len(term.rule.atoms), len(term.rule.pair)])
        interpreted = any(row[0] < 0 or (row[1] < 0 and term.bound.interaction.excluded is not None)
                          for row, term in zip(columns, potential.terms, strict=True))
        every = range(len(potential.terms))
        self.order = [*every] if interpreted else sorted(every, key=lambda t: columns[t][0])
        terms = [potential.terms[t] for t in self.order]
        self.rows = [name for term in terms for name in sorted(term.rule.atoms)]
        self.tables = [name for term in terms for name in sorted(term.rule.pair)]
        if len(terms) > MAX_TERMS or len(self.rows) > MAX_PARAMETERS or len(self.tables) > MAX_PARAMETERS:
            raise UsageError("potential", f"has more than {MAX_TERMS} terms or {MAX_PARAMETERS} parameters of an atom")
        inputs = ["r2", "rinv", *(f"{side}.{name}" for side in "ij" for name in self.rows),
                  *(f"pair.{name}" for name in self.tables)]
        corrected = potential.corrects_excluded
        self._arguments: dict[str, Any] = {
            "terms": np.array([columns[t] for t in self.order], np.int32), "term_count": len(terms),
            "uniforms": np.concatenate([*values, np.zeros(1)]).astype(real), "name_count": len(self.tables),
            "interpreted": interpreted, "energy": energy, "corrected": corrected}
        for prefix, used in (("", interpreted), ("excluded_", interpreted and corrected)):
            scaled = potential.scaled(self._outputs, CPU_LENGTH, bool(prefix))
            made = interpreter_instructions(scaled.program, scaled.values, inputs) if used else None
            self._arguments |= {prefix + name: value for name, value in {
                "operations": None if made is None else made.steps,
                "operation_count": 0 if made is None else len(made.steps),
                "results": None if made is None else made.results,
                "constants": None if made is None else made.constants.astype(real),
                "constant_count": 0 if made is None else len(made.constants),
                "values": None if made is None else np.append(made.tables, 0).astype(real),
                "register_count": len(inputs) if made is None else made.registers}.items()}

    def arguments(self, length: float) -> dict[str, Any]:
        """Return arguments of the kernels in a unit of length, A."""
        known, given = np.zeros(MAX_CONSTANTS), self._arguments
        if length != CPU_LENGTH:
            known[: len(self.constants)] = self.constants
            given = {name: None if isinstance(value, np.ndarray) else value for name, value in given.items()}
        return given | {"known": known, "cutoff2": self.potential.scaled(self._outputs).cutoff2}

    @cached_property
    def _programs(self) -> dict[str, ScaledPairs]:
        """The programs of a GPU's functions, of pairs and of excluded pairs if these contribute, by their names."""
        programs = {"pair_values": self.potential.scaled(self._outputs)}
        if self.potential.corrects_excluded:
            programs["excluded_values"] = self.potential.scaled(self._outputs, excluded=True)
        return programs

    @cached_property
    def constants(self) -> Floats:
        """The constants of a GPU's functions.

        Raises
        ------
        UsageError
            If there are more than :data:`MAX_CONSTANTS`.
        """
        values = np.concatenate([uniform_values(scaled.program, scaled.values) for scaled in self._programs.values()])
        if len(values) > MAX_CONSTANTS:
            raise UsageError("interaction", f"needs {len(values)} constants, and the cuda engine takes {MAX_CONSTANTS}",
                             "use {engine cpu}")
        return values

    @cached_property
    def macros(self) -> Mapping[str, object]:
        """Macros of the kernel for a GPU, see sums.cu."""
        single = self.real is np.float32
        return {"REAL": "float" if single else "double", "WORDS": -(-(3 + len(self.rows) + bool(self.tables)) // 4),
                "SUM": "sum_pairs" if single else "sum_pairs_double", "TERMS": len(self.potential.terms),
                "ENERGY": int(self.energy), "CORRECTS": int(self.potential.corrects_excluded),
                "TABLES": int(bool(self.tables)), "LEAN": int(single and not self.energy)}

    @cached_property
    def source(self) -> str:
        """C++ for a GPU: the structs Atom, with the atom's parameters and type, Table, with the parameters of two
        types, and Values, and the functions ``pair_values`` and, if CORRECTS is 1, ``excluded_values``.
        """
        own = "".join(f", p{k}" for k in range(len(self.rows))) + (", type" if self.tables else "")
        table = "".join(f" REAL p_{name};" for name in self.tables)
        functions, first = "", 0
        for name, scaled in self._programs.items():
            functions += self._function(name, scaled, first)
            first += len(uniform_steps(scaled.program))
        return ("struct alignas(4 * sizeof(REAL)) Four { REAL x, y, z, w; };\n"
                f"struct alignas(4 * sizeof(REAL)) Atom {{ REAL x, y, z{own}; }};\n"
                f"static_assert(sizeof(Atom) == sizeof(Four) * WORDS, \"Atom\");\nstruct Table {{{table} }};\n"
                f"struct Values {{ REAL slope, energy[TERMS]; }};\n{functions}")

    def _function(self, name: str, scaled: ScaledPairs, first: int) -> str:
        """Return the C++ function of a program, whose constants are u[first] and those after it."""
        program = scaled.program
        writer = CSource(str(self.macros["REAL"]))
        names: dict[int, Any] = {n: f"u[{first + k}]" for k, n in enumerate(uniform_steps(program))}
        uniform = program.uniform()
        for number, (operation, *arguments) in enumerate(program.steps):
            if operation == "const":
                names[number] = writer.const(arguments[0])
            elif operation == "input":
                side, _, own = arguments[0].partition(".")
                names[number] = (side if not own else f"pair.p_{own}" if side == "pair"
                                 else f"{side}.p{self.rows.index(own)}")
            elif number not in names and not uniform[number]:
                names[number] = getattr(writer, operation)(*(names[a] for a in arguments))
        slope, *energies = (names[r] for r in program.results)
        return (f"__device__ __forceinline__ Values {name}(REAL r2, REAL rinv, const Atom &i, const Atom &j, "
                "const Table &pair, const REAL *u)\n{\n" + "\n".join(writer.lines)
                + f"\n  return Values{{{slope}, {{{', '.join(energies)}}}}};\n}}\n")
