"""Common code of the adapters for viewers whose Python runs this package; adapters only convert the viewer's data."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vmdpotential import io, registry
from vmdpotential.errors import InputError, Spelling, UsageError, VmdpotentialError
from vmdpotential.frontend import messages
from vmdpotential.frontend.declarations import as_text, parameter_kind, takes_data
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.structures.pdb import cell_of as cell_of_file
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.selection import SELECTION_WORDS, ResolvedSelection, names_present
from vmdpotential.parameters import Command, OptionRole, Parameter, Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vmdpotential.io.structures.symmetry import SymmetryCopies
    from vmdpotential.io.trajectories.frames import FrameChange, LoadedFrames
    from vmdpotential.molecule.structure import Structure


log = logging.getLogger(__name__)

#: Distance, A, that atoms of different molecules cannot have; nearer ones are e.g. of several poses or models.
OVERLAP = 0.5

#: Help of `frames` in a viewer for commands with an optional and with a required trajectory.
_FRAMES = ("loaded frames to use, counted from 0: begin:end:step (end left out), or : for all; default: the frame on "
           "screen",
           "loaded frames to use, counted from 0: begin:end:step (end left out); all unless given")

#: What viewers show an object of a report as, by its name, where its class does not say it.
_OBJECT_KINDS = {"placement": "ions", "values": "values", "mesh": "mesh"}


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


def describe_parameter(parameter: Parameter | None) -> str:
    """Return the help of a parameter with its unit, adapted to viewers, which have objects instead of files."""
    if parameter is None:
        return "name of the new objects"
    if parameter.required and object_role(parameter) and "file" in parameter.option.help:
        return "atoms of the system" if object_role(parameter) == "structure" else "map that was computed or loaded"
    return parameter.option.help + (f" ({parameter.option.unit})" if parameter.option.unit else "")


def default_text(parameter: Parameter | None) -> str:
    """Return the default of a parameter as text to type, empty for none."""
    if parameter is not None and parameter.required:
        return "all" if object_role(parameter) == "structure" else ""
    return "" if parameter is None else as_text(parameter.default)


@contextlib.contextmanager
def in_one_line(failure: type[Exception], spell: Spelling, prefix: str = "") -> Iterator[None]:
    """Convert errors that the user can fix to a viewer's own error, with a message of one line."""
    try:
        yield
    except (VmdpotentialError, MemoryError) as error:
        raise failure(prefix + messages.one_line(error, spell)) from None


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
    result: list[tuple[str, Any]] = []
    for name, value in report.objects.items():
        if isinstance(value, Grid):
            result.append(("map", value))
        elif name in _OBJECT_KINDS:
            result.append((_OBJECT_KINDS[name], value))
        elif hasattr(value, "savefig"):  # matplotlib's Figure; importing matplotlib for isinstance would be slow
            result.append(("figure", value))
    return result


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


def selections(parameter: Parameter, texts: Any, structure: Structure,
               find: Callable[[str], Sequence[int] | NDArray[Any] | None]) -> Any:
    """Return a selection within the structure, or a list if the parameter takes several, see :func:`selection`."""
    if parameter.several:
        return [selection(parameter, text, structure, find) for text in texts]
    return selection(parameter, texts, structure, find)


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
    return np.repeat(broken, np.diff(structure.residue_starts))


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
