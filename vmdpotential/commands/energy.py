"""The command ``energy``: Coulomb and Lennard-Jones energies between selections."""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.commands.between import (
    BetweenOption,
    PairOptions,
    error_line,
    label,
    selections,
    stopped,
    warn_of_mixture,
)
from vmdpotential.commands.continuum import binding_data, binding_line
from vmdpotential.commands.options import CrystalSource, TableOutput, TrajectoryOptions
from vmdpotential.errors import UsageError
from vmdpotential.execution.blocks import clear
from vmdpotential.execution.work import Arrays
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.options import PartialExecution
from vmdpotential.frames.pairs import PairEnergies, over_frames
from vmdpotential.frames.statistics import PLUS_MINUS, TOO_SHORT, FrameMean, Uncertainty, beside, without_nan
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.radii import SETS
from vmdpotential.molecule.structure import Structure
from vmdpotential.pairs.energy import by_residue
from vmdpotential.parameters import Command, Option, Report

Floats = NDArray[np.float64]

_COLUMNS = ("coulomb", "lennard_jones", "total")
#: Rows of the longest part of a table that is printed.
_PRINTED = 10


class _Rows:
    """The rows of one pair of selections: their names, and sums over frames."""

    def __init__(self, structure: Structure, a: str, b: str, by: str, atoms: NDArray[np.int64]) -> None:
        self.structure, self.a, self.b, self.by = structure, a, b, by
        self.names = {"total": [a]}.get(by) or (
            [label(structure, int(n), False) for n in atoms] if by == "atom" else
            [label(structure, int(structure.residue_starts[n]), True)
             for n in by_residue(structure, atoms, np.zeros(len(atoms)))[0]])
        self.sums = FrameMean((len(self.names), 3))
        self.all = FrameMean((3,))  # of all rows
        self.frames: list[tuple[int, Floats]] = []  # the totals of each

    def add(self, numbers: Sequence[int], totals: Floats, rows: Floats | None) -> None:
        """Add frames: their numbers (F,), totals (F, 3), and (F, rows, 3) unless the total is the only row."""
        for number, total, values in zip(numbers, totals, totals[:, None] if rows is None else rows, strict=True):
            self.frames.append((number, total))
            self.all.add(total)
            self.sums.add(values)

    @property
    def mean(self) -> Floats:
        """Mean over frames (rows, 3)."""
        return self.sums.moments.mean

    def data(self) -> list[dict[str, Any]]:
        """Return the rows for programs."""
        known, spread = self.sums.uncertainty(), self.sums.deviation()
        beside = {"std": spread, "error": None if known is None else known.error,
                  "interval": None if known is None else known.interval}
        columns = {key: None if values is None else without_nan(values) for key, values in beside.items()}
        return [
            {"a": name, "b": self.b, **dict(zip(_COLUMNS, self.mean[n].tolist(), strict=True)),
             **{f"{column}_{key}": None if values is None else values[n][k] for key, values in columns.items()
                for k, column in enumerate(_COLUMNS)}}
            for n, name in enumerate(self.names)]


@dataclass(frozen=True, kw_only=True)
class SolventOptions:
    """The continuum in which energies are computed too."""

    solvent: Annotated[str, Option(
        "also compute the electrostatic energy in a continuum of water and 0.15 M salt (pb, the Poisson-Boltzmann "
        "equation), with the desolvation of both selections", choices=("none", "pb"))] = "none"
    radii: Annotated[str, Option(
        "radii of the atoms in the continuum: auto for the file's own, or a named set",
        choices=("auto", *SETS))] = "auto"
    spacing: Annotated[float, Option("grid spacing of the continuum", unit="A", low=0.05, high=2.0)] = 0.5


@dataclass(frozen=True, kw_only=True)
class EnergyOutput(TableOutput):
    """The table of energies, and a figure of residues."""

    output: Annotated[Path | None, Option(
        "CSV file of the rows; by total with a trajectory, of every frame; - is standard output", short="o",
        viewer=False, written=True)] = None
    figure: Annotated[Path | None, Option(
        "figure of the residues that matter most: .png, .pdf or .svg; by residue", viewer=False, written=True)] = None


