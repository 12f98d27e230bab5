// The region of a molecule: signed distances of nodes to its surface, and conductances of the edges.
#include "kernel.h"
#ifndef __CUDACC__
#include "vectors.h"

#define MAX_PARTS 512  // largest number of parts of a circle that are outside of other spheres
#define BINS 32        // ranges of distance by which the neighbours of a sphere are sorted
#define MAX_PIECE 0.5  // longest piece of an arc, in radians, that is processed with one box of nodes
#define ARC 16         // numbers that describe an arc, see find_arcs

DEVICE index_t smaller(index_t a, index_t b) { return a < b ? a : b; }
DEVICE index_t larger(index_t a, index_t b) { return a > b ? a : b; }

struct Sorting {
    const double *points;                 // (count, 3)
    index_t *numbers, *ends;              // (count,) and (cubes + 1,) scratch
    index_t *starts, *order, *cubes;      // results, as in class Cubes; starts is 0 at first
    index_t count, cube_count, counts[3];
    double low[3], side;
};

// Sort points by their cubes, row by row.
KERNEL(sort_into_cubes, Sorting, all)
{
    for (index_t n = 0; n < args.count; n++) {
        index_t cube[3];
        for (int d = 0; d < 3; d++)
            cube[d] = (index_t)floor((args.points[3 * n + d] - args.low[d]) / args.side);
        args.numbers[n] = (cube[0] * args.counts[1] + cube[1]) * args.counts[2] + cube[2];
        args.starts[args.numbers[n] + 1]++;
    }
    for (index_t cube = 0; cube < args.cube_count; cube++) {
        args.starts[cube + 1] += args.starts[cube];
        args.ends[cube] = args.starts[cube];
    }
    for (index_t n = 0; n < args.count; n++) {
        const index_t number = args.numbers[n], place = args.ends[number]++, row = number / args.counts[2];
        args.order[place] = n;
        args.cubes[3 * place] = row / args.counts[1];
        args.cubes[3 * place + 1] = row % args.counts[1];
        args.cubes[3 * place + 2] = number % args.counts[2];
    }
}

struct Depths {
    const double *centres, *radii;
    float *depth;         // (shape)
    int *deepest;         // (shape)
    index_t shape[3], spheres;
    double origin[3], spacing[3], reach;
};

// The depth of the nodes of some planes in the sphere where they are deepest, and that sphere. Nodes that are more than
// `reach` outside of every sphere have a depth of -reach, and no sphere.
RANGE_KERNEL(stamp_spheres, Depths, first, last)
{
    const index_t ny = args.shape[1], nz = args.shape[2];
    float *squares = (float *)__builtin_alloca(nz * sizeof(float));
    for (index_t at = first * ny * nz; at < last * ny * nz; at++)
        args.depth[at] = (float)-args.reach;
    for (index_t n = 0; n < args.spheres; n++) {
        const double *centre = args.centres + 3 * n, far = args.radii[n] + args.reach, *h = args.spacing;
        const float radius = (float)args.radii[n];
        const double off[3] = {args.origin[0] - centre[0], args.origin[1] - centre[1], args.origin[2] - centre[2]};
        const index_t begin = larger(first, (index_t)ceil((-far - off[0]) / h[0]));
        const index_t end = smaller(last, (index_t)floor((far - off[0]) / h[0]) + 1);
        if (begin >= end)
            continue;
        const index_t j_begin = larger(0, (index_t)ceil((-far - off[1]) / h[1]));
        const index_t j_end = smaller(ny, (index_t)floor((far - off[1]) / h[1]) + 1);
        const double middle = -off[2] / h[2];
        const index_t k_low = larger(0, (index_t)floor(middle - far / h[2]) - FLOATS);
        const index_t k_high = smaller(nz, (index_t)ceil(middle + far / h[2]) + FLOATS);
        for (index_t k = k_low; k < k_high; k++)
            squares[k - k_low] = (float)((k * h[2] + off[2]) * (k * h[2] + off[2]));
        for (index_t i = begin; i < end; i++) {
            const double x = i * h[0] + off[0];
            for (index_t j = j_begin; j < j_end; j++) {
                const double y = j * h[1] + off[1], left = far * far - x * x - y * y;
                if (left < 0)
                    continue;
                const float square = (float)(x * x + y * y);
                const double half = sqrt(left) / h[2];
                const index_t k_end = smaller(nz, (index_t)floor(middle + half) + 1);
                for (index_t k = larger(0, (index_t)ceil(middle - half)); k < k_end; k += FLOATS) {
                    k = smaller(k, nz - FLOATS);
                    float *__restrict__ depth = args.depth + (i * ny + j) * nz + k;
                    int *__restrict__ deepest = args.deepest + (i * ny + j) * nz + k;
                    const float *__restrict__ along = squares + k - k_low;
#pragma omp simd
                    for (int l = 0; l < FLOATS; l++) {
                        const float here = radius - sqrtf(square + along[l]);
                        deepest[l] = here > depth[l] ? (int)n : deepest[l];
                        depth[l] = here > depth[l] ? here : depth[l];
                    }
                }
            }
        }
    }
}

