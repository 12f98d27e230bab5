"""PQR files: PDB-like lines of blank-separated fields with a charge and a radius, with or without a chain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from vmdpotential.errors import InputError
from vmdpotential.io.files import columns
from vmdpotential.io.files import text as files
from vmdpotential.io.files.numbers import parse_real, residue_number
from vmdpotential.io.structures import StructureWriter, pdb, pdbwrite, require_charges
from vmdpotential.molecule import elements, residues
from vmdpotential.molecule.names import mapped_names
from vmdpotential.molecule.structure import Names, Structure

_NUMBER = re.compile(r"(-?[0-9]+)([A-Za-z]?)$")
#: Most bytes of memory for each byte and for each line of a file (measured).
_MEMORY = (4.0, 700.0)
#: Written for a missing chain if other atoms have one.
_NO_CHAIN = "_"
#: The minus sign of a coordinate without a blank before it (``-11.921-126.307``), because its field was full.
_GLUED = re.compile(r"(?<=\d)-(?=\d*\.)")


def read_pqr(path: Path) -> Structure:
    """Return the structure of a PQR file, with charges and radii.

    Lines consist of blank-separated fields: ``ATOM serial name residue [chain] number x y z charge
    radius``. The blanks between record and serial, and between chain and number, may be missing. A CRYST1
    record gives the cell.

    Raises
    ------
    InputError
        When the file cannot be read, has no atoms, or a line has too few or wrong fields; the
        message gives the line.
    """
    lines = files.read_text(path, *_MEMORY).decode("latin-1").split("\n")
    cell, title, numbers = None, "", []
    labels: list[tuple[str, str, str, int, str, bool]] = []
    for row, line in enumerate(lines, 1):
        record = line[:6].rstrip()
        if line.startswith(("ATOM", "HETATM")):
            label, values = _atom(path, row, line)
            labels.append(label)
            numbers.append(values)
        elif record == "CRYST1":
            cell = pdb.cell_of_record(line, f"{path}: line {row}")
        elif record == "TITLE":
            title = f"{title} {line[10:].strip()}".strip()
        elif record in ("END", "ENDMDL") and labels:
            break
        elif line and not ("A" <= line[0] <= "Z" and record.isupper()):
            pdb.check_record(line, f"{path}: line {row}")
    if not labels:
        raise InputError(f"{path}: has no ATOM or HETATM lines, so it is not a PQR file")
    table = np.array(numbers)
    names, residue_names, chains = (np.array([label[k] for label in labels]) for k in range(3))
    ids, codes = np.array([label[3] for label in labels]), np.array([label[4] for label in labels])
    changed = residues.changes(residue_names, chains, ids, codes)
    first = residues.starts(changed, residue_names, names, positions=table[:, :3])
    single = np.char.str_len(chains) <= 1
    return Structure(
        positions=table[:, :3], atom_names=names, residue_names=residue_names, residue_ids=ids,
        residue_index=residues.index(first, len(labels)), chain_ids=np.where(single, chains, ""),
        # names longer than the letter of a chain are segments
        segment_ids=np.where(single, "", chains), elements=elements.guess_all(names, residue_names),
        insertion_codes=codes, charges=table[:, 3], hetero=np.array([label[5] for label in labels]), cell=cell,
        title=title, sources=(str(path),), charge_source="PQR file", radii=table[:, 4],
    )  # fmt: skip


def _atom(path: Path, row: int, line: str) -> tuple[tuple[str, str, str, int, str, bool], tuple[float, ...]]:
    """Return the atom's name, residue, chain, number, insertion code and whether it is HETATM, and five numbers."""
    hetero = line.startswith("HETATM")
    fields = line[6 if hetero else 4 :].split()
    try:
        numbers = [parse_real(word) for word in fields[-5:]]
        words = fields[:-5]
        if len(words) < 4 and "-" in line:
            raise ValueError
    except ValueError:  # some fields are not separated by blanks
        fields = _GLUED.sub(" -", line[6 if hetero else 4 :]).split()
        words = fields[:-5]
        try:
            numbers = [parse_real(word) for word in fields[-5:]]
        except ValueError:
            numbers = []
    if len(words) == 4 and not _NUMBER.match(words[3]) and _NUMBER.match(words[3][1:]):
        words = [*words[:3], words[3][0], words[3][1:]]  # no blank between chain and number: A1000
    number = _NUMBER.match(words[-1]) if words else None
    if len(numbers) != 5 or len(words) not in (4, 5) or number is None:
        raise InputError(
            f"{path}: line {row} is not 'ATOM serial name residue [chain] number x y z charge radius': "
            f"'{line.strip()[:90]}'"
        )
    try:
        result = residue_number(number[1])
    except ValueError:
        raise InputError(f"{path}: line {row}: the residue number {number[1][:30]} is too large") from None
    chain = words[3] if len(words) == 5 and words[3] != _NO_CHAIN else ""
    return (words[1], words[2], chain, result, number[2], hetero), tuple(numbers)


def write_pqr(structure: Structure, path: Path) -> None:
    """Write a PQR file of blank-separated fields, with charges of 4 to 8 decimals.

    Radii that the structure lacks are those of the elements. The segment replaces a missing chain, and the cell is
    written as a CRYST1 record.

    Raises
    ------
    ChargeError
        When the structure has no charges.
    """
    require_charges(structure, path)
    files.write_bytes(path, _records(structure))


def _records(s: Structure) -> Iterator[bytes]:
    if s.title:
        yield f"TITLE     {' '.join(s.title.encode('ascii', 'replace').decode().split())[:200]}\n".encode()
    if s.cell is not None and pdbwrite.fits(s.cell):
        yield pdbwrite.cell_record(s.cell)
    charges, radii = s.known_charges, elements.van_der_waals_radii(s.elements)
    if s.radii is not None:
        radii = np.where(np.isnan(s.radii), radii, s.radii)
    numbers = np.char.add(pdbwrite.written_numbers(s).astype(np.str_), s.insertion_codes)
    places = max(columns.decimals_needed(s.positions[:, k], 3, 6) for k in range(3))
    # PyMOL misreads lines whose serial ends before column 7, hence the blanks after ATOM
    yield from columns.table_lines([
        np.where(s.hetero, "HETATM", "ATOM  "), np.arange(1, len(s) + 1).astype(np.str_), _word(s.atom_names),
        _word(s.residue_names), _chains(s), numbers, *[(s.positions[:, k], places, 8) for k in range(3)],
        (charges, columns.decimals_needed(charges, 4, 8), 8), (radii, 4, 8),
    ], len(s))
    yield b"END\n"


def _chains(s: Structure) -> Names:
    """Return the chain field of every line: as readers expect, it is present either in all lines or in none."""
    chains = _word(np.where(s.chain_ids == "", s.segment_ids, s.chain_ids), _NO_CHAIN)
    return np.where(chains == _NO_CHAIN, "", chains) if (chains == _NO_CHAIN).all() else chains


def _word(names: Names, blank: str = "X") -> Names:
    """Return names as single words: blanks inside become underscores, and empty names become `blank`."""
    return mapped_names(names, lambda word: "_".join(word.split()) or blank)


WRITER = StructureWriter(write_pqr, require_charges)
