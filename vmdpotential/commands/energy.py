"""The command ``energy``: Coulomb and Lennard-Jones energies between selections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.commands.between import (
    BetweenOption,
    PairOptions,
    PairResult,
    atom_label,
    error_line,
    has_terms,
    selection_pairs,
    warn_of_mixture,
)
from vmdpotential.commands.continuum import binding_data, binding_line
from vmdpotential.commands.options import Source, TableOutput, TrajectoryOptions
from vmdpotential.errors import UsageError
from vmdpotential.execution.blocks import clear_blocks
from vmdpotential.figures import pairs as figures
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.options import Execution
from vmdpotential.frames.pairs import PairEnergies, last_cell, over_frames
from vmdpotential.frames.statistics import PLUS_MINUS, FrameMean, Uncertainty, error_text, without_nan
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.radii import RADII_SETS
from vmdpotential.molecule.structure import Structure
from vmdpotential.pairs.energy import by_residue
from vmdpotential.parameters import Command, Option, ReportRows, parse_numbers, warn_unused
from vmdpotential.results import Axes, Figure, Result, TableColumns, complete_frames

if TYPE_CHECKING:
    from vmdpotential.maps.binding import Binding

Floats = NDArray[np.float64]

_COLUMNS = ("coulomb", "lennard_jones", "total")


class _Rows:
    """Rows of the table for one pair of selections: their names, their means over frames, and the number and total (3,)
    of each frame.
    """

    def __init__(self, structure: Structure, a: str, b: str, by: str, atoms: NDArray[np.int64], sums: FrameMean,
                 numbers: NDArray[np.int64], totals: Floats) -> None:
        self.structure, self.a, self.b, self.by = structure, a, b, by
        self.names = {"total": [a]}.get(by) or (
            [atom_label(structure, int(n), False) for n in atoms] if by == "atom" else
            [atom_label(structure, int(structure.residue_starts[n]), True)
             for n in by_residue(structure, atoms, np.zeros(len(atoms)))[0]])
        self.sums, self.frames = sums, list(zip(numbers.tolist(), totals, strict=True))
        self.all = FrameMean()  # total over all rows
        for total in totals:
            self.all.add(total)

    @property
    def mean(self) -> Floats:
        """Mean over frames (rows, 3)."""
        return self.sums.moments.mean

    def data(self) -> list[dict[str, Any]]:
        """Return the rows as plain data for ``--json``."""
        uncertainty, deviation = self.sums.uncertainty(), self.sums.deviation()
        statistics = {"std": deviation, "error": None if uncertainty is None else uncertainty.error,
                      "interval": None if uncertainty is None else uncertainty.interval}
        columns = {key: None if values is None else without_nan(values) for key, values in statistics.items()}
        return [
            {"a": name, "b": self.b, **dict(zip(_COLUMNS, self.mean[n].tolist(), strict=True)),
             **{f"{column}_{key}": None if values is None else values[n][k] for key, values in columns.items()
                for k, column in enumerate(_COLUMNS)}}
            for n, name in enumerate(self.names)]


@dataclass(frozen=True, kw_only=True)
class SolventOptions:
    """Options of the continuum in which electrostatic energies are also computed."""

    solvent: Annotated[str, Option(
        "also compute the electrostatic energy in a continuum of water with 0.15 M of salt (pb, the Poisson-Boltzmann "
        "equation), with the desolvation of both selections", choices=("none", "pb"),
        heading="medium")] = "none"
    radii: Annotated[str, Option(
        "atomic radii in the continuum: auto for those of the file, or a named set",
        choices=("auto", *RADII_SETS), heading="medium")] = "auto"
    spacing: Annotated[float, Option(
        "grid spacing of the continuum", unit="A", low=0.05, high=2.0, heading="grid")] = 0.5
    solution: Annotated[Mapping[str, float] | None, Option(
        "parameters of the continuum, such as salt=0.1,inside=4; also its ions by name and molarity, such as "
        "Mg2+=0.1,Cl-=0.2", name="set", metavar="NAME=NUMBER,...", parse=parse_numbers,
        heading="method and accuracy")] = None


@dataclass(frozen=True, kw_only=True)
class EnergyOutput(TableOutput):
    """Files of the table of energies, and of a figure of residues."""

    output: Annotated[Path | None, Option(
        "CSV file of the table; with a trajectory and the rows total, it has a row for every frame; - is standard "
        "output",
        short="o",
        viewer=False, written=True)] = None
    figure: Annotated[Path | None, Option(
        "figure of the residues with the largest energies: .png, .pdf or .svg; only for the rows residue", viewer=False,
        written=True, heading="main options")] = None


def energy(
    source: Source,
    between: BetweenOption,
    by: Annotated[str, Option(
        "rows of the table: one for each pair of selections (total), or one for each residue or atom of the first "
        "selection, with its energy with all of the second",
        choices=("total", "residue", "atom"), front=True)] = "total",
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    options: PairOptions = PairOptions(),
    solvent: SolventOptions = SolventOptions(),
    execution: Execution = Execution(),
    output: EnergyOutput = EnergyOutput(),
) -> Energies | EnergiesInContinuum:
    """Compute Coulomb and Lennard-Jones energies between selections, in kcal/mol.

    Each pair of atoms counts once, even if the selections overlap. Pairs that the force field excludes are left out,
    and 1-4 pairs have their own parameters. Rows by residue or atom are for those of the first selection, and add up to
    the total. For a trajectory, means over its frames are reported with standard errors and 95 % confidence intervals;
    tables and JSON also contain standard deviations. The energy in a continuum needs no Lennard-Jones parameters;
    without them, as from a PQR file, it is the only one.

    Raises
    ------
    UsageError
        For options that do not fit together.
    InputError
        For atoms without charges or Lennard-Jones parameters, or a trajectory of other atoms.
    StoppedError
        When the run was interrupted and `partial` is set; the result of the finished frames is written.
    """
    from vmdpotential.maps.binding import binding_energy

    output.check()
    if output.figure is not None and by != "residue":
        raise UsageError("figure", "a figure is only drawn for residues", "use {by residue}")
    if solvent.solvent != "none" and trajectory.trajectory is not None:
        raise UsageError("solvent", "the energy in a continuum is only computed for one structure, not over frames",
                         "leave out {trajectory}",
                         value=solvent.solvent)
    if solvent.solvent == "none":
        warn_unused(("radii", "spacing", "set"), "there is no continuum; add {solvent pb}")
    structure, report, frames = source.with_frames_of(trajectory, between, "between")
    chosen = selection_pairs(structure, between)

    def bound() -> list[Binding]:
        return [] if solvent.solvent == "none" else [
            binding_energy(structure, a, b, spacing=solvent.spacing, radii=solvent.radii, parameters=solvent.solution,
                           engine=options.engine)
            for _, _, a, b in chosen]

    if solvent.solvent != "none" and by == "total" and not options.parameters and not has_terms(structure):
        in_water = EnergiesInContinuum(
            charges=report, binding=bound(), names=[(a, b) for a, b, _, _ in chosen], unit="kcal/mol",
            structure=structure, files=output.paths)
        output.write(in_water, f"{chosen[0][0]} with {chosen[0][1]}")
        return in_water
    terms = options.terms(structure)
    warn_of_mixture(structure, report, terms)
    sums = [options.between(structure, terms, a, b) for _, _, a, b in chosen]
    execution = execution.with_block_folder(output.output)
    with progress.clock() as clock:
        work = PairEnergies(CellFrames.of(structure, frames, options.boundary, source.cell), tuple(sums), structure, by)
        merged = over_frames(work, execution)
    rows = [_Rows(structure, a, b, by, entry.atoms, merged[f"rows {n}"], merged["numbers"].values,
                  merged[f"total {n}"].values)
            for n, ((a, b, _, _), entry) in enumerate(zip(chosen, sums, strict=True))]
    binding = bound()

    result = Energies(
        charges=report, pairs=[item for row in rows for item in row.data()], by=by, unit="kcal/mol", options=options,
        errors=[pair.error for pair in sums], frames=merged.count, cell=last_cell(merged), parameters=terms.source,
        sums=sums, rows=rows, binding=binding,
        solvent=[binding_data(row.a, row.b, entry) for row, entry in zip(rows, binding, strict=False)] or None,
        seconds=clock.seconds, structure=structure, series=trajectory.trajectory is not None,
        files=output.paths, draws=by == "residue" and output.draws)
    output.write(result, f"{rows[0].a} with {rows[0].b}")
    if merged.count == len(work.frames.numbers()):
        clear_blocks(execution.folder)
    return complete_frames(result, result.frames, len(work.frames.numbers()))


class Energies(PairResult):
    """Energies between pairs of selections, kcal/mol."""

    pairs: Sequence[Mapping[str, Any]]
    by: str
    errors: Sequence[float | None]
    frames: int
    solvent: Sequence[Mapping[str, Any]] | None
    seconds: float
    rows: Sequence[_Rows]
    binding: Sequence[Binding]
    series: bool

    @property
    def row(self) -> Mapping[str, Any]:
        """Numbers for the table of a batch, with the energies of every pair of selections."""
        energies = {f"{name}{f'_{n}' if n else ''}": value for n, row in enumerate(self.rows)
                    for name, value in zip(_COLUMNS, row.mean.sum(0).tolist(), strict=True)}
        bound = {f"solvent{f'_{n}' if n else ''}": binding.total for n, binding in enumerate(self.binding)}
        return {**super().row, **energies, **bound}

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "pairs": self.pairs, "by": self.by, "errors": self.errors, "frames": self.frames, "solvent": self.solvent,
            "seconds": self.seconds}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the parameters, errors and rows."""
        yield from super().text()
        for pair, row in zip(self.sums, self.rows, strict=True):
            yield (error_line(pair, pair.error, "Coulomb energies of atoms")
                   + (f", {row.a} with {row.b}" if len(self.rows) > 1 else ""))
        for row in self.rows:
            yield from _lines(row)
        for row, bound in zip(self.rows, self.binding, strict=False):
            yield binding_line(row.a, row.b, bound)
        yield (f"{self.frames} frame{'s' * (self.frames != 1)} in {self.seconds:.2f} s on the {self.engine} engine")

    def table(self) -> TableColumns:
        """Return the rows; with a trajectory and by total, a row for every frame."""
        rows = self.pairs
        if self.series and self.by == "total":
            rows = [{"frame": number, "a": row.a, "b": row.b, **dict(zip(_COLUMNS, values.tolist(), strict=True))}
                    for row in self.rows for number, values in row.frames]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return {name: column for name, column in columns.items() if any(value is not None for value in column)}

    def plot(self, ax: Axes) -> Axes:
        """Draw the rows with the largest energies, of the first pair of selections."""
        row = self.rows[0]
        uncertainty = row.sums.uncertainty()
        interval = None if uncertainty is None else uncertainty.interval[:, 2]
        return figures.draw_residues(ax, row.names, row.mean[:, 0], row.mean[:, 1], interval, f"{row.a} with {row.b}")

    def draw(self) -> Figure | None:
        """Return the figure of residues."""
        return figures.residues(self.plot, len(self.rows[0].names)) if self.by == "residue" else None

    @cached_property
    def objects(self) -> Mapping[str, Any]:
        """The structure and the figure; by residue or atom also the structure with energies as B factors."""
        if self.by == "total":
            return super().objects
        return {**super().objects, "values": _coloured(self.structure, self.rows[0], self.sums[0].atoms)}


