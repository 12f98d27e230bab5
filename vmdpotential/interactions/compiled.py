"""Traced functions on the CPU: those of this package are compiled with it, others are interpreted in blocks of pairs.

``kernels/radial.h``, written by ``scripts/make_radial_functions``, has a C++ struct for each function in
:func:`built_in`. A kernel finds a struct by the number of the function's program (:func:`number_of`), so that any equal
function uses it, whatever its name. A program without a struct runs in
``kernels/interpreter.h`` by its :func:`interpreter_instructions`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmdpotential.interactions import Bound, Interaction
from vmdpotential.interactions.csource import CSource
from vmdpotential.interactions.derivative import differentiate_trace
from vmdpotential.interactions.program import NumpyBackEnd, TracedProgram, run_program
from vmdpotential.interactions.tracing import Expression, RecordingBackEnd, linear_program
from vmdpotential.kernels.build import HEADER_FOLDER

Floats = NDArray[np.float64]

#: The file of the structs.
TARGET = Path(HEADER_FOLDER, "radial.h")

#: Results of a radial function and of a pair potential's program, which are the structs' functions.
RADIAL, PAIR_RESULTS = ("value", "derivative"), ("slope", "energy")

#: Operations of the interpreter, by their numbers.
OPERATIONS = ("add", "sub", "mul", "div", "fma", "min", "max", "less", "select", "sqrt", "exp", "erfc", "interpolate")

#: Longest line of a function, without its indentation, and an operator outside of a call.
MAX_LINE, _OPERATOR = 100, re.compile(r" [-+*/] (?![^()]*\))|^-")

_HEAD = """\
// Radial functions of interactions and terms of pair potentials; written by scripts/make_radial_functions.
//
// `uniforms` are what vmdpotential.interactions.compiled.uniform_values returns. `derivative` is that of `value` with
// respect to r2; slope is -1/r dE/dr. i, j and pair are parameters of both atoms, and of their types, in the order that
// the struct states.
#pragma once

#include "functions.h"

