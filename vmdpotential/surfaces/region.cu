// The region of a molecule: signed distances of nodes to its surface, and conductances of the edges.
//
// A CPU goes through the planes of the lattice and all spheres or arcs that reach them. On a GPU a warp has one sphere
// or arc and its nodes; results are maxima, which do not depend on the order.
#include "kernel.h"

#define BINS 16        // ranges of distance by which the neighbours of a sphere are sorted, as in region.py
#define MAX_PIECE 0.5  // longest piece of an arc, in radians, that is processed with one box of nodes
#define ARC 16         // numbers that describe an arc, see write_arcs

// Largest number of parts of a circle that are outside of other spheres.
#ifdef __CUDACC__
#define MAX_PARTS 32
#else
#include "vectors.h"
#define MAX_PARTS 512
#endif

DEVICE index_t smaller(index_t a, index_t b) { return a < b ? a : b; }
DEVICE index_t larger(index_t a, index_t b) { return a > b ? a : b; }

struct Depths {
    const double *centres, *radii;
    uint64_t *keys;       // (shape) scratch on a GPU; 0 at first
    float *depth;         // (shape)
    int *deepest;         // (shape)
    index_t shape[3], spheres;
    double origin[3], spacing[3], reach;
};

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
    const index_t *begins;           // (spheres, BINS) where the results begin; without it, they are only counted
    int *numbers;                    // (spheres, BINS)
    int *others, *owners;            // results: the neighbours of all spheres, and the sphere of each
    index_t counts[3];
    double largest;                  // radius
};

// The spheres that intersect a sphere, nearer ones first: they are sorted by ranges of the square of their distance.
// The cubes' side is at least the largest diameter.
KERNEL(find_neighbours, Neighbours, a)
{
    const double x = args.centres[3 * a], y = args.centres[3 * a + 1], z = args.centres[3 * a + 2];
    const double radius = args.radii[a], scale = BINS / ((radius + args.largest) * (radius + args.largest));
    const index_t *cube = args.cubes + 3 * a;
    const index_t low = larger(0, cube[2] - 1), high = smaller(args.counts[2], cube[2] + 2);
    index_t ends[BINS + 1] = {};  // the last one is of all others: without a branch, counting takes half as long
    for (int n = 0; n < BINS; n++)
        ends[n] = args.begins ? args.begins[BINS * a + n] : 0;
    for (index_t i = larger(0, cube[0] - 1); i < smaller(args.counts[0], cube[0] + 2); i++)
        for (index_t j = larger(0, cube[1] - 1); j < smaller(args.counts[1], cube[1] + 2); j++) {
            const index_t row = (i * args.counts[1] + j) * args.counts[2];
            for (index_t b = args.starts[row + low]; b < args.starts[row + high]; b++) {
                const double *other = args.centres + 3 * b, reach = radius + args.radii[b];
                const double u = other[0] - x, v = other[1] - y, w = other[2] - z, square = u * u + v * v + w * w;
                const bool near = (square < reach * reach) & (b != a);
                const index_t bin = smaller((index_t)(scale * square), BINS - 1), place = ends[near ? bin : BINS]++;
                if (args.begins && near) {
                    args.others[place] = (int)b;
                    args.owners[place] = (int)a;
                }
            }
        }
    if (!args.begins)
        for (int n = 0; n < BINS; n++)
            args.numbers[BINS * a + n] = (int)ends[n];
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

// Replace the depth of a node in accessible spheres by the signed distance to the molecular surface, negative inside.
// The nearest point outside of the deepest sphere is the nearest accessible point if no other sphere contains it. If
// one does, the distance is set to -reach, until roll_probes finds a probe that touches more than one atom.
// `hit` is a sphere that contained the place of the preceding node, as it is likely to contain this one.
DEVICE void project_depth(const Projection &args, index_t at, index_t &hit)
{
    const float depth = args.depth[at], probe = (float)args.probe;
    args.depth[at] = probe - depth;
    if (probe == 0 || depth <= 0 || depth >= args.probe + args.reach)
        return;
    const unsigned ny = (unsigned)args.shape[1], nz = (unsigned)args.shape[2];
    const unsigned node = (unsigned)at, row = node / nz;  // no memory holds more than 2^32 nodes
    const index_t n = args.deepest[at];
    const double *centre = args.centres + 3 * n;
    const double x = row / ny * args.spacing[0] + args.origin[0] - centre[0];
    const double y = row % ny * args.spacing[1] + args.origin[1] - centre[1];
    const double z = node % nz * args.spacing[2] + args.origin[2] - centre[2];
    const double scale = args.radii[n] / fmax(1e-9, sqrt(x * x + y * y + z * z));
    const double u = centre[0] + scale * x, v = centre[1] + scale * y, w = centre[2] + scale * z;
    for (index_t m = args.first[n] - (hit != n); m < args.first[n + 1]; m++) {
        const index_t other = m < args.first[n] ? hit : args.others[m];
        const double *c = args.centres + 3 * other, a = u - c[0], b = v - c[1], e = w - c[2];
        if (a * a + b * b + e * e < args.radii[other] * args.radii[other] - 1e-9) {
            args.depth[at] = (float)-args.reach;
            hit = other;
            return;
        }
    }
}

#ifdef __CUDACC__
KERNEL(project_depths, Projection, at)
{
    index_t hit = args.deepest[at];
    project_depth(args, at, hit);
}
#else
RANGE_KERNEL(project_depths, Projection, first, last)
{
    index_t hit = 0;
    for (index_t at = first; at < last; at++)
        project_depth(args, at, hit);
}
#endif

#define HALF_PI 1.5707963267948966

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
        return 4 * HALF_PI;
    const double quarter = floor(turn), part = turn - quarter;
    return HALF_PI * quarter + atan2(part, 1 - part);
}

