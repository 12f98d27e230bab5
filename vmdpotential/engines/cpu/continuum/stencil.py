"""Stencils of multigrid for a vector of nodes, because LLVM does not vectorize loops over so many arrays.

Each function processes one vector of nodes, which begins at the index `at` of flat arrays. `sx` and `sy` are the
strides along x and y, and x, y, z are the conductances of the edges from each node along an axis.
"""

# numba's intrinsics have no annotations that mypy could check
# mypy: ignore-errors

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vmdpotential.compiling.simd import LANES, Vector, constant, pointer

#: Number of nodes in a vector of float32 and of float64.
NODES, DOUBLES = LANES[32], LANES[64]

#: LLVM may change the order of sums, but has to keep infinities, which show that a solution failed.
FLAGS = ("contract", "reassoc", "nsz", "arcp")


def _vector(builder, bits=32):
    vector = Vector(builder, bits, LANES[bits])
    vector.flags = FLAGS
    return vector


def _pointers(context, builder, signature, arguments, count):
    return [pointer(context, builder, kind, array, ir.FloatType())
            for kind, array in zip(signature.args[:count], arguments[:count], strict=True)]


def _edges(builder, conductances, at, sx, sy):
    """Yield for each of the six edges of a vector of nodes: conductances, their index, the index of the neighbours."""
    for p, step in zip(conductances, (sx, sy, constant(1)), strict=True):
        below = builder.sub(at, step)
        yield p, at, builder.add(at, step)
        yield p, below, below


def _even(vector):
    return ir.Constant(ir.VectorType(ir.IntType(1), NODES), [n % 2 == 0 for n in range(NODES)])


def _relaxing(count):
    """Return an intrinsic that solves for every second node of `count` vectors, and then writes all of them to u."""

    @intrinsic
    def relax(typing, u, f, x, y, z, d, at, sx, sy):
        def codegen(context, builder, signature, arguments):
            v = _vector(builder)
            u, f, x, y, z, d = _pointers(context, builder, signature, arguments, 6)
            first, sx, sy = arguments[6:]
            results = []
            for n in range(count):
                at = builder.add(first, constant(n * NODES))
                total = v.load(f, at)
                for e, edge, other in _edges(builder, (x, y, z), at, sx, sy):
                    total = v.fma(v.load(e, edge), v.load(u, other), total)
                results.append((at, v.select(_even(v), v.mul(total, v.load(d, at)), v.load(u, at))))
            for at, result in results:
                v.store(u, at, result)
            return context.get_dummy_value()

        return types.void(u, f, x, y, z, d, types.int64, types.int64, types.int64), codegen

    return relax


#: Number of vectors that are solved for together: one by one, each would have to wait until the previous is written.
TOGETHER = 4

relax, relax_together = _relaxing(1), _relaxing(TOGETHER)


@intrinsic
def start(typing, u, f, d, at):
    """Solve for every second node where all others are 0; set the nodes between them to 0."""

    def codegen(context, builder, signature, arguments):
        v = _vector(builder)
        u, f, d = _pointers(context, builder, signature, arguments, 3)
        at = arguments[3]
        v.store(u, at, v.select(_even(v), v.mul(v.load(f, at), v.load(d, at)), v.const(0.0)))
        return context.get_dummy_value()

    return types.void(u, f, d, types.int64), codegen


@intrinsic
def interpolate(typing, coarse, first, second, third, fourth, ahead, u, at):
    """Add to every second node of a vector the mean of coarse nodes, which begin at four indices.

    Each mean is over eight nodes: those at the four indices, and those `ahead` (0 or 1) of them.
    """

    def codegen(context, builder, signature, arguments):
        v, half = _vector(builder), ir.VectorType(ir.FloatType(), NODES // 2)
        coarse, = _pointers(context, builder, signature, arguments, 1)
        places, ahead, at = arguments[1:5], arguments[5], arguments[7]
        u = pointer(context, builder, signature.args[6], arguments[6], ir.FloatType())
        total = None
        for place in places:
            for n in (place, builder.add(place, ahead)):
                address = builder.bitcast(builder.gep(coarse, [n]), half.as_pointer())
                value = builder.load(address, align=4)
                total = value if total is None else builder.fadd(total, value, flags=FLAGS)
        lanes = [n // 2 if n % 2 == 0 else NODES // 2 for n in range(NODES)]
        spread = builder.shuffle_vector(total, ir.Constant(half, None),
                                        ir.Constant(ir.VectorType(ir.IntType(32), NODES), lanes))
        v.store(u, at, v.fma(spread, v.const(0.125), v.load(u, at)))
        return context.get_dummy_value()

    return types.void(coarse, *[types.int64] * 5, u, types.int64), codegen


@intrinsic
def residual(typing, u, f, x, y, z, d, out, at, sx, sy, to):
    """Write the residual of every second node, and 0 for those between, to out from the index `to` on."""

    def codegen(context, builder, signature, arguments):
        v = _vector(builder)
        u, f, x, y, z, d, out = _pointers(context, builder, signature, arguments, 7)
        at, sx, sy, to = arguments[7:]
        total = v.load(f, at)
        for e, edge, other in _edges(builder, (x, y, z), at, sx, sy):
            total = v.fma(v.load(e, edge), v.load(u, other), total)
        total = v.sub(total, v.div(v.load(u, at), v.load(d, at)))
        v.store(out, to, v.select(_even(v), total, v.const(0.0)))
        return context.get_dummy_value()

    return types.void(u, f, x, y, z, d, out, types.int64, types.int64, types.int64, types.int64), codegen


@intrinsic
def apply(typing, p, x, y, z, k2, q, sums, at, sx, sy):
    """Write the operator applied to p to q, and add the products p q to a vector of sums."""

    def codegen(context, builder, signature, arguments):
        v = _vector(builder)
        p, x, y, z, k2, q, sums = _pointers(context, builder, signature, arguments, 7)
        at, sx, sy = arguments[7:]
        own = v.load(p, at)
        total = v.mul(v.load(k2, at), own)
        for e, edge, other in _edges(builder, (x, y, z), at, sx, sy):
            total = v.fma(v.load(e, edge), v.sub(own, v.load(p, other)), total)
        v.store(q, at, total)
        v.store(sums, constant(0), v.fma(total, own, v.load(sums, constant(0))))
        return context.get_dummy_value()

    return types.void(p, x, y, z, k2, q, sums, types.int64, types.int64, types.int64), codegen


@intrinsic
def exact_residual(typing, w, x, y, z, k2, out, at, sx, sy):
    """Write the residual without its sources, summed in float64, to out."""

    def codegen(context, builder, signature, arguments):
        v = _vector(builder, 64)
        single = ir.VectorType(ir.FloatType(), DOUBLES)
        w, x, y, z, k2, out = _pointers(context, builder, signature, arguments, 6)
        at, sx, sy = arguments[6:]

        def load(array, place):
            address = builder.bitcast(builder.gep(array, [place]), single.as_pointer())
            return builder.fpext(builder.load(address, align=4), v.type)

        own = load(w, at)
        total = builder.fneg(v.mul(load(k2, at), own))
        for e, edge, other in _edges(builder, (x, y, z), at, sx, sy):
            total = v.fma(load(e, edge), v.sub(load(w, other), own), total)
        v.store(out, at, builder.fptrunc(total, single))
        return context.get_dummy_value()

    return types.void(w, x, y, z, k2, out, types.int64, types.int64, types.int64), codegen
