"""Worker processes on this machine, for inputs of a batch, and for frames where several processes share a GPU.

A process may die, by what it computes or for lack of memory. Each is served through a pipe, so that no port is opened,
by a thread of this process. Large arrays are returned in files.
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
from vmdpotential.engines import get_engine
from vmdpotential.errors import UsageError, VmdpotentialError
from vmdpotential.execution.pools import (
    BlockResult,
    CallingThread,
    LostError,
    WorkerError,
    WorkerPool,
    WorkerThreads,
    is_picklable,
    on_threads,
    timed_result,
)
from vmdpotential.execution.work import Arrays, FrameCost, Work
from vmdpotential.kernels import threads

#: Seconds of work from which starting processes pays.
START = 12.0

#: File with the pickled work.
WORK = "work.pickle"

#: Folder in which Linux keeps files in memory.
SHARED = "/dev/shm"

#: Bytes from which an array is returned in a file, as a pipe transfers only some hundred MB per second.
BY_FILE = 2**22

#: Processes start one at a time, because the user's script is hidden from all threads meanwhile.
_starting = threading.Lock()


def process_count(engine: str, most: int, cost: FrameCost | None = None) -> int:
    """Return the number of processes: several for each GPU, as far as there are cores, or one for each core.

    With a cost, twice as many share a GPU as would keep it busy if Python took no time. Each needs as much of the GPU's
    memory as the last work did, in addition to a result.
    """
    size, enough = (0, most) if cost is None else (cost.size, 2 * round((cost.reading + cost.seconds) / cost.seconds))
    devices, cores = get_engine(engine).devices(), threads.count()
    if not devices:
        return min(most, cores)
    on_each = min(enough, *(device.process_capacity(size) for device in devices))
    return max(len(devices), min(most, cores, len(devices) * on_each))


class Processes(WorkerThreads):
    """Worker processes on this machine, each of which computes one block at a time.

    Parameters
    ----------
    work : Work
    count : int
        Number of processes; the GPUs of the work's engine are assigned to them in turn.
    size : int
        Bytes of a result.

    Raises
    ------
    UsageError
        When part of the work is defined in the user's script.
    """

    def __init__(self, work: Work, count: int, size: int = 0) -> None:
        if not is_picklable(work):
            raise UsageError("workers", "other processes cannot import what a script defines; move it to a module")
        self._folder = tempfile.TemporaryDirectory(dir=_in_memory(4 * count * size), ignore_cleanup_errors=True)
        # in a file: the start of a process with more data than a pipe holds would block until it reads that
        (Path(self._folder.name) / WORK).write_bytes(pickle.dumps(work, pickle.HIGHEST_PROTOCOL))
        devices = get_engine(work.needs().engine).devices()
        self._processes = [
            _Process(Path(self._folder.name), place,
                     share(count) | (devices[place % len(devices)].environment if devices else {}))
            for place in range(count)]
        super().__init__([process.compute for process in self._processes], self._terminate)

    def _terminate(self) -> None:
        for process in self._processes:
            process.stop()

    def close(self) -> None:
        """End all processes, busy ones included."""
        super().close()
        for process in self._processes:
            process.join()
        self._folder.cleanup()


def on_gpus(work: Work, cost: FrameCost, blocks: Sequence[range]) -> tuple[WorkerPool, Future[BlockResult] | None]:
    """Return processes that share GPUs, if the work's cost, or the time of its first block, shows that this pays.

    Returns
    -------
    pool : Pool
        The processes, or threads where processes do not pay.
    first : Future or None
        The result of the first block, if it was computed to measure its time.
    """
    engine, first = work.needs().engine, None
    left, devices = max(cost.seconds, cost.reading) * sum(map(len, blocks)), get_engine(engine).devices()
    if left < START:  # measured, as Python also takes time
        with devices[0].bound() if len(devices) > 1 else contextlib.nullcontext():
            first = CallingThread(work).submit(blocks[0])
        left = 0.0 if first.exception() else first.result()[1] * (len(blocks) - 1)
    if left > START:
        return Processes(work, process_count(engine, len(blocks), cost), cost.size), first
    return on_threads(work, len(blocks)), first


class _Process:
    """A process that is started when it is first needed."""

    def __init__(self, folder: Path, place: int, environment: Mapping[str, str]) -> None:
        self.folder, self.place, self.environment = folder, place, environment
        self._stopped = False
        self._running: tuple[BaseProcess, Connection] | None = None

    def compute(self, block: range) -> BlockResult:
        """Return the result of a block; raise LostError if the process ends."""
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
        """Start the process unless it runs, and return its pipe."""
        with _starting:
            if self._stopped:
                raise KeyboardInterrupt
            if self._running is not None:
                return self._running[1]
            spawn = multiprocessing.get_context("spawn")
            pipe, theirs = spawn.Pipe()
            arguments = theirs, self.place, self.folder, self.environment
            process = spawn.Process(target=_serve, args=arguments, daemon=True)
            with _without_script():
                process.start()
            theirs.close()
            self._running = process, pipe
            return pipe

    def stop(self) -> None:
        """End the process by a signal: it has nothing to clean up, and Python and CUDA need a second to exit."""
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
    """Return a folder in memory with `size` free bytes, or None."""
    with contextlib.suppress(OSError):
        if size and min(shutil.disk_usage(SHARED).free, memory.limit()) > size and os.access(SHARED, os.W_OK):
            return SHARED
    return None


@contextlib.contextmanager
def _without_script() -> Iterator[None]:
    """Hide the user's script, which a new process would otherwise run again, with the call that started it."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _serve(pipe: Connection, place: int, folder: Path, environment: Mapping[str, str]) -> None:
    """Compute the blocks that are received from a pipe, until it is closed."""
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    with contextlib.suppress(OSError):  # if memory runs out, the system should kill this process first
        Path("/proc/self/oom_score_adj").write_text("1000")
    work = pickle.loads((folder / WORK).read_bytes())
    devices = get_engine(work.needs().engine).devices()
    bound = devices[place % len(devices)].bound() if devices else contextlib.nullcontext()
    with bound, contextlib.suppress(EOFError, OSError):
        while True:
            block = pipe.recv()
            try:
                pipe.send(_stored(*timed_result(work, block), folder))
            except Exception as error:  # MemoryError too
                pipe.send(_Reply({}, {}, 0.0, WorkerError.of(error)))


class _Reply(NamedTuple):
    """A block's result: small arrays, files of large ones, and the seconds that it took; or an error."""

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
        with contextlib.suppress(OSError):  # Windows cannot remove a mapped file; it goes with the folder
            path.unlink()
    return result


def _end(code: int | None) -> str:
    """Return how a process ended, as text."""
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-code).name
            return f"{name}, out of memory?" if name == "SIGKILL" else name
    return f"exit code {code}"


def share(workers: int) -> dict[str, str]:
    """Return the environment of each of several processes: its share of the processors and of the memory."""
    return {"VMDPOTENTIAL_THREADS": str(max(1, threads.count() // workers)),
            "VMDPOTENTIAL_MEMORY": str(memory.limit() // workers)}
