// Exchange of solutions between a lattice and a finer one around the molecule, and between nodes and charges.
#include "kernel.h"
#ifndef __CUDACC__

// A node's place in the potential of the charges, which has one more node on each side of the lattice.
DEVICE index_t wide_place(const index_t *shape, index_t a, index_t b, index_t c)
{
    return ((a + 1) * (shape[1] + 2) + b + 1) * (shape[2] + 2) + c + 1;
}

struct Refinement {
    const float *coarse;             // (coarse_shape) the coarse solution
    const float *charged;            // potential of the charges, see wide_place
    const bool *coarse_within;       // (coarse_shape) which nodes are inside
    const bool *within;              // (shape)
    float *out;                      // (shape)
    float *line;                     // (pieces, cells) and
    index_t *inner;                  // (pieces, cells) scratch, 0 at first
    index_t coarse_shape[3], shape[3], first[3], ratio, cells, grain;
};

// The coarse solution, interpolated trilinearly in the cell whose first node is (a, b, c). It is the potential outside,
// and the potential minus `charged` inside; it is interpolated between nodes on the same side of the surface if there
// are any.
static float interpolate_side(const Refinement &args, index_t a, index_t b, index_t c, float ta, float tb, float tc,
                              bool inside)
{
    float total = 0, weight = 0, other = 0;
    for (int da = 0; da < 2; da++)
        for (int db = 0; db < 2; db++)
            for (int dc = 0; dc < 2; dc++) {
                const float share = (da ? ta : 1 - ta) * (db ? tb : 1 - tb) * (dc ? tc : 1 - tc);
                if (share == 0)
                    continue;
                const index_t at = ((a + da) * args.coarse_shape[1] + b + db) * args.coarse_shape[2] + c + dc;
                const float value = args.coarse[at];
                if (args.coarse_within[at] == inside) {
                    total += share * value;
                    weight += share;
                } else if (weight == 0) {
                    const float own = args.charged[wide_place(args.coarse_shape, a + da, b + db, c + dc)];
                    other += share * (inside ? value - own : value + own);
                }
            }
    return weight > 0 ? total / weight : other;
}

// Write the coarse solution to some planes of a finer lattice, whose node 0 is node `first` of the coarse one.
RANGE_KERNEL(refine_solution, Refinement, begin, end)
{
    const index_t ny = args.shape[1], nz = args.shape[2], ratio = args.ratio, *n = args.coarse_shape;
    const float scale = 1.0f / (float)ratio;
    // of the four coarse rows around a row: their weighted sum, and how many of their nodes are inside
    float *__restrict__ line = args.line + begin / args.grain * args.cells;
    index_t *__restrict__ inner = args.inner + begin / args.grain * args.cells;
    const index_t known = args.cells < n[2] - args.first[2] ? args.cells : n[2] - args.first[2];
    for (index_t i = begin; i < end; i++) {
        const index_t a = args.first[0] + i / ratio;
        const float ta = (float)(i % ratio) * scale;
        for (index_t j = 0; j < ny; j++) {
            const index_t b = args.first[1] + j / ratio;
            const float tb = (float)(j % ratio) * scale;
            const float u = (1 - ta) * (1 - tb), v = (1 - ta) * tb, w = ta * (1 - tb), x = ta * tb;
            const index_t last_a = a + (ta > 0), last_b = b + (tb > 0);
            const index_t rows[4] = {(a * n[1] + b) * n[2] + args.first[2], (a * n[1] + last_b) * n[2] + args.first[2],
                                     (last_a * n[1] + b) * n[2] + args.first[2],
                                     (last_a * n[1] + last_b) * n[2] + args.first[2]};
            const float *r0 = args.coarse + rows[0], *r1 = args.coarse + rows[1], *r2 = args.coarse + rows[2];
            const float *r3 = args.coarse + rows[3];
            for (index_t c = 0; c < known; c++) {
                line[c] = u * r0[c] + v * r1[c] + w * r2[c] + x * r3[c];
                inner[c] = 0;
                for (int r = 0; r < 4; r++)
                    inner[c] += args.coarse_within[rows[r] + c];
            }
            for (index_t k = 0; k < nz; k++) {
                const index_t c = k / ratio, rest = k % ratio, following = c + (rest > 0), at = (i * ny + j) * nz + k;
                const float tc = (float)rest * scale;
                if (inner[c] + inner[following] == (args.within[at] ? 8 : 0))
                    args.out[at] = (1 - tc) * line[c] + tc * line[following];
                else
                    args.out[at] = interpolate_side(args, a, b, args.first[2] + c, ta, tb, tc, args.within[at]);
            }
        }
    }
}

