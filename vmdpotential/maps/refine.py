"""Reduction of the lattice spacing until the error, estimated from two lattices, is within a tolerance."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from vmdpotential.errors import TaskError

T = TypeVar("T")

log = logging.getLogger(__name__)

#: The search ends if the predicted spacing is below this fraction of the smallest one.
HOPELESS = 0.5

#: Largest number of spacings tried; the smallest spacing, A; and the largest and smallest ratio of successive spacings.
TRIED, SMALLEST, LEAST, MOST = 6, 0.1, 0.85, 0.45


def refined(tolerance: float, spacing: float, attempt: Callable[[float], tuple[T, float]]) -> T:
    """Return the first solution whose error is within a tolerance.

    Parameters
    ----------
    tolerance : float
    spacing : float, A
        Largest spacing.
    attempt : callable
        Returns the solution for a spacing, and its error.

    Raises
    ------
    TaskError
        If no spacing keeps the tolerance.
    """
    error = float("inf")
    for _ in range(TRIED):
        result, error = attempt(spacing)
        log.info("spacing %.3g A: error %.2g", spacing, error)
        if error <= tolerance:
            return result
        del result  # memory was planned for one map
        needed = spacing * tolerance / error  # the error is of first order in the spacing
        if spacing <= SMALLEST or needed < HOPELESS * SMALLEST:
            break
        spacing = max(SMALLEST, spacing * min(LEAST, max(MOST, 0.9 * tolerance / error)))
    raise TaskError(f"the error is {error:.1e} at a spacing of {spacing:.2g} A", "use a larger {tolerance}",
                    parameter="tolerance", value=f"{tolerance:g}")
