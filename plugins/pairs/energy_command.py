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
from vmdpotential.arrays import Floats
from vmdpotential.commands.options import Source, TableOutput, TrajectoryOptions
from vmdpotential.errors import UsageError
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.errors_of_means import Uncertainty, error_text, without_nan
from vmdpotential.frames.options import Execution
from vmdpotential.frames.statistics import FrameMean
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.nonbonded import Nonbonded
from vmdpotential.molecule.radii import RADII_SETS
from vmdpotential.molecule.selection import Mask
from vmdpotential.molecule.structure import Structure, atom_label
from vmdpotential.molecule.whole import WholeComplex
from vmdpotential.parameters import Command, Option, ReportRows, parse_numbers_or_auto, warn_unused
from vmdpotential.results import Axes, Figure, Result, TableColumns

from . import figures
from .between import (
    BetweenOption,
    PairOptions,
    PairResult,
    error_line,
    has_terms,
    selection_pairs,
    warn_of_mixture,
)
from .bound_energies import BoundEnergies, MutantEnergies
from .energy import InteractionEnergyPlan, by_residue
from .mutate import Mutant, mutate_residue
from .over_frames import PairEnergies, last_cell, over_frames

if TYPE_CHECKING:
    from .binding import BindingPlan

#: Generalized Born models.
BORN_MODELS = ("obc2", "gbn2")

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
        "also compute the energy of binding in a continuum of water with 0.15 M of salt, with the desolvation of both "
        "selections: by the Poisson-Boltzmann equation (pb) or a Generalized Born model (gb)",
        choices=("none", "pb", "gb"), heading="medium")] = "none"
    gb_model: Annotated[str, Option(
        "Generalized Born model, Amber's igb=5 (obc2) or igb=8 (gbn2), with its own radii", choices=BORN_MODELS,
        heading="medium")] = "obc2"
    surface_tension: Annotated[float, Option(
        "energy of the accessible surface; 0 leaves it out, Amber's is 0.0072 for gb and 0.00542 for pb",
        unit="kcal/mol/A^2", low=0.0, high=10.0, heading="medium")] = 0.0
    surface_offset: Annotated[float, Option(
        "what is added to the surface energy of each molecule, and so subtracted from that of binding; Amber's is "
        "0.92 for pb", unit="kcal/mol", low=-1e3, high=1e3, heading="medium")] = 0.0
    radii: Annotated[str, Option(
        "atomic radii in the continuum: auto for those of the file, or a named set",
        choices=("auto", *RADII_SETS), heading="medium")] = "auto"
    spacing: Annotated[float, Option(
        "grid spacing of the continuum", unit="A", low=0.05, high=2.0, heading="grid")] = 0.5
    mutate: Annotated[tuple[str, ...], Option(
        "mutants whose energies in the solvent are also computed, and how they differ from the wild type's in the same "
        "frames: residues whose side chains are shortened to those of ALA or GLY, each by its chain, number and new "
        "kind, such as A/35/ALA",
        metavar="CHAIN/NUMBER/NAME", heading="medium")] = ()
    solution: Annotated[Mapping[str, float] | None, Option(
        "parameters of the continuum, such as salt=0.1,inside=4; of pb also its ions by name and molarity, such as "
        "Mg2+=0.1,Cl-=0.2", name="set", metavar="NAME=NUMBER,...", parse=parse_numbers_or_auto,
        heading="method and accuracy")] = None

    def plans(self, structure: Structure, chosen: Sequence[tuple[str, str, Mask, Mask]], engine: str,
              frames: bool) -> list[BindingPlan]:
        """Return the plans of the energies of binding of pairs of selections; none without a solvent."""
        if self.solvent == "none":
            warn_unused(("radii", "spacing", "set", "gb_model", "surface_tension", "surface_offset", "mutate"),
                        "there is no continuum; add {solvent pb} or {solvent gb}")
            return []
        if self.solvent == "gb":
            warn_unused(("radii", "spacing"), "a Generalized Born model has radii of its own, and no grid")
        else:
            warn_unused(("gb_model",), "it is for {solvent gb}")
        return [self.plan(structure, a, b, engine, frames) for _, _, a, b in chosen]

    def plan(self, structure: Structure, a: Mask, b: Mask, engine: str, frames: bool) -> BindingPlan:
        """Return the plan of the energies of binding of two selections."""
        from .binding import BindingOptions, SurfaceEnergy, plan_binding

        how = BindingOptions(model=self.gb_model if self.solvent == "gb" else "pb", spacing=self.spacing,
                             radii=self.radii, parameters=self.solution,
                             surface=SurfaceEnergy(self.surface_tension, self.surface_offset), engine=engine)
        return plan_binding(structure, a, b, how, frames)


