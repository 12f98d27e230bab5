// The flow along a molecule's surface next to the nodes of the lattice.
#include "kernel.h"
#ifndef __CUDACC__
#include "vectors.h"

#define TERMS 9   // coefficients of a polynomial, as in engines/tangential.py
#define LANES 64  // nodes whose polynomials are fitted together, so that loops over them are vector code

struct NearSurface {
    const bool *within;           // (shape)
    const float *distances;       // (shape)
    index_t *nodes, *outer;       // results, with room for the nodes of all planes
    index_t *counts;              // (2,) their numbers
    uint8_t *inner;               // (nz,) scratch
    index_t shape[3], margin;
    double reach;
};

// The nodes of some planes that have inner and outer nodes among their 26 neighbours and themselves; and those of them
// that are outside, within `reach` of the surface. Nodes within `margin` of the faces of the lattice are left out.
RANGE_KERNEL(find_near_surface, NearSurface, first, last)
{
    const index_t nx = args.shape[0], ny = args.shape[1], nz = args.shape[2], margin = args.margin;
    index_t count = 0, outer_count = 0;
    uint8_t *__restrict__ inner = args.inner;
    for (index_t i = first < margin ? margin : first; i < last && i < nx - margin; i++)
        for (index_t j = margin; j < ny - margin; j++) {
            for (index_t k = 0; k < nz; k++)
                inner[k] = 0;
            for (index_t a = i - 1; a < i + 2; a++)
                for (index_t b = j - 1; b < j + 2; b++) {
                    const uint8_t *row = (const uint8_t *)args.within + (a * ny + b) * nz;
                    for (index_t k = 0; k < nz; k++)
                        inner[k] += row[k];
                }
            index_t all = 0;
            for (index_t k = 0; k < nz; k++)
                all += inner[k];
            if (all == 0 || all == 9 * nz)
                continue;
            for (index_t k = margin; k < nz - margin; k++) {
                const int near = inner[k - 1] + inner[k] + inner[k + 1];
                if (near == 0 || near == 27)
                    continue;
                const index_t place = (i * ny + j) * nz + k;
                args.nodes[count++] = place;
                if (!args.within[place] && args.distances[place] < args.reach)
                    args.outer[outer_count++] = place;
            }
        }
    args.counts[0] = count;
    args.counts[1] = outer_count;
}

// Replace values at (x, y, z), each -1, 0 or 1, by their sums times x^p y^q z^r, with powers up to 2.
DEVICE void add_moments(float values[27][LANES])
{
    for (int step = 1; step < 27; step *= 3)
        for (int n = 0; n < 27; n++) {
            if (n / step % 3)
                continue;
#pragma omp simd
            for (int m = 0; m < LANES; m++) {
                const float a = values[n][m], b = values[n + step][m], c = values[n + 2 * step][m];
                values[n][m] = a + b + c;
                values[n + step][m] = c - a;
                values[n + 2 * step][m] = c + a;
            }
        }
}

struct Fits {
    const index_t *nodes;          // (M,) outer nodes
    const bool *within;            // (lattice)
    const float *values;           // (lattice)
    const index_t *order, *nearer; // (27,), (27, 3): the nodes around a node, and neighbours nearer to the middle
    const index_t *terms;          // (term_count, 2) polynomial and monomial; see tangential.py
    const float *factors;
    const index_t *product_terms;  // (product_count, 2)
    const float *product_factors;
    const float *stiffness;        // (TERMS,) regularisation of each coefficient
    const float *scales;           // (TERMS,) of the coefficients in the result
    int *rows;                     // (lattice) set to the index of each node in `nodes`, plus one
    float *out;                    // (M, TERMS - 1) the coefficients, but for the constant
    index_t strides[3], term_count, product_count;
    int few, enough;               // used nodes up to which coefficients are 0, and from which they are not reduced
};

