"""Choice of the fastest method for a map that keeps a tolerance."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines import Engine
from vmdpotential.methods import Estimate, Method, Refusal, Request, accuracy, check_memory, map_bytes
from vmdpotential.methods.accuracy import Sample

#: For sums that take less than the engine's fixed cost times this, no faster method is searched.
SOON = 2.0


def fastest(methods: Iterable[Method], request: Request, positions: NDArray[np.float64], charges: NDArray[np.float64],
            engine: Engine, soon: float = SOON) -> tuple[Method, Request, Sample | None]:
    """Return the method with the least estimated time that keeps the tolerance.

    A method that does not fit into memory is only chosen if none fits. An exact method that takes less than `soon`
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
    best: tuple[tuple[bool, float], Method] | None = None
    room = memory.limit()
    exact = None
    # exact methods first, as nothing has to be sampled if one of them is fast enough
    for method in sorted(methods, key=lambda method: not method.exact):
        estimate: Estimate | Refusal | None = method.refusal(request)
        if estimate is None:
            if best is not None and not method.exact and best[0] < (False, soon * engine.costs.fixed):
                break
            if not method.exact and exact is None:
                exact = accuracy.sample(request, positions, charges, engine)
                goal = request.tolerance * exact.target_rms
                request = request.with_error(goal if goal > 0 else np.inf)
            estimate = method.estimate(request, engine)
        if isinstance(estimate, Refusal):
            refused.append((method.name, estimate))
        elif best is None or (estimate.bytes > room, estimate.seconds) < best[0]:
            best = (estimate.bytes > room, estimate.seconds), method
    if best is None:
        name, why = refused[0]
        raise why.as_error(name)
    return best[1], request, None if best[1].exact else exact
