"""The inner loop of lattice sums in vector code: one leaf of 4 x 4 x 4 points, lanes along y and z."""

# numba's intrinsics have no annotations that mypy could check
# mypy: ignore-errors

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vmdpotential.compiling.simd import I32, I64, LANES, Vector, constant, pointer
from vmdpotential.engines.cpu.maps.rows import ROW, Q, Y, Z
from vmdpotential.interactions.derivative import Dual
from vmdpotential.interactions.program import run as run_program


def vector_leaf(program, bits, newton_steps, masked, field):
    """Return the inner loop for a radial function.

    Parameters
    ----------
    program : Program
        The traced radial function.
    bits : {32, 64}
        Size of the floating-point numbers.
    newton_steps : int
        Number of Newton steps after an estimate of the inverse square root.
    masked : bool
        Whether pairs beyond the cutoff must be masked.
    field : bool
        Whether the field is summed in addition to the potential.
    """
    width = LANES[bits]
    real = types.float64 if bits == 64 else types.float32
    maps = 4 if field else 1
    degree = None if field else program.degree()

    @intrinsic
    def leaf(typing, table, index, first, count, row, cy, cz, hy, hz, cutoff2, values, sums, offset):
        """Add the potential of atoms index[first : first + count] at 4 x 4 x 4 points to sums[offset :].

        `row` is the table row of the first of four x planes, with squared distances or, with `field`, distances; cy, cz
        is the centre of the points and hy, hz their spacing. With `field` the sums of q dV/d(r^2) times the distances
        along x, y and z are added to sums[512 + offset :], sums[1024 + offset :] and sums[1536 + offset :]. The loop is
        software-pipelined in three stages, because the latency from a coordinate to its term (about 45 cycles) is
        longer than one iteration: indices and y, z distances of the atom after the next one; r^2 and its estimated
        inverse square root of the next atom; the term of the current atom.
        """
        i, f = types.int64, real
        signature = types.void(table, index, i, i, i, f, f, f, f, f, values, sums, i)

        def codegen(context, builder, sig, arguments):
            v = Vector(builder, bits, width)
            parts = 16 // width
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
            p_sums = builder.gep(pointer(context, builder, sig.args[11], arguments[11], ir.DoubleType()),
                                 [arguments[12]])
            lanes = [range(p * width, p * width + width) for p in range(parts)]
            point_y = [v.add(cy, v.mul(hy, v.constant_vector([n // 4 - 1.5 for n in lane]))) for lane in lanes]
            point_z = [v.add(cz, v.mul(hz, v.constant_vector([n % 4 - 1.5 for n in lane]))) for lane in lanes]
            values = {name: v.load_one(p_values, constant(k)) for k, name in enumerate(program.parameters)}
            back_end = Dual(v) if field else v
            if field:
                values = {name: (value, None) for name, value in values.items()}
            uniform = run_program(program, back_end, values, part="uniform")

            def atom(step):
                return builder.zext(builder.load(builder.gep(p_index, [step])), I64)

            def distances_yz(j):
                y, z = v.load_one(p_y, j), v.load_one(p_z, j)
                dy, dz = [v.sub(point, y) for point in point_y], [v.sub(point, z) for point in point_z]
                yz = [v.fma(a, a, v.mul(b, b)) for a, b in zip(dy, dz, strict=True)]
                return yz, [j, *dy, *dz] if field else []

            def estimates(j, yz):
                r2 = []
                for k in range(4):
                    x = v.load_one(p_x[k], j)
                    r2 += [v.fma(x, x, part) if field else v.add(part, x) for part in yz]
                return [v.load_one(p_q, j)], r2, [v.rsqrt_estimate(a) for a in r2]

            def terms(q, r2, estimate, distances, sums):
                new = list(sums)

                def add(n, inside, factor, value):
                    total = v.fma(factor, value, sums[n])
                    new[n] = v.select(inside, total, sums[n]) if masked else total

                for n in range(size):
                    rinv = v.rsqrt_twice(r2[n], estimate[n], newton_steps)
                    if degree is None:
                        rinv = v.mul(rinv, v.const(0.5))
                    inside = v.less(r2[n], cutoff2) if masked else None
                    inputs = back_end.inputs(r2[n], rinv) if field else {"r2": r2[n], "rinv": rinv}
                    result = run_program(program, back_end, inputs, done=uniform)[len(program.steps) - 1]
                    if not field:
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
                     [v.const(0.0)] * (maps * size)]
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
            wide = Vector(builder, 64, width, fast=False)
            for n, vector in enumerate(new_sums):
                vector = vector if bits == 64 else builder.fpext(vector, wide.type)
                place = constant(n // size * 512 + n % size * width)
                wide.store(p_sums, place, wide.add(wide.load(p_sums, place), vector))
            return context.get_dummy_value()

        return signature, codegen

    return leaf
