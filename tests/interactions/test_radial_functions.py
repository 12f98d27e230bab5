"""Traced functions in C++: the header, its structs and the interpreter, against numpy in float64."""

from pathlib import Path

import numpy as np
import pytest
from helpers import script_module

from vmdpotential import registry
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import compiled
from vmdpotential.interactions.program import evaluate_all
from vmdpotential.interactions.tracing import (
    TracedNode,
    exp,
    interpolate,
    less,
    linear_program,
    maximum,
    minimum,
    select,
    sqrt,
)
from vmdpotential.kernels.build import build_libraries
from vmdpotential.kernels.launch import KernelFile, call_kernel, load_library
from vmdpotential.sums.cpu import tiles
from vmdpotential.sums.cpu.nearby import cutoff_at_points
from vmdpotential.sums.cpu.points import at_points

SOURCE = Path(__file__).with_name("radial_functions.cu")
WRITER = script_module("make_radial_functions")
FUNCTIONS = {f.name: f for f in WRITER.built_in() if f.results == compiled.RADIAL}
TERMS = {f.name: f for f in WRITER.built_in() if f.results == compiled.PAIR_RESULTS}
R = np.linspace(0.9, 6.0, 16)
#: Values of parameters, by the their names; coefficients c3 are 0.1^3.
VALUES = {"cutoff": 8.0, "debye_length": 7.8, "bulk": 78.4, "rate": 0.0036, "smear": 2.0, "beta": 0.312, "rmin": 3.5,
          "switch": 5.0, "depth": 1.0, "smooth": 0.25, "cap": 7.0, "width": 3.6, "closest": 1.5, "end": 4.0,
          "there": 0.01, "permittivity": 78.4, "first": 0.01, "second": 0.001, "third": 1e-4, "slope": -0.01}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("radial_functions")
    for number in {0, load_library().supported_instruction_set()}:  # this processor's, and the one that is always there
        build_libraries([SOURCE], folder, only=number)
    return KernelFile(SOURCE, folder)


@pytest.fixture
def interpret(monkeypatch):
    """Return a function after whose call no program has a struct."""
    def begin():
        monkeypatch.setattr(compiled, "number_of", lambda program: -1)
        compiled.radial_arguments.cache_clear()

    yield begin
    compiled.radial_arguments.cache_clear()


def evaluated(kernel, program, parameters, single, interpreted):
    """Return the two results of a program at R, by its struct or by the interpreter."""
    made, values = compiled.interpreter_instructions(program, parameters), np.zeros((2, 16))
    uniforms = compiled.uniform_values(program, parameters)
    call_kernel(kernel["evaluate_function"], 0, 1, uniforms=uniforms, uniform_count=len(uniforms), r=R, i=None, j=None,
         pair=None, values=values, single=single, steps=made.steps, results=made.results,
         number=-1 if interpreted else compiled.number_of(program), constants=made.constants,
         tables=np.pad(made.tables, (0, 8)), step_count=len(made.steps), constant_count=len(made.constants),
         register_count=made.registers)
    return values


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_derivatives(kernel, name, interpreted, single):
    program = FUNCTIONS[name].program
    parameters = [VALUES[p] if p in VALUES else 0.1 ** int(p[1:]) for p in program.parameters]
    inputs = dict(zip(program.parameters, parameters, strict=True)) | {"r2": R * R, "rinv": 1 / R}
    requested = np.broadcast_arrays(*evaluate_all(program, inputs), R)[:2]
    result = evaluated(kernel, program, parameters, single, interpreted)
    error = np.abs(result - requested).max(1) / np.abs(requested).max(1)
    assert error.max() < (3e-6 if single else 1e-14)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("name", TERMS)
