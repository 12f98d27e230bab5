"""The faces of two molecules that touch: the parts of their surfaces that the other one hides from the water."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import UsageError
from vmdpotential.molecule.elements import fill_elements, van_der_waals_radii
from vmdpotential.molecule.selection import Mask
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces import MESH_SPACING, PROBE_RADIUS, SURFACE_KINDS, Surface, molecular_surface
from vmdpotential.surfaces.near import NearestSphere


@dataclass(frozen=True, eq=False)
class BuriedFace:
    """The part of a molecule's surface that its partner hides from the water.

    Parameters
    ----------
    surface : Surface
        The whole surface of the molecule.
    buried : (V,) bool
        Its vertices on the face.
    """

    surface: Surface
    buried: NDArray[np.bool_]

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


def find_faces(structure: Structure, first: Mask, second: Mask, *, kind: str = "molecular",
               probe: float = PROBE_RADIUS, spacing: float = MESH_SPACING) -> tuple[BuriedFace, BuriedFace]:
    """Return the faces of two parts of a structure, without cavities.

    Parameters
    ----------
    structure : Structure
    first, second : (N,) bool
        Atoms of both parts.
    kind : str
        One of :data:`vmdpotential.surfaces.SURFACE_KINDS`.
    probe : float, A
        Radius of the probe that rolls over the surfaces.
    spacing : float, A
        Spacing of the lattice on which the surfaces are made.

    Raises
    ------
    UsageError
        If the parts share atoms or do not touch.
    InputError
        For atoms without elements.
    """
    if (first & second).any():
        raise UsageError("between", f"{int((first & second).sum())} atoms are in both selections",
                         "choose parts that share no atoms")
    radii = van_der_waals_radii(fill_elements(structure).elements)
    faces = []
    for part, other in ((first, second), (second, first)):
        surface = molecular_surface(structure, atoms=part, kind=kind, probe=probe, spacing=spacing, cavities=False)
        faces.append(BuriedFace(surface, hidden_vertices(surface, structure.positions[other], radii[other], probe)))
    if not all(face.buried.any() for face in faces):
        raise UsageError("between", "the two selections do not touch: no part of the surface of one is hidden by the "
                         "other", "choose two molecules that are next to each other")
    return faces[0], faces[1]


def hidden_vertices(surface: Surface, positions: Floats, radii: Floats, probe: float) -> NDArray[np.bool_]:
    """Return which vertices (V,) of a surface a probe cannot touch because of other atoms.

    The centre of the probe that touches a molecular surface at a vertex is on its normal, that of an accessible surface
    is the vertex; there the probe would overlap with one of the atoms.
    """
    known = radii > 0
    centres = surface.vertices + (probe * surface.normals if surface.kind == SURFACE_KINDS[0] else 0.0)
    distances, _ = NearestSphere(positions[known], radii[known]).find(centres, probe)
    hidden: NDArray[np.bool_] = distances < probe
    return hidden


def interface_axes(faces: Sequence[BuriedFace]) -> Floats:
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


def join_surfaces(surfaces: Sequence[Surface]) -> Surface:
    """Return several surfaces as one."""
    starts = np.cumsum([0, *(len(surface.vertices) for surface in surfaces)])

    def joined(name: str) -> Any:
        return np.concatenate([getattr(surface, name) for surface in surfaces])

    return replace(surfaces[0], vertices=joined("vertices"), atoms=joined("atoms"), areas=joined("areas"),
                   cavities=joined("cavities"), triangles=np.concatenate(
                       [surface.triangles + start for surface, start in zip(surfaces, starts, strict=False)]))
