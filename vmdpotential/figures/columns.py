"""Figures of curves in the width of a journal's column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vmdpotential.figures import prepare
from vmdpotential.figures.sizes import JOURNAL_WIDTHS
from vmdpotential.figures.style import figure_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def column_figure(draw: Callable[[Figure, Sequence[Axes]], Any], height: float,
                  ratios: Sequence[float] = (1.0,)) -> Figure:
    """Return a figure, `height` mm high, that a function draws: it gets the figure, and its axes from above.

    `ratios` are the relative heights of the axes, which share their horizontal axis.
    """
    prepare()
    from matplotlib.figure import Figure as NewFigure

    with figure_style():
        figure = NewFigure(figsize=(JOURNAL_WIDTHS["single"] / 25.4, height / 25.4), layout="constrained")
        draw(figure, figure.subplots(len(ratios), sharex=True, height_ratios=ratios, squeeze=False)[:, 0].tolist())
        figure.align_ylabels()
    return figure
