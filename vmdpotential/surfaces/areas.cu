// Areas of surfaces: sums over points of patches that no other position of the probe covers.
#include "kernel.h"
#ifndef __CUDACC__
#include "vectors.h"

#define ON 1e-5          // reduction of a sphere's radius in tests whether points are inside, A: points on it are outside
#define MAX_AROUND 4096  // spheres, and parts of arcs, around a patch
#define MAX_POINTS 4096  // points of a patch that are computed at once, and of a sphere
#define TURNS 5          // rows of points along an arc that are computed at once; their length is at most PART in areas.py
#define MAX_ACROSS 800   // points of such a row
#define ONCE 64          // points, or parts of arcs, that are compared at once, as in areas.py
#define ARC 16           // numbers of an arc, as in surfaces/region.py
#define PART 18          // numbers of a part of an arc, see cut_arcs


DEVICE double squared_distance(const double *a, const double *b)
{
    const double x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
    return x * x + y * y + z * z;
}

struct SpherePoints {
    const float *directions;     // (3, checked) unit vectors
    const double *centres, *radii;
    const index_t *first, *rows; // (spheres + 1,); the spheres of this kernel's elements
    const int *others;
    const bool *parts;           // (spheres,) of which of two molecules each is; null for one
    index_t *counts;             // (rows,) the counted points
    double *points;              // (rows, 3) one of them
    index_t checked;             // a multiple of ONCE, at most MAX_POINTS
};

// Count the points of a sphere in `directions` that are in no other sphere of its molecule; of two molecules, those that
// are in a sphere of the other one.
KERNEL(count_points, SpherePoints, row)
{
    static thread_local float own[MAX_POINTS], foreign[MAX_POINTS];
    const index_t s = args.rows[row];
    const float *x = args.directions, *y = x + args.checked, *z = y + args.checked;
    const double *centre = args.centres + 3 * s, radius = args.radii[s];
    for (index_t d = 0; d < args.checked; d++)
        own[d] = foreign[d] = -1;
    for (index_t n = args.first[s]; n < args.first[s + 1]; n++) {
        // a sphere contains the points in whose directions its centre is far enough
        const index_t sphere = args.others[n];
        const double *other = args.centres + 3 * sphere, reach = args.radii[sphere] - ON;
        const float u = (float)(other[0] - centre[0]), v = (float)(other[1] - centre[1]);
        const float w = (float)(other[2] - centre[2]);
        const float least = (float)((radius * radius + squared_distance(other, centre) - reach * reach) / (2 * radius));
        float *depths = args.parts && args.parts[sphere] != args.parts[s] ? foreign : own;
        for (index_t block = 0; block < args.checked; block += ONCE)
#pragma omp simd
            for (index_t d = block; d < block + ONCE; d++) {
                const float depth = x[d] * u + y[d] * v + z[d] * w - least;
                depths[d] = depth > depths[d] ? depth : depths[d];
            }
    }
    index_t count = 0;
    for (index_t d = 0; d < args.checked; d++)
        if (own[d] <= 0 && (!args.parts || foreign[d] > 0)) {
            count++;
            args.points[3 * row] = centre[0] + radius * x[d];
            args.points[3 * row + 1] = centre[1] + radius * y[d];
            args.points[3 * row + 2] = centre[2] + radius * z[d];
        }
    args.counts[row] = count;
}

struct CutArcs {
    const double *arcs;    // (arcs, ARC)
    const index_t *starts; // (arcs + 1,) first part of each arc
    double *parts;         // (parts, PART)
};

