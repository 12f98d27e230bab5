"""Means over frames, and their errors, of numbers, profiles and maps.

Successive frames are correlated: n frames are worth n / g independent ones, with the statistical inefficiency
``g = 1 + 2 sum_t (1 - t/n) C(t)`` and the autocorrelation C; the correlation time is (g - 1) / 2. The sum is truncated
at a window W of :data:`WINDOW` correlation times (N. Madras, A. D. Sokal, J. Stat. Phys. 50 (1988) 109). The resulting
variance of the mean has about n / (2 W + 1) degrees of freedom. Because the window follows from the same data, error
and interval of long series are those of Student's t with fewer: the fraction :data:`COUNTED` of those above
:data:`SPENT`.

Short series often appear less correlated than they are. With fewer than :data:`ENOUGH` degrees of freedom both are
therefore those of all correlation times that the series could have: the squares of its :data:`MODES` slowest cosine
modes have the spectrum A / (1 + (k / k0)^2) of a correlation that decays exponentially, that of the mean is A / n,
and k0 is averaged over by its likelihood (a prior that is constant in log k0 and log A, so that each k0 contributes a
Student's t). A series has no error where it spans fewer than :data:`SPANNED` correlation times with a probability of
:data:`DOUBT` (scripts/coverage_of_errors.py).

Long series are reduced to means of blocks of frames (H. Flyvbjerg, H. G. Petersen, J. Chem. Phys. 91 (1989) 461), whose
correlation is taken into account in the same way. All sums are of differences from the mean, in float64 (T. F. Chan,
G. H. Golub, R. J. LeVeque, Am. Stat. 37 (1983) 242), because the mean of squares minus the square of the mean would
lose all significant digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import progress
from vmdpotential.arrays import Floats
from vmdpotential.errors import count_of
from vmdpotential.execution.work import Arrays
from vmdpotential.frames.sums import FrameRows, FrameSum
from vmdpotential.kernels import threads
from vmdpotential.splitting.mesh import fast_length

#: Number of values that are merged at a time, small enough to stay in the CPU cache.
PART = 1 << 15

#: Window of the sum of autocorrelations, in correlation times.
WINDOW = 4.0

#: Degrees of freedom from which an interval follows from them alone; it uses the fraction COUNTED of those above SPENT.
ENOUGH, COUNTED, SPENT = 12.0, 0.5, 5.5

#: Number of cosine modes whose spectrum is looked at, and the least number of them.
MODES, FEWEST = 20, 6

#: Number of correlation times that a series with an error spans, about.
TIMES_NEEDED = 10

#: Correlation times that a series has to span, and the probability of fewer with which it has no error.
SPANNED, DOUBT = 6.0, 0.33

#: Lowest k0, number of values of k0, and number of bisections for a half-width.
LOWEST, RATES, BISECTIONS = 0.3, 24, 30

#: Confidence levels of standard errors and of intervals; the same in this average, for correlations that do not decay
#: exponentially.
CONFIDENCE, CAUTIOUS = (0.6827, 0.95), (0.7, 0.975)

#: Least number of blocks, if there are enough frames: correlation times longer than a block can then be estimated.
MIN_STATISTICS_BLOCKS = 48

#: Largest number of block means that are kept of a series with a value for every frame; even.
KEPT = 128

#: Number of series that are analysed at once.
TOGETHER = 4096

@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Uncertainty of the mean of a series.

    Parameters
    ----------
    error : float64 array
        Standard error of the mean: within it is the true mean with a probability of 68 %, also where the correlation
        time, and so the error, is uncertain.
    interval : float64 array
        Half the width of the interval that holds the true mean with a probability of 95 %.
    """

    error: Floats
    interval: Floats

    def part(self, index: int) -> Uncertainty:
        """Return the uncertainty of one of several means."""
        return Uncertainty(self.error[index], self.interval[index])


