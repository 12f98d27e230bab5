"""The command ``field``: electric field and potential at atoms, bonds or points, in every frame."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.commands.between import label
from vmdpotential.commands.options import CrystalSource, TableOutput, TrajectoryOptions
from vmdpotential.errors import UsageError
from vmdpotential.execution.blocks import clear
from vmdpotential.frames.field import FieldOptions, FieldSeries, Places, bonds_between, field_at
from vmdpotential.frames.options import Execution
from vmdpotential.frames.statistics import PLUS_MINUS, TOO_SHORT, beside, each_uncertainty, uncertainty, without_nan
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Report

Floats = NDArray[np.float64]

#: Units of the field, in V/A.
FIELD_UNITS = {"V/A": 1.0, "V/nm": 0.1, "MV/cm": 0.01}

#: Rows of the longest part of a table that is printed.
_PRINTED = 10


@dataclass(frozen=True, kw_only=True)
class SiteOptions:
    """Where the field is computed: at atoms, bonds or points."""

    at: Annotated[str | None, Option("selection of atoms at which the field is computed", metavar="SEL", front=True,
                                     selection=True)] = None
    bonds: Annotated[tuple[str, ...], Option(
        "two selections: at the middles of the bonds between them, and along these, from the first to the second",
        metavar="SEL", front=True, selection=True)] = ()
    points: Annotated[Path | None, Option(
        "file of points, a line x,y,z (A) for each and a name where they have one", metavar="FILE")] = None
    fit: Annotated[str | None, Option(
        "selection that the points, which refer to the structure, move and turn with; they stay in the frame of the "
        "trajectory unless given", metavar="SEL", selection=True)] = None

    def check(self) -> None:
        """Refuse options that do not fit together."""
        if (self.at is not None) + bool(self.bonds) + (self.points is not None) != 1:
            raise UsageError("at", "the places of the field are needed once", "give one of {at}, {bonds} and {points}")
        if self.bonds and len(self.bonds) != 2:
            raise UsageError("bonds", f"takes two selections, and there are {len(self.bonds)}",
                             "such as {bonds [C]} [O]")
        if self.fit is not None and self.points is None:
            raise UsageError("fit", "is for points; atoms move by themselves", "give {points}, or leave it out")

    def places(self, atoms: Structure) -> Places:
        """Return the places in a structure."""
        if self.at is not None:
            rows = np.flatnonzero(select(atoms, self.at, "at"))
            return Places.atoms(rows, [label(atoms, int(n), False) for n in rows])
        if self.bonds:
            pairs = bonds_between(atoms, *(select(atoms, text, "bonds") for text in self.bonds))
            return Places.bonds(pairs, [f"{label(atoms, int(i), False)}-{atoms.atom_names[j]}" for i, j in pairs])
        from vmdpotential.io.files.points import read_points

        assert self.points is not None
        return Places.at(*read_points(self.points), atoms, None if self.fit is None else select(atoms, self.fit, "fit"))

    def words(self, kind: str) -> str:
        """Return the places in words."""
        return {"atoms": f"atoms of {self.at}", "bonds": f"bonds from {' to '.join(self.bonds)}",
                "points": f"points, which move with {self.fit}" if self.fit else
                "points, in the frame of the trajectory"}[kind]


@dataclass(frozen=True, kw_only=True)
class FieldOutput(TableOutput):
    """The values in every frame, and their figure over time."""

    output: Annotated[Path | None, Option(
        "file of every frame: .csv, a row for each place and contribution, or .npz, arrays", short="o", viewer=False,
        written=True)] = None
    figure: Annotated[Path | None, Option("figure over time: .png, .pdf or .svg", viewer=False, written=True)] = None


def field(
    source: CrystalSource,
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    sites: SiteOptions = SiteOptions(),
    from_: Annotated[tuple[str, ...], Option(
        "selections whose contributions are reported separately, such as protein, water and ions", metavar="SEL",
        front=True, selection=True)] = (),
    options: FieldOptions = FieldOptions(),
    field_unit: Annotated[str, Option("unit of the field", choices=tuple(FIELD_UNITS))] = "V/A",
    execution: Execution = Execution(),
    output: FieldOutput = FieldOutput(),
) -> Report:
    """Compute electric field and potential at atoms, at bonds, or at points, in every frame of a trajectory.

    Full long range: with all periodic images, or all atoms in an open boundary. An atom's own charge is left out.
    Contributions of selections add up to the total, with what is in none of them as a rest, unless they overlap.

    Raises
    ------
    UsageError
        For options that do not fit together.
    InputError
        For atoms without charges, or a trajectory of other atoms.
    """
    path = output.output
    if path is not None and path.suffix.lower() not in (".csv", ".npz") and not files.is_standard(path):
        raise UsageError("output", f"{path}: fields cannot be written in this format", "name it .csv or .npz")
    sites.check()
    trajectory.check()
    output.check()
    atoms, report, frames = source.over(trajectory)
    places = sites.places(atoms)
    left_out, unit = options.left_out(places), options.unit
    start, kept = time.perf_counter(), execution.beside(path)
    with progress.clock() as clock:
        found = field_at(
            atoms, places, frames,
            replace(options, sources={name: select(atoms, name, "from") for name in from_}, cell=source.cell),
            replace(execution, folder=kept))
    seconds = time.perf_counter() - start - clock.compiling
    scale = 1 / FIELD_UNITS[field_unit]
    drawn = _draw(found, scale, field_unit) if output.draws else None
    writer = _write_arrays if path is not None and path.suffix.lower() == ".npz" else _write_rows
    output.write(lambda place: writer(found, scale, field_unit, place), drawn, "electric field")
    clear(kept)
    count = len(found.frames)
    own = "nothing is left out" if places.kind == "points" else f"a place does not feel its own {left_out}"
    summary, series = _summary(found, scale)
    lines = [
        str(report),
        f"{boundary_text(found.cell)}; {found.medium}; "
        + (f"rms error of the field {found.error * scale:.1e} {field_unit}, relative errors "
           f"{found.relative_errors[1]:.1e} of the field and {found.relative_errors[0]:.1e} of the potential "
           f"(asked {options.tolerance:g})" if found.error else "all pairs, exactly")
        + f"; {own}",
        f"{len(places)} {sites.words(places.kind)}, {count} frame{'s' * (count != 1)}, " + (
            "field along the bond" if found.along is not None else "size of the field")
        + f" ({field_unit}) and potential ({unit}):",
        *_lines(found, summary, series),
        f"{count} frame{'s' * (count != 1)} in {seconds:.2f} s on the {found.engine} engine",
        *(f"wrote {path}" for path in output.paths),
    ]
    data = {
        **report.data, "places": list(places.names), "kind": places.kind,
        "names": list(found.names), "frames": count, "exclude": left_out, "unit": unit, "field_unit": field_unit,
        "temperature": options.temperature,
        "medium": found.medium, "boundary": "open" if found.cell is None else "periodic", "fit": sites.fit,
        "error": found.error * scale, "tolerance": options.tolerance, "error_potential": found.relative_errors[0],
        "error_field": found.relative_errors[1], "engine": found.engine,
        **summary, "seconds": seconds, "files": [str(path) for path in output.paths],
    }
    return Report(lines, data, {"structure": atoms, **({} if drawn is None else {"figure": drawn})})


def _summary(found: FieldSeries, scale: float) -> tuple[dict[str, Any], Floats]:
    """Return means over frames for programs, and the number that people are told, (F, names, M)."""
    # no copy of the field of all frames is made
    sizes = np.sqrt(np.einsum("fnmd,fnmd->fnm", found.field, found.field)) if found.along is None else found.along
    series = scale * sizes

    def moments(name: str, values: Floats, scale: float = 1.0) -> dict[str, Any]:
        spread = scale * values.std(0, ddof=1) if len(values) > 1 else None
        known = each_uncertainty(values)
        return {name: (scale * values.mean(0)).tolist(), f"{name}_std": None if spread is None else spread.tolist(),
                **{f"{name}_{key}": None if known is None else without_nan(scale * getattr(known, key))
                   for key in ("error", "interval")}}

    result = {**moments("potential", found.potential), **moments("field", found.field, scale)}
    if found.along is not None:
        result |= moments("along", series)
    return result, series


def _lines(found: FieldSeries, summary: dict[str, Any], series: Floats) -> Iterator[str]:
    """Return the rows for people, the largest ones of many; and the mean over all places."""
    mean = series.mean(0)
    places = each_uncertainty(series[:, 0])
    for n, name in enumerate(found.names):
        yield (f"  mean over places, {name}: {mean[n].mean():.4f}{beside(uncertainty(series[:, n].mean(1)))}, "
               f"{np.mean(summary['potential'][n]):.4f}")
    if mean.shape[1] > 1:
        for row in np.sort(np.argsort(-np.abs(mean[0]), kind="stable")[:_PRINTED]).tolist():
            yield (f"  {found.places.names[row]}: {mean[0, row]:.4f}"
                   f"{beside(None if places is None else places.part(row))}, {summary['potential'][0][row]:.4f}")
    if len(series) > 1:
        yield f"  {PLUS_MINUS}" if uncertainty(series[:, 0].mean(1)) is not None else f"  {TOO_SHORT}"


def _write_rows(found: FieldSeries, scale: float, unit: str, path: Path) -> None:
    bonds = found.along is not None
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["frame", "place", "from", f"potential ({found.unit})",
                         *(f"E{axis} ({unit})" for axis in "xyz"), f"E ({unit})",
                         *([f"along ({unit})"] if bonds else [])])
        for f, number in enumerate(found.frames.tolist()):
            field = scale * found.field[f]
            sizes = np.linalg.norm(field, axis=2)
            for m, place in enumerate(found.places.names):
                for n, name in enumerate(found.names):
                    values = [found.potential[f, n, m], *field[n, m], sizes[n, m]]
                    if found.along is not None:
                        values.append(scale * found.along[f, n, m])
                    writer.writerow([number, place, name, *(f"{x:.8g}" for x in values)])


def _write_arrays(found: FieldSeries, scale: float, unit: str, path: Path) -> None:
    from vmdpotential.io.maps.npz import put_arrays

    put_arrays(path, {
        "frames": found.frames, "places": np.array(found.places.names), "names": np.array(found.names),
        "potential": found.potential, "field": scale * found.field,
        **({} if found.along is None else {"along": scale * found.along}),
        "unit": np.array(found.unit), "field_unit": np.array(unit),
        "medium": np.array(found.medium)})


def _draw(found: FieldSeries, scale: float, unit: str) -> Any:
    """Return the figure over frames: means over the places and their spread, or of one frame over the places."""
    from vmdpotential.figures.profiles import series

    if found.along is not None:
        field, text = scale * found.along, "Field along bonds"
    else:  # of contributions the part along the total, so that they add up to it
        total = found.field[:, :1]
        size = np.linalg.norm(total, axis=3, keepdims=True)
        field = scale * np.einsum("fnmd,fmd->fnm", found.field, (total / np.where(size > 0, size, 1))[:, 0])
        text = "Field" if len(found.names) == 1 else "Field along the total"
    both = np.stack([field, found.potential], axis=2)  # (F, names, 2, M)
    labels = [f"{text} ({unit})".replace("/A", "/Å"), f"Potential, {found.medium} ({found.unit})"]
    if len(found.frames) == 1:
        return series(np.arange(1.0, len(found.places) + 1), "Place", found.names, both[0], None, labels)
    spread = both.std(3) if len(found.places) > 1 else None
    return series(found.frames.astype(np.float64), "Frame", found.names, np.moveaxis(both.mean(3), 0, -1),
                  None if spread is None else np.moveaxis(spread, 0, -1), labels)


command = Command.of(field)
