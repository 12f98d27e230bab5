// Sums over the pairs of a list of clusters (search.cu): forces, and energies of each term.
//
// On a CPU, an entry of the list has a cluster of M atoms i and chunks of N atoms j, as many as a vector has numbers. The
// loops for the most common potentials are compiled with their terms (Fused); for others, distances of all pairs of a
// cluster and a chunk are computed first, and then each term by a function of its own, or all terms by the interpreter
// (Blocked::add). With AVX-512, and with AVX2 in single precision, the atoms j in range of chunks with few of them are
// first packed into a buffer in the first-level cache, a dense loop sums them, and their contributions are unpacked. r2
// and rinv of terms are in units of 2 A, so that rinv is 2 / sqrt(x), with x in A^2: see twice_refined.
//
// On a GPU, a warp sums an item of the list, and the functions of the potential are compiled with the kernel: pairs/
// programs.py writes them and these macros, without which the file has no kernel that sums.
//   REAL           float or double, the type of the terms
//   WORDS          number of Four of an atom: its coordinates, parameters and type
//   TERMS, ENERGY  number of terms; 1 if energies are summed
//   CORRECTS       1 if excluded pairs contribute
//   TABLES         1 if there are parameters of two types
//   WARPS, LEAN    number of warps of a block; 1 if only forces are summed, in single precision
#ifndef __CUDACC__
// The loops are long and registers few: scheduled before registers are given to variables, and without sharing of parts
// of addresses and values between blocks, which takes registers, they take 3 to 7 % less time with AVX2.
#pragma GCC optimize("schedule-insns", "sched-pressure", "no-ivopts", "no-tree-pre", "no-gcse")
#endif
#include "kernel.h"
#include "clusters.h"
#ifndef __CUDACC__
#include "interpreter.h"
#include "radial.h"
#endif

// Length of a row of the buffer of packed atoms: larger than MAX_PACKED of search.cu, and no multiple of 4 KiB, with
// which rows would share cache lines.
static const int ROW = 1104;
// Largest numbers of terms and of rows of a chunk; odd, so that the rows of atoms do not share lines of the cache.
static const int MAX_TERMS = 8, MAX_ROWS = 21;

template <class Number> struct PairWork {
    // what search.cu lists, in parts with room for so many entries, chunks and masks
    const index_t *entries;
    const int *chunks;
    const uint16_t *bits, *masks;
    const index_t *counts;                 // (parts, 5)
    index_t max_entries, max_chunks, max_masks;
    const index_t *shares;                 // (workers + 1,) first part of each worker, with the end of the last
    index_t begin, step;                   // of its share, a worker sums so many parts from there on
    index_t item_entries, item_count;      // entries of an item, and items; on a GPU
    const Number *atoms_i, *atoms_j;       // (chunks, rows, N) coordinates and parameters; on a GPU (chunks, N, records)
    const float *centres_i, *centres_j;    // (chunks, 3)
    Number *sums_i, *sums_j;               // (workers, chunks, 3 or 3 + terms, N) results; on a GPU (chunks, N, 3) forces
    double *energies_i, *energies_j;       // (chunks, N, terms) results; on a GPU
    const Number *steps, *rests;           // (images, 3) displacements of atoms i, and the rests of these
    const int *terms;                      // (terms, 6) numbers of the function and of that of excluded pairs, or -1;
                                           // places of their uniforms; numbers of parameters of an atom and two types
    const Number *uniforms;
    const Number *tables;                  // (names, kinds, kinds) parameters of two types, of all terms; on a GPU
                                           // (kinds, kinds, names)
    // programs, if a term has no function: of pairs, and of excluded pairs
    const int *operations, *results, *excluded_operations, *excluded_results;
    const Number *constants, *values, *excluded_constants, *excluded_values;
    int operation_count, constant_count, register_count;
    int excluded_operation_count, excluded_constant_count, excluded_register_count;
    index_t chunks_i, chunks_j;
    Number cutoff2, aside;                 // A^2; atoms at these coordinates relative to a centre are out of range
    Number known[96];                      // constants of the functions that are compiled for a GPU
    int term_count, name_count, kinds;     // of tables
    int light;                             // the term that is left out for the second half of light clusters, or -1
    bool interpreted, energy, corrected, packed;
};

#ifndef __CUDACC__

namespace {

using traced::number_of;
using traced::whole_of;

template <int K> struct Place {
    constexpr operator int() const { return K; }
};

// Call f(Place<0>()) to f(Place<N - 1>()); indices of arrays are then constants, and their elements can be registers.
template <int N, class F> INLINE void each(F f)
{
    if constexpr (N > 0) {
        each<N - 1>(f);
        f(Place<N - 1>());
    }
}
#define EACH(N, k) each<N>([&](auto k) __attribute__((always_inline))
#define END )

// Conditions of the numbers of a vector.
#if VECTOR_BYTES == 64
template <class V> struct mask_type;
template <> struct mask_type<floats> { typedef __mmask16 type; };
template <> struct mask_type<doubles> { typedef __mmask8 type; };
template <class V> using mask_of = typename mask_type<V>::type;
INLINE __mmask16 below(floats a, floats b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ); }
INLINE __mmask8 below(doubles a, doubles b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ); }
INLINE floats choose(__mmask16 m, floats a, floats b) { return (floats)_mm512_mask_mov_ps((__m512)b, m, (__m512)a); }
INLINE doubles choose(__mmask8 m, doubles a, doubles b) { return (doubles)_mm512_mask_mov_pd((__m512d)b, m, (__m512d)a); }
INLINE floats keep(__mmask16 m, floats a) { return (floats)_mm512_maskz_mov_ps(m, (__m512)a); }
INLINE doubles keep(__mmask8 m, doubles a) { return (doubles)_mm512_maskz_mov_pd(m, (__m512d)a); }
template <class V> INLINE mask_of<V> mask_of_bits(unsigned bits) { return (mask_of<V>)bits; }
#else
template <class V> using mask_of = whole_of<V>;
template <class V> INLINE mask_of<V> below(V a, V b) { return a < b; }
template <class V> INLINE V choose(mask_of<V> m, V a, V b) { return (V)(((whole_of<V>)a & m) | ((whole_of<V>)b & ~m)); }
template <class V> INLINE V keep(mask_of<V> m, V a) { return (V)((whole_of<V>)a & m); }
template <class V> INLINE mask_of<V> mask_of_bits(unsigned bits)
{
    mask_of<V> bit = {};
    for (int i = 0; i < traced::type_of<V>::lanes; i++)
        bit[i] = 1 << i;
    return ((mask_of<V>{} + (int)bits) & bit) != 0;
}
#endif

