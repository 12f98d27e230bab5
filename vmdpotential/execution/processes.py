"""Processes of this machine that compute blocks: structures one by one, and frames where several share a GPU.

A process may die: of what it computes, or for want of memory. Each has a pipe, so that no port is opened, and a thread
of this process that waits for it. Large arrays come back by files.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

from vmdpotential import memory
from vmdpotential.compiling import threads
from vmdpotential.engines import get_engine
from vmdpotential.errors import UsageError, VmdpotentialError
from vmdpotential.execution.pools import (
    Here,
    LostError,
    Pool,
    Result,
    Slots,
    WorkerError,
    on_threads,
    picklable,
    timed,
)
from vmdpotential.execution.work import Arrays, Cost, Work

#: Seconds of work that are worth starting processes, which takes some.
START = 12.0

#: The file with what is to be done.
WORK = "work.pickle"

#: Where Linux has files in memory.
SHARED = "/dev/shm"

#: Bytes from which an array is given back by a file: a pipe carries some hundred MB a second.
BY_FILE = 2**22

#: Processes start one at a time, because what is hidden from them is hidden from all threads.
_starting = threading.Lock()


def sharers(engine: str, most: int, cost: Cost | None = None) -> int:
    """Return how many processes are to compute: several on each GPU, as far as there are cores, else one a core.

    With a cost, twice as many share a GPU as would keep it busy if Python took no time; each needs as much of its
    memory as the work done last, and a result.
    """
    size, enough = (0, most) if cost is None else (cost.size, 2 * round((cost.reading + cost.seconds) / cost.seconds))
    result = get_engine(engine)
    gpus = len(result.bindings())
    return max(gpus, min(most, threads.count(), gpus * min(result.sharers(size), enough) if gpus else threads.count()))


class Processes(Slots):
    """Processes of this machine, which are given one block at a time.

    Parameters
    ----------
    work : Work
    count : int
        Of processes; where the work's engine has GPUs they are dealt out among them.
    size : int, bytes
        Of a result.

    Raises
    ------
    UsageError
        When part of the work is the user's script.
    """

    def __init__(self, work: Work, count: int, size: int = 0) -> None:
        if not picklable(work):
            raise UsageError("workers", "other processes cannot import what a script defines; move it to a module")
        self._folder = tempfile.TemporaryDirectory(dir=_in_memory(4 * count * size), ignore_cleanup_errors=True)
        # by a file: to start a process with more than a pipe holds takes until it reads that
        (Path(self._folder.name) / WORK).write_bytes(pickle.dumps(work, pickle.HIGHEST_PROTOCOL))
        environment = get_engine(work.needs().engine).environment
        self._processes = [_Process(Path(self._folder.name), place, share(count) | environment(place))
                           for place in range(count)]
        super().__init__([process.compute for process in self._processes], self._terminate)

    def _terminate(self) -> None:
        for process in self._processes:
            process.stop()

    def close(self) -> None:
        """End all processes, those at work too."""
        super().close()
        for process in self._processes:
            process.join()
        self._folder.cleanup()


def on_gpus(work: Work, cost: Cost, blocks: Sequence[range]) -> tuple[Pool, Future[Result] | None]:
    """Return processes that share GPUs, where the work's cost or its first block says that this pays; else threads.

    Returns
    -------
    pool : Pool
    first : Future or None
        The result of the first block, where it was computed here.
    """
    engine, first = work.needs().engine, None
    left, bindings = max(cost.seconds, cost.reading) * sum(map(len, blocks)), get_engine(engine).bindings()
    if left < START:  # Python takes its time too
        with bindings[0]() if len(bindings) > 1 else contextlib.nullcontext():
            first = Here(work).submit(blocks[0])
        left = 0.0 if first.exception() else first.result()[1] * (len(blocks) - 1)
    if left > START:
        return Processes(work, sharers(engine, len(blocks), cost), cost.size), first
    return on_threads(work, len(blocks)), first


class _Process:
    """A process, which is started when it is needed."""

    def __init__(self, folder: Path, place: int, environment: Mapping[str, str]) -> None:
        self.folder, self.place, self.environment = folder, place, environment
        self._stopped = False
        self._running: tuple[BaseProcess, Connection] | None = None

    def compute(self, block: range) -> Result:
        """Return the result of a block; raise LostError where the process ends."""
        pipe = self._started()
        try:
            pipe.send(block)
            reply: _Reply = pipe.recv()
        except (EOFError, OSError):
            raise LostError(f"its process ended ({_end(self.join())})") from None
        if reply.error is not None:
            raise reply.error
        return _loaded(reply), reply.seconds

    def _started(self) -> Connection:
        """Start the process where it does not run, and return its pipe."""
        with _starting:
            if self._stopped:
                raise KeyboardInterrupt
            if self._running is not None:
                return self._running[1]
            spawn = multiprocessing.get_context("spawn")
            pipe, theirs = spawn.Pipe()
            given = theirs, self.place, self.folder, self.environment
            process = spawn.Process(target=_serve, args=given, daemon=True)
            with _without_script():
                process.start()
            theirs.close()
            self._running = process, pipe
            return pipe

    def stop(self) -> None:
        """End the process: it has nothing to put away, and Python and CUDA take a second to end by themselves."""
        with _starting:
            self._stopped = True
            if self._running is not None:
                self._running[0].terminate()

    def join(self) -> int | None:
        """Wait for the end of the process, and return its exit code."""
        running, self._running = self._running, None
        if running is None:
            return None
        process, pipe = running
        process.join()
        pipe.close()
        return process.exitcode


def _in_memory(size: int) -> str | None:
    """Return a folder that is no disk, with so much room; None where there is none."""
    with contextlib.suppress(OSError):
        if size and min(shutil.disk_usage(SHARED).free, memory.limit()) > size and os.access(SHARED, os.W_OK):
            return SHARED
    return None


@contextlib.contextmanager
def _without_script() -> Iterator[None]:
    """Hide the user's script, which a new process would run from its first line, with the call that started it."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _serve(pipe: Connection, place: int, folder: Path, environment: Mapping[str, str]) -> None:
    """Compute what comes by a pipe until it ends."""
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    with contextlib.suppress(OSError):  # where memory ends, this process goes and not the others
        Path("/proc/self/oom_score_adj").write_text("1000")
    work = pickle.loads((folder / WORK).read_bytes())
    bindings = get_engine(work.needs().engine).bindings()
    binding = bindings[place % len(bindings)] if bindings else contextlib.nullcontext
    with binding(), contextlib.suppress(EOFError, OSError):
        while True:
            block = pipe.recv()
            try:
                pipe.send(_stored(*timed(work, block), folder))
            except Exception as error:  # MemoryError too
                pipe.send(_Reply({}, {}, 0.0, WorkerError.of(error)))


