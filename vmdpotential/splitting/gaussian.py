"""Gaussian charges instead of a split 1/r: a smooth potential that is summed on a mesh alone, without pairs.

The transform of erf(r / (sqrt(2) s)) / r is ``4 pi / k^2 exp(-(k s)^2 / 2)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential.arrays import Floats
from vmdpotential.interactions import Bound, gaussian
from vmdpotential.splitting.coulomb import mesh_loss

#: Standard deviations beyond which the potential of a Gaussian charge equals that of a point charge to 2e-9.
REACH = 6.0


@dataclass(frozen=True)
class GaussianSplitting:
    """The potential of a Gaussian charge, used like a :class:`~vmdpotential.splitting.coulomb.CoulombSplitting`.

    Parameters
    ----------
    width : float, A
        Standard deviation of the charge.
    """

    width: float
    #: Inverse Debye length, 1/A; 0 without screening.
    kappa = 0.0

    @property
    def radius(self) -> float:
        """Distance from which the potential is 1/r, A."""
        return REACH * self.width

    @property
    def ewald_factor(self) -> float:
        """1 / (sqrt(2) s), 1/A."""
        return gaussian.ewald_factor(self.width)

    @property
    def polynomial(self) -> Floats:
        """(0,) no coefficients, as the error function is evaluated."""
        return np.zeros(0)

    @property
    def end(self) -> float:
        """Distance from which the smooth part is zero, A: infinite."""
        return np.inf

    @property
    def integral(self) -> float:
        """Integral over space, A^2: 0, as a background makes the mean of the potential zero."""
        return 0.0

    @property
    def potential(self) -> Bound:
        """The potential as an interaction."""
        return gaussian.INTERACTION.bind(smear=self.width)

    def long(self, r: ArrayLike) -> Floats:
        """Return the potential (1/A) at distances r (A)."""
        r = np.maximum(np.asarray(r, np.float64), 1e-6 * self.width)
        return self.potential(r)

    def window(self, k: ArrayLike) -> Floats:
        """Return the potential's transform at wave numbers k (1/A) over 4 pi / k^2."""
        return np.exp(-0.5 * np.square(np.asarray(k, np.float64) * self.width))

    def window_table(self, scale: float, count: int) -> Floats:
        """Return the window at wave numbers n / `scale` (1/A), n from 0 to `count` - 1."""
        return self.window(np.arange(count) / scale)

    def short(self) -> None:
        """Return None: there is no short-range part."""
        return


def gaussian_on_mesh(width: float, radius: float, mesh: float, order: int) -> tuple[GaussianSplitting, float]:
    """Return the potential of Gaussian charges, and its error on a mesh.

    Parameters
    ----------
    width : float, A
        Standard deviation of the charges.
    radius
        Not used, as there is no short-range part.
    mesh, order
        As in :func:`vmdpotential.splitting.coulomb.optimal_splitting`, like the error.
    """
    k, loss = mesh_loss(order)
    square = 8 * float(np.sum(np.gradient(k) * loss / k**2 * np.exp(-((k * width / mesh) ** 2))))
    return GaussianSplitting(width), float(np.sqrt(square * mesh))