// Fit polynomials of degree 2 to the values at the outer nodes among the 27 nodes around some outer nodes. Outer nodes
// behind a wall are not used: those that no path of outer nodes connects with the node in the middle.
RANGE_KERNEL(fit_polynomials, Fits, first, last)
{
    float used[27][LANES], changes[27][LANES], matrix[TERMS * TERMS][LANES], right[TERMS][LANES];
    float inverse[LANES], ratio[LANES];
    for (index_t begin = first; begin < last; begin += LANES) {
        for (int m = 0; m < LANES; m++) {
            const index_t n = begin + m < last ? begin + m : last - 1, node = args.nodes[n];
            args.rows[node] = (int)n + 1;
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++) {
                    const index_t row = node + (i - 1) * args.strides[0] + (j - 1) * args.strides[1] - 1;
                    for (int k = 0; k < 3; k++) {
                        used[9 * i + 3 * j + k][m] = args.within[row + k] ? 0 : 1;
                        changes[9 * i + 3 * j + k][m] = args.values[row + k] - args.values[node];
                    }
                }
        }
        for (int p = 1; p < 27; p++) {
            const index_t n = args.order[p], *nearer = args.nearer + 3 * n;
            const float *a = used[nearer[0]], *b = used[nearer[1]], *c = used[nearer[2]];
            float *u = used[n];
#pragma omp simd
            for (int m = 0; m < LANES; m++) {
                const float most = a[m] > b[m] ? a[m] : b[m];
                u[m] *= most > c[m] ? most : c[m];
            }
        }
        for (int n = 0; n < 27; n++)
#pragma omp simd
            for (int m = 0; m < LANES; m++)
                changes[n][m] *= used[n][m];
        add_moments(used);
        add_moments(changes);
        for (int i = 0; i < TERMS * TERMS; i++)
            for (int m = 0; m < LANES; m++)
                matrix[i][m] = 0;
        for (int i = 0; i < TERMS; i++)
            for (int m = 0; m < LANES; m++)
                right[i][m] = 0;
        for (index_t p = 0; p < args.term_count; p++) {
            float *to = right[args.terms[2 * p]];
            const float *from = changes[args.terms[2 * p + 1]], factor = args.factors[p];
#pragma omp simd
            for (int m = 0; m < LANES; m++)
                to[m] += factor * from[m];
        }
        for (index_t p = 0; p < args.product_count; p++) {
            float *to = matrix[args.product_terms[2 * p]];
            const float *from = used[args.product_terms[2 * p + 1]], factor = args.product_factors[p];
#pragma omp simd
            for (int m = 0; m < LANES; m++)
                to[m] += factor * from[m];
        }
        // elimination, for the upper triangle of a symmetric matrix
        for (int i = 0; i < TERMS; i++)
            for (int m = 0; m < LANES; m++)
                matrix[i * TERMS + i][m] += args.stiffness[i];
        for (int i = 0; i < TERMS; i++) {
            for (int m = 0; m < LANES; m++)
                inverse[m] = 1.0f / matrix[i * TERMS + i][m];
            for (int j = i + 1; j < TERMS; j++) {
                for (int m = 0; m < LANES; m++)
                    ratio[m] = matrix[i * TERMS + j][m] * inverse[m];
                for (int k = j; k < TERMS; k++)
#pragma omp simd
                    for (int m = 0; m < LANES; m++)
                        matrix[j * TERMS + k][m] -= ratio[m] * matrix[i * TERMS + k][m];
                for (int m = 0; m < LANES; m++)
                    right[j][m] -= ratio[m] * right[i][m];
            }
        }
        for (int i = TERMS - 1; i >= 0; i--) {
            for (int k = i + 1; k < TERMS; k++)
#pragma omp simd
                for (int m = 0; m < LANES; m++)
                    right[i][m] -= matrix[i * TERMS + k][m] * right[k][m];
            for (int m = 0; m < LANES; m++)
                right[i][m] /= matrix[i * TERMS + i][m];
        }
        for (index_t m = 0; m < LANES && begin + m < last; m++) {
            const double weight = (used[0][m] - args.few) / (double)(args.enough - args.few);
            for (int i = 1; i < TERMS; i++)
                args.out[(begin + m) * (TERMS - 1) + i - 1] =
                    right[i][m] * (float)(weight < 0 ? 0 : weight > 1 ? 1 : weight) * args.scales[i];
        }
    }
}

