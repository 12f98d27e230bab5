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

from functools import partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build, threads
from vmdpotential.continuum.molecule import Continuum, Floats
from vmdpotential.continuum.region import by_planes
from vmdpotential.grid.lattice import Lattice

Values = NDArray[np.float32]
Integers = NDArray[np.int64]

#: Nodes at the faces of the lattice whose edges are left as they are.
MARGIN = 3

#: Cells that a column has at most.
HIGHEST = 2.5

#: Nodes or edges that a thread takes at a time.
TOGETHER = 5000


class Tangential:
    """The edges next to a surface that are one side's, and what flows next to them.

    Parameters
    ----------
    c : Continuum
    lattice : Lattice
    distances : (nx, ny, nz) float32
        Of nodes to the surface, negative inside.
    within : (nx, ny, nz) bool
        Which nodes are inside.
    edges : three (nx, ny, nz) float32
        Conductances.
    """

    def __init__(self, c: Continuum, lattice: Lattice, distances: Values, within: NDArray[np.bool_],
                 edges: tuple[Values, Values, Values]) -> None:
        _, ny, nz = lattice.shape
        self._kernel = build.load("tangential_kernel")
        self._strides, self._spacing = np.array([ny * nz, nz, 1]), lattice.spacing
        self._within = within.ravel()
        weights = np.prod(lattice.spacing) / lattice.spacing**2 / lattice.spacing.mean()
        near = np.zeros(lattice.shape, np.bool_)
        by_planes(partial(self._kernel.next_to, within, MARGIN, near), lattice)
        nodes = np.flatnonzero(near)
        parts = {}

        def add(first: int, last: int) -> None:
            size = 6 * (last - first)
            part = np.empty((size, 2), np.int64), np.empty(size, np.int8), np.empty((size, 3)), np.empty(size)
            count = self._kernel.edges(nodes, near.ravel(), distances.ravel(), self._strides, lattice.spacing, *(
                each.ravel() for each in edges), c.inside * weights, HIGHEST, first, last, *part)
            parts[first] = [each[:count].copy() for each in part]

        threads.run(add, len(nodes), "surface", TOGETHER)
        self._edges = [np.concatenate(each) for each in zip(*(parts[first] for first in sorted(parts)), strict=True)]

    def sources(self, unknown: Values) -> tuple[Integers, Floats]:
        """Return nodes, as places in a flat array, and what flows into them by a solution, kT/e."""
        if not self._edges:
            return np.zeros(0, np.int64), np.zeros(0)
        ends = self._edges[0]
        flows = np.empty(len(ends))
        threads.run(partial(self._kernel.flows, unknown.ravel(), self._within, self._strides, self._spacing,
                            *self._edges, flows), len(flows), "surface", TOGETHER)
        return ends.T.ravel(), np.concatenate([flows, -flows])
