// The edges that a molecule's surface cuts, the potential of the charges on them, and what flows into their ends.
#include "kernel.h"
#ifndef __CUDACC__

#define CORE 1e-4  // smallest square of the distance of a charge from the line of an edge, A^2, as in engines/jump.py

struct CutCounts {
    const float *distances;   // (shape) to the surface, negative inside
    index_t *numbers;         // (nx ny,)
    index_t shape[3];
};

// Count the edges from the nodes of each row of a plane that the surface cuts.
KERNEL(count_cut_edges, CutCounts, i)
{
    const index_t nx = args.shape[0], ny = args.shape[1], nz = args.shape[2];
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

struct CutEdges {
    const float *distances;           // (shape)
    const float *x, *y, *z;           // (shape) conductances
    const float *phi;                 // (nx + 2, ny + 2, nz + 2) of the charges, with one more node on each side
    const index_t *begins;            // row j of plane i has the edges from begins[i ny + j]
    index_t *inner, *outer;           // results, as in class CutEdges
    double *share, *conductance, *inside;
    float *line;                      // (edges, 4)
    index_t shape[3];
    double own[3];                    // conductances along the axes inside
};

// The edges from the nodes of a plane that the surface cuts.
KERNEL(find_cut_edges, CutEdges, i)
{
    const index_t nx = args.shape[0], ny = args.shape[1], nz = args.shape[2];
    const index_t strides[3] = {ny * nz, nz, 1}, wide[3] = {(ny + 2) * (nz + 2), nz + 2, 1};
    const float *conductances[3] = {args.x, args.y, args.z};
    for (index_t j = 0; j < ny; j++) {
        index_t n = args.begins[i * ny + j];
        if (n == args.begins[i * ny + j + 1])
            continue;
        for (index_t k = 0; k < nz; k++) {
            const index_t at = (i * ny + j) * nz + k, spot = ((i + 1) * (ny + 2) + j + 1) * (nz + 2) + k + 1;
            const float a = args.distances[at];
            const bool exists[3] = {i + 1 < nx, j + 1 < ny, k + 1 < nz};
            for (int axis = 0; axis < 3; axis++) {
                const float b = exists[axis] ? args.distances[at + strides[axis]] : a;
                if ((a < 0) == (b < 0))
                    continue;
                args.inner[n] = a < 0 ? at : at + strides[axis];
                args.outer[n] = a < 0 ? at + strides[axis] : at;
                args.share[n] = (double)fabsf(a < 0 ? a : b) / (double)(fabsf(a) + fabsf(b));
                args.conductance[n] = conductances[axis][at];
                args.inside[n] = args.own[axis];
                for (int m = 0; m < 4; m++)  // from the node before the edge in space
                    args.line[4 * n + m] = args.phi[spot + ((a < 0 ? m : 3 - m) - 1) * wide[axis]];
                n++;
            }
        }
    }
}

struct CutFlows {
    const double *share, *conductance, *inside;   // (edges,)
    const double *known;                          // (4, edges) value, slope, bend and flow of the charges' potential
    double *into_inner, *into_outer;              // (edges,)
    index_t edges;
};

// What flows into the inner and the outer end of an edge.
KERNEL(find_cut_flows, CutFlows, n)
{
    const double t = args.share[n], e = args.conductance[n], eps = args.inside[n];
    const double value = args.known[n], slope = args.known[args.edges + n], bend = args.known[2 * args.edges + n];
    // e times this is what flows less where the potential is a straight line on both sides of the surface, but for the
    // charges' own; outside that bends by the ratio of the permittivities
    const double jump = e * (value - t * slope + 0.5 * (eps / e - t) * (1 - t) * bend) + eps * slope;
    args.into_inner[n] = -jump;
    args.into_outer[n] = jump - eps * args.known[3 * args.edges + n];
}

struct OuterCharges {
    const double *positions, *charges;   // (N, 3), (N,)
    const float *distances;              // (shape)
    index_t *nodes;                      // results, with room for all
    double *chosen;
    index_t *count;                      // (1,)
    index_t shape[3];
    double origin[3], spacing[3];
};

// The nodes in whose cells charges outside are, as places in a flat array, and these charges.
RANGE_KERNEL(find_outer_charges, OuterCharges, first, last)
{
    index_t count = 0;
    for (index_t n = first; n < last; n++) {
        index_t at = 0;
        bool on_lattice = args.charges[n] != 0;
        for (int d = 0; d < 3 && on_lattice; d++) {
            const double place = rint((args.positions[3 * n + d] - args.origin[d]) / args.spacing[d]);
            on_lattice = place >= 0 && place < args.shape[d];
            at = at * args.shape[d] + (index_t)(on_lattice ? place : 0);
        }
        if (on_lattice && args.distances[at] >= 0) {
            args.nodes[count] = at;
            args.chosen[count++] = args.charges[n];
        }
    }
    args.count[0] = count;
}

struct FlowSums {
    const index_t *nodes, *ends;   // (N,) flows into nodes; (planes + 1,) of those into each plane, sorted by planes
    const double *flows;           // (N,)
    double *total;                 // (pieces, ny nz) scratch, 0 at first
    index_t *result;               // (N,) nodes with flows, each once and increasing, in each plane from ends[i] on
    double *sums;                  // (N,)
    index_t *counts;               // (planes,) nodes with flows
    index_t shape[3], grain;
};

// Add up the flows into each node of some planes. Nodes on the faces of the lattice are left out.
RANGE_KERNEL(sum_flows, FlowSums, first, last)
{
    const index_t ny = args.shape[1], nz = args.shape[2], plane = ny * nz;
    double *total = args.total + first / args.grain * plane;
    for (index_t i = first; i < last; i++) {
        const index_t begin = args.ends[i], end = args.ends[i + 1];
        index_t filled = begin;
        for (index_t n = begin; n < end; n++)
            total[args.nodes[n] - i * plane] += args.flows[n];
        if (begin < end && i > 0 && i < args.shape[0] - 1)
            for (index_t j = 1; j < ny - 1; j++)
                for (index_t k = j * nz + 1; k < j * nz + nz - 1; k++)
                    if (total[k] != 0) {
                        args.result[filled] = i * plane + k;
                        args.sums[filled++] = total[k];
                    }
        args.counts[i] = filled - begin;
        for (index_t n = begin; n < end; n++)
            total[args.nodes[n] - i * plane] = 0;
    }
}

struct ChargeCubes {
    const double *positions, *charges;   // (N, 3), (N,)
    index_t *starts;                     // (cubes + 1,) where each cube begins; 0 at first
    index_t *places, *numbers;           // (cubes,), (N,) scratch
    double *out;                         // (N, 4) positions and charges that are not 0, sorted by cubes
    index_t counts[3], count, cubes;
    double low[3], side;
};

KERNEL(sort_charges, ChargeCubes, all)
{
    for (index_t n = 0; n < args.count; n++) {
        index_t cube[3];
        for (int d = 0; d < 3; d++)
            cube[d] = (index_t)((args.positions[3 * n + d] - args.low[d]) / args.side);
        args.numbers[n] = (cube[0] * args.counts[1] + cube[1]) * args.counts[2] + cube[2];
        args.starts[args.numbers[n] + 1] += args.charges[n] != 0;
    }
    for (index_t cube = 0; cube < args.cubes; cube++) {
        args.starts[cube + 1] += args.starts[cube];
        args.places[cube] = args.starts[cube];
    }
    for (index_t n = 0; n < args.count; n++) {
        if (args.charges[n] == 0)
            continue;
        double *out = args.out + 4 * args.places[args.numbers[n]]++;
        for (int d = 0; d < 3; d++)
            out[d] = args.positions[3 * n + d];
        out[3] = args.charges[n];
    }
}

struct EdgePotential {
    const index_t *inner, *outer;     // (edges,), of struct EdgeSum in engines/jump.py
    const double *share;
    const float *line;                // (edges, 4)
    const double *charges;            // (N, 4) positions and charges, whose potential is charge / r, sorted by cubes
    const index_t *starts;            // charges of cube c begin at starts[c]
    double *out;                      // (4, edges)
    index_t shape[3], counts[3], edges;
    double origin[3], spacing[3], low[3];
    double side, near;                // of cubes; largest distance of charges with closed forms, at most `side`
};

// Value, slope, bend and flow of a potential, see engines/jump.py, along().
struct Along {
    double value, slope, bend, flow;
};

DEVICE Along interpolate_along(double a, double b, double c, double d, double t)
{
    const double third = d - 3 * c + 3 * b - a, second = 0.5 * (a - b - c + d), middle = t - 0.5;
    const double first = c - b - third / 24, mean = 0.5 * (b + c) - second / 8;
    return {mean + middle * (first + middle * (second / 2 + middle * third / 6)),
            first + middle * (second + middle * third / 2), second + middle * third, c - b - third / 12};
}

// The solid angle of a rectangle seen from a point: its centre is at (height, y, z), negative if height < 0. It is a sum
// of four arc tangents, one for each corner, computed as the angle of a product of complex numbers.
DEVICE double solid_angle(double height, double y, double z, double half_y, double half_z)
{
    double real = 1, imaginary = 0;
    for (int a = -1; a < 2; a += 2)
        for (int b = -1; b < 2; b += 2) {
            const double p = y + a * half_y, q = z + b * half_z;
            const double r = fabs(height) * sqrt(p * p + q * q + height * height), i = a * b * p * q;
            const double before = real;
            real = before * r - imaginary * i;
            imaginary = before * i + imaginary * r;
        }
    const double size = fabs(real) + fabs(imaginary);
    double angle = atan2(imaginary / size, real / size);
    // from 0 to 2 pi under the rectangle; elsewhere at most pi, and rounding may make it slightly negative
    if (angle < (fabs(y) < half_y && fabs(z) < half_z ? 0.0 : -1.0))
        angle += 2 * M_PI;
    return height > 0 ? angle : -angle;
}

KERNEL(find_potential_on_edge, EdgePotential, e)
{
    const index_t strides[3] = {args.shape[1] * args.shape[2], args.shape[2], 1};
    const index_t inner = args.inner[e], step = args.outer[e] - inner, size = llabs(step);
    const int axis = size == strides[0] ? 0 : size == strides[1] ? 1 : 2, second = (axis + 1) % 3, third = (axis + 2) % 3;
    const double sign = step > 0 ? 1 : -1, h = args.spacing[axis], t = args.share[e];
    const double sides[2] = {args.spacing[second], args.spacing[third]};
    const float *line = args.line + 4 * e;
    Along sum = interpolate_along(line[0], line[1], line[2], line[3], t);
    const index_t node[3] = {inner / strides[0], inner / strides[1] % args.shape[1], inner % args.shape[2]};
    double at[3];
    index_t begin[3], end[3];
    for (int d = 0; d < 3; d++) {
        at[d] = args.origin[d] + args.spacing[d] * node[d];
        const index_t cube = (index_t)floor((at[d] - args.low[d]) / args.side);
        begin[d] = cube > 1 ? cube - 1 : 0;
        end[d] = cube + 2 < args.counts[d] ? cube + 2 : args.counts[d];
    }
    for (index_t i = begin[0]; i < end[0] && begin[2] < end[2]; i++)
        for (index_t j = begin[1]; j < end[1]; j++) {
            const index_t row = (i * args.counts[1] + j) * args.counts[2];
            for (index_t n = args.starts[row + begin[2]]; n < args.starts[row + end[2]]; n++) {
                const double *charge = args.charges + 4 * n;
                const double shift = sign * (at[axis] - charge[axis]);
                const double y = at[second] - charge[second], z = at[third] - charge[third];
                double off = y * y + z * z, middle = shift + h / 2;
                if (off + shift * shift > args.near * args.near)
                    continue;
                off = fmax(off, CORE);
                const double before = shift - h, after = shift + h, beyond = shift + 2 * h, x = shift + t * h;
                const Along fitted = interpolate_along(1 / sqrt(before * before + off), 1 / sqrt(shift * shift + off),
                                                       1 / sqrt(after * after + off), 1 / sqrt(beyond * beyond + off), t);
                const double inverse = 1 / sqrt(x * x + off), cubed = inverse * inverse * inverse;
                if (middle == 0)  // a charge exactly in the face counts as inside
                    middle = 1e-9;
                const double angle = solid_angle(middle, y, z, sides[0] / 2, sides[1] / 2);
                sum.value += charge[3] * (inverse - fitted.value);
                sum.slope += charge[3] * (-x * h * cubed - fitted.slope);
                sum.bend += charge[3] * (h * h * (3 * x * x * cubed * inverse * inverse - cubed) - fitted.bend);
                sum.flow += charge[3] * (-angle * h / (sides[0] * sides[1]) - fitted.flow);
            }
        }
    args.out[e] = sum.value;
    args.out[args.edges + e] = sum.slope;
    args.out[2 * args.edges + e] = sum.bend;
    args.out[3 * args.edges + e] = sum.flow;
}
#endif
