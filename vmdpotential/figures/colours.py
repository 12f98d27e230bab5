"""Colours of potentials and ions, and the range of a colour scale, for all viewers, web pages and figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Grid
from vmdpotential.units import DEFAULT_TEMPERATURE, POTENTIAL_UNITS, coulomb_constant

#: Equidistant colours from the most negative value (red) via 0 (white) to the most positive (blue): ColorBrewer's RdBu
#: without its darkest ends, which can be read without distinguishing red and green.
COLOUR_STOPS = ("#9e1224", "#d96b54", "#f7c7b0", "#f7f7f7", "#b3d4e8", "#5799c9", "#0f4f99")

#: Colour of points without a value: weaker than the pale colours where shaded, too.
UNKNOWN = "#cccccc"

#: Colours of ions and isosurfaces by the sign of their charge or level: negative, zero, positive.
SIGN_COLOURS = ("#c8372d", "#9a9a9a", "#2f6db5")

#: Levels of isosurfaces of orbitals (0.03 bohr^-3/2) and electron densities (0.002 e/bohr^3), by the unit of a map.
ISOVALUE_OF_UNIT = {"A^-3/2": 0.08, "bohr^-3/2": 0.03, "e/A^3": 0.0135, "e/bohr^3": 0.002}

#: Unit of the energies of probes, of which the attractive, negative ones are of interest.
_ENERGY = "kcal/mol"

#: Limit of the colours of a potential in water, screened or in a continuum, kT/e.
IN_WATER = 5.0

#: Media of potentials in water, which have one range of colours.
_WATER = ("screened", "water")

#: Radius of a water, A: distance from a molecular surface at which a continuum's potential is read for its colours.
WATER_RADIUS = 1.4

#: Fraction of the values of other maps that lie within the limits.
SHOWN_FRACTION = 0.98

#: Fraction of a range below which values of the other sign are neglected.
_LITTLE = 0.02


class ValueRange(NamedTuple):
    """Range of values."""

    low: float
    high: float


def stops() -> list[list[float]]:
    """Return :data:`COLOUR_STOPS`, each as red, green and blue, 0 to 1."""
    return [[channel / 255 for channel in bytes.fromhex(stop[1:])] for stop in COLOUR_STOPS]


def initial_isovalue(grid: Grid) -> float:
    """Return the initial level of the isosurfaces of a map; for orbitals and densities the usual one."""
    return ISOVALUE_OF_UNIT.get(grid.unit) or grid.display_limit()


def isosurface_levels(grid: Grid, level: float | None = None) -> tuple[float, ...]:
    """Return the levels of the isosurfaces that show a map: of both signs, or of one if that is what matters.

    A density has one sign. The energy of a probe is shown where it is attractive. Both lobes of an orbital are shown.

    Parameters
    ----------
    grid : Grid
    level : float or None
        Magnitude of the levels; the usual one for the quantity, or by the values, unless given.
    """
    low = min(float(values.min()) for _, values in grid.slabs())
    high = max(float(values.max()) for _, values in grid.slabs())
    if grid.unit == _ENERGY and low < 0:
        return (-(level or float(f"{-low / 2:.2g}")),)
    if level is None:
        level = grid.display_limit() if grid.provenance.frames else initial_isovalue(grid)
        if 0 < max(-low, high) <= level:  # all but a few values are 0
            level = float(f"{max(-low, high) / 2:.2g}")
    if not grid.unit.endswith("-3/2"):
        if low >= -_LITTLE * high:
            return (level,)
        if high <= -_LITTLE * low:
            return (-level,)
    return level, -level


def sign_colour(value: float) -> str:
    """Return the colour of an ion by its charge, or of an isosurface by its level."""
    return SIGN_COLOURS[int(np.sign(value)) + 1]


def check_range(value_range: tuple[float, float]) -> None:
    """Raise UsageError unless the limits of a range increase."""
    low, high = value_range
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise UsageError("range", "the first value must be below the second", value=f"{low:g},{high:g}")


def check_units(grids: Sequence[Grid], parameter: str = "maps") -> None:
    """Raise UsageError, naming the parameter of the maps, unless these can share a scale of colours."""
    first = grids[0]
    for grid in grids[1:]:
        if grid.unit != first.unit:
            raise UsageError(
                parameter, f"have different units ({first.unit or 'none stated'} and {grid.unit or 'none stated'}), "
                "so they cannot share a scale", "draw them apart",
            )
        if grid.unit.startswith("kT") and None not in (grid.temperature, first.temperature) and (
            abs((grid.temperature or 0) - (first.temperature or 0)) > 1e-6
        ):
            raise UsageError(
                parameter, f"are in kT/e at different temperatures ({first.temperature:g} and {grid.temperature:g} K), "
                "so they cannot share a scale", "draw them apart",
            )


def map_meaning(grid: Grid) -> str:
    """Return unit and medium of a map's values, e.g. ``kT/e at 298.15 K, vacuum, no screening``."""
    unit = grid.unit or "(no known unit)"
    if grid.temperature is not None and unit.startswith("kT"):
        unit += f" at {grid.temperature:g} K"
    return ", ".join(filter(None, (unit, grid.provenance.state, grid.provenance.medium)))


