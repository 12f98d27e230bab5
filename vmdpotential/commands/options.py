"""Options that several commands have, one declaration for all, and the structure that they mean."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from vmdpotential.errors import BackendError, ChargeError, IncompleteError, UsageError, VmdpotentialError
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import parse_cell, with_cell
from vmdpotential.io.files.several import frame_chosen
from vmdpotential.io.structures import symmetry
from vmdpotential.io.structures.symmetry import Copies
from vmdpotential.io.trajectories.frames import Change, Frames, Trajectory, are_models, changed, opened, parse_frames
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.given import ResidueCharges
from vmdpotential.molecule.selection import Selection
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.templates import FORCE_FIELDS
from vmdpotential.molecule.water import CHOICES
from vmdpotential.parameters import Option
from vmdpotential.results import Result, put_table
from vmdpotential.units import BOHR, DEFAULT_TEMPERATURE, POTENTIAL_UNITS, coulomb_constant

log = logging.getLogger(__name__)

ForceField = Annotated[str, Option(
    "templates for charges that no topology gives; auto decides by the names of the whole structure",
    choices=("auto", *FORCE_FIELDS))]
Water = Annotated[str, Option(
    "model of waters that no topology gives charges; auto by their name and sites", choices=CHOICES)]
CellOption = Annotated[Cell | None, Option(
    "periodic cell instead of the file's: lengths, or these and angles, or an XSC file", unit="A, degrees",
    metavar="A,B,C[,AL,BE,GA]|XSC", parse=parse_cell)]
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
    "biological assembly to build from the operators that the file lists, such as 1; of other atoms than the file's, "
    "with the file that lists them: entry.cif:1", metavar="[FILE:]NAME")]
Expand = Annotated[str, Option(
    "whether the asymmetric unit of a crystal is expanded to its whole cell by the space group's operators",
    choices=("no", "cell"))]
UnitOfFile = Annotated[str | None, Option(
    "unit of maps whose files state none, such as cubes of other programs", choices=(*POTENTIAL_UNITS, "hartree/e"),
    viewer=False)]
Like = Annotated[Path | None, Option(
    "map whose grid is used instead of spacing and padding", viewer=False, metavar="MAP")]
Format = Annotated[str, Option(
    "format of an output whose name has no suffix (-, a pipe): dx, npz, pdb ...", viewer=False, metavar="SUFFIX")]
FramesOption = Annotated[slice | None, Option(
    "which frames of the trajectory, counted from 0: begin, end (left out) and step", parse=parse_frames,
    metavar="B:E:S", viewer=False, front=True)]
Force = Annotated[bool, Option("replace files that exist", viewer=False)]


@dataclass(frozen=True, kw_only=True)
class CopyOptions:
    """Whether a structure stands for a biological assembly, or for the whole cell of its crystal."""

    assembly: Assembly = ""
    expand: Expand = "no"

    def copies(self, structure: Structure, source: Path | Structure) -> Copies | None:
        """Return what makes the copies of a structure that was read from a source, or None where none are asked for.

        Raises
        ------
        UsageError
            For both, or an assembly of a viewer's structure without its file, or one that the file does not have.
        InputError
            For a structure without a cell.
        """
        if not self.assembly and self.expand == "no":
            return None
        if self.assembly and self.expand != "no":
            raise UsageError("assembly", "cannot be combined with {expand}", value=self.assembly)
        if not self.assembly:
            return symmetry.crystal(structure)
        file, _, name = self.assembly.rpartition(":")
        if not file and isinstance(source, Structure):
            raise UsageError("assembly", "needs the file that lists its operators",
                             "put it before the name: {assembly entry.cif:1}", value=self.assembly)
        return symmetry.assembly(structure, Path(file) if isinstance(source, Structure) or file else source, name)


@dataclass(frozen=True, kw_only=True)
class Source(CopyOptions):
    """A structure: its file or a viewer's atoms, with the cell and groups that a user gives."""

    structure: Annotated[Path | Structure, Option(
        "structure file, or a topology where a trajectory has the coordinates", positional=True)]
    topology: Annotated[Path | None, Option(
        "file with bonds, charges and names of the structure's atoms (PSF, prmtop, TPR ...)", viewer=False)] = None
    cell: CellOption = None
    index: Index = None

    def read(self) -> Structure:
        """Return the structure, its assembly or cell, with its cell and groups; see :meth:`with_frames`."""
        return self.copied(read(self.structure, self.topology, self.cell, self.index))[0]

    def copied(self, structure: Structure) -> tuple[Structure, tuple[Change, ...]]:
        """Return the copies of a structure that was read, and what makes frames of them; itself where none are."""
        made = self.copies(structure, self.structure)
        return (structure, ()) if made is None else (made.of_structure(structure), (made,))

    def with_frames(self, trajectory: TrajectoryOptions, single: bool = False) -> tuple[Structure, Frames | None]:
        """Return the structure, its assembly or cell, and the frames of its atoms, if there are any.

        Of a topology without coordinates, the positions are those of the first frame.

        Raises
        ------
        UsageError
            For a topology in addition to a viewer's structure, or frames without a trajectory.
        InputError
            When a file cannot be read, or the trajectory is of other atoms.
        """
        trajectory.check()
        shown = read(self.structure, self.topology, self.cell, self.index, trajectory.trajectory)
        structure, changes = self.copied(shown)
        frames = trajectory.opened(shown, single)
        if changes and self.cell is not None:
            changes = (partial(_in_cell, self.cell), *changes)
        return structure, changed(frames, changes)


