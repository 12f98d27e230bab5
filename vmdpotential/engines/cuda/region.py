"""Distances of the nodes of a lattice to a molecular surface on a GPU; the kernels are in region.cu."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda import copies, device
from vmdpotential.engines.cuda.build import address, struct
from vmdpotential.engines.spheres import Spheres
from vmdpotential.grid.lattice import Lattice

Values = NDArray[np.float32]

#: Threads of a block that has a sphere or an arc, and of one that has nodes, as in region.cu.
WARP, THREADS = 32, 256

#: Bytes per sphere, rounded up, and number of arcs per sphere for which there is room at first, in proteins.
BYTES, ARCS = 700, 4

#: An arc of the circle where two spheres intersect: its ends, as angles, and the spheres.
ARC = struct("RegionArc", [("begin", np.float64), ("end", np.float64), ("spheres", np.int32, 2)], "region.cu")

#: Struct RegionTask of region.cu.
TASK = struct("RegionTask", [
    ("spheres", address("const double")),  # (spheres, 4): centre, radius
    ("starts", address("const long long")),  # of the cubes
    ("first", address("const long long")),  # (spheres + 1), first neighbour of each sphere
    ("numbers", address("int")),  # (spheres), of neighbours
    ("others", address("int")),  # the neighbours of all spheres, or null if they are only counted
    ("arcs", address("RegionArc")),
    ("counters", address("unsigned")),  # of arcs, and of circles with too many parts
    ("keys", address("unsigned long long")), ("values", address("float")),  # (nodes)
    ("origin", np.float64, 3), ("spacing", np.float64, 3),
    ("low", np.float64, 3), ("side", np.float64),  # of the cubes
    ("probe", np.float64), ("reach", np.float64),
    ("slope", np.float64), ("offset", np.float64),  # of the shares of ions as a function of the depth
    ("nodes", np.uint64), ("room", np.uint64),  # room for arcs
    ("shape", np.int32, 3), ("cubes", np.int32, 3),
], "region.cu")

#: What a GPU has of each surface, for as long as it exists.
_held: WeakKeyDictionary[Spheres, Held] = WeakKeyDictionary()
_holding = threading.Lock()


class Held:
    """The spheres of a surface, their neighbours and the arcs on which probes roll, on a GPU.

    Parameters
    ----------
    spheres : Spheres
        At least one.

    Attributes
    ----------
    complete : bool
        False if some circle has more parts than the kernel has room for.
    arcs : int
        Number of arcs.
    """

    def __init__(self, spheres: Spheres) -> None:
        cubes, self.count = spheres.cubes, len(spheres.centres)
        packed = np.column_stack([spheres.centres, spheres.radii])
        self.complete, self.arcs = True, 0
        self.task = task = np.zeros((), TASK)
        task["low"], task["side"], task["cubes"], task["probe"] = cubes.low, cubes.side, cubes.counts, spheres.probe
        with device.with_room(packed.nbytes + cubes.starts.nbytes + BYTES * self.count) as gpu:
            self.gpu = gpu
            self._blocks: dict[str, Any] = {}
            self._take("spheres", packed.nbytes)
            copies.put((int(task["spheres"]), packed))
            if spheres.probe > 0:
                self._find(cubes.starts)

    def _take(self, name: str, size: int) -> None:
        self._release(name)
        self._blocks[name] = self.gpu.take(max(size, 16))
        self.task[name] = self._blocks[name].address

    def _release(self, *names: str) -> None:
        for name in names:
            self._blocks.pop(name, None)

    def _find(self, starts: NDArray[np.int64]) -> None:
        """Find the neighbours of all spheres, and the arcs."""
        task, drv = self.task, device.driver()
        numbers, first = np.empty(self.count, np.int32), np.zeros(self.count + 1, np.int64)
        for name, size in (("starts", starts.nbytes), ("numbers", numbers.nbytes), ("first", first.nbytes),
                           ("counters", 8)):
            self._take(name, size)
        copies.put((int(task["starts"]), starts))
        self.start("neighbours", self.count)
        copies.get(numbers, int(task["numbers"]))
        np.cumsum(numbers, out=first[1:])
        copies.put((int(task["first"]), first))
        self._take("others", 4 * int(first[-1]))
        self.start("neighbours", self.count)
        task["room"] = ARCS * self.count
        counters = np.zeros(2, np.uint32)
        while True:
            self._take("arcs", ARC.itemsize * int(task["room"]))
            drv.memcpy_htod(int(task["counters"]), np.zeros(2, np.uint32))
            self.start("arcs", self.count)
            drv.memcpy_dtoh(counters, int(task["counters"]))
            if counters[0] <= task["room"]:
                break
            task["room"] = counters[0]
        self.arcs, self.complete = int(counters[0]), not counters[1]
        self._release("starts", "numbers", "counters")  # no lattice needs them
        if not self.complete:
            self._blocks.clear()

    def start(self, name: str, blocks: int, threads: int = WARP) -> None:
        """Start a kernel."""
        if blocks:
            kernel = self.gpu.kernel("region.cu", name, {"REAL": "double"}, "", TASK.itemsize)
            kernel.prepared_call((blocks, 1, 1), (threads, 1, 1), self.task.tobytes())

    def signed(self, lattice: Lattice, reach: float, ion: float | None) -> tuple[Values, Values | None]:
        """Return distances and shares, see :func:`signed`."""
        task, probe, side = self.task, float(self.task["probe"]), float(lattice.spacing.mean())
        distances, shares = np.empty(lattice.shape, np.float32), None
        blocks = -(-lattice.size // THREADS)
        with device.with_room(12 * lattice.size, self.gpu) as gpu:
            try:
                self._take("keys", 8 * lattice.size)
                self._take("values", 4 * lattice.size)
                task["origin"], task["spacing"], task["shape"] = lattice.origin, lattice.spacing, lattice.shape
                task["nodes"], task["reach"] = lattice.size, reach if ion is None else max(reach, ion - probe + reach)
                self.start("begin", blocks, THREADS)
                self.start("stamp", self.count)
                if ion is not None:
                    shares = np.empty(lattice.shape, np.float32)
                    task["slope"], task["offset"] = -1 / side, 0.5 - (ion - probe) / side
                    self.start("shares", blocks, THREADS)
                    copies.get(shares, int(task["values"]))
                task["reach"] = reach
                self.start("project", blocks, THREADS)
                self.start("roll", self.arcs)
                copies.get(distances, int(task["values"]))
            finally:
                self._release("keys", "values")
                gpu.trim()
        return distances, shares


def signed(spheres: Spheres, lattice: Lattice, reach: float, ion: float | None) -> tuple[Values, Values | None]:
    """Return distances to the surface and shares for ions, see :meth:`vmdpotential.engines.Engine.surface`."""
    if not len(spheres.centres):
        return spheres.signed(lattice, reach, ion)
    with _holding:  # of several threads, one makes it
        held = _held.get(spheres)
        if held is None:
            held = _held[spheres] = Held(spheres)
    return held.signed(lattice, reach, ion) if held.complete else spheres.signed(lattice, reach, ion)
