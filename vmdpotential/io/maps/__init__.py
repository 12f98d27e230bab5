"""Reading and writing of maps; the suffix of the file chooses the format."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.grid.stored import WINDOW_NODES, StoredGrid
from vmdpotential.io.files import output
from vmdpotential.io.files import text as files

#: Suffixes of map files; one that ends in another comes before it.
SUFFIXES = (".dx.gz", ".dx", ".mrc", ".map", ".ccp4", ".cube", ".cub", ".npz", ".ome.zarr", ".zarr")

#: Name for the format of AutoDock's maps, whose suffix .map is also that of MRC files.
AUTODOCK = ".autodock"

_CCP4, _CUBE, _ZARR = (".mrc", ".map", ".ccp4"), (".cube", ".cub"), (".ome.zarr", ".zarr")
_READERS = {
    **dict.fromkeys((".dx", ".dx.gz"), "dx:read_dx"), **dict.fromkeys(_CCP4, "ccp4:read_ccp4"),
    **dict.fromkeys(_CUBE, "cube:read_cube"), ".npz": "npz:read_npz", AUTODOCK: "autodock:read_autodock",
}
_WRITERS = {
    **dict.fromkeys((".dx", ".dx.gz"), "dx:write_dx"), **dict.fromkeys(_CCP4, "ccp4:write_ccp4"),
    **dict.fromkeys(_CUBE, "cube:write_cube"), ".npz": "npz:write_npz", **dict.fromkeys(_ZARR, "omezarr:write_zarr"),
}
_OPENERS = {**dict.fromkeys(_ZARR, "omezarr:open_zarr"), **dict.fromkeys(_CCP4, "ccp4:open_ccp4")}
_SLAB_WRITERS = {**dict.fromkeys(_ZARR, "omezarr:ZarrWriter"), **dict.fromkeys(_CCP4, "ccp4:Ccp4Writer")}
_OPTIONS = {("write_dx", ".dx.gz"): {"compress": True},
            **{(name, ".ccp4"): {"use_nstart": True} for name in ("write_ccp4", "Ccp4Writer")}}

#: Suffixes of formats for maps larger than memory, which are written slab by slab and read in parts.
LARGE = tuple(_OPENERS)


def check_map_format(path: Path | str, lattice: Lattice | None = None) -> None:
    """Raise the errors that :func:`write_map` would raise for the name of a file, before any work is done.

    Parameters
    ----------
    path : Path
        The file to be written.
    lattice : Lattice, optional
        Lattice of the map to be written; a ``.ccp4`` file cannot hold every lattice.

    Raises
    ------
    UsageError
        When the suffix is not that of a map format, or the format cannot hold the lattice.
    BackendError
        When the format needs a package that is not installed.
    """
    path = Path(path)
    suffix = _suffix(path)
    if suffix.endswith(".zarr"):
        from vmdpotential.io.maps import omezarr

        omezarr.library()
    if not suffix:
        raise UsageError("", f"{path}: the suffix is not that of a map format", f"choose one of {', '.join(SUFFIXES)}")
    if suffix == ".ccp4" and lattice is not None:
        from vmdpotential.io.maps.ccp4 import ccp4_starts

        ccp4_starts(path, lattice)


def is_map(path: Path) -> bool:
    """Return whether a file's suffix is that of a map format."""
    return bool(_suffix(path))


def is_cube(path: Path) -> bool:
    """Return whether a file's suffix is that of a cube file."""
    return _suffix(path) in (".cube", ".cub")


