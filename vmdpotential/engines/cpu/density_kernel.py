"""Kernels of densities: contributions of atoms to the nodes of a lattice in each frame, summed over frames.

Atoms that contribute to the nearest node are listed by keys, which consist of the numbers of the node and the frame.
The list is sorted by node and then summed, without random access to an array of all nodes.

Atoms that are spread over many nodes are summed in such an array. Each node has four numbers in one cache line: its
value in the last frame with a contribution, the sum over frames, the sum of squares, and the number of that last frame.
So each contribution reads memory once, and the time of a frame depends on the number of atoms, not on that of nodes.
One bit per node marks the nodes with contributions of the current block.

This file is run once for each set of the constants that it declares, see
:mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from numba import njit

#: ``nearest`` counts an atom at its nearest node, ``gaussian`` spreads it, ``occupancy`` sets nodes within its radius
#: to 1.
SPREADING: str

VALUE, SUM, SQUARES, FRAME = range(4)

#: Number of low bits of a key that contain the frame; the other bits contain the node.
FRAME_BITS = 20
#: Greatest number of bits of a digit, by which one pass of the sort distributes keys.
DIGIT = 11

#: Distance, in spacings, by which rounding may place an atom outside of the cell into which it was wrapped.
ROUNDING = 1e-9


#: Index of the only set bit of a number, tabulated by the upper 6 bits of its product with a de Bruijn sequence.
SEQUENCE = 0x03F79D71B4CB0A89
BITS = np.zeros(64, np.int64)
BITS[[(SEQUENCE << n) % 2**64 >> 58 for n in range(64)]] = range(64)


@njit(nogil=True, error_model="numpy")
def put(work, reached, node, weight, frame):
    """Add an atom's contribution to a node, for the frame of this number and for the sums over frames."""
    value = work[node, VALUE] if work[node, FRAME] == frame else 0.0
    new = 1.0 if SPREADING == "occupancy" else value + weight
    work[node, SUM] += new - value if SPREADING == "occupancy" else weight
    work[node, SQUARES] += (new - value) * (new + value)
    work[node, VALUE] = new
    work[node, FRAME] = frame
    reached[node >> 6] |= np.uint64(1) << np.uint64(node & 63)


@njit(nogil=True, error_model="numpy")
def nearest(u, columns, near, first, last, shape, slack, keys, listed, frame):
    """List the keys of the nodes nearest to an atom at u (3,), in spacings, from number `listed` on.

    The images of the atom are near[first] to near[last - 1]. `columns` (3, S) are the shifts of the images plus half a
    spacing; images up to `slack` outside of the lattice count. There are no branches, because processors mispredict
    about half of them here: a key outside of the lattice is written, too, and overwritten by the next one. Returns the
    number of keys listed.
    """
    x, y, z = u[0], u[1], u[2]
    nx, ny, nz = float(shape[0]), float(shape[1]), float(shape[2])
    for n in range(first, last):
        image = near[n]
        a, b, c = x + columns[0, image], y + columns[1, image], z + columns[2, image]
        inside = ((a >= -slack) & (b >= -slack) & (c >= -slack)
                  & (a <= nx + slack) & (b <= ny + slack) & (c <= nz + slack))
        i = min(max(np.floor(a), 0.0), nx - 1)
        j = min(max(np.floor(b), 0.0), ny - 1)
        k = min(max(np.floor(c), 0.0), nz - 1)
        keys[listed] = np.int64((i * ny + j) * nz + k) << FRAME_BITS | frame
        listed += inside
    return listed


