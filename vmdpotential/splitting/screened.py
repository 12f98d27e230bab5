"""Splitting the screened potential exp(-r / L) / r into a short-range part and a smooth one.

The charge that :mod:`vmdpotential.splitting.coulomb` spreads over a ball of the radius a, with the transform psi^(k a),
has the potential of a point charge in an ionic solution outside of the ball, times psi^(i a / L). Hence the smooth
part with the transform ::

    L(k) = 4 pi / (k^2 + 1/L^2) psi^(k a) / psi^(i a / L),    psi^(i y) = int_-1^1 psi(t) cosh(y t) dt

is the potential of a point outside of the ball (Ewald's sum of Yukawa's potential: G. Salin, J.-M. Caillol, J. Chem.
Phys. 113 (2000) 10459, with a Gaussian psi). It is finite at k = 0: an ionic solution needs no background, whatever the
total charge. A mesh only loses waves that are short compared with L, so that the best psi for 1/r is also the best one
here; the error is smaller by the factor psi^(i a / L).

Inside the ball, r L(r) = f(x), with x = r / a and y = a / L, solves f'' - y^2 f = (x p(x^2))'' / psi^(i y), where
p(x^2) / a is the smooth part of 1/r. The solution is a series x sum g_n x^2n with ::

    g_n = p_n / psi^(i y) + y^2 g_(n-1) / (2n (2n + 1))

and g_0 from f(1) = exp(-y). It converges quickly: polynomials in r^2 with a few terms more than p suffice, both for L
and for the short-range part (:mod:`vmdpotential.interactions.short_screened`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import exp

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential.arrays import Floats
from vmdpotential.interactions import Bound, short_range, short_screened
from vmdpotential.splitting.coulomb import CoulombSplitting, optimal_splitting

#: Greatest ratio of split radius and Debye length; beyond it, cosh and sinh nearly cancel in single precision.
MOST = 1.5


@dataclass(frozen=True, eq=False)
class ScreenedSplitting:
    """A smooth part of the screened potential, used like a :class:`~vmdpotential.splitting.coulomb.CoulombSplitting`.

    Parameters
    ----------
    inner : CoulombSplitting
        Splitting of 1/r, with the radius and psi.
    length : float, A
        The Debye length.
    """

    inner: CoulombSplitting
    length: float
    #: 1 / (sqrt(2) s) of a Gaussian charge, 1/A; 0 for a point charge.
    ewald_factor = 0.0

    @property
    def radius(self) -> float:
        """Distance from which the smooth part is the whole potential, A."""
        return self.inner.radius

    @property
    def end(self) -> float:
        """Distance from which the smooth part is zero, A: infinite."""
        return np.inf

    @property
    def kappa(self) -> float:
        """Inverse of the Debye length, 1/A."""
        return 1 / self.length

    @cached_property
    def strength(self) -> float:
        """Ratio of the potential outside of the ball and that of a point charge, psi^(i a / L)."""
        nodes, weights = _rule()
        psi = np.polynomial.legendre.legval(nodes, np.stack([self.inner.legendre, 0 * self.inner.legendre], 1).ravel())
        return float(weights @ (psi * np.cosh(self.radius * self.kappa * nodes)))

    @property
    def integral(self) -> float:
        """Integral of the smooth part over space, A^2."""
        return 4 * np.pi * self.length**2 / self.strength

    @cached_property
    def _series(self) -> tuple[Floats, Floats]:
        """Coefficients of a L inside the radius in powers of (r/radius)^2, and those of sinh(y x) / (y x)."""
        unscreened = self.inner.polynomial * self.radius / self.strength
        y = self.radius * self.kappa
        series, free = np.zeros(len(unscreened) + 24), np.zeros(len(unscreened) + 24)
        series[1 : len(unscreened)], free[0] = unscreened[1:], 1.0
        for n in range(1, len(series)):
            series[n] += y * y * series[n - 1] / (2 * n * (2 * n + 1))
            free[n] = y * y * free[n - 1] / (2 * n * (2 * n + 1))
        return series + (exp(-y) - series.sum()) / free.sum() * free, free

    @cached_property
    def shifted(self) -> Floats:
        """(d + 3,) coefficients of L inside the radius in powers of r^2 - radius^2 / 2, 1/A^(2n+1)."""
        return _shortened(self._series[0], len(self.inner.legendre) + 1, self.radius) / self.radius

    @cached_property
    def polynomial(self) -> Floats:
        """(d + 3,) coefficients of L inside the radius in powers of (r/radius)^2, 1/A."""
        powers = self.shifted * self.radius ** (2 * np.arange(len(self.shifted)))
        return np.asarray(np.polynomial.Polynomial(powers)(np.polynomial.Polynomial([-0.5, 1.0])).coef, np.float64)

    def long(self, r: ArrayLike) -> Floats:
        """Return the smooth part (1/A) at distances r (A)."""
        r = np.asarray(r, np.float64)
        inside = np.polynomial.polynomial.polyval(
            np.minimum(r, self.radius) ** 2 - self.radius**2 / 2, self.shifted)
        far = np.maximum(r, self.radius)
        return np.where(r < self.radius, inside, np.exp(-far * self.kappa) / far)

    def window(self, k: ArrayLike) -> Floats:
        """Return the smooth part's transform at wave numbers k (1/A) over 4 pi / (k^2 + kappa^2)."""
        return self.inner.window(k) / self.strength

    def window_table(self, scale: float, count: int) -> Floats:
        """Return the window at the wave numbers of :meth:`.CoulombSplitting.window_table`."""
        return self.inner.window_table(scale, count) / self.strength

    def short(self) -> Bound:
        """Return the short-range part as an interaction."""
        series, free = self._series
        sinh, cosh = self.radius * self.kappa * free, free * (2 * np.arange(len(free)) + 1)
        even = _shortened(series + sinh, short_range.DEGREE + 1, self.radius) / self.radius
        odd = _shortened(cosh, short_range.DEGREE, self.radius)
        return short_screened.bind(self.radius, even, odd)


@cache
def _rule() -> tuple[Floats, Floats]:
    """Return the nodes and weights of Gauss' quadrature, kept because planning needs them often."""
    return np.polynomial.legendre.leggauss(64)


def _shortened(series: Floats, degree: int, radius: float) -> Floats:
    """Return coefficients in a few powers of r^2 - radius^2 / 2 for a series in (r/radius)^2, by Chebyshev nodes."""
    polynomial = np.polynomial.Chebyshev.interpolate(
        lambda x: np.polynomial.polynomial.polyval(x + 0.5, series), degree, [-0.5, 0.5]
    ).convert(kind=np.polynomial.Polynomial, domain=[-1, 1])
    coefficients = np.zeros(degree + 1)
    coefficients[: len(polynomial.coef)] = polynomial.coef
    return coefficients / radius ** (2 * np.arange(degree + 1))


def optimal_for_screened(length: float, radius: float, mesh: float, order: int) -> tuple[ScreenedSplitting, float]:
    """Return the splitting of the screened potential with the smallest error on a mesh, and that error.

    Parameters
    ----------
    length : float, A
        The Debye length.
    radius, mesh, order
        As in :func:`vmdpotential.splitting.coulomb.optimal_splitting`.

    Returns
    -------
    splitting : ScreenedSplitting
    error : float, 1/A
        As of :func:`~vmdpotential.splitting.coulomb.optimal_splitting`; infinite if the radius is too long compared
        with the Debye length.
    """
    inner, error = optimal_splitting(radius, mesh, order)
    screened = ScreenedSplitting(inner, length)
    return screened, error / screened.strength if radius <= MOST * length else np.inf
