"""The atoms of a medium: without the salt of the box, and in a continuum not split by a periodic cell."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import Message, count_of
from vmdpotential.grid.lattice import Grid
from vmdpotential.maps.medium import Medium
from vmdpotential.molecule.selection import Mask, Selection, is_salt, is_solvated, is_water, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.whole import WholeComplex

log = logging.getLogger(__name__)

#: Distance, A, between the centres of a map's and a surface's atoms above which these are not at the same place.
ELSEWHERE = 0.5


def chosen_atoms(structure: Structure, selection: Selection, medium: Medium) -> NDArray[np.bool_]:
    """Return the mask (N,) of a selection.

    Unless the medium is explicit, ``solute`` excludes the free ions of a solvated system, which are part of the
    solution.
    """
    chosen = select(structure, selection)
    if not medium.replaces_water or not isinstance(selection, str) or selection.strip().lower() != "solute":
        return chosen
    if not is_solvated(structure.whole or structure):
        return chosen
    kept = chosen & ~is_salt(structure)
    return kept if kept.any() else chosen


def without_water(structure: Structure, atoms: Mask) -> Mask:
    """Return the selected atoms without waters, which the continuum replaces; this is reported."""
    water = atoms & is_water(structure)
    if not water.any() or water.sum() == atoms.sum():
        return atoms
    log.warning("%s: %s of the selected atoms are left out, because the continuum replaces them", structure.where,
                count_of(len(np.unique(structure.residue_of[water])), "water"))
    return atoms & ~water


def ions_of_solution(structure: Structure, selection: Selection, chosen: NDArray[np.bool_]) -> str:
    """Return a description of the atoms of a selection that were not chosen, ``11 free ions (SOD)``; empty for none."""
    salt = select(structure, selection) & ~chosen
    names = ", ".join(sorted(set(structure.residue_names[salt].tolist())))
    return f"{int(salt.sum())} free ions ({names})" if names else ""


def in_continuum(structure: Structure, selection: Selection, medium: Medium,
                 frames: bool = False) -> tuple[Structure, NDArray[np.bool_], WholeComplex | None]:
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
        log.warning(Message("%s: %s are left out, because they belong to the solution; a selection such as "
                            "{atoms not water} keeps them"), structure.where, salt)
    whole, together = _whole(structure, chosen, medium, frames)
    if whole is not structure:
        moved = int((whole.positions != structure.positions).any(1)[chosen].sum())
        log.warning("%s: the periodic cell splits the molecules, which are made whole for a continuum (%d of %d atoms "
                    "were moved)", structure.where, moved, int(chosen.sum()))
    return whole, chosen, together


def _whole(structure: Structure, chosen: NDArray[np.bool_], medium: Medium,
           frames: bool = False) -> tuple[Structure, WholeComplex | None]:
    """Return the structure of :func:`in_continuum`, and its function for other positions."""
    together = WholeComplex.of(structure, chosen, frames) if medium.method else None
    if together is None:
        return structure, None
    positions = together(structure.positions, structure.cell)
    return (structure if positions is structure.positions else replace(structure, positions=positions)), together


@dataclass(frozen=True, eq=False)
class MovedAtoms:
    """How the atoms of a file or a viewer were moved for their map, so that a viewer can show them there.

    Parameters
    ----------
    shifts : (N, 3) float64, A
        Displacement of every atom.
    """

    shifts: NDArray[np.float64]

    @property
    def data(self) -> dict[str, list[list[float]]]:
        """Runs of atoms that were moved alike, for ``--json``: index of the first, number, and displacement (A)."""
        begins = np.flatnonzero(np.append(True, (np.diff(self.shifts, axis=0) != 0).any(1)))
        counts = np.diff(begins, append=len(self.shifts))
        return {"moved": [[first, count, *np.round(self.shifts[first], 4).tolist()]
                          for first, count in zip(begins.tolist(), counts.tolist(), strict=True)
                          if self.shifts[first].any()]}


def as_computed(shown: Structure, structure: Structure, selection: Selection,
                medium: Medium) -> tuple[Structure, MovedAtoms | None]:
    """Return a structure with the positions of its map, and how atoms were moved; None if all stay.

    Parameters
    ----------
    shown : Structure
        The atoms of the file or of the viewer.
    structure : Structure
        The same with charges; missing atoms may have been added.
    selection : str or array
        Atoms of the map.
    medium : Medium
    """
    whole, _ = _whole(structure, chosen_atoms(structure, selection, medium), medium)
    if whole is structure:
        return structure, None
    origins = np.arange(len(structure)) if structure.origins is None else structure.origins
    present = (structure.positions == shown.positions[origins]).all(1)
    shifts = np.zeros((len(shown), 3))
    shifts[origins[present]] = (whole.positions - structure.positions)[present]
    return whole, MovedAtoms(shifts)


def describe_atoms(positions: Floats) -> str:
    """Return the number and the centre of a map's atoms at positions (N, 3), A, as its provenance has them."""
    centre = positions.mean(0) if len(positions) else np.zeros(3)
    return f"{len(positions)} atoms around {' '.join(f'{x:.2f}' for x in centre + 0.0)}"


def other_molecule(grid: Grid, positions: Floats) -> str:
    """Return how the atoms of a map differ from those at positions (N, 3), A; empty if they do not, or are not known.

    The map of a medium that includes the water has other atoms than any surface.
    """
    source = grid.provenance
    words = source.molecule.split()
    if len(words) < 6 or source.frames or source.medium_kind == "explicit":
        return ""
    if int(words[0]) != len(positions):
        return f"the map is that of {words[0]} atoms, and the surface that of {len(positions)}"
    away = float(np.linalg.norm(np.array([float(word) for word in words[3:6]]) - positions.mean(0)))
    return f"the atoms of the map are {away:.1f} A away from those of the surface" if away > ELSEWHERE else ""


def as_mapped(structure: Structure, grid: Grid) -> Structure:
    """Return a structure with the positions that its map was made for: whole molecules for a map in a continuum."""
    if not grid.provenance.continuum or is_water(structure).all():
        return structure
    together = WholeComplex.of(structure, chosen_atoms(structure, "solute", Medium.continuum()))
    if together is None:
        return structure
    return replace(structure, positions=together(structure.positions, structure.cell))
