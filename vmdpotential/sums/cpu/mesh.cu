// Charges spread to a mesh, values interpolated from it, and the product with the factors between transforms. A charge
// or a point uses ORDER nodes along each axis, by one of two bases:
//
// B-splines (U. Essmann et al., J. Chem. Phys. 103 (1995) 8577, eq. 4.1);
//
// nodal polynomials: linear blends of two polynomials of degree ORDER - 2, each through the ORDER - 1 nodes nearest to
// one of the two nodes around a point. They have a continuous slope, and reproduce the values at the nodes (D. J. Hardy,
// J. E. Stone, K. Schulten, Parallel Comput. 35 (2009) 164, for ORDER 4).
//
// If the axes of lattice and mesh are parallel, interpolation is done axis by axis with a table of nodes and weights for
// every plane of the lattice.
#include "kernel.h"
#ifndef __CUDACC__
#include "vectors.h"

#define MAX_ORDER 8
#define CHUNK 512   // values of a row that are interpolated together, so that all their nodes stay in the cache
#define TOGETHER 4  // vectors of them whose sums are in registers

template <int LANES> struct Part;
template <> struct Part<2> { typedef double type __attribute__((vector_size(16))); };
template <> struct Part<4> { typedef double type __attribute__((vector_size(32))); };
template <> struct Part<8> { typedef double type __attribute__((vector_size(64))); };
typedef Part<4>::type axes;  // x, y, z and an unused number

template <class Real> struct VectorOf;
template <> struct VectorOf<float> { typedef floats type; };
template <> struct VectorOf<double> { typedef doubles type; };

// The weights of the ORDER nodes around a point, a fraction t above the node below it, as B-splines; t is a number or a
// vector.
template <int ORDER, class T> DEVICE void find_spline(T t, T *w)
{
    w[0] = 1 - t;
    w[1] = t;
#pragma GCC unroll 8
    for (int k = 3; k <= ORDER; k++) {
        const double d = 1.0 / (k - 1);
        w[k - 1] = d * t * w[k - 2];
#pragma GCC unroll 8
        for (int j = 1; j < k - 1; j++)
            w[k - 1 - j] = d * ((t + (double)j) * w[k - 2 - j] + ((double)(k - j) - t) * w[k - 1 - j]);
        w[0] = d * (1 - t) * w[0];
    }
}

// The derivatives of B-splines, which are differences of the splines of the next lower order.
template <int ORDER, class T> DEVICE void find_spline_slope(T t, T *w)
{
    T below[ORDER];
    find_spline<ORDER - 1>(t, below);
    below[ORDER - 1] = T{};
    w[0] = -below[0];
    for (int k = 1; k < ORDER; k++)
        w[k] = below[k - 1] - below[k];
}

// The weights as nodal polynomials, and their derivatives.
template <int ORDER, class T> DEVICE void find_nodal(T t, T *w, T *slope)
{
    const T place = t + (double)(ORDER / 2 - 1);
#pragma GCC unroll 8
    for (int j = 0; j < ORDER; j++) {
        // the factors that both polynomials do not share; the first and the last node are in one polynomial only
        T value = j == 0 ? 1 - t : t, derivative = T{} + (j == 0 ? -1.0 : 1.0);
        if (j > 0 && j < ORDER - 1) {
            const double left = 1.0 / (j > 0 ? j : 1), right = 1.0 / (ORDER - 1 - j > 0 ? ORDER - 1 - j : 1);
            value = (1 - t) * place * left + t * ((double)(ORDER - 1) - place) * right;
            derivative = (1 - t - place) * left + ((double)(ORDER - 1) - place - t) * right;
        }
#pragma GCC unroll 8
        for (int i = 1; i < ORDER - 1; i++)
            if (i != j) {
                const double scale = 1.0 / (j - i);
                const T factor = (place - (double)i) * scale;
                derivative = derivative * factor + value * scale;
                value *= factor;
            }
        w[j] = value;
        slope[j] = derivative;
    }
}

template <int ORDER, bool NODAL, class T> DEVICE void find_weights(T t, T *w)
{
    T slope[ORDER];
    if constexpr (NODAL)
        find_nodal<ORDER>(t, w, slope);
    else
        find_spline<ORDER>(t, w);
}

template <int ORDER, bool NODAL, class T> DEVICE void find_slopes(T t, T *w)
{
    T weights[ORDER];
    if constexpr (NODAL)
        find_nodal<ORDER>(t, weights, w);
    else
        find_spline_slope<ORDER>(t, w);
}

