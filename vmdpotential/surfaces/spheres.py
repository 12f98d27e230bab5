"""A union of spheres: how deep points are in it, and the edges where spheres meet.

With radii r + p, its outside is where the centre of a probe of radius p can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, progress
from vmdpotential.compiling import build, threads
from vmdpotential.grid.lattice import Lattice
from vmdpotential.surfaces.near import Floats, Integers, Near

#: A, of pieces of edges whose ends stand for them where the nearest edge is looked for.
FINE = 0.15

#: A, of the cells in which spheres, and points of edges, are looked for.
CELL, EDGE_CELL = 3.0, 1.5

#: A, by which a sphere is smaller when it covers points: those on it are outside.
ON = 1e-5

#: Circles whose arcs are found at once.
TOGETHER = 4000

#: A, from the surface, within which there are points of a lattice that are the deepest in a sphere that comes there.
NEAR = 2.0


@dataclass(frozen=True, eq=False)
class Edges:
    """Arcs, of the circles in which two spheres meet, that are outside of all others.

    Parameters
    ----------
    spheres : (A, 2) int64
        The two of each arc.
    middle, u, v : (A, 3) float64
        The circle's centre, A, and unit vectors at right angles to each other and to the line between the spheres.
    radius : (A,) float64, A
    first, last : (A,) float64
        Angles from u towards v; a whole circle when they are 2 pi apart.
    ends : (A, 2) int64
        The spheres that the arcs begin and end at, -1 for a whole circle.
    """

    spheres: Integers
    middle: Floats
    u: Floats
    v: Floats
    radius: Floats
    first: Floats
    last: Floats
    ends: Integers

    def at(self, arc: Integers, angle: Floats) -> Floats:
        """Return points (P, 3), A, on arcs (P,) at angles (P,)."""
        around = np.cos(angle)[:, None] * self.u[arc] + np.sin(angle)[:, None] * self.v[arc]
        points: Floats = self.middle[arc] + self.radius[arc, None] * around
        return points

    def pieces(self, length: float) -> tuple[Integers, Floats, Floats]:
        """Cut every arc into equal pieces of at most a length, A; return arc, middle angle and angle of each (P,)."""
        count = np.maximum(1, np.ceil(self.radius * (self.last - self.first) / length)).astype(int)
        arc = np.repeat(np.arange(len(count)), count)
        number = np.arange(len(arc)) - np.repeat(np.cumsum(count) - count, count)
        step = ((self.last - self.first) / count)[arc]
        return arc, self.first[arc] + (number + 0.5) * step, step


class Spheres:
    """Spheres, and how deep the points of a lattice are in their union.

    Parameters
    ----------
    centres : (N, 3) float64, A
    radii : (N,) float64, A
    spacing : float, A
        Of the lattice.
    """

    def __init__(self, centres: Floats, radii: Floats, spacing: float) -> None:
        self.centres, self.radii, self.spacing = centres, radii, spacing
        self.lattice = lattice = Lattice.around(centres, spacing, float(radii.max()) + 3 * spacing)
        memory.require(40 * lattice.size, f"a surface on {' x '.join(map(str, lattice.shape))} points",
                       "use a larger {spacing} or fewer {atoms}")
        # A inside of the sphere that is the deepest around a point, negative outside of all; and that sphere
        self.depth = np.full(lattice.shape, -3 * spacing, np.float32)
        self.deepest = np.zeros(lattice.shape, np.int32)
        reach = radii + 2 * spacing
        first = np.ceil((centres - reach[:, None] - lattice.origin) / spacing).astype(int)
        last = np.floor((centres + reach[:, None] - lattice.origin) / spacing).astype(int) + 1
        fixed = (centres, radii, first, last, lattice.origin, spacing, self.depth, self.deepest)
        threads.run(partial(build.load("depth_kernel").run, *fixed), lattice.shape[0], "surface",
                    max(8, -(-lattice.shape[0] // (4 * threads.count()))))

    @cached_property
    def outer(self) -> Integers:
        """The spheres that come to the surface, and some that come near."""
        return np.unique(self.deepest[np.abs(self.depth) < max(NEAR, 1.5 * self.spacing)]).astype(np.int64)

    @cached_property
    def near(self) -> Near:
        """What finds the sphere that a point is the deepest in."""
        return Near(self.centres, self.radii, CELL)

    def outside(self, points: Floats) -> NDArray[np.bool_]:
        """Return whether points (P, 3) are in no sphere, those on one counted as outside of it."""
        result = np.zeros(len(points), bool)
        # most are decided by the lattice: between its points the depth changes by less than the half diagonal of a cell
        places = np.rint((points - self.lattice.origin) / self.spacing).astype(int)
        near = np.flatnonzero(self.depth[tuple(places.T)] < 0.87 * self.spacing)
        depth, _ = self.near.find(points[near], 0.0, -ON)
        result[near[depth >= -ON]] = True
        return result

    def distances(self, points: Floats, spheres: Integers, most: float) -> Floats:
        """Return the distances, A, from points (P, 3) to the outside, `most` for those that are farther.

        Parameters
        ----------
        points : (P, 3) float64, A
        spheres : (P,) int64
            In which of the spheres each is the deepest.
        most : float, A
        """
        away = points - self.centres[spheres]
        length = np.maximum(np.linalg.norm(away, axis=1), 1e-9)
        result: Floats = self.radii[spheres] - length
        # the way out of the deepest is the shortest where it is not barred; elsewhere it leads to an edge
        barred = np.flatnonzero(~self.outside(
            self.centres[spheres] + away * (self.radii[spheres] / length)[:, None]))
        result[barred] = most
        if self._edge_points is not None and len(barred):
            result[barred], _ = self._edge_points.find(points[barred], most)
        return result

    def lattice_distances(self, most: float) -> NDArray[np.float32]:
        """Return the distances, A, from lattice points inside to the outside; those over `most` may be less or more."""
        result = self.depth.copy()
        bound = most + 2 * self.spacing
        asked = np.flatnonzero((result > 0) & (result < bound))
        points = self.lattice.points(np.stack(np.unravel_index(asked, result.shape), 1))
        result.ravel()[asked] = self.distances(points, self.deepest.ravel()[asked].astype(np.int64), bound)
        return result

    def nearby(self, most: float) -> NDArray[np.float32]:
        """Return nearly the same as `lattice_distances`, from where edges of the lattice cross the surface."""
        from scipy.spatial import cKDTree

        crossings = []
        for axis in range(3):
            low, high = (np.moveaxis(self.depth, axis, 0)[part] for part in (slice(None, -1), slice(1, None)))
            index = np.nonzero((low > 0) != (high > 0))
            places = np.stack(index, 1).astype(np.float64)
            places[:, 0] += low[index] / (low[index] - high[index])
            crossings.append(self.lattice.points(np.insert(places[:, 1:], axis, places[:, 0], axis=1)))
        progress.report("surface", 0.6)
        result = self.depth.copy()
        bound = most + 2 * self.spacing
        asked = np.flatnonzero((result > 0) & (result < bound))
        points = self.lattice.points(np.stack(np.unravel_index(asked, result.shape), 1))
        distances, _ = cKDTree(np.concatenate(crossings)).query(points, distance_upper_bound=bound, workers=-1)
        result.ravel()[asked] = np.minimum(distances, bound)
        return result

    @cached_property
    def _edge_points(self) -> Near | None:
        """Points on all edges, with their ends; None where there are none."""
        edges = self.edges
        if not len(edges.radius):
            return None
        arc, angle, step = edges.pieces(FINE)
        every = np.arange(len(edges.radius))
        points = np.concatenate([edges.at(arc, angle - step / 2), edges.at(every, edges.last)])
        return Near(points, np.zeros(len(points)), EDGE_CELL)

    @cached_property
    def _meetings(self) -> tuple[Integers, Integers, Floats]:
        """Two spheres each that meet, and the distance of their centres."""
        from scipy.spatial import cKDTree

        i, j = cKDTree(self.centres).query_pairs(2 * float(self.radii.max()), output_type="ndarray").T
        d = np.linalg.norm(self.centres[j] - self.centres[i], axis=1)
        meet = d < self.radii[i] + self.radii[j]
        return i[meet], j[meet], d[meet]

    @cached_property
    def _neighbours(self) -> tuple[Integers, Integers]:
        """The spheres that meet sphere n are second[first[n]:first[n + 1]], those that cover most of it first."""
        i, j, d = self._meetings
        a, b = np.concatenate([i, j]), np.concatenate([j, i])
        around = b[np.lexsort((np.concatenate([d, d]) - self.radii[b], a))]
        return np.concatenate([[0], np.cumsum(np.bincount(a, minlength=len(self.radii)))]), around

    def free(self, directions: Floats) -> NDArray[np.bool_]:
        """Return which points of the outer spheres, in these directions (D, 3), are in no other sphere, (outer, D)."""
        result = np.empty((len(self.outer), len(directions)), np.bool_)
        threads.run(partial(build.load("near_kernel").free, directions, self.outer, self.centres, self.radii,
                            *self._neighbours, result), len(self.outer), "surface", TOGETHER // 40)
        return result

    @cached_property
    def edges(self) -> Edges:
        """Where two spheres meet outside of all others."""
        i, j, d = self._meetings
        starts, around = self._neighbours
        outer = np.zeros(len(self.radii), bool)
        outer[self.outer] = True
        crossing = outer[i] & outer[j] & (d > np.abs(self.radii[i] - self.radii[j])) & (d > 1e-6)
        i, j, d = i[crossing], j[crossing], d[crossing]
        along = (self.centres[j] - self.centres[i]) / d[:, None]
        to_plane = (d * d + self.radii[i] ** 2 - self.radii[j] ** 2) / (2 * d)
        radius = np.sqrt(np.maximum(self.radii[i] ** 2 - to_plane**2, 1e-18))
        # two directions across
        u = np.cross(along, np.eye(3)[np.abs(along).argmin(1)])
        u /= np.linalg.norm(u, axis=1)[:, None]
        v, middle, pairs = np.cross(along, u), self.centres[i] + to_plane[:, None] * along, np.stack([i, j], 1)

        result: dict[int, tuple[Integers, Floats, Floats, Integers]] = {}
        kernel = build.load("arc_kernel").run

        def part(start: int, stop: int) -> None:
            result[start] = kernel(self.centres, self.radii, pairs, middle, u, v, radius, starts, around, start, stop)

        threads.run(part, len(d), "surface", TOGETHER)
        if not result:
            result[0] = np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros((0, 2), np.int64)
        circle, first, last, ends = (np.concatenate(parts) for parts in zip(
            *(result[start] for start in sorted(result)), strict=True))
        return Edges(pairs[circle], middle[circle], u[circle], v[circle], radius[circle], first, last, ends)
