"""Molecular surfaces, and maps on them.

A probe of radius p rolls over the atoms. Its centre stays on the *accessible* surface, that of spheres with radii
r + p (B. Lee, F. M. Richards, J. Mol. Biol. 55 (1971) 379); what it cannot enter ends at the *molecular* surface
(F. M. Richards, Annu. Rev. Biophys. Bioeng. 6 (1977) 151), whose points are p away from the accessible one, inside of
it. The distance to that is known at every lattice point: to the sphere that is the deepest around it, where the point
of the sphere that is the nearest is accessible; elsewhere to the edges between spheres, where the probe touches two
atoms or more. Marching cubes follow the distance p.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import extras, memory, progress
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.molecule.elements import fill
from vmdpotential.molecule.elements import radii as van_der_waals
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import Structure

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: molecular: what a probe cannot enter; accessible: where its centre can be.
KINDS = ("molecular", "accessible")

#: A, of a probe of water's size.
PROBE = 1.4

#: Points in a circle between two spheres that are looked at first, and the distance in A of those kept.
COARSE, FINE = 32, 0.15

#: Halvings of the interval in which an edge ends.
HALVINGS = 8


@dataclass(frozen=True, eq=False)
class Surface:
    """A closed surface of triangles around atoms.

    Parameters
    ----------
    vertices : (V, 3) float64, A
    triangles : (T, 3) int64
        Vertices of each, counterclockwise from outside.
    atoms : (V,) int64
        The atom that each vertex is nearest to, by its radius.
    kind : str
        One of :data:`KINDS`.
    """

    vertices: Floats
    triangles: Integers
    atoms: Integers
    kind: str

    def __repr__(self) -> str:
        return f"Surface({self.kind}, {self.area:.1f} A^2, {len(self.vertices)} vertices)"

    @cached_property
    def _crosses(self) -> Floats:
        a, b, c = (self.vertices[self.triangles[:, n]] for n in range(3))
        return np.cross(b - a, c - a)

    @cached_property
    def areas(self) -> Floats:
        """(V,) area of each vertex, a third of its triangles', A^2."""
        each = np.linalg.norm(self._crosses, axis=1) / 6
        areas: Floats = np.bincount(self.triangles.ravel(), np.repeat(each, 3), len(self.vertices)).astype(np.float64)
        return areas

    @cached_property
    def normals(self) -> Floats:
        """(V, 3) unit vectors outwards."""
        sums = np.stack([np.bincount(self.triangles.ravel(), np.repeat(self._crosses[:, d], 3), len(self.vertices))
                         for d in range(3)], 1)
        normals: Floats = sums / np.maximum(np.linalg.norm(sums, axis=1), 1e-30)[:, None]
        return normals

    @property
    def area(self) -> float:
        """Of all of it, A^2."""
        return float(self.areas.sum())

    def sample(self, grid: Grid, outwards: float = 0.0) -> Floats:
        """Return a map, trilinearly interpolated, at the vertices or so many A outwards of them; NaN beyond the map."""
        return grid.sample(self.vertices + outwards * self.normals)


@dataclass(frozen=True, eq=False)
class Row:
    """A map on the part of a surface that belongs to an atom or a residue.

    Parameters
    ----------
    index : int
        Of the atom, or of the residue among `Structure.residue_starts`.
    area : float, A^2
    mean, low, high : float
        The mean by area, and the range, of what lies inside the map; NaN where nothing does.
    """

    index: int
    area: float
    mean: float
    low: float
    high: float


def rows(surface: Surface, values: Floats, owners: Integers) -> list[Row]:
    """Return what belongs to each owner (V,) of vertices with values (V,), in their order."""
    known = np.isfinite(values)
    found, row = np.unique(owners, return_inverse=True)
    areas = np.bincount(row, surface.areas)
    weight = np.bincount(row[known], surface.areas[known], len(found))
    sums = np.bincount(row[known], (surface.areas * values)[known], len(found))
    low, high = np.full(len(found), np.inf), np.full(len(found), -np.inf)
    np.minimum.at(low, row[known], values[known])
    np.maximum.at(high, row[known], values[known])
    return [Row(int(n), float(a), float(s / w), float(x), float(y)) if w > 0 else
            Row(int(n), float(a), np.nan, np.nan, np.nan)
            for n, a, s, w, x, y in zip(found, areas, sums, weight, low, high, strict=True)]


