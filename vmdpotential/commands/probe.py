"""The command ``probe``: maps of the energy of probe atoms, and of the free energy of a small molecule over frames."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from vmdpotential import progress
from vmdpotential.commands.average import statistic_files
from vmdpotential.commands.between import ParameterOptions
from vmdpotential.commands.gridded import LATTICE, GridResult
from vmdpotential.commands.options import CompleteSource, Force, TrajectoryOptions
from vmdpotential.engines import get_engine
from vmdpotential.errors import UsageError
from vmdpotential.execution.blocks import run_blocks
from vmdpotential.frames.ligand import HIGHEST, FreeEnergy, Planning, merge, plan_insertions
from vmdpotential.frames.options import PartialExecution
from vmdpotential.frames.statistics import TOO_SHORT
from vmdpotential.frames.whole import reference_group
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.io.trajectories.frames import Loaded
from vmdpotential.maps.options import Engine
from vmdpotential.molecule.nonbonded import Nonbonded
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Report
from vmdpotential.probes.autodock import CUTOFF, autodock_maps, receptor
from vmdpotential.probes.energies import ProbeSum, probe_sum, type_sum
from vmdpotential.probes.ligands import LIGANDS, Ligand, ligand_of
from vmdpotential.probes.paths import Minimum, minima_and_barriers
from vmdpotential.results import Columns, complete, hidden, key, part, put_table, shown

#: A, of the grid: of a molecule over frames, and of probe atoms, as AutoGrid's.
_LIGAND_SPACING, _PROBE_SPACING = 1.0, 0.375


@dataclass(frozen=True, kw_only=True)
class ProbeOptions:
    """What is mapped, and where."""

    probe: Annotated[tuple[str, ...], Option(
        "probe atoms: AutoDock's types (C, A, N, NA, OA, SA, HD ...), its maps e and d, NAME=SIGMA,EPSILON (A and "
        "kcal/mol) with the structure's own Lennard-Jones, or NAME=TYPE of its force field", metavar="PROBE",
        front=True)] = ()
    ligand: Annotated[str, Option(
        f"small molecule whose free energy is computed over the frames: {', '.join(LIGANDS)}, or a file of lines "
        "'name x y z sigma epsilon'", metavar="NAME|FILE", front=True)] = ""
    atoms: Annotated[str, Option(
        "atoms that the probe or the molecule feels", metavar="SEL", selection=True, front=True)] = "all"
    around: Annotated[str, Option(
        "atoms around which the grid is laid; unless given, all that the probe feels, or for a molecule the whole "
        "periodic cell", metavar="SEL", selection=True)] = ""
    spacing: Annotated[float | None, Option(
        "distance between grid points; 0.375 A for probes and 1 A for a molecule unless given", unit="A", low=0.05,
        high=100, front=True)] = None
    padding: Annotated[float, Option("margin around those atoms", unit="A", low=0, high=1000)] = 4.0
    cutoff: Annotated[float, Option(
        "of Lennard-Jones; AutoDock's maps end at 8 A", unit="A", low=3, high=50)] = 12.0


@dataclass(frozen=True, kw_only=True)
class InsertionOptions:
    """How a molecule is inserted into frames."""

    fit: Annotated[str, Option(
        "atoms that are moved onto their place in the structure: auto (protein and nucleic acids, else lipids), none, "
        "or a selection", metavar="auto|none|SEL", selection=True, words=("auto", "none"))] = "auto"
    boundary: Annotated[str, Option(
        "of a molecule over frames: open, or periodic with all images; auto is periodic where the atoms fill the cell",
        choices=("auto", "open", "periodic"))] = "auto"
    orientations: Annotated[int, Option(
        "of a molecule at each place, spread evenly; half of them where its ends are alike", low=1, high=10000)] = 12
    places: Annotated[int, Option(
        "of a molecule along each edge of the box of a grid point", low=1, high=10)] = 2
    temperature: Annotated[float, Option("of the frames", unit="K", above=0, high=1e4)] = 298.15
    stat: Annotated[str, Option(
        "of a molecule: mean is the free energy, and sem its standard error, in a further file",
        metavar="mean,sem")] = "mean"


@dataclass(frozen=True, kw_only=True)
class ProbeOutput:
    """The files of maps, and the table of minima."""

    paths: Annotated[Path | None, Option(
        "CSV table of the minima of the free energy, and of the barriers between them", viewer=False, written=True,
        metavar="FILE.csv")] = None
    output: Annotated[Path | None, Option(
        "map file; of several probes with their names in it: receptor.map (AutoDock's format) makes receptor.C.map ...",
        short="o", viewer=False, written=True, suffix=".npz")] = None
    force: Force = False


def probe_(
    source: CompleteSource,
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    options: ProbeOptions = ProbeOptions(),
    like: Annotated[Path | Grid | None, Option("map whose grid is used", metavar="MAP")] = None,
    force_field: ParameterOptions = ParameterOptions(),
    insertion: InsertionOptions = InsertionOptions(),
    engine: Engine = "auto",
    outputs: ProbeOutput = ProbeOutput(),
    execution: PartialExecution = PartialExecution(),
) -> Report:
    """Compute the energy of probe atoms, or the free energy of a small molecule, at every grid point.

    Probes see one structure: AutoDock's types make the maps of AutoGrid (hydrogen bonds without their angles), and
    others the Lennard-Jones energy of the structure's own force field. The free energy of a molecule against vacuum is
    that of inserting it into the frames of a trajectory without it (implicit ligand sampling), by Lennard-Jones alone.

    Raises
    ------
    UsageError
        For options that do not fit together.
    InputError
        For atoms without charges or Lennard-Jones parameters, or a trajectory of other atoms.
    MemoryPlanError
        When the map does not fit into memory.
    """
    from vmdpotential.io.maps import read_map

    probe, ligand, output = options.probe, options.ligand, outputs.output
    if bool(probe) == bool(ligand):
        raise UsageError("probe", "probe atoms or a molecule are mapped", "give one of {probe}, {ligand}")
    if output is None and isinstance(source.structure, Path):
        raise UsageError("output", "a file is needed for the map", "such as {output o2.dx}")
    if probe and (trajectory.trajectory is not None or trajectory.frames is not None or outputs.paths is not None):
        raise UsageError("trajectory", "probe atoms see one structure",
                         "give {ligand}, or leave out trajectory, frames and paths")
    found = source.read(trajectory.trajectory)
    lattice = like.lattice if isinstance(like, Grid) else None if like is None else read_map(like).lattice
    run = _Run(found, options, lattice, options.spacing or (_LIGAND_SPACING if ligand else _PROBE_SPACING), engine,
               output, outputs.force)
    if probe:
        return _probes(run, source, force_field)
    over = _Over(trajectory, insertion.fit, insertion.stat, outputs.paths,
                 {"orientations": insertion.orientations, "parts": insertion.places,
                  "temperature": insertion.temperature, "boundary": insertion.boundary, "engine": engine,
                  "fixed_cell": source.cell is not None}, execution)
    return _ligand(run, over, ligand, force_field.terms(found))


@dataclass(frozen=True, eq=False)
class _Run:
    """What both kinds of maps share."""

    structure: Structure
    options: ProbeOptions
    lattice: Lattice | None
    spacing: float
    engine: str
    output: Path | None
    force: bool


@dataclass(frozen=True, eq=False)
class _Over:
    """Frames, and what is computed over them."""

    trajectory: TrajectoryOptions
    fit: str
    stat: str
    table: Path | None
    options: Mapping[str, Any]
    execution: PartialExecution


def _probes(run: _Run, source: CompleteSource, force_field: ParameterOptions) -> Report:
    """Compute maps of probe atoms with one structure."""
    from vmdpotential.io.maps import check_map_format, put_map
    from vmdpotential.io.maps.autodock import check_lattice, write_autodock

    probes = run.options.probe
    by_name = dict(_probe(text) for text in probes)
    if len(by_name) < len(probes):
        raise UsageError("probe", "one of them is named twice", value=" ".join(probes))
    paths = [] if run.output is None else [_of_probe(run.output, name) for name in by_name]
    autodock = run.output is not None and run.output.suffix == ".map"
    for path in paths:
        if not autodock:
            check_map_format(path)
    files.check(paths, run.force)
    structure, lines, engine = run.structure, [], get_engine(run.engine)
    if None in by_name.values():
        structure, report = source.with_charges(structure, [run.options.atoms])
        lines.append(str(report))
    chosen = select(structure, run.options.atoms)
    inside = select(structure, run.options.around, "around") if run.options.around else chosen
    lattice = run.lattice or _odd(Lattice.around(structure.positions[inside], run.spacing, run.options.padding))
    start = time.perf_counter()
    with progress.clock() as clock:
        plain = [name for name, spec in by_name.items() if spec is None]
        part = structure.part(chosen)
        grids = autodock_maps(receptor(part), lattice, plain, engine) if plain else {}
        if len(plain) < len(by_name):
            terms = force_field.terms(structure).take(chosen)
            cutoff = run.options.cutoff
            made = Provenance(method="probe map", interaction=f"Lennard-Jones to {cutoff:g} A", boundary="open",
                              cutoff=cutoff, precision="single", engine=engine.name, inputs=structure.sources)
            for name, spec in by_name.items():
                if spec is not None:
                    values = _sum(terms, spec, run.options.cutoff).energies(engine, lattice, part.positions, None)
                    quantity = Provenance(**{**made.__dict__, "quantity": f"Lennard-Jones energy of {name}"})
                    grids[name] = Grid(lattice, np.minimum(values, 1e6), "kcal/mol", provenance=quantity)
            lines.append(f"Lennard-Jones parameters: {terms.source}")
    seconds = time.perf_counter() - start - clock.compiling
    maps = [grids[name] for name in by_name]
    if autodock:
        check_lattice(maps[0])
    with files.writing(paths, run.force) as temporary:
        for place, grid in zip(temporary, maps, strict=False):
            if autodock and run.output is not None:
                write_autodock(grid, place, run.output.stem)
            else:
                put_map(grid, place)
    return ProbeMaps(
        head=lines, grid=maps[0], maps=dict(zip(by_name, maps, strict=True)), atoms=int(chosen.sum()), seconds=seconds,
        cutoff=CUTOFF if len(plain) == len(by_name) else run.options.cutoff, engine=engine.name, structure=structure,
        files=paths)


class ProbeMaps(GridResult):
    """Maps of the energies of probe atoms; `grid` is that of the first."""

    head: Sequence[str] = hidden()
    maps: Mapping[str, Grid] = hidden()
    atoms: int
    cutoff: float
    engine: str

    probes = key(lambda self: {name: {"minimum": grid.values.min(), "maximum": grid.values.max()}
                               for name, grid in self.maps.items()})

    @cached_property
    def objects(self) -> Mapping[str, Any]:
        """The structure and the maps."""
        return {**super().objects, **dict(list(self.maps.items())[1:])}

    def text(self) -> Iterator[str]:
        """Yield the ranges of the maps."""
        yield from self.head
        yield f"{self.points}, {self.atoms} atoms"
        for name, grid in self.maps.items():
            yield (f"  {name}: {grid.provenance.quantity} {float(grid.values.min()):.4g} to "
                   f"{float(grid.values.max()):.4g} {grid.unit}")
        yield f"{self.seconds:.2f} s on the {self.engine} engine"


def _probe(text: str) -> tuple[str, str | tuple[float, float] | None]:
    """Return the name of a probe, and its type or sigma and epsilon; None for AutoDock's."""
    name, equals, rest = text.partition("=")
    if not equals:
        return text, None
    if not name or not all(letter.isalnum() or letter in "+-_*" for letter in name):
        raise UsageError("probe", "a name of letters and digits stands before =", value=text)
    words = rest.split(",")
    try:
        sigma, epsilon = map(float, words)
    except ValueError:
        if len(words) > 1:
            raise UsageError("probe", "NAME=SIGMA,EPSILON has two numbers, in A and kcal/mol", value=text) from None
        return name, rest
    return name, (sigma, epsilon)


