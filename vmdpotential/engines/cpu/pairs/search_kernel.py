"""Kernels that sort atoms into clusters and list the pairs of clusters in range.

Atoms are sorted into spatially compact chunks of N, each of N / M clusters of M. A list has clusters of M atoms i and
the chunks of N atoms j in range, of all images that count (S. Pall, B. Hess, "A flexible algorithm for calculating pair
interactions on SIMD architectures", Comput. Phys. Commun. 184 (2013) 2641-2650). Coordinates in chunks are relative to
their centres, which are on a grid so that differences of two centres are exact in REAL.

This file is run once for each set of the constants that it declares, see
:mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

from vmdpotential.compiling.meeting import stop, take
from vmdpotential.compiling.threads import WRITTEN

#: Number of atoms i of a cluster, and of atoms j of a chunk, N >= M.
M: int
N: int
#: Bits of a float in the chunks.
BITS: int
#: Whether plain loops replace vector code.
PLAIN: bool

REAL = np.float64 if BITS == 64 else np.float32
FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True}
#: Options of functions whose numbers may be infinite or NaN.
CAREFUL = FAST | {"fastmath": {"reassoc", "contract", "nsz"}}

#: Coordinate of empty slots in chunks, out of reach of every atom.
FAR = 1e6
#: Largest number of atoms j of an entry of the list, so that they fit into the first-level cache.
MOST = 960
#: Number of bits of a slot in a number that combines it with the code of an image.
SLOTS = 33
SLOT = (1 << SLOTS) - 1
#: With this many atoms in range a whole chunk is summed, because packing takes longer than its other pairs.
FULL = 3 * N // 4
ALL = (1 << N) - 1

#: Number of chunks that a thread writes positions to at a time.
GRAIN = 64

#: Number of clusters of a chunk.
EACH = N // M

if PLAIN:

    def range_filter(m, n, bits, clusters):
        """Return a replacement of :func:`vmdpotential.engines.cpu.pairs.search_vectors.range_filter` in loops."""

        @njit(**FAST)
        def in_range(place, atoms, chunk, limit, x, y, z):
            result = 0
            for c in range(clusters):
                for j in range(n):
                    least = limit
                    for i in range(c * m, c * m + m):
                        dx = place[0, i] - (atoms[chunk, 0, j] + x)
                        dy = place[1, i] - (atoms[chunk, 1, j] + y)
                        dz = place[2, i] - (atoms[chunk, 2, j] + z)
                        least = min(least, dx * dx + dy * dy + dz * dz)
                    result |= (least < limit) << (c * n + j)
            return result

        return in_range

    @njit(**FAST)
    def popcount(number):
        """Return the number of set bits of an integer."""
        count = 0
        while number:
            number &= number - 1
            count += 1
        return count
    PACKS = False
else:
    from vmdpotential.compiling.simd import LEVEL
    from vmdpotential.engines.cpu.pairs.moves import place_writer
    from vmdpotential.engines.cpu.pairs.search_vectors import popcount, range_filter

    PACKS = LEVEL == "avx512" and N % 8 == 0

in_range = range_filter(M, N, BITS, EACH)


@njit(**FAST)
def place(positions, turn, low, vectors, sides, shape, side, layers, places, column, key):
    """Write the coordinates of positions (N, 3) wrapped into the box, their columns, and the keys that sort them.

    Lattice vectors are lower triangular, or zeros without a cell.
    """
    for a in range(len(positions)):
        px, py, pz = positions[a, 0], positions[a, 1], positions[a, 2]
        x = px * turn[0, 0] + py * turn[1, 0] + pz * turn[2, 0] - low[0]
        y = px * turn[0, 1] + py * turn[1, 1] + pz * turn[2, 1] - low[1]
        z = px * turn[0, 2] + py * turn[1, 2] + pz * turn[2, 2] - low[2]
        if vectors[0, 0] > 0:
            n = math.floor(z / sides[2])
            x, y, z = x - n * vectors[2, 0], y - n * vectors[2, 1], z - n * vectors[2, 2]
            n = math.floor(y / sides[1])
            x, y = x - n * vectors[1, 0], y - n * vectors[1, 1]
            x -= math.floor(x / sides[0]) * vectors[0, 0]
        places[a, 0], places[a, 1], places[a, 2] = x, y, z
        cx = min(max(int(x / side[0]), 0), shape[0] - 1)
        cy = min(max(int(y / side[1]), 0), shape[1] - 1)
        column[a] = cx * shape[1] + cy
        key[a] = column[a] * layers + min(max(int(z / side[2] * layers), 0), layers - 1)


@njit(**FAST)
def make_chunks(order, column, places, tallest, slots, start):
    """Write the atoms, sorted by column and height, to slots chunk by chunk; return the number of chunks.

    A chunk ends with its column, when it is full, and before it would be taller than `tallest`. `start` (columns + 1)
    is filled with the first chunk of every column. With empty `slots`, chunks are only counted.
    """
    chunk, filled, bottom, before = -1, N, 0.0, -1
    for a in order:
        if filled == N or column[a] != before or places[a, 2] - bottom > tallest:
            chunk += 1
            filled, bottom = 0, places[a, 2]
            for c in range(before + 1, column[a] + 1):
                start[c] = chunk
            before = column[a]
        if len(slots):
            slots[chunk * N + filled] = a
        filled += 1
    for c in range(before + 1, len(start)):
        start[c] = chunk + 1
    return chunk + 1


@njit(**FAST)
def _sort(slots, first, count, keys, axis, kept, key):
    """Sort some slots by the keys of their atoms, with empty slots last; stable.

    It is a rank sort, without branches, which would be unpredictable here.
    """
    for k in range(count):
        kept[k] = a = slots[first + k]
        key[k] = keys[a, axis] if a >= 0 else 1e300
    for k in range(count):
        rank = 0
        for n in range(k):
            rank += key[n] <= key[k]
        for n in range(k + 1, count):
            rank += key[n] < key[k]
        slots[first + rank] = kept[k]


@njit(**FAST)
def make_clusters(slots, places, lacks):
    """Halve chunks along x and y alternately down to clusters, and put atoms that lack a term last in each."""
    kept, key = np.empty(N, np.int64), np.empty(N)
    for first in range(0, len(slots), N):
        size, axis = N, 0
        while size > M:
            for part in range(first, first + N, size):
                _sort(slots, part, size, places, axis, kept, key)
            size //= 2
            axis = 1 - axis
        for part in range(first, first + N, M):
            _sort(slots, part, M, lacks, 0, kept, key)


@njit(**FAST)
def fill(slots, rows, lacks, chunks, light):
    """Write parameters (R, N) of atoms to chunks (C, R, N), 0 in empty slots, and flag clusters as light.

    The second half of the atoms of a light cluster lacks a term.
    """
    for c in range(len(chunks)):
        for k in range(len(rows)):
            for lane in range(N):
                a = slots[c * N + lane]
                chunks[c, k, lane] = rows[k, a] if a >= 0 else 0
        for n in range(EACH):
            light[c * EACH + n] = True
            for lane in range(n * M + M // 2, n * M + M):
                a = slots[c * N + lane]
                light[c * EACH + n] &= a < 0 or lacks[a, 0] > 0


@njit(**FAST)
def bound(slots, places, boxes):
    """Write the boxes (lowest and highest x, y, z) around the atoms of every chunk."""
    for b in range(len(boxes)):
        for d in range(3):
            boxes[b, d], boxes[b, 3 + d] = 1e300, -1e300
        for s in range(b * N, b * N + N):
            if slots[s] >= 0:
                for d in range(3):
                    boxes[b, d] = min(boxes[b, d], places[slots[s], d])
                    boxes[b, 3 + d] = max(boxes[b, 3 + d], places[slots[s], d])


@njit(**FAST)
def remember(slots, positions, places, centres, before, homes):
    """Write the positions of the search (chunks, 3, N), as given, and wrapped and relative to the chunks' centres."""
    for s in range(len(slots)):
        chunk, lane = s // N, s % N
        for d in range(3):
            before[chunk, d, lane], homes[chunk, d, lane] = 0.0, FAR  # of no atom
            if slots[s] >= 0:
                before[chunk, d, lane] = positions[slots[s], d]
                homes[chunk, d, lane] = places[slots[s], d] - np.float64(centres[chunk, d])


