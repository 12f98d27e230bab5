"""Kernels of lattice sums: atoms to tiles of lattice points.

A task is a tile of 8^3 points. The atoms in range of it are taken relative to the tile's centre in
float64 and then rounded, so that single precision loses nothing to large coordinates; they come in
chunks that stay in the first-level cache, with tables of the squared distances along x. Each leaf
of 4^3 points, lanes along y and z, then sums the atoms in range of it (:func:`leaf`).

Lengths are in units of a power of two times the spacing, where lattice points have exact
coordinates. Sums of a block of atoms are kept
in registers and added in float64, because the rounding of a long running sum, not that of its
terms, is what limits a single precision map.

With FIELD the kernel sums the field beside the potential: dV/d(r^2) comes from the traced function
(:mod:`vmdpotential.interactions.derivative`), and the distances from the point are those that r^2 is
made of, so that it is as precise as the potential.

This module is compiled as a copy, see :mod:`vmdpotential.engines.cpu.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from vmdpotential.engines.cpu.current import FIELD, MASKED, PRECISION, PROGRAM
from vmdpotential.engines.cpu.filters import CHUNK, ROW, rows_in_range
from vmdpotential.engines.cpu.simd import I32, I64, LANES, LEVEL, Vector, constant, pointer
from vmdpotential.interactions.derivative import Dual
from vmdpotential.interactions.tracing import run as run_program

# Compensated sums of float32 terms would be limited by the rounding of the terms; float64 vectors
# with one Newton step cost little more than compensating and are limited by neither.
BITS = 32 if PRECISION == "single" else 64
NEWTON_STEPS = 2 if PRECISION == "double" else 1
W = LANES[BITS]
REAL = np.float64 if BITS == 64 else np.float32
NUMBA_REAL = types.float64 if BITS == 64 else types.float32

BLOCK = 128  # atoms summed in registers before the sum is added in float64
Y, Z, Q, X, GAP = 0, 1, 2, 3, 11  # rows of the table; eight of X, six of GAP
ROWS = 17
MAPS = 4 if FIELD else 1  # potential, and its gradient along x, y, z
FAR = REAL(1000 * np.sqrt(2))  # where atoms that must not count are put: on no lattice point

#: The inner loop makes 2/r; what the charges are multiplied by to make up for it.
DEGREE = None if FIELD else PROGRAM.degree()
CHARGE_FACTOR = 1.0 if DEGREE is None else 0.5**DEGREE

FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True, "cache": True}


@intrinsic
def leaf(typing, table, index, first, count, row, cy, cz, hy, hz, cutoff2, values, sums, offset):
    """Add the potential of atoms index[first : first + count] at 4 x 4 x 4 points to sums[offset :].

    `row` is the table row of the first of four x planes, of squared distances or, with FIELD, of
    distances; cy, cz is the centre of the points and hy, hz their spacing. With FIELD the sums of
    q dV/d(r^2) times the distances along x, y and z go to sums[512 + offset :] and so on. The loop is
    software pipelined over three stages, because the chain from a coordinate to its term (about 45
    cycles) is longer than one pass of the loop: indices and y, z distances of the atom after next;
    r^2 and its estimated inverse root of the next; the term of the current one.
    """
    i, f = types.int64, NUMBA_REAL
    signature = types.void(table, index, i, i, i, f, f, f, f, f, values, sums, i)

    def codegen(context, builder, sig, arguments):
        v = Vector(builder, BITS, W)
        parts = 16 // W
        size = 4 * parts
        p_table = pointer(context, builder, sig.args[0], arguments[0], v.element)
        p_index = builder.gep(pointer(context, builder, sig.args[1], arguments[1], I32), [arguments[2]])
        count = arguments[3]
        p_y = builder.gep(p_table, [constant(Y * ROW)])
        p_z = builder.gep(p_table, [constant(Z * ROW)])
        p_q = builder.gep(p_table, [constant(Q * ROW)])
        planes = [builder.add(arguments[4], constant(k)) for k in range(4)]
        p_x = [builder.gep(p_table, [builder.mul(plane, constant(ROW))]) for plane in planes]
        cy, cz, hy, hz, cutoff2 = (v.broadcast(a) for a in arguments[5:10])
        p_values = pointer(context, builder, sig.args[10], arguments[10], v.element)
        p_sums = builder.gep(pointer(context, builder, sig.args[11], arguments[11], ir.DoubleType()), [arguments[12]])
        lanes = [range(p * W, p * W + W) for p in range(parts)]
        point_y = [v.add(cy, v.mul(hy, v.lane_values([n // 4 - 1.5 for n in lane]))) for lane in lanes]
        point_z = [v.add(cz, v.mul(hz, v.lane_values([n % 4 - 1.5 for n in lane]))) for lane in lanes]
        values = {name: v.load_one(p_values, constant(k)) for k, name in enumerate(PROGRAM.parameters)}
        back_end = Dual(v) if FIELD else v
        if FIELD:
            values = {name: (value, None) for name, value in values.items()}
        uniform = run_program(PROGRAM, back_end, values, part="uniform")

        def atom(step):
            return builder.zext(builder.load(builder.gep(p_index, [step])), I64)

        def distances_yz(j):
            y, z = v.load_one(p_y, j), v.load_one(p_z, j)
            dy, dz = [v.sub(point, y) for point in point_y], [v.sub(point, z) for point in point_z]
            yz = [v.fma(a, a, v.mul(b, b)) for a, b in zip(dy, dz, strict=True)]
            return yz, [j, *dy, *dz] if FIELD else []

        def estimates(j, yz):
            r2 = []
            for k in range(4):
                x = v.load_one(p_x[k], j)
                r2 += [v.fma(x, x, part) if FIELD else v.add(part, x) for part in yz]
            return [v.load_one(p_q, j)], r2, [v.rsqrt_estimate(a) for a in r2]

        def terms(q, r2, estimate, distances, sums):
            new = list(sums)

            def add(n, inside, factor, value):
                total = v.fma(factor, value, sums[n])
                new[n] = v.select(inside, total, sums[n]) if MASKED else total

            for n in range(size):
                rinv = v.rsqrt_twice(r2[n], estimate[n], NEWTON_STEPS)
                if DEGREE is None:
                    rinv = v.mul(rinv, v.const(0.5))
                inside = v.less(r2[n], cutoff2) if MASKED else None
                inputs = back_end.inputs(r2[n], rinv) if FIELD else {"r2": r2[n], "rinv": rinv}
                result = run_program(PROGRAM, back_end, inputs, done=uniform)[len(PROGRAM.steps) - 1]
                if not FIELD:
                    add(n, inside, q, result)
                    continue
                add(n, inside, q, result[0])
                slope = v.mul(q, result[1])
                j, dy, dz = distances[0], distances[1 : 1 + parts], distances[1 + parts :]
                for d, distance in enumerate((v.load_one(p_x[n // parts], j), dy[n % parts], dz[n % parts])):
                    add((d + 1) * size + n, inside, slope, distance)
            return new

        j0, j1, j2 = atom(constant(0)), atom(constant(1)), atom(constant(2))
        yz, distances = distances_yz(j0)
        start = [[constant(1), j1, j2], *distances_yz(j1), distances, *estimates(j0, yz),
                 [v.const(0.0)] * (MAPS * size)]
        before = builder.block
        loop = builder.append_basic_block("atoms")
        after = builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        state = [[builder.phi(value.type) for value in group] for group in start]
        (step, next_atom, later_atom), yz, next_distances, distances, (q,), r2, estimate, sums = state
        last_atom = atom(builder.add(step, constant(2)))
        following = estimates(next_atom, yz)
        next_step = builder.add(step, constant(1))
        later = distances_yz(later_atom)
        new_sums = terms(q, r2, estimate, distances, sums)
        end = [[next_step, later_atom, last_atom], *later, next_distances, *following, new_sums]
        for phis, old, new in zip(state, start, end, strict=True):
            for phi, first_value, value in zip(phis, old, new, strict=True):
                phi.add_incoming(first_value, before)
                phi.add_incoming(value, builder.block)
        builder.cbranch(builder.icmp_signed("<=", next_step, count), loop, after)
        builder.position_at_end(after)
        wide = Vector(builder, 64, W, fast=False)
        for n, vector in enumerate(new_sums):
            vector = vector if BITS == 64 else builder.fpext(vector, wide.type)
            place = constant(n // size * 512 + n % size * W)
            wide.store(p_sums, place, wide.add(wide.load(p_sums, place), vector))
        return context.get_dummy_value()

    return signature, codegen


if LEVEL == "avx512" and BITS == 32:
    from vmdpotential.engines.cpu.filters import in_leaf, in_tile
else:

    @njit(**FAST)
    def in_leaf(table, row_x, row_y, row_z, count, cutoff2, index):
        """Write the atoms in range of a leaf to index without vector instructions, as above."""
        found = 0
        x, y, z = table[row_x], table[row_y], table[row_z]
        for i in range(count):
            index[found] = np.int32(i)
            found += (x[i] + y[i] + z[i]) < cutoff2
        return found

    @njit(**FAST)
    def in_tile(x, y, z, q, first, count, cx, cy, cz, hx, hy, hz, cutoff2, chunk, found):
        """Append the atoms in range of a tile to the chunk without vector instructions, as above."""
        zero = REAL(0)
        for i in range(first, first + count):
            dx, dy, dz = REAL(x[i] - cx), REAL(y[i] - cy), REAL(z[i] - cz)
            gx, gy, gz = max(abs(dx) - hx, zero), max(abs(dy) - hy, zero), max(abs(dz) - hz, zero)
            chunk[0, found] = dx
            chunk[1, found] = dy
            chunk[2, found] = dz
            chunk[3, found] = REAL(q[i])
            found += (gx * gx + gy * gy + gz * gz) < cutoff2
        return found


@intrinsic
def radial(typing, r2, rinv, values):
    """Return the traced potential at one distance, in float64, and with FIELD its derivative with respect to r2.

    `values` are ordered as the program's parameters.
    """
    result = types.UniTuple(types.float64, 2)
    signature = result(types.float64, types.float64, values)

    def codegen(context, builder, sig, arguments):
        v = Vector(builder, 64, 1)
        p_values = pointer(context, builder, sig.args[2], arguments[2], v.element)
        values = {name: v.load_one(p_values, constant(k)) for k, name in enumerate(PROGRAM.parameters)}
        if FIELD:
            dual = Dual(v)
            inputs = dual.inputs(*arguments[:2]) | {name: (value, None) for name, value in values.items()}
            pair = run_program(PROGRAM, dual, inputs)[len(PROGRAM.steps) - 1]
        else:
            inputs = {"r2": arguments[0], "rinv": arguments[1]} | values
            pair = run_program(PROGRAM, v, inputs)[len(PROGRAM.steps) - 1], v.const(0.0)
        return context.make_tuple(builder, result, pair)

    return signature, codegen


@njit(**FAST)
def take_out_coincident(chunk, count, h, soft, cutoff, values, sums):
    """Sum the atoms that lie on a lattice point, nearer than `soft`, apart from the others.

    At that point they count as if at distance `soft`, with a potential that is constant within, and
    so no field. In the chunk they move out of reach; the main loop then needs no guard against r = 0.
    """
    x, y, z = chunk[0], chunk[1], chunk[2]
    near = 0
    for k in range(count):
        dx = (x[k] / h[0] + REAL(0.5)) - np.rint(x[k] / h[0] + REAL(0.5))  # points are at odd multiples of h/2
        dy = (y[k] / h[1] + REAL(0.5)) - np.rint(y[k] / h[1] + REAL(0.5))
        dz = (z[k] / h[2] + REAL(0.5)) - np.rint(z[k] / h[2] + REAL(0.5))
        near += abs(dx) * h[0] < soft and abs(dy) * h[1] < soft and abs(dz) * h[2] < soft
    if near == 0:
        return
    for k in range(count):
        dx = (x[k] / h[0] + REAL(0.5)) - np.rint(x[k] / h[0] + REAL(0.5))
        dy = (y[k] / h[1] + REAL(0.5)) - np.rint(y[k] / h[1] + REAL(0.5))
        dz = (z[k] / h[2] + REAL(0.5)) - np.rint(z[k] / h[2] + REAL(0.5))
        if not (abs(dx) * h[0] < soft and abs(dy) * h[1] < soft and abs(dz) * h[2] < soft):
            continue
        for n in range(512):
            part = n // 64
            px = h[0] * (part // 4 * 4 + n // 16 % 4 - 3.5) - x[k]
            py = h[1] * (part // 2 % 2 * 4 + n // 4 % 4 - 3.5) - y[k]
            pz = h[2] * (part % 2 * 4 + n % 4 - 3.5) - z[k]
            r2 = float(px * px + py * py + pz * pz)
            r2, outside = max(r2, float(soft) ** 2), r2 >= float(soft) ** 2
            if r2 < cutoff * cutoff or cutoff == 0:
                charge = chunk[3, k] / CHARGE_FACTOR  # which it holds for the main loop, which makes 2/r
                potential, slope = radial(r2, 1 / math.sqrt(r2), values)
                sums[n] += charge * potential
                if FIELD and outside:
                    sums[512 + n] += charge * slope * px
                    sums[1024 + n] += charge * slope * py
                    sums[1536 + n] += charge * slope * pz
        x[k] = FAR
        chunk[3, k] = REAL(0)


@njit(**FAST)
def sum_chunk(chunk, count, table, index, h, soft, cutoff, values, exact_values, sums, left):
    """Add the potential of the chunk's atoms to the sums of one tile.

    chunk (4, ROW): x, y, z relative to the tile's centre, and q. sums (MAPS * 512,) float64: map by
    map and leaf by leaf, each [x, y, z]. left (3,): points of the lattice from the tile's first on; leaves outside are
    skipped. A `cutoff` of 0 means that all atoms count.
    """
    take_out_coincident(chunk, count, h, soft, cutoff, exact_values, sums)
    everything = cutoff == 0
    cutoff2 = REAL(cutoff * cutoff)
    zero = REAL(0)
    for pad in range(count, count + 20):  # what the pipeline reads ahead: far away, without charge
        chunk[0, pad] = FAR
        chunk[1, pad] = FAR
        chunk[2, pad] = FAR
        chunk[3, pad] = zero
    x, y, z, q = chunk[0], chunk[1], chunk[2], chunk[3]
    table_y, table_z, table_q = table[Y], table[Z], table[Q]
    for k in range(count + 16):
        table_y[k] = y[k]
        table_z[k] = z[k]
        table_q[k] = q[k]
    for plane in range(8):
        c = REAL(plane - 3.5) * h[0]
        row = table[X + plane]
        for k in range(count + 16):
            d = c - x[k]
            row[k] = d if FIELD else d * d
    if not everything:
        for axis in range(3):
            coordinate = chunk[axis]
            half = REAL(1.5) * h[axis]
            for side in range(2):
                c = REAL(4 * side - 2) * h[axis]
                row = table[GAP + 2 * axis + side]
                for k in range(count + 16):
                    d = max(abs(coordinate[k] - c) - half, zero)
                    row[k] = d * d
    for part in range(8):
        px, py, pz = part // 4, part // 2 % 2, part % 2
        if 4 * px >= left[0] or 4 * py >= left[1] or 4 * pz >= left[2]:
            continue
        found = count
        if everything:
            for k in range(count):
                index[k] = np.int32(k)
        else:
            found = in_leaf(table, GAP + px, GAP + 2 + py, GAP + 4 + pz, count, cutoff2, index)
        for pad in range(4):
            index[found + pad] = np.int32(count)
        for first in range(0, found, BLOCK):
            leaf(table, index, first, min(BLOCK, found - first), X + 4 * px, REAL(4 * py - 2) * h[1],
                 REAL(4 * pz - 2) * h[2], h[1], h[2], cutoff2, values, sums, part * 64)


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


@njit(**FAST)
def run(x, y, z, q, start, bins, bin_size, cutoff, maps, origin, spacing, values, soft, factors, add, first_task,
        last_task):
    """Sum the tiles of 8^3 points first_task <= t < last_task into the maps (MAPS, nx, ny, nz), or add them to these.

    Atoms x, y, z, q are float64 (N + 16,), sorted by bin, with 16 places that are read but do not
    count; `start` (bins + 1,) is where a bin begins. A `cutoff` of 0 means that all atoms count
    everywhere; there is one bin then.
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
    cutoff2 = REAL(cutoff * cutoff) if cutoff > 0 else REAL(1e30)  # fast arithmetic knows no infinity
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
        count = np.int64(0)  # a plain 0 would be a type of its own, and compile all below a second time
        for row in range(row_count):
            first, end = rows[row, 0], rows[row, 1]
            while first < end:
                room = min(end - first, CHUNK - count)
                count = in_tile(x, y, z, q, first, room, centre[0], centre[1], centre[2], REAL(half[0]), REAL(half[1]),
                                REAL(half[2]), cutoff2, chunk, count)
                first += room
                if count > CHUNK - 16:
                    sum_chunk(chunk, count, table, index, h, soft, cutoff, real_values, values, sums, left)
                    count = np.int64(0)
        if count > 0:
            sum_chunk(chunk, count, table, index, h, soft, cutoff, real_values, values, sums, left)
        for n in range(MAPS):
            write_tile(sums[n * 512 : (n + 1) * 512], maps[n], tile, factors[n], add)
