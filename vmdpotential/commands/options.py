"""Declarations of options that several commands share, and the structures that result from them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from vmdpotential import registry
from vmdpotential.commands.structures import read_source
from vmdpotential.errors import IncompleteError, UsageError, VmdpotentialError
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import parse_cell
from vmdpotential.io.files.text import format_suffix
from vmdpotential.io.structures import symmetry
from vmdpotential.io.structures.symmetry import SymmetryCopies
from vmdpotential.io.trajectories.frames import FrameChange, Frames, are_models, open_frames, parse_frames, with_changes
from vmdpotential.io.trajectories.lengths import LENGTH_UNITS
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.selection import Selection
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.templates import FORCE_FIELDS
from vmdpotential.molecule.water import WATER_CHOICES
from vmdpotential.parameters import Option, warn_unused
from vmdpotential.preparation.charged import charge_structure
from vmdpotential.results import Result, put_table
from vmdpotential.units import BOHR, DEFAULT_TEMPERATURE, POTENTIAL_UNITS, coulomb_constant

log = logging.getLogger(__name__)

ForceField = Annotated[str, Option(
    "force field whose residue templates give charges if no topology does; auto is the one that fits most atoms of the "
    "whole structure, then the one whose names the file has, then amber14 if atoms are added and else charmm36",
    choices=("auto", *FORCE_FIELDS), heading="structure and charges")]
Water = Annotated[str, Option(
    "water model whose charges are given to waters that have none; auto decides by residue name and number of sites",
    choices=WATER_CHOICES, heading="structure and charges")]
CellOption = Annotated[Cell | None, Option(
    "periodic cell that replaces that of the file: three lengths, or these and three angles, or an XSC file",
    unit="A, degrees", metavar="A,B,C[,AL,BE,GA]|XSC", parse=parse_cell, heading="structure and charges")]
Charges = Annotated[tuple[Path, ...], Option(
    "files with charges of residues without a template (ligands), matched by residue and atom names: .itp, an OpenMM "
    "force field (.xml), a table residue,atom,charge (.csv), or .mol2 and .sdf, which also define missing hydrogens; "
    "or an OpenMM System (.xml) with the charges of all atoms, in their order",
    metavar="FILE", heading="structure and charges")]
Index = Annotated[Path | None, Option(
    "GROMACS index file, whose groups can be selected: group NAME, or group \"A NAME\" if the name contains spaces",
    viewer=False, metavar="FILE.ndx", heading="structure and charges")]
Prepare = Annotated[str, Option(
    "auto adds missing hydrogens and heavy atoms, and assigns protonation states and charges; with never, missing "
    "atoms are an error", choices=("auto", "never"), heading="structure and charges")]
Ph = Annotated[float, Option(
    "pH that determines the protonation states of added hydrogens", low=-2, high=16, heading="structure and charges")]
Pka = Annotated[str, Option(
    "source of the pKa values that determine protonation: model compounds (model), or a calculation for this structure "
    "by PROPKA (propka) or the Poisson-Boltzmann equation (pb)",
    choices=partial(registry.available, "pka"), heading="structure and charges")]
Assembly = Annotated[str, Option(
    "biological assembly to build, such as 1, by the operators in the structure file; entry.cif:1 uses those in "
    "another file", metavar="[FILE:]NAME", heading="structure and charges", role="assembly")]
Expand = Annotated[str, Option(
    "cell expands the asymmetric unit of a crystal to its whole cell, by the operators of the space group",
    choices=("no", "cell"), heading="structure and charges", role="expansion")]
UnitOfFile = Annotated[str | None, Option(
    "unit of a map whose file states none, such as a cube file of another program",
    choices=(*POTENTIAL_UNITS, "hartree/e"), viewer=False, heading="output")]
Like = Annotated[Path | None, Option(
    "map whose grid is used instead of spacing and padding", viewer=False, metavar="MAP", heading="grid")]
LikeGrid = Annotated[Path | Grid | None, Option(
    "map whose grid is used instead of spacing and padding", metavar="MAP", heading="grid")]
Fit = Annotated[str, Option(
    "atoms to fit onto their positions in the structure: auto (protein and nucleic acids, else lipids), none, or a "
    "selection", metavar="auto|none|SEL", selection=True, words=("auto", "none"), heading="trajectory")]
FramesFile = Annotated[Path | Frames, Option(
    "trajectory of the structure's atoms: XTC, TRR, DCD, NetCDF, H5MD, PDB with several models ...",
    positional=True, viewer=False)]
Format = Annotated[str, Option(
    "format of an output whose name has no suffix (-, a pipe): dx, npz, pdb ...", viewer=False, metavar="SUFFIX",
    heading="output")]
FramesOption = Annotated[slice | None, Option(
    "frames to use, counted from 0, as begin:end:step without the frame end itself; all unless given",
    parse=parse_frames, metavar="B:E:S", viewer=False, front=True, role="frames")]
_length_unit = Option("unit of lengths in a trajectory whose file states none (H5MD, NetCDF, LAMMPS, GSD)",
                      choices=tuple(LENGTH_UNITS), viewer=False, heading="trajectory")
LengthUnit = Annotated[str | None, _length_unit]
#: Where no viewer offers the trajectory, either.
LengthUnitInShell = Annotated[str | None, replace(_length_unit, shell=True)]
Force = Annotated[bool, Option("replace files that exist", viewer=False, heading="output", role="overwriting")]


def copies_of(structure: Structure, source: Path | Structure, assembly: str, expand: str) -> SymmetryCopies | None:
    """Return the copies of a structure that was read from a source, or None if none are requested.

    Raises
    ------
    UsageError
        For an assembly together with a crystal cell, an assembly of a viewer's structure without its file, or one that
        the file does not list.
    InputError
        For the expansion of a structure without a cell.
    """
    if not assembly and expand == "no":
        return None
    if assembly and expand != "no":
        raise UsageError("assembly", "a biological assembly and the cell of a crystal cannot both be built",
                         "leave out {expand}", value=assembly)
    if not assembly:
        return symmetry.crystal(structure)
    file, _, name = assembly.rpartition(":")
    if not file and isinstance(source, Structure):
        raise UsageError("assembly", "the file that lists its operators is needed",
                         "put it before the name: {assembly entry.cif:1}", value=assembly)
    return symmetry.assembly(structure, Path(file) if isinstance(source, Structure) or file else source, name)


#: Fields of a :class:`Source` for the charges, and for the atoms that are added; commands without them leave them out.
CHARGE_FIELDS = ("force_field", "water", "charges")
PREPARE_FIELDS = ("prepare", "ph", "pka")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A structure: its file or a viewer's atoms, with the cell, groups and charges that a user gives.

    A command that needs less leaves out fields, e.g. ``Annotated[Source, Without(*CHARGE_FIELDS)]``.
    """

    structure: Annotated[Path | Structure, Option(
        "structure file, or a topology if a trajectory provides the coordinates", positional=True)]
    topology: Annotated[Path | None, Option(
        "file with bonds, charges and names of the structure's atoms (PSF, prmtop, TPR ...)", viewer=False,
        heading="structure and charges", role="topology")] = None
    cell: CellOption = None
    index: Index = None
    assembly: Assembly = ""
    expand: Expand = "no"
    force_field: ForceField = "auto"
    water: Water = "auto"
    charges: Charges = ()
    prepare: Prepare = "auto"
    ph: Ph = 7.0
    pka: Pka = "model"

    def read(self) -> Structure:
        """Return the structure, expanded to its assembly or crystal cell, with the user's cell and groups."""
        return self.copied(read_source(self.structure, self.topology, self.cell, self.index))[0]

    def copied(self, structure: Structure) -> tuple[Structure, tuple[FrameChange, ...]]:
        """Return a structure expanded to its assembly or crystal cell, and the functions that expand frames alike.

        If no copies are requested, these are the structure itself and no functions.
        """
        copies = copies_of(structure, self.structure, self.assembly, self.expand)
        return (structure, ()) if copies is None else (copies.of_structure(structure), (copies,))

    def with_frames(self, trajectory: TrajectoryOptions, single: bool = False) -> tuple[Structure, Frames | None]:
        """Return the structure, expanded to its assembly or crystal cell, and the frames of its atoms, if any.

        A topology without coordinates gets the positions of the first frame.

        Raises
        ------
        UsageError
            For a topology in addition to a viewer's structure, or frames without a trajectory.
        InputError
            When a file cannot be read, or the trajectory has other atoms.
        """
        trajectory.check()
        shown = read_source(self.structure, self.topology, self.cell, self.index, trajectory.trajectory,
                     length_unit=trajectory.length_unit)
        structure, changes = self.copied(shown)
        frames = trajectory.opened(shown, single)
        if changes and self.cell is not None:
            changes = (partial(_in_cell, self.cell), *changes)
        return structure, with_changes(frames, changes)

    def charged(self, atoms: Sequence[Selection] = (), parameter: str = "atoms") -> tuple[Structure, ChargeReport]:
        """Return the structure with charges, and a report of their sources; see :func:`charge_structure`."""
        return self.with_charges(self.read(), atoms, parameter)

    def charge_files(self, structure: Structure) -> Charges:
        """Return the files of charges; for a MOL2 file without any, that is also read as one, itself as well."""
        path = self.structure
        bare = isinstance(path, Path) and format_suffix(path) == ".mol2" and structure.charges is None
        return (*self.charges, path) if bare and isinstance(path, Path) else self.charges

    def with_frames_of(self, trajectory: TrajectoryOptions,
                       atoms: Sequence[Selection] | Callable[[Structure], Sequence[Selection]] = (),
                       parameter: str = "atoms", single: bool = False,
                       ) -> tuple[Structure, ChargeReport, Frames | None]:
        """Return the structure with charges, a report of their sources, and the frames of its atoms, if any.

        The selections of atoms may depend on the structure as it is in its file.
        If atoms were added to the structure, they are placed in every frame relative to the atoms next to them.
        """
        shown, frames = self.with_frames(trajectory, single)
        structure, report = self.with_charges(
            shown, atoms(shown) if callable(atoms) else atoms, parameter,
            trajectory.trajectory is None or are_models(trajectory.trajectory))
        if report.prepared and frames is not None:
            from vmdpotential.preparation.follow import Follower

            frames = with_changes(frames, (Follower(shown, structure),))
        return structure, report, frames

    def with_charges(self, structure: Structure, atoms: Sequence[Selection] = (), parameter: str = "atoms",
                     whole: bool = True) -> tuple[Structure, ChargeReport]:
        """Return a structure with charges, and a report of their sources; missing atoms are added to the `whole` input.

        Raises
        ------
        IncompleteError
            When atoms are missing and may not be added, as to frames of a simulation, which had its own.
        """
        try:
            made, report = charge_structure(structure, self.force_field, self.water, self.charge_files(structure),
                                            atoms, parameter, self.prepare if whole else "never", self.ph, self.pka)
        except IncompleteError as error:
            if not whole and self.prepare != "never":
                error.hint = ("atoms are added to models of a PDB or mmCIF file, but not to frames of a simulation, "
                              f"which had its own: give its {{topology}}, or {error.hint}")
            raise
        if not report.prepared:
            warn_unused(("ph", "pka"), "no atoms had to be added")
        return made, report

    def hydrogenated(self) -> tuple[Structure, str]:
        """Return the structure with missing atoms added, and a text that lists these, for uses that need no charges.

        If they cannot be added, the structure is returned as it is, with a warning.
        """
        structure = self.read()
        if self.prepare == "never" or structure.charges is not None or structure.topology is not None:
            return structure, ""
        try:
            completed, report = self.with_charges(structure)
        except VmdpotentialError as error:
            log.warning("%s: is used without its missing atoms (%s)", structure.where, error.text[:200])
            return structure, ""
        return completed, report.prepared


