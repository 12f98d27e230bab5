"""Kernels of trilinear interpolation between the eight nodes around each charge.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}


@njit(**PLAIN_CODE)
def cell_of(points, n, origin, spacing, shape, cell, part):
    """Write the first node of the cell of a point, and the point's place in the cell, from 0 to 1 along each axis."""
    for d in range(3):
        place = (points[n, d] - origin[d]) / spacing[d]
        cell[d] = min(max(math.floor(place), 0), shape[d] - 2)
        part[d] = place - cell[d]


@njit(**PLAIN_CODE)
def reaction(points, origin, spacing, unknown, within, of_charges, out, first, last):
    """Write the reaction potential at some points to out (P,); `unknown` is the whole potential outside."""
    cell, part = np.empty(3, np.int64), np.empty(3)
    for n in range(first, last):
        cell_of(points, n, origin, spacing, unknown.shape, cell, part)
        total = 0.0
        for i in range(2):
            x = part[0] if i else 1 - part[0]
            for j in range(2):
                y = part[1] if j else 1 - part[1]
                for k in range(2):
                    a, b, c = cell[0] + i, cell[1] + j, cell[2] + k
                    value = np.float64(unknown[a, b, c])
                    if not within[a, b, c]:  # around charges near the surface
                        value -= of_charges[a, b, c]
                    total += x * y * (part[2] if k else 1 - part[2]) * value
        out[n] = total


@njit(**PLAIN_CODE)
def spread(points, charges, origin, spacing, sums):
    """Add charges to the nodes around them, in proportion to the weights of the nodes in interpolation."""
    cell, part = np.empty(3, np.int64), np.empty(3)
    for n in range(len(charges)):
        cell_of(points, n, origin, spacing, sums.shape, cell, part)
        for i in range(2):
            x = part[0] if i else 1 - part[0]
            for j in range(2):
                y = charges[n] * x * (part[1] if j else 1 - part[1])
                for k in range(2):
                    sums[cell[0] + i, cell[1] + j, cell[2] + k] += y * (part[2] if k else 1 - part[2])
