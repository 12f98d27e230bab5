"""Sums over all atoms at arbitrary points on the CPU, by :mod:`~vmdpotential.engines.cpu.points.point_kernel`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build, threads
from vmdpotential.engines import SOFT_CORE
from vmdpotential.interactions import Bound
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]


def at_points(points: Floats, positions: Floats, charges: Floats, cell: Cell | None, interaction: Bound,
              nearest: Floats | None = None) -> Floats:
    """Return the potential of all atoms, each at its nearest image if there is a cell.

    Parameters
    ----------
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    cell : Cell or None
    interaction : Bound
    nearest : (P,) float64, optional
        Filled with the distances to the nearest atom, A.

    Returns
    -------
    (P,) float64, e/A
        Potential, exact to rounding (about 1e-13). An atom nearer than 0.01 A to a point counts as at that distance.
    """
    scaled = interaction.scaled()
    kernel = build.load("point_kernel", program=scaled.program, precision="double", masked=interaction.masked,
                        field=False)
    if cell is None:
        basis, inverse, shifts = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((0, 3))
    else:
        basis = np.ascontiguousarray(cell.vectors if cell.orthogonal else cell.reduced)
        inverse = np.ascontiguousarray(np.linalg.inv(basis))
        shifts = np.ascontiguousarray(cell.neighbours[1:])
    points = np.asarray(points, np.float64).reshape(-1, 3)
    out, least = np.zeros(len(points)), np.full(len(points), np.inf)
    fixed = (*_columns(points, positions), np.ascontiguousarray(charges, np.float64), basis, inverse, shifts,
             np.array(scaled.values, np.float64), SOFT_CORE**2, (scaled.cutoff or 0.0) ** 2, out, least)
    blocks = -(-len(points) // kernel.BLOCK)
    # a million pairs per task, but at least one task for every thread
    grain = max(1, min(10**6 // (kernel.BLOCK * max(1, len(positions))), blocks // threads.count()))
    threads.run(lambda first, last: kernel.run(*fixed, first, last), blocks, "potential at points", grain)
    out *= scaled.factor
    if nearest is not None:
        np.sqrt(least, out=nearest)
    return out


def field_at_points(points: Floats, positions: Floats, charges: Floats, interaction: Bound) -> tuple[Floats, Floats]:
    """Return the potential (P,), e/A, and field (P, 3), e/A^2, of all atoms, without images.

    Parameters are those of :func:`at_points`. An atom nearer than 0.01 A to a point contributes no field.
    """
    scaled = interaction.scaled()
    kernel = build.load("point_kernel", program=scaled.program, precision="double", masked=False, field=True)
    out = np.zeros((4, len(points)))
    fixed = (*_columns(points, positions), np.ascontiguousarray(charges, np.float64),
             np.array(scaled.values, np.float64), SOFT_CORE**2, out)
    grain = max(1, min(10**6 // max(1, len(positions)), len(points) // threads.count()))
    threads.run(lambda first, last: kernel.run_field(*fixed, first, last), len(points), "field at points", grain)
    out *= scaled.factor
    return out[0], -out[1:].T


def _columns(points: Floats, positions: Floats) -> list[Floats]:
    """Return x, y and z of the points and of the positions as contiguous arrays."""
    return [np.ascontiguousarray(a[:, d]) for a in (points, np.asarray(positions, np.float64)) for d in range(3)]
