"""The fastest of some methods for a map that keeps a tolerance."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines import Engine
from vmdpotential.methods import Estimate, Method, Refusal, Request, accuracy, check_memory, map_bytes
from vmdpotential.methods.accuracy import Sample

#: Sums that take less than this many times an engine's fixed cost are not worth looking for a faster one.
SOON = 2.0


def fastest(methods: Iterable[Method], request: Request, positions: NDArray[np.float64], charges: NDArray[np.float64],
            engine: Engine, soon: float = SOON) -> tuple[Method, Request, Sample | None]:
    """Return the method that should be the fastest of all that keep the tolerance.

    One that does not fit into memory is taken only where none does; one that is exact, without looking further, where
    it takes less than `soon` times the engine's fixed cost.

    Returns
    -------
    Method
    Request
        With the error that keeps the tolerance, where the method is not exact.
    Sample or None
        The exact potential at some points, where the method is not exact.

    Raises
    ------
    UsageError
        When none can do what is requested.
    """
    check_memory(request, Estimate(0.0, map_bytes(request)))
    refused: list[tuple[str, Refusal]] = []
    best: tuple[tuple[bool, float], Method] | None = None
    room = memory.limit()
    exact = None
    # those that are exact first: where one is soon enough, nothing has to be sampled
    for method in sorted(methods, key=lambda method: not method.exact):
        estimate: Estimate | Refusal | None = method.refusal(request)
        if estimate is None:
            if best is not None and not method.exact and best[0] < (False, soon * engine.costs.fixed):
                break
            if not method.exact and exact is None:
                exact = accuracy.sample(request, positions, charges, engine)
                goal = request.tolerance * exact.goal
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
