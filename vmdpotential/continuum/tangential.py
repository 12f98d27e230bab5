"""Correction for the flow along the surface of the molecule.

The cells of the outer nodes approximate the surface by stairs: parts of these cells are inside of the molecule, and
parts of the solvent belong to cells of inner nodes. The flow across the surface is the same on both sides; the flow
along it is proportional to the permittivity of its side. An edge between two outer nodes therefore has to carry the
tangential flow of the whole column of solvent from the surface to the middle of the next cells. Without a correction it
lacks (outside - inside) times the tangential gradient times the column's height less one cell's. The missing flow is
added as a source that is computed from a first solution, since it is of the first order in the spacing (deferred
correction: V. Pereyra, Numer. Math. 10 (1967) 316).
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

#: Layers of nodes at the faces of the lattice whose edges are not corrected.
MARGIN = 3

#: Largest height of a column, cells.
HIGHEST = 2.5

#: Nodes or edges that a thread takes at a time.
TOGETHER = 5000


class Tangential:
    """The edges between outer nodes next to a surface, and their missing flow along it.

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
        """Return nodes, as indices of a flat array, and the flow into each of them for a solution, kT/e."""
        if not self._edges:
            return np.zeros(0, np.int64), np.zeros(0)
        ends = self._edges[0]
        flows = np.empty(len(ends))
        threads.run(partial(self._kernel.flows, unknown.ravel(), self._within, self._strides, self._spacing,
                            *self._edges, flows), len(flows), "surface", TOGETHER)
        return ends.T.ravel(), np.concatenate([flows, -flows])
