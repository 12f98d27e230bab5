"""Maps that do not fit into memory: computed slab by slab along z, the slowest axis of the files that hold them.

A plan is made for the whole lattice, so that what depends on all charges (the mesh of a smooth part) is solved once
and every slab only takes its part of it. Values equal those of the map made at once to rounding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, progress
from vmdpotential.engines import Floats
from vmdpotential.engines.result import HostSums, Maps, Result, StatedNothing
from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.methods import Planned, Request, interpolated_bytes

#: Planes of a slab are a multiple of this: of a tile of every engine, and a file's blocks.
LAYER = 16

#: Points of a slab at most: larger ones are not faster.
MOST = 2**25


class Sink(Protocol):
    """What takes a map slab by slab."""

    def begin(self, lattice: Lattice) -> None:
        """Learn of the map to come; again where one that was not good enough is followed by a better one."""

    def put(self, start: int, maps: Maps) -> None:
        """Take the potential, or with it the field, (1 or 4, nx, ny, n), of the planes from `start` on along z."""


def by_slabs(request: Request) -> Request:
    """Return a request for slabs, where the whole does not fit into memory; else itself.

    Half of the memory is for slabs, the rest for what a plan needs next to them, such as a mesh.
    """
    # to be interpolated, and to be brought into a file's order and its blocks
    needed = interpolated_bytes(request) + 16 * request.points_held * (4 if request.field else 1)
    planes = planes_at_once(request, needed)
    return replace(request, planes=planes) if planes else request


def planes_at_once(request: Request, needed: int) -> int:
    """Return how many planes a slab has of a map that takes `needed` bytes; 0 where it is made at once."""
    room, (nx, ny, nz) = memory.limit() // 2, request.lattice.shape
    if not request.planes and (needed <= room or nz <= LAYER):
        return 0
    planes = min(room * nz // needed, MOST // (nx * ny)) // LAYER * LAYER
    return min(max(planes, LAYER), nz)


class SlabResult(StatedNothing):
    """What is known of a map that went to a sink: its values at some points, mean squares and extremes.

    Parameters
    ----------
    lattice : Lattice
    indices : (M, 3) int64
        Of the points.
    maps : int
        One, or four with the field.
    """

    device_seconds: float | None = None

    def __init__(self, lattice: Lattice, indices: NDArray[np.int64], maps: int) -> None:
        self.lattice, self.indices = lattice, indices
        self._values = np.zeros((maps, len(indices)))
        self._squares = np.zeros(1 if maps == 1 else 2)
        self._low, self._high = np.inf, -np.inf

    def add(self, start: int, slab: Maps, result: Result) -> None:
        """Note what is needed of a slab."""
        stop = start + slab.shape[3]
        here = (self.indices[:, 2] >= start) & (self.indices[:, 2] < stop)
        self._values[:, here] = slab[(slice(None), *(self.indices[here] - [0, 0, start]).T)]
        self._squares += result.mean_squares() * (stop - start) / self.lattice.shape[2]
        self._low, self._high = min(self._low, float(slab[0].min())), max(self._high, float(slab[0].max()))

    @property
    def extremes(self) -> tuple[float, float]:
        """Lowest and highest potential."""
        return self._low, self._high

    def at(self, indices: NDArray[np.int64]) -> Floats:
        """Return the values at points, of those that were noted."""
        rows = [np.flatnonzero((self.indices == place).all(1))[0] for place in indices]
        return self._values[:, rows]

    def values(self) -> Maps:
        """Return the map, which went to the sink.

        Raises
        ------
        InputError
        """
        raise InputError("the map is in the file that its slabs were written to")

    def field(self) -> Maps | None:
        """Return the field, which went to the sink too.

        Raises
        ------
        InputError
        """
        return self.values()

    def new_sums(self) -> HostSums:
        """Return sums of no results yet."""
        return HostSums()

    def mean_squares(self) -> Floats:
        """Return the means of the squares of the potential and of the field."""
        return self._squares


def run(plan: Planned, request: Request, positions: Floats, charges: Floats, indices: NDArray[np.int64],
        sink: Sink) -> SlabResult:
    """Compute a map slab by slab.

    Parameters
    ----------
    plan : Planned
    request : Request
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    indices : (M, 3) int64
        Points of the lattice whose values are noted.
    sink : Sink
        What the slabs go to.
    """
    lattice, planes = request.lattice, request.planes or request.lattice.shape[2]
    starts = range(0, lattice.shape[2], planes)
    parts = [lattice.slab(start, min(start + planes, lattice.shape[2]), 2) for start in starts]
    noted = SlabResult(lattice, indices, 4 if request.field else 1)
    sink.begin(lattice)
    with progress.parts("map in slabs", len(parts)) as part_done:
        results = plan.parts(positions, charges, parts)
        for start in starts:
            result = next(results)
            field = result.field()
            slab = result.values()[None] if field is None else np.concatenate([result.values()[None], field])
            noted.add(start, slab, result)
            sink.put(start, slab)
            part_done()
            del result, field, slab  # while the next one is made
    return noted
