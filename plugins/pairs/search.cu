// Atoms are sorted into clusters, and the pairs of clusters in range are listed.
//
// Atoms are sorted into spatially compact chunks of n, each of n / m clusters of m (S. Pall, B. Hess, "A flexible algorithm
// for calculating pair interactions on SIMD architectures", Comput. Phys. Commun. 184 (2013) 2641-2650). Coordinates in
// chunks are relative to their centres, which are on a grid so that differences of two centres are exact in float32. The
// search is in float32 for sums in double precision too: the limit leaves room for its rounding, and sums test every
// distance themselves.
//
// On a CPU, n is the number of numbers in a vector, and a list has clusters of m atoms i and the chunks of n atoms j in
// range, of all images that count. On a GPU, a chunk has 64 atoms, eight clusters of 8 and sixteen groups of 4. A warp
// computes the 8 x 4 pairs of a cluster and a group at once: lane l has atom l & 7 of the cluster and l >> 3 of the group.
// An entry of the list is a group, at one image, in range of a chunk, with a bit for each of the chunk's clusters that has
// a pair in range. A pair of chunks is listed for one of them.
#include "kernel.h"
#include "clusters.h"
#ifndef __CUDACC__
#include "vectors.h"

// Largest n; largest number of atoms j of an entry of the list, so that they fit into the first-level cache.
static const int MAX_ATOMS = 16, MAX_PACKED = 960;
#endif

DEVICE index_t least_of(index_t a, index_t b) { return a < b ? a : b; }
DEVICE index_t most_of(index_t a, index_t b) { return a > b ? a : b; }

struct Placement {
    const double *positions;  // (N, 3)
    double *places;           // (N, 3) positions in the axes of the box, wrapped into it
    int *bins;                // (N,)
    index_t *counts;          // atoms of every bin
    double rotation[3][3], low[3];
    double vectors[3][3];     // lattice vectors, lower triangular
    double sides[3];          // of the box
    double corner[3], scale[3];  // of the bins: lower corner, and bins per A
    index_t across[3];        // number of bins
    bool wraps;
};

KERNEL(place_atoms, Placement, a)
{
    const double *p = args.positions + 3 * a;
    double x[3];
    for (int d = 0; d < 3; d++)
        x[d] = p[0] * args.rotation[0][d] + p[1] * args.rotation[1][d] + p[2] * args.rotation[2][d] - args.low[d];
    if (args.wraps)
        for (int k = 2; k >= 0; k--) {
            const double n = floor(x[k] / args.sides[k]);
            for (int d = 0; d <= k; d++)
                x[d] -= n * args.vectors[k][d];
        }
    index_t bin = 0;
    for (int d = 0; d < 3; d++) {
        args.places[3 * a + d] = x[d];
        const index_t at = (index_t)((x[d] - args.corner[d]) * args.scale[d]);
        bin = bin * args.across[d] + least_of(most_of(at, 0), args.across[d] - 1);
    }
    args.bins[a] = (int)bin;
    add_atomically(args.counts + bin, 1);
}

struct Starts {
    const index_t *counts;   // (columns, layers) atoms of every bin
    index_t *chunks;         // (columns,) result: number of chunks of every column
    const index_t *first;    // (columns,) the first chunk of every column, or null to count them only
    index_t *following;      // (columns, layers) result: the first place of every bin
    index_t layers;
    double tallest;          // layers of the tallest chunk
    int n;
};

// A chunk ends with its column, when it is full, and before a bin with which it would be too tall.
KERNEL(start_chunks, Starts, column)
{
    const index_t begin = args.first ? args.first[column] * args.n : 0;
    index_t at = begin, bottom = 0;
    for (index_t k = 0; k < args.layers; k++) {
        const index_t bin = column * args.layers + k, count = args.counts[bin];
        if (count && at % args.n && k + 1 - bottom > args.tallest)
            at += args.n - at % args.n;
        if (args.following)
            args.following[bin] = at;
        if (at % args.n + count >= args.n || at % args.n == 0)
            bottom = k;
        at += count;
    }
    args.chunks[column] = (at - begin + args.n - 1) / args.n;
}

