"""Where blocks of frames are computed: by threads of this process, its GPUs, other processes, or a Dask cluster.

Structures one by one (:func:`unordered`) are computed by processes of this machine instead, which may die; so are the
frames of long trajectories on GPUs.

Nothing depends on who computes what: results are given in the order of the blocks, and a worker that is lost is made
up for by another. Few blocks are under way at a time, so that memory does not grow with their number.

Processes of this machine are reached by pipes, and no port is opened. A Dask cluster is the user's own: without TLS it
runs the code of everybody who can connect to its scheduler or its workers.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import queue
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from vmdpotential import __version__, progress
from vmdpotential.errors import BackendError, TaskError, UsageError, VmdpotentialError
from vmdpotential.frames.processes import (
    Arrays,
    Cost,
    Done,
    Lane,
    OddError,
    Processes,
    beside,
    lanes,
    line,
    odd,
    picklable,
    portable,
    sharers,
    timed,
)
from vmdpotential.frames.tree import merged_at_once

Keep = Callable[[range, Arrays, float], None]

#: What a block's own progress is called.
FRAMES = "frames"

#: Seconds in which a scheduler must answer, or come back, and in which it must have workers.
PATIENCE, WORKERS = 15.0, 60.0

#: Seconds of work that are worth starting processes, which takes some.
START = 12.0

#: Times that a block is tried again that failed for a reason of the worker's own.
RETRIES = 2


def run(work: Any, blocks: Sequence[range], workers: int, scheduler: str,
        keep: Keep, piece: int = 0) -> Generator[Arrays, None, None]:
    """Yield the results of blocks in their order; see :func:`vmdpotential.frames.blocks.run_blocks`.

    Parameters
    ----------
    work : Work
        Its attribute ``engine``, where it has one, names the engine, whose GPUs get a thread each; where it is
        ``portable``, processes share them, if its ``cost()`` or the first block says that this pays.
        Where there are no GPUs, and it says what memory a block takes (``taken``, bytes), blocks are computed beside
        each other on threads of this process, as many as fit into memory.
    blocks : sequence of range
    workers, scheduler
        Where they are computed.
    keep : callable
        Is told each block, its result and the seconds it took, as soon as it is there; in this thread.
    piece : int
        Frames that a worker of a cluster computes at once; the work merges these. 0 computes whole blocks.
    """
    if not blocks:
        return
    if scheduler:
        with cluster(scheduler) as client:
            yield from _in_order(_Cluster(client, work, blocks, piece), blocks, keep)
        return
    if workers:
        if not picklable(work):
            raise UsageError("workers", "other processes cannot have what a script defines; move it to a module")
        with contextlib.closing(Processes(work, blocks, workers, again=True)) as processes:
            yield from _in_order(processes, blocks, keep)
        return
    found = lanes(work)
    if found and portable(work):
        cost: Cost = work.cost()
        left = max(cost.seconds, cost.reading) * sum(map(len, blocks))
        if left < START:  # Python takes its time too
            with found[0]() if len(found) > 1 else contextlib.nullcontext():
                arrays, seconds = timed(work, blocks[0])
            keep(blocks[0], arrays, seconds)
            yield arrays
            blocks = blocks[1:]
            left = seconds * len(blocks)
        if left > START:
            pool = Processes(work, blocks, sharers(work.engine, len(blocks), cost), again=True, size=cost.size)
            with contextlib.closing(pool):
                yield from _in_order(pool, blocks, keep)
            return
    found = found or beside(work, len(blocks))
    if len(found) > 1:
        with contextlib.closing(_Threads(work, blocks, found)) as threads:
            yield from _in_order(threads, blocks, keep)
        return
    for block in blocks:
        arrays, seconds = timed(work, block)
        keep(block, arrays, seconds)
        yield arrays


class _Pool(Protocol):
    """What computes blocks beside each other."""

    def width(self) -> int:
        """Return how many compute."""

    def start(self, number: int) -> None:
        """Queue a block."""

    def wait(self) -> Done | None:
        """Return the next that is done, None where a moment has gone by without."""


def _in_order(pool: _Pool, blocks: Sequence[range], keep: Keep) -> Iterator[Arrays]:
    """Yield results in the order of the blocks; as many as twice the workers are under way or wait for their turn."""
    ready: dict[int, Arrays] = {}
    started = 0
    for number in range(len(blocks)):
        while number not in ready:
            while started < min(len(blocks), number + 2 * pool.width()):
                pool.start(started)
                started += 1
            progress.report("blocks", 0.0)  # who listens may stop the work
            done = pool.wait()
            if done is None:
                continue
            index, result, seconds = done
            if isinstance(result, OddError):
                block = blocks[index]
                raise TaskError(f"frames {block[0]} to {block[-1]}: {result.text}", result.cure)
            if isinstance(result, BaseException):
                raise result
            keep(blocks[index], result, seconds)
            ready[index] = result
        yield ready.pop(number)


def unordered(work: Any, blocks: Sequence[range], workers: int, scheduler: str) -> Generator[Done, None, None]:
    """Yield which block is done, its result or the error that there is instead, and its seconds, as they come.

    Parameters
    ----------
    work : Work
    blocks : sequence of range
    workers : int
        Processes of this machine. The block of one that dies is an error, and another process takes its place.
    scheduler : str
        Address of a Dask scheduler, whose workers compute instead.
    """
    with contextlib.ExitStack() as stack:
        pool: _Pool
        if scheduler:
            pool = _Cluster(stack.enter_context(cluster(scheduler)), work, blocks)
        else:
            pool = stack.enter_context(contextlib.closing(Processes(work, blocks, workers)))
        started = done = 0
        while done < len(blocks):
            while started < min(len(blocks), done + 2 * pool.width()):
                pool.start(started)
                started += 1
            progress.report("structures", done / len(blocks))
            found = pool.wait()
            if found is not None:
                done += 1
                yield found
    progress.report("structures", 1.0)


class _Threads(_Pool):
    """A thread for each GPU, or each share of the processors."""

    def __init__(self, work: Any, blocks: Sequence[range], found: Sequence[Lane]) -> None:
        self.work, self.blocks = work, blocks
        self.stop = threading.Event()
        self._said: queue.SimpleQueue[tuple[str, float]] = queue.SimpleQueue()  # of the kernels that are compiled
        self._parts = [0.0] * len(found)  # of the blocks under way
        self._todo: queue.Queue[int | None] = queue.Queue()
        self._done: queue.Queue[Done] = queue.Queue()
        # each with what the caller has set, in a context of its own because two threads cannot share one
        self._threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(self._serve, n, lane), daemon=True)
            for n, lane in enumerate(found)]
        for thread in self._threads:
            thread.start()

    def width(self) -> int:
        return len(self._threads)

    def start(self, number: int) -> None:
        self._todo.put(number)

    def wait(self) -> Done | None:
        with contextlib.suppress(queue.Empty):
            while True:
                progress.report(*self._said.get_nowait())
        progress.report(FRAMES, sum(self._parts))
        try:
            return self._done.get(timeout=0.1)
        except queue.Empty:
            return None

    def _serve(self, place: int, lane: Lane) -> None:
        with lane(), progress.listening(partial(self._hear, place)):
            while (number := self._todo.get()) is not None:
                try:
                    self._done.put((number, *timed(self.work, self.blocks[number])))
                except BaseException as error:  # raised where the results are taken
                    self._done.put((number, error, 0.0))
                self._parts[place] = 0.0

    def _hear(self, place: int, label: str, fraction: float) -> None:
        if self.stop.is_set():
            raise KeyboardInterrupt
        if label == FRAMES:
            self._parts[place] = fraction
        elif label == progress.COMPILING:
            self._said.put((label, fraction))

    def close(self) -> None:
        """Stop after what a thread is at."""
        self.stop.set()
        with contextlib.suppress(queue.Empty):
            while True:
                self._todo.get_nowait()
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            thread.join()


@contextlib.contextmanager
def cluster(scheduler: str) -> Iterator[Any]:
    """Give a client of the Dask cluster whose scheduler has an address.

    Raises
    ------
    BackendError
        When Dask is missing, or nobody answers at the address.
    """
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise BackendError(f"Dask is not installed (no module {error.name})",
                           "pip install 'vmdpotential[dask]', or leave out {scheduler}") from None
    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet())
        try:  # a client without a scheduler writes to stderr when it is collected
            socket.create_connection(distributed.comm.get_address_host_port(scheduler), PATIENCE).close()
            client = stack.enter_context(distributed.Client(scheduler, timeout=PATIENCE, set_as_default=False))
        except (OSError, ValueError) as error:  # TimeoutError too
            raise BackendError(f"no Dask scheduler answers at {scheduler} ({line(error)})",
                               "start one with 'dask scheduler', or give {workers}") from None
        yield client


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's own log, as what becomes of workers is told here in one line; for good where all was lost."""
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