// Whether the atoms j in range of chunks with few of them are packed (ClusterShape.packed).
template <class V> constexpr bool PACKS = VECTOR_BYTES == 64 || (VECTOR_BYTES == 32 && sizeof(number_of<V>) == 4);

// The sum of the numbers of a vector, by halves.
template <class Number, class V> INLINE Number total(V x)
{
    if constexpr (sizeof(V) == 16 && sizeof(Number) == 4)
        return (x[0] + x[2]) + (x[1] + x[3]);
    else if constexpr (sizeof(V) == 16)
        return x[0] + x[1];
    else {
        typedef Number half __attribute__((vector_size(sizeof(V) / 2)));
        half low, high;
        memcpy(&low, &x, sizeof(half));
        memcpy(&high, (const char *)&x + sizeof(half), sizeof(half));
        return total<Number>(low + high);
    }
}

// Vectors of atoms j that a cluster meets: chunks, or packed atoms in a buffer.
template <class V> struct Partners {
    typedef number_of<V> Number;
    enum { N = traced::type_of<V>::lanes };
    index_t count;
    const int *chunks;       // their numbers, or null if vectors of packed atoms follow one another
    const uint16_t *masks;   // of the chunks, if there are pairs that do not count
    const Number *atoms;
    Number *sums;            // to which contributions are added; those of packed atoms are written
    const float *centres;    // of chunks
    const Number *origin;    // the point from which coordinates count

    template <class Packed, class F>
    MEMBER void load_vector(index_t e, V *j, Packed packed, index_t rows, F each_row) const
    {
        if (packed) {
            each_row([&](auto k) __attribute__((always_inline)) { j[k] = load<V>(atoms + e * N + k * ROW); });
            return;
        }
        const Number *const from = atoms + chunks[e] * rows * N;
        const float *const centre = centres + 3 * (index_t)chunks[e];
        each_row([&](auto k) __attribute__((always_inline)) { j[k] = load<V>(from + k * N); });
        EACH(3, k) { j[k] += traced::fill<V>((Number)centre[k] - origin[k]); } END;
    }
    template <class Packed, class F>
    MEMBER void add(index_t e, const V *given, Packed packed, index_t channels, F each_channel) const
    {
        if (packed) {
            Number *const to = sums + e * N;
            each_channel([&](auto k) __attribute__((always_inline)) { store(to + k * ROW, given[k]); });
            return;
        }
        Number *const to = sums + chunks[e] * channels * N;
        each_channel([&](auto k) __attribute__((always_inline)) { store(to + k * N, load<V>(to + k * N) + given[k]); });
    }
};

// Distances and results of M atoms i with a vector of atoms j.
template <class V> struct Pairs {
    V r2[4], rinv[4];      // in units of 2 A
    V slopes[4];           // of all terms
    V energies[MAX_TERMS][4];
};

// Parameters of atoms: those of atom a follow `stride` after those of the atom before.
template <class V> struct Sides {
    const V *i, *j, *pair;
    int stride_i, stride_j, stride_pair;
};

// Add the slopes of a term, and write its energies.
template <class V, class Term>
void add_term(const number_of<V> *uniforms, const Sides<V> &sides, int count, Pairs<V> &pairs, V *energies)
{
    const Term term(uniforms);
    for (int a = 0; a < count; a++) {
        const V *const i = sides.i + a * sides.stride_i, *const j = sides.j + a * sides.stride_j;
        const V *const pair = sides.pair + a * sides.stride_pair;
        const V r2 = pairs.r2[a], rinv = pairs.rinv[a];
        pairs.slopes[a] += term.slope(r2, rinv, i, j, pair);
        if (energies)
            energies[a] = term.energy(r2, rinv, i, j, pair);
    }
}

template <class V> using TermFunction = void (*)(const number_of<V> *, const Sides<V> &, int, Pairs<V> &, V *);

template <class V> TermFunction<V> find_term(int number)
{
#define CASE(n, Term) case n: return add_term<V, Term<V>>;
    switch (number) {
        PAIR_TERMS(CASE)
    }
#undef CASE
    return nullptr;
}

#define NUMBER(n, Term) Term##_number = n,
enum { PAIR_TERMS(NUMBER) };
#undef NUMBER

