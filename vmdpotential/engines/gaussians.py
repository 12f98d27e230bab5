"""Gaussian charges and their potential on a lattice: what engines get, and Boys' functions, which they all need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Lattice

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Boys' functions are in a table up to LAST, with rows FINE to the unit, and TERMS of their Taylor series are added;
#: beyond FAR and FARTHER for each order, exp(-T) is nothing. Kernels have the same numbers.
LAST, FINE, TERMS = 40.0, 16, 5
FAR, FARTHER = 24.0, 1.2


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Charges: derivatives of Gaussians exp(-p (r - P)^2).

    Parameters
    ----------
    centres, exponents : (G, 3) and (G,) float64, bohr and bohr^-2
    orders : (G,) int64
        Largest number of derivatives of each.
    starts : (G,) int64
        Where the coefficients of each begin.
    coefficients : (C,) float64
        Of each, by t + u + v (:func:`hermite`).
    """

    centres: Floats
    exponents: Floats
    orders: Integers
    starts: Integers
    coefficients: Floats

    def sizes(self, largest: float) -> Floats:
        """Return the largest coefficient of each, (G,), as that of a derivative by r times the root of its exponent,
        or of the `largest` exponent.
        """
        totals = np.array([sum(tuv) for tuv in hermite(int(self.orders.max(initial=0)))], np.int64)
        counts = np.diff(np.append(self.starts, len(self.coefficients)))
        owner = np.repeat(np.arange(len(counts)), counts)
        of_each = totals[np.arange(len(owner)) - self.starts[owner]]
        result = np.zeros(len(counts))
        np.maximum.at(result, owner, np.abs(self.coefficients) * np.minimum(self.exponents, largest)[owner]
                      ** (of_each / 2))
        return result


@dataclass(frozen=True, eq=False)
class GaussianSum:
    """The potential of Gaussian charges and of point charges at the points of a lattice.

    Parameters
    ----------
    lattice : Lattice
        In bohr.
    electrons : Gaussians
        Of negative charge.
    nuclei, charges : (N, 3) and (N,) float64, bohr and e
    closest : float, bohr
        No nucleus counts as nearer.
    factor : float
        Of the potential in hartree/e.
    """

    lattice: Lattice
    electrons: Gaussians
    nuclei: Floats
    charges: Floats
    closest: float
    factor: float


@cache
def hermite(order: int) -> tuple[tuple[int, int, int], ...]:
    """Return all (t, u, v) with a sum of at most `order`, by their sum."""
    return tuple((t, u, total - t - u) for total in range(order + 1) for t in range(total + 1)
                 for u in range(total - t + 1))


@cache
def boys_table(order: int) -> Floats:
    """Return a table (rows, 1 + order + TERMS) of exp(-T) and Boys' functions F_0, F_1 ... at multiples of 1 / FINE."""
    from scipy.special import gamma, gammainc

    t = np.arange(int(LAST * FINE) + 2)[:, None] / FINE
    m = np.arange(order + TERMS) + 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        result = gamma(m) * gammainc(m, t) / (2 * t**m)
    result[0] = 1 / (2 * m)
    return np.concatenate([np.exp(-t), result], axis=1)