def energy(
    source: CrystalSource,
    between: BetweenOption,
    by: Annotated[str, Option(
        "what has a row: the pair of selections, or each residue or atom of the first with all of the second",
        choices=("total", "residue", "atom"), front=True)] = "total",
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    options: PairOptions = PairOptions(),
    solvent: SolventOptions = SolventOptions(),
    execution: PartialExecution = PartialExecution(),
    output: EnergyOutput = EnergyOutput(),
) -> Report:
    """Compute Coulomb and Lennard-Jones energies between selections, in kcal/mol.

    Every pair of atoms counts once, also where selections overlap; pairs that the force field excludes do not count,
    and pairs of three bonds count by their own parameters. Rows of residues and atoms are those of the first
    selection, and add up to the total. Of a trajectory, means over its frames have standard errors and
    95 % intervals; tables and JSON have the standard deviations, too.

    Raises
    ------
    UsageError
        For options that do not fit together.
    InputError
        For atoms without charges or Lennard-Jones parameters, or a trajectory of other atoms.
    StoppedError
        When the run was stopped, and `partial` asks for what is done.
    """
    from vmdpotential.maps.binding import binding_energy

    output.check()
    if output.figure is not None and by != "residue":
        raise UsageError("figure", "shows residues", "use {by residue}")
    if solvent.solvent != "none" and trajectory.trajectory is not None:
        raise UsageError("solvent", "is for one structure", "leave out {trajectory}", value=solvent.solvent)
    structure, report, frames = source.over(trajectory, between, "between")
    chosen = selections(structure, between)
    terms = options.terms(structure)
    warn_of_mixture(structure, report, terms)
    sums = [options.between(structure, terms, a, b) for _, _, a, b in chosen]
    rows = [_Rows(structure, a, b, by, one.atoms) for (a, b, _, _), one in zip(chosen, sums, strict=True)]
    start, kept = time.perf_counter(), execution.beside(output.output)
    last: Cell | None = None

    def add(found: Arrays) -> None:
        nonlocal last
        last = Cell(found["cell"]) if "cell" in found else None
        for n, row in enumerate(rows):
            row.add(found["frames"].tolist(), found[f"total {n}"], found.get(f"rows {n}"))

    with progress.clock() as clock:
        work = PairEnergies(CellFrames.of(structure, frames, options.boundary, source.cell), tuple(sums), structure, by)
        whole = over_frames(work, add, execution.partial, **replace(execution, folder=kept).blocks)
    seconds = time.perf_counter() - start - clock.compiling
    count = len(rows[0].frames)
    bound = [] if solvent.solvent == "none" else [
        binding_energy(structure, a, b, spacing=solvent.spacing, radii=solvent.radii, engine=options.engine)
        for _, _, a, b in chosen]

    drawn = _draw(rows[0]) if by == "residue" and output.draws else None
    output.write(lambda path: _write(rows, path, trajectory.trajectory is not None), drawn,
                 f"{rows[0].a} with {rows[0].b}")
    if whole:
        clear(kept)
    lines = [
        str(report),
        f"{terms.source} parameters, {options.electrostatics}, {boundary_text(last)}, cutoff {options.cutoff:g} A, "
        f"dielectric {options.dielectric:g}",
        *(error_line(pair, pair.error, "Coulomb energies of atoms") + (
            f", {row.a} with {row.b}" if len(rows) > 1 else "") for pair, row in zip(sums, rows, strict=True)),
        *(line for row in rows for line in _lines(row)),
        *(binding_line(row.a, row.b, one) for row, one in zip(rows, bound, strict=False)),
        f"{count} frame{'s' * (count != 1)} in {seconds:.2f} s on the {sums[0].engine.name} engine",
        *(f"wrote {path}" for path in output.paths),
    ]
    data = {
        **report.data, "pairs": [item for row in rows for item in row.data()], "by": by, "unit": "kcal/mol",
        "electrostatics": options.electrostatics, "cutoff": options.cutoff,
        "tolerance": options.tolerance, "errors": [pair.error for pair in sums],
        "dielectric": options.dielectric, "frames": count,
        "boundary": "open" if last is None else "periodic", "parameters": terms.source,
        "engine": sums[0].engine.name, "seconds": seconds, "files": [str(path) for path in output.paths],
    }
    if bound:
        data["solvent"] = [binding_data(row.a, row.b, one) for row, one in zip(rows, bound, strict=True)]
    objects: dict[str, Any] = {"structure": structure}
    if by != "total":
        objects["values"] = _coloured(structure, rows[0], sums[0].atoms)
    if drawn is not None:
        objects["figure"] = drawn
    made = Report(lines, data, objects)
    if not whole:
        raise stopped(work, count, made)
    return made


