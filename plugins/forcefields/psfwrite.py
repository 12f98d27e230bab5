"""Writing of PSF files for CHARMM, NAMD, VMD and psfgen, from any topology that has bonds.

Columns are those of CHARMM; the extended format is used if a name, a residue number or the number of atoms
requires it.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import InputError, UsageError
from vmdpotential.io.files import columns
from vmdpotential.io.files.text import write_bytes
from vmdpotential.io.structures import StructureWriter, require_charges
from vmdpotential.molecule.names import unique_names
from vmdpotential.molecule.selection import is_oxygen, is_water
from vmdpotential.molecule.structure import Names, Structure, Topology

log = logging.getLogger(__name__)

_BLOCK = 100_000  # atom lines formatted at once

#: The sections of index lists: (attribute, atoms in an entry, entries on a line, header).
_TERMS = (
    ("bonds", 2, 4, "NBOND: bonds"),
    ("angles", 3, 3, "NTHETA: angles"),
    ("dihedrals", 4, 2, "NPHI: dihedrals"),
    ("impropers", 4, 2, "NIMPHI: impropers"),
    ("donors", 2, 4, "NDON: donors"),
    ("acceptors", 2, 4, "NACC: acceptors"),
)

#: CHARMM's default values of the additional columns in files with fluctuating charges.
_CHEQ_COLUMNS = ("0.00000", "-0.301140E-02")


def write_psf(structure: Structure, path: str | Path) -> None:
    """Write the topology of a structure as PSF, compressed (with reproducible bytes) if the suffix is ``.gz``.

    All content of a PSF that was read is written again: title, flags, all terms, groups, lone pairs, further
    columns. Charges are rounded to 6 decimals if that is exact, else to 9 or more; the rounding changes the net
    charge by no more than one unit of the last decimal.

    Parameters
    ----------
    structure : Structure
        With charges, and a topology with bonds (from a PSF, prmtop, TPR ...).
    path : str or Path
        The file to write.

    Raises
    ------
    InputError
        When there is no topology, or a name is too long for a PSF.
    """
    topology = structure.topology
    where = structure.where
    if topology is None:
        raise InputError(f"{where}: has no bonds, so no PSF can be written", "give a file that has them as {topology}")
    unknown = topology.extra.get("unknown", ())
    if unknown:
        raise InputError(
            f"{where}: its section !{unknown[0]} is not understood and would be lost", "write PDB or PQR instead"
        )
    if len(topology.types) != len(structure):
        raise InputError(f"{where}: topology of {len(topology.types)} atoms for {len(structure)} atoms")
    blocks = _blocks(structure, topology, where)
    first = next(blocks)  # raises errors before a file is made
    write_bytes(Path(path), itertools.chain([first], blocks))


def _blocks(structure: Structure, topology: Topology, where: str) -> Iterator[bytes]:
    """Yield the parts of the file."""
    count = len(structure)
    extra = topology.extra
    present = extra.get("sections", ())
    types, notes = _short_types(topology, structure)
    segments = np.where(structure.segment_ids == "", structure.chain_ids, structure.segment_ids)
    segments = np.where(segments == "", "SYS", segments)  # NAMD counts words: a blank name would shift them
    names = (segments, _residue_numbers(structure), structure.residue_names, structure.atom_names)
    flags = _flags(topology, names, types, count)
    extended = "EXT" in flags
    _check_names(structure, names, flags, where)

    width = 10 if extended else 8

    def head(number: int, text: str, second: int | None = None) -> bytes:
        return f"{number:{width}d}{'' if second is None else f'{second:{width}d}'} !{text}\n".encode()

    def lines(*texts: str) -> bytes:
        return "".join(f"{text}\n" for text in texts).encode("latin-1", "replace")

    angles = _water_angles(structure, topology)
    if len(angles):
        log.warning("%s: has no angles for %d rigid waters; in the PSF these are made from their bonds",
                    where, len(angles))
        topology = replace(topology, angles=np.concatenate([topology.angles, angles]))
        notes = [*notes, f" REMARKS angles of {len(angles)} rigid waters are made from their bonds"]
    title = [*(topology.title or [" REMARKS written by vmdpotential"]), *notes]
    yield lines("PSF" + "".join(" " + flag for flag in flags), "")
    yield head(len(title), "NTITLE") + lines(*title, "") + head(count, "NATOM")
    yield from _atom_lines(structure, topology, names, types, flags)
    yield b"\n"
    for name, size, per_line, header in _TERMS:
        index = getattr(topology, name)
        if name in ("dihedrals", "impropers") and topology.source != "psf":
            index = _unique(index)
        yield head(len(index), header) + _numbers(index + 1, size * per_line, width) + b"\n"
    pairs, last = _exclusions(extra, count)
    yield head(len(pairs), "NNB") + _numbers(pairs[:, 1] + 1, 8, width) + _numbers(last, 8, width) + b"\n"
    rows = _groups(extra, structure.known_charges)
    yield head(len(rows), "NGRP NST2", extra.get("nst2", 0) if "group" in extra else 0)
    yield _numbers(rows, 9, width) + b"\n"
    if "MOLNT" in present or "CHEQ" in flags:
        molecule = _padded(extra.get("molecule"), count, 0)
        kept = len(extra.get("molecule", ()))
        molecule[kept:] = molecule[:kept].max(initial=0) + 1 + np.arange(count - kept)
        yield head(int(molecule.max(initial=0)), "MOLNT") + _numbers(molecule, 8, width) + b"\n"
    if "NUMLP" in present:
        index, values = extra["terms"]["lone_pairs"], extra["term_values"]["lone_pairs"]
        sizes = (index >= 0).sum(1)
        hosts = index[index >= 0] + 1
        yield head(len(index), "NUMLP NUMLPH", len(hosts))
        yield lines(*(
            f"{size - 1:{width}d}{start:{width}d}   {row[0]}" + "".join(f"{value:>14s}" for value in row[1:])
            for size, start, row in zip(sizes.tolist(), (np.cumsum(sizes) - sizes + 1).tolist(), values.tolist(),
                                        strict=True)))
        yield (_numbers(hosts, 8, width) if len(hosts) else b"") + b"\n"
    if "NUMANISO" in present:
        index, values = extra["terms"]["anisotropies"], extra["term_values"]["anisotropies"]
        yield head(len(index), "NUMANISO")
        yield lines(*(" " * width + "".join(f"{value:>14s}" for value in row) for row in values))
        yield _numbers(index + 1, 8, width) + b"\n"
    if "CMAP" in flags or len(topology.cross_terms):
        index = topology.cross_terms
        yield head(len(index), "NCRTERM: cross-terms") + _numbers(index + 1, 8, width) + b"\n"


def _water_angles(structure: Structure, topology: Topology) -> Integers:
    """Return the angles H-O-H, (W, 3), of rigid waters, for which formats other than PSF may list none."""
    if topology.source == "psf" or not len(topology.bonds):
        return np.zeros((0, 3), np.int64)
    water, oxygen = is_water(structure), is_oxygen(structure)
    hydrogen = water & ~oxygen & (topology.masses > 0)
    pairs = np.concatenate([topology.bonds, topology.bonds[:, ::-1]])
    pairs = pairs[(water & oxygen)[pairs[:, 0]] & hydrogen[pairs[:, 1]]]
    pairs = pairs[~np.isin(pairs[:, 0], topology.angles[:, 1] if len(topology.angles) else [])]
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    second = np.flatnonzero(pairs[1:, 0] == pairs[:-1, 0])
    return np.stack([pairs[second, 1], pairs[second, 0], pairs[second + 1, 1]], axis=1)


def _short_types(topology: Topology, structure: Structure) -> tuple[Names, list[str]]:
    """Return atom types of at most 6 letters, the limit of a PSF, and title lines that explain abbreviated types."""
    types = np.where(topology.types == "", structure.atom_names, topology.types)
    unique, inverse = unique_names(types)
    if "NAMD" in topology.flags or all(len(text) <= 6 for text in unique):
        return types, []
    ends = [text[-6:] for text in unique]
    if len(set(ends)) < len(ends):
        ends = [text if len(text) <= 6 else f"T{i + 1:05d}" for i, text in enumerate(unique)]
    notes = [
        f" REMARKS atom type {short} is short for {text}"
        for short, text in zip(ends, unique, strict=True) if short != text
    ]
    return np.array(ends)[inverse], notes


def _residue_numbers(structure: Structure) -> Names:
    assert structure.topology is not None
    number, of_residue = np.unique(structure.residue_ids, return_inverse=True)
    texts = [str(item) for item in number.tolist()]
    text = np.array(texts)[of_residue.reshape(-1)]
    if (structure.insertion_codes != "").any():
        text = np.char.add(text, structure.insertion_codes)
    kept = structure.topology.extra.get("resid")
    if kept is not None:
        text = text.astype(kept.dtype if kept.dtype > text.dtype else text.dtype)
        text[: len(kept)] = kept
    return text


def _flags(topology: Topology, names: Sequence[Names], types: Names, count: int) -> list[str]:
    """Return the flags in the first line: those of the file that was read, and those that the content requires."""
    flags = list(topology.flags)
    longest = max(columns.longest(text) for text in (*names, types))
    if "NAMD" not in flags and "EXT" not in flags and (longest > 4 or count > 99_999):
        flags.insert(0, "EXT")
    if len(topology.cross_terms) and "CMAP" not in flags:
        flags.insert(1 if flags[:1] == ["EXT"] else 0, "CMAP")
    numeric = all(text.isdigit() for text in unique_names(types)[0])
    if ("EXT" in flags or topology.source != "psf") and not numeric and "XPLOR" not in flags and "NAMD" not in flags:
        flags.append("XPLOR")
    return flags


def _check_names(structure: Structure, names: Sequence[Names], flags: list[str], where: str) -> None:
    limit = 10**6 if "NAMD" in flags else 8
    for text, what in zip(names, ("segment name", "residue number", "residue name", "atom name"), strict=True):
        unique, inverse = unique_names(text)
        # readers that split lines at blanks would take a name with a blank for two words, and miss an empty name
        bad = [len(word) > limit or not word or " " in word for word in unique.tolist()]
        if any(bad):
            atom = int(np.flatnonzero(np.array(bad)[inverse])[0])
            raise InputError(
                f"{where}: atom {atom + 1} ({structure.label(atom)}): {what} '{text[atom]}' does not fit a PSF",
                "use 1 to 8 letters without blanks"
            )


def _atom_lines(
    structure: Structure, topology: Topology, names: Sequence[Names], types: Names, flags: list[str]
) -> Iterator[bytes]:
    count = len(structure)
    extended = "EXT" in flags
    numeric = not ("XPLOR" in flags or "NAMD" in flags) and all(text.isdigit() for text in unique_names(types)[0])
    wide = [8 if extended else 4] * 4
    if "NAMD" in flags:
        wide = [max(width, columns.longest(text)) for width, text in zip(wide, names, strict=True)]
    width_of_type = max(6 if extended and not numeric else 4, columns.longest(types))
    # 12 of the 14 characters in an extended file, because readers disagree on the first column of that field
    charges, decimals = _rounded(structure.known_charges, 12 if extended else 13)
    # CHARMM writes 4 decimals; masses with more decimals use more of the field's 14 characters
    fine = np.abs(np.round(topology.masses, 4) - topology.masses) > 1e-6
    move = _padded(topology.extra.get("move"), count, 0)
    more = _further_columns(topology, flags, count)
    gap, end = np.full((_BLOCK, 1), 32, np.uint8), np.full((_BLOCK, 1), 10, np.uint8)
    for start in range(0, count, _BLOCK):
        part = slice(start, min(start + _BLOCK, count))
        size = part.stop - start
        table = [columns.integers(np.arange(start + 1, part.stop + 1), 10 if extended else 8)]
        for text, width in zip(names, wide, strict=True):
            table += [gap[:size], columns.text(text[part], width)]
        kind = columns.text(types[part], width_of_type)
        if numeric:  # right-aligned
            kind = columns.integers(types[part].astype(np.int64), width_of_type)
        charge = np.full((size, 14), 32, np.uint8)
        field = 10 if decimals == 6 else 12 if extended else 13
        charge[:, :field] = columns.fixed(charges[part], field, decimals)
        mass = np.full((size, 12), 32, np.uint8)
        mass[:, :10] = columns.fixed(np.where(fine[part], 0, topology.masses[part]), 10, 4)
        mass[fine[part]] = columns.fixed(topology.masses[part][fine[part]], 12, 6)
        table += [gap[:size], kind, gap[:size], charge, mass, columns.integers(move[part], 10)]
        if more is not None:
            table.append(columns.text(more[part], columns.longest(more)))
        yield np.concatenate([*table, end[:size]], axis=1).tobytes()


def _further_columns(topology: Topology, flags: Sequence[str], count: int) -> Names | None:
    """Return the last columns of atom lines with fluctuating charges or Drude particles; None without these."""
    kept = topology.extra.get("columns")
    if kept is None and "CHEQ" not in flags:
        return None
    width = 2 if kept is None else kept.shape[1]
    texts = np.empty((count, width), dtype="U14")
    texts[:] = _CHEQ_COLUMNS if width == 2 and "DRUDE" not in flags else "0.00000"
    if kept is not None:
        texts[: len(kept)] = kept
    return np.array(["".join(f" {text:>13s}" for text in row) for row in texts.tolist()])


def _rounded(charges: Floats, width: int) -> tuple[Floats, int]:
    """Return charges rounded so that their sum is preserved, and the number of decimals: 6 if that is exact."""
    digits = max(len(f"{charges.min(initial=0):.0f}"), len(f"{charges.max(initial=0):.0f}"))
    decimals = 6
    if np.abs(np.round(charges, 6) - charges).max(initial=0) > 1e-11:
        # leave room for the point, and for a digit that rounding may add
        decimals = min(10, width - max(digits, 2) - 1)
    unit = 10.0**-decimals
    rounded = np.round(charges, decimals)
    error = charges - rounded
    surplus = round(float(error.sum()) / unit)
    if surplus:
        # correct the atoms with the largest rounding errors by one unit of the last decimal each
        most = np.argsort(-error if surplus > 0 else error, kind="stable")[: abs(surplus)]
        rounded[most] += np.sign(surplus) * unit
    return rounded, decimals


def _numbers(index: Integers, per_line: int, width: int) -> bytes:
    """Return numbers in columns as lines; without numbers, one empty line."""
    return columns.lines(columns.integers(index.reshape(-1), width), per_line)


def _padded(kept: NDArray[Any] | None, count: int, value: int) -> Integers:
    """Return one number for each atom; atoms that were appended get `value`."""
    result = np.full(count, value, np.int64)
    if kept is not None:
        result[: len(kept)] = kept
    return result


def _unique(index: Integers) -> Integers:
    """Return entries without duplicates, in order: a PSF lists the atoms of a dihedral with several terms once."""
    if not len(index):
        return index
    # the same four atoms in reverse order are the same dihedral
    forward = index[:, [0, 3]].min(1) == index[:, 0]
    same = np.where(forward[:, None], index, index[:, ::-1])
    first = np.unique(same, axis=0, return_index=True)[1]
    return index[np.sort(first)]


def _exclusions(extra: dict[str, Any], count: int) -> tuple[Integers, Integers]:
    """Return pairs (M, 2), sorted by their first atom, and the running count of pairs up to each atom, (count,)."""
    pairs: Integers = extra.get("terms", {}).get("exclusions", np.zeros((0, 2), np.int64))
    last = np.cumsum(np.bincount(pairs[:, 0], minlength=count))
    return pairs[np.argsort(pairs[:, 0], kind="stable")], last


def _groups(extra: dict[str, Any], charges: Floats) -> Integers:
    """Return the first atom, the type and the move code of each group, (G, 3)."""
    count = len(charges)
    kept = extra.get("group")
    if kept is None:
        kept = np.zeros(count, np.int64)
        extra = {}
    group = _padded(kept, count, 0)
    kinds = _padded(extra.get("group_type"), count, 0)
    moves = _padded(extra.get("group_move"), count, 0)
    if len(kept) and kept.max() > 0:  # each appended atom is a group; type 2 means charged
        appended = np.arange(len(kept), count)
        group[appended] = kept.max() + 1 + np.arange(len(appended))
        kinds[appended] = np.where(np.abs(charges[appended]) > 1e-6, 2, 0)
    starts = np.flatnonzero(np.diff(group, prepend=-1) != 0)
    return np.stack([starts, kinds[starts], moves[starts]], axis=1)


def check(structure: Structure, path: Path) -> None:
    """Raise ChargeError for a structure without charges, and UsageError for one without bonds."""
    require_charges(structure, path)
    topology = structure.topology
    if topology is None or (topology.source != "psf" and not len(topology.bonds)):
        raise UsageError("", f"{path}: a PSF needs bonds, and the input has none",
                         "give a file that has them as {topology}, or write .pdb")


def check_ions(structure: Structure, templates: Mapping[str, Structure]) -> None:
    """Raise UsageError for polyatomic ions without bonds."""
    for name, ion in templates.items():
        if len(ion) > 1 and (ion.topology is None or not len(ion.topology.bonds)):
            raise UsageError("ion_template", "a PSF needs bonds, and the file of the ion has none",
                             "give a MOL2 that has them, or write .pdb", value=name)


WRITER = StructureWriter(write_psf, check, check_ions)