// Divide arcs into equal parts. A part has the circle's centre, unit vectors towards the part's middle and along the
// tangent there, the circle's radius, the cosine of half the part's angle, this cosine and the sine times the radius,
// the part's middle, half of the longest distance in the part, and the number of its arc.
KERNEL(cut_arcs, CutArcs, a)
{
    const double *arc = args.arcs + ARC * a;
    const index_t count = args.starts[a + 1] - args.starts[a];
    const double half = 0.5 * (arc[11] - arc[10]) / count;
    for (index_t n = 0; n < count; n++) {
        const double angle = arc[10] + (2 * n + 1) * half;
        double *part = args.parts + PART * (args.starts[a] + n);
        for (int d = 0; d < 3; d++) {
            part[d] = arc[d];
            part[3 + d] = cos(angle) * arc[3 + d] + sin(angle) * arc[6 + d];
            part[6 + d] = cos(angle) * arc[6 + d] - sin(angle) * arc[3 + d];
            part[13 + d] = part[d] + arc[9] * part[3 + d];
        }
        part[9] = arc[9];
        part[10] = cos(half);
        part[11] = arc[9] * cos(half);
        part[12] = arc[9] * sin(half);
        part[16] = 2 * arc[9] * sin(0.5 * fmin(half, M_PI));
        part[17] = a;
    }
}

// The surroundings of patches, the same for strips and corners.
struct Patches {
    const double *centres, *radii;        // spheres; n intersects others[first[n]] to others[first[n + 1] - 1]
    const index_t *first;
    const int *others;
    const double *parts;                  // (P, PART) parts of arcs, sorted by cubes
    const float *middles;                 // (5, row) their middles from `low`, half of their longest distances, arcs
    const index_t *starts;                // cube c has the parts from starts[c] to starts[c + 1]
    const double *arcs;                   // (A, ARC), for strips
    const double *places;                 // (C, 3) probes that touch three atoms, for corners
    const float *directions;              // (3, checked) unit vectors
    const index_t *triples;               // (C, 3) these atoms
    double *area, *points;                // (pieces, spheres) and (pieces, spheres, 3) results
    index_t counts[3];                    // cubes
    double low[3];
    double side;                          // of cubes: at least the search distance and half of a part's longest distance
    double piece, probe, least;           // points are this far apart; those nearer to another probe are left out
    index_t checked, spheres, grain;      // directions, spheres, and patches of one piece of work
    index_t row;                          // P + ONCE
};

// Append the neighbours of a sphere whose surfaces are within `reach` of a point; return the new count. The first
// `skipped` entries are not repeated.
DEVICE index_t spheres_around(const Patches &args, const double *at, double reach, index_t sphere, index_t skipped,
                              index_t *out)
{
    index_t count = skipped;
    for (index_t n = args.first[sphere]; n < args.first[sphere + 1] && count < MAX_AROUND; n++) {
        const index_t other = args.others[n];
        const double far = args.radii[other] + reach;
        if (far <= 0 || squared_distance(at, args.centres + 3 * other) >= far * far)
            continue;
        bool repeated = false;
        for (index_t m = 0; m < skipped; m++)
            repeated |= out[m] == other;
        if (!repeated)
            out[count++] = other;
    }
    return count;
}

// Write the parts of arcs within `reach` of a point, except those of the arc `left_out`; return their number.
DEVICE index_t parts_around(const Patches &args, const double *at, double reach, index_t left_out, index_t *out)
{
    index_t begin[3], end[3], count = 0;
    for (int d = 0; d < 3; d++) {
        const index_t cube = (index_t)floor((at[d] - args.low[d]) / args.side);
        begin[d] = cube > 1 ? cube - 1 : 0;
        end[d] = cube + 2 < args.counts[d] ? cube + 2 : args.counts[d];
    }
    if (begin[2] >= end[2])
        return 0;
    const float u = (float)(at[0] - args.low[0]), v = (float)(at[1] - args.low[1]), w = (float)(at[2] - args.low[2]);
    const float left = (float)left_out;
    const float far = (float)reach + 1e-3f;  // for rounding
    for (index_t i = begin[0]; i < end[0]; i++)
        for (index_t j = begin[1]; j < end[1]; j++) {
            const index_t row = (i * args.counts[1] + j) * args.counts[2];
            const index_t last = args.starts[row + end[2]];
            for (index_t block = args.starts[row + begin[2]]; block < last; block += ONCE) {
                const float *x = args.middles + block, *y = x + args.row, *z = y + args.row, *half = z + args.row;
                const float *arc = half + args.row;
                float apart[ONCE];
#pragma omp simd
                for (int n = 0; n < ONCE; n++) {
                    const float e = x[n] - u, f = y[n] - v, g = z[n] - w, within = half[n] + far;
                    apart[n] = arc[n] == left ? 0 : e * e + f * f + g * g - within * within;
                }
                for (int n = 0; n < ONCE && block + n < last; n++)
                    if (apart[n] < 0 && count < MAX_AROUND)
                        out[count++] = block + n;
            }
        }
    return count;
}

