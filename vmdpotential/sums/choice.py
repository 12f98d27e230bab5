"""Choice of the fastest method for a sum that keeps a tolerance."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, registry
from vmdpotential.engines import Engine, with_transforms
from vmdpotential.errors import TaskError
from vmdpotential.sums import Estimate, Method, Plan, Refusal, Request, accuracy, check_memory, result_bytes
from vmdpotential.sums.accuracy import Sample
from vmdpotential.sums.machine import is_worth_waiting

#: For sums that take less than the engine's fixed cost times this, no faster method is searched.
QUICK_SUM_FACTOR = 2.0


def methods_for(request: Request, name: str = "auto") -> list[Method]:
    """Return the methods that may sum a request: the named one, or all that have its target."""
    if name != "auto":
        return [registry.get("method", name)]
    methods: list[Method] = [registry.get("method", each) for each in registry.available("method")]
    return [method for method in methods if request.target.kind in method.targets]


def plan_fastest(request: Request, engine: Engine, name: str = "auto") -> Plan:
    """Return the plan of the fastest method for the request's error, or of a method by its name.

    Raises
    ------
    VmdpotentialError
        When the method, or every method, cannot compute the request.
    """
    engine = with_transforms(engine)
    choice = _Choice(engine)
    for method in methods_for(request, name):
        choice.consider(method, request)
    return choice.quickest().plan(request, engine)


class _Choice:
    """The methods that can compute a request, with their costs, and the others with their reasons."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.room = engine, memory.limit()
        self.refused: list[tuple[str, Refusal]] = []
        self.possible: list[tuple[Estimate, Method]] = []

    def consider(self, method: Method, request: Request) -> None:
        """Add a method with its cost, or its reason."""
        estimate = method.refusal(request) or method.estimate(request, self.engine)
        if isinstance(estimate, Refusal):
            self.refused.append((method.name, estimate))
        else:
            self.possible.append((estimate, method))

    def has_quick(self, soon: float) -> bool:
        """Return whether a method that fits into memory takes hardly longer than the fixed cost."""
        return any(known.bytes <= self.room and known.seconds < soon * self.engine.costs.fixed
                   for known, _ in self.possible)

    def quickest(self) -> Method:
        """Return the fastest method, or the fastest that fits into memory unless that would take far longer."""
        if not self.possible:
            # report a method that could compute it with a larger tolerance, rather than one that cannot at all
            name, why = next(((name, why) for name, why in self.refused if why.error is TaskError), self.refused[0])
            raise why.as_error(name)
        first, method = min(self.possible, key=lambda each: each[0].seconds)
        if first.bytes <= self.room:
            return method
        return min((each for each in self.possible if each[0].bytes <= self.room and is_worth_waiting(
            each[0].seconds, first.seconds, self.engine)), key=lambda each: each[0].seconds, default=(first, method))[1]


def fastest_method(methods: Iterable[Method], request: Request, positions: NDArray[np.float64],
                   charges: NDArray[np.float64],
            engine: Engine, soon: float = QUICK_SUM_FACTOR) -> tuple[Method, Request, Sample | None]:
    """Return the method with the least estimated time that keeps the tolerance.

    If the fastest method does not fit into memory, the fastest one that fits is chosen, unless that would take far
    longer (:func:`~vmdpotential.sums.machine.is_worth_waiting`). An exact method that takes less than `soon`
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
    check_memory(request, Estimate(0.0, result_bytes(request)))
    choice, exact = _Choice(engine), None
    # exact methods first, as nothing has to be sampled if one of them is fast enough
    for method in sorted(methods, key=lambda method: not method.exact):
        if not method.exact and method.refusal(request) is None:
            if choice.has_quick(soon) or (choice.possible and request.at_points
                                          and request.target.size <= accuracy.COMPARED_POINTS):
                break
            if exact is None:
                exact = accuracy.sample(request, positions, charges, engine)
                goal = request.tolerance * exact.target_rms
                request = request.with_error(goal if goal > 0 else np.inf)
        choice.consider(method, request)
    chosen = choice.quickest()
    return chosen, request, None if chosen.exact else exact
