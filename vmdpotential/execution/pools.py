"""Pools that compute blocks: this thread, or several threads with a GPU, a share of the cores, or a process each.

:func:`collect_blocks` submits blocks to any pool as futures of :mod:`concurrent.futures`, a few at a time, so that the
memory needed does not grow with their number. It reports progress, where a listener may raise KeyboardInterrupt, and
submits a block again when its worker was lost.
"""

from __future__ import annotations

import contextlib
import contextvars
import pickle
import queue
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial

from vmdpotential import memory, progress
from vmdpotential.engines import get_engine
from vmdpotential.errors import TaskError, VmdpotentialError
from vmdpotential.execution.work import Arrays, Work
from vmdpotential.kernels import threads

#: Result of a block, and the seconds that it took.
BlockResult = tuple[Arrays, float]
#: Function that binds the calling thread to a GPU, or to a share of the cores.
Binding = Callable[[], contextlib.AbstractContextManager[object]]

#: Seconds between two reports of progress.
POLL = 0.1

#: Python's switch interval, s: while blocks are computed, and its default.
TURN, DEFAULT_TURN = 1e-4, 5e-3

#: How often a block is submitted again after its worker was lost; a block that kills its worker would do so each time.
RETRIES = 3


class WorkerError(TaskError):
    """An unexpected error of a worker."""

    @classmethod
    def of(cls, error: Exception) -> VmdpotentialError:
        """Return errors of this package unchanged, and any other as a WorkerError with its class and text."""
        if isinstance(error, VmdpotentialError):
            return error
        return cls(": ".join([type(error).__name__, *filter(None, [" ".join(str(error).split())])]))


class LostError(WorkerError):
    """A worker that died or failed for reasons of its own, so that another one may succeed."""


class WorkerPool(ABC):
    """An executor of blocks."""

    def ahead(self) -> int:
        """Return how many blocks may be submitted and not yet taken."""
        return 1

    @abstractmethod
    def submit(self, block: range) -> Future[BlockResult]:
        """Return the future of a block's result."""

    def poll(self) -> None:
        """Raise an error if no more results can be expected."""
        return

    def close(self) -> None:
        """Stop the blocks that are being computed."""
        return


def collect_blocks(pool: WorkerPool, blocks: Sequence[range], arrived: Callable[[range, Arrays, float], None], *,
            submit: Callable[[range], Future[BlockResult]] | None = None, label: str = "blocks", ordered: bool = True,
            retries: int = RETRIES) -> Generator[tuple[int, Future[BlockResult]], None, None]:
    """Yield the number of each finished block, and the future with its result or error, in the order of the blocks.

    Parameters
    ----------
    pool : Pool
    blocks : sequence of range
    arrived : callable
        Called with each block, its result and the seconds it took, as soon as it is finished.
    submit : callable, optional
        Used instead of the pool's own.
    label : str
        Label under which progress is reported.
    ordered : bool
        Whether results are yielded in the order of the blocks, else as they are finished.
    retries : int
        How often a block is submitted again after its worker was lost.
    """
    submit = submit or pool.submit
    running: dict[Future[BlockResult], int] = {}
    ready: dict[int, Future[BlockResult]] = {}
    failures: Counter[int] = Counter()
    submitted = taken = 0
    while taken < len(blocks):
        number = taken if ordered else next(iter(ready), -1)
        if number in ready:
            yield number, ready.pop(number)
            taken += 1
            continue
        while submitted < len(blocks) and submitted < taken + pool.ahead():
            running[submit(blocks[submitted])] = submitted
            submitted += 1
        progress.report_progress(label, taken / len(blocks))
        pool.poll()
        for future in wait(running, POLL, FIRST_COMPLETED).done:
            number = running.pop(future)
            error = future.exception()
            if isinstance(error, LostError) and failures[number] < retries:
                failures[number] += 1
                running[submit(blocks[number])] = number
                continue
            if error is None:
                arrived(blocks[number], *future.result())
            ready[number] = future
    progress.report_progress(label, 1.0)


