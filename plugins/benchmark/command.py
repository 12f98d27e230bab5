"""The command ``benchmark``."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from vmdpotential import registry
from vmdpotential.errors import count_of
from vmdpotential.parameters import Command, Option
from vmdpotential.results import Result
from vmdpotential.sums.potential_sum import PRECISIONS

if TYPE_CHECKING:
    from vmdpotential.sums import Plan
    from vmdpotential.sums.result import Errors

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Size of the timed system, and accuracy of its map."""

    box: Annotated[float, Option(
        "edge length of the cubic box of water", unit="A", low=10, high=500, heading="benchmark")] = 100.0
    spacing: Annotated[float, Option("distance between grid points", unit="A", low=0.1, high=10, heading="grid")] = 0.5
    cutoff: Annotated[float, Option(
        "cutoff of the method cutoff", unit="A", low=1, high=100, heading="method and accuracy")] = 12.0
    tolerance: Annotated[float, Option(
        "tolerance of the methods pme and msm, as in the command map", low=1e-6, high=0.1,
        heading="method and accuracy")] = 1e-4
    boundary: Annotated[str, Option(
        "boundary of the methods cutoff, pme and msm", choices=("open", "periodic"),
        heading="method and accuracy")] = "open"


def benchmark(
    engine: Annotated[str, Option(
        "compute engine: cpu, cuda, or auto for a GPU if there is one", choices=lambda: ("auto",
        *registry.available("engine")), heading="execution")] = "auto",
    method: Annotated[str, Option(
        "summation method to time",
        choices=lambda: registry.available("method"), heading="method and accuracy")] = "cutoff",
    precision: Annotated[str, Option(
        "floating-point precision of the sums", choices=PRECISIONS, heading="method and accuracy")] = "single",
    sample: Sample = Sample(),
    repeats: Annotated[int, Option(
        "number of timed runs, of which the median counts", low=1, high=1000, heading="benchmark")] = 5,
) -> MapTimes:
    """Time a map of a box of random water molecules on this machine.

    Two times are measured, from the input arrays to the output array: with planning and the measurement of the error,
    and with a plan that is reused. The first run, which compiles or loads kernels, is reported separately. For a GPU,
    the time of the kernels is reported as well, and the fraction of the peak rate of its special function units
    (counting one inverse square root for each pair).
    """
    import numpy as np

    from vmdpotential import maps, memory
    from vmdpotential.engines import get_engine
    from vmdpotential.grid.lattice import Lattice
    from vmdpotential.molecule.cell import Cell
    from vmdpotential.molecule.samples import water_box
    from vmdpotential.sums import ChargeStatistics, Request
    from vmdpotential.sums.accuracy import run_to_tolerance

    box, spacing, cutoff = sample.box, sample.spacing, sample.cutoff
    count = round(box / spacing)
    memory.require(4 * count**3 + 20 * int(box**3), f"a map of {count**3} points",
                   "use a smaller {box} or a larger {spacing}")
    backend: Any = get_engine(engine)
    positions, charges = water_box(box)
    lattice = Lattice(np.full(3, spacing / 2), np.full(3, spacing), (count, count, count))
    cell = Cell.from_parameters(box, box, box) if sample.boundary == "periodic" else None
    options = maps.SumOptions(method=method, cutoff=cutoff if registry.get("method", method).cutoff else None)
    request = Request(lattice, cell, maps.bind_interaction(options, cell),
                      ChargeStatistics.of(positions, charges, cell), precision,
                      sample.tolerance)

    def plan_and_run() -> tuple[Plan, Errors | None]:
        chosen, within, exact = maps.choose_method(options, request, positions, charges, backend)
        plan, result, errors = run_to_tolerance(chosen, within, positions, charges, exact, backend)
        result.values()
        return plan, errors

    def run() -> float | None:
        result = plan.run(positions, charges)
        result.values()
        return result.device_seconds

    first, (plan, errors) = _timed(plan_and_run)
    reach = request.interaction.cutoff
    terms = lattice.size * len(positions) * (1.0 if reach is None else 4 / 3 * np.pi * reach**3 / box**3)
    planned = [_timed(plan_and_run)[0] for _ in range(repeats)]
    run()  # not timed: the first run of a plan prepares it
    runs = [_timed(run) for _ in range(repeats)]
    return MapTimes(
        engine=backend.name, hardware=backend.describe(), method=method, boundary=sample.boundary,
        precision=precision, atoms=len(positions), points=lattice.size, pairs=terms if errors is None else None,
        first=first, seconds=[seconds for seconds, _ in runs], planned=planned,
        on_device=[seconds for _, seconds in runs if seconds], tolerance=sample.tolerance, errors=errors, plan=plan,
        special_limit=sum(each.special_limit for each in backend.devices()) or None)


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