def test_terms_of_pairs(kernel, name, single):
    """Their parameters, and the values of their tables, are any numbers."""
    term, values = TERMS[name], {}
    for parameter in term.program.parameters:
        short = parameter.partition(".")[2]
        values[parameter] = VALUES[short] if short in VALUES else 0.1 ** int(short[1:])
    sides = {side: np.linspace(0.7, 1.3, 4) + shift for side, shift in (("i", 0.0), ("j", 0.1), ("pair", 0.2))}
    inputs = values | {"r2": R * R, "rinv": 1 / R} | {
        f"{side}.{n}": sides[side][k] for side, names in term.inputs.items() for k, n in enumerate(names)}
    requested = np.broadcast_arrays(*evaluate_all(term.program, inputs), R)[:2]
    uniforms = np.append(compiled.uniform_values(term.program, [*values.values()]), 0.0)
    result = np.zeros((2, 16))
    call_kernel(kernel["evaluate_pair_term"], 0, 1, uniforms=uniforms, uniform_count=len(uniforms), r=R, **sides,
         values=result, single=single, steps=None, results=None, number=compiled.number_of(term.program),
         constants=None, tables=None, step_count=0, constant_count=0, register_count=0)
    assert compiled.number_of(term.program) >= 0
    error = np.abs(result - requested).max(1) / np.maximum(np.abs(requested).max(1), 1e-300)
    assert error.max() < (1e-5 if single else 1e-13)


@pytest.mark.parametrize("single", [True, False])
def test_the_interpreter_has_every_operation(kernel, single):
    r2, rinv, p = TracedNode("input", "r2"), TracedNode("input", "rinv"), TracedNode("param", "p")
    r = r2 * rinv
    program = linear_program([select(less(r, 3.0 * p), sqrt(r2 + p), exp(-r)) / (2.0 + r), maximum(minimum(r, p), 1.5)
                      - interpolate(r, [TracedNode("param", f"table{n}") for n in range(8)])],
                     ["p", *(f"table{n}" for n in range(8))])
    parameters = [1.1, *(n**2 for n in range(8))]
    assert compiled.number_of(program) == -1
    inputs = dict(zip(program.parameters, parameters, strict=True)) | {"r2": R * R, "rinv": 1 / R}
    np.testing.assert_allclose(evaluated(kernel, program, parameters, single, True), evaluate_all(program, inputs),
                               rtol=2e-6 if single else 1e-14)


@pytest.mark.parametrize("field", [False, True])
@pytest.mark.parametrize("precision", ["single", "compensated", "double"])
@pytest.mark.parametrize("name", ["coulomb", "shifted_coulomb", "ewald"])
def test_maps_of_interpreted_functions(name, precision, field, interpret):
    """What another package registers has no struct; two atoms are on points of the lattice."""
    rng, bound = np.random.default_rng(3), registry.get("interaction", name).bind()
    lattice = Lattice(np.zeros(3), np.full(3, 0.7), (13, 10, 9))
    positions, charges = rng.uniform(-2, 9, (300, 3)), rng.normal(size=300)
    positions[:2] = lattice.origin + lattice.spacing * [[1, 2, 3], [8, 0, 7]]
    compiled_in = tiles.direct(lattice, positions, charges, bound, precision, field)
    interpret()
    interpreted = tiles.direct(lattice, positions, charges, bound, precision, field)
    scale = np.sqrt(np.mean(compiled_in.astype(float) ** 2, axis=(-3, -2, -1), keepdims=True))
    assert np.max(np.abs(interpreted - compiled_in) / scale) < 1e-4
    rms = np.sqrt(np.mean(((interpreted - compiled_in.astype(float)) / scale) ** 2))
    assert rms < (3e-6 if precision == "single" else 1e-7)


@pytest.mark.parametrize("name", ["coulomb", "shifted_coulomb", "ewald", "sigmoidal_dielectric"])
def test_values_at_points_of_interpreted_functions(name, interpret):
    """What another package registers has no struct; a point is on an atom, and a vector is filled by no number."""
    rng, of = np.random.default_rng(3), registry.get("interaction", name).bind()
    positions, charges = rng.uniform(0, 12, (301, 3)), rng.normal(size=301)
    points = np.concatenate([rng.uniform(-3, 15, (77, 3)), positions[:1]])

    def sums():
        near = np.zeros(len(points))
        within = of.truncated(6.0) if of.cutoff is None else of
        return [at_points(points, positions, charges, None, of, near), near,
                *cutoff_at_points(points, positions, charges, within, None, True)]

    compiled_in = sums()
    interpret()
    interpreted = sums()
    for actual, expected in zip(interpreted, compiled_in, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    r = np.maximum(np.linalg.norm(points[:, None] - positions, axis=2), 0.01)
    expected = of(r) @ charges if of.cutoff is None else np.where(r < of.cutoff, of(r), 0.0) @ charges
    np.testing.assert_allclose(interpreted[0], expected, rtol=0, atol=1e-12 * np.abs(expected).max())
