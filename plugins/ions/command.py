"""The command ``ionize``."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from vmdpotential import registry
from vmdpotential.commands.options import Force, Format, Source
from vmdpotential.errors import Message, UsageError
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.io.files.recognise import PRMTOP_SUFFIXES
from vmdpotential.io.files.text import format_suffix
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, ReportRows, parse_items, warn_unused
from vmdpotential.results import Result, TableColumns

from .edit import water_sites
from .options import IonOptions
from .place import place_replicas
from .placement import PlacedIon, Placement
from .report import distance_summary, least_distances, radial_distributions, replica_lines

log = logging.getLogger(__name__)


def parse_templates(text: str) -> dict[str, Path]:
    """Return ``{name: file}`` of a text such as ``NH4=ammonium.mol2,SO4=sulfate.mol2``.

    Raises
    ------
    ValueError
        When the text has another form; the message says what is wrong.
    """
    given = parse_items(text, "=", "NAME=FILE, several with commas, such as NH4=ammonium.mol2")
    return {name: Path(file) for name, file in given.items()}


@dataclass(frozen=True, kw_only=True)
class SolvatedSource(Source):
    """A structure with charges and waters, to which no atoms are added."""

    structure: Annotated[Path | Structure, Option(
        "structure file of a solvated system", positional=True)]
    prepare: str = "never"
    ph: float = 7.0
    pka: str = "model"


@dataclass(frozen=True, kw_only=True)
class IonOutput:
    """Files of a structure with ions, and of a table of the ions."""

    output: Annotated[tuple[Path, ...], Option(
        "structure and topology files to write, in the formats of their suffixes; - is standard output", short="o",
        viewer=False, written=True, suffix=".pdb")] = ()
    table: Annotated[Path | None, Option(
        "CSV file with every ion's site, distances and energy", viewer=False, written=True, heading="output")] = None
    format: Format = ""
    force: Force = False


def ionize(
    source: SolvatedSource,
    options: IonOptions = IonOptions(),
    ion_template: Annotated[Mapping[str, Path] | None, Option(
        "files (MOL2, PQR) with the atoms and charges of ions of several atoms, such as NH4=ammonium.mol2; the name "
        "can then be used in formulas and other options", metavar="NAME=FILE,...", parse=parse_templates,
        heading="structure and charges")] = None,
    replicas: Annotated[int, Option(
        "number of independent placements at random or monte-carlo sites, with the seeds S, S+1 ...; written to "
        "out_1.pdb, out_2.pdb ...",
        low=1, high=10_000, viewer=False, heading="ions")] = 1,
    parameters: Annotated[tuple[Path, ...], Option(
        "files with Lennard-Jones parameters of ions that the input prmtop lacks, needed to write a prmtop: Amber's "
        "frcmod, OpenMM's .xml, CHARMM's .prm, or a prmtop; for ions of several atoms a prmtop with all their terms",
        metavar="FILE", viewer=False, heading="structure and charges")] = (),
    dry_run: Annotated[bool, Option(
        "only report the ions and their sites, and write no file", viewer=False, heading="ions")] = False,
    outputs: IonOutput = IonOutput(),
) -> Ionized:
    """Replace waters of a solvated structure by neutralising ions and salt.

    Ions are placed one after another. Each replaces the water at which its energy is lowest, in the potential of the
    solute and of the ions placed before, with all periodic images (Ewald sum). Then single ions are moved to other
    waters until no such move lowers the energy. With the sites monte-carlo, ions are sampled from the Boltzmann
    distribution instead, by Metropolis moves and exchanges in a medium with water's dielectric constant. Minimum
    distances to solute atoms, other ions and images are always kept. All files of a replica are written together, or
    none.

    Raises
    ------
    UsageError
        For invalid options, or options that do not fit together.
    InputError
        For a structure without charges or waters.
    NoRoomError
        When there are not enough sites for the ions.
    """
    from vmdpotential.io import can_be_written, check_formats, read_structure

    output, table, format, force = outputs.output, outputs.table, outputs.format, outputs.force
    from_file = not isinstance(source.structure, Structure)
    paths = [*output, *([table] if table is not None else [])]
    if from_file and not paths and not dry_run:
        raise UsageError("output", "a file for the result is needed",
                         "give one, such as ions.pdb, or {dry_run} to see the sites only")
    tables = () if table is None else (table,)
    groups = [_Outputs(output, tables)] if replicas == 1 else [
        _Outputs(tuple(_numbered(path, number) for path in output), tuple(_numbered(path, number) for path in tables))
        for number in range(1, replicas + 1)]
    names = [files.named(group.structures, format, can_be_written) for group in groups]
    files.check([path for group in groups for path in group.all], force or dry_run)
    if parameters and not any(format_suffix(path) in PRMTOP_SUFFIXES for group in names for path in group):
        raise UsageError("parameters", "these files are only used when a prmtop is written",
                         "name one as {output}, or leave them out")
    if options.site == "potential":
        warn_unused(("seed", "sweeps"), "sites of the most favourable potential are not random; choose another {site}")
    else:
        warn_unused(("refine", *(["sweeps"] if options.site == "random" else [])), f"the sites are {options.site}")
    if options.ions is not None:
        warn_unused(("cation", "anion", "neutralize", "salt", "count", "count_existing"), "{ions} gives all numbers")
    elif not options.concentration:
        warn_unused(("count", "count_existing"), "no {concentration} of salt is added")
    solvated = source.read()
    water_sites(solvated)  # raises an error before one of the charges that a dry structure lacks as well
    system, charge_report = source.with_charges(solvated)
    check_formats(system, names[0])
    system = with_ion_parameters(system, parameters)
    templates = {name: read_structure(path) for name, path in (ion_template or {}).items()}
    for path in names[0]:
        registry.get("structure_writer", format_suffix(path)).check_ions(system, templates)
    placements = place_replicas(system, replicas, replace(options, templates=templates))
    if system.cell is None:
        log.warning(Message("%s: has no periodic cell, so periodic images are ignored and ions may come too close to "
                            "them; {cell} gives it one"), system.where)
    written: list[Path] = []
    for placement, group, suffixes in zip(placements, groups, names, strict=True):
        if not dry_run and group.all:
            _write(placement, group, force, suffixes)
            written += group.all
    return Ionized(
        charges=charge_report, cell=system.cell, placement=placements[0], structure=placements[0].structure,
        placements=placements if replicas > 1 else None, least_distances=least_distances(placements),
        distributions=radial_distributions(placements), dry_run=dry_run, files=written)


class Ionized(Result):
    """Ions in a solvated structure, of one or several placements."""

    charges: ChargeReport
    cell: Cell | None
    placement: Placement
    structure: Structure
    placements: Sequence[Placement] | None
    least_distances: dict[str, dict[str, float | None]]
    distributions: dict[str, Any]
    dry_run: bool


    @cached_property
    def data(self) -> Mapping[str, Any]:
        """Data of ``--json``."""
        result, own = {**super().data, **self.placement.data}, ("seed", "waters_removed", "sampling", "ions")
        if self.placements is None:
            return result
        each = [{name: item.data[name] for name in own} for item in self.placements]
        return {**{name: value for name, value in result.items() if name not in own}, "replicas": each}

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            **self.charges.data, "cell": None if self.cell is None else self.cell.parameters,
            "least_distances": self.least_distances, "distributions": self.distributions, "dry_run": self.dry_run,
            "boundary": "open" if self.cell is None else "periodic"}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {
            "placement": self.placement, "structure": self.structure, "placements": self.placements}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the ions, their energies and distances."""
        yield str(self.charges)
        yield boundary_text(self.cell) + (", Ewald's sum" if self.cell else "")
        yield from self.placement.text if self.placements is None else replica_lines(self.placements)
        yield from distance_summary(self.least_distances, self.distributions)

    def table(self) -> TableColumns:
        """Return a row for each ion of the first placement."""
        return self.placement.table()


