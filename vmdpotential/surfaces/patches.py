"""Patches of a surface: connected areas where a potential is above a threshold, or below its negative.

Values are linear on each triangle, so that the boundary of a patch cuts triangles, and areas and integrals converge
with the square of the mesh's spacing. The areas of triangles are those of their vertices (:class:`.Surface`), which
include what the corners cut by triangles lack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import UsageError
from vmdpotential.surfaces import Surface

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
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # triangles with a vertex in a patch of a sign; with steep values, those of both signs
    corners = np.ascontiguousarray(surface.triangles.T)
    rows = [np.flatnonzero(np.fmax.reduce(sign * values[corners]) >= threshold) for sign in (1, -1)]
    signs, chosen = np.repeat([1.0, -1.0], [len(each) for each in rows]), np.concatenate(rows)
    corners = corners.take(chosen, 1)
    heights = signs * values[corners]
    kept = heights >= threshold
    following = [1, 2, 0]  # each edge is in two triangles, in opposite directions
    edges = kept & kept[following] & (corners < corners[following])
    graph = coo_array((np.ones(edges.sum(), np.int8), (corners[edges], corners[following][edges])),
                      shape=(len(values), len(values)))
    _, labels = connected_components(graph, directed=False)
    parts, integrals = _clipped(heights, threshold)
    weights = areas_of_triangles(surface)[chosen]
    # not those outside of the map, or without area, such as next to a vertex at the threshold
    used = np.flatnonzero((weights * parts > 0) & np.isfinite(integrals))
    areas, integrals, signs = (each[used] for each in (weights * parts, weights * signs * integrals, signs))
    corners, heights, kept = corners.take(used, 1), heights.take(used, 1), kept.take(used, 1)
    highest = np.maximum.reduce(heights)
    top = np.where(heights[0] == highest, corners[0], np.where(heights[1] == highest, corners[1], corners[2]))
    label = labels[top]
    area = np.bincount(label, areas)
    found, sign_of = np.flatnonzero(area), np.zeros(len(area))
    sign_of[label] = signs
    found = found[np.lexsort((-area[found], -sign_of[found]))]
    numbers = np.full(len(values) + 1, -1)
    numbers[found] = np.arange(len(found))
    patch, places, area, count = numbers[label], numbers[labels], area[found], len(found)
    # each triangle's part above is divided among its vertices above
    share = np.bincount(corners.ravel(), (kept * (areas / np.add.reduce(kept))).ravel(), len(values))
    inside = np.flatnonzero(places >= 0)

    def means(of_vertices: Floats) -> Floats:
        """Return the means by area (P, 3) of what vertices have (V, 3)."""
        return np.stack([np.bincount(places[inside], share[inside] * x[inside], count) for x in of_vertices.T],
                        1) / area[:, None]

    centres, normals = means(surface.vertices), means(surface.normals)
    normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-30)[:, None]
    integral = np.bincount(patch, integrals, count)
    extremes = np.full(count, -np.inf)
    np.maximum.at(extremes, patch, highest)
    shares = coo_array((areas, (patch, owners[top])), shape=(count, owners.max(initial=0) + 1)).tocsr()
    positive = int((sign_of[found] > 0).sum())
    patches = []
    for n in range(count):
        part = slice(*shares.indptr[n:n + 2])
        first = np.argsort(-shares.data[part], kind="stable")
        sign, number = ("+", n + 1) if n < positive else ("-", n + 1 - positive)
        patches.append(Patch(f"{sign}{number}", float(area[n]), float(integral[n]),
                             float(sign_of[found[n]] * extremes[n]), centres[n], normals[n],
                             shares.indices[part][first].astype(np.int64), shares.data[part][first] / area[n]))
    return patches, places


def areas_of_triangles(surface: Surface) -> Floats:
    """Return areas (T,), A^2, of triangles, to which the areas of the vertices are distributed."""
    flat = np.linalg.norm(surface.crosses, axis=1) / 2
    around = np.bincount(surface.triangles.ravel(), np.repeat(flat, 3), len(surface.vertices))
    a, b, c = (surface.areas / np.maximum(around, 1e-30))[surface.triangles.T]
    areas: Floats = flat * (a + b + c)
    return areas


def _clipped(values: Floats, threshold: float) -> tuple[Floats, Floats]:
    """Return the part of each triangle (T,) with a linear function above a threshold, and the integral over that part.

    `values` (3, T) are those at the corners, one of which is above; areas of whole triangles are 1. One corner above
    the threshold cuts off a triangle similar to the half-plane's wedge; two leave the triangle without such a wedge.
    """
    a, b, c = values
    less, more = np.minimum(a, b), np.maximum(a, b)
    low, middle, high = np.minimum(less, c), np.maximum(less, np.minimum(more, c)), np.maximum(more, c)
    one = middle < threshold
    tip = np.where(one, high, low)
    others = np.where(one, middle, high), np.where(one, low, middle)
    wedge = np.ones(len(tip))
    for other in others:
        wedge *= np.where(tip == other, 1.0, (tip - threshold) / np.where(tip == other, 1.0, tip - other))
    inside = wedge * (tip + 2 * threshold) / 3
    whole = (a + b + c) / 3
    all_above = low >= threshold
    parts = np.where(all_above, 1.0, np.where(one, wedge, 1 - wedge))
    return parts, np.where(all_above, whole, np.where(one, inside, whole - inside))


def patch_rows(patches: Sequence[Patch], names: Sequence[str]) -> list[dict[str, object]]:
    """Return one row of a table for each patch; `names` are those of the owners."""
    return [{"patch": patch.name, "area": patch.area, "integral": patch.integral, "mean": patch.mean,
             "extreme": patch.extreme, "centre": patch.centre.tolist(), "normal": patch.normal.tolist(),
             "residues": {names[n]: share for n, share in zip(patch.owners.tolist(), patch.shares.tolist(),
                                                               strict=True)}} for patch in patches]
