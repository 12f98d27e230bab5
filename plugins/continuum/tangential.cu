// The flow along a molecule's surface next to the nodes of the lattice.
#include "kernel.h"

#define TERMS 9     // coefficients of a polynomial: of 1, x, y, z, x y, y z, z x, x^2 - y^2 and 2 z^2 - x^2 - y^2
#define SEGMENT 62  // nodes of a row whose neighbours are counted together

// Nodes whose polynomials are fitted together, so that loops over them are vector code; arrays in registers on a GPU.
#ifdef __CUDACC__
#define LANES 1
#define EACH_LANE
#define UNROLL _Pragma("unroll")
#else
#define LANES 64
#define EACH_LANE _Pragma("omp simd")
#define UNROLL
#endif

struct NearSurface {
    const bool *within;        // (shape)
    const float *distances;    // (shape)
    const index_t *begins;     // (nx ny + 1, 2) where rows begin in both lists; without it, nodes are only counted
    int *numbers;              // (nx ny, 2) of both in each row
    index_t *nodes, *fitted;   // results: nodes next to the surface, and those of them that have polynomials
    int *rows;                 // (shape) set to one plus the place of each node in `nodes`
    int *owners;               // of each: one plus its place in `fitted`, -1 of other outer nodes, 0 of inner nodes
    index_t shape[3], margin;
    double reach;
};

// The nodes of a row that have inner and outer nodes among their 26 neighbours and themselves; and those of them that
// are outside, within `reach` of the surface. Those in the last layer of the margin have no polynomials, but edges may
// end there.
KERNEL(find_near_surface, NearSurface, row)
{
    const index_t nx = args.shape[0], ny = args.shape[1], nz = args.shape[2], end = args.margin - 1;
    const index_t i = row / ny, j = row % ny;
    const index_t last = i < end || j < end || i >= nx - end || j >= ny - end ? 0 : nz - end;
    const bool central = i > end && j > end && i < nx - end - 1 && j < ny - end - 1;
    index_t count = 0, fitted = 0;
    if (args.begins) {
        count = args.begins[2 * row];
        fitted = args.begins[2 * row + 1];
        if (count == args.begins[2 * row + 2])
            return;
    }
    for (index_t first = end; first < last; first += SEGMENT) {
        const int length = (int)(last - first < SEGMENT ? last - first : SEGMENT) + 2;
        unsigned char inner[SEGMENT + 2] = {};
        for (index_t a = i - 1; a < i + 2; a++)
            for (index_t b = j - 1; b < j + 2; b++) {
                const unsigned char *from = (const unsigned char *)args.within + (a * ny + b) * nz + first - 1;
                for (int k = 0; k < length; k++)
                    inner[k] += from[k];
            }
        int all = 0;
        for (int k = 0; k < length; k++)
            all += inner[k];
        if (all == 0 || all == 9 * length)
            continue;
        for (int k = 1; k < length - 1; k++) {
            const int near = inner[k - 1] + inner[k] + inner[k + 1];
            if (near == 0 || near == 27)
                continue;
            const index_t z = first + k - 1, node = row * nz + z;
            const bool outer = !args.within[node];
            const bool wanted = outer && central && z > end && z < last - 1 && args.distances[node] < args.reach;
            if (args.begins) {
                args.nodes[count] = node;
                args.rows[node] = (int)count + 1;
                args.owners[count] = wanted ? (int)fitted + 1 : -outer;
                if (wanted)
                    args.fitted[fitted] = node;
            }
            count++;
            fitted += wanted;
        }
    }
    if (!args.begins) {
        args.numbers[2 * row] = (int)count;
        args.numbers[2 * row + 1] = (int)fitted;
    }
}