// Both for a vector, out of line: most callers need much more time for what they do with the weights.
template <int ORDER, bool NODAL> __attribute__((noinline)) static void weigh(doubles t, bool slopes, doubles *w)
{
    if (slopes)
        find_slopes<ORDER, NODAL>(t, w);
    else
        find_weights<ORDER, NODAL>(t, w);
}

// Call a function template for the order and the basis in the arguments.
#define FOR_BASIS(function, ...)                                                                                  \
    (args.nodal ? (args.order == 4 ? function<4, true>(__VA_ARGS__) : args.order == 6 ? function<6, true>(__VA_ARGS__) \
                   : function<8, true>(__VA_ARGS__))                                                              \
     : (args.order == 4 ? function<4, false>(__VA_ARGS__) : args.order == 6 ? function<6, false>(__VA_ARGS__)     \
        : function<8, false>(__VA_ARGS__)))

// A node wrapped into the period; without a division if it is inside, as a division costs as much as a row.
DEVICE index_t wrapped(index_t node, index_t count)
{
    if (node >= 0 && node < count)
        return node;
    node %= count;
    return node < 0 ? node + count : node;
}

struct Table {
    const double *places;  // (P,) mesh coordinates along an axis
    index_t *nodes;        // (P, order) results: wrapped into the mesh
    double *weights;       // (P, order)
    index_t shape;
    int order;
    bool nodal, derivative;
};

template <int ORDER, bool NODAL> DEVICE void fill_table(const Table &args, index_t i)
{
    const double base = floor(args.places[i]), t = args.places[i] - base;
    doubles w[ORDER];
    weigh<ORDER, NODAL>(t - doubles{}, args.derivative, w);
    for (int k = 0; k < ORDER; k++) {
        args.weights[i * ORDER + k] = w[k][0];
        args.nodes[i * ORDER + k] = wrapped((index_t)base + k - (ORDER / 2 - 1), args.shape);
    }
}

// Nodes and weights, or derivatives of the weights, for places along an axis.
KERNEL(fill_mesh_table, Table, i)
{
    FOR_BASIS(fill_table, args, i);
}

struct Places {
    const double *positions;  // (N, 3) A
    double *places;           // (N, 3) results: in mesh steps, wrapped along periodic axes
    index_t *block;           // (N,) result if there are blocks: that of the planes of each atom
    double origin[3], inverse[3][3];
    index_t shape[3], blocks;
    bool periodic[3];
};

KERNEL(place_on_mesh, Places, n)
{
    const double *at = args.positions + 3 * n;
    const double x = at[0] - args.origin[0], y = at[1] - args.origin[1], z = at[2] - args.origin[2];
    double *place = args.places + 3 * n;
    for (int d = 0; d < 3; d++) {
        place[d] = x * args.inverse[0][d] + y * args.inverse[1][d] + z * args.inverse[2][d];
        if (args.periodic[d])
            place[d] -= args.shape[d] * floor(place[d] / args.shape[d]);
    }
    if (args.blocks > 0) {
        const index_t plane = (index_t)place[0], last = args.shape[0] - 1;
        args.block[n] = (plane < last ? plane : last) * args.blocks / args.shape[0];
    }
}

struct Blocks {
    const index_t *block;  // (N,)
    index_t *start;        // (blocks + 1,) result, which is 0 before: first position of each block in `sorted`
    index_t *sorted;       // (N,) result: atoms by blocks; those of a block keep their order
    index_t *filled;       // (blocks,) scratch
    index_t blocks;
};

// Sort atoms first to last, which are all.
RANGE_KERNEL(sort_by_block, Blocks, first, last)
{
    for (index_t n = first; n < last; n++)
        args.start[args.block[n] + 1]++;
    for (index_t b = 0; b < args.blocks; b++) {
        args.start[b + 1] += args.start[b];
        args.filled[b] = args.start[b];
    }
    for (index_t n = first; n < last; n++)
        args.sorted[args.filled[args.block[n]]++] = n;
}

struct Spread {
    const double *places, *charges;  // (N, 3), (N,)
    const index_t *sorted, *start;   // atoms sorted[start[b]] to sorted[start[b + 1]] are in block b
    double *nodes;                   // (copies, shape) the charges are added to these
    index_t shape[3], step, copy;    // every `step`-th block is spread; numbers between copies of the mesh, or 0
    int order;
    bool nodal;
};

// Add a row of N values times a factor to others.
template <int N> DEVICE void add_row(double *to, const double *row, double factor)
{
    constexpr int LANES = N >= 8 && DOUBLES >= 8 ? 8 : N >= 4 && DOUBLES >= 4 ? 4 : 2;
    typedef typename Part<LANES>::type part;
    store(to, load<part>(to) + factor * load<part>(row));
    if constexpr (N > LANES)
        add_row<N - LANES>(to + LANES, row + LANES, factor);
}

