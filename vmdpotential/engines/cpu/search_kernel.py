"""Kernels that sort atoms into clusters and list the pairs of clusters in range.

Atoms stand in chunks of N, compact along x, y and z, and in each there are N / M clusters of M. A list goes from
clusters of M atoms i to chunks of N atoms j, of all images that count (S. Pall, B. Hess, "A flexible algorithm for
calculating pair interactions on SIMD architectures", Comput. Phys. Commun. 184 (2013) 2641-2650). Coordinates in
chunks are relative to their centres, which lie on a grid that makes the differences of two of them exact in REAL.

This file is run once for each set of the constants that it declares, see :mod:`vmdpotential.engines.cpu.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

#: Atoms i of a cluster, and atoms j of a chunk, of at least as many.
M: int
N: int
#: Bits of a float in the chunks.
BITS: int
#: Whether to do without vector code.
PLAIN: bool

REAL = np.float64 if BITS == 64 else np.float32
FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True}

#: Coordinate of the places in chunks that no atom fills: out of reach of every atom.
FAR = 1e6
#: Atoms j of an entry of the list at most, so that a kernel finds them in the first-level cache.
MOST = 960
#: Chunks with masks in an entry at most.
MASKED = 64
ALL = (1 << N) - 1

if PLAIN:

    @njit(**FAST)
    def in_range(place, atoms, chunk, limit, x, y, z):
        """Return which atoms of a chunk, moved by (x, y, z), are nearer to one of M places (3, M) than the limit."""
        found = 0
        for j in range(N):
            least = limit
            for i in range(M):
                dx = place[0, i] - (atoms[chunk, 0, j] + x)
                dy = place[1, i] - (atoms[chunk, 1, j] + y)
                dz = place[2, i] - (atoms[chunk, 2, j] + z)
                least = min(least, dx * dx + dy * dy + dz * dz)
            found |= (least < limit) << j
        return found
else:
    from vmdpotential.engines.cpu.pair_vectors import range_filter

    in_range = range_filter(M, N, BITS)


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
def _sort(slots, first, count, keys, axis):
    """Sort some slots by a key of their atoms (N, axes), empty ones last; stable."""
    for k in range(first + 1, first + count):
        a = slots[k]
        p = k
        while p > first and a >= 0 and (slots[p - 1] < 0 or keys[slots[p - 1], axis] > keys[a, axis]):
            slots[p] = slots[p - 1]
            p -= 1
        slots[p] = a


@njit(**FAST)
def make_clusters(slots, places, lacks):
    """Halve chunks along x and y in turn down to clusters, and put atoms that lack a term last in these."""
    for first in range(0, len(slots), N):
        size, axis = N, 0
        while size > M:
            for part in range(first, first + N, size):
                _sort(slots, part, size, places, axis)
            size //= 2
            axis = 1 - axis
        for part in range(first, first + N, M):
            _sort(slots, part, M, lacks, 0)


@njit(**FAST)
def bound(slots, places, size, boxes):
    """Write the boxes (lowest and highest x, y, z) around every `size` slots; low is above high where all are empty."""
    for b in range(len(boxes)):
        for d in range(3):
            boxes[b, d], boxes[b, 3 + d] = 1e300, -1e300
        for s in range(b * size, b * size + size):
            if slots[s] >= 0:
                for d in range(3):
                    boxes[b, d] = min(boxes[b, d], places[slots[s], d])
                    boxes[b, 3 + d] = max(boxes[b, 3 + d], places[slots[s], d])


@njit(**FAST)
def write_places(slots, positions, turn, found, vectors, inverse, places, centres, atoms):
    """Write positions (N, 3), turned, into chunks; return the square of the longest way from where they were `found`.

    `places` are those that atoms had in the search, inside the brick, and `found` their positions then. An atom that
    has been wrapped since is the image that has moved least.
    """
    longest = 0.0
    for s in range(len(slots)):
        a, chunk, lane = slots[s], s // N, s % N
        if a < 0:
            for d in range(3):
                atoms[chunk, d, lane] = FAR
            continue
        mx, my, mz = (positions[a, 0] - found[a, 0], positions[a, 1] - found[a, 1], positions[a, 2] - found[a, 2])
        x = mx * turn[0, 0] + my * turn[1, 0] + mz * turn[2, 0]
        y = mx * turn[0, 1] + my * turn[1, 1] + mz * turn[2, 1]
        z = mx * turn[0, 2] + my * turn[1, 2] + mz * turn[2, 2]
        fx = np.rint(x * inverse[0, 0] + y * inverse[1, 0] + z * inverse[2, 0])
        fy = np.rint(x * inverse[0, 1] + y * inverse[1, 1] + z * inverse[2, 1])
        fz = np.rint(x * inverse[0, 2] + y * inverse[1, 2] + z * inverse[2, 2])
        x -= fx * vectors[0, 0] + fy * vectors[1, 0] + fz * vectors[2, 0]
        y -= fx * vectors[0, 1] + fy * vectors[1, 1] + fz * vectors[2, 1]
        z -= fx * vectors[0, 2] + fy * vectors[1, 2] + fz * vectors[2, 2]
        way = x * x + y * y + z * z
        longest = max(longest, way)
        atoms[chunk, 0, lane] = places[a, 0] + x - centres[chunk, 0]
        atoms[chunk, 1, lane] = places[a, 1] + y - centres[chunk, 1]
        atoms[chunk, 2, lane] = places[a, 2] + z - centres[chunk, 2]
    return longest


@njit(**FAST)
def _nearest(d, vectors, inverse, around, shift):
    """Write by which lattice vectors d has to be moved to be shortest; `around` is 1 where rounding is not enough."""
    for k in range(3):
        shift[k] = -np.rint(d[0] * inverse[0, k] + d[1] * inverse[1, k] + d[2] * inverse[2, k])
    if not around:
        return
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
def exclude(pairs, slot, places, vectors, inverse, around, start, partners, codes):
    """Write for every slot, from start[slot] on, the slots that are excluded for it and the images in which it is."""
    for p in range(len(pairs)):
        start[slot[pairs[p, 0]] + 2] += 1
        start[slot[pairs[p, 1]] + 2] += 1
    for s in range(2, len(start)):
        start[s] += start[s - 1]
    d, shift = np.empty(3), np.zeros(3)
    for p in range(len(pairs)):
        i, j = pairs[p, 0], pairs[p, 1]
        for c in range(3):
            d[c] = places[i, c] - places[j, c]
        _nearest(d, vectors, inverse, around, shift)
        for a, b, sign in ((slot[i], slot[j], 1), (slot[j], slot[i], -1)):
            at = start[a + 1]
            partners[at] = b
            codes[at] = code(sign * int(shift[0]), sign * int(shift[1]), sign * int(shift[2]))
            start[a + 1] += 1


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
def _masks(ci, cj, half, slots_i, slots_j, start, partners, codes, image, corrects, masks, at):
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
                if codes[k] == image and partners[k] // N == cj:
                    normal &= ~(1 << partners[k] % N)
        masks[at, n, 0] = count if corrects else normal
        masks[at, n, 1] = normal


@njit(**FAST)
def search(first, last, same, slots_i, atoms_i, centres_i, boxes_i, slots_j, atoms_j, centres_j, boxes_j, columns,
           shape, side, low, slack, shifts, steps, rests, images, reach, starts, partners, codes, corrects, light,
           entries, chunks, bits, masks, counts):
    """List the chunks in range of the clusters first <= c < last; return the first that there was no room for.

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
    entries : (E, 8) int64
        Cluster, shift, first chunk, first chunk without masks, end, first mask, light, atoms j without masks.
    counts : (3,) int64
        How many entries, chunks and masks there are.
    """
    place = np.empty((3, M), REAL)
    limit = REAL(reach * reach * (1 + 1e-6))
    reach2 = reach * reach
    held, held_bits = np.empty(MOST, np.int32), np.empty(MOST, np.uint16)
    flagged, apart = np.empty(MASKED, np.int32), np.empty(MASKED, np.int64)
    entry, filled, masked = counts[0], counts[1], counts[2]
    for ci in range(first, last):
        counts[0], counts[1], counts[2] = entry, filled, masked
        if boxes_i[ci, 0] > boxes_i[ci, 3]:
            continue
        own = ci * M // N
        full_i = True
        for s in range(ci * M, ci * M + M):
            full_i &= slots_i[s] >= 0
        excluded_first, excluded_last = 0, 0
        if len(starts):
            excluded_first, excluded_last = starts[ci * M], starts[ci * M + M]
        for sh in range(len(shifts)):
            ax, bx = boxes_i[ci, 0] + shifts[sh, 0], boxes_i[ci, 3] + shifts[sh, 0]
            ay, by = boxes_i[ci, 1] + shifts[sh, 1], boxes_i[ci, 4] + shifts[sh, 1]
            az, bz = boxes_i[ci, 2] + shifts[sh, 2], boxes_i[ci, 5] + shifts[sh, 2]
            x0 = max(0, math.floor((ax - reach - low[0]) / side[0]))
            x1 = min(shape[0] - 1, math.floor((bx + reach - low[0]) / side[0]))
            y0 = max(0, math.floor((ay - reach - low[1]) / side[1]))
            y1 = min(shape[1] - 1, math.floor((by + reach - low[1]) / side[1]))
            if x1 < x0 or y1 < y0 or bz + reach < low[2] or az - reach > low[2] + side[2]:
                continue
            for n in range(M):
                s = ci * M + n
                for d in range(3):
                    place[d, n] = atoms_i[s // N, d, s % N] + rests[sh, d]
            ox, oy, oz = (centres_i[own, 0] + steps[sh, 0], centres_i[own, 1] + steps[sh, 1],
                          centres_i[own, 2] + steps[sh, 2])
            half = same and sh == 0
            image = images[sh]
            several, before = 0, -1
            for k in range(excluded_first, excluded_last):
                # of most atoms all are in one or two chunks
                if codes[k] == image and partners[k] // N != before and several < MASKED:
                    before = partners[k] // N
                    apart[several] = before
                    several += 1
            holds, atoms, flags = 0, 0, 0
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
                    begin, end = columns[column], columns[column + 1]
                    if half:
                        begin = max(begin, own)
                    for cj in range(_first_at(boxes_j, begin, end, az - top), end):
                        if boxes_j[cj, 2] > bz + top:
                            break
                        dx = max(0.0, max(boxes_j[cj, 0] - bx, ax - boxes_j[cj, 3]))
                        dy = max(0.0, max(boxes_j[cj, 1] - by, ay - boxes_j[cj, 4]))
                        dz = max(0.0, max(boxes_j[cj, 2] - bz, az - boxes_j[cj, 5]))
                        if dx * dx + dy * dy + dz * dz >= reach2:
                            continue
                        found = in_range(place, atoms_j, cj, limit, centres_j[cj, 0] - ox, centres_j[cj, 1] - oy,
                                         centres_j[cj, 2] - oz)
                        if found == 0:
                            continue
                        flag = half and cj == own
                        for k in range(several):
                            flag |= apart[k] == cj
                        if several == MASKED:
                            for k in range(excluded_first, excluded_last):
                                flag |= codes[k] == image and partners[k] // N == cj
                        if not full_i:
                            flag |= slots_j[cj * N + N - 1] < 0
                        if flag:
                            flagged[flags] = cj
                            flags += 1
                        else:
                            held[holds] = cj
                            held_bits[holds] = found
                            holds += 1
                            while found:
                                found &= found - 1
                                atoms += 1
                        if flags < MASKED and atoms <= MOST - N:
                            continue
                        if not _write(entry, ci, sh, light[ci], filled, masked, atoms, flagged, flags, held, held_bits,
                                      holds, entries, chunks, bits, masks):
                            return ci
                        for k in range(flags):
                            _masks(ci, flagged[k], half and flagged[k] == own, slots_i, slots_j, starts, partners,
                                   codes, image, corrects, masks, masked + k)
                        entry, filled, masked = entry + 1, filled + flags + holds, masked + flags
                        holds, atoms, flags = 0, 0, 0
            if flags + holds == 0:
                continue
            if not _write(entry, ci, sh, light[ci], filled, masked, atoms, flagged, flags, held, held_bits,
                          holds, entries, chunks, bits, masks):
                return ci
            for k in range(flags):
                _masks(ci, flagged[k], half and flagged[k] == own, slots_i, slots_j, starts, partners, codes, image,
                       corrects, masks, masked + k)
            entry, filled, masked = entry + 1, filled + flags + holds, masked + flags
    counts[0], counts[1], counts[2] = entry, filled, masked
    return last


@njit(**FAST)
def _write(entry, ci, sh, light, filled, masked, atoms, flagged, flags, held, held_bits, holds, entries, chunks, bits,
           masks):
    """Write an entry with its chunks, those with masks first; return whether there was room."""
    if entry >= len(entries) or filled + flags + holds > len(chunks) or masked + flags > len(masks):
        return False
    row = entries[entry]
    row[0], row[1], row[2], row[3], row[4], row[5] = ci, sh, filled, filled + flags, filled + flags + holds, masked
    row[6], row[7] = light, atoms
    for k in range(flags):
        chunks[filled + k], bits[filled + k] = flagged[k], ALL
    for k in range(holds):
        chunks[filled + flags + k], bits[filled + flags + k] = held[k], held_bits[k]
    return True
