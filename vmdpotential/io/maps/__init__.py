"""Maps in and out; the suffix of the file chooses the format."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.grid.stored import WINDOW, StoredGrid
from vmdpotential.io.files import output
from vmdpotential.io.files import text as files

#: Suffixes of map files; of one that ends in another, the longer is first.
SUFFIXES = (".dx.gz", ".dx", ".mrc", ".map", ".ccp4", ".cube", ".cub", ".npz", ".ome.zarr", ".zarr", ".cmap")

#: Name of the format of AutoDock's maps, which share the suffix .map with others.
AUTODOCK = ".autodock"

#: Those of files that may be larger than memory: written slab by slab, and read in parts.
LARGE = (".ome.zarr", ".zarr", ".cmap", ".mrc", ".map", ".ccp4")


def check_map_format(path: Path | str, lattice: Lattice | None = None) -> None:
    """Raise what :func:`write_map` would raise for the name of a file, before any work is done.

    Parameters
    ----------
    path : Path
    lattice : Lattice, optional
        Of the map to come; a ``.ccp4`` file cannot hold every one.

    Raises
    ------
    UsageError
        When the suffix is not that of a map format, or the format cannot hold the lattice.
    BackendError
        When the format needs a package that is not installed.
    """
    path = Path(path)
    suffix = _suffix(path)
    if suffix == ".cmap":
        from vmdpotential.io.maps import cmap

        cmap.library()
    if suffix.endswith(".zarr"):
        from vmdpotential.io.maps import omezarr

        omezarr.library()
    if not suffix:
        raise UsageError("", f"{path}: the suffix is not that of a map format", f"choose one of {', '.join(SUFFIXES)}")
    if suffix == ".ccp4" and lattice is not None:
        from vmdpotential.io.maps.ccp4 import starts

        starts(path, lattice)


def is_map(path: Path) -> bool:
    """Return whether a file's suffix is of a map format."""
    return bool(_suffix(path))


def write_map(grid: Grid, path: Path | str, force: bool = False) -> None:
    """Write a map, whole or not at all, with its unit and provenance.

    Parameters
    ----------
    grid : Grid
        The map.
    path : Path
        Its suffix chooses OpenDX (``.dx``, ``.dx.gz``), MRC (``.mrc``, ``.map``), CCP4 (``.ccp4``),
        Gaussian cube (``.cube``, ``.cub``), NumPy (``.npz``), Chimera's HDF5 (``.cmap``) or OME-Zarr (``.zarr``,
        ``.ome.zarr``), which is a folder.
    force : bool
        Whether a file that exists may be replaced.

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
    with output.writing([path], force) as (temporary,):
        put_map(grid, temporary)


def put_map(grid: Grid, path: Path) -> None:
    """Write a map that has been checked to a temporary path of :func:`vmdpotential.io.files.output.writing`."""
    _writer(_suffix(path))(path, grid)


class MapWriters:
    """Files that take a map slab by slab as it is computed: all of them whole in the end, or none.

    A context, and a :class:`vmdpotential.methods.slabs.Sink`. Nothing is touched before a map begins.

    Parameters
    ----------
    paths : sequence of Path
        Of the potential, and of the field's components.
    maps : sequence of int
        Which map goes to each: 0 is the potential, 1 to 3 are the components.
    force : bool
        Whether files that exist may be replaced.
    names : sequence of Path
        By which formats are chosen, all of :data:`LARGE`.
    """

    def __init__(self, paths: Sequence[Path], maps: Sequence[int], force: bool, names: Sequence[Path]) -> None:
        self.paths, self.maps, self.force, self.names = paths, maps, force, names
        self.writers: list[Any] = []
        self._stack = contextlib.ExitStack()

    @staticmethod
    def can_take(names: Sequence[Path]) -> bool:
        """Return whether all files are of formats that may be larger than memory."""
        return all(_suffix(name) in LARGE for name in names)

    def __enter__(self) -> MapWriters:
        return self

    def __exit__(self, *raised: Any) -> None:
        """Rename the files that have been finished, and remove others."""
        self._stack.__exit__(*raised)

    def begin(self, lattice: Lattice) -> None:
        """Make the files for a map."""
        for name in self.names:
            check_map_format(name, lattice)
        if not self.writers:
            places = self._stack.enter_context(output.writing(self.paths, self.force, self.names))
            self.writers = [_slab_writer(place) for place in places]
        for writer in self.writers:
            writer.begin(lattice)
        self.lattice = lattice

    def put(self, start: int, maps: NDArray[np.float32]) -> None:
        """Write a slab of every map."""
        from vmdpotential.io.maps.mapformat import check_finite

        slab = self.lattice.slab(start, start + maps.shape[3], 2)
        for writer, path, number in zip(self.writers, self.paths, self.maps, strict=True):
            check_finite(path, slab, maps[number])
            writer.put(start, maps[number])

    def finish(self, grid: Grid) -> None:
        """Write what the maps are."""
        grids = [grid, *(grid.field or ())]
        for writer, number in zip(self.writers, self.maps, strict=True):
            writer.finish(grids[number])


def _slab_writer(path: Path) -> Any:
    suffix = _suffix(path)
    if suffix.endswith(".zarr"):
        from vmdpotential.io.maps.omezarr import ZarrWriter

        return ZarrWriter(path)
    if suffix == ".cmap":
        from vmdpotential.io.maps.cmap import CmapWriter

        return CmapWriter(path)
    from vmdpotential.io.maps.ccp4 import Ccp4Writer

    return Ccp4Writer(path, use_nstart=suffix == ".ccp4")


def open_map(path: Path | str, whole: int = WINDOW) -> Grid:
    """Return a map of which only parts are read, as they are asked for, where the format allows it.

    Parameters
    ----------
    path : Path
        As in :func:`read_map`, which reads other formats, streams, compressed files, and maps of no more than
        `whole` points.

    whole : int
        Points of the largest map that is read whole.

    Returns
    -------
    Grid
        Whose values are read when they are needed.

    Raises
    ------
    InputError, MemoryPlanError
        As :func:`read_map`.

    Examples
    --------
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> grid = vp.potential_map(structure, atoms="protein", spacing=3.0)
    >>> vp.write_map(grid, "map.npz")
    >>> vp.open_map("map.npz").lattice.shape == grid.lattice.shape
    True
    """
    path = files.held(path)
    with files.reading(path):
        suffix = _format(path)
        if suffix in LARGE and not isinstance(path, files.Held) and not files.is_compressed(path):
            grid = _opener(suffix)(path)
            if grid.lattice.size > whole:
                return grid
    return read_map(path)


def _opener(suffix: str) -> Callable[[Path], StoredGrid]:
    if suffix.endswith(".zarr"):
        from vmdpotential.io.maps.omezarr import open_zarr

        return open_zarr
    if suffix == ".cmap":
        from vmdpotential.io.maps.cmap import open_cmap

        return open_cmap
    from vmdpotential.io.maps.ccp4 import open_ccp4

    return open_ccp4


def read_map(path: Path | str) -> Grid:
    """Read a map; unit and provenance too, where the file states them.

    Parameters
    ----------
    path : Path
        One of the formats of :func:`write_map`, or a ``.map`` of AutoDock: the suffix says which, and where it does
        not, the content does.
        ``-`` is standard input.

    Returns
    -------
    Grid
        With unit and provenance, as far as the file states them.

    Raises
    ------
    InputError
        When there is no such file, it is in no known format, is damaged, or has axes that are not
        along x, y and z. The message names the file, and the line in text formats.
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
    path = files.held(path)
    with files.reading(path):
        suffix = _format(path)
        if not suffix:
            raise InputError(f"{path}: neither its suffix nor its content is that of a map format",
                             f"choose one of {', '.join(SUFFIXES)}")
        return _reader(suffix)(path)


