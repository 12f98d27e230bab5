"""The kernel of the potential of charges on the edges that a molecule's surface cuts.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

from vmdpotential.engines.jump import CORE
from vmdpotential.engines.jump import along as of_numbers

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}

along = njit(**PLAIN_CODE)(of_numbers)


@njit(**PLAIN_CODE)
def solid_angle(height, y, z, half_y, half_z):
    """Return the solid angle of a rectangle seen from a point: its centre is at (height, y, z), negative if height < 0.

    It is a sum of four arc tangents, one for each corner, computed as the angle of a product of complex numbers.
    """
    real, imaginary = 1.0, 0.0
    for a in (-1, 1):
        p = y + a * half_y
        for b in (-1, 1):
            q = z + b * half_z
            r, i = abs(height) * math.sqrt(p * p + q * q + height * height), a * b * p * q
            real, imaginary = real * r - imaginary * i, real * i + imaginary * r
        size = abs(real) + abs(imaginary)
        real, imaginary = real / size, imaginary / size
    angle = math.atan2(imaginary, real)
    # from 0 to 2 pi under the rectangle; elsewhere at most pi, and rounding may make it slightly negative
    if angle < (0.0 if abs(y) < half_y and abs(z) < half_z else -1.0):
        angle += 2 * math.pi
    return angle if height > 0 else -angle


@njit(**PLAIN_CODE)
def sort(positions, charges, low, side, counts, starts, out):
    """Write positions and charges (N, 4) sorted by cubes, without those of 0, and where each cube begins.

    `starts` (C + 1,) has zeros before.
    """
    numbers = np.empty(len(charges), np.int64)
    for n in range(len(charges)):
        i, j = int((positions[n, 0] - low[0]) / side), int((positions[n, 1] - low[1]) / side)
        numbers[n] = (i * counts[1] + j) * counts[2] + int((positions[n, 2] - low[2]) / side)
        starts[numbers[n] + 1] += charges[n] != 0
    for cube in range(1, len(starts)):
        starts[cube] += starts[cube - 1]
    places = starts[:-1].copy()
    for n in range(len(charges)):
        if charges[n] == 0:
            continue
        place = places[numbers[n]]
        places[numbers[n]] += 1
        for d in range(3):
            out[place, d] = positions[n, d]
        out[place, 3] = charges[n]


@njit(**PLAIN_CODE)
def known(inner_nodes, outer_nodes, t, line, shape, origin, spacing, charges, starts, low, side, counts, near, out,
          first, last):
    """Write the values of :func:`along` for the potential of the charges to out (4, E), exact next to charges, too.

    Parameters
    ----------
    inner_nodes, outer_nodes, t, line, shape, origin, spacing
        Of :class:`~vmdpotential.engines.jump.EdgeSum` and its lattice.
    charges : (N, 4)
        Positions and charges, whose potential is charge / r, sorted by cubes of this side. The corner of the first cube
        is at `low`, there are `counts` cubes along the axes, and the charges of cube c begin at starts[c].
    near : float
        Largest distance from the inner node, at most `side`, of charges that are summed by closed forms.
    out, first, last
        The result, and the range of edges.
    """
    cube, node = np.empty(3, np.int64), np.empty(3, np.int64)
    strides = (shape[1] * shape[2], shape[2], 1)
    for e in range(first, last):
        inner, step = inner_nodes[e], outer_nodes[e] - inner_nodes[e]
        axis = 0 if abs(step) == strides[0] else (1 if abs(step) == strides[1] else 2)
        second, third = (axis + 1) % 3, (axis + 2) % 3
        sign = 1.0 if step > 0 else -1.0
        h, sides = spacing[axis], (spacing[second], spacing[third])
        value, slope, bend, through = along(np.float64(line[e, 0]), np.float64(line[e, 1]),
                                            np.float64(line[e, 2]), np.float64(line[e, 3]), t[e])
        node[0], node[1], node[2] = inner // strides[0], inner // shape[2] % shape[1], inner % shape[2]
        for d in range(3):
            cube[d] = math.floor((origin[d] + spacing[d] * node[d] - low[d]) / side)
        k_begin, k_end = max(0, cube[2] - 1), min(counts[2], cube[2] + 2)
        for i in range(max(0, cube[0] - 1), min(counts[0], cube[0] + 2)):
            for j in range(max(0, cube[1] - 1), min(counts[1], cube[1] + 2)):
                row = (i * counts[1] + j) * counts[2]
                if k_begin >= k_end:
                    continue
                for n in range(starts[row + k_begin], starts[row + k_end]):
                    shift = sign * (origin[axis] + spacing[axis] * node[axis] - charges[n, axis])
                    y = origin[second] + spacing[second] * node[second] - charges[n, second]
                    z = origin[third] + spacing[third] * node[third] - charges[n, third]
                    off = y * y + z * z
                    if off + shift * shift > near * near:
                        continue
                    off = max(off, CORE)
                    fitted = along(1 / math.sqrt((shift - h) ** 2 + off), 1 / math.sqrt(shift * shift + off),
                                   1 / math.sqrt((shift + h) ** 2 + off), 1 / math.sqrt((shift + 2 * h) ** 2 + off),
                                   t[e])
                    x, middle = shift + t[e] * h, shift + h / 2
                    inverse = 1 / math.sqrt(x * x + off)
                    cubed = inverse**3
                    if middle == 0:  # a charge exactly in the face counts as inside
                        middle = 1e-9
                    angle = solid_angle(middle, y, z, sides[0] / 2, sides[1] / 2)
                    value += charges[n, 3] * (inverse - fitted[0])
                    slope += charges[n, 3] * (-x * h * cubed - fitted[1])
                    bend += charges[n, 3] * (h * h * (3 * x * x * cubed * inverse * inverse - cubed) - fitted[2])
                    through += charges[n, 3] * (-angle * h / (sides[0] * sides[1]) - fitted[3])
        out[0, e], out[1, e], out[2, e], out[3, e] = value, slope, bend, through
