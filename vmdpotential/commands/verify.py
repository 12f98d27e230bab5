"""The command ``verify``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from vmdpotential import progress, registry
from vmdpotential.errors import BackendError, CheckError, UsageError, VmdpotentialError
from vmdpotential.parameters import Command, Option, Report

if TYPE_CHECKING:
    from vmdpotential.engines import Engine, Floats
    from vmdpotential.interactions import Interaction
    from vmdpotential.methods import Method

#: The tolerance that methods which are not exact are asked for, and kept to.
TOLERANCE = 1e-4

#: Edge of the box of water, A, and the cutoff of methods that have one, A.
EDGE, CUTOFF = 40.0, 10.0


def verify(
    engine: Annotated[str, Option(
        "what is checked; all that work here unless given",
        choices=lambda: ("all", *registry.available("engine")))] = "all",
    method: Annotated[str, Option(
        "what is checked; all unless given", choices=lambda: ("all", *registry.available("method")))] = "all",
    thorough: Annotated[bool, Option("every method in every precision, with and without the field")] = False,
    points: Annotated[int, Option("points at which a map is compared", low=10, high=10000)] = 400,
    seed: Annotated[int, Option("of the random box and points", low=0)] = 1,
) -> Report:
    """Compare every engine, method and interaction on this machine with the definition in float64.

    A box of random water molecules is summed on a lattice that straddles the tiles of all kernels, and compared at
    random points with the sum written out: every registered method with its field, the exact ones in every
    precision. Interactions must give the values that their pages state. The exit code is 3 where one does not.

    Raises
    ------
    CheckError
        When a row fails; it holds the report.
    """
    from vmdpotential.engines import get_engine

    rows: list[dict[str, Any]] = []
    skipped = {}
    for name in registry.available("engine") if engine == "all" else (engine,):
        try:
            backend = get_engine(name)
        except BackendError as error:
            if engine != "all":
                raise
            skipped[name] = str(error)
            continue
        work = [*_interactions(backend), *_methods(backend, method, thorough, points, seed)]
        for number, (label, check) in enumerate(work):
            progress.report(f"verify, {label}", number / len(work))
            start = time.perf_counter()
            try:
                found = check()
            except BackendError as error:
                skipped[label] = str(error)
                continue
            except UsageError as error:  # what a method declares not to do
                skipped[label] = error.text
                continue
            except VmdpotentialError as error:
                found = [{"what": label, "error": None, "limit": None, "passed": False, "reason": str(error)}]
            rows += [{"engine": name, **row, "seconds": time.perf_counter() - start} for row in found]
    failed = [row for row in rows if not row["passed"]]
    lines = [
        f"{'PASS' if row['passed'] else 'FAIL'}  {row['engine']:<5} {row['what']:<58} "
        + (row.get("reason") or f"{row['error']:.1e} (at most {row['limit']:.0e})") + f" {row['seconds']:7.2f} s"
        for row in rows
    ]
    reasons: dict[str, dict[str, None]] = {}
    for label, reason in skipped.items():  # one line for all methods that have the same
        reasons.setdefault(reason, {})[label.partition(",")[0]] = None
    lines += [f"not checked: {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    lines.append(f"{len(rows) - len(failed)} of {len(rows)} passed: relative errors against the definition in float64")
    report = Report(lines, {"rows": rows, "skipped": skipped, "passed": not failed})
    if failed:
        raise CheckError(f"verify: {len(failed)} of {len(rows)} failed: " + ", ".join(
            f"{row['engine']} {row['what']}" for row in failed), report)
    return report


def _interactions(backend: Engine) -> Iterator[tuple[str, Any]]:
    """Yield what to check of every interaction: the values on its page, by numpy and by the engine."""
    for name in registry.available("interaction"):
        interaction: Interaction = registry.get("interaction", name)
        if interaction.checks:
            yield name, lambda interaction=interaction: _check_interaction(backend, interaction)


def _check_interaction(backend: Engine, interaction: Interaction) -> list[dict[str, Any]]:
    import numpy as np

    worst = 0.0
    for check in interaction.checks:
        bound = interaction.bind(**check.parameters)
        by_engine = backend.at_points(np.array([[check.r, 0, 0]]), np.zeros((1, 3)), np.ones(1), None, bound)
        scale = abs(check.value) or 1.0
        worst = max(worst, float(abs(bound(check.r) - check.value)) / scale, abs(by_engine[0] - check.value) / scale)
    return [_row(f"{interaction.name}, the values on its page", worst, 1e-9)]


def _methods(backend: Engine, only: str, thorough: bool, points: int, seed: int) -> Iterator[tuple[str, Any]]:
    """Yield what to check of every method: its map and field, in boundaries and precisions."""
    import numpy as np

    from vmdpotential.grid.lattice import Lattice
    from vmdpotential.molecule.cell import Cell
    from vmdpotential.molecule.samples import water_box

    rng = np.random.default_rng(seed)
    positions, charges = water_box(EDGE)
    positions = positions + rng.uniform(-1, 1, 3)
    cell = Cell.from_parameters(EDGE, EDGE, EDGE)
    lattice = Lattice(rng.uniform(-1, 1, 3), np.array([0.5, 0.5, 0.5]), (61, 57, 67))
    for name in registry.available("method") if only == "all" else (only,):
        method: Method = registry.get("method", name)
        for boundary in method.boundaries:
            where = cell if boundary == "periodic" else None
            every = thorough or (method.exact and where is None)
            for precision in method.precisions if every else method.precisions[:1]:
                fields = (False, True) if thorough else (precision == "single",)
                for field in fields if method.field else (False,):
                    label = f"{name}, {boundary}, {precision} precision"
                    yield label, lambda m=method, w=where, p=precision, f=field, label=label: _check_method(
                        backend, m, lattice, positions, charges, w, p, f, points, label)


def _check_method(backend: Engine, method: Method, lattice: Any, positions: Floats, charges: Floats, cell: Any,
                  precision: str, field: bool, points: int, label: str) -> list[dict[str, Any]]:
    from vmdpotential import maps
    from vmdpotential.engines import get_engine
    from vmdpotential.methods import Charges, Request, accuracy

    wanted = maps.Wanted(method.name, cutoff=CUTOFF if method.cutoff else None)
    statistics = Charges.of(positions, charges, cell)
    request = Request(lattice, cell, maps.bind(wanted, cell), statistics, precision, TOLERANCE, field)
    method.require(request, backend)
    exact = accuracy.sample(request, positions, charges, get_engine("cpu"), points)
    limit = method.rounding[precision]
    if not method.exact:
        limit, request = TOLERANCE, request.with_error(TOLERANCE * exact.goal)
    measured = None if method.exact else exact
    _, result, _ = accuracy.run_to_tolerance(method, request, positions, charges, measured, backend)
    errors = exact.errors(result)
    # rounding counts relative to the whole potential, which is what is summed
    found = errors.everywhere if method.exact else max(errors.everywhere, errors.away)
    rows = [_row(f"{label}, {request.interaction.interaction.name}", found, limit)]
    if field and errors.field is not None and errors.field_away is not None:
        found = errors.field if method.exact else max(errors.field, errors.field_away)
        rows.append(_row(f"{label}, field of {request.interaction.interaction.name}", found, limit))
    return rows


def _row(what: str, error: float, limit: float) -> dict[str, Any]:
    error = float(error) if error < float("inf") else 1e300  # JSON has no inf and no NaN
    return {"what": what, "error": error, "limit": limit, "passed": error <= limit}


command = Command.of(verify)
