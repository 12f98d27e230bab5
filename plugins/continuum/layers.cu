// Charges around points, by their distance along a slab.
#include "kernel.h"

struct ByDistance {
    const double *points, *columns;  // (points, 2), (column_count, 2)
    const double *charges;           // (column_count, levels)
    double *out;                     // (points, count, levels) 0 at first
    index_t column_count, levels, count;
    double near, step;               // the distances n = 0, 1, ... are near (exp(step n) - 1)
};

// Distribute the charges of each column to distances from a point, by the cubic polynomials of interpolation there.
KERNEL(add_by_distance, ByDistance, p)
{
    double *own = args.out + p * args.count * args.levels;
    for (index_t c = 0; c < args.column_count; c++) {
        const double dx = args.columns[2 * c] - args.points[2 * p];
        const double dy = args.columns[2 * c + 1] - args.points[2 * p + 1];
        const double x = log1p(sqrt(dx * dx + dy * dy) / args.near) / args.step;
        index_t first = (index_t)x - 1;
        first = first < 0 ? 0 : first > args.count - 4 ? args.count - 4 : first;
        const double a = x - first, b = a - 1, d = a - 2, e = a - 3;
        const double wa = -b * d * e / 6, wb = a * d * e / 2, wd = -a * b * e / 2, we = a * b * d / 6;
        const double *charges = args.charges + c * args.levels;
        double *to = own + first * args.levels;
        for (index_t l = 0; l < args.levels; l++) {
            to[l] += wa * charges[l];
            to[args.levels + l] += wb * charges[l];
            to[2 * args.levels + l] += wd * charges[l];
            to[3 * args.levels + l] += we * charges[l];
        }
    }
}
