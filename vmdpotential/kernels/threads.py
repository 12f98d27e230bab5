"""Tasks on Python threads, which share out their work by a counter; kernels release the GIL."""

from __future__ import annotations

import _thread
import contextlib
import contextvars
import itertools
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.errors import UsageError

#: Greatest number of threads, more than the processors of any machine.
MOST = 4096

_share: contextvars.ContextVar[int] = contextvars.ContextVar("share", default=0)

#: Shared counters (:func:`together`): numbers of cache lines, and of numbers in a line, of which each has one counter.
#: That in line STOP is not 0 when all threads have to stop.
LINES, LINE, STOP = 8, 8, 0

#: Time of a part, s, below which a single thread takes larger ones, as about 5 microseconds are lost between parts, and
#: the number of parts up to which it does not.
SHORT_PART, FEW_PARTS = 1e-3, 8


def count() -> int:
    """Return the number of threads: a share (:func:`sharing`), VMDPOTENTIAL_THREADS, or the available processors.

    Raises
    ------
    UsageError
        When the variable is not a whole number from 1 to :data:`MOST`.
    """
    if share := _share.get():
        return share
    text = os.environ.get("VMDPOTENTIAL_THREADS", "")
    if text:
        if not (text.isascii() and text.isdecimal() and len(text) <= 9 and 1 <= int(text) <= MOST):
            raise UsageError("VMDPOTENTIAL_THREADS", f"a positive whole number up to {MOST} is needed",
                             value=repr(text[:30]))
        return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shared() -> bool:
    """Return whether this thread has a share of the threads, within :func:`sharing`."""
    return _share.get() > 0


@contextlib.contextmanager
def sharing(workers: int) -> Iterator[None]:
    """Use a share of the threads within the block, which so many workers execute at once."""
    token = _share.set(max(1, count() // workers))
    try:
        yield
    finally:
        _share.reset(token)


#: Inboxes of threads that wait for work. They stay, because a new thread often starts on a processor that is busy.
_idle: list[queue.SimpleQueue[Callable[[], None]]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def _serve(inbox: queue.SimpleQueue[Callable[[], None]]) -> None:
    while True:
        inbox.get()()


def _start(task: Callable[[], None]) -> threading.Event:
    """Call a task on another thread, and return an event that is set when it has ended.

    The task has a copy of the caller's context, and so its listeners and clocks, as two threads cannot share one.
    """
    ended = threading.Event()  # an event can be waited for again after Ctrl-C interrupted the wait
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = queue.SimpleQueue()
        _thread.start_new_thread(_serve, (inbox,))  # threading would wait until it runs, which may take a millisecond
    context = contextvars.copy_context()

    def whole() -> None:
        try:
            context.run(task)
        finally:
            _idle.append(inbox)
            ended.set()

    inbox.put(whole)
    return ended


def run(task: Callable[[int, int], None], total: int, label: str, grain: int = 1) -> None:
    """Call ``task(start, stop)`` for consecutive parts of range(total) on all threads, the calling one among them.

    Progress, also that of the tasks, such as the compilation of kernels, is reported by the calling thread, between its
    own parts and while it waits for the others. Ctrl-C takes effect when the parts under way have ended.

    Parameters
    ----------
    task : callable
        Must release the GIL for threads to help.
    total, grain : int
        Number of items, and number of items in a part.
    label : str
        Label of the progress.
    """
    if count() == 1 and total > FEW_PARTS * grain:
        _run_alone(task, total, label, grain)
        return
    parts, done = itertools.count(), 0

    def take() -> bool:
        """Do the next part; return False if there is none."""
        nonlocal done
        start = next(parts) * grain
        if start >= total or stop.is_set():
            return False
        task(start, min(start + grain, total))
        done += min(grain, total - start)
        return True

    stop = threading.Event()
    errors: list[BaseException] = []
    reports: deque[tuple[str, float]] = deque()  # of other threads

    def listen(text: str, fraction: float) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        reports.append((text, fraction))

    def work() -> None:
        with progress.listen_to_progress(listen):
            try:
                while take():
                    pass
            except BaseException as error:
                errors.append(error)
                stop.set()

    now = ("", 1.0)

    def tell() -> None:
        nonlocal now
        while reports:
            now = reports.popleft()
            progress.report_progress(*now)
        if now[1] < 1:  # that of a part, which is not finished
            progress.report_progress(*now)
        else:
            progress.report_progress(label, min(done / total, 0.999))

    others: list[threading.Event] = []
    try:
        for _ in range(min(count(), -(-total // grain)) - 1):
            others.append(_start(work))
        while take():
            tell()
        while others:
            if others[-1].wait(0.1):
                others.pop()
            tell()
    except BaseException:
        stop.set()
        raise
    finally:
        for other in others:
            other.wait()
    if errors:
        raise errors[0]
    progress.report_progress(label, 1.0)


def _run_alone(task: Callable[[int, int], None], total: int, label: str, grain: int) -> None:
    """Call a task as :func:`run` does on one thread, for larger and larger parts as long as they take little time."""
    first = 0
    while first < total:
        begin, last = time.perf_counter(), min(first + grain, total)
        task(first, last)
        first = last
        progress.report_progress(label, min(first / total, 0.999))
        if time.perf_counter() - begin < SHORT_PART:
            grain *= 2
    progress.report_progress(label, 1.0)


def joined(kernel: Callable[[int, int], tuple[NDArray[Any], ...]], total: int, label: str,
           grain: int = 1) -> tuple[NDArray[Any], ...]:
    """Return the arrays that a kernel returns for parts of range(total), joined in order; they run as in :func:`run`.
    """
    parts = {}

    def add(first: int, last: int) -> None:
        parts[first] = kernel(first, last)

    run(add, total, label, grain)
    if not parts:
        add(0, 0)  # empty arrays
    return tuple(np.concatenate(each) for each in zip(*(parts[first] for first in sorted(parts)), strict=True))


def together(task: Callable[[int, NDArray[np.int64]], None], workers: int) -> None:
    """Call ``task(worker, counters)`` on several threads at once, the first of which is the calling thread.

    For work of milliseconds, to which :func:`run` would add one: nothing waits for a thread to start, and kernels share
    out the work, and wait for other threads, by means of the counters.
    When a thread fails, also by Ctrl-C, ``counters[STOP]`` becomes 1, and the others end.
    """
    shared = np.zeros(LINES * LINE, np.int64)
    errors: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            task(worker, shared)
        except BaseException as error:
            errors.append(error)
            shared[STOP] = 1

    under_way = []
    try:
        for worker in range(1, workers):
            under_way.append(_start(partial(work, worker)))
        work(0)
    except BaseException as error:  # no more threads
        errors.append(error)
        shared[STOP] = 1
    while under_way:
        try:
            under_way[-1].wait()
            under_way.pop()
        except KeyboardInterrupt as error:
            errors.append(error)
            shared[STOP] = 1
    if errors:
        raise errors[0]