struct Shares {
    const float *depth;
    float *shares;      // (nodes,)
    float slope, offset;
};

// The fraction of a node's cell that ions can reach, linear in the depth there.
KERNEL(compute_shares, Shares, at)
{
    const float share = args.depth[at] * args.slope + args.offset;
    args.shares[at] = share < 0 ? 0 : share > 1 ? 1 : share;
}

struct Neighbours {
    const double *centres, *radii;   // spheres, sorted by cubes
    const index_t *starts, *cubes;   // cube c has those from starts[c]; the cube of each sphere, (spheres, 3)
    double *squares, *near;          // (3 longest,) scratch: squares of distances, and these less those of contact
    int *chosen;                     // (27 longest,) scratch
    index_t *bins;                   // (27 longest,) scratch
    index_t *numbers;                // (spheres,) numbers of neighbours
    int *out;                        // (room,) the neighbours
    index_t *total;                  // (1,)
    index_t counts[3], room;
    double largest;                  // radius
};

// The spheres that intersect each sphere of a range, nearer ones first: they are sorted by ranges of the square of their
// distance. The cubes' side is at least the largest diameter. Neighbours that do not fit into `out` are only counted.
RANGE_KERNEL(find_neighbours, Neighbours, first, last)
{
    index_t result = 0;
    for (index_t a = first; a < last; a++) {
        const double x = args.centres[3 * a], y = args.centres[3 * a + 1], z = args.centres[3 * a + 2];
        const double radius = args.radii[a], scale = BINS / ((radius + args.largest) * (radius + args.largest));
        const index_t *cube = args.cubes + 3 * a;
        const index_t low = larger(0, cube[2] - 1), high = smaller(args.counts[2], cube[2] + 2);
        index_t ends[BINS + 1] = {}, number = 0;
        for (index_t i = larger(0, cube[0] - 1); i < smaller(args.counts[0], cube[0] + 2); i++)
            for (index_t j = larger(0, cube[1] - 1); j < smaller(args.counts[1], cube[1] + 2); j++) {
                const index_t row = (i * args.counts[1] + j) * args.counts[2], start = args.starts[row + low];
                const index_t count = args.starts[row + high] - start;
                const double *centres = args.centres + 3 * start, *radii = args.radii + start;
                double *__restrict__ squares = args.squares, *__restrict__ near = args.near;
#pragma omp simd
                for (index_t n = 0; n < count; n++) {
                    const double u = centres[3 * n] - x, v = centres[3 * n + 1] - y, w = centres[3 * n + 2] - z;
                    const double reach = radius + radii[n];
                    squares[n] = u * u + v * v + w * w;
                    near[n] = squares[n] - reach * reach;
                }
                for (index_t n = 0; n < count; n++)
                    if (near[n] < 0 && start + n != a) {
                        args.chosen[number] = (int)(start + n);
                        args.bins[number] = smaller((index_t)(scale * squares[n]), BINS - 1);
                        ends[args.bins[number++] + 1]++;
                    }
            }
        args.numbers[a] = number;
        if (result + number <= args.room) {
            for (int n = 0; n < BINS; n++)
                ends[n + 1] += ends[n];
            for (index_t n = 0; n < number; n++)
                args.out[result + ends[args.bins[n]]++] = args.chosen[n];
        }
        result += number;
    }
    args.total[0] = result;
}

