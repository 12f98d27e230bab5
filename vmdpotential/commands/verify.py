"""The command ``verify``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from vmdpotential import progress, registry
from vmdpotential.errors import BackendError, CheckError, UsageError, VmdpotentialError
from vmdpotential.parameters import Command, Option, Rows
from vmdpotential.results import Columns, Result

if TYPE_CHECKING:
    from vmdpotential.engines import Engine, Floats
    from vmdpotential.interactions import Interaction
    from vmdpotential.maps import SumOptions
    from vmdpotential.methods import Method

#: Tolerance that approximate methods are run with and checked against.
TOLERANCE = 1e-4

#: Edge of the box of water, and cutoff of methods that have one, A.
EDGE, CUTOFF = 40.0, 10.0


def verify(
    engine: Annotated[str, Option(
        "engine to check; all checks every engine that works on this machine",
        choices=lambda: ("all", *registry.available("engine")))] = "all",
    method: Annotated[str, Option(
        "method to check, with its interaction; all checks every method and everything else",
        choices=lambda: ("all", *registry.available("method")))] = "all",
    thorough: Annotated[bool, Option(
        "check every method in every precision, with and without the field")] = False,
    points: Annotated[int, Option("number of points at which maps are compared", low=10, high=10000)] = 400,
    seed: Annotated[int, Option("seed of the random box and points", low=0)] = 1,
) -> Verification:
    """Check every engine, method and interaction on this machine against a plain float64 sum.

    Potentials and fields of random water molecules are compared at random points, and interactions and forces of pairs
    with their documented values, in half a minute. With a method, only this method and its interaction are checked. The
    exit code is 3 if a check fails.

    Raises
    ------
    CheckError
        When a row fails; it holds the report.
    """
    from vmdpotential.engines import get_engine

    rows: list[dict[str, Any]] = []
    skipped: dict[str, str] = {}
    for name in registry.available("engine") if engine == "all" else (engine,):
        try:
            backend = get_engine(name)
        except BackendError as error:
            if engine != "all":
                raise
            skipped[name] = str(error)
            continue
        work = [*_methods(backend, method, thorough, points, seed), *_interactions(backend, method)]
        if method == "all":  # maps first, which most users need
            work += [*_pairs(backend), *((name, partial(_check_registered, name, backend, seed))
                                         for name in registry.available("check"))]
        for number, (label, check) in enumerate(work):
            progress.report(f"verify, {label}", number / len(work))
            start = time.perf_counter()
            try:
                result = check()
            except BackendError as error:
                skipped[label] = str(error)
                continue
            except UsageError as error:  # the method declares that it does not support this
                skipped[label] = error.text
                continue
            except VmdpotentialError as error:
                result = [{"what": label, "error": None, "limit": None, "passed": False, "reason": str(error)}]
            rows += [{"engine": name, **row, "seconds": time.perf_counter() - start} for row in result]
    verified = Verification(rows=rows, skipped=skipped, passed=all(row["passed"] for row in rows))
    if not verified.passed:
        raise CheckError(f"verify: {len(verified.failed)} of {len(rows)} failed: " + ", ".join(
            f"{row['engine']} {row['what']}" for row in verified.failed), verified)
    return verified


class Verification(Result):
    """Errors of every engine, method and interaction, and what was not checked."""

    rows: Sequence[Mapping[str, Any]]
    skipped: Mapping[str, str]
    passed: bool

    @property
    def failed(self) -> Sequence[Mapping[str, Any]]:
        """The rows whose error is above its limit."""
        return [row for row in self.rows if not row["passed"]]

    def text(self) -> Iterator[str | Rows]:
        """Yield the errors, in a short report those that are too large, and what was not checked."""
        order = sorted(range(len(self.rows)), key=lambda n: self.rows[n]["passed"])
        yield Rows(lambda n: _line(self.rows[n]), order, len(self.failed))
        reasons: dict[str, dict[str, None]] = {}
        for label, reason in self.skipped.items():  # one line for all methods that have the same
            reasons.setdefault(reason, {})[label.partition(",")[0]] = None
        yield from (f"not checked: {', '.join(names)}: {reason}" for reason, names in reasons.items())
        yield (f"{len(self.rows) - len(self.failed)} of {len(self.rows)} passed: relative errors against the "
               "definition in float64")

    def table(self) -> Columns:
        """Return a row for each check."""
        return {name: [row.get(name) for row in self.rows]
                for name in ("engine", "what", "error", "limit", "passed", "reason", "seconds")}


def _line(row: Mapping[str, Any]) -> str:
    error = row.get("reason") or f"{row['error']:.1e} (at most {row['limit']:.0e})"
    return (f"{'PASS' if row['passed'] else 'FAIL'}  {row['engine']:<5} {row['what']:<58} {error} "
            f"{row['seconds']:7.2f} s")


def _interactions(backend: Engine, method: str) -> Iterator[tuple[str, Any]]:
    """Yield a check of every interaction, or of a method's own: its documented values, by numpy and by the engine."""
    from vmdpotential import maps

    for name in registry.available("interaction") if method == "all" else (
            maps.bind(_options(registry.get("method", method)), None).interaction.name,):
        interaction: Interaction = registry.get("interaction", name)
        if interaction.checks:
            yield name, lambda interaction=interaction: _check_interaction(backend, interaction)


