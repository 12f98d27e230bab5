"""Means over frames and their errors: of numbers, of profiles, of maps.

Frames follow each other too closely to be independent: of n frames as many count as n / g, the statistical
inefficiency, ``g = 1 + 2 sum_t (1 - t/n) C(t)`` with the autocorrelation C; the correlation time is (g - 1) / 2. The
sum ends at a window W of :data:`WINDOW` correlation times (N. Madras, A. D. Sokal, J. Stat. Phys. 50 (1988) 109), and
the variance of the mean that it gives has about n / (2 W + 1) degrees of freedom, of which half of those above
:data:`SPENT` are counted (:data:`COUNTED`), because the window follows from the same data. The 95 % interval is
Student's t for these. Series with fewer than :data:`ENOUGH` have no error: their correlation time, and so the error,
cannot be known from them. The three numbers were chosen such that of the short series that appear to be less correlated
than they are, and have an error only for that reason, nine in ten have the true mean within their interval, too
(scripts/coverage_of_errors.py).

Long series enter as means of blocks of frames (H. Flyvbjerg, H. G. Petersen, J. Chem. Phys. 91 (1989) 461), whose
correlation is taken into account in the same way. All sums are float64 of differences from the mean (T. F. Chan, G. H.
Golub, R. J. LeVeque, Am. Stat. 37 (1983) 242): a mean of squares less the square of a mean would lose all digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import progress
from vmdpotential.compiling import threads
from vmdpotential.splitting.mesh import fast_length

Floats = NDArray[np.float64]

#: Numbers that are merged at a time: what stays in a cache.
PART = 1 << 15

#: The sum of autocorrelations ends at this many correlation times.
WINDOW = 4.0

#: Degrees of freedom that a series needs for an error; and which part of those above a number counts in an interval.
ENOUGH, COUNTED, SPENT = 7.0, 0.5, 5.5

#: Of the interval that is stated with a mean.
CONFIDENCE = 0.95

#: Blocks that frames make at least, where there are so many: a correlation time that is longer than a block is known.
BLOCKS = 48

#: Means of blocks that are kept of numbers of which there is one in every frame.
KEPT = 128

#: Series that are looked at at once.
TOGETHER = 4096

#: What a report says where there is no error.
TOO_SHORT = "no standard error: the frames are too few to estimate their correlation time"

#: What it says where there is one.
PLUS_MINUS = "+- is the standard error of the mean, and the 95 % interval is in brackets"


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """How well the mean of a series is known.

    Parameters
    ----------
    error : float64 array
        Standard error of the mean.
    interval : float64 array
        Half the width of the interval that holds the true mean with a probability of :data:`CONFIDENCE`.
    """

    error: Floats
    interval: Floats

    def part(self, index: int) -> Uncertainty:
        """Return that of one of several means."""
        return Uncertainty(self.error[index], self.interval[index])


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
        with progress.listening(lambda *_: None):  # its progress is that of the frames
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
        self._sample = sample
        self._series: list[Floats] = []

    @classmethod
    def of_series(cls, counts: Sequence[int], series: Sequence[Floats]) -> BlockMean:
        """Return it of the means of blocks at a sample alone, for :meth:`factors`.

        Parameters
        ----------
        counts : sequence of int
            Frames in each block.
        series : sequence of (P,) float64
            Means of the blocks at the sample.
        """
        made = cls(())
        made.count, made.counts, made._series = int(sum(counts)), list(counts), list(series)
        return made

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
    def _weighted(self) -> Floats:
        return as_equal(self.counts, self.series)

    def long_run(self) -> Floats | None:
        """Return the variance that one frame would need to have if frames were independent: g times its own.

        None where there are fewer than two blocks.
        """
        factor = self._factor()
        return None if factor is None else self._between * factor

    def _factor(self) -> float | None:
        blocks = len(self.counts)
        if blocks < 2:
            return None
        g = min(max(1.0, inefficiency(self._weighted)), blocks - 1.0)
        return g / (blocks - g)

    def factors(self) -> tuple[float, float] | None:
        """Return what makes errors, and half the widths of 95 % intervals, of the roots of :attr:`between`.

        None where the frames are too few.
        """
        factor = self._factor()
        if factor is None:
            return None
        freedom = _together(self._weighted)[1]
        error = np.sqrt(factor / self.count)
        return None if freedom < ENOUGH else (float(error), float(_quantiles(freedom)) * float(error))

    def uncertainty(self) -> Uncertainty | None:
        """Return the error of the mean, with one correlation time for all; None where the frames are too few."""
        factors = self.factors()
        if factors is None:
            return None
        roots = np.sqrt(self._between)
        return Uncertainty(factors[0] * roots, factors[1] * roots)

    @property
    def between(self) -> Floats:
        """The squared deviations of the blocks' means from the mean, times their frames, summed up."""
        return self._between

    @classmethod
    def of_samples(cls, parts: Sequence[BlockMean]) -> BlockMean:
        """Return the means at the samples of parts of one map, for what is common to all of it."""
        def sampled(part: BlockMean, values: Floats) -> Floats:
            return values.reshape(-1) if part._sample is None else values.reshape(-1)[part._sample]

        made = cls(())
        made.count, made.counts = parts[0].count, parts[0].counts
        made._series = list(np.concatenate([part.series for part in parts], axis=1))
        made._mean = np.concatenate([sampled(part, part._mean) for part in parts])
        made._between = np.concatenate([sampled(part, part._between) for part in parts])
        made._m2 = np.concatenate([sampled(part, part._m2) for part in parts])
        return made