@dataclass(eq=False)
class Moments(FrameSum):
    """Count, mean and sum of squared deviations of arrays of one shape.

    A block has the arrays ``mean`` and ``m2``.

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
        """Return the moments of no values."""
        return cls(0, np.zeros(shape), np.zeros(shape))

    @classmethod
    def of(cls, series: ArrayLike) -> Moments:
        """Return the moments of values (n, ...)."""
        values = np.asarray(series, np.float64)
        if not len(values):
            return cls.none(values.shape[1:])
        mean = values.mean(0)
        return cls(len(values), mean, np.square(values - mean).sum(0))

    def add(self, values: ArrayLike) -> None:
        """Add one value."""
        self.merge(Moments(1, np.asarray(values), np.zeros_like(self.m2)))

    def merge(self, other: Moments) -> None:
        """Add the values of other moments."""
        _merge(self.count, other.count, self.mean, other.mean, self.m2, other.m2)
        self.count += other.count

    @property
    def arrays(self) -> Arrays:
        """The arrays of a block with these values."""
        return {"mean": self.mean, "m2": self.m2}

    def of_frames(self, values: NDArray[Any]) -> Arrays:
        """Return mean and squared deviations of the values."""
        return Moments.of(values).arrays

    def merged(self, a: Arrays, b: Arrays, counts: tuple[int, int]) -> Arrays:
        """Return mean and squared deviations of both."""
        return _pooled(a, b, counts).arrays

    def add_block(self, block: Arrays, count: int) -> None:
        """Add the values of a block; without ``m2`` they are all its mean."""
        self.merge(Moments(count, block["mean"], block["m2"] if "m2" in block else np.zeros(self.m2.shape)))

    def variance(self) -> Floats:
        """Return the mean square deviation from the mean; NaN if there are no values."""
        return self.m2 / self.count if self.count else np.full_like(self.m2, np.nan)


def _merge(count: int, more: int, mean: Floats, other: Floats, m2: Floats, other_m2: Floats | None = None,
           between: Floats | None = None) -> None:
    """Merge means and sums of squared deviations in place.

    The contribution of the difference between both means is added to `between` and `m2`, and `other_m2` to `m2`.
    """
    if not more:
        return
    total = count + more
    means, other_means, squares = mean.reshape(-1), other.reshape(-1), m2.reshape(-1)
    other_squares = None if other_m2 is None else other_m2.reshape(-1)
    between_squares = None if between is None else between.reshape(-1)

    def part(first: int, last: int) -> None:
        at = slice(first, last)
        difference = other_means[at] - means[at]
        means[at] += difference * (more / total)
        np.square(difference, out=difference)
        difference *= count * more / total
        squares[at] += difference
        if other_squares is not None:
            squares[at] += other_squares[at]
        if between_squares is not None:
            between_squares[at] += difference

    if means.size <= 8 * PART:
        part(0, means.size)
    else:
        with progress.listen_to_progress(lambda *_: None):  # not reported, because the frames report the progress
            threads.run(part, means.size, "merging", PART)


def _pooled(a: Arrays, b: Arrays, counts: tuple[int, int]) -> Moments:
    """Return the moments of two parts of a block."""
    both = Moments.none(np.shape(a["mean"]))
    for part, count in zip((a, b), counts, strict=True):
        both.add_block(part, count)
    return both


class BlockMean(FrameSum):
    """Running mean over frames, from the means of blocks, with its standard deviation and standard error.

    A block has the array ``mean``; and, for what needs the variance of single frames, ``m2``, the sum of squared
    deviations from it, or ``first``, the first frame's values at the sample.

    Parameters
    ----------
    sample : (P,) int, optional
        Indices into the flattened values at which the correlation of blocks is estimated; all unless given.
    spread : bool
        Whether deviations of single frames are summed, which needs those within each block.
    """

    def __init__(self, sample: NDArray[np.int64] | None = None, spread: bool = True) -> None:
        self.count = 0
        #: Number of frames in each block.
        self.counts: list[int] = []
        self._mean = self._between = self._m2 = np.zeros(0)
        self._sample, self._spread = sample, spread
        self._series: list[Floats] = []
        # at the sample: the sum of m2 of the blocks that have it, and their number; the first frames of the others
        self._within, self._squared = np.zeros(()), 0
        self._firsts: list[Floats] = []

    def of_frames(self, values: NDArray[Any]) -> Arrays:
        """Return mean and squared deviations of the values."""
        return Moments.of(values).arrays

    def merged(self, a: Arrays, b: Arrays, counts: tuple[int, int]) -> Arrays:
        """Return the mean of both, with the squared deviations if both have them."""
        both = _pooled(a, b, counts)
        if "m2" in a and "m2" in b:
            return both.arrays
        firsts = [part["first"] for part in (a, b) if "first" in part]
        return {"mean": both.mean, **({"first": firsts[0]} if firsts else {})}

    def add_block(self, block: Arrays, count: int) -> None:
        """Add the arrays of a block."""
        self.add(count, **block)

    def add(self, count: int, mean: ArrayLike, m2: ArrayLike | None = None, first: Floats | None = None) -> None:
        """Add a block of `count` frames by their mean, the sum of squared deviations from it, or its first frame."""
        if not count:
            return
        values, squares = np.asarray(mean), None if m2 is None else np.asarray(m2)
        if not self.count:
            self._mean, self._between = np.zeros(values.shape), np.zeros(values.shape)
            self._m2 = np.zeros(values.shape) if self._spread else self._between
        _merge(self.count, count, self._mean, values, self._m2, squares if self._spread else None,
               self._between if self._spread else None)
        self.count += count
        self.counts.append(count)
        self._series.append(self._at_sample(values))
        if squares is not None:
            self._within, self._squared = self._within + self._at_sample(squares), self._squared + 1
        elif first is not None:
            self._firsts.append(first)

    def _at_sample(self, values: Floats) -> Floats:
        flat: Floats = values.reshape(-1)
        return flat if self._sample is None else flat[self._sample]

    @property
    def mean(self) -> Floats:
        """Mean over all frames."""
        return self._mean

    def deviation(self) -> Floats:
        """Return the standard deviation of single frames, as the root mean square deviation from the mean."""
        return np.sqrt(self._m2 / max(1, self.count))

    @property
    def series(self) -> Floats:
        """(blocks, P) means of the blocks at the sample."""
        return np.array(self._series, np.float64)

    @property
    def _weighted(self) -> Floats:
        return as_equal(self.counts, self.series)

    def frame_variance(self) -> Floats | None:
        """Return the variance (P,) of single frames at the sample; None if it is not known."""
        series, counts = self.series, np.array(self.counts, float)
        if self._squared == len(counts):
            between = counts @ np.square(series - counts @ series / counts.sum())
            return np.asarray((self._within + between) / self.count)
        known = len(self._firsts) > 1 and len(self._firsts) == len(counts)
        return np.var(self._firsts, axis=0, ddof=1) if known else None

    def inefficiency(self) -> float | None:
        """Return the statistical inefficiency g of frames, the median over the sample; None if it is not known."""
        factor, variance = self._factor(), self.frame_variance()
        if factor is None or variance is None or not (variance > 0).any():
            return None
        varying = np.flatnonzero(variance > 0)
        # g times the variance of a frame; divided by the number of frames it is the variance of the mean
        long_run = self._at_sample(self._between)[varying] * factor
        ratio = float(np.median(long_run / variance[varying]))
        # the variance about the mean of n correlated frames is too small by the fraction g / n
        return max(1.0, ratio / (1 + ratio / self.count) if self._squared else ratio)

    def _factor(self) -> float | None:
        blocks = len(self.counts)
        if blocks < 2:
            return None
        g = min(max(1.0, inefficiency(self._weighted)), blocks - 1.0)
        return g / (blocks - g)

    def factors(self) -> tuple[float, float] | None:
        """Return the factors that convert the roots of :attr:`between` to standard errors and to half 95 % intervals.

        None if there are too few frames.
        """
        factor = self._factor()
        if factor is None:
            return None
        weighted = self._weighted
        freedom = _common_correlation(weighted)[1]
        widths = np.sqrt(factor / self.count) * _quantiles(freedom if freedom >= ENOUGH else np.inf)
        if freedom < ENOUGH:
            half, known = _half_widths(weighted.reshape(len(weighted), -1), True)
            if not known[0]:
                return None
            between = np.square(weighted).sum() * self.count / len(weighted)  # that of all values of the sample
            widths = np.maximum(widths, half[:, 0] / np.sqrt(between)) if between else widths
        return float(widths[0]), float(widths[1])

    def uncertainty(self) -> Uncertainty | None:
        """Return the error of the mean, with one correlation time for all values; None if there are too few frames."""
        factors = self.factors()
        if factors is None:
            return None
        roots = np.sqrt(self._between)
        return Uncertainty(factors[0] * roots, factors[1] * roots)

    def too_short(self) -> str:
        """Return why there is no error."""
        g = self.inefficiency()
        return too_short(self.count,
                         spanned_correlation_times(self._weighted) if g is None else self.count / max(1.0, (g - 1) / 2))

    @property
    def between(self) -> Floats:
        """Sum over blocks of the squared deviation of their mean from the mean, times their number of frames."""
        return self._between

    @classmethod
    def of_samples(cls, parts: Sequence[BlockMean]) -> BlockMean:
        """Return the values at the samples of all parts of a map, for estimates that are common to the whole map."""
        result = cls()
        result.count, result.counts = parts[0].count, parts[0].counts
        result._series = list(np.concatenate([part.series for part in parts], axis=1))
        result._mean = np.concatenate([part._at_sample(part._mean) for part in parts])
        result._between = np.concatenate([part._at_sample(part._between) for part in parts])
        result._m2 = np.concatenate([part._at_sample(part._m2) for part in parts])
        result._squared = min(part._squared for part in parts)
        if result._squared:
            result._within = np.concatenate([part._within for part in parts])
        result._firsts = [np.concatenate(rows) for rows in zip(*(part._firsts for part in parts), strict=False)]
        return result


class FrameMean(FrameRows):
    """Running mean of values that are added frame by frame, with their standard deviation and standard error.

    The values are those of :class:`FrameRows`, but they are not kept. Fewer than :data:`KEPT` block means are:
    whenever that number is reached, neighbouring blocks are merged.
    """

    def __init__(self) -> None:
        super().__init__(0)
        self.moments = Moments.none()
        self._blocks: list[Floats] = []
        self._size, self._sum, self._inside = 1, np.zeros(()), 0

    def add_block(self, block: Arrays, count: int) -> None:
        """Add the frames of a block, one after another."""
        for values in block["rows"]:
            self.add(values)

    def add(self, values: Floats) -> None:
        """Add a frame."""
        if not self.moments.count:
            self.moments, self._sum = Moments.none(values.shape), np.zeros(values.shape)
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
        """Return the sample standard deviation of the frames (n - 1 in the denominator); None for fewer than two."""
        count = self.moments.count
        return None if count < 2 else np.sqrt(self.moments.m2 / (count - 1))

    def too_short(self) -> str:
        """Return why there is no error."""
        return too_short(self.moments.count, spanned_correlation_times(self._blocks))

    def explanation(self, index: int) -> str:
        """Return the line of a report that explains the error of one of the values, or why there is none."""
        known, deviation = self.uncertainty(), self.deviation()
        if known is None or deviation is None or np.isnan(known.error[index]):
            return self.too_short()
        return explain_errors(self.moments.count, float(deviation[index]), float(known.error[index]))

    def uncertainty(self) -> Uncertainty | None:
        """Return the errors of the means, each by its own correlation time, see :func:`uncertainties_of_means`."""
        return uncertainties_of_means(np.array(self._blocks)) if self._blocks else None


def as_equal(counts: ArrayLike, means: Floats) -> Floats:
    """Return the deviations of block means (n, ...) from the mean, scaled to blocks of equal numbers of frames."""
    weights = np.asarray(counts, np.float64)
    deviations = means - np.tensordot(weights / weights.sum(), means, 1)
    result: Floats = deviations * np.sqrt(weights / weights.mean()).reshape(-1, *[1] * (means.ndim - 1))
    return result


def _covariances(values: Floats) -> Floats:
    """Return the autocovariances (n, P) of series (n, P), each about its own mean."""
    n = len(values)
    deviations = values - values.mean(0)
    padded = fast_length(2 * n)
    spectrum = np.fft.rfft(deviations, padded, axis=0)
    power = np.square(spectrum.real) + np.square(spectrum.imag)
    result: Floats = np.fft.irfft(power, padded, axis=0)[:n] / np.arange(n, 0, -1)[:, None]
    result[:, (values == values[0]).all(0)] = 0  # constant series, where rounding errors would remain
    return result


def _correlations(covariances: Floats) -> tuple[Floats, Floats]:
    """Return statistical inefficiencies (P,) and degrees of freedom (P,) of series from their autocovariances (n, P).

    Deviations from a series' own mean make all autocorrelations too small by g / n, which is corrected.
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