@dataclass(frozen=True, kw_only=True)
class TrajectoryOptions:
    """Frames of the structure's atoms."""

    trajectory: Annotated[Path | Frames | None, Option(
        "frames of these atoms (XTC, TRR, DCD, NetCDF ...), or a file of several models, such as the structure's own "
        "file again; the structure's own positions unless given", positional=True, viewer=False)] = None
    frames: FramesOption = None
    length_unit: LengthUnit = None

    def opened(self, structure: Structure, single: bool = False) -> Frames | None:
        """Return the frames, or None if there is no trajectory.

        Raises
        ------
        UsageError
            For frames, or a unit, without a trajectory.
        InputError
            When the trajectory cannot be read or has other atoms.
        """
        from vmdpotential.io.trajectories.atom_order import check_order

        self.check()
        if isinstance(self.trajectory, Path):
            check_order(self.trajectory, structure)
        return open_frames(self.trajectory, len(structure), self.frames, single, self.length_unit)

    def check(self) -> None:
        """Raise UsageError for frames, or a unit, without a trajectory."""
        if self.trajectory is None and self.frames is not None:
            raise UsageError("frames", "a trajectory is needed", "give its file after the structure's")
        if not isinstance(self.trajectory, Path) and self.length_unit is not None:
            raise UsageError("length_unit", "the file of a trajectory is needed", "give it after the structure's",
                             value=self.length_unit)


