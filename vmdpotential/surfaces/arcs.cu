// The arcs on which a probe rolls that touches two spheres, and what they need: spheres sorted by cubes, and neighbours.
#include "kernel.h"

#define BINS 16  // ranges of distance by which the neighbours of a sphere are sorted, as in region.py
#define ARC 16   // numbers that describe an arc, see write_arcs

// Largest number of parts of a circle that are outside of other spheres.
#ifdef __CUDACC__
#define MAX_PARTS 32
#else
#include "vectors.h"
#define MAX_PARTS 512
#endif

DEVICE index_t smaller(index_t a, index_t b) { return a < b ? a : b; }
DEVICE index_t larger(index_t a, index_t b) { return a > b ? a : b; }

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

// The begin and end of what the sphere buries of the circle, as in turns.
DEVICE void find_buried(const Circle &c, double x, double y, double z, double level, double rest, double &begin,
                        double &end)
{
    const double root = sqrt(rest > 0 ? rest : 0);
    const double to_x = -(x * c.u[0] + y * c.u[1] + z * c.u[2]), to_y = -(x * c.v[0] + y * c.v[1] + z * c.v[2]);
    begin = turns(to_x * level - to_y * root, to_y * level + to_x * root);
    end = turns(to_x * level + to_y * root, to_y * level - to_x * root);
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

#ifdef __CUDACC__

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
        else {
            double begin, end;
            find_buried(c, x, y, z, level, rest, begin, end);
            left = remove_range(parts, left, begin, end, other);
        }
        if (left > MAX_PARTS) {
            add_atomically(args.totals + 1, 1);
            left = 0;
        }
    }
    write_arcs(args, c, a, b, parts, left);
}

#else

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
            for (index_t block = 0; block < count && left; block += FLOATS) {  // near spheres bury most circles
                double begins[FLOATS], ends[FLOATS];
#pragma omp simd
                for (int n = 0; n < FLOATS; n++)
                    find_buried(c, x[block + n], y[block + n], z[block + n], levels[block + n], rests[block + n],
                                begins[n], ends[n]);
                for (int n = 0; n < FLOATS && left; n++) {
                    // the sphere's surface does not cut the circle, or the circle is on it
                    if (rests[block + n] <= 0 || block + n == m)
                        continue;
                    left = remove_range(parts, left, begins[n], ends[n], others[block + n]);
                    left = left > MAX_PARTS ? MAX_PARTS : left;
                }
            }
            write_arcs(args, c, a, b, parts, left);
        }
    }
    free(scratch);
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
