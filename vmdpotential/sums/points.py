"""Sums at arbitrary points to a tolerance: the potential, fields, energies, forces, and the energies of ions."""

from __future__ import annotations

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine, with_transforms
from vmdpotential.errors import MemoryPlanError, TaskError
from vmdpotential.grid.lattice import Points
from vmdpotential.interactions import Bound
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.molecule.cell import Cell
from vmdpotential.sums import ChargeStatistics, Plan, Request
from vmdpotential.sums.accuracy import run_to_tolerance
from vmdpotential.sums.choice import fastest_method, methods_for
from vmdpotential.sums.machine import is_worth_waiting
from vmdpotential.sums.result import Errors, HostResult, Result

#: Error of the potential for the first plan, e/A, divided by the tolerance, if the rms of the potential is unknown.
FIRST_ERROR = 0.1


def request_at(points: Floats, positions: Floats, charges: Floats, cell: Cell | None, bound: Bound | None = None, *,
               tolerance: float, field: bool = False, radius: float | None = None) -> Request:
    """Return a request for the potential at points (P, 3), A, with `field` also the field; by default of Coulomb."""
    return Request(Points(points), cell, bound or COULOMB.bind(), ChargeStatistics.of(positions, charges, cell),
                   "double",
                   tolerance, field, radius=radius)


def rms_ratio(difference: Floats, values: Floats, least: float = 0.0) -> float:
    """Return the rms of a difference divided by that of values, or by `least` if that is larger; 0 without difference.

    A few points near atoms contribute most of a mean square. Values should therefore be those of all points, even if
    differences are known at a sample only.
    """
    error, rms = float(np.sqrt(np.mean(np.square(difference)))), float(np.sqrt(np.mean(np.square(values))))
    rms = max(rms, least)
    return error / rms if rms > 0 else 0.0 if error == 0 else np.inf


def sum_at(request: Request, positions: Floats, charges: Floats, engine: Engine,
           method: str = "auto") -> tuple[Plan | None, Result, Errors | None]:
    """Return a plan, the sum at points to the request's tolerance, and its errors; None if the sum is exact.

    There is no plan without points or charges.

    Parameters
    ----------
    request : Request
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
    if not request.target.size or not charges.any():
        return None, HostResult(np.zeros((4 if request.field else 1, request.target.size))), None
    engine, methods = with_transforms(engine), methods_for(request, method)
    chosen, planned, exact = fastest_method(methods, request, positions, charges, engine)
    try:
        return run_to_tolerance(chosen, planned, positions, charges, exact, engine)
    except TaskError as error:  # no mesh keeps the tolerance, or fits into memory
        exactly = [each for each in methods if each.exact]
        if method != "auto" or exact is None or not exactly:
            raise
        slower = fastest_method(exactly, request, positions, charges, engine)[0]
        if isinstance(error, MemoryPlanError) and not is_worth_waiting(
                slower.require(request, engine).seconds, chosen.require(planned, engine).seconds, engine):
            raise
    return run_to_tolerance(slower, request, positions, charges, None, engine)