struct Bins {
    const int *bins;       // (N,)
    index_t *following;    // the next place of every bin
    int *placed, *slots;   // (places,) results: the atoms of every bin, in any order; and -1
    index_t count, places;
};

KERNEL(fill_bins, Bins, n)
{
    if (n < args.count)
        args.placed[add_atomically(args.following + args.bins[n], 1)] = (int)n;
    if (n < args.places)
        args.slots[n] = -1;
}

struct BinOrder {
    const int *bins;
    const index_t *counts, *following;  // number of atoms and end of every bin
    const int *placed;
    const double *places;
    int *slots;                         // (places,) result: atoms by bin and height, where there are any
};

// Sort the atoms of each bin by height, and of the same height in the order of the input.
KERNEL(order_bins, BinOrder, a)
{
    const int bin = args.bins[a];
    const index_t end = args.following[bin], begin = end - args.counts[bin];
    const double height = args.places[3 * a + 2];
    index_t place = begin;
    for (index_t n = begin; n < end; n++) {
        const int other = args.placed[n];
        const double its = args.places[3 * (index_t)other + 2];
        place += its < height || (its == height && other < a);
    }
    args.slots[place] = (int)a;
}

struct Clustering {
    int *slots;              // (chunks * n,) atoms
    const double *places;    // (N, 3)
    const double *lacks;     // (N,) 1 for atoms that lack a term, which are put last in each cluster, else 0; on a CPU
    double *boxes;           // (chunks, 6) result: lowest and highest x, y and z of the atoms of every chunk; on a CPU
    float *extents, *groups; // (chunks, 6), (chunks, 16, 6) results: the same relative to the centre; on a GPU
    float *centres;          // (chunks, 3) result
    double grid;             // unit of coordinates of centres
    int m, n;
};

#ifndef __CUDACC__

// Sort some slots by keys of their atoms, with empty slots last; stable. It is a rank sort, without branches, which would
// be unpredictable here.
DEVICE void sort_slots(int *slots, int count, const double *keys, int stride)
{
    int kept[MAX_ATOMS];
    double key[MAX_ATOMS];
    for (int k = 0; k < count; k++) {
        kept[k] = slots[k];
        key[k] = kept[k] >= 0 ? keys[(index_t)kept[k] * stride] : 1e300;
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

// Halve chunks along x and y alternately down to clusters, and find their boxes and centres.
RANGE_KERNEL(make_clusters, Clustering, first, last)
{
    for (index_t c = first; c < last; c++) {
        int *slots = args.slots + c * args.n;
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
                    const double x = args.places[3 * (index_t)slots[k] + d];
                    low = x < low ? x : low;
                    high = x > high ? x : high;
                }
            box[d] = low;
            box[3 + d] = high;
            args.centres[3 * c + d] = (float)(rint((low + high) / 2 / args.grid) * args.grid);
        }
    }
}

#else

