// Histograms of distances, between the atoms of a cell and those of the rows of cells around it.
#include "kernel.h"

struct CellPlaces {
    const double *positions;      // (N, 3)
    int *cells;                   // (N,) the cell of each atom
    index_t *counts, *following;  // (cells,) number of atoms of each; place of the next one, which is increased
    double *x, *y, *z;            // (N,) results: atoms, wrapped and sorted by cell
    double basis[3][3], inverse[3][3], low[3];
    int shape[3];
    bool wraps;
};

// The cell of an atom, and its position, wrapped into the box of the vectors if it is periodic.
DEVICE int find_cell(const CellPlaces &args, index_t n, double (&at)[3])
{
    double apart[3];
    for (int d = 0; d < 3; d++) {
        at[d] = args.positions[3 * n + d];
        apart[d] = at[d] - args.low[d];
    }
    int cell = 0;
    for (int k = 0; k < 3; k++) {
        double part = apart[0] * args.inverse[0][k] + apart[1] * args.inverse[1][k] + apart[2] * args.inverse[2][k];
        if (args.wraps) {
            const double whole = floor(part);
            part -= whole;
            for (int d = 0; d < 3; d++)
                at[d] -= whole * args.basis[k][d];
        }
        const double place = part * args.shape[k];
        const int last = args.shape[k] - 1;
        cell = cell * args.shape[k] + (place > 0 ? place < last ? (int)place : last : 0);
    }
    return cell;
}

KERNEL(place_in_cells, CellPlaces, n)
{
    double at[3];
    args.cells[n] = find_cell(args, n, at);
    add_atomically(args.counts + args.cells[n], 1);
}

// The order within a cell does not matter: counts are the same in any.
KERNEL(sort_by_cells, CellPlaces, n)
{
    double at[3];
    find_cell(args, n, at);
    const index_t place = add_atomically(args.following + args.cells[n], 1);
    args.x[place] = at[0];
    args.y[place] = at[1];
    args.z[place] = at[2];
}

struct Distances {
    const double *px, *py, *pz;   // atoms i, sorted by cell with z fastest
    const index_t *first_i;       // (cells + 1,) the first atom of each cell
    const double *x, *y, *z;      // the same of atoms j
    const index_t *first_j;
    const int *rows;              // (rows, 4) around a cell: offsets along two vectors, first and last along the third
    index_t *counts;              // (bins,) to which is added
    int shape[3];                 // number of cells along the vectors
    int row_count, parts;         // rows, and parts among which they are divided; an element is a cell and a part
    int bins;
    double basis[3][3], low[3];   // the vectors, and the corner from which they begin
    double scale;                 // bins per length
    bool periodic;
    bool alone;                   // atoms j are atoms i: rows are on one side, pairs within a cell count once
};