def write_map(grid: Grid, path: Path | str, force: bool = False) -> None:
    """Write a map with its unit and provenance; if that fails, nothing is written.

    Parameters
    ----------
    grid : Grid
        The map.
    path : Path
        Its suffix chooses OpenDX (``.dx``, ``.dx.gz``), MRC (``.mrc``, ``.map``), CCP4 (``.ccp4``),
        Gaussian cube (``.cube``, ``.cub``), NumPy (``.npz``) or OME-Zarr (``.zarr``, ``.ome.zarr``), which is a
        folder.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    UsageError
        For an unknown suffix, an existing file, or a lattice that ``.ccp4`` cannot hold.
    InputError
        When a value is not finite.
    OutputError
        When the file cannot be written.

    Examples
    --------
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> grid = vp.potential_map(structure, atoms="protein", spacing=3.0)
    >>> vp.write_map(grid, "map.mrc")
    >>> vp.read_map("map.mrc").lattice.shape == grid.lattice.shape
    True
    """
    from vmdpotential.io.maps.mapformat import check_finite

    path = Path(path)
    check_map_format(path, grid.lattice)
    output.check([path], force)
    check_finite(path, grid.lattice, grid.values)
    with output.writing_files([path], force) as (temporary,):
        put_map(grid, temporary)


def put_map(grid: Grid, path: Path) -> None:
    """Write a checked map to a temporary path of :func:`vmdpotential.io.files.output.writing_files`."""
    _find(_WRITERS, _suffix(path))(path, grid)


class MapWriters:
    """Writers of maps slab by slab as they are computed; at the end all files are complete, or none is written.

    A context manager and a :class:`vmdpotential.sums.slabs.Sink`. No file is made before :meth:`begin`.

    Parameters
    ----------
    paths : sequence of Path
        Files of the potential and of the field's components.
    maps : sequence of int
        The map that each file holds: 0 is the potential, 1 to 3 are the components of the field.
    force : bool
        Whether existing files may be replaced.
    names : sequence of Path
        Names whose suffixes choose the formats, all of them in :data:`LARGE`.
    """

    def __init__(self, paths: Sequence[Path], maps: Sequence[int], force: bool, names: Sequence[Path]) -> None:
        self.paths, self.maps, self.force, self.names = paths, maps, force, names
        self.writers: list[Any] = []
        self._stack = contextlib.ExitStack()

    @staticmethod
    def can_take(names: Sequence[Path]) -> bool:
        """Return whether the formats of all files can be written slab by slab."""
        return all(_suffix(name) in LARGE for name in names)

    def __enter__(self) -> MapWriters:
        return self

    def __exit__(self, *raised: Any) -> None:
        """Rename the files to their final paths, or remove them after an error."""
        self._stack.__exit__(*raised)

    def begin(self, lattice: Lattice) -> None:
        """Create the files for maps on a lattice."""
        for name in self.names:
            check_map_format(name, lattice)
        if not self.writers:
            temporary = self._stack.enter_context(output.writing_files(self.paths, self.force, self.names))
            self.writers = [_find(_SLAB_WRITERS, _suffix(path))(path) for path in temporary]
        for writer in self.writers:
            writer.begin(lattice)
        self.lattice = lattice

    def put(self, start: int, maps: NDArray[np.float32]) -> None:
        """Write a slab of every map, which begins at plane `start` along z."""
        from vmdpotential.io.maps.mapformat import check_finite

        slab = self.lattice.slab(start, start + maps.shape[3], 2)
        for writer, path, number in zip(self.writers, self.paths, self.maps, strict=True):
            check_finite(path, slab, maps[number])
            writer.put(start, maps[number])

    def finish(self, grid: Grid) -> None:
        """Write the units and provenance of the maps, and the coarser levels of formats that have them."""
        grids = [grid, *(grid.field or ())]
        for writer, number in zip(self.writers, self.maps, strict=True):
            writer.finish(grids[number])


def open_map(path: Path | str, whole: int = WINDOW_NODES) -> Grid:
    """Return a map whose values are read in parts when they are needed, if the format allows it.

    Other formats, streams, compressed files and small maps are read at once by :func:`read_map`.

    Parameters
    ----------
    path : Path
        As in :func:`read_map`.
    whole : int
        Largest number of points of a map that is read at once.

    Returns
    -------
    Grid
        The map, with its values in the file or in memory.

    Raises
    ------
    InputError, MemoryPlanError
        As for :func:`read_map`.

    Examples
    --------
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> grid = vp.potential_map(structure, atoms="protein", spacing=3.0)
    >>> vp.write_map(grid, "map.npz")
    >>> vp.open_map("map.npz").lattice.shape == grid.lattice.shape
    True
    """
    path = files.buffered_stream(path)
    with files.reading_file(path):
        suffix = _format(path)
        if suffix in LARGE and not isinstance(path, files.BufferedStream) and not files.is_compressed(path):
            grid: StoredGrid = _find(_OPENERS, suffix)(path)
            if grid.lattice.size > whole:
                return grid
    return read_map(path)


