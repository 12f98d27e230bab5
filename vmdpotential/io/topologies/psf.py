"""PSF files of CHARMM, X-PLOR, NAMD, psfgen and VMD.

The atom lines of a PSF have fixed columns (CHARMM documentation, ``io.info`` and ``struct.info``), except in files
for NAMD with names that do not fit, whose fields are separated by blanks. Serial, segment, residue and atom name are
read by column, because a segment name may be empty, and the rest of the line by words.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.errors import InputError
from vmdpotential.io.files import columns
from vmdpotential.io.files.numbers import first_wrong, parse_reals, parse_whole
from vmdpotential.io.files.text import buffered_stream, read_text
from vmdpotential.molecule import residues
from vmdpotential.molecule.names import unique_names
from vmdpotential.molecule.structure import Integers, Structure, Topology

#: First and last column of serial, segment, residue number, residue name and atom name.
_COLUMNS = ((0, 8), (9, 13), (14, 18), (19, 23), (24, 28))
_COLUMNS_EXT = ((0, 10), (11, 19), (20, 28), (29, 37), (38, 46))

#: Section name in a PSF: (attribute of Topology, atoms in an entry).
SECTIONS = {
    "NBOND": ("bonds", 2),
    "NTHETA": ("angles", 3),
    "NPHI": ("dihedrals", 4),
    "NIMPHI": ("impropers", 4),
    "NDON": ("donors", 2),
    "NACC": ("acceptors", 2),
    "NCRTERM": ("cross_terms", 8),
}

#: Most bytes of memory for each byte and for each line of a file (measured).
_MEMORY = (9.0, 100.0)
#: A title line with the source of the charges, written by a viewer that has its own charges.
_CHARGE_SOURCE = re.compile(r"\s*REMARKS charges from the (.+?)\s*$")
#: Translation of all characters that separate words to blanks.
_BLANKS = bytes(32 if c in (0x85, 0xA0) or (c < 32 and c != 10) else c for c in range(256))
_HEADER = re.compile(rb"\s*(\d{1,18})(?:\s+(\d{1,18}))?\s*!\s*([A-Z0-9]+)")


@dataclass
class _Section:
    name: str
    count: int
    second: int
    line: int
    body: bytes


@dataclass
class _Atoms:
    """Columns of the atom list."""

    segments: NDArray[np.str_]
    residues: NDArray[np.str_]
    residue_names: NDArray[np.str_]
    names: NDArray[np.str_]
    types: NDArray[np.str_]
    charges: NDArray[np.float64]
    masses: NDArray[np.float64]
    extra: dict[str, Any] = field(default_factory=dict)


def read_psf(path: str | Path) -> Structure:
    """Read a PSF of any dialect, plain or compressed.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Structure
        Positions are zero, as a PSF has none. Charges are in e, masses in u; `topology` holds all terms, and its
        `extra` the further content that is written again with it.

    Raises
    ------
    InputError
        When the file is not a PSF, is truncated, or a section disagrees with its count or lists an atom
        that does not exist.
    """
    path = buffered_stream(path)
    data = read_text(path, *_MEMORY).replace(b"\t", b" ")
    head = data[: data.find(b"\n") if b"\n" in data else None]
    if not head.startswith(b"PSF"):
        raise InputError(f"{path}: is not a PSF, its first line does not begin with PSF")
    flags = tuple(head.decode("latin-1").split()[1:])
    title, sections = _split(data, path)
    atoms = _read_atoms(sections.pop("NATOM"), flags, path)
    count = len(atoms.names)
    terms: dict[str, Any] = {}
    extra: dict[str, Any] = {"sections": tuple(sections), **atoms.extra, "terms": {}, "term_values": {}}
    unknown = []
    for name, section in sections.items():
        if name in SECTIONS:
            terms[SECTIONS[name][0]] = _read_terms(section, SECTIONS[name][1], count, path)
        elif name == "NNB":
            extra["terms"]["exclusions"] = _read_exclusions(section, count, path)
        elif name == "NGRP":
            extra.update(_read_groups(section, count, path))
        elif name == "MOLNT":
            extra["molecule"] = _integers(section, count, path)
        elif name in ("NUMLP", "NUMANISO"):
            key, index, values = _read_frames(section, count, path)
            extra["terms"][key], extra["term_values"][key] = index, values
        else:
            unknown.append(name)
    if unknown:
        extra["unknown"] = tuple(unknown)
    topology = Topology(
        source="psf", types=atoms.types, masses=atoms.masses, title=title, flags=flags, extra=extra,
        **{"bonds": np.zeros((0, 2), np.int64), **terms},
    )
    ids, insertion = _residue_numbers(atoms.residues, extra)
    changed = residues.changes(atoms.segments, atoms.residues, atoms.residue_names)
    first = residues.starts(changed, atoms.residue_names, atoms.names)
    return Structure(
        positions=np.zeros((count, 3)), atom_names=atoms.names, residue_names=atoms.residue_names, residue_ids=ids,
        residue_index=residues.index(first, count), segment_ids=atoms.segments, insertion_codes=insertion,
        charges=atoms.charges, topology=topology, title=_plain_title(title), sources=(str(path),),
        charge_source=next((match[1] for line in title if (match := _CHARGE_SOURCE.match(line))), ""),
    )


def _plain_title(title: tuple[str, ...]) -> str:
    """Return the first title line that is not empty, without the marks of CHARMM and X-PLOR."""
    for line in title:
        words = re.sub(r"^\s*(REMARKS\b|\*+)", "", line).strip()
        if words:
            return words
    return ""


def _split(data: bytes, path: Path) -> tuple[tuple[str, ...], dict[str, _Section]]:
    """Return the title lines and the sections by name, NATOM first."""
    atoms = re.search(rb"^[ ]*\d+[ ]*!NATOM", data, re.MULTILINE)
    if atoms is None:
        raise InputError(f"{path}: has no atom list (!NATOM); the file is truncated or not a PSF")
    head = data[: atoms.start()]
    mark = head.find(b"!NTITLE")
    title: tuple[str, ...] = ()
    if mark >= 0:
        lines = head[mark:].decode("latin-1").split("\n")[1:]
        title = tuple(line.rstrip() for line in lines)
        while title and not title[-1]:
            title = title[:-1]
    sections: dict[str, _Section] = {}
    position, line = atoms.start(), data.count(b"\n", 0, atoms.start()) + 1
    while position >= 0:
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        mark = data.find(b"!", end)
        following = data.rfind(b"\n", 0, mark) + 1 if mark >= 0 else -1
        match = _HEADER.match(data[position:end])
        if match is None:
            text = data[position:end].decode("latin-1").strip()
            raise InputError(f"{path}: line {line} '{text[:40]}' is not the start of a PSF section",
                             "write the file again")
        name = match.group(3).decode()
        if name in sections:
            raise InputError(f"{path}: line {line}: section !{name} occurs twice", "write the file again")
        body = data[end + 1 : following if mark >= 0 else len(data)]
        sections[name] = _Section(name, int(match.group(1)), int(match.group(2) or 0), line, body)
        line += 1 + body.count(b"\n")
        position = following
    return title, sections


def _read_atoms(section: _Section, flags: tuple[str, ...], path: Path) -> _Atoms:
    block = section.body.rstrip().translate(_BLANKS)
    count = block.count(b"\n") + 1 if block else 0
    if count != section.count:
        raise InputError(
            f"{path}: line {section.line} states {section.count} atoms, but {count} lines follow; "
            "the file is truncated or damaged", "write it again"
        )
    if not count:
        raise InputError(f"{path}: has no atoms")
    buffer = np.frombuffer(block + b"\n", np.uint8)
    width = len(buffer) // count
    if width * count == len(buffer) and (buffer[width - 1 :: width] == 10).all():  # lines of equal length
        lengths = np.full(count, width - 1)
    else:
        lengths = np.diff(np.flatnonzero(buffer == 10), prepend=-1) - 1
        width = int(lengths.max()) + 1
    if width > 500:
        raise InputError(f"{path}: line {section.line + 1 + int(lengths.argmax())} is too long for a PSF")
    memory.require(8 * count * width, f"reading {path}", "correct its longest lines")  # short lines are padded
    if count * width == len(buffer):
        table = buffer.reshape(count, width).copy()
        table[:, -1] = 32
    else:
        table = np.full((count, width), 32, np.uint8)
        table[np.arange(width) < lengths[:, None]] = buffer[buffer != 10]

    spans = _COLUMNS_EXT if "EXT" in flags or "DRUDE" in flags else _COLUMNS
    fixed = np.zeros(count, bool)
    if "NAMD" not in flags and width > spans[-1][1]:
        gaps = [stop for _, stop in spans]
        fixed = (table[:, gaps] == 32).all(1) & (table[:, : spans[0][1]] <= ord("9")).all(1)
    if fixed.all():
        names = [columns.words(table[:, a:b]) for a, b in spans[1:]]
        words = _words(table[:, spans[-1][1] :], (4, 6), section.line, path)
    else:  # separated by blanks: NAMD's variant, or names that did not fit their columns
        words = _words(table, (9, 11), section.line, path)
        names, words = [np.array(column) for column in words[1:5]], words[5:]
    charges = _numbers(words[1], "charge", section.line, path)
    masses = _numbers(words[2], "mass", section.line, path)
    wrong = np.flatnonzero(~((masses >= 0) & np.isfinite(masses)))
    if len(wrong):
        raise InputError(f"{path}: line {section.line + 1 + wrong[0]}: the mass {masses[wrong[0]]:g} is impossible")
    codes = _numbers(words[3], "fixed-atom code", section.line, path)
    if not (np.abs(codes) < 2**31).all():
        raise InputError(f"{path}: section !NATOM (line {section.line}) contains invalid codes of fixed atoms")
    extra: dict[str, Any] = {"move": codes.astype(np.int64)}
    if len(words) > 4:
        extra["columns"] = np.stack([np.array(column) for column in words[4:]], axis=1)
    return _Atoms(names[0], names[1], names[2], names[3], np.array(words[0]), charges, masses, extra)


def _words(table: NDArray[np.uint8], allowed: tuple[int, ...], line: int, path: Path) -> list[list[str]]:
    """Return the columns of a table of characters whose words are separated by blanks."""
    filled = table > 32
    counts = filled[:, 0] + (filled[:, 1:] & ~filled[:, :-1]).sum(1)
    count = int(counts[0])
    if count not in allowed or (counts != count).any():
        bad = int(np.argmax(counts != count)) if count in allowed else 0
        raise InputError(
            f"{path}: line {line + 1 + bad}: the columns of this atom do not match any kind of PSF", "write the file "
            "again"
        )
    padded = np.full((len(table), table.shape[1] + 1), 32, np.uint8)
    padded[:, :-1] = table
    words = padded.tobytes().decode("latin-1").split()
    return [words[i::count] for i in range(count)]


def _numbers(words: list[str], what: str, line: int, path: Path) -> NDArray[np.float64]:
    try:
        return parse_reals(words)
    except ValueError:
        i = first_wrong(words)
        raise InputError(f"{path}: line {line + 1 + i}: {what} '{words[i][:40]}' is not a number") from None


def _residue_numbers(texts: NDArray[np.str_], extra: dict[str, Any]) -> tuple[Integers, NDArray[np.str_]]:
    """Split residue numbers from insertion codes; text that these do not reproduce is kept in ``extra['resid']``."""
    unique, inverse = unique_names(texts)
    matches = [re.fullmatch(r"([+-]?[0-9]{1,9})(\D*)", text) for text in unique.tolist()]
    ids = np.array([int(match[1]) if match else 0 for match in matches], np.int64)
    codes = np.array([match[2] if match else "" for match in matches], np.str_)
    if (np.char.add(ids.astype(np.str_), codes) != unique).any():
        extra["resid"] = texts
    return ids[inverse], codes[inverse]


def _integers(section: _Section, expected: int, path: Path) -> Integers:
    """Return the numbers of a section; raise InputError unless there are `expected` numbers."""
    numbers = np.zeros(0, np.int64)
    if section.body.strip():
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns about text that is not a number
            try:
                numbers = np.fromstring(section.body, dtype=np.int64, sep=" ")  # type: ignore[call-overload]
            except (DeprecationWarning, ValueError, OverflowError):
                raise InputError(
                    f"{path}: section !{section.name} (line {section.line}) contains text that is not a number"
                ) from None
    if len(numbers) != expected:
        raise InputError(
            f"{path}: section !{section.name} (line {section.line}) contains {len(numbers)} numbers instead of "
            f"{expected}; the file is truncated or its counts are wrong", "write it again"
        )
    return numbers


def _check_range(index: Integers, count: int, section: _Section, path: Path, lowest: int = 1) -> None:
    bad = np.flatnonzero((index < lowest).any(1) | (index > count).any(1))
    if len(bad):
        wrong = index[bad[0]]
        atom = wrong[(wrong < lowest) | (wrong > count)][0]
        raise InputError(
            f"{path}: section !{section.name} (line {section.line}): entry {bad[0] + 1} lists atom {atom}, "
            f"but there are {count} atoms"
        )


def _read_terms(section: _Section, size: int, count: int, path: Path) -> Integers:
    index = _integers(section, size * section.count, path).reshape(-1, size)
    # in donors and acceptors, 0 means "none"
    _check_range(index, count, section, path, lowest=0 if section.name in ("NDON", "NACC") else 1)
    return index - 1


def _read_exclusions(section: _Section, count: int, path: Path) -> Integers:
    """Return explicit exclusions as pairs (M, 2); the file has the partners, then a running count for each atom."""
    listed = len(section.body.split()) > section.count
    numbers = _integers(section, section.count + (count if listed else 0), path)
    if not listed and section.count:
        raise InputError(f"{path}: section !NNB (line {section.line}) lacks its list of atoms", "write the file again")
    partners, last = numbers[: section.count], numbers[section.count :]
    if not section.count:
        return np.zeros((0, 2), np.int64)
    sizes = np.diff(last, prepend=0)
    if (sizes < 0).any() or last[-1] != section.count:
        raise InputError(f"{path}: section !NNB (line {section.line}) disagrees with its list of atoms")
    pairs = np.stack([np.repeat(np.arange(1, count + 1), sizes), partners], axis=1)
    _check_range(pairs, count, section, path)
    return np.asarray(pairs - 1, np.int64)


def _read_groups(section: _Section, count: int, path: Path) -> dict[str, Any]:
    """Return the group of each atom and the codes of that group, (N,) each."""
    groups = _integers(section, 3 * section.count, path).reshape(-1, 3)
    if not len(groups):
        return {}
    starts = groups[:, 0]
    if starts[0] != 0 or (np.diff(starts) <= 0).any() or starts[-1] >= count:
        raise InputError(f"{path}: section !NGRP (line {section.line}): groups must begin at rising atom numbers")
    group = np.searchsorted(starts, np.arange(count), side="right") - 1
    return {"group": group, "group_type": groups[group, 1], "group_move": groups[group, 2], "nst2": section.second}


def _read_frames(section: _Section, count: int, path: Path) -> tuple[str, Integers, NDArray[np.str_]]:
    """Return lone pairs, or anisotropies of a Drude model: key, atoms (rows padded with -1), values as text."""
    words = section.body.decode("latin-1").split()
    rows, width = section.count, 6 if section.name == "NUMLP" else 3
    values = np.array(words[: width * rows]).reshape(-1, width) if len(words) >= width * rows else None
    try:
        if values is None:
            raise ValueError
        hosts = np.array([parse_whole(word) for word in words[width * rows :]], np.int64)
        if section.name == "NUMANISO":
            index = hosts.reshape(rows, 4)
            _check_range(index, count, section, path)
            return "anisotropies", index - 1, values
        sizes, first = values[:, 0].astype(np.int64) + 1, values[:, 1].astype(np.int64) - 1
        inside = (first >= 0) & (first <= len(hosts)) & (sizes >= 1) & (sizes <= len(hosts))
        if len(hosts) != section.second or not (inside & (first + sizes <= len(hosts))).all():
            raise ValueError
    except (ValueError, OverflowError):
        raise InputError(
            f"{path}: section !{section.name} (line {section.line}) is incomplete", "write the file again"
        ) from None
    memory.require(32 * rows * int(sizes.max(initial=1)), f"reading {path}", "correct its lone pairs")
    index = np.zeros((rows, int(sizes.max(initial=1))), np.int64)
    for row, size, start in zip(index, sizes, first, strict=True):
        row[:size] = hosts[start : start + size]
    _check_range(index, count, section, path, lowest=0)
    return "lone_pairs", index - 1, values[:, 2:]
