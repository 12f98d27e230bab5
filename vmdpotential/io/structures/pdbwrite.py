"""Writing of PDB files in VMD's columns, which gemmi, MDAnalysis and other programs can read.

Writers of other formats also use the CRYST1 record and the residue numbers that distinguish neighbouring residues.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import UsageError
from vmdpotential.io.files import columns
from vmdpotential.io.files import text as files
from vmdpotential.io.structures import StructureWriter, check_names, check_positions
from vmdpotential.molecule import elements, residues
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.names import in_table, unique_names
from vmdpotential.molecule.structure import Integers, Structure

log = logging.getLogger(__name__)

#: Atoms formatted at once, so that little memory is needed.
_BLOCK = 90_000
_WIDTH = 80
#: Most atoms whose serial numbers are unique.
_MOST_SERIALS = 99_999
#: Most parts into which a segment may be divided, each with its own name.
_MOST_PARTS = 900


def check(structure: Structure, path: Path) -> None:
    """Raise UsageError when a structure does not fit the columns of a PDB file."""
    hint = "write mmCIF (.cif) instead"
    for what, width in (("atom_names", 4), ("residue_names", 4), ("chain_ids", 1), ("insertion_codes", 1)):
        check_names(path, what[:-1].replace("_", " "), getattr(structure, what), width, "a PDB file", hint)
    if structure.cell is not None and not fits(structure.cell):
        raise UsageError("", f"{path}: the cell is too large for a PDB file", hint)
    check_positions(structure, path, -999.9995, 9999.9995, "a PDB file", hint)


def write_pdb(structure: Structure, path: Path) -> None:
    """Write a PDB file in VMD's columns: 4-letter residue names reach column 21, segments are in 73-76.

    Serial numbers start again at 0 after 99,999, residue numbers after 9999. Readers can distinguish all residues: if
    neighbours would have the same number, all residues are renumbered; where a number recurs in a chain, the segment
    gets another name from there on, because some programs (gemmi) join residues of the same number and segment.

    Raises
    ------
    UsageError
        When names, chains or coordinates do not fit their columns.
    """
    check(structure, path)
    files.write_bytes(path, _records(structure))


def _records(structure: Structure) -> Iterator[bytes]:
    yield from _title_records(structure.title)
    if structure.cell is not None:
        yield cell_record(structure.cell)
    numbers, segments = _numbers_and_segments(structure)
    ters = _chain_ends(structure)
    for start in range(0, len(structure), _BLOCK):
        stop = min(start + _BLOCK, len(structure))
        table = _atom_records(structure, slice(start, stop), numbers, segments)
        first = start
        for ter in ters[(ters > start) & (ters <= stop)]:
            yield table[first - start : ter - start].tobytes()
            yield b"TER\n"
            first = int(ter)
        yield table[first - start :].tobytes()
    yield from _connections(structure)
    yield b"END\n"


def _connections(structure: Structure) -> Iterator[bytes]:
    """Yield CONECT records of the bonds that the structure's file listed: for each atom, those it is bonded to."""
    if structure.listed_bonds is None or not len(structure.listed_bonds.pairs):
        return
    if len(structure) > _MOST_SERIALS:
        log.warning("CONECT records are left out, because the serial numbers of more than %s atoms are not unique",
                    f"{_MOST_SERIALS:,}")
        return
    pairs = structure.listed_bonds.pairs + 1
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    starts = np.flatnonzero(np.diff(pairs[:, 0], prepend=0))
    for atom, partners in zip(pairs[starts, 0].tolist(), np.split(pairs[:, 1], starts[1:]), strict=True):
        for k in range(0, len(partners), 4):
            numbers = [atom, *partners[k : k + 4].tolist()]
            yield ("CONECT" + "".join(f"{number:5d}" for number in numbers) + "\n").encode()


def _atom_records(s: Structure, part: slice, numbers: Integers, segments: NDArray[np.str_]) -> columns.Bytes:
    count = len(s.atom_names[part])
    serials = np.arange(part.start + 1, part.start + 1 + count)
    table = np.full((count, _WIDTH + 1), 32, np.uint8)
    table[:, _WIDTH] = 10
    hetero = s.hetero[part][:, None]
    table[:, :6] = np.where(hetero, np.frombuffer(b"HETATM", np.uint8), np.frombuffer(b"ATOM  ", np.uint8))
    table[:, 6:11] = columns.integers(columns.wrapped(serials, 5), 5)
    symbols = _upper(columns.text(s.elements[part], 2))
    table[:, 12:16] = _aligned(columns.text(s.atom_names[part], 4), symbols)
    table[:, 17:21] = columns.text(s.residue_names[part], 4)
    table[:, 21:22] = columns.text(s.chain_ids[part], 1)
    table[:, 22:26] = columns.integers(numbers[part], 4)
    table[:, 26:27] = columns.text(s.insertion_codes[part], 1)
    for k in range(3):
        table[:, 30 + 8 * k : 38 + 8 * k] = columns.fixed(s.positions[part, k], 8, 3)
    table[:, 54:60] = columns.fixed(np.clip(np.nan_to_num(s.occupancies[part]), -99.99, 999.99), 6, 2)
    table[:, 60:66] = columns.fixed(np.clip(np.nan_to_num(s.b_factors[part]), -99.99, 999.99), 6, 2)
    table[:, 72:76] = columns.text(segments[part], 4)
    single = symbols[:, 1] == 32
    symbols[single] = symbols[single][:, ::-1]
    table[:, 76:78] = symbols
    return table