@njit(**FAST)
def _write_wrapped(atom, chunk, lane, positions, turn, before, vectors, inverse, homes, atoms):
    """Write the image of an atom that is nearest to its position of the search; return its squared displacement."""
    d, move = np.empty(3), np.empty(3)
    for k in range(3):
        move[k] = positions[atom, k] - before[chunk, k, lane]
    for k in range(3):
        d[k] = move[0] * turn[0, k] + move[1] * turn[1, k] + move[2] * turn[2, k]
    for k in range(3):
        move[k] = np.rint(d[0] * inverse[0, k] + d[1] * inverse[1, k] + d[2] * inverse[2, k])
    way = 0.0
    for k in range(3):
        d[k] -= move[0] * vectors[0, k] + move[1] * vectors[1, k] + move[2] * vectors[2, k]
        way += d[k] * d[k]
        atoms[chunk, k, lane] = homes[chunk, k, lane] + d[k]
    return way


@njit(**CAREFUL)
def _place_chunk(slots, positions, turn, before, homes, atoms, c, near2, ways):
    """Replace the function of :func:`vmdpotential.engines.cpu.pairs.moves.place_writer` by a loop."""
    far, total = 0.0, 0.0
    for lane in range(N):
        a = slots[c * N + lane]
        if a < 0:
            break
        mx, my, mz = (positions[a, 0] - before[c, 0, lane], positions[a, 1] - before[c, 1, lane],
                      positions[a, 2] - before[c, 2, lane])
        x = mx * turn[0, 0] + my * turn[1, 0] + mz * turn[2, 0]
        y = mx * turn[0, 1] + my * turn[1, 1] + mz * turn[2, 1]
        z = mx * turn[0, 2] + my * turn[1, 2] + mz * turn[2, 2]
        way = x * x + y * y + z * z
        far = max(far, way)
        total += way
        atoms[c, 0, lane] = homes[c, 0, lane] + x
        atoms[c, 1, lane] = homes[c, 1, lane] + y
        atoms[c, 2, lane] = homes[c, 2, lane] + z
    if far < near2:
        ways[0, 0] = max(ways[0, 0], far)
        ways[1, 0] += total
    return not far < near2


