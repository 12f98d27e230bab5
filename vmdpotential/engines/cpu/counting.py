"""Counting atoms at the nodes of a lattice on the CPU, with the kernels of densities/counting.cu."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.counting import Counter, Counting, Floats, Integers
from vmdpotential.kernels.launch import KernelFile, call

KERNELS = KernelFile(Path(__file__).parents[2] / "densities" / "counting.cu")

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
        self._kernel = KERNELS[f"count_{counting.spreading}"]
        self._frame = 0
        bins, starts, near = near_images(counting)
        #: Greatest number of contributions of a frame.
        self._most = len(counting.weights) * int(np.diff(starts).max())
        periodic, side = len(counting.images) > 0, 2 * int(counting.reach.max()) + 1
        fixed = {"weights": counting.weights, "widths": counting.widths, "images": counting.images,
                 "columns": (counting.images if periodic else np.zeros((1, 3))).T + 0.5, "starts": starts, "near": near}
        self._fixed: dict[str, Any] = {name: np.ascontiguousarray(array) for name, array in fixed.items()}
        self._fixed |= {"along": np.empty((3, side)), "origin": counting.origin, "spacing": counting.spacing,
                        "cell": counting.cell if periodic else 0.0, "inverse": counting.inverse if periodic else 0.0,
                        "bins": bins, "reach": counting.reach, "shape": counting.shape, "side": side,
                        "image_count": len(counting.images)}
        self._work: Floats | None = None
        self._reached: NDArray[np.uint64] | None = None

    def _add(self, positions: NDArray[np.floating], change: Floats, rows: Integers, keys: Integers | None,
             of: Floats | None) -> int:
        self._frame += 1
        listed, single = np.zeros(1, np.int64), positions.dtype == np.float32
        at = np.ascontiguousarray(positions, np.float32 if single else np.float64)
        call(self._kernel, 0, len(rows), single_positions=at if single else None, positions=None if single else at,
             rows=np.ascontiguousarray(rows), change=np.ascontiguousarray(change) if len(change) else None, keys=keys,
             of=of, work=self._work, reached=self._reached, listed=listed, atoms=len(rows), frame=self._frame,
             **self._fixed)
        return int(listed[0])


class ListedCounter(_CpuCounter):
    """Sums of atoms that contribute to the nearest node; see :class:`vmdpotential.engines.counting.Counter`."""

    def __init__(self, counting: Counting) -> None:
        super().__init__(counting)
        self._bits = int(np.prod(counting.shape)).bit_length()
        weights = counting.weights
        self._weight = float(weights[0]) if len(weights) else 0.0
        size = max(LISTED, self._most + 1)
        self._keys = np.empty((2, size), np.int64)
        self._of = [None, None] if (weights == self._weight).all() else [*np.empty((2, size))]
        self._count = 0
        self._done = _arrays(0)

    def add(self, positions: NDArray[np.floating], change: Floats, rows: Integers) -> None:
        """Add a frame."""
        if self._count + self._most >= self._keys.shape[1]:
            self._sum()
        of = self._of[0]
        self._count += self._add(positions, change, rows, self._keys[0, self._count :],
                                 None if of is None else of[self._count :])

    def take(self) -> tuple[Integers, Floats, Floats]:
        """Return nodes, sums and sums of squares, and reset them."""
        self._sum()
        done, self._done, self._frame = self._done, _arrays(0), 0
        return done

    def _sum(self) -> None:
        """Add the listed atoms to the sums, and clear the list."""
        arrays, found = _arrays(self._count), np.zeros(1, np.int64)
        call(KERNELS["sum_listed"], 0, self._count, keys=self._keys[0], more_keys=self._keys[1], of=self._of[0],
             more_of=self._of[1], weight=self._weight, nodes=arrays[0], sums=arrays[1], squares=arrays[2], found=found,
             bits=self._bits)
        count = int(found[0])
        if len(self._done[0]):
            before, more, arrays = self._done, arrays, _arrays(len(self._done[0]) + count)
            call(KERNELS["unite_lists"], 0, len(before[0]), nodes=before[0], sums=before[1], squares=before[2],
                 more_nodes=more[0], more_sums=more[1], more_squares=more[2], more_count=count, all_nodes=arrays[0],
                 all_sums=arrays[1], all_squares=arrays[2], found=found)
            count = int(found[0])
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
        self._words = -(-size // 64)
        self._reached, self._nodes = np.zeros(self._words, np.uint64), np.empty(size, np.int64)

    def add(self, positions: NDArray[np.floating], change: Floats, rows: Integers) -> None:
        """Add a frame."""
        self._add(positions, change, rows, None, None)

    def take(self) -> tuple[Integers, Floats, Floats]:
        """Return nodes, sums and sums of squares, and reset them."""
        found, reached = np.zeros(1, np.int64), {"work": self._work, "reached": self._reached}
        call(KERNELS["list_reached"], 0, self._words, nodes=self._nodes, sums=None, squares=None, found=found,
             **reached)
        nodes = self._nodes[: found[0]].copy()
        sums, squares = np.empty((2, len(nodes)))
        call(KERNELS["take_sums"], 0, len(nodes), nodes=nodes, sums=sums, squares=squares, found=found, **reached)
        self._frame = 0
        return nodes, sums, squares
