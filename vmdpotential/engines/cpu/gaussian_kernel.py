"""Kernels of Gaussian charges times Hermite polynomials: their potential on a lattice, and their density on a mesh.

For a Gaussian of exponent p at P, the potentials of its derivatives by P are the integrals R_tuv (L. E. McMurchie,
E. R. Davidson, J. Comput. Phys. 26 (1978) 218), computed from Boys functions F_n of T = p (P - r)^2 by a recursion in
which each step raises t, u or v by one and lowers n.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

#: Number of points of a row that are computed together.
WIDTH = 16

#: Constants of the table of Boys functions, as in engines/gaussians.py.
LAST, FINE, TERMS = 40.0, 16, 5
FAR, FARTHER = 24.0, 1.2


@njit(error_model="numpy", nogil=True, fastmath={"contract", "nsz", "reassoc"})
def boys(t, order, table, rows, power, small, values):
    """Fill values (order + 1, WIDTH) with Boys functions of t (WIDTH,)."""
    far, nearest = FAR + FARTHER * order, FAR + FARTHER * order
    for w in range(WIDTH):
        values[0, w] = math.sqrt(0.25 * math.pi / t[w])
        nearest = min(nearest, t[w])
    for m in range(order):
        for w in range(WIDTH):
            values[m + 1, w] = values[m, w] * (m + 0.5) / t[w]
    if nearest >= far:
        return
    top = small[0]
    e, step = small[1], small[2]
    for w in range(WIDTH):
        rows[w] = int(min(t[w], LAST - 1.0) * FINE + 0.5)
        step[w] = rows[w] / FINE - min(t[w], LAST - 1.0)
        power[w], top[w], e[w] = 1.0, 0.0, 0.0
    for k in range(TERMS):
        for w in range(WIDTH):
            top[w] += power[w] * table[rows[w], order + 1 + k]
            e[w] += power[w]
            power[w] *= step[w] / (k + 1)
    for w in range(WIDTH):
        e[w] *= table[rows[w], 0]
        values[order, w] = top[w] if t[w] < far else values[order, w]
    for m in range(order - 1, -1, -1):
        for w in range(WIDTH):
            top[w] = (2 * t[w] * top[w] + e[w]) / (2 * m + 1)
            values[m, w] = top[w] if t[w] < far else values[m, w]


@njit(error_model="numpy", nogil=True, fastmath={"contract", "nsz", "reassoc"})
def potential(centres, exponents, orders, starts, coefficients, reaches, width, steps, counts, table, nuclei, charges,
              closest, origin, spacing, smooth, out, first_plane, last_plane):
    """Write planes of constant x of the potential, in units of charge over length.

    Parameters
    ----------
    centres, exponents, orders : (G, 3), (G,), (G,)
        Centre, exponent and largest t + u + v of each Gaussian.
    starts : (G,) int64
        Index of each Gaussian's first coefficient; the coefficients of all R_tuv are sorted by t + u + v.
    reaches : (G,) float64
        Distance within which each Gaussian counts.
    width : float
        Exponent of the wider Gaussian of the same charge whose potential is subtracted, because `smooth` contains it; 0
        subtracts nothing.
    steps : (K, 4) int64
        Recursion of each R_tuv: the raised axis, the indices of the integrals with one and with two less along it, and
        the factor of the latter.
    counts : (order + 1,) int64
        Number of R_tuv up to each t + u + v.
    table : (rows, orders) float64
        exp(-T) and Boys functions of T.
    nuclei, charges : (N, 3), (N,)
        Point charges; those nearer than `closest` count as at this distance.
    origin, spacing : (3,)
    smooth : (nx, ny, nz) float64
        Potential that is added; nothing is if its size is 0.
    out : (nx, ny, nz) float32
    """
    nz = out.shape[2]
    most = counts[-1]
    # swapped at each step of the recursion: values for n and for n + 1
    now, last = np.empty((most, WIDTH)), np.empty((most, WIDTH))
    apart, t = np.empty((3, WIDTH)), np.empty(WIDTH)
    values, others = np.empty((len(counts), WIDTH)), np.empty((len(counts), WIDTH))
    total = np.empty(nz + WIDTH)
    rows, power, small = np.empty(WIDTH, np.int64), np.empty(WIDTH), np.empty((3, WIDTH))
    for i in range(first_plane, last_plane):
        x = origin[0] + i * spacing[0]
        for j in range(out.shape[1]):
            y = origin[1] + j * spacing[1]
            total[:] = 0.0
            for g in range(len(exponents)):
                p, order = exponents[g], orders[g]
                dx, dy = centres[g, 0] - x, centres[g, 1] - y
                left = reaches[g] ** 2 - dx * dx - dy * dy
                if left <= 0:
                    continue
                half, along = math.sqrt(left), centres[g, 2] - origin[2]
                first = max(0.0, math.ceil((along - half) / spacing[2]))
                end = min(float(nz), math.floor((along + half) / spacing[2]) + 1)
                if first >= end:
                    continue
                for begin in range(int(first), int(end), WIDTH):
                    for w in range(WIDTH):
                        dz = along - (begin + w) * spacing[2]
                        apart[0, w], apart[1, w], apart[2, w] = dx, dy, dz
                        t[w] = p * (dx * dx + dy * dy + dz * dz) + 1e-30
                    boys(t, order, table, rows, power, small, values)
                    if width > 0:
                        for w in range(WIDTH):
                            t[w] *= width / p
                        boys(t, order, table, rows, power, small, others)
                        part, ratio = math.sqrt(width / p), width / p
                        for n in range(order + 1):
                            for w in range(WIDTH):
                                values[n, w] -= part * others[n, w]
                            part *= ratio
                    scale = (-2 * p) ** order
                    for w in range(WIDTH):
                        now[0, w] = scale * values[order, w]
                    for n in range(order - 1, -1, -1):
                        now, last = last, now
                        scale /= -2 * p
                        for w in range(WIDTH):
                            now[0, w] = scale * values[n, w]
                        for k in range(1, counts[order - n]):
                            d, lower_one, lower_two, factor = steps[k, 0], steps[k, 1], steps[k, 2], float(steps[k, 3])
                            for w in range(WIDTH):
                                now[k, w] = factor * last[lower_two, w] + apart[d, w] * last[lower_one, w]
                    for k in range(counts[order]):
                        c = coefficients[starts[g] + k]
                        for w in range(WIDTH):
                            total[begin + w] += c * now[k, w]
            for a in range(len(charges)):
                square = (nuclei[a, 0] - x) ** 2 + (nuclei[a, 1] - y) ** 2
                for k in range(nz):
                    dz = nuclei[a, 2] - (origin[2] + k * spacing[2])
                    total[k] += charges[a] / max(math.sqrt(square + dz * dz), closest)
            if smooth.size > 0:
                for k in range(nz):
                    total[k] += smooth[i, j, k]
            for k in range(nz):
                out[i, j, k] = total[k]


@njit(error_model="numpy", nogil=True, fastmath={"contract", "nsz", "reassoc"})
def polynomials(p, order, x, values):
    """Fill values (order + 1,) with the derivatives of exp(-p x^2) by the position of its centre."""
    values[0] = math.exp(-p * x * x)
    if order > 0:
        values[1] = 2 * p * x * values[0]
    for t in range(1, order):
        values[t + 1] = 2 * p * (x * values[t] - t * values[t - 1])


@njit(error_model="numpy", nogil=True, fastmath={"contract", "nsz", "reassoc"})
def density(centres, exponents, orders, starts, coefficients, reaches, powers, counts, origin, spacing, out,
            first_plane, last_plane):
    """Write planes of constant x of the density of Gaussians times Hermite polynomials.

    Parameters: as for :func:`potential`; `powers` (K, 3) are t, u and v of each coefficient.
    """
    most = len(counts)
    along_x, ys, zs = np.empty(most), np.empty((out.shape[1], most)), np.empty((most, out.shape[2]))
    line, plane, row = np.empty(most), np.empty((most, most)), np.empty(most)
    for i in range(first_plane, last_plane):
        x = origin[0] + i * spacing[0]
        out[i] = 0.0
        for g in range(len(exponents)):
            p, order = exponents[g], orders[g]
            left = reaches[g] ** 2 - (x - centres[g, 0]) ** 2
            if left <= 0:
                continue
            half = math.sqrt(left)
            low_y, low_z = centres[g, 1] - origin[1], centres[g, 2] - origin[2]
            first_y = max(0, math.ceil((low_y - half) / spacing[1]))
            end_y = min(out.shape[1], math.floor((low_y + half) / spacing[1]) + 1)
            first_z = max(0, math.ceil((low_z - half) / spacing[2]))
            end_z = min(out.shape[2], math.floor((low_z + half) / spacing[2]) + 1)
            polynomials(p, order, x - centres[g, 0], along_x)
            plane[: order + 1, : order + 1] = 0.0
            for k in range(counts[order]):
                plane[powers[k, 1], powers[k, 2]] += coefficients[starts[g] + k] * along_x[powers[k, 0]]
            for j in range(first_y, end_y):
                polynomials(p, order, j * spacing[1] - low_y, ys[j])
            for k in range(first_z, end_z):
                polynomials(p, order, k * spacing[2] - low_z, line)
                for v in range(order + 1):
                    zs[v, k] = line[v]
            for j in range(first_y, end_y):
                for v in range(order + 1):
                    row[v] = 0.0
                    for u in range(order + 1 - v):
                        row[v] += plane[u, v] * ys[j, u]
                target = out[i, j]
                for v in range(order + 1):
                    factor = row[v]
                    for k in range(first_z, end_z):
                        target[k] += factor * zs[v, k]
