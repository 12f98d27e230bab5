"""The atoms of a medium: without the salt of the box, and in a continuum not split by a periodic cell."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import Message
from vmdpotential.grid.lattice import Grid
from vmdpotential.maps.medium import Medium
from vmdpotential.molecule.selection import Selection, is_salt, is_solvated, is_water, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.whole import Complex

log = logging.getLogger(__name__)


def chosen_atoms(structure: Structure, selection: Selection, medium: Medium) -> NDArray[np.bool_]:
    """Return the mask (N,) of a selection.

    If the medium replaces the water, ``solute`` excludes the free ions of a solvated system, which are part of it.
    """
    chosen = select(structure, selection)
    if not medium.replaces_water or not isinstance(selection, str) or selection.strip().lower() != "solute":
        return chosen
    if not is_solvated(structure.whole or structure):
        return chosen
    kept = chosen & ~is_salt(structure)
    return kept if kept.any() else chosen


def ions_of_solution(structure: Structure, selection: Selection, chosen: NDArray[np.bool_]) -> str:
    """Return a description of the atoms of a selection that were not chosen, ``11 free ions (SOD)``; empty for none."""
    salt = select(structure, selection) & ~chosen
    names = ", ".join(sorted(set(structure.residue_names[salt].tolist())))
    return f"{int(salt.sum())} free ions ({names})" if names else ""


def in_continuum(structure: Structure, selection: Selection, medium: Medium,
                 frames: bool = False) -> tuple[Structure, NDArray[np.bool_], Complex | None]:
    """Return a structure prepared for a medium, the mask (N,) of its charged atoms, and a function for other positions.

    A continuum has no periodic images: the molecules of the chosen atoms are made whole and put next to each other,
    and the function does the same for other positions (None if that is not needed). Changes are logged.

    Parameters
    ----------
    structure : Structure
    selection : str or array
        See :func:`vmdpotential.molecule.selection.select`.
    medium : Medium
    frames : bool
        Whether the other positions come from a trajectory, which may have cells even if the structure has none.
    """
    chosen = chosen_atoms(structure, selection, medium)
    if salt := ions_of_solution(structure, selection, chosen):
        log.warning(Message("%s: %s are left out, because the medium includes the solution's ions; a selection such as "
                            "{atoms not water} keeps them"), structure.where, salt)
    if not medium.method:
        return structure, chosen, None
    together = Complex.of(structure, chosen, frames)
    if together is None:
        return structure, chosen, None
    positions = together(structure.positions, structure.cell)
    if positions is not structure.positions:
        moved = int((positions != structure.positions).any(1)[chosen].sum())
        log.warning("%s: the periodic cell splits the molecules, which are made whole for a continuum (%d of %d atoms "
                    "were moved)", structure.where, moved, int(chosen.sum()))
        structure = replace(structure, positions=positions)
    return structure, chosen, together


def as_mapped(structure: Structure, grid: Grid) -> Structure:
    """Return a structure with the positions that its map was made for: whole molecules for a map in a continuum."""
    if not grid.provenance.medium.startswith("continuum") or is_water(structure).all():
        return structure
    together = Complex.of(structure, chosen_atoms(structure, "solute", Medium.continuum()))
    if together is None:
        return structure
    return replace(structure, positions=together(structure.positions, structure.cell))