template <int ORDER, bool NODAL> DEVICE void spread_blocks(const Spread &args, index_t first, index_t last)
{
    const index_t nx = args.shape[0], ny = args.shape[1], nz = args.shape[2];
    for (index_t block = first; block < last; block++) {
        double *nodes = args.nodes + block * args.copy;
        for (index_t n = args.start[block * args.step]; n < args.start[block * args.step + 1]; n++) {
            const index_t atom = args.sorted[n];
            const double *at = args.places + 3 * atom;
            const axes place = {at[0], at[1], at[2], 0}, base = {floor(at[0]), floor(at[1]), floor(at[2]), 0};
            axes w[ORDER];
            find_weights<ORDER, NODAL>(place - base, w);
            const index_t ix = (index_t)base[0] - (ORDER / 2 - 1), iy = (index_t)base[1] - (ORDER / 2 - 1);
            const index_t iz = (index_t)base[2] - (ORDER / 2 - 1);
            double row[ORDER];
            index_t lines[ORDER];
            for (int k = 0; k < ORDER; k++) {
                row[k] = w[k][2] * args.charges[atom];
                lines[k] = wrapped(iy + k, ny) * nz;
            }
            const bool inside = iz >= 0 && iz + ORDER <= nz;
            for (int i = 0; i < ORDER; i++) {
                double *plane = nodes + wrapped(ix + i, nx) * ny * nz;
                if (inside)
                    for (int j = 0; j < ORDER; j++)
                        add_row<ORDER>(plane + lines[j] + iz, row, w[i][0] * w[j][1]);
                else
                    for (int j = 0; j < ORDER; j++)
                        for (int k = 0; k < ORDER; k++)
                            plane[lines[j] + wrapped(iz + k, nz)] += w[i][0] * w[j][1] * row[k];
            }
        }
    }
}

// Add the charges of every `step`-th block of planes to the mesh, which is float64 in every precision: rounding of the
// charges to float32 would cause an error that is large compared with the potential far from charges. Blocks are at
// least as thick as a spline, so that every second one can be spread at the same time.
RANGE_KERNEL(spread_to_mesh, Spread, first, last)
{
    FOR_BASIS(spread_blocks, args, first, last);
}

template <class Real> struct Rows {
    const Real *source;    // (rows, length)
    const index_t *nodes;  // (count, taps)
    const Real *weights;   // (count, taps)
    Real *out;             // (rows, count)
    index_t length, count, taps;
};

// Rows are the numbers in vectors: some rows are transposed, interpolated and transposed back.
template <class Real> DEVICE void interpolate_rows(const Rows<Real> &args, index_t first, index_t last)
{
    typedef typename VectorOf<Real>::type Vector;
    constexpr int LANES = sizeof(Vector) / sizeof(Real);
    const index_t length = args.length, count = args.count, taps = args.taps;
    Real *turned = (Real *)malloc(length * sizeof(Vector));
    for (index_t begin = first; begin < last; begin += LANES) {
        const int rows = last - begin < LANES ? last - begin : LANES;
        for (int r = 0; r < LANES; r++) {
            const Real *row = args.source + (begin + (r < rows ? r : 0)) * length;
            for (index_t n = 0; n < length; n++)
                turned[n * LANES + r] = row[n];
        }
        for (index_t k = 0; k < count; k += LANES) {
            const int points = count - k < LANES ? count - k : LANES;
            Real results[LANES][LANES];
            for (int p = 0; p < points; p++) {
                const index_t *nodes = args.nodes + (k + p) * taps;
                const Real *weights = args.weights + (k + p) * taps;
                Vector total = {};
                for (index_t j = 0; j < taps; j++)
                    total += weights[j] * load<Vector>(turned + nodes[j] * LANES);
                store(results[p], total);
            }
            for (int r = 0; r < rows; r++)
                for (int p = 0; p < points; p++)
                    args.out[(begin + r) * count + k + p] = results[p][r];
        }
    }
    free(turned);
}

// Interpolate along z: out[r, k] from source[r, :].
RANGE_KERNEL(interpolate_rows_single, Rows<float>, first, last) { interpolate_rows(args, first, last); }
RANGE_KERNEL(interpolate_rows_double, Rows<double>, first, last) { interpolate_rows(args, first, last); }

template <class Real> struct Columns {
    const Real *source;    // (slices, length, width)
    const index_t *nodes;  // (count, taps)
    const Real *weights;   // (count, taps)
    Real *out;             // (slices, count, width)
    index_t length, count, taps, width;
};

