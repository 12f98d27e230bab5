"""Splittings of long-range interactions, as these declare them by :attr:`Interaction.splitting`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from vmdpotential.interactions import Bound, coulomb, ewald, gaussian, short_range
from vmdpotential.splitting.coulomb import CoulombSplitting, optimal_splitting
from vmdpotential.splitting.gaussian import GaussianSplitting, gaussian_on_mesh
from vmdpotential.splitting.mesh import SmoothSplitting, SplittingChoice
from vmdpotential.splitting.screened import ScreenedSplitting, optimal_for_screened

#: Longest split radius for waves of a screened potential, in Debye lengths; for a longer one, the polynomial has too
#: few terms.
LONGEST = 8.0

#: Distance beyond which the potential of a Gaussian charge equals that of a point, in standard deviations; and its
#: greatest wave number, in inverse standard deviations: both to 1e-10.
FAR, BAND = 6.5, 6.8


@dataclass(frozen=True, eq=False)
class LongRangeSplit:
    """A potential divided into a smooth part, which needs few waves, and pairs within the split radius.

    Parameters
    ----------
    smooth : SmoothSplitting
    band : float, 1/A
        Greatest wave number that is summed.
    background : float, A^2
        Integral over space of the pair interactions, which a neutralising background cancels.
    pairs : sequence of (float, Bound)
        Interactions within the split radius, each with a factor.
    """

    smooth: SmoothSplitting
    band: float
    background: float
    pairs: Sequence[tuple[float, Bound]]


@dataclass(frozen=True, eq=False)
class LongRange:
    """The splittings of an interaction with its parameters set.

    Parameters
    ----------
    mesh : callable
        Returns the best splitting for a mesh, and its error (1/A), for a split radius (A), a mesh spacing (A) and an
        order of splines.
    waves : callable
        Returns the splitting for a sum over waves, from a splitting of 1/r and its band (in inverse radii).
    longest : float, A
        Longest split radius for a sum over waves.
    width : float or None, A
        Standard deviation of the charges, if there is no short-range part and hence no radius to choose.
    """

    mesh: SplittingChoice
    waves: Callable[[CoulombSplitting, float], LongRangeSplit]
    longest: float = np.inf
    width: float | None = None


def long_range(bound: Bound) -> LongRange | None:
    """Return the splittings of an interaction; None where it declares none, or ends at a cutoff."""
    declared = bound.interaction.splitting
    return None if declared is None or bound.cutoff is not None else declared(bound)


# one callable for each length, so that results kept by callable are found again
_mesh_for_screened = lru_cache(maxsize=16)(partial(partial, optimal_for_screened))
_mesh_for_gaussian = lru_cache(maxsize=16)(partial(partial, gaussian_on_mesh))


def of_coulomb(bound: Bound) -> LongRange:
    """Return the splittings of 1/r (:mod:`vmdpotential.splitting.coulomb`)."""
    return LongRange(optimal_splitting, lambda inner, band: LongRangeSplit(
        inner, band / inner.radius, inner.short_integral, [(1.0, inner.short())]))


def of_screened(bound: Bound) -> LongRange:
    """Return the splittings of a screened potential (:mod:`vmdpotential.splitting.screened`): without a background."""
    length = bound.decay
    assert length is not None

    def waves(inner: CoulombSplitting, band: float) -> LongRangeSplit:
        smooth = ScreenedSplitting(inner, length)
        return LongRangeSplit(smooth, band / inner.radius, 0.0, [
            (1.0, bound.truncated(inner.radius)), (-1.0, coulomb.INTERACTION.bind().truncated(inner.radius)),
            (1.0, short_range.bind(inner.radius, smooth.shifted))])

    return LongRange(_mesh_for_screened(length), waves, LONGEST * length)


def of_gaussian(bound: Bound) -> LongRange:
    """Return the splittings of the potential of Gaussian charges (:mod:`vmdpotential.splitting.gaussian`)."""
    width = bound.values["smear"]

    def waves(inner: CoulombSplitting, band: float) -> LongRangeSplit:
        if FAR * width > inner.radius:  # few waves suffice; pairs are only listed for their distances
            return LongRangeSplit(GaussianSplitting(width), BAND / width, 0.0, [(0.0, inner.short())])
        less = ewald.INTERACTION.bind(beta=gaussian.ewald_factor(width), cutoff=FAR * width)
        return LongRangeSplit(inner, band / inner.radius, inner.short_integral - 2 * np.pi * width**2,
                     [(1.0, inner.short()), (-1.0, less)])

    return LongRange(_mesh_for_gaussian(width), waves, width=width)
