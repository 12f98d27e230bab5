"""The command ``field``: electric field and potential at atoms, bonds or points, in every frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from vmdpotential import progress
from vmdpotential.arrays import Floats
from vmdpotential.commands.options import Source, TableOutput, TrajectoryOptions
from vmdpotential.errors import UsageError
from vmdpotential.frames.errors_of_means import (
    error_text,
    explain_errors,
    spanned_correlation_times,
    too_short,
    uncertainties_of_means,
    uncertainty_of_mean,
    without_nan,
)
from vmdpotential.frames.options import Execution
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import Structure, atom_label
from vmdpotential.parameters import Command, Option, ReportRows, warn_unused
from vmdpotential.results import Axes, Figure, Result, TableColumns

from . import figures
from .contributions import contribution_masks
from .field import (
    DEFAULT_FIELD_TOLERANCE,
    FieldOptions,
    FieldSeries,
    field_at,
)
from .sites import FieldSites, bonds_between

#: Units of the field and their values in V/A.
FIELD_UNITS = {"V/A": 1.0, "V/nm": 0.1, "MV/cm": 0.01}


@dataclass(frozen=True, kw_only=True)
class SiteOptions:
    """Sites at which the field is computed: atoms, bonds or points."""

    at: Annotated[str | None, Option("selection of atoms at which the field is computed", metavar="SEL", front=True,
                                     selection=True)] = None
    bonds: Annotated[tuple[str, ...], Option(
        "two selections: the field is computed at the midpoints of the bonds between them, with its component along"
        " each bond, from the first to the second",
        metavar="SEL", front=True, selection=True)] = ()
    points: Annotated[Path | np.ndarray | None, Option(  # type: ignore[type-arg]
        "file of points, with a line x,y,z (A) for each point, optionally followed by a name", metavar="FILE",
        heading="sites")] = None
    fit: Annotated[str | None, Option(
        "selection that the points follow by translation and rotation, from the structure to each frame; unless given, "
        "the points are fixed in space", metavar="SEL", selection=True, heading="trajectory")] = None

    def check(self) -> None:
        """Raise an error for options that contradict each other."""
        if (self.at is not None) + bool(self.bonds) + (self.points is not None) != 1:
            raise UsageError("at", "the sites of the field must be given exactly once",
                             "give one of {at}, {bonds} and {points}")
        if self.bonds and len(self.bonds) != 2:
            raise UsageError("bonds", f"two selections are needed, and there are {len(self.bonds)}",
                             "such as {bonds [C]} [O]")
        if self.fit is not None and self.points is None:
            raise UsageError("fit", "the fit only applies to points, as atoms move with the trajectory",
                             "give {points}, or leave it out")

    def places(self, atoms: Structure) -> FieldSites:
        """Return the sites in a structure."""
        if self.at is not None:
            rows = np.flatnonzero(select(atoms, self.at, "at"))
            return FieldSites.atoms(rows, [atom_label(atoms, int(n), False) for n in rows])
        if self.bonds:
            pairs = bonds_between(atoms, *(select(atoms, text, "bonds") for text in self.bonds))
            return FieldSites.bonds(pairs,
                                    [f"{atom_label(atoms, int(i), False)}-{atoms.atom_names[j]}" for i, j in pairs])
        from vmdpotential.io.files.points import numbered_points, read_points

        assert self.points is not None
        points = read_points(self.points) if isinstance(self.points, Path) else numbered_points(self.points)
        return FieldSites.at(*points, atoms, None if self.fit is None else select(atoms, self.fit, "fit"))

    def words(self, kind: str) -> str:
        """Return a description of the sites."""
        return {"atoms": f"atoms of {self.at}", "bonds": f"bonds from {' to '.join(self.bonds)}",
                "points": f"points, which move with {self.fit}" if self.fit else
                "points, in the coordinates of the trajectory"}[kind]


@dataclass(frozen=True, kw_only=True)
class FieldOutput(TableOutput):
    """Files of the values in every frame, and of their figure over time."""

    output: Annotated[Path | None, Option(
        "file of the values in every frame: .csv with a row for each site and contribution, or .npz with arrays",
        short="o",
        viewer=False, written=True, suffix=".csv")] = None
    figure: Annotated[Path | None, Option(
        "figure of the values over the frames: .png, .pdf or .svg", viewer=False, written=True,
        heading="main options")] = None


def field(
    source: Source,
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    sites: SiteOptions = SiteOptions(),
    from_: Annotated[tuple[str, ...], Option(
        "selections whose contributions are reported separately, such as protein, water and ions", metavar="SEL",
        front=True, selection=True)] = (),
    options: FieldOptions = FieldOptions(),
    field_unit: Annotated[str, Option("unit of the field", choices=tuple(FIELD_UNITS), heading="output")] = "V/A",
    execution: Execution = Execution(),
    output: FieldOutput = FieldOutput(),
) -> Field:
    """Compute electric field and potential at atoms, at bonds, or at points, in every frame of a trajectory.

    All atoms contribute, with all images in a periodic cell, except for the atom itself. The method pb computes the
    field of the solute in a continuum of water and ions, which includes their response to the solute's charges. The
    contributions of selections, and of all other atoms, add up to the total unless selections overlap.

    Raises
    ------
    InputError
        For atoms without charges, or a trajectory of other atoms.
    """
    path = output.output
    if path is not None and path.suffix.lower() not in (".csv", ".npz") and not files.is_standard(path):
        raise UsageError("output", f"{path}: fields cannot be written in this format", "name it .csv or .npz")
    sites.check()
    trajectory.check()
    output.check()
    if options.solver is None:
        warn_unused(("spacing",), "only a continuum has a grid; add {method pb}")
    if sites.points is not None:
        warn_unused(("exclude",), "it needs atoms, not points")
    atoms, report, frames = source.with_frames_of(trajectory)
    places = sites.places(atoms)
    left_out = options.left_out(places)
    tolerance = options.tolerance or (None if options.solver else DEFAULT_FIELD_TOLERANCE)
    execution = execution.with_block_folder(path)
    with progress.clock() as clock:
        field_series = field_at(
            atoms, places, frames,
            replace(options, sources=contribution_masks(atoms, from_), cell=source.cell),
            execution)
    scale = 1 / FIELD_UNITS[field_unit]
    summary, series = _summary(field_series, scale)
    result = Field(
        charges=report, fields=field_series, frames=len(field_series.frames), exclude=left_out, field_unit=field_unit,
        options=replace(options, tolerance=tolerance),
        boundary="open" if field_series.cell is None else "periodic", fit=sites.fit, error=field_series.error * scale,
        error_potential=field_series.relative_errors[0], error_field=field_series.relative_errors[1], summary=summary,
        series=series, words=sites.words(places.kind), seconds=clock.seconds, structure=atoms, files=output.paths,
        draws=output.draws)
    arrays = path is not None and path.suffix.lower() == ".npz"
    output.write(result, "electric field", partial(_write_arrays, field_series, scale, field_unit) if arrays else None)
    total = 1 if frames is None else len(frames.numbers())
    return execution.complete(result, result.frames, total)


class Field(Result):
    """Electric field and potential at sites in every frame."""

    charges: ChargeReport
    fields: FieldSeries
    frames: int
    exclude: str
    field_unit: str
    options: FieldOptions
    boundary: str
    fit: str | None
    error: float
    error_potential: float
    error_field: float
    summary: Mapping[str, Any]
    seconds: float
    series: Floats
    words: str
    structure: Structure

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            **self.charges.data, "names": self.fields.names, "unit": self.fields.unit, "medium": self.fields.medium,
            "engine": self.fields.engine, "kind": self.fields.places.kind, "places": self.fields.places.names,
            "frames": self.frames, "exclude": self.exclude, "field_unit": self.field_unit,
            "temperature": self.options.temperature, "tolerance": self.options.tolerance, "boundary": self.boundary,
            "fit": self.fit, "error": self.error, "error_potential": self.error_potential,
            "error_field": self.error_field, **self.summary, "seconds": self.seconds}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"structure": self.structure}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the error of the field, and the largest mean values."""
        result, places, unit, frames = self.fields, self.fields.places, self.field_unit, "s" * (self.frames != 1)
        origin = "from two grids" if self.options.tolerance is None else f"tolerance {self.options.tolerance:g}"
        excluded = ("no charges are left out" if places.kind == "points" else
                    f"the charges of its own {self.exclude} are left out at each site")
        yield str(self.charges)
        yield f"{boundary_text(result.cell)}; {result.medium}; " + (
            f"rms error of the field {self.error:.1e} {unit}, relative errors {self.error_field:.1e} of the field and "
            f"{self.error_potential:.1e} of the potential ({origin})" if result.error else
            "all pairs, exactly") + f"; {excluded}"
        yield f"{len(places)} {self.words}, {self.frames} frame{frames}, " + (
            "field along the bond" if result.along is not None else "magnitude of the field"
            ) + f" ({unit}) and potential ({result.unit}):"
        yield from _lines(result, self.summary, self.series)
        yield f"{self.frames} frame{frames} in {self.seconds:.2f} s on the {result.engine} engine"

    def table(self) -> TableColumns:
        """Return a row for each frame, site and contribution."""
        result, scale, unit = self.fields, 1 / FIELD_UNITS[self.field_unit], self.field_unit
        potential, field = result.potential.swapaxes(1, 2), scale * result.field.swapaxes(1, 2)
        frames, places, names = potential.shape
        along = {} if result.along is None else {f"along ({unit})": scale * result.along.swapaxes(1, 2).ravel()}
        return {
            "frame": np.repeat(result.frames, places * names),
            "place": np.tile(np.repeat(np.array(result.places.names, object), names), frames),
            "from": [*result.names] * (frames * places), f"potential ({result.unit})": potential.ravel(),
            **{f"E{axis} ({unit})": field[..., k].ravel() for k, axis in enumerate("xyz")},
            f"E ({unit})": np.linalg.norm(field, axis=3).ravel(), **along}

    def plot(self, ax: Axes) -> Axes:
        """Draw the field over frames, or if there is one frame, over sites."""
        return figures.draw_series(0, ax, *_curves(self.fields, self.field_unit))

    def draw(self) -> Figure:
        """Return field and potential over frames, or if there is one frame, over sites."""
        return figures.series(*_curves(self.fields, self.field_unit))


