"""Layout of figures: parts are measured, so that nothing is cut off or overlaps."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

Size = tuple[float, float]

# inches: margin around the content, gap between panels, and thickness of the colour bar
_MARGIN, _GAP, _BAR = 0.03, 0.08, 0.09
#: Largest height of a figure, relative to its width, and in inches (a journal's page).
_HIGHEST, _PAGE = 1.6, 9.4
#: Smallest height of a row of panels in a figure of a given height, inches.
_LOWEST = 0.3
#: Smallest distance of a panel's letter from its title, points.
_CLEAR = 3.0
#: Largest number of iterations of the layout.
_STEPS = 6
#: Usual width and height of the labels of a panel, mm; a colour bar needs as much height.
_BESIDE, _ABOVE = 10.0, 12.0
#: Width of a panel, mm, above which its axes have more ticks.
_WIDE = 50.0
#: Smallest width of a panel, mm.
_LEAST = 29.0


def columns(extents: Sequence[Size], width: float, height: float | None = None) -> int:
    """Return the number of columns for panels, each (across, up) in A, in a figure `width` mm wide.

    In a figure of a given height, mm, the panels are as large as possible. Otherwise, the height of the figure should
    be about 0.7 of its width, with few empty positions.
    """
    def penalty(count: int) -> float:
        wide, high = _tracks(extents, count)
        if height is not None:
            across, up = width - _BESIDE * count, height - _ABOVE * (len(high) + 1)
            return -float(min(across / wide.sum(), up / high.sum()))
        empty = -len(extents) % count / (len(extents) + -len(extents) % count)
        return abs(math.log(high.sum() / wide.sum() / 0.7)) + 3 * empty

    return min(range(1, max(1, min(len(extents), int(width / _LEAST))) + 1), key=penalty)


def _tracks(extents: Sequence[Size], count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the widths of columns and the heights of rows, A."""
    wide = np.array([max(across for across, _ in extents[n::count]) for n in range(count)])
    high = np.array([max(up for _, up in extents[n : n + count]) for n in range(0, len(extents), count)])
    return wide, high


def same_ticks(sides: Sequence[Axis], width: float) -> None:
    """Give axes in A of panels `width` mm wide the same tick spacing, but short ones one that shows their scale."""
    from matplotlib.ticker import MaxNLocator, MultipleLocator

    if sides:
        spans = [abs(float(np.subtract(*side.get_view_interval()))) for side in sides]
        ticks = MaxNLocator(nbins=7 if width > _WIDE else 5, steps=[1, 2, 5, 10]).tick_values(0, max(spans))
        common = float(ticks[1] - ticks[0])
        for side, span in zip(sides, spans, strict=True):
            coarsest = MaxNLocator(nbins=2, steps=[1, 2, 5, 10]).tick_values(0, span)
            side.set_major_locator(MultipleLocator(min(common, float(coarsest[1] - coarsest[0]))))


def share(axes: Sequence[Axes], count: int) -> None:
    """Remove labels that repeat those of the panel to the left, or of the panel below, with the same limits."""
    for n, ax in enumerate(axes):
        if n % count and _same_axis(ax, axes[n - 1], "y"):
            ax.tick_params(labelleft=False)
        if n + count < len(axes) and _same_axis(ax, axes[n + count], "x"):
            ax.tick_params(labelbottom=False)
    for ax in axes:  # only after all have been compared
        if not ax.yaxis.get_tick_params()["labelleft"]:
            ax.set_ylabel("")
        if not ax.xaxis.get_tick_params()["labelbottom"]:
            ax.set_xlabel("")


def _same_axis(a: Axes, b: Axes, side: str) -> bool:
    first, second = (getattr(ax, f"{side}axis") for ax in (a, b))
    return first.label.get_text() == second.label.get_text() and np.allclose(
        first.get_view_interval(), second.get_view_interval(), rtol=0, atol=1e-6)