def _common_correlation(values: Floats) -> tuple[float, float]:
    """Return the common statistical inefficiency of several series (n, ...), and their degrees of freedom."""
    g, freedom = _correlations(_covariances(values.reshape(len(values), -1)).sum(1)[:, None])
    return float(g[0]), float(freedom[0])


def _quantiles(freedom: ArrayLike) -> Floats:
    """Return half the widths (2, ...) at both levels of confidence, in standard errors of many degrees of freedom."""
    from scipy.special import stdtrit

    return np.stack([stdtrit(COUNTED * (np.asarray(freedom) - SPENT), (1 + level) / 2) for level in CONFIDENCE])


def _half_widths(values: Floats, together: bool = False) -> tuple[Floats, NDArray[np.bool_]]:
    """Return half the widths (2, P) at both levels of means of series (n, P), and which series are long enough (P,).

    They are averages over the correlation time; with `together` it is common to all, for the sum of their squares (1,).
    """
    from scipy.fft import dct
    from scipy.special import stdtr

    n = len(values)
    modes = min(MODES, n - 1)
    if modes < FEWEST:
        count = 1 if together else values.shape[1]
        return np.full((2, count), np.nan), np.zeros(count, np.bool_)
    squares = np.square(dct(values - values.mean(0), axis=0, norm="ortho")[1 : modes + 1])
    squares[:, (values == values[0]).all(0)] = 0  # constant series
    if together:
        squares = squares.sum(1, keepdims=True)
    k0 = np.geomspace(LOWEST, 2 * modes, RATES)[:, None]
    shapes = 1 + (np.arange(1, modes + 1) / k0) ** 2
    sums = shapes @ squares
    weights = 0.5 * np.log(shapes).sum(1)[:, None] - 0.5 * modes * np.log(np.maximum(sums, 1e-300))
    weights = np.exp(weights - weights.max(0))
    weights /= weights.sum(0)
    errors = np.sqrt(np.maximum(sums, 1e-300) / modes / n)
    low, high = np.zeros((2, squares.shape[1])), np.tile(20 * errors.max(0), (2, 1))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        within = (weights * (2 * stdtr(modes, middle[:, None] / errors) - 1)).sum(1) > np.array(CAUTIOUS)[:, None]
        low, high = np.where(within, low, middle), np.where(within, middle, high)
    # a correlation that decays exponentially with the time n / (pi k0)
    return np.where(squares.any(0), high, 0.0), ((weights * (np.pi * k0 < SPANNED)).sum(0) < DOUBT) | ~squares.any(0)


