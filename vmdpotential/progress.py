"""Progress of long work: whoever runs a command listens, whoever computes reports."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TextIO

#: Receives a label and the fraction done, 0 to 1. It may raise KeyboardInterrupt to stop the work.
Listener = Callable[[str, float], None]

_listener: ContextVar[Listener | None] = ContextVar("progress", default=None)


def report(label: str, fraction: float) -> None:
    """Tell the listener, if there is one, how much of `label` is done."""
    listener = _listener.get()
    if listener is not None:
        listener(label, fraction)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send the reports made inside the block to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Terminal:
    """A listener that shows work of more than two seconds as a line on a stream.

    On a terminal the line is redrawn in place; in a log a line is written every ten seconds.
    """

    def __init__(self, stream: TextIO | None = None, delay: float = 2.0) -> None:
        self.stream = stream or sys.stderr
        self.delay = delay
        self.live = self.stream.isatty()
        self._label = ""
        self._start = self._shown = 0.0

    def __call__(self, label: str, fraction: float) -> None:
        now = time.monotonic()
        if label != self._label:
            self._label, self._start, self._shown = label, now, 0.0
        elapsed = now - self._start
        finished = fraction >= 1
        if elapsed < self.delay or (now - self._shown < (0.2 if self.live else 10.0) and not finished):
            return
        if finished and not self._shown:
            return
        self._shown = now
        left = elapsed * (1 - fraction) / fraction if fraction > 0 else float("nan")
        text = f"{label}: {100 * fraction:3.0f} %, {left:.0f} s left" if not finished else f"{label}: {elapsed:.1f} s"
        if self.live:
            self.stream.write(f"\r\x1b[K{text}" + ("\n" if finished else ""))
        else:
            self.stream.write(text + "\n")
        self.stream.flush()