def arrange(
    figure: Figure, axes: Sequence[Axes], extents: Sequence[Size], count: int, bar: Axes | None, below: bool,
    key: Legend | None = None, height: float | None = None,
) -> None:
    """Fill the figure's width with panels on one scale (inches per A), and fit its height to them.

    If the height is given, the panels fill the height or the width, whichever they reach first.

    Parameters
    ----------
    figure : Figure
    axes, extents : sequences
        Panels in reading order, and their widths and heights, A.
    count : int
        Number of columns.
    bar : Axes, optional
        Colour bar.
    below : bool
        Whether the colour bar is below the panels, and not next to them.
    key : Legend, optional
        Legend, which is put below everything else.
    height : float, mm, optional

    Raises
    ------
    UsageError
        If the height is too low for labels and panels.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    width = figure.get_figwidth()
    given = None if height is None else height / 25.4
    wide, high = _tracks(extents, count)
    foot = _MARGIN + (0.0 if key is None else key.get_window_extent(renderer).height / figure.dpi + _GAP)
    before = np.zeros((len(high), count, 4))
    for step in range(_STEPS):  # labels and ticks, and the space that they need, depend on the size of panels
        around = np.zeros((len(high), count, 4))
        for n, ax in enumerate(axes):
            around[divmod(n, count)] = _decoration(figure, ax, renderer)
        if step > 2:
            if np.abs(around - before).max() < 0.5 / figure.dpi:
                break
            _keep_ticks(axes)  # otherwise the ticks could alternate from one iteration to the next
        before = around
        left, right = around[..., 0].max(0), around[..., 1].max(0)
        bottom, top = around[..., 2].max(1), around[..., 3].max(1)
        bar_width = 0.0
        bar_around = np.zeros(4) if bar is None else _decoration(figure, bar, renderer)
        if bar is not None and not below:
            bar_width = _GAP + _BAR + bar_around[1]
            right[-1] = 0.0
            bottom[-1], top[0] = max(bottom[-1], bar_around[2]), max(top[0], bar_around[3])
        free = width - 2 * _MARGIN - bar_width - (left + right).sum() - _GAP * (count - 1)
        under = _GAP + _BAR + bar_around[2] if bar is not None and below else 0.0
        rest = _MARGIN + foot + (top + bottom).sum() + _GAP * (len(high) - 1) + under
        if given is None:
            highest = max(min(_HIGHEST * width, _PAGE) - rest, 0.5 * width)
        else:
            least = _LOWEST * len(high)
            if step >= 2 and given - rest < least:
                raise UsageError("height", "is too low for the panels with their labels",
                                 f"give at least {math.ceil(25.4 * (rest + least))} mm", value=f"{height:g} mm")
            highest = max(given - rest, least)
        scale = min(max(free, 0.2 * width) / wide.sum(), highest / high.sum())
        spare = max(free - scale * wide.sum(), 0.0) / 2
        needed = rest + high.sum() * scale
        total = needed if given is None else given
        unused = (total - needed) / 2  # above and below the panels
        figure.set_size_inches(width, total)
        y = total - _MARGIN - unused
        for row in range(len(high)):
            y -= top[row]
            x = _MARGIN + spare
            for column in range(count):
                x += left[column]
                if row * count + column < len(axes):
                    across, up = (scale * size for size in extents[row * count + column])
                    axes[row * count + column].set_position((
                        x / width, (y - up) / total, across / width, up / total))
                x += scale * wide[column] + right[column] + _GAP
            y -= high[row] * scale + bottom[row] + _GAP
        if bar is not None and below:
            inner_width = width - 2 * _MARGIN
            bar.set_position(((_MARGIN + 0.2 * inner_width) / width, (foot + bar_around[2]) / total,
                              0.6 * inner_width / width, _BAR / total))
        elif bar is not None:
            base = foot + bottom[-1] + unused
            bar.set_position((
                1 - (_MARGIN + spare + bar_around[1] + _BAR) / width, base / total, _BAR / width,
                1 - (base + _MARGIN + top[0] + unused) / total))
        if key is not None:
            key.set_bbox_to_anchor((0.5, _MARGIN / total), figure.transFigure)
        if step < 2:
            _break_long_labels(figure, renderer)
            _lift_letters(axes, count, renderer)


def _decoration(figure: Figure, ax: Axes, renderer: Any) -> NDArray[np.float64]:
    """Return the space, in inches, of labels and titles to the left of, right of, below and above Axes."""
    ax.apply_aspect()
    inner: Any = ax.get_window_extent(renderer)
    outer: Any = ax.get_tightbbox(renderer)
    sides = (inner.x0 - outer.x0, outer.x1 - inner.x1, inner.y0 - outer.y0, outer.y1 - inner.y1)
    return np.maximum(np.array(sides) / figure.dpi, 0.0)


def _keep_ticks(axes: Sequence[Axes]) -> None:
    """Fix the present ticks of panels, so that they do not change with the panels' size."""
    from matplotlib.ticker import FixedLocator

    for ax in axes:
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(FixedLocator(axis.get_majorticklocs().tolist()))


def _break_long_labels(figure: Figure, renderer: Any) -> None:
    """Break labels that are longer than the panel's height or the figure's width, first in front of the unit."""
    full_width = figure.get_figwidth() * figure.dpi
    for ax in figure.axes:
        height = ax.get_window_extent(renderer).height
        for label, side, limit in ((ax.yaxis.label, "height", height), (ax.xaxis.label, "width", full_width)):
            if getattr(label.get_window_extent(renderer), side) > limit:
                label.set_text("\n(".join(label.get_text().rsplit(" (", 1)))
            text, size = label.get_text(), getattr(label.get_window_extent(renderer), side)
            if size > limit > 0:
                longest = max(map(len, text.split("\n")))
                fitting = max(8, int(longest * limit / size))
                label.set_text("\n".join(wrap(text, fitting)))


def wrap(text: str, letters: int) -> list[str]:
    """Return a label in lines, without breaking a number from its unit or name, such as ``T = 298.15 K``."""
    joined = re.sub(r"(?<!,) (?=[\d=])|(?<=[\d=]) (?=[A-Z\d])", "\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(joined, letters, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _lift_letters(axes: Sequence[Axes], count: int, renderer: Any) -> None:
    """Move the letters of a row of panels above its titles if a letter and a title do not fit next to each other."""
    clear = _CLEAR * renderer.dpi / 72
    for start in range(0, len(axes), count):
        row = [(ax.title, ax._left_title)  # type: ignore[attr-defined]  # there is no public access to it
               for ax in axes[start : start + count]]
        if any(title.get_text() and letter.get_text() and "\n" not in letter.get_text()
               and title.get_window_extent(renderer).x0 < letter.get_window_extent(renderer).x1 + clear
               for title, letter in row):
            lines = max(1 + title.get_text().count("\n") for title, _ in row if title.get_text())
            for _, letter in row:
                letter.set_text(letter.get_text().rstrip("\n") + "\n" * lines)
