"""Electron density of a wave function as a sum of Hermite Gaussians.

The product of two primitives is a sum of derivatives of a Gaussian at a point between them (L. E. McMurchie, E. R.
Davidson, J. Comput. Phys. 26 (1978) 218), whose coefficients follow from the density matrix. Primitives with the same
exponent at the same nucleus are combined across shells; products that add less than :data:`NEGLIGIBLE` are left out.
"""

from __future__ import annotations

import numpy as np

from vmdpotential import memory, progress
from vmdpotential.arrays import Floats, Integers

from .gaussians import Gaussians, hermite
from .shells import in_monomials, monomials
from .wavefunction import Wavefunction

#: Gaussians whose largest coefficient is below this, e, are left out.
NEGLIGIBLE = 1e-8

#: Most pairs of primitives that are expanded at once, and most coefficients of their orbitals.
_BATCH, _COEFFICIENTS = 4096, 4_000_000

#: Number of pairs of primitives of which the negligible ones are found at once.
_PAIRS = 1_000_000


def gaussians(wavefunction: Wavefunction) -> Gaussians:
    """Return the electron density as Hermite Gaussians, whose coefficients (e) include the potential's 2 pi / p."""
    centres, exponents, momenta, blocks, occupations = _primitives(wavefunction)
    sizes = np.array([np.sqrt((block**2 @ np.abs(occupations)).max(initial=0)) for block in blocks])
    first, second = _pairs(centres, exponents, sizes)
    p = exponents[first] + exponents[second]
    orders_of_pairs = np.bincount(momenta[first] + momenta[second])
    memory.require(sum(int(count) * (200 + 16 * len(hermite(order))) for order, count in enumerate(orders_of_pairs)),
                   f"the {len(p)} products of {len(exponents)} Gaussians", "use a smaller basis set")
    product_centres: list[Floats] = []
    product_exponents: list[Floats] = []
    orders: list[Integers] = []
    lengths: list[Integers] = []
    coefficients: list[Floats] = []
    kinds = momenta[first] * 100 + momenta[second]
    for kind in np.unique(kinds):
        chosen = np.flatnonzero(kinds == kind)
        size = max(blocks[first[chosen[0]]].size, blocks[second[chosen[0]]].size)
        step = max(1, min(_BATCH, _COEFFICIENTS // max(1, size)))
        for begin in range(0, len(chosen), step):
            batch = chosen[begin : begin + step]
            a, b, exponent = first[batch], second[batch], p[batch]
            middle = (exponents[a, None] * centres[a] + exponents[b, None] * centres[b]) / exponent[:, None]
            left, right = np.stack([blocks[n] for n in a]) * occupations, np.stack([blocks[n] for n in b])
            matrix = np.matmul(left, right.transpose(0, 2, 1)) * np.where(a == b, 1.0, 2.0)[:, None, None]
            products = _products(centres[a] - middle, centres[b] - middle, exponents[a], exponents[b],
                                 (int(momenta[a[0]]), int(momenta[b[0]])), matrix)
            products *= (2 * np.pi / exponent)[:, None]
            product_centres.append(middle)
            product_exponents.append(exponent)
            orders.append(np.full(len(batch), int(kind // 100 + kind % 100)))
            lengths.append(np.full(len(batch), products.shape[1]))
            coefficients.append(products.ravel())
            progress.report_progress("products of orbitals", min(1.0, sum(map(len, product_exponents)) / len(p)))
    empty, none = np.zeros(0), np.zeros(0, np.int64)
    starts = np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)[:-1]
    return Gaussians(
        np.concatenate([empty.reshape(0, 3), *product_centres]), np.concatenate([empty, *product_exponents]),
        np.concatenate([none, *orders]), starts, np.concatenate([empty, *coefficients]))


def _pairs(centres: Floats, exponents: Floats, sizes: Floats) -> tuple[Integers, Integers]:
    """Return the pairs of primitives whose products are not negligible, of some rows of all pairs at a time."""
    count = len(exponents)
    step, kept = max(1, _PAIRS // max(count, 1)), []
    for begin in range(0, count, step):
        rows, columns = np.arange(begin, min(begin + step, count))[:, None], np.arange(begin, count)
        p = exponents[rows] + exponents[columns]
        overlap = np.exp(-exponents[rows] * exponents[columns] / p * sum(
            (centres[rows, d] - centres[columns, d]) ** 2 for d in range(3)))
        found = (overlap * sizes[rows] * sizes[columns] * 2 * np.pi / p > NEGLIGIBLE) & (columns >= rows)
        kept.append(np.argwhere(found) + begin)
        memory.require(32 * sum(map(len, kept)), f"the products of {count} Gaussians", "use a smaller basis set")
        progress.report_progress("products of orbitals", 0.0)
    pairs = np.concatenate([np.zeros((0, 2), np.int64), *kept])
    return pairs[:, 0], pairs[:, 1]


def _primitives(wavefunction: Wavefunction) -> tuple[Floats, Floats, Integers, list[Floats], Floats]:
    """Return the distinct primitives: centres, exponents, largest momenta, coefficients; and occupations.

    The coefficients (monomials, orbitals) of a primitive are those of all monomials up to its largest momentum.
    """
    coefficients, occupations = wavefunction.occupied()
    occupied = np.abs(occupations) > NEGLIGIBLE
    coefficients, occupations = coefficients[:, occupied], occupations[occupied]
    primitives: dict[tuple[float, ...], list[tuple[int, Floats]]] = {}
    row = 0
    for shell in wavefunction.shells:
        functions = in_monomials(shell.momentum, shell.functions)
        of_monomials = functions.T @ coefficients[row : row + len(functions)]
        row += len(functions)
        for exponent, weight in zip(shell.exponents.tolist(), shell.radial().tolist(), strict=True):
            key = (*shell.centre.tolist(), exponent)
            primitives.setdefault(key, []).append((shell.momentum, weight * of_monomials))
    blocks, momenta = [], []
    for terms in primitives.values():
        most = max(momentum for momentum, _ in terms)
        block = np.zeros((sum(len(monomials(momentum)) for momentum in range(most + 1)), len(occupations)))
        for momentum, values in terms:
            start = sum(len(monomials(lower)) for lower in range(momentum))
            block[start : start + len(values)] += values
        blocks.append(block)
        momenta.append(most)
    keys = np.array(list(primitives), float).reshape(-1, 4)
    return keys[:, :3], keys[:, 3], np.array(momenta, np.int64), blocks, occupations


def _products(a: Floats, b: Floats, alpha: Floats, beta: Floats, momenta: tuple[int, int], matrix: Floats) -> Floats:
    """Return the coefficients (n, K) of Hermite Gaussians of pairs of primitives.

    Parameters
    ----------
    a, b : (n, 3) float64
        Centres of the primitives relative to that of their product.
    alpha, beta : (n,) float64
        Exponents.
    momenta : (int, int)
        Largest momentum of either primitive.
    matrix : (n, monomials, monomials) float64
        Density matrix.
    """
    x, y, z = (_expansion(a[:, d], b[:, d], alpha, beta, momenta) for d in range(3))
    powers = [[power for momentum in range(most + 1) for power in monomials(momentum)] for most in momenta]
    order = {tuv: n for n, tuv in enumerate(hermite(sum(momenta)))}
    result = np.zeros((len(alpha), len(order)))
    for m, (i, j, k) in enumerate(powers[0]):
        for n, (q, r, s) in enumerate(powers[1]):
            weight = matrix[:, m, n]
            for t in range(i + q + 1):
                along_x = weight * x[i, q, t]
                for u in range(j + r + 1):
                    along_xy = along_x * y[j, r, u]
                    for v in range(k + s + 1):
                        result[:, order[t, u, v]] += along_xy * z[k, s, v]
    return result


def _expansion(a: Floats, b: Floats, alpha: Floats, beta: Floats, momenta: tuple[int, int]) -> Floats:
    """Return the coefficients E[i, j, t] (.., n) of the expansion of x_a^i x_b^j exp(...) in Hermite Gaussians.

    They follow from the recurrence of McMurchie and Davidson (1978).
    """
    p = alpha + beta
    first, second = momenta
    result = np.zeros((first + 1, second + 1, first + second + 2, len(a)))
    result[0, 0, 0] = np.exp(-alpha * beta / p * (a - b) ** 2)
    for i in range(first + 1):
        for j in range(second + 1):
            if i == j == 0:
                continue
            previous, distance = (result[i - 1, j], -a) if i else (result[i, j - 1], -b)
            for t in range(i + j + 1):
                result[i, j, t] = distance * previous[t] + (t + 1) * previous[t + 1] + (
                    previous[t - 1] / (2 * p) if t else 0.0)
    return result
