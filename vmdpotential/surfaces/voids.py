"""Closed cavities among spheres, found exactly by their regular triangulation.

The simplices of the regular (weighted Delaunay) triangulation whose spheres have a point in common that is in no nearer
sphere are the dual complex. The connected parts of space outside of the spheres correspond to the tetrahedra that are
not in it, joined across the triangles that are not in it (H. Edelsbrunner, Discrete Comput. Geom. 13 (1995) 415).
The ball orthogonal to the four spheres of such a tetrahedron contains what they leave free of it, and ends before the
triangles in the complex: the balls of a cavity together cover the cavity, and nothing of the space outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vmdpotential.arrays import Floats, Integers
from vmdpotential.grid.lattice import Lattice

#: Radius of the largest ball in a cavity, A. A wider closed space, such as that in a vesicle, counts as outside.
WIDEST = 10.0

#: Added to the radii of balls for rounding errors, A.
_SLACK = 2e-3


@dataclass(frozen=True, eq=False)
class ClosedCavities:
    """Closed cavities, as balls that cover them.

    Parameters
    ----------
    centres, radii : (B, 3) and (B,) float64, A
        The balls.
    numbers : (B,) int64
        Cavity that each ball belongs to, from 1 on; the first is the widest.
    """

    centres: Floats
    radii: Floats
    numbers: Integers

    def __len__(self) -> int:
        return int(self.numbers.max(initial=0))

    def windows(self, lattice: Lattice, margin: float) -> list[tuple[Integers, Integers]]:
        """Return parts of a lattice that do not overlap, with all nodes within `margin`, A, of the balls.

        Each has the indices (3,) of its first node, and those after its last one.
        """
        low, high = np.full((len(self), 3), np.inf), np.full((len(self), 3), -np.inf)
        np.minimum.at(low, self.numbers - 1, self.centres - self.radii[:, None])
        np.maximum.at(high, self.numbers - 1, self.centres + self.radii[:, None])
        low = np.maximum(np.floor((low - margin - lattice.origin) / lattice.spacing), 0).astype(np.int64)
        high = np.minimum(np.ceil((high + margin - lattice.origin) / lattice.spacing) + 1,
                          lattice.shape).astype(np.int64)
        from scipy.sparse.csgraph import connected_components

        while True:  # boxes that overlap become one
            overlap = ((low[:, None] < high) & (low < high[:, None])).all(2)
            count, box = connected_components(overlap, directed=False)
            joined_low, joined_high = np.full((count, 3), lattice.size), np.zeros((count, 3), np.int64)
            np.minimum.at(joined_low, box, low)
            np.maximum.at(joined_high, box, high)
            if count == len(low):
                return list(zip(low, high, strict=True))
            low, high = joined_low, joined_high


def find_cavities(centres: Floats, radii: Floats) -> ClosedCavities:
    """Return the closed parts of the space outside of spheres with centres (N, 3) and radii (N,), A."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import ConvexHull

    middle, count = (centres.min(0) + centres.max(0)) / 2, len(centres)
    # points in the corners of a box far away, not on one sphere: every tetrahedron with one of them is outside
    side = float(np.ptp(centres, axis=0).max() + 10 * radii.max())
    corners = (np.indices((2, 2, 2)).reshape(3, -1).T - 0.5) * 2 * side * (1 + 0.01 * np.arange(8))[:, None]
    points = np.concatenate([centres - middle, corners])
    heights = (points**2).sum(1) - np.concatenate([radii, np.zeros(8)]) ** 2
    hull = ConvexHull(np.column_stack([points, heights]))
    lower = hull.equations[:, 3] < -1e-12
    slope = np.where(lower, hull.equations[:, 3], -1.0)
    places = -hull.equations[:, :3] / (2 * slope[:, None])  # of the orthogonal balls
    squares = (places**2).sum(1) - hull.equations[:, 4] / slope
    outside = ~lower | (hull.simplices >= count).any(1)
    free = outside | (squares > 0)
    first, across = np.nonzero(free[:, None] & free[hull.neighbors])
    second = hull.neighbors[first, across].astype(np.int64)
    corner = points[hull.simplices[first, (across + 1) % 4]]  # of the triangle between them
    way = places[second] - places[first]
    way /= np.maximum(np.linalg.norm(way, axis=1), 1e-12)[:, None]
    before, after = (np.einsum("nd,nd->n", way, places[n] - corner) for n in (first, second))
    closed = (before <= 0) & (after >= 0) & (squares[first] < before**2)  # the triangle is in the complex
    joined = ~closed | outside[first] & outside[second]
    graph = coo_matrix((np.ones(joined.sum(), np.int8), (first[joined], second[joined])), (len(free), len(free)))
    _, part = connected_components(graph, directed=False)
    inner = free & ~np.isin(part, np.unique(part[outside]))
    widths = np.zeros(int(part.max()) + 1)
    np.maximum.at(widths, part[inner], squares[inner])
    inner &= widths[part] < WIDEST**2
    named, numbers = np.unique(part[inner], return_inverse=True)
    rank = np.empty(len(named), np.int64)
    rank[np.argsort(-widths[named], kind="stable")] = np.arange(1, len(named) + 1)
    return ClosedCavities(places[inner] + middle, np.sqrt(squares[inner]) + _SLACK, rank[numbers.reshape(-1)])
