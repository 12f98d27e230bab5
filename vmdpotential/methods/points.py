"""Sums at arbitrary points, by the fastest method that keeps the tolerance, with measured errors.

They give the potential at points, fields, energies, forces, and the energies of ions. A request whose target is
:class:`~vmdpotential.methods.Points` is planned by the fastest of all registered methods, those of other packages
included. The error is measured at some of the points against an exact sum: over all pairs, or Ewald's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vmdpotential import registry
from vmdpotential.engines import Engine, with_transforms
from vmdpotential.errors import MemoryPlanError, TaskError
from vmdpotential.grid.lattice import Box
from vmdpotential.interactions import Bound
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.methods import Charges, Method, PointPlan, Points, Refusal, Request, ewald
from vmdpotential.methods.machine import is_worth_waiting
from vmdpotential.methods.refinement import Attempt, refine_to_tolerance
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.long_range import long_range

Floats = NDArray[np.float64]

#: Number of points at which the error is measured.
MEASURED = 200

#: Error of the potential for the first plan, e/A, divided by the tolerance, if the rms of the potential is unknown.
START = 0.1

#: Neglected part of the sum over waves against which errors are measured, divided by the tolerance.
MEASURING = 1e-2

#: Tolerance of an exact sum over pairs of a decaying interaction, divided by that of the request.
FINER_BY = 1e-3


@dataclass(frozen=True, eq=False)
class PointValues:
    """Potential and field at points.

    Parameters
    ----------
    potential : (P,) float64, e/A
    field : (P, 3) float64 or None, e/A^2
    error : float or None
        Measured rms error relative to the rms, of potential or field, whichever is larger; None if the sum is exact.
    method : str
    """

    potential: Floats
    field: Floats | None
    error: float | None
    method: str


def request_at(points: Floats, positions: Floats, charges: Floats, cell: Cell | None, bound: Bound | None = None, *,
               tolerance: float, field: bool = False, radius: float | None = None) -> Request:
    """Return a request for the potential at points (P, 3), A, with `field` also the field; by default of Coulomb."""
    return Request(Points(len(points), Box.around(points), radius), cell, bound or COULOMB.bind(),
                   Charges.of(positions, charges, cell), "double", tolerance, field)


def plan_points(request: Request, engine: Engine, method: str = "auto") -> PointPlan:
    """Return the plan of the fastest method, or of a method by its name.

    Raises
    ------
    VmdpotentialError
        When the method, or every method, cannot compute the request.
    """
    engine = with_transforms(engine)
    names = registry.available("method") if method == "auto" else [method]
    methods: list[Method] = [registry.get("method", name) for name in names]
    if method == "auto":
        methods = [each for each in methods if each.superposes and "points" in each.targets]
    refused: list[tuple[str, Refusal]] = []
    best: tuple[float, Method] | None = None
    for each in methods:
        estimate = each.refusal(request) or each.estimate(request, engine)
        if isinstance(estimate, Refusal):
            refused.append((each.name, estimate))
        elif best is None or estimate.seconds < best[0]:
            best = estimate.seconds, each
    if best is None:
        # report a method that could compute it with a larger tolerance, rather than one that cannot at all
        name, why = next(((name, why) for name, why in refused if why.error is TaskError), refused[0])
        raise why.as_error(name)
    return best[1].plan_points(request, engine)


def exact_plan(request: Request, engine: Engine, accuracy: float = ewald.ACCURACY) -> PointPlan:
    """Return the plan of the exact sum: over all pairs in an open boundary, Ewald's in a periodic one."""
    request = replace(request, target=replace(request.points, radius=None))
    if request.cell is not None and long_range(request.interaction) is not None:
        return replace(ewald.METHOD.plan_points(request, engine), accuracy=accuracy)
    return plan_points(replace(request, tolerance=FINER_BY * request.tolerance), engine, "direct")


def sample(count: int) -> NDArray[np.int64]:
    """Return the indices of the points at which the error is measured, :data:`MEASURED` or all, increasing."""
    if count <= MEASURED:
        return np.arange(count)
    return np.sort(np.random.default_rng(2009).choice(count, MEASURED, replace=False))


