"""Check whether a structure is the whole content of its periodic cell, by the fraction of the cell that it fills.

An asymmetric unit that was written with the space group P 1, and a molecule whose solvent was removed, fill only a part
of their cell. Their periodic images are not those of a simulation or a crystal.
"""

from __future__ import annotations

import numpy as np

from vmdpotential.molecule.selection import is_water
from vmdpotential.molecule.structure import Structure

#: Smallest fraction of a cell that its whole content fills: liquids, membranes and crystals with their water fill 0.8
#: to 1.0, dry asymmetric units of crystals 0.1 to 0.6.
LEAST = 0.65

#: Smallest number of atoms that is checked; fewer are a model system, not the rest of a simulation or a crystal.
FEWEST = 100

#: Cell length, A, above which nothing is checked, because building a lattice in such a cell raises an error anyway.
HUGE = 1e6

#: Number of atoms in 1 A^3 below that of any condensed matter.
THIN = 1e-4

#: Distance from an atom, A, within which space is filled, and the same in median distances of nearest neighbours; the
#: larger one counts.
REACH, NEIGHBOURS = 2.5, 1.25

#: Number of sampled points of a cell, their smallest spacing, A, and the edge, A, of bins none of which is empty in a
#: liquid.
POINTS, APART, BIN = 40_000, 1.5, 3.0

#: Fraction of water atoms above which a structure has its solvent; files of crystals have less.
SOLVATED = 1 / 3


def filled_fraction(structure: Structure) -> tuple[float, bool]:
    """Return the filled fraction of a structure's periodic cell, and whether the atoms span the cell along an axis.

    Raises
    ------
    ValueError
        For a structure without a cell.
    """
    from scipy.spatial import cKDTree

    cell, positions = structure.cell, structure.positions
    if cell is None:
        raise ValueError("there is no cell")
    if not len(positions) > THIN * cell.volume:
        return 0.0, False
    lengths = np.linalg.norm(cell.vectors, axis=1)
    bins = np.maximum(1, lengths // BIN).astype(int)
    if bins.prod() <= 4 * len(positions):
        fractions = cell.fractional(positions)
        index = ((fractions - np.floor(fractions)) * bins).astype(int) % bins
        occupied = np.count_nonzero(np.bincount(np.ravel_multi_index(tuple(index.T), tuple(bins)))) / bins.prod()
        if occupied >= LEAST:
            return float(occupied), True
    apart = max(APART, float(cell.volume / POINTS) ** (1 / 3))
    while (counts := np.maximum(1, np.ceil(lengths / apart)).astype(int)).prod() > 8 * POINTS:  # a very flat cell
        apart *= 1.5
    points = np.stack(np.meshgrid(*((np.arange(n) + 0.5) / n for n in counts), indexing="ij"), -1) @ cell.vectors
    sample = positions[:: 1 + len(positions) // 2000]
    nearest = cKDTree(positions).query(sample, k=2)[0][:, 1] if len(positions) > 1 else np.zeros(1)
    reach = max(REACH, NEIGHBOURS * float(np.median(nearest)))
    low, high = points.reshape(-1, 3).min(0) - reach, points.reshape(-1, 3).max(0) + reach
    images = cell.images_in_box(positions, low, high)[0]
    near = np.isfinite(cKDTree(images).query(points, distance_upper_bound=reach, workers=-1)[0])
    spans = any(near.any(axis=tuple({0, 1, 2} - {axis})).all() for axis in range(3))
    return float(near.mean()), spans


def partial_fraction(structure: Structure) -> float | None:
    """Return the filled fraction of a structure's cell if the structure is only a part of its content, else None.

    It is a part if it fills less than :data:`LEAST`, unless it has water and spans the cell along an axis, like a slab
    with a vacuum above it.
    """
    if len(structure) < FEWEST or (structure.cell is not None and np.abs(structure.cell.vectors).max() > HUGE):
        return None
    part, spans = filled_fraction(structure)
    return None if part >= LEAST or (spans and float(is_water(structure).mean()) > SOLVATED) else part
