"""Kernel for the search of the sphere nearest to a point, or in which the point is deepest.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit


@njit(error_model="numpy", boundscheck=False, nogil=True)
def run(points, centres, radii, order, starts, shape, origin, side, largest, enough, best, which, first, last):
    """Update the smallest distances `best` of points to spheres' surfaces, negative inside, and the spheres `which`.

    Cell c has the spheres order[starts[c]:starts[c + 1]]; `centres` and `radii` are sorted in the same way. Shells of
    cells around a point are searched until no sphere farther away can be nearer, or a distance is less than `enough`.
    """
    for p in range(first, last):
        x, y, z = points[p, 0], points[p, 1], points[p, 2]
        a = min(max(int(np.floor((x - origin[0]) / side)), 0), shape[0] - 1)
        b = min(max(int(np.floor((y - origin[1]) / side)), 0), shape[1] - 1)
        c = min(max(int(np.floor((z - origin[2]) / side)), 0), shape[2] - 1)
        # distance to the nearest wall of the point's cell
        u, v, w = x - origin[0] - a * side, y - origin[1] - b * side, z - origin[2] - c * side
        wall = max(0.0, min(min(u, side - u), min(min(v, side - v), min(w, side - w))))
        least, result = best[p], which[p]
        farthest = max(max(a, shape[0] - 1 - a), max(max(b, shape[1] - 1 - b), max(c, shape[2] - 1 - c)))
        shell = 0
        while shell <= farthest and least >= enough and (
                shell == 0 or least > (shell - 1) * side + wall - largest):
            for i in range(max(a - shell, 0), min(a + shell, shape[0] - 1) + 1):
                for j in range(max(b - shell, 0), min(b + shell, shape[1] - 1) + 1):
                    # all cells inside the shell have been searched
                    step = 1 if max(abs(i - a), abs(j - b)) == shell else max(1, 2 * shell)
                    for k in range(c - shell, c + shell + 1, step):
                        if k < 0 or k >= shape[2]:
                            continue
                        cell = (i * shape[1] + j) * shape[2] + k
                        for n in range(starts[cell], starts[cell + 1]):
                            e, f, g = x - centres[n, 0], y - centres[n, 1], z - centres[n, 2]
                            reach = least + radii[n]
                            square = e * e + f * f + g * g
                            if reach > 0 and square < reach * reach:
                                least, result = np.sqrt(square) - radii[n], order[n]
            shell += 1
        best[p], which[p] = least, result
