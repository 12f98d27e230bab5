"""Gasteiger charges for molecules of SDF and MOL2 files without charges, from bonds and formal charges.

SDF files have the connection table of the CTfile formats (V2000 or V3000). MOL2 files have no formal charges; these
follow from the valences, so all hydrogens must be present.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from vmdpotential.errors import InputError
from vmdpotential.io.files.numbers import parse_real
from vmdpotential.molecule.gasteiger import AROMATIC_DOUBLE, DOUBLE_BOND, SINGLE_BOND, TRIPLE_BOND, gasteiger_charges
from vmdpotential.molecule.user_charges import MoleculeOfFile

#: Names and charges (e) of a molecule's atoms.
Charged = list[tuple[str, float]]
_ORDERS = {"1": SINGLE_BOND, "2": DOUBLE_BOND, "3": TRIPLE_BOND, "4": AROMATIC_DOUBLE, "ar": AROMATIC_DOUBLE,
           "am": SINGLE_BOND}
_VALENCE = {SINGLE_BOND: 1.0, DOUBLE_BOND: 2.0, TRIPLE_BOND: 3.0, AROMATIC_DOUBLE: 1.5}
#: Formal charges by their codes in the atom block of an SDF.
_CODES = {"1": 3, "2": 2, "3": 1, "5": -1, "6": -2, "7": -3}
#: Valences of neutral atoms; an atom with another valence is charged.
_BONDS = {"H": (1,), "C": (4,), "N": (3,), "O": (2,), "F": (1,), "Cl": (1,), "Br": (1,), "I": (1,), "S": (2, 4, 6),
          "P": (3, 5), "B": (3,), "Si": (4,)}


def of_bonds(molecule: MoleculeOfFile, where: str) -> Charged:
    """Return names and Gasteiger charges of a molecule.

    Raises
    ------
    InputError
        When an element has no parameters.
    """
    names, elements = molecule.names, molecule.elements
    charges = gasteiger_charges(np.array(elements, "<U2"), np.array(molecule.formal, np.int64),
                        np.array(molecule.bonds, np.int64).reshape(-1, 3))
    bad = np.flatnonzero(~np.isfinite(charges))
    if len(bad):
        raise InputError(f"{where}: states no charge of the atom {names[bad[0]]}, and Gasteiger's method has no "
                         f"parameters for {elements[bad[0]]}", "give its charges in the file")
    return list(zip(names, charges.tolist(), strict=True))


def valence_charges(elements: Sequence[str], bonds: Sequence[tuple[int, int, int]]) -> list[int]:
    """Return the formal charge of every atom, from its bonds."""
    total = [0.0] * len(elements)
    for a, b, order in bonds:
        total[a] += _VALENCE[order]
        total[b] += _VALENCE[order]
    result = []
    for element, valence in zip(elements, total, strict=True):
        usual = _BONDS.get(element, (round(valence),))
        nearest = min(usual, key=lambda bonds: abs(bonds - valence))
        result.append(int(np.ceil(valence - nearest - 0.25)) if element in ("N", "O", "P", "S") else 0)
    return result


def order_of(word: str, where: str) -> int:
    """Return the code of a bond order; raises InputError for an unknown one."""
    if word not in _ORDERS:
        raise InputError(f"{where}: '{word[:20]}' is not a bond order")
    return _ORDERS[word]


def read_sdf(lines: Sequence[str], where: str) -> Iterator[tuple[str, MoleculeOfFile]]:
    """Yield name and data of every molecule of an SDF; atoms are named by element and number (C1, C2, N1).

    Raises
    ------
    InputError
        When a table is incomplete, or of another version; the message gives the line.
    """
    start = 0
    while start < len(lines) and any(line.strip() for line in lines[start:]):
        end = next((n for n in range(start, len(lines)) if lines[n].startswith("$$$$")), len(lines))
        yield _molecule(lines[start:end], f"{where}: line {start + 1}")
        start = end + 1


def _molecule(lines: Sequence[str], where: str) -> tuple[str, MoleculeOfFile]:
    if len(lines) < 4:
        raise InputError(f"{where}: is not the start of an SDF molecule")
    title = (lines[0].split() or ["LIG"])[0]
    try:
        if "V3000" in lines[3]:
            return title, _named(*_extended(lines[4:], where))
        atoms, links = int(lines[3][:3]), int(lines[3][3:6])
        table, rest = lines[4 : 4 + atoms], lines[4 + atoms : 4 + atoms + links]
        elements = [line[31:34].strip().capitalize() for line in table]
        for line in table:
            parse_real(line[:10])
        formal = [_CODES.get(line[36:39].strip(), 0) for line in table]
        bonds = [(int(line[:3]) - 1, int(line[3:6]) - 1, order_of(line[6:9].strip(), where)) for line in rest]
        changes = [line.split()[3:] for line in lines[4 + atoms + links :] if line.startswith("M  CHG")]
        if changes:
            formal = [0] * atoms
            for words in changes:
                for atom, charge in zip(words[::2], words[1::2], strict=True):
                    formal[int(atom) - 1] = int(charge)
        if len(table) < atoms or len(rest) < links or not all(0 <= k < atoms for bond in bonds for k in bond[:2]):
            raise ValueError
    except (ValueError, IndexError, KeyError):
        raise InputError(f"{where}: the table of atoms and bonds is incomplete") from None
    return title, _named(elements, formal, bonds)


def _extended(lines: Sequence[str], where: str) -> tuple[list[str], list[int], list[tuple[int, int, int]]]:
    """Return elements, formal charges and bonds of a table in the format V3000; raises ValueError if it is incomplete.
    """
    text = "\n".join(line[6:] for line in lines if line.startswith("M  V30")).replace("-\n", "")
    rows: dict[str, list[list[str]]] = {}
    block = ""
    for line in text.split("\n"):
        words = line.split()
        if words[:1] == ["BEGIN"]:
            block = words[1]
        elif words:
            rows.setdefault(block if words[0] != "COUNTS" else "COUNTS", []).append(words)
    counts, atoms, links = rows["COUNTS"][0], rows.get("ATOM", []), rows.get("BOND", [])
    atoms, links = ([words for words in table if words[0] != "END"] for table in (atoms, links))
    if len(atoms) != int(counts[1]) or len(links) != int(counts[2]):
        raise ValueError
    row = {words[0]: n for n, words in enumerate(atoms)}
    charges = [next((word[4:] for word in words[5:] if word.startswith("CHG=")), "0") for words in atoms]
    for words in atoms:
        parse_real(words[2])
    return ([words[1].capitalize() for words in atoms], list(map(int, charges)),
            [(row[words[2]], row[words[3]], order_of(words[1], where)) for words in links])


def _named(elements: Sequence[str], formal: Sequence[int], bonds: Sequence[tuple[int, int, int]]) -> MoleculeOfFile:
    """Return a molecule whose atoms are named by element and number."""
    numbers: Counter[str] = Counter()
    names = []
    for element in elements:
        numbers[element] += 1
        names.append(f"{element.upper()}{numbers[element]}")
    return MoleculeOfFile(tuple(names), tuple(elements), tuple(formal), tuple(bonds))
