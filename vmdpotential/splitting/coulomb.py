"""Splitting 1/r into a short-range part and a smooth one.

The smooth part is the potential of a unit charge spread over a ball::

    L(r) = Phi(r/a) / r,    Phi(x) = int_0^x psi(t) dt / int_0^1 psi(t) dt

with an even function psi on [-1, 1]; outside the ball L = 1/r exactly, so that the short-range part
S = 1/r - L ends at the radius a. Its Fourier transform is ``4 pi / k^2 psi^(k a) / psi^(0)``, with
psi^ the Fourier transform of psi. The Gaussian of Ewald's sum is the common choice; prolate
spheroidal functions, which keep psi^ within a band as well as a function on an interval can, need a
smaller radius (J. Liang, L. Lu, A. Barnett, L. Greengard, S. Jiang, arXiv:2505.09727, 2025).

Here psi is the even polynomial that makes the error of the mesh smallest: in the basis of Legendre
polynomials P_2n, whose transforms are spherical Bessel functions 2 (-1)^n j_2n, the mean square error
of potentials of uncorrelated charges is a quadratic form in the coefficients, and its minimum with
psi^(0) = 1 is found by linear equations. Inside the ball L is then exactly an even polynomial, without a
fit or truncation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential.arrays import Floats
from vmdpotential.interactions import Bound, short_range


@dataclass(frozen=True, eq=False)
class CoulombSplitting:
    """A smooth part of 1/r.

    Parameters
    ----------
    radius : float, A
        Distance from which the smooth part is 1/r.
    legendre : (d + 1,) float64
        Coefficients of psi in P_0, P_2 ... P_2d; the first is 1/2, so that psi^(0) = 1.
    """

    radius: float
    legendre: Floats
    #: Inverse Debye length, 1/A; 0 without screening.
    kappa = 0.0
    #: 1 / (sqrt(2) s) of a Gaussian charge, 1/A; 0 for a point charge.
    ewald_factor = 0.0

    @property
    def end(self) -> float:
        """Distance from which the smooth part is zero, A: infinite."""
        return np.inf

    @property
    def integral(self) -> float:
        """Integral of the smooth part over space, A^2, where a neutralising background cancels that of 1/r."""
        return -self.short_integral

    @cached_property
    def polynomial(self) -> Floats:
        """(d + 1,) coefficients of L inside the radius in powers of (r/radius)^2, 1/A."""
        return _polynomials(tuple(self.legendre.tolist()))[0] / self.radius

    def long(self, r: ArrayLike) -> Floats:
        """Return the smooth part (1/A) at distances r (A)."""
        r = np.asarray(r, np.float64)
        inside = np.polynomial.polynomial.polyval(np.minimum(r / self.radius, 1.0) ** 2, self.polynomial)
        return np.where(r < self.radius, inside, 1 / np.maximum(r, self.radius))

    def window(self, k: ArrayLike) -> Floats:
        """Return psi^(k radius): the smooth part's transform at wave numbers k (1/A) over 4 pi / k^2."""
        return np.tensordot(self.legendre,
                            legendre_transforms(len(self.legendre), np.asarray(k) * self.radius), 1)

    def window_table(self, scale: float, count: int) -> Floats:
        """Return the window at wave numbers n / `scale`, n from 0 to `count` - 1.

        `scale` must be :data:`PER_RADIUS` times the radius.
        """
        near = min(count, _BLOCK * _NEAR)
        result: Floats = self.legendre @ _transform_table(len(self.legendre), -(-near // _BLOCK))[:, :near]
        return result if count == near else np.concatenate([result, self._far(np.arange(near, count) / PER_RADIUS)])

    def _far(self, s: Floats) -> Floats:
        """Return psi^(s) at large s, by repeated integration by parts, which ends for a polynomial."""
        psi = np.polynomial.Legendre(np.insert(self.legendre, slice(1, None), 0.0))
        at_end = [float(psi.deriv(m)(1.0)) if m else float(psi(1.0)) for m in range(2 * len(self.legendre) - 1)]
        signs = np.where(np.arange(len(at_end)) // 2 % 2, -2.0, 2.0)
        inverse = 1 / s
        sine, cosine = (np.polynomial.polynomial.polyval(inverse**2, (signs * at_end)[n::2]) for n in (0, 1))
        return inverse * (np.sin(s) * sine + np.cos(s) * inverse * cosine)

    def short(self) -> Bound:
        """Return the short-range part as an interaction."""
        coefficients = _polynomials(tuple(self.legendre.tolist()))[1]
        return short_range.bind(self.radius, coefficients / self.radius ** (2 * np.arange(len(coefficients)) + 1))

    @property
    def short_integral(self) -> float:
        """Integral of the short-range part over space, A^2, which a neutralising background has to cancel.

        The limit of 4 pi (1 - psi^(k a)) / k^2 at k = 0, from j_0 = 1 - s^2/6 and j_2 = s^2/15.
        """
        second = self.legendre[1] if len(self.legendre) > 1 else 0.0
        return float(4 * np.pi * self.radius**2 * (2 * self.legendre[0] / 6 + 2 * second / 15))


@lru_cache(maxsize=64)
def _polynomials(legendre: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Return the coefficients of L inside a radius of 1 A in powers of r^2, and of r^2 - 1/2, each (d + 1,)."""
    every_other = np.zeros(2 * len(legendre) - 1)
    every_other[::2] = legendre
    psi = np.asarray(np.polynomial.legendre.leg2poly(every_other)[::2], np.float64)
    # psi^(0) = 1 is twice the integral from 0 to 1
    inside = 2 * psi / (2 * np.arange(len(psi)) + 1)
    shifted = np.polynomial.Polynomial(inside)(np.polynomial.Polynomial([0.5, 1.0]))
    return inside, np.asarray(shifted.coef, np.float64)


def legendre_transforms(count: int, s: Floats) -> Floats:
    """Return the transforms 2 (-1)^n j_2n(s) of P_0, P_2 ..., (count, ...)."""
    s = np.asarray(s, np.float64)
    # a rule of m nodes is exact to degree m, and the expansion of cos(s x) is below 1e-15 beyond this degree:
    degree = float(s.max()) + 8 * np.cbrt(float(s.max())) + 20
    nodes, weights = _rule(count, -(-int(degree + 2 * count) // 64) * 32)
    waves = s.reshape(-1)
    result = np.empty((count, len(waves)))
    step = 2**18 // len(nodes)  # so that an array stays in the cache
    for first in range(0, len(waves), step):
        result[:, first : first + step] = weights @ np.cos(np.outer(nodes, waves[first : first + step]))
    return result.reshape(count, *s.shape)


@cache
def _rule(count: int, half: int) -> tuple[Floats, Floats]:
    """Return the nodes above 0 of Fejer's quadrature, (half,), and its weights times P_0, P_2 ..., (count, half).

    First rule of J. Waldvogel, BIT Numer. Math. 46 (2006) 195, eq. 2.3, for even functions on [-1, 1].
    """
    angles = np.pi * (np.arange(half) + 0.5) / (2 * half)
    k = np.arange(1.0, half + 1)
    weights = 2 / half * (1 - 2 * (np.cos(2 * np.outer(angles, k)) / (4 * k * k - 1)).sum(1))
    nodes = np.cos(angles)
    return nodes, weights * np.polynomial.legendre.legvander(nodes, 2 * count - 2)[:, ::2].T


#: Entries of a table of the smooth part's transform per wave number of 1 over the split radius.
PER_RADIUS = 1024

#: Entries of a block of that table, and the number of blocks computed by quadrature: up to wave numbers of 64 over the
#: split radius, which only the meshes of very flat cells exceed.
_BLOCK, _NEAR = 8192, 8


@cache
def _transform_table(count: int, blocks: int) -> Floats:
    """Return the transforms of the Legendre polynomials at n / PER_RADIUS, (count, _BLOCK blocks), kept for reuse."""
    block = legendre_transforms(count, (np.arange(_BLOCK) + _BLOCK * (blocks - 1)) / PER_RADIUS)
    return block if blocks == 1 else np.concatenate([_transform_table(count, blocks - 1), block], 1)


def euler_sum(order: int, k: ArrayLike) -> Floats:
    """Return the sum over s of sinc^(2 order)(k + 2 pi s), the power of a B-spline's aliases; k is per mesh step."""
    k = np.asarray(k, np.float64)
    images = k / (2 * np.pi) + np.arange(-3, 4).reshape(-1, *[1] * k.ndim)
    return (np.sinc(images) ** (2 * order)).sum(0)


@cache
def mesh_loss(order: int) -> tuple[Floats, Floats]:
    """Return wave numbers (per mesh step), and the squared relative error of a wave on a mesh at each of them.

    A wave exp(i k r) of the smooth part that is spread to the mesh and interpolated by B-splines, with
    the best factor in between, has the squared error ``1 - prod_d g_d^2``, ``g_d =
    sinc^(2 order)(k_d) / euler_sum(k_d)`` (the least-squares influence function of R. W. Hockney,
    J. W. Eastwood, Computer Simulation Using Particles, 1988, ch. 8); a wave beyond the mesh's band is
    lost. Errors are means over the directions of k.
    """
    k = np.concatenate([np.arange(0.5, 60) * (1.8 * np.pi / 60), 1.8 * np.pi + (np.arange(0.5, 100)) * 0.35])
    n = np.arange(30) + 0.5  # directions on a spiral (Fibonacci) over one octant, by symmetry
    cosine, angle = n / 30, np.pi / 2 * (n * (np.sqrt(5) - 1) / 2 % 1)
    sine = np.sqrt(1 - cosine**2)
    component = k[:, None, None] * np.stack([sine * np.cos(angle), sine * np.sin(angle), cosine], -1)
    loss = np.ones(component.shape[:2])
    kept = (component < np.pi).all(-1)
    # 1 / g_d is the sum of (k / (k + 2 pi s))^(2 order), because all aliases have the same sine
    inside = component[kept]
    inverse = sum((inside / (inside + 2 * np.pi * s)) ** (2 * order) for s in range(-3, 4))
    loss[kept] = 1 - 1 / np.prod(inverse, -1) ** 2
    return k, loss.mean(1)


@cache
def _optimal(ratio: float, order: int, degree: int) -> tuple[Floats, float]:
    """Return the Legendre coefficients and the error of :func:`optimal_splitting`, for a mesh step of 1."""
    k, loss = mesh_loss(order)
    weight = np.gradient(k) * loss / k**2
    basis = legendre_transforms(degree + 1, k * ratio)
    form = (basis * weight) @ basis.T
    form += 1e-15 * np.trace(form) * np.eye(degree + 1)
    first = np.zeros(degree + 1)
    first[0] = 1.0
    legendre = np.linalg.solve(form, first).astype(np.float64)
    legendre /= 2 * legendre[0]
    # 4 pi k^2 dk / (2 pi)^3 of (4 pi / k^2 psi^)^2
    return legendre, float(np.sqrt(8 * legendre @ form @ legendre))


def optimal_splitting(radius: float, mesh: float, order: int,
                      degree: int = short_range.DEGREE) -> tuple[CoulombSplitting, float]:
    """Return the splitting with the smallest error on a mesh, and that error.

    Parameters
    ----------
    radius : float, A
    mesh : float, A
        Mesh spacing.
    order : int
        Order of the B-splines that spread charges and interpolate.
    degree : int
        Degree of the polynomial in r^2.

    Returns
    -------
    splitting : CoulombSplitting
    error : float, 1/A
        Root mean square error of the potential of uncorrelated unit charges, one per A^3. It is proportional
        to the square root of the sum of q^2 over the volume.
    """
    legendre, error = _optimal(round(radius / mesh, 12), order, degree)  # depends on the ratio alone
    # the error's square is an integral of 1/r^2 over volume, which has the dimension of a length
    return CoulombSplitting(radius, legendre), error * float(np.sqrt(mesh))
