"""Inputs of solvers for the solution around the charges: atomic radii, and no explicit water."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.continuum.solver import SolventRequest
from vmdpotential.errors import InputError
from vmdpotential.maps.medium import Medium
from vmdpotential.molecule.radii import atomic_radii
from vmdpotential.molecule.selection import is_solvated, is_water
from vmdpotential.molecule.structure import Structure


def solution_of(structure: Structure, chosen: NDArray[np.bool_], radii: str, medium: Medium, unit: str,
                spacing: float = 0.5) -> SolventRequest:
    """Return the inputs of a continuum's solver.

    Parameters
    ----------
    structure : Structure
    chosen : (N,) bool
        Mask of the molecule's atoms.
    radii : str
        Name of a set of radii, or ``auto`` for those of the structure.
    medium : Medium
    unit : str
        Unit of the potential.
    spacing : float, A
        Spacing of the lattice from which values at points are interpolated.

    Raises
    ------
    InputError
        If the atoms include waters of a solvated structure, or an atom has no radius.
    """
    if is_solvated(structure) and is_water(structure)[chosen].any():
        raise InputError(f"{structure.where}: its waters are included, although the continuum replaces them",
                         "use {atoms solute}")
    result, source = atomic_radii(structure, chosen, radii)
    return SolventRequest(medium.parameters, result, source, medium.dielectric, medium.temperature, unit,
                    medium.constant(unit), spacing)