struct Projection {
    const double *centres, *radii;
    const index_t *first;      // sphere n intersects others[first[n]] to others[first[n + 1] - 1]
    const int *others;
    float *depth;              // (shape)
    const int *deepest;        // (shape)
    index_t shape[3];
    double origin[3], spacing[3], probe, reach;
};

// Replace depths in accessible spheres by signed distances to the molecular surface, negative inside, in a plane. The
// nearest point outside of the deepest sphere is the nearest accessible point if no other sphere contains it. If one
// does, the distance is set to -reach, until roll_probes finds a probe that touches more than one atom.
KERNEL(project_depths, Projection, i)
{
    const float probe = (float)args.probe;
    float *depth = args.depth + i * args.shape[1] * args.shape[2];
    const int *deepest = args.deepest + i * args.shape[1] * args.shape[2];
    for (index_t j = 0; j < args.shape[1]; j++)
        for (index_t k = 0; k < args.shape[2]; k++, depth++, deepest++) {
            const float d = *depth;
            *depth = probe - d;
            if (d <= 0 || d >= args.probe + args.reach)
                continue;
            const index_t n = *deepest;
            const double *centre = args.centres + 3 * n;
            const double x = i * args.spacing[0] + args.origin[0] - centre[0];
            const double y = j * args.spacing[1] + args.origin[1] - centre[1];
            const double z = k * args.spacing[2] + args.origin[2] - centre[2];
            const double scale = args.radii[n] / fmax(1e-9, sqrt(x * x + y * y + z * z));
            const double u = centre[0] + scale * x, v = centre[1] + scale * y, w = centre[2] + scale * z;
            for (index_t m = args.first[n]; m < args.first[n + 1]; m++) {
                const index_t other = args.others[m];
                const double *c = args.centres + 3 * other, a = u - c[0], b = v - c[1], e = w - c[2];
                if (a * a + b * b + e * e < args.radii[other] * args.radii[other] - 1e-9) {
                    *depth = (float)-args.reach;
                    break;
                }
            }
        }
}

// A number from 0 to 4 that increases with the angle of (x, y), without trigonometric functions.
DEVICE double turns(double x, double y)
{
    const double part = y / (fabs(x) + fabs(y));
    return x < 0 ? 2 - part : part >= 0 ? part : 4 + part;
}

// The angle that belongs to a number from turns.
DEVICE double angle_of(double turn)
{
    if (turn >= 4)
        return 2 * M_PI;
    const double quarter = floor(turn), part = turn - quarter;
    return 0.5 * M_PI * quarter + atan2(part, 1 - part);
}

// A part of a circle: its begin and end, and the spheres that bury the circle before and after it (-1 for none).
struct Part {
    double low, high, before, after;
};

// Remove the range from begin to end, which a sphere buries, from the free parts of a circle; return their number.
DEVICE int remove_range(Part *parts, int count, double begin, double end, double sphere)
{
    int kept = 0;
    Part split = {-1, 0, sphere, 0};  // the second part, if one part is divided
    const bool around = begin > end;  // the buried range includes the angle 0
    for (int n = 0; n < count; n++) {
        Part part = parts[n];
        if (!around && part.low < begin && end < part.high) {
            split.low = end;
            split.high = part.high;
            split.after = part.after;
            part.high = begin;
            part.after = sphere;
        } else {
            if ((around || part.low >= begin) && part.low < end) {
                part.low = end;
                part.before = sphere;
            }
            if ((around || parts[n].low < begin) && begin < part.high) {
                part.high = begin;
                part.after = sphere;
            }
        }
        if (part.high > part.low + 1e-9)
            parts[kept++] = part;
    }
    if (split.low >= 0 && split.high > split.low + 1e-9 && kept < MAX_PARTS)
        parts[kept++] = split;
    return kept;
}

struct Arcs {
    const double *centres, *radii;
    const index_t *first;      // sphere n intersects others[first[n]] to others[first[n + 1] - 1]
    const int *others;
    double *scratch;           // (7, most) of the neighbours of a sphere
    double *out;               // (room, ARC)
    index_t *total;            // (1,)
    index_t most, room;        // largest number of neighbours of a sphere
};

