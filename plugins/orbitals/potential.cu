// Gaussian charges times Hermite polynomials: their potential on a lattice, and their density on a mesh.
//
// For a Gaussian of exponent p at P, the potentials of its derivatives by P are the integrals R_tuv (L. E. McMurchie,
// E. R. Davidson, J. Comput. Phys. 26 (1978) 218), computed from Boys functions F_n of T = p (P - r)^2 by a recursion in
// which each step raises t, u or v by one and lowers n. Integrals with more derivatives are computed first, so that one
// array is enough. Elements of the kernels are nodes in tiles, except those of the density.
#include "kernel.h"
#include "tiles.h"

// Constants of the table of Boys functions, as in gaussians.py.
#define LAST 40.0
#define FINE 16
#define TERMS 5
#define FAR 24.0
#define FARTHER 1.2
#define HALF_ROOT_PI 0.88622692545275801

// Gaussians of one order, the largest t + u + v; the potential is added to `sums`.
struct HermiteGaussians {
    const double *centres, *exponents;  // (gaussians, 3), (gaussians,)
    const double *coefficients;         // (gaussians, R_tuv), sorted by t + u + v
    const double *reaches;              // (gaussians,) distances within which they count
    // Recursion of each R_tuv, (R_tuv, 4): the raised axis, the indices of the integrals with one and with two less
    // along it, and the factor of the latter; for CPUs
    const index_t *steps;
    const double *table;                // (rows, 1 + TERMS) exp(-T) and Boys functions of T from that of the order on
    double *sums;                       // (shape)
    double origin[3], spacing[3];
    double width;  // exponent of the wider Gaussian of the same charge whose potential is subtracted; 0 for none
    index_t shape[3], plane, gaussians, order;
};

// Add the potential of the nuclei, and round the sums.
struct Nuclei {
    const double *nuclei, *charges;     // (count, 3), (count,)
    const double *sums;                 // (shape)
    float *out;                         // (shape)
    double origin[3], spacing[3];
    double closest;                     // distance at which nearer nuclei count
    index_t shape[3], plane, count;
};

#ifdef __CUDACC__

// The index of the derivative t, u, v: sorted by the sum, then by t and u.
DEVICE constexpr int place(int t, int u, int v)
{
    const int total = t + u + v;
    return total * (total + 1) * (total + 2) / 6 + t * (total + 1) - t * (t - 1) / 2 + u;
}

// Boys functions F_0 ... F_ORDER of t.
template <int ORDER> DEVICE void find_boys_functions(double t, const double *table, double (&values)[ORDER + 1])
{
    if (t >= FAR + FARTHER * ORDER) {  // (2n - 1)!! / (2T)^n sqrt(pi / 4T)
        const double root = rsqrt(t), inverse = root * root;
        values[0] = HALF_ROOT_PI * root;
#pragma unroll
        for (int n = 0; n < ORDER; n++)
            values[n + 1] = values[n] * (n + 0.5) * inverse;
        return;
    }
    const int row = (int)(t * FINE + 0.5);
    const double *at = table + (1 + TERMS) * row, step = (double)row / FINE - t;
    double power = 1, top = 0, e = 0;
#pragma unroll
    for (int k = 0; k < TERMS; k++) {
        top += power * at[1 + k];
        e += power;
        power *= step * (1.0 / (k + 1));
    }
    e *= at[0];
    values[ORDER] = top;
#pragma unroll
    for (int n = ORDER - 1; n >= 0; n--) {
        top = (2 * t * top + e) * (1.0 / (2 * n + 1));
        values[n] = top;
    }
}

