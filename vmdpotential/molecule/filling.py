"""How much of its periodic cell a structure fills: whether the cell is that of all its matter.

A deposited asymmetric unit that was written with the space group P 1, and a molecule whose solvent was taken away, keep
a cell that they fill to a part; the images in it are where no simulation and no crystal has them.
"""

from __future__ import annotations

import numpy as np

from vmdpotential.molecule.selection import is_water
from vmdpotential.molecule.structure import Structure

#: The part of a cell that matter fills at least: liquids, membranes and crystals with their water 0.8 to 1.0; dry
#: asymmetric units of crystals 0.1 to 0.6.
LEAST = 0.65

#: Fewer atoms are a model in the cell that it is meant for, not what is left of a simulation or a crystal.
FEWEST = 100

#: A, a longer cell is a mistake, which is refused where a lattice is laid in it.
HUGE = 1e6

#: Atoms in 1 A^3, fewer than in any matter.
THIN = 1e-4

#: A, from an atom, within which space is filled; or so many times the distance of neighbours, where that is more.
REACH, NEIGHBOURS = 2.5, 1.25

#: Points of a cell that are looked at, A apart at least; and the edge, A, of bins that all have an atom in a liquid.
POINTS, APART, BIN = 40_000, 1.5, 3.0

#: The part of atoms that are of waters, from which on a structure has its solvent; crystals' files have less.
SOLVATED = 1 / 3


def filled(structure: Structure) -> tuple[float, bool]:
    """Return the part of its periodic cell that a structure fills, and whether it reaches through it along an axis.

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
        place = cell.fractional(positions)
        index = ((place - np.floor(place)) * bins).astype(int) % bins
        part = np.count_nonzero(np.bincount(np.ravel_multi_index(tuple(index.T), tuple(bins)))) / bins.prod()
        if part >= LEAST:
            return float(part), True
    apart = max(APART, float(cell.volume / POINTS) ** (1 / 3))
    counts = np.maximum(1, np.ceil(lengths / apart)).astype(int)
    points = np.stack(np.meshgrid(*((np.arange(n) + 0.5) / n for n in counts), indexing="ij"), -1) @ cell.vectors
    sample = positions[:: 1 + len(positions) // 2000]
    own = cKDTree(positions).query(sample, k=2)[0][:, 1] if len(positions) > 1 else np.zeros(1)
    reach = max(REACH, NEIGHBOURS * float(np.median(own)))
    low, high = points.reshape(-1, 3).min(0) - reach, points.reshape(-1, 3).max(0) + reach
    images = cell.images_in_box(positions, low, high)[0]
    near = np.isfinite(cKDTree(images).query(points, distance_upper_bound=reach, workers=-1)[0])
    spans = any(near.any(axis=tuple({0, 1, 2} - {axis})).all() for axis in range(3))
    return float(near.mean()), spans


def is_part(structure: Structure) -> float | None:
    """Return the part of its cell that a structure fills where it is not the cell's whole content, else None.

    A cell that is filled to less than :data:`LEAST` holds a part, unless there is water that reaches through it along
    an axis, such as a slab below a vacuum.
    """
    if len(structure) < FEWEST or (structure.cell is not None and np.abs(structure.cell.vectors).max() > HUGE):
        return None
    part, spans = filled(structure)
    return None if part >= LEAST or (spans and float(is_water(structure).mean()) > SOLVATED) else part
