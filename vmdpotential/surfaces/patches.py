"""Patches of a surface: connected areas where a potential is above a threshold, or below its negative.

Values are linear on each triangle, so that the boundary of a patch cuts triangles, and areas and integrals converge
with the square of the mesh's spacing. The areas of triangles are those of their vertices (:class:`.Surface`), which
include what the corners cut by triangles lack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import UsageError
from vmdpotential.surfaces import Surface

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Smallest area, A^2, of patches that have names in pictures.
MIN_NAMED = 30.0


@dataclass(frozen=True, eq=False)
class Patch:
    """A connected area of a surface on which a potential is above a threshold, or below its negative.

    Parameters
    ----------
    name : str
        Its sign and its number among those of this sign, the largest first, such as ``+1``.
    area : float, A^2
    integral : float
        Integral of the potential over the area, in the potential's unit times A^2.
    extreme : float
        Value farthest from 0.
    centre : (3,) float64, A
        Mean position by area.
    normal : (3,) float64
        Mean outward normal by area, of length 1.
    owners : (R,) int64
        Residues, or other parts of the molecule, that the area belongs to, those with the largest shares first.
    shares : (R,) float64
        Part of the patch's area that belongs to each.
    """

    name: str
    area: float
    integral: float
    extreme: float
    centre: Floats
    normal: Floats
    owners: Integers
    shares: Floats

    @property
    def mean(self) -> float:
        """Mean of the potential by area."""
        return self.integral / self.area


def find_patches(surface: Surface, values: Floats, threshold: float, owners: Integers) -> tuple[list[Patch], Integers]:
    """Return the patches of a surface, and the patch of each vertex.

    Parameters
    ----------
    surface : Surface
    values : (V,) float64
        The potential at the vertices; vertices where it is NaN belong to no patch.
    threshold : float
        In the unit of the values.
    owners : (V,) int64
        Residue, or other part of the molecule, that each vertex belongs to.

    Returns
    -------
    patches : list of Patch
        Positive ones, then negative ones, each from the largest area on.
    places : (V,) int64
        Index of each vertex's patch in the list; -1 for vertices in none.

    Raises
    ------
    UsageError
        If the threshold is not positive.

    Examples
    --------
    >>> import vmdpotential as vp
    >>> from vmdpotential.surfaces import molecular_surface
    >>> from vmdpotential.surfaces.patches import find_patches
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> grid = vp.potential_map(structure, atoms="protein", spacing=3.0)
    >>> made = molecular_surface(structure, atoms="protein", spacing=1.5)
    >>> values = made.sample(grid)
    >>> patches, places = find_patches(made, values, 100.0, structure.residue_of[made.atoms])
    >>> {patch.name[0] for patch in patches}
    {'+', '-'}
    """
    if not threshold > 0:
        raise UsageError("patches", "the threshold must be larger than 0", value=f"{threshold:g}")
    patches: list[Patch] = []
    places = np.full(len(values), -1)
    weights = areas_of_triangles(surface)
    for sign in (1, -1):
        found, chosen = _of_sign(surface, values, threshold, owners, weights, sign)
        places[chosen >= 0] = chosen[chosen >= 0] + len(patches)
        patches += found
    return patches, places


def areas_of_triangles(surface: Surface) -> Floats:
    """Return areas (T,), A^2, of triangles, to which the areas of the vertices are distributed."""
    flat = np.linalg.norm(surface.crosses, axis=1) / 2
    around = np.bincount(surface.triangles.ravel(), np.repeat(flat, 3), len(surface.vertices))
    ratios = surface.areas / np.maximum(around, 1e-30)
    areas: Floats = flat * ratios[surface.triangles].sum(1)
    return areas


def _of_sign(surface: Surface, values: Floats, threshold: float, owners: Integers, weights: Floats,
             sign: int) -> tuple[list[Patch], Integers]:
    """Return the patches of one sign, and the index (V,) of each vertex's patch, -1 for vertices in none."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    above = sign * values >= threshold
    is_known = np.isfinite(values)
    rows = np.flatnonzero(_at_any(above, surface.triangles))
    vertices, row = np.flatnonzero(above), np.cumsum(above) - 1
    ends = surface.triangles[rows]
    first, second = ends.ravel(), np.roll(ends, 1, 1).ravel()
    edges = (first < second) & above[first] & above[second]  # each is in two triangles, in opposite directions
    graph = coo_array((np.ones(edges.sum(), np.int8), (row[first[edges]], row[second[edges]])),
                      shape=(len(vertices), len(vertices)))
    _, labels = connected_components(graph, directed=False)
    # triangles with a vertex above, all of which are in the same patch; the highest vertex is first
    rows = rows[~_at_any(~is_known, surface.triangles[rows])]
    corners = surface.triangles[rows]
    corners = np.take_along_axis(corners, np.argsort(-sign * values[corners], axis=1), 1)
    heights = sign * values[corners]
    parts, integrals = _clipped(heights, threshold)
    label = labels[row[corners[:, 0]]]
    names = np.flatnonzero(np.bincount(label))  # of all but those without a triangle inside of the map
    number = np.full(labels.max(initial=0) + 1, -1)
    number[names] = np.arange(len(names))
    patch, patches_of_vertices = number[label], number[labels]
    areas, integrals = weights[rows] * parts, weights[rows] * sign * integrals
    area = np.bincount(patch, areas, len(names))
    # each triangle's part above is divided among its vertices above
    kept = above[corners]
    share = np.bincount(corners.ravel(), (kept * (areas / kept.sum(1))[:, None]).ravel(), len(values))[vertices]
    used = patches_of_vertices >= 0

    def means(of_vertices: Floats) -> Floats:
        """Return the means by area (P, 3) of what vertices have (V, 3)."""
        return np.stack([np.bincount(patches_of_vertices[used], (share * x[vertices])[used], len(names))
                         for x in of_vertices.T], 1) / area[:, None]

    centres, normals = means(surface.vertices), means(surface.normals)
    normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-30)[:, None]
    integral = np.bincount(patch, integrals, len(names))
    extremes = np.full(len(names), -np.inf)
    np.maximum.at(extremes, patch, heights[:, 0])
    shares = coo_array((areas, (patch, owners[corners[:, 0]])), shape=(len(names), owners.max(initial=0) + 1)).tocsr()
    ranks = np.argsort(-area, kind="stable")
    patches = []
    for rank, n in enumerate(ranks.tolist(), 1):
        part = slice(*shares.indptr[n:n + 2])
        first = np.argsort(-shares.data[part], kind="stable")
        patches.append(Patch(f"{'+' if sign > 0 else '-'}{rank}", float(area[n]), float(integral[n]),
                             float(sign * extremes[n]), centres[n], normals[n],
                             shares.indices[part][first].astype(np.int64), shares.data[part][first] / area[n]))
    ranked = np.full(len(names) + 1, -1)
    ranked[ranks] = np.arange(len(names))
    places = np.full(len(values), -1)
    places[vertices] = ranked[patches_of_vertices]
    return patches, places


