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

from vmdpotential.errors import InputError
from vmdpotential.io import mdanalysis
from vmdpotential.io.files.text import buffered_stream, first_bytes, format_suffix, reading_file
from vmdpotential.io.structures import amber_coordinates, gro, mmcif, pdb
from vmdpotential.io.trajectories import dcd, xdr
from vmdpotential.io.trajectories.lengths import length_in_angstrom
from vmdpotential.kernels import threads
from vmdpotential.molecule.cell import Cell

log = logging.getLogger(__name__)

#: Number of frames that are read ahead.
AHEAD = 2

#: Unit of time of a DCD in ps.
AKMA = 4.888821e-2

#: Largest relative difference of a cell's volume from that of the first frame.
JUMP = 0.2

#: Files whose frames are located by :attr:`Trajectory._starts` before they are read.
_LOCATED = (".xtc", ".trr", ".gro")
#: Structure files whose models are frames.
_MODELS = (".cif", ".mmcif", ".pdbx", ".pdb", ".ent")
#: NetCDF files in Amber's conventions.
_NETCDF = (".nc", ".ncdf", ".netcdf", ".ncrst")
#: Units of lengths of formats that prescribe them.
_OF_FORMAT = {**dict.fromkeys(_LOCATED, "nm"), **dict.fromkeys((*_MODELS, ".dcd"), "angstrom")}

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
        path = buffered_stream(self.path)
        if format_suffix(path) in _MODELS:
            return _chosen(path, self.frames, len(self._models))
        if format_suffix(path) in _NETCDF:
            with amber_coordinates.netcdf_frames(path, self.length_unit) as file:
                return _chosen(path, self.frames, file.frames)
        with mdanalysis.reading(path):
            if path.suffix.lower() in _LOCATED:
                return _chosen(path, self.frames, len(self._starts))
            with self._reader() as reader:
                return _chosen(path, self.frames, _count(reader))

    def part(self, numbers: range) -> Trajectory:
        """Return the frames of these numbers."""
        part = replace(self, frames=_slice_of(numbers))
        # located or read once for all parts
        part.__dict__.update((name, value) for name, value in vars(self).items() if name in ("_starts", "_models"))
        return part

    def seconds(self) -> float:
        """Return the time in seconds that reading a frame takes: the mean of a few frames, without opening the file."""
        frames = itertools.islice(self._frames(), 4)
        next(frames)
        start = time.perf_counter()
        count = sum(1 for _ in frames)
        return (time.perf_counter() - start) / max(1, count)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Offsets of the frames of an XTC, TRR or GRO file, bytes."""
        path = buffered_stream(self.path)
        if path.suffix.lower() == ".gro":
            return np.array(list(gro.frames(path, self.atoms)), np.int64)
        return np.array(list(xdr.frames(path, self.atoms, path.suffix.lower() == ".xtc")), np.int64)

    def _frames(self) -> Iterator[Frame]:
        path = buffered_stream(self.path)
        if (unit := _OF_FORMAT.get(format_suffix(path))) is not None:
            length_in_angstrom(path, unit, self.length_unit)
        if format_suffix(path) in _MODELS:
            yield from self._of_models(path)
            return
        if format_suffix(path) in _NETCDF:
            yield from self._netcdf(path)
            return
        with mdanalysis.reading(path):
            readers = {".xtc": self._xtc, ".trr": self._trr, ".gro": self._gro}
            frames = readers.get(path.suffix.lower(), self._others)(path)
            first = next(frames)  # raises the errors of the file as a whole
        yield first
        with mdanalysis.converted_errors(path):
            yield from frames

    def _dtype(self, values: NDArray[Any]) -> Any:
        return np.float32 if self.single and values.dtype == np.float32 else np.float64

    def _xtc(self, path: Path) -> Iterator[Frame]:
        starts, dtype = self._starts, np.float32 if self.single else np.float64
        chosen = _chosen(path, self.frames, len(starts))
        with open(path, "rb") as file:
            for number in chosen:
                positions, box, time = xdr.read_xtc(path, file, int(starts[number]), self.atoms, number, dtype)
                yield Frame(number, mdanalysis.checked(positions, path, dtype, number, copy=False),
                            mdanalysis.box_of(box, path), len(chosen), time)

    def _trr(self, path: Path) -> Iterator[Frame]:
        """Yield frames read by MDAnalysis' file class, whose reader would write lock and offset files next to it."""
        from MDAnalysis.lib.formats.libmdaxdr import TRRFile

        starts = self._starts  # checked before the library, which trusts the file, reads the first frame on opening
        with TRRFile(str(path)) as file:
            file.set_offsets(starts)
            chosen = _chosen(path, self.frames, len(starts))
            for number in chosen:
                file.seek(number)
                try:
                    step = file.read()
                except StopIteration:
                    raise xdr.vanished_frame(path, number) from None
                if not step.hasx:
                    raise InputError(f"{path}: frame {number} contains no positions", "choose other {frames}")
                box = np.array(step.box, np.float64) * 10  # nm to A
                positions = mdanalysis.checked(step.x, path, self._dtype(step.x), number)
                positions *= 10
                yield Frame(number, positions, mdanalysis.box_of(box, path), len(chosen), float(step.time))

    def _gro(self, path: Path) -> Iterator[Frame]:
        chosen = _chosen(path, self.frames, len(self._starts))
        ends = [*self._starts[1:].tolist(), None]
        for number in chosen:
            positions, cell, time = gro.read_frame(path, int(self._starts[number]), ends[number], self.atoms)
            yield Frame(number, mdanalysis.checked(positions, path, frame=number), cell, len(chosen), time)

    @cached_property
    def _models(self) -> list[tuple[NDArray[np.float64], Cell | None]]:
        """Positions and cells of the models of a PDB or mmCIF file."""
        path = buffered_stream(self.path)
        with reading_file(path):
            models = list(pdb.read_models(path)) if format_suffix(path) in (".pdb", ".ent") else [
                (model.positions, model.cell) for model in mmcif.read_models(path)]
        for positions, _ in models:
            mdanalysis.check_atoms(self.path, len(positions), self.atoms)
        return models

    def _netcdf(self, path: Path) -> Iterator[Frame]:
        size = path.stat().st_size
        with amber_coordinates.netcdf_frames(path, self.length_unit) as file:
            mdanalysis.check_atoms(path, file.atoms, self.atoms)
            chosen = _chosen(path, self.frames, file.frames)
            for number in chosen:
                if path.stat().st_size < size:  # reading missing pages of a mapped file would end the process
                    raise xdr.vanished_frame(path, number)
                values, cell, time = file.read(number)
                yield Frame(number, mdanalysis.checked(values, path, self._dtype(values), number), cell, len(chosen),
                            time)

    def _of_models(self, path: Path) -> Iterator[Frame]:
        chosen = _chosen(path, self.frames, len(self._models))
        for number in chosen:
            yield Frame(number, self._models[number][0].copy(), self._models[number][1], len(chosen))

    def _reader(self) -> Any:
        """Open the file with MDAnalysis."""
        path, suffix = buffered_stream(self.path), buffered_stream(self.path).suffix.lower()
        if suffix == ".dcd":  # for a damaged file, MDAnalysis' reader would print a traceback
            from MDAnalysis.lib.formats.libdcd import DCDFile

            dcd.check_markers(path)
            file = DCDFile(str(path))
            mdanalysis.check_atoms(path, file.header["natoms"], self.atoms)
            return file
        reader = mdanalysis.opened(path, n_atoms=self.atoms)
        mdanalysis.check_atoms(path, reader.n_atoms, self.atoms)
        return reader

    def _others(self, path: Path) -> Iterator[Frame]:
        with self._reader() as reader:
            chosen = _chosen(path, self.frames, _count(reader))
            if path.suffix.lower() == ".dcd":
                step, version = _dcd_step(reader.header), dcd.version(path)
                for number in chosen:
                    try:
                        reader.seek(number)
                        entry = reader.read()
                    except StopIteration:
                        raise xdr.vanished_frame(path, number) from None
                    if entry.xyz.shape != (self.atoms, 3):
                        raise InputError(f"{path}: frame {number} has {' x '.join(map(str, entry.xyz.shape))} numbers, "
                                         f"where {self.atoms} atoms have {self.atoms} x 3",
                                         "write it without a fourth coordinate or fixed atoms")
                    time = None if step is None else step[0] + number * step[1]
                    yield Frame(number, mdanalysis.checked(entry.xyz, path, self._dtype(entry.xyz), number),
                                mdanalysis.cell_of(dcd.cell_of(entry.unitcell, version), path), len(chosen), time)
                return
            size, (length, in_ps) = path.stat().st_size, mdanalysis.scales(reader, path, self.length_unit)
            for number in chosen:
                if path.stat().st_size < size:  # reading missing pages of a mapped file would end the process
                    raise xdr.vanished_frame(path, number)
                with mdanalysis.quiet():
                    entry = reader[number]
                positions = mdanalysis.checked(entry.positions, path, self._dtype(entry.positions), number)
                positions *= positions.dtype.type(length)
                time = entry.data.get("time")
                yield Frame(number, positions, mdanalysis.cell_of(entry.dimensions, path, length), len(chosen),
                            None if time is None or in_ps is None else time * in_ps)


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
    if trajectory.suffix.lower() == ".dcd" and _cut_short(trajectory, atoms):
        log.warning("%s: ends within a frame, which is left out; it is cut short, or still being written", trajectory)
    return Trajectory(trajectory, atoms, frames or slice(None), single, length_unit=length_unit)