class FrameMean:
    """The mean of numbers, of which there is one set in every frame, with their deviation and their error.

    Of many frames :data:`KEPT` means of blocks are kept at most: when there are so many, neighbours become one.

    Parameters
    ----------
    shape : tuple of int
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.moments = Moments.none(shape)
        self._blocks: list[Floats] = []
        self._size, self._sum, self._inside = 1, np.zeros(shape), 0

    def add(self, values: Floats) -> None:
        """Add a frame."""
        self.moments.add(values)
        self._sum = self._sum + values
        self._inside += 1
        if self._inside < self._size:
            return
        self._blocks.append(self._sum / self._size)
        self._sum, self._inside = np.zeros_like(self._sum), 0
        if len(self._blocks) == KEPT:
            self._blocks = [(a + b) / 2 for a, b in zip(self._blocks[::2], self._blocks[1::2], strict=True)]
            self._size *= 2

    def deviation(self) -> Floats | None:
        """Return the standard deviation of the frames, by n - 1; None of one alone."""
        count = self.moments.count
        return None if count < 2 else np.sqrt(self.moments.m2 / (count - 1))

    def uncertainty(self) -> Uncertainty | None:
        """Return the errors of the means, each by itself, see :func:`each_uncertainty`."""
        return each_uncertainty(np.array(self._blocks)) if self._blocks else None


def as_equal(counts: ArrayLike, means: Floats) -> Floats:
    """Return the deviations of means (n, ...) of blocks of frames, as blocks of equal numbers of frames have them."""
    weights = np.asarray(counts, np.float64)
    deviations = means - np.tensordot(weights / weights.sum(), means, 1)
    result: Floats = deviations * np.sqrt(weights / weights.mean()).reshape(-1, *[1] * (means.ndim - 1))
    return result


def _covariances(values: Floats) -> Floats:
    """Return the autocovariances (n, P), of each series (n, P) about its own mean."""
    n = len(values)
    deviations = values - values.mean(0)
    padded = fast_length(2 * n)
    spectrum = np.fft.rfft(deviations, padded, axis=0)
    power = np.square(spectrum.real) + np.square(spectrum.imag)
    result: Floats = np.fft.irfft(power, padded, axis=0)[:n] / np.arange(n, 0, -1)[:, None]
    result[:, (values == values[0]).all(0)] = 0  # and not what rounding leaves
    return result


def _correlations(covariances: Floats) -> tuple[Floats, Floats]:
    """Return the statistical inefficiencies (P,) of series by their autocovariances (n, P), and degrees of freedom.

    That deviations are from the series' own mean, which makes all autocorrelations too small by g / n, is corrected.
    """
    n, count = covariances.shape
    if n < 3:
        return np.ones(count), np.zeros(count)
    lags = np.arange(1, n)[:, None]
    weight = 2 * (1 - lags / n)
    result = np.cumsum(weight * covariances[1:], 0) / np.where(covariances[0] > 0, covariances[0], 1.0)
    most = np.cumsum(weight, 0)
    g = (1 + result) / np.maximum(1 - (most - result) / n, 1 / n)
    g[:, covariances[0] <= 0] = 1
    beyond = lags >= WINDOW / 2 * np.maximum(g, 1.0)
    known, end = beyond.any(0), beyond.argmax(0)
    inefficiencies = np.where(known, np.clip(g[end, np.arange(count)], 1 / n, n), float(n))
    return inefficiencies, np.where(known, n / (2 * end + 3), 0.0)


def _together(values: Floats) -> tuple[float, float]:
    """Return the statistical inefficiency of series (n, ...) together, and their degrees of freedom."""
    g, freedom = _correlations(_covariances(values.reshape(len(values), -1)).sum(1)[:, None])
    return float(g[0]), float(freedom[0])


def _quantiles(freedom: ArrayLike) -> Floats:
    """Return half the widths of intervals in standard errors."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(COUNTED * (np.asarray(freedom) - SPENT), (1 + CONFIDENCE) / 2), np.float64)


