"""Iteration over the frames of a trajectory: positions and cell of each, read ahead while others are computed."""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vmdpotential import registry
from vmdpotential.errors import InputError
from vmdpotential.io import mdanalysis
from vmdpotential.io.files.text import buffered_stream, format_suffix
from vmdpotential.io.trajectories import dcd
from vmdpotential.io.trajectories.lengths import length_in_angstrom
from vmdpotential.io.trajectories.source import FrameSource, TrajectoryFormat
from vmdpotential.kernels import threads
from vmdpotential.molecule.cell import Cell

log = logging.getLogger(__name__)

#: Number of frames that are read ahead.
AHEAD = 2

#: Largest relative difference of a cell's volume from that of the first frame.
JUMP = 0.2

#: Structure files whose models are frames.
_MODELS = (".cif", ".mmcif", ".pdbx", ".pdb", ".ent")

#: Function from positions (N, 3), A, and cell of a frame to new positions (M, 3), A, and cell.
FrameChange = Callable[[NDArray[Any], Cell | None], tuple[NDArray[np.float64], Cell | None]]


class Frame(NamedTuple):
    """One frame.

    Parameters
    ----------
    number : int
        Number of the frame in the file, from 0.
    positions : (N, 3) float64, A
        Or float32, if that is the type in the file and the trajectory keeps it (`single`).
    cell : Cell or None
        Periodic cell.
    total : int
        Number of selected frames of the trajectory.
    time : float or None
        Time in ps, if the file states it.
    """

    number: int
    positions: NDArray[Any]
    cell: Cell | None
    total: int = 1
    time: float | None = None


@runtime_checkable
class Frames(Protocol):
    """Selected frames of a file or a viewer; picklable if other processes are to read them."""

    @property
    def name(self) -> str:
        """Name of the trajectory in errors and in the provenance of maps."""

    @property
    def portable(self) -> bool:
        """Whether the frames are in a file, so that other processes can read them."""

    def __iter__(self) -> Iterator[Frame]:
        """Yield the frames."""

    def numbers(self) -> range:
        """Return the numbers of the frames, without reading them."""

    def part(self, numbers: range) -> Frames:
        """Return the frames of these numbers."""

    def seconds(self) -> float:
        """Return the time in seconds that reading a frame takes."""


def parse_frames(text: str) -> slice:
    """Return the frames ``b:e:s`` as a slice (from b, before e, every s-th, as in Python), or a single number as one.

    Raises
    ------
    ValueError
    """
    words = text.split(":")
    if len(words) > 3 or not all(re.fullmatch(r"\s*(-?\d{1,15})?\s*", word, re.ASCII) for word in words):
        raise ValueError("frames are written as begin:end:step, such as 100:, ::10 or 0:500:5")
    numbers = [int(word) if word.strip() else None for word in words]
    if len(numbers) == 1:
        if numbers[0] is None:
            raise ValueError("frames are written as begin:end:step, such as 100:, ::10 or 0:500:5")
        return slice(numbers[0], numbers[0] + 1 or None)
    if len(numbers) == 3 and numbers[2] is not None and numbers[2] < 1:
        raise ValueError("the step between frames must be at least 1")
    return slice(*numbers)


