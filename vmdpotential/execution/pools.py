"""What computes blocks: this thread, or several threads, each with a GPU, a share of the cores or a process of its own.

All blocks go the same way (:func:`collect`): a few are submitted at a time, so that memory does not grow with their
number, as futures of :mod:`concurrent.futures`. Progress is reported meanwhile, and a listener may raise
KeyboardInterrupt; a block whose worker was lost is submitted again.
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
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial

from vmdpotential import memory, progress
from vmdpotential.compiling import threads
from vmdpotential.engines import get_engine
from vmdpotential.errors import TaskError, VmdpotentialError
from vmdpotential.execution.work import Arrays, Work
from vmdpotential.io.trajectories.frames import on_demand

#: A block's result, and the seconds it took.
Result = tuple[Arrays, float]
#: What binds a thread to a GPU, or to a share of the cores.
Binding = Callable[[], contextlib.AbstractContextManager[object]]

#: Seconds between two reports while blocks are computed.
POLL = 0.1

#: Seconds for which a thread of Python may go on while others wait: while blocks are computed, and otherwise.
TURN, DEFAULT_TURN = 1e-4, 5e-3

#: Times that a block is submitted again after its worker was lost: one that ends its worker would do so each time.
RETRIES = 3


class WorkerError(TaskError):
    """An unexpected error of a worker."""

    @classmethod
    def of(cls, error: Exception) -> VmdpotentialError:
        """Return an error of this package as it is, and of an unexpected one what is reported."""
        if isinstance(error, VmdpotentialError):
            return error
        return cls(": ".join([type(error).__name__, *filter(None, [" ".join(str(error).split())])]))


class LostError(WorkerError):
    """The end of a worker, or an error of its own, where another one may succeed."""


class Pool(ABC):
    """What computes blocks."""

    def ahead(self) -> int:
        """Return how many blocks may be under way or wait for their turn."""
        return 1

    @abstractmethod
    def submit(self, block: range) -> Future[Result]:
        """Return the result that a block will have."""

    def poll(self) -> None:
        """Raise an error where no more results will come."""
        return

    def close(self) -> None:
        """Stop what is under way."""
        return


def collect(pool: Pool, blocks: Sequence[range], arrived: Callable[[range, Arrays, float], None], *,
            submit: Callable[[range], Future[Result]] | None = None, label: str = "blocks", ordered: bool = True,
            retries: int = RETRIES) -> Generator[tuple[int, Future[Result]], None, None]:
    """Yield which block is done, and the future that has its result or its error; in the order of the blocks.

    Parameters
    ----------
    pool : Pool
    blocks : sequence of range
    arrived : callable
        Called with each block, its result and its seconds as soon as these are here.
    submit : callable, optional
        Instead of the pool's.
    label : str
        Under which the part of the blocks that are done is reported.
    ordered : bool
        Whether results are yielded in the order of the blocks, else as they come.
    retries : int
    """
    submit = submit or pool.submit
    running: dict[Future[Result], int] = {}
    ready: dict[int, Future[Result]] = {}
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
        progress.report(label, taken / len(blocks))
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
    progress.report(label, 1.0)


def finished(compute: Callable[[], Result]) -> Future[Result]:
    """Return a result, or its error, that is computed now."""
    future: Future[Result] = Future()
    try:
        future.set_result(compute())
    except Exception as error:
        future.set_exception(error)
    return future


def timed(work: Work, block: range) -> Result:
    """Return the result of a block, and the seconds it took."""
    start, before = time.perf_counter(), sys.getswitchinterval()
    sys.setswitchinterval(TURN)  # a thread that starts kernels waits often, and briefly, for one that reads frames
    try:
        return work.block(block), time.perf_counter() - start
    finally:
        # one that is another thread's comes back rounded
        sys.setswitchinterval(before if before > 2 * TURN else DEFAULT_TURN)


class Here(Pool):
    """This thread: a block is computed as it is submitted."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def submit(self, block: range) -> Future[Result]:
        """Return the result of a block."""
        return finished(lambda: timed(self.work, block))


class Slots(Pool):
    """Threads, each of which computes with something of its own.

    Parameters
    ----------
    computes : sequence of callable
        Compute a block, one for each thread.
    stop : callable
        Makes blocks under way end soon, with an error.
    """

    def __init__(self, computes: Sequence[Callable[[range], Result]], stop: Callable[[], None]) -> None:
        self._stop, self._count = stop, len(computes)
        self._free: queue.LifoQueue[Callable[[range], Result]] = queue.LifoQueue()  # those that were used come first
        for compute in computes[::-1]:
            self._free.put(compute)
        self._threads = ThreadPoolExecutor(len(computes))

    def ahead(self) -> int:
        """Return twice the number of threads."""
        return 2 * self._count

    def submit(self, block: range) -> Future[Result]:
        """Return the result that a block will have, computed by the next thread that is free."""
        # each with what the caller has set, in a context of its own because two threads cannot share one
        return self._threads.submit(contextvars.copy_context().run, self._compute, block)

    def _compute(self, block: range) -> Result:
        compute = self._free.get()
        try:
            return compute(block)
        finally:
            self._free.put(compute)

    def close(self) -> None:
        """Stop what is under way, and wait for that."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._stop()
        self._threads.shutdown()


def on_threads(work: Work, blocks: int) -> Pool:
    """Return a thread for each GPU of the work's engine, else for each share of the cores; this one where it is one.

    A thread that has a block for itself waits for no other, and keeps its sums in its cache. No more blocks are
    computed at once than fit into memory.
    """
    bindings, stopped = get_engine(work.needs().engine).bindings() or shares(work, blocks), threading.Event()

    def hear(label: str, fraction: float) -> None:  # not passed on: a block takes seconds
        if stopped.is_set():
            raise KeyboardInterrupt

    def compute(binding: Binding, block: range) -> Result:
        with binding(), progress.listening(hear):
            return timed(work, block)

    return Slots([partial(compute, item) for item in bindings], stopped.set) if len(bindings) > 1 else Here(work)


def shares(work: Work, blocks: int) -> Sequence[Binding]:
    """Return what gives a thread its share of the cores, for each of the blocks that are computed at once."""
    needed = work.needs().memory
    most = min(threads.count(), blocks, memory.limit() // needed if needed else 1)
    return [partial(_on_share, most)] * most if most > 1 else []


@contextlib.contextmanager
def _on_share(workers: int) -> Iterator[None]:
    with threads.sharing(workers), on_demand():
        yield


def picklable(work: Work) -> bool:
    """Return whether other processes can have the work: not where part of it is the user's script, or a closure."""
    try:
        return b"__main__" not in pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
