// Areas of surfaces: sums over points of patches that no other position of the probe covers.
#include "kernel.h"
#ifndef __CUDACC__

#define ON 1e-5          // reduction of a sphere's radius in tests whether points are inside, A: points on it are outside
#define MAX_AROUND 4096  // spheres, and parts of arcs, around a patch
#define MAX_POINTS 4096  // points of a patch that are computed at once
#define TURNS 5          // rows of points along an arc that are computed at once; their length is at most PART in areas.py
#define MAX_ACROSS 800   // points of such a row
#define ARC 16           // numbers of an arc, as in surfaces/region.py
#define PART 18          // numbers of a part of an arc, see cut_arcs


DEVICE double squared_distance(const double *a, const double *b)
{
    const double x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
    return x * x + y * y + z * z;
}

struct FreePoints {
    const double *directions;    // (checked, 3) unit vectors
    const bool *touched;         // (spheres,) whether other spheres intersect it
    const double *centres, *radii;
    const index_t *first;
    const int *others;
    index_t *counts;             // (spheres,) the free points
    double *points;              // (spheres, 3) one of them
    index_t checked;
};

// Count the points of a sphere in `directions` that are in no other sphere. A sphere that no other one intersects is
// entirely free or entirely covered, so that one point is enough.
KERNEL(count_free_points, FreePoints, s)
{
    const int *around = args.others + args.first[s];
    const index_t neighbours = args.first[s + 1] - args.first[s];
    const index_t checked = args.touched[s] ? args.checked : 1;
    index_t hit = 0, count = 0;
    for (index_t d = 0; d < checked; d++) {
        double at[3];
        for (int c = 0; c < 3; c++)
            at[c] = args.centres[3 * s + c] + args.directions[3 * d + c] * args.radii[s];
        bool inside = false;
        for (index_t n = 0; n < neighbours && !inside; n++) {
            // first the sphere that covers the preceding point, as it is likely to cover this one
            const index_t place = n == 0 ? hit : n <= hit ? n - 1 : n, other = around[place];
            const double reach = args.radii[other] - ON;
            if (squared_distance(at, args.centres + 3 * other) < reach * reach) {
                inside = true;
                hit = place;
            }
        }
        if (!inside) {
            count++;
            for (int c = 0; c < 3; c++)
                args.points[3 * s + c] = at[c];
        }
    }
    args.counts[s] = args.touched[s] ? count : count * args.checked;
}

struct LostPoints {
    const double *directions;    // (checked, 3) unit vectors
    const double *centres, *radii;
    const index_t *first, *rows; // (spheres + 1,); the spheres of this kernel's elements
    const int *others;
    const bool *parts;           // (spheres,) of which of two molecules each is
    index_t *counts;             // (rows,) the points that the other molecule covers
    index_t checked;
};

// Whether a point is in one of the neighbours of one molecule; the one at `hit`, which covered the preceding point, is first.
DEVICE bool covered_by(const LostPoints &args, const int *around, index_t neighbours, bool part, const double *at,
                       index_t &hit)
{
    for (index_t n = -1; n < neighbours; n++) {
        const index_t place = n < 0 ? hit : n, other = around[place];
        const double reach = args.radii[other] - ON;
        if (args.parts[other] == part && squared_distance(at, args.centres + 3 * other) < reach * reach) {
            hit = place;
            return true;
        }
    }
    return false;
}