def _format(path: Path) -> str:
    """Return the suffix of a file's format, :data:`AUTODOCK` of maps that AutoDock reads, empty where there is none."""
    suffix = _suffix(path)
    if suffix and suffix != ".map":
        return suffix
    result = _recognised(path)
    return result if not suffix or result == AUTODOCK else suffix


def _recognised(path: Path) -> str:
    """Return the suffix that the content should have, empty where it is of no format."""
    if path.is_dir():
        from vmdpotential.io.maps.omezarr import is_zarr

        return ".zarr" if is_zarr(path) else ""
    start = files.first_bytes(path, 1 << 16)
    if start.startswith(b"PK\3\4"):
        return ".npz"
    if start.startswith(b"\x89HDF"):
        return ".cmap"
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
    """Return the name of a map file without folder and suffix."""
    if path == files.STREAM:
        return files.STANDARD_INPUT
    return path.name[: len(path.name) - len(_suffix(path))]


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix) and name != suffix), "")


def _reader(suffix: str) -> Callable[[Path], Grid]:
    if suffix in (".dx", ".dx.gz"):
        from vmdpotential.io.maps.dx import read_dx

        return read_dx
    if suffix in (".mrc", ".map", ".ccp4"):
        from vmdpotential.io.maps.ccp4 import read_ccp4

        return read_ccp4
    if suffix == ".cmap" or suffix.endswith(".zarr"):
        return lambda path: _all_of(path, _opener(suffix)(path))
    if suffix == ".npz":
        from vmdpotential.io.maps.npz import read_npz

        return read_npz
    if suffix == AUTODOCK:
        from vmdpotential.io.maps.autodock import read_autodock

        return read_autodock
    from vmdpotential.io.maps.cube import read_cube

    return read_cube


def _all_of(path: Path, grid: StoredGrid) -> Grid:
    from vmdpotential.io.maps.mapformat import check_finite

    values = grid.values
    check_finite(path, grid.lattice, values)
    return grid.with_values(values)


def _writer(suffix: str) -> Callable[[Path, Grid], None]:
    if suffix in (".dx", ".dx.gz"):
        from vmdpotential.io.maps.dx import write_dx

        return lambda path, grid: write_dx(path, grid, compress=suffix == ".dx.gz")
    if suffix in (".mrc", ".map", ".ccp4"):
        from vmdpotential.io.maps.ccp4 import write_ccp4

        return lambda path, grid: write_ccp4(path, grid, use_nstart=suffix == ".ccp4")
    if suffix == ".cmap":
        from vmdpotential.io.maps.cmap import write_cmap

        return write_cmap
    if suffix.endswith(".zarr"):
        from vmdpotential.io.maps.omezarr import write_zarr

        return write_zarr
    if suffix == ".npz":
        from vmdpotential.io.maps.npz import write_npz

        return write_npz
    from vmdpotential.io.maps.cube import write_cube

    return write_cube
