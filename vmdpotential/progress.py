"""Progress of long work: computations report it, and the caller of a command listens."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TextIO

#: Receives a label and the fraction done, 0 to 1. It may raise KeyboardInterrupt to stop the work.
Listener = Callable[[str, float], None]

#: Label of the compilation of kernels.
COMPILING = "compiling kernels (once)"

_listener: ContextVar[Listener | None] = ContextVar("progress", default=None)


def report_progress(label: str, fraction: float) -> None:
    """Report to the listener, if there is one, the fraction of `label` that is done."""
    listener = _listener.get()
    if listener is not None:
        listener(label, fraction)


def listener() -> Listener | None:
    """Return the current listener, if there is one."""
    return _listener.get()


@contextlib.contextmanager
def listen_to_progress(listener: Listener) -> Iterator[None]:
    """Send the reports made inside the block to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextlib.contextmanager
def parts(label: str, count: int) -> Iterator[Callable[[], None]]:
    """Report work of several equal parts as one; reports of a part do not change the label, or the fraction done.

    Yields
    ------
    callable
        Function to call when a part is done.
    """
    outer, done = _listener.get(), 0

    def inner(name: str, fraction: float) -> None:
        if outer is not None:
            outer(*((name, fraction) if name == COMPILING else (label, min(done / count, 0.999))))

    def part_done() -> None:
        nonlocal done
        done += 1
        if outer is not None:
            outer(label, done / count)

    with listen_to_progress(inner):
        yield part_done


@dataclass
class Clock:
    """Time of a run."""

    #: Time of compiling kernels, or of waiting for another process that does, s.
    compiling: float = 0.0
    #: Time of the run without it, s; 0 until the end of the run.
    seconds: float = 0.0


_clock: ContextVar[Clock | None] = ContextVar("clock", default=None)


@contextlib.contextmanager
def clock() -> Iterator[Clock]:
    """Measure the time of the work inside the block, and how much of it is spent on compiling."""
    result, start = Clock(), time.perf_counter()
    token = _clock.set(result)
    try:
        yield result
    finally:
        _clock.reset(token)
        result.seconds = time.perf_counter() - start - result.compiling


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Report that kernels are compiled, and measure the time."""
    start = time.perf_counter()
    report_progress(COMPILING, 0.0)
    try:
        yield
    finally:
        result = _clock.get()
        if result is not None:
            result.compiling += time.perf_counter() - start
    report_progress(COMPILING, 1.0)


class Terminal:
    """A listener that shows the progress of work longer than two seconds as a line on a stream.

    On a terminal the line is redrawn in place; in a log file at most one line is written every ten seconds. Work that
    reports nothing but its beginning, such as a compilation, is shown as well.

    Parameters
    ----------
    stream : text stream
        Standard error unless given.
    delay : float, s
        Duration after which work is shown.
    every : float, s
        Least time between two lines of a log.
    """

    def __init__(self, stream: TextIO | None = None, delay: float = 2.0, every: float = 10.0) -> None:
        self.stream = stream or sys.stderr
        self.delay, self.every = delay, every
        self.live = self.stream.isatty()
        self._label = ""
        self._start = 0.0
        self._fraction = 0.0
        self._shown: float | None = None
        self._written = -math.inf
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._reminder: threading.Thread | None = None

    def close(self) -> None:
        """End a line that is being redrawn, so that further output starts on a new line."""
        self._closed.set()
        with self._lock:
            if self.live and self._shown is not None and self._label:
                self.stream.write("\n")
                self.stream.flush()

    def __call__(self, label: str, fraction: float) -> None:
        """Show the fraction of `label` that is done."""
        with self._lock:
            self._update(label, fraction)
            if self._reminder is None and self._label:
                self._reminder = threading.Thread(target=self._remind, daemon=True)
                self._reminder.start()

    def _remind(self) -> None:
        """Show the current work once it has taken long, although it has reported nothing since."""
        while not self._closed.wait(self.delay / 4):
            with self._lock:
                if self._label and self._shown is None and not self._closed.is_set():
                    self._update(self._label, self._fraction)

    def _update(self, label: str, fraction: float) -> None:
        now = time.monotonic()
        self._fraction = fraction
        if label != self._label:
            self._label, self._start, self._shown = label, now, None
        elapsed = now - self._start
        finished = fraction >= 1
        if finished:
            self._label = ""  # the next report of this label is new work
        interval = 0.2 if self.live else self.every
        if self._shown is None:
            if finished or elapsed < self.delay or (not self.live and now - self._written < interval):
                return
        elif not finished and now - self._shown < interval:
            return
        self._shown = self._written = now
        if finished:
            text = f"{label}: {elapsed:.1f} s"
        elif fraction > 0:
            text = f"{label}: {100 * fraction:3.0f} %, {elapsed * (1 - fraction) / fraction:.0f} s left"
            count = label.partition(" ")[0]
            if count.isdecimal() and elapsed > 0:  # such as "1000 frames"
                text += f", {fraction * int(count) / elapsed:.3g} per second"
        else:
            text = f"{label} ..."
        if self.live:
            self.stream.write(f"\r\x1b[K{text}" + ("\n" if finished else ""))
        else:
            self.stream.write(text + "\n")
        self.stream.flush()
