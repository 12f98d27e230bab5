"""Widths of journals' columns, and lengths with units."""

from __future__ import annotations

import math

from vmdpotential.errors import UsageError

#: Widths of figures by the authors' guidelines of journals, mm, which scripts/guide/structure.md cites. `single` and
#: `double` are those of Nature.
JOURNAL_WIDTHS = {
    "single": 89.0, "double": 183.0,
    "acs-single": 84.6, "acs-double": 177.8,  # American Chemical Society: 240 and 504 points
    "elsevier-single": 90.0, "elsevier-double": 190.0,
    "pnas-single": 87.0, "pnas-double": 178.0,
    "rsc-single": 83.0, "rsc-double": 171.0,  # Royal Society of Chemistry
    "science-single": 90.0, "science-double": 183.0,
}

#: Limits of the width and the height of a figure, mm.
_WIDTHS, _HEIGHTS = (40.0, 1000.0), (30.0, 1400.0)


def length_in_mm(text: str | float) -> float:
    """Return a length in mm, of text such as ``120``, ``120mm``, ``12cm`` or ``4.5in``; NaN for other text."""
    number, size = str(text).strip(), 1.0
    for unit, of_unit in (("mm", 1.0), ("cm", 10.0), ("in", 25.4)):
        if number.endswith(unit):
            number, size = number.removesuffix(unit), of_unit
            break
    try:
        return float(number) * size
    except ValueError:
        return math.nan


def width_in_mm(text: str | float) -> float:
    """Return a figure's width, mm: a name of :data:`JOURNAL_WIDTHS`, or a length as of :func:`length_in_mm`.

    Raises
    ------
    UsageError
        If it is neither, or not between 40 and 1000 mm.
    """
    width = JOURNAL_WIDTHS[text] if isinstance(text, str) and text in JOURNAL_WIDTHS else length_in_mm(text)
    low, high = _WIDTHS
    if not low <= width <= high:
        raise UsageError("width", f"give single (89 mm), double (183 mm), another journal's "
                         f"({', '.join(list(JOURNAL_WIDTHS)[2:])}), or a length from {low:g} to {high:g} mm, such as "
                         "120mm or 4.5in", value=str(text))
    return width


def height_in_mm(text: str | float | None) -> float | None:
    """Return a figure's height, mm, or None if none is given.

    Raises
    ------
    UsageError
        If it is no length, or not between 30 and 1400 mm.
    """
    if text is None:
        return None
    height = length_in_mm(text)
    low, high = _HEIGHTS
    if not low <= height <= high:
        raise UsageError("height", f"give a length from {low:g} to {high:g} mm, such as 120mm or 4.5in",
                         value=str(text))
    return height
