"""The dialog of all viewers with Qt, in a window of ChimeraX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import Qt
from chimerax.atomic import AtomicStructure, AtomsArg, all_atoms
from chimerax.core.errors import UserError
from chimerax.core.tools import ToolInstance
from chimerax.map import MapArg, MapsArg, Volume
from chimerax.ui import MainToolWindow
from Qt import QtCore, QtWidgets  # noqa: F401 - modules of Qt, which the panel uses

from vmdpotential.parameters import Command, Parameter
from vmdpotential.plugins.viewers import adapters
from vmdpotential.plugins.viewers.adapters import default_text, object_role
from vmdpotential.plugins.viewers.dialog import DialogPanel
from vmdpotential.plugins.viewers.display import surface_options
from vmdpotential.plugins.viewers.form import CommandForm, form_entries

from .task import Task, end_live


class ChimeraX:
    """A ChimeraX session as the dialog's panel uses it.

    Parameters
    ----------
    session : ChimeraX's session
    """

    failure = UserError

    def __init__(self, session: Any) -> None:
        self.session = session

    @property
    def live(self) -> bool:
        """Whether there is a live map."""
        live = getattr(self.session, "vmdpotential_live", None)
        return live is not None and live.latest.running

    def task(self, command: Command, inputs: Mapping[str, str], warn: Callable[[str], None]) -> Task:
        """Return a run of a command with the values of its form."""
        parameters = {p.name: p for p in (*adapters.offered_parameters(command), *surface_options(command))}
        values: dict[str, Any] = {"name": inputs.get("name", "")}
        for name, text in inputs.items():
            parameter = parameters.get(name)
            if parameter is None or (text == default_text(parameter) and not object_role(parameter)):
                continue
            if text.strip() or parameter.required:
                values[name] = self._value(parameter, text.strip())
        return Task(self.session, command, values, warn)

    def _value(self, parameter: Parameter, text: str) -> Any:
        kind = object_role(parameter)
        if not kind:
            return text.split() if parameter.several else text
        if kind == "structure" and text == "all":
            return all_atoms(self.session)
        parser = AtomsArg if kind == "structure" else MapsArg if parameter.several else MapArg
        try:
            value, _, rest = parser.parse(text, self.session)
        except Exception as error:  # ChimeraX's AnnotationError, whose message is shown
            raise UserError(f"{parameter.name} {text}: {error}") from None
        if rest.strip():
            raise UserError(f"{parameter.name} {text}: '{rest.strip()}' is not understood")
        return value

    def end_live(self) -> str:
        """End the live map and return the line for the user."""
        return end_live(self.session) or "there is no live map"

    def write_line(self, line: str) -> None:
        """Write a warning to the log; results have already been written."""
        if line.startswith("warning: "):
            self.session.logger.warning(line)

    def choices(self, kind: str) -> list[str]:
        """Return the session's models or maps."""
        models = self.session.models.list(type=Volume if kind == "map" else AtomicStructure)
        return [*(["all", "sel"] if kind == "structure" else []), *(f"#{model.id_string}" for model in models)]


class Potential(ToolInstance):  # type: ignore[misc]
    """The dialog of a session."""

    SESSION_ENDURING = False
    SESSION_SAVE = False
    help = "help:user/commands/potential.html"

    def __init__(self, session: Any, tool_name: str) -> None:
        super().__init__(session, tool_name)
        viewer = ChimeraX(session)
        self.tool_window = MainToolWindow(self)
        commands = adapters.viewer_commands(session.logger.warning)
        forms = [CommandForm(Qt, command, form_entries(command, {
            **{p.name: p for p in adapters.offered_parameters(command)},
            **({} if adapters.to_file(command) else {"name": None}),
            **{p.name: p for p in surface_options(command)}}, surface_options(command)), viewer.choices)
            for command in commands]
        self.panel = DialogPanel(Qt, viewer, forms)
        layout = QtWidgets.QVBoxLayout(self.tool_window.ui_area)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.panel.widget)
        self.tool_window.manage("side")
        changed = session.triggers
        self._handlers = [changed.add_handler(name, lambda *event: self.panel.refresh())
                          for name in ("add models", "remove models")]

    def delete(self) -> None:
        """Stop a running command; ChimeraX calls this when the window is closed."""
        self.panel.stop()
        self.panel.timer.stop()
        for handler in self._handlers:
            handler.remove()
        super().delete()
