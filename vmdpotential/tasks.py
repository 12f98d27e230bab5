"""The commands as Python functions: ``vp.rdf(structure, trajectory, between=("protein", "water"))``.

A function has the parameters of its command, with the same checks, and returns its result, a dataclass with
``.to_dataframe()`` and, if there is a figure, ``.plot(ax)``. Files are written only if ``output`` or another parameter
names them. In addition to values that a shell accepts,

- a structure may be an object: a Structure, or one of MDAnalysis, biotite, ParmEd, OpenMM or gemmi;
- a trajectory may be an MDAnalysis Universe, its trajectory, or a part of that;
- selections may be indices, masks or AtomGroups;
- ``charges`` may be an array of the charges of all atoms.

Signatures and docstrings are generated from the declarations of the commands.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from vmdpotential import registry
from vmdpotential.docstrings import name_of, parameter_entries
from vmdpotential.errors import InputError, UsageError, spell_parameters
from vmdpotential.exported import naming_its_parameters
from vmdpotential.parameters import Command, Parameter, by_own_names, returning_results

if TYPE_CHECKING:  # the functions are created when first used, see __getattr__
    from vmdpotential.io.trajectories.frames import Frames
    from vmdpotential.molecule.structure import Structure
    from vmdpotential.results import Result
    from vmdpotential.task_types import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    kind = "task" if name in registry.available("task") else "function"
    if name.startswith("_") or name not in registry.available(kind):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = registry.get(kind, name)
    globals()[name] = function = _function(found) if kind == "task" else naming_its_parameters(found)
    return function


def __dir__() -> list[str]:
    return sorted([*registry.available("task"), *registry.available("function")])


def _function(command: Command) -> Callable[..., Result]:
    """Return the function that runs a command."""
    name, inputs = command.name, [p.name for p in command.parameters if p.option.positional]

    def function(*given: Any, **keywords: Any) -> Any:
        if len(given) > len(inputs):
            raise TypeError(f"{name}() takes {len(inputs)} positional arguments, but {len(given)} were given")
        values = dict(zip(inputs, given, strict=False))
        if twice := values.keys() & keywords.keys():
            raise TypeError(f"{name}() got several values for {', '.join(sorted(twice))}")
        with returning_results():
            return command(**_objects(command, by_own_names(command.parameters, {**values, **keywords})))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _docstring(command)
    function.__signature__ = _signature(command)  # type: ignore[attr-defined]
    return naming_its_parameters(function)


def _ordered(command: Command) -> list[Parameter]:
    """Return the parameters in the order of the signature: positional ones, then required and optional keywords."""
    return sorted(command.parameters, key=lambda p: (not p.option.positional, not p.required))


def _signature(command: Command) -> inspect.Signature:
    return inspect.Signature([
        inspect.Parameter(
            name_of(p), inspect.Parameter.POSITIONAL_OR_KEYWORD if p.option.positional
            else inspect.Parameter.KEYWORD_ONLY, default=p.default) for p in _ordered(command)])


def _objects(command: Command, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with objects of other packages, arrays and frames converted for the command."""
    import numpy as np

    from vmdpotential.io import read_topology
    from vmdpotential.io.structures.merge import merge_topology
    from vmdpotential.molecule.conversions import as_structure
    from vmdpotential.molecule.structure import Structure

    known, converted = {p.name: p for p in command.parameters}, dict(values)
    if "frames" in known and values.get("frames") is not None:
        converted["frames"] = _slice(values["frames"])
    atoms = values.get("structure")
    for name, value in values.items():
        if name in known and Structure in known[name].objects and not isinstance(value, (str, Path, type(None))):
            converted[name] = as_structure(value)
    if "cell" in known and _is_numbers(converted.get("cell")):  # lengths, or lengths and angles as in MDAnalysis
        converted["cell"] = known["cell"].convert(" ".join(map(str, converted["cell"])))
    for name, value in values.items():
        if name in known and np.ndarray in known[name].objects and isinstance(value, (list, tuple)):
            converted[name] = np.array(value, float)
    if isinstance(converted.get("stat"), (list, tuple)):
        converted["stat"] = ",".join(converted["stat"])
    if isinstance(converted.get("structure"), Structure) and converted.get("topology") is not None:
        converted["structure"] = merge_topology(converted["structure"], read_topology(converted.pop("topology")))
    frames = converted.get("trajectory")
    if "trajectory" in known and (hasattr(frames, "trajectory") or hasattr(frames, "n_frames")):  # from MDAnalysis
        converted["structure"] = _read(converted)
        converted["trajectory"] = _frames(frames, atoms, converted["structure"], converted.pop("frames", None))
    arrays = {name: value for name, value in converted.items() if name in known and known[name].option.selection
              and _has_arrays(value)}
    if _is_numbers(converted.get("charges")) or arrays:
        converted["structure"] = _read(converted)
    if _is_numbers(converted.get("charges")):
        converted["structure"] = converted["structure"].with_charges(converted.pop("charges"))
    for name, value in arrays.items():
        converted["structure"], converted[name] = _as_groups(converted["structure"], name, value, atoms)
    return converted


def _read(values: dict[str, Any]) -> Structure:
    """Return the structure among the values, read if it is a file; its topology is removed from the values."""
    from vmdpotential.io import read_first_frame, read_structure
    from vmdpotential.molecule.structure import Structure

    structure, trajectory = values["structure"], values.get("trajectory")
    if isinstance(structure, Structure):
        return structure
    topology, first = values.pop("topology", None), None
    if topology is None and isinstance(trajectory, (str, Path)):
        first = read_first_frame(Path(structure), Path(trajectory), values.get("length_unit"))
    return first or read_structure(structure, topology)


