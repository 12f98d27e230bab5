"""Writing of fields as three maps, of the components along x, y and z.

A ``.npz`` file holds all three, as entries ``x``, ``y`` and ``z`` (nx, ny, nz) float32 in addition to those of a
map (:mod:`vmdpotential.io.maps.npz`). Other formats hold one scalar map, so three files are written, with ``_x``,
``_y`` and ``_z`` before the suffix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io.maps import check_map_format, map_name, put_map
from vmdpotential.io.maps.npz import write_arrays


def field_paths(path: Path | str, lattice: Lattice | None = None) -> list[Path]:
    """Return the paths of the files of a field, one or three.

    Raises
    ------
    UsageError
        When the suffix is not that of a map format, or the format cannot hold the lattice.
    """
    path = Path(path)
    check_map_format(path, lattice)
    name = map_name(path)
    suffix = path.name[len(name) :]
    return [path] if suffix.lower() == ".npz" else [path.with_name(f"{name}_{axis}{suffix}") for axis in "xyz"]


def put_field(components: Sequence[Grid], paths: Sequence[Path]) -> None:
    """Write a checked field to one or three temporary paths of :func:`vmdpotential.io.files.output.writing_files`."""
    if len(paths) == 1:
        values = {axis: grid.values for axis, grid in zip("xyz", components, strict=True)}
        provenance = replace(components[0].provenance, quantity="electric field")
        write_arrays(paths[0], replace(components[0], provenance=provenance), values)
    else:
        for path, grid in zip(paths, components, strict=True):
            put_map(grid, path)
