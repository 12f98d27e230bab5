"""Gaussian cube maps: text, with lengths in bohr.

Orbitals and electron densities are written in atomic units, as every program expects them, with the atoms if they are
known; else a dummy atom is written, because VMD takes a file without atoms for one of orbitals. VMD's buffers for
the two comment lines have 255 and 1,023 characters, so the provenance is kept shorter than that; if
necessary, the folders of input files are left out. Values are written with six digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files import text as files
from vmdpotential.io.files.numbers import parse_real, parse_whole
from vmdpotential.io.maps.mapformat import (
    FORMAT_MARK,
    MapFormat,
    finish_map,
    header_lines_of,
    map_title,
    orient_axes,
    parse_header,
    provenance_entries,
    read_numbers,
)
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import BOHR

from .nuclei import from_nuclei

_COMMENT = 1000


#: Atomic units of orbitals and densities of electrons, and their factors.
ATOMIC_UNITS = {"A^-3/2": ("bohr^-3/2", BOHR**1.5), "e/A^3": ("e/bohr^3", BOHR**3)}


def is_cube(path: Path) -> bool:
    """Return whether a file's suffix is that of a cube file."""
    return path.suffix.lower() in (".cube", ".cub")


class Nuclei(NamedTuple):
    """The atoms of a cube file: atomic numbers (N,), charges (N,) in e, and positions (N, 3) in A."""

    numbers: NDArray[np.int64]
    charges: NDArray[np.float64]
    positions: NDArray[np.float64]


def write_cube(path: Path, grid: Grid, nuclei: Nuclei | None = None) -> None:
    """Write a map as a Gaussian cube file; the values keep the map's unit, except those of :data:`ATOMIC_UNITS`."""
    if grid.unit in ATOMIC_UNITS:
        unit, factor = ATOMIC_UNITS[grid.unit]
        grid = replace(grid * factor, unit=unit)
    lattice, bohr = grid.lattice, BOHR
    nuclei = nuclei or Nuclei(np.zeros(1, np.int64), np.zeros(1), lattice.origin[None])
    origin = lattice.origin / bohr
    first = map_title(grid).encode("ascii", "replace").decode()
    lines = [f"{FORMAT_MARK}: {first}"[:200], _comment(grid), _row(len(nuclei.numbers), origin.tolist())]
    for axis in range(3):
        step = np.zeros(3)
        step[axis] = lattice.spacing[axis] / bohr
        lines.append(_row(lattice.shape[axis], step.tolist()))
    lines += [_row(number, [charge, *(position / bohr)]) for number, charge, position in zip(*nuclei, strict=True)]
    nx, ny, nz = lattice.shape
    rows, rest = divmod(nz, 6)
    column = ("%13.5E" * 6 + "\n") * rows + ("%13.5E" * rest + "\n" if rest else "")
    pattern = column * ny
    with open(path, "wb") as stream:
        stream.write("".join(f"{line}\n" for line in lines).encode("ascii"))
        for i in range(nx):
            stream.write((pattern % tuple(grid.values[i].ravel().tolist())).encode("ascii"))
            progress.report_progress("writing the map", (i + 1) / nx)


def _row(count: int, numbers: Iterable[float]) -> str:
    """Return a line in the columns of Fortran's I5 and F12.6, with as many decimals (6 to 9) as fit."""
    return f"{count:5d}" + "".join(f" {x:11.{min(9, max(6, 10 - len(f'{x:.0f}')))}f}" for x in numbers)


def _comment(grid: Grid) -> str:
    items = provenance_entries(grid)

    def text() -> str:
        return "; ".join(f"{name}: {value}" for name, value in items.items())

    if len(text()) > _COMMENT and "inputs" in items:
        items["inputs"] = "|".join(name.rsplit("/", 1)[-1] for name in items["inputs"].split("|"))
    while len(text()) > _COMMENT:  # extremely long names: leave out the longest items, so that none is cut
        items.pop(max(items, key=lambda name: len(items[name])))
    return text()


