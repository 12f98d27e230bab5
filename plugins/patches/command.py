"""The command ``patches``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from vmdpotential import progress
from vmdpotential.arrays import Floats, Integers
from vmdpotential.commands.options import Source, TableOutput, TrajectoryOptions
from vmdpotential.errors import UsageError
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.errors_of_means import Uncertainty, without_nan
from vmdpotential.frames.options import Execution
from vmdpotential.frames.task import MergedSums, run_task
from vmdpotential.maps import MapOptions, Medium
from vmdpotential.maps.options import Engine, MethodOptions
from vmdpotential.maps.solute import in_continuum
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.selection import Selection
from vmdpotential.molecule.structure import Structure, atom_label
from vmdpotential.parameters import Command, Option, ReportRows, WithoutFields
from vmdpotential.results import Axes, Figure, Result, TableColumns
from vmdpotential.surfaces.patches import MIN_NAMED

from ..batch.inputs import unique_names_of
from .correspondence import corresponding_residues
from .over_frames import TOTALS, SurfacePatches

#: Number of residues of each sign in the report, and of both in the figure.
_PRINTED, _DRAWN = 5, 20

#: Margin of the map around the atoms, A; the potential is read up to 3 A from them.
_PADDING = 4.0

_SIGNS = ("positive", "negative")


@dataclass(frozen=True, kw_only=True)
class PatchOptions:
    """What counts as a patch, and the surface and grid on which patches are found."""

    threshold: Annotated[float, Option(
        "potential that is exceeded in positive patches, and its negative in negative ones", unit="kT/e", above=0,
        front=True)] = 1.0
    least: Annotated[float, Option(
        "area of the smallest patch that is counted", unit="A^2", low=0, heading="surface")] = MIN_NAMED
    within: Annotated[float, Option(
        "area that a residue has in patches of a sign when it counts as occupied by them", unit="A^2", above=0,
        heading="surface")] = 10.0
    others: Annotated[tuple[Path, ...], Option(
        "further structures, such as mutants, whose residues in patches are next to those of the first one in the "
        "table; residues correspond by sequence", metavar="FILE", viewer=False, heading="surface")] = ()
    atoms: Annotated[Selection, Option(
        "atoms of the surface, whose charges make the potential", metavar="all|solute|protein|SEL", front=True,
        selection=True)] = "solute"
    spacing: Annotated[float, Option("grid spacing of the potential", unit="A", low=0.1, high=3.0, front=True)] = 1.0
    mesh_spacing: Annotated[float, Option(
        "spacing of the grid on which surfaces are constructed", unit="A", low=0.05, high=2, heading="surface")] = 0.5


def patches(
    source: Source,
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    options: PatchOptions = PatchOptions(),
    solution: Annotated[MethodOptions, WithoutFields("method", "screened")] = MethodOptions(),
    engine: Engine = "auto",
    execution: Execution = Execution(),
    output: TableOutput = TableOutput(),
) -> PatchesOverFrames:
    """Find charged patches of a surface in every frame, and how often each residue is in them.

    A patch is a connected area of the molecular surface where the potential in water, by the Poisson-Boltzmann
    equation, is at least the threshold, or at most its negative; the potential is read at the centres of water
    molecules in contact with the surface. For each residue, the table has the mean area in positive and in negative
    patches, with standard errors over frames, and its occupancy: the fraction of frames in which it has at least the
    area `within` in patches of this sign. Reported are also the mean areas and numbers of all patches, and the area of
    the largest one.

    Raises
    ------
    UsageError
        For options that do not fit together, such as other structures and a trajectory.
    InputError
        For atoms without charges or radii, or a trajectory of other atoms.
    TaskError
        When the potential does not converge.
    BackendError
        When scikit-image is not installed.
    """
    output.check()
    if options.others and (trajectory.trajectory is not None or source.topology is not None):
        raise UsageError("others", "other structures are compared with one structure, without topology or trajectory",
                         "leave out {others}, or compute each by itself and compare the tables")
    if not options.others:  # blocks are of one structure
        execution = execution.with_block_folder(output.output)

    def of(source: Source) -> tuple[Structure, ChargeReport, MergedSums, int]:
        structure, charges, over = source.with_frames_of(trajectory, [options.atoms])
        structure, chosen, together = in_continuum(structure, options.atoms, Medium.continuum(),
                                                   frames=over is not None)
        rows = np.flatnonzero(chosen)
        molecule = structure.take(rows)
        frames = CellFrames.of(structure, over, "open", source.cell, together)
        work = SurfacePatches(frames, rows, molecule, potential, options.threshold, options.least, options.within,
                              options.mesh_spacing)
        return molecule, charges, run_task(work, execution), len(frames.numbers())

    potential = MapOptions(method="pb", atoms="all", spacing=options.spacing, padding=_PADDING, boundary="open",
                           temperature=solution.temperature, dielectric=solution.dielectric,
                           parameters=solution.parameters, radii=solution.radii, engine=engine)
    with progress.clock() as clock:
        molecule, charges, merged, total = of(source)
        names = unique_names_of([Path(source.structure.where if isinstance(source.structure, Structure)
                                      else source.structure), *options.others])[1:]
        joined = {}
        for name, path in zip(names, options.others, strict=True):
            other, _, areas, _ = of(replace(source, structure=path))
            joined[name] = JoinedPatches(other, corresponding_residues(molecule, other),
                                         areas["areas"].moments.mean)
    result = PatchesOverFrames(charges=charges, options=options, merged=merged, molecule=molecule,
                               joined=joined, seconds=clock.seconds, files=output.paths, draws=output.draws)
    output.write(result, f"patches of {options.atoms}")
    return execution.complete(result, merged.count, total)


@dataclass(frozen=True, eq=False)
class JoinedPatches:
    """Patches of another structure by the residues of the first one.

    Parameters
    ----------
    molecule : Structure
    rows : (R,) int64
        The residue that corresponds to each one of the first structure; -1 for none.
    areas : (2, residues) float64, A^2
        Areas in positive and negative patches.
    """

    molecule: Structure
    rows: Integers
    areas: Floats

    def columns(self, name: str, shown: Integers) -> dict[str, list[Any]]:
        """Return the columns of some residues of the first structure, None where there is no residue."""
        rows = self.rows[shown].tolist()
        starts = self.molecule.residue_starts
        result: dict[str, list[Any]] = {f"{name} residue": [
            None if row < 0 else atom_label(self.molecule, int(starts[row]), True) for row in rows]}
        for n, sign in enumerate(_SIGNS):
            result[f"{name} {sign}_area"] = [None if row < 0 else float(self.areas[n, row]) for row in rows]
        return result


class PatchesOverFrames(Result):
    """Patches over frames: means by residue, and of the whole surface."""

    charges: ChargeReport
    options: PatchOptions
    merged: MergedSums
    molecule: Structure
    #: Other structures by name.
    joined: Mapping[str, JoinedPatches]
    seconds: float

    @property
    def names(self) -> Sequence[str]:
        """Names of the residues."""
        return [atom_label(self.molecule, first, True) for first in self.molecule.residue_starts[:-1].tolist()]

    @property
    def areas(self) -> Floats:
        """Mean areas (2, residues) in positive and negative patches, A^2."""
        mean: Floats = self.merged["areas"].moments.mean
        return mean

    @property
    def uncertainty(self) -> Uncertainty | None:
        """Their errors; None with too few frames."""
        known: Uncertainty | None = self.merged["areas"].uncertainty()
        return known

    @property
    def occupancies(self) -> Floats:
        """Fractions of frames (2, residues) in which residues are in positive and in negative patches."""
        mean: Floats = self.merged["occupied"].mean
        return mean

    @property
    def row(self) -> Mapping[str, Any]:
        """The figures that a ``batch`` has of it."""
        return {name: value for name, value in super().row.items() if value is not None}

    def table(self) -> TableColumns:
        """Return a row for each residue with a surface, also with the areas of other structures."""
        exposed, known = self.merged["exposed"].mean, self.uncertainty
        shown = np.flatnonzero(exposed > 0)
        columns: dict[str, Any] = {"name": [self.names[n] for n in shown.tolist()], "exposed": exposed[shown].tolist()}
        nothing = [None] * len(shown)
        for n, sign in enumerate(_SIGNS):
            columns |= {
                f"{sign}_area": self.areas[n, shown].tolist(),
                f"{sign}_error": nothing if known is None else without_nan(known.error[n, shown]),
                f"{sign}_interval": nothing if known is None else without_nan(known.interval[n, shown]),
                f"{sign}_occupancy": self.occupancies[n, shown].tolist()}
        for name, other in self.joined.items():
            columns |= other.columns(name, shown)
        return columns

    def _totals(self) -> dict[str, Any]:
        """Return the figures of the whole surface, with their errors."""
        totals = self.merged["totals"]
        known, data = totals.uncertainty(), dict[str, Any]()
        for n, sign in enumerate(_SIGNS):
            for k, name in enumerate(TOTALS):
                data[f"{sign}_{name}"] = float(totals.moments.mean[n, k])
                data[f"{sign}_{name}_error"] = None if known is None else without_nan(known.error)[n][k]
                data[f"{sign}_{name}_interval"] = None if known is None else without_nan(known.interval)[n][k]
        return data

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        table = {name: list(column) for name, column in self.table().items()}
        return super().entries() | self.charges.data | self._totals() | {
            "frames": self.merged.count, "threshold": self.options.threshold, "unit": "kT/e",
            "least": self.options.least, "within": self.options.within, "spacing": self.options.spacing,
            "mesh_spacing": self.options.mesh_spacing, "exposed": float(self.merged["exposed"].mean.sum()),
            "seconds": self.seconds,
            "rows": [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield areas and numbers of patches of both signs, and the residues with the largest areas in them."""
        yield str(self.charges)
        data, known, names = self._totals(), self.uncertainty, self.names
        for n, (sign, bound) in enumerate(zip(_SIGNS, (f"at least {self.options.threshold:g}",
                                                       f"at most {-self.options.threshold:g}"), strict=True)):
            error, found = data[f"{sign}_area_error"], f"{data[f'{sign}_patches']:.3g}"
            yield (f"{sign} patches, {bound} kT/e: {data[f'{sign}_area']:.1f}"
                   + ("" if error is None else f" +- {error:.1f}")
                   + f" A^2 in {found} patch{'es' * (found != '1')}, the largest {data[f'{sign}_largest']:.1f} A^2")
            largest = [row for row in np.argsort(-self.areas[n], kind="stable")[:_PRINTED].tolist()
                       if self.areas[n, row] > 0]
            if largest:
                yield "residues: " + ", ".join(
                    f"{names[row]} {self.areas[n, row]:.1f}"
                    + ("" if known is None or np.isnan(known.error[n, row]) else f" +- {known.error[n, row]:.1f}")
                    + " A^2" + f" (occupancy {self.occupancies[n, row]:.2f})" * (self.merged.count > 1)
                    for row in largest)
        for name, other in self.joined.items():
            change = np.where(other.rows >= 0, other.areas[:, other.rows] - self.areas, 0.0)
            largest = [divmod(k, change.shape[1]) for k in np.argsort(-abs(change), axis=None)[:_PRINTED].tolist()]
            words = [f"{names[row]} {change[n, row]:+.1f} A^2 {_SIGNS[n]}" for n, row in largest if change[n, row]]
            yield (f"{name}: {int((other.rows >= 0).sum())} residues correspond; patches differ most at "
                   + (", ".join(words) or "no residue"))
        count = self.merged.count
        if count > 1:
            why = self.merged["totals"].too_short() if self.merged["totals"].uncertainty() is None else ""
            yield why or "+- is the standard error of the mean over frames"
        yield f"{count} frame{'s' * (count != 1)} in {self.seconds:.2f} s"

    def plot(self, ax: Axes) -> Axes:
        """Draw the mean areas of the residues with the largest ones, negative ones to the left."""
        from vmdpotential.figures.colours import sign_colour

        from ..pairs.figures import without_chain

        rows = np.argsort(-self.areas.max(0), kind="stable")[:_DRAWN]
        rows = rows[self.areas[:, rows].max(0) > 0]
        y, known, names = np.arange(len(rows)), self.uncertainty, without_chain(self.names)
        for n, sign in enumerate((1, -1)):
            spread = None if known is None else np.nan_to_num(known.interval[n, rows])
            ax.barh(y, sign * self.areas[n, rows], 0.7, color=sign_colour(sign), xerr=spread,
                    error_kw={"elinewidth": 0.6}, label=f"{_SIGNS[n]} patches")
        ax.axvline(0, color="#808080", linewidth=0.4)
        ax.set_yticks(y, [names[row] for row in rows.tolist()])
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.set_xlabel("Area in patches (Å²)")
        ax.xaxis.set_major_formatter(lambda area, _: f"{abs(area):g}")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
        return ax

    def draw(self) -> Figure:
        """Return the figure of the residues."""
        from ..pairs.figures import residues

        return residues(self.plot, min(_DRAWN, len(self.names)))


command = Command.of(patches, examples=(
    "patches entry.pdb --threshold 2 -o residues-in-patches.csv --figure residues-in-patches.png",
    "patches system.prmtop trajectory.xtc --atoms protein -o residues-in-patches.csv",
), python="""\
>>> structure = vp.prepare("data/1hvr.pdb.gz").structure
>>> found = vp.patches(structure, atoms="//A/1-20", spacing=2.0, mesh_spacing=1.0)
>>> found.to_dataframe().columns[0]
'name'""")
