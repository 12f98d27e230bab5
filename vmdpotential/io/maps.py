"""Maps in and out; the suffix of the file chooses the format."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io import output
from vmdpotential.io import text as files

#: Suffixes of map files, longest first.
SUFFIXES = (".dx.gz", ".dx", ".mrc", ".map", ".ccp4", ".cube", ".cub", ".npz")


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
        When the suffix is of no map format, or the format cannot hold the lattice.
    """
    path = Path(path)
    suffix = _suffix(path)
    if not suffix:
        raise UsageError("", f"{path}: the suffix is of no map format", f"choose one of {', '.join(SUFFIXES)}")
    if suffix == ".ccp4" and lattice is not None:
        from vmdpotential.io.ccp4 import starts

        starts(path, lattice)


def is_map(path: Path) -> bool:
    """Return whether a file's suffix is of a map format."""
    return bool(_suffix(path))


def write_map(grid: Grid, path: Path | str, force: bool = False) -> None:
    """Write a map, whole or not at all, with its unit and provenance.

    Parameters
    ----------
    grid : Grid
    path : Path
        Its suffix chooses OpenDX (``.dx``, ``.dx.gz``), MRC (``.mrc``, ``.map``), CCP4 (``.ccp4``),
        Gaussian cube (``.cube``, ``.cub``) or NumPy (``.npz``).
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
    """
    from vmdpotential.io.mapformat import check_finite

    path = Path(path)
    check_map_format(path, grid.lattice)
    output.check([path], force)
    check_finite(path, grid.lattice, grid.values)
    with output.writing([path], force) as (temporary,):
        put_map(grid, temporary)


def put_map(grid: Grid, path: Path) -> None:
    """Write a map that has been checked to a temporary path of :func:`vmdpotential.io.output.writing`."""
    _writer(_suffix(path))(path, grid)


def read_map(path: Path | str) -> Grid:
    """Read a map; unit and provenance too, where the file states them.

    Parameters
    ----------
    path : Path
        One of the formats of :func:`write_map`: the suffix tells which, and where it does not, the content does.
        ``-`` is standard input.

    Returns
    -------
    Grid

    Raises
    ------
    InputError
        When there is no such file, it is in no known format, is damaged, or has axes that are not
        along x, y and z. The message names the file, and the line in text formats.
    MemoryPlanError
        When reading takes more memory than there is.
    """
    path = files.held(path)
    with files.reading(path):
        suffix = _suffix(path) or _recognised(path)
        if not suffix:
            raise InputError(f"{path}: its suffix and its content are of no map format",
                             f"choose one of {', '.join(SUFFIXES)}")
        return _reader(suffix)(path)


def _recognised(path: Path) -> str:
    """Return the suffix that the content should have, empty where it is of no format."""
    start = files.first_bytes(path, 1 << 16)
    if start.startswith(b"PK\3\4"):
        return ".npz"
    if start[208:211] == b"MAP":
        return ".mrc"
    lines = files.plain_text(start).split(b"\n")
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
        from vmdpotential.io.dx import read_dx

        return read_dx
    if suffix in (".mrc", ".map", ".ccp4"):
        from vmdpotential.io.ccp4 import read_ccp4

        return read_ccp4
    if suffix == ".npz":
        from vmdpotential.io.npz import read_npz

        return read_npz
    from vmdpotential.io.cube import read_cube

    return read_cube


def _writer(suffix: str) -> Callable[[Path, Grid], None]:
    if suffix in (".dx", ".dx.gz"):
        from vmdpotential.io.dx import write_dx

        return lambda path, grid: write_dx(path, grid, compress=suffix == ".dx.gz")
    if suffix in (".mrc", ".map", ".ccp4"):
        from vmdpotential.io.ccp4 import write_ccp4

        return lambda path, grid: write_ccp4(path, grid, use_nstart=suffix == ".ccp4")
    if suffix == ".npz":
        from vmdpotential.io.npz import write_npz

        return write_npz
    from vmdpotential.io.cube import write_cube

    return write_cube
