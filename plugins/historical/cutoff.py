"""The cutoff sums of 2008 on a GPU.

After section 4 of C. I. Rodrigues, D. J. Hardy, J. E. Stone, K. Schulten, W. W. Hwu, "GPU acceleration
of cutoff pair potentials for molecular modeling applications", Proc. 5th Conf. Computing Frontiers
(2008) 273-282: the CPU puts atoms in bins, coordinates are single precision relative to the lattice's
origin, one GPU, a map that fits it.

``largebin``
    bins as wide as the cutoff; for a region of points, all atoms in the bins around it are summed.
``smallbin``
    bins of 4 A for up to 8 atoms; for a region of points, the bins within the cutoff are summed; atoms that do not fit
    into their bin are summed on the CPU afterwards.
``overlap``
    the same with bins so small that few atoms do not fit; these are summed on the CPU while the GPU works.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential.arrays import Floats, Integers
from vmdpotential.engines import Engine, get_engine
from vmdpotential.engines.costs import CPU_COSTS
from vmdpotential.sums import Estimate, Request
from vmdpotential.sums.cuda import kernels
from vmdpotential.sums.cutoff import pairwise_estimate
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum

from .bins import CAPACITY, REGION, SIDE, place
from .early import COPY, Early, TimedResult, packed_atoms

HERE = Path(__file__).parent

#: Largest number of bins in a kernel's list: its arguments, which are in constant memory, may have 4 kB.
LISTED = (4080 - kernels.TASK.itemsize) // 4

#: Struct ListTask of cutoff_smallbin.cu.
LIST_TASK = kernels.struct_type("ListTask", [
    ("task", kernels.TASK),  # index: the home bin of a region along x, then y, then z; zero of the list's steps
    ("count", np.int32),  # steps in the list
    ("steps", np.int32, LISTED),
], "cutoff_smallbin.cu")

#: Seconds of the CPU to sort an atom into its bin, and the fraction of atoms that do not fit into bins of 4 A.
BIN, LEFT = 1e-7, 0.026


def by_bins(name: str, work: PotentialSum, positions: Floats, charges: Floats) -> TimedResult:
    """Return the sum over the atoms within the cutoff, and over their periodic images if there is a cell."""
    lattice, interaction = work.lattice, work.pairs
    assert interaction is not None
    reach = interaction.cutoff
    assert reach is not None
    clock = [time.perf_counter()]
    if work.cell is not None and len(positions):
        positions, index = work.cell.images_in_box(positions, lattice.origin - reach, lattice.last + reach)
        charges = charges[index]
    if not len(positions):
        return TimedResult(np.zeros((1, *lattice.shape), np.float32))
    scaled = interaction.scaled(kernels.internal_unit(lattice, reach))
    placed = place(name, lattice, positions, packed_atoms(lattice, positions, charges, scaled.length), reach)
    task = kernels.base_task(lattice, scaled)
    task["count"] = len(positions)
    task["low"] = (placed.bins.low - lattice.origin) / scaled.length
    task["cells"], task["inverse_cell"] = placed.bins.shape, scaled.length / placed.bins.side
    constants: dict[str, object] = {"REAL": "float"}
    if placed.kernel == "smallbin":
        constants |= {"COMPENSATED": int(work.precision == "compensated"), "CAPACITY": CAPACITY, "LISTED": LISTED}
    nx, ny, nz = (-(-n // REGION) for n in lattice.shape)
    clock.append(time.perf_counter())
    (gpu,) = kernels.least_busy_gpus(1)
    needed = 4 * lattice.size + sum(array.nbytes for array in placed.arrays.values())
    with gpu, kernels.converted_errors(f"GPU {gpu.number} ({gpu.name})", needed):
        drv = kernels.cuda_driver()
        start, lanes = gpu.streams()
        stream, end = lanes[0]
        out = kernels.empty_pinned(lattice.shape)
        task["out"] = gpu.buffer("map 0", out.nbytes)
        drv.memset_d8(int(task["out"]), 0, out.nbytes)
        for field, array in placed.arrays.items():
            task[field] = gpu.upload(field, array)
        clock.append(time.perf_counter())
        arguments = list_tasks(task, placed.steps) if placed.kernel == "smallbin" else [task.tobytes()]
        function = f"cutoff_{placed.kernel}"
        text = kernels.radial_source(scaled, "float")
        kernel = gpu.kernel(HERE / f"{function}.cu", function, constants, text, len(arguments[0]))
        start.record(stream)
        for argument in arguments:
            kernel.prepared_async_call((nz, ny, nx), (128, 1, 1), stream, argument)
        end.record(stream)
        if name != "overlap":
            end.synchronize()
        clock.append(time.perf_counter())
        rest = placed.overflow
        if len(rest):
            by_cpu = prepare_sum(get_engine("cpu"), PotentialSum(lattice, interaction, None, work.precision))
            extra = by_cpu.run(positions[rest], charges[rest]).values()
        clock.append(time.perf_counter())
        end.synchronize()
        clock.append(time.perf_counter())
        drv.memcpy_dtoh(out, int(task["out"]))
        seconds = end.time_since(start) * 1e-3
        gpu.trim()
    clock.append(time.perf_counter())
    if len(rest):
        out += extra
    hashing, up, _, overflow, _, down = np.diff(clock).tolist()
    return TimedResult(out[None], seconds, {"spatial hashing": hashing, "cutoff summation": seconds,
                                            "copies between host and GPU": up + down, "overflow list": overflow})


def list_tasks(task: Any, steps: Integers) -> list[bytes]:
    """Return the arguments of the launches for a list of bins."""
    result = []
    for first in range(0, len(steps), LISTED):
        part = steps[first : first + LISTED]
        whole = np.zeros((), LIST_TASK)
        whole["task"], whole["count"] = task, len(part)
        whole["steps"][: len(part)] = part
        result.append(whole.tobytes())
    return result


class EarlyCutoff(Early):
    """A cutoff sum of 2008."""

    interaction = "shifted_coulomb"
    cutoff = True
    precisions: tuple[str, ...] = ("single", "compensated")
    kernel = staticmethod(by_bins)

    def cost(self, request: Request, engine: Engine) -> Estimate:
        """Return the estimate for a GPU: that of the present kernel, times tested atoms per atom within the cutoff."""
        ours, reach = pairwise_estimate(request, engine), request.interaction.cutoff
        assert reach is not None
        region = (REGION - 1) * float(request.lattice.spacing.max())
        count = request.images(reach) * request.charges.count
        sphere = 4 / 3 * np.pi * reach**3
        seconds = ours.seconds * self.tested(region, reach) / sphere + COPY * request.lattice.size + BIN * count
        pairs = request.lattice.size * request.charges.count / request.charges.volume * sphere
        return Estimate(float(seconds + self.waiting(pairs)), ours.bytes + int(64 * count))

    def tested(self, region: float, reach: float) -> float:
        """Return the volume (A^3) of all bins that are within the cutoff of a region."""
        r = reach + SIDE / 2
        return float(region**3 + 6 * region**2 * r + 3 * np.pi * region * r**2 + 4 / 3 * np.pi * r**3)

    def waiting(self, pairs: float) -> float:
        """Return how long the GPU's result waits for atoms that the CPU sums, s."""
        return 0.0


class LargeBin(EarlyCutoff):
    """The cutoff sum with large bins, which has no compensated sums."""

    precisions: tuple[str, ...] = ("single",)

    def tested(self, region: float, reach: float) -> float:
        """Return the volume (A^3) of the large bins around a region."""
        return (region + 2 * reach + max(reach, region)) ** 3


class SmallBin(EarlyCutoff):
    """The cutoff sum with small bins, after which the CPU sums the atoms that do not fit."""

    def waiting(self, pairs: float) -> float:
        """Return how long the GPU's result waits for atoms that the CPU sums, s."""
        return LEFT * CPU_COSTS.pair * CPU_COSTS.plain_pair * pairs


LARGEBIN = LargeBin("largebin", "cutoff sum of 2008: bins as wide as the cutoff")
SMALLBIN = SmallBin("smallbin", "cutoff sum of 2008: bins of 4 A, atoms that do not fit on the CPU")
OVERLAP = EarlyCutoff("overlap", "cutoff sum of 2008: smaller bins, atoms that do not fit on the CPU meanwhile")