place_chunk = place_writer(N, BITS) if PACKS else _place_chunk


@njit(**CAREFUL)
def _write_some(first, last, slots, positions, turn, before, vectors, inverse, near2, homes, atoms):
    """Write positions to some chunks; return the largest squared displacement."""
    longest, ways = 0.0, np.zeros((2, 8))
    for c in range(first, last):
        if place_chunk(slots, positions, turn, before, homes, atoms, c, near2, ways):
            for lane in range(N):
                if slots[c * N + lane] < 0:
                    break
                way = _write_wrapped(slots[c * N + lane], c, lane, positions, turn, before, vectors, inverse, homes,
                                     atoms)
                longest = max(longest, way if way < np.inf else np.inf)
    return max(longest, ways[0].max()) + 0 * ways[1].sum()


@njit(**CAREFUL)
def write_places(counters, counter, limit2, slots, positions, turn, before, vectors, inverse, near2, homes, atoms):
    """Write rotated positions (N, 3) to chunks, shared among threads; return the largest squared displacement.

    Displacements are relative to `before`, the positions of the search, whose coordinates in chunks are `homes`. If an
    atom has been wrapped since, the image with the smallest displacement counts; displacements shorter than sqrt(near2)
    need no such test. If a position is not finite, the displacement is infinite. If it is longer than sqrt(limit2), all
    threads are stopped.
    """
    longest = 0.0
    first = take(counters, counter) * GRAIN
    while first < len(atoms):
        way = _write_some(first, min(first + GRAIN, len(atoms)), slots, positions, turn, before, vectors, inverse,
                          near2, homes, atoms)
        longest = max(longest, way if way < np.inf else np.inf)
        first = take(counters, counter) * GRAIN
    if longest > limit2:
        stop(counters)
    take(counters, WRITTEN)
    return longest


