// Atoms are sorted into clusters, and the pairs of clusters in range are listed.
//
// Atoms are sorted into spatially compact chunks of n, each of n / m clusters of m. A list has clusters of m atoms i and
// the chunks of n atoms j in range, of all images that count (S. Pall, B. Hess, "A flexible algorithm for calculating pair
// interactions on SIMD architectures", Comput. Phys. Commun. 184 (2013) 2641-2650). Coordinates in chunks are relative to
// their centres, which are on a grid so that differences of two centres are exact in float32. The search is in float32
// for sums in double precision too: the limit leaves room for its rounding, and sums test every distance themselves.
#include "kernel.h"
#ifndef __CUDACC__
#include "vectors.h"

// Coordinate of empty slots in chunks, out of reach of every atom.
static const double FAR_AWAY = 1e6;
// Largest n; largest number of atoms j of an entry of the list, so that they fit into the first-level cache.
static const int MAX_ATOMS = 16, MAX_PACKED = 960;
// Number of bits of a slot in a number that combines it with the code of an image.
static const int SLOT_BITS = 33;
// Number of chunks that a thread writes positions to at a time.
static const index_t GRAIN = 64;

DEVICE index_t least_of(index_t a, index_t b) { return a < b ? a : b; }
DEVICE index_t most_of(index_t a, index_t b) { return a > b ? a : b; }

struct Placement {
    const double *positions;  // (N, 3)
    double *places;           // (N, 3) positions in the axes of the box, wrapped into it
    index_t *column, *key;    // (N,) the column of each atom, and the key that sorts atoms by column and height
    double rotation[3][3], low[3];
    double vectors[3][3];     // lattice vectors, lower triangular, or zeros without a cell
    double sides[3];          // of the box
    double side[3];           // of a column
    index_t shape[2], layers;
};

KERNEL(place_atoms, Placement, a)
{
    const double *p = args.positions + 3 * a;
    double x[3];
    for (int d = 0; d < 3; d++)
        x[d] = p[0] * args.rotation[0][d] + p[1] * args.rotation[1][d] + p[2] * args.rotation[2][d] - args.low[d];
    if (args.vectors[0][0] > 0)
        for (int k = 2; k >= 0; k--) {
            const double n = floor(x[k] / args.sides[k]);
            for (int d = 0; d <= k; d++)
                x[d] -= n * args.vectors[k][d];
        }
    for (int d = 0; d < 3; d++)
        args.places[3 * a + d] = x[d];
    const index_t cx = least_of(most_of((index_t)(x[0] / args.side[0]), 0), args.shape[0] - 1);
    const index_t cy = least_of(most_of((index_t)(x[1] / args.side[1]), 0), args.shape[1] - 1);
    const index_t height = (index_t)(x[2] / args.side[2] * args.layers);
    args.column[a] = cx * args.shape[1] + cy;
    args.key[a] = args.column[a] * args.layers + least_of(most_of(height, 0), args.layers - 1);
}

struct Chunks {
    const index_t *order;    // atoms sorted by column and height
    const index_t *column;   // (N,)
    const double *places;    // (N, 3)
    index_t *slots;          // (chunks * n,) atoms, chunk by chunk; null to count the chunks only
    index_t *start;          // (columns + 1,) the first chunk of every column
    index_t columns;
    double tallest;          // a chunk ends with its column, when it is full, and before it would be taller than this
    int n;
};

// start[columns] is the number of chunks.
RANGE_KERNEL(make_chunks, Chunks, first, last)
{
    index_t chunk = -1, filled = args.n, before = -1;
    double bottom = 0;
    for (index_t k = first; k < last; k++) {
        const index_t a = args.order[k], column = args.column[a];
        const double height = args.places[3 * a + 2];
        if (filled == args.n || column != before || height - bottom > args.tallest) {
            chunk++;
            filled = 0;
            bottom = height;
            for (index_t c = before + 1; c <= column; c++)
                args.start[c] = chunk;
            before = column;
        }
        if (args.slots)
            args.slots[chunk * args.n + filled] = a;
        filled++;
    }
    for (index_t c = before + 1; c <= args.columns; c++)
        args.start[c] = chunk + 1;
}

