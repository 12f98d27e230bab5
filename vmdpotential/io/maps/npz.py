"""Maps as NumPy archives, which are exact and fast to read in scripts.

The entries are ``values`` (nx, ny, nz) float32, ``origin`` and ``spacing`` (3,) float64 in A, and one text
for each item of the provenance (``unit``, ``temperature``, ``method`` ...).
"""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.errors import InputError, MemoryPlanError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io.files import text as files
from vmdpotential.io.maps.mapformat import MapFormat, check_finite, check_header

#: Most bytes of an entry other than the values; the names of many input files are long.
_TEXT = 1 << 24


def write_npz(path: Path, grid: Grid) -> None:
    """Write a map as a NumPy archive."""
    write_arrays(path, grid, {"values": grid.values})


def write_arrays(path: Path, grid: Grid, values: Mapping[str, NDArray[np.float32]]) -> None:
    """Write values by name as a NumPy archive, with the lattice and provenance of a map."""
    text = {name: np.array(value) for name, value in grid.header().items() if name != "spacing"}
    put_arrays(path, {**values, "origin": grid.lattice.origin, "spacing": grid.lattice.spacing, **text})


def put_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays by name to a temporary path of :func:`vmdpotential.io.files.output.writing_files`."""
    # when the disk is full, numpy.savez would leave an open file that prints an error when it is garbage-collected
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)


def read_npz(path: Path) -> Grid:
    """Read a map from a NumPy archive with entries ``values``, ``origin`` and ``spacing``.

    Raises
    ------
    InputError
        When the file is not a NumPy archive, or an entry is missing or of the wrong kind.
    """
    with files.open_seekable(path) as stream:
        if not zipfile.is_zipfile(stream):
            raise InputError(f"{path}: is not a NumPy archive, or is truncated")
        try:
            with zipfile.ZipFile(stream) as archive:
                entries = {item.filename.removesuffix(".npy"): _array(path, archive, item)
                           for item in archive.infolist()}
        except (InputError, MemoryPlanError, MemoryError):
            raise
        except Exception as error:  # zipfile, zlib and numpy (which parses Python literals) raise any
            raise InputError(f"{path}: the NumPy archive is damaged ({error})") from None
    if "values" not in entries and {"x", "y", "z"} <= entries.keys():
        raise InputError(f"{path}: contains a field, which is three maps", "write it as .dx to have a file of each")
    for name in ("values", "origin", "spacing"):
        if name not in entries or entries[name].dtype.kind not in "fiu":
            raise InputError(f"{path}: has no numeric entry '{name}'; a map has values, origin and spacing")
    values = entries.pop("values")
    if values.ndim != 3 or not values.size:
        raise InputError(f"{path}: its values have shape {values.shape}; a map has three axes")
    for name in ("origin", "spacing"):
        if entries[name].shape not in ((), (3,)):
            raise InputError(f"{path}: its {name} has shape {entries[name].shape}; three numbers are needed")
    nx, ny, nz = values.shape
    try:
        lattice = Lattice(entries.pop("origin"), entries.pop("spacing"), (nx, ny, nz))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    header = {name: str(array) for name, array in entries.items() if array.ndim == 0}
    check_header(path, header)
    with np.errstate(over="ignore"):
        grid = Grid.from_header(lattice, values, header)
    check_finite(path, lattice, grid.values)
    return grid


def _array(path: Path, archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> NDArray[Any]:
    """Return an entry; its size is checked against its header and the available memory before it is read."""
    if item.file_size > _TEXT and item.filename != "values.npy":
        raise InputError(f"{path}: its entry '{item.filename}' is too large for what it should hold")
    # LZMA allocates the memory that its header states
    if item.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{path}: its entry '{item.filename}' is compressed as NumPy never does", "write it again")
    memory.require(5 * item.file_size, f"reading {path}", "read a smaller map")
    with archive.open(item) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
        if dtype.hasobject:
            raise ValueError("objects are not numbers")
        data = files.take(stream, path, 5, math.prod(shape) * dtype.itemsize)
        if dtype.kind == "U" and (np.frombuffer(data, dtype.byteorder.replace("|", "<") + "u4") > sys.maxunicode).any():
            raise ValueError("its text is not valid Unicode")  # Python would fail on it later
        return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


ARCHIVE = MapFormat(read_npz, write_npz)
