"""Map of the free energy of a small molecule over frames, for the command ``probe``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vmdpotential import progress
from vmdpotential.commands.gridded import GridResult
from vmdpotential.commands.means import MeanFiles
from vmdpotential.errors import UsageError, count_of
from vmdpotential.figures.colours import isosurface_levels
from vmdpotential.frames.options import Execution
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.io.trajectories.frames import Frames, LoadedFrames
from vmdpotential.molecule.nonbonded import Nonbonded
from vmdpotential.molecule.selection import select
from vmdpotential.parameters import ReportRows
from vmdpotential.results import TableColumns

from .energies import probe_sum
from .insertions import HIGHEST, FreeEnergy, InsertionPlan, plan_insertions
from .ligands import Ligand, ligand_of
from .options import InsertionOptions, ProbeRun
from .paths import Minimum, minima_and_barriers


def map_ligand(run: ProbeRun, insertion: InsertionOptions, frames: Frames | None, terms: Nonbonded,
               execution: Execution) -> FreeEnergyMap:
    """Compute the free energy of a molecule over frames."""
    output, table = run.outputs.output, run.outputs.paths
    files = MeanFiles.of(output, insertion.stat, force=run.outputs.force, table=table)
    if "std" in files.requested:
        raise UsageError("stat", "a free energy over frames has no standard deviation", "give mean,sem",
                         value=insertion.stat)
    structure, molecule = run.structure, ligand_of(run.options.ligand)
    chosen_terms, rows = terms, np.flatnonzero(select(structure, run.options.atoms))
    if len(rows) < len(structure):
        chosen_terms = terms.take(rows)
    chosen = (probe_sum(chosen_terms, sigma, epsilon, run.options.cutoff)
              for sigma, epsilon in zip(molecule.sigma.tolist(), molecule.epsilon.tolist(), strict=True))
    sums = tuple(replace(each, groups=tuple(rows[group] for group in each.groups)) for each in chosen)
    source = frames or LoadedFrames(structure.where, [(structure.positions, structure.cell)])
    lattice = run.lattice
    if lattice is None and run.options.around:
        lattice = run.lattice_around(structure.positions[select(structure, run.options.around, "around")])
    with progress.clock() as clock:
        planning = plan_insertions(structure, source, molecule, sums, insertion, lattice=lattice, spacing=run.spacing,
                                   padding=run.options.padding, engine=run.engine, fixed_cell=run.fixed_cell)
        execution = execution.with_block_folder(output)
        free_energy = planning.merge(planning.run(execution), execution.partial)
    minima = None if table is None else minima_and_barriers(
        free_energy.grids["mean"], below=HIGHEST / 2, least=0.3,
        wraps=free_energy.grids["mean"].lattice.wraps(free_energy.cell))
    written = files.write(free_energy.grids, free_energy.no_error, None if minima is None else _table(minima))
    result = FreeEnergyMap(
        molecule=molecule, source=terms.source, grid=free_energy.grids["mean"], sem=free_energy.grids.get("sem"),
        free_energy=free_energy, planning=planning, structure=structure, places=planning.work.parts**3, least=minima,
        seconds=clock.seconds, files=written)
    return execution.complete(result, free_energy.frames, len(planning.numbers))


class FreeEnergyMap(GridResult):
    """Free energy of a small molecule over frames."""

    sem: Grid | None
    molecule: Ligand
    source: str
    free_energy: FreeEnergy
    planning: InsertionPlan
    places: int
    least: Sequence[Minimum] | None

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "boundary": self.grid.provenance.boundary, "ligand": self.molecule.name, "frames": self.free_energy.frames,
            "solvation": self.free_energy.solvation, "solvation_error": self.free_energy.solvation_error,
            "standard_error": self.free_energy.error, "temperature": self.planning.temperature,
            "engine": self.planning.work.engine, "places": self.places, "blocks": len(self.free_energy.blocks),
            "orientations": len(self.planning.work.orientations), "cutoff": self.planning.work.atoms[0].cutoff,
            "levels": list(isosurface_levels(self.grid)),
            "minima": None if self.least is None else [_row(item) for item in self.least]}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"sem": self.sem}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield how the molecule was inserted, the free energies and their errors."""
        grid, work, free_energy = self.grid, self.planning.work, self.free_energy
        error = "" if free_energy.solvation_error is None else f" +- {free_energy.solvation_error:.3f}"
        yield f"{self.molecule.name}: {count_of(len(self.molecule.sigma), 'atom')}, {self.molecule.source}"
        yield f"Lennard-Jones parameters: {self.source}"
        yield "frames are not moved" if work.alignment is None else str(work.alignment)
        yield (f"{len(work.orientations)} orientations, {self.places} insertion points for a grid point, "
               f"{boundary_text(free_energy.cell)}, cutoff {work.atoms[0].cutoff:g} A")
        yield self.points
        yield (f"free energy {self.minimum:.3f} to {self.maximum:.3f} {grid.unit} at {self.planning.temperature:g} K; "
               f"zero: the molecule in vacuum; higher values are written as {HIGHEST:g}")
        yield f"excess free energy of the whole map: {free_energy.solvation:.3f}{error} kcal/mol"
        yield free_energy.no_error or (
            f"standard error {free_energy.error:.3g} kcal/mol (median), by "
            f"{count_of(len(free_energy.blocks), 'block')} of {count_of(free_energy.blocks[0], 'frame')}")
        yield f"{count_of(free_energy.frames, 'frame')} in {self.seconds:.2f} s on the {work.engine} engine"
        if self.least is not None:
            yield from _minimum_lines(self.least)


def _row(minimum: Minimum) -> dict[str, Any]:
    return {"position": minimum.position.tolist(), "energy": minimum.energy, "barrier": minimum.barrier,
            "lower": None if minimum.lower is None else minimum.lower + 1,
            "saddle": None if minimum.saddle is None else minimum.saddle.tolist()}


def _table(minima: Sequence[Minimum]) -> TableColumns:
    """Return the columns of the table of minima."""
    def axes(what: str, places: Sequence[Any]) -> dict[str, list[float | None]]:
        return {f"{what}{x} (A)": [None if place is None else place[n] for place in places]
                for n, x in enumerate("xyz")}

    return {"minimum": range(1, len(minima) + 1), **axes("", [minimum.position for minimum in minima]),
            "free energy (kcal/mol)": [minimum.energy for minimum in minima],
            "barrier (kcal/mol)": [minimum.barrier for minimum in minima],
            "to minimum": [None if minimum.lower is None else minimum.lower + 1 for minimum in minima],
            **axes("barrier ", [minimum.saddle for minimum in minima])}


def _minimum_lines(minima: Sequence[Minimum]) -> Iterator[str | ReportRows]:
    def line(n: int) -> str:
        each = minima[n]
        return (f"  {n + 1}: {' '.join(f'{x:.1f}' for x in each.position)} A, {each.energy:.2f} kcal/mol"
                + ("" if each.barrier is None or each.lower is None else
                   f"; over a barrier of {each.barrier:.2f} kcal/mol to minimum {each.lower + 1}"))

    yield f"{len(minima)} minima"
    yield ReportRows(line, range(len(minima)))