// Any terms: of all pairs of M atoms i and a vector of atoms j first the distances, then term after term.
template <class Vector> struct Blocked {
    typedef Vector V;
    typedef number_of<V> Number;
    enum { N = traced::type_of<V>::lanes, M = N < 4 ? N : 4 };
    const PairWork<Number> &work;
    const V cutoff2;
    const int parameters, row_count, energy_count;
    TermFunction<V> functions[MAX_TERMS], excluded_functions[MAX_TERMS];
    Interpreter<V, M> program, excluded_program;
    V own[M][MAX_ROWS], sums[M][3 + MAX_TERMS];
    V looked_up[M][MAX_ROWS];
    int types[M];
    bool light;  // a term is left out for half of the cluster

    explicit Blocked(const PairWork<Number> &work)
        : work(work), cutoff2(traced::fill<V>(work.cutoff2)), parameters(count_parameters(work)), row_count(3 + parameters + (work.name_count > 0)),
          energy_count(work.energy ? work.term_count : 0),
          program(work.operations, work.operation_count, work.constants, work.constant_count, work.values,
                  work.results, work.register_count, input_count()),
          excluded_program(work.excluded_operations, work.excluded_operation_count, work.excluded_constants,
                           work.excluded_constant_count, work.excluded_values, work.excluded_results,
                           work.excluded_register_count, input_count())
    {
        for (int t = 0; t < work.term_count; t++) {
            functions[t] = find_term<V>(work.terms[6 * t]);
            excluded_functions[t] = find_term<V>(work.terms[6 * t + 1]);
        }
    }
    static int count_parameters(const PairWork<Number> &work)
    {
        int count = 0;
        for (int t = 0; t < work.term_count; t++)
            count += work.terms[6 * t + 4];
        return count;
    }
    int input_count() const { return 2 + 2 * parameters + work.name_count; }
    int rows() const { return row_count; }
    int channels() const { return 3 + energy_count; }
    template <class F> MEMBER void each_row(F f) const
    {
        for (int k = 0; k < row_count; k++)
            f(k);
    }
    template <class F> MEMBER void each_channel(F f) const
    {
        for (int k = 0; k < 3 + energy_count; k++)
            f(k);
    }

    MEMBER void start(const Number *atoms, const Number *rest, bool of_light, int row_count)
    {
        light = of_light;
        for (int a = 0; a < M; a++) {
            for (int k = 0; k < row_count; k++)
                own[a][k] = traced::fill<V>(k < 3 ? atoms[k * N + a] + rest[k] : atoms[k * N + a]);
            types[a] = work.name_count ? (int)atoms[(3 + parameters) * N + a] * work.kinds : 0;
        }
    }

    // Compute slopes and energies.
    void evaluate(bool of_excluded, const V *j, Pairs<V> &pairs)
    {
        const V *const other = j + 3;
        if (work.interpreted) {
            Interpreter<V, M> &run = of_excluded ? excluded_program : program;
            for (int a = 0; a < M; a++) {
                run.input(0)[a] = pairs.r2[a];
                run.input(1)[a] = pairs.rinv[a];
                for (int k = 0; k < parameters; k++) {
                    run.input(2 + k)[a] = own[a][3 + k];
                    run.input(2 + parameters + k)[a] = other[k];
                }
                for (int k = 0; k < work.name_count; k++)
                    run.input(2 + 2 * parameters + k)[a] = looked_up[a][k];
            }
            run.run();
            for (int a = 0; a < M; a++) {
                pairs.slopes[a] = run.result(0)[a];
                for (int k = 0; k < energy_count; k++)
                    pairs.energies[k][a] = run.result(1 + k)[a];
            }
            return;
        }
        for (int a = 0; a < M; a++)
            pairs.slopes[a] = V{};
        int first = 0, name = 0;
        for (int t = 0; t < work.term_count; t++) {
            const int *const term = work.terms + 6 * t;
            const int count = light && t == work.light ? M / 2 : M;
            const TermFunction<V> function = (of_excluded ? excluded_functions : functions)[t];
            V *const energies = work.energy ? pairs.energies[t] : nullptr;
            if (energies)
                EACH(M, a) {
                    if (a >= count || !function)
                        energies[a] = V{};
                } END;
            const Sides<V> sides = {own[0] + 3 + first, other + first, looked_up[0] + name, MAX_ROWS, 0, MAX_ROWS};
            if (function)
                function(work.uniforms + term[of_excluded ? 3 : 2], sides, count, pairs, energies);
            first += term[4];
            name += term[5];
        }
    }

    // Compute all results, those of excluded pairs where masks say so.
    MEMBER void evaluate_all(const V *j, Pairs<V> &pairs, const uint16_t *masks)
    {
        evaluate(false, j, pairs);
        if (masks && work.corrected) {
            Pairs<V> excluded;
            for (int a = 0; a < M; a++) {
                excluded.r2[a] = pairs.r2[a];
                excluded.rinv[a] = pairs.rinv[a];
            }
            evaluate(true, j, excluded);
            for (int a = 0; a < M; a++) {
                const mask_of<V> normal = mask_of_bits<V>(masks[2 * a + 1]);
                pairs.slopes[a] = choose(normal, pairs.slopes[a], excluded.slopes[a]);
                for (int k = 0; k < energy_count; k++)
                    pairs.energies[k][a] = choose(normal, pairs.energies[k][a], excluded.energies[k][a]);
            }
        }
    }

    // The parameters in tables of atom i with atoms j of some types.
    MEMBER void look_up(V row, int i, int names, V *to) const
    {
        Number kinds[N], found[N];
        store(kinds, row);
        for (int k = 0; k < names; k++) {
            const Number *const table = work.tables + (index_t)k * work.kinds * work.kinds + types[i];
            for (int n = 0; n < N; n++)
                found[n] = table[(int)kinds[n]];
            to[k] = load<V>(found);
        }
    }

    // Add the pairs with a vector of atoms j; `masks`, which may be null, has the atoms that count, and of these the ones
    // that are not excluded, for each atom i.
    __attribute__((noinline)) void add_pairs(const V *j, V *given, const uint16_t *masks)
    {
        V d[M][3], sum[3] = {};
        mask_of<V> use[M];
        Pairs<V> pairs;
        EACH(M, a) {
            EACH(3, k) { d[a][k] = j[k] - own[a][k]; } END;
            V r2 = d[a][0] * d[a][0] + (d[a][1] * d[a][1] + d[a][2] * d[a][2]);
            use[a] = below(r2, cutoff2);
            if (masks)
                use[a] &= mask_of_bits<V>(masks[2 * a]);
            r2 = choose(use[a], r2, cutoff2);  // within tables
            pairs.r2[a] = r2 * Number(0.25);
            pairs.rinv[a] = traced::twice_refined(r2, traced::rough_inverse_root(r2), sizeof(Number) / 4);
        } END;
        for (int a = 0; work.name_count && a < M; a++)
            look_up(j[row_count - 1], a, work.name_count, looked_up[a]);
        evaluate_all(j, pairs, masks);
        EACH(M, a) {
            const V slope = keep(use[a], pairs.slopes[a]);
            EACH(3, k) {
                sums[a][k] += slope * d[a][k];
                sum[k] += slope * d[a][k];
            } END;
        } END;
        EACH(3, k) { given[k] = sum[k]; } END;
        for (int k = 0; k < energy_count; k++) {
            V energy = {};
            EACH(M, a) {
                const V counted = keep(use[a], pairs.energies[k][a]);
                sums[a][3 + k] += counted;
                energy += counted;
            } END;
            given[3 + k] = energy;
        }
    }

    // Add the pairs with all atoms j of an entry.
    void add(const Partners<V> (&parts)[3])
    {
        V j[MAX_ROWS], given[3 + MAX_TERMS];
        for (int a = 0; a < M; a++)
            each_channel([&](auto k) __attribute__((always_inline)) { sums[a][k] = V{}; });
        for (const Partners<V> &with : parts) {
            const bool packed = PACKS<V> && !with.chunks;
            for (index_t e = 0; e < with.count; e++) {
                with.load_vector(e, j, packed, row_count, [&](auto f) __attribute__((always_inline)) { each_row(f); });
                add_pairs(j, given, with.masks ? with.masks + 2 * M * e : nullptr);
                with.add(e, given, packed, channels(),
                         [&](auto f) __attribute__((always_inline)) { each_channel(f); });
            }
        }
    }

    MEMBER void finish(Number *to, int channels)
    {
        for (int a = 0; a < M; a++)
            for (int k = 0; k < channels; k++)
                to[k * N + a] += k < 3 ? -total<Number>(sums[a][k]) : total<Number>(sums[a][k]);
    }
};