def _check_interaction(backend: Engine, interaction: Interaction) -> list[dict[str, Any]]:
    import numpy as np

    from vmdpotential.engines import PointSum

    worst = 0.0
    for check in interaction.checks:
        bound = interaction.bind(**check.parameters)
        by_engine = backend.prepare_points(PointSum(bound)).at(
            np.array([[check.r, 0, 0]]), np.zeros((1, 3)), np.ones(1))[0]
        scale = abs(check.value) or 1.0
        worst = max(worst, float(abs(bound(check.r) - check.value)) / scale, abs(by_engine[0] - check.value) / scale)
    return [_row(f"{interaction.name}, the values on its page", worst, 1e-9)]


def _pairs(backend: Engine) -> Iterator[tuple[str, Any]]:
    """Yield checks of pairs: documented values of energies, and forces within a cutoff."""
    for name in registry.available("pair"):
        page: Interaction = registry.get("pair", name)
        if page.checks:
            yield name, lambda page=page: _check_energies(backend, page)
    for name in ("rf", "ewald"):
        yield f"pairs, {name}", lambda name=name: _check_forces(backend, name)


def _check_energies(backend: Engine, page: Interaction) -> list[dict[str, Any]]:
    """Compare the energy of two atoms."""
    import numpy as np

    from vmdpotential.engines.pairs import Atoms, PairSum
    from vmdpotential.interactions.pairs import PairPotential, Term, table

    own = {q.name for q in page.quantities}
    worst = 0.0
    for check in page.checks:
        bound = page.bind(**{n: v for n, v in check.parameters.items() if n in own})
        bound = bound if bound.cutoff is not None else bound.truncated(2 * check.r)
        tables = {n: np.full((1, 1), float(check.parameters[n])) for n in page.pair}
        atoms = Atoms(np.array([[0.0, 0.0, 0.0], [check.r, 0.0, 0.0]]), types=np.zeros(2, np.int64), tables=tables)
        work = PairSum(PairPotential((Term(page.name, bound, table(page)),)), precision="double", energy=True)
        energies = backend.prepare_pairs(work).run(atoms).energies
        assert energies is not None
        worst = max(worst, abs(float(energies.sum()) - check.value) / (abs(check.value) or 1.0))
    return [_row(f"{page.name} of two atoms, the values on its page", worst, 1e-9)]


