// Sums over all pairs of atoms. A file has a struct of arguments with the members of Charges in pairs/all_pairs.cu, and a
// struct Pair with the physics of a pair:
//
//   Pair<V>(args)                       V is a number, or a vector of numbers
//   COLUMNS, SUMS                       numbers of an atom, of which the first are its coordinates, and of its sums
//   TWO_SETS                            whether the atoms j may be others than the atoms i
//   TWO_PARTS                           whether only the pairs between two parts of the atoms may count (args.split)
//   pair(i, j, of_i, of_j)              write what a pair adds to the sums of its atoms
//   PAIRS_KERNEL(name, Arguments, Pair, Number, Vector)
//
// On a CPU each pair is computed once, for both atoms of one set. Four atoms i, each in all places of a vector, are
// combined with vectors of atoms j. Their sums stay in registers, those of atoms j in the cache; both are added to
// float64 sums after some hundred terms. A thread of a GPU has one atom i, and reads the others from shared memory.
#pragma once

#ifdef __CUDACC__

DEVICE float twice_inverse_root(float x) { return 2 * rsqrtf(x); }
DEVICE double twice_inverse_root(double x) { return 2 * rsqrt(x); }
template <class V> DEVICE V larger(V a, V b) { return a < b ? b : a; }

// Add the pairs of an atom i with a tile of atoms j; OWN if the atom itself may be among them.
template <bool OWN, class P, class Real, int COLUMNS, int SUMS>
DEVICE void add_tile(const P &pair, const Real (&i)[COLUMNS], const Real (&tile)[COLUMNS][BLOCK_THREADS], int itself,
                     double (&total)[SUMS])
{
    Real sums[SUMS] = {};
#pragma unroll 8
    for (int n = 0; n < BLOCK_THREADS; n++) {
        Real j[COLUMNS], mine[SUMS], its[SUMS];
        for (int c = 0; c < COLUMNS; c++)
            j[c] = tile[c][n];
        pair(i, j, mine, its);
        if (!OWN || n != itself)
            for (int s = 0; s < SUMS; s++)
                sums[s] += mine[s];
    }
    for (int s = 0; s < SUMS; s++)
        total[s] += sums[s];
}

// The elements are the places of atoms i, for one piece of the atoms j after another.
template <template <class> class Pair, class Real, class Arguments>
DEVICE void sum_pairs_of_block(const Arguments &args, index_t count)
{
    enum { COLUMNS = Pair<Real>::COLUMNS, SUMS = Pair<Real>::SUMS };
    __shared__ Real tile[COLUMNS][BLOCK_THREADS];
    const Pair<Real> pair(args);
    const index_t at = blockIdx.x * (index_t)BLOCK_THREADS + threadIdx.x, a = at % args.size_i;
    const index_t pieces = count / args.size_i, tiles = args.size_j / BLOCK_THREADS, piece = at / args.size_i;
    Real i[COLUMNS];
    double total[SUMS] = {};
    for (int c = 0; c < COLUMNS; c++)
        i[c] = args.table_i[c * args.size_i + a];
    index_t begin = 0, end = tiles;
    if constexpr (Pair<Real>::TWO_PARTS) {  // an atom with those of the other part
        if (args.split && a < args.split)
            begin = args.split / BLOCK_THREADS;
        else if (args.split)
            end = args.split / BLOCK_THREADS;
    }
    const index_t own = end - begin;
    for (index_t t = begin + own * piece / pieces; t < begin + own * (piece + 1) / pieces; t++) {
        __syncthreads();
        for (int c = 0; c < COLUMNS; c++)
            tile[c][threadIdx.x] = args.table_j[c * args.size_j + t * BLOCK_THREADS + threadIdx.x];
        __syncthreads();
        if (args.alone && a / BLOCK_THREADS == t)
            add_tile<true>(pair, i, tile, (int)threadIdx.x, total);
        else
            add_tile<false>(pair, i, tile, -1, total);
    }
    for (int s = 0; s < SUMS; s++)
        atomicAdd(&args.sums[s * args.size_i + a], total[s]);
}

#define PAIRS_KERNEL(name, Arguments, Pair, Number, Vector) \
    BLOCK_KERNEL(name, Arguments) { sum_pairs_of_block<Pair, Number>(args, count); }

#else

#include "functions.h"

INLINE floats twice_inverse_root(floats x) { return traced::twice_refined(x, traced::rough_inverse_root(x), 2); }
INLINE doubles twice_inverse_root(doubles x) { return traced::twice_refined(x, traced::rough_inverse_root(x), 2); }
template <class V> INLINE V larger(V a, V b) { return traced::max(a, b); }

enum {
    PAIR_GROUP = 4,   // atoms i of an iteration
    PAIR_ATOMS = 64,  // atoms i of a tile
    PAIR_TILE = 128,  // vectors of atoms j of a tile
};

// Loops over columns and sums are unrolled early, so that these are in registers.
#define UNROLLED(n, count) _Pragma("GCC unroll 16") for (int n = 0; n < (count); n++)

