"""Figures of slices and profiles at a journal's column width, made without pyplot and its global state."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import __version__, memory
from vmdpotential.errors import UsageError
from vmdpotential.figures import atoms, layout, prepare
from vmdpotential.figures.colours import check_range, check_units, colour_range
from vmdpotential.figures.contours import contour_levels, contour_style, contour_ticks
from vmdpotential.figures.sizes import JOURNAL_WIDTHS
from vmdpotential.figures.slices import (
    INTERIOR_STYLES,
    AtomsOnSlice,
    atoms_on_slice,
    bar_label,
    bar_ticks,
    draw_profile,
    drawable_text,
    slice_image,
    unit_label,
)
from vmdpotential.figures.style import figure_style
from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.planes import Plane, middle_plane, plane_outline, values_on
from vmdpotential.io.files import output
from vmdpotential.molecule.conversions import StructureLike
from vmdpotential.molecule.structure import Structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.legend import Legend

#: Width, mm, and dots per inch of a picture in a notebook.
SMALL, SMALL_DPI = 89.0, 110

SUFFIXES = (".png", ".pdf", ".svg")

_MM = 1 / 25.4
#: Smallest width, mm, of each panel for slices and the profile along a shared axis to be in one row.
_ROW_WIDTH = 28.0

def is_figure(path: Path) -> bool:
    """Return whether a file's suffix is that of a figure format."""
    return path.suffix.lower() in SUFFIXES


def check_figure_format(path: Path) -> None:
    """Raise UsageError unless the suffix of a file is that of a figure format."""
    if not is_figure(path):
        raise UsageError("", f"{path}: the suffix is not that of a figure format",
                         f"choose one of {', '.join(SUFFIXES)}")


#: Ratio of the ranges of maps in different media above which each medium has its own colour scale.
_APART = 4.0


@dataclass(frozen=True)
class Panel:
    """Slice in a figure: map, plane, and name for its title."""

    grid: Grid
    plane: Plane
    name: str = ""

    def values(self, drawn: AtomsOnSlice | None) -> NDArray[np.float64]:
        """Return the values that the picture shows, NaN elsewhere."""
        return values_on(self.grid, self.plane)[0] if drawn is None else drawn.shown_values(self.grid, self.plane)


@dataclass(frozen=True)
class Page:
    """Result of :func:`compose_slices`: the figure, the colour range of each slice, and the Axes."""

    figure: Figure
    ranges: tuple[tuple[float, float], ...]
    axes: Sequence[Axes] = field(default_factory=list)

    def _repr_png_(self) -> bytes:
        """Return the picture that notebooks show."""
        return render_figure(self.figure, Path("page.png"), SMALL_DPI)