class MapTimes(Result):
    """Times of computing a map, s: of the first run, of runs with planning, and of runs that reuse a plan."""

    engine: str
    hardware: str
    method: str
    boundary: str
    precision: str
    atoms: int
    points: int
    pairs: float | None
    first: float
    seconds: Sequence[float]
    planned: Sequence[float]
    tolerance: float
    special_limit: float | None
    errors: Errors | None
    on_device: Sequence[float]
    plan: Plan

    @cached_property
    def median(self) -> float:
        """Median time of the runs that reuse a plan, s."""
        return statistics.median(self.seconds)

    @cached_property
    def planned_median(self) -> float:
        """Median time of the runs with planning, s."""
        return statistics.median(self.planned)

    @cached_property
    def device_median(self) -> float | None:
        """Median time of the kernels on a GPU, s."""
        return statistics.median(self.on_device) if self.on_device else None

    @cached_property
    def ratio_to_limit(self) -> float | None:
        """Pairs per second on a GPU as a fraction of the peak rate of its special function units."""
        if self.pairs is None or self.device_median is None or self.special_limit is None:
            return None
        return self.pairs / self.device_median / self.special_limit

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "engine": self.engine, "hardware": self.hardware, "method": self.method, "boundary": self.boundary,
            "precision": self.precision, "atoms": self.atoms, "points": self.points, "pairs": self.pairs,
            "first": self.first, "seconds": self.seconds, "planned": self.planned, "tolerance": self.tolerance,
            "special_limit": self.special_limit, "error": None if self.errors is None else self.errors.everywhere,
            "error_away": None if self.errors is None else self.errors.away, "median": self.median,
            "planned_median": self.planned_median, "device_median": self.device_median,
            "ratio_to_limit": self.ratio_to_limit}

    def text(self) -> Iterator[str]:
        """Yield a description of the sum, and the times."""
        yield (f"{self.method} sum, {self.boundary} boundary, {self.precision} precision, {self.engine} engine "
               f"({self.hardware})")
        pairs = "" if self.pairs is None else f", {self.pairs:.3g} pairs"
        yield f"{count_of(self.atoms, 'atom')}, {self.points} points{pairs}"
        rate = "" if self.pairs is None else f", {self.pairs / self.median:.3g} pairs/s"
        yield (f"first run {self.first:.3f} s, then planned again {self.planned_median:.4f} s, and by the plan median "
               f"{self.median:.4f} s of {len(self.seconds)} ({min(self.seconds):.4f} to {max(self.seconds):.4f}){rate}")
        yield str(self.plan)
        if self.errors is not None:
            yield f"relative rms error {self.errors} (tolerance {self.tolerance:g})"
        if self.device_median is not None:
            limit = "" if self.ratio_to_limit is None or self.pairs is None else (
                f", {self.pairs / self.device_median:.3g} pairs/s, {100 * self.ratio_to_limit:.0f} % of the special "
                f"function units' {self.special_limit:.3g}/s")
            yield f"on the GPU {self.device_median * 1e3:.3f} ms{limit}"


command = Command.of(benchmark, examples=(
    "benchmark --method pme --box 60",
    "benchmark --engine cpu --method direct --box 20",
))
