// Sums over all pairs of atoms: forces, energies and jerks.
//
// Each pair is computed once, for both atoms. Four atoms i, each broadcast to all lanes, are combined with vectors of
// atoms j. Sums of atoms i stay in registers, those of atoms j in a table that fits into the caches; both are added to
// float64 sums after some hundred terms. Blocks of atoms j with pairs that do not count (an atom with itself or with an
// earlier one, padding) or are excluded are computed by a separate loop, with a bit for each pair.
//
// The unit of length is 2 A: 1/r in it is 2/r in 1/A, which a step of Newton's method yields without its factor 1/2.
// Coordinates and velocities are in A.
#include "kernel.h"
#ifndef __CUDACC__
#include "interpreter.h"
#include "radial.h"

enum {
    GROUP = 4,     // atoms i of an iteration
    ATOMS = 256,   // largest number of atoms i in a tile
    BLOCKS = 128,  // largest number of blocks of atoms j in a tile; a block has 64 bytes of each column
    INTERPRETED = 16,  // vectors for which the interpreter runs at a time
};

template <class Real> struct AllPairs {
    const Real *table_i, *table_j;        // (columns, stride): coordinates, velocities for jerks, parameters
    const int64_t *types_i, *types_j;     // rows of atoms in looked-up tables
    index_t stride_i, stride_j, groups, blocks;  // groups of four atoms i, blocks of atoms j
    const int64_t *start, *step;          // (groups + 1,) first place of each group in: blocks with masks, ascending
    const uint64_t *left, *excluded;      // bits (4, block) of pairs that do not count, and of those with a correction
    bool alone, jerk, energy, symmetric;  // whether the atoms j are the atoms i; what is computed; F(i, j) = -F(j, i)
    int number, second;                   // of the terms in radial.h; -1 if there is no second
    const Real *uniforms, *second_uniforms;
    Real soft2;                           // squared softening length, A^2
    int parameter_count, table_count, term_count;
    index_t type_count;
    const Real *looked_up;                // (tables, types, types)
    // The instructions of the potential and of its correction for excluded pairs, for the interpreter.
    const int *steps, *results, *excluded_steps, *excluded_results;
    const Real *constants, *tables, *excluded_constants, *excluded_tables;
    int step_count, constant_count, register_count;
    int excluded_step_count, excluded_constant_count, excluded_register_count;
    int atoms;                            // of a tile, a multiple of 4
    index_t parts;                        // among which the tiles are divided
    double *sums_i, *sums_j;              // (size, stride): forces, jerks, energies; added
};

// A potential with one term, or with two.
template <class V, template <class> class Term> struct One {
    enum { TERMS = 1, PARAMETERS = Term<V>::PARAMETERS };
    Term<V> term;
    explicit One(const AllPairs<traced::number_of<V>> &args) : term(args.uniforms) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j) const { return term.slope(r2, rinv, i, j, nullptr); }
    MEMBER V bend(V r2, V rinv, const V *i, const V *j) const { return term.bend(r2, rinv, i, j, nullptr); }
    MEMBER void energies(V r2, V rinv, const V *i, const V *j, V *to) const
    {
        to[0] = term.energy(r2, rinv, i, j, nullptr);
    }
};

template <class V, template <class> class First, template <class> class Second> struct Two {
    enum { TERMS = 2, SHIFT = First<V>::PARAMETERS, PARAMETERS = SHIFT + Second<V>::PARAMETERS };
    First<V> first;
    Second<V> second;
    explicit Two(const AllPairs<traced::number_of<V>> &args) : first(args.uniforms), second(args.second_uniforms) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j) const
    {
        return first.slope(r2, rinv, i, j, nullptr) + second.slope(r2, rinv, i + SHIFT, j + SHIFT, nullptr);
    }
    MEMBER void energies(V r2, V rinv, const V *i, const V *j, V *to) const
    {
        to[0] = first.energy(r2, rinv, i, j, nullptr);
        to[1] = second.energy(r2, rinv, i + SHIFT, j + SHIFT, nullptr);
    }
};

template <class V> struct Sums;
template <class V> using SumBlocks = void (*)(const Sums<V> &, index_t, index_t, index_t, uint64_t, uint64_t);

