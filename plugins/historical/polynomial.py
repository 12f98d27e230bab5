"""Ewald's real-space part by polynomials, for sums over pairs up to a cutoff.

erf(beta r) / r and its slope are polynomials, without division, exponential or table. In t = 2 r^2 / rc^2 - 1 their
terms are small, so that single precision suffices: at beta rc = 3.12 the relative error of the force is 3e-6 at degree
12 and 2e-5 at degree 10.
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

DEGREE = 12


@dataclass(frozen=True)
class _Smooth:
    """erf(beta r) / r or its slope, by a polynomial; a class and not a closure, which cannot be pickled."""

    degree: int
    letter: str  # first letter of the names of coefficients: e for the potential, f for the slope

    def smooth(self, r2: Scalar, p: Any) -> Scalar:
        t = fma(r2, 2.0 / (p.cutoff * p.cutoff), -1.0)
        # even and odd powers separately: one more product, but half the latency
        square, halves = t * t, []
        for first in (0, 1):
            powers = range(first, self.degree + 1, 2)
            value = getattr(p, f"{self.letter}{powers[-1]}")
            for n in reversed(powers[:-1]):
                value = fma(value, square, getattr(p, f"{self.letter}{n}"))
            halves.append(value)
        return fma(halves[1], t, halves[0])


class _Potential(_Smooth):
    def __call__(self, r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
        return rinv - self.smooth(r2, p)


class _Slope(_Smooth):
    def __call__(self, r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
        return rinv * rinv * rinv - self.smooth(r2, p)


class _Rest(_Smooth):
    def __call__(self, r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
        return 0.0 - self.smooth(r2, p)


@cache
def _page(degree: int) -> Interaction:
    """Return the interaction with polynomials of some degree."""
    return Interaction(
        "ewald_polynomial", _Potential(degree, "e"),
        [ewald.INTERACTION.quantities[0],
         *(Quantity(f"e{n}", "1/A", 0.0, -1e300, 1e300, f"coefficient {n} of erf(beta r) / r")
           for n in range(degree + 1)),
         *(Quantity(f"f{n}", "1/A^3", 0.0, -1e300, 1e300, f"coefficient {n} of its slope")
           for n in range(degree + 1))],
        slope=_Slope(degree, "f"), excluded=_Rest(degree, "e"), excluded_slope=_Rest(degree, "f"),
    )


#: The interaction that is compiled with the package.
INTERACTION = _page(DEGREE)


def _smooth(r: NDArray[np.float64], beta: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return erf(beta r) / r and -1/r times its derivative, by the series where the two terms of that nearly cancel."""
    from scipy import special

    z = beta * r
    potential = special.erf(z) / r
    bell = 2 * beta / sqrt(pi) * np.exp(-z * z)
    series = beta**3 * 2 / sqrt(pi) * (2 / 3 - 2 / 5 * z**2 + 1 / 7 * z**4)
    return potential, np.where(z < 0.02, series, (potential - bell) / (r * r))


@cache
def ewald_polynomial(cutoff: float, beta: float, degree: int = DEGREE) -> Bound:
    """Return Ewald's real-space part up to a cutoff (A) by polynomials; beta is in 1/A."""
    nodes = 4 * (degree + 1)
    t = np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)
    potential, slope = _smooth(cutoff * np.sqrt((t + 1) / 2), beta)
    values = {"cutoff": cutoff}
    for letter, requested in (("e", potential), ("f", slope)):
        fit = np.polynomial.Chebyshev.fit(t, requested, degree, domain=[-1, 1]).convert(kind=np.polynomial.Polynomial)
        values |= {f"{letter}{n}": float(c) for n, c in enumerate(fit.coef)}
    return _page(degree).bind(**values)
