"""Atoms sorted into equal cubic cells, so that those near a point, or a tile of points, are found at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.grid.lattice import bounds

Floats = NDArray[np.float64]

#: Where a short cutoff would make more cells than this, nearly all of them empty, cells are larger.
MOST_PER_ATOM = 16


@dataclass(frozen=True)
class Cells:
    """Where atoms went.

    Parameters
    ----------
    order : (N,) int64
        The atoms, cell by cell.
    start : (cells + 1,) int64
        Where a cell begins in it, z fastest: cells in a row along z are one run of atoms.
    shape : (3,) int64
        Cells along x, y and z.
    side : float, A
    low : (3,) float64, A
        Corner of the first one.
    """

    order: NDArray[np.int64]
    start: NDArray[np.int64]
    shape: NDArray[np.int64]
    side: float
    low: Floats


def sort(positions: Floats, cutoff: float, parts: int) -> Cells:
    """Return atoms (N, 3), at least one, sorted into cells: `parts` in a cutoff, fewer where most would be empty.

    Raises
    ------
    MemoryPlanError
        When the cells do not fit.
    """
    low, high = bounds(positions)
    side = cutoff / parts
    while np.prod(np.floor((high - low) / side) + 1) > max(2**20, MOST_PER_ATOM * len(positions)):
        side *= 2
    place = (positions - low) * (1 / side)
    shape = ((high - low) * (1 / side)).astype(np.int64) + 1  # as of the farthest atom
    count = int(np.prod(shape, dtype=object))
    # kernels are loaded by now: nothing is kept for them
    memory.require(24 * count, f"a cutoff of {cutoff:g} A in so large a map", "use a longer {cutoff}", 0)
    which = place.astype(np.int64)
    key = (which[:, 0] * shape[1] + which[:, 1]) * shape[2] + which[:, 2]
    sequence = order(key, count)
    start = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(key, minlength=count), out=start[1:])
    return Cells(sequence, start, shape, side, low)


def order(key: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the order that sorts whole numbers below `count`.

    It is stable: the atoms of a molecule stay together, so that running sums of charges stay small. 16 bits at a time,
    because numpy sorts so short numbers by counting, five times as fast as longer ones.
    """
    result = np.argsort(key.astype(np.uint16), kind="stable")
    for shift in range(16, count.bit_length(), 16):
        result = result[np.argsort((key[result] >> shift).astype(np.uint16), kind="stable")]
    return result
