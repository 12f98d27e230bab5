"""One run of a command in ChimeraX: reading its inputs from the session, running it, and showing its results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from chimerax.atomic import AtomicStructure, Atoms, AtomsArg, concatenate
from chimerax.core.commands import AnnotationError, AtomSpecArg
from chimerax.core.errors import UserError
from chimerax.map import Volume

from vmdpotential import registry
from vmdpotential.errors import Spelling, UsageError, VmdpotentialError, plain_spelling
from vmdpotential.frontend import messages
from vmdpotential.io.trajectories.frames import FrameChange
from vmdpotential.parameters import Command, Parameter, Report, by_own_names
from vmdpotential.plugins.viewers import adapters, dialog, map_surfaces
from vmdpotential.plugins.viewers.adapters import object_role
from vmdpotential.plugins.viewers.display import surface_options

from . import missing
from .convert import Selected, common_coordinate_system, read_atoms, read_frames, read_volume, rows_of
from .progress import StatusLine
from .session import keep_attributes
from .show import put_values, show, show_copies

#: Prefix of the commands' names.
PREFIX = "potential "


class Task(dialog.Task):  # type: ignore[misc]
    """A command with the values of its parameters, which the constructor reads from ChimeraX.

    Only the constructor and :meth:`show` call ChimeraX, so that :meth:`compute` can run in a thread while the window is
    used.

    Parameters
    ----------
    session : ChimeraX's session
    command : Command
    inputs : mapping
        Values by name, from annotations or a dialog; missing ones have their defaults.
    warn : function
        Function that is called with each warning, a line, also from the thread of :meth:`compute`.

    Attributes
    ----------
    models : list
        New models.

    Raises
    ------
    UserError
        For errors that the user can fix, in one line.
    """

    failure = UserError

    def __init__(self, session: Any, command: Command, inputs: Mapping[str, Any], warn: Callable[[str], None]) -> None:
        self.session, self.command, self.inputs, self.warn = session, command, inputs, warn
        self.name, self.spell = PREFIX + command.name, spelling(command)
        self.prefix = f"{self.name}: "
        self.models: list[Any] = []
        with self.one_line():
            inputs = by_own_names((*command.parameters, *surface_options(command)), inputs)
            self.options = {parameter.name: parameter.convert(inputs.get(parameter.name, parameter.default))
                            for parameter in surface_options(command)}
            self.inputs = inputs
            self.values, self.selected = _convert(command, inputs, session)
            for parameter in surface_options(command):
                if parameter.option.selection and self.options[parameter.name] and self.selected is not None:
                    self.options[parameter.name] = _picked(
                        session, parameter, self.options[parameter.name], self.selected)

    def show(self, report: Report) -> list[str]:
        """Show the results as models, all or none, and log the report; return the lines for the user.

        Raises
        ------
        UserError
        """
        live_map = report.objects.get("live")
        keep_attributes(self.session)
        before = self.session.models.list()
        with self.one_line(), contextlib.ExitStack() as undo:
            undo.callback(lambda: self.session.models.close(
                [model for model in self.session.models.list() if model not in before]))
            if live_map is not None:
                end_live(self.session)
            self.models, lines = show(
                self.session, report, self.inputs.get("name") or self.command.makes, self.selected, self.options)
            undo.pop_all()  # all models have been made
        if live_map is not None:
            self.follow(report, self.models[0])
            lines.append("the map follows what is shown; end it with: potential live off")
        summary = [*report.lines, *lines]
        text = "\n".join([f"{self.name}:", *summary])
        self.session.logger.info(f"<pre>{escape(text)}</pre>", is_html=True)
        self.session.logger.status(
            f"{self.name}: {(summary[-1] if lines else next(iter(summary), 'done')).partition(';')[0]}")
        return summary

    def follow(self, report: Report, volume: Any) -> None:
        """Keep a map model up to date, by the result of a live map."""
        from .live import Live

        self.session.vmdpotential_live = Live(self, volume, report.objects["live"])

    def convert_again(self) -> tuple[dict[str, Any], Selected | None]:
        """Return the values of the command with the atoms that its specification selects at present."""
        inputs, spec = self.inputs, getattr(self.inputs.get("structure"), "spec", None)
        if spec is not None:
            inputs = {**inputs, "structure": AtomsArg.parse(spec, self.session)[0]}
        return _convert(self.command, inputs, self.session)

    @contextlib.contextmanager
    def one_line(self) -> Iterator[None]:
        """Convert errors that the user can fix to ChimeraX's own error, with a message of one line."""
        try:
            with super().one_line():
                yield
        except ImportError as error:
            raise UserError(f"{self.name}: {missing.describe(error)}") from error


def end_live(session: Any) -> str:
    """End the live map and return the line for the user, which is empty if there is no live map."""
    live, session.vmdpotential_live = getattr(session, "vmdpotential_live", None), None
    return "" if live is None else str(live.stop())


def continue_live(session: Any, command: str, inputs: Mapping[str, Any], map: Any) -> None:
    """Continue the live map of a session file, with the inputs of the command by name and the model of the map."""
    try:
        found: Command = registry.get("command", command)
        structure = inputs.get("structure")
        if isinstance(structure, str):
            inputs = {**inputs, "structure": AtomsArg.parse(structure, session)[0]}
        task = Task(session, found, inputs, session.logger.warning)
        with StatusLine(session, task.name) as listener:
            report = task.compute(listener)
        put_values(map, map_surfaces.covering_surface(report.objects["grid"], report.objects["structure"]))
        task.follow(report, map)
        session.logger.info(f"{task.name}: the map of the session follows what is shown; "
                            "end it with: potential live off")
    except (UserError, AnnotationError, VmdpotentialError, KeyboardInterrupt) as error:
        session.logger.warning(f"{PREFIX}{command}: the map of the session is not followed: "
                               f"{error or messages.STOPPED}")