def molecular_surface(
    structure: Structure, *, atoms: str = "solute", kind: str = "molecular", probe: float = PROBE,
    spacing: float = 0.3, radii: Floats | None = None,
) -> Surface:
    """Return the surface of some atoms.

    Parameters
    ----------
    structure : Structure
    atoms : str
        Around which it is; see :func:`vmdpotential.molecule.selection.select`.
    kind : {"molecular", "accessible"}
    probe : float, A
    spacing : float, A
        Of the lattice that it is found on. At 0.3 A areas are up to 1 % too small, as triangles cut corners; those of
        accessible surfaces, which have grooves between spheres, 3 %.
    radii : (N,) float64, A, optional
        Of all atoms; van der Waals radii of their elements unless given.

    Raises
    ------
    InputError
        When no atom has a radius.
    MemoryPlanError
        When the lattice does not fit into memory.
    BackendError
        When scikit-image is not installed.
    """
    if kind not in KINDS:
        raise UsageError("kind", f"choose one of {', '.join(KINDS)}", value=kind)
    chosen = select(structure, atoms)
    radii = van_der_waals(fill(structure).elements) if radii is None else np.asarray(radii, np.float64)
    numbers = np.arange(len(structure))[chosen]
    numbers = numbers[radii[numbers] > 0]
    if not len(numbers):
        raise InputError("no atom has a radius: a surface needs elements",
                         "correct the elements, or choose other {atoms}")
    union = _Spheres(structure.positions[numbers], radii[numbers] + probe, spacing)
    field = union.depth if kind == "accessible" or probe == 0 else union.distances(probe) - np.float32(probe)
    vertices, triangles = _marching(field, union.lattice)
    return Surface(vertices, triangles, numbers[_nearest(structure.positions[numbers], radii[numbers], vertices)], kind)


