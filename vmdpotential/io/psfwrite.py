"""Writing PSF files that CHARMM, NAMD, VMD and psfgen read, from any topology that has bonds.

Columns are those of CHARMM; a file is written in the extended format when a name, a residue number or the
number of atoms asks for it. Use it as :func:`vmdpotential.io.psf.write_psf`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError
from vmdpotential.io.text import write_bytes
from vmdpotential.molecule.structure import Floats, Integers, Names, Structure, Topology

#: The sections of index lists: (attribute, atoms in an entry, entries in a line, header).
_TERMS = (
    ("bonds", 2, 4, "NBOND: bonds"),
    ("angles", 3, 3, "NTHETA: angles"),
    ("dihedrals", 4, 2, "NPHI: dihedrals"),
    ("impropers", 4, 2, "NIMPHI: impropers"),
    ("donors", 2, 4, "NDON: donors"),
    ("acceptors", 2, 4, "NACC: acceptors"),
)

#: CHARMM's values where a fluctuating-charge file has no better ones.
_CHEQ_COLUMNS = ("0.00000", "-0.301140E-02")


def write_psf(structure: Structure, path: str | Path) -> None:
    """Write the topology of a structure as PSF; ``.gz`` compresses it, with the same bytes each time.

    What a PSF was read with is written again: title, flags, all terms, groups, lone pairs, further columns.
    Charges keep their sum: they are rounded to 6 decimals where that is exact, else to 9 or more, and the
    rounding never changes the net charge by more than one unit of the last decimal.

    Parameters
    ----------
    structure : Structure
        With charges and a topology from a PSF, prmtop, TPR or anything else that has bonds.
    path : str or Path

    Raises
    ------
    InputError
        When there is no topology, or a name is longer than a PSF holds.
    """
    topology = structure.topology
    where = structure.sources[0] if structure.sources else "structure"
    if topology is None:
        raise InputError(f"{where}: has no bonds, so no PSF can be written", "give a file that has them as {topology}")
    unknown = topology.extra.get("unknown", ())
    if unknown:
        raise InputError(
            f"{where}: its section !{unknown[0]} is not understood and would be lost", "write PDB or PQR instead"
        )
    if len(topology.types) != len(structure):
        raise InputError(f"{where}: topology of {len(topology.types)} atoms for {len(structure)} atoms")
    text = "\n".join(_lines(structure, topology, where)) + "\n"
    write_bytes(Path(path), [text.encode("latin-1", "replace")])


def _lines(structure: Structure, topology: Topology, where: str) -> list[str]:
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
    lines = ["PSF" + "".join(" " + flag for flag in flags), ""]
    title = [*(topology.title or [" REMARKS written by vmdpotential"]), *notes]
    lines += [f"{len(title):{width}d} !NTITLE", *title, "", f"{count:{width}d} !NATOM"]
    lines += _atom_lines(structure, topology, names, types, flags)
    lines.append("")
    for name, size, per_line, header in _TERMS:
        index = getattr(topology, name)
        if name in ("dihedrals", "impropers") and topology.source != "psf":
            index = _unique(index)
        lines += [f"{len(index):{width}d} !{header}", *_numbers(index + 1, size * per_line, width), ""]
    lines += _exclusion_lines(extra, count, width)
    lines += _group_lines(extra, structure.known_charges, width)
    if "MOLNT" in present or "CHEQ" in flags:
        molecule = _padded(extra.get("molecule"), count, 0)
        last = len(extra.get("molecule", ()))
        molecule[last:] = molecule[:last].max(initial=0) + 1 + np.arange(count - last)
        lines += [f"{molecule.max(initial=0):{width}d} !MOLNT", *_numbers(molecule, 8, width), ""]
    if "NUMLP" in present:
        lines += _lone_pair_lines(extra, width)
    if "NUMANISO" in present:
        index, values = extra["terms"]["anisotropies"], extra["term_values"]["anisotropies"]
        lines.append(f"{len(index):{width}d} !NUMANISO")
        lines += [" " * width + "".join(f"{value:>14s}" for value in row) for row in values]
        lines += [*_numbers(index + 1, 8, width), ""]
    if "CMAP" in flags or len(topology.cross_terms):
        index = topology.cross_terms
        lines += [f"{len(index):{width}d} !NCRTERM: cross-terms", *_numbers(index + 1, 8, width), ""]
    return lines


def _short_types(topology: Topology, structure: Structure) -> tuple[Names, list[str]]:
    """Return atom types of at most 6 letters, the widest a PSF holds, and title lines that explain new ones."""
    types = np.where(topology.types == "", structure.atom_names, topology.types)
    unique, inverse = np.unique(types, return_inverse=True)
    if "NAMD" in topology.flags or all(len(text) <= 6 for text in unique):
        return types, []
    ends = [text[-6:] for text in unique]
    if len(set(ends)) < len(ends):
        ends = [text if len(text) <= 6 else f"T{i + 1:05d}" for i, text in enumerate(unique)]
    notes = [
        f" REMARKS atom type {short} stands for {text}"
        for short, text in zip(ends, unique, strict=True) if short != text
    ]
    return np.array(ends)[inverse.reshape(-1)], notes


def _residue_numbers(structure: Structure) -> Names:
    assert structure.topology is not None
    text = structure.residue_ids.astype(str)
    if (structure.insertion_codes != "").any():
        text = np.char.add(text, structure.insertion_codes)
    kept = structure.topology.extra.get("resid")
    if kept is not None:
        text = text.astype(kept.dtype if kept.dtype > text.dtype else text.dtype)
        text[: len(kept)] = kept
    return text


def _flags(topology: Topology, names: Sequence[Names], types: Names, count: int) -> list[str]:
    """Return the words of the first line: those of the file read, and what the content needs."""
    flags = list(topology.flags)
    longest = max(_longest(text) for text in (*names, types))
    if "NAMD" not in flags and "EXT" not in flags and (longest > 4 or count > 99_999):
        flags.insert(0, "EXT")
    if len(topology.cross_terms) and "CMAP" not in flags:
        flags.insert(1 if flags[:1] == ["EXT"] else 0, "CMAP")
    numeric = all(text.isdigit() for text in np.unique(types))
    if ("EXT" in flags or topology.source != "psf") and not numeric and "XPLOR" not in flags and "NAMD" not in flags:
        flags.append("XPLOR")
    return flags


def _longest(text: Names) -> int:
    return int(np.char.str_len(text).max(initial=0))


def _check_names(structure: Structure, names: Sequence[Names], flags: list[str], where: str) -> None:
    limit = 10**6 if "NAMD" in flags else 8
    for text, what in zip(names, ("segment name", "residue number", "residue name", "atom name"), strict=True):
        long = np.char.str_len(text) > limit
        # a name with a blank, or without letters, would be read as two words, or as none
        bad = np.flatnonzero(long | (text == "") | (np.char.find(text, " ") >= 0))
        if len(bad):
            atom = int(bad[0])
            raise InputError(
                f"{where}: atom {atom + 1} ({structure.label(atom)}): {what} '{text[atom]}' does not fit a PSF",
                "use 1 to 8 letters without blanks"
            )


def _atom_lines(
    structure: Structure, topology: Topology, names: Sequence[Names], types: Names, flags: list[str]
) -> list[str]:
    count = len(structure)
    extended = "EXT" in flags
    numeric = not ("XPLOR" in flags or "NAMD" in flags) and all(text.isdigit() for text in np.unique(types))
    if extended:
        head = "%10d %-8s %-8s %-8s %-8s " + ("%4s " if numeric else "%-6s ")
    else:
        head = "%8d %-4s %-4s %-4s %-4s " + ("%4s " if numeric else "%-4s ")
    # 12 characters of the 14 in an extended file, because readers differ on where that field begins
    charges = _charge_texts(structure.known_charges, 12 if extended else 13)
    # the fourth decimal is CHARMM's; heavier or finer masses take more of the field's 14 characters
    fine = np.abs(np.round(topology.masses, 4) - topology.masses) > 1e-6
    masses = [("%12.6f" if more else "%10.4f  ") % mass for mass, more in zip(topology.masses, fine, strict=True)]
    move = _padded(topology.extra.get("move"), count, 0)
    columns: list[list[str]] = [
        *(text.tolist() for text in names), types.tolist(), charges, masses, [f"{code:10d}" for code in move.tolist()]
    ]
    body = head + "%-14s%s%s"
    kept = topology.extra.get("columns")
    if kept is not None or "CHEQ" in flags:
        width = 2 if kept is None else kept.shape[1]
        texts = np.empty((count, width), dtype="U14")
        texts[:] = _CHEQ_COLUMNS if width == 2 and "DRUDE" not in flags else "0.00000"
        if kept is not None:
            texts[: len(kept)] = kept
        columns.append(["".join(f" {text:>13s}" for text in row) for row in texts.tolist()])
        body += "%s"
    return [body % row for row in zip(range(1, count + 1), *columns, strict=True)]


def _charge_texts(charges: Floats, width: int) -> list[str]:
    """Return charges as text, 6 decimals where that is exact, and rounded so that their sum is kept."""
    digits = max(len(f"{charges.min(initial=0):.0f}"), len(f"{charges.max(initial=0):.0f}"))
    decimals = 6
    if np.abs(np.round(charges, 6) - charges).max(initial=0) > 1e-11:
        # two places for the point and for a rounding that adds a digit
        decimals = min(10, width - max(digits, 2) - 1)
    unit = 10.0**-decimals
    rounded = np.round(charges, decimals)
    error = charges - rounded
    surplus = round(float(error.sum()) / unit)
    if surplus:
        # the atoms whose own error is largest take up the difference, a unit of the last decimal each
        most = np.argsort(-error if surplus > 0 else error, kind="stable")[: abs(surplus)]
        rounded[most] += np.sign(surplus) * unit
    if decimals == 6:
        return [f"{charge:10.6f}" for charge in rounded.tolist()]
    return [f"{charge:{width}.{decimals}f}" for charge in rounded.tolist()]


def _numbers(index: Integers, per_line: int, width: int) -> list[str]:
    """Return lines of numbers in columns."""
    flat = index.reshape(-1).tolist()
    if not flat:
        return [""]
    whole = len(flat) // per_line * per_line
    line = f"%{width}d" * per_line
    lines = [line % tuple(flat[i : i + per_line]) for i in range(0, whole, per_line)]
    if whole < len(flat):
        lines.append(f"%{width}d" * (len(flat) - whole) % tuple(flat[whole:]))
    return lines


def _padded(kept: NDArray[Any] | None, count: int, value: int) -> Integers:
    """Return one number for each atom; atoms that were appended get `value`."""
    result = np.full(count, value, np.int64)
    if kept is not None:
        result[: len(kept)] = kept
    return result


def _unique(index: Integers) -> Integers:
    """Return the entries without repeats, in order: a PSF names four atoms once, whatever the number of terms."""
    if not len(index):
        return index
    # the same four atoms read backwards are the same dihedral
    forward = index[:, [0, 3]].min(1) == index[:, 0]
    same = np.where(forward[:, None], index, index[:, ::-1])
    first = np.unique(same, axis=0, return_index=True)[1]
    return index[np.sort(first)]


def _exclusion_lines(extra: dict[str, Any], count: int, width: int) -> list[str]:
    pairs = extra.get("terms", {}).get("exclusions", np.zeros((0, 2), np.int64))
    last = np.cumsum(np.bincount(pairs[:, 0], minlength=count))
    order = np.argsort(pairs[:, 0], kind="stable")
    lines = [f"{len(pairs):{width}d} !NNB", *_numbers(pairs[order, 1] + 1, 8, width)]
    if not len(pairs):
        last = np.zeros(count, np.int64)
    return [*lines, *_numbers(last, 8, width), ""]


def _group_lines(extra: dict[str, Any], charges: Floats, width: int) -> list[str]:
    count = len(charges)
    kept = extra.get("group")
    if kept is None:
        kept = np.zeros(count, np.int64)
        extra = {}
    group = _padded(kept, count, 0)
    kinds = _padded(extra.get("group_type"), count, 0)
    moves = _padded(extra.get("group_move"), count, 0)
    if len(kept) and kept.max() > 0:  # each appended atom is a group; 2 is CHARMM's code for a charged one
        appended = np.arange(len(kept), count)
        group[appended] = kept.max() + 1 + np.arange(len(appended))
        kinds[appended] = np.where(np.abs(charges[appended]) > 1e-6, 2, 0)
    starts = np.flatnonzero(np.diff(group, prepend=-1) != 0)
    rows = np.stack([starts, kinds[starts], moves[starts]], axis=1)
    header = f"{len(rows):{width}d}{extra.get('nst2', 0):{width}d} !NGRP NST2"
    return [header, *_numbers(rows, 9, width), ""]


def _lone_pair_lines(extra: dict[str, Any], width: int) -> list[str]:
    index, values = extra["terms"]["lone_pairs"], extra["term_values"]["lone_pairs"]
    sizes = (index >= 0).sum(1)
    first = np.cumsum(sizes) - sizes + 1
    hosts = index[index >= 0] + 1
    lines = [f"{len(index):{width}d}{len(hosts):{width}d} !NUMLP NUMLPH"]
    for size, start, row in zip(sizes.tolist(), first.tolist(), values.tolist(), strict=True):
        lines.append(f"{size - 1:{width}d}{start:{width}d}   {row[0]}" + "".join(f"{value:>14s}" for value in row[1:]))
    return [*lines, *(_numbers(hosts, 8, width) if len(hosts) else []), ""]
