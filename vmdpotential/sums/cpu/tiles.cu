// Lattice sums of atoms at tiles of lattice points.
//
// A task is a tile of 8^3 points. Positions of the atoms in range of the tile relative to its centre are computed in
// float64 and then rounded, so that large coordinates do not cost digits in single precision. The atoms are processed
// in chunks that stay in the first-level cache, with tables of the squared distances along x. Each leaf of 4^3 points,
// lanes along y and z, then sums the atoms in range of it.
//
// Lengths are in units of a power of two times the spacing, in which lattice points have exact coordinates. Sums of a
// block of atoms are kept in registers and added to float64 sums, because the error of a single-precision map is
// limited by the rounding of long running sums, not by that of their terms. Compensated sums of float32 terms would be
// limited by the rounding of the terms; vectors of float64 with one step of Newton's method take little more time.
#include "kernel.h"
#ifndef __CUDACC__
#include "interpreter.h"
#include "radial.h"

enum {
    CHUNK = 512,       // largest number of atoms whose table fits into the first-level cache
    ROW = CHUNK + 32,  // length of a row of the table, with space for padding
    ROW_Y = 0, ROW_Z = 1, ROW_Q = 2, ROW_X = 3, ROW_GAP = 11, ROWS = 17,  // eight from X on, and six from GAP on
    BLOCK = 128,       // atoms that are summed in registers before the sum is added to float64
    TOGETHER = 4,      // atoms for which the interpreter runs at a time
};

struct Tiles {
    const double *x, *y, *z, *q;         // (N + 16,) sorted by bin; the last 16 are read but do not count
    const int64_t *start;                // (bins + 1,) first atom of each bin
    index_t bins[3];
    double bin_size, cutoff;             // with a cutoff of 0 all atoms count, and are in one bin
    float *maps;                         // (maps, nx, ny, nz)
    index_t shape[3];
    double origin[3], spacing[3];
    double soft;                         // atoms nearer to a point count there as at this distance
    double factors[4];                   // of the sums for the potential and the field
    bool add, single, masked, field;     // add to the maps; precision; leave out pairs beyond the cutoff; field as well
    int newton_steps;                    // after an estimate of an inverse square root in double precision
    int number;                          // of the function in radial.h; -1 if it is interpreted
    const double *uniforms, *constants, *tables;  // of the function, and of its instructions
    const int *steps, *results;
    int uniform_count, step_count, constant_count, table_count, register_count;
};

// The numbers of an array in another type.
template <class Number> struct Copy {
    Number *at;
    Copy(const double *from, int count) : at((Number *)malloc((count + 1) * sizeof(Number)))
    {
        for (int k = 0; k < count; k++)
            at[k] = (Number)from[k];
    }
    ~Copy() { free(at); }
    Copy(const Copy &) = delete;
};

template <class V> struct Steps;

template <class V> struct Leaf {
    typedef traced::number_of<V> Number;
    enum { LANES = traced::type_of<V>::lanes, PARTS = 16 / LANES, SIZE = 4 * PARTS };

    const Number *uniforms;
    Interpreter<V, SIZE * TOGETHER> *program;
    void (*evaluate)(const Leaf &, Steps<V> &);  // for sum_in_steps
    Number (*table)[ROW];
    const int32_t *index;
    int first, count, row;  // atoms index[first] to index[first + count - 1]; the table's row of the first plane
    Number cy, cz, hy, hz, cutoff2;
    int newton_steps;
    double *sums;           // of the potential, and 512 further each those of q dV/d(r^2) times the distances

    void points(V *y, V *z) const
    {
        Number at_y[16], at_z[16];
        for (int n = 0; n < 16; n++) {
            at_y[n] = cy + hy * (Number)(n / 4 - 1.5);
            at_z[n] = cz + hz * (Number)(n % 4 - 1.5);
        }
        for (int p = 0; p < PARTS; p++) {
            y[p] = load<V>(at_y + p * LANES);
            z[p] = load<V>(at_z + p * LANES);
        }
    }
    // Add vectors: for each map and plane those of `parts` parts from the first on.
    void add(const V *vectors, int maps, int first, int parts, Number weight) const
    {
        for (int map = 0; map < maps; map++)
            for (int plane = 0; plane < 4; plane++)
                for (int p = 0; p < parts; p++) {
                    Number numbers[LANES];
                    store(numbers, vectors[(map * 4 + plane) * parts + p] * weight);
                    double *to = sums + 512 * map + 16 * plane + (first + p) * LANES;
#pragma omp simd
                    for (int n = 0; n < LANES; n++)
                        to[n] += (double)numbers[n];
                }
    }
};

