"""Errors of energies by the Poisson-Boltzmann equation, from the solutions on two lattices.

How the error of a charge's reaction potential falls with the spacing depends on how deep below the surface the charge
is: next to the surface hardly, then much faster than by the second order, and by the second order from about twice the
spacing on. So the difference of the lattices is multiplied by a fraction for each charge.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Lattice

from .molecule import TINY, AtomCovers, Continuum

Floats = NDArray[np.float64]

#: Depths of charges, in spacings, and the error of the reaction potential over its difference from that on a lattice of
#: twice the spacing, as rms over the charges of 30 molecules and charges in Kirkwood's spheres (scripts/pb_errors.py).
DEPTHS = (0.3, 0.4, 0.5, 0.6, 0.75, 0.9, 1.2, 1.45, 1.8, 2.3, 2.6)
FRACTIONS = (2.2, 1.3, 0.75, 0.5, 0.35, 0.2, 0.13, 0.16, 0.21, 0.26, 0.3)

#: The order by which differences grow with the spacing of the coarse lattice beyond twice that of the fine one: more
#: slowly than by the second order (binding energies of domains of adenylate kinase).
COARSE_ORDER = 1.6

#: The least error of a single charge's reaction potential, relative to it, at a depth of one spacing; by the second
#: order in the spacing, but at most 1. The difference of two lattices may be smaller by chance.
LEAST = 0.03

#: The same, by the spacing of the coarse lattice, for an atom whose surface is not within the fine one: both solutions
#: then have the error of the coarse one, which their difference does not show (Born's ions of 5 to 20 A).
UNSEEN = 0.075

#: The least depth of a charge, in spacings; next to the surface all of its reaction potential is an error.
LEAST_DEPTH = 0.1

#: The charges' errors partly have the same sign: part of the sum of their sizes that is the least error of a sum. Where
#: the surface has edges sharper than the spacing most have: energies of large molecules are all too small.
ALIKE, SHARP_ALIKE = 0.15, 0.5

#: The same for changes of energies at 1 A, by the second order in the spacing: where a partner takes the solvent's
#: place, all change too much on coarse lattices. And the least error of the change of one atom's energy, relative to
#: it, at a depth of one spacing, by the first order, since it is that of the crevice between both. At most one of ten
#: errors of binding energies of ions, hosts with guests, and parts of proteins at 0.5 to 1.2 A is larger, in random
#: orientations.
CHANGED_ALIKE, CHANGED = 0.4, 0.5

#: Of sums of independent errors with random signs, nine of ten are less than this times the root of their squares.
SAFETY = 1.65

#: The same where each is at least its least error: of many terms, and what is added for one divided by their number,
#: since one error varies more, with how the surface cuts the lattice, than a sum of many, which is nearly normal. At
#: most one of ten errors of fragments, proteins and DNA at 0.5 to 1 A, and one of twenty of balls, is larger.
MANY, ONE_MORE = 1.1, 0.4

#: Factors for a smooth permittivity, whose rise next to charges coarse lattices do not resolve, and for a surface with
#: edges sharper than the spacing, where the error falls by the first order. The full equation needs none: its layer of
#: ions changes the energy by less than the error of the surface.
SMOOTH, SHARP = 3.4, 2.0


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
        self._sharp = not c.gaussian and c.probe < spacing
        self._kind = SMOOTH if c.gaussian else SHARP if self._sharp else 1.0

    @cached_property
    def _covers(self) -> AtomCovers:
        found = self._continuum.covers
        return replace(found, depths=np.maximum(found.depths, LEAST_DEPTH * self._spacing))

    @property
    def expected(self) -> Floats:
        """(N,) the error of each, kT/e, with its sign."""
        fractions: Floats = np.interp(self._covers.depths / self._spacing, DEPTHS, FRACTIONS)
        extrapolated = self._kind * (2**COARSE_ORDER - 1) / (self._ratio**COARSE_ORDER - 1)
        result: Floats = extrapolated * fractions * self._differences
        return result

    def of_energy(self) -> float:
        """Return the error of the sum of the energies of solvation, kT."""
        c, found = self._continuum, self._covers
        steps, depth, radius = found.depths / self._spacing, found.depths, np.maximum(found.radii, found.depths)
        # reaction potentials of unit charges: before a plane, and in a ball (J. G. Kirkwood, J. Chem. Phys. 2 (1934)
        # 351, of a conductor around it) as far as no other atoms are between it and the solvent
        own = np.maximum(1 / (2 * depth), found.exposed * radius / (depth * (2 * radius - depth)))
        own *= c.constant * abs(1 / c.inside - 1 / c.outside)
        room = np.minimum(c.positions - self._lattice.origin, self._lattice.last - c.positions).min(1)
        least = np.minimum(1, self._kind * np.where(room < depth, UNSEEN * self._ratio**2, LEAST) / steps**2)
        signed = 0.5 * c.charges * self.expected
        roots = c.charges * np.sqrt(0.5 * least * own)
        sizes = np.maximum(abs(signed), roots**2)
        # the surface is wrong in the same way for all charges in the ball of one atom
        alike, apart = np.bincount(found.owners, roots) ** 2, np.sqrt(np.bincount(found.owners, sizes**2))
        parts = np.maximum(alike, apart)
        squares = float(parts @ parts)
        if squares == 0:
            return 0.0
        # of coarse lattices, the sign says little
        settled: Floats = np.minimum(1.0, steps / 2) ** 2
        together = abs(float((settled * signed).sum()))
        same = SHARP_ALIKE if self._sharp else ALIKE
        safety = MANY + ONE_MORE * float((parts**4).sum()) / squares**2
        return safety * max(together, float(np.sqrt(squares)), same * float(abs(signed).sum()))


def combine_errors(signed: Floats, sharp: bool = False, spacing: float = 0.0) -> float:
    """Return the error of a sum whose terms have the errors `signed` (N,), at a surface with or without sharp edges.

    With a `spacing`, A, of a change that is the sum of those of many energies.
    """
    together, size = abs(float(signed.sum())), float(abs(signed).sum())
    alike = SHARP_ALIKE if sharp else max(ALIKE, CHANGED_ALIKE * min(1.0, spacing) ** 2)
    return SAFETY * max(together, float(np.linalg.norm(signed)), alike * size)


def least_error_of_change(total: float, changes: Floats, depths: Floats, spacing: float) -> float:
    """Return the least error of a `total` of changes (N,) of the energies of atoms at depths (N,), A.

    Errors of single atoms have random signs; where changes cancel, so do they, as charges next to each other do. The
    total may have other terms, which are exact.
    """
    sizes = np.abs(changes)
    relative = np.minimum(1.0, spacing / np.maximum(depths, LEAST_DEPTH * spacing))
    part = float(np.linalg.norm(sizes * relative)) / max(float(sizes.sum()), TINY)
    return CHANGED * part * abs(total)
