"""Counting atoms at the nodes of a lattice on the CPU."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build
from vmdpotential.engines.counting import Counting, Floats, Integers

#: Number of float64 in a cache line.
LINE = 8
#: Number of parts of a cell along each axis; each part has a list of the images that may reach the lattice.
PARTS = 16


def near_images(counting: Counting) -> tuple[Integers, Integers, Integers]:
    """Return the images by which atoms in each part of the cell may reach the lattice.

    Returns
    -------
    bins : (3,) int64
        Number of parts of the cell along each axis.
    starts : (parts + 1,) int64
        First index of each part in `near`.
    near : (M,) int64
        Rows of :attr:`Counting.images`, part by part.
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
        # aligned, so that the four numbers of a node are in one cache line
        memory = np.zeros(4 * size + LINE)
        first = -memory.ctypes.data // 8 % LINE
        self._work = memory[first : first + 4 * size].reshape(size, 4)
        self._reached, self._nodes = np.zeros(-(-size // 64), np.uint64), np.empty(size, np.int64)
        self._frame = 0
        bins, starts, near = near_images(counting)
        most = len(counting.weights) * int(np.diff(starts).max()) + 1 if counting.spreading == "nearest" else 0
        self._buffers = np.empty(most, np.int64), np.empty(most)
        arrays = (counting.weights, counting.widths, counting.origin, counting.spacing, counting.cell, counting.inverse,
                  counting.images, starts, near, bins, counting.reach, counting.shape)
        # copies, because Numba compiles again for arrays that are read-only
        self._fixed = [np.array(array, order="C") for array in arrays]

    def add(self, positions: NDArray[np.floating], change: Floats) -> None:
        """Add a frame."""
        self._frame += 1
        self._kernel.add_frame(np.ascontiguousarray(positions), *self._fixed[:2], change, *self._fixed[2:],
                               *self._buffers, self._work, self._reached, self._frame)

    def take(self) -> tuple[Integers, Floats, Floats]:
        """Return nodes, sums and sums of squares, and reset them."""
        nodes = self._nodes[: self._kernel.listed(self._reached, self._nodes)].copy()
        sums, squares = np.empty((2, len(nodes)))
        self._kernel.take(self._work, self._reached, nodes, sums, squares)
        self._frame = 0
        return nodes, sums, squares
