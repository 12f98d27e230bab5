"""Contours of a map on a slice, and where their labels are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vmdpotential.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Size, relative to the picture's longer side, below which closed contour lines are left out, as around single atoms.
_SMALL = 0.06

#: Half the length of a contour's label plus the radius of an atom, points.
_LABEL = 11.0

#: Colour of contours.
CONTOUR = "#202020"

#: Largest number of contour levels that have a label on the colour bar.
_LABELLED = 8


def contour_ticks(value_range: tuple[float, float], at: Floats) -> Floats | None:
    """Return ticks of a colour bar at contour levels, and at the ends of the range if there is room.

    None if there are too many levels for labels.
    """
    low, high = value_range
    if not 0 < len(at) <= _LABELLED:
        return None
    room = (high - low) / (_LABELLED + 2)
    ends = [end for end in value_range if np.abs(at - end).min() >= room]
    return np.unique([*ends, *at])


def contour_levels(value_range: tuple[float, float], number: int) -> Floats:
    """Return round contour levels inside a range, about `number` of them."""
    from matplotlib.ticker import MaxNLocator

    low, high = value_range
    ticks = MaxNLocator(nbins=number + 1, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    margin = 1e-9 * (high - low)
    return np.array([x for x in ticks if low + margin < x < high - margin])


def without_flats(values: Floats, value_range: tuple[float, float]) -> Floats:
    """Return values with NaN in regions where no value exceeds a thousandth of the range of the colours.

    Beyond a cutoff the potential is 0 everywhere, and a contour of 0 there would only show rounding.
    """
    around = np.nan_to_num(np.abs(values))
    for axis in range(2):  # maximum over nine points along each axis; importing scipy's filter would take longer
        padded = np.pad(around, [(4, 4) if axis == d else (0, 0) for d in range(2)])
        around = np.lib.stride_tricks.sliding_window_view(padded, 9, axis).max(-1)
    return np.where(around <= 1e-3 * (value_range[1] - value_range[0]), np.nan, values)


def contour_style(level: float) -> dict[str, Any]:
    """Return the style of the line of a contour, in a panel and on the colour bar."""
    return {"color": CONTOUR, "linewidth": 0.8 if level == 0 else 0.4, "linestyle": "dashed" if level < 0 else "solid"}


def draw_contours(ax: Axes, s: Floats, t: Floats, values: Floats, at: Floats, atoms: Floats) -> None:
    """Draw contours at levels into Axes, with labels away from atoms, and without small loops."""
    if not len(at):
        return
    styles = [contour_style(level) for level in at]
    lines = ax.contour(
        s, t, np.ma.masked_invalid(values), levels=at, colors=CONTOUR, zorder=1,
        linewidths=[style["linewidth"] for style in styles], linestyles=[style["linestyle"] for style in styles])
    from matplotlib.path import Path

    smallest = _SMALL * max(s[-1] - s[0], t[-1] - t[0])
    kept = [[np.asarray(piece) for piece in path.to_polygons(closed_only=False)
             if np.ptp(piece, axis=0).max() >= (smallest if _is_closed(piece) else 0.1 * smallest)]
            for path in lines.get_paths()]
    lines.set_paths([Path.make_compound_path(*map(Path, pieces)) for pieces in kept])
    frame = ax.get_window_extent()
    room = _LABEL / 72 * ax.figure.get_dpi() / max(frame.width, frame.height) * max(s[-1] - s[0], t[-1] - t[0])
    positions = _label_positions(kept, s, t, atoms, room)
    if positions:
        labels = ax.clabel(
            lines, fontsize=6, inline_spacing=3, manual=positions, zorder=4,  # above atoms
            fmt=lambda x: f"{x:g}".replace("-", "\N{MINUS SIGN}"))
        for text in labels:  # readable on dark colours; an outline would make paths of the text in PDF and SVG
            text.set_bbox({"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.4})


def _is_closed(line: Any) -> bool:
    """Return whether a line (n, 2) is closed, up to rounding."""
    return bool(np.abs(line[0] - line[-1]).max() < 1e-6 * np.ptp(line, axis=0).max())


def _label_positions(lines: Sequence[Sequence[Floats]], s: Floats, t: Floats, atoms: Floats,
                     room: float) -> list[tuple[float, float]]:
    """Return positions of labels, away from atoms, other labels, the ends of lines and the frame.

    `room` is half the length of a label with the radius of an atom.

    Every level has a label, on its longest line, also if that is close to atoms, and so have other long lines that
    have room.
    """
    size = max(s[-1] - s[0], t[-1] - t[0])
    longest = [max(pieces, key=_length) for pieces in lines if pieces]
    others = [piece for pieces in lines for piece in pieces
              if _length(piece) >= 0.3 * size and not any(piece is first for first in longest)]
    positions: list[tuple[float, float]] = []
    for n, piece in enumerate([*sorted(longest, key=_length), *sorted(others, key=_length, reverse=True)]):
        x, y = piece[:: max(1, len(piece) // 100)].T
        # not on steep segments, where labels are rotated so far that a 6 could be read as a 9
        steep = np.abs(np.gradient(y)) > 1.5 * np.abs(np.gradient(x)) if len(x) > 1 else np.array([True])
        frame = np.minimum(np.minimum(x - s[0], s[-1] - x), np.minimum(y - t[0], t[-1] - y))
        clear = np.where(steep, 0, np.minimum(frame, 0.08 * size))
        if not _is_closed(piece):
            along = np.append(0.0, np.cumsum(np.hypot(np.diff(x), np.diff(y))))
            ends = np.minimum(along, along[-1] - along)
            clear = np.minimum(clear, np.maximum(ends - room, 0.01 * ends))
        if len(atoms):
            clear = np.minimum(clear, _nearest(x, y, atoms))
        if positions:
            apart = _nearest(x, y, np.array(positions))
            clear = np.where(apart > 2 * room, np.minimum(clear, apart), 0)
        best = int(np.argmax(clear))
        if clear[best] > (0 if n < len(longest) else room):
            positions.append((float(x[best]), float(y[best])))
    return positions


def _nearest(x: Floats, y: Floats, points: Floats) -> Floats:
    """Return the distance (N,) from each of N positions to the nearest of some points (M, 2)."""
    return np.asarray(np.hypot(x[:, None] - points[:, 0], y[:, None] - points[:, 1]).min(1))


def _length(line: Floats) -> float:
    return float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())
