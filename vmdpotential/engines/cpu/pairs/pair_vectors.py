"""The inner loops of pair sums in vector code: a cluster of M atoms i and the chunks of N atoms j of a list's entry.

If the processor compresses vectors without branches (AVX-512), the atoms j in range are first packed into a buffer in
the first-level cache, a dense loop sums them, and their contributions are unpacked. Otherwise whole chunks are summed.
"""

# numba's intrinsics have no annotations that mypy could check
# mypy: ignore-errors

from functools import partial

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vmdpotential.compiling.simd import I32, I64, Vector, constant, pointer
from vmdpotential.engines.cpu.pairs.vector_parts import Loop, PairVectors, align_stack
from vmdpotential.interactions.program import run as run_program

I16 = ir.IntType(16)

#: Length of a row of the buffer of packed atoms; not a multiple of 4 KiB, with which rows would share cache lines.
ROW = 1104

#: Number of atoms i whose instructions are interleaved: the processor's window is too short to reach the next atom's
#: instructions while it waits for a result, and it has too few registers for more atoms.
INTERLEAVED = 2


def entry_loops(programs, names, tables, m, n, bits, packed, outputs, virial, soft, one_sided):
    """Return the function that sums one entry of a list.

    Parameters
    ----------
    programs : tuple of Program
        Program for pairs that are not excluded; for such pairs where the second half of atoms i lacks a term, or None;
        and for excluded pairs, or None. Each returns the slope and then energies.
    names, tables : tuple of str
        Names of an atom's parameters, in the order of rows of a chunk from the fourth on, and of those of two types.
    m, n, bits : int
        Number of atoms of a cluster and of a chunk, and bits of a float.
    packed : bool
        Whether atoms j are packed.
    outputs : tuple of tuple of int
        Indices of the energies that the first two programs return after the slope.
    virial, soft, one_sided : bool
        Whether the virial is summed, whether distances are softened, and whether forces on i and j differ.
    """
    program, light, excluded = programs
    real = types.float64 if bits == 64 else types.float32
    rows = 3 + len(names) + (1 if tables else 0)
    energies = len(outputs[0])
    channels = 3 + energies
    steps = 2 if bits == 64 else 1

    @intrinsic
    def entry(typing, atoms_i, centres_i, sums_i, atoms_j, centres_j, sums_j, chunks, bitsets, masks, values,
              pair_tables, types_count, step, rest, cutoff2, soft2, aside, chunk_i, lane_i, first, dense, packs, end,
              mask, buffer, total):
        i = types.int64
        signature = types.void(atoms_i, centres_i, sums_i, atoms_j, centres_j, sums_j, chunks, bitsets, masks, values,
                               pair_tables, i, step, rest, real, real, real, i, i, i, i, i, i, i, buffer, total)

        def codegen(context, builder, sig, arguments):
            v = PairVectors(builder, bits, n)
            element = v.element
            align_stack(builder, v.type)

            def array(k, kind=element):
                return pointer(context, builder, sig.args[k], arguments[k], kind)

            p_i, p_centre_i, p_sum_i, p_j, p_centre_j, p_sum_j = (array(k) for k in range(6))
            p_chunks, p_bits, p_masks = array(6, I32), array(7, I16), array(8, I16)
            p_values, p_tables, p_step, p_rest = array(9), array(10), array(12), array(13)
            p_buffer, p_total = array(24), array(25, ir.DoubleType())
            kinds, chunk_i, lane_i, first, dense, packs, end, mask = (arguments[k] for k in (11, *range(17, 24)))
            cutoff2, soft2, aside = (v.broadcast(arguments[k]) for k in (14, 15, 16))

            def at(address, index):
                return builder.load(builder.gep(address, [index]), align=bits // 8)

            # loop invariants of atoms i and of programs
            base = builder.add(builder.mul(chunk_i, constant(rows * n)), lane_i)
            origin = [v.opaque(v.broadcast(builder.fadd(
                at(p_centre_i, builder.add(builder.mul(chunk_i, constant(3)), constant(d))), at(p_step, constant(d)))))
                      for d in range(3)]
            mine = []
            for k in range(rows):
                row = [at(p_i, builder.add(base, constant(k * n + a))) for a in range(m)]
                if k < 3:
                    row = [builder.fadd(x, at(p_rest, constant(k))) for x in row]
                if k == 3 + len(names):
                    row = [builder.mul(builder.fptosi(x, I64), kinds) for x in row]
                    mine.append(row)
                else:
                    mine.append([v.broadcast(x) for x in row])
            value = {name: v.load_one(p_values, constant(k)) for k, name in enumerate(program.parameters)}
            v.places = {value[name]: builder.gep(p_values, [constant(k)]) for k, name in enumerate(value)}

            def steps_of_i(held_names):
                """Return the steps of a program that only depend on atom i, for each atom i."""
                if held_names is None:
                    return None
                known = run_program(held_names, v, value, part="uniform")
                if one_sided:
                    return [known] * m
                return [run_program(held_names, v, {f"i.{name}": mine[3 + k][a] for k, name in enumerate(names)},
                                    part="own", done=known) for a in range(m)]

            done, done_light, done_excluded = (steps_of_i(item) for item in programs)

            def evaluate(flags, known, a, j, r2, rinv):
                """Return the slope and the energies of atom a with atoms j, and those of atoms j with atom a."""
                inputs = {"rinv": rinv, "r2": v.square(r2)}
                inputs |= {f"j.{name}": j[3 + k] for k, name in enumerate(names)}
                for k, name in enumerate(tables):
                    if f"pair.{name}" in flags.inputs:
                        table = builder.gep(p_tables, [builder.add(
                            builder.mul(constant(k), builder.mul(kinds, kinds)), mine[-1][a])])
                        inputs[f"pair.{name}"] = v.look_up(table, j[-1])
                if one_sided:
                    inputs |= {f"i.{name}": mine[3 + k][a] for k, name in enumerate(names)}
                result = run_program(flags, v, inputs, done=known[a])
                result = [result[k] for k in flags.results]
                if not one_sided:
                    return result, result
                swap = {"i": "j", "j": "i"}
                inputs = {(swap[k[0]] + k[1:] if k[1] == "." else k): x for k, x in inputs.items()}
                back = run_program(flags, v, inputs, done=known[a])
                return result, [back[k] for k in flags.results]

            def distance(a, j, flags):
                """Return the vectors r from atoms j to atom a, r^2, 2 / r, and the mask of pairs that count."""
                d = [v.sub(mine[k][a], j[k]) for k in range(3)]
                r2 = v.fma(d[0], d[0], v.fma(d[1], d[1], v.fma(d[2], d[2], soft2) if soft else v.mul(d[2], d[2])))
                use = v.less(r2, cutoff2)
                if flags is not None:
                    use = builder.and_(use, flags[a][0])
                    r2 = v.select(use, r2, cutoff2)
                return d, r2, v.rsqrt_twice(r2, v.rsqrt_estimate(r2), steps), use

            def slopes(a, j, r2, rinv, use, flags):
                """Return masked slopes and energies of atom a with atoms j, the reverse, and the energies' indices."""
                parts, known, of = program, done, outputs[0]
                if light is not None and a >= m // 2:
                    parts, known, of = light, done_light, outputs[1]
                mine_of, theirs_of = evaluate(parts, known, a, j, r2, rinv)
                if flags is not None and excluded is not None:
                    ours, theirs = evaluate(excluded, done_excluded, a, j, r2, rinv)
                    ours, theirs = ([x[0], *(x[1 + k] for k in of)] for x in (ours, theirs))
                    mine_of = [v.select(flags[a][1], x, y) for x, y in zip(mine_of, ours, strict=True)]
                    theirs_of = [v.select(flags[a][1], x, y) for x, y in zip(theirs_of, theirs, strict=True)]
                mine_of = [v.select(use, x, v.const(0.0)) for x in mine_of]
                return mine_of, [v.select(use, x, v.const(0.0)) for x in theirs_of] if one_sided else mine_of, of

            def add(new, given, a, d, mine_of, theirs_of, of):
                """Add slopes and energies to the sums of atom a, and to those of atoms j."""
                for k in range(3):
                    new[channels * a + k] = v.fma(mine_of[0], d[k], new[channels * a + k])
                    given[k] = v.fma(theirs_of[0], d[k], given[k])
                for k, name in enumerate(of):
                    new[channels * a + 3 + name] = v.add(new[channels * a + 3 + name], mine_of[1 + k])
                    given[3 + name] = v.add(given[3 + name], theirs_of[1 + k])
                if virial:
                    both = v.mul(v.add(mine_of[0], theirs_of[0]), v.const(0.5)) if one_sided else mine_of[0]
                    pull = [v.mul(both, x) for x in d]
                    for k, (x, y) in enumerate(((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))):
                        new[channels * m + k] = v.fma(pull[x], d[y], new[channels * m + k])

            def block(j, sums, flags=None):
                """Return the sums of atoms i with the contributions of atoms j, and the contributions to atoms j."""
                new = list(sums)
                given = [v.const(0.0)] * channels
                for first_a in range(0, m, INTERLEAVED):
                    some_a = range(first_a, first_a + INTERLEAVED)
                    distances = {a: distance(a, j, flags) for a in some_a}
                    slopes_of = {a: slopes(a, j, *distances[a][1:], flags) for a in some_a}
                    for a in some_a:
                        add(new, given, a, distances[a][0], *slopes_of[a])
                return new, given

            def chunk_at(index):
                return builder.zext(builder.load(builder.gep(p_chunks, [index]), align=4), I64)

            def load(chunk, picked=lambda row: row):
                """Return the rows of a chunk, or of its atoms in range, relative to the centre of atoms i."""
                start, centre = builder.mul(chunk, constant(rows * n)), builder.mul(chunk, constant(3))
                j = [picked(v.load(p_j, builder.add(start, constant(k * n)))) for k in range(rows)]
                for k in range(3):
                    # the difference is exact, and LLVM must not reassociate it
                    j[k] = v.add(j[k], v.opaque(v.sub(v.load_one(p_centre_j, builder.add(centre, constant(k))),
                                                      origin[k])))
                return j

            def with_types(j):
                return [*j[:-1], builder.fptosi(j[-1], ir.VectorType(I32, n))] if tables else j

            def add_contributions(chunk, given):
                """Add contributions to the sums of a chunk; forces on j have the opposite sign."""
                start = builder.mul(chunk, constant(channels * n))
                for k in range(channels):
                    place = builder.add(start, constant(k * n))
                    before = v.load(p_sum_j, place)
                    v.store(p_sum_j, place, v.sub(before, given[k]) if k < 3 else v.add(before, given[k]))

            sums = [v.const(0.0)] * (channels * m + (6 if virial else 0))

            loop = Loop(builder, first, dense, sums)
            chunk = chunk_at(loop.index)
            where = builder.mul(builder.add(mask, builder.sub(loop.index, first)), constant(2 * m))
            flags = [[v.bits_of(builder.load(builder.gep(p_masks, [builder.add(where, constant(2 * a + k))]), align=2))
                      for k in range(2)] for a in range(m)]
            new, given = block(with_types(load(chunk)), loop.state, flags)
            add_contributions(chunk, given)
            sums = loop.close(new)

            loop = Loop(builder, dense, packs if packed else end, sums)
            chunk = chunk_at(loop.index)
            new, given = block(with_types(load(chunk)), loop.state)
            add_contributions(chunk, given)
            sums = loop.close(new)

            if packed:
                def flags_at(index):
                    number = builder.load(builder.gep(p_bits, [index]), align=2)
                    return v.bits_of(number), builder.zext(v.call("llvm.ctpop.i16", [number], I16), I64)

                loop = Loop(builder, packs, end, [constant(0)])
                filled, = loop.state
                flag, count = flags_at(loop.index)
                numbers = v.packing(flag)
                for k, row in enumerate(load(chunk_at(loop.index), partial(v.pick, numbers=numbers))):
                    v.store(p_buffer, builder.add(filled, constant(k * ROW)), row)
                filled, = loop.close([builder.add(filled, count)])
                for k in range(rows):
                    v.store(p_buffer, builder.add(filled, constant(k * ROW)), aside if k < 3 else v.const(0.0))

                loop = Loop(builder, constant(0), filled, sums, n)
                j = [v.load(p_buffer, builder.add(loop.index, constant(k * ROW))) for k in range(rows)]
                new, given = block(with_types(j), loop.state)
                for k in range(channels):
                    v.store(p_buffer, builder.add(loop.index, constant((rows + k) * ROW)), given[k])
                sums = loop.close(new)

                loop = Loop(builder, packs, end, [constant(0)])
                filled, = loop.state
                flag, count = flags_at(loop.index)
                numbers, zero = v.unpacking(flag), v.const(0.0)
                add_contributions(chunk_at(loop.index), [
                    v.select(flag, v.pick(v.load(p_buffer, builder.add(filled, constant((rows + k) * ROW))), numbers),
                             zero) for k in range(channels)])
                loop.close([builder.add(filled, count)])

            start = builder.add(builder.mul(chunk_i, constant(channels * n)), lane_i)
            few = Vector(builder, bits, m)
            for k in range(channels):
                place = builder.add(start, constant(k * n))
                few.store(p_sum_i, place, few.add(few.load(p_sum_i, place), v.sums([sums[channels * a + k]
                                                                                    for a in range(m)])))
            for k in range(6 if virial else 0):
                total = builder.extract_element(v.sums([sums[channels * m + k]]), ir.Constant(I32, 0))
                place = builder.gep(p_total, [constant(k)])
                total = total if bits == 64 else builder.fpext(total, ir.DoubleType())
                builder.store(builder.fadd(builder.load(place), total), place)
            return context.get_dummy_value()

        return signature, codegen

    return entry