// With few registers, many parts are summed one after the other, and carrying values from one iteration to the
// next or unrolling loops gains nothing.
#define PIPELINED (VECTOR_BYTES == 64)
#if VECTOR_BYTES > 16
#define UNROLLED _Pragma("GCC unroll 8")
#else
#define UNROLLED
#endif

template <class V, template <class> class Function, bool FIELD, bool MASKED> static void sum_leaf(const Leaf<V> &leaf)
{
    typedef traced::number_of<V> Number;
    typedef Leaf<V> L;
    constexpr int degree = FIELD ? -1 : Function<V>::DEGREE;
    constexpr int together = L::PARTS > 2 ? 1 : (int)L::PARTS, size = 4 * together;  // parts, and vectors of them
    const Function<V> function(leaf.uniforms);
    V y[L::PARTS], z[L::PARTS];
    leaf.points(y, z);
    const V cutoff2 = traced::fill<V>(leaf.cutoff2);
    const Number weight = degree == 1 ? 0.5 : degree == 2 ? 0.25 : degree == 3 ? 0.125 : 1;  // the loop has 2/r for 1/r
    for (int first = 0; first < L::PARTS; first += together) {
        V sums[(FIELD ? 4 : 1) * size] = {};
        const auto terms = [&](int j, const V *r2, const V *estimates) __attribute__((always_inline)) {
            const V q = traced::fill<V>(leaf.table[ROW_Q][j]);
            UNROLLED
            for (int n = 0; n < size; n++) {
                V rinv = traced::twice_refined(r2[n], estimates[n], leaf.newton_steps);
                if (degree < 0 || degree > 3)
                    rinv = rinv * (Number)0.5;
                const V value = function.value(r2[n], rinv);
                sums[n] = MASKED ? traced::fma_below(r2[n], cutoff2, q, value, sums[n]) : sums[n] + q * value;
                if (FIELD) {
                    const V weighted = MASKED ? traced::select(r2[n] < cutoff2, q, V{}) : q;
                    const V slope = weighted * function.derivative(r2[n], rinv);
                    const int p = first + n % together;
                    sums[(FIELD ? 1 : 0) * size + n] += slope * leaf.table[leaf.row + n / together][j];
                    sums[(FIELD ? 2 : 0) * size + n] += slope * (y[p] - leaf.table[ROW_Y][j]);
                    sums[(FIELD ? 3 : 0) * size + n] += slope * (z[p] - leaf.table[ROW_Z][j]);
                }
            }
        };
        const auto estimate = [&](int j, V *r2, V *estimates) __attribute__((always_inline)) {
            V yz[together];
            for (int p = 0; p < together; p++) {
                const V dy = y[first + p] - leaf.table[ROW_Y][j], dz = z[first + p] - leaf.table[ROW_Z][j];
                yz[p] = dy * dy + dz * dz;
            }
            UNROLLED
            for (int n = 0; n < size; n++) {
                const V dx = traced::fill<V>(leaf.table[leaf.row + n / together][j]);  // squared unless FIELD
                r2[n] = FIELD ? dx * dx + yz[n % together] : dx + yz[n % together];
                estimates[n] = traced::rough_inverse_root(r2[n]);
            }
        };
        V r2[size], estimates[size];
        const int32_t *index = leaf.index + leaf.first, *end = index + leaf.count;
        if (PIPELINED) {  // the next atom's roots are estimated early, as a term takes longer than one iteration
            estimate(*index, r2, estimates);
            while (index < end) {
                V next_r2[size], next_estimates[size];
                estimate(index[1], next_r2, next_estimates);
                terms(*index++, r2, estimates);
                UNROLLED
                for (int n = 0; n < size; n++) {
                    r2[n] = next_r2[n];
                    estimates[n] = next_estimates[n];
                }
            }
        } else {
            for (; index < end; index++) {
                estimate(*index, r2, estimates);
                terms(*index, r2, estimates);
            }
        }
        leaf.add(sums, FIELD ? 4 : 1, first, together, weight);
    }
}