// Sums of a tile, and what its loops need.
template <class V> struct Sums {
    typedef traced::number_of<V> Number;
    enum { LANES = traced::type_of<V>::lanes, WIDTH = 64 / sizeof(Number), PARTS = WIDTH / LANES };
    typedef Interpreter<V, INTERPRETED> Program;

    const AllPairs<Number> &args;
    const int size, first;      // sums of an atom; the first that is an energy
    SumBlocks<V> plain, masked;
    Program *program, *correction;
    V *of_i, *of_j;             // (size, GROUP) and (size, BLOCKS * PARTS)
    index_t base;               // first block of the tile
};

// The lanes of bits that are set.
template <class V> INLINE traced::whole_of<V> lanes_of(uint64_t bits)
{
    typedef traced::whole_of<V> W;
    W places;
    for (int n = 0; n < traced::type_of<V>::lanes; n++)
        places[n] = n;
    return (((W{} + (decltype(places[0] + 0))bits) >> places) & 1) != 0;
}

// A column of an array in registers is only found there if loops over it are unrolled early.
#define EACH(n, count) _Pragma("GCC unroll 16") for (int n = 0; n < (count); n++)

// The pairs of four atoms from i on, and the blocks from first to last.
template <class V, class Potential, bool JERK, bool ENERGY, bool SYMMETRIC, bool MASKED>
static void sum_blocks(const Sums<V> &sums, index_t i, index_t first, index_t last, uint64_t left, uint64_t)
{
    typedef traced::number_of<V> Number;
    typedef Sums<V> S;
    enum { FIRST = JERK ? 6 : 3, COLUMNS = FIRST + Potential::PARAMETERS, TERMS = ENERGY ? Potential::TERMS : 0,
           SIZE = FIRST + TERMS };
    const AllPairs<Number> &args = sums.args;
    const Potential potential(args);
    const V soft2 = traced::fill<V>(args.soft2);
    V at[GROUP][COLUMNS], of_i[GROUP][SIZE];
    EACH(k, GROUP) {
        EACH(n, COLUMNS)
            at[k][n] = traced::fill<V>(args.table_i[n * args.stride_i + i + k]);
        EACH(n, SIZE)
            of_i[k][n] = sums.of_i[n * GROUP + k];
    }
    const Number *from = args.table_j + first * S::WIDTH;
    V *to = sums.of_j + (first - sums.base) * S::PARTS;
    for (index_t vector = 0; vector < (last - first) * S::PARTS; vector++, from += S::LANES, to++) {
        V j[COLUMNS], of_j[SIZE];
        EACH(n, COLUMNS)
            j[n] = load<V>(from + n * args.stride_j);
        EACH(n, SIZE)
            of_j[n] = to[n * (BLOCKS * S::PARTS)];
        EACH(k, GROUP) {
            V d[3], values[2 + TERMS], back[2 + TERMS];
            EACH(n, 3)
                d[n] = at[k][n] - j[n];
            const V square = d[0] * d[0] + (d[1] * d[1] + (d[2] * d[2] + soft2));
            const V rinv = traced::twice_refined(square, traced::rough_inverse_root(square), 2);
            const V r2 = square * (Number)0.25;
            const auto evaluate = [&](const V *a, const V *b, V *result) __attribute__((always_inline)) {
                result[0] = potential.slope(r2, rinv, a, b);
                if constexpr (JERK)
                    result[1] = potential.bend(r2, rinv, a, b);
                if constexpr (ENERGY)
                    potential.energies(r2, rinv, a, b, result + 2);
                if (MASKED) {
                    const auto hidden = lanes_of<V>(left >> (k * S::WIDTH + vector * S::LANES));
                    EACH(n, 2 + TERMS)
                        if (n != 1 || JERK)
                            result[n] = traced::select(hidden, V{}, result[n]);
                }
            };
            evaluate(at[k] + FIRST, j + FIRST, values);
            if (!SYMMETRIC)
                evaluate(j + FIRST, at[k] + FIRST, back);
            const V *other = SYMMETRIC ? values : back;
            EACH(n, 3) {
                of_i[k][n] += values[0] * d[n];
                of_j[n] -= other[0] * d[n];
            }
            if constexpr (JERK) {
                V u[3];
                EACH(n, 3)
                    u[n] = at[k][3 + n] - j[3 + n];
                // 2 / 2^2: twice the bend enters, which is per length^4, whereas the slope is per length^2
                const V along = (d[0] * u[0] + (d[1] * u[1] + d[2] * u[2])) * (Number)0.5;
                const V bend = values[1] * along, other_bend = other[1] * along;
                EACH(n, 3) {
                    of_i[k][3 + n] += values[0] * u[n];
                    of_i[k][3 + n] += bend * d[n];
                    of_j[3 + n] -= other[0] * u[n];
                    of_j[3 + n] -= other_bend * d[n];
                }
            }
            EACH(n, TERMS) {
                of_i[k][FIRST + n] += values[2 + n];
                of_j[FIRST + n] += other[2 + n];
            }
        }
        EACH(n, SIZE)
            to[n * (BLOCKS * S::PARTS)] = of_j[n];
    }
    EACH(k, GROUP)
        EACH(n, SIZE)
            sums.of_i[n * GROUP + k] = of_i[k][n];
}

