"""Frames of a trajectory, one after another: positions and the cell of each, read ahead while others are computed."""

from __future__ import annotations

import contextlib
import queue
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError
from vmdpotential.io import mdanalysis, xdr
from vmdpotential.io.text import held
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]

#: Frames that are read before they are asked for.
AHEAD = 2


class Frame(NamedTuple):
    """One frame: its number, 0-based, positions (N, 3), A, its cell, and how many frames are read."""

    number: int
    positions: Floats
    cell: Cell | None
    total: int = 1


def parse_frames(text: str) -> slice:
    """Return which frames ``b:e:s`` means: from b on, before e, every s-th, as slices of Python; or one number.

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
        raise ValueError("the step between frames is at least 1")
    return slice(*numbers)


@dataclass(frozen=True)
class Trajectory:
    """A file of frames.

    Parameters
    ----------
    path : Path
        XTC, TRR, DCD, NetCDF, PDB of several models, or anything else that MDAnalysis reads.
    atoms : int
        How many atoms every frame must have.
    frames : slice
        Which frames are wanted.
    """

    path: Path
    atoms: int
    frames: slice = field(default_factory=lambda: slice(None))

    def __iter__(self) -> Iterator[Frame]:
        """Yield the frames, in their order.

        Raises
        ------
        InputError
            When the file cannot be read, has other atoms, or none of the frames.
        BackendError
            When MDAnalysis is not installed.
        """
        return ahead(self._frames())

    def _frames(self) -> Iterator[Frame]:
        path = held(self.path)
        with mdanalysis.reading(path):
            frames = _xdr(path, self.atoms, self.frames) if path.suffix.lower() in (".xtc", ".trr") else (
                _readers(path, self.atoms, self.frames))
            first = next(frames)  # whatever is wrong with the file as a whole is found here
        yield first
        with mdanalysis.explained(path):
            yield from frames


def _chosen(path: Path, frames: slice, count: int) -> range:
    chosen = range(count)[frames]
    if not chosen:
        raise InputError(f"{path}: has {count} frames, and none of them is asked for", "choose other {frames}")
    return chosen


def _xdr(path: Path, n_atoms: int, frames: slice) -> Iterator[Frame]:
    """Read by the file classes of MDAnalysis: its readers leave lock and offset files beside the trajectory."""
    from MDAnalysis.lib.formats.libmdaxdr import TRRFile, XTCFile

    is_xtc = path.suffix.lower() == ".xtc"
    starts = np.array(list(xdr.frames(path, n_atoms, is_xtc)))
    with (XTCFile if is_xtc else TRRFile)(str(path)) as file:
        file.set_offsets(starts)
        chosen = _chosen(path, frames, len(starts))
        for number in chosen:
            if is_xtc:
                xdr.check_packed(path, int(starts[number]), n_atoms)
            file.seek(number)
            step = file.read()
            if not getattr(step, "hasx", True):
                raise InputError(f"{path}: frame {number} holds no positions", "choose other {frames}")
            box = np.array(step.box, np.float64) * 10  # nm to A
            yield Frame(number, mdanalysis.checked(np.asarray(step.x, np.float64) * 10, path),
                        Cell(box) if box.any() else None, len(chosen))


def _readers(path: Path, n_atoms: int, frames: slice) -> Iterator[Frame]:
    from MDAnalysis.coordinates.core import get_reader_for

    if path.suffix.lower() == ".dcd":  # a damaged one is found here: the reader would print a traceback
        from MDAnalysis.lib.formats.libdcd import DCDFile

        with DCDFile(str(path)) as file:
            mdanalysis.check_atoms(path, file.header["natoms"], n_atoms)
    told = {} if path.suffix.lower() in (".nc", ".ncdf") else {"n_atoms": n_atoms}
    with get_reader_for(str(path))(str(path), **told) as reader:
        mdanalysis.check_atoms(path, reader.n_atoms, n_atoms)
        chosen = _chosen(path, frames, reader.n_frames)
        for number in chosen:
            step = reader[number]
            yield Frame(number, mdanalysis.checked(step.positions, path),
                        mdanalysis.cell_of(step.dimensions, path), len(chosen))


def ahead(items: Iterator[Frame], count: int = AHEAD) -> Iterator[Frame]:
    """Yield items that a thread makes, up to `count` before they are asked for."""
    made: queue.Queue[Any] = queue.Queue(count)
    stop = threading.Event()

    def put(what: Any) -> bool:
        while not stop.is_set():
            with contextlib.suppress(queue.Full):
                made.put(what, timeout=0.1)
                return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(None)
        except BaseException as error:  # told where the frames are taken
            put(error)
        finally:
            items.close()  # type: ignore[attr-defined]

    # the first one is made here, with what listens to warnings in this thread
    try:
        yield next(items)
    except StopIteration:
        return
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        while (item := made.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        worker.join()