def standard_limit(grid: Grid) -> float | None:
    """Return 5 kT/e in the unit of a map, to one digit, if it is a potential in water; otherwise None."""
    if (grid.provenance.medium_kind not in _WATER or grid.unit not in POTENTIAL_UNITS
            or grid.provenance.derived):
        return None
    temperature = grid.temperature or DEFAULT_TEMPERATURE
    factor = coulomb_constant(grid.unit, temperature) / coulomb_constant("kT/e", temperature)
    return float(f"{IN_WATER * factor:.1g}")


def reading_distance(grid: Grid) -> float:
    """Return the distance from a molecular surface (A) at which a map is read for the surface's colours.

    In a continuum it is the radius of a water, as usual: on the surface itself the potential is dominated by the
    nearest atom's charge, and its slope is discontinuous. In other media it is 0.
    """
    return WATER_RADIUS if grid.provenance.continuum else 0.0


def colour_range(grids: Iterable[Grid], shown: Iterable[ArrayLike]) -> ValueRange:
    """Return the range of a common colour scale of maps: +-5 kT/e in water, otherwise by the values shown.

    Parameters
    ----------
    grids : iterable of Grid
    shown : iterable of arrays
        Values that are coloured; NaN outside the map.
    """
    limits = [standard_limit(grid) for grid in grids]
    first = limits[0] if limits else None
    if first is not None and all(limit == first for limit in limits):
        return ValueRange(-first, first)
    return robust_range(shown)


def robust_range(shown: Iterable[ArrayLike], fraction: float = SHOWN_FRACTION) -> ValueRange:
    """Return a range with round limits that contains a fraction of the values: symmetric, or from or to 0.

    The limits do not follow the extremes, because with the peaks at atoms everything else would be pale. If hardly any
    value has the other sign, as for a standard deviation, the range ends at 0.

    Parameters
    ----------
    shown : iterable of arrays
        Values that are coloured; NaN outside the map.
    fraction : float
        Fraction of the magnitudes within the limits.
    """
    arrays = [np.asarray(array, np.float64).ravel() for array in shown]
    values = np.concatenate([array[np.isfinite(array)] for array in arrays] or [np.zeros(0)])
    limit = float(np.quantile(np.abs(values), fraction)) if len(values) else 0.0
    if limit == 0:
        limit = float(np.abs(values).max(initial=0.0)) or 1.0
    power = 10.0 ** np.floor(np.log10(limit))
    step = next(step for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, np.inf) if limit <= step * power * (1 + 1e-9))
    rest = (1 - fraction) / 2
    low, high = np.quantile(values, (rest, 1 - rest)) if values.any() else (-limit, limit)
    return ValueRange(0.0 if low > -_LITTLE * limit else -float(step * power),
                 0.0 if high < _LITTLE * limit else float(step * power))


def scale(value_range: tuple[float, float]) -> list[tuple[float, str]]:
    """Return values and colours between which the colour scale of a range is linear, from the lowest to the highest.

    0 is white, and colours are equally strong at equal distances from 0 on both sides, for any range.
    """
    low, high = value_range
    inner = [x for x in np.linspace(-1, 1, len(COLOUR_STOPS)) * max(abs(low), abs(high)) if low < x < high]
    values = [low, *(float(x) for x in inner), high]
    return [(x, "#" + bytes(rgb).hex()) for x, rgb in zip(values, rgb_of(values, value_range), strict=True)]


def rgb_of(values: ArrayLike, value_range: tuple[float, float]) -> NDArray[np.uint8]:
    """Return red, green and blue (N, 3), 0 to 255, of values (N,); :data:`UNKNOWN` where they are not finite."""
    values, largest = np.asarray(values, np.float64), max(map(abs, value_range))
    table = np.array([tuple(bytes.fromhex(stop[1:])) for stop in COLOUR_STOPS], np.float64)
    known = np.isfinite(values)
    relative = np.clip(np.where(known, values, 0.0), *value_range) / largest
    stops = np.linspace(-1, 1, len(COLOUR_STOPS))
    rgb = np.stack([np.interp(relative, stops, channel) for channel in table.T], -1)
    rgb[~known] = tuple(bytes.fromhex(UNKNOWN[1:]))
    return np.asarray(np.round(rgb), np.uint8)