def _at_any(chosen: NDArray[np.bool_], triangles: Integers) -> NDArray[np.bool_]:
    """Return whether any vertex of each triangle is chosen."""
    a, b, c = triangles.T
    found: NDArray[np.bool_] = chosen[a] | chosen[b] | chosen[c]
    return found


def _clipped(values: Floats, threshold: float) -> tuple[Floats, Floats]:
    """Return the part of each triangle (T,) with a linear function above a threshold, and the integral over that part.

    `values` (T, 3) at the corners decrease; areas of whole triangles are 1. One corner above the threshold cuts off a
    triangle similar to the half-plane's wedge; two leave the triangle without such a wedge.
    """
    high, middle, low = values.T
    one = middle < threshold
    tip = np.where(one, high, low)
    others = np.where(one, middle, high), np.where(one, low, middle)
    wedge = np.ones(len(values))
    for other in others:
        wedge *= np.where(tip == other, 1.0, (tip - threshold) / np.where(tip == other, 1.0, tip - other))
    inside = wedge * (tip + 2 * threshold) / 3
    whole = values.mean(1)
    all_above = low >= threshold
    parts = np.where(all_above, 1.0, np.where(one, wedge, 1 - wedge))
    return parts, np.where(all_above, whole, np.where(one, inside, whole - inside))


def patch_rows(patches: Sequence[Patch], names: Sequence[str]) -> list[dict[str, object]]:
    """Return one row of a table for each patch; `names` are those of the owners."""
    return [{"patch": patch.name, "area": patch.area, "integral": patch.integral, "mean": patch.mean,
             "extreme": patch.extreme, "centre": patch.centre.tolist(), "normal": patch.normal.tolist(),
             "residues": {names[n]: share for n, share in zip(patch.owners.tolist(), patch.shares.tolist(),
                                                               strict=True)}} for patch in patches]