// Replace values at (x, y, z), each -1, 0 or 1, by their sums times x^p y^q z^r, with powers up to 2.
DEVICE void add_moments(float values[27][LANES])
{
    UNROLL
    for (int step = 1; step < 27; step *= 3)
        UNROLL
        for (int n = 0; n < 27; n++) {
            if (n / step % 3)
                continue;
            EACH_LANE
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
    float *out;                    // (M, TERMS - 1) the coefficients, but for the constant
    index_t strides[3];
    float spacing[3], stiffness[9];  // in units of `unit`, A; regularisation of each coefficient
    float unit;
    int few, enough;               // used nodes up to which coefficients are 0, and from which they are not reduced
};

// Part of a polynomial of the basis: factor x^p y^q z^r.
struct Monomial {
    int polynomial, x, y, z;
    float factor;
};

// The sum that add_moments puts at the powers of a product, with x^3 = x and x^4 = x^2 for -1, 0 and 1.
DEVICE constexpr int moment(int x, int y, int z)
{
    return 9 * (x > 2 ? x - 2 : x) + 3 * (y > 2 ? y - 2 : y) + (z > 2 ? z - 2 : z);
}

// Fit polynomials of degree 2 to the values at the outer nodes among the 27 nodes around some outer nodes. Outer nodes
// behind a wall are not used: those that no path of outer nodes connects with the node in the middle.
DEVICE void fit_some(const Fits &args, index_t begin, index_t last)
{
    constexpr int parts = 12;
    constexpr Monomial basis[parts] = {
        {0, 0, 0, 0, 1}, {1, 1, 0, 0, 1}, {2, 0, 1, 0, 1}, {3, 0, 0, 1, 1}, {4, 1, 1, 0, 1}, {5, 0, 1, 1, 1},
        {6, 1, 0, 1, 1}, {7, 2, 0, 0, 1}, {7, 0, 2, 0, -1}, {8, 0, 0, 2, 2}, {8, 2, 0, 0, -1}, {8, 0, 2, 0, -1}};
    float used[27][LANES], changes[27][LANES], matrix[TERMS * TERMS][LANES], right[TERMS][LANES], inverse[LANES];
    for (int m = 0; m < LANES; m++) {
        const index_t node = args.nodes[begin + m < last ? begin + m : last - 1];
        UNROLL
        for (int n = 0; n < 27; n++) {
            const index_t other = node + (n / 9 - 1) * args.strides[0] + (n / 3 % 3 - 1) * args.strides[1] + n % 3 - 1;
            used[n][m] = args.within[other] ? 0 : 1;
            changes[n][m] = args.values[other] - args.values[node];
        }
    }
    UNROLL
    for (int steps = 1; steps < 4; steps++)
        UNROLL
        for (int n = 0; n < 27; n++) {
            const int x = n / 9 - 1, y = n / 3 % 3 - 1, z = n % 3 - 1;
            if (x * x + y * y + z * z != steps)
                continue;
            // the neighbours that are one step nearer to the middle
            const float *a = used[x ? n - 9 * x : y ? n - 3 * y : n - z];
            const float *b = used[y ? n - 3 * y : z ? n - z : n - 9 * x];
            const float *c = used[z ? n - z : x ? n - 9 * x : n - 3 * y];
            EACH_LANE
            for (int m = 0; m < LANES; m++) {
                const float most = a[m] > b[m] ? a[m] : b[m];
                used[n][m] *= most > c[m] ? most : c[m];
            }
        }
    UNROLL
    for (int n = 0; n < 27; n++)
        EACH_LANE
        for (int m = 0; m < LANES; m++)
            changes[n][m] *= used[n][m];
    add_moments(used);
    add_moments(changes);
    float powers[3][5];
    UNROLL
    for (int d = 0; d < 3; d++) {
        powers[d][0] = 1;
        UNROLL
        for (int n = 1; n < 5; n++)
            powers[d][n] = powers[d][n - 1] * args.spacing[d];
    }
    UNROLL
    for (int i = 0; i < TERMS; i++)
        for (int m = 0; m < LANES; m++) {
            right[i][m] = 0;
            UNROLL
            for (int j = i; j < TERMS; j++)
                matrix[TERMS * i + j][m] = i == j ? args.stiffness[i] : 0;
        }
    UNROLL
    for (int p = 0; p < parts; p++) {
        const Monomial a = basis[p];
        const float *from = changes[moment(a.x, a.y, a.z)];
        const float own = a.factor * powers[0][a.x] * powers[1][a.y] * powers[2][a.z];
        EACH_LANE
        for (int m = 0; m < LANES; m++)
            right[a.polynomial][m] += own * from[m];
        UNROLL
        for (int q = 0; q < parts; q++) {
            const Monomial b = basis[q];
            if (b.polynomial < a.polynomial)  // the upper triangle of a symmetric matrix
                continue;
            float *to = matrix[TERMS * a.polynomial + b.polynomial];
            const float *with = used[moment(a.x + b.x, a.y + b.y, a.z + b.z)];
            const float factor =
                a.factor * b.factor * powers[0][a.x + b.x] * powers[1][a.y + b.y] * powers[2][a.z + b.z];
            EACH_LANE
            for (int m = 0; m < LANES; m++)
                to[m] += factor * with[m];
        }
    }
    UNROLL
    for (int i = 0; i < TERMS; i++) {  // elimination
        for (int m = 0; m < LANES; m++)
            inverse[m] = 1.0f / matrix[i * TERMS + i][m];
        UNROLL
        for (int j = i + 1; j < TERMS; j++) {
            float ratio[LANES];
            for (int m = 0; m < LANES; m++)
                ratio[m] = matrix[i * TERMS + j][m] * inverse[m];
            UNROLL
            for (int k = j; k < TERMS; k++)
                EACH_LANE
                for (int m = 0; m < LANES; m++)
                    matrix[j * TERMS + k][m] -= ratio[m] * matrix[i * TERMS + k][m];
            for (int m = 0; m < LANES; m++)
                right[j][m] -= ratio[m] * right[i][m];
        }
    }
    UNROLL
    for (int i = TERMS - 1; i >= 0; i--) {
        UNROLL
        for (int k = i + 1; k < TERMS; k++)
            EACH_LANE
            for (int m = 0; m < LANES; m++)
                right[i][m] -= matrix[i * TERMS + k][m] * right[k][m];
        for (int m = 0; m < LANES; m++)
            right[i][m] /= matrix[i * TERMS + i][m];
    }
    for (index_t m = 0; m < LANES && begin + m < last; m++) {
        // the first moment is the number of used nodes
        const float weight = (used[0][m] - args.few) / (args.enough - args.few);
        const float slope = (weight < 0 ? 0 : weight > 1 ? 1 : weight) / args.unit;
        UNROLL
        for (int i = 1; i < TERMS; i++)
            args.out[(begin + m) * (TERMS - 1) + i - 1] = right[i][m] * (i < 4 ? slope : slope / args.unit);
    }
}

#ifdef __CUDACC__
BLOCK_KERNEL(fit_polynomials, Fits)
{
    const index_t n = blockIdx.x * (index_t)BLOCK_THREADS + threadIdx.x;
    if (n < count)
        fit_some(args, n, n + 1);
}
#else
RANGE_KERNEL(fit_polynomials, Fits, first, last)
{
    for (index_t begin = first; begin < last; begin += LANES)
        fit_some(args, begin, last);
}
#endif

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
        const double c = fmax(0.0, corners[n]);
        area += n == 1 || n == 2 ? -c * c : c * c;
    }
    return fmin(1.0, fmax(0.0, area / (2 * a * b)));
}