def inefficiency(series: ArrayLike) -> float:
    """Return the statistical inefficiency g of a series (n,), or of several (n, P) together."""
    return _together(np.asarray(series, np.float64))[0]


def correlation_time(series: ArrayLike) -> float:
    """Return the integrated correlation time of a series (n,), or of several (n, P) together, in steps."""
    return max(0.0, (inefficiency(series) - 1) / 2)


def uncertainty(series: ArrayLike) -> Uncertainty | None:
    """Return the error of the mean of a series (n,), or those of several (n, P) that belong together, (P,).

    The correlation time is that of all of them, or their own where it is longer. None where the series are too short.
    """
    values = np.asarray(series, np.float64)
    together, freedom = _together(values)
    return None if freedom < ENOUGH else _errors(values, together, freedom)


def each_uncertainty(series: ArrayLike) -> Uncertainty | None:
    """Return the errors of the means of several series (n, P), each by itself; not a number where one is too short.

    None where all are.
    """
    result = _errors(np.asarray(series, np.float64), 1.0, np.inf)
    return None if np.isnan(result.error).all() else result


def _errors(values: Floats, together: float, freedom: float) -> Uncertainty:
    """Return the errors of means of series that have one correlation in common, of these degrees of freedom, at least.

    Where there are none in common, they are not a number for a series that has too few by itself.
    """
    n, columns = len(values), values.reshape(len(values), -1)
    error, interval = np.empty(columns.shape[1]), np.empty(columns.shape[1])
    for start in range(0, columns.shape[1], TOGETHER):
        rows = slice(start, start + TOGETHER)
        part = columns[:, rows]
        own, own_freedom = _correlations(_covariances(part))
        g = np.minimum(np.maximum(own, max(1.0, together)), max(1.0, n - 1.0))
        error[rows] = np.sqrt(np.square(part - part.mean(0)).sum(0) / np.maximum(n - g, 1e-9) * g / n)
        if np.isinf(freedom):
            error[rows][own_freedom < ENOUGH] = np.nan
        interval[rows] = error[rows] * _quantiles(np.clip(own_freedom, ENOUGH, freedom))
    return Uncertainty(error.reshape(values.shape[1:]), interval.reshape(values.shape[1:]))


def error_text(known: Uncertainty | None, digits: int = 4) -> str:
    """Return what is next to a mean in a report: its error and interval, nothing where they are not known."""
    if known is None or np.isnan(known.error):
        return ""
    return f" +- {float(known.error):.{digits}f} (+- {float(known.interval):.{digits}f})"


def without_nan(values: Floats) -> Any:
    """Return nested lists, with None in the place of what is not a number."""
    result = values.astype(object)
    result[np.isnan(values)] = None
    return result.tolist()
