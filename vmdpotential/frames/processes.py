"""Processes of this machine that compute blocks: structures one by one, and frames where several share a GPU.

A process may die: of what it was given, or for want of memory. Large arrays come back by files.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from vmdpotential import memory
from vmdpotential.compiling import threads
from vmdpotential.engines import get_engine
from vmdpotential.errors import TaskError, VmdpotentialError
from vmdpotential.io.trajectories.frames import on_demand

Arrays = Mapping[str, Any]
#: Which block, its result or why there is none, and the seconds it took.
Done = tuple[int, Any, float]
#: What binds a thread to a GPU.
Lane = Callable[[], contextlib.AbstractContextManager[Any]]

#: Seconds that a thread of Python may go on while others wait: while blocks are computed, and otherwise.
TURN, DEFAULT_TURN = 1e-4, 5e-3

#: The file with what is to be done.
WORK = "work.pickle"

#: Where Linux has files in memory.
SHARED = "/dev/shm"

#: Bytes from which an array is given back by a file: a pipe carries some hundred MB a second.
BY_FILE = 2**22


def lanes(work: Any) -> Sequence[Lane]:
    """Return what binds a thread to a GPU, for each that the engine of the work has; none where threads share it."""
    engine = get_engine(getattr(work, "engine", "cpu"))
    return getattr(engine, "lanes", tuple)()  # type: ignore[no-any-return]


def beside(work: Any, blocks: int) -> Sequence[Lane]:
    """Return what gives a thread its share of the processors, for each of the blocks that are computed at once.

    A thread that has a block for itself waits for no other, and keeps what it adds up in its cache. Each takes the
    memory that its work says (``taken``, bytes), and no more are computed at once than fit.
    """
    taken = getattr(work, "taken", 0)
    most = min(threads.count(), blocks, memory.limit() // taken if taken else 1)
    return [partial(_on_share, most)] * most if most > 1 else []


@contextlib.contextmanager
def _on_share(workers: int) -> Iterator[None]:
    with threads.sharing(workers), on_demand():
        yield


class Cost(NamedTuple):
    """Seconds that a frame takes, its reading left out; those of its reading; and bytes of a block's result."""

    seconds: float
    reading: float
    size: int


def sharers(engine: str, most: int, cost: Cost | None = None) -> int:
    """Return how many processes are to compute: several on each GPU, as far as there are cores, else one a core.

    With a cost, twice as many share a GPU as would keep it busy if Python took no time; each needs as much of its
    memory as the work done last, and a result.
    """
    size, enough = (0, most) if cost is None else (cost.size, 2 * round((cost.reading + cost.seconds) / cost.seconds))
    found: Any = get_engine(engine)
    gpus = len(getattr(found, "lanes", tuple)())
    return max(gpus, min(most, threads.count(), gpus * min(found.sharers(size), enough) if gpus else threads.count()))


def portable(work: Any) -> bool:
    """Return whether the work declares that other processes may compute it, and it can be sent to them."""
    return getattr(work, "portable", False) and picklable(work)


def picklable(work: Any) -> bool:
    """Return whether other processes can have the work: not where part of it is the user's script, or a closure."""
    try:
        return b"__main__" not in pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False


def timed(work: Any, block: range) -> tuple[Arrays, float]:
    """Return the result of a block, and the seconds it took."""
    start = time.perf_counter()
    with _quick_turns():
        return work.block(block), time.perf_counter() - start