def read_cube(path: Path) -> Grid:
    """Read a Gaussian cube file of one set of values, in bohr or, if the counts are negative, in angstrom.

    Raises
    ------
    InputError
        When the file is not a cube file, is truncated, contains several orbitals, or is not orthogonal.
    """
    with files.opened(path) as stream:
        comments, origin, counts, steps, unit, _, number = _header(path, header_lines_of(path, stream, "a cube file"))
        shape = [abs(count) for count in counts]
        values, _rest = read_numbers(path, stream, shape[0] * shape[1] * shape[2], number + 1)
    lattice, ordered = orient_axes(path, np.array(origin) * unit, np.array(steps) * unit, values.reshape(shape))
    text = [comments[0], *comments[1].split("; ")] if comments[0].startswith(FORMAT_MARK) else comments
    return finish_map(path, lattice, ordered, parse_header(text))


def read_atoms(path: Path) -> Structure:
    """Read the atoms of a Gaussian cube file.

    Raises
    ------
    InputError
        When the file is not a cube file, or has no atoms.
    """
    with files.opened(path) as stream:
        header = _header(path, header_lines_of(path, stream, "a cube file"))
    if not any(header.nuclei.numbers):  # a map that was written without its atoms has a dummy one
        raise InputError(f"{path}: has no atoms", "give a structure file, and this one as a map")
    return from_nuclei(header.nuclei.numbers, header.nuclei.positions, str(path))


class _Header(NamedTuple):
    """The lines in front of the values."""

    comments: list[str]
    origin: list[float]
    counts: list[int]
    steps: list[list[float]]
    unit: float
    nuclei: Nuclei
    last: int  # number of the last line


def _header(path: Path, lines: Iterator[tuple[int, str]]) -> _Header:
    comments = [next(lines)[1], next(lines)[1]]
    number, words = _split(next(lines))
    atoms, origin, sets = _vector(path, number, words)
    counts, steps = [], []
    for _ in range(3):
        number, words = _split(next(lines))
        count, step, _extra = _vector(path, number, words)
        if not count:
            raise InputError(f"{path}: line {number}: an axis of 0 points")
        counts.append(count)
        steps.append(step)
    nuclei = []
    for _ in range(abs(atoms)):
        number, words = _split(next(lines))
        try:
            nuclei.append((parse_whole(words[0]), *(parse_real(words[n]) for n in (1, 2, 3, 4))))
        except (ValueError, IndexError):
            raise InputError(f"{path}: line {number}: an atom needs a number, a charge and a position") from None
    if atoms < 0:
        number, words = _split(next(lines))
        if len(words) < 2 or not all(word.isascii() and word.isdigit() for word in words):
            raise InputError(f"{path}: line {number}: the numbers of the orbitals are missing")
        sets = [parse_real(words[0])]
    if sets and sets[0] != 1:
        raise InputError(f"{path}: line {number}: contains {sets[0]:g} orbitals", "write one map to a file")
    if min(counts) < 0 < max(counts):
        raise InputError(f"{path}: the counts of its axes ({' '.join(map(str, counts))}) differ in sign",
                         "make all positive (bohr) or all negative (A)")
    # all counts negative means angstrom
    unit = 1.0 if max(counts) < 0 else BOHR
    table = np.array(nuclei, np.float64).reshape(-1, 5)
    atoms_of = Nuclei(table[:, 0].astype(np.int64), table[:, 1], table[:, 2:] * unit)
    return _Header(comments, origin, counts, steps, unit, atoms_of, number)


def _split(line: tuple[int, str]) -> tuple[int, list[str]]:
    return line[0], line[1].split()


def _vector(path: Path, number: int, words: list[str]) -> tuple[int, list[float], list[float]]:
    try:
        count, x, y, z = parse_whole(words[0]), *(parse_real(word) for word in words[1:4])
        return count, [x, y, z], [parse_real(word) for word in words[4:5]]
    except (ValueError, IndexError):
        raise InputError(
            f"{path}: line {number}: does not consist of a whole number and coordinates, so it is not a cube file"
        ) from None


CUBE = MapFormat(read_cube, write_cube)
