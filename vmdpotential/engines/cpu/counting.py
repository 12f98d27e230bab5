"""Atoms counted at the nodes of a lattice by Numba."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build
from vmdpotential.engines.counting import Counting, Floats, Integers


class CpuCounter:
    """See :class:`vmdpotential.engines.counting.Counter`."""

    def __init__(self, counting: Counting) -> None:
        self._kernel = build.load("density_kernel", spreading=counting.spreading)
        size = int(np.prod(counting.shape))
        self._work = np.zeros((size, 4))
        # lists have one place that is written and not used
        self._frame_nodes, self._nodes = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
        self._counts = np.zeros(1, np.int64)
        arrays = (counting.rows, counting.weights, counting.widths, counting.origin, counting.spacing, counting.cell,
                  counting.inverse, counting.images, counting.reach, counting.shape)
        self._fixed = [np.array(array, order="C") for array in arrays]  # all may be written, which makes them one type

    def add(self, positions: NDArray[np.floating], change: Floats) -> None:
        """Add a frame."""
        self._kernel.add_frame(np.ascontiguousarray(positions), *self._fixed[:3], change, *self._fixed[3:], self._work,
                               self._frame_nodes, self._nodes, self._counts)

    def take(self) -> tuple[Integers, Floats, Floats]:
        """Return nodes, sums and squares, and begin again."""
        nodes = self._nodes[: self._counts[0]].copy()
        sums, squares = np.empty((2, len(nodes)))
        self._kernel.take(self._work, nodes, sums, squares)
        self._counts[0] = 0
        return nodes, sums, squares
