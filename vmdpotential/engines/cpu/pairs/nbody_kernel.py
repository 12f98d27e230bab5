"""Kernels of sums over all pairs of atoms: forces, energies and jerks.

Each pair is computed once, for both atoms. Some atoms i, each broadcast to all lanes, are combined with vectors of
atoms j. Sums of atoms i stay in registers, those of atoms j in a table that fits into the caches; both are added to
float64 sums after some hundred terms. Vectors with pairs that do not count (an atom with itself or with an earlier one,
padding) or are excluded are computed by a separate loop with a bit for each pair.

This file is run once for each set of the constants that it declares, see
:mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit

from vmdpotential.engines.cpu.pairs.nbody import PairShape

#: The programs, their parameters, and the unrolling of loops.
SHAPE: PairShape
#: Whether plain loops replace vector code.
PLAIN: bool

#: Largest number of atoms i, and of vectors of atoms j, in a tile.
ATOMS, VECTORS = 256, 128

I = SHAPE.unroll_i  # noqa: E741
SIZE = SHAPE.first + SHAPE.terms
REAL = np.float64 if SHAPE.bits == 64 else np.float32
FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True}

if PLAIN:
    from vmdpotential.engines.cpu.scalar import scalar_pairs

    WIDTH = 16
    TERMS, JERK, SYMMETRIC, FIRST = SHAPE.terms, SHAPE.jerk, SHAPE.symmetric, SHAPE.first
    EXCLUDED = SHAPE.programs[1] is not None
    RESULTS = 1 + JERK + TERMS
    pair = scalar_pairs(SHAPE.programs[0], REAL, SHAPE.names, SHAPE.tables)
    excluded_pair = scalar_pairs(SHAPE.programs[1], REAL, SHAPE.names, SHAPE.tables) if EXCLUDED else pair
    QUARTER, HALF = REAL(0.25), REAL(0.5)

    @njit(**FAST)
    def add(sums, place, values, dx, dy, dz, ux, uy, uz, along):
        """Add the contributions of a pair to the sums of one of its atoms."""
        slope = values[0]
        sums[0, place] += slope * dx
        sums[1, place] += slope * dy
        sums[2, place] += slope * dz
        if JERK:
            bend = values[1] * along
            sums[3, place] += slope * ux + bend * dx
            sums[4, place] += slope * uy + bend * dy
            sums[5, place] += slope * uz + bend * dz
        for n in range(TERMS):
            sums[FIRST + n, place] += values[1 + JERK + n]

    @njit(**FAST)
    def masked(table_i, stride_i, first_i, rows_i, table_j, stride_j, rows_j, start, stop, base, left, excluded, values,
            tables, types, soft2, sums, scratch, stride):
        """Add the pairs of atoms i and vectors start to stop of atoms j; see `sum_pairs` of nbody_loop."""
        zero = REAL(0)
        for k in range(I):
            i = first_i + k
            for j in range(start * WIDTH, stop * WIDTH):
                bit = np.uint64(1) << np.uint64(k * WIDTH + j % WIDTH)
                if left & bit:
                    continue
                dx, dy, dz = (table_i[0, i] - table_j[0, j], table_i[1, i] - table_j[1, j],
                              table_i[2, i] - table_j[2, j])
                r2 = dx * dx + dy * dy + dz * dz + soft2
                rinv = REAL(2) / np.sqrt(r2)
                r2 *= QUARTER
                ux = uy = uz = along = zero
                if JERK:
                    ux, uy, uz = (table_i[3, i] - table_j[3, j], table_i[4, i] - table_j[4, j],
                                  table_i[5, i] - table_j[5, j])
                    along = (dx * ux + dy * uy + dz * uz) * HALF
                other = EXCLUDED and (excluded & bit) != 0
                pi, pj = table_i[FIRST:, i], table_j[FIRST:, j]
                table = tables[:, rows_i[i], rows_j[j]] if len(rows_i) else tables[:, 0, 0]
                result = (excluded_pair(r2, rinv, pi, pj, table, values) if other else
                         pair(r2, rinv, pi, pj, table, values))
                add(sums, k * WIDTH, result, dx, dy, dz, ux, uy, uz, along)
                if not SYMMETRIC:
                    result = (excluded_pair(r2, rinv, pj, pi, table, values) if other else
                             pair(r2, rinv, pj, pi, table, values))
                add(scratch, j - base * WIDTH, result, -dx, -dy, -dz, -ux, -uy, -uz, along)

    many = masked

    @njit(**FAST)
    def fold(sums, out, stride, first_i):
        """Add the sums of atoms i to out in float64, and reset them to zero."""
        for n in range(SIZE):
            for k in range(I):
                out[n, first_i + k] += sums[n, k * WIDTH]
                sums[n, k * WIDTH] = 0

else:
    from vmdpotential.compiling.simd import LANES
    from vmdpotential.engines.cpu.pairs.nbody_loop import vector_loops

    WIDTH = LANES[SHAPE.bits]
    many, masked, fold = vector_loops(SHAPE)


@njit(**FAST)
def run(table_i, rows_i, table_j, rows_j, vectors, values, tables, types, soft2, alone, start, step, left,
        excluded, sums, scratch, atoms, out_i, out_j, part, parts):
    """Sum the tiles of pairs of one part.

    Parameters
    ----------
    table_i, table_j : (columns, stride) float32 or float64
        Coordinates, velocities for jerks, and parameters of the atoms.
    rows_i, rows_j : (N,) int64
        Types of the atoms, their rows in the tables (T, types, types); empty without tables.
    vectors : int
        Number of vectors of atoms j, of which the last is padded.
    values : 1-d
        Uniform parameters.
    soft2 : float
        Square of the softening length.
    alone : bool
        Whether atoms j are atoms i; then j is the later atom of each pair.
    start : (groups + 1,) int64
        First index in the next three arrays of each group of I atoms i.
    step : (S,) int64
        Vectors of atoms j with masks, ascending within each group.
    left, excluded : (S,) uint64
        Bits (I, WIDTH) of the pairs that do not count, and of excluded pairs with a correction.
    sums, scratch : (size, I * WIDTH), (size, VECTORS * WIDTH), zeros
        Work arrays for the sums of atoms i and j.
    atoms : int
        Number of atoms i in a tile, a multiple of I.
    out_i, out_j : (size, stride) float64
        Sums of atoms i and j.
    part, parts : int
        Number of this part, and number of parts among which the tiles are divided.
    """
    groups, stride_i, stride_j = len(start) - 1, table_i.shape[1], table_j.shape[1]
    many_groups = atoms // I
    tile = 0
    for first in range(0, groups, many_groups):
        last = min(groups, first + many_groups)
        for base in range(0, vectors, VECTORS):
            end = min(vectors, base + VECTORS)
            if alone and end * WIDTH <= first * I:
                continue
            tile += 1
            if tile % parts != part:
                continue
            for group in range(first, last):
                i = group * I
                vector = max(base, i // WIDTH) if alone else base
                place = start[group]
                while place < start[group + 1] and step[place] < vector:
                    place += 1
                while vector < end:
                    following = min(end, step[place]) if place < start[group + 1] else end
                    if vector < following:
                        many(table_i, stride_i, i, rows_i, table_j, stride_j, rows_j, vector, following, base,
                             np.uint64(0), np.uint64(0), values, tables, types, soft2, sums, scratch,
                             VECTORS * WIDTH)
                    if following < end:
                        masked(table_i, stride_i, i, rows_i, table_j, stride_j, rows_j, following, following + 1, base,
                               left[place], excluded[place], values, tables, types, soft2, sums, scratch,
                               VECTORS * WIDTH)
                        place += 1
                    vector = following + 1
                fold(sums, out_i, out_i.shape[1], i)
            for n in range(SIZE):
                for k in range((end - base) * WIDTH):
                    out_j[n, base * WIDTH + k] += scratch[n, k]
                    scratch[n, k] = 0
