"""Progress of typed commands: lines in PyMOL's output, and a box with a Stop button if PyMOL has a window."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from vmdpotential import progress

#: Seconds after which the box opens.
DELAY = 2.0


def listener() -> progress.Listener:
    """Return a listener that shows progress: a box if PyMOL has a Qt window, otherwise lines."""
    terminal = progress.Terminal(sys.stdout)
    # PyMOL has imported its Qt if it has a window; importing it here could fail or be slow
    qt = sys.modules.get("pymol.Qt")
    in_main_thread = threading.current_thread() is threading.main_thread()
    if qt is None or not in_main_thread or qt.QtWidgets.QApplication.instance() is None:
        return terminal
    return Box(qt, terminal)


class Box:
    """A listener that shows work of more than DELAY seconds in a box over PyMOL's window.

    While the box is open, the window is redrawn, but its other controls are blocked. Stop raises KeyboardInterrupt.
    """

    def __init__(self, qt: Any, terminal: progress.Listener) -> None:
        self._qt, self._terminal = qt, terminal
        self._start, self._drawn = time.monotonic(), 0.0
        self._box: Any = None

    def __call__(self, label: str, fraction: float) -> None:
        """Show the finished fraction of the work `label`."""
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
        self._box.setValue(int(1000 * fraction))  # also handles the user's events in the box
        self._qt.QtWidgets.QApplication.processEvents()
        if self._box.wasCanceled():
            raise KeyboardInterrupt

    def close(self) -> None:
        """Remove the box, also after KeyboardInterrupt."""
        if self._box is not None:
            self._box.close()
            self._box.deleteLater()
            self._box = None
