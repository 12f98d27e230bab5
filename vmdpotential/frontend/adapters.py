"""Common code of the adapters for viewers whose Python runs this package; adapters only convert the viewer's data."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vmdpotential import io, registry
from vmdpotential.errors import BackendError, InputError, UsageError
from vmdpotential.figures import colours
from vmdpotential.figures.colours import ValueRange
from vmdpotential.frontend.child import TclWord
from vmdpotential.frontend.declarations import parameter_kind, takes_data
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.structures.pdb import cell_of as cell_of_file
from vmdpotential.maps import Medium
from vmdpotential.maps.solute import chosen_atoms
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.selection import SELECTION_WORDS, ResolvedSelection, Selection, names_present, select
from vmdpotential.parameters import Command, OptionRole, Parameter, Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vmdpotential.io.structures.symmetry import SymmetryCopies
    from vmdpotential.io.trajectories.frames import FrameChange, LoadedFrames
    from vmdpotential.molecule.structure import Structure
    from vmdpotential.surfaces import Surface


log = logging.getLogger(__name__)

#: Numbers of the colours of VMD's scale, and of its grey.
SCALE, GREY = range(33, 1057), 2

#: Distance, A, that atoms of different molecules cannot have; nearer ones are e.g. of several poses or models.
OVERLAP = 0.5


#: Range of distances from the nearest atom, A, in which lattice points are taken for points of a molecule's surface,
#: and about how many points of the lattice are examined.
NEXT_TO, LOOKED = (1.8, 3.5), 50_000

#: Distance from the nearest atom, A, within which a molecular surface and the places of its colours are.
BESIDE = 5.0

#: Help of `frames` in a viewer for commands with an optional and with a required trajectory.
_FRAMES = ("loaded frames to use, counted from 0: begin:end:step (end left out), or : for all; default: the frame on "
           "screen",
           "loaded frames to use, counted from 0: begin:end:step (end left out); all unless given")


def object_role(parameter: Parameter | None) -> str:
    """Return ``structure`` or ``map`` for a parameter that a viewer has objects for, else an empty string."""
    result = "" if parameter is None else parameter_kind(parameter)
    return result if result in ("structure", "map") else ""


def viewer_commands(warn: Callable[[str], None]) -> Iterator[Command]:
    """Yield every registered command that takes atoms or maps; commands that cannot be loaded give a warning."""
    for name in registry.available("command"):
        try:
            command: Command = registry.get("command", name)
        except Exception as error:  # modules of other packages may raise anything on import
            warn(f"vmdpotential: the command '{name}' is left out: {error}")
            continue
        if takes_data(command):
            yield command


def offered_parameters(command: Command) -> list[Parameter]:
    """Return the parameters that a viewer offers; required structures and maps come first."""
    chosen = [
        p for p in command.parameters
        if p.option.viewer or p.required or is_topology(command, p) or (
            p.option.role == "overwriting" and to_file(command))
    ]
    if (trajectory := trajectory_of(command)) is not None:
        chosen = [p for p in chosen if p.option.role != "frames" and p is not trajectory]
        frames = parameter_with(command, "frames")
        chosen.append(replace(frames, option=replace(frames.option, help=_FRAMES[trajectory.required])))
    return sorted(chosen, key=lambda p: not (object_role(p) and p.required))


def parameter_with(command: Command, role: OptionRole) -> Parameter:
    """Return the parameter of a command that has a role."""
    return next(p for p in command.parameters if p.option.role == role)


def is_copying(parameter: Parameter) -> bool:
    """Return whether a parameter requests copies of the structure, which an adapter makes when it reads the atoms."""
    return parameter.option.role in ("assembly", "expansion")


def trajectory_of(command: Command) -> Parameter | None:
    """Return the parameter of a command that takes frames, or None."""
    return next((p for p in command.parameters if parameter_kind(p) == "trajectory"), None)


def with_frames(command: Command, values: dict[str, Any], read: Callable[[], LoadedFrames],
                changes: Sequence[FrameChange] = ()) -> None:
    """Add the frames that a viewer has loaded to a command's values, if they are requested or required.

    Parameters
    ----------
    command : Command
    values : dict
        Values by the names of parameters; `frames`, as it was typed, selects frames.
    read : function
        Reads all frames.
    changes : sequence of function
        Functions that expand frames if the structure consists of copies.
    """
    trajectory = trajectory_of(command)
    if trajectory is None:
        return
    frames = parameter_with(command, "frames")
    if not (trajectory.required or frames.name in values):
        return
    chosen = frames.convert(values.pop(frames.name)) if frames.name in values else slice(None)
    values[trajectory.name] = replace(read(), frames=chosen, changes=tuple(changes))


def is_topology(command: Command, parameter: Parameter) -> bool:
    """Return whether a parameter is the topology of the viewer's atoms.

    The adapter reads that file, because commands accept a topology only with a structure file.
    """
    return parameter.option.role == "topology" and any(
        object_role(other) == "structure" for other in command.parameters)


def to_file(command: Command) -> bool:
    """Return whether a command's result in a viewer is a file that the user names (a figure), not objects."""
    return any(parameter.option.written and parameter.option.viewer for parameter in command.parameters)