// The arcs, outside of all other spheres, of the circles where two spheres intersect. The first sphere of each pair is
// in the given range, and the second has a larger index. An arc has the circle's centre, two unit vectors in its plane,
// its radius, the two angles of the arc, the two spheres, and the spheres at which the arc begins and ends (-1 for
// none). Arcs that do not fit into `out` are only counted.
RANGE_KERNEL(find_arcs, Arcs, begin, end)
{
    index_t result = 0;
    Part parts[MAX_PARTS];
    double *__restrict__ x = args.scratch, *__restrict__ y = x + args.most, *__restrict__ z = y + args.most;
    // of each neighbour: the square of its vector x, y, z from the sphere, and a constant of its radius
    double *__restrict__ squares = z + args.most, *__restrict__ powers = squares + args.most;
    double *__restrict__ levels = powers + args.most, *__restrict__ rests = levels + args.most;
    for (index_t a = begin; a < end; a++) {
        const index_t count = args.first[a + 1] - args.first[a];
        const int *others = args.others + args.first[a];
        const double *from = args.centres + 3 * a, own = args.radii[a];
        for (index_t m = 0; m < count; m++) {
            const double *to = args.centres + 3 * (index_t)others[m], radius = args.radii[others[m]];
            x[m] = to[0] - from[0];
            y[m] = to[1] - from[1];
            z[m] = to[2] - from[2];
            squares[m] = x[m] * x[m] + y[m] * y[m] + z[m] * z[m];
            powers[m] = radius * radius - own * own - squares[m];
        }
        for (index_t m = 0; m < count; m++) {
            const index_t b = others[m];
            const double apart = sqrt(squares[m]), other = args.radii[b];
            if (b < a || apart < 1e-6 || apart <= fabs(own - other))
                continue;
            const double t = (squares[m] + own * own - other * other) / (2 * apart), square = own * own - t * t;
            if (square <= 1e-12)
                continue;
            const double radius = sqrt(square), axis[3] = {x[m] / apart, y[m] / apart, z[m] / apart};
            // Sphere c buries what is beyond a line across the circle's plane. The distance of that line from the
            // centre, the level, and whether it cuts the circle depend only on the height of c along the axis.
            const double inverse = 0.5 / radius, twice = 2 * t;
            const double axis_x = axis[0], axis_y = axis[1], axis_z = axis[2];
            int burying = 0;
#pragma omp simd reduction(+ : burying)
            for (index_t n = 0; n < count; n++) {
                const double height = axis_x * x[n] + axis_y * y[n] + axis_z * z[n];
                const double level = inverse * (powers[n] + twice * height);
                const double rest = squares[n] - height * height - level * level;
                levels[n] = level;
                rests[n] = rest;
                burying += (rest <= 0) & (level > 1e-12) & (n != m);  // all of the circle
            }
            if (burying)
                continue;
            int least = 0;
            for (int d = 1; d < 3; d++)
                if (fabs(axis[d]) < fabs(axis[least]))
                    least = d;
            const double length = sqrt(1 - axis[least] * axis[least]);
            double u[3], v[3];
            for (int d = 0; d < 3; d++)
                u[d] = ((d == least) - axis[least] * axis[d]) / length;
            for (int d = 0; d < 3; d++)
                v[d] = axis[(d + 1) % 3] * u[(d + 2) % 3] - axis[(d + 2) % 3] * u[(d + 1) % 3];
            parts[0] = {0, 4, -1, -1};
            int left = 1;
            for (index_t c = 0; c < count && left; c++) {  // nearest first, because few spheres bury most circles
                if (rests[c] <= 0 || c == m)  // the sphere's surface does not cut the circle, or the circle is on it
                    continue;
                const double level = levels[c], rest = sqrt(rests[c]);
                const double to_x = -(x[c] * u[0] + y[c] * u[1] + z[c] * u[2]);
                const double to_y = -(x[c] * v[0] + y[c] * v[1] + z[c] * v[2]);
                left = remove_range(parts, left, turns(to_x * level - to_y * rest, to_y * level + to_x * rest),
                                    turns(to_x * level + to_y * rest, to_y * level - to_x * rest), others[c]);
            }
            for (int part = 0; part < left; part++, result++) {
                if (result >= args.room)
                    continue;
                double *out = args.out + ARC * result;
                for (int d = 0; d < 3; d++) {
                    out[d] = from[d] + t * axis[d];
                    out[3 + d] = u[d];
                    out[6 + d] = v[d];
                }
                out[9] = radius;
                out[10] = angle_of(parts[part].low);
                out[11] = angle_of(parts[part].high);
                out[12] = (double)a;
                out[13] = (double)b;
                out[14] = parts[part].before;
                out[15] = parts[part].after;
            }
        }
    }
    args.total[0] = result;
}

