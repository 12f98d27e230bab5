// Orbitals, and weighted sums of their squares, on a lattice: contracted Gaussians times x^a y^b z^c.
// Elements of the kernels are nodes in tiles.
#include "kernel.h"
#include "tiles.h"

#define TOGETHER 16  // orbitals whose coefficients are next to each other, as in evaluate.py

struct Orbitals {
    const index_t *table;              // (shells, 4) momentum, first primitive, end of them, and first monomial
    const double *centres, *reaches;   // (shells, 3) and (shells,), bohr; a shell is 0 beyond its reach
    const float *factors;              // (3, primitives, padded) exp(-a x^2) at the nodes of each axis, of x times factors
    const float *coefficients;         // (groups, monomials, group) of orbitals; within a shell sorted by c, then by a
    const float *weights;              // (orbitals,) of squares, and zeros to the end of the last group
    float *values;                     // (shape)
    double origin[3], spacing[3];      // bohr
    index_t shape[3], primitives, padded, plane, shells, monomials, orbitals;  // plane: elements of one
};

#ifdef __CUDACC__

// Add x^a y^b z^c times the radial part, sorted by c and then by a, to a group of orbitals.
template <int MOMENTUM, int GROUP>
DEVICE void add_shell(float (&sums)[GROUP], const float *coefficients, float radial, float x, float y, float z)
{
    float powers_x[MOMENTUM + 1], powers_y[MOMENTUM + 1];
    powers_x[0] = powers_y[0] = 1;
#pragma unroll
    for (int n = 0; n < MOMENTUM; n++) {
        powers_x[n + 1] = powers_x[n] * x;
        powers_y[n + 1] = powers_y[n] * y;
    }
#pragma unroll
    for (int c = 0; c <= MOMENTUM; c++) {
#pragma unroll
        for (int a = 0; a <= MOMENTUM - c; a++) {
            const float value = radial * powers_x[a] * powers_y[MOMENTUM - c - a];
#pragma unroll
            for (int n = 0; n < GROUP; n++)
                sums[n] += coefficients[n] * value;
            coefficients += GROUP;
        }
        radial *= z;
    }
}

// Write an orbital (GROUP 1), or the sum of weighted squares, at the point of an element.
template <int GROUP> DEVICE void evaluate(const Orbitals &args, index_t at)
{
    int node[3];
    if (!find_node(args.shape, args.plane, at, node))
        return;
    const int i = node[0], j = node[1], k = node[2];
    const double x = args.origin[0] + i * args.spacing[0], y = args.origin[1] + j * args.spacing[1];
    const double z = args.origin[2] + k * args.spacing[2];
    const index_t axis = args.primitives * args.padded;
    float total = 0;
    for (index_t first = 0; first < args.orbitals; first += GROUP) {
        float sums[GROUP] = {};
        for (index_t n = 0; n < args.shells; n++) {
            const index_t *shell = args.table + 4 * n;
            const double *centre = args.centres + 3 * n;
            const float dx = (float)(x - centre[0]), dy = (float)(y - centre[1]), dz = (float)(z - centre[2]);
            const float reach = (float)args.reaches[n];
            if (dx * dx + dy * dy + dz * dz >= reach * reach)
                continue;
            float radial = 0;
            for (index_t p = shell[1]; p < shell[2]; p++) {
                const float *factors = args.factors + p * args.padded;
                radial += factors[i] * factors[axis + j] * factors[2 * axis + k];
            }
            const float *own = args.coefficients + first * args.monomials + shell[3] * GROUP;
            switch (shell[0]) {
            case 0: add_shell<0>(sums, own, radial, dx, dy, dz); break;
            case 1: add_shell<1>(sums, own, radial, dx, dy, dz); break;
            case 2: add_shell<2>(sums, own, radial, dx, dy, dz); break;
            case 3: add_shell<3>(sums, own, radial, dx, dy, dz); break;
            case 4: add_shell<4>(sums, own, radial, dx, dy, dz); break;
            default: add_shell<5>(sums, own, radial, dx, dy, dz);
            }
        }
#pragma unroll
        for (int n = 0; n < GROUP; n++)
            total += GROUP == 1 ? sums[n] : args.weights[first + n] * sums[n] * sums[n];
    }
    args.values[(i * args.shape[1] + j) * args.shape[2] + k] = total;
}

