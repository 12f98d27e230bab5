"""Reading of XTC frames, and checks of the headers of TRR frames before MDAnalysis' library reads them.

The library trusts the numbers in a file: damaged ones make it write beyond its memory, which ends the process.
Therefore XTC frames are read here by code that checks them while it unpacks; it is also faster, and can run in several
threads.

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

from vmdpotential.errors import InputError
from vmdpotential.io.mdanalysis import check_atoms
from vmdpotential.kernels.launch import KernelFile, launch_kernel

KERNELS = KernelFile(Path(__file__).with_name("xtc.cu"))

#: First row of the format's table of ranges that is not 0, and the row after the last.
_FIRST, _BEYOND = 9, 73
#: Offsets in a frame of the coordinates with their parameters, and of the packed bits.
_PACKED, _BITS = 56, 92
#: Bytes that the kernel may read beyond the packed ones; largest range whose three coordinates are packed together.
_SPARE, _APART = 16, 0xFFFFFF
#: Bytes of the shortest header of a TRR frame (in single precision).
_HEADER = 84

log = logging.getLogger(__name__)


def frames(path: Path, n_atoms: int, is_xtc: bool) -> Iterator[int]:
    """Yield the offset of each frame, bytes; an incomplete last frame is left out with a warning.

    Raises
    ------
    InputError
        When a frame has another number of atoms or is damaged, or the first frame is incomplete.
    """
    with open(path, "rb") as file:
        start, size = 0, file.seek(0, 2)
        while not start or start < size:
            header = _HEADER if not is_xtc else _BITS if n_atoms > 9 else _PACKED
            whole = size - start >= header
            end = (_end_of_xtc if is_xtc else _end_of_trr)(path, file, start, n_atoms) if whole else size + 1
            if start and end > size:
                log.warning("%s: ends within a frame, which is left out; it is cut short, or still being written", path)
                return
            if not start < end <= size:
                raise InputError(f"{path}: the frame at byte {start} is damaged or cut short", "copy or write it again")
            yield start
            start = end


def vanished_frame(path: Path, number: int) -> InputError:
    """Return the error for a frame that has disappeared since the frames were counted."""
    return InputError(f"{path}: frame {number} is no longer there: the file was changed while it was read",
                      "run again when nothing writes it")


def _words(file: IO[bytes], start: int, count: int) -> NDArray[np.int32]:
    file.seek(start)
    return np.frombuffer(file.read(4 * count).ljust(4 * count, b"\0"), ">i4")


def _end_of_xtc(path: Path, file: IO[bytes], start: int, n_atoms: int) -> int:
    """Return the offset of the end of an XTC frame, 0 for a damaged one.

    Layout: magic number, atoms, step, time, 9 numbers of the box, atoms again; then the coordinates, or for more than 9
    atoms precision, 3 least and 3 largest integers, the row of the smallest range, and the number of bytes that follow.
    """
    words = _words(file, start, _BITS // 4)
    if words[0] == 2023:
        raise InputError(f"{path}: is an XTC file of the kind for more than 298 million atoms, which is not supported",
                         "write fewer atoms to it, or TRR")
    if words[0] != 1995:
        return 0
    check_atoms(path, int(words[1]), n_atoms)
    if words[13] != n_atoms:
        return 0
    if n_atoms <= 9:
        return start + _PACKED + 12 * n_atoms
    good = _FIRST <= words[21] < _BEYOND and 0 <= words[22] <= 12 * n_atoms and (words[15:18] <= words[18:21]).all()
    return start + _BITS + (int(words[22]) + 3) // 4 * 4 if good else 0


def _end_of_trr(path: Path, file: IO[bytes], start: int, n_atoms: int) -> int:
    """Return the offset of the end of a TRR frame, 0 for a damaged one.

    Layout: magic number, length of a string twice, the string (12 bytes), then the sizes in bytes of ten parts (of
    which box, virial, pressure, positions, velocities and forces are used), atoms, step, another integer, time and
    lambda.
    """
    words = _words(file, start, 19)
    if words[0] != 1993 or words[2] != 12:
        return 0
    check_atoms(path, int(words[16]), n_atoms)
    sizes = [int(words[n]) for n in (8, 9, 10, 13, 14, 15)]
    width = max(sizes[3:]) // (3 * n_atoms) or max(sizes[:3]) // 9
    good = width in (4, 8) and all(size in (0, 9 * width) for size in sizes[:3])
    good &= all(size in (0, 3 * n_atoms * width) for size in sizes[3:])
    return start + 76 + 2 * width + sum(sizes) if good else 0


def read_xtc(path: Path, file: IO[bytes], start: int, n_atoms: int, number: int = 0,
             dtype: Any = np.float64) -> tuple[NDArray[Any], NDArray[np.float64], float]:
    """Return positions, box and time of a frame in an open XTC file.

    Returns
    -------
    positions : (N, 3), A
    box : (3, 3) float64
        Vectors of the cell, A; zero without one.
    time : float
        Time in ps.

    Raises
    ------
    InputError
        When the packed coordinates do not agree with the number of atoms, the ranges or the size of the frame.
    """
    end = _end_of_xtc(path, file, start, n_atoms)
    if not end:
        raise vanished_frame(path, number)
    file.seek(start)
    data = np.zeros(end - start + _SPARE, np.uint8)
    if file.readinto(data[: end - start].data) < end - start:  # type: ignore[attr-defined]
        raise vanished_frame(path, number)
    reals = data[: _PACKED].view(">f4").astype(np.float64)
    box, time = reals[4:13].reshape(3, 3) * 10, float(reals[3])  # nm to A
    if n_atoms <= 9:
        positions = data[_PACKED : end - start].view(">f4").reshape(n_atoms, 3).astype(dtype)
        return positions * np.dtype(dtype).type(10), box, time
    words = data[: _BITS].view(">i4").astype(np.int64)
    precision = float(data[_PACKED : _PACKED + 4].view(">f4")[0])
    low, sizes = words[15:18], words[18:21] - words[15:18] + 1
    lengths = [int(size).bit_length() for size in sizes]
    if sizes.max() <= _APART:
        lengths = [math.prod(sizes.tolist()).bit_length(), 0, 0]
    positions, valid = np.empty((n_atoms, 3), dtype), np.zeros(1, bool)
    if 1e-30 < precision < 1e30:
        launch_kernel(KERNELS["unpack_frame"], 1, "trajectory", data=data[_BITS:], low=low, sizes=sizes,
               bits=np.array(lengths), singles=positions if dtype == np.float32 else None,
               doubles=None if dtype == np.float32 else positions, valid=valid, length=int(words[22]),
               atoms=n_atoms, row=int(words[21]), inverse=1 / precision)
    if not valid[0]:
        raise InputError(f"{path}: the frame at byte {start} is damaged", "copy or write it again")
    return positions, box, time
