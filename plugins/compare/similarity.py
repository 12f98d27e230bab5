"""Similarity of two maps at the same points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vmdpotential.grid.combine import BLOCK_POINTS
from vmdpotential.grid.lattice import Grid


@dataclass(frozen=True)
class MapSimilarity:
    """Similarity of two maps over the points at which both have values.

    Parameters
    ----------
    points : int
    correlation : float
        Pearson's correlation coefficient, -1 to 1; NaN if a map is constant.
    hodgkin : float
        Hodgkin index 2 sum a b / (sum a^2 + sum b^2), -1 to 1, which depends on the magnitudes too (E. E. Hodgkin,
        W. G. Richards, Int. J. Quantum Chem. 32 (1987) 105).
    slope : float
        Slope of the least-squares line through the origin, of the second map against the first.
    rms, mean, largest : float
        Root mean square, mean and largest magnitude of the differences, first map minus second.
    rms_first, rms_second : float
        Root mean square of each map.
    """

    points: int
    correlation: float
    hodgkin: float
    slope: float
    rms: float
    mean: float
    largest: float
    rms_first: float
    rms_second: float


def map_similarity(first: Grid, difference: Grid) -> MapSimilarity:
    """Return the similarity of a map and a second one, given the first and their difference."""
    a, d = first.values.ravel(), difference.values.ravel()
    sums = np.zeros(7)
    largest = 0.0
    for start in range(0, a.size, BLOCK_POINTS):
        x, y = (v[start : start + BLOCK_POINTS].astype(np.float64) for v in (a, d))
        known = np.isfinite(y)
        x, y = x[known], y[known]
        b = x - y
        sums += [len(x), x.sum(), b.sum(), x @ x, b @ b, x @ b, y @ y]
        largest = max(largest, float(np.abs(y).max(initial=0.0)))
    n, sum_a, sum_b, aa, bb, ab, dd = sums
    variance = (aa - sum_a**2 / n) * (bb - sum_b**2 / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = float((ab - sum_a * sum_b / n) / np.sqrt(variance)) if variance > 0 else np.nan
        hodgkin = float(2 * ab / (aa + bb)) if aa + bb > 0 else 1.0
        return MapSimilarity(int(n), correlation, hodgkin, float(ab / aa) if aa > 0 else np.nan, float(np.sqrt(dd / n)),
                          float((sum_a - sum_b) / n), largest, float(np.sqrt(aa / n)), float(np.sqrt(bb / n)))
