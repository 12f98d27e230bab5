"""Files of the commands that colour surfaces: tables, meshes, figures and movies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from vmdpotential import registry
from vmdpotential.commands.options import Force
from vmdpotential.commands.pictures import FrameRate, PictureOptions
from vmdpotential.errors import UsageError
from vmdpotential.figures.colours import ValueRange
from vmdpotential.figures.movies import check_movie, is_movie, put_movie
from vmdpotential.io.files import output as files
from vmdpotential.parameters import Option, warn_unused
from vmdpotential.results import Figure, Result, put_table
from vmdpotential.surfaces import Surface


class SurfaceResult(Result):
    """A result that colours surfaces by values within a range."""

    span: ValueRange

    @property
    @abstractmethod
    def caption(self) -> str:
        """Sentences for the legend of the figure."""

    @abstractmethod
    def draw(self) -> Figure:
        """Return the figure."""

    def turning(self) -> Iterator[Figure]:
        """Yield the pictures of a movie: the figure alone unless overridden."""
        yield self.draw()


@dataclass(frozen=True, kw_only=True)
class SurfaceOutput:
    """Files of a surface."""

    output: Annotated[tuple[Path, ...], Option(
        "files to write: .csv for the table, .glb or .ply for the coloured mesh", short="o", viewer=False,
        written=True, suffix=".csv")] = ()
    figure: Annotated[Path | None, Option(
        "figure to write: .png, .pdf or .svg", written=True, heading="main options")] = None
    force: Force = False

    def checked_files(self, picture: PictureOptions) -> list[Path]:
        """Return the files to write, after a check of their formats and of what exists."""
        known = [".csv", *registry.known("mesh_writer")]
        for path in self.output:
            if path.suffix.lower() not in known:
                raise UsageError("output", f"{path}: the suffix is not that of a table or mesh",
                                 f"choose one of {', '.join(known)}")
            if path.suffix.lower() != ".csv":
                registry.get("mesh_writer", path.suffix.lower())
        if self.figure is not None:
            self.check_figure(self.figure)
        paths = [*self.output, *(path for path in (self.figure, picture.caption) if path is not None)]
        files.check(paths, self.force)
        return paths

    def write_files(self, result: SurfaceResult, picture: PictureOptions, title: str,
                    coloured: Callable[[], tuple[Surface, NDArray[np.float64]]]) -> None:
        """Write the table and figure of a result, its caption, and a mesh coloured by values (V,) at its vertices."""
        from vmdpotential.figures.surfaces import vertex_colours

        with files.writing_files(result.files, self.force) as places:
            for path, place in zip(result.files, places, strict=True):
                if path == self.figure:
                    self.put_figure(result, path, place, picture, title)
                elif path == picture.caption:
                    place.write_text(result.caption + "\n", encoding="utf-8")
                elif path.suffix.lower() in registry.available("mesh_writer"):
                    mesh, values = coloured()
                    colours = np.round(255 * vertex_colours(values, result.span)).astype(np.uint8)
                    registry.get("mesh_writer", path.suffix.lower())(place, mesh, colours, values)
                else:
                    put_table(result.table(), place)

    def check_figure(self, path: Path) -> None:
        """Raise UsageError unless a figure's file has a format that can be written."""
        from vmdpotential.figures.page import check_figure_format

        check_figure_format(path)

    def put_figure(self, result: SurfaceResult, path: Path, place: Path, picture: PictureOptions, title: str) -> None:
        """Write a result's figure."""
        from vmdpotential.figures.page import render_figure

        place.write_bytes(render_figure(result.draw(), path, picture.resolution(path), title, caption=result.caption))


@dataclass(frozen=True, kw_only=True)
class MovingOutput(SurfaceOutput):
    """Files of a surface, of which one may be a movie."""

    figure: Annotated[Path | None, Option(
        "figure to write: .png, .pdf or .svg, or movie: .gif or .mp4, whose frames are the maps, or in which the "
        "surface turns about what is up if there is one map",
        written=True, heading="main options")] = None
    rate: FrameRate = 12.0

    def check_figure(self, path: Path) -> None:
        """Raise UsageError unless a figure's file has a format that can be written."""
        if is_movie(path):
            check_movie(path, path)
        else:
            super().check_figure(path)

    def checked_files(self, picture: PictureOptions) -> list[Path]:
        """Return the files to write, after a check of their formats and of what exists."""
        if self.figure is None or not is_movie(self.figure):
            warn_unused(("rate",), "no movie is written, whose suffix is .gif or .mp4")
        return super().checked_files(picture)

    def put_figure(self, result: SurfaceResult, path: Path, place: Path, picture: PictureOptions, title: str) -> None:
        """Write a result's figure or movie."""
        if is_movie(path):
            put_movie(result.turning(), place, path, picture.resolution(path), self.rate, result.caption)
        else:
            super().put_figure(result, path, place, picture, title)