// Halve chunks along z, y, x and z, and find the boxes around them and their groups. One block for a chunk, one thread
// for a place.
BLOCK_KERNEL(make_clusters, Clustering)
{
    __shared__ double at[64][3], middle[3];
    __shared__ int atoms[64];
    const int n = threadIdx.x;
    const index_t chunk = blockIdx.x, slot = 64 * chunk + n;
    int i = args.slots[slot];
    double own[3] = {};
    for (int d = 0; d < 3 && i >= 0; d++)
        own[d] = args.places[3 * (index_t)i + d];
#pragma unroll
    for (int level = 0; level < 4; level++) {
        const int axis = level == 1 ? 1 : level == 2 ? 0 : 2, first = n & -(64 >> level);
        for (int d = 0; d < 3; d++)
            at[n][d] = own[d];
        atoms[n] = i;
        __syncthreads();
        int place = first;
        for (int m = first; m < first + (64 >> level); m++)
            place += i < 0 ? atoms[m] >= 0 || m < n
                           : atoms[m] >= 0 && (at[m][axis] < own[axis] || (at[m][axis] == own[axis] && m < n));
        __syncthreads();
        for (int d = 0; d < 3; d++)
            at[place][d] = own[d];
        atoms[place] = i;
        __syncthreads();
        i = atoms[n];
        for (int d = 0; d < 3; d++)
            own[d] = at[n][d];
        __syncthreads();
    }
    args.slots[slot] = i;
    if (n < 3) {
        double low = 1e300, high = -1e300;
        for (int m = 0; m < 64; m++)
            if (atoms[m] >= 0) {
                low = fmin(low, at[m][n]);
                high = fmax(high, at[m][n]);
            }
        middle[n] = rint((low + high) / 2 / args.grid) * args.grid;
        args.centres[3 * chunk + n] = (float)middle[n];
        args.extents[6 * chunk + n] = (float)(low - middle[n]);
        args.extents[6 * chunk + 3 + n] = (float)(high - middle[n]);
    }
    __syncthreads();
    if (n < 16)
        for (int d = 0; d < 3; d++) {
            float low = 3e30f, high = -3e30f;
            for (int m = 4 * n; m < 4 * n + 4; m++)
                if (atoms[m] >= 0) {
                    const float x = (float)(at[m][d] - middle[d]);
                    low = fminf(low, x);
                    high = fmaxf(high, x);
                }
            args.groups[6 * (16 * chunk + n) + d] = low;
            args.groups[6 * (16 * chunk + n) + 3 + d] = high;
        }
}

#endif

template <class Number> struct AtomRows {
    const int *slots;
    const double *places;      // (N, 3)
    const Number *rows;        // (row_count, N) parameters
    const float *centres;      // (chunks, 3)
    Number *atoms;             // result: coordinates and parameters of all places
    float *coordinates;        // (chunks, 3, n) result
    int *slot_of;              // (count,) result: the place of each atom
    index_t count, row_count, chunk_step, atom_step, row_step;
    double empty;              // coordinate where there is no atom
    int n;
};

template <class Number> DEVICE void write_atom(const AtomRows<Number> &args, index_t slot)
{
    const index_t chunk = slot / args.n, lane = slot % args.n, atom = args.slots[slot];
    Number *to = args.atoms + chunk * args.chunk_step + lane * args.atom_step;
    for (int d = 0; d < 3; d++) {
        const double x = atom >= 0 ? args.places[3 * atom + d] - args.centres[3 * chunk + d] : args.empty;
        to[d * args.row_step] = (Number)x;
        args.coordinates[(3 * chunk + d) * args.n + lane] = (float)x;
    }
    for (index_t k = 0; k < args.row_count; k++)
        to[(3 + k) * args.row_step] = atom >= 0 ? args.rows[k * args.count + atom] : (Number)0;
    if (atom >= 0)
        args.slot_of[atom] = (int)slot;
}

KERNEL(write_atoms, AtomRows<float>, slot) { write_atom(args, slot); }
KERNEL(write_atoms_double, AtomRows<double>, slot) { write_atom(args, slot); }

struct Exclusions {
    const index_t *pairs;           // (count, 2) excluded atoms
    const int *slot_of;             // (N,)
    const double *places;           // (N, 3)
    int *found;                     // (count, 3) result: places of both atoms, and code of the image of the second
    index_t *counts;                // result: number of pairs of each key
    double vectors[3][3], inverse[3][3];
    bool around;                    // the nearest image may differ from that of rounded multiples by one
    int key, n;                     // the key of a pair is the first place divided by this
    bool both;                      // a pair is listed for both of its atoms
};

struct ExcludedOrder {
    const int *found;
    index_t *following;             // the next place of each key
    int *pairs;                     // result: like `found`, by key
    int key, n;
    bool both;
};

