"""The kernel that orders the nodes of a tree.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit

PLAIN_CODE = {"error_model": "numpy", "boundscheck": False, "nogil": True}


@njit(**PLAIN_CODE)
def depth_first(parents, sizes, places):
    """Write the place of each node of a tree in depth-first order, and the number of nodes of its subtree.

    Parameters
    ----------
    parents : (N - 1,) int64
        Parent of each node but the first, which is the root; parents come before their children.
    sizes, places : (N,) int64
        The results; sizes are 1 at first.
    """
    for n in range(len(parents) - 1, -1, -1):
        sizes[parents[n]] += sizes[n + 1]
    following = np.ones(len(sizes), np.int64)  # place of the next child
    places[0] = 0
    for n in range(len(parents)):
        parent = parents[n]
        places[n + 1] = following[parent]
        following[parent] += sizes[n + 1]
        following[n + 1] = places[n + 1] + 1
