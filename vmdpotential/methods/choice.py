"""Choice of the fastest method for a map that keeps a tolerance."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines import Engine
from vmdpotential.methods import Estimate, Method, Refusal, Request, accuracy, check_memory, map_bytes
from vmdpotential.methods.accuracy import Sample
from vmdpotential.methods.machine import is_worth_waiting

#: For sums that take less than the engine's fixed cost times this, no faster method is searched.
SOON = 2.0


def fastest(methods: Iterable[Method], request: Request, positions: NDArray[np.float64], charges: NDArray[np.float64],
            engine: Engine, soon: float = SOON) -> tuple[Method, Request, Sample | None]:
    """Return the method with the least estimated time that keeps the tolerance.

    If the fastest method does not fit into memory, the fastest one that fits is chosen, unless that would take far
    longer (:func:`~vmdpotential.methods.machine.is_worth_waiting`). An exact method that takes less than `soon`
    times the engine's fixed cost is chosen without considering others.

    Returns
    -------
    Method
    Request
        With the error that keeps the tolerance, if the method is not exact.
    Sample or None
        The exact potential at some points, if the method is not exact.

    Raises
    ------
    UsageError
        When no method can compute the request.
    """
    check_memory(request, Estimate(0.0, map_bytes(request)))
    refused: list[tuple[str, Refusal]] = []
    possible: list[tuple[Estimate, Method]] = []
    room = memory.limit()
    exact = None
    # exact methods first, as nothing has to be sampled if one of them is fast enough
    for method in sorted(methods, key=lambda method: not method.exact):
        estimate: Estimate | Refusal | None = method.refusal(request)
        if estimate is None:
            if not method.exact and any(
                    known.bytes <= room and known.seconds < soon * engine.costs.fixed for known, _ in possible):
                break
            if not method.exact and exact is None:
                exact = accuracy.sample(request, positions, charges, engine)
                goal = request.tolerance * exact.target_rms
                request = request.with_error(goal if goal > 0 else np.inf)
            estimate = method.estimate(request, engine)
        if isinstance(estimate, Refusal):
            refused.append((method.name, estimate))
        else:
            possible.append((estimate, method))
    if not possible:
        name, why = refused[0]
        raise why.as_error(name)
    quickest = min(possible, key=lambda each: each[0].seconds)
    if quickest[0].bytes > room:
        quickest = min((each for each in possible if each[0].bytes <= room and is_worth_waiting(
            each[0].seconds, quickest[0].seconds, engine)), key=lambda each: each[0].seconds, default=quickest)
    chosen = quickest[1]
    return chosen, request, None if chosen.exact else exact
