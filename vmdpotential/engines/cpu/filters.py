"""Filters of the tile kernels: which atoms are in range.

Those for AVX-512 pack them without branches. They serve single precision; elsewhere plain loops in
:mod:`~vmdpotential.engines.cpu.tile_kernel` do the same.
"""

# numba's intrinsics have no annotations that mypy could check
# mypy: ignore-errors

import math

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from vmdpotential.engines.cpu.simd import I32, I64, Vector, constant, pointer

CHUNK = 512  # atoms whose tables are in the first-level cache together
ROW = CHUNK + 32  # length of a table row: room for padding and for reading ahead
W = 16


_INDEX, _MASK = ir.VectorType(I32, W), ir.IntType(W)


def _compress(v, builder, mask, vector, kind):
    suffix = "i32" if kind is _INDEX else "f32"
    return v.call(f"llvm.x86.avx512.mask.compress.v16{suffix}", [vector, ir.Constant(kind, None), mask], kind)


def _count(v, builder, mask):
    return builder.zext(v.call("llvm.ctpop.i16", [builder.bitcast(mask, _MASK)], _MASK), I64)


def _filter_loop(builder, count, body, *starts):
    """Loop over 16 atoms a pass; body(i, *state) returns the new state."""
    before = builder.block
    loop = builder.append_basic_block("filter")
    after = builder.append_basic_block("filtered")
    builder.branch(loop)
    builder.position_at_end(loop)
    state = [builder.phi(s.type) for s in (constant(0), *starts)]
    for phi, value in zip(state, (constant(0), *starts), strict=True):
        phi.add_incoming(value, before)
    new = [builder.add(state[0], constant(W)), *body(*state)]
    for phi, value in zip(state, new, strict=True):
        phi.add_incoming(value, builder.block)
    builder.cbranch(builder.icmp_signed("<", new[0], count), loop, after)
    builder.position_at_end(after)
    return new[1:]


@intrinsic
def in_leaf(typing, table, row_x, row_y, row_z, count, cutoff2, index):
    """Write the atoms whose three squared gaps to a leaf sum to less than cutoff2 to index; return how many."""
    i = types.int64
    signature = i(table, i, i, i, i, types.float32, index)

    def codegen(context, builder, sig, arguments):
        v = Vector(builder, 32, W)
        p_table = pointer(context, builder, sig.args[0], arguments[0], v.element)
        rows = [builder.gep(p_table, [builder.mul(arguments[1 + d], constant(ROW))]) for d in range(3)]
        limit = v.broadcast(arguments[5])
        p_index = pointer(context, builder, sig.args[6], arguments[6], I32)

        def body(i, found, numbers):
            gap2 = v.add(v.add(v.load(rows[0], i), v.load(rows[1], i)), v.load(rows[2], i))
            mask = v.less(gap2, limit)
            v.store(p_index, found, _compress(v, builder, mask, numbers, _INDEX))
            return builder.add(found, _count(v, builder, mask)), builder.add(numbers, ir.Constant(_INDEX, [W] * W))

        return _filter_loop(builder, arguments[4], body, constant(0), ir.Constant(_INDEX, list(range(W))))[0]

    return signature, codegen


@intrinsic
def in_tile(typing, x, y, z, q, first, count, cx, cy, cz, hx, hy, hz, cutoff2, chunk, found):
    """Append those of the atoms first : first + count in range of a tile to the chunk; return its new length.

    c is the centre of the tile and h its half widths; the chunk is relative to the centre. Up to
    15 atoms more are read, and as many places of the chunk written.
    """
    i, f, d = types.int64, types.float32, types.float64
    signature = i(x, y, z, q, i, i, d, d, d, f, f, f, f, chunk, i)

    def codegen(context, builder, sig, arguments):
        v, wide = Vector(builder, 32, W), Vector(builder, 64, W)
        rows = [builder.gep(pointer(context, builder, sig.args[n], arguments[n], wide.element), [arguments[4]])
                for n in range(4)]
        centre = [wide.broadcast(a) for a in arguments[6:9]]
        half = [v.broadcast(a) for a in arguments[9:12]]
        limit = v.broadcast(arguments[12])
        p_chunk = pointer(context, builder, sig.args[13], arguments[13], v.element)
        targets = [builder.gep(p_chunk, [constant(n * ROW)]) for n in range(4)]
        lane = ir.Constant(_INDEX, list(range(W)))

        def body(i, found):
            atoms = [wide.load(row, i) for row in rows]
            atoms = [wide.sub(a, c) for a, c in zip(atoms, centre, strict=False)] + atoms[3:]
            atoms = [builder.fptrunc(a, v.type) for a in atoms]
            gap2 = v.const(0.0)
            for n in range(3):
                gap = v.max(v.sub(v.fabs(atoms[n]), half[n]), v.const(0.0))
                gap2 = v.fma(gap, gap, gap2)
            left = v.broadcast(builder.trunc(builder.sub(arguments[5], i), I32))
            mask = builder.and_(v.less(gap2, limit), builder.icmp_signed("<", lane, left))
            for n in range(4):
                v.store(targets[n], found, _compress(v, builder, mask, atoms[n], v.type))
            return [builder.add(found, _count(v, builder, mask))]

        return _filter_loop(builder, arguments[5], body, arguments[14])[0]

    return signature, codegen


@njit(fastmath=True, error_model="numpy", boundscheck=False, nogil=True)
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