def describe_parameter(parameter: Parameter) -> str:
    """Return the help of a parameter with its unit, adapted to viewers, which have objects instead of files."""
    if parameter.required and object_role(parameter) and "file" in parameter.option.help:
        return "atoms of the system" if object_role(parameter) == "structure" else "map that was computed or loaded"
    return parameter.option.help + (f" ({parameter.option.unit})" if parameter.option.unit else "")


def copies(command: Command, values: Mapping[str, Any], structure: Structure,
           file: Path | None = None) -> SymmetryCopies | None:
    """Return the copies for the assembly or crystal cell that `values` request, or None if they request neither.

    A viewer creates an object of the copies and runs the command on it, so that it shows
    the structure that is computed.

    Parameters
    ----------
    command : Command
    values : mapping
        Values by the names of parameters.
    structure : Structure
    file : Path or None
        File from which the structure was read, if known.

    Raises
    ------
    UsageError, InputError
        See :func:`vmdpotential.commands.options.copies_of`.
    """
    from vmdpotential.commands.options import copies_of

    requested = {p.option.role: values.get(p.name) or p.default for p in command.parameters if is_copying(p)}
    if not requested:
        return None
    return copies_of(structure, structure if file is None else file, requested["assembly"], requested["expansion"])


def results(report: Report) -> list[tuple[str, Any]]:
    """Return the objects of a report that a viewer can show, each with its kind.

    Kinds are ``map``, ``ions``, ``values``, ``mesh`` and ``figure``.

    For ``values``, the object is a structure with values of atoms as B factors, and for ``mesh`` a
    :class:`~vmdpotential.surfaces.drawn.DrawnSurface`.
    """
    from vmdpotential.ions import Placement

    result: list[tuple[str, Any]] = []
    for name, value in report.objects.items():
        if isinstance(value, Grid):
            result.append(("map", value))
        elif isinstance(value, Placement):
            result.append(("ions", value))
        elif name in ("values", "mesh"):
            result.append((name, value))
        elif hasattr(value, "savefig"):  # matplotlib's Figure; importing matplotlib for isinstance would be slow
            result.append(("figure", value))
    return result


def colour_range(text: str) -> ValueRange:
    """Return the range of colours for a text with two limits, or with one for both signs.

    Raises
    ------
    ValueError
        When the text has another form.
    """
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        numbers = [-abs(numbers[0]), abs(numbers[0])]
    if len(numbers) != 2 or not np.isfinite(numbers).all() or not numbers[0] < numbers[1]:
        raise ValueError("a number such as 5, or two with the lower first such as -5,5, are needed")
    return ValueRange(*numbers)


def with_surface(structure: Structure, atoms: Selection = "solute") -> NDArray[np.bool_]:
    """Return the atoms (N,) bool of a map that have a surface: without solvent, or all if there are no others."""
    everything = np.ones(len(structure), bool)
    try:
        chosen = chosen_atoms(structure, "solute" if str(atoms) == "all" else atoms, Medium("water"))
        solute = chosen & select(structure, "solute")
    except UsageError:  # no atoms, or no solute
        return everything
    return solute if solute.any() else everything


