"""Molecular surfaces, and maps on them.

A probe of radius p rolls over the atoms. Its centre moves on the *accessible* surface, that of the union of spheres
with radii r + p (B. Lee, F. M. Richards, J. Mol. Biol. 55 (1971) 379). The *molecular* surface (F. M. Richards, Annu.
Rev. Biophys. Bioeng. 6 (1977) 151) encloses the volume that the probe cannot enter; it is at the distance p inside the
accessible one. The triangles are those of marching cubes, at distance 0 in a map of signed distances to the surface
(:mod:`vmdpotential.continuum.region`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vmdpotential import extras, memory, progress
from vmdpotential.continuum import region
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.molecule.elements import fill
from vmdpotential.molecule.elements import radii as van_der_waals
from vmdpotential.molecule.selection import Selection, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces.areas import areas
from vmdpotential.surfaces.near import Floats, Integers, Near

#: Kinds of surfaces: around the volume that a probe cannot enter, or that its centre cannot enter.
KINDS = ("molecular", "accessible")

#: Edge of the cells in which the nearest atoms of vertices are searched, A.
CELL = 3.0

#: Radius of a probe of the size of water, A.
PROBE = 1.4

#: Points beside a surface are moved where their distance from an atom is too small by more than this, A; and how often.
_TOO_NEAR, _MOVES = 0.1, 20


@dataclass(frozen=True, eq=False)
class Surface:
    """A closed surface of triangles around atoms.

    Parameters
    ----------
    vertices : (V, 3) float64, A
        Positions of the vertices.
    triangles : (T, 3) int64
        Vertices of each triangle, counterclockwise as seen from outside.
    atoms : (V,) int64
        Atom whose sphere is nearest to each vertex.
    areas : (V,) float64, A^2
        Area of each vertex. For the vertices of an atom, they add up to the area of the atom's part of the surface,
        which is integrated by points on spheres and tori; the triangles cut corners and have a smaller area.
    kind : str
        One of :data:`KINDS`.
    cavities : (V,) bool
        Whether each vertex is on the surface of a cavity inside, which a probe cannot enter from outside.
    centres, radii : (M, 3) and (M,) float64, A
        Centres and radii of the atoms within a molecular surface.
    probe : float, A
        Radius of the probe of a molecular surface.
    """

    vertices: Floats
    triangles: Integers
    atoms: Integers
    areas: Floats
    kind: str
    cavities: NDArray[np.bool_]
    centres: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    radii: Floats = field(default_factory=lambda: np.zeros(0))
    probe: float = 0.0

    def __repr__(self) -> str:
        return f"Surface({self.kind}, {self.area:.1f} A^2, {len(self.vertices)} vertices)"

    @cached_property
    def normals(self) -> Floats:
        """(V, 3) outward unit normals at the vertices."""
        crosses = _crosses(self.vertices, self.triangles)
        sums = np.stack([np.bincount(self.triangles.ravel(), np.repeat(crosses[:, d], 3), len(self.vertices))
                         for d in range(3)], 1)
        normals: Floats = sums / np.maximum(np.linalg.norm(sums, axis=1), 1e-30)[:, None]
        return normals

    @property
    def area(self) -> float:
        """Area of the whole surface, A^2."""
        return float(self.areas.sum())

    def sample(self, grid: Grid, outwards: float = 0.0) -> Floats:
        """Return interpolated values (V,) of a map at `outwards` A above the vertices; NaN outside the map."""
        points = self.vertices + outwards * self.normals
        if self.kind == "molecular" and 0 < outwards <= self.probe:
            self._keep_away(points, outwards)
        return grid.sample(points)

    def _keep_away(self, points: Floats, outwards: float) -> None:
        """Move points (V, 3) that are nearer to an atom's sphere than `outwards`, A, away from it.

        The probe that touches the surface at a vertex is outside of all atoms, and so the normal never comes nearer to
        one than to the vertex. At the cusps of narrow crevices no normal is known, and that of the mesh may end within
        the opposite wall.
        """
        near, rows = Near(self.centres, self.radii, CELL), np.arange(len(points))
        for _ in range(_MOVES):
            distances, atoms = near.find(points[rows])
            close = outwards - distances > _TOO_NEAR
            rows, away, atoms = rows[close], (outwards - distances)[close], atoms[close]
            if not len(rows):
                return
            apart = points[rows] - self.centres[atoms]
            points[rows] += (away / np.maximum(np.linalg.norm(apart, axis=1), 1e-9))[:, None] * apart


@dataclass(frozen=True, eq=False)
class Row:
    """Statistics of a map on the part of a surface that belongs to an atom or a residue.

    Parameters
    ----------
    index : int
        Index of the atom, or of the residue in `Structure.residue_starts`.
    area : float, A^2
        Area of the part.
    mean, low, high : float
        Mean by area and range of the values, where the part is inside the map; NaN if no vertex is.
    """

    index: int
    area: float
    mean: float
    low: float
    high: float


def rows(surface: Surface, values: Floats, owners: Integers, part: NDArray[np.bool_] | None = None) -> list[Row]:
    """Return statistics of the values (V,) at vertices for each owner (V,), an atom or residue, in increasing order.

    `part` (V,) chooses vertices; all unless given.
    """
    area = surface.areas
    if part is not None:
        values, owners, area = values[part], owners[part], area[part]
    known = np.isfinite(values)
    indices, row = np.unique(owners, return_inverse=True)
    areas = np.bincount(row, area)
    weight = np.bincount(row[known], area[known], len(indices))
    sums = np.bincount(row[known], (area * values)[known], len(indices))
    low, high = np.full(len(indices), np.inf), np.full(len(indices), -np.inf)
    np.minimum.at(low, row[known], values[known])
    np.maximum.at(high, row[known], values[known])
    return [Row(int(n), float(a), float(s / w), float(x), float(y)) if w > 0 else
            Row(int(n), float(a), np.nan, np.nan, np.nan)
            for n, a, s, w, x, y in zip(indices, areas, sums, weight, low, high, strict=True)]


def molecular_surface(
    structure: Structure, *, atoms: Selection = "solute", kind: str = "molecular", probe: float = PROBE,
    spacing: float = 0.3, radii: Floats | None = None,
) -> Surface:
    """Return the molecular or accessible surface of the selected atoms.

    Parameters
    ----------
    structure : Structure
    atoms : str or array
        Selection of the atoms inside the surface; see :func:`vmdpotential.molecule.selection.select`.
    kind : {"molecular", "accessible"}
        Kind of the surface.
    probe : float, A
        Radius of the probe.
    spacing : float, A
        Spacing of the lattice for marching cubes; areas hardly depend on it.
    radii : (N,) float64, A, optional
        Radii of all atoms of the structure; by default van der Waals radii of their elements.

    Raises
    ------
    UsageError
        For an unknown kind.
    InputError
        When no selected atom has a radius.
    MemoryPlanError
        When the lattice does not fit into memory.
    BackendError
        When scikit-image is not installed.
    """
    if kind not in KINDS:
        raise UsageError("kind", f"choose one of {', '.join(KINDS)}", value=kind)
    radii = van_der_waals(fill(structure).elements) if radii is None else np.asarray(radii, np.float64)
    numbers = _with_radii(select(structure, atoms), radii)
    positions, chosen = structure.positions[numbers], radii[numbers]
    accessible = kind == "accessible"
    union = region.Surface(positions, chosen, probe)
    field = _depth(region.Surface(positions, chosen + probe, 0.0) if accessible else union, spacing)
    vertices, triangles = _marching(field)
    progress.report("surface", 0.8)
    _, atoms_of = Near(positions, chosen, CELL).find(vertices)
    vertices = _outside(vertices, positions[atoms_of], chosen[atoms_of] + probe * accessible)
    of_atoms, points = np.zeros(len(numbers)), np.empty_like(positions)
    of_atoms[union.order], points[union.order] = areas(union, not accessible)
    missing = np.flatnonzero((of_atoms > 0) & (np.bincount(atoms_of, minlength=len(numbers)) == 0))
    if len(missing):  # parts too small for a vertex are added to a vertex of a neighbour
        np.add.at(of_atoms, atoms_of[_next_to(vertices, points[missing])], of_atoms[missing])
        of_atoms[missing] = 0
    return Surface(vertices, triangles, numbers[atoms_of], _spread(vertices, triangles, atoms_of, of_atoms), kind,
                   _cavities(vertices, triangles), positions, chosen, probe)


def _cavities(vertices: Floats, triangles: Integers) -> NDArray[np.bool_]:
    """Return whether each vertex belongs to a closed surface whose triangles face inwards, that of a cavity."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    edges = np.concatenate([triangles[:, :2], triangles[:, 1:]])
    shape = (len(vertices), len(vertices))
    _, piece = connected_components(coo_matrix((np.ones(len(edges), np.int8), tuple(edges.T)), shape), directed=False)
    a, b, c = (vertices[triangles[:, n]] for n in range(3))
    volumes = np.bincount(piece[triangles[:, 0]], np.einsum("ij,ij->i", np.cross(a, b), c), piece.max() + 1)
    inwards: NDArray[np.bool_] = (volumes < 0)[piece]
    return inwards


