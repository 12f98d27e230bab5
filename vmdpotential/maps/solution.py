"""What a method needs that solves for the solution around the charges: radii of atoms, and no waters among them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError
from vmdpotential.maps.medium import Medium
from vmdpotential.methods import Solution
from vmdpotential.molecule.radii import atomic_radii
from vmdpotential.molecule.selection import is_solvated, is_water
from vmdpotential.molecule.structure import Structure


def solution_of(structure: Structure, chosen: NDArray[np.bool_], radii: str, medium: Medium, unit: str,
                spacing: float = 0.5) -> Solution | None:
    """Return what a method needs that has parameters of its own; None for another.

    Parameters
    ----------
    structure : Structure
    chosen : (N,) bool
        Atoms of the molecule.
    radii : str
        A set, or ``auto`` for the structure's own.
    medium : Medium
    unit : str
        Of the potential.
    spacing : float, A
        Of the lattice from which values at points are interpolated.

    Raises
    ------
    InputError
        When waters are among the atoms, or an atom has no radius.
    """
    if not medium.method:
        return None
    if is_solvated(structure) and is_water(structure)[chosen].any():
        raise InputError(f"{structure.where}: its waters are included, although the continuum replaces them",
                         "use {atoms solute}")
    result, source = atomic_radii(structure, chosen, radii)
    return Solution(medium.parameters, result, source, medium.dielectric, medium.temperature, unit,
                    medium.constant(unit), spacing)