// A part of a circle: its begin and end, and the spheres that bury the circle before and after it (-1 for none).
struct Part {
    double low, high;
    int before, after;
};

// Remove the range from begin to end, which a sphere buries, from the free parts of a circle; return their number,
// which is larger than MAX_PARTS if the last one does not fit.
DEVICE int remove_range(Part *parts, int count, double begin, double end, int sphere)
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
    if (split.low >= 0 && split.high > split.low + 1e-9) {
        if (kept < MAX_PARTS)
            parts[kept] = split;
        kept++;
    }
    return kept;
}

// The circle where two spheres intersect: its axis, the distance of its centre from the first sphere's along it, two
// unit vectors in its plane, and its radius.
struct Circle {
    double axis[3], u[3], v[3], along, radius, inverse;  // 1 / (2 radius)
};

// Set axis, centre and radius from the vector between the spheres, its square, and the radii; return whether there is a
// circle.
DEVICE bool find_circle(double x, double y, double z, double square, double own, double other, Circle &c)
{
    const double apart = sqrt(square);
    if (apart < 1e-6 || apart <= fabs(own - other))
        return false;
    c.along = (square + own * own - other * other) / (2 * apart);
    const double rest = own * own - c.along * c.along;
    if (rest <= 1e-12)
        return false;
    c.radius = sqrt(rest);
    c.inverse = 0.5 / c.radius;
    c.axis[0] = x / apart;
    c.axis[1] = y / apart;
    c.axis[2] = z / apart;
    return true;
}

// Set the vectors in the plane: the first is next to the coordinate axis along which the axis is shortest.
DEVICE void find_plane(Circle &c)
{
    int least = 0;
    for (int d = 1; d < 3; d++)
        if (fabs(c.axis[d]) < fabs(c.axis[least]))
            least = d;
    const double length = sqrt(1 - c.axis[least] * c.axis[least]);
    for (int d = 0; d < 3; d++)
        c.u[d] = ((d == least) - c.axis[least] * c.axis[d]) / length;
    for (int d = 0; d < 3; d++)
        c.v[d] = c.axis[(d + 1) % 3] * c.u[(d + 2) % 3] - c.axis[(d + 2) % 3] * c.u[(d + 1) % 3];
}

