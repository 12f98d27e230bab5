"""The dialog of all viewers with Qt, in a window of PyMOL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pymol import CmdException, Qt
from pymol.Qt import QtCore, QtWidgets

from vmdpotential.parameters import Command

from ..viewers.adapters import in_one_line
from ..viewers.dialog import DialogPanel
from ..viewers.form import CommandForm, form_entries
from . import arguments
from .commands import viewer_commands
from .session import Session
from .task import Task


class PyMOL:
    """A PyMOL session as the dialog's panel uses it.

    Parameters
    ----------
    cmd : PyMOL's cmd module or instance
    """

    failure = CmdException  # begins with "Error:", as PyMOL prints it

    def __init__(self, cmd: Any) -> None:
        self.cmd = cmd

    @property
    def live(self) -> bool:
        """Whether there is a live map."""
        live = Session.of(self.cmd).live
        return live is not None and live.running

    def task(self, command: Command, inputs: Mapping[str, str], warn: Callable[[str], None]) -> Task:
        """Return a run of a command with the values of its form."""
        return Task(self.cmd, command, inputs, warn)

    def end_live(self) -> str:
        """End the live map and return the line for the user."""
        with in_one_line(CmdException, arguments.spell):
            return Session.of(self.cmd).end_live()

    def undo(self) -> str:
        """Undo the last placement of ions and return the line for the user."""
        with in_one_line(CmdException, arguments.spell):
            return Session.of(self.cmd).undo()

    def write_line(self, line: str) -> None:
        """Write a line to PyMOL's output."""
        print(f" {line}")

    def choices(self, role: str) -> list[str]:
        """Return the session's selections or maps."""
        objects = self.cmd.get_names("public_objects")
        if role == "map":
            records = Session.of(self.cmd).records  # a map without a header is a part of a drawing
            return [name for name in objects if self.cmd.get_type(name) == "object:map"
                    and (name not in records or records[name].header)]
        molecules = [name for name in objects if self.cmd.get_type(name) == "object:molecule"]
        return ["all", *molecules, *self.cmd.get_names("public_selections")]


class Dialog(QtWidgets.QDialog):  # type: ignore[misc]
    """The dialog for one PyMOL.

    Parameters
    ----------
    cmd : PyMOL's cmd module or instance
    parent : QWidget or None
    """

    def __init__(self, cmd: Any, parent: Any = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Electrostatic potential - vmdpotential")
        self.session = Session.of(cmd)
        viewer = PyMOL(cmd)
        forms = [CommandForm(Qt, command, form_entries(
            command, arguments.arguments(command), arguments.displayed(command)), viewer.choices)
            for command in viewer_commands()]
        self.panel = DialogPanel(Qt, viewer, forms, {
            "Undo placement": ("ions", viewer.undo), "Previous": ("orbital", lambda: self._step(-1)),
            "Next": ("orbital", lambda: self._step(1))})
        layout = QtWidgets.QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.panel.widget)
        self.resize(740, 540)

    def _step(self, by: int) -> str:
        """Draw the previous or next orbital, and return the dialog's status line."""
        number = self.session.orbital
        (form,) = [form for form in self.panel.forms if form.command.draws == "orbital"]
        if number is None:
            raise CmdException("no orbital is shown; choose a file and an orbital, and press Run")
        form.fields["orbital"].setText(str(max(1, number + by)))
        self.panel.run()
        return str(self.panel.status.text())

    def event(self, event: Any) -> bool:
        """Update the offered selections and maps whenever the dialog is activated."""
        if event.type() in (QtCore.QEvent.Type.WindowActivate, QtCore.QEvent.Type.Show) and hasattr(self, "panel"):
            self.panel.refresh()
        return bool(super().event(event))

    def closeEvent(self, event: Any) -> None:  # noqa: N802 - Qt's name
        """Stop a running command and close the dialog."""
        self.panel.stop()
        super().closeEvent(event)


def position_beside(window: Any, size: Any, screen: Any) -> Any:
    """Return the position of a dialog next to a window, or in the screen's corner if there is no room."""
    for x in (window.right() + 1, window.left() - size.width()):
        if screen.left() <= x <= screen.right() + 1 - size.width():
            return QtCore.QPoint(x, window.top())
    return QtCore.QPoint(screen.right() + 1 - size.width(), screen.bottom() + 1 - size.height())


def open_dialog(cmd: Any, command: str = "") -> Dialog:
    """Show the dialog of a PyMOL session with the page of a command; it is created at its first use."""
    session = Session.of(cmd)
    if session.dialog is None:
        windows = QtWidgets.QApplication.topLevelWidgets()
        parent = next((w for w in windows if isinstance(w, QtWidgets.QMainWindow)), None)
        session.dialog = Dialog(cmd, parent)
        if parent is not None:
            session.dialog.move(position_beside(parent.frameGeometry(), session.dialog.size(),
                                                parent.screen().availableGeometry()))
    dialog: Dialog = session.dialog
    dialog.panel.show_command(command)
    dialog.show()
    dialog.raise_()
    dialog.activateWindow()
    return dialog
