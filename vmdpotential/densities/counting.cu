// Densities: contributions of atoms to the nodes of a lattice in each frame, summed over frames.
//
// Atoms that contribute to the nearest node are listed by keys, which consist of the numbers of the node and the frame.
// The list is sorted by node and then summed, without random access to an array of all nodes.
//
// Atoms that are spread over many nodes are summed in such an array. Each node has four numbers in one cache line: its
// value in the last frame with a contribution, the sum over frames, the sum of squares, and the number of that last
// frame. So each contribution reads memory once, and the time of a frame depends on the number of atoms, not on that of
// nodes. One bit per node marks the nodes with contributions of the current block.
#include "kernel.h"
#ifndef __CUDACC__
#include <string.h>

#define FRAME_BITS 20   // low bits of a key that contain the frame; the others contain the node
#define DIGIT 11        // greatest number of bits of a digit, by which one pass of the sort distributes keys
#define ROUNDING 1e-9   // distance, in spacings, by which rounding may place an atom outside of the cell

enum Spreading { NEAREST, GAUSSIAN, OCCUPANCY };

struct Frame {
    const float *single_positions;          // (all atoms, 3), or null
    const double *positions;                // the same in float64, or null
    const index_t *rows;                    // (atoms,) the counted atoms
    const double *weights, *widths;         // (atoms,), widths in A
    const double *change;                   // (3, 3) maps positions to the cell of the lattice, or null
    const double *images;                   // (images, 3) of the cell that may reach the lattice, in spacings
    const double *columns;                  // (3, images) the same plus half a spacing; with one zero image if open
    const index_t *starts, *near;           // the images that may reach the lattice from each part of the cell
    int64_t *keys;                          // one more than the contributions, which is written but not used
    double *of;                             // weights of the keys, or null if all are equal
    double *work;                           // (nodes, 4)
    uint64_t *reached;
    double *along;                          // (3, side) a work array, of which side is the largest 2 reach + 1
    int64_t *listed;                        // (1,) the number of listed keys
    double origin[3], spacing[3];           // A
    double cell[3][3], inverse[3][3];       // the cell of the lattice in spacings, and its inverse
    index_t bins[3], reach[3], shape[3];    // parts of the cell, nodes within which an atom counts, and nodes
    index_t atoms, image_count, side, frame;  // no images in an open boundary; the frame's number in the block, from 1
};

// Add an atom's contribution to a node, for this frame and for the sums over frames.
template <Spreading SPREADING>
DEVICE void put(const Frame &args, index_t node, double weight)
{
    double *work = args.work + 4 * node;  // value, sum, squares, frame
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
    const index_t count = args.image_count ? args.image_count : 1;
    const double nx = (double)args.shape[0], ny = (double)args.shape[1], nz = (double)args.shape[2];
    const double slack = args.image_count ? ROUNDING : 0;
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
DEVICE void add_frame(const Frame &args, index_t begin, index_t end)
{
    index_t listed = 0;
    for (index_t n = begin; n < end; n++) {
        double x[3], u[3], width[3] = {};
        for (int d = 0; d < 3; d++)
            x[d] = args.positions ? args.positions[3 * args.rows[n] + d] : args.single_positions[3 * args.rows[n] + d];
        for (int d = 0; d < 3; d++) {
            const double *m = args.change, y = m ? x[0] * m[d] + x[1] * m[3 + d] + x[2] * m[6 + d] : x[d];
            u[d] = (y - args.origin[d]) / args.spacing[d];
            if (SPREADING != NEAREST)
                width[d] = args.widths[n] / args.spacing[d];
        }
        index_t part = 0;
        if (args.image_count) {
            for (int d = 0; d < 3; d++) {
                const double y = (u[0] + 0.5) * args.inverse[0][d] + (u[1] + 0.5) * args.inverse[1][d]
                    + (u[2] + 0.5) * args.inverse[2][d];
                x[d] = floor(y);
                const index_t bin = (index_t)((y - x[d]) * args.bins[d]);
                part = part * args.bins[d] + (bin < args.bins[d] - 1 ? bin : args.bins[d] - 1);
            }
            for (int d = 0; d < 3; d++)
                u[d] -= x[0] * args.cell[0][d] + x[1] * args.cell[1][d] + x[2] * args.cell[2][d];
        }
        if (SPREADING == NEAREST) {
            const index_t before = listed;
            listed = list_nearest(args, u, args.starts[part], args.starts[part + 1], listed);
            for (index_t at = before; args.of && at < listed; at++)
                args.of[at] = args.weights[n];
        } else {
            for (index_t m = args.starts[part]; m < args.starts[part + 1]; m++) {
                double v[3];
                for (int d = 0; d < 3; d++)
                    v[d] = args.image_count ? u[d] + args.images[3 * args.near[m] + d] : u[d];
                add_atom<SPREADING>(args, v, args.weights[n], width);
            }
        }
    }
    args.listed[0] = listed;
}

RANGE_KERNEL(count_nearest, Frame, first, last) { add_frame<NEAREST>(args, first, last); }
RANGE_KERNEL(count_gaussian, Frame, first, last) { add_frame<GAUSSIAN>(args, first, last); }
RANGE_KERNEL(count_occupancy, Frame, first, last) { add_frame<OCCUPANCY>(args, first, last); }

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

struct Reached {
    double *work;        // (nodes, 4)
    uint64_t *reached;
    int64_t *nodes;      // nodes with contributions in the block, in ascending order
    double *sums, *squares;
    int64_t *found;      // (1,) the number of nodes
};

// List the nodes with contributions in the block; elements are words of `reached`.
RANGE_KERNEL(list_reached, Reached, first, last)
{
    index_t count = 0;
    for (index_t word = first; word < last; word++)
        for (uint64_t bits = args.reached[word]; bits; bits &= bits - 1)
            args.nodes[count++] = 64 * word + __builtin_ctzll(bits);
    args.found[0] = count;
}

// Take the sums of the block's nodes, and reset them for the next block.
KERNEL(take_sums, Reached, n)
{
    double *work = args.work + 4 * args.nodes[n];
    args.sums[n] = work[1];
    args.squares[n] = work[2];
    work[1] = work[2] = work[3] = 0;
    args.reached[args.nodes[n] >> 6] = 0;
}
#endif