@dataclass(frozen=True, kw_only=True)
class TableOutput:
    """Files of a table, and of a figure of it."""

    output: Annotated[Path | None, Option(
        "CSV file of the curves; - is standard output", short="o", viewer=False, written=True, suffix=".csv")] = None
    figure: Annotated[Path | None, Option(
        "figure of the curves: .png, .pdf or .svg", viewer=False, written=True, heading="main options")] = None
    force: Force = False

    @property
    def paths(self) -> list[Path]:
        """Files to write."""
        return [path for path in (self.output, self.figure) if path is not None]

    @property
    def draws(self) -> bool:
        """Whether a figure is needed: for its file, or to be shown if no file is written."""
        return self.figure is not None or self.output is None

    def check(self) -> None:
        """Raise an error for a figure of an unknown format, and for files that exist or cannot be written."""
        from vmdpotential.figures.page import check_figure_format

        if self.figure is not None:
            check_figure_format(self.figure)
        files.check(self.paths, self.force)

    def write(self, result: Result, title: str, table: Callable[[Path], None] | None = None) -> None:
        """Write the table of a result (by the function `table`, if given) and the figure: both or none."""
        from vmdpotential.figures.page import render_figure

        with files.writing_files(self.paths, self.force) as places:
            if self.output is not None:
                (table or partial(put_table, result.table()))(places[0])
            if self.figure is not None and (drawn := result.draw()) is not None:
                places[-1].write_bytes(render_figure(drawn, self.figure, title=title))


