"""Checks for impossibly close atoms: overlaps of images in a cell that is too small, and duplicate atoms."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError
from vmdpotential.molecule.structure import Floats, Integers, Structure

log = logging.getLogger(__name__)

#: Distance that is too short for any two nuclei, A; the shortest bond, that of H2, has 0.74 A.
CLOSE = 0.5
#: Rounding of coordinates in files, A; atoms at a smaller distance are duplicates.
SAME = 1e-3
#: Number of atoms, evenly spread over the file, that are compared with images of all others.
SAMPLE = 2000
#: Largest fractions of them that may be close to an image: above the first there is a warning, above the second an
#: error. No atoms are in a relaxed system, 4 % in frames of a simulation at constant pressure that were never wrapped,
#: and 5 % in a box that was filled twice.
NOTABLE, ALLOWED = 0.01, 0.08
#: Coordinates, A, beyond which other checks reject a structure.
FAR = 1e6


def check_overlaps(structure: Structure) -> None:
    """Raise an error if atoms overlap with periodic images of others, and warn of duplicate atoms.

    Virtual sites and Drude particles, which have no element, are ignored.

    Raises
    ------
    InputError
        When more than the fraction :data:`ALLOWED` of the atoms overlaps with images.
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
    """Return a mask (N,) of the atoms at the position of an earlier atom."""
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
    """Return a mask (M,) of the sampled atoms that are close to an image of an atom, other than the one in the file."""
    from scipy.spatial import cKDTree

    moves = np.floor(positions @ np.linalg.inv(vectors)).astype(np.int64)
    wrapped = positions - moves @ vectors
    tree = cKDTree(wrapped)
    result = np.zeros(len(sample), bool)
    for shift in np.ndindex(3, 3, 3):
        step = np.array(shift) - 1
        neighbours = tree.query_ball_point(wrapped[sample] + step @ vectors, CLOSE)
        for row, close in enumerate(neighbours):
            # it is the image in the file if the shifts of both atoms and the step add up to zero
            if any((moves[atom] - moves[sample[row]] + step).any() for atom in close):
                result[row] = True
    return result
