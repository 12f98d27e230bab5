"""The command ``rdf``: radial distribution functions between selections."""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np

from vmdpotential import progress
from vmdpotential.commands.between import BetweenOption, selections, stopped
from vmdpotential.commands.options import CopiedSource, TableOutput, TrajectoryOptions
from vmdpotential.errors import InputError, UsageError
from vmdpotential.execution.blocks import clear
from vmdpotential.execution.work import Arrays
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.options import PartialExecution
from vmdpotential.frames.pairs import PairCounts, over_frames
from vmdpotential.maps.options import Engine
from vmdpotential.molecule.overlaps import check_overlaps
from vmdpotential.molecule.structure import Structure
from vmdpotential.pairs.rdf import Counts, Distribution, same_residue
from vmdpotential.parameters import Command, Option, Report


def rdf(
    source: CopiedSource,
    between: BetweenOption,
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    range: Annotated[float, Option("longest distance", unit="A", above=0, high=1000, front=True)] = 15.0,
    bins: Annotated[int, Option("of the distance, all of one width", low=1, high=100_000, front=True)] = 150,
    exclude: Annotated[str, Option(
        "pairs that do not count: none, those within a residue, or those up to three bonds apart",
        choices=("none", "residue", "bonded"))] = "none",
    engine: Engine = "auto",
    execution: PartialExecution = PartialExecution(),
    output: TableOutput = TableOutput(),
) -> Report:
    """Compute radial distribution functions g(r) and running coordination numbers.

    Several pairs of selections are counted in one pass over the frames. All periodic images count, and an atom with
    itself does not.

    Raises
    ------
    UsageError
        For options that do not fit together.
    InputError
        Without a periodic cell, or for a trajectory of other atoms.
    StoppedError
        When the run was stopped, and `partial` asks for what is done.
    """
    from vmdpotential.engines import get_engine

    output.check()
    structure = source.read(trajectory.trajectory)
    if trajectory.trajectory is None:
        structure.require_whole_cell("use {expand cell}")
        if structure.cell is None:
            raise InputError(f"{structure.where}: has no periodic cell, which gives the density", "give {cell}")
        check_overlaps(structure)
    chosen = selections(structure, between)
    counts = []
    for _, _, a, b in chosen:
        left_out = None
        if exclude == "residue":
            left_out = same_residue(structure.residue_index, a | b)
        elif exclude == "bonded":
            left_out = _bonded(structure)
        counts.append(Counts(a, b, range, bins, left_out, engine))
    start, kept = time.perf_counter(), execution.beside(output.output)

    def add(found: Arrays) -> None:
        for one, more in zip(counts, found["counts"], strict=True):
            one.merge(more, found["volumes"])

    with progress.clock() as clock:
        frames = CellFrames.of(structure, trajectory.opened(structure), "periodic", source.cell)
        work = PairCounts(frames, tuple(counts))
        whole = over_frames(work, add, execution.partial, **replace(execution, folder=kept).blocks)
    seconds = time.perf_counter() - start - clock.compiling
    found = [one.result() for one in counts]
    names = [f"{a} - {b}" for a, b, _, _ in chosen]
    drawn = None
    if output.draws:
        from vmdpotential.figures.pairs import distributions

        drawn = distributions(found, names)
    output.write(lambda path: _write(found, names, path), drawn, ", ".join(names))
    if whole:
        clear(kept)
    lines = []
    for name, curve in zip(names, found, strict=True):
        top = int(curve.g.argmax())
        lines.append(f"{name}: highest g(r) {curve.g[top]:.3f} at {curve.r[top]:.3f} A; {curve.count[-1]:.2f} atoms "
                     f"within {range:g} A")
    count = found[0].frames
    lines += [f"{count} frame{'s' * (count != 1)} in {seconds:.2f} s on the {get_engine(engine).name} engine",
              *(f"wrote {path}" for path in output.paths)]
    data = {
        "r": found[0].r.tolist(), "g": [one.g.tolist() for one in found],
        "count": [one.count.tolist() for one in found],
        "between": [[a, b] for a, b, _, _ in chosen], "range": range, "bins": bins, "exclude": exclude,
        "frames": count, "engine": get_engine(engine).name, "seconds": seconds,
        "files": [str(path) for path in output.paths],
    }
    made = Report(lines, data, {"structure": structure, **({} if drawn is None else {"figure": drawn})})
    if not whole:
        raise stopped(work, count, made)
    return made


def _write(curves: Sequence[Distribution], names: Sequence[str], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["r", *(f"{kind} {name}" for name in names for kind in ("g", "count"))])
        table = np.column_stack([curves[0].r, *(part for one in curves for part in (one.g, one.count))])
        writer.writerows([f"{x:.8g}" for x in row] for row in table)


def _bonded(structure: Structure) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    from vmdpotential.molecule.nonbonded import pairs_by_bonds

    topology = structure.topology
    if topology is None or not len(topology.bonds):
        raise UsageError("exclude", "needs bonds", "give a {topology} that has them, or use {exclude residue}",
                         value="bonded")
    return pairs_by_bonds(topology.bonds, len(structure))[0]


command = Command.of(rdf)