// Squared distances of TOGETHER atoms to all points of a leaf, and a function and its derivative there.
template <class V> struct Steps {
    enum { COUNT = Leaf<V>::SIZE * TOGETHER };
    V y[Leaf<V>::PARTS], z[Leaf<V>::PARTS], r2[COUNT], values[COUNT], derivatives[COUNT];
    int atoms[TOGETHER];
};

// Write squared distances, and call f with the place of each vector of them, that and 1/r.
template <bool FIELD, class V, class F> MEMBER void find_distances(const Leaf<V> &leaf, Steps<V> &steps, F f)
{
    typedef Leaf<V> L;
#pragma GCC unroll 1
    for (int b = 0; b < TOGETHER; b++) {
        const int j = steps.atoms[b];
        V yz[L::PARTS];
        for (int p = 0; p < L::PARTS; p++) {
            const V dy = steps.y[p] - leaf.table[ROW_Y][j], dz = steps.z[p] - leaf.table[ROW_Z][j];
            yz[p] = dy * dy + dz * dz;
        }
#pragma GCC unroll 1
        for (int plane = 0; plane < 4; plane++) {
            const V dx = traced::fill<V>(leaf.table[leaf.row + plane][j]);  // squared unless FIELD
            for (int p = 0; p < L::PARTS; p++) {
                const V r2 = (FIELD ? dx * dx : dx) + yz[p];
                const V twice = traced::twice_refined(r2, traced::rough_inverse_root(r2), leaf.newton_steps);
                const int k = (b * 4 + plane) * L::PARTS + p;
                steps.r2[k] = r2;
                f(k, r2, twice * (traced::number_of<V>)0.5);
            }
        }
    }
}

template <class V, template <class> class Function, bool FIELD>
static void evaluate(const Leaf<V> &leaf, Steps<V> &steps)
{
    const Function<V> function(leaf.uniforms);
    find_distances<FIELD>(leaf, steps, [&](int k, V r2, V rinv) __attribute__((always_inline)) {
        steps.values[k] = function.value(r2, rinv);
        if (FIELD)
            steps.derivatives[k] = function.derivative(r2, rinv);
    });
}

template <class V, bool FIELD> static void interpret(const Leaf<V> &leaf, Steps<V> &steps)
{
    V *const r2 = leaf.program->input(0), *const rinv = leaf.program->input(1);
    find_distances<FIELD>(leaf, steps, [&](int k, V square, V inverse) __attribute__((always_inline)) {
        r2[k] = square;
        rinv[k] = inverse;
    });
    leaf.program->run();
    memcpy(steps.values, leaf.program->result(0), sizeof(steps.values));
    if (FIELD)
        memcpy(steps.derivatives, leaf.program->result(1), sizeof(steps.derivatives));
}

