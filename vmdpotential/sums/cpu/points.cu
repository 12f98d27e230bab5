// Sums at arbitrary points in float64: over the nearest images of all atoms, over all atoms with the field, and over
// the atoms within a cutoff.
//
// Squared distances are collected in a buffer, the radial function is evaluated for all of them, and its values are
// summed. The sum at a point does not depend on the other points, nor on the number of threads.
#include "kernel.h"
#ifndef __CUDACC__
#include "images.h"
#include "radial_values.h"

enum {
    BLOCK = 64,    // points that are summed together over all atoms
    BUFFER = 512,  // pairs in a buffer
};

struct AllAtoms {
    const double *px, *py, *pz;    // points
    const double *x, *y, *z, *q;   // atoms
    index_t atom_count;
    double basis[3][3], inverse[3][3];
    const double *shifts;
    int shift_count;
    double soft2, cutoff2;
    double *out, *least;           // sums, and squared distances to the nearest atom
    int number;                    // of the function in radial.h; -1 if it is interpreted
    const double *uniforms, *constants, *tables;  // of the function, and of its instructions
    const int *steps, *results;
    int uniform_count, step_count, constant_count, table_count, register_count;
};

// Squared distances of some atoms from vectors of points; those of one vector follow each other.
template <int KIND>
static void find_distances(const AllAtoms &args, const Images images, const double (&points)[3][BLOCK], int vectors,
                           index_t first, int count, double *r2)
{
    for (int v = 0; v < vectors; v++) {
        const doubles x = load<doubles>(points[0] + v * DOUBLES), y = load<doubles>(points[1] + v * DOUBLES);
        const doubles z = load<doubles>(points[2] + v * DOUBLES);
        for (index_t j = first; j < first + count; j++, r2 += DOUBLES) {
            doubles d[3] = {x - args.x[j], y - args.y[j], z - args.z[j]};
            store(r2, images.nearest_square<KIND>(d));
        }
    }
}

// The sums of all atoms at points from first to last.
RANGE_KERNEL(sum_at_points, AllAtoms, first, last)
{
    const RadialValues radial(args);
    const Images images(args);
    const doubles cutoff2 = traced::fill<doubles>(args.cutoff2 > args.soft2 ? args.cutoff2 : 0);
    double points[3][BLOCK], r2[BUFFER], values[BUFFER], sums[BLOCK], least[BLOCK];
    const double *from[3] = {args.px, args.py, args.pz};
    for (index_t block = first; block < last; block += BLOCK) {
        const int count = last - block < BLOCK ? (int)(last - block) : BLOCK;
        const int vectors = (count + DOUBLES - 1) / DOUBLES, together = BUFFER / (vectors * DOUBLES);
        for (int i = 0; i < vectors * DOUBLES; i++) {
            for (int d = 0; d < 3; d++)
                points[d][i] = from[d][block + (i < count ? i : 0)];
            sums[i] = 0;
            least[i] = INFINITY;
        }
        for (index_t j = 0; j < args.atom_count; j += together) {
            const int atoms = args.atom_count - j < together ? (int)(args.atom_count - j) : together;
            const auto find = images.kind == Images::NONE ? find_distances<Images::NONE>
                : images.kind == Images::ALONG_AXES ? find_distances<Images::ALONG_AXES> : find_distances<Images::ANY>;
            find(args, images, points, vectors, j, atoms, r2);
            radial(r2, vectors * atoms * DOUBLES, values);
            for (int v = 0; v < vectors; v++) {
                doubles sum = load<doubles>(sums + v * DOUBLES), near = load<doubles>(least + v * DOUBLES);
                for (int n = 0; n < atoms; n++) {
                    const int k = (v * atoms + n) * DOUBLES;
                    const doubles square = load<doubles>(r2 + k), term = load<doubles>(values + k) * args.q[j + n];
                    near = traced::min(near, square);
                    sum += traced::select(square < cutoff2, term, doubles{});
                }
                store(sums + v * DOUBLES, sum);
                store(least + v * DOUBLES, near);
            }
        }
        memcpy(args.out + block, sums, count * sizeof(double));
        memcpy(args.least + block, least, count * sizeof(double));
    }
}

// The pairs of one point, and their sums.
struct Pairs {
    const RadialValues &radial;
    const bool field;
    const doubles soft2;
    doubles totals[4];  // potential and gradient
    int count;
    double r2[BUFFER + DOUBLES], q[BUFFER + DOUBLES], d[3][BUFFER + DOUBLES];
    double values[BUFFER + DOUBLES], derivatives[BUFFER + DOUBLES];

    Pairs(const RadialValues &radial, bool field, double soft2)
        : radial(radial), field(field), soft2(traced::fill<doubles>(soft2)), totals{}, count(0)
    {
    }