def surface_of(report: Report, part: Selection | None = None, shown: Structure | None = None) -> Structure | None:
    """Return the atoms on whose surface a report's map is shown: those that were computed, where its map is.

    Parameters
    ----------
    report : Report
    part : str or array, optional
        Selection of the atoms that get a surface; all unless given.
    shown : Structure, optional
        Atoms for a report that has none.

    Raises
    ------
    UsageError
        When no atom of the part was computed.
    """
    structure: Structure | None = report.objects.get("structure", shown)
    if structure is None:
        return None
    chosen = with_surface(structure, report.mapped_atoms)
    if part is not None:
        chosen = chosen & select(structure, part, "surface_of")
        if not chosen.any():
            raise UsageError("surface_of", "selects none of the computed atoms that have a surface", value=str(part))
    return structure.take(chosen)


def covering_surface(grid: Grid, structure: Structure | None) -> Grid:
    """Return a map that covers the surface of a structure, if it is periodic: a viewer does not look up its images."""
    return grid if structure is None else grid.covering(structure.positions[with_surface(structure)], BESIDE)


def same_molecules(a: Structure, b: Structure) -> bool:
    """Return whether two structures have atoms of the same names and charges, at any positions.

    The number of atoms alone does not tell, since it may stay the same in a mutation.
    """
    if len(a) != len(b) or (a.charges is None) != (b.charges is None):
        return False
    alike = all(np.array_equal(getattr(a, name), getattr(b, name))
                for name in ("residue_names", "atom_names", "elements"))
    return alike and (a.charges is None or np.array_equal(a.charges, b.known_charges))


def surface_range(grid: Grid, structure: Structure | None) -> ValueRange:
    """Return the range of colours on a molecule's surface, by the rule of :mod:`vmdpotential.figures.colours`.

    It is for the values of the map next to the solute, or to all atoms if there is no solute; without a structure, for
    all values.
    """
    if (limit := colours.standard_limit(grid)) is not None:
        return ValueRange(-limit, limit)
    shown = grid.values
    if structure is not None:
        from scipy.spatial import cKDTree

        positions, lattice = structure.positions[with_surface(structure)], grid.lattice
        step = max(1, round((lattice.size / LOOKED) ** (1 / 3)))
        nodes = np.stack(np.meshgrid(*(np.arange(0, n, step) for n in lattice.shape), indexing="ij"), -1).reshape(-1, 3)
        distance, _ = cKDTree(positions).query(lattice.points(nodes), distance_upper_bound=NEXT_TO[1], workers=-1)
        near = nodes[(distance > NEXT_TO[0]) & np.isfinite(distance)]
        if len(near):
            shown = grid.values[tuple(near.T)]
    limit = max(map(abs, colours.colour_range([grid], [shown])))
    return ValueRange(-limit, limit)  # for both signs, because not every viewer has a colour scale that begins at 0


def legend(grid: Grid, span: ValueRange) -> str:
    """Return the legend of a map's colours, e.g. ``-50 to 50 kT/e at 298.15 K, vacuum, no screening``."""
    return f"{span.low:g} to {span.high:g} {colours.map_meaning(grid)}"


def drawn_in_vmd(report: Report, surface: str | None, part: str | None = None,
                 folder: Path | None = None) -> dict[str, Any]:
    """Return what VMD draws of a report: values of atoms, range and meaning of a map's colours, and a coloured surface.

    Further maps of a series, or statistics, are loaded but not drawn.

    Parameters
    ----------
    report : Report
    surface : str or None
        Range of the colours of a map's molecular surface, empty for the usual one; None for no surface.
    part : str or None
        Selection of the atoms that get a surface; all unless given.
    folder : Path, optional
        Folder for maps that the command wrote to no file.
    """
    from vmdpotential.surfaces import molecular_surface

    objects, data = report.objects, dict[str, Any]()
    if "mesh" in objects:
        made = objects["mesh"]
        return {"meaning": made.meaning, "surface": _drawn_surface(made.surface, made.values, made.span),
                "labels": [[name, *place.round(3).tolist()] for name, place in made.labels]}
    if "values" in objects:
        data["values"] = [round(value, 6) for value in objects["values"].b_factors.tolist()]
    grid, structure = objects.get("grid"), objects.get("structure")
    if not isinstance(grid, Grid):  # it may be only in a file
        return data
    span = colour_range(surface) if surface else surface_range(grid, structure)
    data |= {"range": list(span), "meaning": colours.map_meaning(grid), "maps": _map_files(report, folder)}
    computed = surface_of(report, part)
    if surface is None or computed is None:
        return data
    try:
        mesh = molecular_surface(computed, atoms="all", spacing=mesh_spacing(len(computed)), cavities=False)
    except BackendError as error:
        log.warning("isosurfaces are drawn, as the molecular surface needs another package: %s", error)
        return data
    return data | {"surface": _drawn_surface(mesh, mesh.sample(grid, colours.reading_distance(grid)), span)}


