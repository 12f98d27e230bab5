"""Kernels that add the sums of blocks of frames to totals, and compute the statistics of all frames from these.

This file is run once, see :mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import math

from numba import njit

#: Columns of the totals: the sum over frames, and the squares of the blocks' sums, each over the block's frames. Both
#: numbers of a node share a line of the cache, as most of the time is spent waiting for memory.
SUM, BETWEEN = range(2)


@njit(nogil=True, error_model="numpy")
def add(totals, all_squares, nodes, sums, squares, count):
    """Add a block of `count` frames to totals (N, 2), and to the squares over frames (N,), or (0,) without them."""
    share = 1.0 / count
    for n in range(len(nodes)):
        totals[nodes[n], SUM] += sums[n]
        totals[nodes[n], BETWEEN] += sums[n] * sums[n] * share
    if len(all_squares) > 0:
        for n in range(len(nodes)):
            all_squares[nodes[n]] += squares[n]


@njit(nogil=True, error_model="numpy")
def statistics(totals, all_squares, frames, unit, error, mean, deviation, errors):
    """Fill in the mean, the standard deviation and the standard error of each node, in the unit of the map.

    Each of the last three is (N,), or (0,) where it is not needed. The standard error is `error` times the root of the
    squared deviations of the blocks' means. Differences of squares lose no digits, because values have few, such as
    numbers of atoms.

    Returns
    -------
    sum, squared_errors : float
        Of all means, and of all squared standard errors, without the unit.
    """
    total, squared_errors = 0.0, 0.0
    for node in range(len(totals)):
        value = totals[node, SUM] / frames
        square = totals[node, SUM] * value
        total += value
        mean[node] = value * unit
        if len(deviation) > 0:
            deviation[node] = math.sqrt(max(all_squares[node] - square, 0.0) / frames) * unit
        between = max(totals[node, BETWEEN] - square, 0.0)
        squared_errors += between
        if len(errors) > 0:
            errors[node] = math.sqrt(between) * error * unit
    return total, squared_errors * error * error