// Excluded pairs do not contribute.
template <class V> struct Nothing {
    explicit Nothing(const number_of<V> *) {}
};
// Any terms, as add_entry needs them; the numbers of rows and channels are not constants.
template <class V> struct AnyTerms {
    enum { ROWS = 0, CHANNELS = 0 };
    explicit AnyTerms(const PairWork<number_of<V>> &) {}
    MEMBER void add(Blocked<V> &of, const Partners<V> (&parts)[3]) { of.add(parts); }
};

template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;

template <bool condition, class A, class B> struct either { typedef A type; };
template <class A, class B> struct either<false, A, B> { typedef B type; };

// Coulomb and Lennard-Jones.
template <class Vector, class Charges, class Excluded, class Dispersion, bool ENERGY> struct Fused {
    typedef Vector V;
    typedef number_of<V> Number;
    enum { M = Blocked<V>::M, CHANNELS = ENERGY ? 5 : 3, TABLE = same<Dispersion, LennardJonesTablePair<V>>,
           ROWS = TABLE ? 5 : 6,  // with types instead of the two parameters
           LARGE = sizeof(Charges) > 8 * sizeof(V) };  // coefficients are operands in memory, not in registers
    Charges charges;  // of all entries: to fill the coefficients for each costs up to a tenth
    const Excluded excluded;
    const Dispersion dispersion;

    explicit Fused(const PairWork<Number> &work)
        : charges(work.uniforms + work.terms[2]), excluded(work.uniforms + work.terms[3]),
          dispersion(work.uniforms + work.terms[8])
    {
    }
    template <int WHOLE> __attribute__((noinline)) void add_atoms(Blocked<V> &of, const Partners<V> (&parts)[3]);

    MEMBER void add(Blocked<V> &of, const Partners<V> (&parts)[3])
    {
        if (of.light && of.work.light == 1)
            add_atoms<M / 2>(of, parts);
        else
            add_atoms<M>(of, parts);
    }
};

