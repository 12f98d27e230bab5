"""Errors of energies by the Poisson-Boltzmann equation, from the solutions on two lattices.

How the error of a charge's reaction potential falls with the spacing depends on how deep below the surface the charge
is: next to the surface hardly, then much faster than by the second order, and by the second order from about twice the
spacing on. So the difference of the lattices is multiplied by a fraction for each charge.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vmdpotential.continuum.molecule import Continuum
from vmdpotential.grid.lattice import Lattice

Floats = NDArray[np.float64]

#: Depths of charges, in spacings, and the error of the reaction potential over its difference from that on a lattice of
#: twice the spacing, as rms over the charges of 30 molecules and charges in Kirkwood's spheres (scripts/pb_errors.py).
DEPTHS = (0.3, 0.4, 0.5, 0.6, 0.75, 0.9, 1.2, 1.45, 1.8, 2.3, 2.6)
FRACTIONS = (2.2, 1.3, 0.75, 0.5, 0.35, 0.2, 0.13, 0.16, 0.21, 0.26, 0.3)

#: The least error of a single charge's reaction potential, relative to it, at a depth of one spacing; by the second
#: order in the spacing. The difference of two lattices may be smaller by chance.
LEAST = 0.03

#: The same, by the spacing of the coarse lattice, for an atom whose surface is not within the fine one: both solutions
#: then have the error of the coarse one, which their difference does not show (Born's ions of 5 to 20 A).
UNSEEN = 0.15

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
    lattice : Lattice
        The fine lattice.
    ratio : int
        Ratio of the spacings of both lattices.
    differences : (N,) float64, kT/e
        Reaction potentials on the coarse lattice minus those on the fine one.
    """

    def __init__(self, continuum: Continuum, lattice: Lattice, ratio: int, differences: Floats) -> None:
        c, spacing = continuum, float(lattice.spacing.max())
        self._continuum, self._lattice, self._spacing = c, lattice, spacing
        self._ratio, self._differences = ratio, differences
        self._kind = SMOOTH if c.gaussian else SHARP if c.probe < spacing else FULL if len(c.ions) else 1.0

    @cached_property
    def _depths(self) -> Floats:
        return np.maximum(depths(self._continuum), DEPTHS[0] * self._spacing)  # maps without energies do not need them

    @property
    def expected(self) -> Floats:
        """(N,) the error of each, kT/e, with its sign."""
        fractions: Floats = np.interp(self._depths / self._spacing, DEPTHS, FRACTIONS)
        return self._kind * 3 / (self._ratio**2 - 1) * fractions * self._differences

    def of_energy(self) -> float:
        """Return the error of the sum of the energies of solvation, kT."""
        c, steps = self._continuum, self._depths / self._spacing
        own = c.constant * abs(1 / c.inside - 1 / c.outside) / (2 * self._depths)
        room = np.minimum(c.positions - self._lattice.origin, self._lattice.last - c.positions).min(1)
        least = np.where(room < self._depths, UNSEEN * self._ratio**2, LEAST)
        signed = 0.5 * c.charges * self.expected
        sizes = np.maximum(abs(signed), 0.5 * c.charges**2 * self._kind * least / steps**2 * own)
        return combined(signed, sizes, np.minimum(1.0, steps / 2) ** 2)  # of coarse lattices, the sign says little


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
    distances, near = cKDTree(positions).query(positions, count)
    result: Floats = (radii[near] - distances).reshape(len(positions), count).max(1)
    return result