// Multiples of lattice vectors, so that the first atom less the second and their sum is shortest.
DEVICE void nearest_image(const Exclusions &args, const double *d, int *shift)
{
    const bool cell = args.inverse[0][0] != 0;
    int rounded[3];
    for (int k = 0; k < 3; k++)
        shift[k] = rounded[k] = -(int)rint(d[0] * args.inverse[0][k] + d[1] * args.inverse[1][k]
                                           + d[2] * args.inverse[2][k]);
    double best = 1e300;
    if (args.around && cell)
        for (int n = 0; n < 27; n++) {
            const int at[3] = {rounded[0] + n / 9 - 1, rounded[1] + n / 3 % 3 - 1, rounded[2] + n % 3 - 1};
            double length = 0;
            for (int c = 0; c < 3; c++) {
                const double x = d[c] + at[0] * args.vectors[0][c] + at[1] * args.vectors[1][c] + at[2] * args.vectors[2][c];
                length += x * x;
            }
            if (length < best - 1e-9) {
                best = length;
                for (int k = 0; k < 3; k++)
                    shift[k] = at[k];
            }
        }
}

// Call use(first, second, code) for the places for which an excluded pair is listed.
template <class Args, class Use> DEVICE void for_places(const Args &args, int a, int b, int code, Use use)
{
    const bool owned = owns_pair(a / args.n, b / args.n, code, a < b);
    if (args.both || owned)
        use(a, b, code);
    if (args.both || !owned)
        use(b, a, opposite(code));
}

KERNEL(find_excluded, Exclusions, p)
{
    const index_t i = args.pairs[2 * p], j = args.pairs[2 * p + 1];
    double d[3];
    int shift[3], *const to = args.found + 3 * p;
    for (int k = 0; k < 3; k++)
        d[k] = args.places[3 * i + k] - args.places[3 * j + k];
    nearest_image(args, d, shift);
    to[0] = args.slot_of[i];
    to[1] = args.slot_of[j];
    to[2] = image_code(-shift[0], -shift[1], -shift[2]);
    for_places(args, to[0], to[1], to[2], [&](int a, int, int) { add_atomically(args.counts + a / args.key, 1); });
}

KERNEL(place_excluded, ExcludedOrder, p)
{
    const int *const of = args.found + 3 * p;
    for_places(args, of[0], of[1], of[2], [&](int a, int b, int code) {
        int *const to = args.pairs + 3 * add_atomically(args.following + a / args.key, 1);
        to[0] = a;
        to[1] = b;
        to[2] = code;
    });
}

struct PairSearch {
    const int *slots_i, *slots_j;
    const float *coordinates_i, *coordinates_j;  // (chunks, 3, n)
    const float *centres_i, *centres_j;          // (chunks, 3)
    const double *boxes_i, *boxes_j;             // (chunks, 6); on a CPU
    const float *extents_i, *extents_j;          // (chunks, 6) relative to the centres; on a GPU
    const float *groups_j;                       // (chunks, 16, 6) relative to the centres; on a GPU
    const index_t *columns;                      // (columns + 1,) the first chunk j of every column
    const double *shifts;                        // (images, 3) displacements of atoms i
    const float *steps, *remainders;             // the same as multiples of the grid of centres, and the rest
    const index_t *images;                       // (images, 3) the multiples of lattice vectors
    const index_t *starts;                       // first excluded pair of every place, on a GPU of every chunk; or null
    const int *excluded;                         // (pairs, 3) places of both atoms, and code of the image
    const bool *light;                           // (clusters,) the second half of the atoms lacks a term; on a CPU
    // Results. An entry on a CPU: cluster, index of the image, first chunk, first chunk without masks, first chunk to
    // pack, end of the chunks, first mask, light, number of atoms j to pack. On a GPU: an Entry of clusters.h.
    index_t *entries;                            // (parts, max_entries, numbers of an entry)
    int *chunks;                                 // (parts, max_chunks) chunks j; on a GPU an Item for every item_entries
    uint16_t *bits;                              // (parts, max_chunks) atoms of the chunk in range; on a CPU
    uint16_t *masks;                             // (parts, max_masks, m, 2) atoms that count, and of these the ones not
                                                 // excluded; on a GPU (max_masks, 8) words: lanes whose pair is excluded
    index_t *counts;                             // (parts, 5) of entries, chunks and masks, the end, and computed pairs
    double vectors[3][3], inverse[3][3];
    index_t image_count, max_entries, max_chunks, max_masks;
    index_t chunk_count, chunks_i, part_size;    // chunks j, chunks i, and chunks i of a part
    index_t across[2];                           // number of columns along x and y
    double side[3];                              // of a column
    double reach;                                // A
    int item_entries, m, n;
    bool same, corrects, packed;                 // one set, whose pairs count once; excluded pairs are listed as well
};

