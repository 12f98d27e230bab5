"""Checks of methods and interactions for `verify`: maps of water against sums in float64, and documented values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from vmdpotential import registry
from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine, get_engine
from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Lattice, Points
from vmdpotential.interactions import Interaction
from vmdpotential.maps.interaction import bind_interaction
from vmdpotential.maps.options import SumOptions
from vmdpotential.maps.solver import ContinuumSolver
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.sums import ChargeStatistics, Method, Request, accuracy
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum

#: Tolerance that approximate methods are run with and checked against.
TOLERANCE = 1e-4

#: Edge of the box of water, and cutoff of methods that have one, A.
EDGE, CUTOFF = 40.0, 10.0

#: A check: a function that returns what it compared, the relative errors and their limits.
Check = Callable[[], list[tuple[str, float, float]]]


def check_methods(backend: Engine, only: str, thorough: bool, points: int, seed: int) -> Iterator[tuple[str, Check]]:
    """Yield checks of every method: its map and field, in its boundaries and precisions."""
    rng = np.random.default_rng(seed)
    positions, charges = water_box(EDGE)
    positions = positions + rng.uniform(-1, 1, 3)
    cell = Cell.from_parameters(EDGE, EDGE, EDGE)
    lattice = Lattice(rng.uniform(-1, 1, 3), np.array([0.5, 0.5, 0.5]), (61, 57, 67))
    for name in registry.available("solver"):
        if only in ("all", name):
            yield name, partial(_closed_form, registry.get("solver", name), backend)
    for name in registry.available("method"):
        if only not in ("all", name):
            continue
        method: Method = registry.get("method", name)
        for boundary in method.boundaries:
            where = cell if boundary == "periodic" else None
            every = thorough or (method.exact and not method.cutoff and where is None)
            for precision in method.precisions if every else method.precisions[:1]:
                fields = (False, True) if thorough else (precision == "single",)
                for field in fields if method.field else (False,):
                    label = f"{name}, {boundary}, {precision} precision"
                    yield label, partial(_check_method, backend, method, lattice, positions, charges, where, precision,
                                         field, points, label)


def _closed_form(solver: ContinuumSolver, backend: Engine) -> list[tuple[str, float, float]]:
    result = solver.closed_form(backend)
    if result is not None:
        return [(f"{solver.name}, closed form", *result)]
    raise UsageError("what", f"{solver.name} is not a sum over charges and cannot be compared with the definition")


def _check_method(backend: Engine, method: Method, lattice: Lattice, positions: Floats, charges: Floats,
                  cell: Cell | None, precision: str, field: bool, points: int,
                  label: str) -> list[tuple[str, float, float]]:
    statistics = ChargeStatistics.of(positions, charges, cell)
    request = Request(lattice, cell, bind_interaction(_options(method), cell), statistics, precision, TOLERANCE, field)
    method.require(request, backend)
    exact = accuracy.sample(request, positions, charges, get_engine("cpu"), points)
    limit = method.rounding[precision]
    if not method.exact:
        limit, request = TOLERANCE, request.with_error(TOLERANCE * exact.target_rms)
    measured = None if method.exact else exact
    _, result, _ = accuracy.run_to_tolerance(method, request, positions, charges, measured, backend)
    errors = exact.errors(result)
    # rounding errors are relative to the whole potential, not to the smaller one away from atoms
    error = errors.everywhere if method.exact else max(errors.everywhere, errors.away or 0.0)
    rows = [(f"{label}, {request.interaction.interaction.name}", error, limit)]
    if field and errors.field is not None and errors.field_away is not None:
        error = errors.field if method.exact else max(errors.field, errors.field_away)
        rows.append((f"{label}, field of {request.interaction.interaction.name}", error, limit))
    return rows


def _options(method: Method) -> SumOptions:
    """Return the options of the maps by which a method is checked."""
    return SumOptions(method=method.name, cutoff=CUTOFF if method.cutoff else None)


def check_interactions(backend: Engine, method: str) -> Iterator[tuple[str, Check]]:
    """Yield a check of every interaction, or of a method's own: its documented values, by numpy and by the engine."""
    if method == "all":
        names = registry.available("interaction")
    elif method in registry.available("solver"):
        names = list(registry.get("solver", method).interactions)
    else:
        names = [bind_interaction(_options(registry.get("method", method)), None).interaction.name]
    for name in names:
        interaction: Interaction = registry.get("interaction", name)
        if interaction.checks:
            yield name, partial(_check_interaction, backend, interaction)


def _check_interaction(backend: Engine, interaction: Interaction) -> list[tuple[str, float, float]]:
    worst = 0.0
    for check in interaction.checks:
        bound = interaction.bind(**check.parameters)
        by_engine = prepare_sum(backend, PotentialSum(Points(np.array([[check.r, 0, 0]])), bound)).run(
            np.zeros((1, 3)), np.ones(1)).values()
        scale = abs(check.value) or 1.0
        worst = max(worst, float(abs(bound(check.r) - check.value)) / scale, abs(by_engine[0] - check.value) / scale)
    return [(f"{interaction.name}, the values on its page", worst, 1e-9)]
