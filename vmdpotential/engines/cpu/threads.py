"""Tasks on Python threads: kernels release the GIL, so a shared counter is all that is needed."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable

from vmdpotential import progress
from vmdpotential.errors import UsageError


def count() -> int:
    """Return how many threads to use: VMDPOTENTIAL_THREADS, else the processors this process may use.

    Raises
    ------
    UsageError
        When the variable is not a positive whole number.
    """
    text = os.environ.get("VMDPOTENTIAL_THREADS", "")
    if text:
        if not text.isdecimal() or int(text) < 1:
            raise UsageError(f"VMDPOTENTIAL_THREADS={text!r}: a positive whole number is needed")
        return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(task: Callable[[int, int], None], total: int, label: str, grain: int = 1) -> None:
    """Call ``task(start, stop)`` for consecutive parts of range(total) on all threads.

    Progress is reported, and Ctrl-C stops after the parts under way.

    Parameters
    ----------
    task : callable
        Must release the GIL for threads to help.
    total, grain : int
        Number of items, and items in a part.
    label : str
        What progress calls the work.
    """
    parts = itertools.count()
    done = 0
    stop = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
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

    workers = [threading.Thread(target=work, daemon=True) for _ in range(min(count(), -(-total // grain)))]
    for worker in workers:
        worker.start()
    try:
        for worker in workers:
            while worker.is_alive():
                worker.join(0.1)
                progress.report(label, min(done / total, 0.999))
    except BaseException:
        stop.set()
        raise
    finally:
        for worker in workers:
            worker.join()
    if errors:
        raise errors[0]
    progress.report(label, 1.0)
