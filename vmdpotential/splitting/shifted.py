"""Splitting the shifted Coulomb potential of the cutoff method into a short-range part and a smooth one.

The shifted potential (:mod:`vmdpotential.interactions.shifted_coulomb`) is 1/r with two more terms::

    V(r) = 1/r - 2 r / rc^2 + r^3 / rc^4    for r < rc, else 0

As in :mod:`vmdpotential.splitting.coulomb`, an even polynomial P replaces the terms with a kink at r = 0 within
the split radius a (the kink of r^3 is too weak to matter)::

    L(r) = P(r^2) + r^3 / rc^4    for r < a,    V(r)    for a < r < rc,    else 0

With psi = (r P)' in Legendre polynomials, the transform of L, divided by ``4 pi / k^2``, is ::

    psi^(k a) + 4 (a/rc)^2 (sin t / t - (1 - cos t) / t^2) + I(k rc),    t = k a,
    I(s) = int_0^1 4 (x^3 - x) cos(s x) dx = (4 + 8 cos s) / s^2 - 24 sin s / s^3 + 24 (1 - cos s) / s^4

The second derivative of V jumps by 8/rc^3 at the cutoff, whatever P is. The jump contributes waves with the mean
square 32 / (k rc)^4. Waves that a mesh with the spacing h cannot resolve cause an error proportional to
h^2.5 / rc^2; P minimises the rest of the error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike

from vmdpotential.arrays import Floats
from vmdpotential.interactions import Bound, short_cutoff, short_range
from vmdpotential.splitting.coulomb import CoulombSplitting, legendre_transforms, mesh_loss

#: The first terms of I(s) in powers of s^2, good to 1e-14 for s < 1.
_SERIES = np.array([-1.0, 1 / 6, -1 / 144, 1 / 7200, -1 / 604800, 1 / 76204800, -1 / 13412044800, 1 / 3138418483200])


@dataclass(frozen=True, eq=False)
class SmoothCutoff:
    """A smooth part of the shifted Coulomb potential, used like a :class:`.CoulombSplitting`.

    Parameters
    ----------
    inner : CoulombSplitting
        The radius, and P, with ``psi^(0) = 1 - 2 (a/rc)^2``, so that L is continuous.
    cutoff : float, A
        At least the radius.
    """

    inner: CoulombSplitting
    cutoff: float
    #: Inverse Debye length, 1/A; 0 without screening.
    kappa = 0.0
    #: 1 / (sqrt(2) s) of a Gaussian charge, 1/A; 0 for a point charge.
    ewald_factor = 0.0

    @property
    def radius(self) -> float:
        """Distance from which the smooth part is the whole potential, A."""
        return self.inner.radius

    @property
    def end(self) -> float:
        """Distance from which the smooth part is zero, A: the cutoff."""
        return self.cutoff

    def long(self, r: ArrayLike) -> Floats:
        """Return the smooth part (1/A) at distances r (A)."""
        r = np.asarray(r, np.float64)
        x = np.minimum(r / self.cutoff, 1.0)
        # `inner` is P or 1/r
        rest = x**3 - np.where(r < self.radius, 0.0, 2 * x)
        return np.where(x < 1, self.inner.long(r) + rest / self.cutoff, 0.0)

    def window(self, k: ArrayLike) -> Floats:
        """Return the smooth part's transform at wave numbers k (1/A) over 4 pi / k^2."""
        k = np.asarray(k, np.float64)
        turns, part = k * self.radius / np.pi, self.radius / self.cutoff  # numpy's sinc counts in half turns
        within = 4 * part**2 * (np.sinc(turns) - np.sinc(turns / 2) ** 2 / 2)
        return self.inner.window(k) + within + _beyond(k * self.cutoff)

    def window_table(self, scale: float, count: int) -> Floats:
        """Return the window at wave numbers n / `scale` (1/A), n from 0 to `count` - 1."""
        return self.window(np.arange(count) / scale)

    @property
    def polynomial(self) -> Floats:
        """(0,) no coefficients, as the smooth part is never sampled."""
        return np.zeros(0)

    def short(self) -> Bound:
        """Return the short-range part as an interaction."""
        return short_cutoff.bind(self.inner.short(), -2 / self.cutoff**2)

    @property
    def short_integral(self) -> float:
        """Integral of the short-range part over space, A^2: that of `inner`, and that of the term in r."""
        return self.inner.short_integral + 2 * np.pi * self.radius**4 / self.cutoff**2

    @property
    def integral(self) -> float:
        """Integral of the smooth part over space, A^2: that of V, 2 pi rc^2 / 3, less that of the short-range part."""
        return 2 / 3 * np.pi * self.cutoff**2 - self.short_integral


def _beyond(s: Floats) -> Floats:
    """Return I(s)."""
    large = np.maximum(s, 1.0)
    cosine = np.cos(large)
    terms = 4 + 8 * cosine + 24 / large * ((1 - cosine) / large - np.sin(large))
    return np.where(s < 1, polyval(np.minimum(s, 1.0) ** 2, _SERIES), terms / (large * large))


@cache
def _best(ratio: float, order: int) -> tuple[Floats, Floats]:
    """Return the best Legendre coefficients for a mesh step of 1, and the square of their error.

    Both are in powers of (a/rc)^2: coefficients (d + 1, 2), square (3,). P is chosen as if the cutoff
    were far away, where it makes no difference to P: the window of the term in r is then
    ``4 (a/rc)^2 (sin t / t + cos t / t^2)`` outside of the radius.
    """
    k, loss = mesh_loss(order)
    weight = 8 * np.gradient(k) * loss / k**2  # as in splitting.optimal
    t = k * ratio
    basis = legendre_transforms(short_range.DEGREE + 1, t)
    fixed = np.stack([basis[0] / 2, 4 * (np.sin(t) / t + np.cos(t) / t**2) - basis[0]])
    form = (basis[1:] * weight) @ basis[1:].T
    form += 1e-15 * np.trace(form) * np.eye(len(form))
    rest = -np.linalg.solve(form, (basis[1:] * weight) @ fixed.T)
    left = fixed + rest.T @ basis[1:]
    product = (left * weight) @ left.T
    return np.vstack([[0.5, -1.0], rest]), np.array([product[0, 0], 2 * product[0, 1], product[1, 1]])


@cache
def _left_by_cutoff(order: int) -> float:
    """Return the squared error that the waves of the cutoff make, for a mesh step and a cutoff of 1."""
    k, loss = mesh_loss(order)
    return float(8 * 32 * np.sum(np.gradient(k) * loss / k**6))


def optimal_for_cutoff(cutoff: float, radius: float, mesh: float, order: int) -> tuple[SmoothCutoff, float]:
    """Return the splitting of the shifted potential with the smallest error on a mesh, and that error.

    Parameters
    ----------
    cutoff : float, A
    radius, mesh, order
        As in :func:`vmdpotential.splitting.coulomb.optimal_splitting`.

    Returns
    -------
    splitting : SmoothCutoff
    error : float, 1/A
        Root mean square error of the potential of uncorrelated unit charges, one per A^3. It is proportional
        to the square root of the sum of q^2 over the volume, and infinite if the radius is larger than
        the cutoff.
    """
    legendre, square = _best(round(radius / mesh, 12), order)
    part = (radius / cutoff) ** 2
    error = mesh * polyval(part, square) + mesh**5 / cutoff**4 * _left_by_cutoff(order)
    coefficients = legendre @ [1.0, part]
    smooth = SmoothCutoff(CoulombSplitting(radius, coefficients), cutoff)
    return smooth, float(np.sqrt(error)) if part <= 1 else np.inf
