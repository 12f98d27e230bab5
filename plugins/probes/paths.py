"""Minima of a free energy, and the lowest barriers between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vmdpotential.arrays import Floats, Integers
from vmdpotential.grid.lattice import Grid


@dataclass(frozen=True, eq=False)
class Minimum:
    """Minimum of a free energy, and the path with the lowest barrier from it to a deeper minimum.

    Parameters
    ----------
    position : (3,) float64, A
    energy : float
        Free energy at the minimum.
    barrier : float or None
        Highest free energy on the path; None for the deepest minimum, and if no path stays below the limit.
    saddle : (3,) float64, A, or None
        Position of the barrier.
    lower : int or None
        Index of the deeper minimum.
    """

    position: Floats
    energy: float
    barrier: float | None
    saddle: Floats | None
    lower: int | None


def minima_and_barriers(grid: Grid, *, below: float, least: float, wraps: bool, most: int = 100) -> list[Minimum]:
    """Return the minima of a free energy, the lowest first, with the barriers between them.

    Nodes are flooded from the lowest up, in steps to the six neighbours of a node. Where two basins meet, the one
    with the higher minimum is merged into the other, and its barrier is the free energy of the node.

    Parameters
    ----------
    grid : Grid
    below : float
        Free energy that all nodes of a path are below.
    least : float
        Smallest height of the barrier above a minimum; shallower minima are left out.
    wraps : bool
        Whether the nodes are one period along each axis.
    most : int
        Largest number of minima.
    """
    values = grid.values.astype(np.float64).ravel()
    shape = np.array(grid.lattice.shape)
    order = np.argsort(values, kind="stable")
    order = order[values[order] < below]
    owner = np.full(values.size, -1, np.int64)  # basin of each flooded node
    basins: list[int] = []  # lowest node of each basin
    parent: list[int] = []  # basin into which each was merged, or itself
    merges: dict[int, tuple[int, int]] = {}  # for each merged basin, the saddle's node and the other basin

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
            merges[basin] = (node, met[0])
    kept = [n for n in range(len(basins))
            if n not in merges or values[merges[n][0]] - values[basins[n]] >= least][:most]
    number = {basin: index for index, basin in enumerate(kept)}
    results = []
    for basin in kept:
        node, other = merges.get(basin, (-1, -1))
        while other >= 0 and other not in number:  # pass through shallow basins, which are left out
            next_node, next_other = merges.get(other, (-1, -1))
            node, other = (next_node if next_node >= 0 and values[next_node] > values[node] else node), next_other
        barrier = float(values[node]) if other >= 0 else None
        results.append(Minimum(_node_position(grid, basins[basin]), float(values[basins[basin]]), barrier,
                               None if barrier is None else _node_position(grid, node), number.get(other)))
    return results


def _node_position(grid: Grid, node: int) -> Floats:
    return np.asarray(grid.lattice.points([np.unravel_index(node, grid.lattice.shape)])[0], np.float64)


def _neighbours(nodes: Integers, shape: Integers, wraps: bool) -> Integers:
    """Return the six neighbours (n, 6) of nodes, -1 beyond the edge of a lattice that does not wrap."""
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