// The same for potentials that are not compiled.
template <class V, bool MASKED>
static void interpret_blocks(const Sums<V> &sums, index_t i, index_t first, index_t last, uint64_t left,
                             uint64_t excluded)
{
    typedef traced::number_of<V> Number;
    typedef Sums<V> S;
    enum { TOGETHER = INTERPRETED / GROUP };
    const AllPairs<Number> &args = sums.args;
    const int parameters = args.parameter_count, programs = MASKED && excluded ? 2 : 1;
    const index_t vectors = (last - first) * S::PARTS;
    typename S::Program *const run[2] = {sums.program, sums.correction};
    const Number *const table_i = args.table_i + i;
    V d[3][INTERPRETED], u[3][INTERPRETED], along[INTERPRETED];
    for (index_t begin = 0; begin < vectors; begin += TOGETHER) {
        const int count = vectors - begin < TOGETHER ? (int)(vectors - begin) : TOGETHER;
        const index_t at = first * S::WIDTH + begin * S::LANES;
        // Vectors of atoms j beyond the last are repetitions of the first.
        const auto vector_of = [&](int m) { return m / GROUP < count ? m / GROUP : 0; };
        const auto fill_i = [&](V *to, int n) {
            for (int m = 0; m < INTERPRETED; m++)
                to[m] = traced::fill<V>(table_i[n * args.stride_i + m % GROUP]);
        };
        const auto fill_j = [&](V *to, int n) {
            for (int m = 0; m < INTERPRETED; m++)
                to[m] = load<V>(args.table_j + n * args.stride_j + at + vector_of(m) * S::LANES);
        };
        const auto subtract = [&](V *to, int n) {
            for (int m = 0; m < INTERPRETED; m++)
                to[m] = traced::fill<V>(table_i[n * args.stride_i + m % GROUP])
                    - load<V>(args.table_j + n * args.stride_j + at + vector_of(m) * S::LANES);
        };
        for (int n = 0; n < 3; n++)
            subtract(d[n], n);
        if (args.jerk) {
            for (int n = 0; n < 3; n++)
                subtract(u[n], 3 + n);
            for (int m = 0; m < INTERPRETED; m++)
                along[m] = (d[0][m] * u[0][m] + d[1][m] * u[1][m] + d[2][m] * u[2][m]) * (Number)0.5;
        }
        for (int of = 0; of < programs; of++) {
            V *r2 = run[of]->input(0), *rinv = run[of]->input(1);
            for (int m = 0; m < INTERPRETED; m++) {
                const V square = d[0][m] * d[0][m] + d[1][m] * d[1][m] + d[2][m] * d[2][m] + args.soft2;
                r2[m] = square * (Number)0.25;
                rinv[m] = traced::twice_refined(square, traced::rough_inverse_root(square), 2);
            }
            for (int n = 0; n < args.table_count; n++)
                for (int m = 0; m < INTERPRETED; m++) {
                    const int64_t *types = args.types_j + at + vector_of(m) * S::LANES;
                    const Number *row = args.looked_up
                        + (n * args.type_count + args.types_i[i + m % GROUP]) * args.type_count;
                    Number values[S::LANES];
                    for (int lane = 0; lane < S::LANES; lane++)
                        values[lane] = row[types[lane]];
                    run[of]->input(2 + 2 * parameters + n)[m] = load<V>(values);
                }
        }
        for (int side = 0; side < 2; side++) {  // sums of atoms i, and of atoms j
            for (int of = 0; of < programs && (side == 0 || !args.symmetric); of++) {
                for (int n = 0; n < parameters; n++) {
                    fill_i(run[of]->input(2 + side * parameters + n), sums.first + n);
                    fill_j(run[of]->input(2 + (1 - side) * parameters + n), sums.first + n);
                }
                run[of]->run();
            }
            const int step = side ? BLOCKS * S::PARTS : GROUP;
            V *to = side ? sums.of_j + (first - sums.base) * S::PARTS + begin : sums.of_i;
            for (int m = 0; m < count * GROUP; m++) {
                const int k = m % GROUP, shift = (int)(k * S::WIDTH + (begin + m / GROUP) * S::LANES);
                const auto result = [&](int n) __attribute__((always_inline)) {
                    V value = run[0]->result(n)[m];
                    if (MASKED && excluded)
                        value = traced::select(lanes_of<V>(excluded >> shift), run[1]->result(n)[m], value);
                    return MASKED ? traced::select(lanes_of<V>(left >> shift), V{}, value) : value;
                };
                V *sum = to + (side ? m / GROUP : k);
                const V slope = side ? -result(0) : result(0);
                for (int n = 0; n < 3; n++)
                    sum[n * step] += slope * d[n][m];
                if (args.jerk) {
                    const V bend = (side ? -result(1) : result(1)) * along[m];
                    for (int n = 0; n < 3; n++)
                        sum[(3 + n) * step] += slope * u[n][m] + bend * d[n][m];
                }
                for (int n = sums.first; n < sums.size; n++)
                    sum[n * step] += result(1 + args.jerk + n - sums.first);
            }
        }
    }
}

