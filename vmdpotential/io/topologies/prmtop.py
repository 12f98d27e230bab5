"""Amber topologies (prmtop, parm7), including those that Chamber makes of CHARMM's.

Format: ambermd.org/FileFormats.php.
"""

from __future__ import annotations

import functools
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, registry
from vmdpotential.errors import InputError
from vmdpotential.io.files.text import buffered_stream, read_text
from vmdpotential.io.mdanalysis import cell_of
from vmdpotential.molecule import elements
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.nonbonded import LazyNonbonded, Nonbonded
from vmdpotential.molecule.structure import Floats, Integers, Names, Structure, Topology

log = logging.getLogger(__name__)

#: Most bytes of memory for each byte and for each line of a file (measured).
_MEMORY = (20.0, 100.0)
#: Square roots of Coulomb's constant in kcal/mol A/e^2, of Amber and of CHARMM, by which charges are multiplied.
AMBER_CHARGE = 18.2223
CHAMBER_CHARGE = float(np.sqrt(332.0716))

#: Most characters of a line according to a section's format; Amber's lines have 80.
_LONGEST = 1000

#: Section of the polarizable AMOEBA force field, whose multipoles cannot be represented by charges.
_AMOEBA = "AMOEBA_FORCEFIELD"


@dataclass
class _Section:
    line: int
    format: str
    body: bytes


