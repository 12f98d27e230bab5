"""Traced functions on the CPU: those of this package are compiled with it, others are interpreted in blocks of pairs.

``kernels/radial.h``, which ``scripts/make_radial_functions`` writes when the package is built, has a C++ struct for
each function of this package and its plugins. A kernel finds a struct by the number of the function's program
(:func:`number_of`), so that any equal function uses it, whatever its name. A program without a struct runs in
``kernels/interpreter.h`` by its :func:`interpreter_instructions`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.interactions.derivative import differentiate_trace
from vmdpotential.interactions.program import NumpyBackEnd, TracedProgram, run_program
from vmdpotential.interactions.tracing import RecordingBackEnd, TracedNode, linear_program
from vmdpotential.kernels.build import HEADER_FOLDER

#: The file of the structs.
TARGET = Path(HEADER_FOLDER, "radial.h")

#: Results of a radial function and of a pair potential's program, which are the structs' functions.
RADIAL, PAIR_RESULTS = ("value", "derivative"), ("slope", "energy")

#: Operations of the interpreter, by their numbers.
OPERATIONS = ("add", "sub", "mul", "div", "fma", "min", "max", "less", "select", "sqrt", "exp", "erfc", "interpolate")

def atom_parameters(program: TracedProgram) -> list[str]:
    """Return the names of the parameters of either atom of a pair, which both have in a struct, sorted."""
    return sorted({name[2:] for name in program.inputs if name[:2] in ("i.", "j.")})


def with_derivative(program: TracedProgram) -> TracedProgram:
    """Return the program of a radial function whose results are the function and its derivative with respect to r2."""
    leaves = {step[1]: TracedNode(*step) for step in program.steps if step[0] in ("input", "param")}
    r2, rinv = (leaves.setdefault(name, TracedNode("input", name)) for name in ("r2", "rinv"))
    value = run_program(program, RecordingBackEnd(), leaves)[program.results[0]]
    derivative = differentiate_trace(value, r2, rinv)
    return linear_program([value, 0.0 if derivative is None else derivative], program.parameters)


def needed_steps(program: TracedProgram, results: Iterable[int]) -> list[int]:
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
    varying = [n for n in needed_steps(program, program.results) if levels[n]]
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