// Another sphere, at (x, y, z) from the first one, buries what is beyond a line across the circle's plane. The distance
// of that line from the centre, and the square of half of it within the circle, negative if it does not cut it, depend
// only on the sphere's height along the axis, the square of its distance, and its power: the difference of the squared
// radii less the square of the distance.
DEVICE void cut_circle(const Circle &c, double x, double y, double z, double square, double power, double &level,
                       double &rest)
{
    const double height = c.axis[0] * x + c.axis[1] * y + c.axis[2] * z;
    level = c.inverse * (power + 2 * c.along * height);
    rest = square - height * height - level * level;
}

// Remove what the sphere buries from the parts of the circle; return their number as remove_range does.
DEVICE int bury(const Circle &c, double x, double y, double z, double level, double rest, int sphere, Part *parts,
                int count)
{
    const double root = sqrt(rest);
    const double to_x = -(x * c.u[0] + y * c.u[1] + z * c.u[2]), to_y = -(x * c.v[0] + y * c.v[1] + z * c.v[2]);
    return remove_range(parts, count, turns(to_x * level - to_y * root, to_y * level + to_x * root),
                        turns(to_x * level + to_y * root, to_y * level - to_x * root), sphere);
}

struct Arcs {
    const double *centres, *radii;
    const index_t *first;          // sphere n intersects others[first[n]] to others[first[n + 1] - 1]
    const int *others, *owners;    // the neighbours of all spheres, and the sphere of each
    double *out;                   // (room, ARC)
    index_t *totals;               // (2,) of arcs, and of circles with too many parts; 0 at first
    index_t room, most;            // `most` is the largest number of neighbours of a sphere
};

// Append the arcs of a circle: the circle's centre, two unit vectors in its plane, its radius, the two angles of the
// arc, the two spheres, and the spheres at which the arc begins and ends (-1 for none). Arcs for which there is no room
// are only counted.
DEVICE void write_arcs(const Arcs &args, const Circle &c, index_t a, index_t b, const Part *parts, int count)
{
    const index_t place = count ? add_atomically(args.totals, count) : 0;
    for (int part = 0; part < count && place + part < args.room; part++) {
        double *out = args.out + ARC * (place + part);
        for (int d = 0; d < 3; d++) {
            out[d] = args.centres[3 * a + d] + c.along * c.axis[d];
            out[3 + d] = c.u[d];
            out[6 + d] = c.v[d];
        }
        out[9] = c.radius;
        out[10] = angle_of(parts[part].low);
        out[11] = angle_of(parts[part].high);
        out[12] = (double)a;
        out[13] = (double)b;
        out[14] = parts[part].before;
        out[15] = parts[part].after;
    }
}

struct Rolling {
    const double *arcs;   // (count, ARC)
    float *distances;     // (shape)
    index_t shape[3], count;
    double origin[3], spacing[3], probe, reach;
};

// A piece of an arc: its middle; its ends from the circle's centre.
struct Piece {
    double middle[3], ends[2][3];
    float to_x, to_y, cosine, low, high, u, v, radius, probe;
};

