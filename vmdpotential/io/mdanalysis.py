"""Reading of trajectory frames (TRR, DCD, ...) by MDAnalysis (extra ``traj``).

XTC frames and Amber's NetCDF files have readers of this package; :func:`read_frame` reads a frame of any format.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import BackendError, InputError, VmdpotentialError, shorten_text
from vmdpotential.extras import install_command
from vmdpotential.io.files.text import (
    COMPRESSED_SUFFIXES,
    BufferedStream,
    buffered_stream,
    error_with_name,
    first_bytes,
)
from vmdpotential.io.structures import amber_coordinates
from vmdpotential.io.trajectories import dcd, xdr
from vmdpotential.io.trajectories.lengths import length_in_angstrom
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Floats, describe_position, find_implausible_position

log = logging.getLogger(__name__)

#: Packages that MDAnalysis needs for some suffixes; without them its own error has more than one line.
_NEEDS = {".gsd": "gsd", ".h5md": "h5py", ".tng": "pytng"}

#: Lock for changes to the state of the whole process: warning filters and log levels.
_one_thread = threading.RLock()

def read_frame(path: str | Path, n_atoms: int, frame: int = 0) -> tuple[Floats, Cell | None]:
    """Read one frame of a trajectory, without writing an index file next to it.

    Parameters
    ----------
    path : str or Path
        XTC, TRR, DCD, NetCDF of Amber, or another format that MDAnalysis reads.
    n_atoms : int
        Expected number of atoms.
    frame : int
        Number of the frame, from 0; negative numbers count from the end.

    Returns
    -------
    positions : (N, 3) float64, A
    cell : Cell or None
        DCD and NetCDF hold only its lengths and angles; a is then put along x, and b in the xy plane.

    Raises
    ------
    InputError
        When the file cannot be read, has another number of atoms, or does not have this frame.
    BackendError
        When MDAnalysis is not installed.
    """
    path = buffered_stream(path)
    suffix = path.suffix.lower()
    if suffix in (".nc", ".ncdf", ".netcdf", ".ncrst"):  # Amber's NetCDF, which is read without MDAnalysis
        positions, cell, frames = amber_coordinates.read_netcdf_frame(path, frame)
        _check_counts(path, len(positions), n_atoms, frames, frame)
        amber_coordinates.warn_of_frames(path, 1 if frame else frames)
        return positions, cell
    with reading(path):
        if suffix in (".xtc", ".trr"):
            return _gromacs_frame(path, n_atoms, frame)
        if suffix in (".coor", ".namdbin"):  # MDAnalysis would allocate memory for the number of atoms in the header
            counts = [int.from_bytes(first_bytes(path, 4), order) for order in ("little", "big")]
            _check_counts(path, n_atoms if n_atoms in counts else counts[0], n_atoms, 1, frame)
        if suffix == ".dcd":  # for a damaged file, MDAnalysis' reader would print a traceback when it is deleted
            from MDAnalysis.lib.formats.libdcd import DCDFile

            dcd.check_markers(path)
            with DCDFile(str(path)) as file:
                _check_counts(path, file.header["natoms"], n_atoms, len(file), frame)
                amber_coordinates.warn_of_frames(path, 1 if frame else len(file))
                file.seek(frame % len(file))
                entry = file.read()
            return checked(entry.xyz, path), cell_of(dcd.cell_of(entry.unitcell, dcd.version(path)), path)
        with opened(path, n_atoms=n_atoms) as reader:
            length, _ = scales(reader, path, None)
            _check_counts(path, reader.n_atoms, n_atoms, reader.n_frames, frame)
            amber_coordinates.warn_of_frames(path, 1 if frame else reader.n_frames)
            step = reader[frame]
            return checked(step.positions, path) * length, cell_of(step.dimensions, path, length)


def _gromacs_frame(path: Path, n_atoms: int, frame: int) -> tuple[Floats, Cell | None]:
    """Read a frame of an XTC, or of a TRR by MDAnalysis' file class, whose readers would leave files next to it."""
    from MDAnalysis.lib.formats.libmdaxdr import TRRFile

    is_xtc = path.suffix.lower() == ".xtc"
    frames = xdr.frames(path, n_atoms, is_xtc)
    # counting the frames means going through the whole file, which is not needed for the first one
    starts = list(frames) if frame else [next(frames)]
    _check_counts(path, n_atoms, n_atoms, len(starts), frame)
    if is_xtc:
        with open(path, "rb") as file:
            positions, box, _ = xdr.read_xtc(path, file, starts[frame], n_atoms, frame)
    else:
        with TRRFile(str(path)) as file:
            if frame:
                file.seek(frame % len(starts))
            step = file.read()
            if not step.hasx:
                raise InputError(f"{path}: frame {frame} contains no positions", "choose another frame")
            box = np.array(step.box, dtype=np.float64) * 10  # nm to A
            positions = np.array(step.x, dtype=np.float64) * 10
    if frame == 0 and next(frames, None) is not None:
        log.warning("%s: contains several frames; the first one is used", path)
    return checked(positions, path), box_of(box, path)


def _check_counts(path: Path, count: int, n_atoms: int, frames: int, frame: int) -> None:
    check_atoms(path, count, n_atoms)
    if not -frames <= frame < frames:
        raise InputError(f"{path}: has {frames} frames, so there is no frame {frame}")