template <class V, class Potential, bool JERK, bool SYMMETRIC> static void choose_loops(Sums<V> &sums)
{
    const bool energy = sums.args.energy;
    sums.plain = energy ? sum_blocks<V, Potential, JERK, true, SYMMETRIC, false>
                        : sum_blocks<V, Potential, JERK, false, SYMMETRIC, false>;
    sums.masked = energy ? sum_blocks<V, Potential, JERK, true, SYMMETRIC, true>
                         : sum_blocks<V, Potential, JERK, false, SYMMETRIC, true>;
}

// Choose the loops of a potential; return whether they are compiled.
template <class V> static bool find_loops(Sums<V> &sums)
{
#define NUMBER(n, Function) Function##Number = n,
    enum { PAIR_TERMS(NUMBER) JERK_TERMS(NUMBER) };
#undef NUMBER
    const int number = sums.args.number, second = sums.args.second;
    if (second == LennardJonesLorentzBerthelotPairNumber) {
        if (number == CoulombChargesPairNumber)
            choose_loops<V, Two<V, CoulombChargesPair, LennardJonesLorentzBerthelotPair>, false, true>(sums);
        else if (number == DistanceDependentChargesPairNumber)
            choose_loops<V, Two<V, DistanceDependentChargesPair, LennardJonesLorentzBerthelotPair>, false, true>(sums);
        else if (number == SigmoidalDielectricChargesPairNumber)
            choose_loops<V, Two<V, SigmoidalDielectricChargesPair, LennardJonesLorentzBerthelotPair>, false, true>(
                sums);
        else
            return false;
        return true;
    }
    if (number == CoulombSourcesPairNumber)
        choose_loops<V, One<V, CoulombSourcesPair>, false, false>(sums);
    else if (number == CoulombSourcesPairJerkNumber)
        choose_loops<V, One<V, CoulombSourcesPairJerk>, true, false>(sums);
    else if (number == CoulombChargesPairNumber)
        choose_loops<V, One<V, CoulombChargesPair>, false, true>(sums);
    else
        return false;
    return true;
}

