"""Frames of open files, which the formats of trajectories yield."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from vmdpotential.io import mdanalysis
from vmdpotential.molecule.cell import Cell

if TYPE_CHECKING:
    from vmdpotential.io.trajectories.frames import Trajectory

#: Positions (N, 3), A, as float32 or float64; cell, and time, ps, or None.
RawFrame = tuple[NDArray[Any], Cell | None, float | None]


@dataclass(frozen=True)
class FrameSource:
    """The frames of an open file: their number, that of the atoms, and a function that reads one of them."""

    count: int
    atoms: int
    read: Callable[[int], RawFrame]


@dataclass(frozen=True)
class TrajectoryFormat:
    """Functions for a format, which are registered as kind ``trajectory_format`` by its suffixes.

    Parameters
    ----------
    open : callable
        Opens the file of a trajectory, with its path, as a context manager.
    index : callable or None
        Returns, for a path and a number of atoms, what is computed once for all parts of a trajectory, such as the
        offsets of frames (:attr:`vmdpotential.io.trajectories.frames.Trajectory.index`).
    unit : str or None
        Unit of lengths that the format prescribes.
    reading : callable
        Context manager, for the path, in which the file is opened and the first frame read.
    """

    open: Callable[[Path, Trajectory], AbstractContextManager[FrameSource]]
    index: Callable[[Path, int], Any] | None = None
    unit: str | None = None
    reading: Callable[[Path], AbstractContextManager[None]] = mdanalysis.reading
