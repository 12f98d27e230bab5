"""The kernel of surfaces' edges: which parts of the circles in which two spheres meet are outside of all others.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit

TURN = 2 * np.pi

#: A, by which a sphere is smaller when it covers points: those on it are outside.
ON = 1e-5


@njit(error_model="numpy", boundscheck=False, nogil=True)
def covered(place, around, other, centres, radii, middle, u, v, radius, begin, end, by):
    """Write the intervals of angles (0 to 2 pi, at most one turn long) that spheres cover; return how many there are.

    `around` has the spheres of which some reach the circle of the spheres `place` and `other`; -1 says that one of
    them covers all of it.
    """
    count = 0
    for sphere in around:
        if sphere == other:
            continue
        reach = radii[sphere] - ON
        x, y, z = centres[sphere, 0] - middle[0], centres[sphere, 1] - middle[1], centres[sphere, 2] - middle[2]
        square = x * x + y * y + z * z
        if square >= (reach + radius) ** 2:
            continue
        a, b = x * u[0] + y * u[1] + z * u[2], x * v[0] + y * v[1] + z * v[2]
        least = (radius * radius + square - reach * reach) / (2 * radius)
        most = np.sqrt(a * a + b * b)
        if least >= most:
            continue
        if least <= -most:
            return -1
        half, towards = np.arccos(least / most), np.arctan2(b, a)
        start = towards - half
        if start < 0:
            start += TURN
        begin[count], end[count], by[count] = start, start + 2 * half, sphere
        count += 1
    return count


@njit(error_model="numpy", boundscheck=False, nogil=True)
def run(centres, radii, spheres, middle, u, v, radius, starts, neighbours, first_pair, last_pair):
    """Return the free arcs of some circles: circle, first and last angle, and the spheres that end them, -1 for none.

    Sphere n has the neighbours[starts[n]:starts[n + 1]], all that meet it.
    """
    most = 0
    for n in range(len(starts) - 1):
        most = max(most, starts[n + 1] - starts[n])
    begin, end, by = np.empty(most), np.empty(most), np.empty(most, np.int64)
    size = 2 * (last_pair - first_pair) + most
    circle, first, last = np.empty(size, np.int64), np.empty(size), np.empty(size)
    ends = np.empty((size, 2), np.int64)
    result = 0
    for pair in range(first_pair, last_pair):
        sphere, neighbour = spheres[pair, 0], spheres[pair, 1]
        if starts[sphere + 1] - starts[sphere] > starts[neighbour + 1] - starts[neighbour]:
            sphere, neighbour = neighbour, sphere
        around = neighbours[starts[sphere]:starts[sphere + 1]]
        count = covered(sphere, around, neighbour, centres, radii, middle[pair], u[pair], v[pair], radius[pair],
                        begin, end, by)
        if count < 0:
            continue
        if result + count + 1 > size:
            size *= 2
            circle, first, last, ends = (longer(circle, size), longer(first, size), longer(last, size),
                                         longer_rows(ends, size))
        if count == 0:
            circle[result], first[result], last[result] = pair, 0.0, TURN
            ends[result] = -1
            result += 1
            continue
        order = np.argsort(begin[:count])
        # the interval that ends last, a turn ago
        reach, ender = -np.inf, -1
        for n in order:
            if end[n] - TURN > reach:
                reach, ender = end[n] - TURN, by[n]
        for n in order:
            if begin[n] > reach:
                circle[result], first[result], last[result] = pair, reach, begin[n]
                ends[result, 0], ends[result, 1] = ender, by[n]
                result += 1
            if end[n] > reach:
                reach, ender = end[n], by[n]
    return circle[:result], first[:result], last[:result], ends[:result]


@njit
def longer(values, size):
    """Return a longer copy."""
    result = np.empty(size, values.dtype)
    result[: len(values)] = values
    return result


@njit
def longer_rows(values, size):
    """Return a copy (size, 2) with more rows."""
    result = np.empty((size, 2), values.dtype)
    result[: len(values)] = values
    return result
