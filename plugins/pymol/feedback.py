"""Progress of commands that are typed: lines in PyMOL's output, and in its window a box with a Stop button."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from vmdpotential import progress

#: Seconds that work takes before the box opens.
DELAY = 2.0


def listener() -> progress.Listener:
    """Return what shows progress here: a box in PyMOL's Qt window, else lines."""
    terminal = progress.Terminal(sys.stdout)
    # PyMOL itself has imported its Qt when there is a window; importing it only to ask could fail or be slow
    qt = sys.modules.get("pymol.Qt")
    in_main_thread = threading.current_thread() is threading.main_thread()
    if qt is None or not in_main_thread or qt.QtWidgets.QApplication.instance() is None:
        return terminal
    return Box(qt, terminal)


class Box:
    """A listener that shows work of more than DELAY in a box over PyMOL's window.

    While it is open the window is redrawn and its other controls wait. Stop raises KeyboardInterrupt.
    """

    def __init__(self, qt: Any, terminal: progress.Listener) -> None:
        self._qt, self._terminal = qt, terminal
        self._start, self._drawn = time.monotonic(), 0.0
        self._box: Any = None

    def __call__(self, label: str, fraction: float) -> None:
        """Show how much of `label` is done."""
        self._terminal(label, fraction)
        now = time.monotonic()
        if now - self._start < DELAY or now - self._drawn < 0.1:
            return
        self._drawn = now
        if self._box is None:
            self._box = self._qt.QtWidgets.QProgressDialog(label, "Stop", 0, 1000)
            self._box.setWindowTitle("vmdpotential")
            self._box.setWindowModality(self._qt.QtCore.Qt.WindowModality.ApplicationModal)
            self._box.setAutoClose(False)
            self._box.setAutoReset(False)
            self._box.setMinimumDuration(0)
        self._box.setLabelText(label)
        self._box.setValue(int(1000 * fraction))  # also handles what the user does with the box
        self._qt.QtWidgets.QApplication.processEvents()
        if self._box.wasCanceled():
            raise KeyboardInterrupt

    def close(self) -> None:
        """Remove the box, also after KeyboardInterrupt."""
        if self._box is not None:
            self._box.close()
            self._box.deleteLater()
            self._box = None
