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
from numpy.typing import NDArray

from vmdpotential import __version__, memory
from vmdpotential.errors import UsageError
from vmdpotential.figures import prepare
from vmdpotential.figures.slices import check_range, draw_profile, draw_slice, drawable, quantity_label, robust_range
from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.planes import Plane, outline, values_on
from vmdpotential.io import output
from vmdpotential.molecule.structure import Structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

#: Column widths of journals, mm.
WIDTHS = {"single": 89.0, "double": 183.0}

SUFFIXES = (".png", ".pdf", ".svg")

_MM = 1 / 25.4
# inches: around the content, between panels, and the colour bar's thickness
_MARGIN, _GAP, _BAR = 0.03, 0.08, 0.09
_STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Arial", "Helvetica", "Liberation Sans", "DejaVu Sans"],
    "font.size": 7,
    "axes.labelsize": 7,
    "axes.titlesize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
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
    """Return a figure's width: ``single``, ``double`` or a number of mm.

    Raises
    ------
    UsageError
        When it is neither, or not between 40 and 1000 mm.
    """
    try:
        width = WIDTHS[text] if isinstance(text, str) and text in WIDTHS else float(text)
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
        raise UsageError("", f"{path}: the suffix is of no figure format", f"choose one of {', '.join(SUFFIXES)}")


@dataclass(frozen=True)
class Panel:
    """One slice of a figure, and what has to be said about it."""

    grid: Grid
    plane: Plane
    name: str = ""


@dataclass(frozen=True)
class Page:
    """What :func:`compose` made: the figure, and the range that its colours show (None without slices)."""

    figure: Figure
    value_range: tuple[float, float] | None
    axes: Sequence[Axes] = field(default_factory=list)


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
        When there is nothing to draw, a plane lies outside its map, the maps have different units,
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
    limits = value_range
    if panels and limits is None:
        limits = robust_range([values_on(panel.grid, panel.plane)[0] for panel in panels])
    prepare()
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(width * _MM, width * _MM))
        parts = len(panels) + bool(profiles)
        columns = min(parts, 2 if width < 120 or parts == 4 else 3)
        # about the final size already, because the gaps for contour labels are cut at once
        size = 0.8 / columns
        axes = [figure.add_axes((0.1, 0.1, size, size), label=_letter(n)) for n in range(parts)]
        images = []
        several = len({grid.provenance.medium for grid in grids}) > 1  # then the colour bar cannot say which
        for ax, panel in zip(axes, panels, strict=False):
            images.append(draw_slice(
                ax, panel.grid, panel.plane, value_range=limits, contours=contours, structure=structure,
                slab=slab, waters=waters))
            medium = panel.grid.provenance.medium if several else ""
            medium = "" if " minus " in medium else medium.partition(",")[0]
            ax.set_title("\n".join(filter(None, (drawable(_short(panel.name)), drawable(medium), panel.plane.label))))
        extents = [_extent(ax) for ax in axes[: len(panels)]]
        _same_ticks(axes[: len(panels)])
        if profiles:
            short = [_short(name) for name in names]
            draw_profile(axes[-1], profiles, profile_axis, short, None if panels else value_range)
            across, up = max(extents) if extents else (1.0, 0.62)
            extents.append((across, min(max(up, 0.5 * across), 1.2 * across)))
        if parts > 1:
            for n, ax in enumerate(axes):
                ax.set_title(_letter(n), loc="left", fontweight="bold", fontsize=8)
        bar = None
        # one panel that is neither flat nor small has its colour bar beside it, as high as itself
        below = parts > 1 or width < 70 or extents[0][1] < 0.6 * extents[0][0]
        if images:
            bar = _colour_bar(figure, images[0], grids, below)
        _arrange(figure, axes, extents, columns, bar, below)
    return Page(figure, limits if panels else None, axes)


def _extent(ax: Axes) -> tuple[float, float]:
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    return float(right - left), float(top - bottom)


def _same_ticks(axes: Sequence[Axes]) -> None:
    from matplotlib.ticker import MaxNLocator, MultipleLocator

    limits = [limit for ax in axes for limit in (ax.get_xlim(), ax.get_ylim())]
    if limits:
        ticks = MaxNLocator(nbins=5, steps=[1, 2, 5, 10]).tick_values(0, max(high - low for low, high in limits))
        for ax in axes:
            ax.xaxis.set_major_locator(MultipleLocator(ticks[1] - ticks[0]))
            ax.yaxis.set_major_locator(MultipleLocator(ticks[1] - ticks[0]))


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


