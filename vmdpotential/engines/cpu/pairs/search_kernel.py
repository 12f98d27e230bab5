"""Kernels that sort atoms into clusters and list the pairs of clusters in range.

Atoms are in chunks of N, compact along x, y and z, and in each there are N / M clusters of M. A list goes from
clusters of M atoms i to chunks of N atoms j, of all images that count (S. Pall, B. Hess, "A flexible algorithm for
calculating pair interactions on SIMD architectures", Comput. Phys. Commun. 184 (2013) 2641-2650). Coordinates in
chunks are relative to their centres, which lie on a grid that makes the differences of two of them exact in REAL.

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

#: Atoms i of a cluster, and atoms j of a chunk, of at least as many.
M: int
N: int
#: Bits of a float in the chunks.
BITS: int
#: Whether to do without vector code.
PLAIN: bool

REAL = np.float64 if BITS == 64 else np.float32
FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True}
#: Where numbers may not be finite.
CAREFUL = FAST | {"fastmath": {"reassoc", "contract", "nsz"}}

#: Coordinate of the places in chunks that no atom fills: out of reach of every atom.
FAR = 1e6
#: Atoms j of an entry of the list at most, so that a kernel finds them in the first-level cache.
MOST = 960
#: Bits of a slot next to the code of an image.
SLOTS = 33
SLOT = (1 << SLOTS) - 1
#: A chunk with so many atoms in range is summed as it is: packing it would take longer than the others' pairs.
FULL = 3 * N // 4
ALL = (1 << N) - 1

#: Chunks that a thread writes positions to before it comes for more.
GRAIN = 64

#: Clusters of a chunk.
EACH = N // M

if PLAIN:

    def range_filter(m, n, bits, clusters):
        """Return what :func:`vmdpotential.engines.cpu.pairs.search_vectors.range_filter` does, in loops."""

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
    def ones(number):
        """Return how many bits of a whole number are set."""
        count = 0
        while number:
            number &= number - 1
            count += 1
        return count
    PACKS = False
else:
    from vmdpotential.compiling.simd import LEVEL
    from vmdpotential.engines.cpu.pairs.moves import place_writer
    from vmdpotential.engines.cpu.pairs.search_vectors import ones, range_filter

    PACKS = LEVEL == "avx512" and N % 8 == 0

in_range = range_filter(M, N, BITS, EACH)


@njit(**FAST)
def place(positions, turn, low, vectors, sides, shape, side, layers, places, column, key):
    """Write where positions (N, 3) are inside the brick, in which column, and the key that sorts them.

    Lattice vectors are lower triangular, or zeros.
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
    """Write the atoms, sorted by column and height, to slots chunk by chunk; return how many chunks there are.

    A chunk ends with its column, when it is full, and where it would be taller than `tallest`. `start` (columns + 1)
    becomes the first chunk of every column. Without room in `slots` chunks are counted only.
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
    """Sort some slots by the keys of their atoms, those of empty ones last; stable.

    Every slot goes to as many places from the first as there are before it: no branches, which here no one could guess.
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
    """Halve chunks along x and y in turn down to clusters, and put atoms that lack a term last in these."""
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
    """Write rows (R, N) of atoms to chunks (C, R, N), 0 where there is none, and which clusters' second halves lack."""
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
    """Write where atoms were in the search (chunks, 3, N): their positions, and their places from centres of chunks."""
    for s in range(len(slots)):
        chunk, lane = s // N, s % N
        for d in range(3):
            before[chunk, d, lane], homes[chunk, d, lane] = 0.0, FAR  # of no atom
            if slots[s] >= 0:
                before[chunk, d, lane] = positions[slots[s], d]
                homes[chunk, d, lane] = places[slots[s], d] - np.float64(centres[chunk, d])


