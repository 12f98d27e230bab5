"""The media of maps, declared once: their words, their default, and the object that describes one with its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from vmdpotential import registry
from vmdpotential.errors import UsageError
from vmdpotential.interactions import Bound
from vmdpotential.interactions.screened_coulomb import WATER_PERMITTIVITY, in_water
from vmdpotential.molecule.selection import is_water
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import CheckedOptions, Option
from vmdpotential.units import DEFAULT_TEMPERATURE, MAX_SALT, coulomb_constant

#: Media of a map.
MEDIUM_KINDS = ("water", "screened", "explicit", "vacuum")

#: Medium of a map of one structure, unless options imply another one.
DEFAULT_MEDIUM = "water"

#: Concentration of the salt in the media water and screened, M.
DEFAULT_SALT = 0.15

#: Help of the option.
MEDIUM_HELP = (
    f"medium: water (the solute in a Poisson-Boltzmann continuum of water with {DEFAULT_SALT:g} M of salt), screened "
    "(the solute's charges, screened by water and salt as by Debye and Hueckel), explicit (all charges, with their "
    "water and ions) or vacuum (the solute alone); unless given, the one that other options imply, or ")


@dataclass(frozen=True)
class Medium(CheckedOptions):
    """Medium of the charges; see :meth:`vacuum`, :meth:`screened` and :meth:`continuum`.

    Parameters
    ----------
    kind : str
        One of the words of the option `medium`: water, screened, explicit or vacuum.
    dielectric : float
        Relative permittivity that divides the potential of a charge; of a continuum, that of the solvent.
    temperature : float, K
        Temperature of the solvent, and that defines kT in units.
    salt : float, optional
        Concentration of the salt that screens the charges, M.
    method : str
        Solver of the equation of a continuum; empty for other media.
    parameters : mapping
        Parameters of the solver.

    Examples
    --------
    >>> medium = vp.Medium.screened(0.15)
    >>> grid = vp.potential_map(vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz"), atoms="protein",
    ...                         spacing=3.0, medium=medium)
    >>> grid.provenance.medium
    'screened, 0.15 M, dielectric 78.5'
    """

    kind: str = "explicit"
    dielectric: Annotated[float, Option("relative permittivity", above=0, high=1e6, heading="medium")] = 1.0
    temperature: Annotated[float, Option(
        "temperature", unit="K", above=0, high=1e6, heading="medium")] = DEFAULT_TEMPERATURE
    salt: Annotated[float | None, Option(
        "concentration of the salt", unit="M", low=0, high=MAX_SALT, heading="ions")] = None
    method: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def vacuum(cls, dielectric: float = 1.0, temperature: float = DEFAULT_TEMPERATURE) -> Medium:
        """Return a uniform medium without ions: Coulomb's law, divided by a relative permittivity."""
        return cls("vacuum", dielectric, temperature)

    @classmethod
    def screened(cls, salt: float, dielectric: float = WATER_PERMITTIVITY,
                 temperature: float = DEFAULT_TEMPERATURE) -> Medium:
        """Return water with a 1:1 salt (M), whose ions screen the charges (Debye-Hueckel)."""
        return cls("screened", dielectric, temperature, salt)

    @classmethod
    def continuum(cls, salt: float | None = None, method: str = "pb", dielectric: float | None = None,
                  temperature: float = DEFAULT_TEMPERATURE, **parameters: float) -> Medium:
        """Return a solvent around a molecule of low permittivity (the Poisson-Boltzmann equation).

        Parameters
        ----------
        salt : float, optional
            Concentration of a 1:1 salt in the solvent, M; the method's default unless given.
        method : str
            Solver of the equation.
        dielectric : float, optional
            Relative permittivity of the solvent; the method's default unless given.
        temperature : float, K
        **parameters
            Other parameters of the method, such as ``inside``, the permittivity of the molecule.

        Raises
        ------
        UsageError
            For a parameter that the solver does not have, or an unknown solver.
        """
        try:
            solver = registry.get("solver", method)
        except UsageError as error:
            raise UsageError("method", error.text, error.hint, value=method) from None
        values = solver.parameters({**({} if salt is None else {"salt": salt}), **parameters})
        permittivity = solver.dielectric if dielectric is None else dielectric
        return cls("water", permittivity, temperature, values.get("salt"), method, values)

    @property
    def replaces_water(self) -> bool:
        """Whether the charges are those of the solute alone, without its water and free ions."""
        return self.kind != "explicit"

    def stated_kind(self, structure: Structure, chosen: NDArray[np.bool_]) -> str:
        """Return the kind for the provenance: explicit only if some of the chosen charges are water's."""
        if self.kind not in ("explicit", "vacuum"):
            return self.kind
        return "explicit" if has_water(structure, chosen) else "vacuum"

    def interaction(self) -> Bound | None:
        """Return the screened potential of a charge; None in a vacuum or continuum, which do not determine it."""
        if self.method or self.salt is None:
            return None
        return in_water(self.salt, self.temperature, self.dielectric)

    def describe(self, interaction: Bound, structure: Structure, chosen: NDArray[np.bool_] | None = None) -> str:
        """Return the description for legends and reports of the medium, in which charges have this interaction.

        Parameters
        ----------
        interaction : Bound
        structure : Structure
        chosen : (N,) bool, optional
            Atoms that contribute charges; all unless given.
        """
        from vmdpotential.maps.solver import describe_solution

        if self.method:
            return describe_solution(self.parameters, self.dielectric)
        return interaction.medium(self.dielectric, self.temperature, has_water(structure, chosen))

    def constant(self, unit: str) -> float:
        """Return the potential of a charge of 1 e at 1 A, in a unit."""
        return coulomb_constant(unit, self.temperature, self.dielectric)


def has_water(structure: Structure, chosen: NDArray[np.bool_] | None = None) -> bool:
    """Return whether some of the chosen atoms (N,) bool, all unless given, are water's."""
    water = is_water(structure)
    return bool((water if chosen is None else water[chosen]).any())