def _lines(row: _Rows) -> list[str]:
    """Return the rows for people, the largest ones of many."""
    known, of_all = row.sums.uncertainty(), row.all.uncertainty()
    largest = np.argsort(-np.abs(row.mean[:, 2]), kind="stable")
    shown = np.sort(largest[:_PRINTED])
    lines = []
    if row.by != "total":
        coulomb, lennard_jones, total = row.mean.sum(0)
        lines.append(f"{row.a} with {row.b}: {total:.4f}{beside(None if of_all is None else of_all.part(2))} kcal/mol "
                     f"(Coulomb {coulomb:.4f}, Lennard-Jones {lennard_jones:.4f})"
                     + (f"; the largest of {len(row.names)}:" if len(row.names) > len(shown) else ""))
    for n in shown.tolist():
        coulomb, lennard_jones, total = row.mean[n]
        error = None if known is None else Uncertainty(known.error[n, 2], known.interval[n, 2])
        lines.append(f"{'' if row.by == 'total' else '  '}{row.names[n]} with {row.b}: {total:.4f}{beside(error)} "
                     f"kcal/mol (Coulomb {coulomb:.4f}, Lennard-Jones {lennard_jones:.4f})")
    if len(row.frames) > 1:
        lines.append(TOO_SHORT if of_all is None or np.isnan(of_all.error[2]) else PLUS_MINUS)
    return lines


def _write(rows: Sequence[_Rows], path: Path, series: bool) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        by_frame = series and rows[0].by == "total"
        if by_frame:
            writer.writerow(("frame", "a", "b", *_COLUMNS))
            writer.writerows((number, row.a, row.b, *map(_number, values)) for row in rows
                             for number, values in row.frames)
            return
        items = [item for row in rows for item in row.data()]
        columns = [name for name in items[0] if any(item[name] is not None for item in items)]
        writer.writerow(columns)
        writer.writerows([_number(item[name]) for name in columns] for item in items)


def _number(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else f"{value:.8g}"


def _draw(row: _Rows) -> Any:
    from vmdpotential.figures.pairs import residues

    known = row.sums.uncertainty()
    return residues(row.names, row.mean[:, 0], row.mean[:, 1], None if known is None else known.interval[:, 2],
                    f"{row.a} with {row.b}")


def _coloured(structure: Structure, row: _Rows, atoms: NDArray[np.int64]) -> Structure:
    """Return the structure with energies in the place of B factors: an atom has its residue's."""
    values = np.zeros(len(structure))
    if row.by == "atom":
        values[atoms] = row.mean[:, 2]
    else:
        residues = by_residue(structure, atoms, np.zeros(len(atoms)))[0]
        of_residue = np.zeros(structure.residue_count)
        of_residue[residues] = row.mean[:, 2]
        values = np.repeat(of_residue, np.diff(structure.residue_starts))
    return replace(structure, b_factors=values)


command = Command.of(energy)
