// Multilevel sums: for each node of a level, the sum over the nodes within its stencil.
#include "kernel.h"
#ifndef __CUDACC__
#include "vectors.h"

// Numbers of neighbouring rows along z, and largest number of nodes of each, whose potentials are summed together; number
// of charges along z that are processed together. As in msm_cpu.py.
#define ROWS 4
#define MAX_NODES 128
#define GROUP 4

template <class Real> struct VectorOf;
template <> struct VectorOf<float> { typedef floats type; };
template <> struct VectorOf<double> { typedef doubles type; };

template <class Real> struct Convolution {
    const Real *charges;     // (nx + dx - 1, charge_rows, charge_nodes): out[i, j, k] is the sum of stencil[a, b, c]
                             // charges[i + a, j + b, k + c]; with margins that are read
    const bool *filled;      // (nx + dx - 1, charge_rows) whether a row has charges
    const index_t *planes;   // (pairs, 2) planes a with equal weights; one without a partner is paired with itself
    const Real *weights;     // (pairs, weight_rows, groups, ROWS, GROUP): weights[p, b, g, m, c] is
                             // stencil[planes[p, 0], b - m, g GROUP + c]
    const index_t *low, *high;  // (pairs, weight_rows) range of the groups that are not zero
    Real *out;               // (nx, ny, nz)
    index_t charge_rows, charge_nodes, pairs, weight_rows, groups, ny, nz;
    index_t block;           // number of nodes that are summed together, which vectors divide
};

// Add the potentials of some groups of charges at COUNT vectors of nodes in each of ROWS rows, which stay in registers.
template <int COUNT, class Real>
DEVICE void add_groups(const Real *weights, const Real *charges, index_t groups, Real *total)
{
    typedef typename VectorOf<Real>::type Vector;
    constexpr int LANES = sizeof(Vector) / sizeof(Real);
    Vector sums[ROWS][COUNT];
    for (int m = 0; m < ROWS; m++)
        for (int n = 0; n < COUNT; n++)
            sums[m][n] = load<Vector>(total + m * MAX_NODES + n * LANES);
    for (index_t g = 0; g < groups; g++, weights += ROWS * GROUP, charges += GROUP)
        for (int c = 0; c < GROUP; c++)
            for (int n = 0; n < COUNT; n++) {
                const Vector q = load<Vector>(charges + c + n * LANES);
                for (int m = 0; m < ROWS; m++)
                    sums[m][n] += weights[m * GROUP + c] * q;
            }
    for (int m = 0; m < ROWS; m++)
        for (int n = 0; n < COUNT; n++)
            store(total + m * MAX_NODES + n * LANES, sums[m][n]);
}

// A task is ROWS rows along z of a plane. Every loaded charge is used for ROWS rows, and every weight for some vectors of
// nodes. Charges of planes with equal weights are added first, which halves the number of multiplications.
template <class Real> DEVICE void convolve_rows(const Convolution<Real> &args, index_t task, Real *both)
{
    typedef typename VectorOf<Real>::type Vector;
    constexpr int LANES = sizeof(Vector) / sizeof(Real);
    const index_t strips = (args.ny + ROWS - 1) / ROWS, i = task / strips, j = task % strips * ROWS, block = args.block;
    for (index_t first = 0; first < args.nz; first += block) {
        Real total[ROWS * MAX_NODES] = {};
        for (index_t p = 0; p < args.pairs; p++)
            for (index_t b = 0; b < args.weight_rows; b++) {
                const index_t left = (i + args.planes[2 * p]) * args.charge_rows + j + b;
                const index_t right = (i + args.planes[2 * p + 1]) * args.charge_rows + j + b;
                if (!args.filled[left] && !args.filled[right])
                    continue;
                const index_t row = p * args.weight_rows + b, low = args.low[row], groups = args.high[row] - low;
                const Real *one = args.charges + left * args.charge_nodes + first + low * GROUP;
                const Real *other = args.charges + right * args.charge_nodes + first + low * GROUP;
                const Real share = left == right ? 0.5 : 1;
                for (index_t c = 0; c < groups * GROUP + block; c++)
                    both[c] = share * (one[c] + other[c]);
                const Real *weights = args.weights + (row * args.groups + low) * ROWS * GROUP;
                index_t k = 0;
                for (; k + 4 * LANES <= block; k += 4 * LANES)
                    add_groups<4>(weights, both + k, groups, total + k);
                for (; k < block; k += LANES)
                    add_groups<1>(weights, both + k, groups, total + k);
            }
        for (index_t m = 0; m < ROWS && j + m < args.ny; m++)
            for (index_t c = 0; c < block && first + c < args.nz; c++)
                args.out[(i * args.ny + j + m) * args.nz + first + c] = total[m * MAX_NODES + c];
    }
}

template <class Real> DEVICE void convolve(const Convolution<Real> &args, index_t first, index_t last)
{
    Real *both = (Real *)malloc((args.groups * GROUP + MAX_NODES) * sizeof(Real));
    for (index_t task = first; task < last; task++)
        convolve_rows(args, task, both);
    free(both);
}

RANGE_KERNEL(convolve_level_single, Convolution<float>, first, last) { convolve(args, first, last); }
RANGE_KERNEL(convolve_level_double, Convolution<double>, first, last) { convolve(args, first, last); }
#endif
