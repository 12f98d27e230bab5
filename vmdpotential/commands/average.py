"""The command ``average``."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from vmdpotential import progress
from vmdpotential.commands.gridded import GridResult, cell_lines, lattice_like, stated_error, sum_entries
from vmdpotential.commands.map import MapOutput
from vmdpotential.commands.means import MeanFiles
from vmdpotential.commands.options import (
    Fit,
    FramesFile,
    FramesOption,
    LengthUnit,
    LikeGrid,
    Source,
    TrajectoryOptions,
)
from vmdpotential.errors import UsageError, count_of
from vmdpotential.execution.blocks import BlockResults
from vmdpotential.frames.average import Average, AveragePlan, plan_average
from vmdpotential.frames.options import Execution
from vmdpotential.frames.whole import reference_group
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.maps import MapOptions
from vmdpotential.maps.interaction import in_medium, medium_of_sum
from vmdpotential.maps.medium import MEDIUM_HELP, MEDIUM_KINDS, Medium
from vmdpotential.maps.solute import MovedAtoms, as_computed
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.selection import Selection
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, check_output, warn_unused

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MeanOutput(MapOutput):
    """Files of maps over frames: the mean and other requested statistics."""

    output: Annotated[Path | None, Option(
        "map to write: .dx, .dx.gz, .mrc, .map, .ccp4, .cube, .npz or .zarr; - is standard output. A map larger "
        "than memory is written in slabs (.zarr, .mrc, .map or .ccp4)", short="o",
        viewer=False, written=True, suffix=".npz")] = None


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """How frames are fitted onto the structure."""

    fit: Fit = "auto"
    motion: Annotated[str, Option(
        "motion that fits the atoms: auto rotates in an open boundary and only translates in a periodic cell",
        choices=("auto", "translation", "rotation"), heading="trajectory")] = "auto"

    def alignment(self, structure: Structure) -> dict[str, Any]:
        """Return the parameters of :meth:`vmdpotential.frames.whole.FrameAlignment.of`.

        Raises
        ------
        UsageError
            For a rotation without atoms to fit.
        """
        group, name = reference_group(structure, self.fit)
        if self.motion == "rotation" and group is None:
            raise UsageError("motion", "rotation needs atoms to fit", "give {fit}", value=self.motion)
        if group is None:
            warn_unused(("motion",), "there are no atoms to fit; {fit} selects some")
        return {"group": group, "name": name, "rotate": None if self.motion == "auto" else self.motion == "rotation"}


@dataclass(frozen=True, kw_only=True)
class AverageOptions(MapOptions):
    """Options of the map of each frame, by default with all charges of the simulation."""

    medium: Annotated[str | Medium | None, Option(
        f"{MEDIUM_HELP}explicit", choices=MEDIUM_KINDS, front=True, role="medium")] = None

    default_medium = "explicit"


def average(
    source: Source,
    trajectory: FramesFile,
    frames: FramesOption = None,
    length_unit: LengthUnit = None,
    stat: Annotated[str, Option(
        "statistics to write: mean, std (standard deviation over the n frames, with divisor n) and sem (standard error "
        "of the mean, from blocks); the mean is always written, std and sem to files named OUTPUT_std and OUTPUT_sem",
        metavar="mean,std,sem", front=True)] = "mean",
    fit: FitOptions = FitOptions(),
    options: AverageOptions = AverageOptions(),
    like: LikeGrid = None,
    execution: Execution = Execution(),
    output: MeanOutput = MeanOutput(),
) -> Mean:
    """Average the potential over the frames of a trajectory.

    Molecules are made whole, and each frame is fitted onto the structure: by translation in a periodic cell, and with
    rotation in an open boundary. Grid and accuracy are determined in the first frame, where the stated error is
    measured. If the lengths of the cell change, grid points keep their fractional coordinates, and the map is written
    in the mean cell; frames whose cell angles differ are refused. The standard error is estimated from blocks of
    frames.

    Raises
    ------
    InputError
        For a structure without charges, atoms or cell, or a trajectory of other atoms.
    MemoryPlanError
        When the sums do not fit into memory.
    TaskError
        When the tolerance cannot be reached.
    """
    from vmdpotential.io.maps import MapWriters, open_map

    check_output(output.output, source.structure, "mean", "mean.dx")
    files = MeanFiles.of(output.output, stat, output.format, output.force)
    read: list[Structure] = []

    def needed(shown: Structure) -> list[Selection]:
        read.append(shown)
        return [in_medium(options, shown).chosen]

    structure, charge_report, all_frames = source.with_frames_of(
        TrajectoryOptions(trajectory=trajectory, frames=frames, length_unit=length_unit), needed, single=True)
    alignment = fit.alignment(structure)
    lattice = lattice_like(like)
    assert all_frames is not None
    with progress.clock() as clock:
        planning = plan_average(structure, all_frames, options, alignment, statistics=files.statistics,
                                fixed_cell=source.cell is not None, lattice=lattice,
                                in_slabs=bool(files.maps) and MapWriters.can_take(
                                    [name for _, name in files.maps.values()]))
        if planning.planes:
            if execution.partial:
                raise UsageError("partial", "a map that does not fit into memory is computed in slabs, each over all "
                                 "frames, so that there is no mean over some frames",
                                 "use {resume}, or a larger {spacing}")
            averaged, runs = _in_slabs(planning, execution, files)
        else:
            runs = [planning.run(execution.with_block_folder(output.output))]
            averaged = planning.merge(runs[0], execution.partial)
    if planning.planes:
        written = files.written(averaged.grids, averaged.no_error)
        averaged = replace(averaged, grids={
            word: open_map(path, 0) for word, path in zip(averaged.grids, written, strict=True)})
    else:
        written = files.write(averaged.grids, averaged.no_error)
    total, numbers = len(planning.numbers), planning.numbers[: averaged.frames]
    if averaged.frames == total:
        for run in runs:
            run.clear()
    settled = planning.map.options
    structure, moved = as_computed(read[0], structure, settled.chosen, medium_of_sum(settled))
    result = Mean(
        charges=charge_report, grid=averaged.grids["mean"], std=averaged.grids.get("std"),
        sem=averaged.grids.get("sem"), structure=structure, moved=moved, average=averaged,
        planning=planning, options=settled, first_frame=numbers[0],
        last_frame=numbers[-1], frame_step=numbers.step, cell=None if averaged.cell is None else Cell(averaged.cell),
        seconds=clock.seconds, files=written)
    return execution.complete(result, averaged.frames, total)


def _in_slabs(planning: AveragePlan, execution: Execution, files: MeanFiles) -> tuple[Average, list[BlockResults]]:
    """Compute an average that is written slab by slab, and return it with the runs of its slabs."""
    from vmdpotential.frames.slabs import average_in_slabs
    from vmdpotential.io.maps import MapWriters

    path, runs = files.maps["mean"][0], []

    def compute(number: int, part: AveragePlan) -> BlockResults:
        runs.append(part.run(execution.with_block_folder(path.with_name(f"{path.name}.{number}"))))
        return runs[-1]

    with contextlib.ExitStack() as stack:
        writers = {word: stack.enter_context(MapWriters([path], [0], files.force, [name]))
                   for word, (path, name) in files.maps.items()}
        result = average_in_slabs(planning, compute, writers, path.parent)
        for word, grid in result.grids.items():
            writers[word].finish(grid)
    return result, runs


class Mean(GridResult):
    """Mean map over frames."""

    charges: ChargeReport
    std: Grid | None
    sem: Grid | None
    average: Average
    options: MapOptions
    moved: MovedAtoms | None
    planning: AveragePlan
    first_frame: int
    last_frame: int
    frame_step: int
    cell: Cell | None


    @property
    def mapped_atoms(self) -> Selection:
        """Selection of the atoms whose charges the map has."""
        return self.planning.map.options.chosen

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            **self.charges.data, **sum_entries(self.grid), "temperature": self.grid.temperature,
            "frames": self.average.frames, "inefficiency": self.average.inefficiency,
            "correlation_time": self.average.correlation_time, "interval": self.average.interval,
            "zero": self.average.zero, "cell_deviation": self.average.cell_deviation, "time_step": self.average.step,
            "standard_error": self.average.error, "standard_deviation": self.average.deviation,
            "cell_vectors": self.average.cell, "smear": self.options.smear,
            **({} if self.moved is None else self.moved.data), "net_charge": self.planning.charge,
            "first_frame": self.first_frame, "last_frame": self.last_frame, "frame_step": self.frame_step,
            "cell": None if self.cell is None else self.cell.parameters, "blocks": len(self.average.blocks),
            "block_frames": self.average.blocks[0], "alignment": str(self.planning.work.alignment),
            "background": -self.planning.charge if self.planning.map.request.neutralised else 0.0}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"std": self.std, "sem": self.sem, "moved": self.moved}

    def text(self) -> Iterator[str]:
        """Yield how the mean was computed, its errors and its range."""
        yield str(self.charges)
        planning, average, grid, unit = self.planning, self.average, self.grid, self.grid.unit
        plan, provenance = planning.map, grid.provenance
        yield (f"medium {plan.options.word}: charges of {provenance.atoms}: {count_of(len(plan.charges), 'atom')}, "
               f"net charge {planning.charge:.3f} e")
        yield str(planning.work.alignment)
        yield (f"method {provenance.method}, {boundary_text(self.cell)}, {provenance.interaction}, "
               f"{provenance.precision} precision")
        yield from cell_lines(average.cell_deviation)
        yield self.points
        yield from stated_error(grid, " of the first frame")
        yield (f"mean at all grid points, also inside atoms: {self.minimum:.4g} to {self.maximum:.4g} "
               f"{unit} at {grid.temperature:g} K, {provenance.medium}; zero: {average.zero}")
        if plan.request.neutralised and abs(planning.charge) > 5e-4:
            yield f"a uniform background of {-planning.charge:.3f} e neutralises the cell"
        blocks = f"{count_of(len(average.blocks), 'block')} of {count_of(average.blocks[0], 'frame')}"
        yield (average.no_error or f"standard error of the mean {average.error:.3g} {unit} rms, 95 % interval "
               f"+- {average.interval:.3g} {unit}, by {blocks}")
        if average.deviation is not None:
            yield f"standard deviation {average.deviation:.3g} {unit} rms"
        if average.inefficiency is not None and average.correlation_time is not None:
            time_ps = "" if average.step is None else f" ({average.correlation_time * average.step:.3g} ps)"
            yield (f"statistical inefficiency {average.inefficiency:.1f}, correlation time "
                   f"{average.correlation_time:.1f} frames{time_ps}, at {len(planning.work.sample)} random points")
        number, _, range_text = provenance.frames.partition(": ")
        yield (f"{count_of(number, 'frame')} ({range_text}) in {self.seconds:.2f} s, "
               f"{average.frames / self.seconds:.3g} per second, on the {provenance.engine} engine")


command = Command.of(average, draws="surface", examples=(
    "average system.prmtop trajectory.xtc --atoms solute --spacing 1 -o mean.dx",
    "average system.prmtop trajectory.xtc --frames 0:3:2 --spacing 2 --stat mean,std --workers 2 -o every_second.npz",
), python="""\
>>> import MDAnalysis
>>> from MDAnalysisTests.datafiles import PRM_NCBOX, TRJ_NCBOX  # a prmtop, and frames in NetCDF
>>> universe = MDAnalysis.Universe(PRM_NCBOX, TRJ_NCBOX)
>>> mean = vp.average(universe, universe.trajectory[:3], spacing=3.0)
>>> mean.grid.provenance.frames
'3: 0 to 2'""")