// All integrals R_tuv, from Boys functions.
template <int ORDER, int COUNT>
DEVICE void find_integrals(double p, double x, double y, double z, const double (&values)[ORDER + 1], double (&r)[COUNT])
{
    double scales[ORDER + 1];
    scales[0] = 1;
#pragma unroll
    for (int n = 0; n < ORDER; n++)
        scales[n + 1] = -2 * p * scales[n];
    r[0] = scales[ORDER] * values[ORDER];
#pragma unroll
    for (int n = ORDER - 1; n >= 0; n--) {
#pragma unroll
        for (int total = ORDER - n; total > 0; total--) {
#pragma unroll
            for (int t = 0; t <= total; t++) {
#pragma unroll
                for (int u = 0; u <= total - t; u++) {
                    const int v = total - t - u, here = place(t, u, v);
                    if (t > 0)
                        r[here] = x * r[place(t - 1, u, v)] + (t > 1 ? (t - 1) * r[place(max(t - 2, 0), u, v)] : 0);
                    else if (u > 0)
                        r[here] = y * r[place(t, u - 1, v)] + (u > 1 ? (u - 1) * r[place(t, max(u - 2, 0), v)] : 0);
                    else
                        r[here] = z * r[place(t, u, v - 1)] + (v > 1 ? (v - 1) * r[place(t, u, max(v - 2, 0))] : 0);
                }
            }
        }
        r[0] = scales[n] * values[n];
    }
}

template <int ORDER> DEVICE void add_gaussians(const HermiteGaussians &args, index_t at)
{
    constexpr int COUNT = (ORDER + 1) * (ORDER + 2) * (ORDER + 3) / 6;
    int node[3];
    if (!find_node(args.shape, args.plane, at, node))
        return;
    double point[3];
    for (int d = 0; d < 3; d++)
        point[d] = args.origin[d] + node[d] * args.spacing[d];
    double &sum = args.sums[(node[0] * args.shape[1] + node[1]) * args.shape[2] + node[2]], total = sum;
    for (int g = 0; g < (int)args.gaussians; g++) {
        const double *centre = args.centres + 3 * g, *coefficients = args.coefficients + (size_t)g * COUNT;
        const double p = args.exponents[g], reach = args.reaches[g];
        const double x = centre[0] - point[0], y = centre[1] - point[1], z = centre[2] - point[2];
        const double r2 = x * x + y * y + z * z;
        if (r2 > reach * reach)
            continue;
        double values[ORDER + 1], r[COUNT];
        find_boys_functions<ORDER>(p * r2, args.table, values);
        if (args.width > 0) {
            const double ratio = args.width / p;
            double others[ORDER + 1], part = sqrt(ratio);
            find_boys_functions<ORDER>(args.width * r2, args.table, others);
#pragma unroll
            for (int n = 0; n <= ORDER; n++, part *= ratio)
                values[n] -= part * others[n];
        }
        find_integrals<ORDER>(p, x, y, z, values, r);
#pragma unroll
        for (int k = 0; k < COUNT; k++)
            total += coefficients[k] * r[k];
    }
    sum = total;
}

KERNEL(add_gaussians_0, HermiteGaussians, at) { add_gaussians<0>(args, at); }
KERNEL(add_gaussians_1, HermiteGaussians, at) { add_gaussians<1>(args, at); }
KERNEL(add_gaussians_2, HermiteGaussians, at) { add_gaussians<2>(args, at); }
KERNEL(add_gaussians_3, HermiteGaussians, at) { add_gaussians<3>(args, at); }
KERNEL(add_gaussians_4, HermiteGaussians, at) { add_gaussians<4>(args, at); }
KERNEL(add_gaussians_5, HermiteGaussians, at) { add_gaussians<5>(args, at); }
KERNEL(add_gaussians_6, HermiteGaussians, at) { add_gaussians<6>(args, at); }
KERNEL(add_gaussians_7, HermiteGaussians, at) { add_gaussians<7>(args, at); }
KERNEL(add_gaussians_8, HermiteGaussians, at) { add_gaussians<8>(args, at); }
KERNEL(add_gaussians_9, HermiteGaussians, at) { add_gaussians<9>(args, at); }
KERNEL(add_gaussians_10, HermiteGaussians, at) { add_gaussians<10>(args, at); }

KERNEL(add_nuclei, Nuclei, at)
{
    int node[3];
    if (!find_node(args.shape, args.plane, at, node))
        return;
    const index_t place = (node[0] * args.shape[1] + node[1]) * args.shape[2] + node[2];
    double sum = args.sums[place];
    for (int a = 0; a < (int)args.count; a++) {
        double r2 = 0;
        for (int d = 0; d < 3; d++) {
            const double apart = args.nuclei[3 * a + d] - (args.origin[d] + node[d] * args.spacing[d]);
            r2 += apart * apart;
        }
        sum += args.charges[a] / fmax(sqrt(r2), args.closest);
    }
    args.out[place] = (float)sum;
}

