"""Atoms counted at the nodes of a lattice by Numba."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build
from vmdpotential.engines.counting import Counting, Floats, Integers

#: Numbers in a line of the cache.
LINE = 8
#: Parts of a cell along each axis for which the images that may reach the lattice are known.
PARTS = 16


def near_images(counting: Counting) -> tuple[Integers, Integers, Integers]:
    """Return how many parts a cell has along each axis, and the images that may reach the lattice from each part.

    Returns
    -------
    bins : (3,) int64
    starts : (parts + 1,) int64
        Where those of each part begin.
    near : (M,) int64
        Rows of the images.
    """
    if not len(counting.images):
        return np.ones(3, np.int64), np.array([0, 1]), np.zeros(1, np.int64)
    sides = np.stack(np.meshgrid(*[np.arange(PARTS) / PARTS] * 3, indexing="ij"), -1).reshape(-1, 3)
    low = sides @ counting.cell - 0.5
    low, high = (low + limit(0, counting.cell / PARTS).sum(0) for limit in (np.minimum, np.maximum))
    margin = counting.reach + 1e-6
    reached = ((low[:, None] + counting.images < counting.shape - 0.5 + margin)
               & (high[:, None] + counting.images > -0.5 - margin)).all(-1)
    return np.full(3, PARTS), np.concatenate([[0], np.cumsum(reached.sum(1))]), np.nonzero(reached)[1]


class CpuCounter:
    """See :class:`vmdpotential.engines.counting.Counter`."""

    def __init__(self, counting: Counting) -> None:
        self._kernel = build.load("density_kernel", spreading=counting.spreading)
        size = int(np.prod(counting.shape))
        # of which none lies in two lines of the cache
        room = np.zeros(4 * size + LINE)
        first = -room.ctypes.data // 8 % LINE
        self._work = room[first : first + 4 * size].reshape(size, 4)
        self._reached, self._nodes = np.zeros(-(-size // 64), np.uint64), np.empty(size, np.int64)
        self._frame = 0
        bins, starts, near = near_images(counting)
        most = len(counting.weights) * int(np.diff(starts).max()) + 1 if counting.spreading == "nearest" else 0
        self._room = np.empty(most, np.int64), np.empty(most)
        arrays = (counting.weights, counting.widths, counting.origin, counting.spacing, counting.cell, counting.inverse,
                  counting.images, starts, near, bins, counting.reach, counting.shape)
        self._fixed = [np.array(array, order="C") for array in arrays]  # all may be written, which makes them one type

    def add(self, positions: NDArray[np.floating], change: Floats) -> None:
        """Add a frame."""
        self._frame += 1
        self._kernel.add_frame(np.ascontiguousarray(positions), *self._fixed[:2], change, *self._fixed[2:], *self._room,
                               self._work, self._reached, self._frame)

    def take(self) -> tuple[Integers, Floats, Floats]:
        """Return nodes, sums and squares, and begin again."""
        nodes = self._nodes[: self._kernel.listed(self._reached, self._nodes)].copy()
        sums, squares = np.empty((2, len(nodes)))
        self._kernel.take(self._work, self._reached, nodes, sums, squares)
        self._frame = 0
        return nodes, sums, squares
