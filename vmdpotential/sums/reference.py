"""References for sums: the full potential at points in float64, and the definition as a plain sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Points
from vmdpotential.interactions import SOFT_CORE, Bound, coulomb
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.long_range import long_range
from vmdpotential.sums import Plan, Request, direct, ewald
from vmdpotential.sums.ewald import EWALD_ACCURACY, ewald_sum
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum
from vmdpotential.sums.result import Result

#: Neglected part of the sum over waves against which errors at points are measured, divided by the tolerance.
NEGLECTED_WAVES = 1e-2

#: Tolerance of an exact sum over pairs of a decaying interaction, divided by that of the request.
EXACT_TOLERANCE = 1e-3


def full_potential(points: Floats, positions: Floats, charges: Floats, cell: Cell | None, engine: Engine,
                   interaction: Bound | None = None, accuracy: float = EWALD_ACCURACY) -> Result:
    """Return the potential of all atoms, and of all their periodic images, at points.

    Parameters
    ----------
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    cell : Cell or None
        The cell of a periodic boundary; None for an open one.
    engine : Engine
    interaction : Bound, optional
        An interaction that declares a splitting; coulomb unless given.
    accuracy : float
        Accuracy of the sum over waves in a periodic cell, relative to the rms potential of the points; 1e-9 at best.

    Returns
    -------
    Result
        The potential at the points, and the distances to the nearest atom. Atoms nearer than 0.01 A contribute as at
        that distance.

    Raises
    ------
    MemoryPlanError
        When the waves of a very thin cell do not fit into memory.
    """
    bound = interaction or coulomb.INTERACTION.bind()
    if cell is None:
        return prepare_sum(engine, PotentialSum(Points(points), bound, distances=True)).run(positions, charges)
    return ewald_sum(bound, cell, Points(points), len(positions), engine, accuracy, distances=True).run(
        positions, charges)


def exact_plan(request: Request, engine: Engine, accuracy: float = EWALD_ACCURACY) -> Plan:
    """Return the plan of the exact sum: over all pairs in an open boundary, Ewald's in a periodic one."""
    request = replace(request, radius=None)
    if request.cell is not None and long_range(request.interaction) is not None:
        return replace(ewald.METHOD.plan(request, engine), accuracy=accuracy)
    return direct.METHOD.plan(replace(request, tolerance=EXACT_TOLERANCE * request.tolerance), engine)


def exact_values(plan: Plan, request: Request, target: Points, positions: Floats, charges: Floats,
                 engine: Engine) -> tuple[Floats, Floats | None, float]:
    """Return the exact potential (P,) and field (3, P) for a plan, and the potential of a unit charge at itself, 1/A.

    The short-range part is subtracted if the plan leaves it to be summed elsewhere. The potential of a charge at itself
    depends on the soft core and differs between sums, which must be compared without it.

    Parameters
    ----------
    plan : Plan
    request : Request
        The request of the plan.
    target : Points
    positions, charges : (N, 3), A, and (N,), e
    engine : Engine
    """
    finer = exact_plan(replace(request, target=target), engine, NEGLECTED_WAVES * request.tolerance)
    exact = finer.prepare(target, positions, request.cell)
    sums = [(1.0, exact)]
    if plan.short is not None:
        shorter = PotentialSum(target, plan.short, request.cell, "double", request.field)
        sums.append((-1.0, prepare_sum(engine, shorter)))
    results = [(sign, each.run(positions, charges)) for sign, each in sums]
    fields = [sign * field for sign, result in results if (field := result.field()) is not None]
    return (np.sum([sign * result.values() for sign, result in results], 0), np.sum(fields, 0) if fields else None,
            sum(sign * each.self_potential for sign, each in sums))


def definition(points: Floats, positions: Floats, charges: Floats, bound: Bound, cell: Cell | None) -> Floats:
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
