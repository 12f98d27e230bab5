// The edges that a molecule's surface cuts, the potential of the charges on them, and what flows into their ends.
#include "kernel.h"

// The smallest square of the distance of a charge from the line of an edge, A^2.
#define CORE 1e-4f

// Terms of near charges are in float. Distances are in double, so that the same charges are near on all engines and
// large coordinates cost no digits.
#ifdef __CUDACC__
DEVICE float find_angle(float y, float x) { return atan2f(y, x); }
#else
#define NEAR_AT_ONCE 64  // near charges of an edge that are summed at a time

DEVICE float inverse_root(float x) { return 1 / sqrtf(x); }

// atan2 without branches, for vectors of them: a polynomial in the square of the ratio, of least error (1e-8).
DEVICE float find_angle(float y, float x)
{
    const float up = fabsf(y), across = fabsf(x);
    const float ratio = (up < across ? up : across) / ((up < across ? across : up) + 1e-30f), square = ratio * ratio;
    float sum = 0.0028340643f;
    sum = sum * square - 0.0160050305f;
    sum = sum * square + 0.0425876075f;
    sum = sum * square - 0.0749544544f;
    sum = sum * square + 0.106367541f;
    sum = sum * square - 0.142025705f;
    sum = sum * square + 0.199924836f;
    sum = sum * square - 0.333330668f;
    float angle = ratio + ratio * square * sum;
    angle = up > across ? 1.57079633f - angle : angle;
    angle = x < 0 ? 3.14159265f - angle : angle;
    return y < 0 ? -angle : angle;
}
#endif

struct EdgePotential {
    const index_t *inner, *outer;     // (edges,)
    const double *share;
    const float *phi;                 // (nx + 2, ny + 2, nz + 2) of the charges, with one more node on each side
    const double *charges;            // (N, 4) positions and charges, whose potential is charge / r, sorted by cubes
    const index_t *starts;            // charges of cube c begin at starts[c]
    double *out;                      // (4, edges)
    index_t shape[3], counts[3], edges;
    double origin[3], spacing[3], low[3];
    double side, near;                // of cubes; largest distance of charges with closed forms, at most `side`
};

// Value, slope, bend and flow of a potential, see jump.py, along().
template <class T> struct Along {
    T value, slope, bend, flow;
};

template <class T> DEVICE Along<T> interpolate_along(T a, T b, T c, T d, T t)
{
    const T third = d - 3 * c + 3 * b - a, second = (T)0.5 * (a - b - c + d), middle = t - (T)0.5;
    const T first = c - b - third / 24, mean = (T)0.5 * (b + c) - second / 8;
    return {mean + middle * (first + middle * (second / 2 + middle * third / 6)),
            first + middle * (second + middle * third / 2), second + middle * third, c - b - third / 12};
}

// Multiply a complex number by that of the angle of a corner of a rectangle at a height.
DEVICE void turn_by_corner(float &real, float &imaginary, float height, float p, float q, float sign)
{
    const float r = height * sqrtf(p * p + q * q + height * height), i = sign * p * q, before = real;
    real = before * r - imaginary * i;
    imaginary = before * i + imaginary * r;
}

// The solid angle of a rectangle, whose sides are twice 1 and twice half_z, seen from a point: its centre is at
// (height, y, z), negative if height < 0. It is a sum of four arc tangents, one for each corner, computed as the angle of
// a product of complex numbers.
DEVICE float solid_angle(float height, float y, float z, float half_z)
{
    float real = 1, imaginary = 0;
    turn_by_corner(real, imaginary, fabsf(height), y - 1, z - half_z, 1);
    turn_by_corner(real, imaginary, fabsf(height), y - 1, z + half_z, -1);
    turn_by_corner(real, imaginary, fabsf(height), y + 1, z - half_z, -1);
    turn_by_corner(real, imaginary, fabsf(height), y + 1, z + half_z, 1);
    float angle = find_angle(imaginary, real);
    // from 0 to 2 pi under the rectangle; elsewhere at most pi, and rounding may make it slightly negative
    const float least = (fabsf(y) < 1) & (fabsf(z) < half_z) ? 0.0f : -1.0f;
    angle += angle < least ? 6.28318531f : 0.0f;
    return height > 0 ? angle : -angle;
}

DEVICE double pick(const double *of, int axis) { return axis == 0 ? of[0] : axis == 1 ? of[1] : of[2]; }

// An edge: its length, the part of it inside, and half of the sides of the face across it.
struct Edge {
    float h, t, half_y, half_z;
};