struct Clustering {
    index_t *slots;          // (chunks * n,)
    const double *places;    // (N, 3)
    const double *lacks;     // (N,) 1 for atoms that lack a term, which are put last in each cluster, else 0
    double *boxes;           // (chunks, 6) lowest and highest x, y and z of the atoms of every chunk
    int m, n;
};

// Sort some slots by keys of their atoms, with empty slots last; stable. It is a rank sort, without branches, which would
// be unpredictable here.
DEVICE void sort_slots(index_t *slots, int count, const double *keys, int stride)
{
    index_t kept[MAX_ATOMS];
    double key[MAX_ATOMS];
    for (int k = 0; k < count; k++) {
        kept[k] = slots[k];
        key[k] = kept[k] >= 0 ? keys[kept[k] * stride] : 1e300;
    }
    for (int k = 0; k < count; k++) {
        int rank = 0;
        for (int n = 0; n < k; n++)
            rank += key[n] <= key[k];
        for (int n = k + 1; n < count; n++)
            rank += key[n] < key[k];
        slots[rank] = kept[k];
    }
}

// Halve chunks along x and y alternately down to clusters, and find their boxes.
KERNEL(make_clusters, Clustering, c)
{
    index_t *slots = args.slots + c * args.n;
    for (int size = args.n, axis = 0; size > args.m; size /= 2, axis = 1 - axis)
        for (int part = 0; part < args.n; part += size)
            sort_slots(slots + part, size, args.places + axis, 3);
    for (int part = 0; part < args.n; part += args.m)
        sort_slots(slots + part, args.m, args.lacks, 1);
    double *box = args.boxes + 6 * c;
    for (int d = 0; d < 3; d++) {
        double low = 1e300, high = -1e300;
        for (int k = 0; k < args.n; k++)
            if (slots[k] >= 0) {
                const double x = args.places[3 * slots[k] + d];
                low = x < low ? x : low;
                high = x > high ? x : high;
            }
        box[d] = low;
        box[3 + d] = high;
    }
}

struct Homes {
    const index_t *slots;
    const double *positions, *places;  // (N, 3) as given, and wrapped
    const double *centres;             // (chunks, 3)
    double *before, *homes;            // results (chunks, 3, n): positions, and places relative to the centres
    int n;
};

KERNEL(keep_positions, Homes, c)
{
    for (int d = 0; d < 3; d++)
        for (int k = 0; k < args.n; k++) {
            const index_t a = args.slots[c * args.n + k], at = (3 * c + d) * args.n + k;
            args.before[at] = a >= 0 ? args.positions[3 * a + d] : 0;
            args.homes[at] = a >= 0 ? args.places[3 * a + d] - args.centres[3 * c + d] : FAR_AWAY;
        }
}

struct Moves {
    const index_t *slots;
    const double *positions;       // (N, 3)
    const double *before, *homes;  // (chunks, 3, n) positions of the search, and their coordinates in chunks
    float *atoms;                  // (chunks, rows, n) to which coordinates are written, or null
    double *wide_atoms;            // the same in double precision
    double *displacement;          // (1,) result: the largest squared displacement
    int64_t *counters;             // of kernels.threads
    index_t chunks, rows;
    double rotation[3][3], vectors[3][3], inverse[3][3];
    double near2;                  // of a shorter squared displacement, no other image can be nearer
    double limit2;                 // of a longer one, all threads are stopped
    int n, counter, written;       // counters: of the chunks that are taken, and of the threads that have written all
};

DEVICE index_t take_next(int64_t *counters, int counter)
{
    return __atomic_fetch_add(counters + 8 * counter, (int64_t)1, __ATOMIC_SEQ_CST);
}

