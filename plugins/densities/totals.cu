// Adds the sums of blocks of frames to totals, and computes the statistics of all frames from these.
#include "kernel.h"
#ifndef __CUDACC__

struct BlockSums {
    double *totals;                // (nodes, 2) the sum over frames, and the squares of the blocks' sums over their frames
    double *all_squares;           // (nodes,) the squares over frames, or null
    const index_t *nodes;          // (N,) all different
    const double *sums, *squares;  // (N,)
    double share;                  // 1 / the number of frames of the block
};

// Both totals of a node share a line of the cache, as most of the time is spent waiting for memory.
KERNEL(add_block, BlockSums, n)
{
    double *total = args.totals + 2 * args.nodes[n];
    total[0] += args.sums[n];
    total[1] += args.sums[n] * args.sums[n] * args.share;
    if (args.all_squares)
        args.all_squares[args.nodes[n]] += args.squares[n];
}

struct NodeStatistics {
    const double *totals, *all_squares;
    float *mean, *deviation, *errors;  // (nodes,) in the unit of the map; those that are not needed are null
    double *partial;                   // (pieces, 2) sums of the means, and of the squared deviations of the blocks
    double frames, unit, error;        // the standard error is `error` times the root of the squared deviations
    index_t piece;                     // nodes of a piece
};

// Differences of squares lose no digits, because values have few, such as numbers of atoms.
RANGE_KERNEL(compute_statistics, NodeStatistics, first, last)
{
    double total = 0, deviations = 0;
    for (index_t node = first; node < last; node++) {
        const double value = args.totals[2 * node] / args.frames, square = args.totals[2 * node] * value;
        const double between = fmax(args.totals[2 * node + 1] - square, 0);
        total += value;
        deviations += between;
        args.mean[node] = (float)(value * args.unit);
        if (args.deviation)
            args.deviation[node] = (float)(sqrt(fmax(args.all_squares[node] - square, 0) / args.frames) * args.unit);
        if (args.errors)
            args.errors[node] = (float)(sqrt(between) * args.error * args.unit);
    }
    args.partial[2 * (first / args.piece)] = total;
    args.partial[2 * (first / args.piece) + 1] = deviations;
}
#endif