def inefficiency(series: ArrayLike) -> float:
    """Return the statistical inefficiency g of a series (n,), or the common one of several series (n, P)."""
    return _common_correlation(np.asarray(series, np.float64))[0]


def correlation_time(series: ArrayLike) -> float:
    """Return the integrated correlation time, in steps, of a series (n,), or the common one of several (n, P)."""
    return max(0.0, (inefficiency(series) - 1) / 2)


def spanned_correlation_times(series: ArrayLike) -> float | None:
    """Return the number of correlation times that a series (n, ...) seems to span, None if it is too short to tell."""
    values = np.asarray(series, np.float64)
    return len(values) / max(1.0, correlation_time(values)) if len(values) > FEWEST else None


def too_short(frames: int, times: float | None = None) -> str:
    """Return why there is no error: the number of frames, and that of the correlation times that they seem to span."""
    span = "too few correlation times" if times is None else f"about {times:.2g} correlation times as far as they show"
    enough = 0 if times is None else max(FEWEST + 1, round(TIMES_NEEDED * frames / times))
    # a series that is short for its own correlation time shows too short a one
    needed = f" (here {enough} frames or more)" if enough > frames else ""
    return (f"no standard error: {count_of(frames, 'frame')} span{'s' * (frames == 1)} {span}; at least {FEWEST + 1} "
            f"frames and about {TIMES_NEEDED} correlation times are needed{needed}, and ten times as long a trajectory "
            "if the values drift from its start to its end")


