// Densities: contributions of atoms to the nodes of a lattice in each frame, summed over frames.
//
// Atoms that contribute to the nearest node are listed by keys, which consist of the numbers of the node and the frame.
// The list is sorted by node and then summed, without random access to an array of all nodes.
//
// Atoms that are spread over many nodes are summed in such an array. Each node has four numbers in one cache line: its
// value in the last frame with a contribution, the sum over frames, the sum of squares, and the number of that last
// frame. So each contribution reads memory once, and the time of a frame depends on the number of atoms, not on that of
// nodes. One bit per node marks the nodes with contributions of the current block.
//
// A GPU adds all atoms to an array of the frame's values, in fixed point, so that they do not depend on the order, and
// that array to the sums. The same memory then has three arrays of all nodes: these values, sums, and squares.
#include "kernel.h"

#define ROUNDING 1e-9  // distance, in spacings, by which rounding may place an atom outside of the cell
#define SEGMENT 1024   // number of nodes that are collected at a time, as in counting.py

enum Spreading { NEAREST, GAUSSIAN, OCCUPANCY };

struct Frame {
    const float *single_positions;          // (all atoms, 3), or null
    const double *positions;                // the same in float64, or null
    const index_t *rows;                    // (atoms,) the counted atoms, or null if these are all
    const double *weights, *widths;         // (atoms,), widths in A
    const double *images;                   // (images, 3) of the cell that may reach the lattice, in spacings
    const double *columns;                  // (3, images) the same plus half a spacing
    const index_t *starts, *near;           // the images that may reach the lattice from each part of the cell
    int64_t *keys;                          // one more than the contributions, which is written but not used
    double *of;                             // weights of the keys, or null if all are equal
    double *work;                           // (nodes, 4), from a line of the cache on, or (3, nodes)
    uint64_t *reached;                      // (nodes / 64,) bits of nodes
    double *along;                          // (3, side) a work array, of which side is the largest 2 reach + 1
    int64_t *listed;                        // (1,) the number of listed keys
    double change[3][3];                    // maps positions to the cell of the lattice, if it `changes`
    double origin[3], spacing[3];           // A
    double cell[3][3], inverse[3][3];       // the cell of the lattice in spacings, and its inverse
    double scale;                           // units of 1 in fixed point
    index_t bins[3], reach[3], shape[3];    // parts of the cell, nodes within which an atom counts, and nodes
    index_t atoms, nodes, image_count, side, frame;  // one image in an open boundary; the frame's number from 1
    bool periodic, changes;
};

// The position of an atom in spacings, wrapped into the cell; `bin` is the number of the part of the cell where it is.
DEVICE void place(const Frame &args, index_t n, double *u, index_t &bin)
{
    double x[3];
    const index_t row = args.rows ? args.rows[n] : n;
    for (int d = 0; d < 3; d++)
        x[d] = args.positions ? args.positions[3 * row + d] : args.single_positions[3 * row + d];
    for (int d = 0; d < 3; d++) {
        const double y = x[0] * args.change[0][d] + x[1] * args.change[1][d] + x[2] * args.change[2][d];
        u[d] = ((args.changes ? y : x[d]) - args.origin[d]) / args.spacing[d];
    }
    bin = 0;
    if (!args.periodic)
        return;
    for (int d = 0; d < 3; d++) {
        const double y = (u[0] + 0.5) * args.inverse[0][d] + (u[1] + 0.5) * args.inverse[1][d]
            + (u[2] + 0.5) * args.inverse[2][d];
        x[d] = floor(y);
        const index_t part = (index_t)((y - x[d]) * args.bins[d]);
        bin = bin * args.bins[d] + (part < args.bins[d] - 1 ? part : args.bins[d] - 1);
    }
    for (int d = 0; d < 3; d++)
        u[d] -= x[0] * args.cell[0][d] + x[1] * args.cell[1][d] + x[2] * args.cell[2][d];
}

struct Sums {
    double *work;           // as above
    uint64_t *reached;
    int *counts;            // (segments,) nodes with contributions
    const index_t *starts;  // (segments,) the places of their first ones in the results
    index_t *nodes;         // those with contributions, in ascending order, and their sums
    double *sums, *squares;
    index_t size;           // number of all nodes
};