@dataclass(frozen=True, kw_only=True)
class TemplateOptions:
    """Where charges come from that no topology gives."""

    force_field: ForceField = "auto"
    water: Water = "auto"
    charges: Charges = ()


@dataclass(frozen=True, kw_only=True)
class ChargedSource(TemplateOptions, Source):
    """A structure with charges, and where they come from."""

    def charged(self, atoms: Sequence[Selection] = (), parameter: str = "atoms") -> tuple[Structure, ChargeReport]:
        """Return the structure with charges, and where they come from; see :func:`charged`."""
        return self.with_charges(self.read(), atoms, parameter)

    def with_charges(self, structure: Structure, atoms: Sequence[Selection] = (), parameter: str = "atoms",
                     whole: bool = True) -> tuple[Structure, ChargeReport]:
        """Return a structure that was read with charges; missing atoms may be added where it is the `whole` input."""
        return charged(structure, self.force_field, self.water, self.charges, atoms, parameter)

    def over(self, trajectory: TrajectoryOptions, atoms: Sequence[Selection] = (), parameter: str = "atoms",
             single: bool = False) -> tuple[Structure, ChargeReport, Frames | None]:
        """Return the structure with charges, where they come from, and the frames of its atoms, if there are any.

        Of a structure that was completed, added atoms of a frame are where they are next to those they belong to.
        """
        shown, frames = self.with_frames(trajectory, single)
        structure, report = self.with_charges(
            shown, atoms, parameter, trajectory.trajectory is None or are_models(trajectory.trajectory))
        if report.prepared:
            from vmdpotential.prepare.follow import Follower

            frames = changed(frames, (Follower(shown, structure),))
        return structure, report, frames


@dataclass(frozen=True, kw_only=True)
class CompleteSource(ChargedSource):
    """A structure with charges that is completed where atoms are missing."""

    prepare: Prepare = "auto"
    ph: Ph = 7.0
    pka: Pka = "model"

    def with_charges(self, structure: Structure, atoms: Sequence[Selection] = (), parameter: str = "atoms",
                     whole: bool = True) -> tuple[Structure, ChargeReport]:
        """Return a structure that was read with charges, completed where it is the `whole` input.

        Raises
        ------
        IncompleteError
            When atoms are missing and none may be added: to those of a simulation, whose frames have no others.
        """
        try:
            return charged(structure, self.force_field, self.water, self.charges, atoms, parameter,
                           self.prepare if whole else "never", self.ph, self.pka)
        except IncompleteError as error:
            if not whole and self.prepare != "never":
                error.cure = ("atoms are added to models of a PDB or mmCIF file, but not to frames of a simulation, "
                              f"which had its own: give its {{topology}}, or {error.cure}")
            raise


    def hydrogenated(self) -> tuple[Structure, str]:
        """Return the structure with the atoms that it lacks, and what was added, for what needs no charges (surfaces).

        Where they cannot be added, a warning says so.
        """
        structure = self.read()
        if self.prepare == "never" or structure.charges is not None or structure.topology is not None:
            return structure, ""
        try:
            made, report = self.with_charges(structure)
        except VmdpotentialError as error:
            log.warning("%s: is used without the atoms that it lacks (%s)", structure.where, error.text[:200])
            return structure, ""
        return made, report.prepared