// What a charge of 1 gives exactly, less what interpolation has of it; it is at (-shift, -y, -z) from the inner node, with
// x along the edge.
DEVICE Along<float> find_rest(const Edge &edge, float shift, float y, float z)
{
    const float h = edge.h, square = y * y + z * z, off = square > CORE ? square : CORE, unit = 1 / edge.half_y;
    const float before = shift - h, after = shift + h, beyond = after + h, x = shift + edge.t * h;
    const Along<float> fitted = interpolate_along<float>(
        inverse_root(before * before + off), inverse_root(shift * shift + off), inverse_root(after * after + off),
        inverse_root(beyond * beyond + off), edge.t);
    const float inverse = inverse_root(x * x + off), squared = inverse * inverse, cubed = squared * inverse;
    // a charge exactly in the face counts as inside
    const float middle = shift + h / 2 == 0 ? 1e-9f : shift + h / 2;
    const float angle = solid_angle(middle * unit, y * unit, z * unit, edge.half_z * unit);
    return {inverse - fitted.value, -x * h * cubed - fitted.slope,
            h * h * (3 * x * x * squared - 1) * cubed - fitted.bend,
            -angle * h / (4 * edge.half_y * edge.half_z) - fitted.flow};
}

#ifdef __CUDACC__
DEVICE void add_rest(Along<float> &sum, float charge, const Along<float> &rest)
{
    sum.value += charge * rest.value;
    sum.slope += charge * rest.slope;
    sum.bend += charge * rest.bend;
    sum.flow += charge * rest.flow;
}
#else
// Near charges of an edge, which are summed together.
struct Near {
    float shift[NEAR_AT_ONCE], y[NEAR_AT_ONCE], z[NEAR_AT_ONCE], charge[NEAR_AT_ONCE];
};

static void add_near(Along<float> &sum, const Edge edge, const Near &near, int count)
{
    float value = 0, slope = 0, bend = 0, flow = 0;
#pragma omp simd reduction(+ : value, slope, bend, flow)
    for (int n = 0; n < count; n++) {
        const Along<float> rest = find_rest(edge, near.shift[n], near.y[n], near.z[n]);
        value += near.charge[n] * rest.value;
        slope += near.charge[n] * rest.slope;
        bend += near.charge[n] * rest.bend;
        flow += near.charge[n] * rest.flow;
    }
    sum = {sum.value + value, sum.slope + slope, sum.bend + bend, sum.flow + flow};
}
#endif

KERNEL(find_potential_on_edge, EdgePotential, e)
{
    const index_t row = args.shape[2], plane = args.shape[1] * row;
    const index_t inner = args.inner[e], step = args.outer[e] - inner, size = step < 0 ? -step : step;
    const int axis = size == plane ? 0 : size == row ? 1 : 2, second = (axis + 1) % 3, third = (axis + 2) % 3;
    const double sign = step > 0 ? 1 : -1;
    const Edge edge = {(float)pick(args.spacing, axis), (float)args.share[e], (float)(pick(args.spacing, second) / 2),
                       (float)(pick(args.spacing, third) / 2)};
    const int node[3] = {(int)(inner / plane), (int)(inner / row % args.shape[1]), (int)(inner % row)};
    const index_t wide_row = row + 2, wide_plane = (args.shape[1] + 2) * wide_row;
    const index_t along = (step > 0 ? 1 : -1) * (axis == 0 ? wide_plane : axis == 1 ? wide_row : 1);
    const float *line = args.phi + (node[0] + 1) * wide_plane + (node[1] + 1) * wide_row + node[2] + 1;
    double at[3];
    int begin[3], end[3];
    for (int d = 0; d < 3; d++) {
        at[d] = args.origin[d] + args.spacing[d] * node[d];
        const int cube = (int)floor((at[d] - args.low[d]) / args.side), count = (int)args.counts[d];
        begin[d] = cube > 1 ? cube - 1 : 0;
        end[d] = cube + 2 < count ? cube + 2 : count;
    }
    Along<float> sum = {0, 0, 0, 0};
#ifndef __CUDACC__
    Near near;
    int found = 0;
#endif
    for (int i = begin[0]; i < end[0] && begin[2] < end[2]; i++)
        for (int j = begin[1]; j < end[1]; j++) {
            const index_t first = (i * args.counts[1] + j) * args.counts[2];
            for (index_t n = args.starts[first + begin[2]]; n < args.starts[first + end[2]]; n++) {
                const double *charge = args.charges + 4 * n;
                const double apart[3] = {at[0] - charge[0], at[1] - charge[1], at[2] - charge[2]};
                const bool counts = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2]
                    <= args.near * args.near;
                const float shift = (float)(sign * pick(apart, axis)), y = (float)pick(apart, second);
                const float z = (float)pick(apart, third), q = (float)charge[3];
#ifdef __CUDACC__
                if (counts)
                    add_rest(sum, q, find_rest(edge, shift, y, z));
#else
                near.shift[found] = shift;
                near.y[found] = y;
                near.z[found] = z;
                near.charge[found] = q;
                found += counts;
                if (found == NEAR_AT_ONCE) {
                    add_near(sum, edge, near, found);
                    found = 0;
                }
#endif
            }
        }