#ifndef __CUDACC__
// Write the chunks from `begin` on whose boxes are nearer to a box than the reach; return their number.
DEVICE index_t find_near(const PairSearch &args, const double *box, index_t begin, index_t *near)
{
    const double reach = args.reach, *side = args.side, ax = box[0], ay = box[1], az = box[2];
    const double bx = box[3], by = box[4], bz = box[5];
    if (bz + reach < 0 || az - reach > side[2])
        return 0;
    const index_t x0 = most_of(0, (index_t)floor((ax - reach) / side[0]));
    const index_t x1 = least_of(args.across[0] - 1, (index_t)floor((bx + reach) / side[0]));
    const index_t y0 = most_of(0, (index_t)floor((ay - reach) / side[1]));
    const index_t y1 = least_of(args.across[1] - 1, (index_t)floor((by + reach) / side[1]));
    index_t count = 0;
    for (index_t cx = x0; cx <= x1; cx++) {
        const double left = cx * side[0], gx = fmax(0, fmax(left - bx, ax - left - side[0]));
        for (index_t cy = y0; cy <= y1; cy++) {
            const double front = cy * side[1], gy = fmax(0, fmax(front - by, ay - front - side[1]));
            const double rest = reach * reach - gx * gx - gy * gy;
            if (rest <= 0)
                continue;
            const double top = sqrt(rest);
            const index_t column = cx * args.across[1] + cy, end = args.columns[column + 1];
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
                j[d] = load<some>(args.coordinates_j + (3 * cj + d) * N + part)
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
DEVICE void write_masks(const PairSearch &args, index_t ci, index_t cj, bool half, int image, uint16_t *masks)
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
                const int *const pair = args.excluded + 3 * k;
                if (pair[2] == image && pair[1] / n == cj)
                    normal &= ~(1u << pair[1] % n);
            }
        masks[2 * a] = (uint16_t)(args.corrects ? count : normal);
        masks[2 * a + 1] = (uint16_t)normal;
    }
}