struct FineFlows {
    const double *values;                // (value_shape) the finer solution at coarse nodes that begin at `begin`
    const float *x, *y, *z, *k2;         // (shape) of the coarse equation
    const double *ions;                  // (kinds, 2) valences and shares of the ionic strength, for the full equation
    double *out;                         // (out_shape)
    index_t value_shape[3], shape[3], out_shape[3], begin[3], margin, kinds;
};

// What has to flow into a plane of coarse nodes so that the finer solution fulfils their equation. `margin` layers along
// the faces of the values are left out.
KERNEL(find_fine_flows, FineFlows, i)
{
    const index_t *n = args.value_shape, sx = n[1] * n[2], sy = n[2];
    const index_t cx = args.shape[1] * args.shape[2], cy = args.shape[2];
    for (index_t j = 0; j < args.out_shape[1]; j++)
        for (index_t k = 0; k < args.out_shape[2]; k++) {
            const index_t p = i + args.margin, q = j + args.margin, r = k + args.margin;
            const index_t at = (args.begin[0] + p) * cx + (args.begin[1] + q) * cy + args.begin[2] + r;
            const double *v = args.values + p * sx + q * sy + r, own = *v;
            double total = args.x[at] * (v[sx] - own) + args.x[at - cx] * (v[-sx] - own);
            total += args.y[at] * (v[sy] - own) + args.y[at - cy] * (v[-sy] - own);
            total += args.z[at] * (v[1] - own) + args.z[at - 1] * (v[-1] - own);
            double charge = args.kinds ? 0 : own;
            for (index_t m = 0; m < args.kinds; m++)
                charge -= args.ions[2 * m + 1] / args.ions[2 * m] * exp(fmin(50, -args.ions[2 * m] * own));
            args.out[(i * args.out_shape[1] + j) * args.out_shape[2] + k] = args.k2[at] * charge - total;
        }
}

struct TotalPotential {
    const float *unknown;             // (shape)
    const float *charged;             // potential of the charges, see wide_place
    const bool *within;               // (shape)
    float *out;                       // (out_shape)
    index_t shape[3], out_shape[3], first[3];
    float factor;
};

// The total potential times a factor at a plane of a part of a lattice, which begins at node `first`.
KERNEL(find_potential, TotalPotential, i)
{
    for (index_t j = 0; j < args.out_shape[1]; j++) {
        const index_t row = ((args.first[0] + i) * args.shape[1] + args.first[1] + j) * args.shape[2] + args.first[2];
        const float *__restrict__ unknown = args.unknown + row;
        const float *__restrict__ charged =
            args.charged + wide_place(args.shape, args.first[0] + i, args.first[1] + j, args.first[2]);
        const bool *__restrict__ within = args.within + row;
        float *__restrict__ out = args.out + (i * args.out_shape[1] + j) * args.out_shape[2];
        for (index_t k = 0; k < args.out_shape[2]; k++)
            out[k] = args.factor * (unknown[k] + (within[k] ? charged[k] : 0));
    }
}

struct Comparison {
    const double *values;   // (value_shape) the finer solution at shared nodes, which begin at `first`
    const float *coarse;    // (shape)
    const bool *within;     // (shape) which coarse nodes are inside
    double *sums;           // (planes, 4) squares of potentials and differences at outer nodes next to inner ones, and all
    index_t value_shape[3], shape[3], first[3];
};

