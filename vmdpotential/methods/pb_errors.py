"""Errors of energies by the Poisson-Boltzmann equation, from the solutions on two lattices.

How the error of a charge's reaction potential falls with the spacing depends on how deep below the surface the charge
is: next to the surface hardly, then much faster than by the second order, and by the second order from about twice the
spacing on. So the difference of the lattices is multiplied by a fraction for each charge.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.continuum.molecule import Continuum
from vmdpotential.kernels import threads

Floats = NDArray[np.float64]

#: Depths of charges, in spacings, and the error of the reaction potential over its difference from that on a lattice of
#: twice the spacing, as rms over the charges of 30 molecules and charges in Kirkwood's spheres (scripts/pb_errors.py).
DEPTHS = (0.3, 0.4, 0.5, 0.6, 0.75, 0.9, 1.2, 1.45, 1.8, 2.3, 2.6)
FRACTIONS = (2.2, 1.3, 0.75, 0.5, 0.35, 0.2, 0.13, 0.16, 0.21, 0.26, 0.3)

#: The least error of a single charge's reaction potential, relative to it, at a depth of one spacing; by the second
#: order in the spacing. The difference of two lattices may be smaller by chance.
LEAST = 0.03

#: The charges' errors partly have the same sign: part of the sum of their sizes that is the least error of a sum.
ALIKE = 0.15

#: Factor on the error of a sum, chosen so that at most 5 % of 50 structures have a larger one (scripts/pb_errors.py).
SAFETY = 1.5

#: Factors for a smooth permittivity, whose rise next to charges coarse lattices do not resolve; for a surface with
#: edges sharper than the spacing, where the error falls by the first order; and for the full equation, because of the
#: thin layer of ions at highly charged surfaces.
SMOOTH, SHARP, FULL = 2.5, 4.0, 1.5

#: Number of atoms next to a charge that may cover it.
COVERING = 8


class ReactionErrors:
    """The errors of the reaction potentials of charges.

    Parameters
    ----------
    continuum : Continuum
    spacing : float, A
    ratio : int
        Ratio of the spacings of both lattices.
    differences : (N,) float64, kT/e
        Reaction potentials on the coarse lattice minus those on the fine one.

    Attributes
    ----------
    expected : (N,) float64, kT/e
        The error of each, with its sign.
    """

    def __init__(self, continuum: Continuum, spacing: float, ratio: int, differences: Floats) -> None:
        c = continuum
        depth = np.maximum(depths(c), DEPTHS[0] * spacing)
        steps = depth / spacing
        kind = SMOOTH if c.gaussian else SHARP if c.probe < spacing else FULL if len(c.ions) else 1.0
        self.expected: Floats = kind * 3 / (ratio**2 - 1) * np.interp(steps, DEPTHS, FRACTIONS) * differences
        own = c.constant * abs(1 / c.inside - 1 / c.outside) / (2 * depth)
        self._least = kind * LEAST / steps**2 * own * abs(c.charges)
        self._settled = np.minimum(1.0, steps / 2) ** 2  # of coarse lattices, the sign says little
        self._charges = c.charges

    def of_energy(self) -> float:
        """Return the error of the sum of the energies of solvation, kT."""
        signed = 0.5 * self._charges * self.expected
        sizes = np.maximum(abs(signed), 0.5 * abs(self._charges) * self._least)
        return combined(signed, sizes, self._settled)


def combined(signed: Floats, sizes: Floats | None = None, settled: Floats | float = 1.0) -> float:
    """Return the error of a sum whose terms have the errors `signed` (N,).

    Parameters
    ----------
    signed : (N,) float64
    sizes : (N,) float64, optional
        Their sizes, if the least ones are larger.
    settled : (N,) float64, optional
        How far their signs are known.
    """
    together = abs(float((settled * signed).sum()))
    norm = float(np.linalg.norm(signed if sizes is None else sizes))  # of independent errors
    return SAFETY * max(together, norm, ALIKE * float(abs(signed).sum()))


def depths(continuum: Continuum) -> Floats:
    """Return how deep each atom's centre is below the surface of an atom that covers it, A; (N,)."""
    from scipy.spatial import cKDTree

    positions, radii = continuum.positions, continuum.radii
    count = min(COVERING, len(positions))
    distances, near = cKDTree(positions).query(positions, count, workers=threads.count())
    result: Floats = (radii[near] - distances).reshape(len(positions), count).max(1)
    return result
