"""The command ``compare``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from vmdpotential.commands.options import Force, UnitOfFile, read_maps
from vmdpotential.errors import UsageError
from vmdpotential.grid.combine import same_lattice
from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.planes import Plane, middle_plane
from vmdpotential.io.files import output as files
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option
from vmdpotential.results import Axes, Figure, Result

from .similarity import MapSimilarity, map_similarity


def compare(
    first: Annotated[Path | Grid, Option(
        "map file (.dx, .mrc, .ccp4, .cube, .npz ...)", positional=True, metavar="FIRST")],
    second: Annotated[Path | Grid, Option(
        "map to compare with and to subtract; interpolated where its grid differs", positional=True, metavar="SECOND")],
    structure: Annotated[Path | Structure | None, Option(
        "structure by whose atoms the points to compare are selected (options away and within)", metavar="FILE",
        front=True)] = None,
    away: Annotated[float, Option(
        "least distance of the compared points to every atom of the structure", unit="A", low=0, high=1000)] = 0.0,
    within: Annotated[float | None, Option(
        "largest distance of the compared points to the nearest atom of the structure; no limit unless given",
        unit="A", above=0, high=1000)] = None,
    plane: Annotated[tuple[str | Plane, ...], Option(
        "planes of the figure, such as z=12.5; unless given, the plane in the middle perpendicular to z",
        unit="A", metavar="z=0", front=True)] = (),
    output: Annotated[Path | None, Option(
        "map of the difference to write, first minus second: .dx, .mrc, .npz ...", short="o", viewer=False,
        written=True)] = None,
    figure: Annotated[Path | None, Option(
        "figure of both maps and their difference: .png, .pdf or .svg", viewer=False, written=True,
        heading="main options")] = None,
    unit_of_file: UnitOfFile = None,
    force: Force = False,
) -> Comparison:
    """Compare two maps: difference, correlation and Hodgkin index.

    The second map is converted to the unit of the first. With a structure, the comparison can leave out points near its
    atoms, where all potentials are similar, or far from them.

    Raises
    ------
    InputError
        For maps of different quantities or without common points.
    """
    from vmdpotential.figures.page import check_figure_format, render_figure
    from vmdpotential.io import read_structure
    from vmdpotential.io.maps import check_map_format, map_name, put_map

    if output is not None:
        check_map_format(output)
    if figure is not None:
        check_figure_format(figure)
    if structure is None and (away > 0 or within is not None):
        raise UsageError("away" if away > 0 else "within", "a distance from atoms needs a structure",
                         "give {structure} too")
    paths = [path for path in (output, figure) if path is not None]
    files.check(paths, force)
    names = [map_name(item) if isinstance(item, Path) else f"map {n}" for n, item in enumerate((first, second), 1)]
    a, b = read_maps((first, second), unit_of_file)
    comparison = whole = a - b
    if structure is not None:
        from scipy.spatial import cKDTree

        atoms = structure if isinstance(structure, Structure) else read_structure(structure)
        reach = max(away, within or 0.0)
        near, _ = cKDTree(atoms.positions).query(a.lattice.points(), distance_upper_bound=reach + 1e-6, workers=-1)
        distance = near.reshape(a.lattice.shape)
        left = (distance >= away) & (distance <= (np.inf if within is None else within))
        comparison = whole.with_values(np.where(left, whole.values, np.float32(np.nan)))
        if not np.isfinite(comparison.values).any():
            raise UsageError("within" if within is not None else "away", "no points of the maps are left to compare")
    other = replace(a.with_values(a.values - whole.values), provenance=b.provenance)
    result = Comparison(
        like=map_similarity(a, comparison), unit=a.unit, media=[grid.provenance.medium for grid in (a, b)],
        same_lattice=same_lattice(a, b), names=names, maps=(a, other, whole), grid=comparison, written=output,
        files=paths, draws=not paths,
        planes=[Plane.parse(item) if isinstance(item, str) else item for item in plane] or [middle_plane(a.lattice)])
    with files.writing_files(paths, force) as places:
        if output is not None:
            put_map(comparison.with_values(np.nan_to_num(comparison.values)), places[0])
        if figure is not None:
            places[-1].write_bytes(render_figure(result.draw(), figure, title=f"{names[0]} and {names[1]}"))
    return result


class Comparison(Result):
    """Similarity of two maps, and their difference."""

    like: MapSimilarity
    unit: str
    media: Sequence[str]
    same_lattice: bool
    names: Sequence[str]
    maps: Sequence[Grid]
    planes: Sequence[Plane]
    written: Path | None
    grid: Grid

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "points": self.like.points, "correlation": self.like.correlation, "hodgkin": self.like.hodgkin,
            "slope": self.like.slope, "rms": self.like.rms, "mean": self.like.mean, "largest": self.like.largest,
            "rms_first": self.like.rms_first, "rms_second": self.like.rms_second, "unit": self.unit,
            "media": self.media, "same_lattice": self.same_lattice}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"grid": self.grid}

    def text(self) -> Iterator[str]:
        """Yield the similarity indices and the difference."""
        like, unit, (first, second) = self.like, f" {self.unit}".rstrip(), self.names
        yield (f"{first} and {second} at {like.points} points"
               + ("" if self.same_lattice else f", {second} interpolated to those of {first}"))
        if any(self.media):
            yield " and ".join(dict.fromkeys(medium or "an unknown medium" for medium in self.media))
        yield f"correlation {like.correlation:.4f}, Hodgkin index {like.hodgkin:.4f}, slope {like.slope:.4g}"
        yield (f"difference: rms {like.rms:.4g}{unit}, mean {like.mean:.4g}, largest {like.largest:.4g}; rms of the "
               f"maps {like.rms_first:.4g} and {like.rms_second:.4g}")
        if self.written is not None and not np.isfinite(self.grid.values).all():
            yield "the written map is 0 where nothing was compared"

    def plot(self, ax: Axes) -> Axes:
        """Draw the difference on the first plane."""
        from vmdpotential.figures.slices import draw_slice

        draw_slice(ax, self.maps[-1], self.planes[0])
        return ax

    def draw(self) -> Figure:
        """Return both maps and their difference on the planes."""
        from vmdpotential.figures.page import Panel, compose_slices

        return compose_slices([Panel(grid, plane, name) for plane in self.planes for grid, name in zip(
            self.maps, (*self.names, "difference"), strict=True)], width=183.0).figure


command = Command.of(compare, draws="difference", examples=(
    "compare first.dx second.dx",
    "compare first.dx second.dx --structure protein.pdb --away 2 -o difference.dx --figure difference.png",
), python="""\
>>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
>>> grid = vp.potential_map(structure, atoms="protein", spacing=3.0)
>>> round(vp.compare(grid, 2 * grid).like.correlation, 6)
1.0""")
