"""Options that all figures for papers share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vmdpotential.errors import UsageError
from vmdpotential.figures.movies import MOVIE_DPI, is_movie
from vmdpotential.figures.sizes import height_in_mm, width_in_mm
from vmdpotential.parameters import Option

#: Frames of a movie in a second.
FrameRate = Annotated[float, Option(
    "frames of a movie in a second", low=0.1, high=50, metavar="FRAMES", heading="figure")]


@dataclass(frozen=True, kw_only=True)
class PictureOptions:
    """Size, resolution, label and caption of a figure."""

    label: Annotated[str | None, Option(
        "label of the colour bar; unless given, the unit of a potential, or quantity and unit", metavar="TEXT",
        heading="figure")] = None
    width: Annotated[str, Option(
        "width of the figure: single (89 mm), double (183 mm), a journal's column, such as acs-single or "
        "elsevier-double, or a length such as 120mm or 4.5in; a number alone is in mm", metavar="WIDTH",
        heading="figure")] = "single"
    height: Annotated[str | None, Option(
        "height of the figure, such as 120mm or 4.5in, which its panels then fill; unless given, the one that they "
        "need", metavar="HEIGHT", heading="figure")] = None
    dpi: Annotated[int | None, Option(
        "resolution; unless given, 600, and 200 of a movie", unit="dots per inch", low=50, high=2400,
        heading="figure")] = None
    caption: Annotated[Path | None, Option(
        "text file to write: the sentences about the medium, the colours and the panels, for the figure's legend",
        metavar="FILE", written=True, suffix=".txt", viewer=False, heading="figure")] = None

    def resolution(self, figure: Path | None) -> int:
        """Return the dots per inch of a figure or movie."""
        return self.dpi or (MOVIE_DPI if figure is not None and is_movie(figure) else 600)

    def size_for(self, figure: Path | None) -> tuple[float, float | None]:
        """Return width and height, mm.

        Raises
        ------
        UsageError
            For lengths that are none, or too small or large, and for a caption without a figure.
        """
        if self.caption is not None and figure is None:
            raise UsageError("caption", "there is no figure for it", "name a figure to write, too",
                             value=str(self.caption))
        return width_in_mm(self.width), height_in_mm(self.height)
