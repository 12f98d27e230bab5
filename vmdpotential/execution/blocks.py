"""Blocks of frames: the pieces in which a task over a trajectory is computed, and from which it resumes after a stop.

Which frames make a block follows from the frames alone, and results come back in the order of the blocks, so that what
is made of them is the same bit by bit wherever they were computed (:mod:`vmdpotential.execution.pools`), and however
often the run was stopped. Each result is a file, in a folder next to the output, until the output is written.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import numpy as np

from vmdpotential import __version__, progress
from vmdpotential.engines import get_engine
from vmdpotential.errors import OutputError, TaskError, UsageError
from vmdpotential.execution.cluster import cluster
from vmdpotential.execution.pools import Here, Pool, Result, WorkerError, collect, finished, on_threads, picklable
from vmdpotential.execution.processes import Processes, on_gpus
from vmdpotential.execution.tree import merged
from vmdpotential.execution.work import Arrays, Work, fingerprint
from vmdpotential.io.files import output as files
from vmdpotential.io.files.hidden import remove_abandoned
from vmdpotential.io.maps.npz import put_arrays

log = logging.getLogger(__name__)

#: Blocks that a trajectory makes at least, where each has :data:`LEAST` frames; and where each has :data:`ENOUGH`, too.
FEW, BLOCKS = 32, 256

#: Frames of a block at least, unless these are of many atoms.
LEAST = 8

#: Atoms times frames of a block at most, which bounds its time: seconds to half a minute on one core. That is lost with
#: a worker, and any number of workers can compute.
ATOMS = 4_000_000

#: Atoms times frames of a block that are worth opening the trajectory and keeping a result: a tenth of a second.
ENOUGH = 100_000

#: Frames of a block at most.
MOST = 1000

#: Bytes a second of a result that is written, synced, checked and removed, a quarter of what a disk takes: a block that
#: takes less time to compute is not kept.
DISK = 5e7

#: What progress calls the work; a block's own reports of this name count as a part of it.
LABEL = "frames"

_FINGERPRINT, _DIGEST = "fingerprint", "digest"
_CALLED = "block-*.npz"


def block_size(count: int, atoms: int = 0) -> int:
    """Return how many frames make a block of a trajectory of so many frames of so many atoms."""
    enough = min(-(-count // FEW), ENOUGH // max(1, atoms))
    return min(max(LEAST, -(-count // BLOCKS), enough), piece_size(atoms))


def piece_size(atoms: int) -> int:
    """Return how many frames of so many atoms are computed at once at most."""
    return min(MOST, max(1, ATOMS // max(1, atoms)))


def split(numbers: range, size: int = 0) -> list[range]:
    """Return frames in blocks of `size`, which is :func:`block_size` of unknown atoms unless given."""
    size = size or block_size(len(numbers))
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]


def folder_of(path: Path | None, resume: bool = False) -> Path | None:
    """Return where the blocks of an output are kept: next to it; nowhere for what is not a file.

    Raises
    ------
    UsageError
        When there are to be some already, and there is no such place.
    """
    if path is None or files.is_standard(path) or (path.exists() and not path.is_file()):
        if resume:
            raise UsageError("resume", "needs an output file, next to which finished blocks are kept",
                             "name a file as {output}")
        return None
    return path.with_name(f"{path.name}.blocks")


def clear(folder: Path | None) -> None:
    """Remove the blocks that are kept in a folder: what was made of them is safe."""
    if folder is not None and folder.is_dir():
        with contextlib.suppress(OSError):
            remove_abandoned(folder)
        for path in folder.glob(_CALLED):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another run's, or what is not ours
            folder.rmdir()


class Run:
    """The results of all blocks in their order, which are computed while they are taken one after another.

    Parameters
    ----------
    work : Work
    numbers : range
        Of the frames, such as ``range(1000)[100:800:2]``.
    size : int
        Frames in a block; :func:`block_size` of unknown atoms unless given. It must not depend on what computes.
    piece : int
        Frames that are computed at once, where a block has more and there is a `merge`: pieces of a block are
        merged in a tree (:mod:`vmdpotential.execution.tree`), by a scheduler's workers where there is one, else in this
        process. 0 computes whole blocks.
    merge : callable, optional
        That of a :class:`.MergingWork`.
    folder : Path, optional
        Where finished blocks, or their pieces unless a scheduler's workers merge these, are kept, such as
        :func:`folder_of` the output; nowhere unless given.
    resume : bool
        Whether blocks that are there, of the same work, are used.
    workers : int
        Processes of this machine, reached by pipes; 0 computes in this process, where each GPU has a thread.
    scheduler : str
        Address of a Dask scheduler, whose workers compute.

    Raises
    ------
    BackendError
        When Dask is asked for and missing.
    TaskError
        When the scheduler, or a worker for each try, was lost.
    """

    def __init__(self, work: Work, numbers: range, *, size: int = 0, piece: int = 0,
                 merge: Callable[[Arrays, Arrays], Arrays] | None = None, folder: Path | None = None,
                 resume: bool = False, workers: int = 0, scheduler: str = "") -> None:
        piece = piece if merge is not None else 0
        self.work, self.piece, self.merge, self.folder = work, piece, merge, folder
        self.workers, self.scheduler = workers, scheduler
        # the workers of a scheduler merge pieces, so that blocks come from them
        pieces = [split(block, piece) if piece and not scheduler else [block]
                  for block in split(numbers, size)]
        #: What is computed and kept: blocks, or their pieces.
        self.blocks = [item for entry in pieces for item in entry]
        self._pieces = [len(part) for part in pieces]
        self._fingerprint = ""
        self._first: dict[range, Future[Result]] = {}  # computed before there was a pool
        #: Blocks that a former run has left.
        self.kept: set[range] = set()
        if folder is not None:
            parts = [(b.start, b.stop, b.step) for b in self.blocks]
            self._fingerprint = fingerprint(__version__, work, parts, *([piece] if piece and scheduler else []))
            if resume:
                self._find()

    def __iter__(self) -> Iterator[Arrays]:
        """Yield the results, in the order of the blocks."""
        with contextlib.closing(self._computed()) as results:
            for count in self._pieces:
                batch = itertools.islice(results, count)
                yield next(batch) if count == 1 or self.merge is None else merged(batch, self.merge)

    def _computed(self) -> Generator[Arrays, None, None]:
        """Yield the results of what is computed, in its order."""
        heard = _Heard(self.blocks)

        def arrived(block: range, arrays: Arrays, seconds: float) -> None:
            heard.add(len(block))
            if block not in self.kept:
                self._keep(block, arrays, seconds)

        with self._pool(heard) as pool:
            results = collect(pool, self.blocks, arrived, submit=partial(self._submit, pool))
            while True:
                with progress.listening(heard):  # not while the caller is at work
                    done = next(results, None)
                if done is None:
                    return
                number, future = done
                try:
                    arrays, _ = future.result()
                except WorkerError as error:
                    block = self.blocks[number]
                    raise TaskError(f"frames {block[0]} to {block[-1]}: {error.text}", error.cure) from None
                yield arrays

    @contextlib.contextmanager
    def _pool(self, heard: progress.Listener) -> Iterator[Pool]:
        """Give what computes the blocks that are missing."""
        missing = [block for block in self.blocks if block not in self.kept]
        if self.scheduler and missing:
            with cluster(self.scheduler, self.work, self.piece) as workers:
                yield workers
            return
        pool: Pool
        needs = self.work.needs()
        if not missing:
            pool = Here(self.work)
        elif self.workers:
            pool = Processes(self.work, self.workers)
        elif (cost := needs.cost) is not None and get_engine(needs.engine).bindings() and picklable(self.work):
            with progress.listening(heard):
                pool, first = on_gpus(self.work, cost(), missing)
            self._first = {missing[0]: first} if first else {}
        else:
            pool = on_threads(self.work, len(missing))
        with contextlib.closing(pool):
            yield pool

    def _submit(self, pool: Pool, block: range) -> Future[Result]:
        """Return what is kept of a block, else what it will be."""
        if block in self.kept:
            arrays = self._read(block)
            if arrays is not None:
                return finished(lambda: (arrays, 0.0))
            self.kept.remove(block)
        return self._first.pop(block, None) or pool.submit(block)

    def clear(self) -> None:
        """Remove the blocks that are kept: what was made of them is safe."""
        clear(self.folder)

    def _place(self, block: range) -> Path:
        assert self.folder is not None
        return self.folder / f"block-{block[0]:09d}-{block[-1]:09d}.npz"

    def _find(self) -> None:
        """Find the blocks that fit; say how many do not."""
        assert self.folder is not None
        there = set(self.folder.glob(_CALLED))
        for block in self.blocks:
            path = self._place(block)
            if path in there:
                with (contextlib.suppress(Exception), open(path, "rb") as file,  # numpy leaves a damaged one open
                      np.load(file, allow_pickle=False) as archive):
                    if str(archive[_FINGERPRINT]) == self._fingerprint:
                        self.kept.add(block)
        others = len(there) - len(self.kept)
        if self.kept:
            log.info("%s: %d of %d blocks are done", self.folder, len(self.kept), len(self.blocks))
        if others:
            log.warning("%s: %d blocks are of other files, options or another version, and are computed again",
                        self.folder, others)

    def _read(self, block: range) -> Arrays | None:
        """Return what is kept of a block, None where it is damaged."""
        path = self._place(block)
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files if name not in (_FINGERPRINT, _DIGEST)}
                if str(archive[_DIGEST]) != self._digest(block, arrays):
                    raise ValueError("its content is not what was written")
                return arrays
        except Exception as error:  # of zipfile, zlib and numpy
            log.warning("%s: is damaged (%s), and is computed again", path, error)
            return None

    def _digest(self, block: range, arrays: Arrays) -> str:
        """Return a digest of the frames of a block and its result, to find a file that was exchanged or changed."""
        return fingerprint(self._fingerprint, block, arrays)

    def _keep(self, block: range, arrays: Arrays, seconds: float) -> None:
        """Write a block's result, unless computing it again is faster."""
        if self.folder is None or seconds * DISK < sum(array.nbytes for array in arrays.values()):
            return
        try:
            self.folder.mkdir(exist_ok=True)
            with files.writing([self._place(block)], force=True) as (temporary,):
                put_arrays(temporary, {**arrays, _FINGERPRINT: np.array(self._fingerprint),
                                       _DIGEST: np.array(self._digest(block, arrays))})
        except (OSError, OutputError) as error:  # the result itself may still be written elsewhere
            log.warning("%s: blocks are not kept (%s)", self.folder, error)
            self.folder = None


class _Heard:
    """A listener that makes of the reports of blocks one on all frames."""

    def __init__(self, blocks: Sequence[range]) -> None:
        self.outer, self.total, self.size = progress.listener(), sum(map(len, blocks)), max(map(len, blocks), default=0)
        self.done, self.part = 0, 0.0

    def add(self, frames: int) -> None:
        """Count a block that is done."""
        self.done, self.part = self.done + frames, 0.0
        self(LABEL, 0.0)

    def __call__(self, label: str, fraction: float) -> None:
        """Hear how much of something is done: of a block's frames where it is called so."""
        if self.outer is None:
            return
        if label == progress.COMPILING:
            self.outer(label, fraction)
        else:
            self.part = fraction if label == LABEL else self.part
            self.outer(f"{self.total} {LABEL}", min(1.0, (self.done + self.part * self.size) / self.total))


#: What tasks call.
run_blocks = Run