def read_map(path: Path | str) -> Grid:
    """Read a map.

    Parameters
    ----------
    path : Path
        A file in one of the formats of :func:`write_map`, or a ``.map`` of AutoDock. The suffix determines the format,
        or the content if the suffix is missing, unknown or ambiguous. ``-`` is standard input.

    Returns
    -------
    Grid
        The map, with unit and provenance as far as the file states them.

    Raises
    ------
    InputError
        When the file does not exist, is in no known format, is damaged, or has axes that are not
        along x, y and z. The message names the file and, in text formats, the line.
    MemoryPlanError
        When reading takes more memory than there is.

    Examples
    --------
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> grid = vp.potential_map(structure, atoms="protein", spacing=3.0)
    >>> vp.write_map(grid, "map.dx")
    >>> vp.read_map("map.dx").unit
    'kT/e'
    """
    path = files.buffered_stream(path)
    with files.reading_file(path):
        suffix = _format(path)
        if not suffix:
            raise InputError(f"{path}: neither its suffix nor its content is that of a map format",
                             f"choose one of {', '.join(SUFFIXES)}")
        if suffix not in _READERS:
            return _all_of(path, _find(_OPENERS, suffix)(path))
        grid: Grid = _find(_READERS, suffix)(path)
        return grid


def _format(path: Path) -> str:
    """Return the suffix of a file's format, :data:`AUTODOCK` for a map of AutoDock, or an empty string."""
    suffix = _suffix(path)
    if suffix and suffix != ".map":
        return suffix
    result = _recognised(path)
    return result if not suffix or result == AUTODOCK else suffix


def _recognised(path: Path) -> str:
    """Return the suffix of the format that a file's content is in, or an empty string."""
    if path.is_dir():
        from vmdpotential.io.maps.omezarr import is_zarr

        return ".zarr" if is_zarr(path) else ""
    start = files.first_bytes(path, 1 << 16)
    if start.startswith(b"PK\3\4"):
        return ".npz"
    if start[208:211] == b"MAP":
        return ".mrc"
    lines = files.plain_text(start).split(b"\n")
    if lines[0].startswith(b"GRID_PARAMETER_FILE"):
        return AUTODOCK
    first = next((line for line in lines if line.strip() and not line.startswith(b"#")), b"")
    if re.match(rb"object\s+\S+\s+class\s|origin\s|delta\s", first):
        return ".dx"
    counts = [re.match(rb"\s*-?[0-9]+(\s+[-+.0-9eEdD]+){3}", line) for line in lines[2:6]]
    return ".cube" if len(counts) == 4 and all(counts) else ""


def map_name(path: Path) -> str:
    """Return the name of a map file without its folder and suffix."""
    if path == files.STREAM:
        return files.STANDARD_INPUT
    return path.name[: len(path.name) - len(_suffix(path))]


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix) and name != suffix), "")


def _find(table: Mapping[str, str], suffix: str) -> Callable[..., Any]:
    """Import what a table of formats has for a suffix, with the options that the suffix chooses."""
    module, _, name = table[suffix].partition(":")
    return partial(getattr(import_module(f"vmdpotential.io.maps.{module}"), name), **_OPTIONS.get((name, suffix), {}))


def _all_of(path: Path, grid: Grid) -> Grid:
    from vmdpotential.io.maps.mapformat import check_finite

    values = grid.values
    check_finite(path, grid.lattice, values)
    return grid.with_values(values)