def _sum(terms: Nonbonded, spec: str | tuple[float, float], cutoff: float) -> ProbeSum:
    return type_sum(terms, spec, cutoff) if isinstance(spec, str) else probe_sum(terms, *spec, cutoff)


def _of_probe(path: Path, name: str) -> Path:
    """Return the file of one probe's map: receptor.map makes receptor.C.map."""
    from vmdpotential.io.maps import map_name

    stem = path.stem if path.suffix == ".map" else map_name(path)
    return path.with_name(f"{stem}.{name}{path.name[len(stem):]}")


def _odd(lattice: Lattice) -> Lattice:
    """Return a lattice with an odd number of nodes along each axis, which AutoDock needs."""
    nx, ny, nz = (n + 1 - n % 2 for n in lattice.shape)
    return Lattice(lattice.origin, lattice.spacing, (nx, ny, nz))


def _ligand(run: _Run, over: _Over, name: str, terms: Nonbonded) -> Report:
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
        inside = select(structure, run.options.around, "around")
        lattice = Lattice.around(structure.positions[inside], run.spacing, run.options.padding)
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
            put_table(_table(minima), temporary[0])
        for place, grid in zip(temporary[len(tables):], made, strict=False):
            put_map(grid, place)
    if found.frames == len(planning.numbers):
        blocks.clear()
    result = FreeEnergyMap(
        molecule=molecule, source=terms.source, grid=found.grids["mean"], sem=found.grids.get("sem"), found=found,
        planning=planning, structure=structure, places=planning.work.parts**3, least=minima, seconds=seconds,
        files=[*maps, *tables])
    return complete(result, found.frames, len(planning.numbers))


