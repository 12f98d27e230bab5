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
from vmdpotential.engines import get_engine
from vmdpotential.engines.cpu.compiling import threads
from vmdpotential.errors import TaskError
from vmdpotential.execution.work import Arrays, Work
from vmdpotential.io.trajectories.frames import on_demand

#: A block's result, and the seconds it took.
Result = tuple[Arrays, float]
#: What binds a thread to a GPU, or to a share of the cores.
Binding = Callable[[], contextlib.AbstractContextManager[object]]

#: What a block's own progress is called.
FRAMES = "frames"

#: Seconds between two reports while blocks are computed.
POLL = 0.1

#: Seconds for which a thread of Python may go on while others wait: while blocks are computed, and otherwise.
TURN, DEFAULT_TURN = 1e-4, 5e-3

#: Times that a block is submitted again after its worker was lost: one that ends its worker would do so each time.
RETRIES = 3


class WorkerError(TaskError):
    """An unexpected error of a worker, or its end; `again` where another worker may succeed."""

    def __init__(self, text: str, cure: str = "", again: bool = False) -> None:
        super().__init__(text, cure)
        self.again = again

    def __reduce__(self) -> tuple[type, tuple[str, str, bool]]:
        return type(self), (self.text, self.cure, self.again)

    @classmethod
    def of(cls, error: BaseException) -> WorkerError:
        """Return what is reported of an unexpected error."""
        return cls(": ".join([type(error).__name__, *filter(None, [" ".join(str(error).split())])]))


class Pool(ABC):
    """What computes blocks."""

    def ahead(self) -> int:
        """Return how many blocks may be under way or wait for their turn."""
        return 1

    @abstractmethod
    def submit(self, block: range) -> Future[Result]:
        """Return the result that a block will have."""

    def poll(self) -> None:
        """Report what is done of blocks under way; raise an error where no more results will come."""
        return

    def close(self) -> None:
        """Stop what is under way."""
        return


def collect(pool: Pool, blocks: Sequence[range], arrived: Callable[[range, Arrays, float], None], *,
            submit: Callable[[range], Future[Result]] | None = None, label: str = "blocks", ordered: bool = True,
            retries: int = RETRIES) -> Generator[tuple[int, Arrays | BaseException, float], None, None]:
    """Yield which block is done, its result or its error, and the seconds it took; in the order of the blocks.

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
    ready: dict[int, tuple[int, Arrays | BaseException, float]] = {}
    failures: Counter[int] = Counter()
    submitted = done = taken = 0
    while taken < len(blocks):
        number = taken if ordered else next(iter(ready), -1)
        if number in ready:
            yield ready.pop(number)
            taken += 1
            continue
        while submitted < len(blocks) and submitted < taken + pool.ahead():
            running[submit(blocks[submitted])] = submitted
            submitted += 1
        progress.report(label, done / len(blocks))
        pool.poll()
        for future in wait(running, POLL, FIRST_COMPLETED).done:
            number = running.pop(future)
            error = future.exception()
            if error is None:
                arrived(blocks[number], *future.result())
                ready[number] = number, *future.result()
            elif isinstance(error, WorkerError) and error.again and failures[number] < retries:
                failures[number] += 1
                running[submit(blocks[number])] = number
                continue
            else:
                ready[number] = number, error, 0.0
            done += 1
    progress.report(label, 1.0)


def finished(result: Result | Exception) -> Future[Result]:
    """Return a result that is there."""
    future: Future[Result] = Future()
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
    return future


def timed(work: Work, block: range) -> Result:
    """Return the result of a block, and the seconds it took."""
    start = time.perf_counter()
    with _quick_turns():
        return work.block(block), time.perf_counter() - start


@contextlib.contextmanager
def _quick_turns() -> Iterator[None]:
    """Let threads take turns sooner: one that starts kernels waits often, and briefly, for one that reads frames."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    try:
        yield
    finally:
        # one that is another thread's comes back rounded
        sys.setswitchinterval(before if before > 2 * TURN else DEFAULT_TURN)


class Here(Pool):
    """This thread: a block is computed as it is submitted."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def submit(self, block: range) -> Future[Result]:
        """Return the result of a block."""
        try:
            return finished(timed(self.work, block))
        except Exception as error:
            return finished(error)


class Slot(ABC):
    """What one thread computes with."""

    #: Of the block under way, what is done.
    part = 0.0

    @abstractmethod
    def compute(self, block: range) -> Result:
        """Return the result of a block."""

    @abstractmethod
    def stop(self) -> None:
        """End the block under way soon, with an error."""


class Slots(Pool):
    """Threads, each of which computes with a slot."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = slots
        self._free: queue.LifoQueue[Slot] = queue.LifoQueue()  # those that were used are used again first
        for slot in slots[::-1]:
            self._free.put(slot)
        self._threads = ThreadPoolExecutor(len(slots))

    def ahead(self) -> int:
        """Return twice the number of threads."""
        return 2 * len(self.slots)

    def submit(self, block: range) -> Future[Result]:
        """Return the result that a block will have, computed by the next thread that is free."""
        # each with what the caller has set, in a context of its own because two threads cannot share one
        return self._threads.submit(contextvars.copy_context().run, self._compute, block)

    def _compute(self, block: range) -> Result:
        slot = self._free.get()
        try:
            return slot.compute(block)
        finally:
            self._free.put(slot)

    def close(self) -> None:
        """Stop what is under way, and wait for that."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for slot in self.slots:
            slot.stop()
        self._threads.shutdown()


class Threads(Slots):
    """Threads of this process, each bound to a GPU or a share of the cores."""

    def __init__(self, work: Work, bindings: Sequence[Binding]) -> None:
        self._compiling: queue.SimpleQueue[float] = queue.SimpleQueue()
        super().__init__([_Bound(work, binding, self._compiling.put) for binding in bindings])

    def poll(self) -> None:
        """Report the compiling of kernels, and what is done of the blocks under way."""
        with contextlib.suppress(queue.Empty):
            while True:
                progress.report(progress.COMPILING, self._compiling.get_nowait())
        progress.report(FRAMES, sum(slot.part for slot in self.slots))


class _Bound(Slot):
    """A thread's GPU or share of the cores."""

    def __init__(self, work: Work, binding: Binding, compiling: Callable[[float], None]) -> None:
        self.work, self.binding, self.compiling = work, binding, compiling
        self._stopped = threading.Event()

    def compute(self, block: range) -> Result:
        try:
            with self.binding(), progress.listening(self._hear):
                return timed(self.work, block)
        finally:
            self.part = 0.0

    def stop(self) -> None:
        self._stopped.set()

    def _hear(self, label: str, fraction: float) -> None:
        if self._stopped.is_set():
            raise KeyboardInterrupt
        if label == FRAMES:
            self.part = fraction
        elif label == progress.COMPILING:
            self.compiling(fraction)


def on_threads(work: Work, blocks: int) -> Pool:
    """Return a thread for each GPU of the work's engine, else for each share of the cores; this one where it is one.

    A thread that has a block for itself waits for no other, and keeps its sums in its cache. No more blocks are
    computed at once than fit into memory.
    """
    bindings = get_engine(work.needs().engine).bindings() or shares(work, blocks)
    return Threads(work, bindings) if len(bindings) > 1 else Here(work)


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
