"""Overlaps of basis functions, by which the normalisation of orbitals in a file is checked.

The overlap of two Cartesian Gaussians is a product of three integrals along the axes, which follow from the recurrences
of S. Obara, A. Saika, J. Chem. Phys. 84 (1986) 3963, for all pairs of primitives at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vmdpotential import memory, progress
from vmdpotential.arrays import Floats

from .shells import Shell, in_monomials, monomials

#: Largest number of pairs of primitives that are computed at once.
PAIRS = 1_000_000


class _Kind:
    """All shells of one angular momentum and one list of functions, with their primitives one after the other."""

    def __init__(self, shells: Sequence[Shell], numbers: Sequence[int], offsets: Sequence[int]) -> None:
        chosen = [shells[number] for number in numbers]
        sizes = [len(shell.exponents) for shell in chosen]
        self.momentum, count = chosen[0].momentum, len(chosen[0].functions)
        self.functions = in_monomials(self.momentum, chosen[0].functions)
        self.starts = np.cumsum([0, *sizes])
        self.centres = np.repeat([shell.centre for shell in chosen], sizes, axis=0)
        self.exponents = np.concatenate([shell.exponents for shell in chosen])
        self.weights = np.concatenate([shell.radial() for shell in chosen])
        self.rows = np.array([offsets[number] for number in numbers])[:, None] + np.arange(count)


def overlap(shells: Sequence[Shell]) -> Floats:
    """Return the overlaps (functions, functions) of the functions of all shells, in their order.

    Raises
    ------
    MemoryPlanError
        When the matrix does not fit into memory.
    """
    offsets = np.cumsum([0, *(len(shell.functions) for shell in shells)]).tolist()
    pairs = sum(len(shell.exponents) for shell in shells) ** 2
    memory.require(16 * offsets[-1] ** 2 + 200 * min(pairs, PAIRS), f"the overlaps of {offsets[-1]} basis functions",
                   "use a smaller basis set")
    groups: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    for number, shell in enumerate(shells):
        groups.setdefault((shell.momentum, tuple(shell.functions)), []).append(number)
    kinds = [_Kind(shells, numbers, offsets) for numbers in groups.values()]
    result, done = np.zeros((offsets[-1], offsets[-1])), 0
    for n, first in enumerate(kinds):
        for second in kinds[: n + 1]:
            step = max(1, PAIRS * (len(first.starts) - 1) // (len(first.exponents) * len(second.exponents)))
            for begin in range(0, len(first.starts) - 1, step):
                chosen = slice(begin, begin + step)
                block = _block(first, second, chosen)
                rows, columns = first.rows[chosen].ravel(), second.rows.ravel()
                result[np.ix_(rows, columns)] = block
                result[np.ix_(columns, rows)] = block.T
                done += block.size
                progress.report_progress("overlaps", min(done / result.size, 1.0))
    return result


def _block(first: _Kind, second: _Kind, chosen: slice) -> Floats:
    """Return the overlaps of the functions of some shells of the first kind with those of the second."""
    starts = first.starts[chosen.start : chosen.stop + 1]
    part = slice(starts[0], starts[-1] if len(starts) > chosen.stop - chosen.start else None)
    a, alpha, b, beta = first.centres[part], first.exponents[part], second.centres, second.exponents
    p = alpha[:, None] + beta
    weights = first.weights[part][:, None] * second.weights * (np.pi / p) ** 1.5
    along = []
    for d in range(3):
        apart = a[:, d, None] - b[:, d]
        weights *= np.exp(-alpha[:, None] * beta / p * apart**2)
        along.append(_moments(-beta / p * apart, alpha[:, None] / p * apart, 1 / (2 * p), first.momentum,
                              second.momentum))
    x, y, z = along
    left, right = starts[: chosen.stop - chosen.start] - starts[0], second.starts[:-1]
    left = left[left < len(alpha)]
    powers, others = monomials(first.momentum), monomials(second.momentum)
    sums = np.empty((len(left), len(powers), len(right), len(others)))
    for m, (i, j, k) in enumerate(powers):
        for n, (q, r, s) in enumerate(others):
            values = weights * x[i][q] * y[j][r] * z[k][s]
            sums[:, m, :, n] = np.add.reduceat(np.add.reduceat(values, left, axis=0), right, axis=1)
    block: Floats = np.einsum("fm,amcn,gn->afcg", first.functions, sums, second.functions, optimize=True)
    return block.reshape(block.shape[0] * block.shape[1], -1)


def _moments(to_first: Floats, to_second: Floats, half: Floats, first: int, second: int) -> list[list[Floats]]:
    """Return the integrals of (x - a)^i (x - b)^j over a normalised Gaussian of variance `half`, for all i and j."""
    table: list[list[Floats]] = [[np.ones_like(half)]]
    for i in range(first):
        table.append([to_first * table[i][0] + (half * i * table[i - 1][0] if i else 0.0)])
    for i in range(first + 1):
        for j in range(second):
            table[i].append(to_second * table[i][j] + (half * i * table[i - 1][j] if i else 0.0)
                            + (half * j * table[i][j - 1] if j else 0.0))
    return table
