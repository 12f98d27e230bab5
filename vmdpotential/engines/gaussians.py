"""The input of engines for the potential of Gaussian charges on a lattice, and the table of Boys functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Lattice

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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


@dataclass(frozen=True, eq=False)
class GaussianSum:
    """The potential of Gaussian charges and of point charges at the points of a lattice.

    Parameters
    ----------
    lattice : Lattice
        Lattice in bohr.
    electrons : Gaussians
        The density of the electrons, whose charge counts as negative.
    nuclei, charges : (N, 3) and (N,) float64, bohr and e
        Positions and charges of the nuclei.
    closest : float, bohr
        Smallest distance of a nucleus; nearer ones count as at this distance.
    factor : float
        Factor that converts the potential from hartree/e to the unit of the result.
    """

    lattice: Lattice
    electrons: Gaussians
    nuclei: Floats
    charges: Floats
    closest: float
    factor: float


@cache
def hermite(order: int) -> tuple[tuple[int, int, int], ...]:
    """Return all (t, u, v) with a sum of at most `order`, sorted by their sum."""
    return tuple((t, u, total - t - u) for total in range(order + 1) for t in range(total + 1)
                 for u in range(total - t + 1))


@cache
def boys_table(order: int) -> Floats:
    """Return a table (rows, 1 + order + TERMS) of exp(-T) and Boys functions F_0, F_1 ... at multiples of 1 / FINE."""
    from scipy.special import gamma, gammainc

    t = np.arange(int(LAST * FINE) + 2)[:, None] / FINE
    m = np.arange(order + TERMS) + 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        result = gamma(m) * gammainc(m, t) / (2 * t**m)
    result[0] = 1 / (2 * m)
    return np.concatenate([np.exp(-t), result], axis=1)