#ifndef __CUDACC__
    add_near(sum, edge, near, found);
#endif
    const Along<double> whole
        = interpolate_along<double>(line[-along], line[0], line[along], line[2 * along], args.share[e]);
    args.out[e] = whole.value + sum.value;
    args.out[args.edges + e] = whole.slope + sum.slope;
    args.out[2 * args.edges + e] = whole.bend + sum.bend;
    args.out[3 * args.edges + e] = whole.flow + sum.flow;
}

struct CutCounts {
    const float *distances;   // (shape) to the surface, negative inside
    index_t *numbers;         // (nx ny,)
    index_t shape[3];
};

struct CutEdges {
    const float *distances;           // (shape)
    const float *x, *y, *z;           // (shape) conductances
    const index_t *begins;            // row j of plane i has the edges from begins[i ny + j]
    index_t *inner, *outer;           // results, as in class CutEdges
    double *share, *conductance, *inside;
    index_t shape[3];
    double own[3];                    // conductances along the axes inside
};

// Whether the surface cuts the edges from a node along x, y and z, as bits 0, 1 and 2.
DEVICE int find_cuts(const float *distances, const index_t *shape, index_t i, index_t j, index_t k)
{
    const float *here = distances + (i * shape[1] + j) * shape[2] + k;
    const bool inside = *here < 0;
    return (i + 1 < shape[0] && inside != (here[shape[1] * shape[2]] < 0))
        | (j + 1 < shape[1] && inside != (here[shape[2]] < 0)) << 1 | (k + 1 < shape[2] && inside != (here[1] < 0)) << 2;
}

// Write the edge along an axis from a node to place n of the results.
DEVICE void write_cut(const CutEdges &args, index_t i, index_t j, index_t k, int axis, index_t n)
{
    const index_t ny = args.shape[1], nz = args.shape[2], at = (i * ny + j) * nz + k;
    const index_t stride = axis == 0 ? ny * nz : axis == 1 ? nz : 1;
    const float a = args.distances[at], b = args.distances[at + stride];
    args.inner[n] = a < 0 ? at : at + stride;
    args.outer[n] = a < 0 ? at + stride : at;
    args.share[n] = (double)fabsf(a < 0 ? a : b) / (double)(fabsf(a) + fabsf(b));
    args.conductance[n] = (axis == 0 ? args.x : axis == 1 ? args.y : args.z)[at];
    args.inside[n] = pick(args.own, axis);
}

#ifdef __CUDACC__

#define WARP 32

// A warp counts the edges from the nodes of a row that the surface cuts.
BLOCK_KERNEL(count_cut_edges, CutCounts)
{
    const index_t row = (blockIdx.x * (index_t)blockDim.x + threadIdx.x) / WARP;
    if (row * WARP >= count)
        return;
    const index_t i = row / args.shape[1], j = row % args.shape[1];
    int number = 0;
    for (index_t k = threadIdx.x % WARP; k < args.shape[2]; k += WARP)
        number += __popc(find_cuts(args.distances, args.shape, i, j, k));
    for (int half = WARP / 2; half > 0; half /= 2)
        number += __shfl_xor_sync(0xffffffff, number, half);
    if (threadIdx.x % WARP == 0)
        args.numbers[row] = number;
}

// The edges of a row, in the order of their nodes.
BLOCK_KERNEL(find_cut_edges, CutEdges)
{
    const index_t row = (blockIdx.x * (index_t)blockDim.x + threadIdx.x) / WARP;
    if (row * WARP >= count || args.begins[row] == args.begins[row + 1])
        return;
    const index_t i = row / args.shape[1], j = row % args.shape[1];
    const unsigned lane = threadIdx.x % WARP, before = (1u << lane) - 1;
    index_t n = args.begins[row];
    for (index_t first = 0; first < args.shape[2]; first += WARP) {
        const int cuts = first + lane < args.shape[2] ? find_cuts(args.distances, args.shape, i, j, first + lane) : 0;
        const unsigned x = __ballot_sync(0xffffffff, cuts & 1), y = __ballot_sync(0xffffffff, cuts & 2);
        const unsigned z = __ballot_sync(0xffffffff, cuts & 4);
        index_t own = n + __popc(x & before) + __popc(y & before) + __popc(z & before);
        for (int axis = 0; axis < 3; axis++)
            if (cuts >> axis & 1)
                write_cut(args, i, j, first + lane, axis, own++);
        n += __popc(x) + __popc(y) + __popc(z);
    }
}

