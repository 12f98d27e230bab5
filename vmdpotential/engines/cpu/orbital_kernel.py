"""The kernel of orbitals: contracted Gaussians on a lattice along x, y and z, rows along z in vector lanes.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit

#: Number of powers of z from 0, enough for h shells.
POWERS = 6


@njit(error_model="numpy", boundscheck=False, nogil=True, fastmath={"contract", "nsz"})
def run(shells, centres, reaches, origin, spacing, factors_x, factors_y, factors_z, coefficients, weights, out,
        first_plane, last_plane):
    """Write planes of constant x of an orbital, or of the weighted sum of squares of several.

    Parameters
    ----------
    shells : (S, 4) int64
        Angular momentum, first primitive, end of the primitives, and first monomial of each shell.
    centres, reaches : (S, 3) and (S,) float64, bohr
        Centre of each shell, and the distance beyond which it counts as zero.
    origin, spacing : (3,) float64, bohr
    factors_x, factors_y, factors_z : (P, n) float32
        exp(-a x^2) of each primitive at the nodes of an axis; factors_x include the primitive's factor.
    coefficients : (O, M) float32
        Coefficients of the monomials x^a y^b z^c of all shells in each orbital; within a shell sorted by c, then by a.
    weights : (O,) float32
        Weights of the squares; size 0 for the value of a single orbital.
    out : (nx, ny, nz) float32
    """
    nz = out.shape[2]
    count = coefficients.shape[0]
    values = np.empty((count, nz), np.float32)
    powers = np.empty((POWERS, nz), np.float32)
    polynomial = np.empty(POWERS, np.float32)
    x_powers, y_powers = np.ones(POWERS, np.float32), np.ones(POWERS, np.float32)
    for i in range(first_plane, last_plane):
        x_place = origin[0] + i * spacing[0]
        for j in range(out.shape[1]):
            y_place = origin[1] + j * spacing[1]
            values[:] = np.float32(0)
            for shell in range(len(shells)):
                x, y = x_place - centres[shell, 0], y_place - centres[shell, 1]
                left = reaches[shell] ** 2 - x * x - y * y
                if left <= 0:
                    continue
                half, z_first = np.sqrt(left), origin[2] - centres[shell, 2]
                begin = max(0, int(np.ceil((-half - z_first) / spacing[2])))
                end = min(nz, int(np.floor((half - z_first) / spacing[2])) + 1)
                if begin >= end:
                    continue
                momentum, monomial = shells[shell, 0], shells[shell, 3]
                radial = powers[0]
                radial[begin:end] = np.float32(0)
                for primitive in range(shells[shell, 1], shells[shell, 2]):
                    factor = factors_x[primitive, i] * factors_y[primitive, j]
                    if factor != 0:
                        along = factors_z[primitive]
                        for k in range(begin, end):
                            radial[k] += factor * along[k]
                for power in range(1, momentum + 1):
                    x_powers[power] = x_powers[power - 1] * np.float32(x)
                    y_powers[power] = y_powers[power - 1] * np.float32(y)
                    lower, higher = powers[power - 1], powers[power]
                    for k in range(begin, end):
                        higher[k] = lower[k] * np.float32(z_first + k * spacing[2])
                for orbital in range(count):
                    at = monomial
                    for c in range(momentum + 1):
                        total = np.float32(0)
                        for a in range(momentum - c + 1):
                            total += coefficients[orbital, at] * x_powers[a] * y_powers[momentum - c - a]
                            at += 1
                        polynomial[c] = total
                    row = values[orbital]
                    if momentum == 0:
                        p = polynomial[0]
                        for k in range(begin, end):
                            row[k] += p * powers[0, k]
                    elif momentum == 1:
                        p, q = polynomial[0], polynomial[1]
                        for k in range(begin, end):
                            row[k] += p * powers[0, k] + q * powers[1, k]
                    else:
                        p, q, r = polynomial[0], polynomial[1], polynomial[2]
                        for k in range(begin, end):
                            row[k] += p * powers[0, k] + q * powers[1, k] + r * powers[2, k]
                        for c in range(3, momentum + 1):
                            p = polynomial[c]
                            for k in range(begin, end):
                                row[k] += p * powers[c, k]
            target = out[i, j]
            if len(weights) == 0:
                target[:] = values[0]
            else:
                target[:] = np.float32(0)
                for orbital in range(count):
                    weight, row = weights[orbital], values[orbital]
                    for k in range(nz):
                        target[k] += weight * row[k] * row[k]
