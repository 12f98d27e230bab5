"""The map of the free energy of a small molecule over frames, for the command ``probe``."""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential import progress
from vmdpotential.commands.average import statistic_files
from vmdpotential.commands.options import TrajectoryOptions
from vmdpotential.commands.probe_options import Run
from vmdpotential.errors import StoppedError, UsageError
from vmdpotential.execution.blocks import run_blocks
from vmdpotential.frames.ligand import HIGHEST, FreeEnergy, Planning, merge, plan_insertions
from vmdpotential.frames.options import PartialExecution
from vmdpotential.frames.statistics import TOO_SHORT
from vmdpotential.frames.whole import reference_group
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.io.trajectories.frames import Loaded
from vmdpotential.molecule.nonbonded import Nonbonded
from vmdpotential.molecule.selection import select
from vmdpotential.parameters import Report
from vmdpotential.probes.energies import ProbeSum, probe_sum
from vmdpotential.probes.ligands import ligand_of
from vmdpotential.probes.paths import Minimum, minima_and_barriers


@dataclass(frozen=True, eq=False)
class Over:
    """Frames, and what is computed over them."""

    trajectory: TrajectoryOptions
    fit: str
    stat: str
    table: Path | None
    options: Mapping[str, Any]
    execution: PartialExecution


def map_ligand(run: Run, over: Over, name: str, terms: Nonbonded) -> Report:
    """Compute the free energy of a molecule over frames."""
    from vmdpotential.io.maps import check_map_format, put_map

    wanted, maps = statistic_files(run.output, over.stat)
    if "std" in wanted:
        raise UsageError("stat", "a free energy over frames has no standard deviation", "give mean,sem",
                         value=over.stat)
    for path in maps:
        check_map_format(path)
    tables = [] if over.table is None else [over.table]
    files.check([*tables, *maps], run.force)
    structure, molecule = run.structure, ligand_of(name)
    felt, rows = terms, np.flatnonzero(select(structure, run.options.atoms))
    if len(rows) < len(structure):
        felt = terms.take(rows)
    sums = tuple(_among(probe_sum(felt, sigma, epsilon, run.options.cutoff), rows)
                 for sigma, epsilon in zip(molecule.sigma.tolist(), molecule.epsilon.tolist(), strict=True))
    group, called = reference_group(structure, over.fit)
    source = over.trajectory.opened(structure) or Loaded(
        structure.where, [(structure.positions, structure.cell)])
    lattice = run.lattice
    if lattice is None and run.options.around:
        near = select(structure, run.options.around, "around")
        lattice = Lattice.around(structure.positions[near], run.spacing, run.options.padding)
    start = time.perf_counter()
    with progress.clock() as clock:
        planning = plan_insertions(structure, source, molecule, sums, alignment={"group": group, "name": called},
                                   lattice=lattice, spacing=run.spacing, padding=None, options=over.options)
        blocks = run_blocks(planning.work, planning.numbers, size=planning.size,
                            **replace(over.execution, folder=over.execution.beside(run.output)).blocks)
        found = merge(planning, blocks, over.execution.partial)
    seconds = time.perf_counter() - start - clock.compiling
    minima = None if over.table is None else minima_and_barriers(
        found.grids["mean"], below=HIGHEST / 2, least=0.3, wraps=_wraps(found))
    maps = [path for path, word in zip(maps, wanted, strict=False) if word in found.grids]
    made = [found.grids[word] for word in wanted if word in found.grids]
    with files.writing([*tables, *maps], run.force) as temporary:
        if minima is not None:
            _write_minima(minima, temporary[0])
        for place, grid in zip(temporary[len(tables):], made, strict=False):
            put_map(grid, place)
    whole = found.frames == len(planning.numbers)
    if whole:
        blocks.clear()
    written = [*maps, *tables]
    report = Report(
        [f"{molecule.name}: {len(molecule.sigma)} atoms, {molecule.source}",
         f"Lennard-Jones parameters: {terms.source}", *_lines(planning, found, seconds),
         *([] if minima is None else _minimum_lines(minima)),
         *(f"wrote {path}" for path in written)],
        {**_data(planning, found), "seconds": seconds, "files": [str(path) for path in written],
         "minima": None if minima is None else [_row(one) for one in minima]},
        {"grid": found.grids["mean"], "structure": structure, **{k: v for k, v in found.grids.items() if k != "mean"}})
    if not whole:
        raise StoppedError(f"interrupted after {found.frames} of {len(planning.numbers)} frames", report)
    return report


