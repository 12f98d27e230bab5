"""The command ``slice``: figures of planes through maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from vmdpotential.commands.options import Force
from vmdpotential.errors import UsageError
from vmdpotential.figures.colours import SHOWN, Range, check_range, standard_limit
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.grid.planes import Plane
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Report

if TYPE_CHECKING:
    from vmdpotential.figures.page import Page, Panel


class Vector(NamedTuple):
    """Three numbers."""

    x: float
    y: float
    z: float


def _vector(text: str) -> Vector:
    return Vector(*_numbers(text, 3, "three numbers such as 1,1,0 are needed"))


def _range(text: str) -> Range:
    return Range(*_numbers(text, 2, "two numbers such as -20,20 are needed"))


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
    """Which planes are drawn, and the profile."""

    plane: Annotated[tuple[str | Plane, ...], Option(
        "planes across x, y or z, such as z=12.5; the middle of the map across z unless given", unit="A",
        metavar="z=0", front=True)] = ()
    normal: Annotated[Vector | None, Option(
        "normal of an oblique plane, such as 1,1,0", parse=_vector, metavar="A,B,C")] = None
    point: Annotated[Vector | None, Option(
        "point of the oblique plane; the middle of the map unless given", unit="A", parse=_vector,
        metavar="X,Y,Z")] = None
    profile: Annotated[str | None, Option(
        "draw the mean over planes along this axis; spikes at atoms make it noisy, less so in a map of finer spacing",
        choices=("x", "y", "z"))] = None

    def check(self) -> None:
        """Refuse a point without a direction."""
        if self.point is not None and self.normal is None:
            raise UsageError("point", "says no direction", "give {normal} too, or {plane} for a plane across an axis")

    def of(self, lattice: Lattice) -> list[Plane]:
        """Return the planes through a map; the middle one where neither planes nor a profile are given."""
        from vmdpotential.grid import planes

        chosen = [Plane.parse(item) if isinstance(item, str) else item for item in self.plane]
        if self.normal is not None:
            middle = (lattice.origin + lattice.last) / 2
            chosen.append(Plane.through(middle if self.point is None else self.point, self.normal))
        return chosen or ([planes.middle(lattice)] if self.profile is None else [])


@dataclass(frozen=True, kw_only=True)
class AtomsOptions:
    """The atoms that are drawn on a plane."""

    structure: Annotated[Path | Structure | None, Option(
        "structure whose atoms near the plane are drawn on top", metavar="FILE", front=True)] = None
    topology: Annotated[Path | None, Option(
        "topology that names the structure's atoms, where its own file does not", viewer=False, metavar="FILE")] = None
    slab: Annotated[float, Option("thickness of the layer of atoms that is drawn", unit="A", above=0)] = 3.0
    waters: Annotated[bool, Option("draw waters too, but for sites that are no atoms")] = False

    def check(self) -> None:
        """Refuse a topology without a structure's file."""
        if self.topology is not None and self.structure is None:
            raise UsageError("topology", "has no coordinates", "give {structure} too, which has them")

    def read(self) -> Structure | None:
        """Return the structure, where there is one."""
        if isinstance(self.structure, Path):
            from vmdpotential.io import read_structure

            return read_structure(self.structure, self.topology)
        if self.topology is not None:
            raise UsageError("topology", "is for structures read from a file")
        return self.structure


@dataclass(frozen=True, kw_only=True)
class StyleOptions:
    """The look of the figure."""

    range: Annotated[Range | None, Option(
        "range of the colours, such as -20,20; unless given -5,5 kT/e for a potential in water (screened, continuum), "
        "otherwise wide enough for 98 % of what is shown", parse=_range, metavar="LO,HI", front=True)] = None
    contours: Annotated[int, Option(
        "about how many contour levels, at round values; without small loops around atoms", low=0, high=50)] = 0
    width: Annotated[str, Option(
        "width of the figure: single (89 mm), double (183 mm) or a number of mm", metavar="MM")] = "single"
    dpi: Annotated[int, Option("resolution", unit="dots per inch", low=50, high=2400)] = 600


@dataclass(frozen=True, kw_only=True)
class FigureOutput:
    """The file of the figure."""

    output: Annotated[Path | None, Option(
        "figure to write: .png, .pdf or .svg; - is standard output", short="o", metavar="FILE", written=True,
        suffix=".png", front=True)] = None
    format: Annotated[str, Option(
        "of an output whose name tells none (-, a pipe): png, pdf or svg", viewer=False, metavar="SUFFIX")] = ""
    force: Force = False


