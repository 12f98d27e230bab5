"""Signals that interrupt the shell program."""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from types import FrameType

#: Signals that interrupt the work: Ctrl-C, a request to end, and a closed terminal.
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")

#: Time, s, after which a signal during an import is sent again.
RESEND_SECONDS = 0.02

#: File of Python's import machinery, and the module that calls the commands.
IMPORT_FILE, CALLER = "<frozen importlib._bootstrap>", "vmdpotential.frontend.cli"


@contextlib.contextmanager
def handled() -> Iterator[None]:
    """Let all signals of :data:`SIGNALS` raise KeyboardInterrupt; the handlers before are restored."""
    before = {}
    try:
        for name in SIGNALS:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            # keep a signal that nohup ignores, and a handler that Python did not set (None)
            if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                with contextlib.suppress(ValueError):  # only the main thread handles signals
                    before[number] = signal.signal(number, interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not before an import has ended.

    The initialisation of a compiled module calls Python, and aborts the process where an exception comes back.
    """
    while frame is not None and frame.f_globals.get("__name__") != CALLER:
        if frame.f_code.co_filename == IMPORT_FILE:
            _thread.start_new_thread(_send_again, (number,))  # without the locks of threading, which may be held here
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _send_again(number: int) -> None:
    time.sleep(RESEND_SECONDS)
    os.kill(os.getpid(), number)  # also wakes a main thread that waits
