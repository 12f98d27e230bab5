"""One run of a command in ChimeraX: what it takes is read, the command runs, the results are shown."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from chimerax.atomic import AtomsArg
from chimerax.core.errors import UserError

from vmdpotential.commands import media
from vmdpotential.errors import Spelling, UsageError, VmdpotentialError, plain
from vmdpotential.frontend import adapters, dialog, messages
from vmdpotential.frontend.adapters import default_name, role
from vmdpotential.frontend.declarations import kind as declared
from vmdpotential.frontend.display import surface_options
from vmdpotential.io.trajectories.frames import Change
from vmdpotential.molecule.names import WATERS, named
from vmdpotential.parameters import Command, Report, by_own_names

from . import missing
from .convert import Selected, common_place, read_atoms, read_frames, read_volume, rows_of
from .live import Live
from .show import show, show_copies

#: Put before the name of each command.
PREFIX = "potential "


class Task(dialog.Task):
    """A command with values for its arguments, read from ChimeraX at once.

    ChimeraX is touched when the task is made and in :meth:`show` only, so that :meth:`compute` can run in a thread
    next to the window.

    Parameters
    ----------
    session : ChimeraX's session
    command : Command
    inputs : mapping
        Values by name, as annotations or a dialog made them; those left out have their defaults.
    warn : function
        Takes warnings, one line each, also in the thread of :meth:`compute`.

    Attributes
    ----------
    models : list
        New models.

    Raises
    ------
    UserError
        For errors that the user can fix, in one line.
    """

    def __init__(self, session: Any, command: Command, inputs: Mapping[str, Any], warn: Callable[[str], None]) -> None:
        self.session, self.command, self.inputs, self.warn = session, command, inputs, warn
        self.name, self.spell = PREFIX + command.name, spelling(command)
        self.models: list[Any] = []
        with self.one_line():
            inputs = by_own_names((*command.parameters, *surface_options(command)), inputs)
            self.options = {parameter.name: parameter.convert(inputs.get(parameter.name, parameter.default))
                            for parameter in surface_options(command)}
            self.inputs = inputs = self._in_medium(inputs)
            self.values, self.selected = _convert(command, inputs, session)

    def _in_medium(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the values with those that the medium implies, where the user has not set them."""
        if "medium" not in self.options:
            return inputs
        own = {p.name for p in adapters.offered(self.command)}
        by_user = {name: value for name, value in inputs.items() if name in own and value is not None}
        only_water = named(np.array(inputs["structure"].residues.names, np.str_), WATERS).all()
        return {**inputs, **media.in_medium(self.command, self.options["medium"], by_user, bool(only_water))}

    def show(self, report: Report) -> list[str]:
        """Make models of what came out, all or none, and log it; return the lines for the user.

        Raises
        ------
        UserError
        """
        live_map, command = report.objects.get("live"), self.command
        before = self.session.models.list()
        with self.one_line(), contextlib.ExitStack() as undo:
            undo.callback(lambda: self.session.models.close(
                [model for model in self.session.models.list() if model not in before]))
            if live_map is not None:
                end_live(self.session)
            self.models, lines = show(
                self.session, report, self.inputs.get("name") or default_name(command), self.selected,
                self.options.get("surface", False), self.options.get("range"),
                self.options.get("hide_water", False))
            undo.pop_all()  # all is made
        if live_map is not None and self.selected is not None:
            self.session.vmdpotential_live = Live(
                self.session, command, partial(_convert_again, command, self.inputs), self.spell, self.models[0],
                self.selected, live_map)
            lines.append("the map follows what is shown; end it with: potential live off")
        summary = [*report.lines, *lines]
        text = "\n".join([f"{self.name}:", *summary])
        self.session.logger.info(f"<pre>{escape(text)}</pre>", is_html=True)
        self.session.logger.status(
            f"{self.name}: {(summary[-1] if lines else next(iter(summary), 'done')).partition(';')[0]}")
        return summary

    @contextlib.contextmanager
    def one_line(self) -> Iterator[None]:
        """Turn errors that the user can fix into ChimeraX's own error, in one line."""
        try:
            with messages.warnings(lambda text: self.warn(f"{self.name}: {text}"), self.spell):
                yield
        except (VmdpotentialError, MemoryError) as error:
            raise UserError(f"{self.name}: {messages.one_line(error, self.spell)}") from error
        except ImportError as error:
            raise UserError(f"{self.name}: {missing.describe(error)}") from error


