"""Triangles of surfaces: marching cubes, normals, and how the areas of atoms are divided among vertices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vmdpotential import extras
from vmdpotential.arrays import Floats, Integers
from vmdpotential.grid.lattice import Grid


def spread_areas(vertices: Floats, triangles: Integers, atoms: Integers, areas: Floats) -> Floats:
    """Return areas (V,) of vertices: each atom's area (N,), divided in proportion to the triangles at its vertices."""
    each = np.linalg.norm(triangle_normals(vertices, triangles), axis=1) / 6
    thirds = np.bincount(triangles.ravel(), np.repeat(each, 3), len(vertices))
    of_atom = np.bincount(atoms, thirds, len(areas))
    result: Floats = thirds * (areas / np.maximum(of_atom, 1e-30))[atoms]
    return result


def triangle_normals(vertices: Floats, triangles: Integers) -> Floats:
    """Return normals (T, 3) of triangles, with the length of twice their area."""
    corners = np.ascontiguousarray(vertices.T)  # by columns, three times as fast as numpy's cross
    a, b, c = (corners.take(rows, 1) for rows in np.ascontiguousarray(triangles.T))
    (bx, by, bz), (cx, cy, cz) = b - a, c - a
    return np.stack([by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx], 1)


def marching_triangles(fields: Sequence[Grid]) -> tuple[Floats, Integers]:
    """Return vertices and triangles of surfaces between positive and negative values of fields.

    The triangles are counterclockwise as seen from negative values.
    """
    marching_cubes = extras.load_optional("skimage.measure", "surfaces", "surface").marching_cubes
    vertices, triangles, count = [np.zeros((0, 3))], [np.zeros((0, 3), np.int64)], 0
    for grid in fields:
        if grid.values.min() >= 0:
            continue
        places, corners, _, _ = marching_cubes(grid.values, 0.0, gradient_direction="ascent", mask=_cut(grid.values))
        vertices.append(places.astype(np.float64) * grid.lattice.spacing + grid.lattice.origin)
        triangles.append(corners.astype(np.int64) + count)
        count += len(places)
    return np.concatenate(vertices), np.concatenate(triangles)


def _cut(values: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return at the last corner of each cube of nodes whether its values have both signs; False at other nodes."""
    corners = (values > 0).view(np.uint8)  # how many of a cube's 8 corners are positive
    corners = corners[1:] + corners[:-1]
    corners = corners[:, 1:] + corners[:, :-1]
    corners = corners[:, :, 1:] + corners[:, :, :-1]
    result = np.zeros(values.shape, np.bool_)
    result[1:, 1:, 1:] = corners - np.uint8(1) < 7  # neither 0 nor 8
    return result
