"""Results of commands: dataclasses, from which the report, ``--json``, tables and data frames are made.

A result declares what these have::

    class Distributions(Result):
        r: Floats
        options: Options
        structure: Structure

        def entries(self) -> dict[str, Any]:  # of --json
            return super().entries() | {"r": self.r, "range": self.options.range}

        def shown(self) -> dict[str, Any]:  # for viewers and notebooks
            return super().shown() | {"structure": self.structure}

        def text(self) -> Iterator[str | ReportRows]: ...  # the report
        def table(self) -> Columns: ...
        def plot(self, ax: Axes) -> Axes: ...
"""

from __future__ import annotations

import csv
import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

import numpy as np

from vmdpotential.errors import BackendError, UsageError
from vmdpotential.parameters import Report, ReportRows, written_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # names for annotations, because importing matplotlib takes time
    Axes = Figure = Any

#: A table: its columns by name, all of the same length.
TableColumns = Mapping[str, Iterable[Any]]


def plain_value(value: Any) -> Any:
    """Return a value for JSON: arrays as lists, paths as text, and None for numbers that are not finite."""
    if isinstance(value, (np.ndarray, np.generic)):
        return plain_value(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain_value(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(item) for item in value]
    return str(value) if isinstance(value, Path) else value


@dataclass_transform(kw_only_default=True, frozen_default=True)
class _Declared(Report, ABC):
    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)(cls)


class Tabular(ABC):
    """Base class of objects that have a table."""

    @abstractmethod
    def table(self) -> TableColumns:
        """Return the columns of the table."""

    def to_dataframe(self) -> Any:
        """Return the table as a :class:`pandas.DataFrame`.

        Raises
        ------
        BackendError
            When pandas is not installed.
        """
        try:
            import pandas  # type: ignore[import-untyped]
        except ImportError:
            raise BackendError("data frames need the package pandas", "pip install pandas") from None
        return pandas.DataFrame({name: list(column) for name, column in self.table().items()})


class Result(_Declared, Tabular):
    """Base class of the results of commands.

    Parameters
    ----------
    files : sequence of Path
        The files written.
    draws : bool
        Whether the figure is among the objects, e.g. because it is not written to a file.
    """

    files: Sequence[Path] = ()
    draws: bool = False

    @abstractmethod
    def text(self) -> Iterator[str | ReportRows]:
        """Yield the lines of the report, and its lists, without the lines on files."""

    def table(self) -> TableColumns:
        """Return the columns of the table: a single row unless overridden."""
        return {name: [value] for name, value in self.row.items()}

    def plot(self, ax: Axes) -> Axes:
        """Draw the result into axes, and return them.

        Raises
        ------
        UsageError
            When there is no figure of this kind of result.
        """
        raise UsageError("", f"there is no figure of {type(self).__name__}", "use its table")

    def draw(self) -> Figure | None:
        """Return the figure for files and viewers, or None if there is none."""
        return None

    @cached_property
    def lines(self) -> Sequence[str]:
        """Lines of the report; long lists are cut to their first items."""
        return [*written_out(self.text()), *(f"wrote {path}" for path in self.files)]

    @property
    def full(self) -> Sequence[str]:
        """Lines of the report, with all items of lists."""
        return [*written_out(self.text(), True), *(f"wrote {path}" for path in self.files)]

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``: numbers, texts, arrays, paths, and lists and mappings of these."""
        return {"files": self.files}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return {}

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """Data of ``--json``."""
        return {name: plain_value(value) for name, value in self.entries().items()}

    @cached_property
    def objects(self) -> Mapping[str, Any]:
        """Objects for viewers and notebooks, by name."""
        objects = self.shown() | {"figure": self.draw() if self.draws else None}
        return {name: value for name, value in objects.items() if value is not None}


R = TypeVar("R", bound=Result)


def put_table(columns: TableColumns, path: Path) -> None:
    """Write a table as CSV, numbers with eight digits, None and NaN as empty cells."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        lists = [column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()]
        writer.writerows(map(_cells, zip(*lists, strict=True)))


def _cells(row: Iterable[Any]) -> list[str]:
    return ["" if value is None or value != value else f"{value:.8g}" if isinstance(value, float) else str(value)
            for value in row]