@njit(**FAST)
def _nearest(d, vectors, inverse, around, shift):
    """Write the multiples of lattice vectors that make d shortest; they may differ from rounded ones by `around`."""
    for k in range(3):
        shift[k] = -np.rint(d[0] * inverse[0, k] + d[1] * inverse[1, k] + d[2] * inverse[2, k])
    best, bi, bj, bk = 1e300, 0, 0, 0
    for i in range(-around, around + 1):
        for j in range(-around, around + 1):
            for k in range(-around, around + 1):
                length = 0.0
                for c in range(3):
                    x = (d[c] + (shift[0] + i) * vectors[0, c] + (shift[1] + j) * vectors[1, c]
                         + (shift[2] + k) * vectors[2, c])
                    length += x * x
                if length < best - 1e-9:
                    best, bi, bj, bk = length, i, j, k
    shift[0] += bi
    shift[1] += bj
    shift[2] += bk


@njit(**FAST)
def code(i, j, k):
    """Return the multiples i, j and k of lattice vectors of an image, coded as one number."""
    return ((i + 512) * 1024 + j + 512) * 1024 + k + 512


@njit(**FAST)
def exclude(pairs, slot, places, vectors, inverse, around, start, partners):
    """Write the partners excluded for every slot, from start[slot] on, as their image's code << SLOTS | their slot."""
    for p in range(len(pairs)):
        start[slot[pairs[p, 0]] + 2] += 1
        start[slot[pairs[p, 1]] + 2] += 1
    for s in range(2, len(start)):
        start[s] += start[s - 1]
    d, shift = np.empty(3), np.zeros(3)
    for p in range(len(pairs)):
        i, j = pairs[p, 0], pairs[p, 1]
        dx, dy, dz = places[i, 0] - places[j, 0], places[i, 1] - places[j, 1], places[i, 2] - places[j, 2]
        if around:
            d[0], d[1], d[2] = dx, dy, dz
            _nearest(d, vectors, inverse, around, shift)
            x, y, z = int(shift[0]), int(shift[1]), int(shift[2])
        else:
            x = -int(np.rint(dx * inverse[0, 0] + dy * inverse[1, 0] + dz * inverse[2, 0]))
            y = -int(np.rint(dx * inverse[0, 1] + dy * inverse[1, 1] + dz * inverse[2, 1]))
            z = -int(np.rint(dx * inverse[0, 2] + dy * inverse[1, 2] + dz * inverse[2, 2]))
        a, b = slot[i], slot[j]
        partners[start[a + 1]] = code(x, y, z) << SLOTS | b
        partners[start[b + 1]] = code(-x, -y, -z) << SLOTS | a
        start[a + 1] += 1
        start[b + 1] += 1


@njit(**FAST)
def _first_at(boxes, low, high, height):
    """Return the first of a column's chunks low <= c < high whose top is not below a height."""
    while low < high:
        middle = (low + high) // 2
        if boxes[middle, 5] < height:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**FAST)
def _masks(ci, cj, half, slots_i, slots_j, start, partners, image, corrects, masks, at):
    """Write masks of the atoms j of a chunk that count, and of those that are not excluded, for each atom i."""
    there = 0
    for lane in range(N):
        there |= (slots_j[cj * N + lane] >= 0) << lane
    for n in range(M):
        i = ci * M + n
        count = there if slots_i[i] >= 0 else 0
        if half:
            count &= ~((2 << (i - cj * N)) - 1)
        normal = count
        if len(start):
            for k in range(start[i], start[i + 1]):
                if partners[k] >> SLOTS == image and (partners[k] & SLOT) // N == cj:
                    normal &= ~(1 << partners[k] % N)
        masks[at, n, 0] = count if corrects else normal
        masks[at, n, 1] = normal