@njit(nogil=True, error_model="numpy")
def add_one(v, weight, width, reach, first, shape, along, work, reached, frame):
    """Add an atom at v (3,), in spacings, to the nodes around it.

    `width` is the standard deviation along each axis, or the radius, in spacings; `first` (3,) and `along` are work
    arrays.
    """
    for d in range(3):
        first[d] = np.int64(math.floor(v[d] + 0.5)) - reach[d]
        if first[d] >= shape[d] or first[d] + 2 * reach[d] < 0:
            return
        total = 0.0
        for n in range(2 * reach[d] + 1):
            x = (first[d] + n - v[d]) / width[d]
            along[d, n] = math.exp(-0.5 * x * x) if SPREADING == "gaussian" else x * x
            total += along[d, n]
        if SPREADING == "gaussian":  # normalised on the nodes, so that the atom's total is its weight for any spacing
            for n in range(2 * reach[d] + 1):
                along[d, n] /= total
    for a in range(max(0, -first[0]), min(2 * reach[0] + 1, shape[0] - first[0])):
        for b in range(max(0, -first[1]), min(2 * reach[1] + 1, shape[1] - first[1])):
            row = ((first[0] + a) * shape[1] + first[1] + b) * shape[2] + first[2]
            for c in range(max(0, -first[2]), min(2 * reach[2] + 1, shape[2] - first[2])):
                if SPREADING == "gaussian":
                    put(work, reached, row + c, weight * along[0, a] * along[1, b] * along[2, c], frame)
                elif along[0, a] + along[1, b] + along[2, c] <= 1.0:
                    put(work, reached, row + c, weight, frame)


@njit(nogil=True, error_model="numpy")
def add_frame(positions, rows, weights, widths, change, origin, spacing, cell, inverse, images, starts, near, bins,
              reach, shape, keys, of, work, reached, frame):
    """Add the atoms of a frame to the sums over frames, or list them, and return the number of keys listed.

    Parameters: `rows` (n,) are the counted atoms, in `positions`. `change` (3, 3) maps positions to the cell of the
    lattice; of size 0 it leaves them. `cell` and `inverse` (3, 3) and `images` (S, 3) are that cell, its inverse and
    its images that may reach the lattice, in spacings; of size 0 in an open boundary. `near` lists the images that may
    reach the lattice from each of `bins` (3,) parts of the cell, those of part n from starts[n] to starts[n + 1].
    `widths` are the widths of the atoms, A. `keys` and `of` are work arrays for the keys of all contributions and their
    weights, with one more element that is written but not used; `of` is of size 0 if all weights are equal. `frame` is
    the frame's number in the block, from 1.
    """
    x, u, v, width = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    first = np.empty(3, np.int64)
    along = np.empty((3, 2 * max(reach[0], reach[1], reach[2]) + 1))
    periodic = len(images) > 0
    listed = 0
    columns = np.full((3, max(1, len(images))), 0.5)
    for n in range(len(images)):
        for d in range(3):
            columns[d, n] += images[n, d]
    slack = ROUNDING if periodic else 0.0
    for n in range(len(rows)):
        for d in range(3):
            x[d] = positions[rows[n], d]
        for d in range(3):
            y = x[d]
            if len(change) > 0:
                y = x[0] * change[0, d] + x[1] * change[1, d] + x[2] * change[2, d]
            u[d] = (y - origin[d]) / spacing[d]
            if SPREADING != "nearest":
                width[d] = widths[n] / spacing[d]
        part = 0
        if periodic:
            for d in range(3):
                y = (u[0] + 0.5) * inverse[0, d] + (u[1] + 0.5) * inverse[1, d] + (u[2] + 0.5) * inverse[2, d]
                x[d] = np.floor(y)
                part = part * bins[d] + min(np.int64((y - x[d]) * bins[d]), bins[d] - 1)
            for d in range(3):
                u[d] -= x[0] * cell[0, d] + x[1] * cell[1, d] + x[2] * cell[2, d]
        if SPREADING == "nearest":
            before = listed
            listed = nearest(u, columns, near, starts[part], starts[part + 1], shape, slack, keys, listed, frame)
            if len(of) > 0:
                of[before:listed] = weights[n]
        else:
            for m in range(starts[part], starts[part + 1]):
                for d in range(3):
                    v[d] = u[d] + images[near[m], d] if periodic else u[d]
                add_one(v, weights[n], width, reach, first, shape, along, work, reached, frame)
    return listed


