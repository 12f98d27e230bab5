"""The kernel of a smooth permittivity: the fraction of the space at each node that is free of atoms' densities.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}


@njit(**PLAIN_CODE)
def thin(centres, widths, reach, core, origin, spacing, free, first_plane, last_plane):
    """Multiply `free` (nx, ny, nz) in some planes by 1 - exp(-(r / width)^2) of each atom within `reach` widths.

    r is at least `core`.
    """
    _, ny, nz = free.shape
    for n in range(len(widths)):
        far, factor = widths[n] * reach, -1 / (widths[n] * widths[n])
        begin = max(first_plane, math.ceil((centres[n, 0] - far - origin[0]) / spacing[0]))
        end = min(last_plane, math.floor((centres[n, 0] + far - origin[0]) / spacing[0]) + 1)
        j_begin = max(0, math.ceil((centres[n, 1] - far - origin[1]) / spacing[1]))
        j_end = min(ny, math.floor((centres[n, 1] + far - origin[1]) / spacing[1]) + 1)
        k_begin = max(0, math.ceil((centres[n, 2] - far - origin[2]) / spacing[2]))
        k_end = min(nz, math.floor((centres[n, 2] + far - origin[2]) / spacing[2]) + 1)
        for i in range(begin, end):
            x = i * spacing[0] + origin[0] - centres[n, 0]
            for j in range(j_begin, j_end):
                y = j * spacing[1] + origin[1] - centres[n, 1]
                square = x * x + y * y
                for k in range(k_begin, k_end):
                    z = k * spacing[2] + origin[2] - centres[n, 2]
                    if square + z * z < far * far:
                        free[i, j, k] *= np.float32(-math.expm1(factor * max(square + z * z, core * core)))