def compose_slices(
    panels: Sequence[Panel], *, profiles: Sequence[tuple[str, Grid]] = (), profile_axis: int = 2,
    value_range: tuple[float, float] | None = None, contours: int = 0, cmap: str | Colormap | None = None,
    drawn: AtomsOnSlice | None = None, width: float = JOURNAL_WIDTHS["single"], height: float | None = None,
    label: str | None = None,
) -> Page:
    """Return a figure of slices on one scale with one colour bar, and of a plane-averaged profile.

    Parameters
    ----------
    panels : sequence of Panel
        Slices in reading order; if there are several panels, they get letters.
    profiles : sequence of (str, Grid)
        Maps whose profiles are drawn in one more panel after the slices, with their names for the legend.
    profile_axis : int
        Axis of the profiles, 0, 1 or 2.
    value_range : (low, high), optional
        Range of the colours or, without slices, of the curves.
    contours, cmap
        As of :func:`vmdpotential.figures.slices.draw_slice`.
    drawn : AtomsOnSlice, optional
        What is drawn of a structure.
    width : float, mm
    height : float, mm, optional
        The one that the panels need unless given.
    label : str, optional
        Label of the colour bar, the unit unless given; or of the curves if there are no slices, the quantity and its
        unit unless given.

    Raises
    ------
    UsageError
        If there is nothing to draw, a plane misses its map, the maps have different units, the range does not
        increase, or the height is too low.
    """
    grids = [panel.grid for panel in panels] + [grid for _, grid in profiles]
    if not grids:
        raise UsageError("maps", "there is nothing to draw", "give a map")
    check_units(grids)
    if value_range is not None:
        check_range(value_range)
    for panel in panels:
        try:
            plane_outline(panel.grid.lattice, panel.plane)
        except UsageError as error:
            if panel.name:
                error.text = f"{error.text} ({panel.name})"
            raise
    ranges = _ranges(panels, value_range, drawn)
    prepare()
    from matplotlib.figure import Figure

    along = _shared(panels, profile_axis) if profiles else ""
    extents = [_extent(panel) for panel in panels]
    if profiles:
        across, up = np.max(extents, axis=0) if extents else (1.0, 0.62)
        extents.append({"up": (max(0.5 * across, 0.2 * up), up), "right": (across, 0.4 * across)}.get(
            along, (across, min(max(up, 0.5 * across), 1.2 * across))))
    count = layout.columns(extents, width, height)
    if along == "up" and width >= _ROW_WIDTH * len(extents):
        count = len(extents)
    elif along == "right" and len(panels) == 1:
        count = 1
    with figure_style():
        figure = Figure(figsize=(width * _MM, width * _MM))
        # close to the final size, because the gaps for contour labels are cut at this size
        size = 0.8 / count
        axes = [figure.add_axes((0.1, 0.1, size, size), label=_letter(n)) for n in range(len(extents))]
        images = []
        several_media = len({grid.provenance.medium for grid in grids}) > 1  # which the colour bar cannot state
        for ax, panel, limits in zip(axes, panels, ranges, strict=False):
            images.append(slice_image(ax, panel.grid, panel.plane, limits, contours, cmap, drawn))
            source = panel.grid.provenance
            medium = source.medium.partition(",")[0] if several_media and source.medium_kind else ""
            medium = "" if medium == panel.name else medium
            words = drawable_text(_short(panel.name)), drawable_text(medium), panel.plane.label
            ax.set_title("\n".join(filter(None, words)))
        slices = axes[: len(panels)]
        sides: list[Axis] = [side for ax in slices for side in (ax.xaxis, ax.yaxis)]
        key = _key(figure, slices)
        if profiles:
            curve = axes[-1]
            draw_profile(curve, [grid for _, grid in profiles], profile_axis, [_short(name) for name, _ in profiles],
                         None if panels else value_range, upright=along == "up", short=bool(panels))
            if label is not None and not panels:
                curve.set_ylabel(drawable_text(label))
            if along:
                sides.append(curve.yaxis if along == "up" else curve.xaxis)
        layout.same_ticks(sides, width / count)
        layout.share(axes, count)
        if len(axes) > 1:
            for n, ax in enumerate(axes):
                ax.set_title(_letter(n), loc="left", fontweight="bold", fontsize=8)
        bar = None
        # a single panel that is neither flat nor small has a colour bar of its own height next to it
        below = len(axes) > 1 or width < 70 or extents[0][1] < 0.6 * extents[0][0]
        if len(set(ranges)) > 1:
            for ax, image, panel, limits in zip(slices, images, panels, ranges, strict=True):
                text = unit_label(panel.grid) if label is None else label  # the panel's title states the rest
                _colour_bar(figure, [image], text, limits, contours, ax)
        elif images:
            bar = _colour_bar(
                figure, images, bar_label(grids[0]) if label is None else label, ranges[0], contours,
                figure.add_axes((0.1, 0.1, 0.5, 0.05) if below else (0.9, 0.1, 0.05, 0.5)), below)
        layout.arrange(figure, axes, extents, count, bar, below, key, height)
    return Page(figure, tuple(ranges), axes)


