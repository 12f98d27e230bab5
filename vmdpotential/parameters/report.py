"""Reports of commands: text, plain data, and objects for viewers and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any


@dataclass(frozen=True)
class ReportRows:
    """Lines of a report for the items of a list; a short report has only the most important ones.

    Parameters
    ----------
    line : function
        Returns the line of an item by its number.
    order : sequence of int
        Numbers of the items, the most important ones first; lines are in the order of the numbers.
    shown : int
        Number of items in a short report.
    rest : str
        Words for the omitted items, after their number.
    """

    line: Callable[[int], str]
    order: Sequence[int]
    shown: int = 10
    rest: str = "more"

    def lines(self, full: bool) -> Iterator[str]:
        """Yield the lines, and in a short report the number of omitted ones."""
        chosen = self.order if full else self.order[: self.shown]
        yield from map(self.line, sorted(chosen))
        if len(chosen) < len(self.order):
            yield f"  ... and {len(self.order) - len(chosen)} {self.rest}"


def written_out(text: Iterable[str | ReportRows], full: bool = False) -> list[str]:
    """Return the lines of a report, in the short or in the full form."""
    return [line for item in text for line in ([item] if isinstance(item, str) else item.lines(full))]


class Report:
    """Report of a command; see :mod:`vmdpotential.results` for commands that compute something.

    Parameters
    ----------
    lines : sequence of str or Rows
        Text for stdout.
    data : mapping
        The same as plain data for JSON.
    objects : mapping
        Python objects for viewers and notebooks (``grid``, ``structure``, ``placement``, ``figure``).
    """

    def __init__(self, lines: Sequence[str | ReportRows], data: Mapping[str, Any],
                 objects: Mapping[str, Any] | None = None) -> None:
        self._parts = lines, data, objects or {}

    @cached_property
    def lines(self) -> Sequence[str]:
        """Lines of text; long lists are cut to their first items."""
        return written_out(self._parts[0])

    @property
    def full(self) -> Sequence[str]:
        """Lines of text, with all items of lists."""
        return written_out(self._parts[0], True)

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """Plain data for JSON."""
        return self._parts[1]

    @cached_property
    def objects(self) -> Mapping[str, Any]:
        """Python objects for viewers and notebooks."""
        return self._parts[2]

    @property
    def mapped_atoms(self) -> Any:
        """Selection of the atoms whose charges its map has, on whose surface it is shown."""
        return "solute"

    @property
    def row(self) -> Mapping[str, Any]:
        """Numbers and words of this run for a table of many runs."""
        row = {name: value for name, value in self.data.items() if isinstance(value, (str, int, float, type(None)))}
        if "shape" in self.data:
            row["points"] = " x ".join(map(str, self.data["shape"]))
        if "structure" in self.objects:
            row.setdefault("atoms", len(self.objects["structure"]))
        return row

    def __repr__(self) -> str:
        return f"{type(self).__name__}({next(iter(self.lines), '')!r}, objects: {', '.join(self.objects) or 'none'})"

    def _repr_png_(self) -> bytes | None:
        """Return the figure for notebooks as PNG, or None if there is none."""
        if "figure" not in self.objects:
            return None
        content = BytesIO()
        self.objects["figure"].savefig(content, format="png", dpi=150)
        return content.getvalue()
