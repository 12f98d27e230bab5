"""Figures of slices and profiles at a journal's column width.

Figures are made without pyplot, so nothing is registered, shown or kept, and settings hold inside
:func:`style` only.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vmdpotential import __version__, memory
from vmdpotential.errors import UsageError
from vmdpotential.figures import atoms, layout, prepare
from vmdpotential.figures.colours import check_range, colour_range
from vmdpotential.figures.slices import draw_profile, draw_slice, drawable, quantity_label
from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.planes import Plane, middle, outline, values_on
from vmdpotential.io.files import output
from vmdpotential.molecule.structure import Structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.legend import Legend

#: Column widths of journals, mm.
WIDTHS = {"single": 89.0, "double": 183.0}

#: mm, and dots per inch, of a picture in a notebook.
SMALL, SMALL_DPI = 89.0, 110

SUFFIXES = (".png", ".pdf", ".svg")

_MM = 1 / 25.4
#: mm: slices and the profile that shares their axis are in one row where each has so much.
_BESIDE = 28.0
_STYLE: dict[str, Any] = {
    "font.family": ["sans-serif", "DejaVu Sans"],  # the second for what the first lacks: Liberation has no raised +
    "font.sans-serif": ["Arial", "Helvetica", "Liberation Sans", "DejaVu Sans"],
    "font.size": 7,
    "axes.labelsize": 7,
    "axes.titlesize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "axes.titlepad": 3,
    "axes.labelpad": 2,
    "axes.unicode_minus": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.pad": 2,
    "ytick.major.pad": 2,
    "lines.linewidth": 0.8,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "vmdpotential",
    "image.composite_image": False,
}


@contextmanager
def style() -> Iterator[None]:
    """Set fonts, line widths and font embedding for the block only."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # a map's name may have letters no font has
        # a user's own settings must not change a figure for print
        defaults: Any = {key: value for key, value in matplotlib.rcParamsDefault.items()
                         if not key.startswith("backend")}
        matplotlib.rcParams.update(defaults | _STYLE)
        yield


def width_in_mm(text: str | float) -> float:
    """Return a figure's width: ``single``, ``double`` or a number of mm, such as ``89`` or ``89mm``.

    Raises
    ------
    UsageError
        When it is neither, or not between 40 and 1000 mm.
    """
    try:
        width = WIDTHS[text] if text in WIDTHS else float(str(text).removesuffix("mm"))
    except ValueError:
        width = math.nan
    if not 40 <= width <= 1000:
        raise UsageError(
            "width", "say single (89 mm), double (183 mm) or a width from 40 to 1000 mm", value=str(text))
    return width


def is_figure(path: Path) -> bool:
    """Return whether a file's suffix is of a figure format."""
    return path.suffix.lower() in SUFFIXES


def check_figure_format(path: Path) -> None:
    """Raise UsageError when a figure cannot be written under this name."""
    if not is_figure(path):
        raise UsageError("", f"{path}: the suffix is not that of a figure format",
                         f"choose one of {', '.join(SUFFIXES)}")


#: Ratio of the ranges of maps of different media, above which each medium has a scale of its own.
_APART = 4.0


@dataclass(frozen=True)
class Panel:
    """One slice of a figure, and what has to be said about it."""

    grid: Grid
    plane: Plane
    name: str = ""


@dataclass(frozen=True)
class Page:
    """What :func:`compose` made: the figure, and the range that the colours of each slice show."""

    figure: Figure
    ranges: tuple[tuple[float, float], ...]
    axes: Sequence[Axes] = field(default_factory=list)

    def _repr_png_(self) -> bytes:
        """Return the picture that notebooks show."""
        return render(self.figure, Path("page.png"), SMALL_DPI)


