"""Vector code for kernels of points: weighted sums of nodes."""

# numba's intrinsics have no annotations that mypy could check
# mypy: ignore-errors

import functools

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vmdpotential.compiling.simd import I32, Vector, constant


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
