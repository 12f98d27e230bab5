"""Vector code that writes positions to a chunk, for AVX-512; otherwise a loop in ``search_kernel`` does the same."""

# numba's intrinsics have no annotations that mypy could check
# mypy: ignore-errors

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vmdpotential.compiling.simd import I32, I64, Vector, constant, pointer

W = 8


def place_writer(n, bits):
    """Return the function that writes positions to a chunk of `n` atoms, a multiple of 8."""
    real = ir.FloatType() if bits == 32 else ir.DoubleType()

    @intrinsic
    def place_chunk(typing, slots, positions, turn, before, homes, atoms, chunk, near2, ways):
        """Write the coordinates of a chunk's atoms; return whether one has moved from `before` by sqrt(near2) or more.

        If none has, `ways` (2, 8) are updated: the largest squared displacements, and the sums of all.
        """
        signature = types.boolean(slots, positions, turn, before, homes, atoms, types.int64, types.float64, ways)

        def codegen(context, builder, sig, arguments):
            v = Vector(builder, 64, W, fast=False)
            row = ir.VectorType(I64, W)

            def array(k, kind=v.element):
                return pointer(context, builder, sig.args[k], arguments[k], kind)

            def all_lanes(value):
                return ir.Constant(row, [value] * W)

            p_slots, p_positions, p_turn = array(0, I64), array(1), array(2)
            p_before, p_homes, p_atoms, p_ways = array(3), array(4), array(5, real), array(8)
            chunk, limit = arguments[6], v.broadcast(arguments[7])
            strides = context.make_array(sig.args[5])(context, builder, arguments[5]).strides
            target = builder.gep(p_atoms, [builder.mul(chunk, builder.sdiv(builder.extract_value(strides, 0),
                                                                           constant(bits // 8)))])
            turn = [[v.load_one(p_turn, constant(3 * k + d)) for d in range(3)] for k in range(3)]
            longest, total = (v.load(p_ways, constant(W * k)) for k in range(2))
            best, sum_of_all, far = longest, total, ir.Constant(ir.IntType(W), 0)
            for first in range(0, n, W):
                lane = builder.add(builder.mul(chunk, constant(n)), constant(first))
                slot = builder.load(builder.bitcast(builder.gep(p_slots, [lane]), row.as_pointer()), align=8)
                real_ones = builder.icmp_signed(">=", slot, all_lanes(0))
                index = builder.mul(slot, all_lanes(3))
                here = builder.mul(chunk, constant(3 * n))
                moved = []
                for d in range(3):
                    address = builder.bitcast(builder.gep(p_positions, [constant(d)]), ir.IntType(8).as_pointer())
                    x = v.call("llvm.x86.avx512.mask.gather.qpd.512",
                               [ir.Constant(v.type, None), address, index, real_ones, ir.Constant(I32, 8)], v.type)
                    moved.append(v.sub(x, v.load(p_before, builder.add(here, constant(d * n + first)))))
                x = [v.fma(moved[0], turn[0][d], v.fma(moved[1], turn[1][d], v.mul(moved[2], turn[2][d])))
                     for d in range(3)]
                way = v.fma(x[0], x[0], v.fma(x[1], x[1], v.mul(x[2], x[2])))
                best, sum_of_all = v.max(best, way), v.add(sum_of_all, way)
                near = builder.bitcast(v.less(way, limit), ir.IntType(W))
                far = builder.or_(far, builder.not_(near))
                for d in range(3):
                    place = v.add(v.load(p_homes, builder.add(here, constant(d * n + first))), x[d])
                    if bits == 32:
                        place = builder.fptrunc(place, ir.VectorType(real, W))
                    v.store(target, constant(d * n + first), place)
            is_far = builder.icmp_unsigned("!=", far, ir.Constant(ir.IntType(W), 0))
            v.store(p_ways, constant(0), v.select(is_far, longest, best))
            v.store(p_ways, constant(W), v.select(is_far, total, sum_of_all))
            return is_far

        return signature, codegen

    return place_chunk
