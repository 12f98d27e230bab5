"""Contents of a dialog, in any Qt: a page for each command, buttons, progress, and a line with the result.

A viewer puts the panel's widget into a window of its own. Commands compute in another thread, and the viewer is only
used in its own thread: when a task is created, and when its results are shown.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, ClassVar, Protocol

from vmdpotential.errors import Spelling
from vmdpotential.frontend import messages
from vmdpotential.parameters import Command, Drawing, Report
from vmdpotential.progress import Listener, listen_to_progress

from .adapters import in_one_line
from .form import CommandForm

#: Height of the status, in lines.
STATUS_LINES = 3


class Task(ABC):
    """A run of a command, for which the viewer's data have already been read.

    Attributes
    ----------
    command : Command
    values : dict
        Values of its parameters.
    spell : function
        Spells parameters in messages.
    warn : function
        Function that is called with each warning, a line, also from the thread of :meth:`compute`.
    prefix : str
        What messages begin with.
    """

    #: The viewer's error, whose text is one line for the user.
    failure: ClassVar[type[Exception]]
    command: Command
    values: dict[str, Any]
    spell: Spelling
    warn: Callable[[str], None]
    prefix = ""

    @contextmanager
    def one_line(self) -> Iterator[None]:
        """Convert errors that the user can fix to the viewer's own error, with a message of one line."""
        with (in_one_line(self.failure, self.spell, self.prefix),
              messages.warnings(lambda text: self.warn(self.prefix + text), self.spell)):
            yield

    def compute(self, listener: Listener) -> Report:
        """Run the command, without using the viewer.

        Raises
        ------
        Exception
            The viewer's own error.
        KeyboardInterrupt
            When the listener raises it to stop the work.
        """
        with self.one_line(), listen_to_progress(listener):
            return self.command(**self.values)

    @abstractmethod
    def show(self, report: Report) -> list[str]:
        """Show the result, and return the lines for the user."""


class Viewer(Protocol):
    """Interface of a viewer that a panel needs."""

    @property
    def failure(self) -> type[Exception]:
        """The viewer's error, whose text is one line for the user."""

    @property
    def live(self) -> bool:
        """Whether a live map is running."""

    def task(self, command: Command, given: Mapping[str, str], warn: Callable[[str], None]) -> Task:
        """Return a run of a command with the values of its form."""

    def end_live(self) -> str:
        """End the live map and return the line for the user."""

    def write_line(self, line: str) -> None:
        """Write a line to the viewer's log or console."""


class Work:
    """A task that computes in a thread; the panel checks it from time to time.

    `label` and `fraction` are its progress; at the end, `report` or `error` (one line) is set.
    """

    def __init__(self, task: Task, failure: type[Exception]) -> None:
        self.task, self._failure = task, failure
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
            self.error = messages.STOPPED
        except self._failure as error:
            self.error = str(error)
        except Exception as error:  # an exception that leaves the thread would be lost
            self.error = f"Error: {type(error).__name__}: {error}"

    def _listen(self, label: str, fraction: float) -> None:
        self.label, self.fraction = label, fraction
        if self._stop.is_set():
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Request the task to stop at its next report of progress; a result is then not used."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether a stop was requested."""
        return self._stop.is_set()

    @property
    def running(self) -> bool:
        """Whether the thread is still running."""
        return self._thread.is_alive()


