"""Steps of multigrid for a plane of nodes, in vectors; :mod:`.nodes` has the same steps node by node.

The inner rows of a plane are processed as one run of consecutive nodes, including the face nodes between rows. Colours
alternate along the whole run if rows have an odd number of nodes. The last vector may extend into the last row, which
is a face.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit

from vmdpotential.engines.cpu.continuum.nodes import (
    FAST,
    F,
    apply_nodes,
    exact_residual_nodes,
    prolong_nodes,
    residual_nodes,
    smooth_nodes,
    start_nodes,
)
from vmdpotential.engines.cpu.continuum.stencil import (
    DOUBLES,
    NODES,
    TOGETHER,
    apply,
    exact_residual,
    interpolate,
    relax,
    relax_together,
    residual,
    start,
)


@njit(**FAST)
def run_of(i, shape):
    """Return the first node of the inner rows of a plane, and the first node after them."""
    _, ny, nz = shape
    return (i * ny + 1) * nz, (i * ny + ny - 1) * nz


@njit(**FAST)
def clear_faces(i, values):
    """Reset the faces of a plane, which vectors have overwritten, to 0."""
    _, ny, nz = values.shape
    for j in range(1, ny - 1):
        values[i, j, 0] = values[i, j, nz - 1] = F(0)
    for k in range(NODES):
        values[i, ny - 1, k] = F(0)


@njit(**FAST)
def start_plane(i, u, f, d):
    """Solve for the nodes of colour 0 in a plane where all others are 0."""
    nz = u.shape[2]
    if nz < NODES or nz % 2 == 0:
        start_nodes(i, u, f, d)
        return
    first, last = run_of(i, u.shape)
    for at in range(first + (i + 1) % 2, last, NODES):
        start(u, f, d, at)


@njit(**FAST)
def prolong_plane(i, coarse, u):
    """Add the values of the coarse level, interpolated trilinearly, to the nodes of colour 0 in a plane.

    The next step solves for the nodes of colour 1, from those of colour 0 alone.
    """
    _, ny, nz = u.shape
    _, my, mz = coarse.shape
    a, b = i // 2 * my, (i + 1) // 2 * my
    for j in range(1, ny - 1):
        c, e = j // 2, (j + 1) // 2
        odd = (i + j) % 2
        n = 1 - odd
        while 2 * n + odd + NODES < nz:
            interpolate(coarse, (a + c) * mz + n, (a + e) * mz + n, (b + c) * mz + n, (b + e) * mz + n, odd, u,
                        (i * ny + j) * nz + 2 * n + odd)
            n += NODES // 2
        prolong_nodes(i, j, n, coarse, u)


@njit(**FAST)
def smooth_plane(i, colour, u, f, ex, ey, ez, d):
    """Solve for the nodes of a colour in a plane."""
    _, ny, nz = u.shape
    if nz < NODES or nz % 2 == 0:
        smooth_nodes(i, colour, u, f, ex, ey, ez, d)
        return
    first, last = run_of(i, u.shape)
    first += (i + 1 + colour) % 2
    most = first + (last - first) // (TOGETHER * NODES) * TOGETHER * NODES
    for at in range(first, most, TOGETHER * NODES):
        relax_together(u, f, ex, ey, ez, d, at, ny * nz, nz)
    for at in range(most, last, NODES):
        relax(u, f, ex, ey, ez, d, at, ny * nz, nz)


@njit(**FAST)
def residual_plane(i, u, f, ex, ey, ez, d, out):
    """Write the residual of a plane just after solving for the nodes of colour 1, where it is 0."""
    _, ny, nz = u.shape
    if nz < NODES or nz % 2 == 0:
        residual_nodes(i, u, f, ex, ey, ez, d, out)
        return
    first, last = run_of(i, u.shape)
    for at in range(first + (i + 1) % 2, last, NODES):
        residual(u, f, ex, ey, ez, d, out, at, ny * nz, nz, at - i * ny * nz)


@njit(**FAST)
def apply_plane(i, p, ex, ey, ez, k2, q):
    """Write the operator applied to p in a plane to q; return the sum of p q in it."""
    _, ny, nz = p.shape
    if nz < NODES:
        return apply_nodes(i, p, ex, ey, ez, k2, q)
    sums, total = np.zeros(NODES, F), 0.0
    first, last = run_of(i, p.shape)
    for at in range(first, last, NODES):
        apply(p, ex, ey, ez, k2, q, sums, at, ny * nz, nz)
    clear_faces(i, q)
    for n in range(NODES):
        total += sums[n]
    return total


@njit(**FAST)
def exact_residual_plane(i, w, ex, ey, ez, k2, ions, out):
    """Write the residual of w without its sources, summed in float64, to a plane of out."""
    _, ny, nz = w.shape
    if nz < NODES or len(ions):
        exact_residual_nodes(i, w, ex, ey, ez, k2, ions, out)
        return
    first, last = run_of(i, w.shape)
    for at in range(first, last, DOUBLES):
        exact_residual(w, ex, ey, ez, k2, out, at, ny * nz, nz)
    clear_faces(i, out)