def _map_files(report: Report, folder: Path | None) -> list[tuple[str, str]]:
    """Return the file and the meaning of each map of a report; those after its files are written to the folder."""
    from vmdpotential.io.maps import is_map, write_map

    grids = {name: value for name, value in report.objects.items() if isinstance(value, Grid)}
    files = [file for file in map(Path, report.data.get("files", ())) if is_map(file)]
    if folder is not None:
        for name in list(grids)[len(files):]:
            files.append(folder / f"{name}.dx")
            write_map(grids[name], files[-1])
    return [(str(file), f"{grid.provenance.quantity}, {colours.map_meaning(grid)}")
            for file, grid in zip(files, grids.values(), strict=False)]


def mesh_spacing(atoms: int) -> float:
    """Return the spacing of the lattice of a molecular surface, A, at which a viewer that is slow can draw it."""
    return max(0.3, 0.5 * float(np.cbrt(atoms / 5000)))


def _drawn_surface(mesh: Surface, values: NDArray[np.float64], span: Sequence[float]) -> dict[str, Any]:
    """Return a surface for VMD, in Tcl: vertices, normals, colours as numbers of VMD's scale, and triangles."""
    low, high = span
    known = np.isfinite(values)
    relative = np.clip((np.where(known, values, low) - low) / (high - low), 0, 1)
    numbers = np.where(known, SCALE.start + np.rint(relative * (len(SCALE) - 1)), GREY).astype(int)
    vertices, normals = (TclWord.of_numbers(part.ravel().tolist(), "{%.3f %.3f %.3f}")
                         for part in (mesh.vertices, mesh.normals))
    return {"vertices": vertices, "normals": normals, "colours": TclWord.of_numbers(numbers.tolist()),
            "triangles": TclWord.of_numbers(mesh.triangles.ravel().tolist())}


def with_topology(whole: Structure, topology: Path, chosen: NDArray[np.bool_]) -> Structure:
    """Return the chosen atoms, with charges and bonds from a topology of the whole objects.

    Raises
    ------
    InputError
        When the topology cannot be read, or has other atoms.
    """
    return io.merge_topology(whole, io.read_topology(topology)).take(chosen)


def check_places(names: Sequence[str], number: NDArray[Any], positions: NDArray[np.float64]) -> None:
    """Raise an error for an object and its copy, whose charges would count twice; warn of objects that overlap.

    Parameters
    ----------
    names : sequence of str
        Names of the objects.
    number : (N,) int
        Index of each atom's object.
    positions : (N, 3) float64, A

    Raises
    ------
    InputError
        When atoms of two objects have the same position.
    """
    if len(names) == 1:
        return
    rounded = np.round(positions, 4)
    order = np.lexsort(rounded.T)
    same = (rounded[order][1:] == rounded[order][:-1]).all(1) & (number[order][1:] != number[order][:-1])
    if same.any():
        at = int(np.flatnonzero(same)[0])
        first, second = sorted(number[order[at : at + 2]])
        raise InputError(f"{names[first]} and {names[second]} have atoms at the same position",
                         "select atoms of one of them")
    from scipy.spatial import cKDTree

    pairs = cKDTree(positions).query_pairs(OVERLAP, output_type="ndarray")
    pairs = pairs[number[pairs[:, 0]] != number[pairs[:, 1]]]
    if len(pairs):
        first, second = sorted(number[pairs[0]])
        log.warning("%s and %s overlap, and the charges of both count: %d of their atoms are nearer than %g A to those "
                    "of others", names[first], names[second], len(np.unique(pairs)), OVERLAP)