// Write the image of an atom that is nearest to its position of the search; return its squared displacement.
template <class Real> DEVICE double write_nearest(const Moves &args, Real *atoms, index_t slot, index_t n)
{
    const index_t chunk = slot / n, lane = slot % n, atom = args.slots[slot];
    double move[3], d[3], way = 0;
    for (int k = 0; k < 3; k++)
        move[k] = args.positions[3 * atom + k] - args.before[(3 * chunk + k) * n + lane];
    for (int k = 0; k < 3; k++)
        d[k] = move[0] * args.rotation[0][k] + move[1] * args.rotation[1][k] + move[2] * args.rotation[2][k];
    for (int k = 0; k < 3; k++)
        move[k] = rint(d[0] * args.inverse[0][k] + d[1] * args.inverse[1][k] + d[2] * args.inverse[2][k]);
    for (int k = 0; k < 3; k++) {
        d[k] -= move[0] * args.vectors[0][k] + move[1] * args.vectors[1][k] + move[2] * args.vectors[2][k];
        way += d[k] * d[k];
        atoms[(chunk * args.rows + k) * n + lane] = (Real)(args.homes[(3 * chunk + k) * n + lane] + d[k]);
    }
    return way;
}

template <int N, class Real> static void write_chunks(const Moves &args, Real *atoms)
{
    double longest = 0;
    for (index_t first; (first = take_next(args.counters, args.counter) * GRAIN) < args.chunks;) {
        for (index_t c = first; c < least_of(first + GRAIN, args.chunks); c++) {
            const index_t *slots = args.slots + c * N;
            const double *before = args.before + 3 * c * N, *homes = args.homes + 3 * c * N;
            Real *out = atoms + c * args.rows * N;
            double move[3][N], far = 0;
            int near = 1;
            for (int k = 0; k < N; k++) {
                const bool real = slots[k] >= 0;
                const double *position = args.positions + 3 * (real ? slots[k] : 0);
                for (int d = 0; d < 3; d++)
                    move[d][k] = real ? position[d] - before[d * N + k] : 0;
            }
#pragma omp simd reduction(max : far) reduction(& : near)
            for (int k = 0; k < N; k++) {
                double way = 0;
                for (int d = 0; d < 3; d++) {
                    const double x = move[0][k] * args.rotation[0][d] + move[1][k] * args.rotation[1][d]
                        + move[2][k] * args.rotation[2][d];
                    way += x * x;
                    out[d * N + k] = (Real)(homes[d * N + k] + x);
                }
                far = way > far ? way : far;
                near &= way < args.near2;  // false if it is not a number
            }
            if (near) {
                longest = far > longest ? far : longest;
                continue;
            }
            for (int k = 0; k < N; k++)
                if (slots[k] >= 0) {
                    const double way = write_nearest(args, atoms, c * N + k, N);
                    longest = way < INFINITY ? fmax(way, longest) : INFINITY;
                }
        }
    }
    if (longest > args.limit2)
        __atomic_store_n(args.counters, (int64_t)1, __ATOMIC_SEQ_CST);
    args.displacement[0] = longest;
    take_next(args.counters, args.written);
}

template <class Real> DEVICE void write_all(const Moves &args, Real *atoms)
{
    args.n == 16 ? write_chunks<16>(args, atoms) : args.n == 8 ? write_chunks<8>(args, atoms)
        : args.n == 4 ? write_chunks<4>(args, atoms) : write_chunks<2>(args, atoms);
}

// Write rotated positions to chunks, which threads share. If an atom has been wrapped since the search, the image with the
// smallest displacement counts. If a position is not finite, the displacement is infinite.
RANGE_KERNEL(write_positions, Moves, first, last)
{
    if (args.atoms)
        write_all(args, args.atoms);
    else
        write_all(args, args.wide_atoms);
}

struct Exclusions {
    const index_t *pairs;           // (count, 2) excluded atoms
    const index_t *slot;            // (N,) the slot of each atom
    const double *places;           // (N, 3)
    index_t *start, *partners;      // results: the partners excluded for every slot, from start[slot] on
    index_t slots;                  // number of slots; start has two more, which are zeros
    double vectors[3][3], inverse[3][3];
    int around;                     // the nearest image may differ from that of rounded multiples by this
};

