"""The inner loop of sums over all pairs in vector code: atoms i, broadcast to all lanes, and vectors of atoms j."""

# numba's intrinsics have no annotations that mypy could check
# mypy: ignore-errors

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vmdpotential.compiling.simd import I64, LANES, Vector, constant, pointer
from vmdpotential.interactions.program import run as run_program


class Pairs:
    """Vector code of the contributions of pairs.

    Parameters
    ----------
    shape : PairShape
        The programs and their parameters.
    v : Vector
    p_values, p_tables : LLVM values
        Addresses of the uniform parameters, and of the tables of types.
    soft2, types_ : LLVM values
        Square of the softening length, which is added to squared distances, and number of types.
    """

    def __init__(self, shape, v, p_values, p_tables, soft2, types_):
        self.shape, self.v, self.p_tables, self.types = shape, v, p_tables, types_
        self.soft2 = v.broadcast(soft2)
        values = {name: v.load_one(p_values, constant(k)) for k, name in enumerate(shape.parameters)}
        self.uniform = [run_program(p, v, values, part="uniform") if p else {} for p in shape.programs]

    def steps_of_i(self, atom):
        """Return the steps of each program that only depend on atom i."""
        return [run_program(p, self.v, self._named("i", atom), part="own", done=done) if p else {}
                for p, done in zip(self.shape.programs, self.uniform, strict=True)]

    def _named(self, side, atom):
        return {f"{side}.{name}": value for name, value in zip(self.shape.names, atom[self.shape.first :], strict=True)}

    def _looked_up(self, row_i, rows_j):
        """Return the tables' values for an atom i and a vector of atoms j, by their types."""
        v, builder, result = self.v, self.v.builder, {}
        for n, name in enumerate(self.shape.tables):
            row = builder.mul(builder.add(builder.mul(constant(n), self.types), row_i), self.types)
            vector = ir.Constant(v.type, ir.Undefined)
            for lane, row_j in enumerate(rows_j):
                value = builder.load(builder.gep(self.p_tables, [builder.add(row, row_j)]))
                vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), lane))
            result[f"pair.{name}"] = vector
        return result

    def add(self, i, own, j, rows, sums_i, sums_j, left=None, excluded=None):
        """Add the contributions of an atom i and a vector of atoms j to the sums of both.

        `left` and `excluded` mask the lanes of pairs that do not count, and of excluded pairs with a correction.
        """
        v, shape = self.v, self.shape
        d = [v.sub(a, b) for a, b in zip(i[:3], j[:3], strict=True)]
        r2 = v.fma(d[0], d[0], v.fma(d[1], d[1], v.fma(d[2], d[2], self.soft2)))
        # in the program's unit of length, 2 A, 2 / r is 1 / r
        rinv = v.rsqrt_twice(r2, v.rsqrt_estimate(r2), 1 if v.bits == 32 else 2)
        inputs = {"r2": v.mul(r2, v.const(0.25)), "rinv": rinv} | (self._looked_up(*rows) if shape.tables else {})

        def results(own, named):
            result = []
            for program, done in zip(shape.programs, own, strict=True):
                steps = run_program(program, v, inputs | named, done=done) if program else {}
                result.append([steps[r] for r in program.results] if program else None)
            values = result[0]
            if excluded is not None and result[1]:
                values = [v.select(excluded, other, value) for other, value in zip(result[1], values, strict=True)]
            zero = v.const(0.0)
            return values if left is None else [v.select(left, zero, value) for value in values]

        on_i = results(own, self._named("i", i) | self._named("j", j))
        on_j = on_i if shape.symmetric else results(self.uniform, self._named("i", j) | self._named("j", i))
        if shape.jerk:
            u = [v.sub(a, b) for a, b in zip(i[3:6], j[3:6], strict=True)]
            # 2 / LENGTH^2: twice the bend enters, which is per length^4, whereas the slope is per length^2
            along = v.mul(v.fma(d[0], u[0], v.fma(d[1], u[1], v.mul(d[2], u[2]))), v.const(0.5))
        for results_, sums, add in ((on_i, sums_i, v.fma),
                                    (on_j, sums_j, lambda a, b, c: v.sub(c, v.mul(a, b)))):
            for n in range(3):
                sums[n] = add(results_[0], d[n], sums[n])
            if shape.jerk:
                bend = v.mul(results_[1], along)
                for n in range(3):
                    sums[3 + n] = add(bend, d[n], add(results_[0], u[n], sums[3 + n]))
            for n in range(shape.terms):
                sums[shape.first + n] = v.add(sums[shape.first + n], results_[1 + shape.jerk + n])


