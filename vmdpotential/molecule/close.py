"""Pairs of close atoms, also across the faces of a periodic cell."""

from __future__ import annotations

import numpy as np

from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Floats, Integers


def close_pairs(positions: Floats, reach: float, cell: Cell | None = None) -> tuple[Integers, Floats]:
    """Return the pairs of atoms (P, 2) at distances up to `reach`, A, and these distances (P,), of the nearest images.

    Parameters
    ----------
    positions : (N, 3) float64, A
    reach : float, A
        Less than half of the cell.
    cell : Cell, optional
        A periodic cell. That of a crystal, whose images are copies by symmetry as well, is ignored.
    """
    from scipy.spatial import cKDTree

    count = len(positions)
    if cell is None or not cell.whole:
        pairs = cKDTree(positions).query_pairs(reach, output_type="ndarray").astype(np.int64)
        return pairs, np.linalg.norm(positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1)
    inside = cell.wrap(positions)
    fraction = cell.fractional(inside)
    margin = reach * np.linalg.norm(np.linalg.inv(cell.vectors), axis=0)  # in fractions of the cell
    near = [fraction > 1 - margin, np.ones_like(fraction, bool), fraction < margin]
    places, owners = [inside], [np.arange(count)]
    for step in np.indices((3, 3, 3)).reshape(3, -1).T[14:] - 1:  # one of each pair of opposite directions
        rows = np.flatnonzero(np.all([near[step[axis] + 1][:, axis] for axis in range(3)], axis=0))
        places.append(inside[rows] + step @ cell.vectors)
        owners.append(rows)
    everywhere, owner = np.concatenate(places), np.concatenate(owners)
    pairs = cKDTree(everywhere).query_pairs(reach, output_type="ndarray").astype(np.int64)
    pairs = np.sort(owner[pairs[pairs.min(1) < count]], axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return pairs, np.linalg.norm(cell.minimum_image(positions[pairs[:, 0]] - positions[pairs[:, 1]]), axis=1)