@dataclass(frozen=True)
class _Mutants:
    """The mutants of a structure, each with every pair of selections: their masks, plans and pair sums."""

    mutants: list[Mutant]
    plans: list[BindingPlan]
    sums: list[InteractionEnergyPlan]

    @classmethod
    def of(cls, names: Sequence[str], structure: Structure, chosen: Sequence[tuple[str, str, Mask, Mask]],
           report: ChargeReport, wild: Sequence[BindingPlan], terms: Nonbonded | None, options: PairOptions,
           solvent: SolventOptions, frames: bool) -> _Mutants:
        """Return the mutants with these names, whose residues have to be in a selection of each pair."""
        result = cls([], [], [])
        for name in names:
            mutant = mutate_residue(structure, name, report)
            residue = mutant.rows[mutant.changed]
            for (a, b, in_a, in_b), plan in zip(chosen, wild, strict=True):
                if not (in_a[residue].all() or in_b[residue].all()):
                    raise UsageError("mutate", f"the residue is neither in {a} nor in {b}",
                                     "choose a residue of a selection", value=name)
                pair = in_a[mutant.rows], in_b[mutant.rows]
                result.mutants.append(replace(mutant, together=plan.together))
                known = replace(solvent, solution={**(solvent.solution or {}), **plan.membrane})  # not found again
                result.plans.append(known.plan(mutant.structure, *pair, options.engine, frames))
                if terms is not None:
                    result.sums.append(options.between(mutant.structure, mutant.terms(terms), *pair))
        return result


