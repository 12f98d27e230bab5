"""The command ``slice``: figures of planes through maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from vmdpotential.commands.options import Force, names_of
from vmdpotential.commands.pictures import FrameRate, PictureOptions
from vmdpotential.errors import UsageError
from vmdpotential.figures.colours import SHOWN_FRACTION, ValueRange, check_range, colour_range, standard_limit
from vmdpotential.figures.movies import check_movie, is_movie, put_movie
from vmdpotential.figures.slices import INTERIOR_STYLES, AtomsOnSlice, check_interior
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.grid.planes import Plane
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, warn_unused
from vmdpotential.results import Axes, Figure, Result, TableColumns

if TYPE_CHECKING:
    from vmdpotential.figures.page import Page, Panel


class Vector(NamedTuple):
    """Vector of three numbers."""

    x: float
    y: float
    z: float


def _vector(text: str) -> Vector:
    return Vector(*_numbers(text, 3, "three numbers such as 1,1,0 are needed"))


def parse_range(text: str) -> ValueRange:
    """Return two numbers, such as -20,20, as a range."""
    return ValueRange(*_numbers(text, 2, "two numbers such as -20,20 are needed"))


def _numbers(text: str, count: int, reason: str) -> list[float]:
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        numbers = []
    if len(numbers) != count or not np.isfinite(numbers).all():
        raise ValueError(reason)
    return numbers


@dataclass(frozen=True, kw_only=True)
class PlaneOptions:
    """Options of the planes to draw, and of the profile."""

    plane: Annotated[tuple[str | Plane, ...], Option(
        "planes perpendicular to x, y or z, such as z=12.5; unless given, the plane in the middle of the map "
        "perpendicular to z", unit="A",
        metavar="z=0", front=True)] = ()
    normal: Annotated[Vector | None, Option(
        "normal of an oblique plane, such as 1,1,0", parse=_vector, metavar="A,B,C", heading="figure")] = None
    point: Annotated[Vector | None, Option(
        "point on the oblique plane; the middle of the map unless given", unit="A", parse=_vector,
        metavar="X,Y,Z", heading="figure")] = None
    profile: Annotated[str | None, Option(
        "plot the mean over planes perpendicular to this axis, which is noisy for point charges (the command profile "
        "computes smooth curves)",
        choices=("x", "y", "z"), heading="figure")] = None

    def check(self) -> None:
        """Raise UsageError for a point without a normal."""
        if self.point is not None and self.normal is None:
            raise UsageError("point", "the normal of the plane is needed",
                             "give {normal} too, or {plane} for a plane across an axis")

    def of(self, lattice: Lattice) -> list[Plane]:
        """Return the planes through a map; the one through its middle if neither planes nor a profile are given."""
        from vmdpotential.grid import planes

        chosen = [Plane.parse(item) if isinstance(item, str) else item for item in self.plane]
        if self.normal is not None:
            middle = (lattice.origin + lattice.last) / 2
            chosen.append(Plane.through(middle if self.point is None else self.point, self.normal))
        return chosen or ([planes.middle_plane(lattice)] if self.profile is None else [])


@dataclass(frozen=True, kw_only=True)
class AtomsOptions:
    """Options of the atoms that are drawn on a plane."""

    structure: Annotated[Path | Structure | None, Option(
        "structure whose atoms near the plane are drawn on top", metavar="FILE", front=True)] = None
    topology: Annotated[Path | None, Option(
        "topology with the names of the structure's atoms, if its own file has none", viewer=False,
        metavar="FILE", heading="structure and charges", role="topology")] = None
    slab: Annotated[float, Option(
        "thickness of the layer of atoms that is drawn; 0 draws none", unit="A", low=0, heading="figure")] = 3.0
    waters: Annotated[bool, Option("also draw waters, without their virtual sites", heading="figure")] = False
    interior: Annotated[str, Option(
        "how the interior of the molecular surface of the structure's solute is drawn: shown as everything else, "
        "outlined, or masked (grey, without values)", choices=INTERIOR_STYLES, heading="figure")] = "shown"

    def check(self) -> None:
        """Raise UsageError for a topology, or an interior to be marked, without a structure."""
        check_interior(self.interior, self.structure is not None)
        if self.topology is not None and self.structure is None:
            raise UsageError("topology", "a topology has no coordinates", "give {structure} too, which has them")

    def read(self) -> Structure | None:
        """Return the structure, or None if none is given."""
        if isinstance(self.structure, Path):
            from vmdpotential.io import read_structure

            return read_structure(self.structure, self.topology)
        if self.topology is not None:
            raise UsageError("topology", "it is only used for structures read from a file")
        return self.structure


@dataclass(frozen=True, kw_only=True)
class StyleOptions(PictureOptions):
    """Options of the style of the figure."""

    range: Annotated[ValueRange | None, Option(
        "range of the colours in the unit of the map; unless given, -5,5 in kT/e for a potential in water, and "
        "otherwise wide enough for 98 % of the values shown", parse=parse_range, metavar="LO,HI", front=True,
        aliases=("color_range",))] = None
    contours: Annotated[int, Option(
        "approximate number of contour levels, at round values, without small loops around atoms; 0 draws none",
        low=0, high=50, heading="figure")] = 0
    rate: FrameRate = 10.0


@dataclass(frozen=True, kw_only=True)
class FigureOutput:
    """File of the figure."""

    output: Annotated[Path | None, Option(
        "figure to write: .png, .pdf or .svg, or movie: .gif or .mp4, whose frames are the maps; - is standard output",
        short="o", metavar="FILE", written=True, suffix=".png", front=True)] = None
    format: Annotated[str, Option(
        "format of an output whose name has no suffix (-, a pipe): png, pdf or svg",
        viewer=False, metavar="SUFFIX", heading="output")] = ""
    force: Force = False


def slice_(
    maps: Annotated[tuple[Path | Grid, ...], Option(
        "map files (.dx, .mrc, .ccp4, .cube, .npz ...)", positional=True, metavar="MAP")],
    planes: PlaneOptions = PlaneOptions(),
    atoms: AtomsOptions = AtomsOptions(),
    style: StyleOptions = StyleOptions(),
    output: FigureOutput = FigureOutput(),
) -> Slices:
    """Draw a picture of planes through maps, for a paper.

    Several maps or planes become panels on one colour scale; in a movie, the maps follow each other. If only a profile
    is requested, the figure shows the curve of the mean over planes instead; if planes and a profile are requested, it
    shows both.
    """
    from vmdpotential.figures import page as figures
    from vmdpotential.figures.captions import frames_sentence, slices_caption
    from vmdpotential.figures.slices import quantity_label
    from vmdpotential.io.files import output as files
    from vmdpotential.io.maps import open_map

    if not maps:
        raise UsageError("maps", "a map file is needed")
    path, profile = output.output, planes.profile
    width, height = style.size_for(path)
    planes.check()
    atoms.check()
    if style.range is not None:
        check_range(style.range)
    if path is not None:
        name, = files.named([path], output.format, lambda given: figures.is_figure(given) or is_movie(given))
        if is_movie(name):
            check_movie(path, name)
        else:
            figures.check_figure_format(name)
        files.check([path, *([] if style.caption is None else [style.caption])], output.force)
    moving = path is not None and is_movie(name)
    if not moving:
        warn_unused(("rate",), "no movie is written, whose suffix is .gif or .mp4")
    grids = [open_map(item) if isinstance(item, Path) else item for item in maps]
    names = names_of(maps, grids)
    if atoms.structure is None:
        warn_unused(("slab", "waters"), "no atoms are drawn without a {structure}")
    structure = atoms.read()
    drawn = None if structure is None else AtomsOnSlice(structure, atoms.slab, atoms.waters, atoms.interior)
    shown = [[figures.Panel(grid, entry, title if len(grids) > 1 else "") for entry in planes.of(grids[0].lattice)]
             for grid, title in zip(grids, names, strict=True)]
    # in a movie, a page for each map, on one scale; otherwise one page, with the maps of a plane next to each other
    pages = shown if moving else [[panel for group in zip(*shown, strict=True) for panel in group]]
    panels = [panel for group in pages for panel in group]
    limits = style.range
    if moving and limits is None:
        limits = colour_range(grids, [panel.values(drawn) for panel in panels]) if panels else None

    def page_of(n: int) -> Page:
        curves = list(zip(names, grids, strict=True))
        return figures.compose_slices(
            pages[n], profiles=(curves[n : n + 1] if moving else curves) if profile else [],
            profile_axis="xyz".index(profile or "z"), value_range=limits, contours=style.contours, drawn=drawn,
            width=width, height=height, label=style.label)

    page = page_of(0)
    caption = slices_caption(page, pages[0], grids, style.contours, drawn, profile)
    resolution = style.resolution(path)
    if path is not None and moving:
        caption += frames_sentence(names)
        texts = [] if style.caption is None else [style.caption]
        with files.writing_files([path, *texts], output.force) as places:
            put_movie((page_of(n).figure for n in range(len(grids))), places[0], name, resolution, style.rate, caption)
            for place in places[1:]:
                place.write_text(caption + "\n", encoding="utf-8", errors="replace")
    elif path is not None:
        figures.save(page.figure, path, resolution, output.force, quantity_label(grids[0]), name, caption,
                     style.caption)
    return Slices(page=page, grids=grids, planes=panels, profile=profile, figure_file=path, dpi=resolution,
                  caption=caption, files=[] if style.caption is None else [style.caption], chosen=style.range is None,
                  panels=[_panel(panel, limit, drawn) for group in pages
                          for panel, limit in zip(group, page.ranges, strict=True)])


def medium_text(grid: Grid) -> str:
    """Return the medium of a map, and the temperature of a unit with kT."""
    temperature = f"{grid.temperature:g} K" if grid.temperature is not None and grid.unit.startswith("kT") else ""
    return ", ".join(filter(None, (grid.provenance.medium, temperature)))


def _panel(panel: Panel, limits: tuple[float, float], drawn: AtomsOnSlice | None) -> dict[str, Any]:
    """Return the plane, range and unit of a panel as plain data."""
    values, plane = panel.values(drawn), panel.plane
    values = values[np.isfinite(values)]
    return {
        "map": panel.name, "plane": plane.label, "point": plane.point, "normal": plane.normal, "right": plane.right,
        "up": plane.up, "minimum": float(values.min(initial=np.inf)), "maximum": float(values.max(initial=-np.inf)),
        "range": limits, "within_range": float(((values >= limits[0]) & (values <= limits[1])).mean()),
        "unit": panel.grid.unit, "medium": panel.grid.provenance.medium}


class Slices(Result):
    """A figure of planes through maps."""

    page: Page
    grids: Sequence[Grid]
    planes: Sequence[Panel]
    panels: Sequence[Mapping[str, Any]]
    profile: str | None
    figure_file: Path | None
    dpi: int
    caption: str
    chosen: bool
    draws: bool = True

    # None if there are several, which are given for each panel

    @property
    def media(self) -> Sequence[str]:
        """Distinct media of the maps."""
        return list(dict.fromkeys(grid.provenance.medium for grid in self.grids))

    @property
    def ranges(self) -> Sequence[tuple[float, float]]:
        """Distinct ranges of the colours."""
        return list(dict.fromkeys(self.page.ranges))

    def draw(self) -> Figure:
        """Return the figure."""
        return self.page.figure

    def table(self) -> TableColumns:
        """Return a row for each panel."""
        return {name: [panel[name] for panel in self.panels] for name in (
            "map", "plane", "minimum", "maximum", "within_range", "unit", "medium")}

    def plot(self, ax: Axes) -> Axes:
        """Draw the first plane."""
        from vmdpotential.figures.slices import draw_slice

        draw_slice(ax, self.planes[0].grid, self.planes[0].plane)
        return ax

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the figure, mm."""
        width, height = (round(float(size) * 25.4, 1) for size in self.page.figure.get_size_inches())
        return width, height

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "panels": self.panels, "profile": self.profile, "dpi": self.dpi, "figure": self.figure_file,
            "caption": self.caption, "width_mm": self.size[0], "height_mm": self.size[1], "unit": self.grids[0].unit,
            "medium": self.media[0] if len(self.media) == 1 else None,
            "range": self.ranges[0] if len(self.ranges) == 1 else None}

    def text(self) -> Iterator[str]:
        """Yield the size, the range on each plane, and the range of the colours."""
        unit, media, ranges, axes = self.grids[0].unit, self.media, self.ranges, self.page.axes
        size = f"{self.size[0]:g} x {self.size[1]:g} mm, {self.dpi} dots per inch"
        yield f"{self.figure_file}: {size}" if self.figure_file else f"figure: {size}, not written to a file"
        for n, (panel, result) in enumerate(zip(self.planes, self.panels, strict=True)):
            plane, medium = panel.plane, f"; {result['medium']}" if len(media) > 1 else ""
            where = f"through {' '.join(f'{x:.6g}' for x in plane.point)} A, " if plane.axis is None else ""
            letter = f"{axes[n % len(self.page.ranges)].get_label()}: " if len(axes) > 1 else ""
            yield " ".join(f"{letter}{panel.name} {plane.label}, {where}{result['minimum']:.6g} to "
                           f"{result['maximum']:.6g} {unit}, {100 * result['within_range']:.1f} % within the "
                           "colours".split()) + medium
        if len(media) == 1:
            yield from filter(None, [medium_text(self.grids[0])])
        if ranges:
            by_values = self.chosen and any(standard_limit(grid) is None for grid in self.grids)
            yield (f"colours: {' or '.join(f'{low:g} to {high:g}' for low, high in ranges)} {unit}".rstrip()
                   + (f", for {100 * SHOWN_FRACTION:g} % of the values shown" if by_values and len(ranges) == 1 else "")
                   + (", each medium on its own scale" if len(ranges) > 1 else ""))
        if self.profile:
            yield f"profile: mean over planes along {self.profile}"
        yield f"caption: {self.caption}"


command = Command.of(slice_, "slice", draws="figure", examples=(
    "slice potential.dx -o slice.png",
    "slice potential.dx --plane z=0 x=2 --structure protein.pdb --range -5,5 -o planes.pdf",
))
