"""Kernel of multilevel sums: for each node of a level, the sum over the nodes within its stencil.

This file is run once for each set of the constants that it declares, see
:mod:`vmdpotential.compiling.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit

#: One of vmdpotential.engines.PRECISIONS.
PRECISION: str

REAL = np.float32 if PRECISION == "single" else np.float64

#: Numbers of neighbouring rows along z, and largest number of nodes of each, whose potentials are summed together.
ROWS, MOST = 4, 128
#: Multiple to which the number of nodes of a row is padded, for vector instructions.
LANES = 16
#: Number of charges along z that are processed together.
GROUP = 4


@njit(fastmath=True, error_model="numpy", boundscheck=False, nogil=True)
def convolve(charges, filled, planes, weights, low, high, block, out, first_task, last_task):
    """Write the potentials of a level; a task is ROWS rows along z of a plane.

    Every loaded charge is used for ROWS rows, and every weight for a block of nodes, so that multiplications determine
    the time. Charges of planes with equal weights are added first, which halves the number of multiplications.

    Parameters
    ----------
    charges : (NX + DX - 1, rows + DY - 1, nodes + DZ) float
        Charges of the level and its margins, with a multiple of ROWS rows and of `block` nodes; out[i, j, k] is the
        sum of stencil[a, b, c] charges[i + a, j + b, k + c].
    filled : (NX + DX - 1, rows + DY - 1) bool
        Whether a row has charges.
    planes : (P, 2) int
        Pairs of planes a of the stencil with equal weights; a plane without such a partner is paired with itself.
    weights : (P, DY + ROWS - 1, DZ / GROUP, ROWS * GROUP) float
        Weights of GROUP charges for each row: weights[p, b, g, m * GROUP + c] is
        stencil[planes[p, 0], b - m, g * GROUP + c].
    low, high : (P, DY + ROWS - 1) int
        Range of the groups of each row of weights that are not zero.
    block : int
        Number of nodes that are summed together, a multiple of LANES, at most MOST.
    out : (NX, NY, NZ) float
        The potentials.
    """
    ny, nz = out.shape[1], out.shape[2]
    strips = (ny + ROWS - 1) // ROWS
    total = np.empty((ROWS, MOST), REAL)
    row0, row1, row2, row3 = total[0], total[1], total[2], total[3]
    both = np.empty(weights.shape[2] * GROUP + MOST, REAL)
    for task in range(first_task, last_task):
        i, j = task // strips, task % strips * ROWS
        for first in range(0, nz, block):
            total[:] = 0
            for p in range(len(planes)):
                left, right = i + planes[p, 0], i + planes[p, 1]
                for b in range(weights.shape[1]):
                    if not (filled[left, j + b] or filled[right, j + b]):
                        continue
                    begin = first + low[p, b] * GROUP
                    length = (high[p, b] - low[p, b]) * GROUP + block
                    row = charges[left, j + b, begin : begin + length]
                    other = charges[right, j + b, begin : begin + length]
                    share = REAL(0.5) if left == right else REAL(1)
                    for c in range(length):
                        both[c] = share * (row[c] + other[c])
                    for group in range(high[p, b] - low[p, b]):
                        w = weights[p, b, low[p, b] + group]
                        near = both[group * GROUP : group * GROUP + block + GROUP]
                        for k in range(block):
                            q0, q1, q2, q3 = near[k], near[k + 1], near[k + 2], near[k + 3]
                            row0[k] += w[0] * q0 + w[1] * q1 + w[2] * q2 + w[3] * q3
                            row1[k] += w[4] * q0 + w[5] * q1 + w[6] * q2 + w[7] * q3
                            row2[k] += w[8] * q0 + w[9] * q1 + w[10] * q2 + w[11] * q3
                            row3[k] += w[12] * q0 + w[13] * q1 + w[14] * q2 + w[15] * q3
            count = min(block, nz - first)
            for m in range(min(ROWS, ny - j)):
                for c in range(count):
                    out[i, j + m, first + c] = total[m, c]