class _Spheres:
    """Spheres on a lattice: how deep its points are in the union.

    Parameters
    ----------
    centres : (N, 3) float64, A
    radii : (N,) float64, A
    spacing : float, A
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
        places = [np.arange(n) * spacing + x for n, x in zip(lattice.shape, lattice.origin, strict=True)]
        for n, (centre, radius, low, high) in enumerate(zip(centres, radii, first, last, strict=True)):
            if n % 5000 == 0:
                progress.report("surface", 0.5 * n / len(centres))
            x, y, z = ((place[a:b] - c).astype(np.float32) ** 2
                       for place, a, b, c in zip(places, low, high, centre, strict=True))
            depth = np.float32(radius) - np.sqrt(x[:, None, None] + y[:, None] + z)
            box = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
            here = self.depth[box]
            deeper = depth > here
            here[deeper] = depth[deeper]
            self.deepest[box][deeper] = n

    @cached_property
    def _trees(self) -> list[tuple[float, Any]]:
        """Centres of the spheres of each radius."""
        from scipy.spatial import cKDTree

        return [(float(radius), cKDTree(self.centres[self.radii == radius])) for radius in np.unique(self.radii)]

    def outside(self, points: Floats) -> NDArray[np.bool_]:
        """Return whether points (P, 3) are in no sphere, those on one counted as outside of it."""
        result = np.zeros(len(points), bool)
        # most are told from the lattice: between its points the depth changes by less than the half diagonal of a cell
        places = np.rint((points - self.lattice.origin) / self.spacing).astype(int)
        near = np.flatnonzero(self.depth[tuple(places.T)] < 0.87 * self.spacing)
        for radius, tree in self._trees:
            if not len(near):
                break
            found, _ = tree.query(points[near], distance_upper_bound=radius - 1e-5, workers=-1)
            near = near[~np.isfinite(found)]
        result[near] = True
        return result

    def distances(self, most: float) -> NDArray[np.float32]:
        """Return the distances (A) from lattice points inside to the outside; those over `most` may be less or more."""
        from scipy.spatial import cKDTree

        result = self.depth.copy()
        asked = np.flatnonzero((result > 0) & (result < most + 2 * self.spacing))
        points = self.lattice.points(np.stack(np.unravel_index(asked, result.shape), 1))
        sphere = self.deepest.ravel()[asked]
        away = points - self.centres[sphere]
        length = np.maximum(np.linalg.norm(away, axis=1), 1e-9)
        progress.report("surface", 0.6)
        buried = ~self.outside(self.centres[sphere] + away * (self.radii[sphere] / length)[:, None])
        progress.report("surface", 0.7)
        edges = self._edges()
        progress.report("surface", 0.9)
        bound = most + 2 * self.spacing
        far = np.full(buried.sum(), bound)
        if len(edges):
            found, _ = cKDTree(edges).query(points[buried], distance_upper_bound=bound, workers=-1)
            far = np.minimum(found, bound)
        result.ravel()[asked[buried]] = far
        return result

    def _edges(self) -> Floats:
        """Return points (E, 3), A, on the circles in which two spheres meet, where they are outside of all others."""
        from scipy.spatial import cKDTree

        surface = np.unique(self.deepest[np.abs(self.depth) < 1.5 * self.spacing])  # no others come to the surface
        centres, radii = self.centres[surface], self.radii[surface]
        i, j = cKDTree(centres).query_pairs(2 * float(radii.max()), output_type="ndarray").T
        between = centres[j] - centres[i]
        d = np.linalg.norm(between, axis=1)
        meet = (d < radii[i] + radii[j]) & (d > np.abs(radii[i] - radii[j])) & (d > 1e-6)
        i, j, between, d = i[meet], j[meet], between[meet], d[meet]
        along = between / d[:, None]
        to_plane = (d * d + radii[i] ** 2 - radii[j] ** 2) / (2 * d)
        radius = np.sqrt(np.maximum(radii[i] ** 2 - to_plane**2, 0))
        middle = centres[i] + to_plane[:, None] * along
        # two directions across
        least = np.eye(3)[np.abs(along).argmin(1)]
        u = np.cross(along, least)
        u /= np.linalg.norm(u, axis=1)[:, None]
        v = np.cross(along, u)

        def at(circle: Integers, angle: Floats) -> Floats:
            around = np.cos(angle)[:, None] * u[circle] + np.sin(angle)[:, None] * v[circle]
            points: Floats = middle[circle] + radius[circle, None] * around
            return points

        angles = 2 * np.pi * np.arange(COARSE) / COARSE
        circle = np.repeat(np.arange(len(d)), COARSE)
        some = self.outside(at(circle, np.tile(angles, len(d)))).reshape(-1, COARSE).any(1)
        kept = np.flatnonzero(some)
        count = np.maximum(COARSE, np.ceil(2 * np.pi * radius[kept] / FINE)).astype(int)
        circle = np.repeat(kept, count)
        start = np.cumsum(count) - count
        angle = 2 * np.pi * (np.arange(count.sum()) - np.repeat(start, count)) / np.repeat(count, count)
        points = at(circle, angle)
        free = self.outside(points)
        # where an edge ends, by halving
        following = np.arange(len(free)) + 1
        following[start + count - 1] = start
        ends = np.flatnonzero(free != free[following])
        low, high = angle[ends], angle[ends] + 2 * np.pi / np.repeat(count, count)[ends]
        for _ in range(HALVINGS):
            half = (low + high) / 2
            like_low = self.outside(at(circle[ends], half)) == free[ends]
            low, high = np.where(like_low, half, low), np.where(like_low, high, half)
        return np.concatenate([points[free], at(circle[ends], np.where(free[ends], low, high))])


def _marching(field: NDArray[np.float32], lattice: Lattice) -> tuple[Floats, Integers]:
    """Return vertices and triangles around where a field is positive."""
    vertices, triangles, _, _ = extras.load("skimage.measure", "surfaces", "surface").marching_cubes(field, 0.0)
    vertices = vertices.astype(np.float64) * lattice.spacing + lattice.origin
    triangles = triangles.astype(np.int64)
    a, b, c = (vertices[triangles[:, n]] for n in range(3))
    if np.einsum("ij,ij->", np.cross(a, b), c) < 0:  # six times the volume
        triangles = triangles[:, ::-1]
    return vertices, np.ascontiguousarray(triangles)


def _nearest(centres: Floats, radii: Floats, points: Floats) -> Integers:
    """Return the sphere whose surface is the nearest to each point."""
    from scipy.spatial import cKDTree

    best, sphere = np.full(len(points), np.inf), np.zeros(len(points), np.int64)
    for radius in np.unique(radii):
        of = np.flatnonzero(radii == radius)
        distance, index = cKDTree(centres[of]).query(points, workers=-1)
        nearer = distance - radius < best
        best[nearer], sphere[nearer] = (distance - radius)[nearer], of[index[nearer]]
    return sphere


def by_residue(structure: Structure) -> Integers:
    """Return the residue (row of `residue_starts`) of every atom."""
    return np.repeat(np.arange(structure.residue_count), np.diff(structure.residue_starts))