KERNEL(compare_solutions, Comparison, i)
{
    const index_t *n = args.shape, *m = args.value_shape, sx = n[1] * n[2], sy = n[2];
    double *sums = args.sums + 4 * i;
    for (index_t j = 0; j < m[1]; j++)
        for (index_t k = 0; k < m[2]; k++) {
            const index_t a = args.first[0] + i, b = args.first[1] + j, c = args.first[2] + k;
            const index_t at = a * sx + b * sy + c;
            const bool *within = args.within + at;
            if (*within)
                continue;
            const double value = args.values[(i * m[1] + j) * m[2] + k], difference = value - args.coarse[at];
            if (within[a ? -sx : 0] || within[a + 1 < n[0] ? sx : 0] || within[b ? -sy : 0]
                || within[b + 1 < n[1] ? sy : 0] || within[c ? -1 : 0] || within[c + 1 < n[2] ? 1 : 0]) {
                sums[0] += value * value;
                sums[1] += difference * difference;
            }
            sums[2] += value * value;
            sums[3] += difference * difference;
        }
}

struct CubicSums {
    const double *values, *weights;   // (N, columns), (points, 4)
    const index_t *first;             // (points,) first of the four rows of each point
    double *out;                      // (points, columns)
    index_t columns;
};

KERNEL(sum_four_rows, CubicSums, p)
{
    const double *weights = args.weights + 4 * p;
    for (index_t m = 0; m < args.columns; m++) {
        double total = 0;
        for (int n = 0; n < 4; n++)
            total += weights[n] * args.values[(args.first[p] + n) * args.columns + m];
        args.out[p * args.columns + m] = total;
    }
}

// The first node of the cell of a point, and the point's place in the cell, from 0 to 1 along each axis.
DEVICE void cell_of(const double *point, const double *origin, const double *spacing, const index_t *shape,
                    index_t *cell, double *part)
{
    for (int d = 0; d < 3; d++) {
        const double place = (point[d] - origin[d]) / spacing[d];
        const index_t low = (index_t)floor(place);
        cell[d] = low < 0 ? 0 : low > shape[d] - 2 ? shape[d] - 2 : low;
        part[d] = place - cell[d];
    }
}

struct Reaction {
    const double *points;      // (points, 3)
    const float *unknown;      // (nx, ny, nz) the whole potential outside
    const bool *within;
    const float *charged;      // potential of the charges, see wide_place
    double *out;               // (points,)
    index_t shape[3];
    double origin[3], spacing[3];
};

// The reaction potential at a point.
KERNEL(find_reaction, Reaction, n)
{
    index_t cell[3];
    double part[3], total = 0;
    cell_of(args.points + 3 * n, args.origin, args.spacing, args.shape, cell, part);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 2; k++) {
                const index_t a = cell[0] + i, b = cell[1] + j, c = cell[2] + k;
                const index_t at = (a * args.shape[1] + b) * args.shape[2] + c;
                double value = args.unknown[at];
                if (!args.within[at])  // around charges near the surface
                    value -= args.charged[wide_place(args.shape, a, b, c)];
                total += (i ? part[0] : 1 - part[0]) * (j ? part[1] : 1 - part[1]) * (k ? part[2] : 1 - part[2]) * value;
            }
    args.out[n] = total;
}

struct Spreading {
    const double *points, *charges;
    double *sums;                     // (shape)
    index_t shape[3], count;
    double origin[3], spacing[3];
};

// Add charges to the nodes around them, in proportion to the weights of the nodes in interpolation.
KERNEL(spread_charges, Spreading, all)
{
    for (index_t n = 0; n < args.count; n++) {
        index_t cell[3];
        double part[3];
        cell_of(args.points + 3 * n, args.origin, args.spacing, args.shape, cell, part);
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                for (int k = 0; k < 2; k++)
                    args.sums[((cell[0] + i) * args.shape[1] + cell[1] + j) * args.shape[2] + cell[2] + k] +=
                        args.charges[n] * (i ? part[0] : 1 - part[0]) * (j ? part[1] : 1 - part[1])
                        * (k ? part[2] : 1 - part[2]);
    }
}
#endif