def _upper(letters: columns.Bytes) -> columns.Bytes:
    return np.where((letters >= 97) & (letters <= 122), letters - np.uint8(32), letters)


def _aligned(names: columns.Bytes, symbols: columns.Bytes) -> columns.Bytes:
    """Return atom names in columns 13-16: the element ends in column 14, unless the name has four letters."""
    two_letters = (symbols[:, 1] != 32) & (_upper(names[:, :2]) == symbols).all(1)
    shifted = np.roll(names, 1, axis=1)
    return np.where(((names[:, 3] != 32) | two_letters)[:, None], names, shifted)


def _keys(structure: Structure) -> list[NDArray[np.str_]]:
    """Return the names that distinguish residues of the same number, (R,) each."""
    first = structure.residue_starts[:-1]
    return [getattr(structure, name)[first]
            for name in ("residue_names", "insertion_codes", "chain_ids", "segment_ids")]


def written_numbers(structure: Structure) -> Integers:
    """Return the residue number of every atom, (N,); if neighbouring residues have the same number, renumber all."""
    first = structure.residue_starts[:-1]
    numbers, changed = residues.distinct_numbers(_keys(structure), structure.residue_ids[first])
    if changed:
        log.warning("residues that follow each other have the same number; all are renumbered")
    return np.repeat(numbers, np.diff(structure.residue_starts))


def _numbers_and_segments(structure: Structure) -> tuple[Integers, NDArray[np.str_]]:
    """Return residue numbers and segments of all atoms as they are written, without duplicates in a segment."""
    lengths = np.diff(structure.residue_starts)
    numbers = columns.wrapped(written_numbers(structure)[structure.residue_starts[:-1]], 4)
    segments = _short_segments(structure)
    if not len(numbers):
        return numbers, segments
    *keys, chains, of_segment = (unique_names(key)[1] for key in _keys(structure))
    groups = np.unique(chains * (int(of_segment.max()) + 1) + of_segment, return_inverse=True)[1].reshape(-1)
    parts = residues.parts(groups, keys, numbers)
    if parts.max() > _MOST_PARTS:  # the same numbers recur very often
        numbers = columns.wrapped(np.arange(1, len(numbers) + 1), 4)
        parts = residues.parts(groups, keys, numbers)
    if parts.max():
        if not (segments != "").any():  # MDAnalysis uses chains as segments only if all segments are blank
            segments = structure.chain_ids
        segments = residues.continued(segments[structure.residue_starts[:-1]], parts)
        log.warning("residue numbers recur in a segment, which has another name (%s) in the PDB file from there on",
                    segments[int(np.flatnonzero(parts)[0])])
        segments = np.repeat(segments, lengths)
    return np.repeat(numbers, lengths), segments


def _short_segments(structure: Structure) -> NDArray[np.str_]:
    """Return segment names of at most four letters; longer ones are replaced by S1, S2, ..."""
    if columns.longest(structure.segment_ids) <= 4:
        return structure.segment_ids
    names, inverse = unique_names(structure.segment_ids)
    short = [str(name)[:4] for name in names]
    if len(set(short)) < len(short):
        order = np.argsort(np.argsort([int(np.argmax(inverse == i)) for i in range(len(names))]))
        short = [f"S{rank + 1}" for rank in order]
    changed = [(name, new) for name, new in zip(names.tolist(), short, strict=True) if name != new]
    log.warning("segment names are cut to the four columns of a PDB file: %s becomes %s", *changed[0])
    return np.array(short)[inverse]


def _chain_ends(structure: Structure) -> Integers:
    """Return the atoms before which a TER record is written: after the last polymer residue of each chain."""
    first = structure.residue_starts[:-1]
    linked = in_table(structure.residue_names[first], elements.POLYMER_RESIDUES)
    terminal = np.isin(structure.atom_names, ("OXT", "OT2", "OC2"))
    ends = np.zeros(len(first), bool)
    ends[structure.residue_index[terminal]] = True
    chains, segments = structure.chain_ids[first], structure.segment_ids[first]
    block = np.concatenate([[0], np.cumsum((chains[1:] != chains[:-1]) | (segments[1:] != segments[:-1]))])
    of_linked = np.flatnonzero(linked)
    last = np.unique(block[of_linked][::-1], return_index=True)[1]
    ends[of_linked[::-1][last]] = True
    stops: Integers = structure.residue_starts[1:][ends & linked]
    return stops


def _title_records(title: str) -> Iterator[bytes]:
    words = " ".join(title.encode("ascii", "replace").decode().split())
    for number, start in enumerate(range(0, len(words), 68)):
        more = f"{number + 1:2d} " if number else "  "
        yield f"TITLE   {more}{words[start : start + 68]}".rstrip().encode() + b"\n"


def fits(cell: Cell) -> bool:
    """Return whether a CRYST1 record can hold the lengths of a cell."""
    return max(cell.parameters[:3]) < 99999.9995


def warn_rotated(cell: Cell) -> None:
    """Warn if a cell has another orientation than readers assume from its lengths and angles."""
    if cell.rotated:
        log.warning("the file holds only lengths and angles of the cell, so the rotation of its vectors is lost")


def cell_record(cell: Cell) -> bytes:
    """Return the CRYST1 record of a cell."""
    a, b, c, alpha, beta, gamma = cell.parameters
    warn_rotated(cell)
    return (f"CRYST1{a:9.3f}{b:9.3f}{c:9.3f}{alpha:7.2f}{beta:7.2f}{gamma:7.2f} {cell.space_group:<11.11s}   1\n"
            ).encode()


WRITER = StructureWriter(write_pdb, check)