def vector_loops(shape):
    """Return three functions: the inner loop without and with masks, and `fold`, which adds its sums in float64.

    Parameters
    ----------
    shape : PairShape
    """
    width = LANES[shape.bits]
    size = shape.first + shape.terms
    real = types.float64 if shape.bits == 64 else types.float32
    integer = types.int64

    def loop(masked):
        @intrinsic
        def sum_pairs(typing, table_i, stride_i, first_i, rows_i, table_j, stride_j, rows_j, start, stop, base, left,
                      excluded, values, tables, count, soft2, sums, scratch, stride):
            """Add the pairs of atoms i and vectors start to stop of atoms j.

            Contributions to atoms i are added to sums (size, I, width), those to atoms j to scratch (size, stride),
            which begins with vector `base`. The bits of `left` and `excluded` are the pairs (I, width) of the single
            vector of a loop with masks.
            """
            i = integer
            signature = types.void(table_i, i, i, rows_i, table_j, i, rows_j, i, i, i, types.uint64, types.uint64,
                                   values, tables, i, real, sums, scratch, i)

            def codegen(context, builder, sig, arguments):
                v = Vector(builder, shape.bits, width)
                at = [pointer(context, builder, kind, value, {3: I64, 6: I64}.get(n, v.element))
                      if n in (0, 3, 4, 6, 12, 13, 16, 17) else value
                      for n, (kind, value) in enumerate(zip(sig.args, arguments, strict=True))]
                (p_i, stride_i, first_i, p_rows_i, p_j, stride_j, p_rows_j, start, stop, base, left, excluded, p_values,
                 p_tables, count, soft2, p_sums, p_scratch, stride) = at
                pairs = Pairs(shape, v, p_values, p_tables, soft2, count)
                columns = shape.first + len(shape.names)
                each = range(shape.unroll_i)
                atom = [builder.add(first_i, constant(k)) for k in each]
                atoms = [[v.load_one(p_i, builder.add(builder.mul(constant(n), stride_i), a)) for n in range(columns)]
                         for a in atom]
                types_i = [builder.load(builder.gep(p_rows_i, [a])) if shape.tables else None for a in atom]
                own = [pairs.steps_of_i(a) for a in atoms]
                places = [[constant((n * shape.unroll_i + k) * width) for n in range(size)] for k in each]
                columns_j = [builder.mul(constant(n), stride_j) for n in range(columns)]
                columns_out = [builder.mul(constant(n), stride) for n in range(size)]

                def lanes(bits, k):
                    part = builder.lshr(bits, constant(k * width))
                    return builder.bitcast(builder.trunc(part, ir.IntType(width)), ir.VectorType(ir.IntType(1), width))

                masks = [(lanes(left, k), lanes(excluded, k)) if masked else () for k in each]

                def step(vector, sums):
                    place = builder.mul(vector, constant(width))
                    j = [v.load(p_j, builder.add(column, place)) for column in columns_j]
                    types_j = [builder.load(builder.gep(p_rows_j, [builder.add(place, constant(n))]))
                               for n in range(width if shape.tables else 0)]
                    place = builder.mul(builder.sub(vector, base), constant(width))
                    out = [builder.add(column, place) for column in columns_out]
                    sums_j = [v.load(p_scratch, o) for o in out]
                    for k in each:
                        pairs.add(atoms[k], own[k], j, (types_i[k], types_j), sums[k], sums_j, *masks[k])
                    for o, value in zip(out, sums_j, strict=True):
                        v.store(p_scratch, o, value)

                def repeat(first, sums, unroll):
                    """Emit the loop over whole groups of `unroll` vectors; return the next vector and the sums."""
                    before = builder.block
                    body, after = builder.append_basic_block("vectors"), builder.append_basic_block("done")
                    most = builder.sub(stop, constant(unroll))
                    builder.cbranch(builder.icmp_signed("<=", first, most), body, after)
                    builder.position_at_end(body)
                    vector = builder.phi(I64)
                    new = [[builder.phi(v.type) for _ in s] for s in sums]
                    carried = [list(s) for s in new]
                    for n in range(unroll):
                        step(builder.add(vector, constant(n)), carried)
                    following = builder.add(vector, constant(unroll))
                    last = builder.block
                    flat = [(vector, first, following)] + [
                        triple for lists in zip(new, sums, carried, strict=True) for triple in zip(*lists, strict=True)]
                    for phi, old, value in flat:
                        phi.add_incoming(old, before)
                        phi.add_incoming(value, last)
                    builder.cbranch(builder.icmp_signed("<=", following, most), body, after)
                    builder.position_at_end(after)
                    ends = []
                    for phi, old, value in flat:
                        end = builder.phi(phi.type)
                        end.add_incoming(old, before)
                        end.add_incoming(value, last)
                        ends.append(end)
                    return ends[0], [ends[1 + size * k : 1 + size * (k + 1)] for k in each]

                sums = [[v.load(p_sums, place) for place in row] for row in places]
                if masked:
                    step(start, sums)
                else:
                    if shape.unroll_j > 1:
                        start, sums = repeat(start, sums, shape.unroll_j)
                    _, sums = repeat(start, sums, 1)
                for row, values in zip(places, sums, strict=True):
                    for place, value in zip(row, values, strict=True):
                        v.store(p_sums, place, value)
                return context.get_dummy_value()

            return signature, codegen

        return sum_pairs

    @intrinsic
    def fold(typing, sums, out, stride, first_i):
        """Add the sums (size, I, width) of atoms i to out (size, stride) in float64, and reset them to zero."""
        signature = types.void(sums, out, integer, integer)

        def codegen(context, builder, sig, arguments):
            v = Vector(builder, shape.bits, width)
            p_sums = pointer(context, builder, sig.args[0], arguments[0], v.element)
            p_out = pointer(context, builder, sig.args[1], arguments[1], ir.DoubleType())
            for n in range(size):
                for k in range(shape.unroll_i):
                    place = constant((n * shape.unroll_i + k) * width)
                    total = v.call(f"llvm.vector.reduce.fadd.v{width}f{shape.bits}",
                                   [ir.Constant(v.element, 0.0), v.load(p_sums, place)], v.element)
                    v.store(p_sums, place, v.const(0.0))
                    total = total if shape.bits == 64 else builder.fpext(total, ir.DoubleType())
                    address = builder.gep(p_out, [builder.add(builder.mul(constant(n), arguments[2]),
                                                              builder.add(arguments[3], constant(k)))])
                    builder.store(builder.fadd(builder.load(address), total), address)
            return context.get_dummy_value()

        return signature, codegen

    return loop(masked=False), loop(masked=True), fold