// The quotient, rounded down.
DEVICE int floor_quotient(int a, int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// Call use(begin, end, shift, own) for the atoms j in each range of cells around the cell of an element, at an image; own
// if the range begins with the atoms of the cell itself, of whose pairs each counts once.
template <class Use> DEVICE void for_ranges(const Distances &args, index_t element, Use use)
{
    const int na = args.shape[0], nb = args.shape[1], nc = args.shape[2], cells = na * nb * nc;
    const int cell = (int)element % cells, part = (int)element / cells;
    const int ca = cell / (nb * nc), cb = cell / nc % nb, cc = cell % nc;
    for (int r = part; r < args.row_count; r += args.parts) {
        const int *row = args.rows + 4 * (index_t)r;
        const int a = ca + row[0], b = cb + row[1];
        const int ia = floor_quotient(a, na), ib = floor_quotient(b, nb);
        int c = cc + row[2], end_c = cc + row[3];
        if (!args.periodic) {
            if (ia != 0 || ib != 0)
                continue;
            c = c > 0 ? c : 0;
            end_c = end_c < nc - 1 ? end_c : nc - 1;
        }
        const bool own = args.alone && row[0] == 0 && row[1] == 0;
        const int start = ((a - ia * na) * nb + b - ib * nb) * nc;
        while (c <= end_c) {  // image by image
            const int ic = floor_quotient(c, nc), end = end_c < ic * nc + nc - 1 ? end_c : ic * nc + nc - 1;
            double shift[3];
            for (int d = 0; d < 3; d++)
                shift[d] = ia * args.basis[0][d] + ib * args.basis[1][d] + ic * args.basis[2][d];
            // a row of the cell itself begins with it
            use(args.first_j[start + c - ic * nc], args.first_j[start + end - ic * nc + 1], shift, own && c == cc);
            c = end + 1;
        }
    }
}

#ifdef __CUDACC__

// Number of counts in shared memory; with more bins, counts are in global memory.
#define SHARED_COUNTS 4096
#define WARPS (BLOCK_THREADS / 32)

// A block has one element. Its threads take the atoms j in turn, for all atoms i of the cell, which are in shared memory
// relative to its centre, so that float32 suffices. Each warp has counts of its own, if they fit.
BLOCK_KERNEL(count_distances, Distances)
{
    __shared__ unsigned all_counts[SHARED_COUNTS];
    __shared__ float at[3][BLOCK_THREADS];
    const int thread = (int)threadIdx.x, bins = args.bins;
    const int copies = bins > SHARED_COUNTS ? 0 : SHARED_COUNTS / bins < WARPS ? SHARED_COUNTS / bins : WARPS;
    unsigned *const counts = all_counts + (copies ? thread / 32 % copies * bins : 0);
    const float scale = (float)args.scale, square = (float)((bins / args.scale) * (bins / args.scale));
    for (int n = thread; n < copies * bins; n += BLOCK_THREADS)
        all_counts[n] = 0;
    const int cell = blockIdx.x % (args.shape[0] * args.shape[1] * args.shape[2]);
    const int place[3] = {cell / (args.shape[1] * args.shape[2]), cell / args.shape[2] % args.shape[1],
                          cell % args.shape[2]};
    double origin[3];
    for (int d = 0; d < 3; d++) {
        origin[d] = args.low[d];
        for (int k = 0; k < 3; k++)
            origin[d] += (place[k] + 0.5) / args.shape[k] * args.basis[k][d];
    }
    const index_t first = args.first_i[cell], last = args.first_i[cell + 1];
    for (index_t begin = first; begin < last; begin += BLOCK_THREADS) {
        const int size = last - begin < BLOCK_THREADS ? (int)(last - begin) : BLOCK_THREADS;
        __syncthreads();
        if (thread < size) {
            at[0][thread] = (float)(args.px[begin + thread] - origin[0]);
            at[1][thread] = (float)(args.py[begin + thread] - origin[1]);
            at[2][thread] = (float)(args.pz[begin + thread] - origin[2]);
        }
        __syncthreads();
        for_ranges(args, blockIdx.x, [&](index_t from, index_t end, const double (&shift)[3], bool own) {
            for (index_t j = from + thread; j < end; j += BLOCK_THREADS) {
                const float x = (float)(args.x[j] + shift[0] - origin[0]), y = (float)(args.y[j] + shift[1] - origin[1]);
                const float z = (float)(args.z[j] + shift[2] - origin[2]);
                // of the pairs in the cell, those with a later atom j
                const int number = own && j - begin < size ? (int)(j - begin > 0 ? j - begin : 0) : size;
#pragma unroll 4
                for (int i = 0; i < number; i++) {
                    const float dx = at[0][i] - x, dy = at[1][i] - y, dz = at[2][i] - z;
                    const float r2 = dx * dx + (dy * dy + dz * dz);
                    if (r2 < square) {
                        const int bin = (int)(sqrtf(r2) * scale);
                        if (bin >= bins)
                            continue;
                        if (copies)
                            atomicAdd(&counts[bin], 1u);
                        else
                            add_atomically(args.counts + bin, 1);
                    }
                }
            }
        });
    }
    __syncthreads();
    for (int n = thread; n < (copies ? bins : 0); n += BLOCK_THREADS) {
        index_t sum = 0;
        for (int copy = 0; copy < copies; copy++)
            sum += all_counts[copy * bins + n];
        if (sum)
            add_atomically(args.counts + n, sum);
    }
}

#else

// Number of distances that are computed before they are counted.
static const index_t BUFFER = 1024;

// Count the distances of atoms first to last from (a, b, c).
DEVICE void count_distances_from(const Distances &args, index_t *counts, index_t first, index_t last, double a, double b,
                                 double c)
{
    int places[BUFFER];
    index_t *tables[4];  // increments of one table would wait for each other; the last bin is of all longer distances
    for (int n = 0; n < 4; n++)
        tables[n] = counts + n * (args.bins + 1);
    const double scale = args.scale, top = (double)args.bins;
    for (index_t begin = first; begin < last; begin += BUFFER) {
        const index_t size = last - begin < BUFFER ? last - begin : BUFFER;
        const double *x = args.x + begin, *y = args.y + begin, *z = args.z + begin;
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
    index_t *const tables = (index_t *)calloc(4 * (args.bins + 1), sizeof(index_t));
    const int cells = args.shape[0] * args.shape[1] * args.shape[2];
    for (index_t element = first; element < last; element++) {
        const index_t begin_i = args.first_i[element % cells], end_i = args.first_i[element % cells + 1];
        if (begin_i < end_i)
            for_ranges(args, element, [&](index_t begin, index_t end, const double (&shift)[3], bool own)
                       __attribute__((always_inline)) {
                for (index_t i = begin_i; i < end_i; i++)
                    count_distances_from(args, tables, own ? i + 1 : begin, end, args.px[i] - shift[0],
                                         args.py[i] - shift[1], args.pz[i] - shift[2]);
            });
    }
    for (index_t n = 0; n < 4 * (args.bins + 1); n++)
        if (tables[n] && n % (args.bins + 1) < args.bins)
            add_atomically(args.counts + n % (args.bins + 1), tables[n]);
    free(tables);
}
#endif