// The same for some atoms at a time, with the function at all distances first and then the sums: for functions without
// a struct, and where a loop of its own for each function would hardly be faster.
template <class V, bool FIELD> static void sum_in_steps(const Leaf<V> &leaf)
{
    typedef Leaf<V> L;
    typedef traced::number_of<V> Number;
    V sums[FIELD ? 4 : 1][L::SIZE] = {};
    Steps<V> steps;
    leaf.points(steps.y, steps.z);
    const V cutoff2 = traced::fill<V>(leaf.cutoff2);
    for (int first = 0; first < leaf.count; first += TOGETHER) {
        Number q[TOGETHER];
        for (int b = 0; b < TOGETHER; b++) {
            const bool counts = first + b < leaf.count;
            steps.atoms[b] = leaf.index[leaf.first + (counts ? first + b : 0)];
            q[b] = counts ? leaf.table[ROW_Q][steps.atoms[b]] : 0;
        }
        leaf.evaluate(leaf, steps);
        for (int n = 0; n < L::SIZE; n++) {
            V total = sums[0][n], field[3] = {};
            UNROLLED
            for (int b = 0; b < TOGETHER; b++) {
                const int j = steps.atoms[b], k = b * L::SIZE + n, p = n % L::PARTS;
                const V weight = traced::fill<V>(q[b]);
                total = traced::fma_below(steps.r2[k], cutoff2, weight, steps.values[k], total);
                if (FIELD) {
                    const V slope = traced::select(steps.r2[k] < cutoff2, weight * steps.derivatives[k], V{});
                    field[0] += slope * leaf.table[leaf.row + n / L::PARTS][j];
                    field[1] += slope * (steps.y[p] - leaf.table[ROW_Y][j]);
                    field[2] += slope * (steps.z[p] - leaf.table[ROW_Z][j]);
                }
            }
            sums[0][n] = total;
            for (int d = 0; FIELD && d < 3; d++)
                sums[FIELD ? 1 + d : 0][n] += field[d];
        }
    }
    leaf.add(sums[0], FIELD ? 4 : 1, 0, L::PARTS, 1);
}

template <class V> using Evaluation = void (*)(const Leaf<V> &, Steps<V> &);
template <class V> using LeafFunction = void (*)(const Leaf<V> &);

#define NUMBER(n, Function) Function##Number = n,
enum { RADIAL_FUNCTIONS(NUMBER) };
#undef NUMBER

// The loop of a function for a leaf. Without a cutoff it is infinite for functions that have only one of both forms.
// Functions of many operations in double precision, and fields of all but the simplest, have no loops of their own,
// which would be hardly faster, and take most of the time of compilation.
template <class V> static LeafFunction<V> leaf_function(const Tiles &args)
{
#define LOOP(Function) case Function##Number: return sum_leaf<V, Function, false, true>;
#define CASE(n, Function) LOOP(Function)
    const bool simple = !args.masked && (args.number == CoulombNumber || args.number == ShiftedCoulombNumber);
    if (args.field) {
        if (simple)
            return args.number == CoulombNumber ? sum_leaf<V, Coulomb, true, false>
                                                : sum_leaf<V, ShiftedCoulomb, true, false>;
        return args.number == CoulombNumber ? sum_leaf<V, Coulomb, true, true> : sum_in_steps<V, true>;
    }
    if (simple)
        return args.number == CoulombNumber ? sum_leaf<V, Coulomb, false, false>
                                            : sum_leaf<V, ShiftedCoulomb, false, false>;
    if constexpr (sizeof(traced::number_of<V>) == 4)
        switch (args.number) {
            RADIAL_FUNCTIONS(CASE)
        }
    else
        switch (args.number) {
            LOOP(Coulomb)
            LOOP(CutCoulomb)
            LOOP(DistanceDependent)
            LOOP(ReactionField)
            LOOP(ShortRange6)
            LOOP(ShortRange8)
            LOOP(ShortRange10)
            LOOP(ShortCutoff)
        }
#undef CASE
#undef LOOP
    return sum_in_steps<V, false>;
}

// What writes the function and its derivative for those loops.
template <class V> static Evaluation<V> evaluation(const Tiles &args)
{
#define CASE(n, Function) \
    case n: return args.field ? evaluate<V, Function, true> : evaluate<V, Function, false>;
    switch (args.number) {
        RADIAL_FUNCTIONS(CASE)
    }
#undef CASE
    return args.field ? interpret<V, true> : interpret<V, false>;
}

