"""Plans that are refined until the measured error of their result is within a tolerance, one after the other."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from vmdpotential.errors import InputError, MemoryPlanError, TaskError

if TYPE_CHECKING:
    from vmdpotential.sums import Estimate, Plan

T = TypeVar("T")

log = logging.getLogger(__name__)

#: The error in the request for a plan like an earlier one, relative to the error that this one expected.
SAFETY_FACTOR = 1.5

#: Smallest spacing of a lattice, A; and largest and smallest ratio of successive spacings.
MIN_SPACING, MAX_RATIO, MIN_RATIO = 0.1, 0.85, 0.45


@dataclass(frozen=True)
class PlanAttempt(Generic[T]):
    """The outcome of a plan: its result, the measured relative error, and the plan; None if there was nothing to plan.
    """

    result: T
    measured: float
    plan: Plan | None = None


@dataclass(frozen=True)
class Refinement:
    """A rule by which plans are refined.

    Parameters
    ----------
    following : callable
        Returns the next value for which a plan is made, from the last one, its outcome, the measured error divided by
        the tolerance, and the number of plans so far; None if there is no better one.
    failure : callable
        Describes that the tolerance was not kept, from the last value, the name of the method and the error.
    max_plans : int
        Greatest number of plans that are tried.
    certain : float
        Part of the tolerance up to which a measured error is accepted at once.
    """

    following: Callable[[float, PlanAttempt[Any], float, int], float | None]
    failure: Callable[[float, str, float], str]
    max_plans: int
    certain: float


def _smaller_error(error: float, outcome: PlanAttempt[Any], excess: float, count: int) -> float:
    """Return the error to request next: less than was requested and expected, and by more each time."""
    expected = None if outcome.plan is None else outcome.plan.error
    requested = error if expected is None else min(error, SAFETY_FACTOR * expected)
    return requested / min((1.1 + 0.2 * count) * excess, 20.0)


def _smaller_spacing(spacing: float, outcome: PlanAttempt[Any], excess: float, count: int) -> float | None:
    """Return the next spacing, with an error of first order in it; None if even the smallest one would not do."""
    if spacing <= MIN_SPACING or spacing / excess < 0.5 * MIN_SPACING:
        return None
    return max(MIN_SPACING, spacing * min(MAX_RATIO, max(MIN_RATIO, 0.9 / excess)))


#: By smaller errors in the request, e/A; measured errors are uncertain by some percent.
BY_ERROR = Refinement(
    _smaller_error, lambda _, method, reached: f"the method {method} reached an error of {reached:.1e}", 8, 0.85)

#: The same for maps, which take longer.
BY_ERROR_OF_MAPS = replace(BY_ERROR, max_plans=4)

#: By smaller spacings of a lattice, A, where the error is estimated from two lattices.
BY_SPACING = Refinement(
    _smaller_spacing, lambda spacing, _, reached: f"the error is {reached:.1e} at a spacing of {spacing:.2g} A", 6, 1.0)


def refine_to_tolerance(tolerance: float, first: float, attempt: Callable[[float], PlanAttempt[T]],
                        rule: Refinement = BY_ERROR, more: str = "") -> T:
    """Return a result within a tolerance, from better and better plans.

    Errors are predicted for uncorrelated charges. The charges of molecules are correlated, so that a plan may turn out
    not to be good enough, and is then followed by a better one.

    Parameters
    ----------
    tolerance : float
    first : float
        Error, e/A, or spacing, A, for the first plan.
    attempt : callable
        Makes a plan for an error or a spacing, runs it, and measures the relative error. It may be called again with
        an earlier value, because only one result is in memory (or in a file) at a time.
    rule : Refinement
    more : str
        Further hints for a tolerance that cannot be kept.

    Raises
    ------
    TaskError
        When the tolerance cannot be kept.
    MemoryPlanError
        When a plan does not fit into memory, and no other keeps the tolerance.
    InputError
        For charges so large that values overflow.
    """
    value, tried = first, list[tuple["Estimate", float | None] | None]()
    before: float | None = None  # the value for which the last plan was made, if that kept the tolerance
    while True:
        try:
            now = attempt(value)
        except TaskError as failure:
            if not tried or (before is None and isinstance(failure, MemoryPlanError)):
                raise
            break  # there is no better plan
        log.debug("%s: measured %.2e", now.plan or f"{value:.3g}", now.measured)
        if not np.isfinite(now.measured):
            raise InputError("the potential overflows single precision", "check the charges")
        tried.append(None if now.plan is None else (now.plan.estimate, now.plan.error))
        reached, method = now.measured, "" if now.plan is None else now.plan.method
        within = reached <= tolerance
        following = None if reached == 0 else rule.following(value, now, reached / tolerance, len(tried))
        last = following is None or len(tried) == rule.max_plans or (now.plan is not None and tried[-1] in tried[:-1])
        if reached <= rule.certain * tolerance or (within and (last or before is not None)):  # two in a row are certain
            return now.result
        tried_value, before = value, value if within else None
        del now  # memory was planned for one map
        if last or following is None:
            break
        value = following
    if before is not None:
        return attempt(before).result
    raise TaskError(rule.failure(tried_value, method, reached), f"use a larger {{tolerance}}{more}",
                    parameter="tolerance", value=f"{tolerance:g}")
