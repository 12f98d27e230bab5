"""Parts of tile kernels that do not depend on the radial function, and are compiled only once for all kernels.

They select the atoms in range of a tile of lattice points, tabulate them, and write the tile's sums to a map.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

CHUNK = 512  # largest number of atoms whose table fits into the first-level cache
ROW = CHUNK + 32  # length of a table row, with space for padding and for reading ahead
Y, Z, Q, X, GAP = 0, 1, 2, 3, 11  # rows of the table: one each for Y, Z and Q, eight from X on, six from GAP on
ROWS = 17

FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True, "no_cfunc_wrapper": True}
FLAT = {**FAST, "inline": "always"}


@njit(**FAST)
def rows_in_range(start, bins, bin_size, cutoff, centre, half, rows):
    """Write the contiguous ranges of atoms within reach of a tile to rows (R, 2); return their number.

    Atoms are sorted by bin, with z fastest, so that the bins of a row along z are one range; the range is clipped
    according to the row's distance to the tile.
    """
    low_x = max(0, math.floor((centre[0] - half[0] - cutoff) / bin_size))
    high_x = min(bins[0] - 1, math.floor((centre[0] + half[0] + cutoff) / bin_size))
    low_y = max(0, math.floor((centre[1] - half[1] - cutoff) / bin_size))
    high_y = min(bins[1] - 1, math.floor((centre[1] + half[1] + cutoff) / bin_size))
    count = 0
    for bx in range(low_x, high_x + 1):
        gx = max(abs((bx + 0.5) * bin_size - centre[0]) - 0.5 * bin_size - half[0], 0.0)
        for by in range(low_y, high_y + 1):
            gy = max(abs((by + 0.5) * bin_size - centre[1]) - 0.5 * bin_size - half[1], 0.0)
            reach2 = cutoff * cutoff - gx * gx - gy * gy
            if reach2 <= 0:
                continue
            reach = math.sqrt(reach2) + half[2]
            first_bin = max(0, math.floor((centre[2] - reach) / bin_size))
            last_bin = min(bins[2] - 1, math.floor((centre[2] + reach) / bin_size))
            if last_bin < first_bin:
                continue
            row = (bx * bins[1] + by) * bins[2]
            rows[count, 0] = start[row + first_bin]
            rows[count, 1] = start[row + last_bin + 1]
            count += rows[count, 1] > rows[count, 0]
    return count


@njit(**FAST)
def write_tile(sums, out, first, factor, add):
    """Write the 8^3 sums of a tile, which are sorted by leaf, to a map from index `first` on, or add them to it."""
    shape = out.shape
    for part in range(8):
        for k in range(4):
            ix = first[0] + part // 4 * 4 + k
            if ix >= shape[0]:
                continue
            for j in range(4):
                iy = first[1] + part // 2 % 2 * 4 + j
                iz = first[2] + part % 2 * 4
                if iy >= shape[1]:
                    continue
                for n in range(min(4, shape[2] - iz)):
                    before = out[ix, iy, iz + n] if add else 0.0
                    out[ix, iy, iz + n] = np.float32(before + sums[part * 64 + k * 16 + j * 4 + n] * factor)


@njit(**FAST)
def in_tile(x, y, z, q, first, count, cx, cy, cz, hx, hy, hz, cutoff2, chunk, stored):
    """Append the atoms in range of a tile to the chunk; c is the tile's centre and h its half widths."""
    real = chunk.dtype.type
    zero = real(0)
    for i in range(first, first + count):
        dx, dy, dz = real(x[i] - cx), real(y[i] - cy), real(z[i] - cz)
        gx, gy, gz = max(abs(dx) - hx, zero), max(abs(dy) - hy, zero), max(abs(dz) - hz, zero)
        chunk[0, stored] = dx
        chunk[1, stored] = dy
        chunk[2, stored] = dz
        chunk[3, stored] = real(q[i])
        stored += (gx * gx + gy * gy + gz * gz) < cutoff2
    return stored


@njit(**FAST)
def in_leaf(table, row_x, row_y, row_z, count, cutoff2, index):
    """Write the atoms in range of a leaf to index; return their number.

    Where possible, vector code of :mod:`~vmdpotential.engines.cpu.maps.filters` replaces this and :func:`in_tile`.
    """
    result = 0
    x, y, z = table[row_x], table[row_y], table[row_z]
    for i in range(count):
        index[result] = np.int32(i)
        result += (x[i] + y[i] + z[i]) < cutoff2
    return result


@njit(**FAST)
def tabulate(chunk, count, table, h, far, distances, gaps):
    """Write the table of a chunk's atoms: their distances to x planes, or the squares, and `gaps` to leaves.

    After the last atom, some far away without charge are appended, because the inner loop reads ahead.
    """
    real = table.dtype.type
    for pad in range(count, count + 20):
        chunk[0, pad] = far
        chunk[1, pad] = far
        chunk[2, pad] = far
        chunk[3, pad] = real(0)
    x = chunk[0]
    for n in range(3):
        to, of = table[(Y, Z, Q)[n]], chunk[1 + n]
        for k in range(count + 16):
            to[k] = of[k]
    for plane in range(8):
        c = real(plane - 3.5) * h[0]
        row = table[X + plane]
        if distances:
            for k in range(count + 16):
                row[k] = c - x[k]
        else:
            for k in range(count + 16):
                d = c - x[k]
                row[k] = d * d
    if gaps:
        for axis in range(3):
            coordinate = chunk[axis]
            half = real(1.5) * h[axis]
            for side in range(2):
                c = real(4 * side - 2) * h[axis]
                row = table[GAP + 2 * axis + side]
                for k in range(count + 16):
                    d = max(abs(coordinate[k] - c) - half, real(0))
                    row[k] = d * d


@njit(**FAST)
def on_points(chunk, count, h, soft, stored):
    """Write the indices of a chunk's atoms nearer than `soft` to a point of the tile's lattice; return their number."""
    x, y, z = chunk[0], chunk[1], chunk[2]
    half = x.dtype.type(0.5)  # points are at odd multiples of h/2
    near = 0
    for k in range(count):
        dx, dy, dz = x[k] / h[0] + half, y[k] / h[1] + half, z[k] / h[2] + half
        dx, dy, dz = dx - np.rint(dx), dy - np.rint(dy), dz - np.rint(dz)
        near += abs(dx) * h[0] < soft and abs(dy) * h[1] < soft and abs(dz) * h[2] < soft
    if near == 0:  # the usual case, for which the loop above is vectorised
        return 0
    near = 0
    for k in range(count):
        dx, dy, dz = x[k] / h[0] + half, y[k] / h[1] + half, z[k] / h[2] + half
        dx, dy, dz = dx - np.rint(dx), dy - np.rint(dy), dz - np.rint(dz)
        stored[near] = k
        near += abs(dx) * h[0] < soft and abs(dy) * h[1] < soft and abs(dz) * h[2] < soft
    return near