struct Rolling {
    const double *arcs;   // (count, ARC)
    float *distances;     // (shape)
    index_t shape[3], count;
    double origin[3], spacing[3], probe, reach;
};

// Raise signed distances in some planes to the depths of nodes in probes with centres on arcs.
RANGE_KERNEL(roll_probes, Rolling, first, last)
{
    const index_t ny = args.shape[1], nz = args.shape[2];
    const double *h = args.spacing, *origin = args.origin;
    const float probe = (float)args.probe;
    float *places = (float *)__builtin_alloca(nz * sizeof(float));
    for (index_t n = 0; n < args.count; n++) {
        const double *arc = args.arcs + ARC * n, widest = arc[9] + args.probe + args.reach;
        if ((arc[0] + widest - origin[0]) / h[0] < first || (arc[0] - widest - origin[0]) / h[0] >= last)
            continue;
        const index_t pieces = larger(1, (index_t)ceil((arc[11] - arc[10]) / MAX_PIECE));
        const double half = 0.5 * (arc[11] - arc[10]) / pieces;
        const double far = args.probe + args.reach + 2 * arc[9] * sin(0.5 * half);  // from the middle of a piece
        for (index_t piece = 0; piece < pieces; piece++) {
            const double angle = arc[10] + (2 * piece + 1) * half, to_x = cos(angle), to_y = sin(angle);
            double middle[3], ends[2][3];
            for (int d = 0; d < 3; d++)
                middle[d] = arc[d] + arc[9] * (to_x * arc[3 + d] + to_y * arc[6 + d]);
            for (int e = 0; e < 2; e++)
                for (int d = 0; d < 3; d++)
                    ends[e][d] = arc[9] * (cos(angle + (2 * e - 1) * half) * arc[3 + d]
                                           + sin(angle + (2 * e - 1) * half) * arc[6 + d]);
            const float u = (float)arc[5], w = (float)arc[8], radius = (float)arc[9], ux = (float)to_x, uy = (float)to_y;
            const float cosine = (float)cos(half), end_low = (float)ends[0][2], end_high = (float)ends[1][2];
            const index_t begin = larger(first, (index_t)ceil((middle[0] - far - origin[0]) / h[0]));
            const index_t end = smaller(last, (index_t)floor((middle[0] + far - origin[0]) / h[0]) + 1);
            const index_t j_begin = larger(0, (index_t)ceil((middle[1] - far - origin[1]) / h[1]));
            const index_t j_end = smaller(ny, (index_t)floor((middle[1] + far - origin[1]) / h[1]) + 1);
            const double centre = (middle[2] - origin[2]) / h[2];
            const index_t k_low = larger(0, (index_t)floor(centre - far / h[2]) - FLOATS);
            const index_t k_high = smaller(nz, (index_t)ceil(centre + far / h[2]) + FLOATS);
            for (index_t k = k_low; k < k_high; k++)
                places[k - k_low] = (float)(k * h[2] + origin[2] - arc[2]);
            for (index_t i = begin; i < end; i++) {
                const double off_x = i * h[0] + origin[0] - middle[0], left = far * far - off_x * off_x;
                const double x = i * h[0] + origin[0] - arc[0];
                for (index_t j = j_begin; j < j_end; j++) {
                    const double off = j * h[1] + origin[1] - middle[1];
                    if (left < off * off)
                        continue;
                    const double y = j * h[1] + origin[1] - arc[1], reached = sqrt(left - off * off) / h[2];
                    const float along_u = (float)(x * arc[3] + y * arc[4]), along_w = (float)(x * arc[6] + y * arc[7]);
                    const float square = (float)(x * x + y * y);
                    const float to_low = (float)((x - ends[0][0]) * (x - ends[0][0]) + (y - ends[0][1]) * (y - ends[0][1]));
                    const float to_high = (float)((x - ends[1][0]) * (x - ends[1][0]) + (y - ends[1][1]) * (y - ends[1][1]));
                    const index_t k_end = smaller(nz, (index_t)floor(centre + reached) + 1);
                    for (index_t k = larger(0, (index_t)ceil(centre - reached)); k < k_end; k += FLOATS) {
                        k = smaller(k, nz - FLOATS);
                        float *__restrict__ distances = args.distances + (i * ny + j) * nz + k;
                        const float *__restrict__ row = places + k - k_low;
#pragma omp simd
                        for (int l = 0; l < FLOATS; l++) {
                            const float z = row[l], a = along_u + z * u, b = along_w + z * w;
                            const float across = sqrtf(a * a + b * b);
                            const float inner = square + z * z + radius * (radius - 2 * across);
                            // nearest to an end of the piece
                            const float low = to_low + (z - end_low) * (z - end_low);
                            const float high = to_high + (z - end_high) * (z - end_high);
                            const float outer = low < high ? low : high;
                            const float nearest = a * ux + b * uy < across * cosine ? outer : inner;
                            const float depth = probe - sqrtf(nearest > 0 ? nearest : 0);
                            distances[l] = distances[l] > depth ? distances[l] : depth;
                        }
                    }
                }
            }
        }
    }
}