// The piece whose middle is in the direction (x, y) in the circle's plane, which is turned to the next piece. Cosine
// and sine are those of half a piece.
DEVICE Piece find_piece(const double *arc, double &x, double &y, double cosine, double sine, double probe)
{
    Piece p;
    for (int d = 0; d < 3; d++) {
        p.middle[d] = arc[d] + arc[9] * (x * arc[3 + d] + y * arc[6 + d]);
        p.ends[0][d] = arc[9] * ((x * cosine + y * sine) * arc[3 + d] + (y * cosine - x * sine) * arc[6 + d]);
        p.ends[1][d] = arc[9] * ((x * cosine - y * sine) * arc[3 + d] + (y * cosine + x * sine) * arc[6 + d]);
    }
    p.to_x = (float)x;
    p.to_y = (float)y;
    p.cosine = (float)cosine;
    p.low = (float)p.ends[0][2];
    p.high = (float)p.ends[1][2];
    p.u = (float)arc[5];
    p.v = (float)arc[8];
    p.radius = (float)arc[9];
    p.probe = (float)probe;
    const double turn_x = cosine * cosine - sine * sine, turn_y = 2 * cosine * sine, before = x;
    x = turn_x * before - turn_y * y;
    y = turn_x * y + turn_y * before;
    return p;
}

// A row of nodes at (x, y) from a circle's centre.
struct NodeRow {
    float along_u, along_v, square, to_low, to_high;
};

DEVICE NodeRow find_row(const double *arc, const Piece &p, double x, double y)
{
    const double low_x = x - p.ends[0][0], low_y = y - p.ends[0][1];
    const double high_x = x - p.ends[1][0], high_y = y - p.ends[1][1];
    return {(float)(x * arc[3] + y * arc[4]), (float)(x * arc[6] + y * arc[7]), (float)(x * x + y * y),
            (float)(low_x * low_x + low_y * low_y), (float)(high_x * high_x + high_y * high_y)};
}

// The depth of a node of a row, at a height z from the circle's centre, in probes with centres on the piece.
DEVICE float depth_in_probe(const Piece &p, const NodeRow &row, float z)
{
    const float a = row.along_u + z * p.u, b = row.along_v + z * p.v, across = sqrtf(a * a + b * b);
    const float inner = row.square + z * z + p.radius * (p.radius - 2 * across);
    // nearest to an end of the piece
    const float low = row.to_low + (z - p.low) * (z - p.low), high = row.to_high + (z - p.high) * (z - p.high);
    const float outer = low < high ? low : high;
    const float nearest = a * p.to_x + b * p.to_y < across * p.cosine ? outer : inner;
    return p.probe - sqrtf(nearest > 0 ? nearest : 0);
}

#ifdef __CUDACC__

#define WARP 32  // threads that have one sphere or arc, as in region.py
#define LANES 8  // of a warp along a row of nodes

