// Histograms of distances, between the atoms of a cell and those of the rows of cells around it.
#include "kernel.h"
#ifndef __CUDACC__

// Number of distances that are computed before they are counted.
static const index_t BUFFER = 1024;

struct Distances {
    const double *px, *py, *pz;   // atoms i, sorted by cell with z fastest
    const index_t *first_i;       // (cells + 1,) the first atom of each cell
    const double *x, *y, *z;      // the same of atoms j
    const index_t *first_j;
    const index_t *rows;          // (rows, 4) around a cell: offsets along two vectors, first and last along the third
    int *places;                  // (BUFFER,) scratch
    index_t *counts;              // (4, bins + 1) tables, to be added; the last bin is of all longer distances
    index_t shape[3];             // number of cells along the vectors
    index_t row_count, bins;
    double basis[3][3], scale;    // the vectors; bins per length
    bool periodic;
    bool alone;                   // atoms j are atoms i: rows are on one side, pairs within a cell count once
};

// The quotient, rounded down.
DEVICE index_t floor_quotient(index_t a, index_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// Count the distances of atoms first to last from (a, b, c).
DEVICE void count_distances_from(const Distances &args, index_t first, index_t last, double a, double b, double c)
{
    index_t *tables[4];  // increments of one table would wait for each other
    for (int n = 0; n < 4; n++)
        tables[n] = args.counts + n * (args.bins + 1);
    const double scale = args.scale, top = (double)args.bins;
    for (index_t begin = first; begin < last; begin += BUFFER) {
        const index_t size = last - begin < BUFFER ? last - begin : BUFFER;
        const double *x = args.x + begin, *y = args.y + begin, *z = args.z + begin;
        int *places = args.places;
#pragma omp simd
        for (index_t k = 0; k < size; k++) {
            const double dx = x[k] - a, dy = y[k] - b, dz = z[k] - c;
            const double bin = sqrt(dx * dx + dy * dy + dz * dz) * scale;
            places[k] = (int)(bin < top ? bin : top);
        }
        index_t k = 0;
        for (; k + 4 <= size; k += 4)
            for (int n = 0; n < 4; n++)
                tables[n][places[k + n]]++;
        for (; k < size; k++)
            tables[0][places[k]]++;
    }
}

RANGE_KERNEL(count_distances, Distances, first, last)
{
    const index_t na = args.shape[0], nb = args.shape[1], nc = args.shape[2];
    for (index_t cell = first; cell < last; cell++) {
        if (args.first_i[cell] == args.first_i[cell + 1])
            continue;
        const index_t ca = cell / (nb * nc), cb = cell / nc % nb, cc = cell % nc;
        for (index_t r = 0; r < args.row_count; r++) {
            const index_t *row = args.rows + 4 * r;
            const index_t a = ca + row[0], b = cb + row[1];
            const index_t ia = floor_quotient(a, na), ib = floor_quotient(b, nb);
            index_t c = cc + row[2], end_c = cc + row[3];
            if (!args.periodic) {
                if (ia != 0 || ib != 0)
                    continue;
                c = c > 0 ? c : 0;
                end_c = end_c < nc - 1 ? end_c : nc - 1;
            }
            const bool own = args.alone && row[0] == 0 && row[1] == 0;
            const index_t start = ((a - ia * na) * nb + b - ib * nb) * nc;
            while (c <= end_c) {  // image by image
                const index_t ic = floor_quotient(c, nc), end = end_c < ic * nc + nc - 1 ? end_c : ic * nc + nc - 1;
                const index_t begin = args.first_j[start + c - ic * nc], stop = args.first_j[start + end - ic * nc + 1];
                double shift[3];
                for (int d = 0; d < 3; d++)
                    shift[d] = ia * args.basis[0][d] + ib * args.basis[1][d] + ic * args.basis[2][d];
                for (index_t i = args.first_i[cell]; i < args.first_i[cell + 1]; i++)
                    // a row of the cell itself begins with it
                    count_distances_from(args, own && c == cc ? i + 1 : begin, stop, args.px[i] - shift[0],
                                         args.py[i] - shift[1], args.pz[i] - shift[2]);
                c = end + 1;
            }
        }
    }
}
#endif
