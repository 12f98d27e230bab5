"""The kernel of the jump at a molecule's surface: cut edges, and the potential of the charges on them.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

from vmdpotential.continuum.jump import along as of_numbers

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}

#: Smallest square of the distance of a charge from the line of an edge, A^2 (soft core).
CORE = 1e-4


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
def count_cut(distances, numbers, first_plane, last_plane):
    """Write to `numbers` (nx,) how many edges from the nodes of each plane the surface cuts."""
    nx, ny, nz = distances.shape
    for i in range(first_plane, last_plane):
        count = 0
        for j in range(ny):
            here = distances[i, j]
            next_plane, next_row = distances[min(i + 1, nx - 1), j], distances[i, min(j + 1, ny - 1)]
            for k in range(nz):
                inside = here[k] < 0
                count += (inside != (next_plane[k] < 0)) + (inside != (next_row[k] < 0))
            for k in range(nz - 1):
                count += (here[k] < 0) != (here[k + 1] < 0)
        numbers[i] = count


@njit(**PLAIN_CODE)
def cut(distances, x, y, z, own, begins, inner, outer, shares, conductances, inside, first_plane, last_plane):
    """Write the edges from the nodes of some planes that the surface cuts; those of plane i begin at begins[i].

    Parameters
    ----------
    distances : (nx, ny, nz)
        To the surface, negative inside.
    x, y, z : (nx, ny, nz)
        Conductances.
    own : (3,)
        Conductances along the axes inside.
    begins, inner, outer, shares, conductances, inside, first_plane, last_plane
        The result, which :class:`~vmdpotential.continuum.jump.CutEdges` describes, and the range of planes.
    """
    nx, ny, nz = distances.shape
    strides = ((ny + 2) * (nz + 2), nz + 2, 1)
    for i in range(first_plane, last_plane):
        n = begins[i]
        for j in range(ny):
            place = ((i + 1) * (ny + 2) + j + 1) * (nz + 2) + 1
            for k in range(nz):
                a = distances[i, j, k]
                for axis in range(3):
                    if axis == 0:
                        b = distances[min(i + 1, nx - 1), j, k]
                    elif axis == 1:
                        b = distances[i, min(j + 1, ny - 1), k]
                    else:
                        b = distances[i, j, min(k + 1, nz - 1)]
                    if (a < 0) == (b < 0):
                        continue
                    low, high = place + k, place + k + strides[axis]
                    inner[n], outer[n] = (low, high) if a < 0 else (high, low)
                    shares[n] = np.float64(abs(a if a < 0 else b)) / np.float64(abs(a) + abs(b))
                    conductances[n] = x[i, j, k] if axis == 0 else (y[i, j, k] if axis == 1 else z[i, j, k])
                    inside[n] = own[axis]
                    n += 1


@njit(**PLAIN_CODE)
def known(inner_nodes, outer_nodes, t, phi, shape, origin, spacing, centres, charges, starts, low, side, counts, near,
          out, first, last):
    """Write the values of :func:`along` for the potential of the charges to out (4, E), exact next to charges, too.

    Parameters
    ----------
    inner_nodes, outer_nodes : (E,)
        Ends of the edges, as indices of `phi`.
    t : (E,)
        Fraction of the edge that is inside.
    phi : flat
        The potential at the nodes of a lattice with this shape, origin and spacing.
    centres, charges : (N, 3), (N,)
        Charges, whose potential is charge / r, sorted by cubes of this side. The corner of the first cube is at `low`,
        there are `counts` cubes along the axes, and the charges of cube c begin at starts[c].
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
        value, slope, bend, through = along(np.float64(phi[inner - step]), np.float64(phi[inner]),
                                            np.float64(phi[inner + step]), np.float64(phi[inner + 2 * step]), t[e])
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
                    shift = sign * (origin[axis] + spacing[axis] * node[axis] - centres[n, axis])
                    y = origin[second] + spacing[second] * node[second] - centres[n, second]
                    z = origin[third] + spacing[third] * node[third] - centres[n, third]
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
                    value += charges[n] * (inverse - fitted[0])
                    slope += charges[n] * (-x * h * cubed - fitted[1])
                    bend += charges[n] * (h * h * (3 * x * x * cubed * inverse * inverse - cubed) - fitted[2])
                    through += charges[n] * (-angle * h / (sides[0] * sides[1]) - fitted[3])
        out[0, e], out[1, e], out[2, e], out[3, e] = value, slope, bend, through
