// Orders the nodes of a tree.
#include "kernel.h"
#ifndef __CUDACC__

struct Tree {
    const index_t *parents;   // (nodes - 1,) parent of each node but the first, which is the root, before its children
    index_t *sizes, *places;  // (nodes,) number of nodes of each subtree, 1 at first; place in depth-first order
    index_t *next;            // (nodes,) room for the places of the next children
    index_t nodes;
};

KERNEL(order_depth_first, Tree, tree)
{
    for (index_t n = args.nodes - 1; n > 0; n--)
        args.sizes[args.parents[n - 1]] += args.sizes[n];
    args.places[0] = 0;
    args.next[0] = 1;
    for (index_t n = 1; n < args.nodes; n++) {
        index_t *next = &args.next[args.parents[n - 1]];
        args.places[n] = *next;
        args.next[n] = *next + 1;
        *next += args.sizes[n];
    }
}
#endif