def axes_of_slice(grid: Grid, plane: Plane | str, structure: StructureLike | None = None, slab: float = 3.0,
                  waters: bool = False, interior: str = INTERIOR_STYLES[0], **style: Any) -> Axes:
    """Return the Axes of a slice in a new figure.

    Parameters are those of :func:`vmdpotential.draw_slice` and, in `style`, of :func:`compose_slices`.
    """
    panel = Panel(grid, Plane.parse(plane) if isinstance(plane, str) else plane)
    return compose_slices([panel], drawn=atoms_on_slice(structure, slab, waters, interior), **style).axes[0]


def _ranges(panels: Sequence[Panel], value_range: tuple[float, float] | None,
            drawn: AtomsOnSlice | None) -> list[tuple[float, float]]:
    """Return the range of each panel's colours: a common one, unless some panels would be blank on it.

    Maps in different media may differ by orders of magnitude.
    """
    if value_range is not None or not panels:
        return [value_range or (0.0, 0.0)] * len(panels)
    shown = [panel.values(drawn) for panel in panels]
    common = colour_range([panel.grid for panel in panels], shown)
    by_medium: list[tuple[float, float]] = []
    for panel in panels:
        same = [n for n, other in enumerate(panels) if other.grid.provenance.medium == panel.grid.provenance.medium]
        by_medium.append(colour_range([panels[n].grid for n in same], [shown[n] for n in same]))
    sizes = [max(map(abs, limits)) for limits in by_medium]
    return by_medium if max(sizes) > _APART * min(sizes) else [common] * len(panels)


def thumbnail(grid: Grid | Structure) -> bytes:
    """Return a small picture of the middle plane of a map, or of a structure, as notebooks show it.

    Parameters
    ----------
    grid : Grid or Structure
        Map or structure to draw.

    Returns
    -------
    bytes
        Contents of a PNG file.

    Raises
    ------
    MemoryPlanError
        If a map in a file does not fit into memory.

    Examples
    --------
    >>> picture = vp.thumbnail(vp.read_structure("data/1hvr.pdb.gz"))
    >>> picture.startswith(bytes([137]) + b"PNG")
    True
    """
    if isinstance(grid, Structure):
        from vmdpotential.figures.structures import structure_picture

        return structure_picture(grid)
    return render_figure(compose_slices([Panel(grid, middle_plane(grid.lattice))], width=SMALL).figure,
                         Path("thumbnail.png"), SMALL_DPI)


def _extent(panel: Panel) -> tuple[float, float]:
    """Return the width and height of a slice, A; that of a single row or column of nodes is their spacing."""
    across, up = np.maximum(np.ptp(plane_outline(panel.grid.lattice, panel.plane), axis=0),
                            panel.grid.lattice.spacing.min())
    return float(across), float(up)


def _shared(panels: Sequence[Panel], axis: int) -> str:
    """Return the side of all panels, "right" or "up", that is along an axis, so that a profile can share it; or ""."""
    for side in ("up", "right"):
        if panels and all(getattr(panel.plane, side)[axis] > 1 - 1e-9 for panel in panels):
            return side
    return ""


def _key(figure: Figure, axes: Sequence[Axes]) -> Legend | None:
    """Return the key of the elements and ions that are drawn, in as many rows as the figure's width requires."""
    shown = atoms.key(axes)
    if not shown:
        return None
    rows = math.ceil(len(shown) / max(1, int(figure.get_figwidth() / 0.42)))
    return figure.legend(
        list(shown.values()), list(shown), loc="lower center", ncols=math.ceil(len(shown) / rows), frameon=False,
        borderpad=0, borderaxespad=0, handlelength=0.8, handletextpad=0.3, columnspacing=1.0)


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:11]}…{name[-12:]}"