class EnergiesInContinuum(Result):
    """Electrostatic energies of pairs of selections in a continuum, kcal/mol, without Lennard-Jones parameters."""

    charges: ChargeReport
    unit: str
    names: Sequence[tuple[str, str]]
    binding: Sequence[Binding]
    structure: Structure

    @cached_property
    def solvent(self) -> list[dict[str, Any]]:
        """The energies of each pair of selections."""
        return [binding_data(a, b, entry) for (a, b), entry in zip(self.names, self.binding, strict=True)]

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {**self.charges.data, "unit": self.unit, "solvent": self.solvent}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"structure": self.structure}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the charges and the energies."""
        yield str(self.charges)
        yield "no Lennard-Jones parameters: electrostatic energies in the continuum only"
        for (a, b), entry in zip(self.names, self.binding, strict=True):
            yield binding_line(a, b, entry)

    def table(self) -> TableColumns:
        """Return a row for each pair of selections."""
        columns: TableColumns = {"a": [a for a, _ in self.names], "b": [b for _, b in self.names]}
        tables = [entry.table() for entry in self.binding]
        return {**columns, **{name: [value for table in tables for value in table[name]] for name in tables[0]}}


def _lines(row: _Rows) -> Iterator[str | ReportRows]:
    """Yield the rows as lines of the report, the largest energies first."""
    uncertainty, total_uncertainty = row.sums.uncertainty(), row.all.uncertainty()
    if row.by != "total":
        coulomb, lennard_jones, total = row.mean.sum(0)
        error = error_text(None if total_uncertainty is None else total_uncertainty.part(2))
        yield (f"{row.a} with {row.b}: {total:.4f}{error} kcal/mol (Coulomb {coulomb:.4f}, "
               f"Lennard-Jones {lennard_jones:.4f})")

    def line(n: int) -> str:
        coulomb, lennard_jones, total = row.mean[n]
        error = None if uncertainty is None else Uncertainty(uncertainty.error[n, 2], uncertainty.interval[n, 2])
        return (f"{'' if row.by == 'total' else '  '}{row.names[n]} with {row.b}: {total:.4f}{error_text(error)} "
                f"kcal/mol (Coulomb {coulomb:.4f}, Lennard-Jones {lennard_jones:.4f})")

    yield ReportRows(line, np.argsort(-np.abs(row.mean[:, 2]), kind="stable").tolist(), rest="that are smaller")
    if len(row.frames) > 1:
        yield (row.all.too_short() if total_uncertainty is None or np.isnan(total_uncertainty.error[2]) else PLUS_MINUS)


def _coloured(structure: Structure, row: _Rows, atoms: NDArray[np.int64]) -> Structure:
    """Return the structure with energies as B factors: those of its atoms, or of their residues."""
    values = np.zeros(len(structure))
    if row.by == "atom":
        values[atoms] = row.mean[:, 2]
    else:
        residues = by_residue(structure, atoms, np.zeros(len(atoms)))[0]
        of_residue = np.zeros(structure.residue_count)
        of_residue[residues] = row.mean[:, 2]
        values = np.repeat(of_residue, np.diff(structure.residue_starts))
    return replace(structure, b_factors=values)


command = Command.of(energy, examples=(
    "energy system.prmtop trajectory.xtc --between protein water -o energy.csv",
    "energy system.prmtop trajectory.xtc --between protein water --by residue --figure residues.png",
), python="""\
>>> from MDAnalysisTests.datafiles import PRM_NCBOX, TRJ_NCBOX  # a prmtop, and frames in NetCDF
>>> rows = vp.energy(PRM_NCBOX, TRJ_NCBOX, frames="0:3", between=("protein", "water")).to_dataframe()
>>> list(rows.columns)
['frame', 'a', 'b', 'coulomb', 'lennard_jones', 'total']
>>> len(rows)
3""")