// Numbers in the order of floats.
DEVICE unsigned ordered(float x)
{
    const unsigned bits = __float_as_uint(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

DEVICE float unordered(unsigned bits) { return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits); }

// The range of nodes along an axis within a distance of a place, clamped to the lattice, also if it is not a number.
struct Range {
    int begin, end;
};

template <class Args> DEVICE Range nodes_within(const Args &args, int axis, double place, double far)
{
    const double middle = place - args.origin[axis], count = (double)args.shape[axis];
    return {(int)fmin(fmax(ceil((middle - far) / args.spacing[axis]), 0.0), count),
            (int)fmin(fmax(floor((middle + far) / args.spacing[axis]) + 1, 0.0), count)};
}

// Call use(x, y, range along z, first node of the row) for the rows of nodes within a distance of a point. Each LANES
// threads of a warp have one row, whose coordinates are x and y.
template <class Args, class Use> DEVICE void around(const Args &args, const double *middle, double far, Use use)
{
    const Range along_x = nodes_within(args, 0, middle[0], far), along_y = nodes_within(args, 1, middle[1], far);
    const int wide = along_y.end - along_y.begin;
    if (along_x.end <= along_x.begin || wide <= 0)
        return;
    const unsigned rows = (unsigned)(along_x.end - along_x.begin) * wide;
    for (unsigned n = threadIdx.x % WARP / LANES; n < rows; n += WARP / LANES) {
        const int i = along_x.begin + n / wide, j = along_y.begin + n % wide;
        const double x = i * args.spacing[0] + args.origin[0], y = j * args.spacing[1] + args.origin[1];
        const double left = far * far - (x - middle[0]) * (x - middle[0]) - (y - middle[1]) * (y - middle[1]);
        if (left >= 0)
            use(x, y, nodes_within(args, 2, middle[2], sqrt(left)), (i * args.shape[1] + j) * args.shape[2]);
    }
}

// The element of a warp.
DEVICE index_t warp_number() { return (blockIdx.x * (index_t)BLOCK_THREADS + threadIdx.x) / WARP; }

// Record a sphere where it is the deepest, and the first one of several: keys are depths and then numbers of spheres.
BLOCK_KERNEL(stamp_spheres, Depths)
{
    const index_t n = warp_number();
    if (n >= args.spheres)
        return;
    const double *centre = args.centres + 3 * n;
    const float radius = (float)args.radii[n];
    around(args, centre, args.radii[n] + args.reach, [&](double x, double y, Range row, index_t at) {
        const float across = (float)((x - centre[0]) * (x - centre[0]) + (y - centre[1]) * (y - centre[1]));
        for (int k = row.begin + threadIdx.x % LANES; k < row.end; k += LANES) {
            const double z = k * args.spacing[2] + args.origin[2] - centre[2];
            unsigned long long *key = (unsigned long long *)args.keys + at + k;
            const unsigned depth = ordered(radius - sqrtf(across + (float)(z * z)));
            const unsigned long long own = (unsigned long long)depth << 32 | (0xffffffffu - (unsigned)n);
            if (own > *key)  // only rises, so that an old value does no harm
                atomicMax(key, own);
        }
    });
}

BLOCK_KERNEL(unpack_keys, Depths)
{
    const index_t at = blockIdx.x * (index_t)BLOCK_THREADS + threadIdx.x;
    if (at >= count)
        return;
    const unsigned long long key = args.keys[at];
    args.depth[at] = key ? fmaxf(unordered((unsigned)(key >> 32)), (float)-args.reach) : (float)-args.reach;
    args.deepest[at] = (int)(0xffffffffu - (unsigned)key);
}

// The arcs, outside of all other spheres, of the circle where a sphere intersects one with a larger number.
BLOCK_KERNEL(find_arcs, Arcs)
{
    const index_t own = blockIdx.x * (index_t)BLOCK_THREADS + threadIdx.x;
    if (own >= count || args.others[own] < args.owners[own])
        return;
    const int a = args.owners[own], b = args.others[own];
    const double *from = args.centres + 3 * a, radius = args.radii[a];
    const double *to = args.centres + 3 * b, to_x = to[0] - from[0], to_y = to[1] - from[1], to_z = to[2] - from[2];
    Circle c;
    if (!find_circle(to_x, to_y, to_z, to_x * to_x + to_y * to_y + to_z * to_z, radius, args.radii[b], c))
        return;
    find_plane(c);
    Part parts[MAX_PARTS];
    parts[0] = {0, 4, -1, -1};
    int left = 1;
    for (index_t m = args.first[a]; m < args.first[a + 1] && left; m++) {  // nearest first: few bury most circles
        if (m == own)
            continue;
        const int other = args.others[m];
        const double *at = args.centres + 3 * other, x = at[0] - from[0], y = at[1] - from[1], z = at[2] - from[2];
        const double square = x * x + y * y + z * z;
        double level, rest;
        cut_circle(c, x, y, z, square, args.radii[other] * args.radii[other] - radius * radius - square, level, rest);
        if (rest <= 0)  // all of the circle, or nothing
            left = level > 1e-12 ? 0 : left;
        else
            left = bury(c, x, y, z, level, rest, other, parts, left);
        if (left > MAX_PARTS) {
            add_atomically(args.totals + 1, 1);
            left = 0;
        }
    }
    write_arcs(args, c, a, b, parts, left);
}

// Replace a number by a larger one: as integers, positive floats have the same order, and negative ones the opposite.
DEVICE void raise(float *value, float larger)
{
    if (larger >= 0)
        atomicMax((int *)value, __float_as_int(larger));
    else
        atomicMin((unsigned *)value, __float_as_uint(larger));
}

// Raise signed distances to the depths of nodes in probes with centres on an arc.
BLOCK_KERNEL(roll_probes, Rolling)
{
    const index_t n = warp_number();
    if (n >= args.count)
        return;
    const double *arc = args.arcs + ARC * n;
    const double pieces = fmax(1.0, ceil((arc[11] - arc[10]) / MAX_PIECE)), half = 0.5 * (arc[11] - arc[10]) / pieces;
    double to_x = cos(arc[10] + half), to_y = sin(arc[10] + half);
    const double sine = sin(half), cosine = sqrt(1 - sine * sine);
    const double far = args.probe + args.reach + arc[9] * sqrt(2 - 2 * cosine);  // from the middle of a piece
    for (int number = 0; number < pieces; number++) {
        const Piece piece = find_piece(arc, to_x, to_y, cosine, sine, args.probe);
        around(args, piece.middle, far, [&](double x, double y, Range range, index_t at) {
            const NodeRow row = find_row(arc, piece, x - arc[0], y - arc[1]);
            for (int k = range.begin + threadIdx.x % LANES; k < range.end; k += LANES) {
                const float depth = depth_in_probe(piece, row, (float)(k * args.spacing[2] + args.origin[2] - arc[2]));
                if (depth > args.distances[at + k])
                    raise(args.distances + at + k, depth);
            }
        });
    }
}

#else

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

// The arcs, outside of all other spheres, of the circles where spheres intersect others with larger numbers.
RANGE_KERNEL(find_arcs, Arcs, begin, end)
{
    Part parts[MAX_PARTS];
    const index_t most = args.most + FLOATS;
    double *const scratch = (double *)malloc(7 * most * sizeof(double));
    double *__restrict__ x = scratch, *__restrict__ y = x + most, *__restrict__ z = y + most;
    // of each neighbour: the square of its vector x, y, z from the sphere, and its power, see cut_circle
    double *__restrict__ squares = z + most, *__restrict__ powers = squares + most;
    double *__restrict__ levels = powers + most, *__restrict__ rests = levels + most;
    for (index_t next = begin; next < end;) {
        const index_t a = args.owners[next], start = args.first[a], count = args.first[a + 1] - start;
        const int *others = args.others + start;
        const double *from = args.centres + 3 * a, own = args.radii[a];
        for (index_t m = 0; m < count; m++) {
            const double *to = args.centres + 3 * (index_t)others[m], radius = args.radii[others[m]];
            x[m] = to[0] - from[0];
            y[m] = to[1] - from[1];
            z[m] = to[2] - from[2];
            squares[m] = x[m] * x[m] + y[m] * y[m] + z[m] * z[m];
            powers[m] = radius * radius - own * own - squares[m];
        }
        for (index_t m = count; m < count + FLOATS; m++) {  // far away: they bury nothing
            x[m] = y[m] = z[m] = squares[m] = 0;
            powers[m] = -1e9;
        }
        for (; next < end && next < start + count; next++) {
            const index_t m = next - start, b = others[m];
            Circle c;
            if (b < a || !find_circle(x[m], y[m], z[m], squares[m], own, args.radii[b], c))
                continue;
            index_t burying = 0;
            for (index_t block = 0; block < count && !burying; block += FLOATS)  // near ones bury most circles
#pragma omp simd reduction(+ : burying)
                for (index_t n = block; n < block + FLOATS; n++) {
                    cut_circle(c, x[n], y[n], z[n], squares[n], powers[n], levels[n], rests[n]);
                    burying += (rests[n] <= 0) & (levels[n] > 1e-12) & (n != m);  // all of the circle
                }
            if (burying)
                continue;
            find_plane(c);
            parts[0] = {0, 4, -1, -1};
            int left = 1;
            for (index_t n = 0; n < count && left; n++) {  // nearest first, because few spheres bury most circles
                if (rests[n] <= 0 || n == m)  // the sphere's surface does not cut the circle, or the circle is on it
                    continue;
                left = bury(c, x[n], y[n], z[n], levels[n], rests[n], others[n], parts, left);
                left = left > MAX_PARTS ? MAX_PARTS : left;
            }
            write_arcs(args, c, a, b, parts, left);
        }
    }
    free(scratch);
}

// Raise signed distances in some planes to the depths of nodes in probes with centres on arcs.
RANGE_KERNEL(roll_probes, Rolling, first, last)
{
    const index_t ny = args.shape[1], nz = args.shape[2];
    const double *h = args.spacing, *origin = args.origin;
    float *places = (float *)__builtin_alloca(nz * sizeof(float));
    for (index_t n = 0; n < args.count; n++) {
        const double *arc = args.arcs + ARC * n, widest = arc[9] + args.probe + args.reach;
        if ((arc[0] + widest - origin[0]) / h[0] < first || (arc[0] - widest - origin[0]) / h[0] >= last)
            continue;
        const index_t pieces = larger(1, (index_t)ceil((arc[11] - arc[10]) / MAX_PIECE));
        const double half = 0.5 * (arc[11] - arc[10]) / pieces, sine = sin(half), cosine = sqrt(1 - sine * sine);
        const double far = args.probe + args.reach + arc[9] * sqrt(2 - 2 * cosine);  // from the middle of a piece
        double to_x = cos(arc[10] + half), to_y = sin(arc[10] + half);
        for (index_t number = 0; number < pieces; number++) {
            const Piece piece = find_piece(arc, to_x, to_y, cosine, sine, args.probe);
            const double *middle = piece.middle;
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
                    const NodeRow nodes = find_row(arc, piece, x, j * h[1] + origin[1] - arc[1]);
                    const double reached = sqrt(left - off * off) / h[2];
                    const index_t k_end = smaller(nz, (index_t)floor(centre + reached) + 1);
                    for (index_t k = larger(0, (index_t)ceil(centre - reached)); k < k_end; k += FLOATS) {
                        k = smaller(k, nz - FLOATS);
                        float *__restrict__ distances = args.distances + (i * ny + j) * nz + k;
                        const float *__restrict__ row = places + k - k_low;
#pragma omp simd
                        for (int l = 0; l < FLOATS; l++) {
                            const float depth = depth_in_probe(piece, nodes, row[l]);
                            distances[l] = distances[l] > depth ? distances[l] : depth;
                        }
                    }
                }
            }
        }
    }
}

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
#endif

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

