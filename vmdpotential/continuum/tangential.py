"""What flows along the surface of the molecule next to the edges of the lattice.

The cells of the nodes outside form stairs along the surface: cells have parts that are inside, and parts of the outside
belong to cells of inner nodes. What flows across the surface is the same in both; what flows along it has the
permittivity of the side that it is on. An edge between two outer nodes therefore has the flow of the whole column of
outside from the surface to the middle of the next cells, with the part of the gradient that is along the surface: the
edge lacks (outside - inside) times that gradient times the column's height less one cell's. This is a source, which
follows from a first solution, as the correction is of the first order in the spacing (deferred correction: V. Pereyra,
Numer. Math. 10 (1967) 316).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.continuum.molecule import Continuum, Floats
from vmdpotential.grid.lattice import Lattice

Values = NDArray[np.float32]
Integers = NDArray[np.int64]

#: Nodes at the faces of the lattice whose edges are left as they are.
MARGIN = 3

#: Cells that a column has at most.
HIGHEST = 2.5


class Tangential:
    """The edges next to a surface that are one side's, and what flows next to them.

    Parameters
    ----------
    c : Continuum
    lattice : Lattice
    distances : (nx, ny, nz) float32
        Of nodes to the surface, negative inside.
    edges : three (nx, ny, nz) float32
        Conductances.
    """

    def __init__(self, c: Continuum, lattice: Lattice, distances: Values, edges: tuple[Values, Values, Values]) -> None:
        _, ny, nz = lattice.shape
        self._strides, self._h = (ny * nz, nz, 1), lattice.spacing
        self._outside = (distances >= 0).ravel()
        d = distances.ravel()
        weights = np.prod(self._h) / self._h**2 / self._h.mean()
        near = _next_to(distances < 0).ravel()
        first: list[Integers] = []
        last: list[Integers] = []
        axes: list[Integers] = []
        normals: list[Floats] = []
        factors: list[Floats] = []
        for axis, stride in enumerate(self._strides):
            either = near.copy()
            either[:-stride] |= near[stride:]
            p = np.flatnonzero(either)
            p = p[self._outside[p] & self._outside[p + stride]]
            n = self._slope(d, p) + self._slope(d, p + stride)
            n /= np.maximum(np.linalg.norm(n, axis=1, keepdims=True), 1e-9)
            column = np.argmax(abs(n), 1)
            step = -np.sign(n[np.arange(len(p)), column]).astype(np.int64) * np.array(self._strides)[column]
            ends = np.stack([p, p + stride], 1)
            below, deeper = d[ends + step[:, None]], d[ends + 2 * step[:, None]]
            here = d[ends]
            depth = np.where(below < 0, here / np.maximum(here - below, 1e-9), np.where(
                deeper < 0, 1 + below / np.maximum(below - deeper, 1e-9), 2.0))
            height = np.minimum(0.5 + depth.mean(1), HIGHEST)
            kept = (column != axis) & (below < 0).any(1)
            lacking = (edges[axis].ravel()[p].astype(np.float64) - weights[axis] * c.inside) * (height - 1)
            first.append(p[kept])
            last.append(p[kept] + stride)
            normals.append(n[kept])
            factors.append(lacking[kept])
            axes.append(np.full(int(kept.sum()), axis))
        self._first, self._last, self._axis = np.concatenate(first), np.concatenate(last), np.concatenate(axes)
        self._normals, self._factors = np.concatenate(normals), np.concatenate(factors)

    def sources(self, unknown: Values) -> tuple[Integers, Floats]:
        """Return nodes, as places in a flat array, and what flows into them by a solution, kT/e."""
        u, rows = unknown.ravel(), np.arange(len(self._first))
        gradient = 0.5 * (self._outer_slope(u, self._first) + self._outer_slope(u, self._last))
        h = self._h[self._axis]
        gradient[rows, self._axis] = (u[self._last].astype(np.float64) - u[self._first]) / h
        across = (self._normals * gradient).sum(1) * self._normals[rows, self._axis]
        flow = self._factors * h * (gradient[rows, self._axis] - across)
        return np.concatenate([self._first, self._last]), np.concatenate([flow, -flow])

    def _slope(self, values: Values, nodes: Integers) -> Floats:
        """Return central differences (N, 3) at nodes."""
        return np.stack([(values[nodes + s].astype(np.float64) - values[nodes - s]) / (2 * h)
                         for s, h in zip(self._strides, self._h, strict=True)], 1)

    def _outer_slope(self, values: Values, nodes: Integers) -> Floats:
        """Return differences (N, 3) at outer nodes, of those outside alone; 0 where there is none."""
        result = np.zeros((len(nodes), 3))
        for axis, (s, h) in enumerate(zip(self._strides, self._h, strict=True)):
            slope = np.zeros(len(nodes))
            for step in (s, -s):
                there = self._outside[nodes + step]
                result[:, axis] += np.where(there, (values[nodes + step].astype(np.float64) - values[nodes])
                                            / (h if step > 0 else -h), 0)
                slope += there
            result[:, axis] /= np.maximum(slope, 1)
        return result


def _next_to(within: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which outer nodes are next to inner ones (nx, ny, nz), without those at the faces of the lattice."""
    near = np.zeros_like(within)
    for axis in range(3):
        low, high = (tuple(part if d == axis else slice(None) for d in range(3))
                     for part in (slice(None, -1), slice(1, None)))
        near[low] |= within[high]
        near[high] |= within[low]
    near &= ~within
    inner = np.zeros_like(within)
    inner[(slice(MARGIN, -MARGIN),) * 3] = True
    near &= inner
    return near