@dataclass(frozen=True, kw_only=True)
class TrajectoryOptions:
    """Frames of the structure's atoms."""

    trajectory: Annotated[Path | Frames | None, Option(
        "frames of these atoms (XTC, TRR, DCD, NetCDF, PDB of several models ...); the structure's own positions "
        "unless given", positional=True, viewer=False)] = None
    frames: FramesOption = None

    def opened(self, structure: Structure, single: bool = False) -> Frames | None:
        """Return the frames, or None where there is no trajectory.

        Raises
        ------
        UsageError
            For frames without a trajectory.
        InputError
            When the trajectory cannot be read or is of other atoms.
        """
        self.check()
        return opened(self.trajectory, len(structure), self.frames, single)

    def check(self) -> None:
        """Refuse frames without a trajectory."""
        if self.trajectory is None and self.frames is not None:
            raise UsageError("frames", "are of a trajectory", "give its file after the structure's")


@dataclass(frozen=True, kw_only=True)
class TableOutput:
    """A table and a figure of it."""

    output: Annotated[Path | None, Option(
        "CSV file of the curves; - is standard output", short="o", viewer=False, written=True, suffix=".csv")] = None
    figure: Annotated[Path | None, Option(
        "figure of the curves: .png, .pdf or .svg", viewer=False, written=True)] = None
    force: Force = False

    @property
    def paths(self) -> list[Path]:
        """The files to write."""
        return [path for path in (self.output, self.figure) if path is not None]

    @property
    def draws(self) -> bool:
        """Whether a figure is needed: for its file, or to be shown where there are no files."""
        return self.figure is not None or self.output is None

    def check(self) -> None:
        """Refuse a figure of an unknown format, and files that exist or cannot be written."""
        from vmdpotential.figures.page import check_figure_format

        if self.figure is not None:
            check_figure_format(self.figure)
        files.check(self.paths, self.force)

    def write(self, result: Result, title: str, table: Callable[[Path], None] | None = None) -> None:
        """Write the table of a result, or another by a function that takes its path, and the figure; both or none."""
        from vmdpotential.figures.page import render

        with files.writing(self.paths, self.force) as places:
            if self.output is not None:
                (table or partial(put_table, result.table()))(places[0])
            if self.figure is not None and (drawn := result.draw()) is not None:
                places[-1].write_bytes(render(drawn, self.figure, title=title))


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


def _in_cell(cell: Cell, positions: Any, _: Cell | None) -> tuple[Any, Cell | None]:
    """Return the positions of a frame in the cell that a user gave."""
    return positions, cell


def residue_charges(paths: Sequence[Path]) -> list[ResidueCharges]:
    """Return the charges of residues in files."""
    from vmdpotential.io.topologies.residue_charges import read_residue_charges

    return [residue for path in paths for residue in read_residue_charges(path)]


def charged(structure: Structure, force_field: str, water: str, charges: Sequence[Path] = (),
            atoms: Sequence[Selection] = (), parameter: str = "atoms", prepare: str = "never",
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


def complete(structure: Structure, prepare: str, ph: float) -> tuple[Structure, list[str]]:
    """Return a structure with the atoms that it lacks, to be shown, and the line that says what was added, if anything.

    One that only has no charges is returned as it is, and so is one that cannot be completed, with a warning.
    """
    from vmdpotential.molecule.charges import charges_and_report

    if prepare == "never" or structure.charges is not None or structure.topology is not None:
        return structure, []
    try:
        charges_and_report(structure, "auto", "auto", [])
    except IncompleteError as error:
        try:
            made, report = completed(structure, error, force_field="auto", water="auto", charges=[], ph=ph)
        except VmdpotentialError as reason:
            log.warning("%s: is shown without the atoms that it lacks (%s)", structure.where, reason.text[:200])
        else:
            return made, [report.prepared]
    except ChargeError:
        pass
    return structure, []


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
    if trajectory is None and frame is None:
        return structure
    path = trajectory or source
    if isinstance(path, Structure):
        raise UsageError("frame", "is of a file", "give {trajectory}")
    number = frame or 0
    found = next(iter(Trajectory(path, len(structure), slice(number, number + 1 or None))))
    return replace(structure, positions=found.positions, cell=cell or found.cell or structure.cell,
                   sources=(*structure.sources, f"{path} frame {found.number}"))