@dataclass(frozen=True)
class Trajectory:
    """A trajectory file. Every iteration reopens it, so that several workers may read it.

    No index files are written next to it.

    Parameters
    ----------
    path : Path
        XTC, TRR, DCD, NetCDF or H5MD; PDB, mmCIF or GRO with several models; or another format that MDAnalysis reads.
    atoms : int
        Number of atoms that every frame must have.
    frames : slice
        Selected frames.
    single : bool
        Whether positions that are float32 in the file stay float32.
    changes : tuple of function
        Functions that are applied in turn to positions and cell of each frame: they make symmetry copies, and the
        atoms that were added to complete a structure.
    length_unit : str or None
        Unit of lengths, ``angstrom``, ``nm`` or ``bohr``, in a file that states none (H5MD, NetCDF and others).

    Examples
    --------
    >>> from pathlib import Path
    >>> from MDAnalysisTests.datafiles import GRO, XTC
    >>> frames = vp.Trajectory(Path(XTC), atoms=47681, frames=slice(0, 6, 2))
    >>> [frame.number for frame in frames]
    [0, 2, 4]
    """

    path: Path
    atoms: int
    frames: slice = field(default_factory=lambda: slice(None))
    single: bool = False
    changes: tuple[FrameChange, ...] = ()
    length_unit: str | None = None

    @property
    def name(self) -> str:
        """The path of the file."""
        return str(self.path)

    @property
    def portable(self) -> bool:
        """True, as the frames are in a file."""
        return True

    def __iter__(self) -> Iterator[Frame]:
        """Yield the frames, in their order.

        Raises
        ------
        InputError
            When the file cannot be read, has another number of atoms, none of the selected frames, or no known unit.
        UsageError
            When the file is in another unit than `length_unit`.
        BackendError
            When MDAnalysis is not installed.
        """
        return read_ahead(_changed(self._frames(), self.changes))

    def numbers(self) -> range:
        """Return the numbers of the frames, without reading them; raises the errors of :meth:`__iter__`."""
        with self._opened() as source:
            return _chosen(self.path, self.frames, source.count)

    def part(self, numbers: range) -> Trajectory:
        """Return the frames of these numbers."""
        part = replace(self, frames=_slice_of(numbers))
        # located or read once for all parts
        part.__dict__.update((name, value) for name, value in vars(self).items() if name == "index")
        return part

    def seconds(self) -> float:
        """Return the time in seconds that reading a frame takes: the mean of a few frames, without opening the file."""
        frames = itertools.islice(self._frames(), 4)
        next(frames)
        start = time.perf_counter()
        count = sum(1 for _ in frames)
        return (time.perf_counter() - start) / max(1, count)

    @cached_property
    def index(self) -> Any:
        """What the format computes once for all parts: offsets of frames, bytes, or positions and cells of models."""
        path = buffered_stream(self.path)
        make = self._format.index
        return None if make is None else make(path, self.atoms)

    @property
    def _format(self) -> TrajectoryFormat:
        suffix = format_suffix(self.path)
        known = suffix in registry.known("trajectory_format")
        result: TrajectoryFormat = registry.get("trajectory_format", suffix if known else "mdanalysis")
        return result

    @contextlib.contextmanager
    def _opened(self) -> Iterator[FrameSource]:
        """Open the file; the errors of reading it are converted until it is open."""
        path, form = buffered_stream(self.path), self._format
        if form.unit is not None:
            length_in_angstrom(path, form.unit, self.length_unit)
        with contextlib.ExitStack() as stack:
            with form.reading(path):
                source = stack.enter_context(form.open(path, self))
                mdanalysis.check_atoms(path, source.atoms, self.atoms)
            yield source

    def _frames(self) -> Iterator[Frame]:
        path, reading = buffered_stream(self.path), self._format.reading
        with self._opened() as source:
            chosen = _chosen(path, self.frames, source.count)
            for number in chosen:
                with reading(path):
                    values, cell, time = source.read(number)
                    positions = mdanalysis.checked(values, path, self.dtype(values), number, copy=False)
                reading = mdanalysis.converted_errors  # without the lock of all threads
                yield Frame(number, positions, cell, len(chosen), time)

    def dtype(self, values: NDArray[Any]) -> Any:
        """Return the type that positions of a file keep."""
        return np.float32 if self.single and values.dtype == np.float32 else np.float64


def read_frame(path: str | Path, atoms: int, frame: int = 0) -> tuple[NDArray[np.float64], Cell | None]:
    """Return positions (N, 3), A, and cell of a frame of a trajectory; a negative number counts from the end.

    Raises
    ------
    InputError, BackendError
        As by iteration over a :class:`Trajectory`.
    """
    whole = Trajectory(Path(path), atoms)
    count = len(whole.numbers())
    if not -count <= frame < count:
        raise InputError(f"{path}: has {count} frames, so there is no frame {frame}")
    if count > 1 and not frame:
        log.warning("%s: contains %d frames; the first one is used", path, count)
    only = next(whole.part(range(count)[frame:][:1])._frames())
    return only.positions, only.cell


@dataclass(frozen=True)
class LoadedFrames:
    """Frames in the memory of a viewer.

    Parameters
    ----------
    name : str
        Name of the trajectory, for errors.
    held : sequence of (positions, cell)
        Positions (N, 3), A, and cell or None of every frame.
    frames : slice
        Selected frames.
    changes : tuple of function
        Functions that are applied in turn to positions and cell of each frame.
    """

    name: str
    held: Sequence[tuple[NDArray[Any], Cell | None]]
    frames: slice = field(default_factory=lambda: slice(None))
    changes: tuple[FrameChange, ...] = ()

    @property
    def portable(self) -> bool:
        """False, as the frames are not in a file."""
        return False

    def __iter__(self) -> Iterator[Frame]:
        """Yield the frames, in their order."""
        return _changed(self._frames(), self.changes)

    def _frames(self) -> Iterator[Frame]:
        numbers = self.numbers()
        for number in numbers:
            positions, cell = self.held[number]
            yield Frame(number, np.asarray(positions, np.float64), cell, len(numbers))

    def numbers(self) -> range:
        """Return the numbers of the frames; raises InputError if there are none."""
        return _chosen(self.name, self.frames, len(self.held))

    def part(self, numbers: range) -> LoadedFrames:
        """Return the frames of these numbers."""
        return replace(self, frames=_slice_of(numbers))

    def seconds(self) -> float:
        """Return 0, as the frames are in memory."""
        return 0.0


