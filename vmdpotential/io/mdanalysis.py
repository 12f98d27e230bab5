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
    error_with_name,
    first_bytes,
    naming,
)
from vmdpotential.io.trajectories.lengths import length_in_angstrom
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Floats, describe_position, find_implausible_position

log = logging.getLogger(__name__)

#: Packages that MDAnalysis needs for some suffixes; without them its own error has more than one line.
_NEEDS = {".gsd": "gsd", ".h5md": "h5py", ".tng": "pytng"}

#: Lock for changes to the state of the whole process: warning filters and log levels.
_one_thread = threading.RLock()


def check_atoms(path: Path | str, count: int, n_atoms: int) -> None:
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
    """Return the cell of three lengths, A or in the given unit, and three angles in a file.

    None if the lengths are 0, or all 1, which some programs write for no cell.
    """
    if dimensions is None or not np.any(dimensions[:3]) or all(x == 1 for x in dimensions[:3]):
        return None
    with naming(path):
        return Cell.from_parameters(*(length * float(x) for x in dimensions[:3]), *map(float, dimensions[3:]))


def box_of(vectors: Floats, path: Path) -> Cell | None:
    """Return the cell of three vectors (3, 3), A; None if they are zero."""
    with naming(path):
        return Cell(vectors) if vectors.any() else None


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
        package = _NEEDS.get(path.suffix.lower())
        if package and importlib.util.find_spec(package) is None:
            raise BackendError(f"{path}: needs {package} to be read", f"install it with pip install {package}")
        logger.setLevel(logging.CRITICAL)
        try:
            with plain_file(path):
                yield
        finally:
            logger.setLevel(level)


@contextlib.contextmanager
def plain_file(path: Path) -> Iterator[None]:
    """Convert whatever the reader of a file raises to an error of one line; refuse a stream or a compressed file."""
    first_bytes(path, 1)  # raises here if the file is missing
    if path.suffix.lower() in COMPRESSED_SUFFIXES or isinstance(path, BufferedStream):
        raise InputError(f"{path}: this format is read from a plain file only", "unpack it first")
    with converted_errors(path):
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the warnings that MDAnalysis gives about a frame."""
    with _one_thread, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def converted_errors(path: Path) -> Iterator[None]:
    """Convert whatever is raised while frames are read to an error of one line."""
    try:
        yield
    except InputError as error:
        raise error_with_name(path, error) from error.__cause__
    except VmdpotentialError:
        raise
    except MemoryError:
        raise InputError(f"{path}: reading it needs more memory than there is; it may be damaged") from None
    except Exception as error:  # MDAnalysis' parsers raise any exception
        reason = str(error).strip().split("\n")
        text = next((line for line in reversed(reason) if line.startswith("Error:")), reason[0] if reason else "")
        text = text.removeprefix("Error:").replace(f"{path}:", "").replace(str(path), "it").strip()
        text = text or ("it is cut short" if isinstance(error, EOFError) else type(error).__name__)
        raise InputError(f"{path}: cannot be read ({shorten_text(text, 200)})") from None