struct Flows {
    const index_t *nodes, *fitted;  // those next to the surface, and those that have polynomials
    const int *rows;                // (lattice) one plus the place in `nodes`, or 0
    int *owners;                    // of each node in `nodes`, as find_near_surface sets them; of inner ones set here
    const float *coefficients;      // (M, TERMS - 1)
    const bool *within;             // (lattice)
    const float *distances;         // (lattice) to the surface
    const double *outside;          // (nz,) permittivity around the molecule at each height
    const bool *pores;              // (lattice) nodes that have the permittivity `water`; may be null
    index_t *sums;                  // of the flows into each of the nodes; 0 at first
    index_t shape[3], strides[3], margin;
    double spacing[3], weights[3];  // A; conductances of an edge of the permittivity 1
    double inside, water, units;    // units of the sums in 1 kT/e
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

// One plus the place in `fitted` of a node's owner, at most 0 without one. The owner is the node if it is outside, else
// its outer neighbour in the direction of the normal there. All faces of an inner node's cell have the same owner, as
// what flows into the cell's part outside flows out again.
DEVICE int find_owner(const Flows &args, index_t node, const double *normal)
{
    const int place = args.rows[node] - 1;
    if (place < 0 || args.owners[place])
        return place < 0 ? 0 : args.owners[place];
    index_t x = normal[0] > 0 ? args.strides[0] : -args.strides[0];
    index_t y = normal[1] > 0 ? args.strides[1] : -args.strides[1];
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
    int owner = -1;
    for (int n = 0; n < 7; n++)
        if (!args.within[node + steps[n]]) {
            const int other = args.rows[node + steps[n]] - 1;
            owner = other < 0 ? -1 : args.owners[other];
            break;
        }
    return args.owners[place] = owner;
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

// Add flows as whole numbers, whose sum does not depend on the order.
DEVICE void add_flow(const Flows &args, index_t into, index_t out_of, double flow)
{
    const index_t units = (index_t)llrint(flow * args.units);
    add_atomically(args.sums + args.rows[into] - 1, units);
    add_atomically(args.sums + args.rows[out_of] - 1, -units);
}

// Add the flows that the edges from a node next to the surface lack.
KERNEL(add_flows, Flows, n)
{
    const index_t p = args.nodes[n], k = p % args.shape[2], margin = args.margin;
    const index_t i = p / args.strides[0], j = p / args.strides[1] % args.shape[1];
    if (i < margin || j < margin || k < margin || i >= args.shape[0] - margin || j >= args.shape[1] - margin
        || k >= args.shape[2] - margin)
        return;
    const double *h = args.spacing;
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
        const int a = find_owner(args, p, here) - 1, b = find_owner(args, q, there) - 1;
        if (a < 0 || b < 0)
            continue;
        // an edge with an outer node in a pore is in one as a whole
        const bool wet = args.pores && ((args.pores[p] && !args.within[p]) || (args.pores[q] && !args.within[q]));
        const double around = wet ? args.water : axis < 2 ? args.outside[k] : 0.5 * (args.outside[k] + args.outside[k + 1]);
        if (a != b && lacks != 0) {
            const int owners[2] = {a, b};
            double gradient[3] = {};
            for (int d = 0; d < 3; d++)  // from p to the point of the surface next to the face
                middle[d] = (d == axis ? 0.5 * h[d] : 0) - distance * normal[d];
            for (int o = 0; o < 2; o++) {
                vector_of(args, args.fitted[owners[o]] - p, shift);
                add_gradient(args.coefficients + owners[o] * (index_t)(TERMS - 1), middle[0] - shift[0],
                             middle[1] - shift[1], middle[2] - shift[2], gradient);
            }
            const double across = gradient[0] * normal[0] + gradient[1] * normal[1] + gradient[2] * normal[2];
            const double along = 0.5 * (gradient[axis] - across * normal[axis]);
            add_flow(args, args.fitted[a], args.fitted[b],
                     args.weights[axis] * (around - args.inside) * h[axis] * lacks * along);
        }
        if (cut) {
            const index_t inner = args.within[p] ? p : q, end = args.within[p] ? q : p, row = args.within[p] ? b : a;
            // the part of the edge that is outside
            const double share = fabsf(args.distances[end]) / (fabsf(args.distances[p]) + fabsf(args.distances[q]));
            double gradient[3] = {};
            for (int d = 0; d < 3; d++)  // from the outer node to the surface
                shift[d] = d == axis ? (end == q ? -share : share) * h[axis] : 0;
            add_gradient(args.coefficients + row * (TERMS - 1), shift[0], shift[1], shift[2], gradient);
            const double across = gradient[0] * normal[0] + gradient[1] * normal[1] + gradient[2] * normal[2];
            const double along = gradient[axis] - across * normal[axis];
            const double own = wet ? args.water : args.outside[end == q && axis == 2 ? k + 1 : k];
            const double conductance = args.weights[axis] * args.inside * own
                / ((1 - share) * own + share * args.inside);
            add_flow(args, inner, end, conductance * (1 - args.inside / around) * shift[axis] * along);
        }
    }
}

struct OwnedFlows {
    const index_t *nodes, *sums;   // (N,) each node once, and what flows into it, in units
    float *sources;
    double units;
};

KERNEL(add_owned_flows, OwnedFlows, n) { args.sources[args.nodes[n]] += (float)(args.sums[n] / args.units); }