class FreeEnergyMap(GridResult):
    """The free energy of a small molecule over frames."""

    grid: Grid = part(*LATTICE, "provenance.boundary", shown=True)
    sem: Grid | None = shown()
    molecule: Ligand = part(ligand="name")
    source: str = hidden()
    found: FreeEnergy = part("frames", "solvation", "solvation_error", standard_error="error")
    planning: Planning = part("temperature", "work.engine")
    places: int
    least: Sequence[Minimum] | None = hidden()

    blocks = key(lambda self: len(self.found.blocks))
    orientations = key(lambda self: len(self.planning.work.orientations))
    cutoff = key(lambda self: self.planning.work.sums[0].cutoff)
    minima = key(lambda self: None if self.least is None else [_row(one) for one in self.least])

    def text(self) -> Iterator[str]:
        """Yield how the molecule was inserted, the free energies and their errors."""
        grid, work, found = self.grid, self.planning.work, self.found
        error = "" if found.solvation_error is None else f" +- {found.solvation_error:.3f}"
        yield f"{self.molecule.name}: {len(self.molecule.sigma)} atoms, {self.molecule.source}"
        yield f"Lennard-Jones parameters: {self.source}"
        yield "frames are not moved" if work.alignment is None else str(work.alignment)
        yield (f"{self.orientations} orientations, {self.places} places in the box of a grid point, "
               f"{boundary_text(found.cell)}, cutoff {self.cutoff:g} A")
        yield self.points
        yield (f"free energy {self.minimum:.3f} to {self.maximum:.3f} {grid.unit} at {self.planning.temperature:g} K; "
               f"zero: the molecule in vacuum; {HIGHEST:g} stands for all that is higher")
        yield f"of the whole map: {found.solvation:.3f}{error} kcal/mol"
        yield TOO_SHORT if found.error is None else (
            f"standard error {found.error:.3g} kcal/mol (median), by {len(found.blocks)} blocks of {found.blocks[0]} "
            "frames")
        yield f"{found.frames} frames in {self.seconds:.2f} s on the {work.engine} engine"
        if self.least is not None:
            yield from _minimum_lines(self.least)