@njit(**FAST)
def _near(box, reach, first, boxes, columns, shape, side, low, slack, ranges):
    """Write the chunks from `first` on whose boxes are nearer to a box than `reach`; return their number.

    Parameters
    ----------
    columns, shape, side, low, slack
        The same as of :func:`search`.
    """
    ax, ay, az, bx, by, bz = box[0], box[1], box[2], box[3], box[4], box[5]
    x0 = max(0, math.floor((ax - reach - low[0]) / side[0]))
    x1 = min(shape[0] - 1, math.floor((bx + reach - low[0]) / side[0]))
    y0 = max(0, math.floor((ay - reach - low[1]) / side[1]))
    y1 = min(shape[1] - 1, math.floor((by + reach - low[1]) / side[1]))
    if bz + reach < low[2] or az - reach > low[2] + side[2]:
        return 0
    count, reach2 = 0, reach * reach
    for cx in range(x0, x1 + 1):
        left = low[0] + cx * side[0]
        gx = max(0.0, max(left - bx, ax - left - side[0]))
        for cy in range(y0, y1 + 1):
            front = low[1] + cy * side[1]
            gy = max(0.0, max(front - by, ay - front - side[1]))
            rest = reach2 - gx * gx - gy * gy
            if rest <= 0:
                continue
            top = math.sqrt(rest) + slack
            column = cx * shape[1] + cy
            end = columns[column + 1]
            for cj in range(_first_at(boxes, max(columns[column], first), end, az - top), end):
                if boxes[cj, 2] > bz + top:
                    break
                dx = max(0.0, max(boxes[cj, 0] - bx, ax - boxes[cj, 3]))
                dy = max(0.0, max(boxes[cj, 1] - by, ay - boxes[cj, 4]))
                dz = max(0.0, max(boxes[cj, 2] - bz, az - boxes[cj, 5]))
                ranges[count] = cj
                count += dx * dx + dy * dy + dz * dz < reach2
    return count


