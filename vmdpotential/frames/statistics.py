"""Means over frames and their errors: of numbers, of profiles, of maps.

Frames follow each other too closely to be independent: of n frames as many count as n / g, the statistical
inefficiency, ``g = 1 + 2 sum_t (1 - t/n) C(t)`` with the autocorrelation C; the correlation time is (g - 1) / 2. Errors
of a mean come from the means of blocks of frames that are longer than it (H. Flyvbjerg, H. G. Petersen, J. Chem. Phys.
91 (1989) 461), and what neighbouring blocks still have in common is added, so that blocks of a few correlation times
are enough. All sums are float64 of differences from the mean (T. F. Chan, G. H. Golub, R. J. LeVeque, Am. Stat. 37
(1983) 242): a mean of squares less the square of a mean would lose all digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import progress
from vmdpotential.engines.cpu.compiling import threads
from vmdpotential.splitting.mesh import fast_length

Floats = NDArray[np.float64]

#: Numbers that are merged at a time: what stays in a cache.
PART = 1 << 15

#: The sum of autocorrelations ends at this many times itself (A. Sokal's window).
WINDOW = 5.0

#: Columns from which on the correlation of neighbouring blocks is known well enough to be counted.
POOLED = 16


@dataclass(eq=False)
class Moments:
    """Count, mean and sum of squared deviations of values, of one shape.

    Parameters
    ----------
    count : int
    mean, m2 : (...) float64
        Changed in place by :meth:`merge`.
    """

    count: int
    mean: Floats
    m2: Floats

    def __post_init__(self) -> None:
        self.mean, self.m2 = (np.asarray(x, np.float64, order="C") for x in (self.mean, self.m2))

    @classmethod
    def none(cls, shape: tuple[int, ...] = ()) -> Moments:
        """Return those of no values."""
        return cls(0, np.zeros(shape), np.zeros(shape))

    @classmethod
    def of(cls, series: ArrayLike) -> Moments:
        """Return those of values (n, ...)."""
        values = np.asarray(series, np.float64)
        if not len(values):
            return cls.none(values.shape[1:])
        mean = values.mean(0)
        return cls(len(values), mean, np.square(values - mean).sum(0))

    def add(self, values: ArrayLike) -> None:
        """Add one value."""
        self.merge(Moments(1, np.asarray(values), np.zeros_like(self.m2)))

    def merge(self, other: Moments) -> None:
        """Add the values of others."""
        _merge(self.count, other.count, self.mean, other.mean, self.m2, other.m2)
        self.count += other.count

    def variance(self) -> Floats:
        """Return the mean square deviation from the mean; not a number where there are no values."""
        return self.m2 / self.count if self.count else np.full_like(self.m2, np.nan)


def _merge(count: int, more: int, mean: Floats, other: Floats, m2: Floats, other_m2: Floats | None = None,
           between: Floats | None = None) -> None:
    """Merge means and squares in place: `between` gets what the means differ, `m2` that and the others' own."""
    if not more:
        return
    total = count + more
    to, of, squares = mean.reshape(-1), other.reshape(-1), m2.reshape(-1)
    of_squares = None if other_m2 is None else other_m2.reshape(-1)
    apart = None if between is None else between.reshape(-1)

    def part(first: int, last: int) -> None:
        at = slice(first, last)
        difference = of[at] - to[at]
        to[at] += difference * (more / total)
        np.square(difference, out=difference)
        difference *= count * more / total
        squares[at] += difference
        if of_squares is not None:
            squares[at] += of_squares[at]
        if apart is not None:
            apart[at] += difference

    if to.size <= 8 * PART:
        part(0, to.size)
    else:
        with progress.listening(lambda *_: None):  # of the frames it is told
            threads.run(part, to.size, "merging", PART)