def end_live(session: Any) -> str:
    """End the live map and return the line for the user, nothing where there is none."""
    live, session.vmdpotential_live = getattr(session, "vmdpotential_live", None), None
    return "" if live is None else str(live.stop())


def _convert_again(command: Command, inputs: Mapping[str, Any], session: Any) -> tuple[dict[str, Any], Selected | None]:
    """Return the values of a command with the atoms that its specification means now."""
    spec = getattr(inputs["structure"], "spec", None)
    return _convert(command, inputs if spec is None else {**inputs, "structure": AtomsArg.parse(spec, session)[0]},
                    session)


def spelling(command: Command) -> Spelling:
    """Return how ChimeraX writes parameters of a command: as keywords; others, such as an interaction's, stay bare."""
    types = {parameter.name: parameter.type for parameter in (*command.parameters, *surface_options(command))}

    def spell(name: str, value: str = "") -> str:
        if name not in types:
            return plain(name, value)
        if types[name] is bool:
            value = {"yes": "true", "no": "false"}.get(value, value)
        first, *others = name.split("_")
        return " ".join(filter(None, [first + "".join(word.capitalize() for word in others), value]))

    return spell


def _copied(session: Any, command: Command, inputs: Mapping[str, Any],
            selected: Selected) -> tuple[Selected, tuple[Change, ...]]:
    """Return the atoms of a new model with the assembly or the cell, if one is requested, and how frames are copied."""
    requested = {name: inputs[name] for name in ("assembly", "expand") if inputs.get(name)}
    files = [Path(model.filename) for model in selected.models if getattr(model, "filename", None)]
    file = files[0] if len(selected.models) == len(files) == 1 else None
    copies = adapters.copies(requested, selected.structure, file)
    if copies is None:
        return selected, ()
    structure = copies.of_structure(selected.structure)
    model = show_copies(session, structure, f"{inputs.get('name') or default_name(command)} copies", selected)
    return read_atoms(model.atoms), (copies,)


def _convert(command: Command, inputs: Mapping[str, Any], session: Any) -> tuple[dict[str, Any], Selected | None]:
    """Return the values that the command takes, and the atoms among them."""
    values: dict[str, Any] = {}
    selected = place = None
    # maps first: the atoms drawn on a slice are wanted in the coordinates of its map
    for parameter in sorted(adapters.offered(command), key=lambda p: role(p) != "map"):
        value = inputs.get(parameter.name)
        if value is None or adapters.is_topology(command, parameter):
            continue
        kind = role(parameter)
        if kind == "map":
            volumes: Sequence[Any] = value if parameter.several else [value]
            if not volumes:
                raise UsageError(parameter.name, "there is no such map", "open one, or make it with potential map")
            place = common_place(volumes)
            grids = [read_volume(volume) for volume in volumes]
            values[parameter.name] = grids if parameter.several else grids[0]
        elif kind == "structure":
            topology = inputs.get("topology")
            selected = read_atoms(value, place, None if topology is None else Path(topology))
            source = selected
            selected, changes = _copied(session, command, inputs, source)
            values[parameter.name] = selected.structure
        elif declared(parameter) == "wavefunction":
            values[parameter.name] = adapters.wavefunction(Path(value).expanduser())
        elif parameter.name not in ("assembly", "expand"):  # which were read with the atoms
            values[parameter.name] = value
    if selected is not None:
        atoms = selected
        for parameter in command.parameters:
            if parameter.option.selection and parameter.name in values:
                value = values[parameter.name]
                picked = [adapters.selection(parameter, text, atoms.structure, lambda s: rows_of(session, atoms, s))
                          for text in (value if parameter.several else [value])]
                values[parameter.name] = picked if parameter.several else picked[0]
        adapters.with_frames(command, values, lambda: read_frames(source), changes)
    return values, selected
