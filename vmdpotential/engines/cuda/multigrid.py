"""Multigrid on a GPU; the kernels are in multigrid.cu."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from vmdpotential import memory
from vmdpotential.engines import Engine
from vmdpotential.engines.cpu.continuum import multigrid
from vmdpotential.engines.cuda import device
from vmdpotential.engines.cuda.build import address, struct
from vmdpotential.engines.cuda.launches import DeviceArray
from vmdpotential.errors import MemoryPlanError

#: Largest number of levels, threads of a block, and partial sums of a sum, as in multigrid.cu.
LEVELS, THREADS, PARTS = 12, 256, 1024

#: Sweeps on each level before and after the coarser ones, as in multigrid.cu.
SMOOTHINGS = 2

#: Largest number of nodes of a level that one block smooths, together with all coarser levels.
SMALL = 6000

LEVEL = struct("MultigridLevel", [("first", np.uint64), ("shape", np.int32, 3)], "multigrid.cu")

#: Struct MultigridTask of multigrid.cu.
TASK = struct("MultigridTask", [
    ("x", address("float")), ("y", address("float")), ("z", address("float")), ("d", address("float")),
    ("u", address("float")), ("f", address("float")),  # all levels; d without the finest
    ("r", address("float")),  # of one level at a time
    ("k2", address("const float")), ("added", address("const float")),  # finest level: of the ions, at 0 and at w
    ("slope", address("float")), ("p", address("float")), ("w", address("float")), ("whole", address("const float")),
    ("ions", address("const double")),  # (kinds, 2)
    ("sources", address("const float")),
    ("parts", address("double")),  # (PARTS,)
    ("totals", address("double")),  # r z, p A p, squares of r, the previous r z
    ("levels", LEVEL, LEVELS),
    ("kinds", np.int32),
    ("count", np.int32),  # of levels
    ("level", np.int32),
    ("colour", np.int32),
], "multigrid.cu")


class CudaMultigrid(multigrid.Multigrid):
    """See :class:`vmdpotential.engines.cpu.continuum.multigrid.Multigrid`; all levels stay on the GPU."""

    @property
    def engine(self) -> Engine:
        """The engine of all arrays."""
        from vmdpotential.engines.cuda import ENGINE

        return ENGINE

    def _make(self, x: DeviceArray, y: DeviceArray, z: DeviceArray) -> None:
        self.gpu = gpu = x.gpu
        finest, every = 4 * int(self.offsets[1]), 4 * int(self.offsets[-1])
        sizes = {**dict.fromkeys(("x", "y", "z", "u", "f"), every), "d": every - finest,
                 **dict.fromkeys(("r", "p"), finest), **({"slope": finest} if len(self.ions) else {}),
                 "parts": 8 * PARTS}
        needed = sum(sizes.values())
        task = np.zeros((), TASK)
        with gpu, device.errors(f"GPU {gpu.number} ({gpu.name})", needed):
            if needed > gpu.free():
                raise MemoryPlanError(f"{memory.size(needed)} of GPU memory are needed, {memory.size(gpu.free())} are "
                                      "free", "use a larger {spacing}, or {engine cpu}")
            self._blocks = {name: gpu.take(size) for name, size in sizes.items()}
            self._blocks |= {"ions": gpu.keep(self.ions), "totals": gpu.keep(np.zeros(4))}
            for name, block in self._blocks.items():
                task[name] = block.address
            task["k2"] = self.k2.address
            task["added"] = task["slope" if len(self.ions) else "k2"]
            task["count"], task["kinds"] = len(self.shapes), len(self.ions)
            task["levels"]["first"][: len(self.shapes)] = self.offsets[:-1]
            task["levels"]["shape"][: len(self.shapes)] = self.shapes
            for name, values in (("x", x), ("y", y), ("z", z)):
                device.driver().memcpy_dtod(int(task[name]), values.address, finest)
            self._edges = tuple(DeviceArray(gpu, self.shape, np.float32, self._blocks[name]) for name in "xyz")
            self._steps = Steps(gpu, task, self.shapes.prod(1).tolist())
            for level in range(1, len(self.shapes)):
                self._steps.start("coarsen", level)
            if not len(self.ions):
                self._steps.diagonals()

    def _allocate(self) -> None:
        """Allocate nothing: all arrays are on the GPU, and stay there."""

    def release(self) -> None:
        """Free nothing, see :meth:`_allocate`."""

    @property
    def edges(self) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        """The conductances of the finest level."""
        x, y, z = self._edges
        return x, y, z

    def _residual(self, w: DeviceArray, sources: DeviceArray) -> float:
        task = self._steps.task
        task["whole"], task["sources"] = w.address, sources.address
        with self._bound():
            self._steps.start("exact", 0)
        self._squares = self._sum_of_squares()
        return float(np.sqrt(self._squares))

    def _norm(self, values: DeviceArray) -> float:
        task = self._steps.task
        own, task["f"] = int(task["f"]), values.address
        try:
            return float(np.sqrt(self._sum_of_squares()))
        finally:
            task["f"] = own

    def _sum_of_squares(self) -> float:
        totals = np.zeros(4)
        with self._bound():
            device.driver().memcpy_htod(int(self._steps.task["totals"]), totals)
            self._steps.add_up("squares", 2)
            device.driver().memcpy_dtoh(totals, int(self._steps.task["totals"]))
        return float(totals[2])

    def _linearise(self, w: DeviceArray) -> None:
        with self._bound():
            self._steps.start("slope", 0)
            self._steps.diagonals()

    def _gradients(self, w: DeviceArray, goal: float) -> tuple[int, bool]:
        self._steps.task["w"] = w.address
        with self._bound():
            return self._steps.run(goal**2 * self._squares, multigrid.ITERATIONS)

    @contextmanager
    def _bound(self) -> Iterator[None]:
        with self.gpu, device.errors(f"GPU {self.gpu.number} ({self.gpu.name})"):
            yield


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
        self._kernels: dict[str, Any] = {}
        self.small = next((n for n, size in enumerate(sizes) if size <= SMALL), len(sizes) - 1)

    def run(self, limit: float, most: int) -> tuple[int, bool]:
        """Iterate until the sum of the residual's squares is at most `limit`.

        Returns the number of iterations, and whether the sum is as small.
        """
        totals = np.empty(4)
        for count in range(1, most + 1):
            self.cycle()
            self.add_up("products", 0)
            self.start("direction", 0)
            self.add_up("apply", 1)
            self.add_up("advance", 2)
            device.driver().memcpy_dtoh(totals, int(self.task["totals"]))
            if not totals[2] > limit:  # also true if it is NaN, for charges that are too large
                return count, bool(totals[2] <= limit)
        return most, False

    def diagonals(self) -> None:
        """Compute the diagonals of all levels except the finest."""
        for level in range(1, len(self.sizes)):
            self.start("diagonals", level)

    def cycle(self) -> None:
        """Apply one multigrid cycle to the residual."""
        for level in range(self.small):
            self.start("start", level)
            self.smooth(level, 2 * SMOOTHINGS - 1)
            self.start("residual", level)
            self.start("restricted", level, size=self.sizes[level + 1])
        self.start("coarse", self.small, size=1, threads=1024)
        for level in reversed(range(self.small)):
            self.start("prolong", level)
            self.smooth(level, 2 * SMOOTHINGS)

    def smooth(self, level: int, steps: int) -> None:
        """Solve for the nodes of one colour after the other."""
        for step in range(1, steps + 1):
            self.start("smooth", level, step % 2, self.sizes[level] // 2 + 1)

    def add_up(self, name: str, place: int) -> None:
        """Start a kernel that sums over the nodes of the finest level, and add up its partial sums."""
        self.start(name, 0, size=PARTS * THREADS)
        self.start("total", place, size=1)

    def start(self, name: str, level: int, colour: int = 0, size: int | None = None, threads: int = THREADS) -> None:
        """Start a kernel for the nodes of a level, or `size` of them."""
        self.task["level"], self.task["colour"] = level, colour
        kernel = self._kernels.get(name)
        if kernel is None:  # hundreds of launches take a few milliseconds, most of it Python's
            kernel = self._kernels[name] = self.gpu.kernel("multigrid.cu", name, {"REAL": "float"}, "", TASK.itemsize)
        kernel.prepared_call((-(-(size or self.sizes[level]) // threads), 1, 1), (threads, 1, 1), self.task.tobytes())
