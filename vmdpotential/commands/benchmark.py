"""The command ``benchmark``."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Annotated, Any

from vmdpotential import registry
from vmdpotential.engines import PRECISIONS
from vmdpotential.parameters import Command, Option, Report


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The sample that is timed, and the accuracy."""

    box: Annotated[float, Option("edge of the cube of water", unit="A", low=10, high=500)] = 100.0
    spacing: Annotated[float, Option("distance between lattice points", unit="A", low=0.1, high=10)] = 0.5
    cutoff: Annotated[float, Option("cutoff of the method cutoff", unit="A", low=1, high=100)] = 12.0
    tolerance: Annotated[float, Option(
        "tolerance of the methods pme and msm, as in the command map", low=1e-6, high=0.1)] = 1e-4
    boundary: Annotated[str, Option(
        "boundary of the methods cutoff, pme and msm", choices=("open", "periodic"))] = "open"


def benchmark(
    engine: Annotated[str, Option(
        "engine that computes: cpu, cuda, or auto for a GPU where there is one", choices=lambda: ("auto",
        *registry.available("engine")))] = "auto",
    method: Annotated[str, Option(
        "summation method to time",
        choices=lambda: registry.available("method"))] = "cutoff",
    precision: Annotated[str, Option("floating-point precision of the sums", choices=PRECISIONS)] = "single",
    sample: Sample = Sample(),
    variant: Annotated[str, Option(
        "older name of the option method", choices=lambda: ("auto", *registry.available("method")),
    )] = "auto",
    repeats: Annotated[int, Option("number of timed runs, of which the median counts", low=1, high=1000)] = 5,
    pairs: Annotated[str, Option(
        "time pair forces instead of a map: Lennard-Jones with a reaction field (rf) or Ewald's real-space part "
        "(ewald), gravity, gravity with jerks, or Lennard-Jones and Coulomb of all pairs",
        choices=lambda: ("", *registry.available("pair-benchmark")))] = "",
    drift: Annotated[float, Option(
        "energy drift that a pair list kept for 10 steps of 2 fs may cause, which determines its buffer; 0 for no "
        "buffer", unit="kT/ns/atom",
        low=0, high=1e3)] = 0.0,
) -> Report:
    """Time a map of a box of random water molecules on this machine, or forces of its pairs.

    From arrays in to array out, kernels compiled and warm: with planning and the measurement of the error, and
    by a plan that was made before. The first run, which compiles or loads kernels, is reported apart. For a
    GPU, the time of its kernels alone and the part of what its special function units could do (one inverse
    root a pair) are given too.
    """
    import numpy as np

    from vmdpotential import maps, memory
    from vmdpotential.engines import get_engine
    from vmdpotential.grid.lattice import Lattice
    from vmdpotential.methods import Charges, Request
    from vmdpotential.methods.accuracy import run_to_tolerance
    from vmdpotential.molecule.cell import Cell
    from vmdpotential.molecule.samples import water_box

    box, spacing, cutoff, boundary, tolerance = (
        sample.box, sample.spacing, sample.cutoff, sample.boundary, sample.tolerance)
    if pairs:
        measure = registry.get("pair-benchmark", pairs)
        return measure(get_engine(engine), box, cutoff, precision, drift, repeats)  # type: ignore[no-any-return]
    count = round(box / spacing)
    memory.require(4 * count**3 + 20 * int(box**3), f"a map of {count**3} points",
                   "use a smaller {box} or a larger {spacing}")
    backend: Any = get_engine(engine)
    positions, charges = water_box(box)
    lattice = Lattice(np.full(3, spacing / 2), np.full(3, spacing), (count, count, count))
    cell = Cell.from_parameters(box, box, box) if boundary == "periodic" else None
    name = method if variant == "auto" else variant
    chosen = registry.get("method", name)
    requested = maps.SumOptions(method=name, cutoff=cutoff if chosen.cutoff else None)
    bound, about = maps.bind(requested, cell), Charges.of(positions, charges, cell)
    request = Request(lattice, cell, bound, about, precision, tolerance)
    start = time.perf_counter()
    chosen, request, exact = maps.choose_method(requested, request, positions, charges, backend)
    plan, result, errors = run_to_tolerance(chosen, request, positions, charges, exact, backend)
    result.values()
    first = time.perf_counter() - start
    reach = request.interaction.cutoff
    terms = (lattice.size * len(positions) * (1.0 if reach is None else 4 / 3 * np.pi * reach**3 / box**3)
             if errors is None else None)
    planned, seconds, on_device = [], [], []
    for _ in range(repeats):
        start = time.perf_counter()
        chosen, request, exact = maps.choose_method(requested, request, positions, charges, backend)
        plan, result, errors = run_to_tolerance(chosen, request, positions, charges, exact, backend)
        result.values()
        planned.append(time.perf_counter() - start)
    for number in range(repeats + 1):
        start = time.perf_counter()
        result = plan.run(positions, charges)
        result.values()
        if number:  # what a plan needs is made in its first run
            seconds.append(time.perf_counter() - start)
            on_device.append(result.device_seconds)
    median = statistics.median(seconds)
    rate = "" if terms is None else f", {terms / median:.3g} pairs/s"
    lines = [
        f"{name} sum, {boundary} boundary, {precision} precision, {backend.name} engine ({backend.describe()})",
        f"{len(positions)} atoms, {lattice.size} points" + ("" if terms is None else f", {terms:.3g} pairs"),
        f"first run {first:.3f} s, then planned again {statistics.median(planned):.4f} s, and by the plan median "
        f"{median:.4f} s of {repeats} ({min(seconds):.4f} to {max(seconds):.4f}){rate}",
        str(plan),
    ]
    data = {
        "engine": backend.name, "hardware": backend.describe(), "method": name, "variant": variant,
        "boundary": boundary, "precision": precision, "atoms": len(positions), "points": lattice.size, "pairs": terms,
        "first": first, "seconds": seconds, "median": median, "planned": planned,
        "planned_median": statistics.median(planned),
    }
    if errors is not None:
        lines.append(f"relative rms error {errors} (asked {tolerance:g})")
        data |= {"tolerance": tolerance, "error": errors.everywhere, "error_away": errors.away}
    if on_device[0] is not None:
        device = statistics.median(filter(None, on_device))
        data["device_median"] = device
        lines.append(f"on the GPU {device * 1e3:.3f} ms")
        if terms is not None:
            limit = backend.special_limit
            lines[-1] += (f", {terms / device:.3g} pairs/s, {100 * terms / device / limit:.0f} % of the special "
                          f"function units' {limit:.3g}/s")
            data |= {"special_limit": limit, "ratio_to_limit": terms / device / limit}
    return Report(lines, data)


command = Command.of(benchmark, examples=(
    "benchmark --method pme --box 60",
    "benchmark --pairs rf --box 60 --repeats 3",
))