def _depth(surface: region.Surface, spacing: float, layers: int = 1) -> Grid:
    """Return a map of depths inside a surface, A, negative outside; exact within `layers` of nodes at the surface.

    Raises
    ------
    MemoryPlanError
        When the lattice does not fit into memory.
    """
    lattice = Lattice.around(surface.centres, spacing, float(surface.radii.max()) + 3 * spacing)
    memory.require(40 * lattice.size, f"a surface on {' x '.join(map(str, lattice.shape))} points",
                   "use a larger {spacing} or fewer {atoms}")
    return Grid(lattice, -surface.distances(lattice, layers))


def _with_radii(chosen: NDArray[np.bool_], radii: Floats) -> Integers:
    """Return the rows of the chosen atoms that have a radius."""
    numbers = np.flatnonzero(chosen & (radii > 0))
    if not len(numbers):
        raise InputError("no atom has a radius: a surface needs elements",
                         "correct the elements, or choose other {atoms}")
    return numbers


def depth_map(structure: Structure, chosen: NDArray[np.bool_], spacing: float, probe: float = PROBE) -> Grid:
    """Return a map of depths inside the molecular surface of the chosen atoms, A, negative outside, for pictures.

    Beyond two spacings from the surface only the sign is meaningful.

    Raises
    ------
    InputError
        When no atom has a radius.
    MemoryPlanError
        When the lattice does not fit into memory.
    """
    radii = van_der_waals(fill(structure).elements)
    numbers = _with_radii(chosen, radii)
    return _depth(region.Surface(structure.positions[numbers], radii[numbers], probe), spacing, 2)


