"""The search for pairs in vector code: the filter of a chunk's atoms in range of clusters."""

# numba's intrinsics have no annotations that mypy could check
# mypy: ignore-errors

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vmdpotential.compiling.simd import I64, Vector, constant, pointer


def range_filter(m, n, bits, clusters):
    """Return the function that finds the atoms of a chunk of N in range of some clusters of M atoms."""
    real = types.float64 if bits == 64 else types.float32

    @intrinsic
    def in_range(typing, place, atoms, chunk, limit, x, y, z):
        """Return bits of the atoms of a chunk, shifted by (x, y, z), within the limit of an atom of each cluster.

        Clusters are groups of M of the coordinates `place` (3, clusters * M). Each has N bits, the first the lowest.
        """
        signature = types.int64(place, atoms, types.int64, real, real, real, real)

        def codegen(context, builder, sig, arguments):
            v = Vector(builder, bits, n)
            p_place, p_atoms = (pointer(context, builder, sig.args[k], arguments[k], v.element) for k in range(2))
            strides = context.make_array(sig.args[1])(context, builder, arguments[1]).strides
            stride = builder.sdiv(builder.extract_value(strides, 0), constant(bits // 8))
            first = builder.mul(arguments[2], stride)
            j = [v.add(v.load(p_atoms, builder.add(first, constant(d * n))), v.broadcast(arguments[4 + d]))
                 for d in range(3)]
            limit, result = v.broadcast(arguments[3]), constant(0)
            for c in range(clusters):
                least = limit
                for i in range(c * m, c * m + m):
                    dx, dy, dz = (v.sub(v.load_one(p_place, constant(d * clusters * m + i)), j[d]) for d in range(3))
                    least = v.min(v.fma(dx, dx, v.fma(dy, dy, v.mul(dz, dz))), least)
                near = builder.zext(builder.bitcast(v.less(least, limit), ir.IntType(n)), I64)
                result = builder.or_(result, builder.shl(near, constant(c * n)))
            return result

        return signature, codegen

    return in_range


@intrinsic
def popcount(typing, number):
    """Return the number of set bits of an integer."""

    def codegen(context, builder, sig, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), codegen
