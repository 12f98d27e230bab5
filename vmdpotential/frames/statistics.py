"""Means over frames, and their errors, of numbers, profiles and maps.

Long series are reduced to means of blocks of frames (H. Flyvbjerg, H. G. Petersen, J. Chem. Phys. 91 (1989) 461), whose
correlation is taken into account (:mod:`vmdpotential.frames.errors_of_means`). All sums are of differences from the
mean, in float64 (T. F. Chan, G. H. Golub, R. J. LeVeque, Am. Stat. 37 (1983) 242), because the mean of squares minus
the square of the mean would lose all significant digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import progress
from vmdpotential.arrays import Floats
from vmdpotential.execution.work import Arrays
from vmdpotential.frames.errors_of_means import (
    ENOUGH,
    Uncertainty,
    as_equal,
    common_correlation,
    error_quantiles,
    explain_errors,
    half_widths,
    inefficiency,
    spanned_correlation_times,
    too_short,
    uncertainties_of_means,
)
from vmdpotential.frames.sums import FrameRows, FrameSum
from vmdpotential.kernels import threads

#: Number of values that are merged at a time, small enough to stay in the CPU cache.
PART = 1 << 15

#: Least number of blocks, if there are enough frames: correlation times longer than a block can then be estimated.
MIN_STATISTICS_BLOCKS = 48

#: Largest number of block means that are kept of a series with a value for every frame; even.
KEPT = 128


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
        freedom = common_correlation(weighted)[1]
        widths = np.sqrt(factor / self.count) * error_quantiles(freedom if freedom >= ENOUGH else np.inf)
        if freedom < ENOUGH:
            half, known = half_widths(weighted.reshape(len(weighted), -1), True)
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
