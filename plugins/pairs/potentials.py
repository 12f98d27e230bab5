"""Potentials of pairs of atoms with their cutoffs: the forms of the Coulomb energy, and Lennard-Jones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.interactions import Bound, coulomb, distance_dependent, reaction_field
from vmdpotential.molecule.nonbonded import Nonbonded

from . import lennard_jones
from .pair_terms import (
    CHARGES_RULE,
    GEOMETRIC_RULE,
    LORENTZ_BERTHELOT,
    TABLE_RULE,
    CombinationRule,
    PairPotential,
    PairTerm,
)

#: Relative permittivity of the medium of ``rf`` (water), and that of ``ddd`` at 1 A.
MEDIUM, SLOPE = 78.5, 4.0


@dataclass(frozen=True)
class Electrostatics:
    """Form of the Coulomb energy of pairs.

    Parameters
    ----------
    bonded : Bound
        Potential between atoms three bonds apart (1-4 pairs).
    within : callable
        Returns the potential of pairs for a cutoff, A.
    removed : callable or None
        Returns, for a cutoff, the part of this potential that is removed for excluded pairs; None if that is all of it.
    method : str
        Method at points that sums the energy beyond the cutoff; empty if there is none.
    """

    bonded: Bound
    within: Callable[[float], Bound]
    removed: Callable[[float], Bound] | None = None
    method: str = ""

    def excluded(self, cutoff: float, summed: Bound) -> Bound:
        """Return the potential to subtract for excluded pairs, for which `summed` was added."""
        return summed if self.removed is None else self.removed(cutoff)


_FULL, _GROWING = coulomb.INTERACTION.bind(), distance_dependent.INTERACTION.bind(slope=SLOPE)

#: Without a cutoff, by a mesh or by Ewald's sum; with a medium beyond the cutoff, which responds to excluded pairs too;
#: shifted to zero at the cutoff; and with a permittivity proportional to the distance.
ELECTROSTATICS = {
    "pme": Electrostatics(_FULL, lambda cutoff: _FULL, method="pme"),
    "ewald": Electrostatics(_FULL, lambda cutoff: _FULL, method="ewald"),
    "rf": Electrostatics(_FULL, lambda cutoff: reaction_field.INTERACTION.bind(cutoff=cutoff, permittivity=MEDIUM),
                         _FULL.truncated),
    "cutoff": Electrostatics(_FULL, lambda cutoff: coulomb.CUT.bind(cutoff=cutoff)),
    "ddd": Electrostatics(_GROWING, _GROWING.truncated),
}


def pair_potential(electric: Bound, cutoff: float, rule: CombinationRule) -> PairPotential:
    """Return the potential of the pairs within the cutoff (A): Coulomb, if it ends there, and Lennard-Jones."""
    dispersion_term = PairTerm("lennard_jones", lennard_jones.INTERACTION.bind().truncated(cutoff), rule)
    coulomb_terms = () if electric.cutoff is None else (PairTerm("coulomb", electric, CHARGES_RULE),)
    return PairPotential((*coulomb_terms, dispersion_term))


def lennard_jones_rule(nonbonded: Nonbonded) -> tuple[CombinationRule, dict[str, Floats]]:
    """Return the combination rule of the Lennard-Jones parameters, and the parameters of each atom for it."""
    types = nonbonded.types
    if nonbonded.rule == "geometric":
        return GEOMETRIC_RULE, {"root_a6": np.sqrt(6 * np.diagonal(nonbonded.c6))[types],
                           "root_a12": np.sqrt(12 * np.diagonal(nonbonded.c12))[types]}
    if nonbonded.rule == "lorentz-berthelot":
        return LORENTZ_BERTHELOT, {"half_rmin": (2 ** (1 / 6) / 2 * nonbonded.sigma)[types],
                                   "root_depth": np.sqrt(12 * nonbonded.epsilon)[types]}
    return TABLE_RULE, {}


def lennard_jones_energy(c6: Floats, c12: Floats, r: Floats) -> tuple[Floats, Floats]:
    """Return the Lennard-Jones energies E of pairs at distances r, and -1/r dE/dr."""
    r2 = 1 / (r * r)
    r6 = r2**3
    return r6 * (c12 * r6 - c6), r2 * r6 * (12 * c12 * r6 - 6 * c6)