template <int COUNT, class Vector, class Real>
DEVICE void add_rows(const Columns<Real> &args, const Real *source, index_t k, Real *out)
{
    constexpr int LANES = sizeof(Vector) / sizeof(Real);
    const index_t *nodes = args.nodes + k * args.taps;
    const Real *weights = args.weights + k * args.taps;
    Vector total[COUNT] = {};
    for (index_t j = 0; j < args.taps; j++) {
        const Real *row = source + nodes[j] * args.width;
        for (int n = 0; n < COUNT; n++)
            total[n] += weights[j] * load<Vector>(row + n * LANES);
    }
    for (int n = 0; n < COUNT; n++)
        store(out + n * LANES, total[n]);
}

template <class Real> DEVICE void interpolate_columns(const Columns<Real> &args, index_t first, index_t last)
{
    typedef typename VectorOf<Real>::type Vector;
    constexpr int LANES = sizeof(Vector) / sizeof(Real);
    const index_t width = args.width, chunks = (width + CHUNK - 1) / CHUNK;
    for (index_t task = first; task < last; task++) {
        const index_t begin = task % chunks * CHUNK, slice = task / chunks;
        const index_t size = width - begin < CHUNK ? width - begin : CHUNK;
        const Real *source = args.source + slice * args.length * width + begin;
        for (index_t k = 0; k < args.count; k++) {
            Real *out = args.out + (slice * args.count + k) * width + begin;
            index_t c = 0;
            for (; c + TOGETHER * LANES <= size; c += TOGETHER * LANES)
                add_rows<TOGETHER, Vector>(args, source + c, k, out + c);
            for (; c + LANES <= size; c += LANES)
                add_rows<1, Vector>(args, source + c, k, out + c);
            if (c < size && size >= LANES)  // the last vector overlaps the one before
                add_rows<1, Vector>(args, source + size - LANES, k, out + size - LANES);
            else
                for (; c < size; c++)
                    add_rows<1, Real>(args, source + c, k, out + c);
        }
    }
}

// Interpolate along the middle axis: out[a, k, c] from source[a, :, c]; a task is a chunk of c for one a.
RANGE_KERNEL(interpolate_columns_single, Columns<float>, first, last) { interpolate_columns(args, first, last); }
RANGE_KERNEL(interpolate_columns_double, Columns<double>, first, last) { interpolate_columns(args, first, last); }

template <class Real> struct Slanted {
    const Real *source;
    Real *out;
    index_t nodes, rows, width;  // numbers of nodes along the axis, of rows of the result, and of values in a row
    double start, steps[3];
    int order;
    bool nodal, derivative;
};

// Interpolate a row of values, each at start + k step of the axis whose nodes are `stride` apart.
template <int ORDER, bool NODAL, class Real>
DEVICE void interpolate_slanted(const Slanted<Real> &args, const Real *source, index_t stride, double start, double step,
                                Real *out)
{
    for (index_t first = 0; first < args.width; first += DOUBLES) {
        const int count = args.width - first < DOUBLES ? args.width - first : DOUBLES;
        double bases[DOUBLES];
        doubles t, w[ORDER];
        for (int m = 0; m < DOUBLES; m++) {
            const double place = start + (first + m) * step;
            bases[m] = floor(place);
            t[m] = place - bases[m];
        }
        weigh<ORDER, NODAL>(t, args.derivative, w);
        for (int m = 0; m < count; m++) {
            index_t node = wrapped((index_t)bases[m] - (ORDER / 2 - 1), args.nodes);
            Real total = 0;
            for (int n = 0; n < ORDER; n++) {
                total += (Real)w[n][m] * source[node * stride + first + m];
                node = node + 1 < args.nodes ? node + 1 : 0;
            }
            out[first + m] = total;
        }
    }
}

template <class Real> DEVICE void interpolate_b(const Slanted<Real> &args, index_t a)
{
    for (index_t j = 0; j < args.rows; j++)
        FOR_BASIS(interpolate_slanted, args, args.source + a * args.nodes * args.width, args.width,
                  args.start + j * args.steps[1], args.steps[2], args.out + (a * args.rows + j) * args.width);
}

// Interpolate along b of a slanted cell: out[a, j, k] at start + j steps[1] + k steps[2] in source[a, :, k].
KERNEL(interpolate_b_single, Slanted<float>, a) { interpolate_b(args, a); }
KERNEL(interpolate_b_double, Slanted<double>, a) { interpolate_b(args, a); }