"""


@dataclass(frozen=True)
class BuiltIn:
    """A function with a struct: the struct's name, the traced program, and the names of the program's results."""

    name: str
    program: TracedProgram
    results: tuple[str, ...]

    @property
    def inputs(self) -> dict[str, list[str]]:
        """Names of the parameters of ``i``, ``j`` and ``pair``, sorted."""
        own = atom_parameters(self.program)
        return {"i": own, "j": own,
                "pair": [name.removeprefix("pair.") for name in self.program.inputs if name.startswith("pair.")]}


def atom_parameters(program: TracedProgram) -> list[str]:
    """Return the names of the parameters of either atom of a pair, which both have in a struct, sorted."""
    return sorted({name[2:] for name in program.inputs if name[:2] in ("i.", "j.")})


def with_derivative(program: TracedProgram) -> TracedProgram:
    """Return the program of a radial function whose results are the function and its derivative with respect to r2."""
    leaves = {step[1]: Expression(*step) for step in program.steps if step[0] in ("input", "param")}
    r2, rinv = (leaves.setdefault(name, Expression("input", name)) for name in ("r2", "rinv"))
    value = run_program(program, RecordingBackEnd, leaves)[program.results[0]]
    derivative = differentiate_trace(value, r2, rinv)
    return linear_program([value, 0.0 if derivative is None else derivative], program.parameters)


def built_in(pages: Iterable[Interaction] = (), charges: Iterable[Bound] = ()) -> Iterator[BuiltIn]:
    """Yield all functions that have a struct, those of lattices and points first.

    Parameters
    ----------
    pages : iterable of Interaction
        Interactions of lattices and points that plugins need.
    charges : iterable of Bound
        Interactions of charges in pairs that plugins need.
    """
    from vmdpotential.interactions import (
        coulomb,
        distance_dependent,
        ewald,
        gaussian,
        lennard_jones,
        pairs,
        reaction_field,
        screened_coulomb,
        shifted_coulomb,
        short_cutoff,
        short_range,
        short_screened,
        sigmoidal_dielectric,
    )

    electric = [page.INTERACTION for page in (coulomb, shifted_coulomb, screened_coulomb, distance_dependent,
                                              sigmoidal_dielectric, reaction_field, ewald, gaussian)]
    electric.append(coulomb.CUT)
    for page in (*electric, *(short_range.interaction(degree) for degree in short_range.DEGREES),
                 short_cutoff.INTERACTION, short_screened.INTERACTION, *pages):
        yield BuiltIn(_struct(page.name, len(page.quantities)), with_derivative(page.bind().scaled().program), RADIAL)

    bounds = [*(page.bind() for page in electric), short_range.INTERACTION.bind(), *charges]
    terms = [(bound, pairs.CHARGES_RULE) for bound in bounds]
    terms += [(page.bind(), rule) for page in (lennard_jones.INTERACTION, lennard_jones.SHIFTED, lennard_jones.SWITCHED)
              for rule in (pairs.GEOMETRIC_RULE, pairs.LORENTZ_BERTHELOT, pairs.TABLE_RULE)]
    for bound, rule in terms:
        potential = pairs.PairPotential((pairs.PairTerm("term", bound, rule),))
        name = f"{bound.interaction.name}_{rule.name.replace('-', '_')}_pair"
        yield BuiltIn(_struct(name), potential.scaled(PAIR_RESULTS).program, PAIR_RESULTS)
        if potential.corrects_excluded:
            yield BuiltIn(_struct("excluded_" + name), potential.scaled(PAIR_RESULTS, excluded=True).program,
                          PAIR_RESULTS)


def _struct(name: str, count: int = 0) -> str:
    """Return the name of a struct; `count` distinguishes polynomials."""
    words = "".join(word.capitalize() for word in name.split("_"))
    return f"{words}{count - 2}" if name == "short_range" else words


class VectorSource(CSource):
    """Back end that writes C++ for the type V of kernels/functions.h."""

    def __init__(self) -> None:
        super().__init__("V")

    def const(self, value: float) -> str:
        """Return a number in all places."""
        return f"traced::constant<V>({float(value)!r})"

    def _call(self, function: str, *arguments: str) -> str:
        return self._let(f"traced::{function}({', '.join(arguments)})", "auto" if function == "less" else "")

    def div(self, a: str, b: str) -> str:
        """Return a / b."""
        return self._call("div", a, b)

    def sub(self, a: str, b: str) -> str:
        """Return a - b, written as -b if a is zero."""
        return self._let(f"-{b}" if a == self.const(0.0) else f"{a} - {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        """Return a * b + c."""
        return self._call("fma", a, b, c)

    def min(self, a: str, b: str) -> str:
        """Return the smaller."""
        return self._call("min", a, b)

    def max(self, a: str, b: str) -> str:
        """Return the larger."""
        return self._call("max", a, b)

    def less(self, a: str, b: str) -> str:
        """Return the condition a < b."""
        return self._call("less", a, b)

    def select(self, condition: str, a: str, b: str) -> str:
        """Return a where the condition holds, else b."""
        return self._call("select", condition, a, b)

    def sqrt(self, a: str) -> str:
        """Return the square root."""
        return self._call("sqrt", a)

    def exp(self, a: str) -> str:
        """Return the exponential."""
        return self._call("exp", a)

    def erfc(self, a: str) -> str:
        """Return the complementary error function."""
        return self._call("erfc", a)

    def interpolate(self, a: str, first: str, *others: str) -> str:
        """Return the linear interpolation in a table from its value `first` on."""
        return self._call("interpolate", a, first)


def header(pages: Iterable[Interaction] = (), charges: Iterable[Bound] = ()) -> str:
    """Return the content of :data:`TARGET`, see :func:`built_in`."""
    functions = list(built_in(pages, charges))
    names = [function.name for function in functions]
    assert len(set(names)) == len(names)
    structs, parts = [_source(function) for function in functions], []
    for results, title in ((RADIAL, "RADIAL_FUNCTIONS"), (PAIR_RESULTS, "PAIR_TERMS")):
        rows = [f"    DO({number}, {function.name}) /* {digest(function.program)} */ \\\n"
                for number, function in enumerate(functions) if function.results == results]
        parts.append(f"// Numbers and names, and digests by which Python finds them.\n#define {title}(DO) \\\n"
                     + "".join(rows).removesuffix(" \\\n") + "\n")
    return _HEAD + "\n".join(structs) + "\n" + "\n".join(parts)


def _source(function: BuiltIn) -> str:
    """Return the struct of a function."""
    program, uniform = function.program, uniform_steps(function.program)
    degree = program.degree()
    tables = {step[2] for step in program.steps if step[0] == "interpolate"}
    in_tables = {a for step in program.steps if step[0] == "interpolate" for a in step[2:]}
    members = [n for n in uniform if n not in in_tables]
    place = {n: k for k, n in enumerate(uniform)}
    inputs = function.inputs
    sided = any(inputs.values())
    known = {n: f"u{place[n]}" for n in members} | {n: f"table + {place[n]}" for n in tables}
    known |= dict.fromkeys(in_tables - tables, "")
    leaves = {"r2": "r2", "rinv": "rinv"} | {
        f"{side}.{name}": f"{side}[{k}]" for side, names in inputs.items() for k, name in enumerate(names)}
    lines = [f"// {side}: {', '.join(names)}" for side, names in inputs.items() if names]
    lines += [f"template <class V> struct {function.name} {{"]
    if members:
        lines.append(f"    V {', '.join(f'u{place[n]}' for n in members)};")
    if tables:
        lines.append("    const traced::number_of<V> *table;")
    if function.results == RADIAL:
        lines.append(f"    static constexpr int DEGREE = {-1 if degree is None else degree};"
                     "  // power of rinv at constant r2; -1 if the value is none")
    if sided:
        lines.append(f"    static constexpr int PARAMETERS = {len(inputs['i'])};  // of each atom")
    fills = [f"u{place[n]}(traced::fill<V>(uniforms[{place[n]}]))" for n in members]
    fills += ["table(uniforms)"] * bool(tables)
    lines.append(f"    explicit {function.name}(const traced::number_of<V> *uniforms){' : ' * bool(fills)}"
                 f"{', '.join(fills)} {{{'' if fills else ' (void)uniforms; '}}}")
    sides = ", const V *i, const V *j, const V *pair" if sided else ""
    for result, name in zip(program.results, function.results, strict=True):
        back_end = VectorSource()
        needed = _needed(program, [result])
        names: dict[int, str] = dict(known)
        for number in needed:
            operation, *arguments = program.steps[number]
            if number in names:
                continue
            if operation == "const":
                names[number] = back_end.const(arguments[0])
            elif operation == "input":
                names[number] = leaves[arguments[0]]
            elif operation == "interpolate":
                names[number] = back_end.interpolate(*(names[a] for a in arguments[:2]))
            else:
                names[number] = getattr(back_end, operation)(*(names[a] for a in arguments))
        head, body = f"    MEMBER V {name}(V r2, V rinv{sides}) const", [*back_end.lines, f"return {names[result]};"]
        body = _with_expressions(body)
        lines += [f"{head} {{ {body[0]} }}"] if len(body) == 1 and len(head + body[0]) < MAX_LINE else [
            f"{head}\n    {{", *(f"      {line}" for line in body), "    }"]
    return "\n".join([*lines, "};\n"])


def _with_expressions(lines: Sequence[str]) -> list[str]:
    """Return lines of C++ in which a variable that one later line uses once is its expression, as far as that fits."""
    result: list[str] = []
    for line in map(str.strip, lines):
        for variable in re.findall(r"\bt\d+\b", line.split("=", 1)[-1]):
            definition = next((n for n, text in enumerate(result) if f" {variable} = " in text), None)
            if definition is None or sum(len(re.findall(rf"\b{variable}\b", text)) for text in lines) != 2:
                continue
            value = result[definition].split(" = ", 1)[1].rstrip(";")
            before, after = re.split(rf"\b{variable}\b", line)
            apart = before.endswith(("(", ", ", "= ", "return ")) and after.startswith((")", ",", ";"))
            whole = before + (value if apart or not _OPERATOR.search(value) else f"({value})") + after
            if len(whole) <= MAX_LINE:
                line = whole
                del result[definition]
        result.append(line)
    return result


def _needed(program: TracedProgram, results: Iterable[int]) -> list[int]:
    """Return the numbers of steps that some results need, sorted."""
    needed, levels = set(results), program.levels
    for number in range(max(needed), -1, -1):
        operation, *arguments = program.steps[number]
        if number in needed and operation not in ("const", "input", "param") and levels[number]:
            needed.update(arguments)
    return sorted(needed)


def uniform_steps(program: TracedProgram) -> list[int]:
    """Return the steps that are the same for all pairs and used by others or as results, without constants."""
    uniform = program.uniform()
    used = {a for step, same in zip(program.steps, uniform, strict=True)
            if not same and step[0] != "input" for a in step[1:]} | set(program.results)
    return [n for n in sorted(used) if uniform[n] and program.steps[n][0] != "const"]


def uniform_values(program: TracedProgram, values: Sequence[float]) -> Floats:
    """Return the values of :func:`uniform_steps` for the values of the program's parameters."""
    steps = run_program(program, NumpyBackEnd, dict(zip(program.parameters, values, strict=True)), "uniform")
    return np.array([steps[n] for n in uniform_steps(program)], np.float64)


