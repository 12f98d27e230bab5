"""Reading of PDB files in the file's order of atoms; :mod:`~vmdpotential.io.structures.pdbwrite` writes them.

The columns are read by numpy. A parser that groups atoms by residue number, as that of gemmi, would
reorder large solvated systems, whose numbers wrap and recur.

Rules: The first model is read. Of alternate locations, one conformer of each residue is kept, the one
with the largest sum of occupancies. TER separates residues. CONECT records are kept, to be written
again; ANISOU and other records are ignored. CRYST1 1 1 1 and zero lengths mean "no box". Chain names
may have two letters (columns 21 and 22). Serial numbers are only those that CONECT records name.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError
from vmdpotential.io.files import columns, several
from vmdpotential.io.files import text as files
from vmdpotential.io.files.numbers import parse_real
from vmdpotential.io.structures import pdb_numbers
from vmdpotential.molecule import elements, residues
from vmdpotential.molecule.atomnames import AMINO_ACIDS
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.names import with_ion_names
from vmdpotential.molecule.structure import Floats, Integers, ListedBonds, Structure

log = logging.getLogger(__name__)

Mask = NDArray[np.bool_]

#: Most bytes of memory for each byte and for each line of a file (measured).
MEMORY = (5.0, 64.0)
#: Atoms that are read at once, so that little memory is needed.
_BLOCK = 90_000
_WIDTH = 80
#: A line that is not a record, but that other programs, or a person, may take for one.
_NEARLY = re.compile(
    rb"(?:\s|\xef\xbb\xbf)*(?:(ATOM|HETATM)[\s\d].*\.\d|(CRYST1)[\s\d.]+|(MODEL)\s+\d+\s*$|(ENDMDL|END|TER)\s*$)",
    re.IGNORECASE)
#: If the same letter follows the names of more amino acids than this in column 21 ("ALAAa"), it begins the name of the
#: chain; variants of residues (HISA, LYSH ...) are fewer.
_SEVERAL = 4


def read_pdb(path: Path) -> Structure:
    """Return the structure of a PDB file (plain, .gz or .bz2).

    Raises
    ------
    InputError
        When the file cannot be read, has no atoms, or has columns that are not numbers; the
        message gives the line.
    """
    lines, words, atoms = _lines(path)
    atoms = _first_model(path, words, atoms)
    hetero = words[atoms, 0] == 72  # H of HETATM
    separated = _separated(atoms, np.flatnonzero(_starts(words, b"TER")))
    heads = {record: np.flatnonzero(_starts(words, record)) for record in (b"CRYST1", b"TITLE ", b"CONECT")}
    del words
    return _structure(path, lines, atoms, hetero, separated, heads)


def read_models(path: Path) -> Iterator[Structure]:
    """Yield each model, which ends with ENDMDL, or END, with the cell that is stated last before it.

    Raises
    ------
    InputError
        As :func:`read_pdb`.
    """
    lines, words, atoms = _lines(path)
    ends = _ends(words)
    ters, cells = (np.flatnonzero(_starts(words, record)) for record in (b"TER", b"CRYST1"))
    cell, stated = None, -1
    for model in np.split(atoms, np.unique(np.searchsorted(atoms, ends))):
        if not len(model):
            continue
        latest = int(np.searchsorted(cells, model[0])) - 1
        if latest != stated:
            cell, stated = _cell(path, lines, cells[latest : latest + 1]), latest
        structure = _structure(path, lines, model, words[model, 0] == 72, _separated(model, ters), {
            b"CRYST1": cells[:0], b"TITLE ": cells[:0], b"CONECT": cells[:0]})
        yield replace(structure, cell=cell)


def _lines(path: Path) -> tuple[columns.Lines, columns.Bytes, Integers]:
    """Return the lines of a file, their first six characters, and the numbers of those with atoms."""
    lines = columns.Lines(files.read_text(path, *MEMORY))
    words = lines.table(slice(None), 6)
    is_atom = (words[:, :4] == np.frombuffer(b"ATOM", np.uint8)).all(1) | _starts(words, b"HETATM")
    atoms = np.flatnonzero(is_atom)
    _check_records(path, lines, words, is_atom)
    if not len(atoms):
        raise InputError(f"{path}: has no ATOM or HETATM records, so it is not a PDB file with coordinates")
    return lines, words, atoms


def _check_records(path: Path, lines: columns.Lines, words: columns.Bytes, is_atom: Mask) -> None:
    """Raise InputError for lines that are not records only because of blanks or case, instead of ignoring them."""
    first = words[:, 0]
    unlike = (first < 65) | (first > 90) | ((words >= 97) & (words <= 122)).any(1)  # blanks first, or lower case
    for row in np.flatnonzero(unlike & (words != 32).any(1) & ~is_atom):
        check_record(lines.text(int(row)), f"{path}: line {row + 1}")


def check_record(line: str, where: str) -> None:
    """Raise InputError when a line is not a record only because of leading blanks or its case."""
    match = _NEARLY.match(line.encode("latin-1", "replace"))
    if match is not None:
        name = next(filter(None, match.groups())).decode().upper()
        if not line.startswith(name):
            raise InputError(f"{where}: '{line[:12].rstrip()}' is not a record, but would be {name} without leading "
                             "blanks and in capitals", "correct that line")


def _starts(words: columns.Bytes, record: bytes) -> Mask:
    result: Mask = (words[:, : len(record)] == np.frombuffer(record, np.uint8)).all(1)
    return result


def _ends(words: columns.Bytes) -> Integers:
    """Return the lines at which a model ends or another begins."""
    return np.flatnonzero(_starts(words, b"ENDMDL") | _starts(words, b"MODEL ") | _starts(words, b"END   "))


def _first_model(path: Path, words: columns.Bytes, atoms: Integers) -> Integers:
    """Return the atom lines of the first model."""
    ended = _ends(words)
    ended = ended[ended > atoms[0]]
    if not len(ended) or ended[0] > atoms[-1]:
        return atoms
    count = int(np.searchsorted(atoms, ended[0]))
    others = len(atoms) - count
    if words[ended[0], 3] == 32 and others % count:  # END, not ENDMDL or MODEL
        raise InputError(
            f"{path}: line {ended[0] + 1} is END, but {others} more atoms follow",
            "remove that line, or what follows it",
        )
    several.warn_of_several(path, "models", count)
    return atoms[:count]


def _separated(atoms: Integers, ters: Integers) -> Mask:
    """Return a mask of the atoms that follow a TER record."""
    mask = np.zeros(len(atoms) + 1, bool)
    mask[np.searchsorted(atoms, ters)] = True
    return mask[:-1]


def _structure(
    path: Path, lines: columns.Lines, atoms: Integers, hetero: Mask, separated: Mask, heads: dict[bytes, Integers]
) -> Structure:
    count = len(atoms)
    positions, occupancies, b_factors = np.empty((count, 3)), np.empty(count), np.empty(count)
    # columns 13-27 and 73-78: names, residues, segments and elements
    labels = np.empty((count, 21), np.uint8)
    for start in range(0, count, _BLOCK):
        part = slice(start, start + _BLOCK)
        table = lines.table(atoms[part], _WIDTH)
        labels[part, :15], labels[part, 15:] = table[:, 12:27], table[:, 72:78]
        positions[part] = _coordinates(path, lines, atoms[part], table)
        occupancies[part], b_factors[part] = (_numbers(table[:, k : k + 6], 6, default)[:, 0]
                                              for k, default in ((54, 1.0), (60, 0.0)))
    chain = 8 if _two_letter_chains(labels) else 9
    names, residue_names = columns.words(labels[:, :4]), columns.words(labels[:, 5:chain])
    residue_names = with_ion_names(residue_names, names)
    numbered = np.append(True, (labels[1:, 8:19] != labels[:-1, 8:19]).any(1)) | separated
    keep, changed = residues.chosen_conformers(
        path, columns.words(labels[:, 4:5]), names, residue_names, occupancies, numbered)
    labels, names, residue_names = labels[keep], names[keep], residue_names[keep]
    unnumbered = (labels[:, 10:14] == 42).any(1)
    first = residues.starts(changed, residue_names, columns.pack(labels[:, :5]), unnumbered, positions[keep])
    try:
        numbers, codes = pdb_numbers.numbers(labels[first, 10:15])
    except ValueError as error:
        row = atoms[keep][first[error.args[0]]]
        raise InputError(f"{path}: line {row + 1}: columns 23-27 are not a residue number: '{lines.text(row)[22:27]}'"
                         ) from None
    index = residues.index(first, len(names))
    return Structure(
        positions=positions[keep], atom_names=names, residue_names=residue_names, residue_ids=numbers[index],
        residue_index=index, chain_ids=columns.words(labels[:, chain:10]), segment_ids=columns.words(labels[:, 15:19]),
        elements=elements.complete_elements(columns.words(labels[:, 19:21]), names, residue_names),
        insertion_codes=codes[index], hetero=hetero[keep], occupancies=occupancies[keep], b_factors=b_factors[keep],
        cell=_cell(path, lines, heads[b"CRYST1"]), title=_title(lines, heads[b"TITLE "]), sources=(str(path),),
        listed_bonds=_bonds(path, lines, atoms[keep], heads[b"CONECT"]),
    )  # fmt: skip


def _two_letter_chains(labels: columns.Bytes) -> bool:
    """Return whether column 21 is the first letter of the chain's name rather than the last of the residue's."""
    codes = np.unique(np.ascontiguousarray(labels[labels[:, 8] != 32, 5:9]).view(np.uint32))
    words = [codes[n : n + 1].tobytes().decode("latin-1") for n in range(len(codes))]
    amino = Counter(word[3] for word in words if word[:3] in AMINO_ACIDS)
    return bool(amino) and max(amino.values()) > _SEVERAL


def _numbers(table: columns.Bytes, width: int, default: float) -> Floats:
    """Return the numbers in fields of some width, (N, fields); the default where there is no finite number."""
    fields = np.ascontiguousarray(table).reshape(-1, width)
    result, plain = np.full(len(fields), default), columns.plain_numbers(fields)
    result[plain] = columns.numbers(fields[plain], width)[:, 0]
    for i in np.flatnonzero(~plain & (fields != 32).any(1)):
        with contextlib.suppress(ValueError):
            value = parse_real(fields[i].tobytes().decode("latin-1"))
            result[i] = value if np.isfinite(value) else default
    return result.reshape(len(table), -1)


def _coordinates(path: Path, lines: columns.Lines, rows: Integers, table: columns.Bytes) -> Floats:
    """Return the coordinates of atom lines (N, 3)."""
    values = _numbers(table[:, 30:54], 8, np.nan)
    wrong = np.flatnonzero(np.isnan(values).any(1))
    if len(wrong):
        row = int(rows[wrong[0]])
        hint = "; this looks like a PQR file, name it .pqr" if _like_pqr(lines.text(row)) else ""
        raise InputError(f"{path}: line {row + 1}: columns 31-54 are not three coordinates: "
                         f"'{lines.text(row)[30:54]}'{hint}")
    return values


def _like_pqr(line: str) -> bool:
    words = line.split()[-5:]
    return len(words) == 5 and all(re.fullmatch(r"-?\d*\.\d*", word) for word in words)


def _cell(path: Path, lines: columns.Lines, rows: Integers) -> Cell | None:
    """Return the cell of the first CRYST1 record; None without one, or if it is a placeholder for "no box"."""
    if not len(rows):
        return None
    line = lines.text(int(rows[0]))
    return cell_of_record(line, f"{path}: line {rows[0] + 1}")


def cell_of_record(line: str, where: str) -> Cell | None:
    """Return the cell of a CRYST1 record; None if it is a placeholder for "no box"."""
    fields = line[6:].split()[:6]
    for trial in (fields, [line[a:b] for a, b in ((6, 15), (15, 24), (24, 33), (33, 40), (40, 47), (47, 54))]):
        try:
            values = [parse_real(field) for field in trial]
        except ValueError:
            continue
        if len(values) == 6:
            return cell_of(values, where, line[55:66])
    raise InputError(f"{where}: CRYST1 does not have three lengths and three angles: '{line}'")


def cell_of(values: list[float], where: str, space_group: str = "P 1") -> Cell | None:
    """Return the cell of three lengths and three angles; None if all lengths are 1, or one is 0."""
    if any(value == 0 for value in values[:3]):
        return None
    if values[:3] == [1, 1, 1]:  # in files from NMR and electron microscopy
        log.warning("%s: the cell of 1 x 1 x 1 A is a placeholder and is ignored", where)
        return None
    with files.naming(where):
        return Cell.from_parameters(*values, space_group=space_group)


def _bonds(path: Path, lines: columns.Lines, atoms: Integers, rows: Integers) -> ListedBonds | None:
    """Return the bonds of CONECT records between the atoms in some lines; None if there are none."""
    if not len(rows):
        return None
    serials = [serial.tobytes().strip() for serial in lines.table(atoms, 11)[:, 6:11]]
    row = {serial: n for n, serial in enumerate(serials)}
    if len(row) < len(serials):
        log.warning("%s: CONECT records are ignored, because serial numbers recur", path)
        return None
    counts: Counter[tuple[int, int]] = Counter()
    for line in lines.table(rows, 31):
        of, *others = (row.get(line[k : k + 5].tobytes().strip()) for k in (6, 11, 16, 21, 26))
        counts.update((of, other) for other in others if of is not None and other is not None and other != of)
    # most programs list each bond at both of its atoms
    pairs = [(a, b) for a, b in dict.fromkeys((min(pair), max(pair)) for pair in counts)
             for _ in range(max(counts[a, b], counts[b, a]))]
    return ListedBonds(np.array(pairs, np.int64).reshape(-1, 2)) if pairs else None


def _title(lines: columns.Lines, rows: Integers) -> str:
    return " ".join(lines.text(int(row))[10:80].strip() for row in rows[:100])
