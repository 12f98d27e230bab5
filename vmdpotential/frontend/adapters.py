"""What the adapters share of viewers in whose Python this package runs; they themselves only convert."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vmdpotential import io, registry
from vmdpotential.commands.media import has_medium
from vmdpotential.errors import InputError, UsageError
from vmdpotential.figures import colours
from vmdpotential.figures.colours import Range
from vmdpotential.frontend.declarations import kind, takes_data
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.structures.pdb import cell_of as cell_of_file
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.selection import WORDS, Picked, present, select
from vmdpotential.parameters import Command, Parameter, Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vmdpotential.io.structures.symmetry import Copies
    from vmdpotential.io.trajectories.frames import Change, Loaded
    from vmdpotential.molecule.structure import Structure
    from vmdpotential.orbitals.wavefunction import Wavefunction


log = logging.getLogger(__name__)

#: Distance, A, within which no two atoms of different molecules can be: of poses, or of models of an ensemble.
OVERLAP = 0.5


#: Distances, A, from the nearest atom, of lattice points that stand for a molecule's surface, and how many suffice.
NEXT_TO, LOOKED = (1.8, 3.5), 50_000

#: Help of `frames` in a viewer, by whether a command needs some.
_FRAMES = ("which of the loaded frames, counted from 0: begin:end:step (end left out), or : for all; the one shown "
           "unless given",
           "which of the loaded frames, counted from 0: begin:end:step (end left out); all unless given")


def role(parameter: Parameter | None) -> str:
    """Return ``structure`` or ``map`` for what a viewer holds, else an empty string."""
    result = "" if parameter is None else kind(parameter)
    return result if result in ("structure", "map") else ""


def viewer_commands(warn: Callable[[str], None]) -> Iterator[Command]:
    """Yield every registered command that takes atoms or maps; warn of one that cannot be loaded, and leave it out."""
    for name in registry.available("command"):
        try:
            command: Command = registry.get("command", name)
        except Exception as error:  # whatever a foreign module raises on import
            warn(f"vmdpotential: the command '{name}' is left out: {error}")
            continue
        if takes_data(command):
            yield command


def offered(command: Command) -> list[Parameter]:
    """Return the parameters that a viewer offers, with the atoms or maps that are needed first."""
    chosen = [
        p for p in command.parameters
        if p.option.viewer or p.required or is_topology(command, p) or (p.name == "force" and to_file(command))
    ]
    if (trajectory := trajectory_of(command)) is not None:
        chosen = [p for p in chosen if p.name not in ("frames", trajectory.name)]
        chosen += [replace(p, option=replace(p.option, help=_FRAMES[trajectory.required]))
                   for p in command.parameters if p.name == "frames"]
    if has_medium(command):  # which says what atoms are unless they are named
        chosen = [replace(p, default=None, optional=True) if p.name == "atoms" else p for p in chosen]
    return sorted(chosen, key=lambda p: not (role(p) and p.required))


def trajectory_of(command: Command) -> Parameter | None:
    """Return the parameter of a command that takes frames."""
    return next((p for p in command.parameters if kind(p) == "trajectory"), None)


def with_frames(command: Command, values: dict[str, Any], read: Callable[[], Loaded],
                changes: Sequence[Change] = ()) -> None:
    """Put the frames that a viewer holds into a command's values, where some were asked for or are needed.

    Parameters
    ----------
    command : Command
    values : dict
        By the names of parameters; `frames` among them, as it was typed, says which.
    read : function
        Reads all frames.
    changes : sequence of function
        What makes frames of the structure from these, where it is of copies.
    """
    trajectory = trajectory_of(command)
    if trajectory is None or not (trajectory.required or "frames" in values):
        return
    (frames,) = [p for p in command.parameters if p.name == "frames"]
    chosen = frames.convert(values.pop("frames")) if "frames" in values else slice(None)
    values[trajectory.name] = replace(read(), frames=chosen, changes=tuple(changes))


@lru_cache(maxsize=1)
def _read_wavefunction(path: Path, changed: int) -> Wavefunction:
    from vmdpotential.orbitals.read import read_wavefunction

    return read_wavefunction(path)


def wavefunction(path: Path) -> Wavefunction:
    """Return the wave function of a file, which is kept, so that its next orbital is drawn at once.

    Raises
    ------
    InputError
        When the file cannot be read.
    """
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    return _read_wavefunction(path, changed)


def is_topology(command: Command, parameter: Parameter) -> bool:
    """Tell the file that goes with the atoms: an adapter reads it, because commands take it with files only."""
    return parameter.name == "topology" and any(role(other) == "structure" for other in command.parameters)


def to_file(command: Command) -> bool:
    """Return whether the result is a file that the user names (a figure), not objects of the viewer."""
    return any(parameter.name == "output" and parameter.option.viewer for parameter in command.parameters)


def default_name(command: Command) -> str:
    """Return what the objects that a command makes are called unless the user says so."""
    return {"map": "potential", "ionize": "ionized"}.get(command.name, command.name)


def describe(parameter: Parameter) -> str:
    """Return the help of a parameter with its unit; where it speaks of files, of what a viewer has instead."""
    if parameter.required and role(parameter) and "file" in parameter.option.help:
        return "atoms of the system" if role(parameter) == "structure" else "map that was made here or loaded"
    return parameter.option.help + (f", {parameter.option.unit}" if parameter.option.unit else "")


def copies(values: dict[str, Any], structure: Structure, file: Path | None = None) -> Copies | None:
    """Return what makes the assembly or the cell that is asked for in values, which are then without it.

    A viewer makes an object of the copies and runs the command on that, so that what is computed is shown. None where
    neither is asked for.

    Parameters
    ----------
    values : dict
        By the names of parameters.
    structure : Structure
    file : Path or None
        From which it was read, if that is known.

    Raises
    ------
    UsageError, InputError
        See :meth:`vmdpotential.commands.options.CopyOptions.copies`.
    """
    from vmdpotential.commands.options import CopyOptions

    symmetry = CopyOptions(assembly=values.pop("assembly", ""), expand=values.pop("expand", "no"))
    return symmetry.copies(structure, structure if file is None else file)


def results(report: Report) -> list[tuple[str, Any]]:
    """Return what a viewer can show of a report, as ``map``, ``ions``, ``values`` or ``figure`` and the object.

    Values are those of atoms, in the place of a structure's B factors.
    """
    from vmdpotential.ions import Placement

    result: list[tuple[str, Any]] = []
    for name, value in report.objects.items():
        if isinstance(value, Grid):
            result.append(("map", value))
        elif isinstance(value, Placement):
            result.append(("ions", value))
        elif name == "values":
            result.append(("values", value))
        elif hasattr(value, "savefig"):  # matplotlib's Figure; importing it only to ask would be slow
            result.append(("figure", value))
    return result


def colour_range(text: str) -> Range:
    """Return the range of colours that a user says: two limits, or one for both signs.

    Raises
    ------
    ValueError
    """
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        numbers = [-abs(numbers[0]), abs(numbers[0])]
    if len(numbers) != 2 or not np.isfinite(numbers).all() or not numbers[0] < numbers[1]:
        raise ValueError("a number such as 5, or two with the lower first such as -5,5, are needed")
    return Range(*numbers)


def with_surface(structure: Structure) -> NDArray[np.bool_]:
    """Return the atoms, (N,) bool, around which a surface is: all but water and ions, or all where there is no more."""
    try:
        solute = select(structure, "solute")
    except UsageError:
        return np.ones(len(structure), bool)
    joined = solute & (np.bincount(structure.residue_index)[structure.residue_index] > 1)
    return joined if joined.any() else solute


def same_molecules(a: Structure, b: Structure) -> bool:
    """Return whether two structures have atoms of the same names and charges, wherever these are.

    A mutation or another state of protonation may keep the number of atoms that a viewer shows.
    """
    if len(a) != len(b) or (a.charges is None) != (b.charges is None):
        return False
    alike = all(np.array_equal(getattr(a, name), getattr(b, name))
                for name in ("residue_names", "atom_names", "elements"))
    return alike and (a.charges is None or np.array_equal(a.charges, b.known_charges))


def surface_range(grid: Grid, structure: Structure | None) -> Range:
    """Return the range of colours on a molecule's surface, by the one rule of :mod:`vmdpotential.figures.colours`.

    What is shown is the map next to the solute, or to all atoms where there is none; all of it without a structure.
    """
    if (limit := colours.standard_limit(grid)) is not None:
        return Range(-limit, limit)
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
    return Range(-limit, limit)  # viewers show both signs: not every one has a scale with 0 at its end


def meaning(grid: Grid) -> str:
    """Return what the values of a map mean: ``kT/e at 298.15 K, vacuum, no screening``."""
    unit = grid.unit or "(no known unit)"
    if grid.temperature is not None and unit.startswith("kT"):
        unit += f" at {grid.temperature:g} K"
    return ", ".join(filter(None, (unit, grid.provenance.medium)))


def legend(grid: Grid, span: Range) -> str:
    """Return what the colours of a map mean: ``-50 to 50 kT/e at 298.15 K, vacuum, no screening``."""
    return f"{span.low:g} to {span.high:g} {meaning(grid)}"


def drawn(report: Report) -> dict[str, Any]:
    """Return what a viewer that runs the program needs to draw a report's map, nothing for one in a file alone."""
    grid = report.objects["grid"]
    if not isinstance(grid, Grid):
        return {}
    span = surface_range(grid, report.objects.get("structure"))
    return {"range": list(span), "meaning": meaning(grid)}