def check_atoms(path: Path, count: int, n_atoms: int) -> None:
    """Check that a trajectory has as many atoms as the structure.

    Raises
    ------
    InputError
    """
    if count != n_atoms:
        raise InputError(f"{path}: has {count} atoms and the structure {n_atoms}", "give files of one system")


def checked(positions: Any, path: Path, dtype: Any = np.float64, frame: int | None = None,
            copy: bool = True) -> NDArray[Any]:
    """Return positions from a file as an array (N, 3); raise InputError if some are implausible.

    `frame` is the number of the frame for the message, if the file has several.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        result: NDArray[Any] = (np.array if copy else np.asarray)(positions, dtype, order="C")
        atom = find_implausible_position(result)
    if atom is not None:
        where = "" if frame is None else f"in frame {frame} "
        raise InputError(f"{path}: {where}atom {atom + 1} has coordinates that are {describe_position(result[atom])}",
                         "choose another frame")
    return result


def opened(path: Path, **options: Any) -> Any:
    """Return MDAnalysis' reader of a trajectory, which the caller has to close; see :func:`scales`."""
    from MDAnalysis.coordinates.core import get_reader_for

    kind: Any = get_reader_for(str(path))
    if path.suffix.lower() == ".h5md":  # it would refuse a file without units, also of velocities
        options["convert_units"] = False
    reader = kind.__new__(kind)
    try:
        reader.__init__(str(path), **options)
    except Exception:
        # a reader that failed half way has nothing to close, and would print a traceback when it is deleted
        reader.close, reader._auxs = lambda: None, {}
        raise
    return reader


def scales(reader: Any, path: Path, length_unit: str | None) -> tuple[float, float | None]:
    """Return the factors that convert a reader's lengths to A and times to ps; that of times is None if unknown.

    Raises
    ------
    UsageError, InputError
        When the unit of lengths differs from the user's `length_unit`, or neither states it.
    """
    from MDAnalysis.units import convert

    units = {name: reader.units.get(name) for name in ("length", "time")}
    length = length_in_angstrom(path, units["length"], length_unit)
    if getattr(reader, "convert_units", True) and units["length"]:  # the reader does it
        return 1.0, 1.0
    return length, float(convert(1.0, units["time"], "ps")) if units["time"] else None


def cell_of(dimensions: Any, path: Path, length: float = 1.0) -> Cell | None:
    """Return the cell of three lengths and three angles; None if the lengths are zero, or all 1 as a placeholder.

    Lengths are in A, or in the given unit.
    """
    if dimensions is None or not np.any(dimensions[:3]) or amber_coordinates.is_placeholder(dimensions[:3]):
        return None
    try:
        return Cell.from_parameters(*(length * float(x) for x in dimensions[:3]), *map(float, dimensions[3:]))
    except InputError as error:
        raise InputError(f"{path}: {error.text}", error.hint) from None


def box_of(vectors: Floats, path: Path) -> Cell | None:
    """Return the cell of three vectors (3, 3), A; None if they are zero."""
    if not vectors.any():
        return None
    try:
        return Cell(vectors)
    except InputError as error:
        raise InputError(f"{path}: {error.text}", error.hint) from None


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert whatever MDAnalysis raises to an error of one line, and suppress its warnings and log lines."""
    first_bytes(path, 1)  # raises here if the file is missing
    logger = logging.getLogger("MDAnalysis")
    with _one_thread, warnings.catch_warnings():
        level = logger.level
        warnings.simplefilter("ignore")
        try:
            import MDAnalysis  # noqa: F401

            warnings.simplefilter("ignore")  # MDAnalysis sets its own filters when it is first imported
        except ImportError:
            raise BackendError(
                f"{path}: needs MDAnalysis to be read", f"install it with {install_command('traj')}") from None
        if path.suffix.lower() in COMPRESSED_SUFFIXES or isinstance(path, BufferedStream):  # MDAnalysis unpacks all
            raise InputError(f"{path}: this format is read from a plain file only", "unpack it first")
        package = _NEEDS.get(path.suffix.lower())
        if package and importlib.util.find_spec(package) is None:
            raise BackendError(f"{path}: needs {package} to be read", f"install it with pip install {package}")
        logger.setLevel(logging.CRITICAL)
        try:
            with converted_errors(path):
                yield
        finally:
            logger.setLevel(level)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the warnings that MDAnalysis gives about a frame."""
    with _one_thread, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def converted_errors(path: Path) -> Iterator[None]:
    """Convert whatever MDAnalysis raises while it reads a file to an error of one line."""
    try:
        yield
    except InputError as error:
        raise error_with_name(path, error) from error.__cause__
    except VmdpotentialError:
        raise
    except MemoryError:
        raise InputError(f"{path}: MDAnalysis needs more memory than there is; the file may be damaged") from None
    except Exception as error:  # MDAnalysis' parsers raise any exception
        reason = str(error).strip().split("\n")
        text = next((line for line in reversed(reason) if line.startswith("Error:")), reason[0] if reason else "")
        text = text.removeprefix("Error:").replace(f"{path}:", "").replace(str(path), "it").strip()
        text = text or ("it is cut short" if isinstance(error, EOFError) else type(error).__name__)
        raise InputError(f"{path}: MDAnalysis cannot read it ({shorten_text(text, 200)})") from None
