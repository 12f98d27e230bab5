"""The dialog: a page for each command, Run, Stop, progress, and what came out in one line."""

from __future__ import annotations

import threading
from typing import Any

from pymol import CmdException
from pymol.Qt import QtCore, QtWidgets

from vmdpotential.errors import VmdpotentialError
from vmdpotential.frontend import messages
from vmdpotential.parameters import Report

from . import arguments
from .commands import viewer_commands
from .form import Form
from .made import Session
from .task import Task


class Work:
    """A task that computes in a thread; the dialog looks at it from time to time.

    `label` and `fraction` say how far it is; `report`, or `error` (one line), is there at the end.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.label, self.fraction = "", 0.0
        self.report: Report | None = None
        self.error = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.report = self.task.compute(self._listen)
        except KeyboardInterrupt:
            self.error = "stopped; nothing was made"
        except CmdException as error:
            self.error = str(error)  # begins with "Error:", as PyMOL prints it
        except Exception as error:  # an exception that leaves the thread would be lost
            self.error = f"Error: {type(error).__name__}: {error}"

    def _listen(self, label: str, fraction: float) -> None:
        self.label, self.fraction = label, fraction
        if self._stop.is_set():
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Ask it to stop at its next report of progress, and its result, if it has one by then, not to be used."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether it was asked to stop."""
        return self._stop.is_set()

    @property
    def running(self) -> bool:
        """Whether it computes still."""
        return self._thread.is_alive()


class Dialog(QtWidgets.QDialog):  # type: ignore[misc]
    """The dialog for one PyMOL.

    Parameters
    ----------
    cmd : PyMOL's cmd module or instance
    parent : QWidget or None
    """

    def __init__(self, cmd: Any, parent: Any = None) -> None:
        super().__init__(parent)
        self.cmd = cmd
        self.work: Work | None = None
        self._warnings: list[str] = []
        self.setWindowTitle("Electrostatic potential - vmdpotential")
        self.forms = [Form(cmd, command) for command in viewer_commands()]
        self.tabs = QtWidgets.QTabWidget()
        for form in self.forms:
            self.tabs.addTab(form.scrolled(), form.command.name.capitalize())
        self.run_button, self.stop_button, self.undo_button = (
            QtWidgets.QPushButton(text) for text in ("Run", "Stop", "Undo placement"))
        self.run_button.clicked.connect(self.run)
        self.stop_button.clicked.connect(self.stop)
        self.undo_button.clicked.connect(self.undo)
        self.run_button.setDefault(True)
        self.progress = QtWidgets.QProgressBar()
        self.progress.setRange(0, 1000)
        self.status = QtWidgets.QLabel("Choose a page, fill it in and press Run; every field has its help beside it.")
        self.status.setWordWrap(True)
        self.status.setTextInteractionFlags(QtCore.Qt.TextInteractionFlag.TextSelectableByMouse)
        buttons = QtWidgets.QHBoxLayout()
        for widget in (self.run_button, self.stop_button, self.undo_button):
            widget.setAutoDefault(widget is self.run_button)
            buttons.addWidget(widget)
        buttons.addWidget(self.progress, 1)
        layout = QtWidgets.QVBoxLayout(self)
        layout.addWidget(self.tabs, 1)
        layout.addLayout(buttons)
        layout.addWidget(self.status)
        self.timer = QtCore.QTimer(self)
        self.timer.timeout.connect(self._look)
        self.timer.start(100)
        self.resize(760, 640)
        self._enable()

    def show_command(self, name: str) -> None:
        """Bring the page of a command to the front."""
        for position, form in enumerate(self.forms):
            if form.command.name == name:
                self.tabs.setCurrentIndex(position)

    def run(self) -> None:
        """Run the command of the page in front."""
        if self.work is not None:
            return
        form = self.forms[self.tabs.currentIndex()]
        try:
            self.work = Work(Task(self.cmd, form.command, form.given(), self._warnings.append))
        except CmdException as error:
            self._say(str(error), error=True)
            return
        self._say(f"{form.command.name}: running; PyMOL can be used meanwhile")
        self._enable()

    def stop(self) -> None:
        """Stop what runs; nothing of it is left."""
        if self.work is not None:
            self.work.stop()
            self._say("stopping ...")

    def undo(self) -> None:
        """Undo the last placement of ions."""
        try:
            self._say(Session.of(self.cmd).undo())
        except VmdpotentialError as error:
            self._say(f"Error: {messages.one_line(error, arguments.spell)}", error=True)
        self._refresh()

    def _look(self) -> None:
        """Show how far the work is, and its results when it is done."""
        while self._warnings:  # of the thread, which does not touch PyMOL
            print(f" warning: {self._warnings.pop(0)}")
        work = self.work
        if work is None:
            return
        self.progress.setValue(int(1000 * work.fraction))
        if work.label:
            self.progress.setFormat(f"{work.label} %p%")
        if work.running:
            return
        self.work = None
        if work.report is not None and not work.stopped:
            try:
                self._finish(work.task.command.name, work.task.show(work.report))
            except CmdException as error:
                self._say(str(error), error=True)
        elif work.stopped:
            self._say("stopped; nothing was made")
        else:
            self._say(work.error, error=True)
        self.progress.reset()
        self._enable()
        self._refresh()

    def _finish(self, name: str, lines: list[str]) -> None:
        for line in lines:
            print(f" {name}: {line}")  # PyMOL's own output keeps all of it
        self._say(f"{name}: {lines[-1] if lines else 'done'}")

    def _say(self, text: str, error: bool = False) -> None:
        self.status.setText(" ".join(text.split()))
        self.status.setStyleSheet("color: #b00020" if error else "")

    def _enable(self) -> None:
        self.run_button.setEnabled(self.work is None)
        self.undo_button.setEnabled(self.work is None)
        self.stop_button.setEnabled(self.work is not None)

    def _refresh(self) -> None:
        for form in self.forms:
            form.refresh()

    def event(self, event: Any) -> bool:
        """Offer the selections of the session as it is whenever the dialog comes to the front."""
        if event.type() in (QtCore.QEvent.Type.WindowActivate, QtCore.QEvent.Type.Show):
            self._refresh()
        return bool(super().event(event))

    def closeEvent(self, event: Any) -> None:  # noqa: N802 - Qt's name
        """Stop what runs."""
        self.stop()
        super().closeEvent(event)


def open_dialog(cmd: Any, command: str = "") -> Dialog:
    """Show the dialog of a PyMOL, made when it is asked for first, with the page of a command in front."""
    session = Session.of(cmd)
    if session.dialog is None:
        windows = QtWidgets.QApplication.topLevelWidgets()
        session.dialog = Dialog(cmd, next((w for w in windows if isinstance(w, QtWidgets.QMainWindow)), None))
    dialog: Dialog = session.dialog
    dialog.show_command(command)
    dialog.show()
    dialog.raise_()
    dialog.activateWindow()
    return dialog
