"""The command ``map``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from vmdpotential import progress, registry
from vmdpotential.commands.continuum import solvation_data, solvation_lines
from vmdpotential.commands.options import (
    Assembly,
    CellOption,
    Charges,
    Expand,
    ForceField,
    Index,
    Ph,
    Pka,
    Prepare,
    Screened,
    Water,
    at_frame,
    charged,
    copies,
    parse_smear,
    read,
)
from vmdpotential.engines import PRECISIONS
from vmdpotential.errors import CheckError, UsageError
from vmdpotential.interactions.screened_coulomb import WATER
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.maps import CUTOFF, potential_map
from vmdpotential.molecule.radii import SETS
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Report
from vmdpotential.units import DEFAULT_TEMPERATURE, POTENTIAL_UNITS

#: Structures of a batch that failed, and that the report names; the table has all.
SHOWN = 20


def _names(kind: str) -> Sequence[str]:
    return ("auto", *registry.available(kind))


def _settings(text: str) -> dict[str, float]:
    """Return ``{"debye_length": 8.0}`` for ``debye_length=8``; several are separated by commas."""
    settings = {}
    for item in filter(None, text.split(",")):
        name, _, value = item.partition("=")
        try:
            settings[name.strip()] = float(value)
        except ValueError:
            raise ValueError("give NAME=NUMBER, such as debye_length=8") from None
    return settings


def map_(
    structure: Annotated[Path | Structure, Option(
        "structure file; a topology will do beside a trajectory", positional=True)],
    topology: Annotated[Path | None, Option("file with charges (PSF, prmtop, TPR ...)", viewer=False)] = None,
    force_field: ForceField = "auto",
    water: Water = "auto",
    cell: CellOption = None,
    charges: Charges = (),
    prepare: Prepare = "auto",
    ph: Ph = 7.0,
    pka: Pka = "model",
    assembly: Assembly = "",
    expand: Expand = "no",
    index: Index = None,
    atoms: Annotated[str, Option(
        "whose charges make the potential: all, solute, protein, water ..., or a selection (a CID, an expression as "
        "'protein and resid 1:100', or group NAME), made once in the structure, also for frames",
        metavar="all|solute|protein|SEL", front=True, selection=True)] = "all",
    sources: Annotated[str, Option(
        "in a continuum (pb): atoms whose charges count; the others are a part of the molecule without charges; all "
        "unless given", metavar="SEL", selection=True)] = "",
    method: Annotated[str, Option(
        "how it is summed", choices=lambda: _names("method"),
        listed=lambda: ("auto", *registry.listed("method")))] = "auto",
    boundary: Annotated[str, Option(
        "open, or with all periodic images; auto is periodic where "
        "the atoms fill the cell", choices=("auto", "open", "periodic"))] = "auto",
    spacing: Annotated[float, Option("between lattice points", unit="A", low=0.01, high=100, front=True)] = 0.5,
    padding: Annotated[float, Option("around the atoms, in an open boundary", unit="A", low=0, high=1000)] = 10.0,
    cutoff: Annotated[float | None, Option(
        f"of the method cutoff, and of interactions that have one; {CUTOFF:g} unless given", unit="A", low=0.5,
        high=1000)] = None,
    algorithm: Annotated[str, Option(
        "of the method cutoff: every pair, a mesh to the tolerance, or the faster",
        choices=("pair", "mesh", "auto"))] = "pair",
    interaction: Annotated[str, Option(
        "potential of one charge; the method's own unless given", choices=lambda: _names("interaction"))] = "auto",
    set: Annotated[Mapping[str, float] | None, Option(
        "parameters of the interaction, such as debye_length=8, or of a method that has some (of pb also the ions of "
        "the solution by name and molarity, such as Mg2+=0.1,Cl-=0.2)",
        metavar="NAME=NUMBER,...", parse=_settings)] = None,
    smear: Annotated[float, Option(
        "standard deviation of the Gaussian that each charge is, or VMD's Ewald factor b = 1 / (sqrt(2) smear) with "
        "its unit, such as 0.25/A; 0 for points", unit="A", low=0, high=1000, metavar="A|B/A",
        parse=parse_smear)] = 0.0,
    screened: Screened = None,
    radii: Annotated[str, Option(
        "radii of the atoms, for a method that needs them (pb): auto for the file's own (PQR, prmtop), or a named set, "
        "which other files need (PSF, PDB, TPR)",
        choices=("auto", *SETS))] = "auto",
    tolerance: Annotated[float | None, Option(
        "error of methods that are not exact, over the potential's rms, everywhere and away from charges; 1e-4 unless "
        "given. The method pb then reduces the spacing until its errors outside of the molecule and at its surface are "
        "smaller", low=1e-6, high=0.1)] = None,
    unit: Annotated[str, Option("of the map", choices=POTENTIAL_UNITS)] = "kT/e",
    temperature: Annotated[float, Option("that kT stands for", unit="K", above=0, high=1e6)] = DEFAULT_TEMPERATURE,
    dielectric: Annotated[float | None, Option(
        f"relative permittivity of the medium; 1 unless given, or {WATER:g} where it is screened", above=0,
        high=1e6)] = None,
    precision: Annotated[str, Option(
        "of the sums; double where auto needs it for the tolerance", choices=PRECISIONS)] = "single",
    engine: Annotated[str, Option("what computes", choices=lambda: _names("engine"))] = "auto",
    like: Annotated[Path | None, Option(
        "map whose lattice is taken, instead of spacing and padding", viewer=False, metavar="MAP")] = None,
    trajectory: Annotated[Path | None, Option("file of frames of these atoms", viewer=False, shell=True)] = None,
    frame: Annotated[int | None, Option(
        "which frame of the trajectory, or of the structure file where there is none, counted from 0",
        viewer=False)] = None,
    output: Annotated[Path | None, Option(
        "map to write: .dx, .dx.gz, .mrc, .map, .ccp4, .cube, .npz, .zarr or .cmap; .mrc and .map are for programs of "
        "electron microscopy and viewers, .ccp4 for those of crystallography and gemmi, which ignore the origin of the "
        "others; a map larger than memory goes to "
        ".zarr, .cmap, .mrc, .map or .ccp4 in slabs; - is standard output", short="o", viewer=False,
        written=True)] = None,
    field: Annotated[Path | None, Option(
        "electric field to write, V/A: one .npz, or three files in another map format, their names ending in _x, _y "
        "and _z", viewer=False, written=True)] = None,
    format: Annotated[str, Option(
        "of an output whose name tells none (-, a pipe): dx, npz ...", viewer=False, metavar="SUFFIX")] = "",
    force: Annotated[bool, Option("replace a file that exists", viewer=False)] = False,
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
        given = locals()
        return _batch(structure, output, format, workers, scheduler, force, {name: given[name] for name in (
            "topology", "field", "force_field", "water", "cell", "charges", "prepare", "ph", "pka", "assembly",
            "expand", "index", "atoms", "sources", "method", "boundary",
            "spacing", "padding", "cutoff", "algorithm", "interaction", "set", "smear", "screened", "radii",
            "tolerance", "unit",
            "temperature", "dielectric", "precision", "engine", "like", "trajectory", "frame")})
    for option, value in (("workers", workers), ("scheduler", scheduler)):
        if value:
            raise UsageError(option, "is for many structures", "give {batch}")

    from vmdpotential.grid.stored import StoredGrid
    from vmdpotential.io.maps import MapWriters, check_map_format, is_map, open_map, put_map, read_map
    from vmdpotential.io.maps.field import field_paths, put_field
    from vmdpotential.io.maps.mapformat import check_finite

    if output is None and field is None and isinstance(structure, Path):
        raise UsageError("output", "a file is needed for the map", "such as {output map.dx}")
    fields = [] if field is None else field_paths(field)
    paths = [*([] if output is None else [output]), *fields]
    names = files.named(paths, format, is_map)
    for name in names:
        check_map_format(name)
    files.check(paths, force, names)

    from vmdpotential.engines import get_engine, reason
    from vmdpotential.interactions.gaussian import ewald_factor
    from vmdpotential.methods.accuracy import POINTS, Errors
    from vmdpotential.molecule.selection import select

    structure, charge_report = charged(
        copies(at_frame(read(structure, topology, cell, index, trajectory, frame), structure, trajectory, frame, cell),
               structure, assembly, expand),
        force_field, water, charges, [atoms, *filter(None, [sources])],
        prepare=prepare if trajectory is None else "never", ph=ph, pka=pka)
    start = time.perf_counter()
    which = [*([] if output is None else [0]), *range(1, 1 + len(fields))]
    with MapWriters(paths, which, force, names) as writers, progress.clock() as clock:
        grid = potential_map(
            structure, method=method, boundary=boundary, spacing=spacing, padding=padding, cutoff=cutoff,
            algorithm=algorithm, interaction=interaction, parameters=set, smear=smear, screened=screened,
            radii=radii, tolerance=tolerance, atoms=atoms, sources=sources or None, unit=unit,
            temperature=temperature, dielectric=dielectric,
            field=field is not None, precision=precision, engine=engine,
            lattice=None if like is None else read_map(like).lattice,
            sink=writers if paths and writers.can_take(names) else None,
        )
        if isinstance(grid, StoredGrid):
            writers.finish(grid)
    seconds = time.perf_counter() - start - clock.compiling
    if isinstance(grid, StoredGrid):
        low, high = grid.extremes or (0.0, 0.0)
        if output is not None:
            grid = open_map(output, 0)
    else:
        for name in names:
            check_map_format(name, grid.lattice)
            check_finite(name, grid.lattice, grid.values)
        with files.writing(paths, force, names) as places:  # all of them or none
            if output is not None:
                put_map(grid, places[0])
            if grid.field is not None:
                put_field(grid.field, places[-len(fields) :])
        low, high = float(grid.values.min()), float(grid.values.max())

    made, lattice = grid.provenance, grid.lattice
    points = " x ".join(map(str, lattice.shape))
    net_charge = charge_report.net_charge
    of_atoms = []
    if atoms != "all":
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
        f"{low:.4g} to {high:.4g} {unit} at {temperature:g} K, {made.medium}",
        f"{seconds:.2f} s on the {made.engine} engine ({get_engine(engine).describe()})",
    ]
    if engine == "auto" and reason() and find_spec("pycuda"):  # who never installed PyCUDA asks `devices`
        lines.append(reason())
    if output is not None:
        lines.append(f"wrote {output}")
    if field is not None:
        lines.append(f"wrote {', '.join(map(str, fields))}")
    data = {
        "file": None if output is None else str(output),
        "field_files": [str(path) for path in fields],
        "shape": list(lattice.shape), "origin": lattice.origin.tolist(), "spacing": lattice.spacing.tolist(),
        "unit": unit,
        "temperature": temperature, "dielectric": grid.dielectric, "medium": made.medium, "minimum": low,
        "maximum": high,
        "display_limit": None if output is None and isinstance(grid, StoredGrid) else grid.display_limit(),
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


def _batch(source: Path | Structure, folder: Path | None, format: str, workers: int | None, scheduler: str, force: bool,
           options: Mapping[str, Any]) -> Report:
    """Make a map of each structure of a folder or a list."""
    from vmdpotential.compiling import threads
    from vmdpotential.frames.batch import REPORT, run_batch, structures_of
    from vmdpotential.frames.processes import sharers
    from vmdpotential.io.maps import check_map_format

    if folder is None or files.is_standard(folder):
        raise UsageError("output", "a folder is needed for the maps", "such as {output maps}")
    for name in ("topology", "index", "field", "like", "trajectory", "frame"):
        if options[name] is not None:
            raise UsageError(name, "is of one structure", "leave out {batch}")
    if isinstance(source, Structure):
        raise UsageError("structure", "is one; a batch is of a folder or a list of files")
    suffix = f".{(format or 'npz').removeprefix('.')}"
    check_map_format(folder / f"name{suffix}")
    if workers is None:  # reading and writing takes longer than a GPU's part
        workers = threads.count() if scheduler else sharers(options["engine"], threads.count())
    found = run_batch(partial(_one, dict(options)), structures_of(source), folder, suffix, options,
                      workers=workers, scheduler=scheduler, engine=options["engine"], force=force)
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


def _one(options: Mapping[str, Any], structure: Path, output: Path) -> dict[str, Any]:
    """Make the map of a structure; return its figures for the table of a batch."""
    report = map_(structure, output=output, force=True, **options)
    data = report.data
    return {**{name: data[name] for name in ("method", "error", "error_away")},
            "net_charge": round(data["net_charge"], 4) + 0.0, "atoms": len(report.objects["structure"]),
            "points": " x ".join(map(str, data["shape"]))}


command = Command.of(map_, "map")
