"""Cells of DCD files, whose numbers mean different things."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError
from vmdpotential.io.files.text import first_bytes

#: Versions of CHARMM from this one on write the symmetric matrix of the cell.
MATRIX = 25


def check_markers(path: Path) -> None:
    """Raise InputError for a DCD whose records are between markers of 64 bits, as some compilers of Fortran write."""
    start = first_bytes(path, 12)
    if start[:8] in ((84).to_bytes(8, "little"), (84).to_bytes(8, "big")) and start[8:] == b"CORD":
        raise InputError(f"{path}: the lengths of its records have 64 bits, which are not read",
                         "write it again with 32 bits, such as by VMD")


def _words(path: Path, size: int) -> NDArray[np.int32]:
    """Return the first bytes as numbers in the file's byte order."""
    start = first_bytes(path, size)
    return np.frombuffer(start[: len(start) // 4 * 4], "<i4" if start[:1] == b"T" else ">i4")


def version(path: Path) -> int:
    """Return the version of CHARMM that the header of a DCD states: 24 in files of most other programs, 0 of X-PLOR."""
    words = _words(path, 92)
    return int(words[21]) if len(words) > 21 and words[0] == 84 else 0


def ends_within_frame(path: Path, atoms: int) -> bool:
    """Return whether a DCD ends within a frame, which its reader ignores without a warning.

    The size of each record is written before and after it. The records are a header of 84 bytes, titles, the number of
    atoms; then for every frame the cell, if the header says so, and x, y and z of all atoms. False for other layouts.
    """
    words = _words(path, 4096)
    if len(words) < 24 or words[0] != 84:
        return False
    fixed, has_cell, fourth = words[[10, 12, 13]]
    count = 23 + int(words[23]) // 4 + 2
    if fixed or fourth or words[count : count + 3].tolist() != [4, atoms, 4]:
        return False
    frame = 12 * atoms + 24 + (56 if has_cell else 0)
    return (path.stat().st_size - 4 * (count + 3)) % frame > 0


@np.errstate(all="ignore")  # cells with numbers that are not finite are rejected later
def cell_of(values: NDArray[np.float64], written_by: int) -> NDArray[np.float64]:
    """Return lengths and angles of the cell in a DCD of some :func:`version`.

    NAMD, and CHARMM before version 25, write ``a, gamma, b, beta, alpha, c`` with angles or their cosines; later
    versions of CHARMM write the six elements of a symmetric matrix, whose off-diagonals may be any numbers that leave
    it positive definite. Files of others whose numbers can only be a matrix are read as one.
    """
    cell: NDArray[np.float64] = np.array(values, np.float64)[[0, 2, 5, 4, 3, 1]]
    angles = cell[3:]
    rows = [np.asarray(values, np.float64)[index] for index in ([0, 1, 3], [1, 2, 4], [3, 4, 5])]
    definite = all(np.linalg.det(np.array(rows)[:n, :n]) > 0 for n in (1, 2, 3))
    if written_by >= MATRIX and definite:
        return _of_matrix(rows)
    if (np.abs(angles) <= 1).all():
        cell[3:] = 90 - np.degrees(np.arcsin(angles))
    elif (cell < 0).any() or (angles > 180).any():
        return _of_matrix(rows)
    return cell


def _of_matrix(vectors: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return lengths and angles of a cell of three vectors."""
    lengths = [float(np.linalg.norm(vector)) for vector in vectors]
    cosines = [float(vectors[i] @ vectors[j]) / (lengths[i] * lengths[j]) for i, j in ((1, 2), (0, 2), (0, 1))]
    return np.array([*lengths, *np.degrees(np.arccos(np.clip(cosines, -1, 1)))])
