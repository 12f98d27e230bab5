"""Molecular surfaces, and maps on them.

A probe of radius p rolls over the atoms. Its centre stays on the *accessible* surface, that of spheres with radii
r + p (B. Lee, F. M. Richards, J. Mol. Biol. 55 (1971) 379); what it cannot enter ends at the *molecular* surface
(F. M. Richards, Annu. Rev. Biophys. Bioeng. 6 (1977) 151), whose points are p away from the accessible one, inside of
it. Marching cubes follow where the distance to it, which is known at the points of a lattice
(:mod:`vmdpotential.continuum.region`), is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
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

#: molecular: what a probe cannot enter; accessible: where its centre can be.
KINDS = ("molecular", "accessible")

#: A, of the cells in which the atoms next to vertices are looked for.
CELL = 3.0

#: A, of a probe of water's size.
PROBE = 1.4


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
    areas : (V,) float64, A^2
        Of each vertex. Those of an atom's vertices sum to the area of its part of the surface, which is counted by
        points; the triangles themselves, which cut corners, are smaller.
    kind : str
        One of :data:`KINDS`.
    """

    vertices: Floats
    triangles: Integers
    atoms: Integers
    areas: Floats
    kind: str

    def __repr__(self) -> str:
        return f"Surface({self.kind}, {self.area:.1f} A^2, {len(self.vertices)} vertices)"

    @cached_property
    def normals(self) -> Floats:
        """(V, 3) unit vectors outwards."""
        crosses = _crosses(self.vertices, self.triangles)
        sums = np.stack([np.bincount(self.triangles.ravel(), np.repeat(crosses[:, d], 3), len(self.vertices))
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
        The mean by area, and the range, of what is inside the map; NaN where nothing does.
    """

    index: int
    area: float
    mean: float
    low: float
    high: float


def rows(surface: Surface, values: Floats, owners: Integers) -> list[Row]:
    """Return what belongs to each owner (V,) of vertices with values (V,), in their order."""
    known = np.isfinite(values)
    result, row = np.unique(owners, return_inverse=True)
    areas = np.bincount(row, surface.areas)
    weight = np.bincount(row[known], surface.areas[known], len(result))
    sums = np.bincount(row[known], (surface.areas * values)[known], len(result))
    low, high = np.full(len(result), np.inf), np.full(len(result), -np.inf)
    np.minimum.at(low, row[known], values[known])
    np.maximum.at(high, row[known], values[known])
    return [Row(int(n), float(a), float(s / w), float(x), float(y)) if w > 0 else
            Row(int(n), float(a), np.nan, np.nan, np.nan)
            for n, a, s, w, x, y in zip(result, areas, sums, weight, low, high, strict=True)]


def molecular_surface(
    structure: Structure, *, atoms: Selection = "solute", kind: str = "molecular", probe: float = PROBE,
    spacing: float = 0.3, radii: Floats | None = None,
) -> Surface:
    """Return the surface of some atoms.

    Parameters
    ----------
    structure : Structure
    atoms : str or array
        Around which it is; see :func:`vmdpotential.molecule.selection.select`.
    kind : {"molecular", "accessible"}
    probe : float, A
    spacing : float, A
        Of the lattice that its triangles are found on; areas hardly depend on it.
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
    radii = van_der_waals(fill(structure).elements) if radii is None else np.asarray(radii, np.float64)
    numbers = _with_radii(select(structure, atoms), radii)
    positions, own = structure.positions[numbers], radii[numbers]
    accessible = kind == "accessible"
    union = region.Surface(positions, own, probe)
    field = _depth(region.Surface(positions, own + probe, 0.0) if accessible else union, spacing)
    vertices, triangles = _marching(field)
    progress.report("surface", 0.8)
    _, atoms_of = Near(positions, own, CELL).find(vertices)
    vertices = _outside(vertices, positions[atoms_of], own[atoms_of] + probe * accessible)
    of_atoms, points = np.zeros(len(numbers)), np.empty_like(positions)
    of_atoms[union.order], points[union.order] = areas(union, not accessible)
    missing = np.flatnonzero((of_atoms > 0) & (np.bincount(atoms_of, minlength=len(numbers)) == 0))
    if len(missing):  # slivers that no vertex is on
        np.add.at(of_atoms, atoms_of[_next_to(vertices, points[missing])], of_atoms[missing])
        of_atoms[missing] = 0
    return Surface(vertices, triangles, numbers[atoms_of], _spread(vertices, triangles, atoms_of, of_atoms), kind)


def _depth(surface: region.Surface, spacing: float, layers: int = 1) -> Grid:
    """Return how deep points are inside a surface, A, negative outside, on a lattice; exact in some layers of nodes.

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
    """Return how deep points are inside the molecular surface of chosen atoms, A, negative outside; for pictures.

    Beyond two spacings from the surface only the sign has a meaning.

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
    """Return vertices (V, 3), those inside of their spheres moved onto them: triangles cut corners."""
    away = vertices - centres
    length = np.maximum(np.linalg.norm(away, axis=1), 1e-9)
    result: Floats = centres + away * np.maximum(radii / length, 1.0)[:, None]
    return result


def _next_to(vertices: Floats, points: Floats) -> Integers:
    from scipy.spatial import cKDTree

    result: Integers = cKDTree(vertices).query(points, workers=-1)[1]
    return result


def _spread(vertices: Floats, triangles: Integers, atoms: Integers, areas: Floats) -> Floats:
    """Return areas (V,) of vertices of atoms (V,): those of the atoms (N,), by a third of the vertices' triangles."""
    each = np.linalg.norm(_crosses(vertices, triangles), axis=1) / 6
    thirds = np.bincount(triangles.ravel(), np.repeat(each, 3), len(vertices))
    of_atom = np.bincount(atoms, thirds, len(areas))
    result: Floats = thirds * (areas / np.maximum(of_atom, 1e-30))[atoms]
    return result


def _crosses(vertices: Floats, triangles: Integers) -> Floats:
    a, b, c = (vertices[triangles[:, n]] for n in range(3))
    return np.cross(b - a, c - a)


def _marching(field: Grid) -> tuple[Floats, Integers]:
    """Return vertices and triangles around where a field is positive."""
    vertices, triangles, _, _ = extras.load("skimage.measure", "surfaces", "surface").marching_cubes(field.values, 0.0)
    vertices = vertices.astype(np.float64) * field.lattice.spacing + field.lattice.origin
    triangles = triangles.astype(np.int64)
    a, b, c = (vertices[triangles[:, n]] for n in range(3))
    if np.einsum("ij,ij->", np.cross(a, b), c) < 0:  # six times the volume
        triangles = triangles[:, ::-1]
    return vertices, np.ascontiguousarray(triangles)
