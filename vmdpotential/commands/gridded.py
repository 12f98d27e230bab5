"""The results of commands that make maps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential import registry
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.grid.planes import middle
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import warn_unused
from vmdpotential.results import Axes, Result, hidden, key, part, shown

#: Keys that every map has, and those of a sum over charges.
LATTICE = ("unit", "lattice.shape", "lattice.origin", "lattice.spacing")
SUM = ("dielectric", *(f"provenance.{name}" for name in (
    "medium", "method", "boundary", "interaction", "cutoff", "precision", "tolerance", "error", "error_away",
    "engine")))


def lattice_like(like: Path | Grid | None) -> Lattice | None:
    """Return the lattice of a map or of its file, None for none."""
    from vmdpotential.io.maps import read_map

    if like is None:
        return None
    lattice = like.lattice if isinstance(like, Grid) else read_map(like).lattice
    warn_unused(("spacing", "padding"), "the grid is that of {like}")
    return lattice


def wraps(lattice: Lattice, cell: Cell | None) -> bool:
    """Return whether a lattice covers a whole rectangular cell, so that its last nodes are next to the first."""
    return cell is not None and cell.orthogonal and bool(np.allclose(
        lattice.spacing * lattice.shape, np.abs(np.diagonal(cell.vectors)), rtol=1e-4))


def cell_lines(deviation: NDArray[np.float64] | None) -> list[str]:
    """Return the line on the deviations (3, 3), A, of the frames' cells from the mean one, if there are any."""
    sizes = np.zeros(3) if deviation is None else np.linalg.norm(deviation, axis=1)
    return [] if sizes.max() <= 1e-3 else ["the cell is the mean of the frames', which deviate by "
                                           f"{', '.join(f'{x:.3g}' for x in sizes)} A along a, b and c"]


#: Errors of a continuum from which a report asks for a finer grid.
_COARSE = 0.2


def stated_error(grid: Grid, where: str = "") -> Iterator[str]:
    """Yield the error of a map in words, if it states one, and that of a method that makes no sum even if not."""
    from vmdpotential.methods.accuracy import POINTS, Errors

    made = grid.provenance
    if not registry.get("method", made.method).superposes:
        yield "error: not estimated by this method" if made.error is None else (
            f"error, from two grids{where}: {made.error:.1e} of the potential outside the molecule, "
            f"{made.error_away:.1e} at its surface" + ("; a finer grid is needed" if max(
                made.error, made.error_away or 0.0) > _COARSE else ""))
    elif made.error is not None and made.error_away is not None:
        errors = Errors(made.error, made.error_away, made.error_field, made.error_field_away)
        yield f"relative rms error {errors}, at {POINTS} points{where} (tolerance {made.tolerance:g})"


class GridResult(Result):
    """A map and the structure it is of."""

    grid: Grid = part(*LATTICE, shown=True)
    structure: Structure = shown()
    seconds: float
    limits: tuple[float, float] | None = hidden(default=None)

    minimum = key(lambda self: self.extremes[0])
    maximum = key(lambda self: self.extremes[1])
    display_limit = key(lambda self: self.grid.display_limit())

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """Least and largest value of the map, which may be larger than memory."""
        if self.limits is not None:
            return self.limits
        results = [(float(values.min()), float(values.max())) for _, values in self.grid.slabs()]
        return min(low for low, _ in results), max(high for _, high in results)

    @property
    def points(self) -> str:
        """The points in words."""
        lattice = self.grid.lattice
        return (f"{' x '.join(map(str, lattice.shape))} points, "
                f"{' x '.join(f'{h:.4g}' for h in dict.fromkeys(lattice.spacing.round(9)))} A apart")

    def plot(self, ax: Axes) -> Axes:
        """Draw the slice through the middle, across z."""
        from vmdpotential.figures.slices import draw_slice

        draw_slice(ax, self.grid, middle(self.grid.lattice))
        return ax