class Sections:
    """The %FLAG sections of a prmtop by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        data = read_text(path, *_MEMORY)
        if not re.search(rb"^%FLAG", data[:4096], re.MULTILINE):
            raise InputError(
                f"{path}: is not a prmtop with %FLAG sections", "convert files older than Amber 7 first"
            )
        self.by_name: dict[str, _Section] = {}
        starts = [match.start() for match in re.finditer(rb"^%FLAG", data, re.MULTILINE)]
        line = data.count(b"\n", 0, starts[0]) + 1
        for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
            part = data[start:end]
            match = re.match(rb"%FLAG\s+(\S+)[^\n]*\n(?:%COMMENT[^\n]*\n)*%FORMAT\s*\(([^\n]*)\)[^\n]*\n", part)
            if match:
                name, form = match[1].decode("latin-1"), match[2].decode("latin-1")
                self.by_name[name] = _Section(line, form, part[match.end() :])
            else:
                name = part[5:40].split(b"\n")[0].decode("latin-1").strip()
                raise InputError(f"{path}: line {line}: section {name} has no %FORMAT line; the file is damaged")
            line += part.count(b"\n")

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def words(self, name: str, count: int, blank: bool = False) -> Names:
        """Return `count` texts of fixed width, stripped, which may be empty if `blank`."""
        fields = self.fields(name, count)
        width = fields.dtype.itemsize
        names = np.frombuffer(fields.tobytes(), np.uint8).astype(np.uint32).view(f"U{width}")
        names = np.char.strip(names)
        if not blank and (names == "").any():
            self._wrong(name, int(np.argmax(names == "")), count)
        return names

    def fields(self, name: str, count: int) -> NDArray[np.bytes_]:
        """Return `count` values as text of their columns."""
        section = self._section(name)
        per_line, width = self.layout(name)
        lines = [line for line in section.body.split(b"\n") if line]
        needed = -(-count // per_line)
        if len(lines) < needed:
            self._wrong(name, len(lines) * per_line, count)
        full = per_line * width
        memory.require(6 * needed * full, f"reading {self.path}", "correct its formats")  # short lines are padded
        text = b"".join(line.ljust(full)[:full] for line in lines[:needed])
        return np.frombuffer(text[: count * width], f"S{width}")

    def integers(self, name: str, count: int | None) -> Integers:
        """Return `count` whole numbers, or all of the section if `count` is None."""
        return self._numbers(name, count, np.int64)

    def floats(self, name: str, count: int) -> Floats:
        """Return `count` numbers."""
        return self._numbers(name, count, np.float64)

    def _numbers(self, name: str, count: int | None, dtype: type) -> NDArray[Any]:
        section = self._section(name)
        words = section.body.split()
        count = len(words) if count is None else count
        if len(words) != count:
            # large numbers fill their columns, without blanks in between
            _, width = self.layout(name)
            words = [line[i : i + width] for line in section.body.split(b"\n") for i in range(0, len(line), width)]
            words = [word for word in words if word.strip()]
        if len(words) != count:
            self._wrong(name, len(words), count)
        try:
            if b"_" in section.body:  # numpy takes 1_0 for 10
                raise ValueError
            return np.array(words, dtype="S").astype(dtype) if count else np.zeros(0, dtype)
        except (ValueError, OverflowError):
            raise InputError(
                f"{self.path}: section {name} (line {section.line}) contains text that is not a number"
            ) from None

    def _section(self, name: str) -> _Section:
        if name not in self.by_name:
            raise InputError(f"{self.path}: has no section {name}; the file is truncated or damaged", "write it again")
        return self.by_name[name]

    def layout(self, name: str) -> tuple[int, int]:
        """Return the number of values on a line of a section, and their width: 20 and 4 for ``20a4``."""
        section = self._section(name)
        match = re.match(r"([0-9]{0,4})[a-zA-Z]+([0-9]{1,4})(?![0-9])", section.format.strip())
        numbers = (0, 0) if match is None else (int(match[1] or 1), int(match[2]))
        if not 0 < numbers[0] * numbers[1] <= _LONGEST:
            raise InputError(
                f"{self.path}: section {name} (line {section.line}) has the unknown format ({section.format[:40]})"
            )
        return numbers

    def _wrong(self, name: str, present: int, count: int) -> None:
        raise InputError(
            f"{self.path}: section {name} (line {self.by_name[name].line}) contains {present} values instead of "
            f"{count}; the file is truncated or its counts are wrong", "write it again"
        )


def read_prmtop(path: str | Path) -> Structure:
    """Read an Amber topology, plain or compressed.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Structure
        Positions are zero, as a prmtop has none. The cell is that of ``BOX_DIMENSIONS``, if present; the box of the
        coordinate file is more reliable. Impropers are Amber's (negative fourth atom) or CHARMM's.

    Raises
    ------
    InputError
        When the file is not a prmtop, lacks a section, is truncated, or is for the AMOEBA force field.
    """
    path = buffered_stream(path)
    sections = Sections(path)
    if _AMOEBA in sections:
        raise InputError(f"{path}: is for the AMOEBA force field, which has no fixed atomic charges")
    pointers = sections.integers("POINTERS", None)
    if len(pointers) < 30 or pointers[0] < 1 or (pointers[:15] < 0).any() or (pointers >= 2**31).any():
        raise InputError(
            f"{path}: section POINTERS is incomplete or negative, or too large; the file is damaged", "write it again")
    count, residues = int(pointers[0]), int(pointers[11])
    names = sections.words("ATOM_NAME", count)
    chamber = "CTITLE" in sections
    charges = _decimals(sections.floats("CHARGE", count) / (CHAMBER_CHARGE if chamber else AMBER_CHARGE))
    masses = sections.floats("MASS", count)
    if not ((masses >= 0) & np.isfinite(masses)).all():
        raise InputError(f"{path}: section MASS (line {sections.by_name['MASS'].line}) contains impossible masses")
    types = sections.words("AMBER_ATOM_TYPE", count, blank=True)
    starts = sections.integers("RESIDUE_POINTER", residues) - 1
    if not residues or starts[0] != 0 or (np.diff(starts) <= 0).any() or starts[-1] >= count:
        raise InputError(f"{path}: section RESIDUE_POINTER does not divide the {count} atoms; the file is damaged")
    residue = np.repeat(np.arange(residues), np.diff(starts, append=count))
    labels = sections.words("RESIDUE_LABEL", residues)[residue]
    topology = _terms(sections, pointers, types, masses)
    return Structure(
        positions=np.zeros((count, 3)), atom_names=names, residue_names=labels, residue_index=residue,
        charges=charges, elements=_elements(sections, count, names, labels), cell=_box(sections, pointers),
        topology=topology, title=" ".join(topology.title), sources=(str(path),),
        radii=sections.floats("RADII", count) if "RADII" in sections else None,
        **_residue_labels(sections, residue, residues),
    )


def _decimals(charges: Floats) -> Floats:
    """Return charges rounded to 6 decimals where that agrees with the 9 digits of the file.

    The charges of a molecule then sum to the value in its force field, instead of being off by 1e-8 e.
    """
    short = np.round(charges, 6)
    return np.where(np.abs(charges - short) < 3e-9, short, charges)


def _terms(sections: Sections, pointers: Integers, types: Names, masses: Floats) -> Topology:
    path, count = sections.path, len(types)

    def listed(name: str, entries: int, size: int, stored: bool = True) -> Integers:
        """Return the atoms (signed, 1-based) of a section; `stored` ones are 3 times a 0-based index."""
        if not 0 <= entries < 2**31:
            raise InputError(f"{path}: section {name}: {entries} entries are impossible; the file is damaged")
        rows = sections.integers(name, entries * (size + 1)).reshape(-1, size + 1)[:, :size]
        # the sign is a flag, which 0 cannot have: therefore Amber never lists its first atom third or fourth
        atoms = np.where(rows < 0, -1, 1) * (np.abs(rows) // 3 + 1) if stored else rows
        bad = np.flatnonzero(((atoms > count) | (atoms < -count) | (atoms == 0)).any(1))
        if len(bad):
            raise InputError(
                f"{path}: section {name} (line {sections.by_name[name].line}): entry {bad[0] + 1} lists atom "
                f"{np.abs(atoms[bad[0]]).max()}, but there are {count} atoms"
            )
        return atoms

    bonds, angles, torsions = (np.concatenate([
        listed(f"{name}_INC_HYDROGEN", pointers[with_hydrogen], size),
        listed(f"{name}_WITHOUT_HYDROGEN", pointers[without], size),
    ]) for name, with_hydrogen, without, size in (("BONDS", 2, 12, 2), ("ANGLES", 4, 13, 3), ("DIHEDRALS", 6, 14, 4)))
    improper = torsions[:, 3] < 0
    impropers = np.abs(torsions[improper])
    if "CHARMM_NUM_IMPROPERS" in sections:
        number = int(sections.integers("CHARMM_NUM_IMPROPERS", 1)[0])
        impropers = np.concatenate([impropers, listed("CHARMM_IMPROPERS", number, 4, stored=False)])
    cross_terms = np.zeros((0, 8), np.int64)
    for prefix in ("CHARMM_CMAP", "CMAP"):
        if f"{prefix}_COUNT" in sections:
            number = int(sections.integers(f"{prefix}_COUNT", 2)[0])
            # the five consecutive atoms of a cross-term define two dihedrals
            cross_terms = listed(f"{prefix}_INDEX", number, 5, stored=False)[:, [0, 1, 2, 3, 1, 2, 3, 4]]
            break
    title = sections.by_name.get("TITLE", sections.by_name.get("CTITLE"))
    text = title.body.decode("latin-1").strip() if title else ""
    return Topology(
        source="prmtop", types=types, masses=masses, bonds=np.abs(bonds) - 1, angles=np.abs(angles) - 1,
        dihedrals=np.abs(torsions[~improper]) - 1, impropers=impropers - 1, cross_terms=cross_terms - 1,
        title=tuple(f" REMARKS {line.rstrip()}" for line in text.split("\n")) if text else (),
        nonbonded=LazyNonbonded(functools.partial(_nonbonded, path)),
        extra={"file": path, "rows": np.arange(count), "chamber": "CTITLE" in sections},
    )


def _nonbonded(path: Path) -> Nonbonded:
    return registry.get("parameter_reader", "prmtop")(path)  # type: ignore[no-any-return]


def _elements(sections: Sections, count: int, names: Names, labels: Names) -> Names:
    if "ATOMIC_NUMBER" not in sections:
        return elements.guess_all(names, labels)
    import gemmi

    numbers, inverse = np.unique(sections.integers("ATOMIC_NUMBER", count), return_inverse=True)
    symbols = np.array([gemmi.Element(int(number)).name if 0 < number < 119 else "" for number in numbers])
    # -1 means "unknown", 0 for a site without an element
    result = symbols[inverse.reshape(-1)]
    unknown = np.flatnonzero(numbers[inverse.reshape(-1)] < 0)
    if len(unknown):
        result = result.astype("<U2")
        result[unknown] = elements.guess_all(names[unknown], labels[unknown])
    return result


def _residue_labels(sections: Sections, residue: Integers, residues: int) -> dict[str, Any]:
    """Return residue numbers, and chains and insertion codes if the file has them."""
    numbers = np.arange(1, residues + 1)
    result: dict[str, Any] = {}
    if "RESIDUE_NUMBER" in sections:
        numbers = sections.integers("RESIDUE_NUMBER", residues)
        if (np.abs(numbers) >= 2**31).any():
            line = sections.by_name["RESIDUE_NUMBER"].line
            raise InputError(f"{sections.path}: section RESIDUE_NUMBER (line {line}) "
                             "holds numbers that are too large")
    if "RESIDUE_CHAINID" in sections:
        chains = sections.words("RESIDUE_CHAINID", residues)
        result["chain_ids"] = np.where(chains == "*", "", chains)[residue]
    if "RESIDUE_ICODE" in sections:
        result["insertion_codes"] = sections.words("RESIDUE_ICODE", residues, blank=True)[residue]
    return {"residue_ids": numbers[residue], **result}


def _box(sections: Sections, pointers: Integers) -> Cell | None:
    if not pointers[27] or "BOX_DIMENSIONS" not in sections:
        return None
    beta, a, b, c = sections.floats("BOX_DIMENSIONS", 4)
    return cell_of((a, b, c, beta, beta, beta), sections.path)
