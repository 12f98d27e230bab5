"""The kernel of potentials of Gaussian charges times Hermite polynomials, and of point charges, on a lattice.

For a Gaussian of exponent p at P, the potential of its derivatives by P is that of R_tuv (L. E. McMurchie, E. R.
Davidson, J. Comput. Phys. 26 (1978) 218), made of Boys' functions F_n of T = p |P - r|^2 by a recursion in which each
step raises t, u or v by one and lowers n.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

#: Points of a row that are computed together.
WIDTH = 32

#: Boys' functions are in a table up to LAST, with rows FINE to the unit, and TERMS of their Taylor series are added;
#: beyond FAR and FARTHER for each order, exp(-T) is nothing.
LAST, FINE, TERMS = 40.0, 16, 5
FAR, FARTHER = 24.0, 1.2


@njit(error_model="numpy", nogil=True, fastmath={"contract", "nsz", "reassoc"})
def boys(t, far, near, order, table, rows, power, small, values):
    """Fill values (order + 1, WIDTH) with Boys' functions of t (WIDTH,), of which some are `near`, below `far`."""
    for w in range(WIDTH):
        values[0, w] = math.sqrt(0.25 * math.pi / t[w])
    for m in range(order):
        for w in range(WIDTH):
            values[m + 1, w] = values[m, w] * (m + 0.5) / t[w]
    if not near:
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
def run(centres, exponents, orders, starts, coefficients, steps, counts, table, nuclei, charges, closest, origin,
        spacing, out, first_plane, last_plane):
    """Write some planes of constant x of the potential, in units of charge over length.

    Parameters
    ----------
    centres, exponents, orders : (G, 3), (G,), (G,)
        Of the Gaussians, and the largest t + u + v of each.
    starts : (G,) int64
        Where the coefficients of each begin: of all R_tuv, by t + u + v.
    steps : (K, 4) int64
        How each R_tuv follows: the axis along which, the place of that with one less, of that with two less, and its
        factor.
    counts : (order + 1,) int64
        How many R_tuv there are up to each t + u + v.
    table : (rows, orders) float64
        exp(-T) and Boys' functions of T.
    nuclei, charges : (N, 3), (N,)
        Point charges, of which none counts as nearer than `closest`.
    origin, spacing : (3,)
    out : (nx, ny, nz) float32
    """
    nz = out.shape[2]
    most = counts[-1]
    # two in turn, one for n and one for n + 1
    now, last = np.empty((most, WIDTH)), np.empty((most, WIDTH))
    apart, t = np.empty((3, WIDTH)), np.empty(WIDTH)
    values, total = np.empty((len(counts), WIDTH)), np.empty(WIDTH)
    rows, power, small = np.empty(WIDTH, np.int64), np.empty(WIDTH), np.empty((3, WIDTH))
    for i in range(first_plane, last_plane):
        x = origin[0] + i * spacing[0]
        for j in range(out.shape[1]):
            y = origin[1] + j * spacing[1]
            for begin in range(0, nz, WIDTH):
                total[:] = 0.0
                for g in range(len(exponents)):
                    p, order = exponents[g], orders[g]
                    dx, dy = centres[g, 0] - x, centres[g, 1] - y
                    far = FAR + FARTHER * order
                    nearest = far
                    for w in range(WIDTH):
                        dz = centres[g, 2] - (origin[2] + (begin + w) * spacing[2])
                        apart[0, w], apart[1, w], apart[2, w] = dx, dy, dz
                        t[w] = p * (dx * dx + dy * dy + dz * dz) + 1e-30
                        nearest = min(nearest, t[w])
                    boys(t, far, nearest < far, order, table, rows, power, small, values)
                    scale = (-2 * p) ** order
                    for w in range(WIDTH):
                        now[0, w] = scale * values[order, w]
                    for n in range(order - 1, -1, -1):
                        now, last = last, now
                        scale /= -2 * p
                        for w in range(WIDTH):
                            now[0, w] = scale * values[n, w]
                        for k in range(1, counts[order - n]):
                            d, one, two, factor = steps[k, 0], steps[k, 1], steps[k, 2], float(steps[k, 3])
                            for w in range(WIDTH):
                                now[k, w] = factor * last[two, w] + apart[d, w] * last[one, w]
                    for k in range(counts[order]):
                        c = coefficients[starts[g] + k]
                        for w in range(WIDTH):
                            total[w] += c * now[k, w]
                for a in range(len(charges)):
                    square = (nuclei[a, 0] - x) ** 2 + (nuclei[a, 1] - y) ** 2
                    for w in range(WIDTH):
                        dz = nuclei[a, 2] - (origin[2] + (begin + w) * spacing[2])
                        total[w] += charges[a] / max(math.sqrt(square + dz * dz), closest)
                for w in range(min(WIDTH, nz - begin)):
                    out[i, j, begin + w] = total[w]
