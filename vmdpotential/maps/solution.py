"""Inputs of solvers for the solution around the charges: atomic radii, and no explicit water."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError, UsageError
from vmdpotential.interactions import is_automatic
from vmdpotential.maps.medium import Medium
from vmdpotential.maps.solver import SolventRequest
from vmdpotential.molecule.membranes import membrane_planes
from vmdpotential.molecule.radii import atomic_radii
from vmdpotential.molecule.selection import is_lipid, is_solvated, is_water
from vmdpotential.molecule.structure import Structure

log = logging.getLogger(__name__)


def with_membrane(medium: Medium, structure: Structure, chosen: NDArray[np.bool_] | None = None) -> Medium:
    """Return a medium whose membrane is where the structure has it, if it is to be found there; this is logged.

    Parameters
    ----------
    medium : Medium
    structure : Structure
    chosen : (N,) bool, optional
        Mask of the molecule's atoms.

    Raises
    ------
    InputError
        For a structure without marks and lipids, or if the lipids are chosen, which the membrane replaces.
    UsageError
        For the centre of a membrane that is found.
    """
    if not is_automatic(medium.parameters.get("membrane", 0.0)):
        return medium
    if medium.parameters["membrane_centre"]:
        raise UsageError("set", "membrane=auto also finds the centre", "leave out membrane_centre",
                         value=f"membrane_centre={medium.parameters['membrane_centre']:g}")
    planes = membrane_planes(structure)
    if planes.of_lipids and chosen is not None and is_lipid(structure)[chosen].any():
        raise InputError(f"{structure.where}: its lipids are included, although the membrane replaces them",
                         "use {atoms protein}")
    log.warning("%s: a membrane between %s", structure.where, planes)
    return replace(medium, parameters={**medium.parameters, "membrane": planes.high - planes.low,
                                       "membrane_centre": 0.5 * (planes.low + planes.high)})


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
        If the atoms include waters of a solvated structure, an atom has no radius, or a membrane is not found.
    """
    if is_solvated(structure) and is_water(structure)[chosen].any():
        raise InputError(f"{structure.where}: its waters are included, although the continuum replaces them",
                         "use {atoms solute}")
    medium = with_membrane(medium, structure, chosen)
    result, source = atomic_radii(structure, chosen, radii)
    return SolventRequest(medium.parameters, result, source, medium.dielectric, medium.temperature, unit,
                    medium.constant(unit), spacing)
