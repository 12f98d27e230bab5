"""The kernel of histograms of distances, between atoms of a cell and those of the rows of cells around it.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit

BUFFER = 1024  # number of distances that are computed before they are counted

FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True}


@njit(**FAST)
def count(x, y, z, first, last, a, b, c, scale, bins, place, counts):
    """Count the distances of atoms first to last from (a, b, c) in counts (4, bins + 1); place is scratch."""
    top = np.float64(bins)
    for begin in range(first, last, BUFFER):
        size = min(BUFFER, last - begin)
        u, v, w = x[begin : begin + size], y[begin : begin + size], z[begin : begin + size]
        for k in range(size):
            dx, dy, dz = u[k] - a, v[k] - b, w[k] - c
            place[k] = np.int32(min(np.sqrt(dx * dx + dy * dy + dz * dz) * scale, top))
        whole = size // 4 * 4
        for k in range(0, whole, 4):  # in four tables, because increments of one table would wait for each other
            counts[0, place[k]] += 1
            counts[1, place[k + 1]] += 1
            counts[2, place[k + 2]] += 1
            counts[3, place[k + 3]] += 1
        for k in range(whole, size):
            counts[0, place[k]] += 1


@njit(**FAST)
def run(px, py, pz, start_i, x, y, z, start, shape, basis, periodic, alone, rows, scale, bins, counts, first_cell,
        last_cell):
    """Count the distances of the atoms in cells first_cell <= c < last_cell.

    Parameters
    ----------
    px, py, pz, start_i : 1-d
        Coordinates of atoms i, sorted by cell with z fastest, and the first atom of each cell.
    x, y, z, start : 1-d
        The same of atoms j.
    shape : (3,) int64
        Number of cells along the three vectors of `basis` (3, 3), which repeat if the system is `periodic`.
    alone : bool
        Whether atoms j are atoms i; then only rows on one side are given, and pairs within a cell count once.
    rows : (R, 4) int64
        Rows of cells around a cell: offsets along the first two vectors, first and last offset along the third.
    scale : float
        Bins per length.
    counts : (4, bins + 1) int64
        Four tables, to be added; the last bin counts all larger distances.
    """
    place = np.empty(BUFFER, np.int32)
    na, nb, nc = shape
    for cell in range(first_cell, last_cell):
        if start_i[cell] == start_i[cell + 1]:
            continue
        ca, cb, cc = cell // (nb * nc), cell // nc % nb, cell % nc
        for r in range(len(rows)):
            a, b, c, last = ca + rows[r, 0], cb + rows[r, 1], cc + rows[r, 2], cc + rows[r, 3]
            ia, ib = a // na, b // nb
            if not periodic:
                if ia != 0 or ib != 0:
                    continue
                c, last = max(c, 0), min(last, nc - 1)
            own = alone and rows[r, 0] == 0 and rows[r, 1] == 0
            row = ((a - ia * na) * nb + b - ib * nb) * nc
            while c <= last:  # image by image
                ic = c // nc
                end = min(last, ic * nc + nc - 1)
                begin, stop = start[row + c - ic * nc], start[row + end - ic * nc + 1]
                sx = ia * basis[0, 0] + ib * basis[1, 0] + ic * basis[2, 0]
                sy = ia * basis[0, 1] + ib * basis[1, 1] + ic * basis[2, 1]
                sz = ia * basis[0, 2] + ib * basis[1, 2] + ic * basis[2, 2]
                for i in range(start_i[cell], start_i[cell + 1]):
                    later = i + 1 if own and c == cc else begin  # this row begins with the cell itself
                    count(x, y, z, later, stop, px[i] - sx, py[i] - sy, pz[i] - sz, scale, bins, place, counts)
                c = end + 1
