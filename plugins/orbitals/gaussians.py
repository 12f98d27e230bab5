"""Charge densities of derivatives of Gaussians, and the table of Boys functions for their potentials."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from vmdpotential.arrays import Floats, Integers

#: Boys functions F_m(T) are tabulated up to T = LAST, with FINE rows per unit of T, and interpolated by TERMS terms of
#: their Taylor series; from T = FAR + FARTHER m on, exp(-T) is negligible. The kernels repeat these numbers.
LAST, FINE, TERMS = 40.0, 16, 5
FAR, FARTHER = 24.0, 1.2


@dataclass(frozen=True, eq=False)
class Gaussians:
    """A charge density of derivatives d^t/dPx^t d^u/dPy^u d^v/dPz^v of Gaussians exp(-p (r - P)^2).

    Parameters
    ----------
    centres, exponents : (G, 3) and (G,) float64, bohr and bohr^-2
        P and p of each Gaussian.
    orders : (G,) int64
        Largest t + u + v of each Gaussian.
    starts : (G,) int64
        Index of each Gaussian's first coefficient.
    coefficients : (C,) float64
        Coefficients of the derivatives of all Gaussians, each in the order of :func:`hermite`.
    """

    centres: Floats
    exponents: Floats
    orders: Integers
    starts: Integers
    coefficients: Floats

    def sizes(self, largest: float) -> Floats:
        """Return the largest absolute coefficient of each Gaussian, (G,), made comparable between derivatives.

        A coefficient of a derivative of order n is multiplied by p^(n/2), for derivatives by sqrt(p) r instead of r;
        p is the Gaussian's exponent, or `largest` where that is smaller.
        """
        totals = np.array([sum(tuv) for tuv in hermite(int(self.orders.max(initial=0)))], np.int64)
        counts = np.diff(np.append(self.starts, len(self.coefficients)))
        owner = np.repeat(np.arange(len(counts)), counts)
        derivatives = totals[np.arange(len(owner)) - self.starts[owner]]
        result = np.zeros(len(counts))
        np.maximum.at(result, owner, np.abs(self.coefficients) * np.minimum(self.exponents, largest)[owner]
                      ** (derivatives / 2))
        return result


@cache
def hermite(order: int) -> tuple[tuple[int, int, int], ...]:
    """Return all (t, u, v) with a sum of at most `order`, sorted by their sum."""
    return tuple((t, u, total - t - u) for total in range(order + 1) for t in range(total + 1)
                 for u in range(total - t + 1))


@cache
def boys_table(order: int) -> Floats:
    """Return a table (rows, 1 + TERMS) of exp(-T) and Boys functions from F_order on at multiples of 1 / FINE."""
    from scipy.special import gamma, gammainc

    t = np.arange(int(LAST * FINE) + 2)[:, None] / FINE
    m = np.arange(order, order + TERMS) + 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        result = gamma(m) * gammainc(m, t) / (2 * t**m)
    result[0] = 1 / (2 * m)
    return np.concatenate([np.exp(-t), result], axis=1)