def uncertainty_of_mean(series: ArrayLike) -> Uncertainty | None:
    """Return the error of the mean of a series (n,), or the errors (P,) of several related series (n, P).

    Each series has the common correlation time, or its own if that is longer. None if the series are too short.
    """
    values = np.asarray(series, np.float64)
    together, freedom = _common_correlation(values)
    if freedom < ENOUGH and not _half_widths(values.reshape(len(values), -1), True)[1][0]:
        return None
    return _errors(values, together, freedom)


def uncertainties_of_means(series: ArrayLike) -> Uncertainty | None:
    """Return the errors of the means of unrelated series (n, P); NaN for a series that is too short, None if all are.
    """
    result = _errors(np.asarray(series, np.float64), 1.0, np.inf)
    return None if np.isnan(result.error).all() else result


def _errors(values: Floats, together: float, freedom: float) -> Uncertainty:
    """Return the errors of the means of series (n, ...).

    Series have at least the inefficiency `together` and at most `freedom` degrees of freedom. With an infinite
    `freedom`, which is for unrelated series, the error of a series that is too short is NaN.
    """
    n, columns = len(values), values.reshape(len(values), -1)
    widths = np.empty((2, columns.shape[1]))
    for start in range(0, columns.shape[1], TOGETHER):
        part = columns[:, start : start + TOGETHER]
        own, own_freedom = _correlations(_covariances(part))
        g = np.minimum(np.maximum(own, max(1.0, together)), max(1.0, n - 1.0))
        least = np.minimum(own_freedom, freedom)
        short = least < ENOUGH
        errors = np.sqrt(np.square(part - part.mean(0)).sum(0) / np.maximum(n - g, 1e-9) * g / n)
        both = errors * _quantiles(np.where(short, np.inf, least))
        half, known = _half_widths(part[:, short])
        both[:, short] = np.fmax(both[:, short], half)
        if np.isinf(freedom):
            both[:, np.flatnonzero(short)[~known]] = np.nan
        widths[:, start : start + TOGETHER] = both
    error, interval = widths.reshape(2, *values.shape[1:])
    return Uncertainty(error, interval)


def error_text(known: Uncertainty | None, digits: int = 4) -> str:
    """Return the error and the interval of a mean as text for reports, empty if they are not known."""
    if known is None or np.isnan(known.error):
        return ""
    return f" +- {float(known.error):.{digits}f} (+- {float(known.interval):.{digits}f})"


def explain_errors(frames: int, deviation: float, error: float) -> str:
    """Return the text of reports that explains errors, with the number of independent frames that one stands for.

    Parameters
    ----------
    frames : int
    deviation, error : float
        Standard deviation of a value over the frames, and the error of its mean.
    """
    text = "+- is the standard error of the mean, and the 95 % interval is in brackets"
    if not error > 0:
        return text
    independent = max(1, round(min(frames, (deviation / error) ** 2)))
    return f"{text}; {count_of(frames, 'frame')} are worth {independent} independent ones"


def without_nan(values: Floats) -> Any:
    """Return nested lists with None in place of NaN."""
    result = values.astype(object)
    result[np.isnan(values)] = None
    return result.tolist()
