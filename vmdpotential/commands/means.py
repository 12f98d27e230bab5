"""Files of means over frames, and of their other statistics."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from vmdpotential.errors import UsageError
from vmdpotential.frames.average import STATISTICS
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files import output as files
from vmdpotential.parameters import result_is_used
from vmdpotential.results import TableColumns, put_table

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MeanFiles:
    """The maps of the mean over frames and of other statistics, and a table, that a command writes.

    Parameters
    ----------
    requested : tuple of str
        Requested statistics, the mean first.
    maps : mapping of (Path, Path)
        For each requested statistic, if there is an output, the file and a name with the suffix of its format.
    table : Path or None
    force : bool
        Whether existing files may be replaced.
    """

    requested: tuple[str, ...]
    maps: Mapping[str, tuple[Path, Path]]
    table: Path | None
    force: bool

    @classmethod
    def of(cls, output: Path | None, statistics: str, format: str = "", force: bool = False,
           table: Path | None = None) -> Self:
        """Return the files for the output of the mean and statistics such as ``mean,sem``, after checking them.

        Raises
        ------
        UsageError
            For unknown statistics, for more than the mean on a stream, or files that cannot be written.
        """
        from vmdpotential.io.maps import check_map_format, is_map, map_name

        words = [word.strip() for word in statistics.split(",")]
        if not set(words) <= set(STATISTICS):
            raise UsageError("stat", "give some of mean, std (standard deviation) and sem (standard error of the "
                             "mean), such as mean,sem", value=statistics)
        requested, paths = tuple(dict.fromkeys(["mean", *words])), []
        if output is not None:
            name = map_name(output)
            paths = [output, *(output.with_name(f"{name}_{word}{output.name[len(name):]}") for word in requested[1:])]
            if len(paths) > 1 and files.is_standard(output):
                raise UsageError("stat", "only the mean can be written to a stream", "name a file as {output}",
                                 value=statistics)
        names = files.named(paths, format, is_map)
        for path in names:
            check_map_format(path)
        files.check([*([] if table is None else [table]), *paths], force)
        return cls(requested, dict(zip(requested, zip(paths, names, strict=True), strict=False)), table, force)

    @property
    def statistics(self) -> tuple[str, ...]:
        """The statistics to compute: also the standard error for a program that uses the result."""
        return tuple(dict.fromkeys([*self.requested, "sem"])) if result_is_used() else self.requested

    def written(self, grids: Mapping[str, Grid], no_error: str) -> list[Path]:
        """Return the files of the statistics that there are; warn if the standard error is not known."""
        if "sem" in self.requested and "sem" not in grids:
            log.warning("%s; there is no map of it", no_error)
        return [path for word, (path, _) in self.maps.items() if word in grids]

    def write(self, grids: Mapping[str, Grid], no_error: str, table: TableColumns | None = None) -> list[Path]:
        """Write the maps of the statistics that there are, and the table; return their files, the maps first."""
        from vmdpotential.io.maps import check_map_format, put_map

        paths, tables = self.written(grids, no_error), [] if self.table is None else [self.table]
        names = {name: grids[word] for word, (_, name) in self.maps.items() if word in grids}
        for name, grid in names.items():
            check_map_format(name, grid.lattice)
        with files.writing_files([*paths, *tables], self.force, [*names, *tables]) as places:
            for place, grid in zip(places, names.values(), strict=False):
                put_map(grid, place)
            if table is not None:
                put_table(table, places[-1])
        return [*paths, *tables]
