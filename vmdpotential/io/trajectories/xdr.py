"""Frames of XTC files, and what TRR files say of themselves, looked at before MDAnalysis' library reads them.

The library believes the numbers in a file: damaged ones make it write beyond its memory, which ends the process.
Frames of an XTC are read here instead: faster, by any number of threads, and without checking them before.

Layouts and packing: xdrfile of GROMACS (xdrfile_xtc.c, xdrfile_trr.c, xdrfile_decompress_coord_float).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build
from vmdpotential.errors import InputError

#: Rows of the library's table of ranges that are none (0) and one beyond its end.
_FIRST, _BEYOND = 9, 73
#: Bytes before the packed coordinates of a frame, and before the bits themselves.
_PACKED, _BITS = 56, 92
#: Bytes that the kernel may read beyond the packed ones, and the range from which coordinates are packed apart.
_SPARE, _APART = 16, 0xFFFFFF
#: Bytes of a TRR's header with its shortest numbers.
_HEADER = 84

log = logging.getLogger(__name__)


def frames(path: Path, n_atoms: int, is_xtc: bool) -> Iterator[int]:
    """Yield where each frame begins, bytes; one that the file ends within is left out, which a warning says.

    Raises
    ------
    InputError
        At a frame of other atoms, or one that is damaged; also when the first one is cut short.
    """
    with open(path, "rb") as file:
        start, size = 0, file.seek(0, 2)
        while not start or start < size:
            header = _HEADER if not is_xtc else _BITS if n_atoms > 9 else _PACKED
            whole = size - start >= header
            end = (_end_of_xtc if is_xtc else _end_of_trr)(path, file, start, n_atoms) if whole else size + 1
            if start and end > size:
                log.warning("%s: ends within a frame, which is left out; it is cut short, or still written", path)
                return
            if not start < end <= size:
                raise InputError(f"{path}: the frame at byte {start} is damaged or cut short", "copy or write it again")
            yield start
            start = end


def cut_while_read(path: Path, number: int) -> InputError:
    """Return the error of a frame that was there when the frames were counted."""
    return InputError(f"{path}: frame {number} is no longer there: the file was changed while it was read",
                      "run again when nothing writes it")


def _words(file: IO[bytes], start: int, count: int) -> NDArray[np.int32]:
    file.seek(start)
    return np.frombuffer(file.read(4 * count).ljust(4 * count, b"\0"), ">i4")


def _check_atoms(path: Path, count: int, n_atoms: int) -> None:
    if count != n_atoms:
        raise InputError(f"{path}: has {count} atoms and the structure {n_atoms}", "give files of one system")


def _end_of_xtc(path: Path, file: IO[bytes], start: int, n_atoms: int) -> int:
    """Return the end of a frame, 0 for a damaged one.

    Layout: magic, atoms, step, time, 9 of the box, atoms again; then the coordinates, or for more than 9 atoms
    precision, 3 least and 3 largest integers, the row of the smallest range, and how many bytes follow.
    """
    words = _words(file, start, _BITS // 4)
    if words[0] == 2023:
        raise InputError(f"{path}: is an XTC file of the kind for more than 298 million atoms, which is not read",
                         "write fewer atoms to it, or TRR")
    if words[0] != 1995:
        return 0
    _check_atoms(path, int(words[1]), n_atoms)
    if words[13] != n_atoms:
        return 0
    if n_atoms <= 9:
        return start + _PACKED + 12 * n_atoms
    good = _FIRST <= words[21] < _BEYOND and 0 <= words[22] <= 12 * n_atoms and (words[15:18] <= words[18:21]).all()
    return start + _BITS + (int(words[22]) + 3) // 4 * 4 if good else 0


def _end_of_trr(path: Path, file: IO[bytes], start: int, n_atoms: int) -> int:
    """Return the end of a frame, 0 for a damaged one.

    Layout: magic, length of a string twice, the string (12 bytes), then the bytes of ten parts (of which box, virial,
    pressure, positions, velocities and forces are written), atoms, step, one more, time and lambda.
    """
    words = _words(file, start, 19)
    if words[0] != 1993 or words[2] != 12:
        return 0
    _check_atoms(path, int(words[16]), n_atoms)
    sizes = [int(words[n]) for n in (8, 9, 10, 13, 14, 15)]
    width = max(sizes[3:]) // (3 * n_atoms) or max(sizes[:3]) // 9
    good = width in (4, 8) and all(size in (0, 9 * width) for size in sizes[:3])
    good &= all(size in (0, 3 * n_atoms * width) for size in sizes[3:])
    return start + 76 + 2 * width + sum(sizes) if good else 0


def read_xtc(path: Path, file: IO[bytes], start: int, n_atoms: int, number: int = 0,
             dtype: Any = np.float64) -> tuple[NDArray[Any], NDArray[np.float64], float]:
    """Return what a frame of an open XTC holds.

    Returns
    -------
    positions : (N, 3), A
    box : (3, 3) float64
        Vectors of the cell, A; zero where there is none.
    time : float
        ps.

    Raises
    ------
    InputError
        When the packed coordinates go beyond the atoms, the ranges or the bytes of the frame.
    """
    end = _end_of_xtc(path, file, start, n_atoms)
    if not end:
        raise cut_while_read(path, number)
    file.seek(start)
    data = np.zeros(end - start + _SPARE, np.uint8)
    if file.readinto(data[: end - start].data) < end - start:  # type: ignore[attr-defined]
        raise cut_while_read(path, number)
    reals = data[: _PACKED].view(">f4").astype(np.float64)
    box, time = reals[4:13].reshape(3, 3) * 10, float(reals[3])  # nm to A
    ten = np.dtype(dtype).type(10)
    if n_atoms <= 9:
        return data[_PACKED : end - start].view(">f4").reshape(n_atoms, 3).astype(dtype) * ten, box, time
    words = data[: _BITS].view(">i4").astype(np.int64)
    precision = float(data[_PACKED : _PACKED + 4].view(">f4")[0])
    low, sizes = words[15:18], words[18:21] - words[15:18] + 1
    lengths = [int(size).bit_length() for size in sizes]
    if sizes.max() <= _APART:
        lengths = [math.prod(sizes.tolist()).bit_length(), 0, 0]
    positions = np.empty((n_atoms, 3), dtype)
    if not 1e-30 < precision < 1e30 or not build.load("xtc_kernel").unpack(
            data[_BITS:], int(words[22]), low, sizes, np.array(lengths), int(words[21]), np.float32(1 / precision), ten,
            positions):
        raise InputError(f"{path}: the frame at byte {start} is damaged", "copy or write it again")
    return positions, box, time