def _summary(fields: FieldSeries, scale: float) -> tuple[dict[str, Any], Floats]:
    """Return means over frames as plain data, and (F, names, M) the field along bonds or its magnitude."""
    # einsum, because squaring would copy the field of all frames
    sizes = np.sqrt(np.einsum("fnmd,fnmd->fnm", fields.field, fields.field)) if fields.along is None else fields.along
    series = scale * sizes

    def moments(name: str, values: Floats, scale: float = 1.0) -> dict[str, Any]:
        deviation = scale * values.std(0, ddof=1) if len(values) > 1 else None
        errors = uncertainties_of_means(values)
        return {name: (scale * values.mean(0)).tolist(),
                f"{name}_std": None if deviation is None else deviation.tolist(),
                **{f"{name}_{key}": None if errors is None else without_nan(scale * getattr(errors, key))
                   for key in ("error", "interval")}}

    result = {**moments("potential", fields.potential), **moments("field", fields.field, scale)}
    if fields.along is not None:
        result |= moments("along", series)
    return result, series


def _lines(fields: FieldSeries, summary: Mapping[str, Any], series: Floats) -> Iterator[str | ReportRows]:
    """Yield the mean over all sites, and the rows of the report, the largest values first."""
    mean = series.mean(0)
    site_errors = uncertainties_of_means(series[:, 0])
    for n, name in enumerate(fields.names):
        yield (f"  mean over sites, {name}: {mean[n].mean():.4f}"
               f"{error_text(uncertainty_of_mean(series[:, n].mean(1)))}, {np.mean(summary['potential'][n]):.4f}")
    if mean.shape[1] > 1:
        def line(row: int) -> str:
            return (f"  {fields.places.names[row]}: {mean[0, row]:.4f}"
                    f"{error_text(None if site_errors is None else site_errors.part(row))}, "
                    f"{summary['potential'][0][row]:.4f}")

        yield ReportRows(line, np.argsort(-np.abs(mean[0]), kind="stable").tolist(), rest="that are smaller")
    if len(series) > 1:
        total = series[:, 0].mean(1)
        known = uncertainty_of_mean(total)
        yield "  " + (too_short(len(total), spanned_correlation_times(total)) if known is None else
                      explain_errors(len(total), float(total.std(ddof=1)), float(known.error)))


