"""Results of commands that compute maps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.grid.planes import middle_plane
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import warn_unused
from vmdpotential.results import Axes, Result


def lattice_entries(grid: Grid) -> dict[str, Any]:
    """Return the entries of ``--json`` for every map: its unit and its lattice."""
    lattice = grid.lattice
    return {"unit": grid.unit, "shape": lattice.shape, "origin": lattice.origin, "spacing": lattice.spacing}


def sum_entries(grid: Grid) -> dict[str, Any]:
    """Return the further entries for a sum over charges."""
    source = grid.provenance
    return {"dielectric": grid.dielectric, "medium": source.medium, "method": source.method,
            "boundary": source.boundary, "interaction": source.interaction, "cutoff": source.cutoff,
            "precision": source.precision, "tolerance": source.tolerance, "error": source.error,
            "error_away": source.error_away, "engine": source.engine}


def lattice_like(like: Path | Grid | None) -> Lattice | None:
    """Return the lattice of a map, or of a map file; None for None."""
    from vmdpotential.io.maps import read_map

    if like is None:
        return None
    lattice = like.lattice if isinstance(like, Grid) else read_map(like).lattice
    warn_unused(("spacing", "padding"), "the grid is that of {like}")
    return lattice


def cell_lines(deviation: NDArray[np.float64] | None) -> list[str]:
    """Return a line on the standard deviation (3, 3), A, of the cell over frames, or no line if the cell is constant.
    """
    sizes = np.zeros(3) if deviation is None else np.linalg.norm(deviation, axis=1)
    return [] if sizes.max() <= 1e-3 else ["the cell is the mean of the frames', which deviate by "
                                           f"{', '.join(f'{x:.3g}' for x in sizes)} A along a, b and c"]


#: Error of a continuum above which a report recommends a finer grid.
_COARSE = 0.2


def stated_error(grid: Grid, where: str = "") -> Iterator[str]:
    """Yield a line on the error of a map: if it is known, and always in a continuum."""
    from vmdpotential.sums.accuracy import COMPARED_NODES
    from vmdpotential.sums.result import Errors

    source = grid.provenance
    if source.continuum:
        yield "error: not estimated by this method" if source.error is None else (
            f"error, from two grids{where}: {source.error:.1e} of the potential outside the molecule, "
            f"{source.error_away:.1e} at its surface" + ("; a finer grid is needed" if max(
                source.error, source.error_away or 0.0) > _COARSE else ""))
    elif source.error is not None and source.error_away is not None:
        errors = Errors(source.error, source.error_away, source.error_field, source.error_field_away)
        yield f"relative rms error {errors}, at {COMPARED_NODES} points{where} (tolerance {source.tolerance:g})"


class GridResult(Result):
    """A map and its structure."""

    grid: Grid
    structure: Structure
    seconds: float
    limits: tuple[float, float] | None = None

    minimum = cached_property(lambda self: self.extremes[0])
    maximum = cached_property(lambda self: self.extremes[1])
    display_limit = cached_property(lambda self: self.grid.display_limit())

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            **lattice_entries(self.grid), "seconds": self.seconds, "minimum": self.minimum, "maximum": self.maximum,
            "display_limit": self.display_limit}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"grid": self.grid, "structure": self.structure}

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """Least and largest value of the map, found slab by slab because the map may be larger than memory."""
        if self.limits is not None:
            return self.limits
        results = [(float(values.min()), float(values.max())) for _, values in self.grid.slabs()]
        return min(low for low, _ in results), max(high for _, high in results)

    @property
    def points(self) -> str:
        """Description of the number of points and their spacing."""
        lattice = self.grid.lattice
        return (f"{' x '.join(map(str, lattice.shape))} points, "
                f"{' x '.join(f'{h:.4g}' for h in dict.fromkeys(lattice.spacing.round(9)))} A apart")

    def plot(self, ax: Axes) -> Axes:
        """Draw the plane across z through the middle of the map."""
        from vmdpotential.figures.slices import draw_slice

        draw_slice(ax, self.grid, middle_plane(self.grid.lattice))
        return ax
