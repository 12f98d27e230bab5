"""Fonts, line widths and the embedding of fonts in figures for print, set in a context only."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Fonts, those that are installed in this order; DejaVu, which comes with matplotlib, for characters that others lack:
#: Liberation has no superscript +.
FONTS = ("Arial", "Helvetica", "Liberation Sans", "DejaVu Sans")

_STYLE: dict[str, Any] = {
    "font.size": 7,
    "axes.labelsize": 7,
    "axes.titlesize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.handlelength": 1.5,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.2,
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
def figure_style() -> Iterator[None]:
    """Set fonts, line widths and font embedding in a context.

    Text is 7 points, for figures of their printed size. Texts keep their fonts when a figure is saved later.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from vmdpotential.figures.style import figure_style
    >>> with figure_style():
    ...     figure, ax = plt.subplots(figsize=(89 / 25.4, 2.5), layout="constrained")
    >>> ax.xaxis.label.get_fontsize()
    7.0
    """
    import matplotlib
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # names of maps may contain any characters
        # a user's matplotlib settings must not change a figure for print
        defaults: Any = {key: value for key, value in matplotlib.rcParamsDefault.items()
                         if not key.startswith("backend")}
        # names, not only "sans-serif", so that texts keep their fonts; that for the readers of an SVG
        fonts: Any = {"font.family": [*(name for name in FONTS if name in installed), "sans-serif"],
                      "font.sans-serif": list(FONTS)}
        matplotlib.rcParams.update(defaults | _STYLE | fonts)
        yield
