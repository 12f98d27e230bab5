"""The full potential at arbitrary points: pair by pair, or by a mesh where that is sooner.

The mesh sum is that of :mod:`vmdpotential.methods.pme`, in double precision; points take their values
from the mesh by B-splines, and the pairs within the split radius one by one. Its time is proportional
to atoms and points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines import Engine, with_transforms
from vmdpotential.engines.costs import AT_POINTS as COSTS
from vmdpotential.errors import InputError, TaskError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import Bound
from vmdpotential.methods import Charges
from vmdpotential.methods.accuracy import MOST, SURE
from vmdpotential.methods.costs import choices
from vmdpotential.methods.pme import MARGIN, split_of
from vmdpotential.methods.reference import full_potential
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.coulomb import optimal
from vmdpotential.splitting.mesh import Mesh, around, over_cell

Floats = NDArray[np.float64]

#: Points at which the error is measured.
POINTS = 200


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
        The CPU's takes its place for a mesh where it has no transforms.

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
        return _by_mesh(points, positions, charges, mesh, engine)
    return full_potential(points, positions, charges, cell, engine)


def to_tolerance(tolerance: float, points: Floats, positions: Floats, charges: Floats, cell: Cell | None,
                 engine: Engine, method: str = "auto", bound: Bound | None = None) -> Floats:
    """Return the full potential at points to a relative error, which is measured at 200 of the points.

    Parameters
    ----------
    tolerance : float
        Root mean square error over that of the potential at the points.
    method : str
        ``direct`` (exact: all pairs, or Ewald's sum), ``pme``, or ``auto``, the one that is sooner.
    bound : Bound, optional
        coulomb, or screened_coulomb, which has no background; coulomb unless given.

    Raises
    ------
    TaskError
        When the mesh of ``pme`` cannot keep the tolerance.
    MemoryPlanError
        When it does not fit into memory.
    """
    if not len(points) or not charges.any():
        return np.zeros(len(points))

    def exactly(chosen: Floats) -> Floats:
        return full_potential(chosen, positions, charges, cell, engine, interaction=bound)

    if method == "direct" or (method == "auto" and len(points) <= POINTS):
        return exactly(points)
    rows = np.random.default_rng(2009).choice(len(points), min(POINTS, len(points)), replace=False)
    exact = exactly(points[rows])
    rms = float(np.sqrt(np.mean(exact**2)))
    margin = MARGIN
    for tried in range(1, MOST + 1):
        try:
            mesh, seconds = plan(tolerance * rms / margin, points, positions, charges, cell, bound)
        except TaskError:
            if method == "pme":
                raise
            seconds = np.inf
        if method == "auto" and seconds >= direct_seconds(len(points), len(positions), cell):
            return exactly(points)
        values = _by_mesh(points, positions, charges, mesh, engine)
        error = float(np.sqrt(np.mean((values[rows] - exact) ** 2))) / rms
        if not np.isfinite(error):
            raise InputError("charges are too large for a mesh; correct them")
        if error <= (SURE if tried < MOST else 1.0) * tolerance:
            return values
        margin *= min(1.5 * error / tolerance, 20.0)
    if method == "auto":
        return exactly(points)
    raise TaskError(f"the method pme reached {error:.1e} here", "use a larger {tolerance}, or {method direct}",
                    parameter="tolerance", value=f"{tolerance:g}")


def plan(error: float, points: Floats, positions: Floats, charges: Floats, cell: Cell | None,
         bound: Bound | None = None) -> tuple[Mesh, float]:
    """Return the cheapest mesh for an error (e/A) of an interaction (coulomb unless given), and its seconds.

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
    statistics = Charges.of(positions, charges, cell)
    volume = statistics.volume

    def seconds(spacing: float, ratio: float, order: int) -> float:
        nodes = extents / spacing
        transform = (COSTS.node_open * np.prod(2 * (nodes + order)) if cell is None
                     else COSTS.node_periodic * np.prod(nodes + 1))
        pairs = len(points) * len(positions) / volume * 4 / 3 * np.pi * (ratio * spacing) ** 3
        nodes_used = order**3 * (COSTS.spread * len(positions) + COSTS.gather * len(points))
        return float(COSTS.fixed + COSTS.point * len(points) + transform + COSTS.near * pairs + nodes_used)

    split = optimal if bound is None else split_of(bound)
    best = min(((seconds(*choice), *choice) for choice in choices(error / statistics.density, split)), default=None)
    if best is None:
        raise TaskError("no mesh reaches it", "use a larger one, or {method direct}", parameter="tolerance")
    time, spacing, ratio, order = best
    size = np.prod(2 * (extents / spacing + order)) if cell is None else np.prod(extents / spacing + 1)
    memory.require(int(24 * size + 200 * (len(positions) + len(points))), f"a mesh of {size:.3g} points",
                   "use a larger {tolerance}, or points nearer to the atoms")
    if cell is not None:
        return over_cell(cell, spacing, order, ratio, split), time
    counts = [int(n) for n in np.ceil(np.ptp(points, axis=0) / spacing)]
    box = Lattice(points.min(0), np.full(3, spacing), (counts[0] + 1, counts[1] + 1, counts[2] + 1))
    return around(box, statistics.box, spacing, order, ratio, split), time


def _by_mesh(points: Floats, positions: Floats, charges: Floats, mesh: Mesh, engine: Engine) -> Floats:
    return with_transforms(engine).prepare_points(mesh, True).at(points, positions, charges, False)[0]


def direct_seconds(points: int, atoms: int, cell: Cell | None) -> float:
    """Return the time of the exact sum: all pairs, or Ewald's sum."""
    return COSTS.pair * points * atoms + (0.0 if cell is None else COSTS.waves * (points + atoms))
