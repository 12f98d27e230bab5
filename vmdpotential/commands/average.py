"""The command ``average``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from vmdpotential import progress
from vmdpotential.commands import map as map_
from vmdpotential.commands.between import FramesOption
from vmdpotential.commands.options import Partial, Resume, Scheduler, Workers, charged, read
from vmdpotential.errors import StoppedError, UsageError
from vmdpotential.frames.average import STATISTICS, Average, Planning, merge, plan_average
from vmdpotential.frames.blocks import folder_of, run_blocks
from vmdpotential.frames.statistics import TOO_SHORT
from vmdpotential.frames.whole import reference_group
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.io.trajectories.frames import Frames, opened
from vmdpotential.maps import Wanted
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Report


def statistic_files(output: Path | None, text: str) -> tuple[tuple[str, ...], list[Path]]:
    """Return which statistics are to be written, the mean first, and their files, where there is one for the mean."""
    from vmdpotential.io.maps import map_name

    names = [word.strip() for word in text.split(",")]
    if not set(names) <= set(STATISTICS):
        raise UsageError("stat", "give some of mean, std (standard deviation) and sem (standard error of the mean), "
                         "such as mean,sem", value=text)
    wanted = tuple(dict.fromkeys(["mean", *names]))
    if output is None:
        return wanted, []
    name = map_name(output)
    others = [output.with_name(f"{name}_{word}{output.name[len(name):]}") for word in wanted[1:]]
    if others and files.is_standard(output):
        raise UsageError("stat", "a stream holds the mean alone", "name a file as {output}", value=text)
    return wanted, [output, *others]


def average(
    structure: Path | Structure,
    trajectory: Annotated[Path | Frames, Option(
        "frames of these atoms: XTC, TRR, DCD, NetCDF, H5MD, PDB of several models ...", positional=True,
        viewer=False)],
    topology: Path | None = None, force_field: str = "auto", water: str = "auto", cell: Cell | None = None,
    charges: Sequence[Path] = (), index: Path | None = None,
    frames: FramesOption = None,
    stat: Annotated[str, Option(
        "what is written: mean, and in further files std (standard deviation over the n frames, divisor n) and "
        "sem (standard error of the mean)", metavar="mean,std,sem", front=True)] = "mean",
    fit: Annotated[str, Option(
        "atoms that are moved onto their place in the structure: auto (protein and nucleic acids, else lipids), none, "
        "or a selection", metavar="auto|none|SEL", selection=True, words=("auto", "none"))] = "auto",
    motion: Annotated[str, Option(
        "how they are moved; auto rotates in an open boundary, a periodic cell is translated only",
        choices=("auto", "translation", "rotation"))] = "auto",
    method: str = "auto", algorithm: str = "pair", interaction: str = "auto", set: Mapping[str, float] | None = None,
    cutoff: float | None = None, smear: float = 0.0, screened: float | None = None, radii: str = "auto",
    sources: str = "",
    like: Annotated[Path | Grid | None, Option("map whose lattice is used")] = None,
    output: Path | None = None, format: str = "", force: bool = False,
    resume: Resume = False,
    partial: Partial = False,
    workers: Workers = 0,
    scheduler: Scheduler = "",
    **options: Any,
) -> Report:
    """Average the potential over the frames of a trajectory.

    Molecules are made whole, and the atoms to fit moved onto their place in the structure: in a periodic cell by
    translation alone, in an open boundary with rotation. One plan is made, on the first frame, where the error that is
    stated was measured, and run for all. Where the lengths of the cell change, nodes stay at the same fractions of it,
    and the map is drawn in the mean cell; a frame in which it shears is refused. The standard error comes from blocks
    of frames.

    Raises
    ------
    UsageError
        For options that do not fit together.
    InputError
        For a structure without charges, atoms or cell, or a trajectory of other atoms.
    MemoryPlanError
        When the sums do not fit into memory.
    TaskError
        When the tolerance cannot be kept.
    StoppedError
        When the run was stopped, and `partial` asks for what is done.
    """
    from vmdpotential.io.maps import check_map_format, is_map, put_map, read_map
    from vmdpotential.io.maps.mapformat import check_finite

    if output is None and isinstance(structure, Path):
        raise UsageError("output", "a file is needed for the mean", "such as {output mean.dx}")
    wanted, paths = statistic_files(output, stat)
    names = files.named(paths, format, is_map)
    for path in names:
        check_map_format(path)
    files.check(paths, force)
    structure, charge_report = charged(read(structure, topology, cell, index, trajectory), force_field, water, charges,
                                       [options.get("atoms", "all")])
    group, called = reference_group(structure, fit)
    if motion == "rotation" and group is None:
        raise UsageError("motion", "there is nothing to rotate onto its place", "give {fit}", value=motion)
    lattice = like.lattice if isinstance(like, Grid) else None if like is None else read_map(like).lattice
    summed = Wanted(method, algorithm, interaction, set or {}, cutoff, smear, screened, radii, sources or None)
    source = opened(trajectory, len(structure), frames, single=True)
    assert source is not None
    start = time.perf_counter()
    with progress.clock() as clock:
        planning = plan_average(
            structure, source, summed,
            {"group": group, "name": called, "rotate": None if motion == "auto" else motion == "rotation"},
            statistics=wanted, fixed_cell=cell is not None, lattice=lattice, **{**_defaults(), **options})
        run = run_blocks(planning.work, planning.numbers, size=planning.size, piece=planning.piece,
                         folder=folder_of(output, resume), resume=resume, workers=workers, scheduler=scheduler)
        found = merge(planning, run, partial)
    seconds = time.perf_counter() - start - clock.compiling
    for path, grid in zip(names, found.grids.values(), strict=False):
        check_map_format(path, grid.lattice)
        check_finite(path, grid.lattice, grid.values)
    written = [path for path, word in zip(paths, wanted, strict=False) if word in found.grids]
    with files.writing(written, force, names[: len(written)]) as places:
        for place, grid in zip(places, found.grids.values(), strict=False):
            put_map(grid, place)
    whole = found.frames == len(planning.numbers)
    if whole:
        run.clear()
    grid = found.grids["mean"]
    report = Report(
        [str(charge_report), *_lines(planning, found, smear, seconds), *(f"wrote {path}" for path in written)],
        {"files": [str(path) for path in written], **charge_report.data, **_data(planning, found, smear),
         "seconds": seconds},
        {"grid": grid, "structure": structure, **{name: made for name, made in found.grids.items() if name != "mean"}})
    if not whole:
        raise StoppedError(f"interrupted after {found.frames} of {len(planning.numbers)} frames", report)
    return report


def _lines(planning: Planning, found: Average, smear: float, seconds: float) -> list[str]:
    """Return what was done, for people."""
    grid, plan, count = found.grids["mean"], planning.map, found.frames
    made, unit = grid.provenance, grid.unit
    periodic = None if found.cell is None else Cell(found.cell)
    lines = []
    if made.atoms != "all":
        lines.append(f"potential of {made.atoms}: {len(plan.charges)} atoms, net charge {planning.charge:.3f} e")
    lines += [
        str(planning.work.alignment),
        f"{made.method} sum, {boundary_text(periodic)}, {made.interaction}, {made.precision} precision",
    ]
    deviations = np.zeros(3) if found.cell_deviation is None else np.linalg.norm(found.cell_deviation, axis=1)
    if deviations.max() > 1e-3:
        lines.append("the cell is the mean of the frames', which deviate by "
                     f"{', '.join(f'{x:.3g}' for x in deviations)} A along a, b and c")
    points = f"{' x '.join(map(str, grid.lattice.shape))} points"
    lines.append(f"{points}, {' x '.join(f'{h:.4g}' for h in dict.fromkeys(grid.lattice.spacing.round(9)))} A apart")
    if made.error is not None and made.error_away is not None:
        lines.append(f"relative rms error {made.error:.1e} of the potential, {made.error_away:.1e} of it away from "
                     f"charges, on the first frame (asked {made.tolerance:g})")
    low, high = float(grid.values.min()), float(grid.values.max())
    lines.append(f"mean {low:.4g} to {high:.4g} {unit} at {grid.temperature:g} K, {made.medium}; "
                 f"zero: {found.zero}")
    if plan.request.neutralised and abs(planning.charge) > 5e-4:
        lines.append(f"a uniform background of {-planning.charge:.3f} e neutralises the cell")
    blocks = f"{len(found.blocks)} blocks of {found.blocks[0]} frames"
    if found.error is None:
        lines.append(TOO_SHORT)
    else:
        lines.append(f"standard error of the mean {found.error:.3g} {unit} rms, 95 % interval +- {found.interval:.3g} "
                     f"{unit}, by {blocks}")
    if found.deviation is not None:
        lines.append(f"standard deviation {found.deviation:.3g} {unit} rms")
    if found.inefficiency is not None and found.correlation_time is not None:
        time_ps = "" if found.step is None else f" ({found.correlation_time * found.step:.3g} ps)"
        lines.append(f"statistical inefficiency {found.inefficiency:.1f}, correlation time "
                     f"{found.correlation_time:.1f} frames{time_ps}, at {len(planning.work.sample)} random points")
    lines.append(f"{made.frames.partition(':')[0]} frames ({made.frames.partition(': ')[2]}) in {seconds:.2f} s, "
                 f"{count / seconds:.3g} a second, on the {made.engine} engine")
    return lines


def _data(planning: Planning, found: Average, smear: float) -> dict[str, Any]:
    """Return the same for programs."""
    grid, numbers = found.grids["mean"], planning.numbers[: found.frames]
    made = grid.provenance
    periodic = None if found.cell is None else Cell(found.cell)
    return {
        "frames": found.frames, "first_frame": numbers[0], "last_frame": numbers[-1], "frame_step": numbers.step,
        "time_step": found.step, "blocks": len(found.blocks), "block_frames": found.blocks[0],
        "inefficiency": found.inefficiency, "correlation_time": found.correlation_time,
        "standard_error": found.error, "interval": found.interval, "standard_deviation": found.deviation,
        "alignment": str(planning.work.alignment), "zero": found.zero, "background": -planning.charge
        if planning.map.request.neutralised else 0.0,
        "shape": list(grid.lattice.shape), "origin": grid.lattice.origin.tolist(),
        "spacing": grid.lattice.spacing.tolist(), "unit": grid.unit, "temperature": grid.temperature,
        "dielectric": grid.dielectric, "medium": made.medium, "minimum": float(grid.values.min()),
        "maximum": float(grid.values.max()), "display_limit": grid.display_limit(),
        "net_charge": planning.charge, "method": made.method,
        "boundary": made.boundary, "interaction": made.interaction, "cutoff": made.cutoff, "smear": smear,
        "cell": None if periodic is None else list(periodic.parameters),
        "cell_vectors": None if found.cell is None else found.cell.tolist(),
        "cell_deviation": None if found.cell_deviation is None else found.cell_deviation.tolist(),
        "precision": made.precision, "tolerance": made.tolerance, "error": made.error, "error_away": made.error_away,
        "engine": made.engine,
    }


def _defaults() -> dict[str, Any]:
    """Return the defaults of the parameters that are handed on."""
    return {p.name: p.default for p in _MAP if p.name in _HANDED_ON}


_MAP = [p for p in map_.command.parameters if p.name not in ("field", "batch", "frame", "trajectory")]
_HANDED_ON = ("atoms", "boundary", "spacing", "padding", "tolerance", "unit", "temperature", "dielectric", "precision",
              "engine")

command = Command.of(average, others=_MAP)
