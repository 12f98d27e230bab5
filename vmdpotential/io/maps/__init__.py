"""Reading and writing of maps; the suffix of the file chooses the format."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import registry
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.grid.stored import WINDOW_NODES
from vmdpotential.io.files import output
from vmdpotential.io.files import text as files
from vmdpotential.io.maps.mapformat import MapFormat, check_finite


def map_suffixes() -> list[str]:
    """Return the suffixes of map files; one that ends in another comes before it."""
    return sorted((name for name in registry.known("map_format") if name.startswith(".")), key=len, reverse=True)


def _format(suffix: str) -> MapFormat:
    result: MapFormat = registry.get("map_format", suffix)
    return result


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
    if not suffix:
        raise UsageError("", f"{path}: the suffix is not that of a map format",
                         f"choose one of {', '.join(map_suffixes())}")
    _format(suffix).check(path, lattice)


def is_map(path: Path) -> bool:
    """Return whether a file's suffix is that of a map format."""
    return bool(_suffix(path))


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
    path = Path(path)
    check_map_format(path, grid.lattice)
    output.check([path], force)
    check_finite(path, grid.lattice, grid.values)
    with output.writing_files([path], force) as (temporary,):
        put_map(grid, temporary)


def put_map(grid: Grid, path: Path) -> None:
    """Write a checked map to a temporary path of :func:`vmdpotential.io.files.output.writing_files`."""
    _format(_suffix(path)).write(path, grid)


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
        Names whose suffixes choose the formats, all of formats with `slabs`.
    """

    def __init__(self, paths: Sequence[Path], maps: Sequence[int], force: bool, names: Sequence[Path]) -> None:
        self.paths, self.maps, self.force, self.names = paths, maps, force, names
        self.writers: list[Any] = []
        self._stack = contextlib.ExitStack()

    @staticmethod
    def can_take(names: Sequence[Path]) -> bool:
        """Return whether the formats of all files can be written slab by slab."""
        return all(_format(_suffix(name)).slabs is not None for name in names)

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
            for path in temporary:
                writer = _format(_suffix(path)).slabs
                assert writer is not None
                self.writers.append(writer(path))
        for writer in self.writers:
            writer.begin(lattice)
        self.lattice = lattice

    def put(self, start: int, maps: NDArray[np.float32]) -> None:
        """Write a slab of every map, which begins at plane `start` along z."""
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
        opener = _format_of(path).open
        if opener is not None and not isinstance(path, files.BufferedStream) and not files.is_compressed(path):
            grid = opener(path)
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
        return _format_of(path).read(path)


def _format_of(path: Path) -> MapFormat:
    suffix = _suffix(path)
    if not suffix or suffix == ".map":  # of MRC files and of AutoDock
        result = _recognised(path)
        suffix = result if not suffix or result == "autodock" else suffix
    if not suffix:
        raise InputError(f"{path}: neither its suffix nor its content is that of a map format",
                         f"choose one of {', '.join(map_suffixes())}")
    return _format(suffix)


def _recognised(path: Path) -> str:
    """Return the suffix of the format that a file's content is in, or an empty string."""
    if path.is_dir():
        return ".zarr" if any((path / name).is_file() for name in ("zarr.json", ".zattrs")) else ""
    start = files.first_bytes(path, 1 << 16)
    if start.startswith(b"PK\3\4"):
        return ".npz"
    if start[208:211] == b"MAP":
        return ".mrc"
    lines = files.plain_text(start).split(b"\n")
    if lines[0].startswith(b"GRID_PARAMETER_FILE"):
        return "autodock"
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
    return next((suffix for suffix in map_suffixes() if name.endswith(suffix) and name != suffix), "")
