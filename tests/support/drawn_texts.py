"""What a reader of a printed figure would miss: texts that are too small, cut off, or over each other."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

#: Least size of text in print, points, and the width of a page, mm, to which wider figures are reduced. Exponents are
#: smaller than the text that they belong to.
LEAST, PAGE = 6.0, 183.0


def drawn_texts(figure):
    """Return the texts that are drawn of a figure (of ticks, those within the limits), and their boxes, pixels."""
    texts, draw = [], Text.draw

    def record(self, renderer, *arguments, **settings):
        if self.get_visible() and self.get_text().strip():
            texts.append((self, self.get_window_extent(renderer)))
        return draw(self, renderer, *arguments, **settings)

    canvas = figure.canvas
    Text.draw = record
    try:
        FigureCanvasAgg(figure).draw()
    finally:
        Text.draw = draw
        figure.set_canvas(canvas)
    return texts


def faults(figure):
    """Return sentences about texts of a figure that are too small in print, cut off, or over each other."""
    texts, whole = drawn_texts(figure), figure.bbox
    part = min(1.0, PAGE / 25.4 / figure.get_figwidth())
    found = [f"{text.get_text()!r} has {part * text.get_fontsize():.1f} points"
             for text, _ in texts if part * text.get_fontsize() < LEAST - 1e-6]
    slack = 1 / 72 * figure.dpi  # letters do not fill their boxes
    found += [f"{text.get_text()!r} is cut off" for text, box in texts
              if box.x0 < -slack or box.y0 < -slack or box.x1 > whole.x1 + slack or box.y1 > whole.y1 + slack]
    for (text, box), (other, next_box) in combinations(texts, 2):
        apart = np.maximum(box.min, next_box.min) - np.minimum(box.max, next_box.max)
        if not (text.get_rotation() % 90 or other.get_rotation() % 90) and (apart < -slack).all():
            found.append(f"{text.get_text()!r} is over {other.get_text()!r}")
    return found


def check_figures():
    """Make it an error, from now on in this process, to save a figure that has faults."""
    save = Figure.savefig

    def saved(self, *arguments, **settings):
        result = save(self, *arguments, **settings)
        assert not (found := faults(self)), "; ".join(found)
        return result

    Figure.savefig = saved
