"""Amber's coordinate files (inpcrd, rst7, NetCDF), with boxes and velocities.

Formats: ambermd.org/FileFormats.php and ambermd.org/netcdf/nctraj.xhtml.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError, Message, VmdpotentialError
from vmdpotential.io.files.numbers import first_wrong, parse_reals
from vmdpotential.io.files.text import buffered_stream, first_bytes, open_seekable, read_text
from vmdpotential.io.mdanalysis import cell_of, converted_errors
from vmdpotential.io.trajectories.formats import size_check
from vmdpotential.io.trajectories.lengths import length_in_angstrom
from vmdpotential.io.trajectories.source import FrameSource, RawFrame, TrajectoryFormat
from vmdpotential.molecule.cell import Cell

log = logging.getLogger(__name__)

#: Amber's unit of velocities in A/ps.
VELOCITY_UNIT = 20.455

#: Most bytes of memory for each byte and for each line of a file (measured).
_MEMORY = (20.0, 100.0)


def read_restart(path: str | Path) -> tuple[Floats, Cell | None, Floats | None]:
    """Read an inpcrd, rst7 or NetCDF restart, or the first frame of a NetCDF trajectory, plain or compressed.

    Returns
    -------
    positions : (N, 3) float64, A
    cell : Cell or None
    velocities : (N, 3) float64, A/ps, or None
        If all atoms have them.

    Raises
    ------
    InputError
        When the file is truncated, contains asterisks, is NetCDF-4 (HDF5), or is not a coordinate file of Amber.
    """
    path = buffered_stream(path)
    _check_kind(path)
    if first_bytes(path, 3) != b"CDF":
        positions, cell, lines = _read_ascii(path)
        try:
            with np.errstate(over="ignore"):  # checked below
                velocities = VELOCITY_UNIT * _fixed_numbers(lines, path) if lines else None
        except InputError:
            velocities = np.full(1, np.nan)
    else:
        with netcdf_frames(path) as file:
            values, cell, _ = file.read(0)
            count = file.count
        positions = values.astype(np.float64)
        _check_finite(positions, path)
        if count > 1:
            log.warning("%s: contains %d frames; the first one is used", path, count)
        with _variables(path) as (_, variables):
            velocities = _copied(variables["velocities"], 0) if "velocities" in variables else None
    if velocities is not None and (velocities.size != positions.size or not np.isfinite(velocities).all()):
        log.warning("%s: not all atoms have velocities, so all velocities are ignored", path)
        velocities = None
    return positions, cell, None if velocities is None else velocities.reshape(-1, 3)


#: What scipy raises for damaged files; SyntaxError is numpy's, which reads the sizes of records from a text.
_DAMAGED = (OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, EOFError, SyntaxError)


@contextlib.contextmanager
def _variables(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Open a NetCDF-3 file, and yield it with its variables, whose data must be copied."""
    from scipy.io import netcdf_file

    try:
        # mapped into memory, so that only one frame of a long trajectory is read
        with (warnings.catch_warnings(), _netcdf(path) as source,
              netcdf_file(source, "r", mmap=isinstance(source, _Clamped)) as file):
            warnings.simplefilter("ignore")  # scipy warns when it cannot close a damaged file
            try:
                yield file, file.variables
            finally:
                file.variables.clear()  # scipy unmaps no file whose variables are in use
    except VmdpotentialError:
        raise
    except _DAMAGED:
        raise InputError(f"{path}: the NetCDF file is damaged or cut short", "copy it again") from None


#: Times in ps of the units that NetCDF files of Amber's conventions name.
_TIMES = {"picosecond": 1.0, "picoseconds": 1.0, "femtosecond": 1e-3, "femtoseconds": 1e-3,
          "nanosecond": 1e3, "nanoseconds": 1e3}