#ifdef __CUDACC__
NODE_KERNEL(compute_conductances, Conductances, shape, i, j, k)
{
    const index_t ny = args.shape[1], nz = args.shape[2], at = (i * ny + j) * nz + k;
    const float *here = args.distances + at;
    const double own = args.outside[k], inside = args.inside;
    args.x[at] = i + 1 < args.shape[0]
        ? (float)(args.weights[0] * edge_permittivity(*here, here[ny * nz], inside, own, own, own)) : 0;
    args.y[at] = j + 1 < ny ? (float)(args.weights[1] * edge_permittivity(*here, here[nz], inside, own, own, own)) : 0;
    args.z[at] = k + 1 < nz ? (float)(args.weights[2] * edge_permittivity(*here, here[1], inside, own,
                                                                         args.outside[k + 1], args.between[k])) : 0;
}
#else
static void fill_plane(const Conductances &args, index_t i)
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

RANGE_KERNEL(compute_conductances, Conductances, first, last)
{
    for (index_t i = first; i < last; i++)
        fill_plane(args, i);
}
#endif

struct OpenedEdges {
    const float *distances;     // (shape) to the surface, negative inside
    const bool *pores;          // (shape) which nodes are in pores, if they are not inside
    float *x, *y, *z;           // (shape) conductances of the edges from each node
    index_t shape[3];
    double weights[3], inside, water;
};

