"""Ewald's real-space part by polynomials, for sums over pairs up to a cutoff.

erf(beta r) / r and its slope are squares of polynomials, without division, exponential or table: their roots decay more
slowly, and so need fewer terms. In t = 2 r^2 / rc^2 - 1 the terms are small, so that single precision suffices: at
beta rc = 3.12 the rms error of the force of a pair, relative to the rms force, is 9e-8 at degree 10, as that of
polynomials of degree 12 that are not squared is 2e-7.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.interactions import Bound, Interaction, Quantity, ewald
from vmdpotential.interactions.tracing import Scalar, fma

#: Degree of both polynomials.
DEGREE = 10


@dataclass(frozen=True)
class _Smooth:
    """The square root of erf(beta r) / r or of its slope, by a polynomial; a class, as a closure cannot be pickled."""

    letter: str  # first letter of the names of coefficients: e for the potential, f for the slope

    def root(self, r2: Scalar, p: Any) -> Scalar:
        t = fma(r2, 2.0 / (p.cutoff * p.cutoff), -1.0)
        # pairs of powers by the square of t: one more product, but half the latency
        square, c = t * t, [getattr(p, f"{self.letter}{n}") for n in range(DEGREE + 1)]
        value = c[DEGREE]
        for n in reversed(range(0, DEGREE, 2)):
            value = fma(value, square, fma(c[n + 1], t, c[n]))
        return value


class _Pair(_Smooth):
    def __call__(self, r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
        root = self.root(r2, p)
        return fma(-root, root, rinv if self.letter == "e" else rinv * rinv * rinv)


class _Excluded(_Smooth):
    def __call__(self, r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
        root = self.root(r2, p)
        return -root * root


INTERACTION = Interaction(
    "ewald_polynomial", _Pair("e"),
    [ewald.INTERACTION.quantities[0],
     *(Quantity(f"{letter}{n}", unit, 0.0, -1e300, 1e300, f"coefficient {n} of the root of {what}")
       for letter, unit, what in (("e", "1/A^0.5", "erf(beta r) / r"), ("f", "1/A^1.5", "its slope"))
       for n in range(DEGREE + 1))],
    slope=_Pair("f"), excluded=_Excluded("e"), excluded_slope=_Excluded("f"),
)


def _smooth(r: NDArray[np.float64], beta: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return erf(beta r) / r and -1/r times its derivative, by the series where the two terms of that nearly cancel."""
    from scipy import special

    z = beta * r
    potential = special.erf(z) / r
    bell = 2 * beta / sqrt(pi) * np.exp(-z * z)
    series = beta**3 * 2 / sqrt(pi) * (2 / 3 - 2 / 5 * z**2 + 1 / 7 * z**4)
    return potential, np.where(z < 0.02, series, (potential - bell) / (r * r))


@cache
def ewald_polynomial(cutoff: float, beta: float) -> Bound:
    """Return Ewald's real-space part up to a cutoff (A) by polynomials; beta is in 1/A."""
    nodes = 4 * (DEGREE + 1)
    t = np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)
    potential, slope = _smooth(cutoff * np.sqrt((t + 1) / 2), beta)
    values = {"cutoff": cutoff}
    for letter, requested in (("e", potential), ("f", slope)):
        fit = np.polynomial.Chebyshev.fit(t, np.sqrt(requested), DEGREE, domain=[-1, 1])
        values |= {f"{letter}{n}": float(c) for n, c in enumerate(fit.convert(kind=np.polynomial.Polynomial).coef)}
    return INTERACTION.bind(**values)
