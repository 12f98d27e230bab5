"""The command ``benchmark``."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from vmdpotential import registry
from vmdpotential.engines import PRECISIONS
from vmdpotential.errors import UsageError
from vmdpotential.parameters import Command, Option, Report

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Kernels of the past, by method.
VARIANTS = {"direct": ("simple", "constant", "unrolled", "coalesced"),
            "cutoff": ("largebin", "smallbin", "overlap")}


def benchmark(
    engine: Annotated[str, Option(
        "what computes", choices=lambda: ("auto", *registry.available("engine")))] = "auto",
    method: Annotated[str, Option("what is summed", choices=("direct", "cutoff", "pme", "msm"))] = "cutoff",
    precision: Annotated[str, Option("of the sums", choices=PRECISIONS)] = "single",
    box: Annotated[float, Option("edge of a cube of water", unit="A", low=10, high=500)] = 100.0,
    spacing: Annotated[float, Option("between lattice points", unit="A", low=0.1, high=10)] = 0.5,
    cutoff: Annotated[float, Option("of the cutoff sum", unit="A", low=1, high=100)] = 12.0,
    tolerance: Annotated[float, Option("of pme and msm, see map", low=1e-6, high=0.1)] = 1e-4,
    boundary: Annotated[str, Option("of cutoff, pme and msm", choices=("open", "periodic"))] = "open",
    variant: Annotated[str, Option(
        "on a GPU: our own kernel, or one of its history, the first four of the direct sum and three of the cutoff sum",
        choices=("auto", *(name for names in VARIANTS.values() for name in names)))] = "auto",
    repeats: Annotated[int, Option("runs that are timed; the median counts", low=1, high=1000)] = 5,
) -> Report:
    """Time a map of a box of random water molecules on this machine.

    From arrays in to array out, sorting and planning included, kernels compiled and warm; the exact
    potential at 200 points, which pme and msm are compared with, is computed before. The first run,
    which compiles or loads kernels, is reported apart. For a GPU, the time of its kernels alone and
    the part of what its special function units could do (one inverse root a pair) are given too.
    """
    import numpy as np

    from vmdpotential import memory
    from vmdpotential.engines import get_engine
    from vmdpotential.grid.lattice import Lattice
    from vmdpotential.methods import Sources, accuracy
    from vmdpotential.molecule.cell import Cell

    points = round(box / spacing) ** 3
    memory.require(4 * points + 20 * int(box**3), f"a map of {points} points",
                   "use a smaller --box or a larger --spacing")
    backend: Any = get_engine(engine)
    positions, charges = water_box(box)
    count = round(box / spacing)
    lattice = Lattice(np.full(3, spacing / 2), np.full(3, spacing), (count, count, count))
    if boundary == "periodic" and method == "direct":
        raise UsageError("--boundary periodic: the method direct cannot do it; use --method pme")
    cell = Cell.from_parameters(box, box, box) if boundary == "periodic" else None
    interaction = registry.get("interaction", "shifted_coulomb" if method == "cutoff" else "coulomb").bind(
        **({"cutoff": cutoff} if method == "cutoff" else {}))
    sources = Sources(positions, charges, cell, interaction, precision, tolerance)
    chosen = registry.get("method", method)
    if chosen.exact:
        pairs = lattice.size * len(positions) * (4 / 3 * np.pi * cutoff**3 / box**3 if method == "cutoff" else 1.0)
    else:
        pairs = None
        sources = replace(sources, sample=accuracy.exact(lattice, sources, backend))

    def compute() -> Any:
        return chosen.compute(lattice, sources, backend)

    if variant != "auto":
        needed = next(name for name, names in VARIANTS.items() if variant in names)
        if backend.name != "cuda" or method != needed or (method == "direct" and precision != "single"):
            raise UsageError(f"--variant {variant}: needs --engine cuda --method {needed}"
                             + (" --precision single" if needed == "direct" else ""))
        from vmdpotential.engines.cuda import bins, variants

        def compute() -> Any:
            if method == "direct":
                return variants.direct(variant, lattice, positions, charges)
            return bins.cutoff(variant, lattice, positions, charges, interaction, precision, cell)
    seconds, on_device = [], []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        values = compute()
        seconds.append(time.perf_counter() - start)
        on_device.append(getattr(backend, "device_seconds", None))
    median = statistics.median(seconds[1:])
    name = f"{method} sum" + ("" if variant == "auto" else f" ({variant})")
    rate = "" if pairs is None else f", {pairs / median:.3g} pairs/s"
    lines = [
        f"{name}, {boundary} boundary, {precision} precision, {backend.name} engine ({backend.describe()})",
        f"{len(positions)} atoms, {lattice.size} points" + ("" if pairs is None else f", {pairs:.3g} pairs"),
        f"first run {seconds[0]:.3f} s, then median {median:.4f} s of {repeats} "
        f"({min(seconds[1:]):.4f} to {max(seconds[1:]):.4f}){rate}",
    ]
    data = {
        "engine": backend.name, "hardware": backend.describe(), "method": method, "variant": variant,
        "boundary": boundary, "precision": precision, "atoms": len(positions), "points": lattice.size, "pairs": pairs,
        "first": seconds[0], "seconds": seconds[1:], "median": median,
    }
    if sources.sample is not None:
        error = sources.sample.error(values)
        lines.append(f"relative rms error {error:.1e} at {len(sources.sample.indices)} points (asked {tolerance:g})")
        data |= {"tolerance": tolerance, "error": error}
    if on_device[0] is not None:
        device = statistics.median(filter(None, on_device[1:]))
        data["device_median"] = device
        lines.append(f"on the GPU {device * 1e3:.3f} ms")
        if pairs is not None:
            limit = backend.special_limit
            lines[-1] += (f", {pairs / device:.3g} pairs/s, {100 * pairs / device / limit:.0f} % of the special "
                          f"function units' {limit:.3g}/s")
            data |= {"special_limit": limit, "ratio_to_limit": pairs / device / limit}
    return Report(lines, data)


def water_box(edge: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return positions (N, 3), A, and charges (N,), e, of TIP3P molecules at the density of water.

    Molecules stand on a cubic lattice in random orientations, which has the cost of a real box.
    """
    import numpy as np

    side = 3.104  # A; one molecule in 29.9 A^3, the volume at 298 K
    count = max(1, round(edge / side))
    rng = np.random.default_rng(2008)
    oxygen = (np.stack(np.meshgrid(*[np.arange(count)] * 3, indexing="ij"), -1).reshape(-1, 3) + 0.5) * edge / count
    oxygen += rng.uniform(-0.3, 0.3, oxygen.shape)
    bond, half_angle = 0.9572, np.radians(104.52 / 2)
    axis = rng.normal(size=(2, len(oxygen), 3))
    axis[0] /= np.linalg.norm(axis[0], axis=1)[:, None]
    axis[1] -= (axis[1] * axis[0]).sum(1)[:, None] * axis[0]
    axis[1] /= np.linalg.norm(axis[1], axis=1)[:, None]
    along, across = bond * np.cos(half_angle) * axis[0], bond * np.sin(half_angle) * axis[1]
    atoms = np.stack([oxygen, oxygen + along + across, oxygen + along - across], 1).reshape(-1, 3)
    return atoms, np.tile([-0.834, 0.417, 0.417], len(oxygen))


command = Command.of(benchmark)
