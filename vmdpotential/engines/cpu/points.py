"""Sums at arbitrary points on the CPU, around :mod:`~vmdpotential.engines.cpu.point_kernel`."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import SOFT_CORE
from vmdpotential.engines.cpu import build, threads
from vmdpotential.interactions import Bound
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]


def at_points(points: Floats, positions: Floats, charges: Floats, cell: Cell | None = None,
              interaction: Bound | None = None, nearest: Floats | None = None, field: Floats | None = None) -> Floats:
    """Return the potential of all atoms, each at its nearest image where a cell is given.

    Parameters
    ----------
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    cell : Cell or None
    interaction : Bound
        Coulomb unless given.
    nearest : (P,) float64, optional
        Filled with the distances to the nearest atom, A, unless there is a `field`.
    field : (P, 3) float64, optional
        Filled with the field, e/A^2.

    Returns
    -------
    (P,) float64, e/A
        Exact to rounding (about 1e-13); an atom nearer than 0.01 A counts at that distance, and makes no field.
    """
    bound = interaction or COULOMB.bind()
    scaled = bound.scaled()
    kernel = build.load("point_kernel", program=scaled.program, precision="double", masked=bound.masked,
                        field=field is not None)
    if cell is None:
        basis, inverse, shifts = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((0, 3))
    else:
        basis = np.ascontiguousarray(cell.vectors if cell.orthogonal else cell.reduced)
        inverse = np.ascontiguousarray(np.linalg.inv(basis))
        shifts = np.ascontiguousarray(cell.neighbours[1:])
    points = np.asarray(points, np.float64).reshape(-1, 3)
    out, least = np.zeros((1 if field is None else 4, len(points))), np.full(len(points), np.inf)
    columns = [np.ascontiguousarray(a[:, d]) for a in (points, np.asarray(positions, np.float64)) for d in range(3)]
    fixed = (*columns, np.ascontiguousarray(charges, np.float64), basis, inverse, shifts,
             np.array(scaled.values, np.float64), SOFT_CORE**2, (scaled.cutoff or 0.0) ** 2)
    # a million pairs a task, but something to do for every thread
    if field is None:
        run, rows, size = partial(kernel.run, *fixed, out[0], least), -(-len(points) // kernel.BLOCK), kernel.BLOCK
    else:
        run, rows, size = partial(kernel.run_field, *fixed, out), len(points), 1
    grain = max(1, min(10**6 // (size * max(1, len(positions))), rows // threads.count()))
    threads.run(run, rows, "potential at points", grain)
    out *= scaled.factor
    if field is not None:
        field[:] = -out[1:].T
    if nearest is not None:
        np.sqrt(least, out=nearest)
    return out[0]
