"""The command ``verify``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from vmdpotential import progress, registry
from vmdpotential.errors import BackendError, CheckError, UsageError, VmdpotentialError
from vmdpotential.parameters import Command, Option, ReportRows
from vmdpotential.results import Result, TableColumns

if TYPE_CHECKING:
    from vmdpotential.engines import Engine


def verify(
    engine: Annotated[str, Option(
        "engine to check; all checks every engine that works on this machine",
        choices=lambda: ("all", *registry.available("engine")))] = "all",
    method: Annotated[str, Option(
        "method to check, with its interaction; all checks every method and everything else",
        choices=lambda: ("all", *registry.available("method"), *registry.available("solver")))] = "all",
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
    from vmdpotential.maps.checks import check_interactions, check_methods

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
        work = [*check_methods(backend, method, thorough, points, seed), *check_interactions(backend, method)]
        if method == "all":  # maps first, which most users need
            work += [(name, partial(_check_registered, name, backend, seed)) for name in registry.available("check")]
        for number, (label, check) in enumerate(work):
            progress.report_progress(f"verify, {label}", number / len(work))
            start = time.perf_counter()
            try:
                result = [_row(*each) for each in check()]
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

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {"rows": self.rows, "skipped": self.skipped, "passed": self.passed}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the errors, in a short report those that are too large, and what was not checked."""
        order = sorted(range(len(self.rows)), key=lambda n: self.rows[n]["passed"])
        yield ReportRows(lambda n: _line(self.rows[n]), order, len(self.failed))
        reasons: dict[str, dict[str, None]] = {}
        for label, reason in self.skipped.items():  # one line for all methods that have the same
            reasons.setdefault(reason, {})[label.partition(",")[0]] = None
        yield from (f"not checked: {', '.join(names)}: {reason}" for reason, names in reasons.items())
        yield (f"{len(self.rows) - len(self.failed)} of {len(self.rows)} passed: relative errors against the "
               "definition in float64")

    def table(self) -> TableColumns:
        """Return a row for each check."""
        return {name: [row.get(name) for row in self.rows]
                for name in ("engine", "what", "error", "limit", "passed", "reason", "seconds")}


def _line(row: Mapping[str, Any]) -> str:
    error = row.get("reason") or f"{row['error']:.1e} (at most {row['limit']:.0e})"
    return (f"{'PASS' if row['passed'] else 'FAIL'}  {row['engine']:<5} {row['what']:<58} {error} "
            f"{row['seconds']:7.2f} s")


def _check_registered(name: str, backend: Engine, seed: int) -> list[tuple[str, float, float]]:
    return list(registry.get("check", name)(backend, seed))


def _row(what: str, error: float, limit: float) -> dict[str, Any]:
    error = float(error) if error < float("inf") else 1e300  # JSON has no inf and no NaN
    return {"what": what, "error": error, "limit": limit, "passed": error <= limit}


command = Command.of(verify, examples=(
    "verify",
    "verify --engine cpu --method pme",
))