@njit(nogil=True, error_model="numpy")
def sort(keys, of, more_keys, more_of, bits):
    """Sort keys (n,) by their nodes, of which each has `bits` bits, and with them the weights `of` (n,) or (0,).

    A radix sort from the lowest digit of the nodes on, which keeps the order of frames. `more_keys` and `more_of` are
    work arrays; returns whether these contain the result.
    """
    passes = max(1, -(-bits // DIGIT))
    width = -(-bits // passes)
    starts = np.empty(1 << width, np.int64)
    mask = (1 << width) - 1
    for n in range(passes):
        shift = FRAME_BITS + n * width
        starts[:] = 0
        for i in range(len(keys)):
            starts[keys[i] >> shift & mask] += 1
        total = 0
        for digit in range(len(starts)):
            starts[digit], total = total, total + starts[digit]
        for i in range(len(keys)):
            digit = keys[i] >> shift & mask
            to = starts[digit]
            starts[digit] += 1
            more_keys[to] = keys[i]
            if len(of) > 0:
                more_of[to] = of[i]
        keys, more_keys = more_keys, keys
        of, more_of = more_of, of
    return passes % 2 == 1


@njit(nogil=True, error_model="numpy")
def sum_sorted(keys, of, weight, nodes, sums, squares):
    """Fill in the nodes of sorted keys, and sums over frames of their values and of the squares of these.

    An atom contributes its weight in `of`, or `weight` if `of` is of size 0. Returns the number of nodes.
    """
    count = -1
    last, value = np.int64(-1), 0.0
    for n in range(len(keys)):
        node = keys[n] >> FRAME_BITS
        if count < 0 or nodes[count] != node:
            count += 1
            nodes[count], sums[count], squares[count] = node, 0.0, 0.0
        if keys[n] != last:
            value = 0.0
        last = keys[n]
        added = of[n] if len(of) > 0 else weight
        sums[count] += added
        squares[count] += added * (2.0 * value + added)
        value += added
    return count + 1


@njit(nogil=True, error_model="numpy")
def unite(nodes, sums, squares, more_nodes, more_sums, more_squares, all_nodes, all_sums, all_squares):
    """Merge the nodes, sums and squares of two lists that are sorted by node; return the number of nodes."""
    a, b, count = 0, 0, 0
    while a < len(nodes) or b < len(more_nodes):
        first = a < len(nodes) and (b == len(more_nodes) or nodes[a] <= more_nodes[b])
        second = b < len(more_nodes) and (a == len(nodes) or more_nodes[b] <= nodes[a])
        all_nodes[count] = nodes[a] if first else more_nodes[b]
        all_sums[count], all_squares[count] = 0.0, 0.0
        if first:
            all_sums[count], all_squares[count] = sums[a], squares[a]
            a += 1
        if second:
            all_sums[count] += more_sums[b]
            all_squares[count] += more_squares[b]
            b += 1
        count += 1
    return count


@njit(nogil=True, error_model="numpy")
def list_reached(reached, nodes):
    """Fill nodes with those that have contributions in the block, in ascending order; return their number."""
    count = 0
    for word in range(len(reached)):
        bits = reached[word]
        while bits:
            lowest = bits & (~bits + np.uint64(1))
            nodes[count] = 64 * word + BITS[lowest * np.uint64(SEQUENCE) >> np.uint64(58)]
            count += 1
            bits ^= lowest
    return count


@njit(nogil=True, error_model="numpy")
def take(work, reached, nodes, sums, squares):
    """Fill sums and squares of the block's nodes, and reset them for the next block."""
    for n in range(len(nodes)):
        node = nodes[n]
        sums[n], squares[n] = work[node, SUM], work[node, SQUARES]
        work[node, SUM], work[node, SQUARES], work[node, FRAME] = 0.0, 0.0, 0.0
        reached[node >> 6] = np.uint64(0)