// Add the sums of four atoms from i on to float64 sums, and reset them to zero.
template <class V> static void fold_groups(const Sums<V> &sums, index_t i)
{
    for (int n = 0; n < sums.size; n++)
        for (int k = 0; k < GROUP; k++) {
            traced::number_of<V> values[Sums<V>::LANES];
            store(values, sums.of_i[n * GROUP + k]);
            for (int half = Sums<V>::LANES / 2; half; half /= 2)
                for (int lane = 0; lane < half; lane++)
                    values[lane] += values[lane + half];
            sums.args.sums_i[n * sums.args.stride_i + i + k] += values[0];
            sums.of_i[n * GROUP + k] = V{};
        }
}

// The pairs of a tile: groups and blocks from first to last.
template <class V> static void sum_tile(const Sums<V> &sums, index_t first, index_t last, index_t end)
{
    typedef Sums<V> S;
    const auto &args = sums.args;
    for (index_t group = first; group < last; group++) {
        const index_t i = group * GROUP, after = args.start[group + 1];
        index_t block = args.alone && i / S::WIDTH > sums.base ? i / S::WIDTH : sums.base, place = args.start[group];
        while (place < after && args.step[place] < block)
            place++;
        while (block < end) {
            const index_t following = place < after && args.step[place] < end ? args.step[place] : end;
            if (block < following)
                sums.plain(sums, i, block, following, 0, 0);
            if (following < end) {
                sums.masked(sums, i, following, following + 1, args.left[place], args.excluded[place]);
                place++;
            }
            block = following + 1;
        }
        fold_groups(sums, i);
    }
    for (int n = 0; n < sums.size; n++) {
        V *from = sums.of_j + n * (BLOCKS * S::PARTS);
        double *to = args.sums_j + n * args.stride_j + sums.base * S::WIDTH;
        for (index_t k = 0; k < (end - sums.base) * S::WIDTH; k++)
            to[k] += ((const typename S::Number *)from)[k];
        memset(from, 0, sizeof(V) * BLOCKS * S::PARTS);
    }
}

template <class V> static void sum_parts(const AllPairs<traced::number_of<V>> &args, index_t first, index_t last)
{
    typedef Sums<V> S;
    const int energies = args.jerk ? 6 : 3, size = energies + (args.energy ? args.term_count : 0);
    const int inputs = 2 + 2 * args.parameter_count + args.table_count;
    const size_t bytes = sizeof(V) * size * (GROUP + BLOCKS * S::PARTS);
    void *memory = malloc(bytes + 64);
    V *work = (V *)(((uintptr_t)memory + 63) / 64 * 64);
    memset(work, 0, bytes);
    typename S::Program program(args.steps, args.step_count, args.constants, args.constant_count, args.tables,
                                args.results, args.register_count, inputs);
    typename S::Program correction(args.excluded_steps, args.excluded_step_count, args.excluded_constants,
                                   args.excluded_constant_count, args.excluded_tables, args.excluded_results,
                                   args.excluded_register_count, inputs);
    S sums{args, size, energies, interpret_blocks<V, false>, interpret_blocks<V, true>, &program, &correction,
           work, work + size * GROUP, 0};
    find_loops(sums);
    const index_t groups = args.atoms / GROUP;
    index_t tile = 0;
    for (index_t group = 0; group < args.groups; group += groups)
        for (sums.base = 0; sums.base < args.blocks; sums.base += BLOCKS) {
            const index_t end = sums.base + BLOCKS < args.blocks ? sums.base + BLOCKS : args.blocks;
            if (args.alone && end * S::WIDTH <= group * GROUP)
                continue;
            const index_t part = ++tile % args.parts;
            if (first <= part && part < last)
                sum_tile(sums, group, group + groups < args.groups ? group + groups : args.groups, end);
        }
    free(memory);
}

// The sums of the parts from first to last, in float32 and in float64.
RANGE_KERNEL(sum_all_pairs, AllPairs<float>, first, last) { sum_parts<floats>(args, first, last); }
RANGE_KERNEL(sum_all_pairs_double, AllPairs<double>, first, last) { sum_parts<doubles>(args, first, last); }
#endif
