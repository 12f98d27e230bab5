"""Named sums of tasks over frames: how results of pieces of a block, and of blocks, are merged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.execution.work import Arrays


class FrameSum(ABC):
    """A sum over frames, of which a block has arrays with names such as ``mean`` and ``m2``."""

    def of_frames(self, values: NDArray[Any]) -> Arrays:
        """Return the arrays of frames with these values (frames, ...), for tasks that compute each frame."""
        raise NotImplementedError(f"{type(self).__name__} needs a method of_frames, as its task computes single frames")

    def merged(self, a: Arrays, b: Arrays, counts: tuple[int, int]) -> Arrays:
        """Return the arrays of the frames of `a` followed by those of `b`, of these numbers, without changing either.

        For blocks that are computed in pieces.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method merged, as its blocks are computed in pieces")

    @abstractmethod
    def add_block(self, block: Arrays, count: int) -> None:
        """Add the arrays of a block of `count` frames."""


class TotalOverFrames(FrameSum):
    """The sum of the values of all frames: the array ``sum``."""

    def __init__(self) -> None:
        self.value: Any = 0

    def of_frames(self, values: NDArray[Any]) -> Arrays:
        """Return the sum of the values."""
        return {"sum": values.sum(0)}

    def merged(self, a: Arrays, b: Arrays, counts: tuple[int, int]) -> Arrays:
        """Return the sum of both."""
        return {"sum": a["sum"] + b["sum"]}

    def add_block(self, block: Arrays, count: int) -> None:
        """Add the sum of a block."""
        self.value = self.value + block["sum"]


class FrameRows(FrameSum):
    """The values of every frame, in the order of the frames: the array ``rows`` (frames, ...).

    Parameters
    ----------
    frames : int
        Greatest number of frames.
    """

    def __init__(self, frames: int) -> None:
        self.frames, self.count = frames, 0
        self._values: NDArray[Any] = np.zeros(0)

    def of_frames(self, values: NDArray[Any]) -> Arrays:
        """Return the values."""
        return {"rows": values}

    def merged(self, a: Arrays, b: Arrays, counts: tuple[int, int]) -> Arrays:
        """Return the rows of both."""
        return {"rows": np.concatenate([a["rows"], b["rows"]])}

    def add_block(self, block: Arrays, count: int) -> None:
        """Add the rows of a block."""
        rows = block["rows"]
        if not self.count:  # filled block by block, since concatenating blocks would need a second copy of all frames
            self._values = np.empty((self.frames, *rows.shape[1:]), rows.dtype)
        self._values[self.count : self.count + len(rows)] = rows
        self.count += len(rows)

    @property
    def values(self) -> NDArray[Any]:
        """(frames, ...) values of the frames that were added."""
        return self._values[: self.count]


def named_arrays(count: int, parts: Mapping[str, Arrays]) -> Arrays:
    """Return the result of a block of `count` frames: the arrays of its sums by the names of both, ``name.array``."""
    return {"count": np.array(count), **{f"{name}.{key}": np.asarray(array) for name, part in parts.items()
                                         for key, array in part.items()}}


def arrays_of(name: str, block: Arrays) -> Arrays:
    """Return the arrays of one of the sums of a block."""
    return {key.rpartition(".")[2]: array for key, array in block.items() if key.rpartition(".")[0] == name}
