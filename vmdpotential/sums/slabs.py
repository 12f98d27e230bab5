"""Maps that do not fit into memory, computed in slabs along z, the slowest axis of their files.

The plan is made for the whole lattice, so that the mesh of a smooth part, which depends on all charges, is solved once
for all slabs. Values equal those of a map that is computed at once, except for rounding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, progress
from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.sums import Plan, Request, interpolated_bytes
from vmdpotential.sums.result import Maps, Result

#: The number of planes in a slab is a multiple of this, as are the tiles of every engine and the blocks of files.
LAYER = 16

#: Greatest number of points in a slab; larger ones are not faster.
MOST = 2**25


class Sink(Protocol):
    """A receiver of a map in slabs."""

    def begin(self, lattice: Lattice) -> None:
        """Prepare for a map; called again if that map is not accurate enough, and a better one follows."""

    def put(self, start: int, maps: Maps) -> None:
        """Receive the potential, or potential and field, (1 or 4, nx, ny, n), of the planes from `start` on along z."""


def by_slabs(request: Request) -> Request:
    """Return a request for slabs if the whole map does not fit into memory, else the same request.

    Half of the memory is for slabs, and the rest for other arrays, such as a mesh.
    """
    # for interpolation, and for copies in the order of the file and in its blocks
    needed = interpolated_bytes(request) + 16 * request.points_in_memory * (4 if request.field else 1)
    planes = planes_at_once(request, needed)
    return replace(request, planes=planes) if planes else request


def planes_at_once(request: Request, needed: int) -> int:
    """Return the number of planes in a slab of a map that needs `needed` bytes; 0 if it is computed at once."""
    room, (nx, ny, nz) = memory.limit() // 2, request.lattice.shape
    if not request.planes and (needed <= room or nz <= LAYER):
        return 0
    planes = min(room * nz // needed, MOST // (nx * ny)) // LAYER * LAYER
    return min(max(planes, LAYER), nz)


class SlabResult(Result):
    """The part of a map that is kept when it went to a sink: values at some points, mean squares and extremes.

    Parameters
    ----------
    lattice : Lattice
    indices : (M, 3) int64
        Indices of the points.
    maps : int
        1, or 4 with the field.
    """

    def __init__(self, lattice: Lattice, indices: NDArray[np.int64], maps: int) -> None:
        self.lattice, self.indices = lattice, indices
        self._values = np.zeros((maps, len(indices)))
        self._squares = np.zeros(1 if maps == 1 else 2)
        self._low, self._high = np.inf, -np.inf

    def add(self, start: int, slab: Maps, result: Result) -> None:
        """Keep the values of a slab at the points, its mean squares and its extremes."""
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
        """Return the values at some of the points."""
        rows = [np.flatnonzero((self.indices == place).all(1))[0] for place in indices]
        return self._values[:, rows]

    def values(self) -> Maps:
        """Raise an error, as the map went to the sink.

        Raises
        ------
        InputError
        """
        raise InputError("the map is in the file that its slabs were written to")

    def field(self) -> Maps | None:
        """Raise an error, as the field went to the sink.

        Raises
        ------
        InputError
        """
        return self.values()

    def mean_squares(self) -> Floats:
        """Return the means of the squares of the potential and of the field."""
        return self._squares


def run(plan: Plan, request: Request, positions: Floats, charges: Floats, indices: NDArray[np.int64],
        sink: Sink) -> SlabResult:
    """Compute a map in slabs.

    Parameters
    ----------
    plan : Plan
    request : Request
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    indices : (M, 3) int64
        Points of the lattice whose values are kept.
    sink : Sink
        Receives the slabs.
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
            del result, field, slab  # before the next slab is computed
    return noted