// Whether the radial projection of a point in a sphere onto that sphere is inside another one.
DEVICE bool is_covered(const Patches &args, const double *at, index_t sphere)
{
    const double *centre = args.centres + 3 * sphere;
    const double scale = args.radii[sphere] / fmax(1e-9, sqrt(squared_distance(at, centre)));
    double there[3];
    for (int d = 0; d < 3; d++)
        there[d] = centre[d] + scale * (at[d] - centre[d]);
    for (index_t n = args.first[sphere]; n < args.first[sphere + 1]; n++) {
        const double reach = args.radii[args.others[n]] - ON;
        if (squared_distance(there, args.centres + 3 * args.others[n]) < reach * reach)
            return true;
    }
    return false;
}

// Points of a patch, from a place in it, and what is near it; numbers after the last point are used, but have no effect.
struct Patch {
    float x[MAX_POINTS + FLOATS], y[MAX_POINTS + FLOATS], z[MAX_POINTS + FLOATS];
    float depth[MAX_POINTS + FLOATS], nearest[MAX_POINTS + FLOATS];
    int owner[MAX_POINTS + FLOATS];
    double sizes[MAX_POINTS];
    index_t around[MAX_AROUND], near[MAX_AROUND];
};

// Add the areas of a patch's points to those of the spheres in which they are deepest. Points with another probe's
// centre at a distance below `least` are left out. is_covered is known to be true for the first `sure` spheres.
DEVICE void add_points(const Patches &args, Patch &patch, const double *place, int count, index_t many, index_t sure,
                       index_t arcs_near, double *area, double *points)
{
    float *x = patch.x, *y = patch.y, *z = patch.z, *depth = patch.depth, *nearest = patch.nearest;
    int *owner = patch.owner;
    const float least = (float)args.least;
    for (int n = 0; n < count + FLOATS; n++) {
        depth[n] = -1e9f;
        nearest[n] = 1e9f;
        owner[n] = 0;
    }
    for (index_t m = 0; m < many; m++) {
        const int sphere = (int)patch.around[m];
        const double *at = args.centres + 3 * (index_t)sphere;
        const float radius = (float)args.radii[sphere];
        const float u = (float)(at[0] - place[0]), v = (float)(at[1] - place[1]), w = (float)(at[2] - place[2]);
        for (int block = 0; block < count; block += FLOATS)
#pragma omp simd
            for (int n = block; n < block + FLOATS; n++) {
                const float e = x[n] - u, f = y[n] - v, g = z[n] - w, here = radius - sqrtf(e * e + f * f + g * g);
                owner[n] = here > depth[n] ? sphere : owner[n];
                depth[n] = here > depth[n] ? here : depth[n];
            }
    }
    for (index_t m = 0; m < arcs_near; m++) {
        const double *p = args.parts + PART * patch.near[m];
        const float u = (float)(p[0] - place[0]), v = (float)(p[1] - place[1]), w = (float)(p[2] - place[2]);
        const float i = (float)p[3], j = (float)p[4], k = (float)p[5], o = (float)p[6], q = (float)p[7];
        const float r = (float)p[8], radius = (float)p[9], cosine = (float)p[10], end_a = (float)p[11];
        const float end_b = (float)p[12];
        for (int block = 0; block < count; block += FLOATS)
#pragma omp simd
            for (int n = block; n < block + FLOATS; n++) {
                const float e = x[n] - u, f = y[n] - v, g = z[n] - w;
                const float a = e * i + f * j + g * k, b = fabsf(e * o + f * q + g * r), across = sqrtf(a * a + b * b);
                const float to_circle = (across - radius) * (across - radius);
                const float to_end = (a - end_a) * (a - end_a) + (b - end_b) * (b - end_b);
                const float off = e * e + f * f + g * g - a * a - b * b;
                const float square = off + (a >= across * cosine ? to_circle : to_end);
                nearest[n] = square < nearest[n] ? square : nearest[n];
            }
    }
    for (int n = 0; n < count; n++) {
        const index_t s = owner[n];
        const double at[3] = {place[0] + x[n], place[1] + y[n], place[2] + z[n]};
        if (depth[n] < least) {
            bool known = false;
            for (index_t m = 0; m < sure; m++)
                known |= patch.around[m] == s;
            if (nearest[n] < least * least || !(known || is_covered(args, at, s)))
                continue;
        }
        area[s] += patch.sizes[n];
        for (int d = 0; d < 3; d++)
            points[3 * s + d] = at[d];
    }
}