def with_topology(whole: Structure, topology: Path, chosen: NDArray[np.bool_]) -> Structure:
    """Return the chosen atoms of whole objects with the charges and bonds of a topology of these objects.

    Raises
    ------
    InputError
        When the topology cannot be read, or lists other atoms.
    """
    return io.merge(whole, io.read_topology(topology)).take(chosen)


def check_places(names: Sequence[str], number: NDArray[Any], positions: NDArray[np.float64]) -> None:
    """Refuse atoms of an object and its copy, in which every charge would count twice; warn of objects that overlap.

    Parameters
    ----------
    names : sequence of str
        Of the objects.
    number : (N,) int
        Which object each atom is of.
    positions : (N, 3) float64, A

    Raises
    ------
    InputError
    """
    if len(names) == 1:
        return
    rounded = np.round(positions, 4)
    order = np.lexsort(rounded.T)
    same = (rounded[order][1:] == rounded[order][:-1]).all(1) & (number[order][1:] != number[order][:-1])
    if same.any():
        at = int(np.flatnonzero(same)[0])
        first, second = sorted(number[order[at : at + 2]])
        raise InputError(f"{names[first]} and {names[second]} have atoms at the same place",
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
    """Return a selection within the structure: of the viewer's language; what is none there, of this program's.

    Of its own this program takes words (``solute``) and CIDs with a slash in front.

    Parameters
    ----------
    parameter : Parameter
        Whose it is, one whose option says that it selects atoms.
    text : str
    structure : Structure
    find : function
        Returns the rows of the structure that a text of the viewer's language means, None for what is not of it.

    Raises
    ------
    UsageError
        When the text is neither, or selects no atoms of the structure.
    """
    if text in parameter.option.words:
        return text
    rows, word = find(text), text.strip().lower() in WORDS
    if rows is None:
        if word or text.startswith("/"):  # a CID
            return text
        raise UsageError(parameter.name, "is no selection in the viewer's language, no word of this program "
                         f"({', '.join(WORDS)}) and no CID", value=text)
    picked = Picked(text, rows)
    if not len(picked.rows):
        raise UsageError(parameter.name, f"selects no atoms of the system; {present(structure)}", value=text)
    if word and not np.array_equal(np.flatnonzero(WORDS[text.strip().lower()](structure)), picked.rows):
        log.warning("'%s' means %d atoms, as the viewer has it; this program's own word has others", text,
                    len(picked.rows))
    return picked


def with_charges(whole: Structure, chosen: NDArray[np.bool_], charges: NDArray[np.float64], viewer: str,
                 name: Callable[[int], str], cure: str) -> Structure:
    """Return the chosen atoms of whole objects with the charges that the viewer has, without where it has none.

    Parameters
    ----------
    whole : Structure
        Without charges; it goes with the chosen atoms where templates give these, as it determines the force field.
    chosen : (N,) bool
    charges : (N,) float64, e
        NaN where the viewer has none.
    viewer : str
        Whose charges they are, for reports: ``PyMOL object dhfr``.
    name : function
        Names the atom of a row.
    cure : str
        What to do where only some have charges.

    Raises
    ------
    InputError
        When only some of the chosen atoms have charges.
    """
    part = whole if chosen.all() else whole.part(chosen)
    missing = np.flatnonzero(chosen & np.isnan(charges))
    if len(missing) == len(part):
        return part
    if len(missing):
        raise InputError(f"{len(missing)} of {len(part)} atoms have no charge, such as {name(int(missing[0]))}, and "
                         "the others have", cure)
    return replace(part, charges=charges[chosen], charge_source=viewer, whole=None, whole_rows=None)


def cell_of(values: Mapping[str, tuple[Sequence[float], str]]) -> Cell | None:
    """Return the periodic cell of objects, None where none has one (or 1 1 1, as files say it).

    Parameters
    ----------
    values : mapping
        By the object's name, for those that have a cell, lengths (A) and angles (degrees), and the space group.

    Raises
    ------
    InputError
        When they differ, or one is none.
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
