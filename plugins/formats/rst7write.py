"""Writing of Amber's coordinate files (rst7, inpcrd) as text. Format: ambermd.org/FileFormats.php."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.errors import UsageError
from vmdpotential.io.files import columns
from vmdpotential.io.files.text import write_bytes
from vmdpotential.io.structures import StructureWriter, check_positions
from vmdpotential.io.structures.pdbwrite import warn_rotated
from vmdpotential.molecule.structure import Structure

from .amber_coordinates import VELOCITY_UNIT


def check(structure: Structure, path: Path) -> None:
    """Raise UsageError when a structure does not fit the columns of an rst7 or inpcrd."""
    check_positions(structure, path, -999, 9999, "Amber's coordinates",
                    "wrap the system into its box, or write .pdb instead")
    if structure.velocities is not None and not (np.abs(structure.velocities) < 999 * VELOCITY_UNIT).all():
        raise UsageError("", f"{path}: velocities of {999 * VELOCITY_UNIT:g} A/ps and more do not fit the columns of "
                         "Amber's coordinates", "write .pdb instead")


def write_coordinates(structure: Structure, path: Path) -> None:
    """Write Amber's coordinates as text (rst7, inpcrd), with the velocities and the box if the structure has them.

    Raises
    ------
    UsageError
        When positions do not fit their columns.
    """
    check(structure, path)
    write_bytes(path, _coordinates(structure))


def _coordinates(s: Structure) -> Iterator[bytes]:
    title = " ".join(s.title.encode("ascii", "replace").decode().split())[:80] or "written by vmdpotential"
    yield f"{title}\n{len(s):5d}\n".encode() if s.velocities is None else f"{title}\n{len(s):5d}{0:15.7E}\n".encode()
    yield _six(s.positions)
    if s.velocities is not None:
        yield _six(s.velocities / VELOCITY_UNIT)
    if s.cell is not None:
        warn_rotated(s.cell)
        yield _six(np.array(s.cell.parameters))


def _six(values: Floats) -> bytes:
    """Return numbers as lines in Fortran's format 6F12.7."""
    return columns.lines(columns.fixed(values.reshape(-1), 12, 7), 6)


WRITER = StructureWriter(write_coordinates, check)
