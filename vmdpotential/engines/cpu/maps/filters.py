"""Vector code for kernels of tiles and points: filters of atoms in range, and weighted sums of nodes.

The filters are for single precision and AVX-512, which compresses the selected lanes without branches; otherwise plain
loops in :mod:`~vmdpotential.engines.cpu.maps.rows` do the same.
"""

# numba's intrinsics have no annotations that mypy could check
# mypy: ignore-errors

import functools

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vmdpotential.compiling.simd import I32, I64, Vector, constant, pointer
from vmdpotential.engines.cpu.maps.rows import ROW

W = 16

_INDEX, _MASK = ir.VectorType(I32, W), ir.IntType(W)


def _compress(v, builder, mask, vector, kind):
    suffix = "i32" if kind is _INDEX else "f32"
    return v.call(f"llvm.x86.avx512.mask.compress.v16{suffix}", [vector, ir.Constant(kind, None), mask], kind)


def _count(v, builder, mask):
    return builder.zext(v.call("llvm.ctpop.i16", [builder.bitcast(mask, _MASK)], _MASK), I64)


def _filter_loop(builder, count, body, *starts):
    """Emit a loop over blocks of 16 atoms and return its final state; body(i, *state) returns the new state."""
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
    """Write the atoms in range of a leaf, with squared gaps that sum to less than cutoff2; return their number."""
    i = types.int64
    signature = i(table, i, i, i, i, types.float32, index)

    def codegen(context, builder, sig, arguments):
        v = Vector(builder, 32, W)
        p_table = pointer(context, builder, sig.args[0], arguments[0], v.element)
        rows = [builder.gep(p_table, [builder.mul(arguments[1 + d], constant(ROW))]) for d in range(3)]
        limit = v.broadcast(arguments[5])
        p_index = pointer(context, builder, sig.args[6], arguments[6], I32)

        def body(i, stored, numbers):
            gap2 = v.add(v.add(v.load(rows[0], i), v.load(rows[1], i)), v.load(rows[2], i))
            mask = v.less(gap2, limit)
            v.store(p_index, stored, _compress(v, builder, mask, numbers, _INDEX))
            return builder.add(stored, _count(v, builder, mask)), builder.add(numbers, ir.Constant(_INDEX, [W] * W))

        return _filter_loop(builder, arguments[4], body, constant(0), ir.Constant(_INDEX, list(range(W))))[0]

    return signature, codegen


@intrinsic
def in_tile(typing, x, y, z, q, first, count, cx, cy, cz, hx, hy, hz, cutoff2, chunk, stored):
    """Append those of the atoms first : first + count in range of a tile to the chunk; return its new length.

    c is the centre of the tile and h its half widths; positions in the chunk are relative to the centre. Up to 15
    atoms beyond the last are read, and up to 15 elements of the chunk beyond the last are written.
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

        def body(i, stored):
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
                v.store(targets[n], stored, _compress(v, builder, mask, atoms[n], v.type))
            return [builder.add(stored, _count(v, builder, mask))]

        return _filter_loop(builder, arguments[5], body, arguments[14])[0]

    return signature, codegen


def _items(builder, values, count):
    """Return the items of a tuple, or of an LLVM array."""
    return [builder.extract_value(values, i) for i in range(count)]


@intrinsic
def weighted(typing, smooth, at, wa, wb, wc):
    """Return the weighted sum of the 4^3 nodes from index `at` on; the four along the last axis are vector lanes."""
    signature = types.float64(smooth, types.int64, wa, wb, wc)

    def codegen(context, builder, sig, arguments):
        v = Vector(builder, 64, 4)
        array = context.make_array(sig.args[0])(context, builder, arguments[0])
        plane, row, _ = (builder.sdiv(stride, constant(8)) for stride in _items(builder, array.strides, 3))
        first, second, third = (_items(builder, argument, 4) for argument in arguments[2:])
        total = v.const(0.0)
        for j in range(4):
            line_sum = v.const(0.0)
            for k in range(4):
                offset = builder.add(builder.mul(constant(j), plane), builder.mul(constant(k), row))
                line = v.load(array.data, builder.add(arguments[1], offset))
                line_sum = v.fma(v.broadcast(second[k]), line, line_sum)
            total = v.fma(v.broadcast(first[j]), line_sum, total)
        lanes = [builder.fmul(builder.extract_element(total, ir.Constant(I32, k)), third[k], flags=v.flags)
                 for k in range(4)]
        return functools.reduce(lambda a, b: builder.fadd(a, b, flags=v.flags), lanes)

    return signature, codegen
