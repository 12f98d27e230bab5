"""Writing of GROMACS' GRO files, with velocities if the structure has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from vmdpotential.errors import UsageError
from vmdpotential.io.files import columns
from vmdpotential.io.files import text as files
from vmdpotential.io.structures import StructureWriter, check_names, check_positions
from vmdpotential.io.structures.pdbwrite import written_numbers
from vmdpotential.molecule.structure import Floats, Structure

_BLOCK = 100_000
#: Decimals of positions in nm: those that GROMACS writes, and the most if the input file had more.
_DECIMALS = (3, 6)


def check(structure: Structure, path: Path) -> None:
    """Raise UsageError when a structure does not fit the columns of a GRO file, or its cell is rotated."""
    hint = "write .pdb or .cif instead"
    check_names(path, "atom name", structure.atom_names, 5, "a GRO file", hint)
    check_names(path, "residue name", structure.residue_names, 5, "a GRO file", hint)
    check_positions(structure, path, -9999, 99999, "a GRO file", hint)
    velocities = structure.velocities
    if velocities is not None and not ((velocities > -999) & (velocities < 9999)).all():
        raise UsageError("", f"{path}: velocities of 999 A/ps and more do not fit a GRO file's columns", hint)
    if structure.cell is not None and structure.cell.rotated:
        raise UsageError("", f"{path}: the cell is rotated: GROMACS needs its first vector along x, and its second "
                         "in the xy plane", "rotate atoms and cell, or write .pdb or .cif instead")


def write_gro(structure: Structure, path: Path) -> None:
    """Write a GRO file: nm with 3 decimals, or more if the input was a GRO file with more, and box vectors.

    Numbers of residues and atoms start again at 0 after 99,999, as in GROMACS.

    Raises
    ------
    UsageError
        When names or positions do not fit their columns, or the cell is rotated.
    """
    check(structure, path)
    files.write_bytes(path, _lines(structure))


def _lines(s: Structure) -> Iterator[bytes]:
    title = " ".join(s.title.encode("ascii", "replace").decode().split()) or "written by vmdpotential"
    yield f"{title}\n{len(s):5d}\n".encode()
    decimals = _DECIMALS[0]
    if s.sources and files.format_suffix(Path(s.sources[0])) == ".gro":
        decimals = max(columns.decimals_needed(s.positions[:, k] / 10, *_DECIMALS) for k in range(3))
    numbers = columns.wrapped(written_numbers(s), 5)
    names = np.char.rjust(s.atom_names, 5)
    for start in range(0, len(s), _BLOCK):
        part = slice(start, min(start + _BLOCK, len(s)))
        table = [
            columns.integers(numbers[part], 5), columns.text(s.residue_names[part], 5), columns.text(names[part], 5),
            columns.integers(columns.wrapped(np.arange(part.start + 1, part.stop + 1), 5), 5),
            _triples(s.positions[part] / 10, decimals + 5, decimals),
        ]
        if s.velocities is not None:
            table.append(_triples(s.velocities[part] / 10, decimals + 5, decimals + 1))
        table.append(np.full((part.stop - part.start, 1), 10, np.uint8))
        yield np.concatenate(table, axis=1).tobytes()
    vectors = np.zeros((3, 3)) if s.cell is None else s.cell.vectors / 10
    box = [*np.diagonal(vectors)]
    if s.cell is not None and not s.cell.orthogonal:
        box += [vectors[i, j] for i, j in ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))]
    yield ("".join(f"{x + 0.0:{decimals + 7}.{decimals + 2}f}" for x in box) + "\n").encode()


def _triples(values: Floats, width: int, decimals: int) -> columns.Bytes:
    """Return the text of (N, 3) numbers, (N, 3 * width)."""
    return columns.fixed(values.reshape(-1), width, decimals).reshape(len(values), 3 * width)


WRITER = StructureWriter(write_gro, check)