def names_of(maps: Sequence[Path | Grid], grids: Sequence[Grid]) -> list[str]:
    """Return the titles of maps in figures: their states (pH, frame) if all differ; else names of files, or numbers."""
    from vmdpotential.io.maps import map_name

    states = [grid.provenance.state for grid in grids]
    if len(grids) > 1 and all(states) and len(set(states)) == len(states):
        return states
    return [map_name(item) if isinstance(item, Path) else f"map {n}" for n, item in enumerate(maps, 1)]


def check_are_maps(parameter: str, maps: Sequence[Path | Grid], hint: str) -> None:
    """Make sure that no file of maps is a structure, as where a shell expands a pattern to several structures.

    Raises
    ------
    UsageError
    """
    from vmdpotential.io.files.recognise import is_structure

    for path in maps:
        if isinstance(path, Path) and is_structure(path):
            raise UsageError(parameter, f"{path} is a structure, and a map is needed", hint)


def read_maps(maps: Sequence[Path | Grid], unit: str | None) -> list[Grid]:
    """Return maps, with this unit where they state none; values in hartree/e are converted to V.

    Raises
    ------
    UsageError
        When all maps state their unit, and that of one differs.
    """
    from vmdpotential.io.maps import read_map

    grids = [read_map(item) if isinstance(item, Path) else item for item in maps]
    others = [(item, grid.unit) for item, grid in zip(maps, grids, strict=True) if grid.unit != unit]
    if unit is not None and others and all(grid.unit for grid in grids):
        item, other = others[0]
        name = item if isinstance(item, Path) else "the map"
        raise UsageError("unit_of_file", f"{name} states its own unit, {other}",
                         "leave out {unit_of_file}, which is for maps that state none", value=unit)
    return [_with_unit(grid, unit) for grid in grids]


def _with_unit(grid: Grid, unit: str | None) -> Grid:
    if unit is None or grid.unit:
        return grid
    if unit == "hartree/e":
        return replace(grid.with_values(grid.values * (coulomb_constant("V") / BOHR)), unit="V")
    temperature = grid.temperature or (DEFAULT_TEMPERATURE if unit.startswith("kT") else None)
    return replace(grid, unit=unit, temperature=temperature)


def _in_cell(cell: Cell, positions: Any, _: Cell | None) -> tuple[Any, Cell | None]:
    """Return the positions of a frame, with the user's cell instead of the frame's."""
    return positions, cell
