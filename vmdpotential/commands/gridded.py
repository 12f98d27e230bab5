"""The results of commands that make maps."""

from __future__ import annotations

from functools import cached_property

from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.planes import middle
from vmdpotential.molecule.structure import Structure
from vmdpotential.results import Axes, Result, hidden, key, part, shown

#: Keys that every map has, and those of a sum over charges.
LATTICE = ("unit", "lattice.shape", "lattice.origin", "lattice.spacing")
SUM = ("dielectric", *(f"provenance.{name}" for name in (
    "medium", "method", "boundary", "interaction", "cutoff", "precision", "tolerance", "error", "error_away",
    "engine")))


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
        found = [(float(values.min()), float(values.max())) for _, values in self.grid.slabs()]
        return min(low for low, _ in found), max(high for _, high in found)

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
