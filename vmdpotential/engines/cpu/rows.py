"""Runs of atoms that a tile of lattice points takes, the table that they are put in, and the tile written to a map.

What knows no radial function is here: it is compiled once for the kernels of all.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

CHUNK = 512  # atoms whose tables are in the first-level cache together
ROW = CHUNK + 32  # length of a table row: room for padding and for reading ahead
Y, Z, Q, X, GAP = 0, 1, 2, 3, 11  # rows of the table; eight of X, six of GAP
ROWS = 17

FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True}


@njit(**FAST)
def rows_in_range(start, bins, bin_size, cutoff, centre, half, rows):
    """Write the runs of atoms in rows of bins along z in reach of a tile to rows (R, 2); return how many.

    Atoms are sorted by bin, z fastest, so that the bins of a row are one run; a row is clipped by
    its distance to the tile.
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
    """Write the 8^3 sums of a tile, leaf by leaf, into a map from index `first` on, or add them to it."""
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
