"""The electrostatic energy of solvation, in total and by atom, by the method ``pb``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.maps.options import MapOptions
from vmdpotential.maps.plan import plan_map
from vmdpotential.methods.pb import Continued
from vmdpotential.molecule.selection import Selection
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import DEFAULT_TEMPERATURE, coulomb_constant


@dataclass(frozen=True, eq=False)
class Solvation:
    """The electrostatic energy of a molecule in a continuum, less that in a medium of its own permittivity.

    Parameters
    ----------
    energies : (N,) float64, kcal/mol
        Of each atom of the structure; 0 for those that were not selected.
    error : float, kcal/mol
        Of the total, from two lattices.
    """

    energies: NDArray[np.float64]
    error: float

    @property
    def total(self) -> float:
        """kcal/mol."""
        return float(self.energies.sum())

    def by_residue(self, structure: Structure) -> NDArray[np.float64]:
        """Return the energies of the residues (R,) of the structure, kcal/mol."""
        sums: NDArray[np.float64] = np.add.reduceat(self.energies, structure.residue_starts[:-1])
        return sums


def solvation_energy(structure: Structure, *, spacing: float = 0.5, atoms: Selection = "solute", radii: str = "auto",
                     parameters: Mapping[str, float] | None = None, temperature: float = DEFAULT_TEMPERATURE,
                     dielectric: float | None = None, engine: str = "auto") -> Solvation:
    """Return the electrostatic energy of solvation by the Poisson-Boltzmann equation.

    Parameters
    ----------
    structure : Structure
        With charges.
    spacing : float, A
        Of the lattice.
    atoms, radii, parameters, temperature, dielectric, engine
        See :func:`vmdpotential.maps.potential_map` with the method ``pb``. Of the full equation
        (``parameters={"nonlinear": 1}``) it is the energy of the charges in the reaction potential, without the ions'
        own.

    Raises
    ------
    InputError
        When there are no charges or radii.
    TaskError
        When the solution does not converge.
    MemoryPlanError
        When the lattice does not fit into memory.
    """
    planned, result = plan_map(structure, MapOptions(
        method="pb", parameters=parameters, radii=radii, spacing=spacing, padding=6.0, tolerance=1e-3, atoms=atoms,
        temperature=temperature, dielectric=dielectric, engine=engine))
    assert isinstance(result, Continued)
    unit = coulomb_constant("kcal/mol/e") / coulomb_constant("kT/e", temperature)
    energies = np.zeros(len(structure))
    energies[planned.chosen] = unit * result.energies
    return Solvation(energies, unit * result.energy_error)