def exact_values(plan: PointPlan, request: Request, points: Floats, positions: Floats, charges: Floats,
                 cell: Cell | None, engine: Engine) -> tuple[Floats, Floats | None, float]:
    """Return the exact potential and field for a plan at points, and the potential of a unit charge at itself, 1/A.

    The short-range part is subtracted if the plan leaves it to be summed elsewhere. The potential of a charge at itself
    depends on the soft core and differs between sums, which must be compared without it.

    Parameters
    ----------
    plan : PointPlan
    request : Request
        The request of the plan.
    points, positions, charges, cell
        Points and charges of a frame.
    engine : Engine
    """
    target = replace(request.points, count=len(points))
    finer = exact_plan(replace(request, target=target), engine, MEASURING * request.tolerance)
    exact = finer.prepare(points, positions, cell)
    (potential, field), own = exact.at(points, positions, charges, request.field), exact.self_potential
    if plan.short is not None:
        pairs = PointPlan("direct", engine.name, plan.estimate, plan.short).prepare(points, positions, cell)
        elsewhere, slope = pairs.at(points, positions, charges, request.field)
        potential, own = potential - elsewhere, own - pairs.self_potential
        if field is not None and slope is not None:
            field = field - slope
    return potential, field, own


def relative(difference: Floats, values: Floats, least: float = 0.0) -> float:
    """Return the rms of a difference divided by that of values, or by `least` if that is larger; 0 without difference.

    A few points near atoms contribute most of a mean square. Values should therefore be those of all points, even if
    differences are known at a sample only.
    """
    error, rms = float(np.sqrt(np.mean(np.square(difference)))), float(np.sqrt(np.mean(np.square(values))))
    rms = max(rms, least)
    return error / rms if rms > 0 else 0.0 if error == 0 else np.inf


def _in_solution(request: Request, points: Floats, positions: Floats, charges: Floats, engine: Engine,
                 method: str) -> PointValues:
    """Return the values of a method that includes the solution around the charges, and the error that it states."""
    plan = plan_points(request, engine, method)
    prepared = plan.prepare(points, positions, request.cell)
    potential, field = prepared.at(points, positions, charges, request.field)
    errors = plan.measured(prepared)
    if errors is None:
        return PointValues(potential, field, None, plan.method)
    sizes = [float(np.sqrt(np.mean(each**2))) for each in (potential, field) if each is not None]
    return PointValues(potential, field, max(error / size if size > 0 else 0.0 for error, size in zip(
        errors, sizes, strict=False)), plan.method)


def sum_at(request: Request, points: Floats, positions: Floats, charges: Floats, engine: Engine,
           method: str = "auto") -> PointValues:
    """Return the sum at points to the request's tolerance, and the error measured at 200 of them.

    Parameters
    ----------
    request : Request
        The request, whose target is these points.
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    engine : Engine
        If it has no Fourier transforms, the CPU engine is used for meshes.
    method : str
        ``auto``, or the name of a method.

    Raises
    ------
    TaskError
        When the method cannot keep the tolerance.
    MemoryPlanError
        When a mesh does not fit into memory.
    """
    if not len(points) or not charges.any():
        return PointValues(np.zeros(len(points)), np.zeros((len(points), 3)) if request.field else None, None, "direct")

    def run(plan: PointPlan) -> tuple[Floats, Floats | None]:
        return plan.prepare(points, positions, request.cell).at(points, positions, charges, request.field)

    if request.solution is not None:
        return _in_solution(request, points, positions, charges, engine, method)
    few = method == "auto" and len(points) <= MEASURED
    plan = exact_plan(request, engine) if few else plan_points(request, engine, method)
    if few or (plan.error is None and method != "auto"):
        return PointValues(*run(plan), None, plan.method)
    rows = sample(len(points))
    exact, slope, _ = exact_values(plan, request, points[rows], positions, charges, request.cell, engine)
    rms = float(np.sqrt(np.mean(exact**2)))

    def attempt(error: float) -> Attempt[PointValues]:
        made = plan_points(request.with_error(error), engine, method)
        potential, field = run(made)
        if made.error is None:
            return Attempt(PointValues(potential, field, None, made.method), 0.0, made)
        errors = [relative(potential[rows] - exact, potential)]
        if field is not None and slope is not None:
            errors.append(relative(field[rows] - slope, field))
        return Attempt(PointValues(potential, field, max(errors), made.method), max(errors), made)

    try:
        return refine_to_tolerance(request.tolerance, request.tolerance * rms, attempt)
    except TaskError as error:  # no mesh keeps the tolerance, or fits into memory
        if method != "auto":
            raise
        quickest, plan = plan, exact_plan(request, engine)
        if isinstance(error, MemoryPlanError) and not is_worth_waiting(
                plan.estimate.seconds, quickest.estimate.seconds, engine):
            raise
    return PointValues(*run(plan), None, plan.method)
