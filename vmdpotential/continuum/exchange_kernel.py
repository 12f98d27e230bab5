"""Kernels that exchange solutions between a lattice and a finer one around the molecule.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}

F = np.float32


@njit(**PLAIN_CODE)
def between(coarse, charged, coarse_within, a, b, c, ta, tb, tc, inside):
    """Return a coarse solution, interpolated trilinearly in the cell whose first node is (a, b, c).

    It is the potential outside, and the potential minus `charged` inside; it is interpolated between nodes on the same
    side of the surface if there are any.
    """
    total, weight, other = F(0), F(0), F(0)
    for da in range(2):
        wa = ta if da else F(1) - ta
        for db in range(2):
            wb = tb if db else F(1) - tb
            for dc in range(2):
                share = wa * wb * (tc if dc else F(1) - tc)
                if share == 0:
                    continue
                value = coarse[a + da, b + db, c + dc]
                if coarse_within[a + da, b + db, c + dc] == inside:
                    total += share * value
                    weight += share
                elif weight == 0:
                    own = charged[a + da, b + db, c + dc]
                    other += share * (value - own if inside else value + own)
    return total / weight if weight > 0 else other


@njit(**PLAIN_CODE)
def refine(coarse, charged, coarse_within, first, ratio, within, out, first_plane, last_plane):
    """Write a coarse solution, interpolated trilinearly (:func:`between`), to some planes of a finer lattice.

    Node 0 of the finer lattice is node `first` of the coarse one.
    """
    _, ny, nz = out.shape
    scale = F(1 / ratio)
    cells = (nz - 1) // ratio + 2
    # of the four coarse rows around a row: their weighted sum, and how many of their nodes are inside
    line, inner = np.zeros(cells, np.float32), np.zeros(cells, np.int64)
    for i in range(first_plane, last_plane):
        a = first[0] + i // ratio
        ta = F(i % ratio) * scale
        for j in range(ny):
            b = first[1] + j // ratio
            tb = F(j % ratio) * scale
            u, v, w, x = (F(1) - ta) * (F(1) - tb), (F(1) - ta) * tb, ta * (F(1) - tb), ta * tb
            last_a, last_b = a + (ta > 0), b + (tb > 0)
            for n in range(min(cells, coarse.shape[2] - first[2])):
                c = first[2] + n
                line[n] = (u * coarse[a, b, c] + v * coarse[a, last_b, c] + w * coarse[last_a, b, c]
                           + x * coarse[last_a, last_b, c])
                inner[n] = (np.int64(coarse_within[a, b, c]) + coarse_within[a, last_b, c]
                            + coarse_within[last_a, b, c] + coarse_within[last_a, last_b, c])
            for k in range(nz):
                n, rest = k // ratio, k % ratio
                following = n + (rest > 0)
                alike = inner[n] + inner[following]
                tc = F(rest) * scale
                if alike == (8 if within[i, j, k] else 0):
                    out[i, j, k] = (F(1) - tc) * line[n] + tc * line[following]
                else:
                    out[i, j, k] = between(coarse, charged, coarse_within, a, b, first[2] + n, ta, tb, tc,
                                           within[i, j, k])


@njit(**PLAIN_CODE)
def charge(w, ions):
    """Return the ions' term of the equation at the potential w, over its coefficient in the linear equation."""
    if len(ions) == 0:
        return w
    total = 0.0
    for n in range(len(ions)):
        total -= ions[n, 1] / ions[n, 0] * math.exp(min(50.0, -ions[n, 0] * w))
    return total


@njit(**PLAIN_CODE)
def flows(values, x, y, z, k2, ions, begin, margin, out, first_plane, last_plane):
    """Write what has to flow into some planes of coarse nodes so that a finer solution fulfils their equation.

    `values` (nx, ny, nz) are the finer solution at the coarse nodes that begin at `begin`; `margin` layers along its
    faces are left out of the planes, and of `out`, which is smaller by these.
    """
    for i in range(first_plane, last_plane):
        for j in range(out.shape[1]):
            for k in range(out.shape[2]):
                p, q, r = i + margin, j + margin, k + margin
                a, b, c = begin[0] + p, begin[1] + q, begin[2] + r
                own = values[p, q, r]
                total = x[a, b, c] * (values[p + 1, q, r] - own) + x[a - 1, b, c] * (values[p - 1, q, r] - own)
                total += y[a, b, c] * (values[p, q + 1, r] - own) + y[a, b - 1, c] * (values[p, q - 1, r] - own)
                total += z[a, b, c] * (values[p, q, r + 1] - own) + z[a, b, c - 1] * (values[p, q, r - 1] - own)
                out[i, j, k] = k2[a, b, c] * charge(own, ions) - total


@njit(**PLAIN_CODE)
def potential(unknown, charged, within, first, factor, out, first_plane, last_plane):
    """Write the total potential times a factor at some planes of a part of a lattice, which begins at node `first`."""
    for i in range(first_plane, last_plane):
        for j in range(out.shape[1]):
            for k in range(out.shape[2]):
                a, b, c = first[0] + i, first[1] + j, first[2] + k
                value = unknown[a, b, c] + charged[a, b, c] if within[a, b, c] else unknown[a, b, c]
                out[i, j, k] = factor * value


@njit(**PLAIN_CODE)
def compare(values, coarse, within, first, sums, first_plane, last_plane):
    """Write for some planes of nodes that two lattices share the sums of squares of potentials and their differences.

    Parameters
    ----------
    values : (nx, ny, nz) float64
        The finer solution.
    coarse, within : coarser lattice
        Its solution, and which of its nodes are inside; the shared nodes begin at `first`.
    sums : (nx, 4) float64
        Squares of potentials and of differences at outer nodes next to inner ones, and at all outer nodes.
    """
    nx, ny, nz = within.shape
    for i in range(first_plane, last_plane):
        a = first[0] + i
        for j in range(values.shape[1]):
            b = first[1] + j
            for k in range(values.shape[2]):
                c = first[2] + k
                if within[a, b, c]:
                    continue
                square, other = values[i, j, k] ** 2, (values[i, j, k] - coarse[a, b, c]) ** 2
                if (within[max(a - 1, 0), b, c] or within[min(a + 1, nx - 1), b, c] or within[a, max(b - 1, 0), c]
                        or within[a, min(b + 1, ny - 1), c] or within[a, b, max(c - 1, 0)]
                        or within[a, b, min(c + 1, nz - 1)]):
                    sums[i, 0] += square
                    sums[i, 1] += other
                sums[i, 2] += square
                sums[i, 3] += other


@njit(**PLAIN_CODE)
def along(values, first, weights, out):
    """Write to out (P, M) the weighted sums of four rows of values (N, M); those of row p begin at first[p]."""
    for p in range(len(first)):
        for m in range(values.shape[1]):
            total = 0.0
            for n in range(4):
                total += weights[p, n] * values[first[p] + n, m]
            out[p, m] = total