def _among(one: ProbeSum, rows: Any) -> ProbeSum:
    """Return a sum over a selection's atoms as one over those of the whole structure."""
    return ProbeSum(one.rmin, tuple(rows[group] for group in one.groups), one.depths, one.cutoff)


def _wraps(found: FreeEnergy) -> bool:
    grid, cell = found.grids["mean"], found.cell
    return cell is not None and cell.orthogonal and bool(np.allclose(
        grid.lattice.spacing * grid.lattice.shape, np.abs(np.diagonal(cell.vectors)), rtol=1e-4))


def _lines(planning: Planning, found: FreeEnergy, seconds: float) -> list[str]:
    """Return what was done, for people."""
    grid, work = found.grids["mean"], planning.work
    error = "" if found.solvation_error is None else f" +- {found.solvation_error:.3f}"
    return [
        "frames are not moved" if work.alignment is None else str(work.alignment),
        f"{len(work.orientations)} orientations, {work.parts**3} places in the box of a grid point, "
        f"{boundary_text(found.cell)}, cutoff {work.sums[0].cutoff:g} A",
        f"{' x '.join(map(str, grid.lattice.shape))} points, "
        f"{' x '.join(f'{h:.4g}' for h in dict.fromkeys(grid.lattice.spacing.round(9)))} A apart",
        f"free energy {float(grid.values.min()):.3f} to {float(grid.values.max()):.3f} kcal/mol at "
        f"{planning.temperature:g} K; zero: the molecule in vacuum; {HIGHEST:g} stands for all that is higher",
        f"of the whole map: {found.solvation:.3f}{error} kcal/mol",
        TOO_SHORT if found.error is None else
        f"standard error {found.error:.3g} kcal/mol (median), by {len(found.blocks)} blocks of {found.blocks[0]} "
        "frames",
        f"{found.frames} frames in {seconds:.2f} s on the {work.engine} engine",
    ]


def _data(planning: Planning, found: FreeEnergy) -> dict[str, Any]:
    """Return the same for programs."""
    grid, work = found.grids["mean"], planning.work
    return {
        "ligand": planning.ligand.name, "unit": "kcal/mol", "temperature": planning.temperature, "frames": found.frames,
        "blocks": len(found.blocks), "orientations": len(work.orientations), "places": work.parts**3,
        "minimum": float(grid.values.min()), "maximum": float(grid.values.max()), "standard_error": found.error,
        "solvation": found.solvation, "solvation_error": found.solvation_error, "cutoff": work.sums[0].cutoff,
        "boundary": grid.provenance.boundary, "shape": list(grid.lattice.shape), "origin": grid.lattice.origin.tolist(),
        "spacing": grid.lattice.spacing.tolist(), "engine": work.engine,
    }


_COLUMNS = ("minimum", "x (A)", "y (A)", "z (A)", "free energy (kcal/mol)", "barrier (kcal/mol)", "to minimum",
            "barrier x (A)", "barrier y (A)", "barrier z (A)")


def _row(one: Minimum) -> dict[str, Any]:
    return {"position": one.position.tolist(), "energy": one.energy, "barrier": one.barrier,
            "lower": None if one.lower is None else one.lower + 1,
            "saddle": None if one.saddle is None else one.saddle.tolist()}


def _write_minima(minima: Sequence[Minimum], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for number, one in enumerate(minima, 1):
            way = ["", ""] if one.barrier is None or one.lower is None else [f"{one.barrier:.3f}", one.lower + 1]
            saddle = [""] * 3 if one.saddle is None else [f"{x:.3f}" for x in one.saddle]
            writer.writerow([number, *(f"{x:.3f}" for x in one.position), f"{one.energy:.3f}", *way, *saddle])


def _minimum_lines(minima: Sequence[Minimum]) -> list[str]:
    return [f"{len(minima)} minima", *(
        f"  {number}: {' '.join(f'{x:.1f}' for x in one.position)} A, {one.energy:.2f} kcal/mol"
        + ("" if one.barrier is None or one.lower is None else
           f"; over a barrier of {one.barrier:.2f} kcal/mol to minimum {one.lower + 1}")
        for number, one in enumerate(minima[:10], 1))]
