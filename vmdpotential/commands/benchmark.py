"""The command ``benchmark``."""

from __future__ import annotations

import statistics
import time
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
    method: Annotated[str, Option("what is summed", choices=("direct", "cutoff"))] = "cutoff",
    precision: Annotated[str, Option("of the sums", choices=PRECISIONS)] = "single",
    box: Annotated[float, Option("edge of a cube of water", unit="A", low=10, high=500)] = 100.0,
    spacing: Annotated[float, Option("between lattice points", unit="A", low=0.1, high=10)] = 0.5,
    cutoff: Annotated[float, Option("of the cutoff sum", unit="A", low=1, high=100)] = 12.0,
    variant: Annotated[str, Option(
        "on a GPU: our own kernel, or one of its history, the first four of the direct sum and three of the cutoff sum",
        choices=("auto", *(name for names in VARIANTS.values() for name in names)))] = "auto",
    repeats: Annotated[int, Option("runs that are timed; the median counts", low=1, high=1000)] = 5,
) -> Report:
    """Time a map of a box of random water molecules on this machine.

    From arrays in to array out, sorting included, kernels compiled and warm. The first run, which
    compiles or loads them, is reported apart. For a GPU, the time of its kernels alone and the part
    of what its special function units could do (one inverse root a pair) are given too.
    """
    import numpy as np

    from vmdpotential import memory
    from vmdpotential.engines import get_engine
    from vmdpotential.lattice import Lattice

    points = round(box / spacing) ** 3
    memory.require(4 * points + 20 * int(box**3), f"a map of {points} points",
                   "use a smaller --box or a larger --spacing")
    backend: Any = get_engine(engine)
    positions, charges = water_box(box)
    count = round(box / spacing)
    lattice = Lattice(np.full(3, spacing / 2), np.full(3, spacing), (count, count, count))
    if method == "cutoff":
        interaction = registry.get("interaction", "shifted_coulomb").bind(cutoff=cutoff)
        pairs = lattice.size * len(positions) / box**3 * 4 / 3 * np.pi * cutoff**3
        compute: Any = backend.cutoff
    else:
        interaction = registry.get("interaction", "coulomb").bind()
        pairs = float(lattice.size) * len(positions)
        compute = backend.direct
    if variant != "auto":
        needed = next(name for name, names in VARIANTS.items() if variant in names)
        if backend.name != "cuda" or method != needed or (method == "direct" and precision != "single"):
            raise UsageError(f"--variant {variant}: needs --engine cuda --method {needed}"
                             + (" --precision single" if needed == "direct" else ""))
        from vmdpotential.engines.cuda import bins, variants

        def compute(lattice: Lattice, positions: Any, charges: Any, interaction: Any, precision: str) -> Any:
            if method == "direct":
                return variants.direct(variant, lattice, positions, charges)
            return bins.cutoff(variant, lattice, positions, charges, interaction, precision)
    seconds, on_device = [], []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        compute(lattice, positions, charges, interaction, precision)
        seconds.append(time.perf_counter() - start)
        on_device.append(getattr(backend, "device_seconds", None))
    median = statistics.median(seconds[1:])
    name = f"{method} sum" + ("" if variant == "auto" else f" ({variant})")
    lines = [
        f"{name}, {precision} precision, {backend.name} engine ({backend.describe()})",
        f"{len(positions)} atoms, {lattice.size} points, {pairs:.3g} pairs",
        f"first run {seconds[0]:.3f} s, then median {median:.4f} s of {repeats} "
        f"({min(seconds[1:]):.4f} to {max(seconds[1:]):.4f}), {pairs / median:.3g} pairs/s",
    ]
    data = {
        "engine": backend.name, "hardware": backend.describe(), "method": method, "variant": variant,
        "precision": precision,
        "atoms": len(positions), "points": lattice.size, "pairs": pairs, "first": seconds[0],
        "seconds": seconds[1:], "median": median,
    }
    if on_device[0] is not None:
        device = statistics.median(filter(None, on_device[1:]))
        limit = backend.special_limit
        lines.append(f"on the GPU {device * 1e3:.3f} ms, {pairs / device:.3g} pairs/s, "
                     f"{100 * pairs / device / limit:.0f} % of the special function units' {limit:.3g}/s")
        data |= {"device_median": device, "special_limit": limit, "ratio_to_limit": pairs / device / limit}
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
