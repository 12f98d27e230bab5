"""Minima of a free energy and the paths between them: the lowest barrier that leads from one to another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Grid

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Minimum:
    """A minimum: its place (3,), A, and its free energy; and the path by which it reaches a lower one.

    The barrier is the highest free energy on the path that has the lowest such, `saddle` (3,) is where, and `lower` is
    the number of the minimum on the other side; None for the lowest, and where no path stays below the limit.
    """

    position: Floats
    energy: float
    barrier: float | None
    saddle: Floats | None
    lower: int | None


def minima_and_barriers(grid: Grid, *, below: float, least: float, wraps: bool, most: int = 100) -> list[Minimum]:
    """Return the minima of a free energy, the lowest first, with the barriers between them.

    Nodes are filled from the lowest on: where two basins meet, the one whose minimum is higher ends, and its barrier is
    the free energy there. Steps lead to the six neighbours of a node.

    Parameters
    ----------
    grid : Grid
    below : float
        Nodes of this free energy or more are no part of a path.
    least : float
        Minima that a lower barrier than this separates from a lower one are no minima of their own.
    wraps : bool
        Whether the nodes are one period along each axis.
    most : int
        Minima at most.
    """
    values = grid.values.astype(np.float64).ravel()
    shape = np.array(grid.lattice.shape)
    order = np.argsort(values, kind="stable")
    order = order[values[order] < below]
    owner = np.full(values.size, -1, np.int64)  # of each node that is filled, the number of its basin
    basins: list[int] = []  # their lowest nodes
    parent: list[int] = []
    ends: dict[int, tuple[int, int]] = {}  # of a basin that ended: the node where, and the other basin

    def root(basin: int) -> int:
        while parent[basin] != basin:
            parent[basin] = parent[parent[basin]]
            basin = parent[basin]
        return basin

    for node, around in zip(order.tolist(), _neighbours(order, shape, wraps).tolist(), strict=True):
        met = sorted({root(int(owner[other])) for other in around if other >= 0 and owner[other] >= 0})
        if not met:
            basins.append(node)
            parent.append(len(parent))
            owner[node] = len(parent) - 1
            continue
        owner[node] = met[0]  # basins are numbered from the lowest on
        for basin in met[1:]:
            parent[basin] = met[0]
            ends[basin] = (node, met[0])
    kept = [n for n in range(len(basins)) if n not in ends or values[ends[n][0]] - values[basins[n]] >= least][:most]
    number = {basin: at for at, basin in enumerate(kept)}
    results = []
    for basin in kept:
        node, other = ends.get(basin, (-1, -1))
        while other >= 0 and other not in number:  # ended in a basin that is not deep enough, on the way to a lower one
            next_node, next_other = ends.get(other, (-1, -1))
            node, other = (next_node if next_node >= 0 and values[next_node] > values[node] else node), next_other
        barrier = float(values[node]) if other >= 0 else None
        results.append(Minimum(_place(grid, basins[basin]), float(values[basins[basin]]), barrier,
                             None if barrier is None else _place(grid, node), number.get(other)))
    return results


def _place(grid: Grid, node: int) -> Floats:
    return np.asarray(grid.lattice.points([np.unravel_index(node, grid.lattice.shape)])[0], np.float64)


def _neighbours(nodes: Integers, shape: Integers, wraps: bool) -> Integers:
    """Return the six neighbours (n, 6) of nodes, -1 where there is none."""
    index = np.stack(np.unravel_index(nodes, tuple(shape)), 1)
    results = []
    for axis in range(3):
        for step in (-1, 1):
            moved = index.copy()
            moved[:, axis] += step
            inside = (moved[:, axis] >= 0) & (moved[:, axis] < shape[axis])
            moved[:, axis] %= shape[axis]
            other = np.ravel_multi_index(tuple(moved.T), tuple(shape))
            results.append(other if wraps else np.where(inside, other, -1))
    return np.stack(results, 1).astype(np.int64)
