"""One run of a command in PyMOL: reading its inputs from the session, running it, and showing its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pymol import CmdException

from vmdpotential.errors import UsageError
from vmdpotential.io.trajectories.frames import FrameChange
from vmdpotential.parameters import Command, Parameter, Report

from ..viewers import adapters, dialog
from . import arguments
from .convert import Selected, read_frames, read_selection, rows_of
from .show import Results


class Task(dialog.Task):
    """A command with the values of its parameters, which the constructor reads from PyMOL.

    Only the constructor and :meth:`show` call PyMOL, so that :meth:`compute` can run in a thread while the window is
    used.

    Parameters
    ----------
    cmd : PyMOL's cmd module or instance
    command : Command
    inputs : mapping
        Values by the names of :func:`arguments.arguments`, mostly text; missing ones have their defaults.
    warn : function
        Function that is called with each warning of the package, a line, also from the thread of :meth:`compute`.

    Raises
    ------
    CmdException
        For errors that the user can fix, in one line.
    """

    failure = CmdException

    def __init__(self, cmd: Any, command: Command, inputs: Mapping[str, Any],
                 warn: Callable[[str], None]) -> None:
        self.cmd, self.command, self.inputs, self.warn = cmd, command, inputs, warn
        self.spell = arguments.spelling(command)
        self.values: dict[str, Any] = {}
        #: The atoms of the computation. They may be copies of the source, in an assembly or a cell; the source's states
        #: are the frames, and the changes convert these to frames of the copies.
        self.atoms: Selected | None = None
        self.source: Selected | None = None
        self.changes: tuple[FrameChange, ...] = ()
        with self.one_line():
            for argument, value in inputs.items():
                if arguments.is_empty(value):
                    raise UsageError(argument, "a value is needed", "leave it out for its default", value=value)
            options = {parameter.name: parameter.convert(arguments.unquoted(self._given(parameter)) or None)
                       for parameter in arguments.displayed(command)}
            self.results = Results(cmd, command, arguments.unquoted(inputs.get("name")), options)
            for parameter in adapters.offered_parameters(command):
                if not adapters.is_topology(command, parameter):
                    self._read(parameter)
            for parameter in arguments.displayed(command):
                if parameter.option.selection and options[parameter.name] and self.atoms is not None:
                    options[parameter.name] = self._picked(parameter, options[parameter.name], self.atoms)
            if (source := self.source) is not None:
                adapters.with_frames(command, self.values, lambda: read_frames(cmd, source), self.changes)

    def show(self, report: Report) -> list[str]:
        """Show the results as objects, all or none, and return the lines for the user.

        Raises
        ------
        CmdException
        """
        with self.one_line():
            lines = [*report.lines, *self.results.show(report, self.atoms)]
        self.results.session.orbital = report.data.get("orbital")
        if (live_map := report.objects.get("live")) is not None:
            if self.results.session.live is not None:
                self.results.session.end_live()
            from .live import Live

            self.results.session.live = Live(self, live_map)
            lines.append("the map follows what is shown; end it with: potential_live off")
        return lines

    def renewed(self) -> Task:
        """Return the same task with the present atoms of the session."""
        return Task(self.cmd, self.command, self.inputs, self.warn)

    def _given(self, parameter: Any) -> Any:
        """Return the argument of a parameter as it was typed, or its default."""
        return self.inputs.get(arguments.argument_name(parameter), adapters.default_text(parameter))

    def _read(self, parameter: Any) -> None:
        """Add the value of a parameter to `values`, unless it is the default."""
        value, role = self._given(parameter), adapters.object_role(parameter)
        if adapters.is_copying(parameter) and self.atoms is not None:
            return  # these are read with the atoms
        text = arguments.unquoted(value) if value is None or isinstance(value, str) else value
        if text == "" and not (parameter.required and role == "structure"):
            if parameter.required:
                raise UsageError(parameter.name, "a value is needed")
        elif role == "structure" and isinstance(text, str):
            topology = self.cmd.exp_path(arguments.unquoted(self.inputs.get("topology")))
            self.atoms = read_selection(self.cmd, text or "all", Path(topology) if topology else None,
                                        self.results.display_objects())
            self.source = self.atoms
            self._copy()
            self.values[parameter.name] = self.atoms.structure
        elif role == "map" and isinstance(text, str):
            maps = [self.results.find_map(word) for word in arguments.words(value)]
            self.values[parameter.name] = maps if parameter.several else maps[0]
        elif parameter.option.selection and isinstance(text, str) and self.atoms is not None:
            if text != adapters.default_text(parameter):
                self.values[parameter.name] = self._picked(
                    parameter, arguments.words(value) if parameter.several else text, self.atoms)
        elif parameter.option.data is not None and isinstance(text, str):
            self.values[parameter.name] = parameter.option.data(Path(self.cmd.exp_path(text)))
        elif parameter.several and isinstance(text, str):
            self.values[parameter.name] = arguments.words(value)
        elif text != adapters.default_text(parameter):
            if parameter.type is Path:
                text = self.cmd.exp_path(str(text))
            self.values[parameter.name] = str(text) if parameter.type in (int, float, bool) else text

    def _picked(self, parameter: Parameter, texts: Any, atoms: Selected) -> Any:
        """Return selections within the atoms, in PyMOL's language or else in this program's."""
        return adapters.selections(parameter, texts, atoms.structure, lambda word: rows_of(self.cmd, atoms, word))

    def _copy(self) -> None:
        """Replace the atoms by those of the assembly or the cell, if one is requested."""
        assert self.atoms is not None
        requested = {}
        for parameter in filter(adapters.is_copying, self.command.parameters):
            file, colon, name = arguments.unquoted(self._given(parameter)).rpartition(":")
            requested[parameter.name] = f"{self.cmd.exp_path(file)}:{name}" if colon else name
        copies = adapters.copies(self.command, requested, self.atoms.structure)
        if copies is not None:
            shown = self.results.load_copies(copies.of_structure(self.atoms.structure))
            self.atoms, self.changes = read_selection(self.cmd, f"%{shown}"), (copies,)
