"""The potential of an ion in the middle of a slab in water, by integrals."""

import numpy as np
from scipy.special import j0

from vmdpotential.units import debye_length

#: Permittivities of the slab and of the water.
SLAB, WATER = 2.0, 78.5


def integral(values):
    """Return the integral of a function over k from 0, 1/A, which decays by 4 / A."""
    ends = np.concatenate([[0.0], np.geomspace(1e-7, 4, 3000)])
    nodes, weights = np.polynomial.legendre.leggauss(5)
    half = 0.5 * np.diff(ends)[:, None]
    k = (ends[:-1, None] + half * (nodes + 1)).ravel()
    return ((half * weights).ravel() * values(k)).sum()


def around_ion(distance, height, thickness, salt):
    """Return the potential of an ion in the middle of a slab in water, e/A, without the ion's own at distance 0.

    At a distance from the axis, and a height over the middle, by Hankel's transform along the slab.
    """
    kappa = 1 / debye_length(salt, 298.15, WATER) if salt else 0.0

    def transformed(k):
        s = np.hypot(k, kappa)
        r = (SLAB * k - WATER * s) / (SLAB * k + WATER * s)
        wave = j0(k * distance) / (1 - r * np.exp(-k * thickness))
        if abs(height) < thickness / 2:
            return wave * 2 * r * np.exp(-k * thickness) * np.cosh(k * height)
        return wave * (1 + r) * np.exp(-k * thickness / 2 - s * (abs(height) - thickness / 2))

    own = 1 / np.hypot(distance, height) if np.hypot(distance, height) > 0 and abs(height) < thickness / 2 else 0
    return (own + integral(transformed)) / SLAB