@contextlib.contextmanager
def netcdf_frames(path: Path, length_unit: str | None = None) -> Iterator[FrameSource]:
    """Open a NetCDF-3 trajectory in Amber's conventions, as Amber, LAMMPS and others write them.

    Parameters
    ----------
    path : Path
    length_unit : str or None
        Unit of lengths in a file that states none; A and ps unless given, if the file claims to follow Amber's
        conventions, which prescribe these.

    Raises
    ------
    UsageError
        When the file states another unit than `length_unit`.
    InputError
        When the file is damaged, another kind of NetCDF, or has no or other units.
    """
    _check_kind(path)
    with _variables(path) as (file, variables):
        if "coordinates" not in variables:
            raise InputError(f"{path}: is NetCDF without the variable 'coordinates', so it is not a file of Amber")
        framed = variables["coordinates"].dimensions[:1] == ("frame",)  # unlike in a restart
        shapes = {name: variables[name].shape[variables[name].dimensions[:1] == ("frame",):]
                  for name in ("coordinates", "cell_lengths", "cell_angles") if name in variables}
        for name, shape in shapes.items():
            if shape[-1:] != (3,) or len(shape) != 1 + (name == "coordinates"):
                raise InputError(f"{path}: its variable {name!r} is not three numbers for each "
                                 f"{'atom' if name == 'coordinates' else 'frame'}; the file is damaged")
        follows = not {"AMBER", "AMBERRESTART"}.isdisjoint(re.split("[ ,]+", _text(file, "Conventions")))
        length = _length(path, _text(variables["coordinates"], "units"), follows, length_unit)
        in_ps = _time(path, _text(variables["time"], "units"), follows) if "time" in variables else None

        check = size_check(path) if path.is_file() else lambda frame: None

        def read(frame: int) -> RawFrame:
            check(frame)
            values = variables["coordinates"].data[frame] if framed else variables["coordinates"].data
            scale = length * float(getattr(variables["coordinates"], "scale_factor", 1.0))
            values = np.array(values, np.float32 if values.dtype.itemsize == 4 else np.float64)
            with np.errstate(over="ignore"):  # readers check what they get
                values *= values.dtype.type(scale)
            cell = None
            if "cell_lengths" in variables and "cell_angles" in variables:
                sizes, angles = (_copied(variables[name], frame) for name in ("cell_lengths", "cell_angles"))
                cell = cell_of([*(sizes * length), *angles], path)
            time = None if in_ps is None else in_ps * float(_copied(variables["time"], frame)[0])
            return values, cell, time

        shape = variables["coordinates"].shape
        yield FrameSource(int(shape[0]) if framed else 1, int(shape[-2]), read)


def _text(owner: Any, name: str) -> str:
    """Return an attribute of a NetCDF file or variable, empty if it has none."""
    value = getattr(owner, name, b"")
    return (value.decode("latin-1") if isinstance(value, bytes) else str(value)).strip("\0 ")


def _length(path: Path, stated: str, follows_amber: bool, given: str | None) -> float:
    if not stated and follows_amber and given is None:
        log.info(Message("%s: states no units, and is read in A and ps by Amber's conventions, which it claims to "
                         "follow; {length_unit} tells another unit"), path)
        return 1.0
    return length_in_angstrom(path, stated, given)


def _time(path: Path, stated: str, follows_amber: bool) -> float | None:
    """Return a unit of time in ps, None if it is unknown."""
    if not stated:
        return 1.0 if follows_amber else None
    if stated.lower() not in _TIMES:
        raise InputError(f"{path}: its unit {stated[:20]!r} is not one of {', '.join(_TIMES)}",
                         "write it again in units of angstrom and picosecond")
    return _TIMES[stated.lower()]


def _check_kind(path: Path) -> None:
    """Raise InputError for kinds of NetCDF that are not read."""
    magic = first_bytes(path, 8)
    if magic.startswith((b"\x89HDF", b"CDF\x05")):
        raise InputError(f"{path}: is {'NetCDF-4 (HDF5)' if magic[0] == 0x89 else 'NetCDF of 64-bit data (CDF-5)'}",
                         "convert it to NetCDF-3, as Amber writes it, with nccopy -k 64-bit-offset")