def digest(program: TracedProgram) -> str:
    """Return a digest that equal programs have, whatever the names of their parameters."""
    place = {name: k for k, name in enumerate(program.parameters)}
    steps = [(step[0], place[step[1]]) if step[0] == "param" else step for step in program.steps]
    return hashlib.sha256(repr((steps, program.results)).encode()).hexdigest()[:16]


@lru_cache(maxsize=1)
def _numbers() -> Mapping[str, int]:
    return {found[2]: int(found[1])
            for found in re.finditer(r"DO\((\d+), \w+\) /\* (\w+) \*/", TARGET.read_text("utf-8"))}


@lru_cache(maxsize=256)
def number_of(program: TracedProgram) -> int:
    """Return the number of the struct of a program, or -1 if it has none.

    The results of the program must be those of :data:`RADIAL` (:func:`with_derivative`), or for one term of a pair
    potential those of :data:`PAIR_RESULTS`.
    """
    return _numbers().get(digest(program), -1)


class Instructions(NamedTuple):
    """A program for ``kernels/interpreter.h``, whose registers are blocks of numbers.

    Parameters
    ----------
    steps : (S, 5)
        Operation, register of the result, and registers of up to three arguments.
    constants : (C,)
        Values of the registers after those of the inputs.
    tables : (T,)
        Values of all tables for interpolation.
    results : (R,)
        Registers of the results.
    registers : int
        Number of registers.
    """

    steps: NDArray[np.int32]
    constants: Floats
    tables: Floats
    results: NDArray[np.int32]
    registers: int