class BlockMean:
    """The mean over frames that come as the means of blocks, one after another, with its spread and its error.

    Parameters
    ----------
    shape : tuple of int
    sample : (P,) int, optional
        Places in the flattened values at which the correlation of neighbouring blocks is looked at; all unless given.
    spread : bool
        Whether the frames' deviations are summed, which needs those of each block.
    """

    def __init__(self, shape: tuple[int, ...], sample: NDArray[np.int64] | None = None, spread: bool = True) -> None:
        self.count = 0
        #: Frames in each block.
        self.counts: list[int] = []
        self._mean, self._between = np.zeros(shape), np.zeros(shape)
        self._m2 = np.zeros(shape) if spread else self._between
        self._sample, self._series = sample, []  # type: ignore[var-annotated]

    def add(self, count: int, mean: ArrayLike, m2: ArrayLike | None = None) -> None:
        """Add a block of `count` frames with this mean and sum of squared deviations from it."""
        if not count:
            return
        values = np.asarray(mean).reshape(self._mean.shape)
        spread = self._m2 is not self._between
        _merge(self.count, count, self._mean, values, self._m2, np.asarray(m2) if spread and m2 is not None else None,
               self._between if spread else None)
        self.count += count
        self.counts.append(count)
        self._series.append(values.reshape(-1) if self._sample is None else values.reshape(-1)[self._sample])

    @property
    def mean(self) -> Floats:
        """The mean over all frames."""
        return self._mean

    def deviation(self) -> Floats:
        """Return the standard deviation of the frames from the mean: the root of the mean square."""
        return np.sqrt(self._m2 / max(1, self.count))

    @property
    def series(self) -> Floats:
        """(blocks, P) means of the blocks at the sample."""
        return np.array(self._series, np.float64)

    @property
    def common(self) -> float:
        """The statistical inefficiency of the blocks' means: 1 where neighbouring ones have nothing in common."""
        series = self.series
        if len(series) < 4 or series.shape[1] < POOLED:
            return 1.0
        return min(max(1.0, inefficiency(series)), len(series) / 2)

    def long_run(self) -> Floats:
        """Return the variance that one frame would need to have if frames were independent: g times its own.

        Not a number where there are fewer than two blocks.
        """
        blocks, common = len(self.counts), self.common
        return self._between * (common / (blocks - common)) if blocks > 1 else np.full_like(self._between, np.nan)

    def standard_error(self) -> Floats:
        """Return the standard error of the mean; not a number where there are fewer than two blocks."""
        return np.sqrt(self.long_run() / max(1, self.count))


def autocorrelation(series: ArrayLike) -> Floats:
    """Return the autocorrelation (n,) of a series (n,), or that of several (n, P) by their mean square; 1 at 0."""
    values = np.asarray(series, np.float64)
    values = (values - values.mean(0)).reshape(len(values), -1)
    n = len(values)
    padded = fast_length(2 * n)
    spectrum = np.fft.rfft(values, padded, axis=0)
    power = np.square(spectrum.real) + np.square(spectrum.imag)
    found = np.fft.irfft(power.sum(1), padded)[:n] / np.arange(n, 0, -1)
    result: Floats = found / found[0] if found[0] > 0 else np.eye(1, n)[0]
    return result


def inefficiency(series: ArrayLike) -> float:
    """Return the statistical inefficiency g of a series (n,), or of several (n, P) together.

    The sum of autocorrelations ends at :data:`WINDOW` times the correlation time; that deviations are from the
    series' own mean, which makes all of them too small by g / n, is corrected.
    """
    values = np.asarray(series, np.float64)
    n = len(values)
    if n < 3 or (values == values[0]).all():
        return 1.0
    correlation = autocorrelation(values)
    lags = np.arange(1, n)
    weight = 2 * (1 - lags / n)
    found, most = np.cumsum(weight * correlation[1:]), np.cumsum(weight)
    g = (1 + found) / np.maximum(1 - (most - found) / n, 1 / n)
    ends = np.flatnonzero(lags >= WINDOW * np.maximum(g - 1, 0.0) / 2)
    return float(np.clip(g[ends[0]], 1 / n, n)) if len(ends) else float(n)


def correlation_time(series: ArrayLike) -> float:
    """Return the integrated correlation time of a series (n,), or of several (n, P) together, in steps."""
    return max(0.0, (inefficiency(series) - 1) / 2)


def standard_error(series: ArrayLike) -> Floats:
    """Return the standard error of the mean of a series (n,), or of several (n, P) with one correlation time, (P,)."""
    values = np.asarray(series, np.float64)
    n = len(values)
    if n < 2:
        return np.full(values.shape[1:], np.nan)
    g = min(max(1.0, inefficiency(values)), n - 1)
    error: Floats = np.sqrt(Moments.of(values).m2 / (n - g) * g / n)
    return error


def block_errors(series: ArrayLike) -> Mapping[int, Floats]:
    """Return the standard errors by blocks of 1, 2, 4 ... frames, ``{frames in a block: error}``, for a plot.

    They grow with the blocks until these are longer than the correlation time. Two blocks are the fewest.
    """
    values = np.asarray(series, np.float64)
    errors: dict[int, Floats] = {}
    size = 1
    while len(values) >= 2:
        errors[size] = np.sqrt(Moments.of(values).m2 / (len(values) * (len(values) - 1)))
        even = len(values) // 2 * 2
        values = (values[0:even:2] + values[1:even:2]) / 2
        size *= 2
    return errors
