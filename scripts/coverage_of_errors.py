"""Measure the coverage of the standard errors and the 95 % intervals of commands, for random series.

    python scripts/coverage_of_errors.py [SERIES]

prints for each kind of series, use, number of frames and number of correlation times that these span the fractions of
the series whose mean is within the stated standard error and interval of the true mean, and in brackets the fraction of
the series that have an error. The correlation decays exponentially, or to a third of it within a tenth of the time
(two), or is that of a walk back to the mean from two standard deviations (drift).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from vmdpotential.frames.errors_of_means import Uncertainty, as_equal, uncertainties_of_means, uncertainty_of_mean
from vmdpotential.frames.statistics import MIN_STATISTICS_BLOCKS, BlockMean, FrameMean

Floats = NDArray[np.float64]

FRAMES, SPANS, KINDS = (20, 50, 200, 1000), (np.inf, 100, 50, 20, 12, 8, 5, 2, 1), ("one", "two", "drift")


def series(frames: int, count: int, time: float, rng: np.random.Generator) -> Floats:
    """Return series (frames, count) of mean 0 and variance 1 whose correlation decays as exp(-t / time)."""
    keep = np.exp(-1 / time) if time else 0.0
    noise = rng.normal(size=(count, frames))
    noise[:, 1:] *= np.sqrt(1 - keep**2)
    result: Floats = lfilter([1.0], [1.0, -keep], noise, axis=1).T
    return result


def mixed(kind: str, frames: int, count: int, time: float, rng: np.random.Generator) -> Floats:
    """Return series of a kind."""
    slow = series(frames, count, time, rng)
    if kind == "two":
        return np.sqrt(0.7) * series(frames, count, time / 10, rng) + np.sqrt(0.3) * slow
    return slow + (2 * np.exp(-np.arange(frames) / time)[:, None] if kind == "drift" and time else 0.0)


def blocks(values: Floats) -> tuple[list[int], list[Floats]]:
    """Return the number of frames in each block, and the means of the blocks."""
    size = max(1, len(values) // MIN_STATISTICS_BLOCKS)
    parts = [values[start : start + size] for start in range(0, len(values), size)]
    return [len(part) for part in parts], [part.mean(0) for part in parts]


def widths(known: Sequence[Uncertainty | None]) -> Floats:
    """Return standard errors and half the widths of the intervals (2, ...), NaN for those that are missing."""
    return np.array([(np.nan, np.nan) if item is None else (item.error.ravel()[0], item.interval.ravel()[0])
                     for item in known]).T


def average(values: Floats) -> Floats:
    """Return the errors of maps with a single point."""
    results = []
    for item in values.T:
        mean = BlockMean(spread=False)
        for count, block in zip(*blocks(item[:, None]), strict=True):
            mean.add(count, block)
        results.append(mean.uncertainty())
    return widths(results)


def profile(values: Floats) -> Floats:
    """Return the errors of curves with a single node."""
    counts, means = blocks(values)
    return widths([uncertainty_of_mean(item) for item in as_equal(counts, np.array(means)).T])


def field(values: Floats) -> Floats:
    """Return the errors of sites."""
    known = uncertainties_of_means(values)
    return np.full((2, values.shape[1]), np.nan) if known is None else np.stack([known.error, known.interval])


def energy(values: Floats) -> Floats:
    """Return the errors of the rows of an energy table."""
    mean = FrameMean()
    for frame in values:
        mean.add(frame)
    known = mean.uncertainty()
    return np.full((2, values.shape[1]), np.nan) if known is None else np.stack([known.error, known.interval])


USES = {"average": average, "profile": profile, "field": field, "energy": energy}


def coverage(use: str, frames: int, spans: float, count: int, kind: str = "one") -> tuple[float, float, float]:
    """Return the fractions of all series with an error, and with the true mean within the error and the interval."""
    values = mixed(kind, frames, count, frames / spans, np.random.default_rng([2026, frames, int(1000 / spans)]))
    result, off = USES[use](values), np.abs(values.mean(0))
    return float(np.isfinite(result[1]).mean()), float((off <= result[0]).mean()), float((off <= result[1]).mean())


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    wrong = 0.0
    for kind, use in product(KINDS, USES):
        print(f"{kind}, {use}\n frames" + "".join(f"{f'{spans:g} tau':>18}" for spans in SPANS))
        for frames in FRAMES:
            cells = []
            for spans in SPANS:
                stated, near, covered = coverage(use, frames, spans, count, kind)
                wrong = max(wrong, stated - covered)
                fractions = f"{near / stated:.2f} {covered / stated:.2f}" if stated else "-"
                cells.append(f"{fractions} ({stated:.2f})")
            print(f"{frames:7d}" + "".join(f"{cell:>18}" for cell in cells), flush=True)
    print(f"in each cell, at most {wrong:.1%} of all series have an interval that misses the true mean")


if __name__ == "__main__":
    main()
