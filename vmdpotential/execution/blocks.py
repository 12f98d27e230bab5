"""Blocks of frames: the pieces in which a task over a trajectory is computed, and from which it resumes after a stop.

The division into blocks depends only on the frames, and results are returned in the order of the blocks, so that the
final result is the same bit by bit wherever the blocks were computed (:mod:`vmdpotential.execution.pools`), and however
often the run was interrupted. Until the output is written, each result is kept in a file in a folder next to it.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import numpy as np

from vmdpotential import __version__, progress
from vmdpotential.engines import get_engine
from vmdpotential.errors import OutputError, TaskError, UsageError
from vmdpotential.execution.cluster import cluster_pool
from vmdpotential.execution.pools import (
    BlockResult,
    CallingThread,
    WorkerError,
    WorkerPool,
    collect_blocks,
    finished_future,
    is_picklable,
    on_threads,
)
from vmdpotential.execution.processes import Processes, on_gpus
from vmdpotential.execution.tree import merge_in_tree
from vmdpotential.execution.work import Arrays, Work, work_fingerprint
from vmdpotential.io.files import output as files
from vmdpotential.io.files.hidden import remove_abandoned
from vmdpotential.io.maps.npz import put_arrays

log = logging.getLogger(__name__)

#: Least number of blocks of a trajectory, if each has at least :data:`MIN_BLOCK_FRAMES` frames; and if each also
#: reaches
#: :data:`ENOUGH`.
FEW, BLOCKS = 32, 256

#: Least number of frames of a block, unless there are many atoms.
MIN_BLOCK_FRAMES = 8

#: Greatest number of atoms times frames of a block. It limits the time of a block to between seconds and half a minute
#: on one core, which is what is lost with a worker, and gives many workers something to do.
ATOMS = 4_000_000

#: Atoms times frames for which it pays to open the trajectory and to keep a result: a tenth of a second.
ENOUGH = 100_000

#: Greatest number of frames of a block.
MOST = 1000

#: Bytes per second at which a result is written, synced, checked and removed, a quarter of the speed of a disk. A block
#: that is computed faster than that is not kept.
DISK = 5e7

#: Label of the progress of the frames; reports of a block with this label count as parts of it.
FRAMES_LABEL = "frames"

_FINGERPRINT, _DIGEST = "fingerprint", "digest"
_CALLED = "block-*.npz"


def block_size(count: int, atoms: int = 0) -> int:
    """Return the number of frames of a block, for a trajectory with `count` frames and `atoms` atoms."""
    enough = min(-(-count // FEW), ENOUGH // max(1, atoms))
    return min(max(MIN_BLOCK_FRAMES, -(-count // BLOCKS), enough), piece_size(atoms))


def piece_size(atoms: int) -> int:
    """Return the greatest number of frames that are computed at once, for `atoms` atoms."""
    return min(MOST, max(1, ATOMS // max(1, atoms)))


def split(numbers: range, size: int = 0) -> list[range]:
    """Return the frames in blocks of `size` frames; unless given, :func:`block_size` without the number of atoms."""
    size = size or block_size(len(numbers))
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]


def folder_of(path: Path | None, resume: bool = False) -> Path | None:
    """Return the folder next to an output file in which its blocks are kept, and None for an output that is no file.

    Raises
    ------
    UsageError
        When a run is to be resumed and there is no such folder.
    """
    if path is None or files.is_standard(path) or (path.exists() and not path.is_file()):
        if resume:
            raise UsageError("resume",
                             "finished blocks are kept next to an output file, and none is named",
                             "name a file as {output}")
        return None
    return path.with_name(f"{path.name}.blocks")


def clear_blocks(folder: Path | None) -> None:
    """Remove the blocks that are kept in a folder, after the output was written."""
    if folder is not None and folder.is_dir():
        with contextlib.suppress(OSError):
            remove_abandoned(folder)
        for path in folder.glob(_CALLED):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder has files of another run, or of something else
            folder.rmdir()


class BlockResults:
    """The results of all blocks, in their order, computed while the caller iterates over them.

    Parameters
    ----------
    work : Work
    numbers : range
        Numbers of the frames, such as ``range(1000)[100:800:2]``.
    size : int
        Number of frames in a block; unless given, :func:`block_size` without the number of atoms. It must not depend on
        the number of workers, processors or GPUs.
    piece : int
        Number of frames that are computed at once. Blocks with more frames are divided into pieces, whose results are
        merged by the work in a tree (:mod:`vmdpotential.execution.tree`), by the workers of a scheduler, or in this
        process. 0 computes whole blocks.
    folder : Path, optional
        Folder in which finished blocks are kept, or their pieces where this process merges them; see :func:`folder_of`.
        Nothing is kept unless given.
    resume : bool
        Whether the blocks of the same work in the folder are used.
    workers : int
        Number of processes on this machine; 0 computes in this process, with a thread for each GPU.
    scheduler : str
        Address of a Dask scheduler, whose workers compute the blocks.

    Raises
    ------
    BackendError
        When there is a scheduler and Dask is not installed.
    TaskError
        When the scheduler was lost, or the worker in each of several tries.
    """

    def __init__(self, work: Work, numbers: range, *, size: int = 0, piece: int = 0, folder: Path | None = None,
                 resume: bool = False, workers: int = 0, scheduler: str = "") -> None:
        self.work, self.piece, self.folder = work, piece, folder
        self.workers, self.scheduler = workers, scheduler
        # the workers of a scheduler merge pieces and return blocks
        pieces = [split(block, piece) if piece and not scheduler else [block]
                  for block in split(numbers, size)]
        #: Blocks, or their pieces: what is computed and kept.
        self.blocks = [item for entry in pieces for item in entry]
        self._pieces = [len(part) for part in pieces]
        self._fingerprint = ""
        self._first: dict[range, Future[BlockResult]] = {}  # results computed while the pool was chosen
        #: Blocks that an earlier run has kept.
        self.kept: set[range] = set()
        if folder is not None:
            parts = [(b.start, b.stop, b.step) for b in self.blocks]
            self._fingerprint = work_fingerprint(__version__, work, parts, *([piece] if piece and scheduler else []))
            if resume:
                self._find()

    def __iter__(self) -> Iterator[Arrays]:
        """Yield the results, in the order of the blocks."""
        with contextlib.closing(self._computed()) as results:
            for count in self._pieces:
                batch = itertools.islice(results, count)
                yield next(batch) if count == 1 else merge_in_tree(batch, self.work.merge)

    def _computed(self) -> Generator[Arrays, None, None]:
        """Yield the results of the blocks, or of their pieces, in their order."""
        heard = _Heard(self.blocks)

        def arrived(block: range, arrays: Arrays, seconds: float) -> None:
            heard.add(len(block))
            if block not in self.kept:
                self._keep(block, arrays, seconds)

        with self._pool(heard) as pool:
            results = collect_blocks(pool, self.blocks, arrived, submit=partial(self._submit, pool))
            while True:
                with progress.listen_to_progress(heard):  # but not while the caller uses a result
                    done = next(results, None)
                if done is None:
                    return
                number, future = done
                try:
                    arrays, _ = future.result()
                except WorkerError as error:
                    block = self.blocks[number]
                    raise TaskError(f"frames {block[0]} to {block[-1]}: {error.text}", error.hint) from None
                yield arrays

    @contextlib.contextmanager
    def _pool(self, heard: progress.Listener) -> Iterator[WorkerPool]:
        """Provide the pool that computes the missing blocks."""
        missing = [block for block in self.blocks if block not in self.kept]
        if self.scheduler and missing:
            with cluster_pool(self.scheduler, self.work, self.piece) as workers:
                yield workers
            return
        pool: WorkerPool
        needs = self.work.needs()
        if not missing:
            pool = CallingThread(self.work)
        elif self.workers:
            pool = Processes(self.work, self.workers)
        elif (cost := needs.cost) is not None and get_engine(needs.engine).devices() and is_picklable(self.work):
            with progress.listen_to_progress(heard):
                pool, first = on_gpus(self.work, cost(), missing)
            self._first = {missing[0]: first} if first else {}
        else:
            pool = on_threads(self.work, len(missing))
        with contextlib.closing(pool):
            yield pool

    def _submit(self, pool: WorkerPool, block: range) -> Future[BlockResult]:
        """Return the future of a block's result, which is done where the result was kept."""
        if block in self.kept:
            arrays = self._read(block)
            if arrays is not None:
                return finished_future(lambda: (arrays, 0.0))
            self.kept.remove(block)
        return self._first.pop(block, None) or pool.submit(block)

    def clear(self) -> None:
        """Remove the blocks that are kept, after the output was written."""
        clear_blocks(self.folder)

    def _place(self, block: range) -> Path:
        assert self.folder is not None
        return self.folder / f"block-{block[0]:09d}-{block[-1]:09d}.npz"

    def _find(self) -> None:
        """Find the kept blocks of this work, and log the numbers of those that fit and those that do not."""
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
            log.info("%s: %d of %d blocks are finished", self.folder, len(self.kept), len(self.blocks))
        if others:
            log.warning("%s: %d blocks belong to other files, options or another version, and are computed again",
                        self.folder, others)

    def _read(self, block: range) -> Arrays | None:
        """Return the kept result of a block, or None if its file is damaged."""
        path = self._place(block)
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files if name not in (_FINGERPRINT, _DIGEST)}
                if str(archive[_DIGEST]) != self._digest(block, arrays):
                    raise ValueError("its content has changed")
                return arrays
        except Exception as error:  # of zipfile, zlib and numpy
            log.warning("%s: is damaged (%s), and is computed again", path, error)
            return None

    def _digest(self, block: range, arrays: Arrays) -> str:
        """Return a digest of a block's frames and its result, which reveals files that were swapped or changed."""
        return work_fingerprint(self._fingerprint, block, arrays)

    def _keep(self, block: range, arrays: Arrays, seconds: float) -> None:
        """Write a block's result, unless computing it again is faster."""
        if self.folder is None or seconds * DISK < sum(array.nbytes for array in arrays.values()):
            return
        try:
            self.folder.mkdir(exist_ok=True)
            with files.writing_files([self._place(block)], force=True) as (temporary,):
                put_arrays(temporary, {**arrays, _FINGERPRINT: np.array(self._fingerprint),
                                       _DIGEST: np.array(self._digest(block, arrays))})
        except (OSError, OutputError) as error:  # the final output may still be written elsewhere
            log.warning("%s: blocks are not kept (%s)", self.folder, error)
            self.folder = None


class _Heard:
    """A listener that converts the progress of single blocks to that of all frames."""

    def __init__(self, blocks: Sequence[range]) -> None:
        self.outer, self.total, self.size = progress.listener(), sum(map(len, blocks)), max(map(len, blocks), default=0)
        self.done, self.part = 0, 0.0

    def add(self, frames: int) -> None:
        """Count the frames of a finished block."""
        self.done, self.part = self.done + frames, 0.0
        self(FRAMES_LABEL, 0.0)

    def __call__(self, label: str, fraction: float) -> None:
        """Report progress; `fraction` is that of the frames of a block where the label says so."""
        if self.outer is None:
            return
        if label == progress.COMPILING:
            self.outer(label, fraction)
        else:
            self.part = fraction if label == FRAMES_LABEL else self.part
            self.outer("1 frame" if self.total == 1 else f"{self.total} frames",
                       min(1.0, (self.done + self.part * self.size) / self.total))