class _Outputs(NamedTuple):
    """The files of a replica."""

    structures: tuple[Path, ...]
    tables: tuple[Path, ...]

    @property
    def all(self) -> tuple[Path, ...]:
        return self.structures + self.tables


def with_ion_parameters(structure: Structure, files: Sequence[Path]) -> Structure:
    """Return a structure whose ions get their Lennard-Jones parameters from `files` when it is written."""
    topology = structure.topology
    if topology is None or not files:
        return structure
    return replace(structure, topology=replace(topology, extra={**topology.extra, "ion_parameters": tuple(files)}))


def _numbered(path: Path, number: int) -> Path:
    """Return ``out_1.pdb`` of ``out.pdb``, and ``out_1.pdb.gz`` of ``out.pdb.gz``.

    Raises
    ------
    UsageError
        For a stream, such as standard output.
    """
    if files.is_stream(path):
        raise UsageError("replicas", "replicas are written to numbered files, not to a stream", "name files",
                         value=str(path))
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    return path.with_name(f"{path.name.removesuffix(suffix)}_{number}{suffix}")


def _write(placement: Placement, outputs: _Outputs, force: bool, names: Sequence[Path]) -> None:
    """Write structures and table: all files or none."""
    from vmdpotential.io import write_structures

    tables = {table: lambda path: _write_table(placement, path) for table in outputs.tables}
    write_structures(placement.structure, outputs.structures, force, tables, names)


def _write_table(placement: Placement, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(PlacedIon.COLUMNS)
        writer.writerows(ion.row for ion in placement.ions)


command = Command.of(ionize, draws="ions", makes="ionized", examples=(
    "ionize system.pdb --concentration 0.15 -o ionized.pdb --table ions.csv",
    "ionize system.pdb --ions Na+=2,Cl-=2 --site random --seed 1 -o ionized.gro",
))