def compose(
    panels: Sequence[Panel], *, profiles: Sequence[Grid] = (), profile_axis: int = 2, names: Sequence[str] = (),
    value_range: tuple[float, float] | None = None, contours: int = 0, structure: Structure | None = None,
    slab: float = 3.0, waters: bool = False, width: float = WIDTHS["single"],
) -> Page:
    """Return a figure of slices on one scale with one colour bar, and of a plane-averaged profile.

    Parameters
    ----------
    panels : sequence of Panel
        Slices, in reading order; they get letters where the figure has several parts.
    profiles : sequence of Grid
        Maps whose curves go into one more part, after the slices.
    profile_axis : int
        0, 1 or 2.
    names : sequence of str
        Of the maps in `profiles`, for its legend.
    value_range : (low, high), optional
        Of the colours; without slices, of the curves.
    contours, structure, slab, waters
        As in :func:`vmdpotential.figures.slices.draw_slice`.
    width : float, mm

    Raises
    ------
    UsageError
        When there is nothing to draw, a plane is outside its map, the maps have different units,
        or the range does not increase.
    """
    grids = [panel.grid for panel in panels] + list(profiles)
    if not grids:
        raise UsageError("maps", "there is nothing to draw", "give a map")
    _check_units(grids)
    if value_range is not None:
        check_range(value_range)
    for panel in panels:
        try:
            outline(panel.grid.lattice, panel.plane)
        except UsageError as error:
            if panel.name:
                error.text = f"{error.text} ({panel.name})"
            raise
    ranges = _ranges(panels, value_range)
    prepare()
    from matplotlib.figure import Figure

    along = _shared(panels, profile_axis) if profiles else ""
    extents = [_extent(panel) for panel in panels]
    if profiles:
        across, up = np.max(extents, axis=0) if extents else (1.0, 0.62)
        extents.append({"up": (max(0.5 * across, 0.2 * up), up), "right": (across, 0.4 * across)}.get(
            along, (across, min(max(up, 0.5 * across), 1.2 * across))))
    count = layout.columns(extents, width)
    if along == "up" and width >= _BESIDE * len(extents):
        count = len(extents)
    elif along == "right" and len(panels) == 1:
        count = 1
    with style():
        figure = Figure(figsize=(width * _MM, width * _MM))
        # about the final size already, because the gaps for contour labels are cut at once
        size = 0.8 / count
        axes = [figure.add_axes((0.1, 0.1, size, size), label=_letter(n)) for n in range(len(extents))]
        images = []
        several = len({grid.provenance.medium for grid in grids}) > 1  # then the colour bar cannot say which
        for ax, panel, limits in zip(axes, panels, ranges, strict=False):
            images.append(draw_slice(
                ax, panel.grid, panel.plane, value_range=limits, contours=contours, structure=structure,
                slab=slab, waters=waters))
            medium = panel.grid.provenance.medium if several else ""
            medium = "" if " minus " in medium else medium.partition(",")[0]
            ax.set_title("\n".join(filter(None, (drawable(_short(panel.name)), drawable(medium), panel.plane.label))))
        slices = axes[: len(panels)]
        sides: list[Axis] = [side for ax in slices for side in (ax.xaxis, ax.yaxis)]
        key = _key(figure, slices)
        if profiles:
            curve = axes[-1]
            draw_profile(curve, profiles, profile_axis, [_short(name) for name in names],
                         None if panels else value_range, upright=along == "up", short=bool(panels))
            if along:
                sides.append(curve.yaxis if along == "up" else curve.xaxis)
        layout.same_ticks(sides)
        layout.share(axes, count)
        if len(axes) > 1:
            for n, ax in enumerate(axes):
                ax.set_title(_letter(n), loc="left", fontweight="bold", fontsize=8)
        bar = None
        # one panel that is neither flat nor small has its colour bar next to it, as high as itself
        below = len(axes) > 1 or width < 70 or extents[0][1] < 0.6 * extents[0][0]
        if len(set(ranges)) > 1:
            for ax, image, panel, limits in zip(slices, images, panels, ranges, strict=True):
                _colour_bar(figure, [image], [panel.grid], limits, ax)
        elif images:
            bar = _colour_bar(
                figure, images, grids, ranges[0],
                figure.add_axes((0.1, 0.1, 0.5, 0.05) if below else (0.9, 0.1, 0.05, 0.5)), below)
        layout.arrange(figure, axes, extents, count, bar, below, key)
    return Page(figure, tuple(ranges), axes)


def _ranges(panels: Sequence[Panel], value_range: tuple[float, float] | None) -> list[tuple[float, float]]:
    """Return the range of each panel's colours: one for all, unless some would be blank on the scale of the others.

    Maps of different media may differ by orders of magnitude.
    """
    if value_range is not None or not panels:
        return [value_range or (0.0, 0.0)] * len(panels)
    shown = [values_on(panel.grid, panel.plane)[0] for panel in panels]
    common = colour_range([panel.grid for panel in panels], shown)
    own: list[tuple[float, float]] = []
    for panel in panels:
        medium = [n for n, other in enumerate(panels) if other.grid.provenance.medium == panel.grid.provenance.medium]
        own.append(colour_range([panels[n].grid for n in medium], [shown[n] for n in medium]))
    sizes = [max(map(abs, limits)) for limits in own]
    return own if max(sizes) > _APART * min(sizes) else [common] * len(panels)


def thumbnail(grid: Grid | Structure) -> bytes:
    """Return a small picture of the middle plane of a map, or of a structure, a PNG, as notebooks show it.

    Parameters
    ----------
    grid : Grid or Structure
        What is shown.

    Returns
    -------
    bytes
        A PNG.

    Raises
    ------
    MemoryPlanError
        When a map in a file does not fit into memory.

    Examples
    --------
    >>> picture = vp.thumbnail(vp.read_structure("data/1hvr.pdb.gz"))
    >>> picture.startswith(bytes([137]) + b"PNG")
    True
    """
    if isinstance(grid, Structure):
        from vmdpotential.figures.structures import picture

        return picture(grid)
    return render(compose([Panel(grid, middle(grid.lattice))], width=SMALL).figure, Path("thumbnail.png"), SMALL_DPI)


