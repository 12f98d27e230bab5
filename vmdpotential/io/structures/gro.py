"""Reading of GROMACS' GRO files: fixed columns in nm with any number of decimals, converted to A and A/ps."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from vmdpotential.errors import InputError
from vmdpotential.io.files import columns, several
from vmdpotential.io.files import text as files
from vmdpotential.io.files.numbers import first_wrong, parse_real, parse_whole
from vmdpotential.io.mdanalysis import check_atoms
from vmdpotential.molecule import elements, residues
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.names import with_ion_names
from vmdpotential.molecule.structure import Floats, Integers, Structure

log = logging.getLogger(__name__)

_BLOCK = 100_000
#: Most bytes of memory for each byte and for each line of a file (measured).
_MEMORY = (4.0, 130.0)
#: Longest line from which velocities are read.
_WIDEST = 256


def read_gro(path: Path) -> Structure:
    """Return the structure of a GRO file (plain, .gz or .bz2), with velocities if all atoms have them.

    The first of several frames is read. Residue numbers, which wrap after 99,999, are those of the file.

    Raises
    ------
    InputError
        When the file cannot be read, is cut short, or has columns that are not numbers; the
        message gives the line.
    """
    lines = columns.Lines(files.read_text(path, *_MEMORY))
    count = _count(path, lines)
    first_column, width = _precision(path, lines)
    positions = np.empty((count, 3))
    velocities: Floats | None = None
    if first_column + 6 * width <= min(len(lines.text(2)), _WIDEST):
        velocities = np.empty((count, 3))
    labels = np.empty((count, 15), np.uint8)
    stop = first_column + 3 * width
    for start in range(0, count, _BLOCK):
        rows = np.arange(start + 2, min(start + _BLOCK, count) + 2)
        table = lines.table(rows, stop if velocities is None else stop + 3 * width)
        part = slice(start, start + len(rows))
        labels[part] = table[:, :15]
        positions[part] = _coordinates(path, lines, rows, table[:, first_column:stop], width)
        if velocities is not None:
            try:
                velocities[part] = columns.numbers(table[:, stop:], width)
            except ValueError:
                velocities[part] = np.nan
            if not np.isfinite(velocities[part]).all():
                log.warning("%s: not all atoms have velocities, so all velocities are ignored", path)
                velocities = None
    names = columns.words(labels[:, 10:15])
    nameless = np.flatnonzero(names == "")
    if len(nameless):
        raise InputError(f"{path}: line {nameless[0] + 3}: the atom has no name (columns 11-15)")
    residue_names = with_ion_names(columns.words(labels[:, 5:10]), names)
    changed = np.concatenate([[True], (labels[1:, :10] != labels[:-1, :10]).any(1)])
    changed[1:] |= residue_names[1:] != residue_names[:-1]
    positions *= 10
    first = residues.starts(changed, residue_names, columns.pack(labels[:, 10:15]), positions=positions)
    index = residues.index(first, count)
    numbers = np.array([_residue_number(path, int(atom), word) for atom, word in
                        zip(first, columns.words(labels[first, :5]), strict=True)], np.int64)
    return Structure(
        positions=positions, atom_names=names, residue_names=residue_names, residue_ids=numbers[index],
        residue_index=index, elements=elements.guess_all(names, residue_names), cell=_cell(path, lines, count + 2),
        title=lines.text(0).strip(), sources=(str(path),), velocities=None if velocities is None else velocities * 10,
    )  # fmt: skip


def frames(path: Path, atoms: int) -> Iterator[int]:
    """Yield the offset in bytes of each frame of a plain GRO file.

    Raises
    ------
    InputError
        When a frame has another number of atoms, or is cut short.
    """
    with path.open("rb") as file:
        for number in itertools.count():
            start = file.tell()
            title, count = file.readline(), file.readline().strip()
            if number and not (title + count).strip():  # end of the file, or empty lines at its end
                return
            where = f"{path}: frame {number}"
            if not re.fullmatch(rb"[0-9]{1,12}", count):
                raise InputError(f"{where} states no number of atoms in its second line", "write the file again")
            check_atoms(where, int(count), atoms)
            if sum(1 for _ in itertools.islice(file, atoms + 1)) <= atoms:
                raise InputError(f"{where} is cut short", "copy or write it again")
            yield start


def read_frame(path: Path, start: int, stop: int | None, atoms: int) -> tuple[Floats, Cell | None, float | None]:
    """Return positions (N, 3), A, the cell, and the time, ps, of the frame between two offsets in a GRO file.

    Raises
    ------
    InputError
        When the frame has columns that are not numbers; the message gives the line within the frame. When the file
        was cut since its frames were located.
    """
    with path.open("rb") as file:
        file.seek(start)
        lines = columns.Lines(file.read(-1 if stop is None else stop - start).replace(b"\r", b""))
    if len(lines) < atoms + 3:
        raise InputError(f"{path}: a frame is no longer there: the file was changed while it was read",
                         "run again when nothing writes it")
    first, width = _precision(path, lines)
    rows = np.arange(2, atoms + 2)
    table = lines.table(rows, first + 3 * width)
    time = re.search(r"\bt=\s*(-?\d+(?:\.\d*)?)", lines.text(0))
    with np.errstate(over="ignore"):  # the caller checks for numbers that are not finite
        positions = 10 * _coordinates(path, lines, rows, table[:, first:], width)
    return positions, _cell(path, lines, atoms + 2), float(time[1]) if time else None


def _count(path: Path, lines: columns.Lines) -> int:
    """Return the number of atoms in the second line, after checking that the file has as many lines."""
    text = lines.text(1).strip() if len(lines) > 1 else ""
    if not re.fullmatch("[0-9]{1,12}", text):
        raise InputError(f"{path}: line 2 must be the number of atoms of a GRO file, but is '{text[:40]}'")
    count = int(text)
    if count == 0:
        raise InputError(f"{path}: has no atoms")
    if len(lines) < count + 3:
        raise InputError(
            f"{path}: states {count} atoms but has {len(lines)} lines; it is cut short (a line for each atom and one "
            "for the box are needed)"
        )
    if len(lines) >= 2 * (count + 3):
        several.warn_of_several(path, "frames", count)
    return count


def _precision(path: Path, lines: columns.Lines) -> tuple[int, int]:
    """Return the first column of coordinates and their width, from the decimal points of the first atom line."""
    line = lines.text(2)
    points = [match.start() for match in re.finditer(r"\.", line[20:])]
    if len(points) < 3 or points[1] - points[0] != points[2] - points[1] or points[1] - points[0] > 60:
        raise InputError(f"{path}: line 3 is not an atom line of a GRO file: '{line[:60]}'",
                         "correct the file, or give it the suffix of its format")
    return 20, points[1] - points[0]


def _coordinates(path: Path, lines: columns.Lines, rows: Integers, table: columns.Bytes, width: int) -> Floats:
    try:
        return columns.numbers(table, width)
    except ValueError:
        pass
    fields = np.ascontiguousarray(table).view(f"S{width}")
    row = int(rows[first_wrong(field.decode("latin-1") for field in fields.ravel()) // fields.shape[1]])
    raise InputError(f"{path}: line {row + 1} lacks three coordinates after column 20: '{lines.text(row)[:60]}'")


def _residue_number(path: Path, atom: int, word: str) -> int:
    if not word.strip("*"):  # blank, or asterisks for a number that was too large
        return 0
    try:
        return parse_whole(word)
    except ValueError:
        raise InputError(f"{path}: line {atom + 3}: columns 1-5 are not a residue number: '{word}'") from None


def _cell(path: Path, lines: columns.Lines, row: int) -> Cell | None:
    """Return the cell of the box line: 3 lengths, or 9 numbers v1x v2y v3z v1y v1z v2x v2z v3x v3y."""
    line = lines.text(row)
    fields = line.split()
    if any(field.count(".") > 1 for field in fields):  # no blanks between the fields; all have as many decimals
        decimals = len(line) - line.rindex(".") - 1
        fields = re.findall(rf"-?\d+\.\d{{{decimals}}}", line)
    try:
        values = [parse_real(field) * 10 for field in fields]
    except ValueError:
        values = []
    if len(values) not in (3, 9):
        raise InputError(f"{path}: line {row + 1} must be the box, 3 or 9 numbers, but is '{line[:60]}'")
    if not any(values):
        return None
    if not min(values[:3]) > 0:
        raise InputError(f"{path}: line {row + 1}: the lengths of the box must be positive: '{line[:60]}'")
    vectors = np.diag(values[:3])
    if len(values) == 9:
        vectors[0, 1:], vectors[1, [0, 2]], vectors[2, :2] = values[3:5], values[5:7], values[7:9]
    with files.naming(f"{path}: line {row + 1}"):
        return Cell(vectors)
