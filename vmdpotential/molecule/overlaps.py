"""Atoms that no structure has so close: a periodic cell that is too small, and atoms at the same place."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError
from vmdpotential.molecule.structure import Floats, Integers, Structure

log = logging.getLogger(__name__)

#: No two nuclei are so close, A: a bond of hydrogen is 0.74 A long.
CLOSE = 0.5
#: A coordinate's rounding in a file, A: atoms so close are the same one twice.
SAME = 1e-3
#: Number of atoms, evenly spread over the file, that are compared with images of all others.
SAMPLE = 2000
#: Part of them that may be close to an image before a warning, and before the cell is refused. None is in a relaxed
#: system; 4 % are in frames of a simulation at constant pressure that were never wrapped, 5 % in a box filled twice.
NOTABLE, ALLOWED = 0.01, 0.08
#: Coordinates, A, beyond which other checks refuse a structure.
FAR = 1e6


def check_overlaps(structure: Structure) -> None:
    """Refuse a periodic cell in which atoms overlap with images of others; warn of atoms at the same place.

    Virtual sites and Drude particles, which have no element, may be anywhere.

    Raises
    ------
    InputError
    """
    atoms = np.flatnonzero(structure.elements != "")
    positions = structure.positions[atoms]
    _warn_of_duplicates(structure, atoms[_duplicates(positions)])
    cell = structure.cell
    if cell is None or not cell.whole or len(atoms) < 2:
        return
    if max(np.abs(positions).max(), np.abs(cell.vectors).max()) > FAR:
        return
    sample = np.linspace(0, len(atoms) - 1, min(len(atoms), SAMPLE)).astype(np.int64)
    part = _close_to_images(positions, sample, cell.vectors).mean()
    close = f"{part:.0%} of them are within {CLOSE} A of an image of an atom"
    if part > ALLOWED:
        raise InputError(f"{structure.where}: the periodic cell {cell} is too small for these atoms: {close}",
                         "correct the cell, with {cell} or in the file")
    if part > NOTABLE:
        log.warning("%s: the periodic cell %s may be too small for these atoms: %s", structure.where, cell, close)


def _duplicates(positions: Floats) -> NDArray[np.bool_]:
    """Return which atoms, (N,) bool, are at the place of an earlier one."""
    rounded = np.rint(positions / SAME)
    order = np.lexsort(rounded.T)
    result = np.zeros(len(positions), bool)
    result[order[1:]] = (np.diff(rounded[order], axis=0) == 0).all(1)
    return result


def _warn_of_duplicates(structure: Structure, atoms: Integers) -> None:
    if len(atoms):
        first = int(atoms[0])
        log.warning("%s: %d atoms are at the same place as another atom, the first of them atom %d (%s %s%d); the "
                    "charges of all count", structure.where, len(atoms), first + 1, structure.atom_names[first],
                    structure.residue_names[first], structure.residue_ids[first])


def _close_to_images(positions: Floats, sample: Integers, vectors: Floats) -> NDArray[np.bool_]:
    """Return which atoms of a sample, (M,) bool, are close to another lattice image of an atom than the one listed."""
    from scipy.spatial import cKDTree

    moves = np.floor(positions @ np.linalg.inv(vectors)).astype(np.int64)
    wrapped = positions - moves @ vectors
    tree = cKDTree(wrapped)
    result = np.zeros(len(sample), bool)
    # an image next to the cell is needed only for atoms close to its faces, all of which are asked for
    for shift in np.ndindex(3, 3, 3):
        step = np.array(shift) - 1
        neighbours = tree.query_ball_point(wrapped[sample] + step @ vectors, CLOSE)
        for row, close in enumerate(neighbours):
            # the same image as in the file where the moves of both atoms and the step add up to nothing
            if any((moves[atom] - moves[sample[row]] + step).any() for atom in close):
                result[row] = True
    return result