def _changed(frames: Iterator[Frame], changes: Sequence[FrameChange]) -> Iterator[Frame]:
    """Yield frames with changes applied to their positions and cells."""
    with contextlib.closing(frames):  # type: ignore[type-var]
        for frame in frames:
            positions, cell = frame.positions, frame.cell
            for change in changes:
                positions, cell = change(positions, cell)
            yield frame._replace(positions=positions, cell=cell)


def with_changes(frames: Frames | None, changes: Sequence[FrameChange]) -> Frames | None:
    """Return frames with further changes of positions and cells."""
    if not changes or not isinstance(frames, Trajectory | LoadedFrames):
        return frames
    return replace(frames, changes=(*frames.changes, *changes))


def are_models(trajectory: Path | Frames | None) -> bool:
    """Return whether frames are models of a structure file or states in a viewer rather than frames of a simulation."""
    return trajectory is not None and (not isinstance(trajectory, Path) or format_suffix(trajectory) in _MODELS)


def open_frames(trajectory: Path | Frames | None, atoms: int, frames: slice | None, single: bool = False,
           length_unit: str | None = None) -> Frames | None:
    """Return the selected frames of a file; frames of a viewer and None are returned as they are."""
    if not isinstance(trajectory, Path):
        return trajectory
    if trajectory.suffix.lower() == ".dcd" and dcd.ends_within_frame(trajectory, atoms):
        log.warning("%s: ends within a frame, which is left out; it is cut short, or still being written", trajectory)
    return Trajectory(trajectory, atoms, frames or slice(None), single, length_unit=length_unit)


def _slice_of(numbers: range) -> slice:
    """Return the slice of these frames, which ends at the last one, since the range's own end may be no frame."""
    if not numbers:
        return slice(0, 0)
    stop = numbers[-1] + (1 if numbers.step > 0 else -1)
    return slice(numbers.start, stop if stop >= 0 else None, numbers.step)


def _chosen(path: Path | str, frames: slice, count: int) -> range:
    chosen = range(count)[frames]
    if not chosen:
        raise InputError(f"{path}: has {count} frame{'s' * (count != 1)}, numbered 0 to {count - 1}, and none is "
                         "selected", "choose other {frames}")
    if frames.stop is not None and frames.stop > count:
        log.warning("%s: has %d frame%s, none from %d to %d", path, count, "s" * (count != 1), count, frames.stop - 1)
    return chosen


def cell_of(name: str, frame: Frame) -> Cell:
    """Return the cell of a frame of a trajectory whose first frame has a cell.

    Raises
    ------
    InputError
        When the frame has none; silently using the cell of another frame would be wrong.
    """
    if frame.cell is None:
        raise InputError(f"{name}: frame {frame.number} has no periodic cell",
                         "choose other {frames}, or give {cell}")
    return frame.cell


def periodic_cell(name: str, frame: Frame, like: Cell) -> Cell:
    """Return the cell of a frame of a periodic trajectory.

    Parameters
    ----------
    name : str
        Name of the trajectory, for messages.
    frame : Frame
        The frame.
    like : Cell
        Cell of the first frame.

    Raises
    ------
    InputError
        When the frame has no cell, or the volumes of the two differ by a larger fraction than :data:`JUMP`.
    """
    cell = cell_of(name, frame)
    change = cell.volume / like.volume - 1
    if abs(change) > JUMP:
        raise InputError(f"{name}: the cell of frame {frame.number} is {100 * (1 + change):.0f} % as large as that "
                         "of the first one", "choose other {frames}, or give {cell}")
    return cell


def read_ahead(items: Iterator[Frame], count: int = AHEAD) -> Iterator[Frame]:
    """Yield items that a thread computes up to `count` ahead, except where other threads keep all cores busy."""
    if threads.shared():
        with contextlib.closing(items):  # type: ignore[type-var]
            yield from items
        return
    results: queue.Queue[Any] = queue.Queue(count)
    stop = threading.Event()

    def put(result: Any) -> bool:
        while not stop.is_set():
            with contextlib.suppress(queue.Full):
                results.put(result, timeout=0.1)
                return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(None)
        except BaseException as error:  # raised again in the thread that uses the frames
            put(error)
        finally:
            items.close()  # type: ignore[attr-defined]

    # the first item is computed in this thread, whose handlers receive its warnings
    try:
        yield next(items)
    except StopIteration:
        return
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        while (item := results.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        worker.join()