// The multiples i, j and k of lattice vectors of an image, coded as one number.
DEVICE index_t image_code(index_t i, index_t j, index_t k) { return ((i + 512) * 1024 + j + 512) * 1024 + k + 512; }

DEVICE void nearest_image(const Exclusions &args, const double *d, index_t *shift)
{
    for (int k = 0; k < 3; k++)
        shift[k] = -(index_t)rint(d[0] * args.inverse[0][k] + d[1] * args.inverse[1][k] + d[2] * args.inverse[2][k]);
    const index_t rounded[3] = {shift[0], shift[1], shift[2]};
    double best = 1e300;
    if (args.around)
        for (int i = -args.around; i <= args.around; i++)
            for (int j = -args.around; j <= args.around; j++)
                for (int k = -args.around; k <= args.around; k++) {
                    double length = 0;
                    for (int c = 0; c < 3; c++) {
                        const double x = d[c] + (rounded[0] + i) * args.vectors[0][c]
                            + (rounded[1] + j) * args.vectors[1][c] + (rounded[2] + k) * args.vectors[2][c];
                        length += x * x;
                    }
                    if (length < best - 1e-9) {
                        best = length;
                        shift[0] = rounded[0] + i;
                        shift[1] = rounded[1] + j;
                        shift[2] = rounded[2] + k;
                    }
                }
}

// Partners are the code of their image << SLOT_BITS | their slot.
RANGE_KERNEL(find_partners, Exclusions, first, last)
{
    for (index_t p = 2 * first; p < 2 * last; p++)
        args.start[args.slot[args.pairs[p]] + 2]++;
    for (index_t s = 2; s < args.slots + 2; s++)
        args.start[s] += args.start[s - 1];
    for (index_t p = first; p < last; p++) {
        const index_t i = args.pairs[2 * p], j = args.pairs[2 * p + 1], a = args.slot[i], b = args.slot[j];
        double d[3];
        index_t shift[3];
        for (int k = 0; k < 3; k++)
            d[k] = args.places[3 * i + k] - args.places[3 * j + k];
        nearest_image(args, d, shift);
        args.partners[args.start[a + 1]++] = image_code(shift[0], shift[1], shift[2]) << SLOT_BITS | b;
        args.partners[args.start[b + 1]++] = image_code(-shift[0], -shift[1], -shift[2]) << SLOT_BITS | a;
    }
}

struct PairSearch {
    const index_t *slots_i, *slots_j;
    const float *atoms_i, *atoms_j;          // chunks of which each begins with coordinates (3, n)
    const float *centres_i, *centres_j;      // (chunks, 3)
    const double *boxes_i, *boxes_j;         // (chunks, 6)
    const index_t *columns;                  // (columns + 1,) the first chunk j of every column
    const double *shifts;                    // (images, 3) displacements of atoms i
    const float *steps, *remainders;         // the same as multiples of the grid of centres, and the rest
    const index_t *images;                   // (images, 3) the multiples of lattice vectors
    const index_t *starts, *partners;        // of excluded pairs, or null
    const bool *light;                       // (clusters,) the second half of the atoms lacks a term
    // results: cluster, index of the image, first chunk, first chunk without masks, first chunk to pack, end of the
    // chunks, first mask, light, number of atoms j to pack
    index_t *entries;                        // (entries, 9)
    int *chunks;                             // chunks j
    uint16_t *bits;                          // atoms of the chunk in range
    uint16_t *masks;                         // (masks, m, 2) atoms that count, and of these the ones not excluded
    index_t *counts;                         // (4,) of entries, chunks and masks; the first chunk i that does not fit
    // (6, chunk_count) scratch: the near chunks j; atoms in range of each cluster, as bits; bits of clusters for which a
    // chunk needs masks (zeros); numbers of near chunks that need some, and their bits; numbers of near chunks to pack
    index_t *scratch;
    index_t stride_i, stride_j;              // length of a chunk in atoms_i and atoms_j
    index_t image_count, max_entries, max_chunks, max_masks;
    index_t chunk_count;                     // number of chunks j and one more
    index_t shape[2];                        // number of columns along x and y
    double side[3];                          // of a column
    double slack, reach;                     // largest height by which chunks of a column may be out of order; A
    int m, n;
    bool same, corrects;                     // one set, whose pairs count once; excluded pairs are listed as well
};