@dataclass(frozen=True, kw_only=True)
class EnergyOutput(TableOutput):
    """Files of the table of energies, and of a figure of residues."""

    output: Annotated[Path | None, Option(
        "CSV file of the table; with a trajectory and the rows total, it has a row for every frame; - is standard "
        "output",
        short="o",
        viewer=False, written=True)] = None
    figure: Annotated[Path | None, Option(
        "figure of the residues with the largest energies, for the rows residue, or of the terms in a solvent over the "
        "frames of a trajectory: .png, .pdf or .svg", viewer=False, written=True, heading="main options")] = None


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
    tables and JSON also contain standard deviations.

    In a solvent, the energy of binding of the selections as rigid molecules is the difference of the complex and both
    alone (single-trajectory MM/PBSA and MM/GBSA): van der Waals, Coulomb, the screening by the solvent, the desolvation
    of both, and with a tension the surface. Tables have these terms for every frame, or for residues or atoms of both
    selections, each with half of a pair's energy. Entropy and changes of conformation are left out. Without
    Lennard-Jones parameters, as from a PQR file, so is van der Waals. Mutants with the side chains of alanine or
    glycine are computed in the same frames, with the changes from the wild type.

    Raises
    ------
    InputError
        For atoms without charges or Lennard-Jones parameters, or a trajectory of other atoms.
    """
    output.check()
    series = trajectory.trajectory is not None
    if output.figure is not None and by != "residue" and not (by == "total" and series and solvent.solvent != "none"):
        raise UsageError("figure", "a figure is only drawn for residues, or for energies in a solvent over frames",
                         "use {by residue}")
    if solvent.mutate and by != "total" and solvent.solvent != "none":
        raise UsageError("mutate", "mutants have no energies by residue or atom", "use {by total}")
    structure, report, frames = source.with_frames_of(trajectory, between, "between")
    chosen = selection_pairs(structure, between)
    plans = tuple(solvent.plans(structure, chosen, options.engine, series))
    execution = execution.with_block_folder(output.output)
    bodies = np.logical_or.reduce([plan.chosen for plan in plans]) if plans else None
    cells = CellFrames.of(structure, frames, options.boundary, source.cell,
                          None if bodies is None else WholeComplex.of(structure, bodies, series))
    with_terms = not plans or bool(options.parameters) or has_terms(structure)
    sums: list[InteractionEnergyPlan] = []
    terms = options.terms(structure) if with_terms else None
    if terms is not None:
        warn_of_mixture(structure, report, terms)
        sums = [options.between(structure, terms, a, b) for _, _, a, b in chosen]
    reverse = [options.between(structure, terms, b, a) for _, _, a, b in chosen
               ] if terms is not None and plans and by != "total" else []
    mutants = _Mutants.of(solvent.mutate if plans else (), structure, chosen, report, plans, terms, options, solvent,
                          series)
    with progress.clock() as clock:
        work = PairEnergies(cells, (*sums, *mutants.sums), structure, by, (*plans, *mutants.plans), tuple(reverse),
                            (*[None] * len(chosen), *mutants.mutants))
        merged = over_frames(work, execution)
    bound = [BoundEnergies(structure, a, b, by, plan, merged["numbers"].values, merged[f"bound {n}"].values,
                           None if by == "total" else merged[f"bound rows {n}"])
             for n, ((a, b, _, _), plan) in enumerate(zip(chosen, plans, strict=False))]
    mutated = []
    for n, (mutant, plan) in enumerate(zip(mutants.mutants, mutants.plans, strict=True)):
        wild = bound[n % len(chosen)]
        mutated.append(MutantEnergies(mutant.name, wild, BoundEnergies(
            mutant.structure, wild.a, wild.b, by, plan, merged["numbers"].values,
            merged[f"bound {len(chosen) + n}"].values)))
    result: Energies | EnergiesInContinuum
    common: dict[str, Any] = {
        "charges": report, "unit": "kcal/mol", "by": by, "frames": merged.count, "bound": bound, "mutated": mutated,
        "seconds": clock.seconds, "structure": structure, "series": series, "files": output.paths,
        "draws": (by == "residue" or bool(plans and series)) and output.draws}
    if terms is not None:
        rows = [_Rows(structure, a, b, by, entry.atoms, merged[f"rows {n}"], merged["numbers"].values,
                      merged[f"total {n}"].values)
                for n, ((a, b, _, _), entry) in enumerate(zip(chosen, sums, strict=True))]
        result = Energies(**common, pairs=[item for row in rows for item in row.data()], options=options,
                          errors=[pair.error for pair in sums], cell=last_cell(merged), parameters=terms.source,
                          sums=sums, rows=rows)
    else:
        result = EnergiesInContinuum(**common)
    output.write(result, f"{chosen[0][0]} with {chosen[0][1]}")
    return execution.complete(result, result.frames, len(work.frames.numbers()))


class InSolvent(Result):
    """Base class of energies of which some are of binding in a solvent."""

    by: str
    frames: int
    bound: Sequence[BoundEnergies]
    mutated: Sequence[MutantEnergies]
    series: bool

    def bound_table(self) -> TableColumns:
        """Return the table of the energies in the solvent: of residues or atoms, or with a row for every frame."""
        if self.by == "total":
            tables = [entry.frame_table() for entry in self.bound]
            if self.mutated:
                tables += [each.mutant.frame_table() for each in self.mutated]
                names = ["" for _ in self.bound] + [each.name for each in self.mutated]
                tables = [{**table, "mutant": [name for _ in table["frame"]]}
                          for name, table in zip(names, tables, strict=True)]
            if not self.series:
                tables = [{name: column for name, column in table.items() if name != "frame"} for table in tables]
        else:
            tables = [{"a": [entry.a] * len(entry.names), "b": [entry.b] * len(entry.names), **entry.row_table()}
                      for entry in self.bound]
        return {name: [value for table in tables for value in table[name]]
                for name in tables[0] if all(name in table for table in tables)}

    def bound_text(self) -> Iterator[str | ReportRows]:
        """Yield the lines of the energies in the solvent, and of mutants."""
        for entry in self.bound:
            yield from entry.text()
        for each in self.mutated:
            yield from each.text()

    def plot_bound(self, ax: Axes) -> Axes:
        """Draw the terms over frames, or the residues with the largest energies, of the first pair of selections."""
        first = self.bound[0]
        title = f"{first.a} with {first.b}"
        if self.by == "total":
            return figures.draw_terms(ax, first.numbers.tolist(), first.curves(), title)
        assert first.rows is not None
        mean, uncertainty = first.rows.moments.mean, first.rows.uncertainty()
        return figures.draw_residues(
            ax, first.names, mean[:, 1:4].sum(1), mean[:, -1] - mean[:, 1:4].sum(1),
            None if uncertainty is None else uncertainty.interval[:, -1], title, ("electrostatic", "others"))

    def draw_bound(self) -> Figure | None:
        """Return the figure of :meth:`plot_bound`; None for one frame, or by atom."""
        if self.by == "residue":
            return figures.residues(self.plot_bound, len(self.bound[0].names))
        return figures.terms_of_frames(self.plot_bound) if self.by == "total" and self.series else None


class Energies(InSolvent, PairResult):
    """Energies between pairs of selections, kcal/mol."""

    pairs: Sequence[Mapping[str, Any]]
    errors: Sequence[float | None]
    seconds: float
    rows: Sequence[_Rows]

    @property
    def row(self) -> Mapping[str, Any]:
        """Numbers for the table of a batch, with the energies of every pair of selections."""
        energies = {f"{name}{f'_{n}' if n else ''}": value for n, row in enumerate(self.rows)
                    for name, value in zip(_COLUMNS, row.mean.sum(0).tolist(), strict=True)}
        bound = {f"solvent{f'_{n}' if n else ''}": entry.mean["total"] for n, entry in enumerate(self.bound)}
        return {**super().row, **energies, **bound}

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "pairs": self.pairs, "by": self.by, "errors": self.errors, "frames": self.frames,
            "solvent": [entry.data for entry in self.bound] or None,
            "mutants": [each.data for each in self.mutated] or None, "seconds": self.seconds}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the parameters, errors and rows."""
        yield from super().text()
        for pair, row in zip(self.sums, self.rows, strict=True):
            yield (error_line(pair, pair.error, "Coulomb energies of atoms")
                   + (f", {row.a} with {row.b}" if len(self.rows) > 1 else ""))
        for row in self.rows:
            yield from _lines(row)
        yield from self.bound_text()
        yield (f"{self.frames} frame{'s' * (self.frames != 1)} in {self.seconds:.2f} s on the {self.engine} engine")

    def table(self) -> TableColumns:
        """Return the rows; with a trajectory and by total, a row for every frame. In a solvent, those in it."""
        if self.bound:
            return self.bound_table()
        rows = self.pairs
        if self.series and self.by == "total":
            rows = [{"frame": number, "a": row.a, "b": row.b, **dict(zip(_COLUMNS, values.tolist(), strict=True))}
                    for row in self.rows for number, values in row.frames]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return {name: column for name, column in columns.items() if any(value is not None for value in column)}

    def plot(self, ax: Axes) -> Axes:
        """Draw the rows with the largest energies, of the first pair of selections."""
        if self.bound:
            return self.plot_bound(ax)
        row = self.rows[0]
        uncertainty = row.sums.uncertainty()
        interval = None if uncertainty is None else uncertainty.interval[:, 2]
        return figures.draw_residues(ax, row.names, row.mean[:, 0], row.mean[:, 1], interval, f"{row.a} with {row.b}")

    def draw(self) -> Figure | None:
        """Return the figure of residues, or of the terms in a solvent over frames."""
        if self.bound:
            return self.draw_bound()
        return figures.residues(self.plot, len(self.rows[0].names)) if self.by == "residue" else None

    @cached_property
    def objects(self) -> Mapping[str, Any]:
        """The structure and the figure; by residue or atom also the structure with energies as B factors."""
        if self.by == "total":
            return super().objects
        return {**super().objects, "values": _coloured(self.structure, self.rows[0], self.sums[0].atoms)}