// Add the pairs of all atoms i with all atoms j of an entry; atoms i from WHOLE on are without Lennard-Jones.
// Their instructions are interleaved: the processor's window is too short to reach those of the next atom while it waits
// for a result.
template <class V, class Charges, class Excluded, class Dispersion, bool ENERGY>
template <int WHOLE>
void Fused<V, Charges, Excluded, Dispersion, ENERGY>::add_atoms(Blocked<V> &of, const Partners<V> (&parts)[3])
{
    typename either<LARGE, Charges &, Charges>::type charges = this->charges;
    const Dispersion dispersion = this->dispersion;
    const V cutoff2 = of.cutoff2;
    const auto own = of.own;
    V sums[M][CHANNELS];
    EACH(M, a) { EACH(CHANNELS, k) { sums[a][k] = V{}; } END; } END;
    const auto add = [&](const Partners<V> &with, auto flagged, auto packed, index_t e) __attribute__((always_inline)) {
        V j[ROWS], given[CHANNELS], d[M][3], r2[M], rinv[M], found[M][CHANNELS - 2];
        mask_of<V> use[M];
        with.load_vector(e, j, packed, ROWS, [](auto f) __attribute__((always_inline)) { each<ROWS>(f); });
        EACH(CHANNELS, k) { given[k] = V{}; } END;
        const uint16_t *const mask = with.masks + 2 * M * e;
        EACH(M, a) {
            EACH(3, k) { d[a][k] = j[k] - own[a][k]; } END;
            r2[a] = d[a][0] * d[a][0] + (d[a][1] * d[a][1] + d[a][2] * d[a][2]);
            use[a] = below(r2[a], cutoff2);
            if (flagged) {
                use[a] &= mask_of_bits<V>(mask[2 * a]);
                r2[a] = choose(use[a], r2[a], cutoff2);
            }
            rinv[a] = traced::twice_refined(r2[a], traced::rough_inverse_root(r2[a]), sizeof(Number) / 4);
        } END;
        EACH(M, a) {
            const V *const i = own[a] + 3, q = r2[a] * Number(0.25);
            V value[CHANNELS - 2], pair[2];
            if constexpr (TABLE && a < WHOLE)
                of.look_up(j[ROWS - 1], a, 2, pair);
            if constexpr (LARGE)
                __asm__("" : "+m"(charges));
            value[0] = charges.slope(q, rinv[a], i, j + 3, nullptr);
            if constexpr (a < WHOLE)
                value[0] += dispersion.slope(q, rinv[a], i + 1, j + 4, pair);
            if constexpr (ENERGY) {
                value[1] = charges.energy(q, rinv[a], i, j + 3, nullptr);
                value[2] = V{};
                if constexpr (a < WHOLE)
                    value[2] = dispersion.energy(q, rinv[a], i + 1, j + 4, pair);
            }
            if constexpr (!same<Excluded, Nothing<V>>)
                if (flagged) {
                    const mask_of<V> normal = mask_of_bits<V>(mask[2 * a + 1]);
                    value[0] = choose(normal, value[0], excluded.slope(q, rinv[a], i, j + 3, nullptr));
                    if constexpr (ENERGY) {
                        value[1] = choose(normal, value[1], excluded.energy(q, rinv[a], i, j + 3, nullptr));
                        value[2] = keep(normal, value[2]);
                    }
                }
            EACH(CHANNELS - 2, k) { found[a][k] = keep(use[a], value[k]); } END;
        } END;
        EACH(M, a) {
            EACH(3, k) {
                sums[a][k] += found[a][0] * d[a][k];
                given[k] += found[a][0] * d[a][k];
            } END;
            EACH(CHANNELS - 3, k) {
                sums[a][3 + k] += found[a][1 + k];
                given[3 + k] += found[a][1 + k];
            } END;
        } END;
        with.add(e, given, packed, CHANNELS,
                 [](auto f) __attribute__((always_inline)) { each<CHANNELS>(f); });
    };
    const Partners<V> flagged = parts[0], dense = parts[1];  // copies: stores may change what is in memory
    for (index_t e = 0; e < flagged.count; e++)
        add(flagged, Place<true>(), Place<false>(), e);
    for (index_t e = 0; e < dense.count; e++)
        add(dense, Place<false>(), Place<false>(), e);
    if constexpr (PACKS<V>) {
        const Partners<V> packed = parts[2];
        for (index_t e = 0; e < packed.count; e++)
            add(packed, Place<false>(), Place<true>(), e);
    }
    EACH(M, a) { EACH(CHANNELS, k) { of.sums[a][k] = sums[a][k]; } END; } END;
}

