"""Molecular surfaces, and maps on them.

A probe of radius p rolls over the atoms. Its centre moves on the *accessible* surface, that of the union of spheres
with radii r + p (B. Lee, F. M. Richards, J. Mol. Biol. 55 (1971) 379). The *molecular* surface (F. M. Richards, Annu.
Rev. Biophys. Bioeng. 6 (1977) 151) encloses the volume that the probe cannot enter; it is at the distance p inside the
accessible one. The triangles are those of marching cubes, at distance 0 in a map of signed distances to the surface
(:mod:`vmdpotential.surfaces.region`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, progress
from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.molecule.elements import fill_elements
from vmdpotential.molecule.elements import van_der_waals_radii as van_der_waals
from vmdpotential.molecule.selection import Selection, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces import region
from vmdpotential.surfaces.areas import areas
from vmdpotential.surfaces.near import NearestSphere
from vmdpotential.surfaces.triangles import marching_triangles, spread_areas, triangle_normals
from vmdpotential.surfaces.voids import ClosedCavities, find_cavities

#: Kinds of surfaces: around the volume that a probe cannot enter, or that its centre cannot enter.
SURFACE_KINDS = ("molecular", "accessible")

#: Radius of a probe of the size of water, A.
PROBE_RADIUS = 1.4

#: Spacing of the lattice for marching cubes, A. Those of 0.15 A change the area of all patches of a sign by at most
#: 0.5 %, that of one patch of at least 30 A^2 by 1 % (rms), and means of residues by 0.012 kT/e (three proteins).
MESH_SPACING = 0.4

#: Added to depths below the outer surface where they end cavities, A.
_ROUNDING = 1e-4

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
        One of :data:`SURFACE_KINDS`.
    cavities : (V,) int64
        Cavity that each vertex belongs to, from 1 on, the widest first; 0 outside. A probe cannot leave a cavity.
    centres, radii : (M, 3) and (M,) float64, A
        Centres and radii of the atoms within a molecular surface.
    probe : float, A
        Radius of the probe of a molecular surface.
    in_cavities : (K, 3) float64, A
        Positions of the probe's centre in cavities.
    """

    vertices: Floats
    triangles: Integers
    atoms: Integers
    areas: Floats
    kind: str
    cavities: Integers
    centres: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    radii: Floats = field(default_factory=lambda: np.zeros(0))
    probe: float = 0.0
    in_cavities: Floats = field(default_factory=lambda: np.zeros((0, 3)))

    def __repr__(self) -> str:
        return f"Surface({self.kind}, {self.area:.1f} A^2, {len(self.vertices)} vertices)"

    @cached_property
    def crosses(self) -> Floats:
        """(T, 3) outward normals of triangles, with the length of twice their area, A^2."""
        return triangle_normals(self.vertices, self.triangles)

    @cached_property
    def normals(self) -> Floats:
        """(V, 3) outward unit normals at the vertices."""
        sums = np.stack([np.bincount(self.triangles.ravel(), np.repeat(each, 3), len(self.vertices))
                         for each in self.crosses.T], 1)
        normals: Floats = sums / np.maximum(np.linalg.norm(sums, axis=1), 1e-30)[:, None]
        return normals

    @property
    def area(self) -> float:
        """Area of the whole surface, A^2."""
        return float(self.areas.sum())

    @property
    def outer(self) -> Surface:
        """The surface without those of cavities."""
        return self.part(self.cavities == 0)

    def part(self, chosen: NDArray[np.bool_]) -> Surface:
        """Return the pieces whose vertices (V,) are chosen; each piece entirely or not at all."""
        triangles = (np.cumsum(chosen) - 1)[self.triangles[chosen[self.triangles[:, 0]]]]
        return replace(self, vertices=self.vertices[chosen], triangles=triangles, atoms=self.atoms[chosen],
                       areas=self.areas[chosen], cavities=self.cavities[chosen])

    def sample(self, grid: Grid, outwards: float = 0.0) -> Floats:
        """Return interpolated values (V,) of a map at `outwards` A above the vertices; NaN outside the map.

        A periodic map is continued by its images.
        """
        points = self.vertices + outwards * self.normals
        if self.kind == "molecular" and 0 < outwards <= self.probe:
            self._keep_away(points, outwards)
        return grid.covering(points).sample(points)

    def _keep_away(self, points: Floats, outwards: float) -> None:
        """Move points (V, 3) that are nearer to an atom's sphere than `outwards`, A, away from it.

        The probe that touches the surface at a vertex is outside of all atoms, and so the normal never comes nearer to
        one than to the vertex. At the cusps of narrow crevices no normal is known, and that of the mesh may end within
        the opposite wall. In a cavity without room along the way the nearest place of a probe is taken.
        """
        near, rows = NearestSphere(self.centres, self.radii), np.arange(len(points))
        for _ in range(_MOVES):
            distances, atoms = near.find(points[rows], outwards - _TOO_NEAR)
            close = atoms >= 0
            rows, away, atoms = rows[close], (outwards - distances)[close], atoms[close]
            if not len(rows):
                return
            apart = points[rows] - self.centres[atoms]
            points[rows] += (away / np.maximum(np.linalg.norm(apart, axis=1), 1e-9))[:, None] * apart
        rows = rows[self.cavities[rows] > 0]
        if len(rows):
            points[rows] = self.in_cavities[_next_to(self.in_cavities, points[rows])]


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