def _among(one: ProbeSum, rows: Any) -> ProbeSum:
    """Return a sum over a selection's atoms as one over those of the whole structure."""
    return ProbeSum(one.rmin, tuple(rows[group] for group in one.groups), one.depths, one.cutoff)


def _wraps(found: FreeEnergy) -> bool:
    grid, cell = found.grids["mean"], found.cell
    return cell is not None and cell.orthogonal and bool(np.allclose(
        grid.lattice.spacing * grid.lattice.shape, np.abs(np.diagonal(cell.vectors)), rtol=1e-4))


def _row(one: Minimum) -> dict[str, Any]:
    return {"position": one.position.tolist(), "energy": one.energy, "barrier": one.barrier,
            "lower": None if one.lower is None else one.lower + 1,
            "saddle": None if one.saddle is None else one.saddle.tolist()}


def _table(minima: Sequence[Minimum]) -> Columns:
    """Return the columns of the table of minima."""
    def axes(what: str, places: Sequence[Any]) -> dict[str, list[float | None]]:
        return {f"{what}{x} (A)": [None if place is None else place[n] for place in places]
                for n, x in enumerate("xyz")}

    return {"minimum": range(1, len(minima) + 1), **axes("", [one.position for one in minima]),
            "free energy (kcal/mol)": [one.energy for one in minima],
            "barrier (kcal/mol)": [one.barrier for one in minima],
            "to minimum": [None if one.lower is None else one.lower + 1 for one in minima],
            **axes("barrier ", [one.saddle for one in minima])}


def _minimum_lines(minima: Sequence[Minimum]) -> list[str]:
    return [f"{len(minima)} minima", *(
        f"  {number}: {' '.join(f'{x:.1f}' for x in one.position)} A, {one.energy:.2f} kcal/mol"
        + ("" if one.barrier is None or one.lower is None else
           f"; over a barrier of {one.barrier:.2f} kcal/mol to minimum {one.lower + 1}")
        for number, one in enumerate(minima[:10], 1))]


command = Command.of(probe_, "probe")
