"""Tasks on Python threads: kernels release the GIL, so a shared counter is all that is needed."""

from __future__ import annotations

import _thread
import contextlib
import contextvars
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.errors import UsageError

#: Threads at most; more than any machine has processors.
MOST = 4096

_share: contextvars.ContextVar[int] = contextvars.ContextVar("share", default=0)

#: Numbers of a board (:func:`together`), each in a cache line of its own: one that is not 0 when all have to stop, how
#: often positions have been written, how many workers have summed, and from TAKEN on counters of parts that were taken.
STOP, WRITTEN, SUMMED, TAKEN = range(4)
#: Lines of a board, and numbers of a line.
LINES, LINE = 8, 8


def board() -> NDArray[np.int64]:
    """Return numbers that threads count up."""
    return np.zeros(LINES * LINE, np.int64)


def count() -> int:
    """Return how many threads to use: a share of them, VMDPOTENTIAL_THREADS, else the processors this process may use.

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


@contextlib.contextmanager
def sharing(workers: int) -> Iterator[None]:
    """Use a share of the threads inside the block, which as many workers run at once."""
    token = _share.set(max(1, count() // workers))
    try:
        yield
    finally:
        _share.reset(token)


def _start(task: Callable[[], None]) -> threading.Event:
    """Call a task on a new thread, and return an event that is set when it has ended.

    The task sees what the caller listens to and times, by a context of its own because two threads cannot share one.
    ``threading`` would wait until the thread runs, which takes a millisecond where other threads hold the GIL.
    """
    ended = threading.Event()  # to be waited for again, where Ctrl-C comes between the end and what follows it

    def whole() -> None:
        try:
            task()
        finally:
            ended.set()

    _thread.start_new_thread(contextvars.copy_context().run, (whole,))
    return ended


def run(task: Callable[[int, int], None], total: int, label: str, grain: int = 1) -> None:
    """Call ``task(start, stop)`` for consecutive parts of range(total) on all threads.

    Progress is reported by the thread that calls, also what the tasks report, such as the compiling of kernels; and
    Ctrl-C stops after the parts under way.

    Parameters
    ----------
    task : callable
        Must release the GIL for threads to help.
    total, grain : int
        Number of items, and items in a part.
    label : str
        What progress calls the work.
    """
    if count() == 1 or total <= grain:  # to start a thread takes as long as a small sum
        for start in range(0, total, grain):
            task(start, min(start + grain, total))
            progress.report(label, min((start + grain) / total, 0.999))
        progress.report(label, 1.0)
        return
    parts = itertools.count()
    done = 0
    stop = threading.Event()
    errors: list[BaseException] = []
    said: deque[tuple[str, float]] = deque()  # by the tasks

    def heard(text: str, fraction: float) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        said.append((text, fraction))

    def work() -> None:
        with progress.listening(heard):
            work_on()

    def work_on() -> None:
        nonlocal done
        while not stop.is_set():
            start = next(parts) * grain
            if start >= total:
                return
            try:
                task(start, min(start + grain, total))
            except BaseException as error:
                errors.append(error)
                stop.set()
                return
            done += min(grain, total - start)

    workers: list[threading.Event] = []
    now = ("", 1.0)
    try:
        for _ in range(min(count(), -(-total // grain))):
            workers.append(_start(work))
        while workers:
            if workers[-1].wait(0.1):
                workers.pop()
            while said:
                now = said.popleft()
                progress.report(*now)
            if now[1] < 1:  # a task is at it
                progress.report(*now)
            else:
                progress.report(label, min(done / total, 0.999))
    except BaseException:
        stop.set()
        raise
    finally:
        for worker in workers:
            worker.wait()
    if errors:
        raise errors[0]
    progress.report(label, 1.0)


def together(task: Callable[[int, NDArray[np.int64]], None], workers: int) -> None:
    """Call ``task(worker, board)`` on so many threads at once, of which the caller is the first.

    For work of milliseconds, to which :func:`run` would add one: no one waits for a thread to start, and compiled code
    shares it out and waits for other threads by the board (:mod:`~vmdpotential.compiling.meeting`). When a
    thread fails, also by Ctrl-C, ``board[STOP]`` becomes 1, at which the others end.
    """
    shared = board()
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
