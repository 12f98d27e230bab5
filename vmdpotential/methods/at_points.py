"""Sums at arbitrary points: the cheapest mesh for an error, the exact sum where that takes less time, and the error.

One plan serves the potential at points, fields, energies, forces and ions. The mesh sum is that of
:mod:`vmdpotential.methods.pme`, in double precision: points take their values from the mesh by B-splines, and the pairs
within the split radius are summed one by one. Its time is proportional to atoms and points. The split radius is the
cheapest one, or that of a cutoff which other pair terms have too, so that one pass over the pairs sums all of them; a
mesh for so long a radius is coarse, and its transforms take less time than spreading the charges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines import Engine, with_transforms
from vmdpotential.engines.costs import AT_POINTS as COSTS
from vmdpotential.errors import InputError, TaskError
from vmdpotential.grid.lattice import Box, Lattice
from vmdpotential.interactions import Bound
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.methods import Charges
from vmdpotential.methods.accuracy import SURE
from vmdpotential.methods.costs import ORDERS, RATIOS, choices
from vmdpotential.methods.pme import MARGIN, split_of
from vmdpotential.methods.reference import full_potential
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.coulomb import Splitting
from vmdpotential.splitting.mesh import Mesh, Split, around, over_cell
from vmdpotential.splitting.screened import Screened

Floats = NDArray[np.float64]
T = TypeVar("T")

#: Points at which the error is measured.
POINTS = 200

#: Plans that are tried at most.
TRIED = 6

#: Errors are measured against a plan of the same radius whose error should be so many times less. Its splitting is its
#: own: what a splitting that is made for a coarse mesh leaves out would be missed with a finer mesh alone.
BETTER = 20.0
#: Where no mesh is so exact, at least so many times less, by which a measured error may be too small by a third.
LEAST_BETTER = 3.0

#: Split radii over mesh spacings that are tried where the radius is given, in addition to those of all meshes.
LARGER = tuple(10.5 + 0.5 * n for n in range(20))

#: Error of the potential, e/A, that a plan begins with where no rms of the potential is known, over the tolerance.
START = 0.1


@dataclass(frozen=True, eq=False)
class PointPlan:
    """A splitting, and the mesh that its smooth part needs, for one frame after another.

    Parameters
    ----------
    spacing : float, A
        Of the mesh, at most.
    order : int
        Of its B-splines.
    splitting : Splitting or Screened
        The same for all frames, whose meshes are as fine or a little finer.
    seconds : float
        What a frame should take.
    error : float, e/A
        Expected of the potential.
    """

    spacing: float
    order: int
    splitting: Splitting | Screened
    seconds: float
    error: float

    def mesh(self, points: Floats, positions: Floats, cell: Cell | None) -> Mesh:
        """Return the mesh for charges at positions (N, 3), A, and points (P, 3), A, of a frame.

        Raises
        ------
        MemoryPlanError
            When it does not fit into memory.
        """
        size = _nodes(_extents(points, positions, cell), self.spacing, self.order, cell)
        memory.require(int(30 * size + 200 * (len(positions) + len(points))), f"a mesh of {size:.3g} points",
                       "use a larger {tolerance}, or correct atoms and points that are far away")
        split = partial(_given, self.splitting)
        if cell is not None:
            return over_cell(cell, self.spacing, self.order, self.splitting.radius / self.spacing, split)
        nx, ny, nz = (int(n) + 1 for n in np.ceil(np.ptp(points, axis=0) / self.spacing))
        lattice = Lattice(points.min(0), np.full(3, self.spacing), (nx, ny, nz))
        return around(lattice, Box.around(positions), self.spacing, self.order, self.splitting.radius / self.spacing,
                      split)


def _given(splitting: Splitting | Screened, *_: float) -> tuple[Splitting | Screened, float]:
    return splitting, 0.0


def _extents(points: Floats, positions: Floats, cell: Cell | None) -> Floats:
    """Return the lengths (3,) of what a mesh covers, A."""
    if cell is not None:
        lengths: Floats = np.linalg.norm(cell.vectors, axis=1)
        return lengths
    extents: Floats = (np.maximum(points.max(0), positions.max(0)) - np.minimum(points.min(0), positions.min(0)))
    return extents


def _nodes(extents: Floats, spacing: float, order: int, cell: Cell | None) -> float:
    """Return the points of the Fourier transform."""
    return float(np.prod(2 * (extents / spacing + order) if cell is None else extents / spacing + 1))


def plan(error: float, points: Floats, positions: Floats, charges: Floats, cell: Cell | None,
         bound: Bound | None = None, radius: float | None = None) -> PointPlan:
    """Return the cheapest plan for an error.

    Parameters
    ----------
    error : float, e/A
        As predicted for charges without correlation; those of molecules may give twice as much.
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    cell : Cell or None
    bound : Bound, optional
        One that ``pme`` sums; coulomb unless given.
    radius : float, A, optional
        The split radius, where the pairs within it are summed elsewhere; the cheapest one unless given.

    Raises
    ------
    TaskError
        When no mesh is good enough.
    """
    extents, statistics = _extents(points, positions, cell), Charges.of(positions, charges, cell)
    node = COSTS.node_open if cell is None else COSTS.node_periodic
    split = split_of(bound or COULOMB.bind())

    def seconds(spacing: float, ratio: float, order: int) -> float:
        within = 0.0 if radius is not None else (
            len(positions) / statistics.volume * 4 / 3 * np.pi * (ratio * spacing) ** 3)
        nodes_used = order**3 * (COSTS.spread * len(positions) + COSTS.gather * len(points))
        return float(COSTS.fixed + COSTS.point * len(points) + node * _nodes(extents, spacing, order, cell)
                     + COSTS.near * len(points) * within + nodes_used)

    goal = error / statistics.density if statistics.density > 0 else np.inf
    found = choices(goal, split) if radius is None else _of_radius(radius, goal, split)
    best = min(((seconds(*choice), *choice) for choice in found), default=None)
    if best is None:
        raise TaskError("no mesh reaches the tolerance", "use a larger {tolerance}" + (
            ", or a longer {cutoff}" if radius is not None else ""), parameter="tolerance")
    time, spacing, ratio, order = best
    splitting, expected = split(radius or ratio * spacing, spacing, order)
    assert isinstance(splitting, Splitting | Screened)
    return PointPlan(spacing, order, splitting, time, expected * statistics.density)


def _of_radius(radius: float, error: float, split: Split) -> Iterator[tuple[float, float, int]]:
    """Yield what :func:`vmdpotential.methods.costs.choices` yields, for one split radius (A)."""
    for order in ORDERS:
        ratio = next((r for r in (*RATIOS, *LARGER) if split(radius, radius / r, order)[1] <= error), None)
        if ratio is not None:
            yield radius / ratio, ratio, order


def better_than(planned: PointPlan, points: Floats, positions: Floats, charges: Floats, cell: Cell | None,
                bound: Bound | None = None) -> PointPlan:
    """Return a plan of the same radius, to measure an error: :data:`BETTER` times as exact, or what there is.

    Raises
    ------
    TaskError
        When no mesh is at least :data:`LEAST_BETTER` times as exact.
    """
    better = BETTER
    while True:
        try:
            return plan(planned.error / better, points, positions, charges, cell, bound, planned.splitting.radius)
        except TaskError:
            if better <= LEAST_BETTER:
                raise
        better = max(better / 2, LEAST_BETTER)


def relative(difference: Floats, values: Floats, least: float = 0.0) -> float:
    """Return the rms of a difference over that of values, or over `least` where that is more; 0 where there is none."""
    error, rms = float(np.sqrt(np.mean(np.square(difference)))), float(np.sqrt(np.mean(np.square(values))))
    rms = max(rms, least)
    return error / rms if rms > 0 else 0.0 if error == 0 else np.inf


def until_within(tolerance: float, error: float, attempt: Callable[[float], tuple[T, float]]) -> tuple[T, float]:
    """Return what is within a tolerance, and its relative error, by plans for smaller and smaller errors.

    Parameters
    ----------
    tolerance : float
    error : float, e/A
        Of the first plan.
    attempt : callable
        Makes what is planned for an error, and measures its relative error.

    Raises
    ------
    TaskError
        When the tolerance cannot be kept.
    InputError
        For charges so large that values overflow.
    """
    for tried in range(1, TRIED + 1):
        result, measured = attempt(error)
        if not np.isfinite(measured):
            raise InputError("charges are too large for a mesh; correct them")
        if measured <= (SURE if tried < TRIED else 1.0) * tolerance:
            return result, measured
        error /= min(max(1.5 * measured / tolerance, 2.0), 20.0)  # orders and radii are few: a step may be none
    raise TaskError(f"the method pme reached {measured:.1e} here", "use a larger {tolerance}", parameter="tolerance",
                    value=f"{tolerance:g}")


def to_tolerance(tolerance: float, points: Floats, positions: Floats, charges: Floats, cell: Cell | None,
                 engine: Engine, method: str = "auto", bound: Bound | None = None) -> tuple[Floats, float | None]:
    """Return the full potential at points to a relative error, which is measured at 200 of the points.

    Parameters
    ----------
    tolerance : float
        Root mean square error over that of the potential at the points.
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    cell : Cell or None
        Periodic boundary where given (conducting surroundings, a background that neutralises the cell,
        so that the mean of the potential is zero), open otherwise.
    engine : Engine
        The CPU's takes its place for a mesh where it has no transforms.
    method : str
        ``direct`` (exact: all pairs, or Ewald's sum), ``pme``, or ``auto``, the faster of both.
    bound : Bound, optional
        coulomb, or screened_coulomb, which has no background; coulomb unless given.

    Returns
    -------
    values : (P,) float64, e/A
        An atom nearer than 0.01 A counts at that distance.
    error : float or None
        Measured, over the rms of the potential; None where the sum is exact.

    Raises
    ------
    TaskError
        When the mesh of ``pme`` cannot keep the tolerance.
    MemoryPlanError
        When it does not fit into memory.
    """
    if not len(points) or not charges.any():
        return np.zeros(len(points)), None

    def exactly(chosen: Floats) -> Floats:
        return full_potential(chosen, positions, charges, cell, engine, interaction=bound)

    if method == "direct" or (method == "auto" and len(points) <= POINTS):
        return exactly(points), None
    rows = np.random.default_rng(2009).choice(len(points), min(POINTS, len(points)), replace=False)
    exact = exactly(points[rows])
    rms = float(np.sqrt(np.mean(exact**2)))

    def attempt(error: float) -> tuple[Floats, float]:
        planned = plan(error, points, positions, charges, cell, bound)
        if method == "auto" and planned.seconds >= direct_seconds(len(points), len(positions), cell):
            raise TaskError("the exact sum takes less time")
        values = by_mesh(planned, points, positions, charges, cell, engine)
        return values, relative(values[rows] - exact, exact)

    try:
        return until_within(tolerance, tolerance * rms / MARGIN, attempt)
    except TaskError:  # no mesh is so good, or it takes longer
        if method == "pme":
            raise
    return exactly(points), None


def by_mesh(planned: PointPlan, points: Floats, positions: Floats, charges: Floats, cell: Cell | None,
            engine: Engine) -> Floats:
    """Return the potential (P,), e/A, by a plan."""
    mesh = planned.mesh(points, positions, cell)
    return with_transforms(engine).prepare_points(mesh, True).at(points, positions, charges, False)[0]


def direct_seconds(points: int, atoms: int, cell: Cell | None) -> float:
    """Return the time of the exact sum: all pairs, or Ewald's sum."""
    return COSTS.pair * points * atoms + (0.0 if cell is None else COSTS.waves * (points + atoms))
