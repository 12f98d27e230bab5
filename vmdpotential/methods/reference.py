"""References for sums: the full potential at points in float64, and the definition as a plain sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import SOFT_CORE, Engine, PointSum
from vmdpotential.interactions import Bound, coulomb
from vmdpotential.methods.ewald import ACCURACY, ewald_sum
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]


def full_potential(points: Floats, positions: Floats, charges: Floats, cell: Cell | None, engine: Engine,
                   nearest: Floats | None = None, interaction: Bound | None = None,
                   accuracy: float = ACCURACY) -> Floats:
    """Return the potential of all atoms, and of all their periodic images, at points.

    Parameters
    ----------
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    cell : Cell or None
        The cell of a periodic boundary; None for an open one.
    engine : Engine
    nearest : (P,) float64, optional
        Filled with the distances to the nearest atom, A.
    interaction : Bound, optional
        An interaction that declares a splitting; coulomb unless given.
    accuracy : float
        Accuracy of the sum over waves in a periodic cell, relative to the rms potential of the points; 1e-9 at best.

    Returns
    -------
    (P,) float64, e/A
        Atoms nearer than 0.01 A contribute as at that distance.

    Raises
    ------
    MemoryPlanError
        When the waves of a very thin cell do not fit into memory.
    """
    bound = interaction or coulomb.INTERACTION.bind()
    if cell is None:
        return engine.prepare_points(PointSum(bound)).at(points, positions, charges, False, nearest)[0]
    return ewald_sum(bound, cell, len(points), len(positions), engine, accuracy).at(
        points, positions, charges, False, nearest)[0]


def definition(points: Floats, positions: Floats, charges: Floats,
               bound: Bound, cell: Cell | None) -> Floats:
    """Return the plain sum at points (P, 3) in float64, (P,) e/A; with a cell, over all images within the cutoff."""
    if cell is not None:
        reach = bound.cutoff or 0.0
        positions, index = cell.images_in_box(positions, points.min(0) - reach, points.max(0) + reach)
        charges = charges[index]
    result = np.empty(len(points))
    for n, point in enumerate(points):
        d = positions - point
        r = np.maximum(np.sqrt((d * d).sum(1)), SOFT_CORE)
        result[n] = charges @ bound(r)
    return result