def spelling(command: Command) -> Spelling:
    """Return the function that spells a command's parameters as keywords of ChimeraX, and others by their names."""
    types = {parameter.name: parameter.type for parameter in (*command.parameters, *surface_options(command))}

    def spell(name: str, value: str = "") -> str:
        other = messages.owner(name, types)
        if name not in types and other is None:
            return plain_spelling(name, value)
        if types.get(name) is bool:
            value = {"yes": "true", "no": "false"}.get(value, value)
        first, *others = name.split("_")
        words = [first + "".join(word.capitalize() for word in others), value]
        return " ".join(filter(None, [*words, f"of {PREFIX}{other.name}" if other is not None else ""]))

    return spell


def _copied(session: Any, command: Command, inputs: Mapping[str, Any],
            selected: Selected) -> tuple[Selected, tuple[FrameChange, ...]]:
    """Return the atoms of a new model with the requested assembly or cell, and the change that copies frames, too.

    Without a request, they are the selected atoms, and there is no change.
    """
    files = [Path(model.filename) for model in selected.models if getattr(model, "filename", None)]
    file = files[0] if len(selected.models) == len(files) == 1 else None
    copies = adapters.copies(command, inputs, selected.structure, file)
    if copies is None:
        return selected, ()
    structure = copies.of_structure(selected.structure)
    model = show_copies(session, structure, f"{inputs.get('name') or command.makes} copies", selected)
    return read_atoms(model.atoms), (copies,)


def _atoms(session: Any, atoms: Any) -> Any:
    """Return specified atoms, or those of all structures that are displayed; at least one.

    Raises
    ------
    UsageError
        When there are none, or a map is specified.
    """
    structures = session.models.list(type=AtomicStructure)
    hint = f"specify atoms of {_names(structures)}" if structures else "open one first"
    if atoms is None:
        atoms = concatenate([model.atoms for model in structures if model.visible], Atoms)
        if not len(atoms):
            raise UsageError("structure", f"no structure is {'displayed' if structures else 'open'}", hint)
    spec = getattr(atoms, "spec", "")
    found = AtomSpecArg.parse(spec, session)[0].evaluate(session).models if spec else []
    maps = [model for model in found if isinstance(model, Volume) and f"#{model.id_string}" in spec]
    if maps:  # "#1 #2" is one specification for ChimeraX
        raise UsageError("structure", f"{_names(maps)} is not a structure",
                         f"{hint}; a map is given after a keyword, such as: map #{maps[0].id_string}", value=spec)
    if not len(atoms):
        raise UsageError("structure", "there are no such atoms", hint, value=spec)
    return atoms


def _names(models: Sequence[Any], most: int = 3) -> str:
    """Return the numbers, kinds and names of models, such as ``#2 (Volume potential)``."""
    texts = [f"#{model.id_string} ({type(model).__name__} {model.name})" for model in models[:most]]
    return ", ".join([*texts, *(["..."] if len(models) > most else [])])


def _convert(command: Command, inputs: Mapping[str, Any], session: Any) -> tuple[dict[str, Any], Selected | None]:
    """Return the values with which the command is called, and the atoms among them."""
    values: dict[str, Any] = {}
    selected = place = None
    # maps first: the atoms drawn on a slice are read in the coordinates of its map
    for parameter in sorted(adapters.offered_parameters(command), key=lambda p: object_role(p) != "map"):
        value, kind = inputs.get(parameter.name), object_role(parameter)
        if kind == "structure" and (parameter.required or value is not None):
            value = _atoms(session, value)
        if value is None or adapters.is_topology(command, parameter):
            continue
        if kind == "map":
            volumes: Sequence[Any] = value if parameter.several else [value]
            if not volumes:
                raise UsageError(parameter.name, "there is no such map", "open one, or make it with potential map")
            place = common_coordinate_system(volumes)
            grids = [read_volume(volume) for volume in volumes]
            values[parameter.name] = grids if parameter.several else grids[0]
        elif kind == "structure":
            topology = inputs.get("topology")
            selected = read_atoms(value, place, None if topology is None else Path(topology))
            source = selected
            selected, changes = _copied(session, command, inputs, source)
            values[parameter.name] = selected.structure
        elif parameter.option.data is not None:
            values[parameter.name] = parameter.option.data(Path(value).expanduser())
        elif not adapters.is_copying(parameter):  # which is read with the atoms
            values[parameter.name] = value
    if selected is not None:
        for parameter in command.parameters:
            if parameter.option.selection and parameter.name in values:
                values[parameter.name] = _picked(session, parameter, values[parameter.name], selected)
        adapters.with_frames(command, values, lambda: read_frames(source), changes)
    return values, selected


def _picked(session: Any, parameter: Parameter, texts: Any, atoms: Selected) -> Any:
    """Return selections within the atoms, as atom specifications of ChimeraX or else in this program's language."""
    return adapters.selections(parameter, texts, atoms.structure, lambda word: rows_of(session, atoms, word))