def owner_rows(surface: Surface, values: Floats, owners: Integers, part: NDArray[np.bool_] | None = None) -> list[Row]:
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
    structure: Structure, *, atoms: Selection = "solute", kind: str = "molecular", probe: float = PROBE_RADIUS,
    spacing: float = MESH_SPACING, radii: Floats | None = None, cavities: bool = True,
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
    cavities : bool
        Whether to make the surfaces of closed cavities as well; see :mod:`vmdpotential.surfaces.voids`.

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
    if kind not in SURFACE_KINDS:
        raise UsageError("kind", f"choose one of {', '.join(SURFACE_KINDS)}", value=kind)
    radii = van_der_waals(fill_elements(structure).elements) if radii is None else np.asarray(radii, np.float64)
    numbers = _with_radii(select(structure, atoms), radii)
    positions, chosen = structure.positions[numbers], radii[numbers]
    accessible = kind == "accessible"
    closed = find_cavities(positions, chosen + probe)
    lattice = _lattice(positions, chosen + probe, spacing)
    balls = closed.centres, closed.radii
    union = region.Surface(positions, chosen, probe, balls)
    outer = _depth(region.Surface(positions, chosen + probe, 0.0, balls) if accessible else union, lattice)
    parts = [([outer], *areas(union, not accessible))]
    if cavities and len(closed):
        progress.report_progress("surface", 0.5)
        parts.append(_in_cavities(positions, chosen, probe, accessible, closed, outer))
    made: list[tuple[NDArray[Any], ...]] = []
    for cavity, (fields, of_atoms, points) in enumerate(parts):
        vertices, triangles = marching_triangles(fields)
        if not len(vertices):  # cavities without a node
            continue
        _, atoms_of = NearestSphere(positions, chosen).find(vertices)
        vertices = _outside(vertices, positions[atoms_of], chosen[atoms_of] + probe * accessible)
        missing = np.flatnonzero((of_atoms > 0) & (np.bincount(atoms_of, minlength=len(numbers)) == 0))
        if len(missing):  # parts too small for a vertex are added to a vertex of a neighbour
            np.add.at(of_atoms, atoms_of[_next_to(vertices, points[missing])], of_atoms[missing])
            of_atoms[missing] = 0
        number = np.zeros(len(vertices), np.int64)
        if cavity:
            number = closed.numbers[NearestSphere(closed.centres, closed.radii).find(vertices)[1]]
        made.append((vertices, triangles + sum(len(part[0]) for part in made), numbers[atoms_of],
                     spread_areas(vertices, triangles, atoms_of, of_atoms), number))
    vertices, triangles, atoms_of, of_vertices, number = (np.concatenate(part) for part in zip(*made, strict=True))
    return Surface(vertices, triangles, atoms_of, of_vertices, kind, number, positions, chosen, probe,
                   closed.centres)


