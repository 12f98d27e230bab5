"""Kernel that adds the counts of a block of frames to the totals of all blocks.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

from numba import njit


@njit(nogil=True, error_model="numpy")
def add(totals, nodes, sums, squares, count):
    """Add to totals (N, 3) the sums, squares, and squared sums divided by `count`, of a block's nodes.

    The three numbers of a node are in one cache line, because most of the time is spent waiting for memory.
    """
    share = 1.0 / count
    for n in range(len(nodes)):
        node = nodes[n]
        totals[node, 0] += sums[n]
        totals[node, 1] += squares[n]
        totals[node, 2] += sums[n] * sums[n] * share
