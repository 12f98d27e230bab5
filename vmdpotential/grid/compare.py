"""Difference and similarity of two maps at the same points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Grid, Provenance
from vmdpotential.units import POTENTIAL_UNITS, coulomb_constant

#: Number of points processed at a time.
BLOCK = 2**20


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


def factor(first: Grid, second: Grid) -> float:
    """Return the factor that converts the second map's values to the first map's unit.

    Raises
    ------
    InputError
        If the units differ and one of them is no unit of a potential, or a map in kT does not state its temperature.
    """
    if first.unit == second.unit and (not first.unit.startswith("kT") or first.temperature == second.temperature):
        return 1.0
    if first.unit not in POTENTIAL_UNITS or second.unit not in POTENTIAL_UNITS:
        raise InputError(f"the maps have different units: {first.unit or 'none'} and {second.unit or 'none'}",
                         "make both maps in one {unit}")
    a, b = (coulomb_constant(grid.unit, *_temperature(grid)) for grid in (first, second))
    return a / b


def _temperature(grid: Grid) -> tuple[float, ...]:
    if not grid.unit.startswith("kT"):
        return ()
    if grid.temperature is None:
        raise InputError("a map in kT does not state its temperature", "make both maps in one {unit}")
    return (grid.temperature,)


def map_difference(first: Grid, second: Grid) -> Grid:
    """Return the first map minus the second, in the first's unit, on its lattice; NaN where the second has no values.

    The second map is interpolated trilinearly unless it has the same lattice.
    """
    return combine_maps(first, second, -1)


def combine_maps(first: Grid, second: Grid, sign: int) -> Grid:
    """Return the sum (sign 1) or the difference (-1) of two maps; see :func:`map_difference`."""
    scale = -sign * factor(first, second)
    word, separator = ("sum", " plus ") if sign > 0 else ("difference", " minus ")
    quantity = f"{word} of {first.provenance.quantity or 'values'}"
    media = list(dict.fromkeys(grid.provenance.medium or "unknown" for grid in (first, second)))
    kinds = {grid.provenance.medium_kind for grid in (first, second)}
    provenance = Provenance(quantity=quantity, derived="" if sign > 0 else "difference",
                            medium="" if media == ["unknown"] else separator.join(media),
                            medium_kind=kinds.pop() if len(kinds) == 1 else "",
                            boundary=first.provenance.boundary, cell=first.provenance.cell,
                            inputs=(*first.provenance.inputs, *second.provenance.inputs),
                            program=first.provenance.program)
    if same_lattice(first, second):
        values = first.values - np.float32(scale) * second.values
    else:
        values = np.empty(first.lattice.shape, np.float32)
        for start in range(0, first.lattice.shape[0], step := max(1, BLOCK // (values[0].size or 1))):
            slab = first.lattice.slab(start, min(start + step, first.lattice.shape[0]))
            interpolated = second.sample(slab.points()).reshape(slab.shape)
            values[start : start + step] = first.values[start : start + step] - scale * interpolated
        if not np.isfinite(values).any():
            raise InputError("the maps do not overlap")
    return replace(first.with_values(values), provenance=provenance)


def same_lattice(first: Grid, second: Grid) -> bool:
    """Return whether both maps have the same points, within a thousandth of a spacing."""
    a, b = first.lattice, second.lattice
    return a.shape == b.shape and bool(
        np.allclose(a.origin, b.origin, atol=1e-3 * a.spacing.min()) and
        np.allclose(a.last, b.last, atol=1e-3 * a.spacing.min()))


def map_similarity(first: Grid, difference: Grid) -> MapSimilarity:
    """Return the similarity of a map and a second one, given the first and their :func:`map_difference`."""
    a, d = first.values.ravel(), difference.values.ravel()
    sums = np.zeros(7)
    largest = 0.0
    for start in range(0, a.size, BLOCK):
        x, y = (v[start : start + BLOCK].astype(np.float64) for v in (a, d))
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


def without_points(grid: Grid, outside: NDArray[np.bool_]) -> Grid:
    """Return a copy of a map that is NaN where the mask `outside` (nx, ny, nz) is true."""
    values = grid.values.copy()
    values[outside] = np.nan
    return grid.with_values(values)