template <class V> struct Work {
    typedef traced::number_of<V> Number;
    typedef Interpreter<V, Leaf<V>::SIZE * TOGETHER> Program;
    enum { LANES = traced::type_of<V>::lanes };

    const Tiles &args;
    const LeafFunction<V> function;
    const Evaluation<V> evaluate;
    const Copy<Number> uniforms, constants, tables;
    Program program;
    Interpreter<double, 64> exact;
    const int maps;
    const Number far = (Number)(1000 * 1.4142135623730951);  // a coordinate of no point, for atoms that must not count
    Number chunk[4][ROW], table[ROWS][ROW], h[3], inverse[3], half[3], cutoff2, tile_cutoff2;
    int32_t index[ROW + 64];
    double sums[4 * 512], centre[3];
    index_t tile[3];

    explicit Work(const Tiles &args)
        : args(args), function(leaf_function<V>(args)), evaluate(evaluation<V>(args)),
          uniforms(args.uniforms, args.uniform_count),
          constants(args.constants, args.constant_count), tables(args.tables, args.table_count),
          program(args.steps, args.step_count, constants.at, args.constant_count, tables.at, args.results,
                  args.register_count, 2),
          exact(args.steps, args.step_count, args.constants, args.constant_count, args.tables, args.results,
                args.register_count, 2),
          maps(args.field ? 4 : 1)
    {
        memset(chunk, 0, sizeof(chunk));
        for (int d = 0; d < 3; d++) {
            h[d] = (Number)args.spacing[d];
            inverse[d] = 1 / h[d];
            half[d] = (Number)(3.5 * args.spacing[d]);
        }
        tile_cutoff2 = args.cutoff > 0 ? (Number)(args.cutoff * args.cutoff) : (Number)1e30;
        cutoff2 = args.masked ? tile_cutoff2 : (Number)1e30;
    }

    // Append those of the atoms from first to last in range of the tile to the chunk; return its new length.
    int select_atoms(index_t first, index_t last, int stored)
    {
        static const Number places[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        for (index_t i = first; i < last; i += LANES) {
            const V atoms[4] = {
                traced::differences<V>(args.x + i, centre[0]), traced::differences<V>(args.y + i, centre[1]),
                traced::differences<V>(args.z + i, centre[2]), traced::differences<V>(args.q + i, 0)};
            V gap2 = {};
            for (int d = 0; d < 3; d++) {
                const V gap = traced::max(traced::magnitude(atoms[d]) - half[d], V{});
                gap2 += gap * gap;
            }
            const auto inside = (gap2 < traced::fill<V>(tile_cutoff2))
                & (load<V>(places) < traced::fill<V>((Number)(last - i < 16 ? last - i : 16)));
            int count = 0;
            for (int n = 0; n < 4; n++)
                count = traced::append(chunk[n] + stored, atoms[n], inside);
            stored += count;
        }
        return stored;
    }

    // Sum atoms that coincide with a point, nearer than `soft`, separately. At that point they count as at distance
    // `soft`, within which the potential is constant and the field zero. In the chunk they are moved out of reach, so
    // that the main loop needs no guard against r = 0.
    void take_out_coincident(int count)
    {
        const Number soft = (Number)args.soft;
        V nearest = traced::fill<V>(far);
        for (int k = 0; k < count; k += LANES)
            nearest = traced::min(nearest, off_points<V>(k));
        bool none = true;
        for (int n = 0; n < LANES; n++)
            none &= nearest[n] >= soft;
        for (int k = 0; !none && k < count; k++) {
            if (off_points<Number>(k) >= soft)
                continue;
            double r2[64];
            for (int part = 0; part < 8; part++) {
                for (int n = 0; n < 64; n++) {
                    double distance[3];
                    find_distance(part, n, k, distance);
                    r2[n] = distance[0] * distance[0] + distance[1] * distance[1] + distance[2] * distance[2];
                    exact.input(0)[n] = r2[n] > args.soft * args.soft ? r2[n] : args.soft * args.soft;
                    exact.input(1)[n] = 1 / __builtin_sqrt(exact.input(0)[n]);
                }
                exact.run();
                for (int n = 0; n < 64; n++) {
                    if (args.cutoff > 0 && exact.input(0)[n] >= args.cutoff * args.cutoff)
                        continue;
                    double distance[3];
                    find_distance(part, n, k, distance);
                    sums[64 * part + n] += chunk[3][k] * exact.result(0)[n];
                    if (args.field && r2[n] >= args.soft * args.soft)
                        for (int d = 0; d < 3; d++)
                            sums[512 * (d + 1) + 64 * part + n] += chunk[3][k] * exact.result(1)[n] * distance[d];
                }
            }
            chunk[0][k] = far;
            chunk[3][k] = 0;
        }
    }

    // The largest component of the distances of the chunk's atoms, from k on, to the nearest point, which is at an odd
    // multiple of h / 2.
    template <class W> W off_points(int k) const
    {
        W most = {};
        for (int d = 0; d < 3; d++) {
            const W at = load<W>(chunk[d] + k) * inverse[d] + (Number)0.5;
            most = traced::max(most, traced::magnitude((at - traced::nearest(at)) * h[d]));
        }
        return most;
    }

    void find_distance(int part, int n, int k, double *distance) const
    {
        const int at[3] = {part / 4 * 4 + n / 16, part / 2 % 2 * 4 + n / 4 % 4, part % 2 * 4 + n % 4};
        for (int d = 0; d < 3; d++)
            distance[d] = (double)h[d] * (at[d] - 3.5) - (double)chunk[d][k];
    }

    // Write the table of the chunk's atoms: distances to planes along x, or their squares, and squared gaps to leaves.
    void tabulate(int count)
    {
        for (int k = count; k < count + 20; k++) {
            chunk[0][k] = chunk[1][k] = chunk[2][k] = far;
            chunk[3][k] = 0;
        }
        for (int n = 0; n < 3; n++)
            memcpy(table[n], chunk[1 + n], sizeof(Number) * (count + 16));
        for (int plane = 0; plane < 8; plane++) {
            const Number c = (Number)(plane - 3.5) * h[0];
            for (int k = 0; k < count + 16; k++) {
                const Number d = c - chunk[0][k];
                table[ROW_X + plane][k] = args.field ? d : d * d;
            }
        }
        for (int n = 0; n < 6; n++) {
            const Number c = (Number)(4 * (n % 2) - 2) * h[n / 2], wide = (Number)1.5 * h[n / 2];
            for (int k = 0; k < count + 16; k++) {
                const Number off = chunk[n / 2][k] - c;
                Number gap = (off < 0 ? -off : off) - wide;
                gap = gap < 0 ? 0 : gap;
                table[ROW_GAP + n][k] = gap * gap;
            }
        }
    }

    // Write the atoms in range of a leaf to `index`; return their number.
    int select_for_leaf(int part, int count)
    {
        const Number *x = table[ROW_GAP + part / 4], *y = table[ROW_GAP + 2 + part / 2 % 2];
        const Number *z = table[ROW_GAP + 4 + part % 2];
        int result = 0;
        if (args.cutoff > 0) {
            for (int i = 0; i < count; i += LANES)
                result += traced::append_places(index + result, i, load<V>(x + i) + load<V>(y + i) + load<V>(z + i)
                                                < traced::fill<V>(tile_cutoff2));
            return result;
        }
        for (int i = 0; i < count; i++)
            index[i] = i;
        return count;
    }

    void sum_chunk(int count)
    {
        take_out_coincident(count);
        tabulate(count);
        for (int part = 0; part < 8; part++) {
            const int px = part / 4, py = part / 2 % 2, pz = part % 2;
            if (tile[0] + 4 * px >= args.shape[0] || tile[1] + 4 * py >= args.shape[1]
                || tile[2] + 4 * pz >= args.shape[2])
                continue;
            const int found = select_for_leaf(part, count);
            index[found] = count;  // is read after the last
            for (int first = 0; first < found; first += BLOCK)
                function(Leaf<V>{uniforms.at, &program, evaluate, table, index, first,
                                 found - first < BLOCK ? found - first : BLOCK, ROW_X + 4 * px,
                                 (Number)(4 * py - 2) * h[1], (Number)(4 * pz - 2) * h[2], h[1], h[2], cutoff2,
                                 args.newton_steps, sums + 64 * part});
        }
    }

    // Add the atoms from first to last, in one row of bins, to the chunk; sum it when it is full.
    int add_atoms(index_t first, index_t last, int count)
    {
        while (first < last) {
            const index_t room = CHUNK - count < last - first ? CHUNK - count : last - first;
            count = select_atoms(first, first + room, count);
            first += room;
            if (count > CHUNK - 16) {
                sum_chunk(count);
                count = 0;
            }
        }
        return count;
    }

    static index_t bin_of(double x, double per_length) { return (index_t)__builtin_floor(x * per_length); }

    // Add the atoms of all bins within reach. Bins of a row along z are one range of atoms, which ends where the row's
    // distance to the tile requires.
    int add_bins()
    {
        int count = 0;
        const double c = args.cutoff, size = args.bin_size, per_length = 1 / size;
        double wide[3];
        index_t low[3], high[3];
        for (int d = 0; d < 3; d++) {
            wide[d] = 3.5 * args.spacing[d];
            low[d] = bin_of(centre[d] - wide[d] - c, per_length);
            high[d] = bin_of(centre[d] + wide[d] + c, per_length);
            low[d] = low[d] < 0 ? 0 : low[d];
            high[d] = high[d] >= args.bins[d] ? args.bins[d] - 1 : high[d];
        }
        for (index_t bx = low[0]; bx <= high[0]; bx++) {
            const double gx = fmax(fabs((bx + 0.5) * size - centre[0]) - 0.5 * size - wide[0], 0);
            for (index_t by = low[1]; by <= high[1]; by++) {
                const double gy = fmax(fabs((by + 0.5) * size - centre[1]) - 0.5 * size - wide[1], 0);
                const double reach2 = c * c - gx * gx - gy * gy;
                if (reach2 <= 0)
                    continue;
                const double reach = __builtin_sqrt(reach2) + wide[2];
                index_t first = bin_of(centre[2] - reach, per_length), last = bin_of(centre[2] + reach, per_length);
                first = first < 0 ? 0 : first;
                last = last >= args.bins[2] ? args.bins[2] - 1 : last;
                if (last < first)
                    continue;
                const index_t row = (bx * args.bins[1] + by) * args.bins[2];
                count = add_atoms(args.start[row + first], args.start[row + last + 1], count);
            }
        }
        return count;
    }

    void sum_tile(index_t task)
    {
        const index_t tiles_y = (args.shape[1] + 7) / 8, tiles_z = (args.shape[2] + 7) / 8;
        tile[0] = 8 * (task / (tiles_y * tiles_z));
        tile[1] = 8 * (task / tiles_z % tiles_y);
        tile[2] = 8 * (task % tiles_z);
        for (int d = 0; d < 3; d++)
            centre[d] = args.origin[d] + (tile[d] + 3.5) * args.spacing[d];
        memset(sums, 0, sizeof(double) * 512 * maps);
        const int count = args.cutoff > 0 ? add_bins() : add_atoms(args.start[0], args.start[1], 0);
        if (count)
            sum_chunk(count);
        for (int map = 0; map < maps; map++)
            write(args.maps + map * args.shape[0] * args.shape[1] * args.shape[2], sums + 512 * map, args.factors[map]);
    }

    void write(float *map, const double *from, double factor) const
    {
        for (int n = 0; n < 512; n += 4) {
            const index_t ix = tile[0] + n / 256 * 4 + n / 16 % 4, iy = tile[1] + n / 128 % 2 * 4 + n / 4 % 4;
            const index_t iz = tile[2] + n / 64 % 2 * 4, left = args.shape[2] - iz;
            if (ix >= args.shape[0] || iy >= args.shape[1] || left <= 0)
                continue;
            float *to = map + (ix * args.shape[1] + iy) * args.shape[2] + iz;
            float four[4] = {};
            memcpy(four, to, args.add ? sizeof(float) * (left < 4 ? left : 4) : 0);
            for (int k = 0; k < 4; k++)
                four[k] = (float)(four[k] + from[n + k] * factor);
            if (left >= 4)
                memcpy(to, four, sizeof(four));
            else
                for (int k = 0; k < left; k++)
                    to[k] = four[k];
        }
    }
};

template <class V> static void sum_range(const Tiles &args, index_t first, index_t last)
{
    Work<V> work(args);
    for (index_t task = first; task < last; task++)
        work.sum_tile(task);
}

// The sums of the tiles from first to last.
RANGE_KERNEL(sum_tiles, Tiles, first, last)
{
    args.single ? sum_range<floats>(args, first, last) : sum_range<doubles>(args, first, last);
}
#endif
