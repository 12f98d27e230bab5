"""Structure factors of charges in numpy, as matrix products of cosines and sines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress

Floats = NDArray[np.float64]


def structure_factors(fraction: Floats, charges: Floats, counts: NDArray[np.int64]) -> NDArray[np.complex128]:
    """Return the sums over atoms of q exp(-2 pi i (h, k, l) f), each index from -n to n.

    Parameters
    ----------
    fraction : (N, 3) float64
        Fractional coordinates f.
    charges : (N,) float64, e
    counts : (3,) int
        Largest value n of each index.
    """
    sizes = 2 * counts + 1
    # real products of cosines and sines along each axis, for non-negative indices only
    sums = np.zeros((int(sizes[0] * sizes[1]), int(sizes[2])))
    step = int(max(64, 2**21 // (sizes[0] * sizes[1] + sizes[2])))
    products = np.empty((sizes[0], sizes[1], step))
    for first in range(0, len(fraction), step):
        x, y, z = (_cosines_and_sines(fraction[first : first + step, d], counts[d]) for d in range(3))
        x *= charges[first : first + step]
        np.multiply(x[:, None], y, out=products[..., : len(z.T)])
        sums += products.reshape(len(sums), step)[:, : len(z.T)] @ z.T
        progress.report("the reference sum", min(first + step, len(fraction)) / len(fraction))
    result: NDArray[np.complex128] = sums.reshape(sizes).astype(np.complex128)
    for axis, n in enumerate(counts):
        parts = np.moveaxis(result, axis, 0)
        cosine, sine = parts[1 : n + 1].copy(), parts[n + 1 :].copy()
        parts[n] = parts[0].copy()
        parts[n + 1 :] = cosine - 1j * sine
        parts[:n] = (cosine + 1j * sine)[::-1]
    return result


def _cosines_and_sines(fraction: Floats, count: int) -> Floats:
    """Return cos(2 pi k f) for k = 0 ... n, then sin(2 pi k f) for k = 1 ... n, (2 n + 1, N)."""
    result = np.ones((2 * count + 1, len(fraction)))
    angle = 2 * np.pi * (fraction % 1.0)
    turn = np.cos(angle) + 1j * np.sin(angle)
    power = np.ones(len(fraction), np.complex128)
    for n in range(1, count + 1):
        power *= turn
        result[n], result[count + n] = power.real, power.imag
    return result