// Count the points of a sphere in `directions` that are in a sphere of the other molecule, but in none of its own.
KERNEL(count_lost_points, LostPoints, row)
{
    const index_t s = args.rows[row], neighbours = args.first[s + 1] - args.first[s];
    const int *around = args.others + args.first[s];
    index_t own = 0, foreign = 0, count = 0;
    for (index_t d = 0; d < args.checked; d++) {
        double at[3];
        for (int c = 0; c < 3; c++)
            at[c] = args.centres[3 * s + c] + args.directions[3 * d + c] * args.radii[s];
        count += !covered_by(args, around, neighbours, args.parts[s], at, own)
                 && covered_by(args, around, neighbours, !args.parts[s], at, foreign);
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
    const index_t *starts;                // cube c has the parts from starts[c] to starts[c + 1]
    const double *arcs;                   // (A, ARC), for strips
    const double *places, *directions;    // (C, 3) probes that touch three atoms, for corners; (D, 3) unit vectors
    const index_t *triples;               // (C, 3) these atoms
    double *area, *points;                // (pieces, spheres) and (pieces, spheres, 3) results
    index_t counts[3];                    // cubes
    double low[3];
    double side;                          // of cubes: at least the search distance and half of a part's longest distance
    double piece, probe, least;           // points are this far apart; those nearer to another probe are left out
    index_t checked, spheres, grain;      // directions, spheres, and patches of one piece of work
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
    for (index_t i = begin[0]; i < end[0]; i++)
        for (index_t j = begin[1]; j < end[1]; j++) {
            const index_t row = (i * args.counts[1] + j) * args.counts[2];
            for (index_t n = args.starts[row + begin[2]]; n < args.starts[row + end[2]]; n++) {
                const double *part = args.parts + PART * n;
                const double far = part[16] + reach;
                if (squared_distance(at, part + 13) < far * far && part[17] != left_out && count < MAX_AROUND)
                    out[count++] = n;
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

// Points of a patch, and what is near it.
struct Patch {
    double x[MAX_POINTS], y[MAX_POINTS], z[MAX_POINTS], sizes[MAX_POINTS];
    double depth[MAX_POINTS], nearest[MAX_POINTS];
    index_t owner[MAX_POINTS];
    index_t around[MAX_AROUND], near[MAX_AROUND];
};

// Add the areas of a patch's points to those of the spheres in which they are deepest. Points with another probe's
// centre at a distance below `least` are left out. is_covered is known to be true for the first `sure` spheres.
DEVICE void add_points(const Patches &args, Patch &patch, int count, index_t many, index_t sure, index_t arcs_near,
                       double *area, double *points)
{
    double *x = patch.x, *y = patch.y, *z = patch.z, *depth = patch.depth, *nearest = patch.nearest;
    index_t *owner = patch.owner;
    for (int n = 0; n < count; n++) {
        depth[n] = -1e9;
        nearest[n] = 1e9;
        owner[n] = 0;
    }
    for (index_t m = 0; m < many; m++) {
        const index_t sphere = patch.around[m];
        const double *at = args.centres + 3 * sphere, radius = args.radii[sphere], u = at[0], v = at[1], w = at[2];
#pragma omp simd
        for (int n = 0; n < count; n++) {
            const double e = x[n] - u, f = y[n] - v, g = z[n] - w, here = radius - sqrt(e * e + f * f + g * g);
            owner[n] = here > depth[n] ? sphere : owner[n];
            depth[n] = here > depth[n] ? here : depth[n];
        }
    }
    for (index_t m = 0; m < arcs_near; m++) {
        const double *p = args.parts + PART * patch.near[m];
        const double u = p[0], v = p[1], w = p[2], i = p[3], j = p[4], k = p[5], o = p[6], q = p[7], r = p[8];
        const double radius = p[9], cosine = p[10], end_a = p[11], end_b = p[12];
#pragma omp simd
        for (int n = 0; n < count; n++) {
            const double e = x[n] - u, f = y[n] - v, g = z[n] - w;
            const double a = e * i + f * j + g * k, b = fabs(e * o + f * q + g * r), across = sqrt(a * a + b * b);
            const double to_circle = (across - radius) * (across - radius);
            const double to_end = (a - end_a) * (a - end_a) + (b - end_b) * (b - end_b);
            const double square = e * e + f * f + g * g - a * a - b * b + (a >= across * cosine ? to_circle : to_end);
            nearest[n] = square < nearest[n] ? square : nearest[n];
        }
    }
    for (int n = 0; n < count; n++) {
        const index_t s = owner[n];
        const double at[3] = {x[n], y[n], z[n]};
        if (depth[n] < args.least) {
            bool known = false;
            for (index_t m = 0; m < sure; m++)
                known |= patch.around[m] == s;
            if (nearest[n] < args.least * args.least || !(known || is_covered(args, at, s)))
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
                    patch.x[used] = arc[0] + to_axis[n] * outwards[0] + up[n] * along[0];
                    patch.y[used] = arc[1] + to_axis[n] * outwards[1] + up[n] * along[1];
                    patch.z[used] = arc[2] + to_axis[n] * outwards[2] + up[n] * along[2];
                    patch.sizes[used++] = probe * step * to_axis[n] * turn;
                }
            }
            const double wide = reach + 0.5 * some * turn * radius;
            const index_t many = spheres_around(args, at, wide - lowest, one, 2, patch.around);
            const index_t arcs_near = parts_around(args, at, wide + args.least, a, patch.near);
            add_points(args, patch, used, many, 2, arcs_near, area, points);  // each atom is covered by the other one
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
        for (index_t k = 0; k < args.checked && used < MAX_POINTS; k++) {
            const double *towards = args.directions + 3 * k;
            // a direction in the triangle is a sum of the three atoms' directions with positive factors
            bool between = true;
            for (int n = 0; n < 3; n++)
                between &= sign * (towards[0] * normals[n][0] + towards[1] * normals[n][1]
                                   + towards[2] * normals[n][2]) >= 0;
            if (between) {
                patch.x[used] = at[0] + args.probe * towards[0];
                patch.y[used] = at[1] + args.probe * towards[1];
                patch.z[used] = at[2] + args.probe * towards[2];
                patch.sizes[used++] = 4 * M_PI * args.probe * args.probe / args.checked;
            }
        }
        const index_t many = spheres_around(args, at, args.probe, patch.around[0], 3, patch.around);
        const index_t arcs_near = parts_around(args, at, args.probe + args.least, -1, patch.near);
        add_points(args, patch, used, many, 0, arcs_near, area, points);
    }
}
#endif
