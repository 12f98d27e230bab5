"""Steps of multigrid for a plane of nodes, node by node.

A node has colour 0 if the sum of its three indices is even, otherwise colour 1.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

FAST = {"fastmath": {"contract", "reassoc", "nsz", "arcp"}, "error_model": "numpy", "boundscheck": False, "nogil": True,
        "no_cfunc_wrapper": True}

F = np.float32


@njit(**FAST)
def around(u, x, y, z, at, sx, sy):
    """Return the sum over neighbours of conductance times potential; sx and sy are the strides along x and y."""
    return (x[at] * u[at + sx] + x[at - sx] * u[at - sx] + y[at] * u[at + sy] + y[at - sy] * u[at - sy]
            + z[at] * u[at + 1] + z[at - 1] * u[at - 1])


@njit(**FAST)
def smooth_nodes(i, colour, u, f, ex, ey, ez, d):
    """Do what :func:`smooth_plane` does, node by node."""
    _, ny, nz = u.shape
    u, f, x, y, z, d = u.reshape(-1), f.reshape(-1), ex.reshape(-1), ey.reshape(-1), ez.reshape(-1), d.reshape(-1)
    for j in range(1, ny - 1):
        row = (i * ny + j) * nz
        for at in range(row + 1 + (i + j + 1 + colour) % 2, row + nz - 1, 2):
            u[at] = (f[at] + around(u, x, y, z, at, ny * nz, nz)) * d[at]


@njit(**FAST)
def residual_nodes(i, u, f, ex, ey, ez, d, out):
    """Do what :func:`residual_plane` does, node by node."""
    _, ny, nz = u.shape
    u, f, x, y, z, d = u.reshape(-1), f.reshape(-1), ex.reshape(-1), ey.reshape(-1), ez.reshape(-1), d.reshape(-1)
    for j in range(1, ny - 1):
        row = (i * ny + j) * nz
        for k in range(1, nz - 1):
            at = row + k
            out[j, k] = F(0) if (i + j + k) % 2 else f[at] + around(u, x, y, z, at, ny * nz, nz) - u[at] / d[at]


@njit(**FAST)
def apply_nodes(i, p, ex, ey, ez, k2, q):
    """Do what :func:`apply_plane` does, node by node."""
    _, ny, nz = p.shape
    sx, total = ny * nz, 0.0
    p, x, y, z, k2, q = p.reshape(-1), ex.reshape(-1), ey.reshape(-1), ez.reshape(-1), k2.reshape(-1), q.reshape(-1)
    for j in range(1, ny - 1):
        row = (i * ny + j) * nz
        for at in range(row + 1, row + nz - 1):
            c = p[at]
            q[at] = (x[at] * (c - p[at + sx]) + x[at - sx] * (c - p[at - sx]) + y[at] * (c - p[at + nz])
                     + y[at - nz] * (c - p[at - nz]) + z[at] * (c - p[at + 1]) + z[at - 1] * (c - p[at - 1])
                     + k2[at] * c)
            total += q[at] * c
    return total


@njit(error_model="numpy", boundscheck=False, nogil=True, no_cfunc_wrapper=True)
def exact_residual_nodes(i, w, ex, ey, ez, k2, ions, out):
    """Write the residual of w without its sources, summed in float64, to a plane of out."""
    _, ny, nz = w.shape
    for j in range(1, ny - 1):
        for k in range(1, nz - 1):
            c = np.float64(w[i, j, k])
            total = (ex[i, j, k] * (w[i + 1, j, k] - c) + ex[i - 1, j, k] * (w[i - 1, j, k] - c)
                     + ey[i, j, k] * (w[i, j + 1, k] - c) + ey[i, j - 1, k] * (w[i, j - 1, k] - c)
                     + ez[i, j, k] * (w[i, j, k + 1] - c) + ez[i, j, k - 1] * (w[i, j, k - 1] - c))
            if len(ions):
                if k2[i, j, k] > 0:
                    charge = 0.0
                    for n in range(len(ions)):
                        charge -= ions[n, 1] / ions[n, 0] * math.exp(min(50.0, -ions[n, 0] * c))
                    total -= k2[i, j, k] * charge
            else:
                total -= k2[i, j, k] * c
            out[i, j, k] = total


@njit(**FAST)
def start_nodes(i, u, f, d):
    """Do what :func:`start_plane` does, node by node."""
    _, ny, nz = u.shape
    for j in range(1, ny - 1):
        odd = F((i + j) % 2)
        for k in range(1, nz - 1):
            u[i, j, k] = f[i, j, k] * d[i, j, k] * (odd if k % 2 else F(1) - odd)


@njit(**FAST)
def prolong_nodes(i, j, k, coarse, u):
    """Do what :func:`prolong_plane` does in one row, node by node, from the coarse node k on."""
    mz = coarse.shape[2]
    a, b, c, e = i // 2, (i + 1) // 2, j // 2, (j + 1) // 2
    odd = (i + j) % 2
    for n in range(k, mz - 1):
        total = coarse[a, c, n] + coarse[a, e, n] + coarse[b, c, n] + coarse[b, e, n]
        m = n + odd
        total += coarse[a, c, m] + coarse[a, e, m] + coarse[b, c, m] + coarse[b, e, m]
        u[i, j, n + m] += F(0.125) * total


@njit(**FAST)
def prolong_plane(i, coarse, u):
    """Add the values of the coarse level, interpolated trilinearly, to the nodes of colour 0 in a plane.

    The next step solves for the nodes of colour 1, from those of colour 0 alone.
    """
    for j in range(1, u.shape[1] - 1):
        prolong_nodes(i, j, 1 - (i + j) % 2, coarse, u)