// Write the chunks from `begin` on whose boxes are nearer to a box than the reach; return their number.
DEVICE index_t find_near(const PairSearch &args, const double *box, index_t begin, index_t *near)
{
    const double reach = args.reach, *side = args.side, ax = box[0], ay = box[1], az = box[2];
    const double bx = box[3], by = box[4], bz = box[5];
    if (bz + reach < 0 || az - reach > side[2])
        return 0;
    const index_t x0 = most_of(0, (index_t)floor((ax - reach) / side[0]));
    const index_t x1 = least_of(args.shape[0] - 1, (index_t)floor((bx + reach) / side[0]));
    const index_t y0 = most_of(0, (index_t)floor((ay - reach) / side[1]));
    const index_t y1 = least_of(args.shape[1] - 1, (index_t)floor((by + reach) / side[1]));
    index_t count = 0;
    for (index_t cx = x0; cx <= x1; cx++) {
        const double left = cx * side[0], gx = fmax(0, fmax(left - bx, ax - left - side[0]));
        for (index_t cy = y0; cy <= y1; cy++) {
            const double front = cy * side[1], gy = fmax(0, fmax(front - by, ay - front - side[1]));
            const double rest = reach * reach - gx * gx - gy * gy;
            if (rest <= 0)
                continue;
            const double top = sqrt(rest) + args.slack;
            const index_t column = cx * args.shape[1] + cy, end = args.columns[column + 1];
            index_t low = most_of(args.columns[column], begin), high = end;
            while (low < high) {  // the first chunk whose top is not below
                const index_t middle = (low + high) / 2;
                if (args.boxes_j[6 * middle + 5] < az - top)
                    low = middle + 1;
                else
                    high = middle;
            }
            for (index_t cj = low; cj < end; cj++) {
                const double *other = args.boxes_j + 6 * cj;
                if (other[2] > bz + top)
                    break;
                double distance2 = 0;
                for (int d = 0; d < 3; d++) {
                    const double a = other[d] - box[3 + d], b = box[d] - other[3 + d];
                    double gap = a > b ? a : b;
                    gap = gap > 0 ? gap : 0;
                    distance2 += gap * gap;
                }
                near[count] = cj;
                count += distance2 < reach * reach;
            }
        }
    }
    return count;
}

// Vectors of W numbers; GCC ignores a length that is computed from a template's parameter where the type is one itself.
template <int W> struct Lanes;
template <> struct Lanes<2> { typedef float type __attribute__((vector_size(8))); };
template <> struct Lanes<4> { typedef float type __attribute__((vector_size(16))); };
template <> struct Lanes<8> { typedef float type __attribute__((vector_size(32))); };
template <> struct Lanes<16> { typedef float type __attribute__((vector_size(64))); };

// Write the bits of the atoms of near chunks in range of each cluster of chunk i, whose coordinates (3, N) and centre are
// `place` and `centre`. Each cluster has N bits, the first the lowest.
template <int M, int N> static void find_in_range(const PairSearch &args, const float *place, const float *centre,
                                                  const index_t *near, index_t count, uint64_t *pairs)
{
    constexpr int W = N < FLOATS ? N : FLOATS;
    typedef typename Lanes<W>::type some;
    const some limit = some{} + (float)(args.reach * args.reach * (1 + 4e-6));
    for (index_t k = 0; k < count; k++) {
        const index_t cj = near[k];
        uint64_t result = 0;
        for (int part = 0; part < N; part += W) {
            some j[3];
            for (int d = 0; d < 3; d++)
                j[d] = load<some>(args.atoms_j + cj * args.stride_j + d * N + part)
                    + (args.centres_j[3 * cj + d] - centre[d]);
#pragma GCC unroll 8
            for (int c = 0; c < N / M; c++) {
                some least = limit;
#pragma GCC unroll 8
                for (int i = c * M; i < c * M + M; i++) {
                    const some x = place[i] - j[0], y = place[N + i] - j[1], z = place[2 * N + i] - j[2];
                    least = smaller(x * x + y * y + z * z, least);
                }
                result |= (uint64_t)bits_below(least, limit) << (c * N + part);
            }
        }
        pairs[k] = result;
    }
}

