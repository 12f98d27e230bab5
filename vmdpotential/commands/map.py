"""The command ``map``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from vmdpotential import progress
from vmdpotential.commands.continuum import solvation_data, solvation_lines
from vmdpotential.commands.gridded import GridResult, lattice_like, stated_error, sum_entries
from vmdpotential.commands.options import Force, Format, LengthUnitInShell, Like, Source
from vmdpotential.commands.structures import at_frame, read_source
from vmdpotential.errors import UsageError, count_of
from vmdpotential.grid.stored import StoredGrid
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.io.trajectories.frames import are_models
from vmdpotential.maps import MapOptions, potential_map
from vmdpotential.maps.solute import MovedAtoms
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.selection import Selection
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option


@dataclass(frozen=True, kw_only=True)
class FrameSource(Source):
    """A structure with charges, at a frame of a trajectory or of its own file."""

    trajectory: Annotated[Path | None, Option(
        "trajectory that provides the coordinates of the structure's atoms", viewer=False, shell=True,
        heading="main options")] = None
    frame: Annotated[int | None, Option(
        "number of the frame of the trajectory, or of the model of the structure file, counted from 0, or from the end "
        "as -1, -2 ...; the first unless given",
        viewer=False, heading="trajectory")] = None
    length_unit: LengthUnitInShell = None

    def read(self) -> Structure:
        """Return the structure at its frame; if requested, expanded to its assembly or crystal cell."""
        structure = read_source(self.structure, self.topology, self.cell, self.index, self.trajectory, self.frame,
                         self.length_unit)
        structure = at_frame(structure, self.structure, self.trajectory, self.frame, self.cell, self.length_unit)
        return self.copied(structure)[0]

    def with_charges(self, structure: Structure, atoms: Sequence[Selection] = (), parameter: str = "atoms",
                     whole: bool = True) -> tuple[Structure, ChargeReport]:
        """Return a structure with charges; missing atoms may be added unless it is a frame of a simulation."""
        may_complete = self.trajectory is None or are_models(self.trajectory)
        return super().with_charges(structure, atoms, parameter, whole and may_complete)


@dataclass(frozen=True, kw_only=True)
class MapOutput:
    """Files of a map and its field."""

    output: Annotated[Path | None, Option(
        "map to write: .dx, .dx.gz, .mrc, .map, .ccp4, .cube, .npz or .zarr; - is standard output. Use .ccp4 "
        "for crystallography programs and gemmi, which ignore the origin of .mrc and .map files. A map larger than "
        "memory is written in slabs (.zarr, .mrc, .map or .ccp4)",
        short="o", viewer=False, written=True, suffix=".npz")] = None
    field: Annotated[Path | None, Option(
        "file of the electric field to write (V/A): one .npz, or in another map format three files, whose names end in "
        "_x, _y and _z", viewer=False, written=True, heading="output")] = None
    format: Format = ""
    force: Force = False


def map_(
    source: FrameSource,
    options: MapOptions = MapOptions(),
    like: Like = None,
    output: MapOutput = MapOutput(),
) -> Map:
    """Compute the electrostatic potential on a grid.

    In a periodic boundary the map covers the cell, and all images contribute. In an open boundary it covers the
    selected atoms and a margin. There is no cutoff: all charges contribute at each grid point, except with the method
    cutoff.

    Raises
    ------
    UsageError
        For options that do not fit together.
    InputError
        For a structure without charges, atoms or cell.
    MemoryPlanError
        When the map does not fit into memory.
    TaskError
        When the tolerance cannot be reached.
    """
    from vmdpotential.io.maps import MapWriters, check_map_format, is_map, open_map, put_map
    from vmdpotential.io.maps.field import field_paths, put_field
    from vmdpotential.io.maps.mapformat import check_finite

    path, field, force = output.output, output.field, output.force
    fields = [] if field is None else field_paths(field)
    paths = [*([] if path is None else [path]), *fields]
    names = files.named(paths, output.format, is_map)
    for name in names:
        check_map_format(name)
    files.check(paths, force, names)

    from vmdpotential.maps.interaction import implied_medium, in_medium, medium_of_sum
    from vmdpotential.maps.solute import as_computed, chosen_atoms, ions_of_solution

    shown = source.read()
    if not paths and isinstance(source.structure, Path):  # what is wrong with the structure is said first
        raise UsageError("output", "a file is needed for the map", "such as {output map.dx}")
    implied = "" if options.medium is not None else implied_medium(options, shown)[1]
    options = in_medium(options, shown)
    atoms = options.chosen
    structure, charge_report = source.with_charges(
        shown, [atoms, *([] if options.sources is None else [options.sources])])
    which = [*([] if path is None else [0]), *range(1, 1 + len(fields))]
    with MapWriters(paths, which, force, names) as writers, progress.clock() as clock:
        grid = potential_map(
            structure, options, field=field is not None, lattice=lattice_like(like),
            sink=writers if paths and writers.can_take(names) else None)
        if isinstance(grid, StoredGrid):
            writers.finish(grid)
    limits = (grid.extremes or (0.0, 0.0)) if isinstance(grid, StoredGrid) else None
    if isinstance(grid, StoredGrid):
        if path is not None:
            grid = open_map(path, 0)
    else:
        for name in names:
            check_map_format(name, grid.lattice)
            check_finite(name, grid.lattice, grid.values)
        with files.writing_files(paths, force, names) as places:  # all of them or none
            if path is not None:
                put_map(grid, places[0])
            if grid.field is not None:
                put_field(grid.field, places[-len(fields) :])
    structure, moved = as_computed(shown, structure, atoms, medium_of_sum(options))
    rows = chosen_atoms(structure, atoms, medium_of_sum(options))
    chosen = structure.known_charges[rows]
    return Map(
        charges=charge_report, grid=grid, structure=structure, moved=moved, options=options, implied=implied,
        seconds=clock.seconds, file=path,
        net_charge=charge_report.net_charge if str(atoms) == "all" else float(chosen.sum()), count=len(chosen),
        left_out=ions_of_solution(structure, atoms, rows), limits=limits, field_files=fields,
        cell=structure.cell if grid.provenance.boundary == "periodic" else None,
        solvation=None if grid.solvation is None else solvation_data(grid.solvation, structure), files=paths)


class Map(GridResult):
    """Potential map."""

    charges: ChargeReport
    options: MapOptions
    moved: MovedAtoms | None
    net_charge: float
    cell: Cell | None
    solvation: Mapping[str, Any] | None
    file: Path | None
    field_files: Sequence[Path]
    implied: str
    count: int
    left_out: str

    display_limit = cached_property(lambda self: None if self.file is None and isinstance(self.grid, StoredGrid)
                        else self.grid.display_limit())

    @property
    def mapped_atoms(self) -> Selection:
        """Selection of the atoms whose charges the map has."""
        return self.options.chosen

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            **self.charges.data, **sum_entries(self.grid), "error_field": self.grid.provenance.error_field,
            "error_field_away": self.grid.provenance.error_field_away, "temperature": self.options.temperature,
            "smear": self.options.smear, **({} if self.moved is None else self.moved.data),
            "net_charge": self.net_charge, "cell": None if self.cell is None else self.cell.parameters,
            "solvation": self.solvation, "file": self.file, "field_files": self.field_files,
            "display_limit": self.display_limit}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"moved": self.moved}

    def text(self) -> Iterator[str]:
        """Yield how the map was computed, its errors and its range."""
        from vmdpotential.engines import automatic_reason, get_engine
        from vmdpotential.interactions.gaussian import ewald_factor

        provenance, lattice, options = self.grid.provenance, self.grid.lattice, self.options
        yield str(self.charges)
        without = f", without {self.left_out}, which belong to the solution" if self.left_out else ""
        yield (f"medium {options.word}{self._because}: charges of {options.atoms}{without}: "
               f"{count_of(self.count, 'atom')}, net charge {round(self.net_charge, 3) + 0.0:g} e")
        on_mesh = (" on a mesh" if provenance.interaction.startswith("shifted") and provenance.tolerance is not None
                   else "")
        yield (f"method {provenance.method}{on_mesh}, {boundary_text(self.cell)}, {provenance.interaction}, "
               f"{provenance.precision} precision")
        has_background = self.cell is not None and provenance.interaction.startswith(("coulomb", "gaussian"))
        if has_background and abs(self.net_charge) > 1e-3:
            yield f"net charge {self.net_charge:.4g} e: a uniform neutralising background is included"
        if options.smear:
            yield (f"charges are Gaussians of {options.smear:.4g} A, an Ewald factor of "
                   f"{ewald_factor(options.smear):.4g}/A")
        yield (f"{self.points}, from ({', '.join(f'{x:.3f}' for x in lattice.origin)}) to "
               f"({', '.join(f'{x:.3f}' for x in lattice.last)}) A")
        yield from stated_error(self.grid)
        if self.grid.solvation is not None:
            yield from solvation_lines(self.grid.solvation, self.structure)
        low, high = self.extremes
        yield (f"at all grid points, also inside atoms: {low:.4g} to {high:.4g} {self.grid.unit} at "
               f"{options.temperature:g} K, {provenance.medium}")
        yield f"{self.seconds:.2f} s on the {provenance.engine} engine ({get_engine(options.engine).describe()})"
        # without PyCUDA, no GPU is expected, and the command `devices` gives the reason
        if options.engine == "auto" and automatic_reason() and find_spec("pycuda"):
            yield automatic_reason()


    @property
    def _because(self) -> str:
        """Words for the option that implies the medium."""
        if not self.implied:
            return ""
        return ", as there is no solute" if self.implied == "structure" else f", implied by the option {self.implied}"


command = Command.of(map_, "map", draws="surface", makes="potential", examples=(
    "map protein.pdb -o potential.dx",
    "map system.prmtop --trajectory trajectory.xtc --frame 1 --medium explicit --spacing 1 -o potential.npz",
))
