"""Figures of profiles across a cell, and of fields over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.figures import layout
from vmdpotential.figures.columns import column_figure
from vmdpotential.figures.slices import CURVE_COLOURS, drawable_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Number of letters of a label that fit into a panel's height.
_LETTERS = 26
#: Colours of the total (black) and its contributions.
_COLOURS = ("#000000", *(shade for shade in CURVE_COLOURS if shade != "#000000"))


def profiles(z: Floats, names: Sequence[str], values: Floats, errors: Floats | None, labels: Sequence[str],
             axis: str = "z", integral: Floats | None = None) -> Figure:
    """Return a figure of several quantities along an axis, one below the other, with bands of their errors.

    Parameters
    ----------
    z : (n,) float64, A
    names : sequence of str
        Names of the total and its contributions.
    values : (names, quantities, n) float64
    errors : (names, quantities, n) float64 or None
    labels : sequence of str
        Label of each quantity, with its unit.
    axis : str
    integral : (n + 1,) float64, optional
        Potential from the double integral of the charge density, from edge to edge, drawn over the last quantity.
    """
    return _below_each_other(len(labels), len(names), lambda q, ax: draw_profile(
        q, ax, z, names, values, errors, labels, axis if q == len(labels) - 1 else "", integral))


def _below_each_other(quantities: int, names: int, draw: Callable[[int, Axes], Axes]) -> Figure:
    """Return a figure of quantities, which `draw` draws, with the total, which is drawn last, first in the legend."""
    def drawn(figure: Figure, axes: Sequence[Axes]) -> None:
        for q, ax in enumerate(axes):
            draw(q, ax)
        handles, texts = ax.get_legend_handles_labels()
        if len(texts) > 1:
            order = [*reversed(range(names)), *range(names, len(texts))]
            figure.legend([handles[n] for n in order], [texts[n] for n in order], loc="outside upper center",
                          ncols=_columns(len(texts)), frameon=False)

    return column_figure(drawn, 12 + 38 * quantities, [1.0] * quantities)


def draw_profile(quantity: int, ax: Axes, z: Floats, names: Sequence[str], values: Floats, errors: Floats | None,
                 labels: Sequence[str], axis: str = "z", integral: Floats | None = None) -> Axes:
    """Draw the curves of one quantity of :func:`profiles` into Axes."""
    edges, q = np.append(z, 2 * z[-1] - z[-2]), quantity
    values = np.concatenate([values, values[..., :1]], axis=-1)  # from edge to edge of the period
    errors = None if errors is None else np.concatenate([errors, errors[..., :1]], axis=-1)
    ax.axhline(0, color="#808080", linewidth=0.4, zorder=0)
    for n in reversed(range(len(names))):  # the total on top
        _curve(ax, edges, values[n, q], None if errors is None else errors[n, q], n, names[n])
    if integral is not None and q == len(labels) - 1:
        ax.plot(edges, integral, color=_COLOURS[0], linestyle="dotted", label="double integral")
    ax.set(xlabel=axis and f"{axis} (Å)", ylabel=_wrapped(labels[q]), xlim=(float(edges[0]), float(edges[-1])))
    return ax


def _columns(names: int) -> int:
    """Return the number of columns of a legend, at most three, in rows of about equal length."""
    return math.ceil(names / math.ceil(names / 3))


def _wrapped(label: str) -> str:
    """Return a label, broken into lines that fit the height of a panel."""
    return label if len(label) <= _LETTERS else "\n".join(layout.wrap(label, _LETTERS))


def _curve(ax: Axes, x: Floats, y: Floats, band: Floats | None, n: int, name: str) -> None:
    colour = _COLOURS[n % len(_COLOURS)]
    ax.plot(x, y, color=colour, label=drawable_text(name), zorder=3 - n / 100, marker="o" if len(x) == 1 else None,
            markersize=2.5)
    if band is not None and np.isfinite(band).all():
        ax.fill_between(x, y - band, y + band, color=colour, alpha=0.25, linewidth=0)


def series(x: Floats, xlabel: str, names: Sequence[str], values: Floats, spreads: Floats | None,
           labels: Sequence[str]) -> Figure:
    """Return a figure of quantities over frames or sites, one below the other; the total with standard deviations.

    Parameters
    ----------
    x : (n,) float64
    xlabel : str
    names : sequence of str
        Names of the total and its contributions.
    values : (names, quantities, n) float64
    spreads : (names, quantities, n) float64 or None
    labels : sequence of str
    """
    return _below_each_other(len(labels), len(names), lambda q, ax: draw_series(
        q, ax, x, xlabel if q == len(labels) - 1 else "", names, values, spreads, labels))


def draw_series(quantity: int, ax: Axes, x: Floats, xlabel: str, names: Sequence[str], values: Floats,
                spreads: Floats | None, labels: Sequence[str]) -> Axes:
    """Draw the curves of one quantity of :func:`series` into Axes."""
    ax.axhline(0, color="#808080", linewidth=0.4, zorder=0)
    for n in reversed(range(len(names))):
        _curve(ax, x, values[n, quantity], None if spreads is None or n else spreads[n, quantity], n, names[n])
    ax.set(xlabel=xlabel, ylabel=_wrapped(labels[quantity]))
    if len(x) > 1:
        ax.set_xlim(float(x[0]), float(x[-1]))
    return ax
