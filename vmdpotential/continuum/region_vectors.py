"""Vectors of nodes in a row of a lattice, for the kernels of a molecule's region.

LLVM does not vectorize these loops by itself: they are short, and the arrays that they read and write could overlap.
"""

# numba's intrinsics have no annotations that mypy could check
# mypy: ignore-errors

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vmdpotential.compiling.simd import LANES as OF_BITS
from vmdpotential.compiling.simd import Vector, constant, pointer

#: Number of nodes in a vector.
LANES = OF_BITS[32]


def _vector(builder):
    vector = Vector(builder, 32, LANES)
    vector.flags = ("contract",)
    return vector


@intrinsic
def deepen(typing, depth, deepest, at, squares, k, square, radius, sphere):
    """Raise the depths of nodes from `at` on to their depths in a sphere, and record the sphere where that is deeper.

    `square` is the square of the distance from the centre across the row; those along it begin at squares[k].
    """

    def codegen(context, builder, signature, arguments):
        v = _vector(builder)
        depth, squares = (pointer(context, builder, signature.args[n], arguments[n], ir.FloatType()) for n in (0, 3))
        deepest = pointer(context, builder, signature.args[1], arguments[1], ir.IntType(32))
        _, _, at, _, k, square, radius, sphere = arguments
        before = v.load(depth, at)
        here = v.sub(v.broadcast(radius), v.sqrt(v.add(v.broadcast(square), v.load(squares, k))))
        deeper = v.less(before, here)
        v.store(depth, at, v.select(deeper, here, before))
        whole = ir.VectorType(ir.IntType(32), LANES)
        address = builder.bitcast(builder.gep(deepest, [at]), whole.as_pointer())
        number = v.broadcast(builder.trunc(sphere, ir.IntType(32)))
        builder.store(builder.select(deeper, number, builder.load(address, align=4)), address, align=4)
        return context.get_dummy_value()

    return types.void(depth, deepest, types.int64, squares, types.int64, types.float32, types.float32,
                      types.int64), codegen


@intrinsic
def approach(typing, distances, at, places, k, row, piece):
    """Raise the signed distances of nodes from `at` on to their depths in a probe on a piece of an arc.

    The coordinates of the nodes along the row, relative to the centre of the arc, begin at places[k]. `row` and `piece`
    are numbers that :func:`~vmdpotential.continuum.region_kernel.roll` computes once for a row and for a piece.
    """

    def codegen(context, builder, signature, arguments):
        v = _vector(builder)
        distances, places, row, piece = (pointer(context, builder, signature.args[n], arguments[n], ir.FloatType())
                                         for n in (0, 2, 4, 5))
        at, k = arguments[1], arguments[3]
        along_u, along_v, square, *to_ends = (v.load_one(row, constant(n)) for n in range(5))
        u, w, radius, x, y, cosine, *ends, probe = (v.load_one(piece, constant(n)) for n in range(9))
        z = v.load(places, k)
        a, b = v.fma(z, u, along_u), v.fma(z, w, along_v)
        across = v.sqrt(v.fma(a, a, v.mul(b, b)))
        inner = v.fma(radius, v.sub(radius, v.add(across, across)), v.fma(z, z, square))
        off = [v.sub(z, end) for end in ends]
        outer = v.min(*(v.fma(each, each, to_end) for each, to_end in zip(off, to_ends, strict=True)))
        beyond = v.less(v.fma(a, x, v.mul(b, y)), v.mul(across, cosine))
        nearest = v.sqrt(v.max(v.select(beyond, outer, inner), v.const(0.0)))
        v.store(distances, at, v.max(v.load(distances, at), v.sub(probe, nearest)))
        return context.get_dummy_value()

    return types.void(distances, types.int64, places, types.int64, row, piece), codegen