def _outside(vertices: Floats, centres: Floats, radii: Floats) -> Floats:
    """Return vertices (V, 3), A, with those inside their spheres moved onto them, as triangles cut corners."""
    away = vertices - centres
    length = np.maximum(np.linalg.norm(away, axis=1), 1e-9)
    result: Floats = centres + away * np.maximum(radii / length, 1.0)[:, None]
    return result


def _next_to(vertices: Floats, points: Floats) -> Integers:
    """Return the nearest vertex of each point."""
    from scipy.spatial import cKDTree

    result: Integers = cKDTree(vertices).query(points, workers=-1)[1]
    return result


def _spread(vertices: Floats, triangles: Integers, atoms: Integers, areas: Floats) -> Floats:
    """Return areas (V,) of vertices: each atom's area (N,), divided in proportion to the triangles at its vertices."""
    each = np.linalg.norm(_crosses(vertices, triangles), axis=1) / 6
    thirds = np.bincount(triangles.ravel(), np.repeat(each, 3), len(vertices))
    of_atom = np.bincount(atoms, thirds, len(areas))
    result: Floats = thirds * (areas / np.maximum(of_atom, 1e-30))[atoms]
    return result


def _crosses(vertices: Floats, triangles: Integers) -> Floats:
    """Return normals (T, 3) of triangles, with the length of twice their area."""
    a, b, c = (vertices[triangles[:, n]] for n in range(3))
    return np.cross(b - a, c - a)


def _marching(field: Grid) -> tuple[Floats, Integers]:
    """Return vertices and triangles of the surface around the region in which a field is positive."""
    vertices, triangles, _, _ = extras.load("skimage.measure", "surfaces", "surface").marching_cubes(field.values, 0.0)
    vertices = vertices.astype(np.float64) * field.lattice.spacing + field.lattice.origin
    triangles = triangles.astype(np.int64)
    a, b, c = (vertices[triangles[:, n]] for n in range(3))
    if np.einsum("ij,ij->", np.cross(a, b), c) < 0:  # six times the signed volume
        triangles = triangles[:, ::-1]
    return vertices, np.ascontiguousarray(triangles)