def _is_numbers(value: Any) -> bool:
    """Return whether a value is an array or a list of numbers."""
    if isinstance(value, (list, tuple)):
        return bool(value) and isinstance(value[0], Number)
    return hasattr(value, "dtype")


def _has_arrays(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_has_arrays(item) for item in value) or _is_numbers(value)
    return not isinstance(value, (str, type(None)))


def _as_groups(structure: Structure, name: str, value: Any, atoms: Any) -> tuple[Structure, Any]:
    """Return the structure with groups for the arrays in a selection, and the selection with the groups' names.

    If the structure was converted from an AtomGroup, `atoms`, the atoms of other AtomGroups are found in it.
    """
    import numpy as np

    from vmdpotential.molecule.selection import select

    if isinstance(value, (list, tuple)) and not _is_numbers(value):
        texts = []
        for n, item in enumerate(value, 1):
            structure, text = _as_groups(structure, f"{name}_{n}", item, atoms)
            texts.append(text)
        return structure, tuple(texts)
    if isinstance(value, (str, type(None))):
        return structure, value
    if hasattr(value, "ix") and hasattr(atoms, "atoms"):
        chosen, known = value.atoms.ix, atoms.atoms.ix
        if value.universe is not atoms.universe or not np.isin(chosen, known).all():
            raise UsageError(name, "the AtomGroup has atoms that the structure does not have",
                             "select atoms of {structure}")
        value = np.isin(known, chosen)
    rows = np.flatnonzero(select(structure, value, name))
    return replace(structure, groups={**structure.groups, name: rows}), f"group {name}"


class _Reader(Sequence[Any]):
    """Frames of an MDAnalysis trajectory, read one at a time."""

    def __init__(self, frames: Any, rows: Any) -> None:
        self.frames, self.rows, self.lock = frames, rows, threading.Lock()

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, number: Any) -> Any:
        from vmdpotential.io import mdanalysis

        with self.lock, mdanalysis.quiet():  # blocks of frames may be computed by several threads
            result = self.frames[number]
            return result.positions[self.rows].copy(), mdanalysis.cell_of(result.dimensions, Path("trajectory"))


def _slice(frames: Any) -> slice:
    """Return the slice of frames for a slice, a range, a number or text."""
    from vmdpotential.io.trajectories.frames import parse_frames

    if isinstance(frames, Integral):
        frames = str(int(frames))
    if isinstance(frames, str):
        try:
            return parse_frames(frames)
        except ValueError as error:
            raise UsageError("frames", str(error), value=frames) from None
    if isinstance(frames, range) and frames.step > 0:
        return slice(frames.start, frames.stop, frames.step)
    if not isinstance(frames, slice):
        raise UsageError("frames", f"a slice or text such as 0:500:5 is needed, not {type(frames).__name__}",
                         "choose single frames as those of an MDAnalysis trajectory: universe.trajectory[[1, 3, 8]]")
    return frames


def _frames(item: Any, atoms: Any, structure: Structure, frames: slice | None) -> Frames:
    """Return the frames of a Universe, or of a part of its trajectory; for an AtomGroup with only its atoms.

    A copy of the reader is used, so that the Universe stays at its current frame.
    """
    from vmdpotential.io import mdanalysis
    from vmdpotential.io.trajectories.frames import LoadedFrames

    reader = getattr(item, "trajectory", item)
    numbers: slice | list[int] = slice(None)
    if hasattr(item, "step"):  # a slice of a trajectory
        numbers = slice(item.start, None if item.stop < 0 else item.stop, item.step)
    elif hasattr(item, "frames"):  # a list of frames of a trajectory
        numbers = list(item.frames)
    rows: Any = atoms.ix if hasattr(atoms, "ix") else slice(None)  # of an AtomGroup
    count = len(range(reader.n_atoms)[rows]) if isinstance(rows, slice) else len(rows)
    if count != len(structure):
        raise InputError(f"the trajectory has {count} atoms, and the structure {len(structure)}",
                         "give {structure} as the Universe or AtomGroup of {trajectory}")
    with mdanalysis.quiet():
        copied = reader.copy()
    if frames is None and isinstance(numbers, slice):  # frames keep their numbers in the whole trajectory
        return LoadedFrames("the trajectory", _Reader(copied, rows), numbers)
    return LoadedFrames("the trajectory", _Reader(copied[numbers], rows), frames or slice(None))


def result_kinds(command: Command) -> tuple[type[Result], ...]:
    """Return the class of a command's result, or several."""
    kind = get_type_hints(command.function)["return"]
    return get_args(kind) or (kind,)


def _docstring(command: Command) -> str:
    """Return the docstring of a function, with the sections of numpydoc."""
    text = inspect.getdoc(command.function) or ""
    about, _, raised = text.partition("\n\nRaises\n------\n")
    about = about.partition("\n\nReturns\n")[0]
    returns = "\n".join(f"{each.__name__}\n    {(inspect.getdoc(each) or '').partition(chr(10))[0]}"
                        for each in result_kinds(command))
    parameters = parameter_entries(_ordered(command))
    # what most commands raise is not in each of their docstrings
    if "UsageError\n" not in raised:
        raised = f"UsageError\n    For options that do not fit together.\n{raised}"
    if "partial" in {p.name for p in command.parameters}:
        raised = raised.rstrip() + ("\nStoppedError\n    When the run was interrupted and `partial` is set; the result "
                                    "of the finished frames is written.")
    return "\n\n".join([spell_parameters(about), f"Parameters\n----------\n{parameters}",
                        f"Returns\n-------\n{returns}",
                        f"Raises\n------\n{raised.strip()}", f"Examples\n--------\n{command.python}"])