#else

#define WIDTH 16    // points of a row that are computed together
#define MOMENTA 16  // largest number of derivatives, and one

// Fill values with Boys functions of t.
DEVICE void find_boys_functions(const double *t, int order, const double *table, double (*values)[WIDTH])
{
    const double far = FAR + FARTHER * order;
    bool near = false;
    double inverse[WIDTH];
    for (int w = 0; w < WIDTH; w++) {
        inverse[w] = 1 / t[w];
        values[0][w] = HALF_ROOT_PI * sqrt(inverse[w]);
        near |= t[w] < far;
    }
    for (int m = 0; m < order; m++)
        for (int w = 0; w < WIDTH; w++)
            values[m + 1][w] = values[m][w] * (m + 0.5) * inverse[w];
    if (!near)
        return;
    const double *rows[WIDTH];
    double step[WIDTH], power[WIDTH], top[WIDTH], e[WIDTH], at[TERMS + 1][WIDTH];
    for (int w = 0; w < WIDTH; w++) {
        const double x = t[w] < LAST - 1 ? t[w] : LAST - 1;
        const int row = (int)(x * FINE + 0.5);
        rows[w] = table + row * (1 + TERMS);
        step[w] = row / (double)FINE - x;
        power[w] = 1;
        top[w] = e[w] = 0;
    }
    for (int w = 0; w < WIDTH; w++) {
        at[0][w] = rows[w][0];
        for (int k = 0; k < TERMS; k++)
            at[1 + k][w] = rows[w][1 + k];
    }
    for (int k = 0; k < TERMS; k++)
        for (int w = 0; w < WIDTH; w++) {
            top[w] += power[w] * at[1 + k][w];
            e[w] += power[w];
            power[w] *= step[w] * (1.0 / (k + 1));
        }
    for (int w = 0; w < WIDTH; w++) {
        e[w] *= at[0][w];
        values[order][w] = t[w] < far ? top[w] : values[order][w];
    }
    for (int m = order - 1; m >= 0; m--) {
        const double factor = 1.0 / (2 * m + 1);
        for (int w = 0; w < WIDTH; w++) {
            top[w] = (2 * t[w] * top[w] + e[w]) * factor;
            values[m][w] = t[w] < far ? top[w] : values[m][w];
        }
    }
}

// The number of R_tuv up to an order.
DEVICE index_t count_integrals(index_t order) { return (order + 1) * (order + 2) * (order + 3) / 6; }

// Add a Gaussian's potential at WIDTH points of a row.
DEVICE void add_gaussian(const HermiteGaussians &args, index_t g, double dx, double dy, double along,
                         double (*integrals)[WIDTH], double *total)
{
    const int order = (int)args.order;
    const double p = args.exponents[g], *coefficients = args.coefficients + g * count_integrals(order);
    double apart[3][WIDTH], t[WIDTH], values[MOMENTA][WIDTH], others[MOMENTA][WIDTH];
    for (int w = 0; w < WIDTH; w++) {
        const double dz = along - w * args.spacing[2];
        apart[0][w] = dx;
        apart[1][w] = dy;
        apart[2][w] = dz;
        t[w] = p * (dx * dx + dy * dy + dz * dz) + 1e-30;
    }
    find_boys_functions(t, order, args.table, values);
    if (args.width > 0) {
        const double ratio = args.width / p;
        double part = sqrt(ratio);
        for (int w = 0; w < WIDTH; w++)
            t[w] *= ratio;
        find_boys_functions(t, order, args.table, others);
        for (int n = 0; n <= order; n++, part *= ratio)
            for (int w = 0; w < WIDTH; w++)
                values[n][w] -= part * others[n][w];
    }
    double scales[MOMENTA];
    scales[0] = 1;
    for (int n = 0; n < order; n++)
        scales[n + 1] = scales[n] * (-2 * p);
    for (int n = order; n >= 0; n--) {
        for (index_t k = count_integrals(order - n) - 1; k > 0; k--) {
            const index_t *step = args.steps + 4 * k;
            const double *axis = apart[step[0]], *one = integrals[step[1]], *two = integrals[step[2]];
            const double factor = (double)step[3];
            double *here = integrals[k];
#pragma GCC ivdep
            for (int w = 0; w < WIDTH; w++)
                here[w] = factor * two[w] + axis[w] * one[w];
        }
        for (int w = 0; w < WIDTH; w++)
            integrals[0][w] = scales[n] * values[n][w];
    }
    double sums[WIDTH] = {};
    for (index_t k = 0; k < count_integrals(order); k++)
        for (int w = 0; w < WIDTH; w++)
            sums[w] += coefficients[k] * integrals[k][w];
    for (int w = 0; w < WIDTH; w++)
        total[w] += sums[w];
}

