"""The command ``ionize``."""

from __future__ import annotations

import csv
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from vmdpotential import registry
from vmdpotential.commands.options import CellOption, Charges, ForceField, Index, Water, charged, read
from vmdpotential.errors import UsageError, Words
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.io.files.recognise import PRMTOP
from vmdpotential.io.files.text import suffix
from vmdpotential.ions import (
    CONVENTIONS,
    COUNT_METHODS,
    SITE_METHODS,
    SWEEPS,
    TOLERANCE,
    PlacedIon,
    Placement,
    parse_list,
    parse_salt,
    place_replicas,
)
from vmdpotential.maps import LEAST_TOLERANCE
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Report, items
from vmdpotential.units import DEFAULT_TEMPERATURE

log = logging.getLogger(__name__)


def _engines() -> Sequence[str]:
    return ("auto", *registry.available("engine"))


def parse_templates(text: str) -> dict[str, Path]:
    """Return ``{name: file}`` of a text such as ``NH4=ammonium.mol2,SO4=sulfate.mol2``.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    given = items(text, "=", "NAME=FILE, several with commas, such as NH4=ammonium.mol2")
    return {name: Path(file) for name, file in given.items()}


def ionize(
    structure: Annotated[Path | Structure, Option("solvated structure", positional=True)],
    topology: Annotated[Path | None, Option("file with charges and bonds (PSF, prmtop, TPR ...)", viewer=False)] = None,
    force_field: ForceField = "auto",
    water: Water = "auto",
    cell: CellOption = None,
    charges: Charges = (),
    index: Index = None,
    cation: Annotated[str, Option(
        "positive ion, in any program's name (SOD, Na+, MG); auto is SOD, or the salt's", front=True)] = "auto",
    anion: Annotated[str, Option("negative ion (CLA, Cl-); auto is CLA, or the salt's", front=True)] = "auto",
    neutralize: Annotated[bool, Option("compensate the net charge", front=True)] = True,
    concentration: Annotated[float, Option(
        "salt, on top of neutralising ions", unit="mol/L", low=0, high=10, front=True)] = 0.0,
    salt: Annotated[Mapping[str, float] | None, Option(
        "what the salt is, by fractions of formula units: NaCl:0.7,KCl:0.2,MgCl2:0.1; cation and anion neutralise",
        metavar="FORMULA:FRACTION,...", parse=parse_salt)] = None,
    count: Annotated[str, Option(
        "how salt is counted: add then neutralise, SLTCAP, SPLIT", choices=COUNT_METHODS)] = "add",
    count_existing: Annotated[bool, Option("ions that are there are part of the salt asked for")] = True,
    ions: Annotated[Mapping[str, int] | None, Option(
        "exactly these ions instead, such as SOD=11,CLA=2", metavar="NAME=N,...", parse=parse_list)] = None,
    ion_template: Annotated[Mapping[str, Path] | None, Option(
        "ions of several atoms, by files with their charges (MOL2, PQR): NH4=ammonium.mol2; the name is used in the "
        "other options and in formulas", metavar="NAME=FILE,...", parse=parse_templates)] = None,
    site: Annotated[str, Option(
        "waters with the most favourable potential, any, or by Boltzmann's distribution (monte-carlo)",
        choices=SITE_METHODS)] = "potential",
    from_solute: Annotated[float, Option("least distance to solute atoms", unit="A", low=0, high=1000)] = 5.0,
    between: Annotated[float, Option("least distance between ions", unit="A", low=0, high=1000)] = 5.0,
    seed: Annotated[int | None, Option(
        "of random sites and of monte-carlo; chosen and reported when not given", low=0)] = None,
    sweeps: Annotated[int, Option("steps of monte-carlo for each ion", low=0, high=10**7)] = SWEEPS,
    replicas: Annotated[int, Option(
        "how many placements, at random or monte-carlo sites with the seeds S, S+1 ...; files out_1.pdb, out_2.pdb ...",
        low=1, high=10_000, viewer=False)] = 1,
    refine: Annotated[bool, Option("ions move to better free sites when all are placed")] = True,
    keep: Annotated[str | None, Option("waters that must stay, as a selection", metavar="SEL", selection=True)] = None,
    naming: Annotated[str, Option(
        "whose ion names are written; auto is the input's convention",
        choices=CONVENTIONS)] = "auto",
    parameters: Annotated[tuple[Path, ...], Option(
        "Lennard-Jones of ions that the prmtop of the input lacks, to write one: Amber's frcmod, OpenMM's .xml, "
        "CHARMM's .prm, a prmtop that has them; of ions of several atoms a prmtop with all their terms",
        metavar="FILE", viewer=False)] = (),
    temperature: Annotated[float, Option("for energies in kT", unit="K", above=0, high=1e6)] = DEFAULT_TEMPERATURE,
    dielectric: Annotated[float | None, Option(
        "relative permittivity for energies and monte-carlo; 1, and 78.5 with monte-carlo, unless given", above=0,
        high=1e6)] = None,
    tolerance: Annotated[float, Option(
        "largest relative rms error of the potential at the sites, measured at 200 of them", low=LEAST_TOLERANCE,
        high=0.1)] = TOLERANCE,
    engine: Annotated[str, Option("what computes the potential", choices=_engines)] = "auto",
    dry_run: Annotated[bool, Option("report ions and sites, write nothing", viewer=False)] = False,
    output: Annotated[tuple[Path, ...], Option(
        "structure to write, several for several formats; the suffix chooses; - is standard output", short="o",
        viewer=False, written=True)] = (),
    table: Annotated[Path | None, Option(
        "CSV file with every ion's site, distances and energy", viewer=False, written=True)] = None,
    format: Annotated[str, Option(
        "of an output whose name tells none (-, a pipe): pdb, psf ...", viewer=False, metavar="SUFFIX")] = "",
    force: Annotated[bool, Option("replace files that exist", viewer=False)] = False,
) -> Report:
    """Replace waters of a solvated structure by neutralising ions and salt.

    One after the other, each ion goes to the water where its energy in the potential of the solute and of the
    ions before it is lowest, with all periodic images (Ewald's sum); then ions move to better waters until no
    move of a single ion gains. By monte-carlo they are a sample of Boltzmann's distribution instead:
    charges in a medium like water, moved and exchanged by Metropolis' rule. All keep their distances to every
    solute atom, ion and image, and the energies told are those at the end. All files of a replica are written
    together, or none.

    Raises
    ------
    UsageError
        For options that do not fit together or do not hold.
    InputError
        For a structure without charges or waters.
    NoRoomError
        When the sites run out.
    """
    from vmdpotential.io import can_be_written, read_structure
    from vmdpotential.ions.report import least_distances, radial_distributions, replica_lines, summary

    from_file = not isinstance(structure, Structure)
    paths = [*output, *([table] if table is not None else [])]
    if from_file and not paths and not dry_run:
        raise UsageError("output", "a file for the result is needed",
                         "give one, such as ions.pdb, or {dry_run} to see the sites only")
    tables = () if table is None else (table,)
    groups = [_Outputs(output, tables)] if replicas == 1 else [
        _Outputs(tuple(_numbered(path, number) for path in output), tuple(_numbered(path, number) for path in tables))
        for number in range(1, replicas + 1)]
    names = [files.named(group.structures, format, can_be_written) for group in groups]
    files.check([path for group in groups for path in group.all], force)
    if parameters and not any(suffix(path) in PRMTOP for group in names for path in group):
        raise UsageError("parameters", "are written into a prmtop", "name one as {output}, or leave them out")
    system, charge_report = _prepare(structure, topology, cell, index, force_field, water, charges, names[0],
                                     parameters)
    templates = {name: read_structure(path) for name, path in (ion_template or {}).items()}
    check_templates(templates, names[0], system)
    placements = place_replicas(
        system, replicas, cation=cation, anion=anion, neutralize=neutralize, concentration=concentration, salt=salt,
        count=count, count_existing=count_existing, ions=ions, templates=templates, site=site, from_solute=from_solute,
        between=between, seed=seed, refine=refine, sweeps=sweeps, keep=keep, naming=naming, temperature=temperature,
        dielectric=dielectric, tolerance=tolerance, engine=engine,
    )
    if system.cell is None:
        log.warning(Words("%s: has no periodic cell, so ions see no images and may come close to some; {cell} gives it "
                          "one"), system.where)
    written: list[str] = []
    for placement, group, suffixes in zip(placements, groups, names, strict=True):
        if not dry_run and group.all:
            _write(placement, group, force, suffixes)
            written += map(str, group.all)
    least, curves = least_distances(placements), radial_distributions(placements, engine)
    where = f"{boundary_text(system.cell)}, Ewald's sum" if system.cell else boundary_text(None)
    first = placements[0]
    lines = [str(charge_report), where, *(first.lines if replicas == 1 else replica_lines(placements)),
             *summary(least, curves), *(f"wrote {name}" for name in written)]
    data = {
        **charge_report.data, "boundary": "open" if system.cell is None else "periodic",
        "cell": None if system.cell is None else list(system.cell.parameters),
        **first.data, "least_distances": least, "distributions": curves, "dry_run": dry_run, "files": written,
    }
    if replicas > 1:
        data["replicas"] = [{key: each.data[key] for key in ("seed", "waters_removed", "sampling", "ions")}
                            for each in placements]
        del data["seed"], data["waters_removed"], data["sampling"], data["ions"]
    objects = {"placement": first, "structure": first.structure}
    return Report(lines, data, objects if replicas == 1 else {**objects, "placements": placements})


class _Outputs(NamedTuple):
    """The files of a replica."""

    structures: tuple[Path, ...]
    tables: tuple[Path, ...]

    @property
    def all(self) -> tuple[Path, ...]:
        return self.structures + self.tables


def _numbered(path: Path, number: int) -> Path:
    """Return ``out_1.pdb`` of ``out.pdb``, and ``out_1.pdb.gz`` of ``out.pdb.gz``.

    Raises
    ------
    UsageError
        For what is no file.
    """
    if files.is_stream(path):
        raise UsageError("replicas", "need files, whose names get numbers", "name files", value=str(path))
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    return path.with_name(f"{path.name.removesuffix(suffix)}_{number}{suffix}")


def check_templates(templates: Mapping[str, Structure], outputs: Sequence[Path], system: Structure) -> None:
    """Refuse topologies that would lack terms of ions of several atoms."""
    from vmdpotential.io.topologies import gromacs_top, prmtop_ions

    suffixes = {suffix.lower() for path in outputs for suffix in path.suffixes[-2:]}
    for name, ion in templates.items():
        unbound = len(ion) > 1 and (ion.topology is None or not len(ion.topology.bonds))
        if unbound and ".psf" in suffixes:
            raise UsageError("ion_template", "its file states no bonds, and a PSF needs them",
                             "give a MOL2 that has them, or write .pdb", value=name)
        if suffixes.intersection(PRMTOP):
            prmtop_ions.check_ion(system, name, ion)
        if ".top" in suffixes:
            gromacs_top.check_ion(system, name, ion)


def _prepare(
    structure: Path | Structure, topology: Path | None, cell: Cell | None, index: Path | None, force_field: str,
    water: str, charges: Sequence[Path], outputs: Sequence[Path], parameters: Sequence[Path],
) -> tuple[Structure, ChargeReport]:
    """Return the structure with charges and where they are from, and refuse outputs it cannot be written to."""
    from vmdpotential.io import check_formats
    from vmdpotential.io.topologies.ion_parameters import attached

    system, report = charged(read(structure, topology, cell, index), force_field, water, charges)
    check_formats(system, outputs)
    return attached(system, parameters, outputs), report


def _write(placement: Placement, outputs: _Outputs, force: bool, names: Sequence[Path]) -> None:
    """Write structures and table, all or none."""
    from vmdpotential.io import write_structures

    tables = {table: lambda path: _write_table(placement, path) for table in outputs.tables}
    write_structures(placement.structure, outputs.structures, force, tables, names)


def _write_table(placement: Placement, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(PlacedIon.COLUMNS)
        writer.writerows(ion.row for ion in placement.ions)


command = Command.of(ionize)