// Add the gradient of a fitted polynomial, of x y, y z, z x, x^2 - y^2 and 2 z^2 - x^2 - y^2 besides x, y and z, at a
// place (A) from its node.
DEVICE void add_gradient(const float *p, double x, double y, double z, double *gradient)
{
    gradient[0] += p[0] + p[3] * y + p[5] * z + 2.0 * (p[6] - p[7]) * x;
    gradient[1] += p[1] + p[3] * x + p[4] * z - 2.0 * (p[6] + p[7]) * y;
    gradient[2] += p[2] + p[4] * y + p[5] * x + 4.0 * p[7] * z;
}

// The fraction of a rectangle where height + u s + v t > 0, with s and t from -1/2 to 1/2.
DEVICE double outer_fraction(double height, double u, double v)
{
    const double a = fmax(fmax(fabs(u), fabs(v)), 1e-9), thin = fmin(fabs(u), fabs(v));
    if (2 * fabs(height) >= a + thin)
        return height > 0;
    const double b = fmax(thin, 1e-9), far = 0.5 * (a + b), near = 0.5 * (a - b);
    const double corners[4] = {height + far, height + near, height - near, height - far};
    double area = 0;
    for (int n = 0; n < 4; n++) {
        const double c = fmax(0, corners[n]);
        area += n == 1 || n == 2 ? -c * c : c * c;
    }
    return fmin(1, fmax(0, area / (2 * a * b)));
}

struct Flows {
    const index_t *nodes, *outer;   // those next to the surface, and those that have polynomials
    int *rows;                      // (lattice) of nodes in `outer` one plus the row in `coefficients`, else 0
    const float *coefficients;      // (M, TERMS - 1)
    const bool *within;             // (lattice)
    const float *distances;         // (lattice) to the surface
    const double *outside;          // (nz,) permittivity around the molecule at each height
    index_t *into, *out_of;         // results, with room for six edges of each node: the nodes that flows enter and leave
    double *flows;
    index_t *count;                 // (1,) of the flows
    index_t strides[3];
    double spacing[3], weights[3];  // A; conductances of an edge of the permittivity 1
    double inside;
};

DEVICE void exchange(double &a, double &b, index_t &x, index_t &y)
{
    const double c = a;
    const index_t z = x;
    a = b;
    b = c;
    x = y;
    y = z;
}

// One plus the row of the polynomial of a node's owner, at most 0 without one. The owner is the node if it is outside,
// else its outer neighbour in the direction of the normal there. All faces of an inner node's cell have the same owner,
// as what flows into the cell's part outside flows out again; its row is kept in `rows`.
DEVICE int find_owner(const Flows &args, index_t node, const double *normal)
{
    if (args.rows[node] || !args.within[node])
        return args.rows[node];
    index_t x = normal[0] > 0 ? args.strides[0] : -args.strides[0], y = normal[1] > 0 ? args.strides[1] : -args.strides[1];
    index_t z = normal[2] > 0 ? args.strides[2] : -args.strides[2];
    double a = fabs(normal[0]), b = fabs(normal[1]), c = fabs(normal[2]);
    // steps along the axes by the size of the normal's components
    if (a < b)
        exchange(a, b, x, y);
    if (a < c)
        exchange(a, c, x, z);
    if (b < c)
        exchange(b, c, y, z);
    const index_t steps[7] = {x, y, z, x + y, x + z, y + z, x + y + z};
    int row = -1;
    for (int n = 0; n < 7; n++)
        if (!args.within[node + steps[n]]) {
            row = args.rows[node + steps[n]];
            break;
        }
    return args.rows[node] = row > 0 ? row : -1;
}

// The differences of the distances across a node, per spacing.
DEVICE void find_rise(const Flows &args, index_t node, double *out)
{
    for (int d = 0; d < 3; d++)
        out[d] = ((double)args.distances[node + args.strides[d]] - args.distances[node - args.strides[d]])
            * (1 / args.spacing[d]);
}