@njit(**FAST)
def _write_wrapped(atom, chunk, lane, positions, turn, before, vectors, inverse, homes, atoms):
    """Write the image of an atom that has moved least; return the square of its way."""
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
    """Do what :func:`vmdpotential.engines.cpu.pairs.moves.place_writer` does, in a loop."""
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
    """Write positions to some chunks; return the square of the longest way."""
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
def write_places(board, counter, limit2, slots, positions, turn, before, vectors, inverse, near2, homes, atoms):
    """Write positions (N, 3), turned, into chunks that other threads leave; return the square of the longest way.

    `homes` are the places that atoms had in chunks at `before`, from where their ways are. An atom that has been
    wrapped since is the image that has moved least; one that has come no farther than the root of `near2` has not.
    Where positions are not finite the way is infinite. If it is longer than the root of `limit2`, all are to stop.
    """
    longest = 0.0
    first = take(board, counter) * GRAIN
    while first < len(atoms):
        way = _write_some(first, min(first + GRAIN, len(atoms)), slots, positions, turn, before, vectors, inverse,
                          near2, homes, atoms)
        longest = max(longest, way if way < np.inf else np.inf)
        first = take(board, counter) * GRAIN
    if longest > limit2:
        stop(board)
    take(board, WRITTEN)
    return longest


@njit(**FAST)
def _nearest(d, vectors, inverse, around, shift):
    """Write by which lattice vectors d has to be moved to be shortest, where rounding may be off by `around`."""
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
    """Return a number for an image."""
    return ((i + 512) * 1024 + j + 512) * 1024 + k + 512


@njit(**FAST)
def exclude(pairs, slot, places, vectors, inverse, around, start, partners):
    """Write for every slot, from start[slot] on, the images (from bit SLOTS on) and slots that are excluded for it."""
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
    """Return the first of the chunks low <= c < high of a column that reaches up to a height."""
    while low < high:
        middle = (low + high) // 2
        if boxes[middle, 5] < height:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**FAST)
def _masks(ci, cj, half, slots_i, slots_j, start, partners, image, corrects, masks, at):
    """Write for each atom i which atoms j of a chunk count, and which of these are not excluded."""
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
    """Write which chunks from `first` on have boxes nearer to a box than `reach`; return how many.

    Parameters
    ----------
    columns, shape, side, low, slack
        As in :func:`search`.
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
    """List the chunks in range of the clusters of chunks first <= c < last; return the first chunk without room.

    Parameters
    ----------
    same : bool
        Whether i and j are of one set, of which each pair counts once.
    columns, shape, side, low
        First chunk of every column; columns along x and y, their sides and the corner of the first.
    slack : float
        How much chunks of a column may be out of order in height.
    shifts, steps, rests, images
        What i are moved by, its multiples of the grid and the rest of it, and its code.
    light : (clusters,) bool
        Clusters whose second half lacks a term.
    entries : (E, 9) int64
        Cluster, shift, first chunk, first chunk without masks, first that is worth packing, end, first mask, light,
        atoms j to pack.
    counts : (3,) int64
        How many entries, chunks and masks there are.
    """
    place, box = np.empty((3, N), REAL), np.empty(6)
    limit = REAL(reach * reach * (1 + 1e-6))
    size = len(boxes_j) + 1
    near, pairs = np.empty(size, np.int64), np.empty(size, np.int64)
    few, few_bits = np.empty(size, np.int32), np.empty(size, np.uint16)
    # for which clusters of the chunk of i a chunk needs masks; which chunks near do, and for which clusters
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
    """Return, as 0 or 1, whether so many atoms of a chunk are in range that it is full, and whether there are some."""
    several = ones(result)
    full = several >= FULL
    return full, (several > 0) & (several < FULL)


@njit(**FAST)
def _write(ci, sh, light, first, dense, packs, mask, few, few_bits, rest, entries, entry, chunks, bits):
    """Write the entries of chunks with masks, then full ones, which are in `chunks`, and of the few atoms of others.

    Return the number of the next entry, and the next place in `chunks`.
    """
    at, k = packs, 0
    while k < rest or at > first:
        atoms = 0
        while k < rest and atoms <= MOST - N:
            chunks[at], bits[at] = few[k], few_bits[k]
            atoms += ones(np.int64(few_bits[k]))
            at, k = at + 1, k + 1
        row = entries[entry]
        row[0], row[1], row[2], row[3], row[4] = ci, sh, first, dense, packs
        row[5], row[6], row[7], row[8] = at, mask, light, atoms
        entry += 1
        first = dense = packs = at
    return entry, at