class EnergiesInContinuum(InSolvent):
    """Energies of binding of pairs of selections in a continuum, kcal/mol, without Lennard-Jones parameters."""

    charges: ChargeReport
    unit: str
    seconds: float
    structure: Structure

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {**self.charges.data, "unit": self.unit, "by": self.by, "frames": self.frames,
                                    "solvent": [entry.data for entry in self.bound],
                                    "mutants": [each.data for each in self.mutated] or None, "seconds": self.seconds}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"structure": self.structure}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the charges and the energies."""
        yield str(self.charges)
        yield "no Lennard-Jones parameters: energies in the continuum only"
        yield from self.bound_text()
        yield f"{self.frames} frame{'s' * (self.frames != 1)} in {self.seconds:.2f} s"

    def table(self) -> TableColumns:
        """Return a row for each pair of selections, frame, residue or atom."""
        return self.bound_table()

    def plot(self, ax: Axes) -> Axes:
        """Draw the terms over frames, or the residues with the largest energies."""
        return self.plot_bound(ax)

    def draw(self) -> Figure | None:
        """Return the figure of the terms or residues."""
        return self.draw_bound()


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
        yield row.all.explanation(2)


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
    "energy kinase.psf kinase.dcd --parameters charmm36.xml --between 'resid 122-159' 'resid 30-59' --solvent gb "
    "--frames ::40 --mutate 36/ALA",
), python="""\
>>> from MDAnalysisTests.datafiles import PRM_NCBOX, TRJ_NCBOX  # a prmtop, and frames in NetCDF
>>> rows = vp.energy(PRM_NCBOX, TRJ_NCBOX, frames="0:3", between=("protein", "water")).to_dataframe()
>>> list(rows.columns)
['frame', 'a', 'b', 'coulomb', 'lennard_jones', 'total']
>>> len(rows)
3""")
