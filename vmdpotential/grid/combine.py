"""Sum and difference of two maps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Grid, Provenance
from vmdpotential.units import POTENTIAL_UNITS, coulomb_constant

#: Number of points processed at a time.
BLOCK_POINTS = 2**20


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


def combine_maps(first: Grid, second: Grid, sign: int) -> Grid:
    """Return the sum (sign 1) or the difference (-1) of two maps, in the first's unit and on its lattice.

    The second map is interpolated trilinearly unless it has the same lattice; NaN where it has no values.
    """
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
        for start in range(0, first.lattice.shape[0], step := max(1, BLOCK_POINTS // (values[0].size or 1))):
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
