"""Atoms sorted into equal cubic cells, so that those near a point or a tile of points are found quickly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.arrays import Floats
from vmdpotential.grid.lattice import coordinate_bounds

#: Largest number of cells per atom: with a short cutoff cells are enlarged, as nearly all of them would be empty.
MAX_CELLS_PER_ATOM = 16


@dataclass(frozen=True)
class Cells:
    """Atoms in the order of their cells.

    Parameters
    ----------
    order : (N,) int64
        Indices of the atoms, cell by cell.
    start : (cells + 1,) int64
        First position of each cell in `order`. The index along z varies fastest, so that the atoms of cells in a row
        along z are contiguous.
    shape : (3,) int64
        Number of cells along x, y and z.
    side : float, A
        Side of a cell.
    low : (3,) float64, A
        Lower corner of the first cell.
    """

    order: NDArray[np.int64]
    start: NDArray[np.int64]
    shape: NDArray[np.int64]
    side: float
    low: Floats


def single_cell(count: int, side: float = np.inf) -> Cells:
    """Return all atoms in one cell, in their order."""
    return Cells(np.arange(count), np.array([0, count]), np.ones(3, np.int64), side, np.zeros(3))


def sort(positions: Floats, cutoff: float, parts: int) -> Cells:
    """Return atoms (N, 3), at least one, sorted into cells with a side of cutoff / parts, or larger if most are empty.

    Raises
    ------
    MemoryPlanError
        If the cells do not fit into memory.
    """
    low, high = coordinate_bounds(positions)
    side = cutoff / parts
    while np.prod(np.floor((high - low) / side) + 1) > max(2**20, MAX_CELLS_PER_ATOM * len(positions)):
        side *= 2
    # the same operations as for positions, so that no atom is rounded to a cell beyond the last one
    shape = ((high - low) * (1 / side)).astype(np.int64) + 1
    count = int(np.prod(shape, dtype=object))
    # kernels have been loaded: no memory is reserved for them
    memory.require(24 * count, f"a cutoff of {cutoff:g} A in so large a map", "use a longer {cutoff}", 0)
    cell = ((positions - low) * (1 / side)).astype(np.int64)
    key = (cell[:, 0] * shape[1] + cell[:, 1]) * shape[2] + cell[:, 2]
    sequence = order(key, count)
    start = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(key, minlength=count), out=start[1:])
    return Cells(sequence, start, shape, side, low)


def order(key: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the order that sorts non-negative integers below `count`.

    The sort is stable, so that the atoms of a molecule stay together and running sums of charges stay small. It sorts
    by 16 bits at a time, because numpy has a radix sort for 16-bit integers, five times as fast as its sort of longer
    ones.
    """
    result = np.argsort(key.astype(np.uint16), kind="stable")
    for shift in range(16, count.bit_length(), 16):
        result = result[np.argsort((key[result] >> shift).astype(np.uint16), kind="stable")]
    return result