// Add the Gaussians from and to the beginning of a plane of constant x.
static void __attribute__((noinline)) add_gaussians(const HermiteGaussians &args, index_t first_node, index_t last_node)
{
    const index_t ny = args.shape[1], nz = args.shape[2];
    const double h = args.spacing[2];
    double (*integrals)[WIDTH] = (double (*)[WIDTH])__builtin_alloca(count_integrals(args.order) * WIDTH * sizeof(double));
    double *total = (double *)__builtin_alloca((nz + WIDTH) * sizeof(double));
    for (index_t i = first_node / args.plane; i < last_node / args.plane; i++) {
        const double x = args.origin[0] + i * args.spacing[0];
        for (index_t j = 0; j < ny; j++) {
            const double y = args.origin[1] + j * args.spacing[1];
            double *sums = args.sums + (i * ny + j) * nz;
            for (index_t k = 0; k < nz + WIDTH; k++)
                total[k] = k < nz ? sums[k] : 0;
            for (index_t g = 0; g < args.gaussians; g++) {
                const double *centre = args.centres + 3 * g, dx = centre[0] - x, dy = centre[1] - y;
                const double left = args.reaches[g] * args.reaches[g] - dx * dx - dy * dy;
                if (left <= 0)
                    continue;
                const double half = sqrt(left), along = centre[2] - args.origin[2];
                const double first = fmax(0, ceil((along - half) / h)), end = fmin(nz, floor((along + half) / h) + 1);
                if (first >= end)
                    continue;
                for (index_t begin = (index_t)first; begin < (index_t)end; begin += WIDTH)
                    add_gaussian(args, g, dx, dy, along - begin * h, integrals, total + begin);
            }
            for (index_t k = 0; k < nz; k++)
                sums[k] = total[k];
        }
    }
}

RANGE_KERNEL(add_gaussians_0, HermiteGaussians, first, last) { add_gaussians(args, first, last); }
RANGE_KERNEL(add_gaussians_1, HermiteGaussians, first, last) { add_gaussians(args, first, last); }
RANGE_KERNEL(add_gaussians_2, HermiteGaussians, first, last) { add_gaussians(args, first, last); }
RANGE_KERNEL(add_gaussians_3, HermiteGaussians, first, last) { add_gaussians(args, first, last); }
RANGE_KERNEL(add_gaussians_4, HermiteGaussians, first, last) { add_gaussians(args, first, last); }
RANGE_KERNEL(add_gaussians_5, HermiteGaussians, first, last) { add_gaussians(args, first, last); }
RANGE_KERNEL(add_gaussians_6, HermiteGaussians, first, last) { add_gaussians(args, first, last); }
RANGE_KERNEL(add_gaussians_7, HermiteGaussians, first, last) { add_gaussians(args, first, last); }
RANGE_KERNEL(add_gaussians_8, HermiteGaussians, first, last) { add_gaussians(args, first, last); }
RANGE_KERNEL(add_gaussians_9, HermiteGaussians, first, last) { add_gaussians(args, first, last); }
RANGE_KERNEL(add_gaussians_10, HermiteGaussians, first, last) { add_gaussians(args, first, last); }

