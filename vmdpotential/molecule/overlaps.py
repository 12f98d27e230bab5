"""Checks for impossibly close atoms: overlaps of images in a cell that is too small, and duplicate atoms."""

from __future__ import annotations

import logging
from collections.abc import Iterator

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
    """Raise an error if atoms overlap with periodic images of others.

    Virtual sites and Drude particles, which have no element, are ignored.

    Raises
    ------
    InputError
        When more than the fraction :data:`ALLOWED` of the atoms overlaps with images.
    """
    positions = structure.positions[structure.elements != ""]
    cell = structure.cell
    if cell is None or not cell.whole or len(positions) < 2:
        return
    if max(np.abs(positions).max(), np.abs(cell.vectors).max()) > FAR:
        return
    sample = np.linspace(0, len(positions) - 1, min(len(positions), SAMPLE)).astype(np.int64)
    part = _close_to_images(positions, sample, cell.vectors).mean()
    close = f"{part:.0%} of them are within {CLOSE} A of an image of an atom"
    if part > ALLOWED:
        raise InputError(f"{structure.where}: the periodic cell {cell} is too small for these atoms: {close}",
                         "correct the cell, with {cell} or in the file")
    if part > NOTABLE:
        log.warning("%s: the periodic cell %s may be too small for these atoms: %s", structure.where, cell, close)


def warn_of_duplicates(structure: Structure) -> None:
    """Warn of atoms at the place of another atom; those without an element are ignored, as above."""
    atoms = np.flatnonzero(structure.elements != "")
    atoms = atoms[_duplicates(structure.positions[atoms])]
    if len(atoms):
        first = int(atoms[0])
        log.warning("%s: %d atoms are at the same place as another atom, the first of them atom %d (%s %s%d); all of "
                    "them count", structure.where, len(atoms), first + 1, structure.atom_names[first],
                    structure.residue_names[first], structure.residue_ids[first])


def _duplicates(positions: Floats) -> NDArray[np.bool_]:
    """Return a mask (N,) of the atoms at the position of an earlier atom."""
    rounded = np.rint(positions / SAME)
    order = np.lexsort(rounded.T)
    result = np.zeros(len(positions), bool)
    result[order[1:]] = (np.diff(rounded[order], axis=0) == 0).all(1)
    return result


def _close_to_images(positions: Floats, sample: Integers, vectors: Floats) -> NDArray[np.bool_]:
    """Return a mask (M,) of the sampled atoms that are close to an image of an atom, other than the one in the file."""
    inverse = np.linalg.inv(vectors)
    moves = np.floor(positions @ inverse).astype(np.int64)
    wrapped = positions - moves @ vectors
    steps = np.indices((3, 3, 3)).reshape(3, -1).T - 1
    images = wrapped[sample][:, None] + steps @ vectors
    # all atoms are in the cell, so that only images in it and next to its faces can be close to one
    outside = np.abs(images @ inverse - 0.5) - 0.5
    rows, step = np.nonzero((outside <= CLOSE * np.linalg.norm(inverse, axis=0) + 1e-6).all(2))
    result = np.zeros(len(sample), bool)
    for image, atom in _close_pairs(images[rows, step], wrapped):
        row = rows[image]
        # it is the image in the file if the shifts of both atoms and the step add up to zero
        result[row[(moves[atom] - moves[sample[row]] + steps[step[image]]).any(1)]] = True
    return result


def _close_pairs(points: Floats, positions: Floats) -> Iterator[tuple[Integers, Integers]]:
    """Yield indices of points and of positions that are close to each other, as many arrays.

    Positions are sorted into cubes with an edge of :data:`CLOSE`. A cube's number increases by one along z, so that
    three cubes in a row are one range of the sorted numbers.
    """
    low = positions.min(0) - 2 * CLOSE
    shape = np.floor((positions.max(0) - low) / CLOSE).astype(np.int64) + 3
    stride = np.array([shape[1] * shape[2], shape[2], 1])
    numbers = np.floor((positions - low) / CLOSE).astype(np.int64) @ stride
    order = np.argsort(numbers)
    numbers = numbers[order]
    centre = np.floor((points - low) / CLOSE).astype(np.int64) @ stride
    for x, y in np.ndindex(3, 3):
        middle = centre + (x - 1) * stride[0] + (y - 1) * stride[1]
        begin, end = np.searchsorted(numbers, middle - 1), np.searchsorted(numbers, middle + 1, "right")
        counts = end - begin
        point = np.repeat(np.arange(len(points)), counts)
        position = order[np.arange(len(point)) + np.repeat(begin - np.cumsum(counts) + counts, counts)]
        close = np.square(points[point] - positions[position]).sum(1) <= CLOSE**2
        yield point[close], position[close]
