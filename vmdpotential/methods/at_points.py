"""The full potential at arbitrary points: pair by pair, or by a mesh where that is sooner.

The mesh sum is that of :mod:`vmdpotential.methods.pme`, in double precision; points take their values
from the mesh by B-splines, and the pairs within the split radius one by one. Its time is proportional
to atoms and points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines import Engine
from vmdpotential.errors import TaskError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.methods.accuracy import POINTS, Attempts
from vmdpotential.methods.costs import choices
from vmdpotential.methods.pme import shared_volume
from vmdpotential.methods.reference import full_potential
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.mesh import Mesh, around, over_cell

Floats = NDArray[np.float64]

#: Seconds of a thread of the CPU engine for each part of the work, measured on an EPYC (Zen 5) processor; only
#: their ratios matter: a mesh sum whatever its size, a point, a node that an atom spreads to, and one that a point
#: takes from, a point of the Fourier transform, and a pair within the split radius,
FIXED, POINT, SPREAD, GATHER, NODE_OPEN, NODE_PERIODIC, NEAR = 0.01, 3.5e-7, 1.3e-9, 2e-9, 1.2e-8, 4e-8, 1.7e-8
#: a pair of a direct sum, and an atom or point of Ewald's sum over waves.
PAIR, WAVES = 1.5e-9, 4e-6


def within(error: float, points: Floats, positions: Floats, charges: Floats, cell: Cell | None,
           engine: Engine) -> Floats:
    """Return the full potential at points to a root mean square error, the fastest way.

    Parameters
    ----------
    error : float, e/A
        As predicted for charges without correlation; those of molecules may give twice as much.
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    cell : Cell or None
        Periodic boundary where given (conducting surroundings, a background that neutralises the cell,
        so that the mean of the potential is zero), open otherwise.
    engine : Engine
        Sums pairs; the mesh is the CPU engine's.

    Returns
    -------
    (P,) float64, e/A
        An atom nearer than 0.01 A counts at that distance.
    """
    if not len(points) or not charges.any():
        return np.zeros(len(points))
    try:
        mesh, seconds = plan(error, points, positions, charges, cell)
    except TaskError:  # no mesh is so good, or so large
        seconds = np.inf
    if seconds < direct_seconds(len(points), len(positions), cell):
        return _by_mesh(points, positions, charges, mesh)
    return full_potential(points, positions, charges, cell, engine)


def to_tolerance(tolerance: float, points: Floats, positions: Floats, charges: Floats, cell: Cell | None,
                 engine: Engine, method: str = "auto") -> Floats:
    """Return the full potential at points to a relative error, which is measured at 200 of the points.

    Parameters
    ----------
    tolerance : float
        Root mean square error over that of the potential at the points.
    method : str
        ``direct`` (exact: all pairs, or Ewald's sum), ``pme``, or ``auto``, the one that is sooner.

    Raises
    ------
    TaskError
        When the mesh cannot keep the tolerance.
    MemoryPlanError
        When it does not fit into memory.
    """
    if not len(points) or not charges.any():
        return np.zeros(len(points))
    if method == "direct" or (method == "auto" and len(points) <= POINTS):
        return full_potential(points, positions, charges, cell, engine)
    rows = np.random.default_rng(2009).choice(len(points), min(POINTS, len(points)), replace=False)
    exact = full_potential(points[rows], positions, charges, cell, engine)
    rms = float(np.sqrt(np.mean(exact**2)))
    attempts = Attempts("pme", tolerance, "double")
    while True:
        try:
            mesh, seconds = plan(attempts.target(rms), points, positions, charges, cell)
        except TaskError:
            if method == "pme":
                raise
            seconds = np.inf
        if method == "auto" and seconds >= direct_seconds(len(points), len(positions), cell):
            return full_potential(points, positions, charges, cell, engine)
        values = _by_mesh(points, positions, charges, mesh)
        if attempts.enough(float(np.sqrt(np.mean((values[rows] - exact) ** 2))) / rms):
            return values


def plan(error: float, points: Floats, positions: Floats, charges: Floats, cell: Cell | None) -> tuple[Mesh, float]:
    """Return the cheapest mesh for an error (e/A), and its seconds.

    Raises
    ------
    TaskError
        When no mesh is good enough.
    MemoryPlanError
        When it does not fit into memory.
    """
    if cell is None:
        low, high = np.minimum(points.min(0), positions.min(0)), np.maximum(points.max(0), positions.max(0))
        extents = high - low
    else:
        extents = np.linalg.norm(cell.vectors, axis=1)
    volume = shared_volume(positions, cell)

    def seconds(spacing: float, ratio: float, order: int) -> float:
        nodes = extents / spacing
        transform = NODE_OPEN * np.prod(2 * (nodes + order)) if cell is None else NODE_PERIODIC * np.prod(nodes + 1)
        pairs = len(points) * len(positions) / volume * 4 / 3 * np.pi * (ratio * spacing) ** 3
        nodes_used = order**3 * (SPREAD * len(positions) + GATHER * len(points))
        return float(FIXED + POINT * len(points) + transform + NEAR * pairs + nodes_used)

    charge = np.sqrt(np.sum(charges**2) / volume)
    best = min(((seconds(*choice), *choice) for choice in choices(error / charge)), default=None)
    if best is None:
        raise TaskError("--tolerance: no mesh reaches it; use a larger one, or --method direct")
    time, spacing, ratio, order = best
    size = np.prod(2 * (extents / spacing + order)) if cell is None else np.prod(extents / spacing + 1)
    memory.require(int(24 * size + 200 * (len(positions) + len(points))), f"a mesh of {size:.3g} points",
                   "use a larger --tolerance, or points nearer to the atoms")
    if cell is not None:
        return over_cell(cell, spacing, order, ratio), time
    counts = [int(n) for n in np.ceil(np.ptp(points, axis=0) / spacing)]
    box = Lattice(points.min(0), np.full(3, spacing), (counts[0] + 1, counts[1] + 1, counts[2] + 1))
    return around(box, positions, spacing, order, ratio), time


def _by_mesh(points: Floats, positions: Floats, charges: Floats, mesh: Mesh) -> Floats:
    from vmdpotential.engines.cpu import nearby

    return nearby.pme_at_points(points, positions, charges, mesh)


def direct_seconds(points: int, atoms: int, cell: Cell | None) -> float:
    """Return the time of the exact sum: all pairs, or Ewald's sum."""
    return PAIR * points * atoms + (0.0 if cell is None else WAVES * (points + atoms))