class _Clamped(io.FileIO):
    """A file of which no more than its size is read, so that a damaged header cannot cause a huge allocation."""

    def read(self, size: int | None = -1, /) -> bytes:
        rest = os.fstat(self.fileno()).st_size - self.tell()
        return super().read(rest if size is None or size < 0 else min(size, rest))


@contextlib.contextmanager
def _netcdf(path: Path) -> Iterator[IO[bytes]]:
    """Open a NetCDF file; a plain file on disk can be mapped into memory."""
    with open_seekable(path) as file:
        if isinstance(file, io.BytesIO):
            yield file
        else:
            with _Clamped(path) as plain:
                yield plain  # type: ignore[misc]


def _copied(variable: Any, frame: int) -> Floats:
    """Return the numbers of a frame in their unit, as one row."""
    data = variable.data[frame] if variable.dimensions[:1] == ("frame",) else variable.data
    return np.array(data, np.float64).reshape(-1) * float(getattr(variable, "scale_factor", 1.0))


def _read_ascii(path: Path) -> tuple[Floats, Cell | None, list[str]]:
    """Return positions, cell, and the lines of velocities."""
    lines = read_text(path, *_MEMORY).decode("latin-1").rstrip().split("\n")
    head = lines[1].split() if len(lines) > 1 else []
    if not head or not re.fullmatch("[0-9]{1,12}", head[0]) or int(head[0]) < 1:
        raise InputError(f"{path}: is not an inpcrd or rst7, its second line does not begin with the number of atoms")
    count = int(head[0])
    needed = -(-count // 2)  # two atoms in a line
    body = [line for line in lines[2:] if line.strip()]
    rest = len(body) - needed
    # after the positions: nothing, a box (one line), velocities, or velocities and a box
    if rest not in (0, 1, needed, needed + 1):
        raise InputError(
            f"{path}: has {len(body)} lines of numbers, but {count} atoms need {needed}, or {2 * needed} with "
            "velocities, and one for a box; the file is truncated or of another system"
        )
    positions = _fixed_numbers(body[:needed], path)
    if len(positions) != 3 * count:
        raise InputError(f"{path}: has {len(positions)} coordinates instead of {3 * count}; the file is damaged")
    cell = None
    if rest in (1, needed + 1):
        box = _fixed_numbers(body[-1:], path)
        # with one or two atoms the last line may be velocities or a box; only those of a box can be angles
        whole_line = rest == needed and len(box) == 3 * count - 6 * (needed - 1)
        velocities = whole_line and not (len(box) == 6 and (box[3:] > 20).all())
        if not velocities and len(box) in (3, 6):
            cell = cell_of([*box, 90.0, 90.0, 90.0][:6], path)
        elif not velocities:
            raise InputError(f"{path}: its last line should be a box of 3 or 6 numbers, but has {len(box)}")
    # velocities of one or two atoms are one line, like a box
    return positions.reshape(-1, 3), cell, body[needed : 2 * needed] if count > 2 and rest >= needed else []


def _fixed_numbers(lines: list[str], path: Path) -> Floats:
    """Return the numbers in lines of 12 characters each (Fortran's 6F12.7)."""
    words = [line[i : i + 12] for line in lines for i in range(0, len(line.rstrip()), 12)]
    try:
        numbers = parse_reals(words)
    except ValueError:
        i = first_wrong(words)
        where = f"{path}: number {i + 1} (atom {i // 3 + 1})"
        if "*" not in words[i]:
            raise InputError(f"{where}: '{words[i]}' is not a number") from None
        raise InputError(f"{where} is written as asterisks: it was too large for its columns",
                         "wrap the system into its box and write the file again, or use NetCDF") from None
    _check_finite(numbers[: len(numbers) // 3 * 3].reshape(-1, 3), path)
    return numbers


def _check_finite(positions: Floats, path: Path) -> None:
    bad = np.flatnonzero(~np.isfinite(positions).all(1))
    if len(bad):
        raise InputError(f"{path}: atom {bad[0] + 1} has coordinates that are not numbers", "repair the file")


NETCDF = TrajectoryFormat(lambda path, trajectory: netcdf_frames(path, trajectory.length_unit),
                          reading=converted_errors)