    void sum()
    {
        for (int k = count; k % DOUBLES; k++) {
            r2[k] = r2[0];
            q[k] = d[0][k] = d[1][k] = d[2][k] = 0;
        }
        radial(r2, count, values, derivatives);
        for (int k = 0; k < count; k += DOUBLES) {
            const doubles charge = load<doubles>(q + k);
            totals[0] += charge * load<doubles>(values + k);
            if (field) {
                const doubles slope = 2 * charge * load<doubles>(derivatives + k);
                const doubles factor = traced::select(load<doubles>(r2 + k) < soft2, doubles{}, slope);
                for (int n = 0; n < 3; n++)
                    totals[n + 1] += factor * load<doubles>(d[n] + k);
            }
        }
        count = 0;
    }

    // Sum the rest, add the totals to the results of a point, and start with the next one.
    void finish(double *out, index_t point, index_t points)
    {
        sum();
        for (int n = 0; n < (field ? 4 : 1); n++) {
            double parts[DOUBLES];
            store(parts, totals[n]);
            for (int size = DOUBLES / 2; size; size /= 2)
                for (int i = 0; i < size; i++)
                    parts[i] += parts[i + size];
            out[n * points + point] += parts[0];
            totals[n] = doubles{};
        }
    }
};

struct AtomsInBins {
    const double *px, *py, *pz;    // points
    index_t point_count;
    const double *x, *y, *z, *q;   // atoms, sorted by bin; up to a vector beyond the last is read but does not count
    const int64_t *start;          // (bins + 1,) first atom of each bin
    index_t bins[3];               // along each axis, with x slowest; coordinates are relative to the first bin's corner
    double size;                   // of a bin; infinite if there is only one
    bool field;                    // the gradient as well
    double soft2, cutoff2;
    double *out;                   // (1 or 4, P)
    int number;
    const double *uniforms, *constants, *tables;
    const int *steps, *results;
    int uniform_count, step_count, constant_count, table_count, register_count;
};

// The first and the last bin along an axis within reach. Of a NaN, from an infinite bin, min and max return their second
// argument.
DEVICE void find_span(double place, double reach, double size, index_t count, index_t &first, index_t &last)
{
    first = (index_t)traced::max(__builtin_floor((place - reach) / size), 0.0);
    last = (index_t)traced::min(__builtin_floor((place + reach) / size), count - 1.0);
}

// The distance of a place to a bin.
DEVICE double gap(index_t bin, double size, double place)
{
    return traced::max(traced::max(bin * size - place, place - (bin + 1) * size), 0.0);
}

// Collect the atoms from first to last within the cutoff of a point.
static void collect(const AtomsInBins &args, const double *point, index_t first, index_t last, Pairs &pairs)
{
    static const double places[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const doubles cutoff2 = traced::fill<doubles>(args.cutoff2), place = load<doubles>(places);
    const bool all = args.cutoff2 == INFINITY;
    const int arrays = args.field ? 5 : 2;
    for (index_t j = first; j < last; j += DOUBLES) {
        const doubles dx = point[0] - load<doubles>(args.x + j), dy = point[1] - load<doubles>(args.y + j);
        const doubles dz = point[2] - load<doubles>(args.z + j), square = Images::square(dx, dy, dz);
        const doubles values[5] = {square, load<doubles>(args.q + j), dx, dy, dz};
        double *const to[5] = {pairs.r2, pairs.q, pairs.d[0], pairs.d[1], pairs.d[2]};
        int found = DOUBLES;
        if (all && last - j >= DOUBLES) {
            for (int n = 0; n < arrays; n++)
                store(to[n] + pairs.count, values[n]);
        } else {
            const auto counts = (square < cutoff2) & (place < (double)(last - j));
            for (int n = 0; n < arrays; n++)
                found = traced::append(to[n] + pairs.count, values[n], counts);
        }
        pairs.count += found;
        if (pairs.count > BUFFER - DOUBLES)
            pairs.sum();
    }
}

// Add the sums of the atoms within the cutoff to points from first to last.
RANGE_KERNEL(sum_near_points, AtomsInBins, first, last)
{
    const RadialValues radial(args, args.field);
    Pairs pairs(radial, args.field, args.soft2);
    const double cutoff2 = args.cutoff2, size = args.size;
    for (index_t i = first; i < last; i++) {
        const double point[3] = {args.px[i], args.py[i], args.pz[i]};
        index_t low[3], high[3];
        find_span(point[0], sqrt(cutoff2), size, args.bins[0], low[0], high[0]);
        for (index_t bx = low[0]; bx <= high[0]; bx++) {
            const double gx = gap(bx, size, point[0]), rest_x = cutoff2 - gx * gx;
            if (!(rest_x > 0))
                continue;
            find_span(point[1], sqrt(rest_x), size, args.bins[1], low[1], high[1]);
            for (index_t by = low[1]; by <= high[1]; by++) {
                const double gy = gap(by, size, point[1]), rest = rest_x - gy * gy;
                if (!(rest > 0))
                    continue;
                // the atoms of bins in a row along z are contiguous
                find_span(point[2], sqrt(rest), size, args.bins[2], low[2], high[2]);
                const index_t row = (bx * args.bins[1] + by) * args.bins[2];
                if (low[2] <= high[2])
                    collect(args, point, args.start[row + low[2]], args.start[row + high[2] + 1], pairs);
            }
        }
        pairs.finish(args.out, i, args.point_count);
    }
}
#endif
