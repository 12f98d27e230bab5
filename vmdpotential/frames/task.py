"""Tasks over frames: a task declares what it computes of a frame or a block of frames, and its named sums.

The rest is the same for all: blocks of frames and their pieces, where they are computed and kept
(:mod:`vmdpotential.execution.blocks`), how they are merged, partial results, and the statistics of means over blocks
(:mod:`vmdpotential.frames.statistics`). The mean dipole moment over frames, for instance, is::

    @dataclass(frozen=True, eq=False)
    class Dipoles(FrameTask):
        frames: Frames
        charges: NDArray[np.float64]

        def sums(self):
            return {"dipole": BlockMean()}

        def of_frame(self, frame):
            return {"dipole": self.charges @ frame.positions}

    dipole = run_task(Dipoles(frames, charges))["dipole"]
    dipole.mean, dipole.uncertainty()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential import progress
from vmdpotential.execution.blocks import FRAMES_LABEL, BlockResults
from vmdpotential.execution.work import Arrays, Work
from vmdpotential.frames.options import Execution
from vmdpotential.frames.statistics import MIN_STATISTICS_BLOCKS
from vmdpotential.frames.sums import FrameSum, arrays_of, named_arrays
from vmdpotential.io.trajectories.frames import Frame

R = TypeVar("R")


class FrameSource(Protocol):
    """Frames of which a task reads parts."""

    def numbers(self) -> range:
        """Return the numbers of the frames, without reading them."""

    def part(self, numbers: range) -> Iterable[Frame]:
        """Return the frames of these numbers."""


class FrameTask(Work):
    """A computation over frames, whose blocks are merged by named sums. It can be pickled."""

    frames: FrameSource

    @abstractmethod
    def sums(self) -> Mapping[str, FrameSum]:
        """Return the sums by name, which are still empty."""

    def of_frame(self, frame: Frame) -> Mapping[str, ArrayLike]:
        """Return the values of a frame by the names of the sums, unless the task has a :meth:`block` of its own."""
        raise NotImplementedError(f"{type(self).__name__} needs a method of_frame or block")

    def compute(self, frames: Iterable[Frame]) -> Arrays:
        """Return the arrays of the sums over some frames, as :func:`.sums.named_arrays` does."""
        values = list(map(self.of_frame, frames))
        return named_arrays(len(values), {name: entry.of_frames(np.array([each[name] for each in values]))
                                   for name, entry in self.sums().items()})

    def block(self, numbers: range) -> Arrays:
        """Return the arrays of the sums over the frames of these numbers."""
        return self.compute(self._reported(numbers))

    def _reported(self, numbers: range) -> Iterator[Frame]:
        for done, frame in enumerate(self.frames.part(numbers), 1):
            yield frame
            progress.report_progress(FRAMES_LABEL, done / len(numbers))

    def merge(self, a: Arrays, b: Arrays) -> Arrays:
        """Return the arrays of the frames of `a` followed by those of `b`, without changing either."""
        counts = int(a["count"]), int(b["count"])
        return named_arrays(sum(counts), {name: entry.merged(arrays_of(name, a), arrays_of(name, b), counts)
                                   for name, entry in self.sums().items()})


@dataclass(eq=False)
class MergedSums:
    """The sums over all blocks, by name, and the number of frames in each block."""

    sums: Mapping[str, Any]
    counts: list[int] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        """Return one of the sums."""
        return self.sums[name]

    @property
    def count(self) -> int:
        """Number of frames."""
        return sum(self.counts)


def merge_blocks(sums: Mapping[str, FrameSum], results: Iterable[Arrays], partial: bool = False) -> MergedSums:
    """Return the sums over the results of blocks, which are computed as they are consumed.

    With `partial`, a KeyboardInterrupt after the first block ends the computation, and the sums are over the frames
    until then.
    """
    result, blocks = MergedSums(sums), iter(results)
    while True:
        try:
            block = next(blocks, None)
        except KeyboardInterrupt:
            if not (partial and result.counts):
                raise
            return result
        if block is None:
            return result
        # not interrupted by a listener, which would leave a block partly added
        with progress.listen_to_progress(lambda *_: None):
            count = int(block["count"])
            for name, entry in sums.items():
                entry.add_block(arrays_of(name, block), count)
        result.counts.append(count)


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskPlan(ABC, Generic[R]):
    """A task and the division of its frames into blocks.

    Parameters
    ----------
    work : FrameTask
    numbers : range
        Frame numbers.
    size : int
        Number of frames in a block.
    piece : int
        Number of frames that are computed at once; 0 computes whole blocks.
    """

    work: Any
    numbers: range
    size: int
    piece: int = 0

    def run(self, execution: Execution | None = None) -> BlockResults:
        """Return the results of the blocks, which are computed as they are consumed."""
        return BlockResults(self.work, self.numbers, size=self.size, piece=self.piece,
                            **(execution or Execution()).blocks)

    def sums(self) -> Mapping[str, FrameSum]:
        """Return the sums of the task, which are still empty."""
        sums: Mapping[str, FrameSum] = self.work.sums()
        return sums

    @abstractmethod
    def result(self, merged: MergedSums) -> R:
        """Return the result, made from the sums over all frames."""

    def merge(self, results: Iterable[Arrays], partial: bool = False) -> R:
        """Return the result of the blocks, see :func:`merge_blocks`."""
        return self.result(merge_blocks(self.sums(), results, partial))


def run_task(task: FrameTask, execution: Execution | None = None, *, size: int = 0, piece: int = 0) -> MergedSums:
    """Return the sums of a task over all of its frames, or with `partial` until an interruption.

    Parameters
    ----------
    task : FrameTask
    execution : Execution, optional
        Where blocks of frames are computed and kept; in this process unless given.
    size : int
        Number of frames in a block; unless given, as large as the statistics of means allow.
    piece : int
        Number of frames that are computed at once; 0 computes whole blocks.
    """
    numbers, execution = task.frames.numbers(), execution or Execution()
    results = BlockResults(task, numbers, size=size or max(1, len(numbers) // MIN_STATISTICS_BLOCKS), piece=piece,
                           **execution.blocks)
    return merge_blocks(task.sums(), results, execution.partial)
