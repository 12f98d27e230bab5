"""The command ``map``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from vmdpotential import progress, registry
from vmdpotential.commands.continuum import solvation_data, solvation_lines
from vmdpotential.commands.options import CrystalSource, Force, Format, Like, at_frame, copies, read
from vmdpotential.errors import CheckError, UsageError
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.io.trajectories.frames import Frames, are_models
from vmdpotential.maps import MapOptions, potential_map
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.selection import Selection
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Report

#: Structures of a batch that failed, and that the report names; the table has all.
SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class FrameSource(CrystalSource):
    """A structure with charges, at a frame of a trajectory or of its own file."""

    trajectory: Annotated[Path | None, Option("file of frames of these atoms", viewer=False, shell=True)] = None
    frame: Annotated[int | None, Option(
        "which frame of the trajectory, or of the structure file where there is none, counted from 0",
        viewer=False)] = None

    def read(self, frames: Path | Frames | None = None) -> Structure:
        """Return the structure at its frame, or its assembly or cell."""
        structure = read(self.structure, self.topology, self.cell, self.index, self.trajectory, self.frame)
        structure = at_frame(structure, self.structure, self.trajectory, self.frame, self.cell)
        return copies(structure, self.structure, self.assembly, self.expand)

    def with_charges(self, structure: Structure, atoms: Sequence[Selection] = (), parameter: str = "atoms",
                     whole: bool = True) -> tuple[Structure, ChargeReport]:
        """Return a structure that was read with charges, completed where it is not of a trajectory."""
        own = self.trajectory is None or are_models(self.trajectory)
        return super().with_charges(structure, atoms, parameter, whole and own)


@dataclass(frozen=True, kw_only=True)
class MapOutput:
    """The files of a map and its field."""

    output: Annotated[Path | None, Option(
        "map to write: .dx, .dx.gz, .mrc, .map, .ccp4, .cube, .npz, .zarr or .cmap; .mrc and .map are for programs of "
        "electron microscopy and viewers, .ccp4 for those of crystallography and gemmi, which ignore the origin of the "
        "others; a map larger than memory goes to "
        ".zarr, .cmap, .mrc, .map or .ccp4 in slabs; - is standard output", short="o", viewer=False,
        written=True)] = None
    field: Annotated[Path | None, Option(
        "electric field to write, V/A: one .npz, or three files in another map format, their names ending in _x, _y "
        "and _z", viewer=False, written=True)] = None
    format: Format = ""
    force: Force = False


def map_(
    source: FrameSource,
    options: MapOptions = MapOptions(),
    like: Like = None,
    output: MapOutput = MapOutput(),
    batch: Annotated[bool, Option(
        "STRUCTURE is a folder of structures, or a text file with a path on each line, and -o a folder: a map of each, "
        "an .npz unless the format is another, and report.csv; run again, it goes on where it was",
        viewer=False, shell=True)] = False,
    workers: Annotated[int | None, Option(
        "processes of a batch; one for each processor unless given", viewer=False, shell=True, low=1,
        high=4096)] = None,
    scheduler: Annotated[str, Option(
        "address of a Dask scheduler whose workers make a batch", viewer=False, shell=True, metavar="ADDRESS")] = "",
) -> Report:
    """Compute the electrostatic potential on a lattice.

    In a periodic cell the map covers the cell and counts every image of every atom; in an open
    boundary it covers the chosen atoms with the padding and counts every atom. The method cutoff
    counts those within its cutoff.

    Raises
    ------
    UsageError
        For options that do not fit together.
    InputError
        For a structure without charges, atoms or cell.
    MemoryPlanError
        When the map does not fit into memory.
    TaskError
        When the tolerance cannot be kept.
    """
    if batch:
        return _batch(source, options, like, output, workers, scheduler)
    for option, value in (("workers", workers), ("scheduler", scheduler)):
        if value:
            raise UsageError(option, "is for many structures", "give {batch}")

    from vmdpotential.grid.stored import StoredGrid
    from vmdpotential.io.maps import MapWriters, check_map_format, is_map, open_map, put_map, read_map
    from vmdpotential.io.maps.field import field_paths, put_field
    from vmdpotential.io.maps.mapformat import check_finite

    path, field, force = output.output, output.field, output.force
    if path is None and field is None and isinstance(source.structure, Path):
        raise UsageError("output", "a file is needed for the map", "such as {output map.dx}")
    fields = [] if field is None else field_paths(field)
    paths = [*([] if path is None else [path]), *fields]
    names = files.named(paths, output.format, is_map)
    for name in names:
        check_map_format(name)
    files.check(paths, force, names)

    from vmdpotential.engines import get_engine, reason
    from vmdpotential.interactions.gaussian import ewald_factor
    from vmdpotential.methods.accuracy import POINTS, Errors
    from vmdpotential.molecule.selection import select

    atoms = options.atoms
    structure, charge_report = source.charged([atoms, *([] if options.sources is None else [options.sources])])
    start = time.perf_counter()
    which = [*([] if output is None else [0]), *range(1, 1 + len(fields))]
    with MapWriters(paths, which, force, names) as writers, progress.clock() as clock:
        grid = potential_map(
            structure, options, field=field is not None, lattice=None if like is None else read_map(like).lattice,
            sink=writers if paths and writers.can_take(names) else None)
        if isinstance(grid, StoredGrid):
            writers.finish(grid)
    seconds = time.perf_counter() - start - clock.compiling
    if isinstance(grid, StoredGrid):
        low, high = grid.extremes or (0.0, 0.0)
        if path is not None:
            grid = open_map(path, 0)
    else:
        for name in names:
            check_map_format(name, grid.lattice)
            check_finite(name, grid.lattice, grid.values)
        with files.writing(paths, force, names) as places:  # all of them or none
            if path is not None:
                put_map(grid, places[0])
            if grid.field is not None:
                put_field(grid.field, places[-len(fields) :])
        low, high = float(grid.values.min()), float(grid.values.max())

    made, lattice, smear = grid.provenance, grid.lattice, options.smear
    points = " x ".join(map(str, lattice.shape))
    net_charge = charge_report.net_charge
    of_atoms = []
    if str(atoms) != "all":
        chosen = structure.known_charges[select(structure, atoms)]
        net_charge = float(chosen.sum())
        of_atoms = [f"potential of {atoms}: {len(chosen)} atoms, net charge {round(net_charge, 3) + 0.0:g} e"]
    periodic = structure.cell if made.boundary == "periodic" else None
    superposes = registry.get("method", made.method).superposes
    on_mesh = " on a mesh" if made.interaction.startswith("shifted") and made.tolerance is not None else ""
    lines = [
        str(charge_report),
        *of_atoms,
        f"{made.method} sum{on_mesh}, {boundary_text(periodic)}, {made.interaction}, {made.precision} precision",
        *([] if not smear else [f"charges are Gaussians of {smear:.4g} A, an Ewald factor of "
                                f"{ewald_factor(smear):.4g}/A"]),
        f"{points} points, {' x '.join(f'{h:.4g}' for h in dict.fromkeys(lattice.spacing))} A apart, "
        f"from ({', '.join(f'{x:.3f}' for x in lattice.origin)}) to ({', '.join(f'{x:.3f}' for x in lattice.last)}) A",
        *([] if made.error is None or made.error_away is None or not superposes else [
            f"relative rms error {Errors(made.error, made.error_away, made.error_field, made.error_field_away)}, "
            f"at {POINTS} points (asked {made.tolerance:g})"]),
        *([] if superposes or made.error is None else [
            f"error, from two grids: {made.error:.1e} of the potential outside of the molecule, {made.error_away:.1e} "
            "at its surface"]),
        *([] if superposes or made.error is not None else ["error: not stated by this method"]),
        *([] if grid.solvation is None else solvation_lines(grid.solvation, structure)),
        f"{low:.4g} to {high:.4g} {grid.unit} at {options.temperature:g} K, {made.medium}",
        f"{seconds:.2f} s on the {made.engine} engine ({get_engine(options.engine).describe()})",
    ]
    if options.engine == "auto" and reason() and find_spec("pycuda"):  # who never installed PyCUDA asks `devices`
        lines.append(reason())
    if path is not None:
        lines.append(f"wrote {path}")
    if field is not None:
        lines.append(f"wrote {', '.join(map(str, fields))}")
    data = {
        "file": None if path is None else str(path),
        "field_files": [str(each) for each in fields],
        "shape": list(lattice.shape), "origin": lattice.origin.tolist(), "spacing": lattice.spacing.tolist(),
        "unit": grid.unit,
        "temperature": options.temperature, "dielectric": grid.dielectric, "medium": made.medium, "minimum": low,
        "maximum": high,
        "display_limit": None if path is None and isinstance(grid, StoredGrid) else grid.display_limit(),
        **charge_report.data, "net_charge": net_charge, "method": made.method,
        "boundary": made.boundary, "cell": None if periodic is None else list(periodic.parameters),
        "interaction": made.interaction, "cutoff": made.cutoff, "smear": smear,
        "precision": made.precision, "tolerance": made.tolerance, "error": made.error,
        "error_away": made.error_away, "error_field": made.error_field, "error_field_away": made.error_field_away,
        "engine": made.engine, "seconds": seconds,
    }
    if grid.solvation is not None:
        data["solvation"] = solvation_data(grid.solvation, structure)
    return Report(lines, data, {"grid": grid, "structure": structure})


def _batch(source: FrameSource, options: MapOptions, like: Path | None, output: MapOutput, workers: int | None,
           scheduler: str) -> Report:
    """Make a map of each structure of a folder or a list."""
    from vmdpotential.compiling import threads
    from vmdpotential.execution.batch import REPORT, run_batch, structures_of
    from vmdpotential.execution.processes import sharers
    from vmdpotential.io.maps import check_map_format

    folder = output.output
    if folder is None or files.is_standard(folder):
        raise UsageError("output", "a folder is needed for the maps", "such as {output maps}")
    for name, value in (("topology", source.topology), ("index", source.index), ("field", output.field), ("like", like),
                        ("trajectory", source.trajectory), ("frame", source.frame)):
        if value is not None:
            raise UsageError(name, "is of one structure", "leave out {batch}")
    if isinstance(source.structure, Structure):
        raise UsageError("structure", "is one; a batch is of a folder or a list of files")
    suffix = f".{(output.format or 'npz').removeprefix('.')}"
    check_map_format(folder / f"name{suffix}")
    if workers is None:  # reading and writing takes longer than a GPU's part
        workers = threads.count() if scheduler else sharers(options.engine, threads.count())
    found = run_batch(partial(_one, source, options), structures_of(source.structure), folder, suffix,
                      {**vars(source), **vars(options), "structure": None}, workers=workers, scheduler=scheduler,
                      engine=options.engine, force=output.force)
    made, failed = len(found.rows) - found.before, found.failed
    lines = [
        f"{len(found.rows)} structures: {len(found.rows) - len(failed)} done"
        + (f" ({found.before} of them before)" if found.before else "") + f", {len(failed)} failed",
        *(f"{row['structure']}: {row['message']}" for row in failed[:SHOWN]),
        *([f"and {len(failed) - SHOWN} more"] if len(failed) > SHOWN else []),
        f"{found.seconds:.2f} s, {made / max(found.seconds, 1e-9):.1f} structures a second",
        f"wrote {folder / REPORT}",
    ]
    data = {"structures": len(found.rows), "done": len(found.rows) - len(failed), "done_before": found.before,
            "failed": [{"structure": row["structure"], "message": row["message"]} for row in failed],
            "seconds": found.seconds, "folder": str(folder), "report_file": str(folder / REPORT)}
    report = Report(lines, data)
    if failed:
        raise CheckError(f"{len(failed)} of {len(found.rows)} structures failed", report)
    return report


def _one(source: FrameSource, options: MapOptions, structure: Path, output: Path) -> dict[str, Any]:
    """Make the map of a structure; return its figures for the table of a batch."""
    report = map_(replace(source, structure=structure), options, output=MapOutput(output=output, force=True))
    data = report.data
    return {**{name: data[name] for name in ("method", "error", "error_away")}, "prepared": data["prepared"] or "",
            "net_charge": round(data["net_charge"], 4) + 0.0, "atoms": len(report.objects["structure"]),
            "points": " x ".join(map(str, data["shape"]))}


command = Command.of(map_, "map")
