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
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from vmdpotential import memory
from vmdpotential.engines import get_engine
from vmdpotential.engines.cpu.compiling import threads
from vmdpotential.errors import UsageError, VmdpotentialError
from vmdpotential.execution.pools import Here, Pool, Result, Slot, Slots, WorkerError, on_threads, picklable, timed
from vmdpotential.execution.work import Arrays, Cost, Work

#: Seconds of work that are worth starting processes, which takes some.
START = 12.0

#: The file with what is to be done.
WORK = "work.pickle"

#: Where Linux has files in memory.
SHARED = "/dev/shm"

#: Bytes from which an array is given back by a file: a pipe carries some hundred MB a second.
BY_FILE = 2**22

#: Processes start one at a time, because the environment that they take over is that of this process.
_starting = threading.Lock()


def sharers(engine: str, most: int, cost: Cost | None = None) -> int:
    """Return how many processes are to compute: several on each GPU, as far as there are cores, else one a core.

    With a cost, twice as many share a GPU as would keep it busy if Python took no time; each needs as much of its
    memory as the work done last, and a result.
    """
    size, enough = (0, most) if cost is None else (cost.size, 2 * round((cost.reading + cost.seconds) / cost.seconds))
    found = get_engine(engine)
    gpus = len(found.bindings())
    return max(gpus, min(most, threads.count(), gpus * min(found.sharers(size), enough) if gpus else threads.count()))


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
            raise UsageError("workers", "other processes cannot have what a script defines; move it to a module")
        self._folder = tempfile.TemporaryDirectory(dir=_in_memory(4 * count * size), ignore_cleanup_errors=True)
        # by a file: to start a process with more than a pipe holds takes until it reads that
        (Path(self._folder.name) / WORK).write_bytes(pickle.dumps(work, pickle.HIGHEST_PROTOCOL))
        engine = get_engine(work.needs().engine)
        self._processes = [_Process(Path(self._folder.name), place, share(count) | engine.environment(place))
                           for place in range(count)]
        super().__init__(self._processes)

    def close(self) -> None:
        """End all processes, those at work too."""
        super().close()
        for process in self._processes:
            process.join()
        self._folder.cleanup()


class OnGpus(Pool):
    """Processes that share GPUs, where the work's cost or its first block says that this pays; else threads.

    Parameters
    ----------
    work : Work
    blocks : sequence of range
    """

    def __init__(self, work: Work, blocks: list[range]) -> None:
        self.work, self.blocks = work, blocks
        self._cost = work.cost()
        self._pool: Pool | None = None
        if max(self._cost.seconds, self._cost.reading) * sum(map(len, blocks)) > START:
            self._pool = self._processes()

    def _processes(self) -> Processes:
        count = sharers(self.work.needs().engine, len(self.blocks), self._cost)
        return Processes(self.work, count, self._cost.size)

    def ahead(self) -> int:
        """Return 1 until the first block is done, then what its successor says."""
        return 1 if self._pool is None else self._pool.ahead()

    def submit(self, block: range) -> Future[Result]:
        """Return the result that a block will have; the first one is computed by this thread."""
        if self._pool is not None:
            return self._pool.submit(block)
        bindings = get_engine(self.work.needs().engine).bindings()
        with bindings[0]() if len(bindings) > 1 else contextlib.nullcontext():
            first = Here(self.work).submit(block)  # Python takes its time too
        left = 0.0 if first.exception() else first.result()[1] * (len(self.blocks) - 1)
        self._pool = self._processes() if left > START else on_threads(self.work, len(self.blocks))
        return first

    def poll(self) -> None:
        """Report what is done of blocks under way."""
        if self._pool is not None:
            self._pool.poll()

    def close(self) -> None:
        """Stop what is under way."""
        if self._pool is not None:
            self._pool.close()


class _Process(Slot):
    """A process, which is started when it is needed."""

    def __init__(self, folder: Path, place: int, environment: Mapping[str, str]) -> None:
        self.folder, self.place, self.environment = folder, place, environment
        self._stopped = False
        self._process: Any = None
        self._pipe: Any = None

    def compute(self, block: range) -> Result:
        """Return the result of a block; raise WorkerError where the process ends."""
        self._start()
        try:
            self._pipe.send(block)
            result, seconds = self._pipe.recv()
        except (EOFError, OSError):
            raise WorkerError(f"its process ended ({_end(self.join())})", again=True) from None
        if isinstance(result, BaseException):
            raise result
        return _loaded(result), seconds

    def _start(self) -> None:
        with _starting:
            if self._stopped:
                raise KeyboardInterrupt
            if self._process is not None:
                return
            spawn = multiprocessing.get_context("spawn")
            self._pipe, theirs = spawn.Pipe()
            process = spawn.Process(target=_serve, args=(theirs, self.place, str(self.folder)), daemon=True)
            with _environment(self.environment), _without_script():
                process.start()
            theirs.close()
            self._process = process

    def stop(self) -> None:
        """End the process: it has nothing to put away, and Python and CUDA take a second to end by themselves."""
        with _starting:
            self._stopped = True
            if self._process is not None:
                self._process.terminate()

    def join(self) -> int | None:
        """Wait for the end of the process, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.join()
        self._pipe.close()
        code: int | None = process.exitcode
        return code


def _in_memory(size: int) -> str | None:
    """Return a folder that is no disk, with so much room; None where there is none."""
    if size:
        with contextlib.suppress(OSError):
            if min(shutil.disk_usage(SHARED).free, memory.limit()) > size and os.access(SHARED, os.W_OK):
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


def _serve(pipe: Any, place: int, folder: str) -> None:
    """Compute what comes by a pipe until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    with contextlib.suppress(OSError):  # where memory ends, this process goes and not the others
        Path("/proc/self/oom_score_adj").write_text("1000")
    work = pickle.loads((Path(folder) / WORK).read_bytes())
    bindings = get_engine(work.needs().engine).bindings()
    binding = bindings[place % len(bindings)] if bindings else contextlib.nullcontext
    with binding(), contextlib.suppress(EOFError, OSError):
        while True:
            block = pipe.recv()
            try:
                arrays, seconds = timed(work, block)
                pipe.send((_stored(arrays, Path(folder)), seconds))
            except Exception as error:  # MemoryError too
                pipe.send((error if isinstance(error, VmdpotentialError) else WorkerError.of(error), 0.0))


@dataclass(frozen=True)
class _File:
    path: Path


def _stored(arrays: Arrays, folder: Path) -> Arrays:
    """Return a result with its large arrays in files."""
    found = dict(arrays)
    for name, array in arrays.items():
        if getattr(array, "nbytes", 0) >= BY_FILE:
            handle, path = tempfile.mkstemp(".npy", dir=folder)
            with os.fdopen(handle, "wb") as file:
                np.save(file, array)
            found[name] = _File(Path(path))
    return found


def _loaded(result: Arrays) -> Arrays:
    """Return a result with its large arrays mapped."""
    found = dict(result)
    for name, array in result.items():
        if isinstance(array, _File):
            found[name] = np.load(array.path, mmap_mode="r")
            with contextlib.suppress(OSError):  # Windows keeps what is mapped until the folder goes
                array.path.unlink()
    return found


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


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
