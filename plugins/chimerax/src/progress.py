"""Progress on ChimeraX's status line, and stopping with the Escape key."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

#: Seconds between two messages, and between two checks for the Escape key.
INTERVAL = 0.2


class StatusLine:
    """A listener of :mod:`vmdpotential.progress` that writes to the status line.

    In ChimeraX's window, the Escape key stops the work; other keys, clicks and drags are dropped meanwhile, so that no
    model can be closed during the work. Without a window, Ctrl-C stops it.

    Parameters
    ----------
    session : ChimeraX's session
    name : str
        Name of the command, which begins each message.
    """

    def __init__(self, session: Any, name: str) -> None:
        self.session = session
        self.name = name
        self._label = ""
        self._start = self._shown = 0.0
        self._keys = _EscapeKey() if session.ui.is_gui else None

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.session.logger.status("")

    def __call__(self, label: str, fraction: float) -> None:
        """Show the finished fraction of the work `label`; raise KeyboardInterrupt if Escape was pressed."""
        now = time.monotonic()
        if label != self._label:
            self._label, self._start = label, now
        elif now - self._shown < INTERVAL:
            return
        self._shown = now
        text = f"{self.name}: {label}"
        if 0 < fraction < 1:
            left = (now - self._start) * (1 - fraction) / fraction
            text += f", {100 * fraction:.0f} %, {left:.0f} s left"
        elif fraction == 0:
            text += " ..."
        self.session.logger.status(text + (", Esc stops it" if self._keys else ""))
        if self._keys is not None and self._keys.pressed():
            raise KeyboardInterrupt


class _EscapeKey:
    """Search of the window's events for the Escape key."""

    def pressed(self) -> bool:
        """Handle pending events, except those of the user, and return whether Escape was among them."""
        from Qt.QtCore import QEvent, QObject, Qt
        from Qt.QtWidgets import QApplication

        kinds = QEvent.Type
        dropped = {kinds.KeyPress, kinds.KeyRelease, kinds.ShortcutOverride, kinds.Shortcut, kinds.MouseButtonPress,
                   kinds.MouseButtonRelease, kinds.MouseButtonDblClick, kinds.MouseMove, kinds.Wheel, kinds.Drop,
                   kinds.Close}
        results = []

        class Filter(QObject):  # type: ignore[misc]
            def eventFilter(self, watched: Any, event: Any) -> bool:  # noqa: N802 (Qt's name)
                if event.type() == kinds.KeyPress and event.key() == Qt.Key.Key_Escape:
                    results.append(True)
                if event.type() not in dropped:
                    return False
                event.ignore()
                return True

        application = QApplication.instance()
        keys = Filter()
        application.installEventFilter(keys)
        try:
            application.processEvents()
        finally:
            application.removeEventFilter(keys)
        return bool(results)
