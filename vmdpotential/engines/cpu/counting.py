"""Counting atoms at the nodes of a lattice on the CPU."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build
from vmdpotential.engines.counting import Counter, Counting, Floats, Integers

#: Number of float64 in a cache line.
LINE = 8
#: Number of atoms that are listed before they are summed.
LISTED = 1 << 22
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


def cpu_counter(counting: Counting) -> Counter:
    """Return the counter for a kind of spreading."""
    return ListedCounter(counting) if counting.spreading == "nearest" else SpreadCounter(counting)


class _CpuCounter:
    """Common part of the counters: the kernels and their arguments."""

    def __init__(self, counting: Counting) -> None:
        self._kernel = build.load("density_kernel", spreading=counting.spreading)
        self._frame = 0
        bins, starts, near = near_images(counting)
        #: Greatest number of contributions of a frame.
        self._most = len(counting.weights) * int(np.diff(starts).max())
        arrays = (counting.weights, counting.widths, counting.origin, counting.spacing, counting.cell, counting.inverse,
                  counting.images, starts, near, bins, counting.reach, counting.shape)
        self._fixed = [np.array(array, order="C") for array in arrays]  # Numba compiles again for read-only arrays
        self._work, self._reached = np.zeros((0, 4)), np.zeros(0, np.uint64)

    def _add(self, positions: NDArray[np.floating], change: Floats, rows: Integers, keys: Integers, of: Floats) -> int:
        self._frame += 1
        listed: int = self._kernel.add_frame(np.ascontiguousarray(positions), rows, *self._fixed[:2], change,
                                             *self._fixed[2:], keys, of, self._work, self._reached, self._frame)
        return listed


class ListedCounter(_CpuCounter):
    """Sums of atoms that contribute to the nearest node; see :class:`vmdpotential.engines.counting.Counter`."""

    def __init__(self, counting: Counting) -> None:
        super().__init__(counting)
        self._bits = int(np.prod(counting.shape)).bit_length()
        weights = counting.weights
        self._weight = float(weights[0]) if len(weights) else 0.0
        size = max(LISTED, self._most + 1)
        own = 0 if (weights == self._weight).all() else size
        self._keys, self._of = np.empty((2, size), np.int64), np.empty((2, own))
        self._count = 0
        self._done = _arrays(0)

    def add(self, positions: NDArray[np.floating], change: Floats, rows: Integers) -> None:
        """Add a frame."""
        if self._count + self._most >= self._keys.shape[1]:
            self._sum()
        self._count += self._add(positions, change, rows, self._keys[0, self._count :], self._of[0, self._count :])

    def take(self) -> tuple[Integers, Floats, Floats]:
        """Return nodes, sums and sums of squares, and reset them."""
        self._sum()
        done, self._done, self._frame = self._done, _arrays(0), 0
        return done

    def _sum(self) -> None:
        """Add the listed atoms to the sums, and clear the list."""
        keys, of = self._keys[:, : self._count], self._of[:, : self._count]
        place = int(self._kernel.sort(keys[0], of[0], keys[1], of[1], self._bits))
        arrays = _arrays(self._count)
        count = self._kernel.sum_sorted(keys[place], of[place], self._weight, *arrays)
        if len(self._done[0]):
            parts = [array[:count] for array in arrays]
            arrays = _arrays(len(self._done[0]) + count)
            count = self._kernel.unite(*self._done, *parts, *arrays)
        nodes, sums, squares = arrays
        self._done, self._count = (nodes[:count], sums[:count], squares[:count]), 0


def _arrays(count: int) -> tuple[Integers, Floats, Floats]:
    """Return arrays for nodes, sums and sums of squares; one allocation, as the system's memory pages take time."""
    nodes, sums, squares = np.empty((3, count))
    return nodes.view(np.int64), sums, squares


class SpreadCounter(_CpuCounter):
    """Sums of atoms that contribute to many nodes; see :class:`vmdpotential.engines.counting.Counter`."""

    def __init__(self, counting: Counting) -> None:
        super().__init__(counting)
        size = int(np.prod(counting.shape))
        # aligned, so that the four numbers of a node are in one cache line
        memory = np.zeros(4 * size + LINE)
        first = -memory.ctypes.data // 8 % LINE
        self._work = memory[first : first + 4 * size].reshape(size, 4)
        self._reached, self._nodes = np.zeros(-(-size // 64), np.uint64), np.empty(size, np.int64)

    def add(self, positions: NDArray[np.floating], change: Floats, rows: Integers) -> None:
        """Add a frame."""
        self._add(positions, change, rows, np.zeros(0, np.int64), np.zeros(0))

    def take(self) -> tuple[Integers, Floats, Floats]:
        """Return nodes, sums and sums of squares, and reset them."""
        nodes = self._nodes[: self._kernel.list_reached(self._reached, self._nodes)].copy()
        sums, squares = np.empty((2, len(nodes)))
        self._kernel.take(self._work, self._reached, nodes, sums, squares)
        self._frame = 0
        return nodes, sums, squares