KERNEL(evaluate_orbital, Orbitals, at) { evaluate<1>(args, at); }
KERNEL(sum_squared_orbitals, Orbitals, at) { evaluate<TOGETHER>(args, at); }

#else
#include "vectors.h"

#define MOMENTA 6    // momenta from 0, up to h shells
#define ROWS 32      // orbitals that are summed at a time
#define CHUNK 128    // points of a row along z that are summed at a time, a multiple of a vector's

// Add a shell's part to rows along z: the sum of a polynomial's terms times powers of z times the radial part.
template <int MOMENTUM, int COUNT>
DEVICE void add_shell(float (*rows)[CHUNK], const float (*terms)[ROWS], const float (*powers)[CHUNK], int begin, int end)
{
    floats factors[MOMENTUM + 1][COUNT];
    for (int c = 0; c <= MOMENTUM; c++)
        for (int n = 0; n < COUNT; n++)
            factors[c][n] = all(terms[c][n]);
    for (int k = begin; k < end; k += FLOATS) {
        floats power[MOMENTUM + 1];
        for (int c = 0; c <= MOMENTUM; c++)
            power[c] = load<floats>(powers[c] + k);
        for (int n = 0; n < COUNT; n++) {
            floats sum = load<floats>(rows[n] + k);
            for (int c = 0; c <= MOMENTUM; c++)
                sum += factors[c][n] * power[c];
            store(rows[n] + k, sum);
        }
    }
}

// Add the shells to `count` rows of orbitals, of the points from k to `last` of the row i, j.
template <int GROUP>
DEVICE void add_shells(const Orbitals &args, float (*rows)[CHUNK], index_t orbital, int count, index_t i, index_t j,
                       index_t from, index_t last)
{
    enum { COUNT = GROUP < 4 ? GROUP : 4 };
    const index_t axis = args.primitives * args.padded;
    float powers[MOMENTA][CHUNK], heights[CHUNK], terms[MOMENTA][ROWS];
    for (index_t n = 0; n < args.shells; n++) {
        const double *centre = args.centres + 3 * n, reach = args.reaches[n], h = args.spacing[2];
        const double x = args.origin[0] + i * args.spacing[0] - centre[0];
        const double y = args.origin[1] + j * args.spacing[1] - centre[1];
        const double left = reach * reach - x * x - y * y, low = args.origin[2] - centre[2];
        if (left <= 0)
            continue;
        const double half = sqrt(left), first = ceil((-half - low) / h), end = floor((half - low) / h) + 1;
        if (first >= last || end <= from || first >= end)
            continue;
        const int begin = first > from ? (int)((index_t)first - from) : 0, start = begin / FLOATS * FLOATS;
        const int beyond = (int)((end < last ? (index_t)end : last) - from);
        const int stop = (beyond + FLOATS - 1) / FLOATS * FLOATS;
        const index_t *shell = args.table + 4 * n;
        for (int k = start; k < stop; k += FLOATS)
            store(powers[0] + k, floats{});
        for (index_t p = shell[1]; p < shell[2]; p++) {
            const float *factors = args.factors + p * args.padded, factor = factors[i] * factors[axis + j];
            const float *along = factors + 2 * axis + from;
            for (int k = start; factor != 0 && k < stop; k += FLOATS)
                store(powers[0] + k, load<floats>(powers[0] + k) + factor * load<floats>(along + k));
        }
        memset(powers[0] + start, 0, (begin - start) * sizeof(float));
        memset(powers[0] + beyond, 0, (stop - beyond) * sizeof(float));
        const int momentum = (int)shell[0];
        float powers_x[MOMENTA], powers_y[MOMENTA];
        powers_x[0] = powers_y[0] = 1;
        for (int k = start; momentum && k < stop; k++)
            heights[k] = (float)(low + (from + k) * h);
        for (int m = 1; m <= momentum; m++) {
            powers_x[m] = powers_x[m - 1] * (float)x;
            powers_y[m] = powers_y[m - 1] * (float)y;
            for (int k = start; k < stop; k += FLOATS)
                store(powers[m] + k, load<floats>(powers[m - 1] + k) * load<floats>(heights + k));
        }
        for (int group = 0; group < count; group += GROUP) {
            const float *own = args.coefficients + ((orbital + group) * args.monomials + shell[3] * GROUP);
            for (int c = 0; c <= momentum; c++) {
                float *sums = terms[c] + group;
                for (int g = 0; g < GROUP; g++)
                    sums[g] = 0;
                for (int a = 0; a <= momentum - c; a++, own += GROUP) {
                    const float flat = powers_x[a] * powers_y[momentum - c - a];
                    for (int g = 0; g < GROUP; g++)
                        sums[g] += own[g] * flat;
                }
            }
        }
        for (int row = 0; row < count; row += COUNT) {
            const float (*own)[ROWS] = (const float (*)[ROWS])(terms[0] + row);
            switch (momentum) {
            case 0: add_shell<0, COUNT>(rows + row, own, powers, start, stop); break;
            case 1: add_shell<1, COUNT>(rows + row, own, powers, start, stop); break;
            case 2: add_shell<2, COUNT>(rows + row, own, powers, start, stop); break;
            case 3: add_shell<3, COUNT>(rows + row, own, powers, start, stop); break;
            case 4: add_shell<4, COUNT>(rows + row, own, powers, start, stop); break;
            default: add_shell<5, COUNT>(rows + row, own, powers, start, stop);
            }
        }
    }
}