def _in_cavities(positions: Floats, radii: Floats, probe: float, accessible: bool, closed: ClosedCavities,
                 outer: Grid) -> tuple[list[Grid], Floats, Floats]:
    """Return maps of depths in cavities, which are neither inside nor outside, areas (N,), A^2, and points (N, 3), A.

    The maps are on parts of the lattice of the map `outer` of depths within the outer surface. Where a probe outside
    reaches into a cavity, it ends the cavity.
    """
    around = 2 * float(outer.lattice.spacing.max())
    windows = [outer.window(*part) for part in closed.windows(outer.lattice, probe + around)]
    # with all atoms that depths on the windows depend on
    apart = [np.linalg.norm(np.maximum(each.lattice.origin - positions, positions - each.lattice.last).clip(0), axis=1)
             for each in windows]
    near = np.flatnonzero(np.minimum.reduce(apart) < 2 * probe + float(radii.max()) + around)
    whole = region.Surface(positions[near], radii[near], probe)
    drawn = region.Surface(positions[near], radii[near] + probe, 0.0) if accessible else whole
    of_atoms, points = np.zeros(len(radii)), np.zeros_like(positions)
    of_atoms[near], points[near] = areas(whole, not accessible, (closed.centres, closed.radii))
    # rounding errors of nodes at the outer surface are no cavities
    return [replace(each, values=np.maximum(_depth(drawn, each.lattice).values, np.float32(_ROUNDING) - each.values))
            for each in windows], of_atoms, points


def _lattice(positions: Floats, radii: Floats, spacing: float) -> Lattice:
    """Return a lattice around spheres, which fits into memory with the map of depths and its triangles.

    Raises
    ------
    MemoryPlanError
        When it does not.
    """
    lattice = Lattice.around(positions, spacing, float(radii.max()) + 3 * spacing)
    memory.require(40 * lattice.size, f"a surface on {' x '.join(map(str, lattice.shape))} points",
                   "use a larger {spacing} or fewer {atoms}")
    return lattice


def _depth(surface: region.Surface, lattice: Lattice, layers: int = 1) -> Grid:
    """Return a map of depths inside a surface, A, negative outside; exact within `layers` of nodes at the surface."""
    return Grid(lattice, -surface.distances(lattice, layers))


def _with_radii(chosen: NDArray[np.bool_], radii: Floats) -> Integers:
    """Return the rows of the chosen atoms that have a radius."""
    numbers = np.flatnonzero(chosen & (radii > 0))
    if not len(numbers):
        raise InputError("no atom has a radius: a surface needs elements",
                         "correct the elements, or choose other {atoms}")
    return numbers


def depth_map(structure: Structure, chosen: NDArray[np.bool_], spacing: float, probe: float = PROBE_RADIUS,
              cavities: bool = False) -> Grid:
    """Return a map of depths inside the molecular surface of the chosen atoms, A, negative outside, for pictures.

    Closed cavities count as inside unless `cavities` are requested. Beyond two spacings from the surface only the sign
    is meaningful.

    Raises
    ------
    InputError
        When no atom has a radius.
    MemoryPlanError
        When the lattice does not fit into memory.
    """
    radii = van_der_waals(fill_elements(structure).elements)
    numbers = _with_radii(chosen, radii)
    positions, chosen_radii = structure.positions[numbers], radii[numbers]
    closed = None
    if not cavities:
        found = find_cavities(positions, chosen_radii + probe)
        closed = found.centres, found.radii
    return _depth(region.Surface(positions, chosen_radii, probe, closed),
                  _lattice(positions, chosen_radii + probe, spacing), 2)


def cavity_spheres(structure: Structure, probe: float = PROBE_RADIUS) -> tuple[Floats, Floats]:
    """Return spheres that fill the closed cavities of all atoms, for programs that make molecular surfaces themselves.

    Parameters
    ----------
    structure : Structure
    probe : float, A
        Radius of the probe.

    Returns
    -------
    centres, radii : (K, 3) and (K,) float64, A
        With them, such a program makes the outer surface only. The radii may be negative, but not below -`probe`.
    """
    closed = find_cavities(structure.positions, van_der_waals(fill_elements(structure).elements) + probe)
    return closed.centres, closed.radii - probe


def _outside(vertices: Floats, centres: Floats, radii: Floats) -> Floats:
    """Return vertices (V, 3), A, with those inside their spheres moved onto them, as triangles cut corners."""
    away = vertices - centres
    length = np.maximum(np.linalg.norm(away, axis=1), 1e-9)
    result: Floats = centres + away * np.maximum(radii / length, 1.0)[:, None]
    return result


def _next_to(vertices: Floats, points: Floats) -> Integers:
    """Return the nearest of the vertices (V, 3) to each point."""
    from scipy.spatial import cKDTree

    # a tree for few searches: one of other shape would take three times as long to make
    tree = cKDTree(vertices, 64, compact_nodes=False, balanced_tree=False)
    result: Integers = tree.query(points, workers=-1)[1]
    return result