#ifdef __CUDACC__

typedef unsigned long long Whole;

// The node nearest to v among `count` nodes along an axis; -1 outside of the lattice.
DEVICE int nearest(double v, int count, bool periodic)
{
    const double i = floor(v + 0.5);
    if (i == count && v + 0.5 - count <= (periodic ? ROUNDING : 0.0))
        return count - 1;
    if (i == -1 && periodic && v > -0.5 - ROUNDING)
        return 0;
    return i >= 0 && i < count ? (int)i : -1;
}

// Count atoms at their nearest nodes. One thread per atom.
BLOCK_KERNEL(count_nearest, Frame)
{
    const int n = blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (n >= args.atoms)
        return;
    double u[3];
    index_t bin;
    place(args, n, u, bin);
    const long long value = llrint(args.weights[n] * args.scale);
    for (int image = 0; image < args.image_count; image++) {
        const double *shift = args.images + 3 * image;
        const int i = nearest(u[0] + shift[0], (int)args.shape[0], args.periodic);
        const int j = nearest(u[1] + shift[1], (int)args.shape[1], args.periodic);
        const int k = nearest(u[2] + shift[2], (int)args.shape[2], args.periodic);
        if (i >= 0 && j >= 0 && k >= 0)
            atomicAdd((Whole *)args.work + (i * args.shape[1] + j) * args.shape[2] + k, (Whole)value);
    }
}

// Count atoms as Gaussians or by their radii. One block per atom, whose threads divide the nodes around it.
template <Spreading SPREADING>
DEVICE void spread(const Frame &args)
{
    __shared__ double totals[3];
    const int n = blockIdx.x;
    double u[3], width[3];
    index_t bin;
    place(args, n, u, bin);
    for (int d = 0; d < 3; d++)
        width[d] = args.widths[n] / args.spacing[d];
    for (int image = 0; image < args.image_count; image++) {
        double v[3];
        index_t first[3];
        int side[3];
        bool away = false;
        for (int d = 0; d < 3; d++) {
            v[d] = u[d] + args.images[3 * image + d];
            first[d] = (index_t)floor(v[d] + 0.5) - args.reach[d];
            side[d] = 2 * (int)args.reach[d] + 1;
            away = away || first[d] >= args.shape[d] || first[d] + side[d] <= 0;
        }
        if (away)
            continue;
        __syncthreads();
        if (SPREADING == GAUSSIAN && threadIdx.x < 3) {  // normalisation on the nodes, for any spacing
            const int d = threadIdx.x;
            double total = 0;
            for (int m = 0; m < side[d]; m++) {
                const double x = (first[d] + m - v[d]) / width[d];
                total += exp(-0.5 * x * x);
            }
            totals[d] = total;
        }
        __syncthreads();
        const double whole = SPREADING == GAUSSIAN ? args.weights[n] / (totals[0] * totals[1] * totals[2]) : 1.0;
        const index_t nodes = (index_t)side[0] * side[1] * side[2];
        for (index_t m = threadIdx.x; m < nodes; m += BLOCK_THREADS) {
            const index_t k = first[2] + m % side[2], j = first[1] + m / side[2] % side[1];
            const index_t i = first[0] + m / ((index_t)side[2] * side[1]);
            if (i < 0 || j < 0 || k < 0 || i >= args.shape[0] || j >= args.shape[1] || k >= args.shape[2])
                continue;
            const double x = (i - v[0]) / width[0], y = (j - v[1]) / width[1], z = (k - v[2]) / width[2];
            const double square = x * x + y * y + z * z;
            Whole *value = (Whole *)args.work + (i * args.shape[1] + j) * args.shape[2] + k;
            if (SPREADING == GAUSSIAN)
                atomicAdd(value, (Whole)llrint(whole * exp(-0.5 * square) * args.scale));
            else if (square <= 1)
                *value = (Whole)(long long)args.scale;
        }
    }
}

BLOCK_KERNEL(count_gaussian, Frame) { spread<GAUSSIAN>(args); }
BLOCK_KERNEL(count_occupancy, Frame) { spread<OCCUPANCY>(args); }