// Evaluate the only orbital, from and to the beginning of a plane of constant x.
RANGE_KERNEL(evaluate_orbital, Orbitals, first, last)
{
    float rows[1][CHUNK];
    for (index_t i = first / args.plane; i < last / args.plane; i++)
        for (index_t j = 0; j < args.shape[1]; j++)
            for (index_t from = 0, nz = args.shape[2]; from < nz; from += CHUNK) {
                const index_t end = from + CHUNK < nz ? from + CHUNK : nz;
                memset(rows, 0, sizeof(rows));
                add_shells<1>(args, rows, 0, 1, i, j, from, end);
                memcpy(args.values + (i * args.shape[1] + j) * nz + from, rows, (end - from) * sizeof(float));
            }
}

// Sum the weighted squares of orbitals, likewise.
RANGE_KERNEL(sum_squared_orbitals, Orbitals, first, last)
{
    float rows[ROWS][CHUNK], sums[CHUNK];
    for (index_t i = first / args.plane; i < last / args.plane; i++)
        for (index_t j = 0; j < args.shape[1]; j++)
            for (index_t from = 0, nz = args.shape[2]; from < nz; from += CHUNK) {
                const index_t end = from + CHUNK < nz ? from + CHUNK : nz;
                memset(sums, 0, sizeof(sums));
                for (index_t orbital = 0; orbital < args.orbitals; orbital += ROWS) {
                    const int count = (int)(args.orbitals - orbital < ROWS ? args.orbitals - orbital : ROWS);
                    memset(rows, 0, sizeof(rows));
                    add_shells<TOGETHER>(args, rows, orbital, count, i, j, from, end);
                    for (int n = 0; n < count; n++)
                        for (int k = 0; k < CHUNK; k++)
                            sums[k] += args.weights[orbital + n] * rows[n][k] * rows[n][k];
                }
                memcpy(args.values + (i * args.shape[1] + j) * nz + from, sums, (end - from) * sizeof(float));
            }
}
#endif
