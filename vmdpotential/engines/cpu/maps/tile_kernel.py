"""Kernels of lattice sums of atoms at tiles of lattice points.

A task is a tile of 8^3 points. Positions of the atoms in range of the tile relative to its centre are computed in
float64 and then rounded, so that large coordinates do not cost digits in single precision. The atoms are processed in
chunks that stay in the first-level cache, with tables of the squared distances along x. Each leaf of 4^3 points, lanes
along y and z, then sums the atoms in range of it (:func:`leaf`).

Lengths are in units of a power of two times the spacing, in which lattice points have exact coordinates. Sums of a
block of atoms are kept in registers and added to float64 sums, because the error of a single-precision map is limited
by the rounding of long running sums, not by that of their terms.

With FIELD the kernel sums the field in addition to the potential: dV/d(r^2) is derived from the traced function
(:mod:`vmdpotential.interactions.derivative`) and multiplied by the distances from which r^2 was computed, so that the
field is as precise as the potential.

This file is run once for each set of the constants that it declares, see
:mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

from vmdpotential.engines.cpu.maps.rows import (
    CHUNK,
    FAST,
    FLAT,
    GAP,
    ROW,
    ROWS,
    Q,
    X,
    Y,
    Z,
    on_points,
    rows_in_range,
    tabulate,
    write_tile,
)
from vmdpotential.engines.cpu.scalar import scalar
from vmdpotential.interactions.program import Program

#: The traced radial function.
PROGRAM: Program
#: One of vmdpotential.engines.PRECISIONS.
PRECISION: str
#: Whether pairs beyond the cutoff must be masked.
MASKED: bool
#: Whether the field is summed in addition to the potential.
FIELD: bool
#: Whether plain loops replace vector code.
PLAIN: bool

# Compensated sums of float32 terms would be limited by the rounding of the terms; float64 vectors with one Newton step
# take little more time than compensation and avoid both errors.
BITS = 32 if PRECISION == "single" else 64
NEWTON_STEPS = 2 if PRECISION == "double" else 1
REAL = np.float64 if BITS == 64 else np.float32

BLOCK = 128  # number of atoms that are summed in registers before the sum is added to float64
MAPS = 4 if FIELD else 1  # potential, and its gradient along x, y, z
FAR = REAL(1000 * np.sqrt(2))  # coordinate of atoms that must not count, which is on no lattice point

#: The inner loop evaluates the radial function with 2/r for 1/r; this factor of the charges corrects it.
DEGREE = None if FIELD else PROGRAM.degree()
CHARGE_FACTOR = 1.0 if DEGREE is None else 0.5**DEGREE

#: The potential and, with FIELD, its derivative with respect to r2, in float64.
radial = scalar(PROGRAM, np.float64, FIELD)

packed = False
if not PLAIN:
    from vmdpotential.compiling.simd import LEVEL
    from vmdpotential.engines.cpu.maps.leaf import vector_leaf

    leaf = vector_leaf(PROGRAM, BITS, NEWTON_STEPS, MASKED, FIELD)
    packed = LEVEL == "avx512" and BITS == 32
else:
    term = scalar(PROGRAM, REAL, FIELD)

    @njit(**FAST)
    def leaf(table, index, first, count, row, cy, cz, hy, hz, cutoff2, values, sums, offset):
        """Replace :mod:`vmdpotential.engines.cpu.maps.leaf` by loops over the points that LLVM may vectorise."""
        y, z, part = np.empty(64, REAL), np.empty(64, REAL), np.zeros((MAPS, 64), REAL)
        for n in range(64):
            y[n] = cy + hy * (REAL(n // 4 % 4) - REAL(1.5))
            z[n] = cz + hz * (REAL(n % 4) - REAL(1.5))
        for a in range(first, first + count):
            j = index[a]
            yj, zj, qj = table[Y, j], table[Z, j], table[Q, j] / REAL(CHARGE_FACTOR)
            for n in range(64):
                dx, dy, dz = table[row + n // 16, j], y[n] - yj, z[n] - zj
                r2 = (dx * dx if FIELD else dx) + dy * dy + dz * dz
                q = qj
                if MASKED:
                    q = qj if r2 < cutoff2 else REAL(0)
                if FIELD:
                    potential, slope = term(r2, REAL(1) / math.sqrt(r2), values)
                    part[0, n] += q * potential
                    part[1, n] += q * slope * dx
                    part[2, n] += q * slope * dy
                    part[3, n] += q * slope * dz
                else:
                    part[0, n] += q * term(r2, REAL(1) / math.sqrt(r2), values)
        for k in range(MAPS):
            for n in range(64):
                sums[512 * k + offset + n] += part[k, n]


if packed:
    from vmdpotential.engines.cpu.maps.filters import in_leaf, in_tile
else:
    from vmdpotential.engines.cpu.maps.rows import in_leaf, in_tile


# functions that depend on the program and are called only in one place are inlined into `run`: otherwise LLVM would
# compile them twice, inside of it and separately
@njit(**FLAT)
def take_out_coincident(chunk, count, h, soft, cutoff, values, sums, index):
    """Sum the atoms that coincide with a lattice point, nearer than `soft`, separately from the others.

    At that point they count as at distance `soft`, within which the potential is constant and the field zero. In the
    chunk they are moved out of reach, so that the main loop needs no guard against r = 0.
    """
    x, y, z = chunk[0], chunk[1], chunk[2]
    for place in range(on_points(chunk, count, h, soft, index)):
        k = index[place]
        for n in range(512):
            part = n // 64
            px = h[0] * (part // 4 * 4 + n // 16 % 4 - 3.5) - x[k]
            py = h[1] * (part // 2 % 2 * 4 + n // 4 % 4 - 3.5) - y[k]
            pz = h[2] * (part % 2 * 4 + n % 4 - 3.5) - z[k]
            r2 = float(px * px + py * py + pz * pz)
            r2, outside = max(r2, float(soft) ** 2), r2 >= float(soft) ** 2
            if r2 < cutoff * cutoff or cutoff == 0:
                charge = chunk[3, k] / CHARGE_FACTOR  # the chunk's charges include the factor for the main loop
                if FIELD:
                    potential, slope = radial(r2, 1 / math.sqrt(r2), values)
                    sums[n] += charge * potential
                    if outside:
                        sums[512 + n] += charge * slope * px
                        sums[1024 + n] += charge * slope * py
                        sums[1536 + n] += charge * slope * pz
                else:
                    sums[n] += charge * radial(r2, 1 / math.sqrt(r2), values)
        x[k] = FAR
        chunk[3, k] = REAL(0)


@njit(**FLAT)
def sum_chunk(chunk, count, table, index, h, soft, cutoff, values, exact_values, sums, left):
    """Add the potential of the chunk's atoms to the sums of one tile.

    chunk (4, ROW): x, y, z relative to the tile's centre, and q. sums (MAPS * 512,) float64: sorted by map and leaf,
    within a leaf [x, y, z]. left (3,): number of lattice points along each axis from the tile's first on; leaves
    outside of the lattice are skipped. With a `cutoff` of 0 all atoms count.
    """
    take_out_coincident(chunk, count, h, soft, cutoff, exact_values, sums, index)
    everything = cutoff == 0
    cutoff2 = REAL(cutoff * cutoff)
    tabulate(chunk, count, table, h, FAR, FIELD, not everything)
    for part in range(8):
        px, py, pz = part // 4, part // 2 % 2, part % 2
        if 4 * px >= left[0] or 4 * py >= left[1] or 4 * pz >= left[2]:
            continue
        result = count
        if everything:
            for k in range(count):
                index[k] = np.int32(k)
        else:
            result = in_leaf(table, GAP + px, GAP + 2 + py, GAP + 4 + pz, count, cutoff2, index)
        for pad in range(4):
            index[result + pad] = np.int32(count)
        for first in range(0, result, BLOCK):
            leaf(table, index, first, min(BLOCK, result - first), X + 4 * px, REAL(4 * py - 2) * h[1],
                 REAL(4 * pz - 2) * h[2], h[1], h[2], cutoff2, values, sums, part * 64)


@njit(**FAST)
def run(x, y, z, q, start, bins, bin_size, cutoff, maps, origin, spacing, values, soft, factors, add, first_task,
        last_task):
    """Write the sums of tiles first_task <= t < last_task of 8^3 points to maps (MAPS, nx, ny, nz), or add them.

    Atoms x, y, z, q are float64 (N + 16,), sorted by bin, with 16 elements that are read but do not count; `start`
    (bins + 1,) is the first atom of each bin. With a `cutoff` of 0 all atoms count, and are in one bin.
    """
    chunk, table = np.zeros((4, ROW), REAL), np.empty((ROWS, ROW), REAL)
    index = np.empty(ROW + 64, np.int32)
    sums = np.empty(MAPS * 512, np.float64)
    shape = maps.shape[1:]
    centre, half, h = np.empty(3), np.empty(3), np.empty(3, REAL)
    tile, left = np.empty(3, np.int64), np.empty(3, np.int64)
    tiles_y, tiles_z = (shape[1] + 7) // 8, (shape[2] + 7) // 8
    real_values = values.astype(REAL)
    for d in range(3):
        h[d] = REAL(spacing[d])
        half[d] = 3.5 * spacing[d]
    reach_x, reach_y = 2 * (half[0] + cutoff), 2 * (half[1] + cutoff)
    rows = np.empty(((int(reach_x / bin_size) + 3) * (int(reach_y / bin_size) + 3), 2), np.int64)
    cutoff2 = REAL(cutoff * cutoff) if cutoff > 0 else REAL(1e30)  # fastmath does not allow infinity
    for task in range(first_task, last_task):
        tile[0], tile[1], tile[2] = task // (tiles_y * tiles_z), task // tiles_z % tiles_y, task % tiles_z
        for d in range(3):
            tile[d] *= 8
            left[d] = shape[d] - tile[d]
            centre[d] = origin[d] + (tile[d] + 3.5) * spacing[d]
        sums[:] = 0
        row_count = 1
        if cutoff > 0:
            row_count = rows_in_range(start, bins, bin_size, cutoff, centre, half, rows)
        else:
            rows[0, 0], rows[0, 1] = start[0], start[1]
        count = np.int64(0)  # a literal 0 has another type, for which the functions below would be compiled again
        for row in range(row_count):
            first, end = rows[row, 0], rows[row, 1]
            while first < end:
                room = min(end - first, CHUNK - count)
                count = in_tile(x, y, z, q, first, room, centre[0], centre[1], centre[2], REAL(half[0]), REAL(half[1]),
                                REAL(half[2]), cutoff2, chunk, count)
                first += room
                last = first == end and row == row_count - 1
                if count > CHUNK - 16 or (last and count > 0):
                    sum_chunk(chunk, count, table, index, h, soft, cutoff, real_values, values, sums, left)
                    count = np.int64(0)
        for n in range(MAPS):
            write_tile(sums[n * 512 : (n + 1) * 512], maps[n], tile, factors[n], add)
