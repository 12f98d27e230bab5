"""Neighbouring results merged in pairs, and these in pairs again: a tree whose form follows from their number alone.

Sums come out the same bit by bit whoever merges, and when: here as results come, where as many are held as the tree is
high, or on the workers of a cluster (:mod:`vmdpotential.execution.cluster`), level by level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def merged(results: Iterable[T], merge: Callable[[T, T], T]) -> T:
    """Return what one result or more amount to, which are taken one after another.

    Raises
    ------
    ValueError
        When there are none.
    """
    held: list[tuple[int, T]] = []  # how many levels each is of, falling, and what it amounts to
    for result in results:
        level = 0
        while held and held[-1][0] == level:
            result = merge(held.pop()[1], result)
            level += 1
        held.append((level, result))
    if not held:
        raise ValueError("there is nothing to merge")
    total = held.pop()[1]
    while held:
        total = merge(held.pop()[1], total)
    return total


def merged_at_once(results: Sequence[T], merge: Callable[[T, T], T]) -> T:
    """Return the same of results that are all there, or will be: level by level, as many merges at once as can be."""
    while len(results) > 1:
        pairs = [merge(*results[n : n + 2]) for n in range(0, len(results) - 1, 2)]
        results = [*pairs, *results[len(pairs) * 2 :]]
    return results[0]
