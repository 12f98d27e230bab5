"""Results merged in a binary tree, whose form depends on their number alone.

Sums are therefore the same bit by bit wherever and whenever results are merged: in this process as they arrive, where
as many are held as the tree has levels, or on the workers of a cluster (:mod:`vmdpotential.execution.cluster`), level
by level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def merge_in_tree(results: Iterable[T], merge: Callable[[T, T], T]) -> T:
    """Return one or more results merged, which are taken one after another.

    Raises
    ------
    ValueError
        When there are no results.
    """
    held: list[tuple[int, T]] = []  # subtrees: the number of levels, which decreases, and the merged result
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
    """Return the same as :func:`merge_in_tree`, level by level; merges of a level can run at the same time."""
    while len(results) > 1:
        pairs = [merge(*results[n : n + 2]) for n in range(0, len(results) - 1, 2)]
        results = [*pairs, *results[len(pairs) * 2 :]]
    return results[0]
