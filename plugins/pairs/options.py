"""The options of energies between selections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from vmdpotential.maps.options import LEAST_TOLERANCE, Engine
from vmdpotential.parameters import CheckedOptions, Option

#: Relative rms error of the atoms' Coulomb energies and forces; small, because opposite signs nearly cancel.
TOLERANCE = 1e-6


def _forms() -> Sequence[str]:
    """Return the names of the forms of the Coulomb energy."""
    from .potentials import ELECTROSTATICS

    return tuple(ELECTROSTATICS)


@dataclass(frozen=True, kw_only=True)
class EnergyOptions(CheckedOptions):
    """Options of the summation over pairs."""

    electrostatics: Annotated[str, Option(
        "form of the Coulomb energy: particle mesh Ewald (pme), Ewald's sum (ewald, accurate to 1e-9, slow), reaction "
        "field (rf), shifted to zero at the cutoff (cutoff), or with a distance-dependent permittivity of 4 r, r in A "
        "(ddd)",
        choices=_forms, heading="method and accuracy")] = "pme"
    cutoff: Annotated[float, Option(
        "cutoff of the Lennard-Jones energy, and of the Coulomb energy except with pme and ewald",
        unit="A", low=1, high=1000, heading="method and accuracy")] = 12.0
    dielectric: Annotated[float, Option(
        "relative permittivity that divides Coulomb energies", above=0, high=1e6,
        aliases=("dielectric_constant",), heading="medium")] = 1.0
    tolerance: Annotated[float, Option(
        "largest relative rms error of the atoms' Coulomb energies and forces with pme, measured in the first frame",
        low=LEAST_TOLERANCE, high=0.1, heading="method and accuracy")] = TOLERANCE
    engine: Engine = "auto"
