"""The faces of two molecules that touch, the potentials of both on them, and their complementarity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import UsageError
from vmdpotential.maps.medium import Medium
from vmdpotential.maps.options import Engine, MethodOptions, Spacing
from vmdpotential.maps.solute import in_continuum
from vmdpotential.molecule.elements import fill_elements, van_der_waals_radii
from vmdpotential.molecule.selection import Mask
from vmdpotential.molecule.structure import Structure
from vmdpotential.points import potential_at
from vmdpotential.surfaces import Surface, molecular_surface
from vmdpotential.surfaces.near import NearestSphere

from .correlation import Agreement, FaceSample, agreements, opposition, weighted_sums

Floats = NDArray[np.float64]

#: Edge of the cells in which the nearest atoms are searched, A.
_CELL = 3.0

#: The coarser lattice for the error of the solution: its spacing over that of the fine one, and the error of values on
#: the fine one over the difference of both, for which the second order would give 1/3. The number of vertices of each
#: face at which they are compared, about.
COARSER, OF_DIFFERENCE, COMPARED = 2.0, 0.5, 2000


@dataclass(frozen=True, eq=False)
class ContactFace:
    """The part of a molecule's surface that its partner hides from the water, and both potentials on it.

    Parameters
    ----------
    surface : Surface
        The whole surface of the molecule.
    buried : (V,) bool
        Its vertices on the face.
    own, partner : (F,) float64, kT/e
        Potentials of the charges of the molecule and of its partner, at the vertices of the face.
    """

    surface: Surface
    buried: NDArray[np.bool_]
    own: Floats
    partner: Floats

    @property
    def places(self) -> Floats:
        """(F, 3) positions of the vertices, A."""
        return self.surface.vertices[self.buried]

    @property
    def areas(self) -> Floats:
        """(F,) areas of the vertices, A^2."""
        return self.surface.areas[self.buried]

    @property
    def normals(self) -> Floats:
        """(F, 3) outward normals."""
        return self.surface.normals[self.buried]

    def of_vertices(self, values: Floats) -> Floats:
        """Return values (F,) of the face for all vertices (V,) of the surface; NaN outside of the face."""
        result = np.full(len(self.buried), np.nan)
        result[self.buried] = values
        return result


@dataclass(frozen=True, eq=False)
class Interface:
    """Two faces, and the complementarity of the potentials on them.

    Parameters
    ----------
    structure : Structure
        The atoms, with whole molecules.
    faces : (ContactFace, ContactFace)
    axes : (3, 3) float64
        Two directions in the plane of the interface, its long one first, and its normal from the first molecule to the
        second.
    pearson, spearman : list of Agreement
        Of each face, and last the means of both.
    grid_errors : list of float
        Of the three values by Pearson's coefficient, from the solution on a coarser lattice.
    """

    structure: Structure
    faces: tuple[ContactFace, ContactFace]
    axes: Floats
    pearson: Sequence[Agreement]
    spearman: Sequence[Agreement]
    grid_errors: Sequence[float]

    @property
    def area(self) -> float:
        """Area of both faces, A^2."""
        return float(sum(face.areas.sum() for face in self.faces))


def find_interface(structure: Structure, first: Mask, second: Mask, solution: MethodOptions, *, spacing: Spacing = 0.5,
                   probe: float = 1.4, mesh_spacing: float = 0.4, engine: Engine = "auto") -> Interface:
    """Return the interface of two parts of a structure in water, by the Poisson-Boltzmann equation.

    Parameters
    ----------
    structure : Structure
        With charges.
    first, second : (N,) bool
        Atoms of both parts; others are left out.
    solution : MethodOptions
        Salt, permittivities, temperature and radii.
    spacing : float, A
        Spacing of the lattice of the solution.
    probe : float, A
        Radius of the probe that rolls over the surfaces.
    mesh_spacing : float, A
        Spacing of the lattice on which the surfaces are made.
    engine : str

    Raises
    ------
    UsageError
        If the parts share atoms or do not touch.
    InputError
        For atoms without charges or radii.
    TaskError
        If the solution does not converge.
    MemoryPlanError
        If a lattice does not fit into memory.
    """
    if (first & second).any():
        raise UsageError("between", f"{int((first & second).sum())} atoms are in both selections",
                         "choose parts that share no atoms")
    both = first | second
    structure = in_continuum(structure, both, Medium.continuum())[0]
    radii = van_der_waals_radii(fill_elements(structure).elements)
    surfaces, buried = [], []
    for part, other in ((first, second), (second, first)):
        surface = molecular_surface(structure, atoms=part, probe=probe, spacing=mesh_spacing, cavities=False)
        surfaces.append(surface)
        buried.append(hidden_vertices(surface, structure.positions[other], radii[other], probe))
    if not all(part.any() for part in buried):
        raise UsageError("between", "the two selections do not touch: no part of the surface of one is hidden by the "
                         "other", "choose two molecules that are next to each other")

    counts = [int(part.sum()) for part in buried]
    points = np.concatenate([made.vertices[part] for made, part in zip(surfaces, buried, strict=True)])
    charges = structure.known_charges

    def potentials(step: float, places: Floats) -> list[Floats]:
        """Return the potentials of the charges of each part at points of both faces."""
        return [potential_at(replace(structure, charges=np.where(part, charges, 0.0)), places, method="pb",
                             boundary="open", atoms=both, spacing=step, screened=solution.screened,
                             temperature=solution.temperature, dielectric=solution.dielectric,
                             parameters=solution.parameters, radii=solution.radii, engine=engine)
                for part in (first, second)]

    a, b = potentials(spacing, points)
    faces = (ContactFace(surfaces[0], buried[0], a[: counts[0]], b[: counts[0]]),
             ContactFace(surfaces[1], buried[1], b[counts[0] :], a[counts[0] :]))
    # some vertices are enough for a difference
    rows = [np.arange(0, count, 1 + count // COMPARED) for count in counts]
    some = np.concatenate([rows[0], counts[0] + rows[1]])
    coarse = potentials(COARSER * spacing, points[some])
    changes = []
    for n, (face, at) in enumerate(zip(faces, rows, strict=True)):
        at_coarse = slice(0, len(rows[0])) if n == 0 else slice(len(rows[0]), None)
        changes.append(abs(face_value(face.own[at], face.partner[at], face.areas[at])
                           - face_value(coarse[n][at_coarse], coarse[1 - n][at_coarse], face.areas[at])))
    axes = plane_axes(faces)
    pearson, spearman = agreements([FaceSample(face.places @ axes[:2].T, face.areas, face.own, face.partner)
                                    for face in faces])
    errors = [OF_DIFFERENCE * change for change in (*changes, float(np.mean(changes)))]
    return Interface(structure, faces, axes, pearson, spearman, errors)


def face_value(own: Floats, partner: Floats, areas: Floats) -> float:
    """Return minus Pearson's correlation coefficient of two potentials (F,), weighted by area."""
    own, partner = (value - np.average(value, weights=areas) for value in (own, partner))
    return float(opposition(weighted_sums(own, partner, areas, np.zeros(len(own), np.int64), 1))[0])