template <class Real> DEVICE void interpolate_a(const Slanted<Real> &args, index_t i)
{
    for (index_t j = 0; j < args.rows; j++)
        FOR_BASIS(interpolate_slanted, args, args.source + j * args.width, args.rows * args.width,
                  args.start + i * args.steps[0] + j * args.steps[1], args.steps[2],
                  args.out + (i * args.rows + j) * args.width);
}

// Interpolate along a of a slanted cell: out[i, j, k] at start + i steps[0] + j steps[1] + k steps[2] in source[:, j, k].
KERNEL(interpolate_a_single, Slanted<float>, i) { interpolate_a(args, i); }
KERNEL(interpolate_a_double, Slanted<double>, i) { interpolate_a(args, i); }

struct Gather {
    const double *nodes, *places;  // (shape), (P, 3) mesh coordinates
    double *out;                   // (P,)
    index_t shape[3];
    int order, along;              // `along`: the axis by whose coordinate the derivative is taken, or -1
    bool nodal;
};

template <int ORDER, bool NODAL> DEVICE void gather_points(const Gather &args, index_t first, index_t last)
{
    const index_t nx = args.shape[0], ny = args.shape[1], nz = args.shape[2];
    for (index_t n = first; n < last; n++) {
        const double *at = args.places + 3 * n;
        const axes place = {at[0], at[1], at[2], 0}, base = {floor(at[0]), floor(at[1]), floor(at[2]), 0};
        axes w[ORDER];
        find_weights<ORDER, NODAL>(place - base, w);
        double weights[3][ORDER];
        for (int d = 0; d < 3; d++)
            for (int k = 0; k < ORDER; k++)
                weights[d][k] = w[k][d];
        if (args.along >= 0) {
            doubles slopes[ORDER];
            weigh<ORDER, NODAL>(at[args.along] - base[args.along] - doubles{}, true, slopes);
            for (int k = 0; k < ORDER; k++)
                weights[args.along][k] = slopes[k][0];
        }
        const index_t ix = (index_t)base[0] - (ORDER / 2 - 1), iy = (index_t)base[1] - (ORDER / 2 - 1);
        const index_t iz = (index_t)base[2] - (ORDER / 2 - 1);
        index_t lines[ORDER];
        for (int k = 0; k < ORDER; k++)
            lines[k] = wrapped(iy + k, ny) * nz;
        const bool inside = iz >= 0 && iz + ORDER <= nz;
        double sums[ORDER] = {};
        for (int i = 0; i < ORDER; i++) {
            const double *plane = args.nodes + wrapped(ix + i, nx) * ny * nz;
            if (inside)
                for (int j = 0; j < ORDER; j++)
                    add_row<ORDER>(sums, plane + lines[j] + iz, weights[0][i] * weights[1][j]);
            else
                for (int j = 0; j < ORDER; j++)
                    for (int k = 0; k < ORDER; k++)
                        sums[k] += weights[0][i] * weights[1][j] * plane[lines[j] + wrapped(iz + k, nz)];
        }
        double total = 0;
        for (int k = 0; k < ORDER; k++)
            total += weights[2][k] * sums[k];
        args.out[n] = total;
    }
}

// Interpolate at points, or the derivative there.
RANGE_KERNEL(gather_at_points, Gather, first, last)
{
    FOR_BASIS(gather_points, args, first, last);
}

template <class Real> struct Spectrum {
    Real *spectrum;          // (nx, ny, nz) complex numbers, changed in place
    const float *influence;  // (influence_x, influence_y, nz)
    index_t ny, nz, influence_x, influence_y, count_x, first_y, count_y;
};

template <class Real> DEVICE void multiply(const Spectrum<Real> &args, index_t i)
{
    const index_t nz = args.nz, x = i < args.influence_x ? i : args.count_x - i;
    for (index_t j = 0; j < args.ny; j++) {
        index_t y = args.first_y + j;
        y = y < args.influence_y ? y : args.count_y - y;
        Real *line = args.spectrum + 2 * (i * args.ny + j) * nz;
        const float *factors = args.influence + (x * args.influence_y + y) * nz;
#pragma omp simd
        for (index_t k = 0; k < nz; k++) {
            line[2 * k] *= factors[k];
            line[2 * k + 1] *= factors[k];
        }
    }
}

// Multiply part of a spectrum, from y = first_y of count_y on, by the influence. One that is even along x and y has only
// their first halves.
KERNEL(multiply_spectrum_single, Spectrum<float>, i) { multiply(args, i); }
KERNEL(multiply_spectrum_double, Spectrum<double>, i) { multiply(args, i); }
#endif
