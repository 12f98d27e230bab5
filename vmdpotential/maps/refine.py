"""Smaller and smaller spacings, until an error that a solution on two lattices states is within a tolerance."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from vmdpotential.errors import TaskError

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Part of the smallest spacing below which one that would be needed, by the first errors, is not tried.
HOPELESS = 0.5

#: Spacings that are tried at most; the smallest, A; and how much smaller one is than the one before.
TRIED, SMALLEST, LEAST, MOST = 6, 0.1, 0.85, 0.45


def refined(tolerance: float, spacing: float, attempt: Callable[[float], tuple[T, float]]) -> T:
    """Return what is within a tolerance.

    Parameters
    ----------
    tolerance : float
    spacing : float, A
        The largest.
    attempt : callable
        Returns a solution for a spacing, and its error.

    Raises
    ------
    TaskError
        When no spacing keeps the tolerance.
    """
    error = float("inf")
    for _ in range(TRIED):
        result, error = attempt(spacing)
        log.info("spacing %.3g A: error %.2g", spacing, error)
        if error <= tolerance:
            return result
        needed = spacing * tolerance / error  # of the first order
        if spacing <= SMALLEST or needed < HOPELESS * SMALLEST:
            break
        spacing = max(SMALLEST, spacing * min(LEAST, max(MOST, 0.9 * tolerance / error)))
    raise TaskError(f"the error is {error:.1e} at a spacing of {spacing:.2g} A", "use a larger {tolerance}",
                    parameter="tolerance", value=f"{tolerance:g}")
