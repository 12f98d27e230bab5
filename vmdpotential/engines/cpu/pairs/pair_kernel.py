"""Kernels that sum a list of clusters, see pairs/search.cu.

Terms are evaluated by a traced program, in REAL. Each thread has its own sums of the atoms, in REAL too; virials are
summed in float64.

This file is run once for each set of the constants that it declares, see
:mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import carray, njit

from vmdpotential.compiling.meeting import address, take, wait
from vmdpotential.compiling.threads import SUMMED, WRITTEN
from vmdpotential.engines.cpu.scalar import scalar_pairs
from vmdpotential.interactions.program import Program

#: Programs for pairs, for pairs whose atoms i lack a term (or None), and for excluded pairs (or None).
PROGRAMS: tuple[Program, Program | None, Program | None]
#: Indices of the energies that the first two programs return after the slope.
OUTPUTS: tuple[tuple[int, ...], tuple[int, ...]]
#: Names of the parameters of an atom, and of two types.
NAMES: tuple[str, ...]
TABLES: tuple[str, ...]
#: Number of atoms of a cluster and of a chunk, bits of a float, and whether atoms j are packed.
M: int
N: int
BITS: int
PACKED: bool
#: Whether the virial is summed, whether distances are softened, and whether forces on i and j differ.
VIRIAL: bool
SOFT: bool
ONE_SIDED: bool
#: Whether plain loops replace vector code.
PLAIN: bool

REAL = np.float64 if BITS == 64 else np.float32
FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True}
#: Number of chunks that a thread gathers at a time.
GRAIN = 64
ROWS = 3 + len(NAMES) + (1 if TABLES else 0)
ENERGIES = len(OUTPUTS[0])
CHANNELS = 3 + ENERGIES
LIGHT = PROGRAMS[1] is not None and not PLAIN
EXCLUDED = PROGRAMS[2] is not None

if not PLAIN:
    from vmdpotential.engines.cpu.pairs.pair_vectors import ROW, entry_loops

    _constants = (NAMES, TABLES, M, N, BITS, PACKED, OUTPUTS, VIRIAL, SOFT, ONE_SIDED)
    whole_entry = entry_loops((PROGRAMS[0], None, PROGRAMS[2]), *_constants)
    light_entry = entry_loops(PROGRAMS, *_constants) if LIGHT else whole_entry
else:
    ROW = 1
    pair = scalar_pairs(PROGRAMS[0], REAL, NAMES, TABLES)
    excluded_pair = scalar_pairs(PROGRAMS[2], REAL, NAMES, TABLES) if EXCLUDED else pair

    @njit(**FAST)
    def whole_entry(atoms_i, centres_i, sums_i, atoms_j, centres_j, sums_j, chunks, bitsets, masks, values,
                    pair_tables, types_count, step, rest, cutoff2, soft2, aside, chunk_i, lane_i, first, dense, packs,
                    end, mask, buffer, total):
        """Replace the code of :mod:`vmdpotential.engines.cpu.pairs.pair_vectors` by loops over pairs."""
        d = np.empty(3, REAL)
        origin, table = np.empty(3, REAL), np.zeros(max(1, len(TABLES)), REAL)
        for k in range(3):
            origin[k] = centres_i[chunk_i, k] + step[k]
        for e in range(first, end):
            cj = chunks[e]
            for a in range(M):
                count, normal = np.int64(bitsets[e]), np.int64(bitsets[e])
                if e < dense:
                    count, normal = np.int64(masks[mask + e - first, a, 0]), np.int64(masks[mask + e - first, a, 1])
                i = lane_i + a
                for j in range(N):
                    if not count >> j & 1:
                        continue
                    r2 = soft2
                    for k in range(3):
                        d[k] = (atoms_i[chunk_i, k, i] + rest[k]) - (atoms_j[cj, k, j] + (centres_j[cj, k] - origin[k]))
                        r2 += d[k] * d[k]
                    if not r2 < cutoff2:
                        continue
                    for k in range(len(TABLES)):
                        ti, tj = int(atoms_i[chunk_i, ROWS - 1, i]), int(atoms_j[cj, ROWS - 1, j])
                        table[k] = pair_tables[k, ti * types_count + tj]
                    rinv = REAL(2) / REAL(math.sqrt(r2))
                    if normal >> j & 1:
                        given = pair(r2 * REAL(0.25), rinv, atoms_i[chunk_i, 3:, i], atoms_j[cj, 3:, j], table, values)
                        back = given
                        if ONE_SIDED:
                            back = pair(r2 * REAL(0.25), rinv, atoms_j[cj, 3:, j], atoms_i[chunk_i, 3:, i], table,
                                        values)
                    else:
                        given = excluded_pair(r2 * REAL(0.25), rinv, atoms_i[chunk_i, 3:, i], atoms_j[cj, 3:, j],
                                              table, values)
                        back = given
                        if ONE_SIDED:
                            back = excluded_pair(r2 * REAL(0.25), rinv, atoms_j[cj, 3:, j], atoms_i[chunk_i, 3:, i],
                                                 table, values)
                    for k in range(3):
                        sums_i[chunk_i, k, i] += given[0] * d[k]
                        sums_j[cj, k, j] -= back[0] * d[k]
                    for k in range(ENERGIES):
                        sums_i[chunk_i, 3 + k, i] += given[1 + k]
                        sums_j[cj, 3 + k, j] += back[1 + k]
                    if VIRIAL:
                        w = REAL(0.5) * (given[0] + back[0])
                        at = 0
                        for x in range(3):
                            for y in range(x, 3):
                                total[at] += np.float64(w * d[x] * d[y])
                                at += 1

    light_entry = whole_entry


@njit(**FAST)
def _add(entries, chunks, bits, masks, atoms_i, centres_i, sums_i, atoms_j, centres_j, sums_j, values, tables, kinds,
         steps, rests, cutoff2, soft2, aside, total, buffer):
    """Add the pairs of some entries to the sums (chunks, CHANNELS, N) of both sets, and their virial to total (6,)."""
    for e in range(len(entries)):
        ci, sh = entries[e, 0], entries[e, 1]
        if LIGHT and entries[e, 7]:
            light_entry(atoms_i, centres_i, sums_i, atoms_j, centres_j, sums_j, chunks, bits, masks, values, tables,
                        kinds, steps[sh], rests[sh], cutoff2, soft2, aside, ci * M // N, ci * M % N, entries[e, 2],
                        entries[e, 3], entries[e, 4], entries[e, 5], entries[e, 6], buffer, total)
        else:
            whole_entry(atoms_i, centres_i, sums_i, atoms_j, centres_j, sums_j, chunks, bits, masks, values, tables,
                        kinds, steps[sh], rests[sh], cutoff2, soft2, aside, ci * M // N, ci * M % N, entries[e, 2],
                        entries[e, 3], entries[e, 4], entries[e, 5], entries[e, 6], buffer, total)


@njit(**FAST)
def run(counters, writes, first, last, begin, end, parts, atoms_i, centres_i, sums_i, atoms_j, centres_j, sums_j,
        values, tables, kinds, steps, rests, cutoff2, soft2, aside, total):
    """Add the pairs of parts first <= k < last of the list to a worker's sums; its parts are begin <= k < end.

    It waits until all threads have written the positions, `writes` in total, and resets the sums before the first part.

    `parts` (P, 5) are the addresses and lengths of the parts' arrays. Atoms at the coordinates `aside` relative to a
    chunk's centre are out of range of its atoms.
    """
    room = np.zeros((ROWS + CHANNELS) * ROW + 80, REAL)
    buffer = room[(64 - room.ctypes.data % 64) % 64 * 8 // BITS :]
    if first == begin:
        sums_i[:] = 0
        if sums_j.ctypes.data != sums_i.ctypes.data:
            sums_j[:] = 0
    if not wait(counters, WRITTEN, writes):
        return
    for k in range(first, last):
        _add(carray(address(parts[k, 0]), (parts[k, 1], 9), np.int64), carray(address(parts[k, 2]), (1,), np.int32),
             carray(address(parts[k, 3]), (1,), np.uint16), carray(address(parts[k, 4]), (1, M, 2), np.uint16),
             atoms_i, centres_i, sums_i, atoms_j, centres_j, sums_j, values, tables, kinds, steps, rests, cutoff2,
             soft2, aside, total, buffer)
    if last == end:
        take(counters, SUMMED)


@njit(**FAST)
def gather(counters, workers, counter, slots, sums, turn, slope_factor, forces, energies):
    """Add up the sums (workers, chunks, CHANNELS, N) to forces and energies of the atoms, after all workers are done.

    Each worker takes the next chunks that no other has taken. Sums over workers and the rotation of forces are loops
    over the lanes of a chunk, which become vector code, before the values are written to the atoms.
    """
    if not wait(counters, SUMMED, workers):
        return
    total = np.empty((CHANNELS, N))
    chunks = sums.shape[1]
    first = take(counters, counter) * GRAIN
    while first < chunks:
        for c in range(first, min(first + GRAIN, chunks)):
            for k in range(CHANNELS):
                for lane in range(N):
                    total[k, lane] = np.float64(sums[0, c, k, lane])
                for t in range(1, workers):
                    for lane in range(N):
                        total[k, lane] += np.float64(sums[t, c, k, lane])
            for lane in range(N):
                x, y, z = slope_factor * total[0, lane], slope_factor * total[1, lane], slope_factor * total[2, lane]
                for d in range(3):
                    total[d, lane] = x * turn[d, 0] + y * turn[d, 1] + z * turn[d, 2]
            for lane in range(N):
                a = slots[c * N + lane]
                if a < 0:
                    break
                for d in range(3):
                    forces[a, d] = total[d, lane]
                for k in range(ENERGIES):
                    energies[a, k] = 0.5 * total[3 + k, lane]
        first = take(counters, counter) * GRAIN