def _check_forces(backend: Engine, name: str) -> list[dict[str, Any]]:
    """Compare forces in a box of water with an explicit sum over all pairs in their nearest images."""
    import numpy as np

    from vmdpotential.engines.pairs import PairSum
    from vmdpotential.interactions.program import evaluate_all
    from vmdpotential.pairs import samples

    water, cutoff = samples.water(18.6), 9.0
    atoms, potential = water.atoms, samples.potential(name, cutoff)
    result = backend.prepare_pairs(PairSum(potential, water.cell)).run(atoms).forces
    d = water.cell.minimum_image((atoms.positions[:, None] - atoms.positions).reshape(-1, 3))
    d = d.reshape(len(atoms), len(atoms), 3)
    r2 = (d * d).sum(2)
    included = np.ones(r2.shape, bool)
    assert atoms.exclusions is not None
    included[tuple(atoms.exclusions.T)] = included[tuple(atoms.exclusions.T[::-1])] = False
    np.fill_diagonal(r2, np.inf)
    total = np.zeros_like(r2)
    for excluded, mask in ((False, included), (True, ~included)):
        scaled = potential.scaled(excluded=excluded)
        inputs: dict[str, Any] = {f"{side}.{n}": values[index] for n, values in atoms.parameters.items()
                  for side, index in (("i", (slice(None), None)), ("j", (None, slice(None))))}
        inputs |= dict(zip(scaled.program.parameters, scaled.values, strict=True))
        within = mask & (r2 < cutoff**2)
        r2_safe = np.where(within, r2, 1.0)
        slope = evaluate_all(scaled.program, inputs | {"r2": r2_safe, "rinv": 1 / np.sqrt(r2_safe)})[0]
        total += np.where(within, slope, 0.0)
    exact = (total[..., None] * d).sum(1)
    error = float(np.sqrt(((result - exact) ** 2).mean() / (exact**2).mean()))
    return [_row(f"forces of pairs in range, {name}", error, 5e-6)]


def _methods(backend: Engine, only: str, thorough: bool, points: int, seed: int) -> Iterator[tuple[str, Any]]:
    """Yield checks of every method: its map and field, in its boundaries and precisions."""
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
        if not method.superposes:
            yield name, partial(_closed_form, name, method, backend)
            continue
        for boundary in method.boundaries:
            where = cell if boundary == "periodic" else None
            every = thorough or (method.exact and not method.cutoff and where is None)
            for precision in method.precisions if every else method.precisions[:1]:
                fields = (False, True) if thorough else (precision == "single",)
                for field in fields if method.field else (False,):
                    label = f"{name}, {boundary}, {precision} precision"
                    yield label, lambda m=method, w=where, p=precision, f=field, label=label: _check_method(
                        backend, m, lattice, positions, charges, w, p, f, points, label)


def _closed_form(name: str, method: Method, backend: Engine) -> list[dict[str, Any]]:
    result = method.closed_form(backend)
    if result is not None:
        return [_row(f"{name}, closed form", *result)]
    raise UsageError("what", f"{name} is not a sum over charges and cannot be compared with the definition")


def _check_method(backend: Engine, method: Method, lattice: Any, positions: Floats, charges: Floats, cell: Any,
                  precision: str, field: bool, points: int, label: str) -> list[dict[str, Any]]:
    from vmdpotential import maps
    from vmdpotential.engines import get_engine
    from vmdpotential.methods import Charges, Request, accuracy

    statistics = Charges.of(positions, charges, cell)
    request = Request(lattice, cell, maps.bind(_options(method), cell), statistics, precision, TOLERANCE, field)
    method.require(request, backend)
    exact = accuracy.sample(request, positions, charges, get_engine("cpu"), points)
    limit = method.rounding[precision]
    if not method.exact:
        limit, request = TOLERANCE, request.with_error(TOLERANCE * exact.target_rms)
    measured = None if method.exact else exact
    _, result, _ = accuracy.run_to_tolerance(method, request, positions, charges, measured, backend)
    errors = exact.errors(result)
    # rounding errors are relative to the whole potential, not to the smaller one away from atoms
    error = errors.everywhere if method.exact else max(errors.everywhere, errors.away)
    rows = [_row(f"{label}, {request.interaction.interaction.name}", error, limit)]
    if field and errors.field is not None and errors.field_away is not None:
        error = errors.field if method.exact else max(errors.field, errors.field_away)
        rows.append(_row(f"{label}, field of {request.interaction.interaction.name}", error, limit))
    return rows


def _options(method: Method) -> SumOptions:
    """Return the options of the maps by which a method is checked."""
    from vmdpotential.maps import SumOptions

    return SumOptions(method=method.name, cutoff=CUTOFF if method.cutoff else None)


def _check_registered(name: str, backend: Engine, seed: int) -> list[dict[str, Any]]:
    return [_row(*each) for each in registry.get("check", name)(backend, seed)]


def _row(what: str, error: float, limit: float) -> dict[str, Any]:
    error = float(error) if error < float("inf") else 1e300  # JSON has no inf and no NaN
    return {"what": what, "error": error, "limit": limit, "passed": error <= limit}


command = Command.of(verify, examples=(
    "verify",
    "verify --engine cpu --method pme",
))