class _Cluster(_Pool):
    """The workers of a Dask cluster; the work is sent once."""

    def __init__(self, client: Any, work: Any, blocks: Sequence[range], piece: int = 0) -> None:
        self.client, self.blocks, self.piece = client, blocks, piece
        self._done: queue.Queue[Any] = queue.Queue()
        self._futures: dict[Any, int] = {}
        self._width, self._asked, self._lost = 0, 0.0, 0.0
        # not scattered: what a task has made is made again where the worker that held it is lost
        self._work = client.submit(_same, work, pure=False)
        self.width()

    def width(self) -> int:
        """Return how many threads the workers have now; wait for the first."""
        start = time.monotonic()
        while not self._width or time.monotonic() - self._asked > 5:
            try:
                if self.client.status == "running":
                    found = self.client.sync(self.client.scheduler.ncores, callback_timeout=PATIENCE)
                    self._width = sum(found.values()) or self._width
                else:  # wait() tells
                    self._width = self._width or 1
            except OSError:
                self._width = self._width or 1
            self._asked = time.monotonic()
            if not self._width:
                if self._asked - start > WORKERS:
                    raise TaskError(f"the Dask scheduler at {self._address} has no workers",
                                    "start some with 'dask worker', and {resume}")
                progress.report("blocks", 0.0)
                time.sleep(0.2)
        return self._width

    @property
    def _address(self) -> str:
        scheduler = self.client.scheduler
        return str(scheduler.address if scheduler is not None else "its address")

    def start(self, number: int) -> None:
        block = self.blocks[number]
        submit = partial(self.client.submit, pure=False, retries=RETRIES, priority=-number)
        pieces = [block[n : n + self.piece] for n in range(0, len(block), self.piece)] if self.piece else [block]
        future = merged_at_once([submit(_block, self._work, one, __version__) for one in pieces],
                                partial(submit, _merged, self._work))
        self._futures[future] = number
        future.add_done_callback(self._done.put)

    def wait(self) -> Done | None:
        try:
            future = self._done.get(timeout=0.2)
        except queue.Empty:
            if self.client.status == "running":
                self._lost = 0.0
                return None
            self._lost = self._lost or time.monotonic()
            if time.monotonic() - self._lost < PATIENCE and self.client.status != "closed":
                return None
            raise self._gone() from None
        number = self._futures.pop(future)
        if future.status == "finished":
            result, seconds = future.result()
            return number, result, seconds
        if future.status != "error":  # cancelled: a scheduler that was started anew knows of nothing
            raise self._gone()
        error = future.exception()
        if type(error).__name__ == "KilledWorker":
            return number, OddError("every worker that was given it died", "give workers more memory"), 0.0
        return number, odd(error), 0.0

    def _gone(self) -> TaskError:
        return TaskError(f"the Dask scheduler at {self._address} was lost; blocks that were done are kept",
                         "start it, and {resume}")


def _same(work: Any) -> Any:
    return work


def _merged(work: Any, a: tuple[Any, float], b: tuple[Any, float]) -> tuple[Any, float]:
    """Merge two results on a worker; the first error is the result where there is one."""
    for result in (a, b):
        if isinstance(result[0], BaseException):
            return result
    return work.merge(a[0], b[0]), a[1] + b[1]


def _block(work: Any, block: range, version: str) -> tuple[Any, float]:
    """Compute a block on a worker; an error of ours, which would come again, is a result too."""
    from distributed import get_worker

    try:
        if version != __version__:
            raise BackendError(f"a worker has vmdpotential {__version__}, and version {version} is needed")
        found, name = lanes(work), get_worker().name
        lane = found[name % len(found)] if found and isinstance(name, int) else contextlib.nullcontext
        with lane():
            return timed(work, block)
    except VmdpotentialError as error:
        return error, 0.0