// Areas of tori, on which the probe touches two atoms, for a range of arcs.
RANGE_KERNEL(add_strips, Patches, first, last)
{
    static thread_local Patch patch;
    double *area = args.area + first / args.grain * args.spheres;
    double *points = args.points + 3 * (first / args.grain) * args.spheres;
    for (index_t a = first; a < last; a++) {
        const double *arc = args.arcs + ARC * a, radius = arc[9], probe = args.probe;
        const index_t one = (index_t)arc[12], other = (index_t)arc[13];
        double along[3], to_one = 0, to_other = 0;
        for (int d = 0; d < 3; d++)
            along[d] = arc[3 + (d + 1) % 3] * arc[6 + (d + 2) % 3] - arc[3 + (d + 2) % 3] * arc[6 + (d + 1) % 3];
        // angles on the probe, from the inward direction, at which it touches the two atoms; and the atoms' positions
        // along the axis of the torus
        for (int d = 0; d < 3; d++) {
            to_one += (args.centres[3 * one + d] - arc[d]) * along[d];
            to_other += (args.centres[3 * other + d] - arc[d]) * along[d];
        }
        const double angle_one = atan2(to_one, radius), angle_other = atan2(to_other, radius);
        const double begin = fmin(angle_one, angle_other), end = fmax(angle_one, angle_other);
        const int count = (int)fmin(MAX_ACROSS, fmax(1, ceil(probe * (end - begin) / args.piece)));
        const double step = (end - begin) / count;
        double lowest = 1e9, to_axis[MAX_ACROSS], up[MAX_ACROSS];
        int across = 0;
        for (int n = 0; n < count; n++) {
            const double phi = begin + (n + 0.5) * step;
            const double off = to_axis[across] = radius - probe * cos(phi), high = up[across] = probe * sin(phi);
            lowest = fmin(lowest, fmax(args.radii[one] - sqrt(off * off + (high - to_one) * (high - to_one)),
                                       args.radii[other] - sqrt(off * off + (high - to_other) * (high - to_other))));
            // a torus that intersects itself has parts beyond its axis, which another position of the probe covers
            across += off > 0;
        }
        const double middle = 0.5 * (begin + end), half = 0.5 * (end - begin);
        const double reach = probe * sin(half), chord = probe * cos(half);
        const index_t turns = (index_t)fmax(1, ceil(radius * (arc[11] - arc[10]) / args.piece));
        const double turn = (arc[11] - arc[10]) / turns;
        patch.around[0] = one;
        patch.around[1] = other;
        for (index_t first_turn = 0; first_turn < turns; first_turn += TURNS) {
            const index_t some = turns - first_turn < TURNS ? turns - first_turn : TURNS;
            int used = 0;
            double at[3];
            for (index_t t = -1; t < some; t++) {  // first the middle of the points
                const double theta = arc[10] + (first_turn + (t < 0 ? 0.5 * some : t + 0.5)) * turn;
                const double cosine = cos(theta), sine = sin(theta);
                double outwards[3];
                for (int d = 0; d < 3; d++)
                    outwards[d] = cosine * arc[3 + d] + sine * arc[6 + d];
                for (int d = 0; t < 0 && d < 3; d++)
                    at[d] = arc[d] + (radius - chord * cos(middle)) * outwards[d] + chord * sin(middle) * along[d];
                for (int n = 0; t >= 0 && n < across; n++) {
                    patch.x[used] = (float)(arc[0] - at[0] + to_axis[n] * outwards[0] + up[n] * along[0]);
                    patch.y[used] = (float)(arc[1] - at[1] + to_axis[n] * outwards[1] + up[n] * along[1]);
                    patch.z[used] = (float)(arc[2] - at[2] + to_axis[n] * outwards[2] + up[n] * along[2]);
                    patch.sizes[used++] = probe * step * to_axis[n] * turn;
                }
            }
            const double wide = reach + 0.5 * some * turn * radius;
            const index_t many = spheres_around(args, at, wide - lowest, one, 2, patch.around);
            const index_t arcs_near = parts_around(args, at, wide + args.least, a, patch.near);
            add_points(args, patch, at, used, many, 2, arcs_near, area, points);  // each atom is covered by the other one
        }
    }
}

