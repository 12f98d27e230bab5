// Exchange of solutions between a lattice and a finer one around the molecule, and between nodes and charges.
#include "kernel.h"

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
DEVICE float interpolate_side(const Refinement &args, index_t a, index_t b, index_t c, float ta, float tb, float tc,
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

#ifdef __CUDACC__
NODE_KERNEL(refine_solution, Refinement, shape, i, j, k)
{
    const unsigned ratio = (unsigned)args.ratio, a = (unsigned)i, b = (unsigned)j, c = (unsigned)k;
    const float scale = 1.0f / ratio;
    const index_t at = (i * args.shape[1] + j) * args.shape[2] + k;
    args.out[at] = interpolate_side(args, args.first[0] + a / ratio, args.first[1] + b / ratio,
                                    args.first[2] + c / ratio, (a % ratio) * scale, (b % ratio) * scale,
                                    (c % ratio) * scale, args.within[at]);
}
#else
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
#endif

struct Insertion {
    const float *values;                     // (value_shape)
    float *out;                              // (shape)
    index_t part[3], value_shape[3], value_first[3], shape[3], first[3];
    float factor, shift;
};

// Write values from `value_first` on times a factor, plus a shift, to a part of a lattice, which begins at node `first`.
NODE_KERNEL(insert_part, Insertion, part, i, j, k)
{
    const index_t *from = args.value_first, *first = args.first, *shape = args.shape;
    const float value = args.values[((from[0] + i) * args.value_shape[1] + from[1] + j) * args.value_shape[2] + from[2] + k];
    args.out[((first[0] + i) * shape[1] + first[1] + j) * shape[2] + first[2] + k] = args.factor * value + args.shift;
}

struct FewCharges {
    const double *charges;                   // (count, 4) positions and charges, with the potential charge / r
    float *out;                              // (shape)
    index_t part[3], shape[3], first[3], count;
    double origin[3], spacing[3];            // of the part
    float soft;                              // square of the least distance, A^2
};

// Write the potential of few charges to a part of a lattice, which begins at node `first`.
NODE_KERNEL(sum_few_charges, FewCharges, part, i, j, k)
{
    const double x = args.origin[0] + i * args.spacing[0], y = args.origin[1] + j * args.spacing[1];
    const double z = args.origin[2] + k * args.spacing[2];
    float total = 0;
    for (index_t n = 0; n < args.count; n++) {
        const double *charge = args.charges + 4 * n;
        // differences in double, as large coordinates cost digits
        const float a = (float)(x - charge[0]), b = (float)(y - charge[1]), c = (float)(z - charge[2]);
        total += (float)charge[3] / sqrtf(fmaxf(a * a + b * b + c * c, args.soft));
    }
    args.out[((args.first[0] + i) * args.shape[1] + args.first[1] + j) * args.shape[2] + args.first[2] + k] = total;
}

struct SharedNodes {
    const float *finer;                     // (finer_shape)
    const bool *finer_within, *within;      // (finer_shape), (shape)
    const float *charged;                   // of the coarse lattice, see wide_place
    double *out;                            // (part)
    index_t finer_shape[3], part[3], shape[3], first[3], ratio;
};

// The finer solution at the nodes of a coarse lattice, which begin at `first`; some are on different sides by rounding.
NODE_KERNEL(take_shared_nodes, SharedNodes, part, i, j, k)
{
    const index_t at = (i * args.ratio * args.finer_shape[1] + j * args.ratio) * args.finer_shape[2] + k * args.ratio;
    const index_t a = args.first[0] + i, b = args.first[1] + j, c = args.first[2] + k;
    const bool inner = args.finer_within[at], within = args.within[(a * args.shape[1] + b) * args.shape[2] + c];
    const float own = args.charged[wide_place(args.shape, a, b, c)];
    args.out[(i * args.part[1] + j) * args.part[2] + k] =
        (double)args.finer[at] + (inner == within ? 0 : inner ? own : -own);
}

struct FineFlows {
    const double *values;                // (value_shape) the finer solution at coarse nodes that begin at `begin`
    const float *x, *y, *z, *k2;         // (shape) of the coarse equation
    const float *sources;                // (shape)
    const double *ions;                  // (kinds, 2) valences and shares of the ionic strength, for the full equation
    float *out;                          // (out_shape)
    double *sums;                        // (planes, 2) of these, and of the sources there
    index_t value_shape[3], shape[3], out_shape[3], begin[3], margin, kinds;
};

// What has to flow into a coarse node so that the finer solution fulfils its equation. `margin` layers along the faces
// of the values are left out.
REDUCE_KERNEL(find_fine_flows, FineFlows, out_shape, sums, 2, sum_of, i, j, k)
{
    const index_t *n = args.value_shape, sx = n[1] * n[2], sy = n[2];
    const index_t cx = args.shape[1] * args.shape[2], cy = args.shape[2];
    const index_t p = i + args.margin, q = j + args.margin, r = k + args.margin;
    const index_t at = (args.begin[0] + p) * cx + (args.begin[1] + q) * cy + args.begin[2] + r;
    const double *v = args.values + p * sx + q * sy + r, own = *v;
    double total = args.x[at] * (v[sx] - own) + args.x[at - cx] * (v[-sx] - own);
    total += args.y[at] * (v[sy] - own) + args.y[at - cy] * (v[-sy] - own);
    total += args.z[at] * (v[1] - own) + args.z[at - 1] * (v[-1] - own);
    double charge = args.kinds ? 0 : own;
    for (index_t m = 0; m < args.kinds; m++)
        charge -= args.ions[2 * m + 1] / args.ions[2 * m] * exp(fmin(50.0, -args.ions[2 * m] * own));
    const double flow = args.k2[at] * charge - total;
    args.out[(i * args.out_shape[1] + j) * args.out_shape[2] + k] = (float)flow;
    joined[0] += flow;
    joined[1] += args.sources[at];
}

struct TotalPotential {
    const float *unknown;             // (shape)
    const float *charged;             // potential of the charges, see wide_place
    const bool *within;               // (shape)
    float *out;                       // (out_shape)
    index_t shape[3], out_shape[3], first[3];
    float factor;
};

// The total potential times a factor at a node of a part of a lattice, which begins at node `first`.
NODE_KERNEL(find_potential, TotalPotential, out_shape, i, j, k)
{
    const index_t a = args.first[0] + i, b = args.first[1] + j, c = args.first[2] + k;
    const index_t at = (a * args.shape[1] + b) * args.shape[2] + c;
    const float own = args.charged[wide_place(args.shape, a, b, c)];
    args.out[(i * args.out_shape[1] + j) * args.out_shape[2] + k] =
        args.factor * (args.unknown[at] + (args.within[at] ? own : 0));
}

// Number of neighbours of a node that are inside.
DEVICE int enclosing_nodes(const bool *within, const index_t *shape, index_t a, index_t b, index_t c)
{
    const index_t sx = shape[1] * shape[2], sy = shape[2];
    within += a * sx + b * sy + c;
    return within[a ? -sx : 0] + within[a + 1 < shape[0] ? sx : 0] + within[b ? -sy : 0]
        + within[b + 1 < shape[1] ? sy : 0] + within[c ? -1 : 0] + within[c + 1 < shape[2] ? 1 : 0];
}

struct Comparison {
    const double *values;   // (value_shape) the finer solution at shared nodes, which begin at `first`
    const float *coarse;    // (shape)
    const bool *within;     // (shape) which coarse nodes are inside
    double *sums;           // (planes, 4) squares of potentials and differences at outer nodes next to inner ones, and all
    index_t value_shape[3], shape[3], first[3], most;  // nodes with more inner neighbours than `most` are left out
};

REDUCE_KERNEL(compare_solutions, Comparison, value_shape, sums, 4, sum_of, i, j, k)
{
    const index_t *n = args.shape, *m = args.value_shape;
    const index_t a = args.first[0] + i, b = args.first[1] + j, c = args.first[2] + k, at = (a * n[1] + b) * n[2] + c;
    if (args.within[at])
        return;
    const double value = args.values[(i * m[1] + j) * m[2] + k], difference = value - args.coarse[at];
    const int inner = enclosing_nodes(args.within, n, a, b, c);
    if (inner > args.most)
        return;
    if (inner) {
        joined[0] += value * value;
        joined[1] += difference * difference;
    }
    joined[2] += value * value;
    joined[3] += difference * difference;
}

struct Pockets {
    const float *unknown;   // (shape)
    const bool *within;     // (shape)
    double *sums;           // (planes, 3) squares of potentials at outer nodes next to inner ones, and all; of errors
    index_t shape[3];
    double parts[7];        // relative errors of nodes by the number of their inner neighbours
};

REDUCE_KERNEL(find_pockets, Pockets, shape, sums, 3, sum_of, i, j, k)
{
    const index_t at = (i * args.shape[1] + j) * args.shape[2] + k;
    if (args.within[at])
        return;
    const int inner = enclosing_nodes(args.within, args.shape, i, j, k);
    const double value = args.unknown[at], error = args.parts[inner] * value;
    if (inner)
        joined[0] += value * value;
    joined[1] += value * value;
    joined[2] += error * error;
}

struct IonEnergy {
    const float *unknown, *k2;           // (shape)
    const double *ions;                  // (kinds, 2) valences and shares of the ionic strength
    double *sums;                        // (planes, 3)
    index_t shape[3], covered[3], uncovered[3], kinds;  // nodes from `covered` to `uncovered` are left out
};

// The energy of the ions at a node, see Problem.energy_of_ions.
REDUCE_KERNEL(find_ion_energy, IonEnergy, shape, sums, 3, sum_of, i, j, k)
{
    const index_t at = (i * args.shape[1] + j) * args.shape[2] + k;
    const double k2 = args.k2[at], potential = args.unknown[at];
    if (!(k2 > 0) || (i >= args.covered[0] && i < args.uncovered[0] && j >= args.covered[1] && j < args.uncovered[1]
                      && k >= args.covered[2] && k < args.uncovered[2]))
        return;
    double charge = 0;
    for (index_t m = 0; m < args.kinds; m++) {
        const double valence = args.ions[2 * m], bound = expm1(-valence * potential);
        joined[0] -= k2 * args.ions[2 * m + 1] * (0.5 * potential * bound / valence + bound / (valence * valence));
        charge -= args.ions[2 * m + 1] * expm1(fmin(50.0, -valence * potential)) / valence;
    }
    joined[1] += k2 * (charge - potential) * (charge - potential);
    joined[2] += k2 * charge * charge;
}

struct FacePlanes {
    const float *unknown;              // (shape)
    const bool *within;                // (shape)
    const float *charged;              // potential of the charges, see wide_place
    double *out;                       // nodes of a plane for each of six faces, one after the other
    index_t shape[3], first[6];
    double weights[24];
};

// Where the nodes of face f begin, in an array of those of all six: two across x, two across y and two across z.
DEVICE index_t face_start(const index_t *shape, int face)
{
    const index_t x = shape[1] * shape[2], y = shape[0] * shape[2], z = shape[0] * shape[1];
    return face < 2 ? face * x : face < 4 ? 2 * x + (face - 2) * y : 2 * (x + y) + (face - 4) * z;
}

DEVICE int find_face(const index_t *shape, index_t n)
{
    const int axis = (n >= face_start(shape, 2)) + (n >= face_start(shape, 4));
    return 2 * axis + (n >= face_start(shape, 2 * axis + 1));
}

// The total potential at a node of a plane for a face: a weighted sum over four planes of the lattice, from `first` on.
KERNEL(sum_face_planes, FacePlanes, n)
{
    const int face = find_face(args.shape, n), axis = face / 2;
    const index_t place = n - face_start(args.shape, face), row = args.shape[axis == 2 ? 1 : 2];
    const index_t u = place / row, v = place % row;
    double total = 0;
    for (int m = 0; m < 4; m++) {
        const index_t p = args.first[face] + m;
        const index_t i = axis == 0 ? p : u, j = axis == 0 ? u : axis == 1 ? p : v, k = axis == 2 ? p : v;
        const index_t at = (i * args.shape[1] + j) * args.shape[2] + k;
        const float own = args.within[at] ? args.charged[wide_place(args.shape, i, j, k)] : 0;
        total += args.weights[4 * face + m] * (args.unknown[at] + own);
    }
    args.out[n] = total;
}

struct FaceNodes {
    const double *planes;              // from sum_face_planes
    const index_t *first;              // first of the four coarse nodes of each finer one along x, then y and z
    const double *weights;             // and their weights (4)
    double *out;                       // nodes of six faces of the finer lattice, one after the other
    index_t coarse_shape[3], shape[3];
};

// The potential at a node of a face of a finer lattice.
KERNEL(interpolate_faces, FaceNodes, n)
{
    const int face = find_face(args.shape, n), axis = face / 2;
    const index_t place = n - face_start(args.shape, face), row = args.shape[axis == 2 ? 1 : 2];
    const index_t coarse_row = args.coarse_shape[axis == 2 ? 1 : 2];
    // places in `first` of both coordinates
    const index_t u = place / row + (axis == 0 ? args.shape[0] : 0);
    const index_t v = place % row + args.shape[0] + (axis == 2 ? 0 : args.shape[1]);
    const double *values = args.planes + face_start(args.coarse_shape, face) + args.first[u] * coarse_row + args.first[v];
    double total = 0;
    for (int a = 0; a < 4; a++) {
        double sum = 0;
        for (int b = 0; b < 4; b++)
            sum += args.weights[4 * v + b] * values[a * coarse_row + b];
        total += args.weights[4 * u + a] * sum;
    }
    args.out[n] = total;
}

struct Boundary {
    const double *values;       // total potential at the nodes of six faces, one after the other
    const bool *within;         // (shape)
    const float *charged;       // potential of the charges, see wide_place
    float *unknown;             // (shape)
    index_t shape[3];
};

KERNEL(set_boundary, Boundary, n)
{
    const int face = find_face(args.shape, n), axis = face / 2;
    const index_t place = n - face_start(args.shape, face), row = args.shape[axis == 2 ? 1 : 2];
    const index_t u = place / row, v = place % row, p = face % 2 ? args.shape[axis] - 1 : 0;
    const index_t i = axis == 0 ? p : u, j = axis == 0 ? u : axis == 1 ? p : v, k = axis == 2 ? p : v;
    const index_t at = (i * args.shape[1] + j) * args.shape[2] + k;
    const float own = args.within[at] ? args.charged[wide_place(args.shape, i, j, k)] : 0;
    const bool on_y = j == 0 || j == args.shape[1] - 1, on_z = k == 0 || k == args.shape[2] - 1;
    if (axis == 2 || (!on_z && (axis == 1 || !on_y)))  // a node of several faces has the value of the last one
        args.unknown[at] = (float)(args.values[n] - own);
}

struct Layer {
    const float *unknown, *x, *y, *z;    // the solution and the conductances
    double *points, *charges;            // results (2, count, 3) and (2, count): of outer nodes, then of inner ones
    index_t count, shape[3];
    index_t first[3], last[3], sides[3]; // the outermost nodes of a box, and the numbers of nodes between
    double origin[3], spacing[3], factor;
};

// The charges at both ends of an edge across a face of a box for which the discrete equation has a solution outside of
// the box, and 0 inside.
KERNEL(find_layer, Layer, n)
{
    const int face = find_face(args.sides, n), axis = face / 2;
    const index_t place = n - face_start(args.sides, face), row = args.sides[axis == 2 ? 1 : 2];
    const index_t between[3] = {place / row, axis == 0 ? place / row : place % row, place % row};
    const index_t size = args.shape[1] * args.shape[2], steps[3] = {size, args.shape[2], 1};
    const index_t inwards = face % 2 ? -1 : 1;
    index_t outer = 0;
    for (int d = 0; d < 3; d++) {
        const index_t at = d != axis ? args.first[d] + 1 + between[d] : face % 2 ? args.last[d] : args.first[d];
        outer += at * steps[d];
        for (int end = 0; end < 2; end++)
            args.points[3 * (end * args.count + n) + d]
                = args.origin[d] + args.spacing[d] * (at + (d == axis && end ? inwards : 0));
    }
    const index_t inner = outer + inwards * steps[axis];
    const double flow = args.factor * (axis == 0 ? args.x : axis == 1 ? args.y : args.z)[face % 2 ? inner : outer];
    args.charges[n] = flow * args.unknown[inner];
    args.charges[args.count + n] = -flow * args.unknown[outer];
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
    index_t *sums;                    // (shape) result, of whole numbers, so that their order does not matter
    index_t shape[3];
    double origin[3], spacing[3], unit;
};

// Add a charge to the nodes around it, in proportion to the weights of the nodes in interpolation.
KERNEL(spread_charges, Spreading, n)
{
    index_t cell[3];
    double part[3];
    cell_of(args.points + 3 * n, args.origin, args.spacing, args.shape, cell, part);
    for (int c = 0; c < 8; c++) {
        const int i = c >> 2, j = c >> 1 & 1, k = c & 1;
        const double share = args.charges[n] * (i ? part[0] : 1 - part[0]) * (j ? part[1] : 1 - part[1])
            * (k ? part[2] : 1 - part[2]);
        add_atomically(args.sums + ((cell[0] + i) * args.shape[1] + cell[1] + j) * args.shape[2] + cell[2] + k,
                       (index_t)rint(share / args.unit));
    }
}

#ifndef __CUDACC__
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
#endif