class DialogPanel:
    """The pages, buttons and status of a dialog.

    Parameters
    ----------
    qt : module with QtCore and QtWidgets
    viewer : Viewer
    forms : sequence of Form
    actions : mapping
        Further buttons by their text: what the commands draw on whose pages each is shown, and a function that returns
        a line for the user or raises the viewer's error.

    Attributes
    ----------
    widget : QWidget
    work : Work or None
        The running task, if there is one.
    """

    def __init__(self, qt: Any, viewer: Viewer, forms: Sequence[CommandForm],
                 actions: Mapping[str, tuple[Drawing, Callable[[], str]]] | None = None) -> None:
        self.qt, self.viewer, self.forms = qt, viewer, forms
        self.work: Work | None = None
        self._warnings: list[str] = []
        widgets = qt.QtWidgets
        self.widget = widgets.QWidget()
        self.tabs = widgets.QTabWidget()
        # pages are chosen from a list, because more than a dozen tabs do not fit next to each other
        self.tabs.tabBar().hide()
        self.pages = widgets.QComboBox()
        self.pages.setAccessibleName("command")
        self.pages.setMaxVisibleItems(30)
        for form in forms:
            title = form.command.name.capitalize()
            self.tabs.addTab(form.scrolled(), title)
            self.pages.addItem(title)
        self.pages.currentIndexChanged.connect(self.tabs.setCurrentIndex)
        self.tabs.currentChanged.connect(self.pages.setCurrentIndex)
        self.run_button, self.stop_button = (widgets.QPushButton(text) for text in ("Run", "Stop"))
        self.run_button.clicked.connect(self.run)
        self.stop_button.clicked.connect(self.stop)
        self.run_button.setDefault(True)
        self.actions = {text: widgets.QPushButton(text) for text in actions or {}}
        for text, button in self.actions.items():
            draws, action = (actions or {})[text]
            button.clicked.connect(lambda *state, action=action: self._act(action))
            button.setProperty("draws", draws)
        self.tabs.currentChanged.connect(self._offer_actions)
        self.live_box = widgets.QCheckBox("Live map")
        self.live_box.setToolTip("Keep a map up to date with the options of the page Live")
        self.live_box.clicked.connect(self._switch_live)
        self.live_box.setVisible(any(form.command.draws == "live" for form in forms))
        self.progress = widgets.QProgressBar()
        self.progress.setRange(0, 1000)
        self.status = widgets.QLabel("Press Run to start. Help is next to every field.")
        self.status.setTextFormat(qt.QtCore.Qt.TextFormat.PlainText)  # names of files must not be taken for HTML
        self.status.setWordWrap(True)
        self.status.setAlignment(qt.QtCore.Qt.AlignmentFlag.AlignTop)
        self.status.setTextInteractionFlags(qt.QtCore.Qt.TextInteractionFlag.TextSelectableByMouse)
        # a fixed height, so that its text does not move the widgets above
        self.status.setFixedHeight(STATUS_LINES * self.status.fontMetrics().lineSpacing() + 4)
        buttons = widgets.QHBoxLayout()
        for widget in (self.run_button, self.stop_button, *self.actions.values()):
            widget.setAutoDefault(widget is self.run_button)
            buttons.addWidget(widget)
        buttons.addWidget(self.live_box)
        buttons.addWidget(self.progress, 1)
        layout = widgets.QVBoxLayout(self.widget)
        choice = widgets.QHBoxLayout()
        choice.addWidget(widgets.QLabel("Command"))
        choice.addWidget(self.pages)
        choice.addStretch(1)
        layout.addLayout(choice)
        layout.addWidget(self.tabs, 1)
        layout.addLayout(buttons)
        layout.addWidget(self.status)
        self.timer = qt.QtCore.QTimer(self.widget)
        self.timer.timeout.connect(self._look)
        self.timer.start(100)
        self._enable()
        self._offer_actions(self.tabs.currentIndex())

    def _offer_actions(self, page: int) -> None:
        """Show the buttons that belong to a page."""
        for button in self.actions.values():
            button.setVisible(bool(self.forms) and button.property("draws") == self.forms[page].command.draws)

    def show_command(self, name: str) -> None:
        """Show the page of a command."""
        for position, form in enumerate(self.forms):
            if form.command.name == name:
                self.tabs.setCurrentIndex(position)

    def run(self) -> None:
        """Run the command of the current page."""
        if self.work is not None:
            return
        form = self.forms[self.tabs.currentIndex()]
        try:
            self.work = Work(self.viewer.task(form.command, form.texts(), self._warnings.append), self.viewer.failure)
        except self.viewer.failure as error:
            self.say(str(error), error=True)
            return
        self.say(f"{form.command.name}: running; the window can be used meanwhile")
        self._enable()

    def stop(self) -> None:
        """Stop the running task without a result."""
        if self.work is not None:
            self.work.stop()
            self.say("stopping ...")

    def say(self, text: str, error: bool = False) -> None:
        """Show a line in the status."""
        text = " ".join(text.split())
        self.status.setText(text)
        self.status.setToolTip(f"<p>{escape(text)}</p>")  # Qt wraps a paragraph, but not plain text
        self.status.setStyleSheet("color: #b00020" if error else "")

    def refresh(self) -> None:
        """Offer the viewer's current objects in all forms."""
        for form in self.forms:
            form.refresh()

    def _act(self, action: Callable[[], str]) -> None:
        try:
            self.say(action())
        except self.viewer.failure as error:
            self.say(str(error), error=True)
        self.refresh()

    def _switch_live(self, on: bool) -> None:
        if not on:
            self._act(self.viewer.end_live)
        elif self.work is None:
            (live,) = [form.command.name for form in self.forms if form.command.draws == "live"]
            self.show_command(live)
            self.run()

    def _look(self) -> None:
        """Show the progress of the task, and its results when it is done."""
        while self._warnings:  # from the thread, which must not use the viewer
            self.viewer.write_line(f"warning: {self._warnings.pop(0)}")
        work = self.work
        if work is None:
            self.live_box.setChecked(self.viewer.live)
            return
        self.progress.setValue(int(1000 * work.fraction))
        if work.label:
            self.progress.setFormat(f"{work.label} %p%")
        if work.running:
            return
        self.work = None
        try:
            if work.report is not None and not work.stopped:
                self._finish(work.task.command.name, work.task.show(work.report))
            elif work.stopped:
                self.say(messages.STOPPED)
            else:
                self.say(work.error, error=True)
        except self.viewer.failure as error:
            self.say(str(error), error=True)
        except Exception as error:  # raised again, so that the viewer shows the traceback
            self.say(f"Error: {type(error).__name__}: {error}", error=True)
            raise
        finally:
            self.progress.reset()
            self._enable()
            self.refresh()

    def _finish(self, name: str, lines: Sequence[str]) -> None:
        for line in lines:
            self.viewer.write_line(f"{name}: {line}")  # the log keeps all lines, the status shows only the last
        self.say(f"{name}: {lines[-1] if lines else 'done'}")

    def _enable(self) -> None:
        for widget in (self.run_button, self.live_box, *self.actions.values()):
            widget.setEnabled(self.work is None)
        self.stop_button.setEnabled(self.work is not None)