// Areas of spherical triangles on probes that touch three atoms, by points in `directions`.
RANGE_KERNEL(add_corners, Patches, first, last)
{
    static thread_local Patch patch;
    double *area = args.area + first / args.grain * args.spheres;
    double *points = args.points + 3 * (first / args.grain) * args.spheres;
    for (index_t p = first; p < last; p++) {
        const double *at = args.places + 3 * p;
        double to[3][3], normals[3][3], side = 0;
        for (int n = 0; n < 3; n++) {
            patch.around[n] = args.triples[3 * p + n];
            for (int d = 0; d < 3; d++)
                to[n][d] = args.centres[3 * patch.around[n] + d] - at[d];
        }
        for (int n = 0; n < 3; n++) {
            const double *v = to[(n + 1) % 3], *w = to[(n + 2) % 3];
            for (int d = 0; d < 3; d++)
                normals[n][d] = v[(d + 1) % 3] * w[(d + 2) % 3] - v[(d + 2) % 3] * w[(d + 1) % 3];
        }
        for (int d = 0; d < 3; d++)
            side += to[0][d] * normals[0][d];
        const double sign = side > 0 ? 1 : -1;
        int used = 0;
        float n0[3], n1[3], n2[3], between[ONCE];
        for (int d = 0; d < 3; d++) {
            n0[d] = (float)(sign * normals[0][d]);
            n1[d] = (float)(sign * normals[1][d]);
            n2[d] = (float)(sign * normals[2][d]);
        }
        const float *x = args.directions, *y = x + args.checked, *z = y + args.checked, probe = (float)args.probe;
        for (index_t block = 0; block < args.checked; block += ONCE) {
            // a direction in the triangle is a sum of the three atoms' directions with positive factors
#pragma omp simd
            for (int k = 0; k < ONCE; k++) {
                const float u = x[block + k], v = y[block + k], w = z[block + k];
                const float a = u * n0[0] + v * n0[1] + w * n0[2], b = u * n1[0] + v * n1[1] + w * n1[2];
                const float c = u * n2[0] + v * n2[1] + w * n2[2];
                between[k] = a < b ? (a < c ? a : c) : b < c ? b : c;
            }
            for (int k = 0; k < ONCE; k++)
                if (between[k] >= 0) {
                    patch.x[used] = probe * x[block + k];
                    patch.y[used] = probe * y[block + k];
                    patch.z[used] = probe * z[block + k];
                    patch.sizes[used++] = 4 * M_PI * args.probe * args.probe / args.checked;
                }
        }
        const index_t many = spheres_around(args, at, args.probe, patch.around[0], 3, patch.around);
        const index_t arcs_near = parts_around(args, at, args.probe + args.least, -1, patch.near);
        add_points(args, patch, at, used, many, 0, arcs_near, area, points);
    }
}
#endif