// List the chunks in range of the clusters of a part's chunks.
static void list_part(const PairSearch &args, index_t part)
{
    const int m = args.m, n = args.n, each = n / m;
    const uint64_t all_atoms = ((uint64_t)1 << n) - 1;
    const index_t first = part * args.part_size, last = least_of(first + args.part_size, args.chunks_i);
    index_t *const counts = args.counts + 5 * part, *const entries = args.entries + part * args.max_entries * 9;
    int *const chunks = args.chunks + part * args.max_chunks;
    uint16_t *const bits = args.bits + part * args.max_chunks, *const masks = args.masks + part * args.max_masks * 2 * m;
    // the near chunks j; atoms in range of each cluster, as bits; bits of clusters for which a chunk needs masks (zeros);
    // numbers of near chunks that need some, and their bits; numbers of near chunks to pack
    const index_t room = args.chunk_count + 1;
    index_t *const near = (index_t *)calloc(6 * room, sizeof(index_t));
    uint64_t *const pairs = (uint64_t *)(near + room);
    index_t *const special = near + 2 * room, *const flagged = near + 3 * room, *const flags = near + 4 * room;
    index_t *const few = near + 5 * room;
    index_t slots = 0;
    for (index_t chunk = first; chunk < last; chunk++) {
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
                    place[d * n + k] = args.coordinates_i[(3 * chunk + d) * n + k] + args.remainders[3 * sh + d];
            }
            const index_t *multiples = args.images + 3 * sh;
            const int image = opposite(image_code((int)multiples[0], (int)multiples[1], (int)multiples[2]));
            const index_t excluded_first = args.starts ? args.starts[chunk * n] : 0;
            const index_t excluded_last = args.starts ? args.starts[chunk * n + n] : 0;
            index_t slot = chunk * n;
            for (index_t k = excluded_first; k < excluded_last; k++) {
                while (k >= args.starts[slot + 1])
                    slot++;
                if (args.excluded[3 * k + 2] == image)
                    special[args.excluded[3 * k + 1] / n] |= 1 << slot % n / m;
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
                special[args.excluded[3 * k + 1] / n] = 0;
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
                    counts[0] = 2 * args.max_entries;  // it does not fit
                    counts[1] = 2 * args.max_chunks;
                    counts[2] = 2 * args.max_masks;
                    free(near);
                    return;
                }
                index_t at = filled;
                for (index_t f = 0; f < several; f++) {
                    const index_t k = flagged[f];
                    if (flags[f] >> c & 1 && pairs[k] >> n * c & all_atoms) {
                        write_masks(args, ci, near[k], half && near[k] == chunk, image,
                                    masks + masked++ * 2 * m);
                        chunks[at] = (int)near[k];
                        bits[at++] = (uint16_t)all_atoms;
                        pairs[k] &= ~(all_atoms << n * c);
                    }
                }
                // with this many atoms in range a whole chunk is summed, because packing takes longer than its other pairs
                const int full = n > 8 ? 3 * n / 4 : n - 1;
                const index_t dense = at;
                index_t rest = 0;
                for (index_t k = 0; k < count; k++) {
                    const unsigned result = (unsigned)(pairs[k] >> n * c & all_atoms);
                    const int atoms = count_bits(result);
                    chunks[at] = (int)near[k];
                    bits[at] = (uint16_t)result;
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
                        chunks[at] = (int)near[few[k]];
                        bits[at++] = (uint16_t)result;
                        atoms += count_bits(result);
                    }
                    slots += (args.packed ? packs - start + (atoms + n - 1) / n : at - start) * m * n;
                    const index_t entry[9] = {ci, sh, start, whole, packs, at, counts[2], args.light[ci], atoms};
                    memcpy(entries + 9 * counts[0]++, entry, sizeof(entry));
                }
                counts[1] = at;
                counts[2] = masked;
            }
        }
    }
    counts[3] = last;
    counts[4] = slots;
    free(near);
}

RANGE_KERNEL(list_clusters, PairSearch, first, last)
{
    for (index_t part = first; part < last; part++)
        list_part(args, part);
}

RANGE_KERNEL(list_clusters_double, PairSearch, first, last)
{
    for (index_t part = first; part < last; part++)
        list_part(args, part);
}

#else

// The shift from the frame of chunk i to that of chunk j at an image.
template <class Real> DEVICE void shift_between(const PairSearch &args, int i, int j, const int (&image)[3], Real (&shift)[3])
{
#pragma unroll
    for (int d = 0; d < 3; d++)
        shift[d] = (Real)fma((double)image[2], args.vectors[2][d],
                             fma((double)image[1], args.vectors[1][d],
                                 fma((double)image[0], args.vectors[0][d],
                                     (double)args.centres_j[3 * (index_t)j + d] - args.centres_i[3 * (index_t)i + d])));
}

template <class Real> DEVICE float squared_gap(const Box &a, const Box &b, const Real (&shift)[3])
{
    float sum = 0;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const float by = (float)shift[d], gap = fmaxf(0.f, fmaxf(b.low[d] + by - a.high[d], a.low[d] - b.high[d] - by));
        sum = fmaf(gap, gap, sum);
    }
    return sum;
}