@contextlib.contextmanager
def _quick_turns() -> Iterator[None]:
    """Let threads take turns sooner: who starts kernels has to wait often, and briefly, for who reads frames."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    try:
        yield
    finally:
        # one that is another thread's comes back rounded
        sys.setswitchinterval(before if before > 2 * TURN else DEFAULT_TURN)


#: Times that a block is given to another process when the one that had it died: one that dies of the block itself would
#: do so each time.
RETRIES = 3


class OddError(TaskError):
    """What nobody foresaw, and does not say where."""


def odd(error: BaseException) -> OddError:
    """Return what is said of an error that nobody foresaw."""
    return OddError(f"{type(error).__name__}: {line(error)}" if str(error) else type(error).__name__)


def line(error: BaseException) -> str:
    """Return what an error says, in one line."""
    return " ".join(str(error).split())


class Processes:
    """Processes of this machine, each with a pipe, which are given one block at a time.

    Parameters
    ----------
    work : Work
    blocks : sequence of range
    count : int
        Of processes; where the work's engine has GPUs they are dealt out among them.
    again : bool
        Whether the block of a process that died is given to another, :data:`RETRIES` times; otherwise it is an error.
    size : int, bytes
        Of a result.
    """

    def __init__(self, work: Any, blocks: Sequence[range], count: int, again: bool = False, size: int = 0) -> None:
        self.blocks, self.count = blocks, count
        self._engine: Any = get_engine(getattr(work, "engine", "cpu"))
        self._spawn = multiprocessing.get_context("spawn")
        self._folder = tempfile.TemporaryDirectory(dir=_in_memory(4 * count * size), ignore_cleanup_errors=True)
        # by a file: to start a process with more than a pipe holds takes until it reads that
        (Path(self._folder.name) / WORK).write_bytes(pickle.dumps(work, pickle.HIGHEST_PROTOCOL))
        self._todo: deque[int] = deque()
        self._retries = RETRIES if again else 0
        self._died: Counter[int] = Counter()  # processes with each block
        self._busy: dict[Any, int] = {}
        self._all: dict[Any, tuple[Any, int]] = {}

    def width(self) -> int:
        """Return how many there are."""
        return self.count

    def start(self, number: int) -> None:
        """Queue a block."""
        self._todo.append(number)

    def wait(self) -> Done | None:
        """Return the next that is done, None where a moment has gone by without."""
        while self._todo and len(self._busy) < self.count:
            pipe = next((pipe for pipe in self._all if pipe not in self._busy), None) or self._new()
            self._busy[pipe] = self._todo.popleft()
            with contextlib.suppress(OSError):  # it is dead, which is found below
                pipe.send(self.blocks[self._busy[pipe]])
        ready: list[Any] = multiprocessing.connection.wait(list(self._busy), timeout=0.2)
        for pipe in ready:
            number = self._busy.pop(pipe)
            try:
                result, seconds = pipe.recv()
                return number, _loaded(result), seconds
            except (EOFError, OSError):
                process, _ = self._all.pop(pipe)
                process.join()
                self._died[number] += 1
                if self._died[number] <= self._retries:
                    self._todo.appendleft(number)
                    return None
                return number, OddError(f"its process ended ({_end(process.exitcode)})"), 0.0
        return None

    def _new(self) -> Any:
        taken = {place for _, place in self._all.values()}
        place = next(n for n in range(self.count) if n not in taken)
        ours, theirs = self._spawn.Pipe()
        process = self._spawn.Process(target=_serve, args=(theirs, place, self._folder.name), daemon=True)
        own = self._engine.environment(place) if hasattr(self._engine, "environment") else {}
        with _environment(share(self.count) | own), _without_script():
            process.start()
        theirs.close()
        self._all[ours] = process, place
        return ours

    def close(self) -> None:
        """End all processes, those at work too."""
        for pipe, (process, _) in self._all.items():
            process.terminate()  # they have nothing to put away, and Python and CUDA take a second to end by themselves
            pipe.close()
        for process, _ in self._all.values():
            process.join()
        self._folder.cleanup()


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
    found = lanes(work)
    with found[place % len(found)]() if found else contextlib.nullcontext(), contextlib.suppress(EOFError, OSError):
        while True:
            block = pipe.recv()
            try:
                arrays, seconds = timed(work, block)
                pipe.send((_stored(arrays, Path(folder)), seconds))
            except Exception as error:  # MemoryError too
                pipe.send((error if isinstance(error, VmdpotentialError) else odd(error), 0.0))


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


def _loaded(result: Any) -> Any:
    """Return a result with its large arrays mapped, or the error that there is instead."""
    if isinstance(result, BaseException):
        return result
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