// Set the conductances of edges between nodes in pores, or in a pore and inside, to those in water.
NODE_KERNEL(open_edges, OpenedEdges, shape, i, j, k)
{
    const index_t nz = args.shape[2], at = (i * args.shape[1] + j) * nz + k;
    const index_t steps[3] = {args.shape[1] * nz, nz, 1};
    const bool exists[3] = {i + 1 < args.shape[0], j + 1 < args.shape[1], k + 1 < nz};
    float *const edges[3] = {args.x + at, args.y + at, args.z + at};
    const float here = args.distances[at];
    for (int d = 0; d < 3; d++) {
        if (!exists[d])
            continue;
        const float there = args.distances[at + steps[d]];
        const bool wet = here >= 0 && args.pores[at], other = there >= 0 && args.pores[at + steps[d]];
        if ((wet || here < 0) && (other || there < 0) && (wet || other))
            *edges[d] = (float)(args.weights[d] * edge_permittivity(here, there, args.inside, args.water, args.water,
                                                                    args.water));
    }
}

struct AppliedFlows {
    const float *z, *k2;        // (shape) conductances of edges along z, and the ions' term
    const double *slab_z;       // (nz - 1,) and (nz,) the same for the slab without a molecule
    const double *slab_k2;
    const double *potential;    // (nz,) across that slab
    const double *side;         // (nz,) potential of the reservoir of the ions at each height
    float *sources;             // (shape)
    index_t shape[3];
};