def _colour_bar(figure: Figure, image: AxesImage, grids: Sequence[Grid], below: bool) -> Axes:
    from matplotlib.ticker import MaxNLocator

    bar = figure.colorbar(
        image, cax=figure.add_axes((0.1, 0.1, 0.5, 0.05) if below else (0.9, 0.1, 0.05, 0.5)), extend="both",
        orientation="horizontal" if below else "vertical", extendfrac=0.03,
        ticks=MaxNLocator(nbins="auto", steps=[1, 2, 2.5, 5, 10]),
    )
    bar.outline.set_linewidth(0.6)  # type: ignore[operator]  # an Artist, not a number as annotated
    bar.set_label(drawable(quantity_label(*grids)))
    return bar.ax


def _arrange(
    figure: Figure, axes: Sequence[Axes], extents: Sequence[tuple[float, float]], columns: int,
    bar: Axes | None, below: bool,
) -> None:
    """Fill the figure's width with panels on one scale (inches per A), and fit its height to them.

    What stands around each panel (labels, titles) is measured, so that nothing is cut or overlaps.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    width = figure.get_figwidth()
    rows = math.ceil(len(axes) / columns)
    wide = np.array([max(across for across, _ in extents[n::columns]) for n in range(columns)])
    high = np.array([max(up for _, up in extents[n * columns : (n + 1) * columns]) for n in range(rows)])
    for last in (False, False, True):  # the room that labels need depends a little on the size of the panels
        around = np.zeros((rows, columns, 4))
        for n, ax in enumerate(axes):
            around[divmod(n, columns)] = _decoration(figure, ax, renderer)
        left, right = around[..., 0].max(0), around[..., 1].max(0)
        bottom, top = around[..., 2].max(1), around[..., 3].max(1)
        beside = 0.0
        bar_around = np.zeros(4) if bar is None else _decoration(figure, bar, renderer)
        if bar is not None and not below:
            beside = _GAP + _BAR + bar_around[1]
            right[-1] = 0.0
            bottom[-1], top[0] = max(bottom[-1], bar_around[2]), max(top[0], bar_around[3])
        free = width - 2 * _MARGIN - beside - (left + right).sum() - _GAP * (columns - 1)
        scale = max(free, 0.2 * width) / wide.sum()
        under = _GAP + _BAR + bar_around[2] if bar is not None and below else 0.0
        height = 2 * _MARGIN + (top + bottom + high * scale).sum() + _GAP * (rows - 1) + under
        figure.set_size_inches(width, height)
        y = height - _MARGIN
        for row in range(rows):
            y -= top[row]
            x = _MARGIN
            for column in range(columns):
                x += left[column]
                if row * columns + column < len(axes):
                    across, up = (scale * size for size in extents[row * columns + column])
                    axes[row * columns + column].set_position((
                        x / width, (y - up) / height, across / width, up / height))
                x += scale * wide[column] + right[column] + _GAP
            y -= high[row] * scale + bottom[row] + _GAP
        if bar is not None and below:
            whole = width - 2 * _MARGIN
            bar.set_position((
                (_MARGIN + 0.2 * whole) / width, (_MARGIN + bar_around[2]) / height, 0.6 * whole / width,
                _BAR / height))
        elif bar is not None:
            foot = _MARGIN + bottom[-1]
            bar.set_position((
                1 - (_MARGIN + bar_around[1] + _BAR) / width, foot / height, _BAR / width,
                1 - (foot + _MARGIN + top[0]) / height))
        if not last:
            _break_long_labels(figure, renderer)


def _decoration(figure: Figure, ax: Axes, renderer: Any) -> NDArray[np.float64]:
    """Return what an Axes draws to the left of, right of, below and above itself, in inches."""
    ax.apply_aspect()
    inner: Any = ax.get_window_extent(renderer)
    outer: Any = ax.get_tightbbox(renderer)
    sides = (inner.x0 - outer.x0, outer.x1 - inner.x1, inner.y0 - outer.y0, outer.y1 - inner.y1)
    return np.maximum(np.array(sides) / figure.dpi, 0.0)


def _break_long_labels(figure: Figure, renderer: Any) -> None:
    whole = figure.get_figwidth() * figure.dpi
    for ax in figure.axes:
        limits = ((ax.yaxis.label, "height", ax.get_window_extent(renderer).height), (ax.xaxis.label, "width", whole))
        for label, side, limit in limits:
            if getattr(label.get_window_extent(renderer), side) > limit:
                label.set_text(label.get_text().replace(" (", "\n(", 1))


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
    content = io.BytesIO()  # where a write cannot fail, because matplotlib's PDF writer then hides why
    with style():
        figure.savefig(content, format=suffix[1:], dpi=dpi, metadata=metadata)
    return content.getvalue()
