"""The kernel of surfaces: how deep the points of a lattice are in spheres.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit


@njit(error_model="numpy", boundscheck=False, nogil=True)
def run(centres, radii, first, last, origin, spacing, depth, deepest, first_plane, last_plane):
    """Raise the depth (nx, ny, nz) in some planes to that in the sphere that is the deepest there, and note which.

    Sphere n reaches the points from first[n] to before last[n], (N, 3).
    """
    square_y, square_z = np.empty(depth.shape[1], np.float32), np.empty(depth.shape[2], np.float32)
    for n in range(len(radii)):
        begin, end = max(first[n, 0], first_plane), min(last[n, 0], last_plane)
        if begin >= end:
            continue
        for j in range(first[n, 1], last[n, 1]):
            y = np.float32(j * spacing + origin[1] - centres[n, 1])
            square_y[j] = y * y
        for k in range(first[n, 2], last[n, 2]):
            z = np.float32(k * spacing + origin[2] - centres[n, 2])
            square_z[k] = z * z
        radius = np.float32(radii[n])
        for i in range(begin, end):
            x = np.float32(i * spacing + origin[0] - centres[n, 0])
            square_x = x * x
            for j in range(first[n, 1], last[n, 1]):
                square = square_x + square_y[j]
                for k in range(first[n, 2], last[n, 2]):
                    here = radius - np.sqrt(square + square_z[k])
                    if here > depth[i, j, k]:
                        depth[i, j, k] = here
                        deepest[i, j, k] = n
