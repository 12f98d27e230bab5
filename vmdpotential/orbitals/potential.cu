// Gaussian charges times Hermite polynomials: their potential on a lattice, and their density on a mesh.
//
// For a Gaussian of exponent p at P, the potentials of its derivatives by P are the integrals R_tuv (L. E. McMurchie,
// E. R. Davidson, J. Comput. Phys. 26 (1978) 218), computed from Boys functions F_n of T = p (P - r)^2 by a recursion in
// which each step raises t, u or v by one and lowers n.
#include "kernel.h"
#ifndef __CUDACC__

#define WIDTH 16    // points of a row that are computed together
#define MOMENTA 16  // largest number of derivatives, and one

// Constants of the table of Boys functions, as in engines/gaussians.py.
#define LAST 40.0
#define FINE 16
#define TERMS 5
#define FAR 24.0
#define FARTHER 1.2

struct GaussianPotential {
    const double *centres, *exponents;  // (gaussians, 3), (gaussians,)
    const index_t *orders, *starts;     // (gaussians,) largest t + u + v, and the index of the first coefficient
    const double *coefficients;         // of all R_tuv, sorted by t + u + v
    const double *reaches;              // (gaussians,) distances within which they count
    // Recursion of each R_tuv, (counts[most], 4): the raised axis, the indices of the integrals with one and with two
    // less along it, and the factor of the latter.
    const index_t *steps, *counts;      // counts (most + 1,) of R_tuv up to each t + u + v
    const double *table;                // (rows, 1 + most + TERMS) exp(-T) and Boys functions of T
    const double *nuclei, *charges;     // (charge_count, 3), (charge_count,)
    const double *smooth;               // (shape) a potential that is added, or null
    float *out;                         // (shape)
    double origin[3], spacing[3];
    double width;    // exponent of the wider Gaussian of the same charge whose potential is subtracted; 0 for none
    double closest;  // distance at which nearer nuclei count
    index_t shape[3], gaussians, most, charge_count;
};

// Fill values with Boys functions of t.
DEVICE void find_boys_functions(const double *t, int order, const double *table, index_t columns,
                                double (*values)[WIDTH])
{
    const double far = FAR + FARTHER * order, half_root_pi = 0.88622692545275801;
    bool near = false;
    double inverse[WIDTH];
    for (int w = 0; w < WIDTH; w++) {
        inverse[w] = 1 / t[w];
        values[0][w] = half_root_pi * sqrt(inverse[w]);
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
        rows[w] = table + row * columns;
        step[w] = row / (double)FINE - x;
        power[w] = 1;
        top[w] = e[w] = 0;
    }
    for (int w = 0; w < WIDTH; w++) {
        at[0][w] = rows[w][0];
        for (int k = 0; k < TERMS; k++)
            at[1 + k][w] = rows[w][order + 1 + k];
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

// Add a Gaussian's potential at WIDTH points of a row. The integrals are computed in one array, those with more
// derivatives first.
DEVICE void add_gaussian(const GaussianPotential &args, index_t g, double dx, double dy, double along,
                         double (*integrals)[WIDTH], double *total)
{
    const double p = args.exponents[g], *coefficients = args.coefficients + args.starts[g];
    const int order = (int)args.orders[g];
    const index_t columns = 1 + args.most + TERMS;
    double apart[3][WIDTH], t[WIDTH], values[MOMENTA][WIDTH], others[MOMENTA][WIDTH];
    for (int w = 0; w < WIDTH; w++) {
        const double dz = along - w * args.spacing[2];
        apart[0][w] = dx;
        apart[1][w] = dy;
        apart[2][w] = dz;
        t[w] = p * (dx * dx + dy * dy + dz * dz) + 1e-30;
    }
    find_boys_functions(t, order, args.table, columns, values);
    if (args.width > 0) {
        const double ratio = args.width / p;
        double part = sqrt(ratio);
        for (int w = 0; w < WIDTH; w++)
            t[w] *= ratio;
        find_boys_functions(t, order, args.table, columns, others);
        for (int n = 0; n <= order; n++, part *= ratio)
            for (int w = 0; w < WIDTH; w++)
                values[n][w] -= part * others[n][w];
    }
    double scales[MOMENTA];
    scales[0] = 1;
    for (int n = 0; n < order; n++)
        scales[n + 1] = scales[n] * (-2 * p);
    for (int n = order; n >= 0; n--) {
        for (index_t k = args.counts[order - n] - 1; k > 0; k--) {
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
    for (index_t k = 0; k < args.counts[order]; k++)
        for (int w = 0; w < WIDTH; w++)
            sums[w] += coefficients[k] * integrals[k][w];
    for (int w = 0; w < WIDTH; w++)
        total[w] += sums[w];
}

// Write planes of constant x of the potential.
RANGE_KERNEL(sum_gaussian_potential, GaussianPotential, first_plane, last_plane)
{
    const index_t ny = args.shape[1], nz = args.shape[2];
    const double h = args.spacing[2];
    double (*integrals)[WIDTH] = (double (*)[WIDTH])__builtin_alloca(args.counts[args.most] * WIDTH * sizeof(double));
    double *total = (double *)__builtin_alloca((nz + WIDTH) * sizeof(double));
    for (index_t i = first_plane; i < last_plane; i++) {
        const double x = args.origin[0] + i * args.spacing[0];
        for (index_t j = 0; j < ny; j++) {
            const double y = args.origin[1] + j * args.spacing[1];
            for (index_t k = 0; k < nz + WIDTH; k++)
                total[k] = 0;
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
            for (index_t a = 0; a < args.charge_count; a++) {
                const double dx = args.nuclei[3 * a] - x, dy = args.nuclei[3 * a + 1] - y, flat = dx * dx + dy * dy;
                const double height = args.nuclei[3 * a + 2] - args.origin[2], charge = args.charges[a];
#pragma omp simd
                for (index_t k = 0; k < nz; k++) {
                    const double dz = height - k * h, r = sqrt(flat + dz * dz);
                    total[k] += charge / (r > args.closest ? r : args.closest);
                }
            }
            const index_t row = (i * ny + j) * nz;
            for (index_t k = 0; args.smooth && k < nz; k++)
                total[k] += args.smooth[row + k];
            for (index_t k = 0; k < nz; k++)
                args.out[row + k] = (float)total[k];
        }
    }
}

struct GaussianDensity {
    const double *centres, *exponents, *coefficients, *reaches;  // as in GaussianPotential
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