def hidden_vertices(surface: Surface, positions: Floats, radii: Floats, probe: float) -> NDArray[np.bool_]:
    """Return which vertices (V,) of a surface a probe cannot touch because of other atoms.

    The probe that touches the surface at a vertex is on its normal, and would overlap with one of them.
    """
    known = radii > 0
    centres = surface.vertices + probe * surface.normals
    distances, _ = NearestSphere(positions[known], radii[known], _CELL).find(centres, probe)
    hidden: NDArray[np.bool_] = distances < probe
    return hidden


def plane_axes(faces: Sequence[ContactFace]) -> Floats:
    """Return the directions (3, 3) of an interface: its longest, that across, and its normal from first to second.

    The normal is the mean of the faces' normals, with the sign of that of the first.
    """
    first, second = (face.areas @ face.normals / face.areas.sum() for face in faces)
    normal = first - second
    length = float(np.linalg.norm(normal))
    if length < 1e-6:  # one molecule surrounds the other
        normal = faces[1].places.mean(0) - faces[0].places.mean(0)
        length = float(np.linalg.norm(normal))
    normal = normal / length if length > 1e-9 else np.array([0.0, 0.0, 1.0])
    places = np.concatenate([face.places for face in faces])
    areas = np.concatenate([face.areas for face in faces])
    flat = places - np.average(places, axis=0, weights=areas)
    flat -= np.outer(flat @ normal, normal)
    along = np.linalg.eigh((areas[:, None] * flat).T @ flat)[1][:, -1]
    along -= (along @ normal) * normal
    along /= np.linalg.norm(along)
    across = np.cross(normal, along)
    # the same signs for both orders of the molecules
    return np.array([*(axis * np.sign(axis[np.argmax(np.abs(axis))]) for axis in (along, across)), normal])