@njit(**FAST)
def search(first, last, same, slots_i, atoms_i, centres_i, boxes_i, slots_j, atoms_j, centres_j, boxes_j, columns,
           shape, side, low, slack, shifts, steps, rests, images, reach, starts, partners, corrects, light,
           entries, chunks, bits, masks, counts):
    """List the chunks in range of the clusters of chunks first <= c < last; return the first chunk that does not fit.

    Parameters
    ----------
    same : bool
        Whether i and j are of one set, of which each pair counts once.
    columns, shape, side, low
        First chunk of every column; number of columns along x and y, their sides, and the corner of the first.
    slack : float
        Largest height by which chunks of a column may be out of order.
    shifts, steps, rests, images
        Displacements of atoms i, their multiples of the grid of centres and remainders, and the codes of the images.
    light : (clusters,) bool
        Clusters whose second half lacks a term.
    entries : (E, 9) int64
        Cluster, index of the shift, first chunk, first chunk without masks, first chunk to pack, end of the chunks,
        first mask, light, number of atoms j to pack.
    counts : (3,) int64
        Number of entries, chunks and masks so far.
    """
    place, box = np.empty((3, N), REAL), np.empty(6)
    limit = REAL(reach * reach * (1 + 1e-6))
    size = len(boxes_j) + 1
    near, pairs = np.empty(size, np.int64), np.empty(size, np.int64)
    few, few_bits = np.empty(size, np.int32), np.empty(size, np.uint16)
    # bits of the clusters of chunk i for which each chunk j needs masks; a list of these chunks, and of their bits
    special, flagged, flags = np.zeros(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    for chunk in range(first, last):
        start0, start1, start2 = counts[0], counts[1], counts[2]
        for sh in range(len(shifts)):
            for d in range(3):
                box[d], box[3 + d] = boxes_i[chunk, d] + shifts[sh, d], boxes_i[chunk, 3 + d] + shifts[sh, d]
                for n in range(N):
                    place[d, n] = atoms_i[chunk, d, n] + rests[sh, d]
            half = same and sh == 0
            count = _near(box, reach, chunk if half else 0, boxes_j, columns, shape, side, low, slack, near)
            if count == 0:
                continue
            ox, oy, oz = (centres_i[chunk, 0] + steps[sh, 0], centres_i[chunk, 1] + steps[sh, 1],
                          centres_i[chunk, 2] + steps[sh, 2])
            excluded_first, excluded_last = 0, 0
            if len(starts):
                excluded_first, excluded_last = starts[chunk * N], starts[chunk * N + N]
            slot = chunk * N
            for k in range(excluded_first, excluded_last):
                while k >= starts[slot + 1]:
                    slot += 1
                if partners[k] >> SLOTS == images[sh]:
                    special[(partners[k] & SLOT) // N] |= 1 << slot % N // M
            if half:
                special[chunk] = ALL
            unfilled = 0
            for n in range(EACH):
                unfilled |= (slots_i[chunk * N + n * M + M - 1] < 0) << n
            several = 0
            for k in range(count):
                cj = near[k]
                pairs[k] = in_range(place, atoms_j, cj, limit, centres_j[cj, 0] - ox, centres_j[cj, 1] - oy,
                                    centres_j[cj, 2] - oz)
                flag = special[cj]
                if unfilled and slots_j[cj * N + N - 1] < 0:
                    flag |= unfilled
                flagged[several], flags[several] = k, flag
                several += flag != 0
            for k in range(excluded_first, excluded_last):
                special[(partners[k] & SLOT) // N] = 0
            if half:
                special[chunk] = 0
            for n in range(EACH):
                ci = chunk * EACH + n
                if slots_i[ci * M] < 0:
                    continue
                entry, filled, masked = counts[0], counts[1], counts[2]
                if entry + count * N // (MOST - N) + 1 > len(entries) or filled + 2 * count + 1 > len(chunks) or (
                        masked + several > len(masks)):
                    counts[0], counts[1], counts[2] = start0, start1, start2
                    return chunk
                at = filled
                for m in range(several):
                    k = flagged[m]
                    if flags[m] >> n & 1 and pairs[k] >> N * n & ALL:
                        _masks(ci, near[k], half and near[k] == chunk, slots_i, slots_j, starts, partners,
                               images[sh], corrects, masks, masked)
                        chunks[at], bits[at] = near[k], ALL
                        at, masked = at + 1, masked + 1
                        pairs[k] &= ~(ALL << N * n)
                dense, rest = at, 0
                for k in range(count):
                    result = pairs[k] >> N * n & ALL
                    full, partial = _sizes(result)
                    chunks[at], bits[at] = near[k], result
                    few[rest], few_bits[rest] = near[k], result
                    at, rest = at + full, rest + partial
                counts[0], counts[1] = _write(ci, sh, light[ci], filled, dense, at, counts[2], few, few_bits, rest,
                                              entries, entry, chunks, bits)
                counts[2] = masked
    return last


@njit(**FAST)
def _sizes(result):
    """Return whether at least FULL atoms of a chunk are in range, and whether there are some, but fewer, as 0 or 1."""
    several = popcount(result)
    full = several >= FULL
    return full, (several > 0) & (several < FULL)


@njit(**FAST)
def _write(ci, sh, light, first, dense, packs, mask, few, few_bits, rest, entries, entry, chunks, bits):
    """Write entries for the chunks with masks and the full ones, which are in `chunks`, and the others to pack, `few`.

    Return the number of the next entry, and the next index in `chunks`.
    """
    at, k = packs, 0
    while k < rest or at > first:
        atoms = 0
        while k < rest and atoms <= MOST - N:
            chunks[at], bits[at] = few[k], few_bits[k]
            atoms += popcount(np.int64(few_bits[k]))
            at, k = at + 1, k + 1
        row = entries[entry]
        row[0], row[1], row[2], row[3], row[4] = ci, sh, first, dense, packs
        row[5], row[6], row[7], row[8] = at, mask, light, atoms
        entry += 1
        first = dense = packs = at
    return entry, at
