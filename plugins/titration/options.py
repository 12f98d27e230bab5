"""Options of titrations, and their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.commands.options import TableOutput
from vmdpotential.errors import UsageError
from vmdpotential.interactions.screened_coulomb import WATER_PERMITTIVITY
from vmdpotential.io.files import output as files
from vmdpotential.io.files.text import COMPRESSED_SUFFIXES
from vmdpotential.molecule.radii import RADII_SETS
from vmdpotential.molecule.templates import FORCE_FIELDS
from vmdpotential.parameters import Option, result_is_used
from vmdpotential.parameters.option import parse_numbers
from vmdpotential.results import put_table
from vmdpotential.units import DEFAULT_TEMPERATURE, MAX_SALT

if TYPE_CHECKING:
    from .command import TitrationResult

#: Limits of a pH, and the largest number of values.
LOWEST, HIGHEST, MOST = -2.0, 16.0, 1000


@dataclass(frozen=True, kw_only=True)
class TitrationOptions:
    """The pH of the curves, the solvent and the lattice."""

    ph: Annotated[str, Option(
        "pH of the curves: one value, or begin:end:step", metavar="PH|B:E:S", front=True)] = "0:14:0.5"
    map_ph: Annotated[str, Option(
        "values of pH at which maps of the potential are made, of the mean charges of the titration, such as 4,7,10",
        metavar="PH,...", heading="output")] = ""
    model_pka: Annotated[Mapping[str, float] | None, Option(
        "pKa in water of model compounds, such as ASP=3.9, and of ligands, which are then sites; the files of charges "
        "then have both states of each ligand, with and without the proton", metavar="NAME=NUMBER,...",
        parse=parse_numbers, heading="structure and charges")] = None
    inside: Annotated[float, Option(
        "relative permittivity of the protein; 20 stands for its relaxation, which one rigid structure does not have, "
        "and 4 to 8 for less of it", low=1, high=WATER_PERMITTIVITY, front=True)] = 20.0
    salt: Annotated[float, Option(
        "concentration of a 1:1 salt", unit="M", low=0, high=MAX_SALT, front=True)] = 0.1
    temperature: Annotated[float, Option("temperature", unit="K", low=200, high=500,
                                         heading="medium")] = DEFAULT_TEMPERATURE
    spacing: Annotated[float, Option("distance between the nodes of the lattice", unit="A", low=0.2, high=2,
                                     heading="grid")] = 1.0
    radii: Annotated[str, Option("set of atomic radii", choices=RADII_SETS, heading="medium")] = "mbondi2"
    force_field: Annotated[str, Option(
        "force field whose templates give charges; amber14 has none for neutral ends of chains",
        choices=FORCE_FIELDS, heading="structure and charges")] = "charmm36"


@dataclass(frozen=True, kw_only=True)
class TitrationOutput(TableOutput):
    """Files of the sites, of the curves, of maps, and of a figure."""

    output: Annotated[Path | None, Option(
        "CSV file of the sites; - is standard output", short="o", viewer=False, written=True, suffix=".csv")] = None
    curves: Annotated[Path | None, Option(
        "CSV file of the curves, the net charge and the dipole moment against the pH", viewer=False, written=True,
        suffix=".csv", heading="output")] = None
    maps: Annotated[Path | None, Option(
        "maps to write, one for each of their values of pH, which is added to the name: maps.dx gives maps-ph4.dx ...",
        viewer=False, written=True, suffix=".dx", heading="output")] = None

    def map_files(self, ph: Sequence[float]) -> list[Path]:
        """Return the file of the map at each pH."""
        if (path := self.maps) is None:
            return []
        ending = "".join(path.suffixes[-2:] if path.suffix.lower() in COMPRESSED_SUFFIXES else path.suffixes[-1:])
        return [path.with_name(f"{path.name.removesuffix(ending)}-ph{value:g}{ending}") for value in ph]

    def all_files(self, ph: Sequence[float]) -> list[Path]:
        """Return the files to write, with maps at these values of pH."""
        return [path for path in (self.output, self.curves, self.figure, *self.map_files(ph)) if path is not None]

    def check_all(self, ph: Sequence[float], trajectory: bool, source: object) -> None:
        """Raise an error for a figure or a map of an unknown format, and for files that exist or cannot be written.

        Parameters
        ----------
        ph : sequence of float
            The values of pH of maps.
        trajectory : bool
            Whether there are frames, over which there are no maps.
        source : object
            The structure; viewers, whose structure is not a file, show maps without files.
        """
        from vmdpotential.io.maps import check_map_format

        self.check()
        if self.maps is not None and not ph:
            raise UsageError("map_ph", "the values of pH of the maps are needed", "give {map_ph 4,7,10}")
        if ph and self.maps is None and isinstance(source, Path) and not result_is_used():
            raise UsageError("maps", "a file is needed for the maps", "such as {maps maps.dx}")
        if trajectory and ph:
            raise UsageError("map_ph", "maps at a pH are those of one structure, and there are frames",
                             "leave out {map_ph} or the trajectory")
        for path in self.map_files(ph):
            check_map_format(path)
        files.check(self.all_files(ph), self.force)

    def write_all(self, result: TitrationResult, title: str) -> None:
        """Write all files or none."""
        from vmdpotential.figures.page import render_figure
        from vmdpotential.io.maps import put_map

        tables = {self.output: result.table, self.curves: result.curve_table}
        maps = dict(zip(self.map_files(result.map_ph), result.maps, strict=False))
        paths = self.all_files(result.map_ph)
        with files.writing_files(paths, self.force) as places:
            for path, place in zip(paths, places, strict=True):
                if path in maps:
                    put_map(maps[path], place)
                elif path == self.figure:
                    place.write_bytes(render_figure(result.draw(), path, title=title))
                else:
                    put_table(tables[path](), place)


def ph_values(text: str) -> Floats:
    """Return the values of a text such as ``7`` or ``0:14:0.5``, whose end is included.

    Raises
    ------
    UsageError
        For other texts, and values beyond :data:`LOWEST` and :data:`HIGHEST`.
    """
    try:
        parts = [float(part) for part in text.split(":")]
    except ValueError:
        parts = []
    if len(parts) not in (1, 2, 3) or not np.isfinite(parts).all():
        raise UsageError("ph", "a number or begin:end:step is needed", "give {ph 7}, or {ph 0:14:0.5}", value=text)
    begin, end, step = [*parts, *(parts[0], 0.5)[len(parts) - 1 :]][:3]
    if not LOWEST <= begin <= end <= HIGHEST or step <= 0 or (end - begin) / step > MOST:
        raise UsageError("ph", f"values of pH increase, from {LOWEST:g} to {HIGHEST:g}, and are {MOST:,} at most",
                         "give {ph 0:14:0.5}", value=text)
    return np.asarray(begin + step * np.arange(int((end - begin) / step + 1e-6) + 1), np.float64)


def series_of_ph(text: str) -> tuple[float, ...]:
    """Return the values of a text such as ``4,7,10``.

    Raises
    ------
    UsageError
        For other texts, and values beyond :data:`LOWEST` and :data:`HIGHEST`.
    """
    try:
        values = tuple(float(part) for part in text.split(",") if text)
    except ValueError:
        values = (np.nan,)
    if not all(LOWEST <= value <= HIGHEST for value in values) or len({*values}) < len(values):
        raise UsageError("map_ph", f"different values of pH from {LOWEST:g} to {HIGHEST:g} are needed",
                         "give {map_ph 4,7,10}", value=text)
    return values