// Call use(j, code, shift, diagonal) in all lanes for each chunk j and image near chunk i whose pair belongs to i.
// The candidates are divided among the warps of a block.
template <class Real, class Use> DEVICE void find_neighbours(const PairSearch &args, int i, int warp, int warps, Use use)
{
    const int lane = threadIdx.x & 31;
    const Box own = ((const Box *)args.extents_i)[i];
    const float reach = (float)args.reach, reach2 = reach * reach;
    for (int base = 32 * warp; base < args.chunk_count; base += 32 * warps) {
        const int j = base + lane;
        int low[3] = {}, sides[3] = {}, count = 0;
        Box box = own;
        if (j < args.chunk_count && (!args.same || i == j || is_first_of(i, j))) {
            box = ((const Box *)args.extents_j)[j];
            float middle[3], half[3];
#pragma unroll
            for (int d = 0; d < 3; d++) {
                const float apart = (float)((double)args.centres_i[3 * (index_t)i + d] - args.centres_j[3 * (index_t)j + d]);
                middle[d] = apart + 0.5f * (own.low[d] + own.high[d] - box.low[d] - box.high[d]);
                half[d] = 0.5f * (own.high[d] - own.low[d] + box.high[d] - box.low[d]) + reach;
            }
            count = 1;
#pragma unroll
            for (int d = 0; d < 3; d++) {  // range of images along a lattice vector; without a cell, only image 0
                float at = 0, wide = 1e-4f;
#pragma unroll
                for (int e = 0; e < 3; e++) {
                    at = fmaf(middle[e], (float)args.inverse[e][d], at);
                    wide = fmaf(half[e], fabsf((float)args.inverse[e][d]), wide);
                }
                low[d] = (int)ceilf(at - wide);
                sides[d] = max(0, (int)floorf(at + wide) - low[d] + 1);
                count *= sides[d];
            }
        }
        for (int number = 0; __any_sync(ALL, number < count); number++) {
            int code = 0;
            bool is_near = false;
            if (number < count) {
                const int image[3] = {low[0] + number % sides[0], low[1] + number / sides[0] % sides[1],
                                      low[2] + number / (sides[0] * sides[1])};
                code = image_code(image[0], image[1], image[2]);
                Real shift[3];
                shift_between(args, i, j, image, shift);
                is_near = squared_gap(own, box, shift) < reach2
                    && !(args.same && i == j && code < HERE_ITSELF);  // one of each two opposite images counts
            }
            for (unsigned hits = __ballot_sync(ALL, is_near); hits; hits &= hits - 1) {
                const int hit = __ffs(hits) - 1, other = base + hit, its = __shfl_sync(ALL, code, hit);
                const int at[3] = {multiple_of(its, 0), multiple_of(its, 1), multiple_of(its, 2)};
                Real shift[3];
                shift_between(args, i, other, at, shift);
                use(other, its, shift, args.same && other == i && its == HERE_ITSELF);
            }
        }
    }
}

struct Here { float x, y, z; };