DEVICE void find_pairs(const PairSearch &args, const float *place, const float *centre, const index_t *near,
                       index_t count, uint64_t *pairs)
{
    if (args.n == 16)
        find_in_range<4, 16>(args, place, centre, near, count, pairs);
    else if (args.n == 8)
        args.m == 8 ? find_in_range<8, 8>(args, place, centre, near, count, pairs)
            : find_in_range<4, 8>(args, place, centre, near, count, pairs);
    else if (args.n == 4)
        find_in_range<4, 4>(args, place, centre, near, count, pairs);
    else
        find_in_range<2, 2>(args, place, centre, near, count, pairs);
}

// Write masks of the atoms j of a chunk that count, and of those that are not excluded, for each atom of a cluster.
DEVICE void write_masks(const PairSearch &args, index_t ci, index_t cj, bool half, index_t image, uint16_t *masks)
{
    const int n = args.n;
    unsigned there = 0;
    for (int lane = 0; lane < n; lane++)
        there |= (unsigned)(args.slots_j[cj * n + lane] >= 0) << lane;
    for (int a = 0; a < args.m; a++) {
        const index_t i = ci * args.m + a;
        unsigned count = args.slots_i[i] >= 0 ? there : 0;
        if (half)
            count &= ~((2u << (i - cj * n)) - 1);
        unsigned normal = count;
        if (args.starts)
            for (index_t k = args.starts[i]; k < args.starts[i + 1]; k++) {
                const index_t slot = args.partners[k] & (((index_t)1 << SLOT_BITS) - 1);
                if (args.partners[k] >> SLOT_BITS == image && slot / n == cj)
                    normal &= ~(1u << slot % n);
            }
        masks[2 * a] = (uint16_t)(args.corrects ? count : normal);
        masks[2 * a + 1] = (uint16_t)normal;
    }
}