def _cut_short(path: Path, atoms: int) -> bool:
    """Return whether a DCD ends within a frame, which its reader ignores without a warning.

    The size of each record is written before and after it. The records are a header of 84 bytes, titles, the number of
    atoms; then for every frame the cell, if the header says so, and x, y and z of all atoms. False for other layouts.
    """
    start = first_bytes(path, 4096)
    words = np.frombuffer(start[: len(start) // 4 * 4], "<i4" if start[:1] == b"T" else ">i4")
    if len(words) < 24 or words[0] != 84:
        return False
    fixed, has_cell, fourth = words[[10, 12, 13]]
    count = 23 + int(words[23]) // 4 + 2
    if fixed or fourth or words[count : count + 3].tolist() != [4, atoms, 4]:
        return False
    frame = 12 * atoms + 24 + (56 if has_cell else 0)
    return (path.stat().st_size - 4 * (count + 3)) % frame > 0


def _count(reader: Any) -> int:
    return int(reader.n_frames)


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


def _dcd_step(header: Any) -> tuple[float, float] | None:
    """Return the time of a DCD's first frame and the time between frames, ps; None if the header has none."""
    step = header["nsavc"] * header["delta"] * AKMA
    if not (np.isfinite(step) and step > 0):
        return None
    return header["istart"] * header["delta"] * AKMA, step


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
