"""Surfaces with values of the program: patches of the molecular surface, and faces of two molecules, turned apart."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import BackendError, UsageError
from vmdpotential.figures.colours import ISOVALUE_OF_UNIT, reading_distance
from vmdpotential.grid.lattice import Grid
from vmdpotential.molecule.selection import is_ion, is_water
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces import Surface, molecular_surface
from vmdpotential.surfaces.drawn import patch_labels
from vmdpotential.surfaces.patches import MIN_NAMED, Patch, find_patches

from .document import Faces
from .packing import packed

#: Number of atoms above which the triangles of the surface become larger.
ATOMS = 10_000

#: Unit of the positions of vertices in a page, A, and residues of a patch that a page names.
STEP, NAMED = 0.01, 3

log = logging.getLogger(__name__)


def colours_surface(grids: Sequence[Grid]) -> bool:
    """Return whether a map colours the surface; orbitals and electron densities have isosurfaces only."""
    return any(grid.unit not in ISOVALUE_OF_UNIT for grid in grids)


def dry_part(chosen: Structure) -> Structure:
    """Return the atoms that the molecular surface is around: no waters and ions."""
    return chosen.take(~is_water(chosen) & ~is_ion(chosen))


def coloured_surface(dry: Structure, grids: Sequence[Grid], cavities: bool, patches: float | None) -> Surface | None:
    """Return the molecular surface of atoms; None if nothing colours it, or without the package that makes surfaces.

    Raises
    ------
    UsageError
        If there are to be patches, and no map or no atom for a surface.
    BackendError
        If there are to be patches, without the package that makes surfaces.
    """
    if patches is not None and not colours_surface(grids):
        raise UsageError("patches", "there is no map of a potential to colour the surface",
                         "give one, or compute it by {medium water}")
    if patches is not None and not len(dry):
        raise UsageError("patches", "the shown atoms are water and ions, without a surface",
                         "choose others by {atoms}, or leave it out")
    if not colours_surface(grids) or not len(dry):
        return None
    try:
        return molecular_surface(dry, atoms="all", spacing=max(0.5, (len(dry) / ATOMS) ** 0.5 * 0.5), cavities=cavities)
    except BackendError as error:
        if patches is not None:
            raise
        log.warning("the scene has no molecular surface: %s", error.text)
        return None


def patches_of(surface: Surface, dry: Structure, grid: Grid, threshold: float) -> tuple[list[Patch], NDArray[np.int64]]:
    """Return the patches of a map on a surface by residue, and the patch (V,) of each vertex, -1 for none."""
    values = surface.sample(grid, reading_distance(grid))
    return find_patches(surface, values, threshold, dry.residue_of[surface.atoms])


def patches_content(shown: Structure, grids: Sequence[Grid], threshold: float, cavities: bool) -> dict[str, Any]:
    """Return the content of the patches of each map that colours the surface."""
    dry = dry_part(shown)
    surface = coloured_surface(dry, grids, cavities, threshold)
    assert surface is not None  # else an error is raised
    residues = shown.residue_of[~is_water(shown) & ~is_ion(shown)][dry.residue_starts[:-1]]
    maps: list[dict[str, Any] | None] = []
    for grid in grids:
        if not colours_surface([grid]):
            maps.append(None)
            continue
        found, places = patches_of(surface, dry, grid, threshold)
        labels = dict(patch_labels(surface, found, places, MIN_NAMED))
        maps.append({"places": packed(places.astype("<i4")), "rows": [
            {"name": patch.name, "area": patch.area, "integral": patch.integral, "mean": patch.mean,
             "normal": patch.normal.tolist(), "label": labels[patch.name].tolist() if patch.name in labels else None,
             "residues": list(zip(residues[patch.owners[:NAMED]].tolist(), patch.shares[:NAMED].tolist(), strict=True))}
            for patch in found]})
    return {"threshold": threshold, "least": MIN_NAMED, "mesh": mesh_content(surface), "maps": maps}


def face_content(faces: Faces) -> dict[str, Any]:
    """Return faces for a page."""
    drawn = faces.drawn
    return {"title": faces.title, "text": faces.text, "unit": drawn.unit, "meaning": drawn.meaning,
            "range": float(np.abs(drawn.span).max()), "mesh": mesh_content(drawn.surface),
            "values": packed(drawn.values.astype("<f4")), "rows": list(map(dict, faces.rows))}


def mesh_content(surface: Surface) -> dict[str, Any]:
    """Return vertices in steps, and the corners of triangles, as differences from the preceding ones."""
    vertices = np.rint(surface.vertices.T / STEP)
    return {"step": STEP, "vertices": packed(np.diff(vertices, axis=1, prepend=0).astype("<i4")),
            "triangles": packed(np.diff(surface.triangles.ravel(), prepend=0).astype("<i4"))}
