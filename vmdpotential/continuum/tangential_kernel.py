"""Kernels for the flow along the surface of a molecule, on edges of the lattice next to the surface.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}


@njit(**PLAIN_CODE)
def next_to(within, margin, near, first_plane, last_plane):
    """Mark the outer nodes of some planes that are next to inner ones, except within `margin` nodes of the faces."""
    nx, ny, nz = within.shape
    for i in range(max(first_plane, margin), min(last_plane, nx - margin)):
        for j in range(margin, ny - margin):
            row, here = near[i, j], within[i, j]
            a, b, c, d = within[i - 1, j], within[i + 1, j], within[i, j - 1], within[i, j + 1]
            for k in range(margin, nz - margin):
                row[k] = (a[k] | b[k] | c[k] | d[k] | here[k - 1] | here[k + 1]) & ~here[k]


@njit(**PLAIN_CODE)
def edges(nodes, near, distances, strides, spacing, x, y, z, own, highest, first_node, last_node, ends, axes, vectors,
          factors):
    """Write the edges of some nodes next to the surface whose flow along it needs a correction; return their number.

    Parameters
    ----------
    nodes : (N,)
        Nodes next to the surface, as indices of flat arrays.
    near, distances, x, y, z : flat
        Whether a node is one of `nodes`, its distance to the surface, and the conductances of the edges from it.
    strides, spacing, own : (3,)
        Steps between nodes along the axes, and conductances inside.
    highest : float
        Largest number of cells of a column.
    first_node, last_node
        The range of nodes.
    ends, axes, vectors, factors : (E, 2), (E,), (E, 3), (E,)
        The nodes and the axis of each edge, the normal of the surface, and the missing conductance of the edge.
    """
    result = 0
    normal = np.empty(3)
    for n in range(first_node, last_node):
        for axis in range(3):
            stride = strides[axis]
            for p in (nodes[n], nodes[n] - stride):
                q = p + stride
                # an edge between two of the nodes is processed with the first of them
                if distances[p] < 0 or distances[q] < 0 or (p != nodes[n] and near[p]):
                    continue
                for d in range(3):
                    s, h = strides[d], 2 * spacing[d]
                    normal[d] = ((np.float64(distances[p + s]) - distances[p - s]) / h
                                 + (np.float64(distances[q + s]) - distances[q - s]) / h)
                length = max(math.sqrt(normal[0] ** 2 + normal[1] ** 2 + normal[2] ** 2), 1e-9)
                column = 0
                for d in range(3):
                    normal[d] /= length
                    if abs(normal[d]) > abs(normal[column]):
                        column = d
                if column == axis:
                    continue
                step = -strides[column] if normal[column] > 0 else strides[column]
                cut, depths = False, 0.0
                for end in (p, q):
                    here, below = distances[end], distances[end + step]
                    deeper = distances[end + 2 * step]
                    if below < 0:
                        cut = True
                        depths += here / max(here - below, np.float32(1e-9))
                    elif deeper < 0:
                        depths += 1 + below / max(below - deeper, np.float32(1e-9))
                    else:
                        depths += 2.0
                if not cut:
                    continue
                conductance = x[p] if axis == 0 else (y[p] if axis == 1 else z[p])
                ends[result, 0], ends[result, 1], axes[result] = p, q, axis
                for d in range(3):
                    vectors[result, d] = normal[d]
                factors[result] = (conductance - own[axis]) * (min(0.5 + 0.5 * depths, highest) - 1)
                result += 1
    return result


@njit(**PLAIN_CODE)
def outer_slope(values, within, node, stride, spacing):
    """Return the slope along an axis at an outer node, the mean over its neighbours along the axis that are outside."""
    result, sides = 0.0, 0
    if not within[node + stride]:
        result += (np.float64(values[node + stride]) - values[node]) / spacing
        sides += 1
    if not within[node - stride]:
        result += (np.float64(values[node]) - values[node - stride]) / spacing
        sides += 1
    return result / max(sides, 1)


@njit(**PLAIN_CODE)
def flows(values, within, strides, spacing, ends, axes, vectors, factors, out, first_edge, last_edge):
    """Write to `out` (E,) the flow of a solution into the first node of edges from :func:`edges`."""
    for e in range(first_edge, last_edge):
        p, q, axis = ends[e, 0], ends[e, 1], axes[e]
        along = (np.float64(values[q]) - values[p]) / spacing[axis]
        across = vectors[e, axis] * along
        for d in range(3):
            if d != axis:
                across += vectors[e, d] * 0.5 * (outer_slope(values, within, p, strides[d], spacing[d])
                                                 + outer_slope(values, within, q, strides[d], spacing[d]))
        out[e] = factors[e] * spacing[axis] * (along - across * vectors[e, axis])