struct Conductances {
    const float *distances;     // (shape) to the surface, negative inside
    const double *outside;      // (nz,) permittivity of the solvent at each height
    const double *between;      // (nz - 1,) of an edge along z in the solvent: two halves in series
    float *x, *y, *z;           // (shape) conductances of the edges from each node
    index_t shape[3];
    double weights[3], inside;
};

// The permittivity of an edge, whose parts on both sides of the surface are in series. Its nodes are at the distances
// `here` and `there` from the surface. The permittivity of the solvent is `own` at the first node and `other` at the
// second, and `between` for an edge that is all in the solvent.
DEVICE double edge_permittivity(float here, float there, double inside, double own, double other, double between)
{
    const float sum = fabsf(here) + fabsf(there);
    const double part = fabsf(here < 0 ? here : there) / (sum > 1e-30f ? sum : 1e-30f);
    const double outer = here >= 0 ? own : other, cut = inside * outer / (part * outer + (1 - part) * inside);
    return (here < 0) != (there < 0) ? cut : here < 0 ? inside : between;
}

KERNEL(compute_conductances, Conductances, i)
{
    const index_t nx = args.shape[0], ny = args.shape[1], nz = args.shape[2];
    const double *outside = args.outside, inside = args.inside;
    const double wx = args.weights[0], wy = args.weights[1], wz = args.weights[2];
    for (index_t j = 0; j < ny; j++) {
        const float *__restrict__ here = args.distances + (i * ny + j) * nz;
        const float *__restrict__ next_plane = i + 1 < nx ? here + ny * nz : here;
        const float *__restrict__ next_row = j + 1 < ny ? here + nz : here;
        const index_t row = (i * ny + j) * nz;
        float *__restrict__ x = args.x + row, *__restrict__ y = args.y + row, *__restrict__ z = args.z + row;
        const double factor_x = i + 1 < nx ? wx : 0, factor_y = j + 1 < ny ? wy : 0;
#pragma omp simd
        for (index_t k = 0; k < nz; k++) {
            const double o = outside[k];
            x[k] = (float)(factor_x * edge_permittivity(here[k], next_plane[k], inside, o, o, o));
            y[k] = (float)(factor_y * edge_permittivity(here[k], next_row[k], inside, o, o, o));
        }
#pragma omp simd
        for (index_t k = 0; k < nz - 1; k++)
            z[k] = (float)(wz * edge_permittivity(here[k], here[k + 1], inside, outside[k], outside[k + 1],
                                                  args.between[k]));
        z[nz - 1] = 0;
    }
}

struct Sides {
    const float *distances;
    bool *within;        // (nodes,) whether nodes are inside
};

KERNEL(find_sides, Sides, at) { args.within[at] = args.distances[at] < 0; }

struct IonShares {
    float *shares;          // (rows, nz) fractions of cells that ions can reach
    const bool *within;
    const float *factors;   // (nz,) at each height
    index_t nz;
};

// Multiply the fractions of a row by the factors of each height, and by 0 inside.
KERNEL(scale_shares, IonShares, row)
{
    float *__restrict__ shares = args.shares + row * args.nz;
    const bool *__restrict__ within = args.within + row * args.nz;
    for (index_t k = 0; k < args.nz; k++)
        shares[k] = within[k] ? 0 : shares[k] * args.factors[k];
}
#endif
