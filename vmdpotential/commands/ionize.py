"""The command ``ionize``."""

from __future__ import annotations

import csv
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from vmdpotential import registry
from vmdpotential.commands.options import CellOption, ForceField, Water, read
from vmdpotential.errors import UsageError
from vmdpotential.io import output as files
from vmdpotential.io.cellfile import boundary_text
from vmdpotential.ions import CONVENTIONS, COUNT_METHODS, SITE_METHODS, PlacedIon, Placement, parse_list, place_ions
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import ChargeReport, charges_and_report
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Report
from vmdpotential.units import DEFAULT_TEMPERATURE

log = logging.getLogger(__name__)


def _engines() -> Sequence[str]:
    return ("auto", *registry.available("engine"))


def ionize(
    structure: Annotated[Path | Structure, Option("solvated structure", positional=True)],
    topology: Annotated[Path | None, Option("file with charges and bonds (PSF, prmtop, TPR ...)", viewer=False)] = None,
    force_field: ForceField = "auto",
    water: Water = "auto",
    cell: CellOption = None,
    cation: Annotated[str, Option("positive ion, in any program's name (SOD, Na+, MG)", front=True)] = "SOD",
    anion: Annotated[str, Option("negative ion (CLA, Cl-)", front=True)] = "CLA",
    neutralize: Annotated[bool, Option("compensate the net charge", front=True)] = True,
    concentration: Annotated[float, Option("salt, on top of neutralising ions", unit="mol/L", low=0, high=10,
        front=True)] = 0.0,
    count: Annotated[str, Option(
        "how salt is counted: add then neutralise, SLTCAP, SPLIT", choices=COUNT_METHODS)] = "add",
    count_existing: Annotated[bool, Option("ions that are there are part of the salt asked for")] = True,
    ions: Annotated[Mapping[str, int] | None, Option(
        "exactly these ions instead, such as SOD=11,CLA=2", metavar="NAME=N,...", parse=parse_list)] = None,
    site: Annotated[str, Option(
        "waters with the most favourable potential, or any", choices=SITE_METHODS)] = "potential",
    from_solute: Annotated[float, Option("least distance to solute atoms", unit="A", low=0, high=1000)] = 5.0,
    between: Annotated[float, Option("least distance between ions", unit="A", low=0, high=1000)] = 5.0,
    seed: Annotated[int | None, Option("of random sites; chosen and reported when not given", low=0)] = None,
    refine: Annotated[bool, Option("ions move to better free sites when all are placed")] = True,
    keep: Annotated[str | None, Option("waters that must stay, as a selection", metavar="CID")] = None,
    naming: Annotated[str, Option(
        "whose ion names are written; auto is the input's convention",
        choices=CONVENTIONS)] = "auto",
    parameters: Annotated[tuple[Path, ...], Option(
        "Lennard-Jones of ions that the prmtop of the input lacks, to write one: Amber's frcmod, OpenMM's .xml, "
        "CHARMM's .prm, a prmtop that has them", metavar="FILE", viewer=False)] = (),
    temperature: Annotated[float, Option("for energies in kT", unit="K", above=0, high=1e6)] = DEFAULT_TEMPERATURE,
    dielectric: Annotated[float, Option("relative permittivity for energies", above=0, high=1e6)] = 1.0,
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
    move of a single ion gains. All keep their distances to every solute atom, ion and image, and the energies
    told are those at the end. All files are written together, or none.

    Raises
    ------
    UsageError
        For options that do not fit together or do not hold.
    InputError
        For a structure without charges or waters.
    NoRoomError
        When the sites run out.
    """
    from vmdpotential.io import can_be_written

    from_file = not isinstance(structure, Structure)
    paths = [*output, *([table] if table is not None else [])]
    if from_file and not paths and not dry_run:
        raise UsageError("output", "a file for the result is needed",
                         "give one, such as ions.pdb, or {dry_run} to see the sites only")
    names = files.named(output, format, can_be_written)
    files.check(paths, force)
    system, charges = _prepare(structure, topology, cell, force_field, water, names, parameters)
    placement = place_ions(
        system, cation=cation, anion=anion, neutralize=neutralize, concentration=concentration, count=count,
        count_existing=count_existing, ions=ions, site=site, from_solute=from_solute, between=between, seed=seed,
        refine=refine, keep=keep, naming=naming, temperature=temperature, dielectric=dielectric, engine=engine,
    )
    if system.cell is None:
        log.warning("%s: has no periodic cell, so ions see no images and may come close to some; {cell} gives it one",
                    system.sources[0] if system.sources else "structure")
    written = [] if dry_run else [str(path) for path in paths]
    if written:
        _write(placement, output, table, force, names)
    where = f"{boundary_text(system.cell)}, Ewald's sum" if system.cell else boundary_text(None)
    lines = [str(charges), where, *placement.lines, *(f"wrote {name}" for name in written)]
    data = {
        **charges.data, "boundary": "open" if system.cell is None else "periodic",
        "cell": None if system.cell is None else list(system.cell.parameters),
        **placement.data, "dry_run": dry_run, "files": written,
    }
    return Report(lines, data, {"placement": placement, "structure": placement.structure})


def _prepare(
    structure: Path | Structure, topology: Path | None, cell: Cell | None, force_field: str, water: str,
    outputs: Sequence[Path], parameters: Sequence[Path],
) -> tuple[Structure, ChargeReport]:
    """Return the structure with charges and where they are from, and refuse outputs it cannot be written to."""
    from vmdpotential.io import check_formats
    from vmdpotential.io.ion_parameters import attached

    system, report = charges_and_report(read(structure, topology, cell), force_field, water)
    check_formats(system, outputs)
    return attached(system, parameters, outputs), report


def _write(
    placement: Placement, outputs: Sequence[Path], table: Path | None, force: bool, names: Sequence[Path]
) -> None:
    """Write structures and table, all or none."""
    from vmdpotential.io import write_structures

    tables = {} if table is None else {table: lambda path: _write_table(placement, path)}
    write_structures(placement.structure, outputs, force, tables, names)


def _write_table(placement: Placement, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(PlacedIon.COLUMNS)
        writer.writerows(ion.row for ion in placement.ions)


command = Command.of(ionize)