// The vector, A, of an offset in flat arrays to a node at most two steps away along each axis.
DEVICE void vector_of(const Flows &args, index_t offset, double *vector)
{
    for (int d = 0; d < 3; d++) {
        const index_t step = args.strides[d], half = d < 2 ? step / 2 : 0;
        const index_t count = (offset > half) + (offset > half + step) - (offset < -half) - (offset < -half - step);
        offset -= count * step;
        vector[d] = count * args.spacing[d];
    }
}

// The flows that edges between nodes next to the surface lack.
RANGE_KERNEL(find_flows, Flows, first, last)
{
    const index_t heights = args.strides[1];
    const double *h = args.spacing;
    index_t result = 0;
    for (index_t n = first; n < last; n++) {
        const index_t p = args.nodes[n], k = p % heights;
        bool known = false;
        double here[3], there[3], normal[3], middle[3], shift[3];
        for (int axis = 0; axis < 3; axis++) {
            const index_t q = p + args.strides[axis];
            const int u = (axis + 1) % 3, v = (axis + 2) % 3;
            const double distance = 0.5 * ((double)args.distances[p] + args.distances[q]);
            if (4 * distance * distance >= h[u] * h[u] + h[v] * h[v])  // the surface does not meet the face
                continue;
            if (!known)
                find_rise(args, p, here);
            known = true;
            find_rise(args, q, there);
            double length = 0;
            for (int d = 0; d < 3; d++) {
                normal[d] = here[d] + there[d];
                length += normal[d] * normal[d];
            }
            length = 1 / fmax(sqrt(length), 1e-9);
            for (int d = 0; d < 3; d++)
                normal[d] *= length;
            const double lacks = outer_fraction(distance, normal[u] * h[u], normal[v] * h[v])
                - (!args.within[p] && !args.within[q]);
            const bool cut = args.within[p] != args.within[q];
            if (lacks == 0 && !cut)
                continue;
            const index_t i = find_owner(args, p, here) - 1, j = find_owner(args, q, there) - 1;
            if (i < 0 || j < 0)
                continue;
            const double around = axis < 2 ? args.outside[k] : 0.5 * (args.outside[k] + args.outside[k + 1]);
            if (i != j && lacks != 0) {
                const index_t owners[2] = {args.outer[i], args.outer[j]}, rows[2] = {i, j};
                double gradient[3] = {};
                for (int d = 0; d < 3; d++)  // from p to the point of the surface next to the face
                    middle[d] = (d == axis ? 0.5 * h[d] : 0) - distance * normal[d];
                for (int o = 0; o < 2; o++) {
                    vector_of(args, owners[o] - p, shift);
                    add_gradient(args.coefficients + rows[o] * (TERMS - 1), middle[0] - shift[0], middle[1] - shift[1],
                                 middle[2] - shift[2], gradient);
                }
                const double across = gradient[0] * normal[0] + gradient[1] * normal[1] + gradient[2] * normal[2];
                const double along = 0.5 * (gradient[axis] - across * normal[axis]);
                args.into[result] = owners[0];
                args.out_of[result] = owners[1];
                args.flows[result++] = args.weights[axis] * (around - args.inside) * h[axis] * lacks * along;
            }
            if (cut) {
                const index_t inner = args.within[p] ? p : q, end = args.within[p] ? q : p, row = args.within[p] ? j : i;
                // the part of the edge that is outside
                const double share = fabsf(args.distances[end]) / (fabsf(args.distances[p]) + fabsf(args.distances[q]));
                double gradient[3] = {};
                for (int d = 0; d < 3; d++)  // from the outer node to the surface
                    shift[d] = d == axis ? (end == q ? -share : share) * h[axis] : 0;
                add_gradient(args.coefficients + row * (TERMS - 1), shift[0], shift[1], shift[2], gradient);
                const double across = gradient[0] * normal[0] + gradient[1] * normal[1] + gradient[2] * normal[2];
                const double along = gradient[axis] - across * normal[axis];
                const double own = args.outside[end == q && axis == 2 ? k + 1 : k];
                const double conductance = args.weights[axis] * args.inside * own
                    / ((1 - share) * own + share * args.inside);
                args.into[result] = inner;
                args.out_of[result] = end;
                args.flows[result++] = conductance * (1 - args.inside / around) * shift[axis] * along;
            }
        }
    }
    args.count[0] = result;
}
#endif
