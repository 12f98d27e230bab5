"""Options that several commands have, one declaration for all, and the structure that they mean."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from vmdpotential.errors import BackendError, ChargeError, IncompleteError, UsageError, VmdpotentialError
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files.cellfile import parse_cell, with_cell
from vmdpotential.io.files.several import frame_chosen
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.given import ResidueCharges
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.templates import FORCE_FIELDS
from vmdpotential.molecule.water import CHOICES
from vmdpotential.parameters import Option
from vmdpotential.units import BOHR, DEFAULT_TEMPERATURE, POTENTIAL_UNITS, coulomb_constant

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from vmdpotential.io.trajectories.frames import Frames

ForceField = Annotated[str, Option(
    "templates for charges that no topology gives; auto decides by the names of the whole structure",
    choices=("auto", *FORCE_FIELDS))]
Water = Annotated[str, Option(
    "model of waters that no topology gives charges; auto by their name and sites", choices=CHOICES)]
CellOption = Annotated[Cell | None, Option(
    "periodic cell instead of the file's: lengths, or these and angles, or an XSC file", unit="A, degrees",
    metavar="A,B,C[,AL,BE,GA]|XSC", parse=parse_cell)]
Screened = Annotated[float | None, Option(
    "potential in water with this much of a 1:1 salt, which screens it (Debye and Hueckel), such as 0.15; in vacuum "
    "unless given", unit="M", low=0, high=10, metavar="SALT", front=True)]
Charges = Annotated[tuple[Path, ...], Option(
    "charges of residues that no template knows (ligands), by the names of residues and atoms: .itp, OpenMM's .xml, a "
    "table residue,atom,charge, or .mol2 and .sdf, which also say where hydrogens are missing; or of all atoms, by "
    "their order: OpenMM's System (.xml)",
    metavar="FILE")]
Index = Annotated[Path | None, Option(
    "index file of GROMACS; its groups are selections: group NAME, or group \"A NAME\"", viewer=False,
    metavar="FILE.ndx")]
Prepare = Annotated[str, Option(
    "whether missing hydrogens and atoms are added, with protonation states and charges, where a structure lacks some: "
    "auto, or never to refuse it", choices=("auto", "never"))]
Ph = Annotated[float, Option("pH that determines the protonation states of added hydrogens", low=-2, high=16)]
Pka = Annotated[str, Option(
    "source of the pKa values of added hydrogens: model compounds, or PROPKA, which computes them for this structure",
    choices=("model", "propka"))]
Assembly = Annotated[str, Option(
    "biological assembly to build from the file's operators, such as 1", viewer=False, metavar="NAME")]
Expand = Annotated[str, Option(
    "whether the asymmetric unit of a crystal is expanded to its whole cell by the space group's operators",
    choices=("no", "cell"), viewer=False)]
Workers = Annotated[int, Option(
    "number of processes on this machine that compute blocks of frames; 0 computes in this one", viewer=False,
    low=0, high=4096)]
Resume = Annotated[bool, Option("go on after a run that was stopped, with the blocks it left", viewer=False)]
Partial = Annotated[bool, Option("write what is done when the run is stopped", viewer=False)]
UnitOfFile = Annotated[str | None, Option(
    "unit of maps whose files state none, such as cubes of other programs", choices=(*POTENTIAL_UNITS, "hartree/e"),
    viewer=False)]
Scheduler = Annotated[str, Option(
    "address of a Dask scheduler whose workers compute blocks of frames; without TLS, everybody who can connect to a "
    "Dask cluster can run code on it as you", viewer=False, metavar="ADDRESS")]


def with_unit(grid: Grid, unit: str | None) -> Grid:
    """Return a map in a unit of potentials, where its file states none: one in hartree/e becomes one in V."""
    if unit is None or grid.unit:
        return grid
    if unit == "hartree/e":
        return replace(grid.with_values(grid.values * (coulomb_constant("V") / BOHR)), unit="V")
    temperature = grid.temperature or (DEFAULT_TEMPERATURE if unit.startswith("kT") else None)
    return replace(grid, unit=unit, temperature=temperature)


def read(structure: Path | Structure, topology: Path | None, cell: Cell | None = None,
         index: Path | None = None, trajectory: Path | Frames | None = None, frame: int | None = None) -> Structure:
    """Return the structure of a file, or one that a viewer gave, with the cell and the groups that a user gave.

    Of a topology without coordinates, those of the first frame of a trajectory are taken. Where a `frame` is chosen,
    :func:`at_frame` follows, and no warning says that the first one is used.

    Raises
    ------
    UsageError
        For a topology beside a viewer's structure.
    InputError
        When a file cannot be read.
    """
    from vmdpotential.io import read_first_frame, read_structure

    if not isinstance(structure, Structure):
        first = None
        if topology is None and isinstance(trajectory, Path):
            first = read_first_frame(structure, trajectory)
        with contextlib.nullcontext() if frame is None else frame_chosen():
            structure = first or read_structure(structure, topology=topology)
    elif topology is not None:
        raise UsageError("topology", "is for structures read from a file")
    if index is not None:
        from vmdpotential.io.files.ndx import read_groups

        structure = replace(structure, groups=read_groups(index, len(structure)))
    return with_cell(structure, cell)


def copies(structure: Structure, source: Path | Structure, assembly: str = "", expand: str = "no") -> Structure:
    """Return the biological assembly, or the whole cell of a crystal, of a structure that was read from a file.

    Raises
    ------
    UsageError
        For both, or an assembly of a viewer's structure, or one that the file does not have.
    InputError
        For a structure without a cell and a space group, or with a topology.
    """
    if not assembly and expand == "no":
        return structure
    from vmdpotential.io.structures.symmetry import assembled, expanded

    if assembly and expand != "no":
        raise UsageError("assembly", "cannot be combined with {expand}", value=assembly)
    if not assembly:
        return expanded(structure)
    if isinstance(source, Structure):
        raise UsageError("assembly", "needs a file, which lists the operators", value=assembly)
    return assembled(structure, source, assembly)


def residue_charges(paths: Sequence[Path]) -> list[ResidueCharges]:
    """Return the charges of residues in files."""
    from vmdpotential.io.topologies.residue_charges import read_residue_charges

    return [residue for path in paths for residue in read_residue_charges(path)]


def charged(structure: Structure, force_field: str, water: str, charges: Sequence[Path] = (),
            atoms: Sequence[str] = (), parameter: str = "atoms", prepare: str = "never",
            ph: float = 7.0, pka: str = "model") -> tuple[Structure, ChargeReport]:
    """Return a structure with charges, and where they are from; completed where atoms are missing.

    Parameters
    ----------
    structure, force_field, water
    charges : sequence of Path
        Files of charges of some residues, or one with OpenMM's System, for all atoms.
    atoms : sequence of str
        Selections of the atoms that count; the others may be without charges. All count unless given.
    parameter : str
        What these were given as.
    prepare : str
        ``auto`` to add missing atoms, ``never`` to refuse such a structure.
    ph, pka
        Of the protonation states, see :func:`~vmdpotential.prepare.preparation.prepare_structure`.

    Raises
    ------
    ChargeError
        When an atom that counts has no charge.
    InputError
        When the periodic cell is too small for the atoms.
    TaskError
        When atoms are missing and cannot be added.
    UsageError
        For a System beside other files, or charges of atoms that have some.
    """
    from vmdpotential.io.topologies import openmm_system
    from vmdpotential.molecule.charges import charges_and_report
    from vmdpotential.molecule.overlaps import check_overlaps
    from vmdpotential.molecule.selection import select

    check_overlaps(structure)
    system = next((path for path in charges if openmm_system.is_system(path)), None)
    if system is not None:
        if len(charges) > 1:
            raise UsageError("charges", "are of all atoms, and other files go with none", "give this one alone",
                             value=str(system))
        structure, charges = openmm_system.with_charges(structure, system), ()
    given = residue_charges(charges)
    try:
        return charges_and_report(structure, force_field, water, given)
    except ChargeError as error:
        first = error
    try:
        needed = np.zeros(len(structure), bool)
        for text in atoms:
            needed |= select(structure, text, parameter)
        if not atoms or needed.all():
            raise first
        return charges_and_report(structure, force_field, water, given, needed)
    except IncompleteError as error:
        if prepare == "never" or structure.topology is not None:
            raise
        return completed(structure, error, force_field=force_field, water=water, charges=given, ph=ph, pka=pka)


def hydrogenated(structure: Structure, prepare: str, ph: float, pka: str) -> Structure:
    """Return a structure with the atoms that it lacks where they can be added, for what needs no charges (surfaces)."""
    if prepare == "never" or structure.charges is not None or structure.topology is not None:
        return structure
    try:
        return charged(structure, "auto", "auto", prepare=prepare, ph=ph, pka=pka)[0]
    except VmdpotentialError as error:
        log.warning("%s: is used without the atoms that it lacks (%s)", structure.where, error.text[:200])
        return structure


def completed(structure: Structure, error: IncompleteError, **options: Any) -> tuple[Structure, ChargeReport]:
    """Return a structure with the atoms that it lacks, or that part of it which was selected, and its charges.

    Raises
    ------
    TaskError
        When that cannot be done.
    ChargeError
        When the packages for it are not installed: the error that there was, which then names them.
    """
    from vmdpotential.prepare.preparation import prepare_structure

    whole = structure.whole or structure
    try:
        made = prepare_structure(whole, **options)
    except BackendError as missing:
        error.cure = f"{missing.cure} to have them added; or {error.cure}"
        raise error from None
    result, report = made.structure, replace(made.charges, prepared=made.summary())
    if structure.whole_rows is not None and result.origins is not None:
        result = result.part(np.isin(result.origins, structure.whole_rows))
        report = replace(report, net_charge=result.net_charge)
    return result, report


def at_frame(structure: Structure, source: Path | Structure, trajectory: Path | None, frame: int | None,
             cell: Cell | None) -> Structure:
    """Return a structure at a frame of a trajectory, or of its own file, with the frame's cell unless a user gave one.

    Raises
    ------
    UsageError
        For a frame of a viewer's structure.
    InputError
        When the frames cannot be read or are of other atoms, or there is none of this number.
    """
    from vmdpotential.io.trajectories.frames import Trajectory

    if trajectory is None and frame is None:
        return structure
    path = trajectory or source
    if isinstance(path, Structure):
        raise UsageError("frame", "is of a file", "give {trajectory}")
    number = frame or 0
    found = next(iter(Trajectory(path, len(structure), slice(number, number + 1 or None))))
    return replace(structure, positions=found.positions, cell=cell or found.cell or structure.cell,
                   sources=(*structure.sources, f"{path} frame {found.number}"))


def parse_smear(text: str) -> float:
    """Return a standard deviation in A, for ``2.83`` or, by its Ewald factor, ``0.25/A``.

    Raises
    ------
    ValueError
    """
    from vmdpotential.interactions.gaussian import ewald_factor

    number, slash, unit = text.partition("/")
    try:
        value = float(number)
    except ValueError:
        value = np.nan
    if not (value >= 0 and unit.strip() == ("A" if slash else "") and (value > 0 or not slash)):
        raise ValueError("a distance in A is needed, or an Ewald factor with its unit, such as 0.25/A")
    return ewald_factor(value) if slash else value