// Write the entries of a chunk. One block for a chunk, of at most four warps; each warp fills items of work.
template <class Real> DEVICE void list_chunk(const PairSearch &args)
{
    __shared__ Here own[64];
    __shared__ unsigned some[32];  // bits of groups with excluded pairs, hashed by the last 10 bits of their numbers
    __shared__ unsigned left_out[BLOCK_THREADS / 32][8];
    const int threads = blockDim.x, lane = threadIdx.x & 31, warp = threadIdx.x / 32, i = blockIdx.x;
    const float *const from_i = args.coordinates_i + 192 * (index_t)i;
    for (int n = threadIdx.x; n < 64; n += threads)
        own[n] = {from_i[n], from_i[64 + n], from_i[128 + n]};
    for (int n = threadIdx.x; n < 32; n += threads)
        some[n] = 0;
    __syncthreads();
    const int from = args.starts ? (int)args.starts[i] : 0, to = args.starts ? (int)args.starts[i + 1] : 0;
    const Excluded *const excluded = (const Excluded *)args.excluded;
    for (int n = from + threadIdx.x; n < to; n += threads) {
        const int group = excluded[n].second / 4;
        atomicOr(&some[group >> 5 & 31], 1u << (group & 31));
    }
    __syncthreads();
    const Box box = ((const Box *)args.extents_i)[i];
    const float reach = (float)args.reach, reach2 = reach * reach;
    const int filling = args.item_entries;
    int start = 0, filled = filling;  // first entry of the current item, and number of its entries
    index_t clusters = 0;
    find_neighbours<Real>(args, i, warp, threads / 32, [&](int j, int code, const Real (&shift)[3], bool diagonal) {
        const float *const from_j = args.coordinates_j + 192 * (index_t)j;
        bool close = false;
        if (lane < 16)
            close = squared_gap(box, ((const Box *)args.groups_j)[16 * (index_t)j + lane], shift) < reach2;
        for (unsigned hits = __ballot_sync(ALL, close); hits; hits &= hits - 1) {
            const int group = 16 * j + __ffs(hits) - 1, local = 4 * (group & 15) + (lane >> 3);
            const float x = from_j[local] + (float)shift[0], y = from_j[64 + local] + (float)shift[1];
            const float z = from_j[128 + local] + (float)shift[2];
            unsigned mask = 0;
#pragma unroll
            for (int c = 0; c < 8; c++) {
                const Here me = own[8 * c + (lane & 7)];
                const float dx = me.x - x, dy = me.y - y, dz = me.z - z;
                const bool in = fma(dx, dx, fma(dy, dy, dz * dz)) < reach2;
                mask |= __any_sync(ALL, in && !(diagonal && local <= 8 * c + (lane & 7))) ? 1u << c : 0u;
            }
            if (!mask)
                continue;
            int number = -1;
            if (some[group >> 5 & 31] >> (group & 31) & 1) {
                __syncwarp();
                if (lane < 8)
                    left_out[warp][lane] = 0;
                __syncwarp();
                bool any = false;
                for (int n = from + lane; n < to; n += 32) {
                    const Excluded pair = excluded[n];
                    if (pair.second / 4 == group && pair.code == code) {
                        atomicOr(&left_out[warp][pair.first >> 3 & 7],
                                 1u << (8 * (pair.second & 3) + (pair.first & 7)));
                        any = true;
                    }
                }
                if (__any_sync(ALL, any)) {
                    if (lane == 0)
                        number = (int)add_atomically(&args.counts[2], 1);
                    number = __shfl_sync(ALL, number, 0);
                    __syncwarp();
                    if (lane < 8 && number < args.max_masks)
                        ((unsigned *)args.masks)[8 * (index_t)number + lane] = left_out[warp][lane];
                }
            }
            if (filled == filling) {
                if (lane == 0)
                    start = (int)add_atomically(&args.counts[0], filling);
                start = __shfl_sync(ALL, start, 0);
                filled = 0;
            }
            if (lane == 0 && start + filling <= args.max_entries) {
                Entry<Real> &entry = ((Entry<Real> *)args.entries)[start + filled];
                entry.group = group;
                entry.bits = (int)(mask | (diagonal ? 256u : 0u));
                entry.mask = number;
                entry.x = shift[0];
                entry.y = shift[1];
                entry.z = shift[2];
                Item &item = ((Item *)args.chunks)[start / filling];
                item.chunk = i;
                item.count = filled + 1;
            }
            filled++;
            clusters += __popc(mask);
        }
    });
    if (lane == 0 && clusters)
        add_atomically(&args.counts[4], 32 * clusters);
}

// Six blocks on a multiprocessor leave each thread so many registers that none is spilled.
#define LIST_KERNEL(name, Real) \
    extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 6) name(const PairSearch args, index_t) \
    { \
        list_chunk<Real>(args); \
    }
LIST_KERNEL(list_clusters, float)
LIST_KERNEL(list_clusters_double, double)

#endif