def _extent(panel: Panel) -> tuple[float, float]:
    """Return how far a slice reaches across and up, A; one row or column of nodes as far as they are apart."""
    across, up = np.maximum(np.ptp(outline(panel.grid.lattice, panel.plane), axis=0), panel.grid.lattice.spacing.min())
    return float(across), float(up)


def _shared(panels: Sequence[Panel], axis: int) -> str:
    """Return which side of all panels runs along an axis, "right" or "up", so that a profile can be next to them."""
    for side in ("up", "right"):
        if panels and all(getattr(panel.plane, side)[axis] > 1 - 1e-9 for panel in panels):
            return side
    return ""


def _key(figure: Figure, axes: Sequence[Axes]) -> Legend | None:
    """Return the key of the elements and ions that are drawn, in as many rows as the figure's width asks for."""
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


def _check_units(grids: Sequence[Grid]) -> None:
    first = grids[0]
    for grid in grids[1:]:
        if grid.unit != first.unit:
            raise UsageError(
                "maps", f"have different units ({first.unit or 'none stated'} and {grid.unit or 'none stated'}), "
                "so they cannot share a scale", "draw them apart",
            )
        if grid.unit.startswith("kT") and None not in (grid.temperature, first.temperature) and (
            abs((grid.temperature or 0) - (first.temperature or 0)) > 1e-6
        ):
            raise UsageError(
                "maps", f"are in kT/e at different temperatures ({first.temperature:g} and {grid.temperature:g} K), "
                "so they cannot share a scale", "draw them apart",
            )


def _colour_bar(figure: Figure, images: Sequence[AxesImage], grids: Sequence[Grid], limits: tuple[float, float],
                place: Axes, below: bool | None = None) -> Axes:
    """Return a colour bar that is pointed where values lie beyond the colours.

    It fills the Axes that it is given, below or next to the panels; without `below` it is a part of a panel's Axes,
    with the unit alone, because the panel's title states the rest.
    """
    from matplotlib.ticker import MaxNLocator

    own = below is None
    if own:
        place = place.inset_axes((1.03, 0.0, 0.04, 1.0))

    beyond = (any((values := image.get_array()) is not None and values.min() < limits[0] for image in images),
              any((values := image.get_array()) is not None and values.max() > limits[1] for image in images))
    ends = {(True, True): "both", (True, False): "min", (False, True): "max", (False, False): "neither"}[beyond]
    bar = figure.colorbar(
        images[0], cax=place, extend=ends,
        orientation="horizontal" if below else "vertical", extendfrac=0.03,
        ticks=MaxNLocator(nbins="auto", steps=[1, 2, 2.5, 5, 10]),
    )
    bar.outline.set_linewidth(0.6)  # type: ignore[operator]  # an Artist, not a number as annotated
    bar.set_label(drawable(grids[0].unit if own else quantity_label(*grids)))
    return bar.ax


def save(figure: Figure, path: Path, dpi: int = 600, force: bool = False, title: str = "",
         name: Path | None = None) -> None:
    """Write a figure as PNG, PDF or SVG, whole or not at all.

    Text stays text in PDF (TrueType) and SVG. The same figure gives the same file.

    Parameters
    ----------
    figure : Figure
    path : Path
        Its suffix chooses the format.
    dpi : int
        Of a PNG, and of the images inside PDF and SVG.
    force : bool
        Whether a file that exists may be replaced.
    title : str
        For the file's metadata.
    name : Path, optional
        Its suffix chooses the format instead of the path's.
    """
    name = name or path
    check_figure_format(name)
    content = render(figure, path, dpi, title, name)
    with output.writing([path], force) as (temporary,):
        temporary.write_bytes(content)


def render(figure: Figure, path: Path, dpi: int = 600, title: str = "", name: Path | None = None) -> bytes:
    """Return what a file of a figure holds; parameters are those of :func:`save`."""
    name = name or path
    pixels = float(np.prod(figure.get_size_inches())) * dpi**2
    # measured: matplotlib holds images in float64 and as colours, several times
    memory.require(int(40 * pixels), f"{path}: a figure of {pixels / 1e6:.0f} million pixels", "use a lower {dpi}")
    program = f"vmdpotential {__version__}"
    suffix = name.suffix.lower()
    metadata: dict[str, Any] = {"Title": title, "Software" if suffix == ".png" else "Creator": program}
    if suffix != ".png":
        metadata["CreationDate" if suffix == ".pdf" else "Date"] = None
    # half a second at 600 dpi by the default, for 7 % less
    packing: dict[str, Any] = {"pil_kwargs": {"compress_level": 4}} if suffix == ".png" else {}
    content = io.BytesIO()  # where a write cannot fail, because matplotlib's PDF writer then hides why
    with style():
        figure.savefig(content, format=suffix[1:], dpi=dpi, metadata=metadata, **packing)
    return content.getvalue()