RANGE_KERNEL(add_nuclei, Nuclei, first_node, last_node)
{
    const index_t ny = args.shape[1], nz = args.shape[2];
    const double h = args.spacing[2];
    double *total = (double *)__builtin_alloca(nz * sizeof(double));
    for (index_t i = first_node / args.plane; i < last_node / args.plane; i++) {
        const double x = args.origin[0] + i * args.spacing[0];
        for (index_t j = 0; j < ny; j++) {
            const double y = args.origin[1] + j * args.spacing[1];
            const index_t row = (i * ny + j) * nz;
            for (index_t k = 0; k < nz; k++)
                total[k] = args.sums[row + k];
            for (index_t a = 0; a < args.count; a++) {
                const double dx = args.nuclei[3 * a] - x, dy = args.nuclei[3 * a + 1] - y, flat = dx * dx + dy * dy;
                const double height = args.nuclei[3 * a + 2] - args.origin[2], charge = args.charges[a];
#pragma omp simd
                for (index_t k = 0; k < nz; k++) {
                    const double dz = height - k * h, r = sqrt(flat + dz * dz);
                    total[k] += charge / (r > args.closest ? r : args.closest);
                }
            }
            for (index_t k = 0; k < nz; k++)
                args.out[row + k] = (float)total[k];
        }
    }
}

struct GaussianDensity {
    const double *centres, *exponents, *coefficients, *reaches;  // as in HermiteGaussians
    const index_t *orders, *starts, *counts;
    const index_t *powers;  // (counts[most], 3) t, u and v of each coefficient
    double *out;            // (sides), where it is zero; the first `shape` of it are written
    double origin[3], spacing[3];
    index_t shape[3], sides[3], gaussians, most;
};

// Fill values with the derivatives of exp(-p x^2) by the position of its centre.
DEVICE void find_derivatives(double p, index_t order, double x, double *values)
{
    values[0] = exp(-p * x * x);
    if (order > 0)
        values[1] = 2 * p * x * values[0];
    for (index_t t = 1; t < order; t++)
        values[t + 1] = 2 * p * (x * values[t] - t * values[t - 1]);
}

// Write planes of constant x of the density.
RANGE_KERNEL(sum_gaussian_density, GaussianDensity, first_plane, last_plane)
{
    const index_t ny = args.shape[1], nz = args.shape[2];
    double (*ys)[MOMENTA] = (double (*)[MOMENTA])__builtin_alloca(ny * sizeof(*ys));
    double *zs = (double *)__builtin_alloca((args.most + 1) * nz * sizeof(double));
    for (index_t i = first_plane; i < last_plane; i++) {
        const double x = args.origin[0] + i * args.spacing[0];
        for (index_t g = 0; g < args.gaussians; g++) {
            const double *centre = args.centres + 3 * g, p = args.exponents[g], reach = args.reaches[g];
            const double left = reach * reach - (x - centre[0]) * (x - centre[0]);
            if (left <= 0)
                continue;
            const index_t order = args.orders[g];
            const double half = sqrt(left), *coefficients = args.coefficients + args.starts[g];
            double low[3];
            index_t first[3], end[3];
            for (int d = 1; d < 3; d++) {
                low[d] = centre[d] - args.origin[d];
                first[d] = (index_t)fmax(0, ceil((low[d] - half) / args.spacing[d]));
                end[d] = (index_t)fmin(args.shape[d], floor((low[d] + half) / args.spacing[d]) + 1);
            }
            double line[MOMENTA], plane[MOMENTA][MOMENTA] = {};
            find_derivatives(p, order, x - centre[0], line);
            for (index_t k = 0; k < args.counts[order]; k++) {
                const index_t *tuv = args.powers + 3 * k;
                plane[tuv[1]][tuv[2]] += coefficients[k] * line[tuv[0]];
            }
            for (index_t j = first[1]; j < end[1]; j++)
                find_derivatives(p, order, j * args.spacing[1] - low[1], ys[j]);
            for (index_t k = first[2]; k < end[2]; k++) {
                find_derivatives(p, order, k * args.spacing[2] - low[2], line);
                for (index_t v = 0; v <= order; v++)
                    zs[v * nz + k] = line[v];
            }
            for (index_t j = first[1]; j < end[1]; j++) {
                double *target = args.out + (i * args.sides[1] + j) * args.sides[2];
                for (index_t v = 0; v <= order; v++) {
                    const double *along = zs + v * nz;
                    double factor = 0;
                    for (index_t u = 0; u <= order - v; u++)
                        factor += plane[u][v] * ys[j][u];
#pragma omp simd
                    for (index_t k = first[2]; k < end[2]; k++)
                        target[k] += factor * along[k];
                }
            }
        }
    }
}
#endif
