"""Errors of means of correlated series.

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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import count_of
from vmdpotential.splitting.mesh import fast_length

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

#: Number of series that are analysed at once.
COLUMNS_PER_BLOCK = 4096


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


def common_correlation(values: Floats) -> tuple[float, float]:
    """Return the common statistical inefficiency of several series (n, ...), and their degrees of freedom."""
    g, freedom = _correlations(_covariances(values.reshape(len(values), -1)).sum(1)[:, None])
    return float(g[0]), float(freedom[0])


def error_quantiles(freedom: ArrayLike) -> Floats:
    """Return half the widths (2, ...) at both levels of confidence, in standard errors of many degrees of freedom."""
    from scipy.special import stdtrit

    return np.stack([stdtrit(COUNTED * (np.asarray(freedom) - SPENT), (1 + level) / 2) for level in CONFIDENCE])


def half_widths(values: Floats, together: bool = False) -> tuple[Floats, NDArray[np.bool_]]:
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
    return common_correlation(np.asarray(series, np.float64))[0]


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
    together, freedom = common_correlation(values)
    if freedom < ENOUGH and not half_widths(values.reshape(len(values), -1), True)[1][0]:
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
    for start in range(0, columns.shape[1], COLUMNS_PER_BLOCK):
        part = columns[:, start : start + COLUMNS_PER_BLOCK]
        own, own_freedom = _correlations(_covariances(part))
        g = np.minimum(np.maximum(own, max(1.0, together)), max(1.0, n - 1.0))
        least = np.minimum(own_freedom, freedom)
        short = least < ENOUGH
        errors = np.sqrt(np.square(part - part.mean(0)).sum(0) / np.maximum(n - g, 1e-9) * g / n)
        both = errors * error_quantiles(np.where(short, np.inf, least))
        half, known = half_widths(part[:, short])
        both[:, short] = np.fmax(both[:, short], half)
        if np.isinf(freedom):
            both[:, np.flatnonzero(short)[~known]] = np.nan
        widths[:, start : start + COLUMNS_PER_BLOCK] = both
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