// Four atoms from i on with the vectors from first to last; OWN if only pairs with later atoms count, and BOTH if the
// sums of atoms j are needed.
template <bool OWN, bool BOTH, class P, class Arguments, class V, int SUMS>
static void add_group(const Arguments &args, const P &pair, index_t i, index_t first, index_t last,
                      V (&of_i)[PAIR_GROUP][SUMS], V (*of_j)[SUMS])
{
    typedef traced::number_of<V> Number;
    enum { COLUMNS = P::COLUMNS, N = traced::type_of<V>::lanes };
    V at[PAIR_GROUP][COLUMNS], own[PAIR_GROUP][SUMS];
    UNROLLED(k, PAIR_GROUP) {
        UNROLLED(c, COLUMNS) at[k][c] = traced::fill<V>(args.table_i[c * args.size_i + i + k]);
        UNROLLED(s, SUMS) own[k][s] = of_i[k][s];
    }
    V lane;
    for (int n = 0; n < N; n++)
        lane[n] = (Number)n;
    for (index_t v = first; v < last; v++, of_j++) {
        V j[COLUMNS], its[SUMS];
        UNROLLED(c, COLUMNS) j[c] = load<V>(args.table_j + c * args.size_j + v * N);
        if constexpr (BOTH)
            UNROLLED(s, SUMS) its[s] = (*of_j)[s];
        UNROLLED(k, PAIR_GROUP) {
            V mine[SUMS], other[SUMS];
            pair(at[k], j, mine, other);
            if constexpr (OWN) {
                const auto later = traced::fill<V>((Number)(i + k - v * N)) < lane;
                UNROLLED(s, SUMS) {
                    mine[s] = traced::select(later, mine[s], V{});
                    other[s] = traced::select(later, other[s], V{});
                }
            }
            UNROLLED(s, SUMS) {
                own[k][s] += mine[s];
                if constexpr (BOTH)
                    its[s] += other[s];
            }
        }
        if constexpr (BOTH)
            UNROLLED(s, SUMS) (*of_j)[s] = its[s];
    }
    UNROLLED(k, PAIR_GROUP)
        UNROLLED(s, SUMS) of_i[k][s] = own[k][s];
}

// Add the pairs of a tile to the sums of a part.
template <bool BOTH, class P, class V, class Arguments>
static void add_pairs_of_tile(const Arguments &args, const P &pair, index_t from, index_t first, double *sums)
{
    typedef traced::number_of<V> Number;
    enum { SUMS = P::SUMS, N = traced::type_of<V>::lanes };
    const index_t end = from + PAIR_ATOMS < args.size_i ? from + PAIR_ATOMS : args.size_i;
    const index_t last = first + PAIR_TILE < args.size_j / N ? first + PAIR_TILE : args.size_j / N;
    V of_j[PAIR_TILE][SUMS] = {};
    for (index_t i = from; i < end; i += PAIR_GROUP) {
        V of_i[PAIR_GROUP][SUMS] = {};
        index_t v = first;
        if constexpr (BOTH) {
            const index_t after = (i + PAIR_GROUP - 1) / N + 1;  // the first vector with later atoms alone
            v = i / N > first ? i / N : first;
            if (v < after && v < last) {
                const index_t until = after < last ? after : last;
                add_group<true, BOTH>(args, pair, i, v, until, of_i, of_j + (v - first));
                v = until;
            }
        }
        if (v < last)
            add_group<false, BOTH>(args, pair, i, v, last, of_i, of_j + (v - first));
        for (int k = 0; k < PAIR_GROUP; k++)
            for (int s = 0; s < SUMS; s++) {
                Number values[N];
                store(values, of_i[k][s]);
                for (int half = N / 2; half; half /= 2)
                    for (int n = 0; n < half; n++)
                        values[n] += values[n + half];
                sums[s * args.size_i + i + k] += values[0];
            }
    }
    if constexpr (BOTH)
        for (index_t v = first; v < last; v++)
            for (int s = 0; s < SUMS; s++) {
                Number values[N];
                store(values, of_j[v - first][s]);
                for (int n = 0; n < N; n++)
                    sums[s * args.size_i + v * N + n] += values[n];
            }
}

// The elements are parts, among which tiles are divided, and each of which has sums of its own.
template <template <class> class Pair, class V, class Arguments>
static void sum_pairs_of_parts(const Arguments &args, index_t begin, index_t end)
{
    typedef Pair<V> P;
    const P pair(args);
    const index_t step = PAIR_TILE * traced::type_of<V>::lanes;
    index_t tile = 0, after = args.size_i, from = 0;
    if constexpr (P::TWO_PARTS)
        if (args.split)
            after = from = args.split;
    for (index_t i = 0; i < after; i += PAIR_ATOMS)
        for (index_t j = from; j < args.size_j; j += step) {
            if (args.alone && j + step <= i)
                continue;
            const index_t part = tile++ % args.parts;
            if (part < begin || part >= end)
                continue;
            double *const sums = args.sums + part * P::SUMS * args.size_i;
            const index_t first = j / traced::type_of<V>::lanes;
            if constexpr (P::TWO_SETS)
                if (!args.alone) {
                    add_pairs_of_tile<false, P, V>(args, pair, i, first, sums);
                    continue;
                }
            add_pairs_of_tile<true, P, V>(args, pair, i, first, sums);
        }
}

#define PAIRS_KERNEL(name, Arguments, Pair, Number, Vector) \
    RANGE_KERNEL(name, Arguments, first, last) { sum_pairs_of_parts<Pair, Vector>(args, first, last); }

#endif