def finished_future(compute: Callable[[], BlockResult]) -> Future[BlockResult]:
    """Return a future that is done, with the result of a function that is called now, or its error."""
    future: Future[BlockResult] = Future()
    try:
        future.set_result(compute())
    except Exception as error:
        future.set_exception(error)
    return future


def timed_result(work: Work, block: range) -> BlockResult:
    """Return the result of a block, and the seconds that it took."""
    start, before = time.perf_counter(), sys.getswitchinterval()
    sys.setswitchinterval(TURN)  # so that a thread that starts kernels soon gets the GIL from one that reads
    try:
        return work.block(block), time.perf_counter() - start
    finally:
        # an interval that another thread has set is read back rounded
        sys.setswitchinterval(before if before > 2 * TURN else DEFAULT_TURN)


class CallingThread(WorkerPool):
    """The calling thread, which computes a block when it is submitted."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def submit(self, block: range) -> Future[BlockResult]:
        """Return the future of a block's result, which is done."""
        return finished_future(lambda: timed_result(self.work, block))


class WorkerThreads(WorkerPool):
    """Threads, each with its own function that computes a block.

    Parameters
    ----------
    computes : sequence of callable
        One for each thread.
    stop : callable
        Makes the blocks that are being computed end soon, with an error.
    """

    def __init__(self, computes: Sequence[Callable[[range], BlockResult]], stop: Callable[[], None]) -> None:
        self._stop, self._count = stop, len(computes)
        self._free: queue.LifoQueue[Callable[[range], BlockResult]] = queue.LifoQueue()  # the last used is used first
        for compute in computes[::-1]:
            self._free.put(compute)
        self._threads = ThreadPoolExecutor(len(computes))

    def ahead(self) -> int:
        """Return twice the number of threads."""
        return 2 * self._count

    def submit(self, block: range) -> Future[BlockResult]:
        """Return the future of a block's result, computed by the next free thread."""
        # each with a copy of the caller's context, as two threads cannot share one
        return self._threads.submit(contextvars.copy_context().run, self._compute, block)

    def _compute(self, block: range) -> BlockResult:
        compute = self._free.get()
        try:
            return compute(block)
        finally:
            self._free.put(compute)

    def close(self) -> None:
        """Stop the blocks that are being computed, and wait for their end."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._stop()
        self._threads.shutdown()


def on_threads(work: Work, blocks: int) -> WorkerPool:
    """Return a pool with a thread for each GPU of the work's engine, or for each share of the cores.

    A thread that computes a whole block need not wait for others, and keeps its sums in its cache. No more blocks are
    computed at once than fit into memory; where that is one, the pool is the calling thread.
    """
    devices, stopped = get_engine(work.needs().engine).devices(), threading.Event()
    bindings = [device.bound for device in devices] or shares(work, blocks)

    def hear(label: str, fraction: float) -> None:  # not passed on, as a block only takes seconds
        if stopped.is_set():
            raise KeyboardInterrupt

    def compute(binding: Binding, block: range) -> BlockResult:
        with binding(), progress.listen_to_progress(hear):
            return timed_result(work, block)

    if len(bindings) > 1:
        return WorkerThreads([partial(compute, item) for item in bindings], stopped.set)
    return CallingThread(work)


def shares(work: Work, blocks: int) -> Sequence[Binding]:
    """Return a function for each block that is computed at once, which gives its thread a share of the cores."""
    needed = work.needs().memory
    most = min(threads.count(), blocks, memory.limit() // needed if needed else 1)
    return [partial(threads.sharing, most)] * most if most > 1 else []


def is_picklable(work: Work) -> bool:
    """Return whether the work can be sent to other processes: not if part of it is the user's script, or a closure."""
    try:
        return b"__main__" not in pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