def _letter(n: int) -> str:
    return (chr(ord("a") + n // 26 - 1) if n >= 26 else "") + chr(ord("a") + n % 26)


def _colour_bar(figure: Figure, images: Sequence[AxesImage], label: str, limits: tuple[float, float], contours: int,
                axes: Axes, below: bool | None = None) -> Axes:
    """Return a colour bar, with pointed ends if values are beyond the colours, and lines at the contours' levels.

    It fills `axes`, below or next to the panels. Without `below`, `axes` is a panel, next to which the colour bar is
    drawn.
    """
    from matplotlib.ticker import MaxNLocator

    single_panel = below is None
    if single_panel:
        axes = axes.inset_axes((1.03, 0.0, 0.04, 1.0))

    beyond = (any((values := image.get_array()) is not None and values.min() < limits[0] for image in images),
              any((values := image.get_array()) is not None and values.max() > limits[1] for image in images))
    at = contour_levels(limits, contours) if contours else np.zeros(0)
    ticks = contour_ticks(limits, at)
    ticks = bar_ticks(limits, few=single_panel) if ticks is None else ticks
    ends = {(True, True): "both", (True, False): "min", (False, True): "max", (False, False): "neither"}[beyond]
    bar = figure.colorbar(
        images[0], cax=axes, extend=ends,
        orientation="horizontal" if below else "vertical", extendfrac=0.03,
        ticks=MaxNLocator(nbins="auto", steps=[1, 2, 2.5, 5, 10]) if ticks is None else ticks,
        format="{x:g}",
    )
    for level in at:
        (bar.ax.axvline if below else bar.ax.axhline)(level, **contour_style(level))
    bar.outline.set_linewidth(0.6)  # type: ignore[operator]  # an Artist, not a number as annotated
    bar.set_label(drawable_text(label))
    return bar.ax


def save(figure: Figure, path: Path, dpi: int = 600, force: bool = False, title: str = "",
         name: Path | None = None, caption: str = "", caption_file: Path | None = None) -> None:
    """Write a figure as PNG, PDF or SVG, completely or not at all.

    Text remains text in PDF (TrueType) and SVG. The same figure always gives the same file.

    Parameters
    ----------
    figure : Figure
    path : Path
        File to write; its suffix determines the format.
    dpi : int
        Resolution of a PNG, and of the images inside PDF and SVG.
    force : bool
        Whether an existing file may be replaced.
    title : str
        Title in the file's metadata.
    name : Path, optional
        Name whose suffix determines the format instead of the path's.
    caption : str
        What the figure shows, for the file's metadata.
    caption_file : Path, optional
        Text file to write with the caption.
    """
    name = name or path
    check_figure_format(name)
    content = render_figure(figure, path, dpi, title, name, caption)
    texts = [] if caption_file is None else [caption_file]
    with output.writing_files([path, *texts], force) as places:
        places[0].write_bytes(content)
        for place in places[1:]:
            place.write_text(caption + "\n", encoding="utf-8", errors="replace")


def render_figure(figure: Figure, path: Path, dpi: int = 600, title: str = "", name: Path | None = None,
                  caption: str = "") -> bytes:
    """Return the contents of a figure's file; parameters are those of :func:`save`."""
    name = name or path
    pixels = float(np.prod(figure.get_size_inches())) * dpi**2
    # measured: matplotlib keeps several copies of images, in float64 and as colours
    memory.require(int(40 * pixels), f"{path}: a figure of {pixels / 1e6:.0f} million pixels", "use a lower {dpi}")
    program = f"vmdpotential {__version__}"
    suffix = name.suffix.lower()
    metadata: dict[str, Any] = {"Title": title, "Software" if suffix == ".png" else "Creator": program}
    if caption:
        # names of files can have bytes that are no text
        metadata["Subject" if suffix == ".pdf" else "Description"] = caption.encode(errors="replace").decode()
    if suffix != ".png":
        metadata["CreationDate" if suffix == ".pdf" else "Date"] = None
    # the default level takes half a second at 600 dpi, and makes files only 7 % smaller
    compression: dict[str, Any] = {"pil_kwargs": {"compress_level": 4}} if suffix == ".png" else {}
    content = io.BytesIO()  # writing to memory cannot fail; matplotlib's PDF writer hides the reason of a failure
    with figure_style():
        figure.savefig(content, format=suffix[1:], dpi=dpi, metadata=metadata, **compression)
    return content.getvalue()