// Add to sources what flows into nodes because the potential across a slab does not solve the equation with a molecule.
NODE_KERNEL(add_applied_flows, AppliedFlows, shape, i, j, k)
{
    const index_t nx = args.shape[0], ny = args.shape[1], nz = args.shape[2], at = (i * ny + j) * nz + k;
    if (i == 0 || j == 0 || k == 0 || i == nx - 1 || j == ny - 1 || k == nz - 1)
        return;
    const double *own = args.potential + k;
    double flow = (args.z[at] - args.slab_z[k]) * (own[1] - own[0])
        + (args.z[at - 1] - args.slab_z[k - 1]) * (own[-1] - own[0]);
    flow -= (args.k2[at] - args.slab_k2[k]) * (own[0] - args.side[k]);
    args.sources[at] += (float)flow;
}

struct RaisedPotential {
    const float *unknown;       // (shape)
    const double *potential;    // (nz,)
    float *out;                 // (shape)
    index_t shape[3];
};

// Add a potential that depends on the height alone.
NODE_KERNEL(raise_potential, RaisedPotential, shape, i, j, k)
{
    const index_t at = (i * args.shape[1] + j) * args.shape[2] + k;
    args.out[at] = args.unknown[at] + (float)args.potential[k];
}

struct Sides {
    const float *distances;
    bool *within;        // (nodes,) whether nodes are inside
};

KERNEL(find_sides, Sides, at) { args.within[at] = args.distances[at] < 0; }

struct IonShares {
    float *shares;          // (shape) fractions of cells that ions can reach
    const bool *within;
    const bool *pores;      // (shape) which nodes are in pores; may be null
    const float *factors;   // (nz,) at each height
    index_t shape[3];
    float water;            // factor in pores
};

// Multiply a fraction by the factor of its height or of pores, and by 0 inside.
NODE_KERNEL(scale_shares, IonShares, shape, i, j, k)
{
    const index_t at = (i * args.shape[1] + j) * args.shape[2] + k;
    const float factor = args.pores && args.pores[at] ? args.water : args.factors[k];
    args.shares[at] = args.within[at] ? 0 : args.shares[at] * factor;
}
