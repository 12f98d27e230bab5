"""Periodic cells given by the user: three lengths, with or without angles, or a file of NAMD that contains one."""

from __future__ import annotations

import contextlib
import logging
import re
from dataclasses import replace
from pathlib import Path

from vmdpotential.errors import InputError
from vmdpotential.io.files import text as files
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure

log = logging.getLogger(__name__)

#: Most characters of a number; matching the pattern against very long words is slow.
_LONGEST = 100
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def parse_cell(text: str) -> Cell:
    """Return the cell of ``60,60,80``, of ``60,60,80,90,90,60`` (A and degrees), or of a file (:func:`read_cell`).

    Raises
    ------
    ValueError
        When the text is none of these; InputError when the numbers or the file do not define a cell.
    """
    words = re.split(r"[,\s]+", text.strip().strip(","))
    if all(map(_is_number, words)):
        if len(words) not in (3, 6):
            raise ValueError("three lengths in A are needed, or these and three angles, such as 60,60,80")
        return Cell.from_parameters(*map(float, words))
    with contextlib.suppress(OSError):  # the name is too long
        if Path(text).is_file():
            return read_cell(Path(text))
    raise ValueError("give lengths such as 60,60,80, lengths and angles, or an XSC file that exists")


def read_cell(path: Path) -> Cell:
    """Return the cell of NAMD's extended system (XSC; the last line of an XST), or of its configuration file.

    Raises
    ------
    InputError
        When the file cannot be read or contains no cell.
    """
    with files.reading_file(path):
        return _read_cell(path)


def _is_number(word: str) -> bool:
    return len(word) <= _LONGEST and _NUMBER.fullmatch(word) is not None


def _read_cell(path: Path) -> Cell:
    content = files.read_text(path, 10, 500).decode("latin-1")
    basis = dict(re.findall(r"^\s*cellBasisVector([123])[\s=]+([^#;\n]+)", content, re.MULTILINE | re.IGNORECASE))
    if len(basis) == 3:
        words = [word for key in "123" for word in basis[key].split()[:3]]
    else:
        rows = [line.split() for line in content.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        words = rows[-1][1:10] if rows else []  # the step number is first
    if len(words) != 9 or not all(map(_is_number, words)):
        raise InputError(f"{path}: contains no periodic cell: it is neither an XSC file nor a NAMD configuration",
                         "give three lengths instead, such as {cell 60,60,80}")
    with files.naming(path):
        return Cell([[float(word) for word in words[k : k + 3]] for k in (0, 3, 6)])  # type: ignore[arg-type]


def with_cell(structure: Structure, cell: Cell | None) -> Structure:
    """Return the structure with the cell given by the user, if any; warn if the file has another."""
    if cell is None:
        return structure
    if structure.cell is not None and max(
        abs(a - b) for a, b in zip(structure.cell.parameters, cell.parameters, strict=True)
    ) > 0.01:
        log.warning("%s: its cell (%s) is replaced by the one given (%s)", structure.where, structure.cell, cell)
    return replace(structure, cell=cell)


def boundary_text(cell: Cell | None) -> str:
    """Return the description of a boundary in reports: open, or periodic with its cell."""
    return "open boundary" if cell is None else f"periodic boundary (cell {cell})"