def interpreter_instructions(program: TracedProgram, values: Sequence[float],
                             inputs: Sequence[str] = ("r2", "rinv")) -> Instructions:
    """Return a program for the interpreter, for values of its parameters; the first registers are the `inputs`."""
    fixed = run_program(program, NumpyBackEnd, dict(zip(program.parameters, values, strict=True)), "uniform")
    levels = program.levels
    varying = [n for n in _needed(program, program.results) if levels[n]]
    last_use = {a: n for n in varying if program.steps[n][0] != "input" for a in program.steps[n][1:]}
    last_use |= dict.fromkeys(program.results, len(program.steps))
    register = {n: inputs.index(program.steps[n][1]) for n in varying if program.steps[n][0] == "input"}
    constants: list[float] = []
    tables: list[float] = []
    steps: list[tuple[int, ...]] = []

    def place(number: int) -> int:
        if number not in register:
            register[number] = len(inputs) + len(constants)
            constants.append(float(fixed[number]))
        return register[number]

    for number in varying:
        operation, *arguments = program.steps[number]
        for a in arguments[:1] if operation == "interpolate" else arguments if operation != "input" else ():
            if not levels[a]:
                place(a)
    for result in program.results:
        if not levels[result]:
            place(result)
    count, free = len(inputs) + len(constants), list[int]()
    for number in varying:
        operation, *arguments = program.steps[number]
        if operation == "input":
            continue
        if operation == "interpolate":
            of = [register[arguments[0]], len(tables)]
            tables += [float(fixed[a]) for a in arguments[1:]]
            arguments = arguments[:1]
        else:
            of = [register[a] for a in arguments]
        free += [register[a] for a in {*arguments} if last_use[a] == number and register[a] >= len(inputs)
                 and levels[a] and program.steps[a][0] != "input"]
        if free:
            register[number] = free.pop()
        else:
            register[number], count = count, count + 1
        steps.append((OPERATIONS.index(operation), register[number], *of, *[0] * (3 - len(of))))
    return Instructions(np.array(steps, np.int32).reshape(-1, 5), np.array(constants, np.float64),
                        np.array(tables, np.float64), np.array([register[r] for r in program.results], np.int32), count)


@lru_cache(maxsize=64)
def radial_arguments(program: TracedProgram, values: tuple[float, ...], derivative: bool) -> Mapping[str, Any]:
    """Return the arguments that kernels have for a radial function, with or without its derivative.

    Parameters
    ----------
    program : Program
        The traced radial function.
    values : tuple of float
        Values of the program's parameters.
    derivative : bool
        Whether the kernel evaluates its derivative.
    """
    both = with_derivative(program)
    made, same = interpreter_instructions(both if derivative else program, values), uniform_values(both, values)
    return {"number": number_of(both), "uniforms": same, "uniform_count": len(same), "steps": made.steps,
            "step_count": len(made.steps), "constants": made.constants, "constant_count": len(made.constants),
            "tables": made.tables, "table_count": len(made.tables), "results": made.results,
            "register_count": made.registers}