def selection(parameter: Parameter, text: str, structure: Structure,
              find: Callable[[str], Sequence[int] | NDArray[Any] | None]) -> str:
    """Return a selection within the structure, in the viewer's language or else in this program's.

    This program accepts its words (``solute``) and CIDs that begin with a slash.

    Parameters
    ----------
    parameter : Parameter
        Parameter that selects atoms.
    text : str
    structure : Structure
    find : function
        Returns the rows of the structure for a text in the viewer's language, None if it is not valid there.

    Raises
    ------
    UsageError
        When the text is valid in neither language, or selects no atoms of the structure.
    """
    if text in parameter.option.words:
        return text
    rows, word = find(text), text.strip().lower() in SELECTION_WORDS
    if rows is None:
        if word or text.startswith("/"):  # a CID
            return text
        raise UsageError(parameter.name, "this is neither a selection in the viewer's language, nor a word of this "
                         f"program ({', '.join(SELECTION_WORDS)}), nor a CID", value=text)
    picked = ResolvedSelection(text, rows)
    if not len(picked.rows):
        raise UsageError(parameter.name, f"selects no atoms of the system; {names_present(structure)}", value=text)
    if word and not np.array_equal(np.flatnonzero(SELECTION_WORDS[text.strip().lower()](structure)), picked.rows):
        log.warning("'%s' selects %d atoms by the viewer's definition; this program's differs", text,
                    len(picked.rows))
    return picked


def without_charges(structure: Structure, charges: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the atoms (N,) bool of residues to which hydrogens without a charge were added.

    Viewers add hydrogens with a charge of 0. A residue has such ones if all of its hydrogens have no charge while other
    atoms have one, or if a hydrogen has none and the residue's charge is not a whole number.

    Parameters
    ----------
    structure : Structure
    charges : (N,) float64, e
        NaN counts as 0.
    """
    charges, first = np.nan_to_num(charges), structure.residue_starts[:-1]
    hydrogen = structure.elements == "H"
    zero = np.logical_or.reduceat(hydrogen & (charges == 0), first)
    known = np.logical_or.reduceat(hydrogen & (charges != 0), first)
    total = np.add.reduceat(charges, first)
    broken = zero & np.logical_or.reduceat(charges != 0, first) & (~known | (np.abs(total - np.rint(total)) > 0.01))
    result: NDArray[np.bool_] = np.repeat(broken, np.diff(structure.residue_starts))
    return result


def with_charges(whole: Structure, chosen: NDArray[np.bool_], charges: NDArray[np.float64], viewer: str,
                 name: Callable[[int], str], hint: str) -> Structure:
    """Return the chosen atoms with the viewer's charges, or without charges if it has none.

    Parameters
    ----------
    whole : Structure
        All atoms, without charges. If templates will give charges, the result refers to it, because the force field is
        determined from all atoms.
    chosen : (N,) bool
    charges : (N,) float64, e
        NaN for atoms without a charge in the viewer.
    viewer : str
        Source of the charges for reports, e.g. ``PyMOL object dhfr``.
    name : function
        Returns the name of the atom in a row.
    hint : str
        Hint for the error if only some atoms have charges.

    Raises
    ------
    InputError
        When only some of the chosen atoms have charges.
    """
    charges = np.where(without_charges(whole, charges), np.nan, charges)
    part = whole if chosen.all() else whole.part(chosen)
    missing = np.flatnonzero(chosen & np.isnan(charges))
    if len(missing) == len(part):
        return part
    if len(missing):
        raise InputError(f"{len(missing)} of {len(part)} atoms have no charge, such as {name(int(missing[0]))}, and "
                         "the others have", hint)
    return replace(part, charges=charges[chosen], charge_source=viewer, whole=None, whole_rows=None)


def cell_of(values: Mapping[str, tuple[Sequence[float], str]]) -> Cell | None:
    """Return the common periodic cell of objects, or None if none has one; lengths of 1 1 1 mean no cell in files.

    Parameters
    ----------
    values : mapping
        For each object that has a cell, by name: lengths (A) and angles (degrees), and the space group.

    Raises
    ------
    InputError
        When cells differ, or one is invalid.
    """
    group = next((group for _, group in values.values() if group), "")
    cells = {name: cell for name, (parameters, _) in values.items()
             if (cell := cell_of_file([float(x) for x in parameters], name, group)) is not None}
    if not cells:
        return None
    (first, cell), *others = cells.items()
    for name, other in others:
        if not np.allclose(cell.parameters, other.parameters, atol=1e-3):
            raise InputError(f"{first} and {name} have different periodic cells", "select atoms of one of them")
    return cell