#else

// Count the edges from the nodes of each row of some planes that the surface cuts.
RANGE_KERNEL(count_cut_edges, CutCounts, first, last)
{
    const index_t nx = args.shape[0], ny = args.shape[1], nz = args.shape[2];
    for (index_t i = first; i < last; i++)
        for (index_t j = 0; j < ny; j++) {
            const float *here = args.distances + (i * ny + j) * nz;
            const float *next_plane = i + 1 < nx ? here + ny * nz : here, *next_row = j + 1 < ny ? here + nz : here;
            int count = 0;
            for (index_t k = 0; k < nz; k++)
                count += ((here[k] < 0) != (next_plane[k] < 0)) + ((here[k] < 0) != (next_row[k] < 0));
            for (index_t k = 0; k < nz - 1; k++)
                count += (here[k] < 0) != (here[k + 1] < 0);
            args.numbers[i * ny + j] = count;
        }
}

RANGE_KERNEL(find_cut_edges, CutEdges, first, last)
{
    const index_t ny = args.shape[1], nz = args.shape[2];
    for (index_t i = first; i < last; i++)
        for (index_t j = 0; j < ny; j++) {
            index_t n = args.begins[i * ny + j];
            if (n == args.begins[i * ny + j + 1])
                continue;
            for (index_t k = 0; k < nz; k++) {
                const int cuts = find_cuts(args.distances, args.shape, i, j, k);
                for (int axis = 0; cuts && axis < 3; axis++)
                    if (cuts >> axis & 1)
                        write_cut(args, i, j, k, axis, n++);
            }
        }
}
#endif

struct CutFlows {
    const index_t *inner, *outer;                 // (edges,)
    const double *share, *conductance, *inside;   // (edges,)
    const double *known;                          // (4, edges) value, slope, bend and flow of the charges' potential
    index_t *sums;                                // flows into nodes, in units
    index_t edges;
    double units;
};

// Add what flows into the inner and the outer end of an edge, as whole numbers, whose sum does not depend on the order.
KERNEL(add_cut_flows, CutFlows, n)
{
    const double t = args.share[n], e = args.conductance[n], eps = args.inside[n];
    const double value = args.known[n], slope = args.known[args.edges + n], bend = args.known[2 * args.edges + n];
    // e times this is what flows less where the potential is a straight line on both sides of the surface, but for the
    // charges' own; outside that bends by the ratio of the permittivities
    const double jump = e * (value - t * slope + 0.5 * (eps / e - t) * (1 - t) * bend) + eps * slope;
    add_atomically(args.sums + args.inner[n], (index_t)llrint(-jump * args.units));
    add_atomically(args.sums + args.outer[n], (index_t)llrint((jump - eps * args.known[3 * args.edges + n]) * args.units));
}

struct OuterCharges {
    const double *positions, *charges;   // (N, 3), (N,)
    const float *distances;              // (shape)
    index_t *sums;                       // (shape) flows into nodes, in units
    index_t shape[3];
    double origin[3], spacing[3], units;
};

// Add what flows from a charge to the node in whose cell it is, if that is outside.
KERNEL(add_outer_charges, OuterCharges, n)
{
    index_t at = 0;
    for (int d = 0; d < 3; d++) {
        const double place = rint((args.positions[3 * n + d] - args.origin[d]) / args.spacing[d]);
        if (!(place >= 0 && place < args.shape[d]))
            return;
        at = at * args.shape[d] + (index_t)place;
    }
    if (args.distances[at] >= 0)
        add_atomically(args.sums + at, (index_t)llrint(args.charges[n] * args.units));
}

struct ListedFlows {
    const index_t *nodes;   // (N,)
    const double *flows;    // (N,)
    index_t *sums;
    double units;
};

KERNEL(add_listed_flows, ListedFlows, n)
{
    add_atomically(args.sums + args.nodes[n], (index_t)llrint(args.flows[n] * args.units));
}

struct Totals {
    const index_t *sums;   // (shape) in units
    float *sources;
    index_t shape[3];
    double units;
};

// Nodes on the faces of the lattice have their potential, and no sources.
NODE_KERNEL(convert_flows, Totals, shape, i, j, k)
{
    const index_t *n = args.shape, at = (i * n[1] + j) * n[2] + k;
    const bool inner = i > 0 && j > 0 && k > 0 && i < n[0] - 1 && j < n[1] - 1 && k < n[2] - 1;
    args.sources[at] = inner ? (float)((double)args.sums[at] / args.units) : 0;
}