// List the chunks in range of the clusters of chunks first <= c < last.
RANGE_KERNEL(list_clusters, PairSearch, first, last)
{
    const int m = args.m, n = args.n, each = n / m;
    const uint64_t all_atoms = ((uint64_t)1 << n) - 1;
    const index_t slot_mask = ((index_t)1 << SLOT_BITS) - 1;
    index_t *counts = args.counts, *near = args.scratch;
    uint64_t *pairs = (uint64_t *)(near + args.chunk_count);
    index_t *special = near + 2 * args.chunk_count, *flagged = near + 3 * args.chunk_count;
    index_t *flags = near + 4 * args.chunk_count, *few = near + 5 * args.chunk_count;
    counts[3] = last;
    for (index_t chunk = first; chunk < last; chunk++) {
        const index_t before[3] = {counts[0], counts[1], counts[2]};
        for (index_t sh = 0; sh < args.image_count; sh++) {
            double box[6];
            for (int d = 0; d < 6; d++)
                box[d] = args.boxes_i[6 * chunk + d] + args.shifts[3 * sh + d % 3];
            const bool half = args.same && sh == 0;
            const index_t count = find_near(args, box, half ? chunk : 0, near);
            if (count == 0)
                continue;
            float place[3 * MAX_ATOMS], centre[3];
            for (int d = 0; d < 3; d++) {
                centre[d] = args.centres_i[3 * chunk + d] + args.steps[3 * sh + d];
                for (int k = 0; k < n; k++)
                    place[d * n + k] = args.atoms_i[chunk * args.stride_i + d * n + k] + args.remainders[3 * sh + d];
            }
            const index_t *multiples = args.images + 3 * sh;
            const index_t image = image_code(multiples[0], multiples[1], multiples[2]);
            const index_t excluded_first = args.starts ? args.starts[chunk * n] : 0;
            const index_t excluded_last = args.starts ? args.starts[chunk * n + n] : 0;
            index_t slot = chunk * n;
            for (index_t k = excluded_first; k < excluded_last; k++) {
                while (k >= args.starts[slot + 1])
                    slot++;
                if (args.partners[k] >> SLOT_BITS == image)
                    special[(args.partners[k] & slot_mask) / n] |= 1 << slot % n / m;
            }
            if (half)
                special[chunk] = (index_t)all_atoms;
            index_t unfilled = 0, several = 0;
            for (int c = 0; c < each; c++)
                unfilled |= (index_t)(args.slots_i[chunk * n + c * m + m - 1] < 0) << c;
            find_pairs(args, place, centre, near, count, pairs);
            for (index_t k = 0; k < count; k++) {
                const index_t cj = near[k];
                const index_t flag = special[cj] | (unfilled && args.slots_j[cj * n + n - 1] < 0 ? unfilled : 0);
                flagged[several] = k;
                flags[several] = flag;
                several += flag != 0;
            }
            for (index_t k = excluded_first; k < excluded_last; k++)
                special[(args.partners[k] & slot_mask) / n] = 0;
            if (half)
                special[chunk] = 0;
            for (int c = 0; c < each; c++) {
                const index_t ci = chunk * each + c;
                if (args.slots_i[ci * m] < 0)
                    continue;
                const index_t filled = counts[1];
                index_t masked = counts[2];
                if (counts[0] + count * n / (MAX_PACKED - n) + 1 > args.max_entries
                        || filled + 2 * count + 1 > args.max_chunks || masked + several > args.max_masks) {
                    for (int k = 0; k < 3; k++)
                        counts[k] = before[k];
                    counts[3] = chunk;
                    return;
                }
                index_t at = filled;
                for (index_t f = 0; f < several; f++) {
                    const index_t k = flagged[f];
                    if (flags[f] >> c & 1 && pairs[k] >> n * c & all_atoms) {
                        write_masks(args, ci, near[k], half && near[k] == chunk, image,
                                    args.masks + masked++ * 2 * m);
                        args.chunks[at] = (int)near[k];
                        args.bits[at++] = (uint16_t)all_atoms;
                        pairs[k] &= ~(all_atoms << n * c);
                    }
                }
                // with this many atoms in range a whole chunk is summed, because packing takes longer than its other pairs
                const int full = 3 * n / 4;
                const index_t dense = at;
                index_t rest = 0;
                for (index_t k = 0; k < count; k++) {
                    const unsigned result = (unsigned)(pairs[k] >> n * c & all_atoms);
                    const int atoms = count_bits(result);
                    args.chunks[at] = (int)near[k];
                    args.bits[at] = (uint16_t)result;
                    few[rest] = k;
                    at += atoms >= full;
                    rest += (atoms > 0) & (atoms < full);
                }
                // one entry for the chunks with masks, the full ones and some to pack, and others for more to pack
                index_t start = filled, whole = dense, packs = at;
                for (index_t k = 0; k < rest || at > start; start = whole = packs = at) {
                    index_t atoms = 0;
                    for (; k < rest && atoms <= MAX_PACKED - n; k++) {
                        const unsigned result = (unsigned)(pairs[few[k]] >> n * c & all_atoms);
                        args.chunks[at] = (int)near[few[k]];
                        args.bits[at++] = (uint16_t)result;
                        atoms += count_bits(result);
                    }
                    const index_t entry[9] = {ci, sh, start, whole, packs, at, counts[2], args.light[ci], atoms};
                    memcpy(args.entries + 9 * counts[0]++, entry, sizeof(entry));
                }
                counts[1] = at;
                counts[2] = masked;
            }
        }
    }
}
#endif