class _Reply(NamedTuple):
    """A block's result: small arrays, the files of large ones, and seconds; or the error."""

    arrays: Arrays
    files: Mapping[str, Path]
    seconds: float
    error: VmdpotentialError | None = None


def _stored(arrays: Arrays, seconds: float, folder: Path) -> _Reply:
    """Return a result with its large arrays in files."""
    small, large = dict(arrays), dict[str, Path]()
    for name, array in arrays.items():
        if np.asarray(array).nbytes >= BY_FILE:
            handle, path = tempfile.mkstemp(".npy", dir=folder)
            with os.fdopen(handle, "wb") as file:
                np.save(file, small.pop(name))
            large[name] = Path(path)
    return _Reply(small, large, seconds)


def _loaded(reply: _Reply) -> Arrays:
    """Return a result with its large arrays mapped."""
    result = dict(reply.arrays)
    for name, path in reply.files.items():
        result[name] = np.load(path, mmap_mode="r")
        with contextlib.suppress(OSError):  # Windows keeps what is mapped until the folder goes
            path.unlink()
    return result


def _end(code: int | None) -> str:
    """Return how a process ended, for people."""
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-code).name
            return f"{name}, out of memory?" if name == "SIGKILL" else name
    return f"exit code {code}"


def share(workers: int) -> dict[str, str]:
    """Return the environment of each of several processes: its share of the processors and of the memory."""
    return {"VMDPOTENTIAL_THREADS": str(max(1, threads.count() // workers)),
            "VMDPOTENTIAL_MEMORY": str(memory.limit() // workers)}
