"""Multigrid on a GPU, around multigrid.cu: conjugate gradients there, their residuals in float64 on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines.cpu.continuum import multigrid
from vmdpotential.engines.cuda import device
from vmdpotential.engines.cuda.build import address, struct
from vmdpotential.errors import MemoryPlanError

Floats = NDArray[np.float64]
Values = NDArray[np.float32]

#: Levels at most; threads of a block, and parts of a sum, as in multigrid.cu.
LEVELS, THREADS, PARTS = 12, 256, 512

#: Sweeps on each level before and after the one below, as in multigrid.cu.
SMOOTHINGS = 2

#: Nodes of a level that one block smooths with all levels below.
SMALL = 6000

LEVEL = struct("MultigridLevel", [("first", np.uint64), ("shape", np.int32, 3)], "multigrid.cu")

#: Struct MultigridTask of multigrid.cu.
TASK = struct("MultigridTask", [
    ("x", address("const float")), ("y", address("const float")), ("z", address("const float")),
    ("d", address("const float")),
    ("u", address("float")), ("f", address("float")), ("r", address("float")),  # all levels
    ("k2", address("const float")), ("p", address("float")), ("w", address("float")),  # the finest
    ("parts", address("double")),  # (PARTS,)
    ("totals", address("double")),  # r z, p A p, squares of r, the last r z
    ("levels", LEVEL, LEVELS),
    ("count", np.int32),  # of levels
    ("level", np.int32),
    ("colour", np.int32),
], "multigrid.cu")


class CudaMultigrid(multigrid.Multigrid):
    """See :class:`vmdpotential.engines.cpu.continuum.multigrid.Multigrid`."""

    def _gradients(self, k2: Values, w: Values, goal: float) -> int:
        finest, every = 4 * int(self.offsets[1]), 4 * int(self.offsets[-1])
        needed = 3 * finest + 7 * every
        residual = self.f[: self.offsets[1]].astype(np.float64)
        gpu = device.idlest(1)[0]
        with gpu, device.errors(f"GPU {gpu.number} ({gpu.name})", needed):
            if needed > gpu.free():
                raise MemoryPlanError(f"{memory.size(needed)} of GPU memory are needed, {memory.size(gpu.free())} are "
                                      "free", "use a larger {spacing}, or {engine cpu}")
            task = np.zeros((), TASK)
            for name, values in (("x", self.x), ("y", self.y), ("z", self.z), ("d", self.d), ("f", self.f),
                                 ("k2", k2), ("w", w)):
                task[name] = gpu.upload(f"multigrid {name}", values)
            task["u"], task["r"] = gpu.buffer("multigrid u", every), gpu.buffer("multigrid r", every)
            task["p"] = gpu.upload("multigrid p", self.direction)
            task["parts"] = gpu.upload("multigrid parts", np.zeros(PARTS))
            task["totals"] = gpu.upload("multigrid totals", np.zeros(4))
            task["count"] = len(self.shapes)
            task["levels"]["first"][: len(self.shapes)] = self.offsets[:-1]
            task["levels"]["shape"][: len(self.shapes)] = self.shapes
            steps = Steps(gpu, task, self.shapes.prod(1).tolist())
            count = steps.run(goal**2 * float(np.vdot(residual, residual)), multigrid.MOST)
            device.driver().memcpy_dtoh(w, int(task["w"]))
        return count


class Steps:
    """The kernels of one run of conjugate gradients, in their order.

    Parameters
    ----------
    gpu : Gpu
    task : record of :data:`TASK`
    sizes : list of int
        Nodes of each level.
    """

    def __init__(self, gpu: Any, task: Any, sizes: list[int]) -> None:
        self.gpu, self.task, self.sizes = gpu, task, sizes
        self.small = next((n for n, size in enumerate(sizes) if size <= SMALL), len(sizes) - 1)

    def run(self, limit: float, most: int) -> int:
        """Go on until the sum of the residual's squares is at most `limit`; return how many iterations that took."""
        totals = np.empty(4)
        for count in range(1, most + 1):
            self.cycle()
            self.add_up("products", 0)
            self.start("turn", 0)
            self.add_up("apply", 1)
            self.add_up("advance", 2)
            device.driver().memcpy_dtoh(totals, int(self.task["totals"]))
            if not totals[2] > limit:  # nor is it a number where charges are too large
                return count
        return most

    def cycle(self) -> None:
        """Make of the residual what one cycle does."""
        for level in range(self.small):
            self.start("start", level)
            for step in range(1, 2 * SMOOTHINGS):
                self.start("smooth", level, step % 2)
            self.start("residual", level)
            self.start("restricted", level, size=self.sizes[level + 1])
        self.start("coarse", self.small, size=1, threads=1024)
        for level in reversed(range(self.small)):
            self.start("prolong", level)
            for step in range(1, 2 * SMOOTHINGS + 1):
                self.start("smooth", level, step % 2)

    def add_up(self, name: str, place: int) -> None:
        """Start a kernel that sums over the finest nodes, and add its parts up to a total."""
        self.start(name, 0, size=PARTS * THREADS)
        self.start("total", place, size=1)

    def start(self, name: str, level: int, colour: int = 0, size: int | None = None, threads: int = THREADS) -> None:
        """Start a kernel for the nodes of a level, or `size` of them."""
        self.task["level"], self.task["colour"] = level, colour
        kernel = self.gpu.kernel("multigrid.cu", name, {"REAL": "float"}, "", TASK.itemsize)
        kernel.prepared_call((-(-(size or self.sizes[level]) // threads), 1, 1), (threads, 1, 1), self.task.tobytes())