// Numbers by which `pick` packs the elements of vectors for which a bit is set, or unpacks them to where it is set: a
// permutation takes half the time of packing.
#if VECTOR_BYTES == 64
INLINE ints packing(unsigned bits, floats)
{
    return (ints)_mm512_maskz_compress_epi32(
        (__mmask16)bits, _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
INLINE traced::longs packing(unsigned bits, doubles)
{
    return (traced::longs)_mm512_maskz_compress_epi64((__mmask8)bits, _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE ints unpacking(unsigned bits, floats)
{
    return (ints)_mm512_maskz_expand_epi32(
        (__mmask16)bits, _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
INLINE traced::longs unpacking(unsigned bits, doubles)
{
    return (traced::longs)_mm512_maskz_expand_epi64((__mmask8)bits, _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE floats pick(ints numbers, floats x) { return (floats)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)numbers, (__m512)x); }
INLINE doubles pick(traced::longs numbers, doubles x)
{
    return (doubles)_mm512_maskz_permutexvar_pd(0xff, (__m512i)numbers, (__m512d)x);
}
#elif VECTOR_BYTES == 32
// These numbers, in bytes, for all bits of eight elements.
struct Permutations {
    uint64_t pack[256] = {}, unpack[256] = {};
    constexpr Permutations()
    {
        for (int bits = 0; bits < 256; bits++)
            for (int n = 0, found = 0; n < 8; n++)
                if (bits >> n & 1) {
                    pack[bits] |= (uint64_t)n << 8 * found;
                    unpack[bits] |= (uint64_t)found++ << 8 * n;
                }
    }
};
constexpr Permutations PERMUTATIONS;
INLINE ints widened(const uint64_t *bytes) { return (ints)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)bytes)); }
INLINE ints packing(unsigned bits, floats) { return widened(PERMUTATIONS.pack + bits); }
INLINE ints unpacking(unsigned bits, floats) { return widened(PERMUTATIONS.unpack + bits); }
INLINE floats pick(ints numbers, floats x) { return (floats)_mm256_permutevar8x32_ps((__m256)x, (__m256i)numbers); }
#endif

// Add the pairs of one entry of a list to the sums. The numbers of rows and channels of the terms
// are constants unless they are 0.
template <class V, class Terms>
MEMBER void add_entry(Blocked<V> &of, Terms &terms, const index_t *entry, const int *chunks,
                      [[maybe_unused]] const uint16_t *bits, const uint16_t *masks,
                      [[maybe_unused]] number_of<V> *buffer, number_of<V> *sums_i, number_of<V> *sums_j)
{
    typedef number_of<V> Number;
    enum { N = Blocked<V>::N, M = Blocked<V>::M };
    const PairWork<Number> &work = of.work;
    const int rows = Terms::ROWS > 0 ? (int)Terms::ROWS : of.rows();
    const int channels = Terms::CHANNELS > 0 ? (int)Terms::CHANNELS : of.channels();
    const index_t chunk_i = entry[0] * M / N, lane = entry[0] * M % N, image = entry[1], first = entry[2];
    const index_t dense = entry[3], packs = work.packed ? entry[4] : entry[5];
    const float *const centre_i = work.centres_i + 3 * chunk_i;
    const Number *const step = work.steps + 3 * image;
    // coordinates are relative to the centre of atoms i; the difference of centres is exact
    const Number origin[3] = {centre_i[0] + step[0], centre_i[1] + step[1], centre_i[2] + step[2]};
    of.start(work.atoms_i + chunk_i * rows * N + lane, work.rests + 3 * image, work.light >= 0 && entry[7], rows);
    Partners<V> parts[3] = {
        {dense - first, chunks + first, masks + entry[6] * 2 * M, work.atoms_j, sums_j, work.centres_j, origin},
        {packs - dense, chunks + dense, nullptr, work.atoms_j, sums_j, work.centres_j, origin}};
    // copies: stores may change what is in memory
    [[maybe_unused]] const Number *const atoms_j = work.atoms_j;
    [[maybe_unused]] const float *const centres_j = work.centres_j;
    [[maybe_unused]] const Number centre[3] = {origin[0], origin[1], origin[2]};
    [[maybe_unused]] const index_t end = entry[5];
    if constexpr (PACKS<V>) {
        index_t filled = 0;
        for (index_t e = packs; e < end; e++) {
            const index_t chunk = chunks[e];
            const unsigned flag = bits[e];
            const auto numbers = packing(flag, V{});
            const Number *const from = atoms_j + chunk * rows * N;
            EACH(3, k) {
                const V shift = traced::fill<V>((Number)centres_j[3 * chunk + k] - centre[k]);
                store(buffer + k * ROW + filled, pick(numbers, load<V>(from + k * N)) + shift);
            } END;
            for (int k = 3; k < rows; k++)
                store(buffer + k * ROW + filled, pick(numbers, load<V>(from + k * N)));
            filled += count_bits(flag);
        }
        for (int k = 0; k < rows; k++)
            store(buffer + k * ROW + filled, traced::fill<V>(k < 3 ? work.aside : 0));
        parts[2] = {(filled + N - 1) / N, nullptr, nullptr, buffer, buffer + rows * ROW, nullptr, nullptr};
    }
    terms.add(of, parts);
    if constexpr (PACKS<V>) {
        index_t filled = 0;
        for (index_t e = packs; e < end; e++) {
            const unsigned flag = bits[e];
            const auto numbers = unpacking(flag, V{});
            Number *const to = sums_j + (index_t)chunks[e] * channels * N;
            const Number *const from = buffer + rows * ROW + filled;
            const mask_of<V> mask = mask_of_bits<V>(flag);
            for (int k = 0; k < channels; k++)
                store(to + k * N, load<V>(to + k * N) + keep(mask, pick(numbers, load<V>(from + k * ROW))));
            filled += count_bits(flag);
        }
    }
    of.finish(sums_i + chunk_i * channels * N + lane, channels);
}

// Add the pairs of a worker's parts to its sums.
template <class V, class Terms> void add_parts(const PairWork<number_of<V>> &work, index_t worker)
{
    typedef number_of<V> Number;
    enum { M = Blocked<V>::M, N = Blocked<V>::N };
    void *const memory = malloc((MAX_ROWS + 3 + MAX_TERMS) * ROW * sizeof(Number) + 64);
    Number *const buffer = (Number *)(((uintptr_t)memory + 63) / 64 * 64);
    Blocked<V> of(work);
    Terms terms(work);
    Number *const sums_i = work.sums_i + worker * work.chunks_i * of.channels() * N;
    Number *const sums_j = work.sums_j + worker * work.chunks_j * of.channels() * N;
    const index_t first = work.shares[worker] + work.begin, end = work.shares[worker + 1];
    for (index_t part = first; part < first + work.step && part < end; part++)
        for (index_t e = 0; e < work.counts[5 * part]; e++)
            add_entry<V>(of, terms, work.entries + 9 * (part * work.max_entries + e), work.chunks + part * work.max_chunks,
                         work.bits + part * work.max_chunks, work.masks + part * work.max_masks * 2 * M, buffer, sums_i,
                         sums_j);
    free(memory);
}

template <class V> using Loop = void (*)(const PairWork<number_of<V>> &, index_t);

// The loop for the terms.
template <class V> Loop<V> find_loop([[maybe_unused]] const PairWork<number_of<V>> &work)
{
#if !defined(__x86_64__) || VECTOR_BYTES > 16  // too few processors are without AVX2 to compile these loops for them
    if (work.term_count == 2 && !work.interpreted) {
#define LOOP(Charges, Excluded, Dispersion, ENERGY)                                                       \
    if (work.energy == ENERGY && work.terms[0] == Charges##ChargesPair_number                             \
        && work.terms[6] == LennardJones##Dispersion##Pair_number)                                        \
        return add_parts<V, Fused<V, Charges##ChargesPair<V>, Excluded<V>, LennardJones##Dispersion##Pair<V>, ENERGY>>;
        if constexpr (sizeof(number_of<V>) == 8) {  // as energies are computed
            LOOP(ReactionField, ExcludedReactionFieldChargesPair, Geometric, true)
            LOOP(ReactionField, ExcludedReactionFieldChargesPair, LorentzBerthelot, true)
            LOOP(ReactionField, ExcludedReactionFieldChargesPair, Table, true)
            LOOP(ShortRange, Nothing, Geometric, true)
            LOOP(ShortRange, Nothing, LorentzBerthelot, true)
            LOOP(CutCoulomb, Nothing, Geometric, true)
            LOOP(CutCoulomb, Nothing, LorentzBerthelot, true)
            LOOP(CutCoulomb, Nothing, Table, true)
        }
        LOOP(ReactionField, ExcludedReactionFieldChargesPair, Geometric, false)
        LOOP(EwaldPolynomial, ExcludedEwaldPolynomialChargesPair, Geometric, false)
#undef LOOP
    }
#endif
    return add_parts<V, AnyTerms<V>>;
}

}  // namespace

// The elements are workers.
RANGE_KERNEL(sum_pairs, PairWork<float>, first, last)
{
    for (index_t worker = first; worker < last; worker++)
        find_loop<floats>(args)(args, worker);
}

RANGE_KERNEL(sum_pairs_double, PairWork<double>, first, last)
{
    for (index_t worker = first; worker < last; worker++)
        find_loop<doubles>(args)(args, worker);
}

#elif defined(WORDS)

union Record {
    Four words[WORDS];
    Atom atom;
};

// Sum over the lanes of a cluster or of a group: its first lane gets the sum of x, the second of y, the third of z.
template <int STEP, int END> DEVICE REAL sum_of_lanes(REAL x, REAL y, REAL z)
{
    const int lane = threadIdx.x / STEP;
    x += __shfl_xor_sync(ALL, x, STEP);
    y += __shfl_xor_sync(ALL, y, STEP);
    z += __shfl_xor_sync(ALL, z, STEP);
    REAL sum = lane & 1 ? y : x;
    sum += __shfl_xor_sync(ALL, sum, 2 * STEP);
    z += __shfl_xor_sync(ALL, z, 2 * STEP);
    sum = lane & 2 ? z : sum;
    if (END > 4 * STEP)
        sum += __shfl_xor_sync(ALL, sum, 4 * STEP);
    return sum;
}

// Sums of an item's atoms: a lane has those at its place in each of the eight clusters.
struct Sums {
    REAL x[8], y[8], z[8];
#if ENERGY
    REAL energy[TERMS][8];
#endif
};

// Add the pairs of an entry; SPECIAL if some of them are excluded or do not count.
template <bool SPECIAL>
DEVICE void add_entry(const PairWork<REAL> &args, const Entry<REAL> &entry, const Four (&own)[WORDS][64], int chunk,
                      Sums &sums)
{
    const int lane = threadIdx.x & 31, i = lane & 7, slot = 4 * entry.group + (lane >> 3);
    Record other;
#pragma unroll
    for (int w = 0; w < WORDS; w++)
        other.words[w] = ((const Four *)args.atoms_j)[(index_t)slot * WORDS + w];
    const REAL x = other.atom.x + entry.x, y = other.atom.y + entry.y, z = other.atom.z + entry.z;
    // within a chunk only pairs with j > i count
    const int end = entry.bits & 256 ? slot - 64 * chunk - i : 64;
    unsigned left_out = 0;  // bits of clusters
    if (SPECIAL && entry.mask >= 0)
        for (int c = 0; c < 8; c++)
            left_out |= (((const unsigned *)args.masks)[8 * (index_t)entry.mask + c] >> lane & 1) << c;
    REAL jx = 0, jy = 0, jz = 0;
#if ENERGY
    REAL energy[TERMS] = {};
#endif
#pragma unroll
    for (int c = 0; c < 8; c++) {
        if (!(entry.bits >> c & 1))
            continue;
        Record me;
        me.words[0] = own[0][8 * c + i];
        const REAL dx = me.atom.x - x, dy = me.atom.y - y, dz = me.atom.z - z;
        REAL r2 = fma(dx, dx, fma(dy, dy, dz * dz));
        const bool out = SPECIAL && (left_out >> c & 1);
        if (r2 < args.cutoff2 && (!SPECIAL || (8 * c < end && (CORRECTS || !out)))) {
#pragma unroll
            for (int w = 1; w < WORDS; w++)
                me.words[w] = own[w][8 * c + i];
            if (SPECIAL)
                r2 = fmax(r2, (REAL)1e-12);  // excluded atoms may coincide
            const REAL rinv = inverse_root(r2);
            Table pair = {};
#if TABLES
            pair = ((const Table *)args.tables)[(int)me.atom.type * args.kinds + (int)other.atom.type];
#endif
            Values v;
#if CORRECTS
            if (out)
                v = excluded_values(r2, rinv, me.atom, other.atom, pair, args.known);
            else
#endif
                v = pair_values(r2, rinv, me.atom, other.atom, pair, args.known);
            sums.x[c] = fma(v.slope, dx, sums.x[c]); jx = fma(-v.slope, dx, jx);
            sums.y[c] = fma(v.slope, dy, sums.y[c]); jy = fma(-v.slope, dy, jy);
            sums.z[c] = fma(v.slope, dz, sums.z[c]); jz = fma(-v.slope, dz, jz);
#if ENERGY
#pragma unroll
            for (int t = 0; t < TERMS; t++) {
                sums.energy[t][c] += v.energy[t];
                energy[t] += v.energy[t];
            }
#endif
        }
    }
    const REAL force = sum_of_lanes<1, 8>(jx, jy, jz);
    if (i < 3)
        atomicAdd(&args.sums_j[3 * (index_t)slot + i], force);
#if ENERGY
#pragma unroll
    for (int t = 0; t < TERMS; t++) {
        for (int step = 1; step < 8; step *= 2)
            energy[t] += __shfl_xor_sync(ALL, energy[t], step);
        if (i == 0)
            atomicAdd(&args.energies_j[(index_t)slot * TERMS + t], (double)energy[t]);
    }
#endif
}

// Limits the registers, so that 36 of at most 64 warps fit into a multiprocessor of these architectures.
#if LEAN && WARPS > 1 && (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900)
#define BOUNDS __launch_bounds__(32 * WARPS, 36 / WARPS)
#else
#define BOUNDS __launch_bounds__(32 * WARPS)
#endif

// Sum the forces and energies of the items of the list. One warp for an item. Its arguments are a grid constant, so that
// addresses of their parts need no copy on the stack.
extern "C" __global__ void BOUNDS SUM(const __grid_constant__ PairWork<REAL> args, index_t)
{
    __shared__ Four shared[WARPS][WORDS][64];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const index_t number = blockIdx.x * WARPS + warp;
    if (number >= args.item_count)
        return;
    const Item item = ((const Item *)args.chunks)[number];
    const index_t first = 64 * (index_t)item.chunk;
    Four (&own)[WORDS][64] = shared[warp];
    for (int n = lane; n < 64 * WORDS; n += 32)
        own[n % WORDS][n / WORDS] = ((const Four *)args.atoms_i)[first * WORDS + n];
    __syncwarp();
    Sums sums = {};
    for (int n = 0; n < item.count; n++) {
        const Entry<REAL> entry = ((const Entry<REAL> *)args.entries)[number * args.item_entries + n];
        if (entry.mask >= 0 || entry.bits & 256)
            add_entry<true>(args, entry, own, item.chunk, sums);
        else
            add_entry<false>(args, entry, own, item.chunk, sums);
    }
#pragma unroll
    for (int c = 0; c < 8; c++) {
        const index_t slot = first + 8 * c + (lane & 7);
        const REAL force = sum_of_lanes<8, 32>(sums.x[c], sums.y[c], sums.z[c]);
        if (lane < 24)
            atomicAdd(&args.sums_i[3 * slot + lane / 8], force);
#if ENERGY
#pragma unroll
        for (int t = 0; t < TERMS; t++) {
            REAL energy = sums.energy[t][c];
            energy += __shfl_xor_sync(ALL, energy, 8);
            energy += __shfl_xor_sync(ALL, energy, 16);
            if (lane < 8)
                atomicAdd(&args.energies_i[slot * TERMS + t], (double)energy);
        }
#endif
    }
}

#endif

template <class Number> struct Gathering {
    const Number *sums;               // (workers, chunks, channels, n), or in another order
    const double *energy_sums;        // (places, energies), or null if energies are among the sums
    const int *slots;                 // (places,) atoms
    double *forces;                   // (atoms, 3) result
    double *energies;                 // (atoms, terms) result, or null
    const int *terms;                 // columns of energies
    double rotation[3][3], factor;    // of forces
    index_t size, chunk_step, atom_step, row_step;  // numbers of a worker, and between chunks, atoms and channels
    int workers, energy_count, n;
};

// Add up the sums of all workers for the atom of a place.
template <class Number> DEVICE void gather_place(const Gathering<Number> &args, index_t slot)
{
    const index_t atom = args.slots[slot];
    if (atom < 0)
        return;
    const Number *const from = args.sums + slot / args.n * args.chunk_step + slot % args.n * args.atom_step;
    double force[3];
    for (int d = 0; d < 3; d++) {
        Number total = from[d * args.row_step];
        for (int t = 1; t < args.workers; t++)
            total += from[t * args.size + d * args.row_step];
        force[d] = args.factor * total;
    }
    for (int d = 0; d < 3; d++)
        args.forces[3 * atom + d] = force[0] * args.rotation[d][0] + force[1] * args.rotation[d][1]
            + force[2] * args.rotation[d][2];
    for (int k = 0; k < args.energy_count; k++) {
        double total = 0;
        if (args.energy_sums)
            total = args.energy_sums[slot * args.energy_count + k];
        else
            for (int t = 0; t < args.workers; t++)
                total += from[t * args.size + (3 + k) * args.row_step];
        args.energies[atom * args.energy_count + args.terms[k]] = 0.5 * total;
    }
}

KERNEL(gather_pairs, Gathering<float>, slot) { gather_place(args, slot); }
KERNEL(gather_pairs_double, Gathering<double>, slot) { gather_place(args, slot); }