def slice_(
    maps: Annotated[tuple[Path | Grid, ...], Option("map files, or maps", positional=True, metavar="MAP")],
    planes: PlaneOptions = PlaneOptions(),
    atoms: AtomsOptions = AtomsOptions(),
    style: StyleOptions = StyleOptions(),
    output: FigureOutput = FigureOutput(),
) -> Report:
    """Draw planes through maps as a figure for a paper.

    Several maps or planes become panels on one colour scale. With a profile alone, the curve of the
    mean over planes is drawn instead; with a plane and a profile, both.
    """
    from vmdpotential.figures import page as figures
    from vmdpotential.figures.slices import quantity_label
    from vmdpotential.io.files import output as files
    from vmdpotential.io.maps import map_name, open_map

    if not maps:
        raise UsageError("maps", "a map file is needed")
    width_mm = figures.width_in_mm(style.width)
    path, profile = output.output, planes.profile
    planes.check()
    atoms.check()
    if style.range is not None:
        check_range(style.range)
    if path is not None:
        name, = files.named([path], output.format, figures.is_figure)
        figures.check_figure_format(name)
        files.check([path], output.force)
    grids = [open_map(item) if isinstance(item, Path) else item for item in maps]
    names = [map_name(item) if isinstance(item, Path) else f"map {n}" for n, item in enumerate(maps, 1)]
    structure = atoms.read()
    panels = [
        figures.Panel(grid, one, name if len(grids) > 1 else "")
        for one in planes.of(grids[0].lattice) for grid, name in zip(grids, names, strict=True)
    ]
    page = figures.compose(
        panels, profiles=grids if profile else [], profile_axis="xyz".index(profile or "z"), names=names,
        value_range=style.range, contours=style.contours, structure=structure, slab=atoms.slab, waters=atoms.waters,
        width=width_mm,
    )
    if path is not None:
        figures.save(page.figure, path, style.dpi, output.force, quantity_label(grids[0]), name)
    return _report(page, grids, panels, profile, path, style.dpi, style.range is None)


def _report(
    page: Page, grids: Sequence[Grid], panels: Sequence[Panel], profile: str | None, output: Path | None, dpi: int,
    chosen: bool,
) -> Report:
    from vmdpotential.grid.planes import values_on

    width, height = (round(float(inches) * 25.4, 1) for inches in page.figure.get_size_inches())
    size = f"{width:g} x {height:g} mm, {dpi} dots per inch"
    lines = [f"{output}: {size}" if output else f"figure: {size}, kept in no file"]
    unit = grids[0].unit
    media = list(dict.fromkeys(grid.provenance.medium for grid in grids))
    shown = []
    for n, (panel, limits) in enumerate(zip(panels, page.ranges, strict=True)):
        values = values_on(panel.grid, panel.plane)[0]
        values = values[np.isfinite(values)]
        plane = panel.plane
        low, high = float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
        inside = float(((values >= limits[0]) & (values <= limits[1])).mean())
        shown.append({
            "map": panel.name, "plane": plane.label, "point": plane.point.tolist(), "normal": plane.normal.tolist(),
            "right": plane.right.tolist(), "up": plane.up.tolist(), "minimum": low, "maximum": high,
            "range": list(limits), "within_range": inside, "unit": panel.grid.unit,
            "medium": panel.grid.provenance.medium,
        })
        where = f"through {' '.join(f'{x:.6g}' for x in plane.point)} A, " if plane.axis is None else ""
        letter = f"{page.axes[n].get_label()}: " if len(page.axes) > 1 else ""
        lines.append(" ".join(
            f"{letter}{panel.name} {plane.label}, {where}{low:.6g} to {high:.6g} {unit}, "
            f"{100 * inside:.1f} % within the colours".split())
            + (f"; {panel.grid.provenance.medium}" if len(media) > 1 else ""))
    if len(media) == 1 and media[0]:
        lines.append(media[0])
    ranges = list(dict.fromkeys(page.ranges))
    if ranges:
        by_values = chosen and any(standard_limit(grid) is None for grid in grids)
        lines.append(f"colours: {' or '.join(f'{low:g} to {high:g}' for low, high in ranges)} {unit}".rstrip()
                     + (f", for {100 * SHOWN:g} % of the values shown" if by_values and len(ranges) == 1 else "")
                     + (", each medium on its own scale" if len(ranges) > 1 else ""))
    if profile:
        lines.append(f"profile: mean over planes along {profile}")
    data = {
        "figure": str(output) if output else None, "width_mm": width, "height_mm": height, "dpi": dpi, "unit": unit,
        "medium": media[0] if len(media) == 1 else None,  # of several, each panel has its own
        "range": list(ranges[0]) if len(ranges) == 1 else None, "panels": shown, "profile": profile,
    }
    return Report(lines, data, {"figure": page.figure})


command = Command.of(slice_, "slice")
