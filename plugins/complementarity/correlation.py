"""Correlation of two potentials on faces, and its error, which takes into account that neighbouring points are alike.

The points of a mesh are no independent samples: a potential hardly changes within some A. A bootstrap therefore draws
whole squares of the interface's plane, each with all its points, of both faces (P. Hall, Stoch. Process. Appl. 20
(1985) 231). Each resampling has its own random squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats

#: Edge of the squares that are drawn, A: larger than the distance over which a potential in a molecule changes. Of
#: random potentials that are alike over 4 to 6 A, on discs with a radius of 13 to 16 A, nine of ten intervals hold the
#: true value.
BLOCK = 10.0

#: Edge of the squares whose sums are made once, A; the larger ones consist of these.
CELL = 1.0

#: Number of resamplings, and seed of their random numbers.
RESAMPLES, SEED = 400, 2007

#: Least number of squares for an error.
LEAST_BLOCKS = 4

#: Confidence level of intervals.
CONFIDENCE = 0.95

#: Correlations nearer than this to 1 or -1 count as at this distance in intervals.
_ALMOST = 1e-9


@dataclass(frozen=True, eq=False)
class FaceSample:
    """Two potentials at the points of a face.

    Parameters
    ----------
    places : (V, 2) float64, A
        Positions in the plane of the interface.
    weights : (V,) float64
        Areas of the points.
    own, partner : (V,) float64
        The potentials.
    """

    places: Floats
    weights: Floats
    own: Floats
    partner: Floats


@dataclass(frozen=True)
class Agreement:
    """A correlation coefficient with reversed sign, 1 for potentials that are opposite everywhere.

    Parameters
    ----------
    value : float
        NaN if a potential is the same at all points.
    error : float or None
        Standard error; None with too few independent areas.
    interval : (float, float) or None
        Limits of the interval that contains the true value with a probability of 95 %.
    """

    value: float
    error: float | None
    interval: tuple[float, float] | None


def weighted_ranks(values: Floats, weights: Floats) -> Floats:
    """Return ranks (V,) from 0 to 1: the weight of all lower values and half of that of equal ones."""
    _, row = np.unique(values, return_inverse=True)
    of_value = np.bincount(row, weights)
    below = np.cumsum(of_value) - of_value / 2
    return below[row] / of_value.sum()


def weighted_sums(x: Floats, y: Floats, weights: Floats, rows: NDArray[np.int64], count: int) -> Floats:
    """Return the weighted sums (count, 6) of 1, x, y, x^2, y^2 and xy over the points of each row."""
    return np.stack([np.bincount(rows, weights * part, count)
                     for part in (np.ones_like(x), x, y, x * x, y * y, x * y)], 1)


def opposition(sums: Floats) -> Floats:
    """Return minus the correlation coefficients (...) of weighted sums (..., 6); NaN where a value is constant."""
    weight, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = np.maximum(xx - x * x / weight, 0) * np.maximum(yy - y * y / weight, 0)
        least = 1e-24 * xx * yy  # what rounding leaves of a constant
        result: Floats = -np.where(squares > least, xy - x * y / weight, np.nan) / np.sqrt(squares)
    return np.clip(result, -1, 1)


def agreements(faces: Sequence[FaceSample]) -> tuple[list[Agreement], list[Agreement]]:
    """Return the agreements by Pearson's and by Spearman's coefficient of each face, and last of their mean.

    Spearman's coefficients are those of ranks among all points of a face; resamplings keep these ranks.
    """
    origin = np.mean([np.average(face.places, axis=0, weights=face.weights) for face in faces], axis=0)
    small = [np.floor((face.places - origin) / CELL).astype(np.int64) for face in faces]
    cells, row = np.unique(np.concatenate(small), axis=0, return_inverse=True)
    rows = np.split(row.ravel(), np.cumsum([len(each) for each in small])[:-1])
    tables = []  # (cells, 6) by face and coefficient
    for face, at in zip(faces, rows, strict=True):
        centred = [value - np.average(value, weights=face.weights) for value in (face.own, face.partner)]
        ranks = [weighted_ranks(value, face.weights) - 0.5 for value in (face.own, face.partner)]
        tables += [weighted_sums(x, y, face.weights, at, len(cells)) for x, y in (centred, ranks)]
    sums = np.stack(tables, 1)  # (cells, faces * 2, 6)
    drawn, blocks = _resampled(sums, (cells + 0.5) * CELL)
    values = _with_mean(opposition(sums.sum(0)))
    results: list[list[Agreement]] = [[], []]
    for n, value in enumerate(values.T.tolist()):
        for kind, result in enumerate(results):
            result.append(_agreement(value[kind], drawn[:, kind, n], blocks))
    return results[0], results[1]


def _with_mean(values: Floats) -> Floats:
    """Return values (..., 2 faces) as (..., 2 coefficients, faces + 1), with the mean of the faces last."""
    by_kind = np.moveaxis(values.reshape(*values.shape[:-1], -1, 2), -1, -2)
    return np.concatenate([by_kind, by_kind.mean(-1, keepdims=True)], -1)


def _resampled(sums: Floats, centres: Floats) -> tuple[Floats, float]:
    """Return the values (resamplings, 2, faces + 1) for sums (cells, n, 6) of cells, and the mean number of squares."""
    rng = np.random.default_rng(SEED)
    values, counts = [], []
    for _ in range(RESAMPLES):
        angle, shift = rng.uniform(0, np.pi / 2), rng.uniform(0, BLOCK, 2)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        places = np.floor((centres @ turn + shift) / BLOCK).astype(np.int64)
        places -= places.min(0)
        _, block = np.unique(places @ [1 + places[:, 1].max(), 1], return_inverse=True)
        area = np.bincount(block.ravel(), sums[:, 0, 0])
        # squares at the edge of the face have little area: their effective number is that of equal ones
        counts.append(float(area.sum() ** 2 / (area @ area)) if area.any() else 0.0)
        times = np.bincount(rng.integers(0, len(area), len(area)), minlength=len(area))
        values.append(opposition(np.tensordot(times[block.ravel()].astype(np.float64), sums, 1)))
    return _with_mean(np.array(values)), float(np.mean(counts))


def _agreement(value: float, drawn: Floats, blocks: float) -> Agreement:
    """Return a value with its error from resamplings of a number of squares."""
    from scipy.stats import t

    drawn = drawn[np.isfinite(drawn)]
    if not np.isfinite(value) or blocks < LEAST_BLOCKS or len(drawn) < RESAMPLES / 2:
        return Agreement(value, None, None)
    larger = np.sqrt(blocks / (blocks - 1))
    # Fisher's z is nearly normal
    middle, width = (np.arctanh(np.clip(each, -1 + _ALMOST, 1 - _ALMOST)) for each in (value, drawn))
    reach = t.ppf((1 + CONFIDENCE) / 2, blocks - 1) * larger * width.std()
    low, high = np.tanh([middle - reach, middle + reach]).tolist()
    return Agreement(value, float(larger * drawn.std()), (low, high))