// Add the values of a frame to the sums, and reset them.
KERNEL(add_frame, Frame, n)
{
    Whole *values = (Whole *)args.work;
    if (!values[n])
        return;
    const double value = (double)(long long)values[n] / args.scale;
    args.work[args.nodes + n] += value;
    args.work[2 * args.nodes + n] += value * value;
    values[n] = 0;
}

// Bits of the lanes of a warp whose nodes, from the node of lane 0 on, have contributions.
DEVICE unsigned find_reached(const Sums &args, index_t first)
{
    const index_t n = first + threadIdx.x % 32;
    return __ballot_sync(0xFFFFFFFF, n < args.size && args.work[2 * args.size + n] != 0);
}

// Count the nodes with contributions in each segment, which a warp has.
BLOCK_KERNEL(count_reached, Sums)
{
    const index_t segment = blockIdx.x * (index_t)(BLOCK_THREADS / 32) + threadIdx.x / 32;
    int reached = 0;
    for (index_t first = segment * SEGMENT; first < (segment + 1) * SEGMENT; first += 32)
        reached += __popc(find_reached(args, first));
    if (threadIdx.x % 32 == 0 && segment * SEGMENT < args.size)
        args.counts[segment] = reached;
}

// Take the nodes with contributions and their sums, and reset the sums.
BLOCK_KERNEL(take_sums, Sums)
{
    const index_t segment = blockIdx.x * (index_t)(BLOCK_THREADS / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    index_t next = segment * SEGMENT < args.size ? args.starts[segment] : 0;
    for (index_t first = segment * SEGMENT; first < (segment + 1) * SEGMENT; first += 32) {
        const unsigned bits = find_reached(args, first);
        if (bits >> lane & 1) {
            const index_t at = next + __popc(bits & ((1u << lane) - 1)), n = first + lane;
            double *sum = args.work + args.size + n, *square = sum + args.size;
            args.nodes[at] = n;
            args.sums[at] = *sum;
            args.squares[at] = *square;
            *sum = *square = 0;
        }
        next += __popc(bits);
    }
}

#else
#include <string.h>

#define FRAME_BITS 20  // low bits of a key that contain the frame; the others contain the node
#define DIGIT 11       // greatest number of bits of a digit, by which one pass of the sort distributes keys

// The four numbers of a node: value, sum, squares, frame. They begin at a line of the cache.
DEVICE double *numbers_of(double *work, index_t node)
{
    return (double *)(((uintptr_t)work + 63) & ~(uintptr_t)63) + 4 * node;
}

// Add an atom's contribution to a node, for this frame and for the sums over frames.
template <Spreading SPREADING>
DEVICE void put(const Frame &args, index_t node, double weight)
{
    double *work = numbers_of(args.work, node);
    const double frame = (double)args.frame, value = work[3] == frame ? work[0] : 0;
    const double changed = SPREADING == OCCUPANCY ? 1 : value + weight;
    work[1] += SPREADING == OCCUPANCY ? changed - value : weight;
    work[2] += (changed - value) * (changed + value);
    work[0] = changed;
    work[3] = frame;
    args.reached[node >> 6] |= (uint64_t)1 << (node & 63);
}

DEVICE double clamp(double x, double last)
{
    x = x > 0 ? x : 0;
    return x < last ? x : last;
}

// List the keys of the nodes nearest to an atom at u, in spacings, in its images from `first` on. There are no branches,
// because processors mispredict about half of them here: a key outside of the lattice is written, too, and overwritten
// by the next one. Returns the number of keys listed.
DEVICE index_t list_nearest(const Frame &args, const double *u, index_t first, index_t last, index_t listed)
{
    const index_t count = args.image_count;
    const double nx = (double)args.shape[0], ny = (double)args.shape[1], nz = (double)args.shape[2];
    const double slack = args.periodic ? ROUNDING : 0;
    for (index_t n = first; n < last; n++) {
        const double *column = args.columns + args.near[n];
        const double a = u[0] + column[0], b = u[1] + column[count], c = u[2] + column[2 * count];
        const bool inside = (a >= -slack) & (b >= -slack) & (c >= -slack) & (a <= nx + slack) & (b <= ny + slack)
            & (c <= nz + slack);
        const double i = clamp(floor(a), nx - 1), j = clamp(floor(b), ny - 1), k = clamp(floor(c), nz - 1);
        args.keys[listed] = (int64_t)((i * ny + j) * nz + k) << FRAME_BITS | args.frame;
        listed += inside;
    }
    return listed;
}

// Add an atom at v, in spacings, to the nodes around it; `width` is the standard deviation or the radius, in spacings.
template <Spreading SPREADING>
DEVICE void add_atom(const Frame &args, const double *v, double weight, const double *width)
{
    index_t first[3], low[3], high[3];
    for (int d = 0; d < 3; d++) {
        const index_t side = 2 * args.reach[d] + 1;
        double *along = args.along + d * args.side, total = 0;
        first[d] = (index_t)floor(v[d] + 0.5) - args.reach[d];
        low[d] = first[d] < 0 ? -first[d] : 0;
        high[d] = side < args.shape[d] - first[d] ? side : args.shape[d] - first[d];
        if (low[d] >= high[d])
            return;
        for (index_t n = 0; n < side; n++) {
            const double x = (first[d] + n - v[d]) / width[d];
            along[n] = SPREADING == GAUSSIAN ? exp(-0.5 * x * x) : x * x;
            total += along[n];
        }
        // normalised on the nodes, so that the atom's total is its weight for any spacing
        for (index_t n = 0; SPREADING == GAUSSIAN && n < side; n++)
            along[n] /= total;
    }
    const double *x = args.along, *y = x + args.side, *z = y + args.side;
    for (index_t a = low[0]; a < high[0]; a++)
        for (index_t b = low[1]; b < high[1]; b++) {
            const index_t row = ((first[0] + a) * args.shape[1] + first[1] + b) * args.shape[2] + first[2];
            for (index_t c = low[2]; c < high[2]; c++) {
                if (SPREADING == GAUSSIAN)
                    put<SPREADING>(args, row + c, weight * x[a] * y[b] * z[c]);
                else if (x[a] + y[b] + z[c] <= 1)
                    put<SPREADING>(args, row + c, weight);
            }
        }
}

// Add the atoms of a frame to the sums over frames, or list them.
template <Spreading SPREADING>
DEVICE void count_atoms(const Frame &args, index_t begin, index_t end)
{
    index_t listed = 0;
    for (index_t n = begin; n < end; n++) {
        double u[3], v[3], width[3];
        index_t bin;
        place(args, n, u, bin);
        if (SPREADING == NEAREST) {
            const index_t before = listed;
            listed = list_nearest(args, u, args.starts[bin], args.starts[bin + 1], listed);
            for (index_t at = before; args.of && at < listed; at++)
                args.of[at] = args.weights[n];
            continue;
        }
        for (int d = 0; d < 3; d++)
            width[d] = args.widths[n] / args.spacing[d];
        for (index_t m = args.starts[bin]; m < args.starts[bin + 1]; m++) {
            for (int d = 0; d < 3; d++)
                v[d] = u[d] + args.images[3 * args.near[m] + d];
            add_atom<SPREADING>(args, v, args.weights[n], width);
        }
    }
    if (SPREADING == NEAREST)
        args.listed[0] = listed;
}

RANGE_KERNEL(count_nearest, Frame, first, last) { count_atoms<NEAREST>(args, first, last); }
RANGE_KERNEL(count_gaussian, Frame, first, last) { count_atoms<GAUSSIAN>(args, first, last); }
RANGE_KERNEL(count_occupancy, Frame, first, last) { count_atoms<OCCUPANCY>(args, first, last); }

struct Listed {
    int64_t *keys, *more_keys;
    double *of, *more_of;   // weights of the keys, or null if all are `weight`
    double weight;
    int64_t *nodes;         // (count,) nodes, sums over frames of their values and of the squares of these
    double *sums, *squares;
    int64_t *found;         // (1,) the number of nodes
    index_t bits;           // of a node
};

// Sort keys by their nodes, and sum them. A radix sort from the lowest digit of the nodes on keeps the order of frames.
RANGE_KERNEL(sum_listed, Listed, first, count)
{
    const int passes = args.bits > DIGIT ? (int)((args.bits + DIGIT - 1) / DIGIT) : 1;
    const int width = (int)((args.bits + passes - 1) / passes);
    const int64_t mask = ((int64_t)1 << width) - 1;
    int64_t *keys = args.keys, *more_keys = args.more_keys;
    double *of = args.of, *more_of = args.more_of;
    index_t starts[1 << DIGIT];
    for (int n = 0; n < passes; n++) {
        const int shift = FRAME_BITS + n * width;
        memset(starts, 0, sizeof(starts));
        for (index_t i = first; i < count; i++)
            starts[keys[i] >> shift & mask]++;
        index_t total = 0;
        for (int digit = 0; digit <= mask; digit++) {
            const index_t here = starts[digit];
            starts[digit] = total;
            total += here;
        }
        for (index_t i = first; i < count; i++) {
            const index_t to = starts[keys[i] >> shift & mask]++;
            more_keys[to] = keys[i];
            if (of)
                more_of[to] = of[i];
        }
        int64_t *sorted = more_keys;
        more_keys = keys;
        keys = sorted;
        double *sorted_of = more_of;
        more_of = of;
        of = sorted_of;
    }
    index_t found = -1;
    int64_t last = -1;
    double value = 0;
    for (index_t n = first; n < count; n++) {
        const int64_t node = keys[n] >> FRAME_BITS;
        if (found < 0 || args.nodes[found] != node) {
            found++;
            args.nodes[found] = node;
            args.sums[found] = args.squares[found] = 0;
        }
        if (keys[n] != last)
            value = 0;
        last = keys[n];
        const double added = of ? of[n] : args.weight;
        args.sums[found] += added;
        args.squares[found] += added * (2 * value + added);
        value += added;
    }
    args.found[0] = found + 1;
}

struct TwoLists {
    const int64_t *nodes, *more_nodes;
    const double *sums, *squares, *more_sums, *more_squares;
    int64_t *all_nodes;
    double *all_sums, *all_squares;
    int64_t *found;      // (1,) the number of nodes
    index_t more_count;
};

// Merge two lists that are sorted by node.
RANGE_KERNEL(unite_lists, TwoLists, start, size)
{
    index_t a = start, b = 0, count = 0;
    for (; a < size || b < args.more_count; count++) {
        const bool first = a < size && (b == args.more_count || args.nodes[a] <= args.more_nodes[b]);
        const bool second = b < args.more_count && (a == size || args.more_nodes[b] <= args.nodes[a]);
        args.all_nodes[count] = first ? args.nodes[a] : args.more_nodes[b];
        args.all_sums[count] = (first ? args.sums[a] : 0) + (second ? args.more_sums[b] : 0);
        args.all_squares[count] = (first ? args.squares[a] : 0) + (second ? args.more_squares[b] : 0);
        a += first;
        b += second;
    }
    args.found[0] = count;
}

// Count the nodes with contributions in each segment.
RANGE_KERNEL(count_reached, Sums, first, last)
{
    const index_t words = (args.size + 63) / 64;
    for (index_t segment = first; segment < last; segment++) {
        args.counts[segment] = 0;
        for (index_t word = segment * SEGMENT / 64; word < (segment + 1) * SEGMENT / 64 && word < words; word++)
            args.counts[segment] += __builtin_popcountll(args.reached[word]);
    }
}

// Take the nodes with contributions and their sums, and reset them for the next block.
RANGE_KERNEL(take_sums, Sums, first, last)
{
    const index_t words = (args.size + 63) / 64;
    for (index_t segment = first; segment < last; segment++) {
        index_t at = args.starts[segment];
        for (index_t word = segment * SEGMENT / 64; word < (segment + 1) * SEGMENT / 64 && word < words; word++) {
            for (uint64_t bits = args.reached[word]; bits; bits &= bits - 1, at++) {
                const index_t node = 64 * word + __builtin_ctzll(bits);
                double *work = numbers_of(args.work, node);
                args.nodes[at] = node;
                args.sums[at] = work[1];
                args.squares[at] = work[2];
                work[1] = work[2] = work[3] = 0;
            }
            args.reached[word] = 0;
        }
    }
}
#endif