def _write_arrays(fields: FieldSeries, scale: float, unit: str, path: Path) -> None:
    from vmdpotential.io.maps.npz import put_arrays

    put_arrays(path, {
        "frames": fields.frames, "places": np.array(fields.places.names), "names": np.array(fields.names),
        "potential": fields.potential, "field": scale * fields.field,
        **({} if fields.along is None else {"along": scale * fields.along}),
        "unit": np.array(fields.unit), "field_unit": np.array(unit),
        "medium": np.array(fields.medium)})


def _curves(fields: FieldSeries, unit: str) -> tuple[Any, ...]:
    """Return the curves to draw: mean and deviation over sites for each frame, or the values at sites in one frame."""
    scale = 1 / FIELD_UNITS[unit]
    if fields.along is not None:
        field, text = scale * fields.along, "Field along bonds"
    else:  # the components along the total field, so that contributions add up
        total = fields.field[:, :1]
        size = np.linalg.norm(total, axis=3, keepdims=True)
        field = scale * np.einsum("fnmd,fmd->fnm", fields.field, (total / np.where(size > 0, size, 1))[:, 0])
        text = "Field" if len(fields.names) == 1 else "Field along the total"
    both = np.stack([field, fields.potential], axis=2)  # (F, names, 2, M)
    labels = [f"{text} ({unit})".replace("/A", "/Å"), f"Potential ({fields.unit})"]
    if len(fields.frames) == 1:
        site = fields.places.kind.removesuffix("s").capitalize()
        return (np.arange(1.0, len(fields.places) + 1), site, fields.names, both[0], None, labels)
    spread = both.std(3) if len(fields.places) > 1 else None
    return (fields.frames.astype(np.float64), "Frame", fields.names, np.moveaxis(both.mean(3), 0, -1),
                  None if spread is None else np.moveaxis(spread, 0, -1), labels)


command = Command.of(field, examples=(
    "field system.prmtop trajectory.xtc --at 'name O and protein' -o field.csv",
    "field system.prmtop trajectory.xtc --bonds 'name C and protein' 'name O and protein' --from water -o bonds.csv",
), python="""\
>>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
>>> field = vp.field(structure, at="//*/(ASP)/CG", from_=["water"])
>>> field.to_dataframe().shape[0] > 0
True""")
