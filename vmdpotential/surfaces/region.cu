// The region of a molecule: signed distances of nodes to its surface.
//
// A CPU goes through the planes of the lattice and all spheres or arcs that reach them. On a GPU a warp has one sphere
// or arc and its nodes; results are maxima, which do not depend on the order.
#include "kernel.h"

#define MAX_PIECE 0.5  // longest piece of an arc, in radians, that is processed with one box of nodes
#define ARC 16         // numbers that describe an arc, see arcs.cu

#ifndef __CUDACC__
#include "vectors.h"

DEVICE index_t smaller(index_t a, index_t b) { return a < b ? a : b; }
DEVICE index_t larger(index_t a, index_t b) { return a > b ? a : b; }
#endif

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

#endif
