"""Lennard-Jones parameters, exclusions and 1-4 pairs of an Amber or Chamber prmtop (ambermd.org/FileFormats.php)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import InputError
from vmdpotential.io.topologies.prmtop import Sections
from vmdpotential.molecule.nonbonded import Nonbonded, positions_of, unique_pairs

#: Amber's default divisors of the Coulomb and the Lennard-Jones energies of 1-4 pairs.
SCEE, SCNB = 1.2, 2.0
_HINT = "compute it with Amber"


def read_nonbonded(path: Path) -> Nonbonded:
    """Read the nonbonded parameters of a prmtop.

    Raises
    ------
    InputError
        When the file is damaged, or has other terms than Lennard-Jones (12-6-4, 10-12).
    """
    sections = Sections(path)
    pointers = sections.integers("POINTERS", None)
    if len(pointers) < 30 or pointers[:2].min() < 1:
        raise InputError(f"{sections.path}: section POINTERS is incomplete", "write it again")
    count, kinds = int(pointers[0]), int(pointers[1])
    if "LENNARD_JONES_CCOEF" in sections and sections.floats("LENNARD_JONES_CCOEF", kinds * (kinds + 1) // 2).any():
        raise InputError(f"{sections.path}: has 12-6-4 terms (LENNARD_JONES_CCOEF), which are not supported", _HINT)
    types = sections.integers("ATOM_TYPE_INDEX", count) - 1
    _check(sections, "ATOM_TYPE_INDEX", types, kinds)
    rows = _rows(sections, kinds, pointers)
    c12, c6 = _table(sections, "LENNARD_JONES", rows)
    exclusions = listed_exclusions(sections, count, int(pointers[10]))
    exclusions = unique_pairs(exclusions[exclusions[:, 1] >= 0], count)
    pairs, scee, scnb = _pairs14(sections, pointers, count)
    kind = "LENNARD_JONES_14" if "LENNARD_JONES_14_ACOEF" in sections else "LENNARD_JONES"
    c12_14, c6_14 = (table[types[pairs[:, 0]], types[pairs[:, 1]]] / scnb for table in _table(sections, kind, rows))
    if (positions_of(pairs, exclusions, count) < 0).any():
        exclusions = unique_pairs(np.concatenate([exclusions, pairs]), count)
    labels = sections.words("AMBER_ATOM_TYPE", count, blank=True)
    used, first = np.unique(types, return_index=True)
    names = dict(zip(used.tolist(), labels[first].tolist(), strict=True))
    return Nonbonded(
        source="prmtop", names=tuple(names.get(k) or f"type {k + 1}" for k in range(kinds)), types=types,
        c6=c6, c12=c12, exclusions=exclusions, pairs14=pairs, c6_14=c6_14, c12_14=c12_14, charges14=1 / scee,
    )


def _check(sections: Sections, name: str, index: Integers, count: int) -> None:
    """Raise InputError unless the indices of a section are from 0 to `count` - 1."""
    if len(index) and not (index.min() >= 0 and index.max() < count):
        line = sections.by_name[name].line
        raise InputError(f"{sections.path}: section {name} (line {line}) contains numbers other than 1 to {count}",
                         "write it again")


def _rows(sections: Sections, kinds: int, pointers: Integers) -> Integers:
    """Return the indices, (T, T), of the coefficients of two types in their list, -1 without coefficients."""
    rows = sections.integers("NONBONDED_PARM_INDEX", kinds**2).reshape(kinds, kinds)
    bonds = -rows[rows < 0] - 1
    if len(bonds):  # 10-12 terms, which are still present but 0 since the force field of 1994
        for name in ("HBOND_ACOEF", "HBOND_BCOEF"):
            values = sections.floats(name, int(pointers[19]))
            _check(sections, "NONBONDED_PARM_INDEX", bonds, len(values))
            if values[bonds].any():
                raise InputError(f"{sections.path}: has 10-12 terms ({name}), which are not supported", _HINT)
    rows = np.where(rows < 0, 0, rows)
    _check(sections, "NONBONDED_PARM_INDEX", rows, kinds * (kinds + 1) // 2 + 1)
    return rows - 1


def _table(sections: Sections, kind: str, rows: Integers) -> tuple[Floats, Floats]:
    """Return c12 and c6 of all pairs of types, (T, T)."""
    result = []
    for name in (f"{kind}_ACOEF", f"{kind}_BCOEF"):
        values = sections.floats(name, len(rows) * (len(rows) + 1) // 2)
        if not np.isfinite(values).all():
            raise InputError(
                f"{sections.path}: section {name} (line {sections.by_name[name].line}) contains no numbers")
        table = np.append(values, 0.0)[rows]  # index -1 gives the appended 0
        result.append((table + table.T) / 2)
    return result[0], result[1]


def listed_exclusions(sections: Sections, count: int, entries: int) -> Integers:
    """Return atom and partner of each entry (E, 2) of the list of excluded atoms; atoms without any have partner -1.

    Raises
    ------
    InputError
        When the list disagrees with its counts, or has atoms that do not exist.
    """
    sizes = sections.integers("NUMBER_EXCLUDED_ATOMS", count)
    partners = sections.integers("EXCLUDED_ATOMS_LIST", entries)
    if (sizes < 0).any() or sizes.sum() != entries:
        line = sections.by_name["NUMBER_EXCLUDED_ATOMS"].line
        raise InputError(f"{sections.path}: section NUMBER_EXCLUDED_ATOMS (line {line}) disagrees with the list of "
                         f"{entries} excluded atoms", "write it again")
    _check(sections, "EXCLUDED_ATOMS_LIST", partners, count + 1)
    return np.stack([np.repeat(np.arange(count), sizes), partners - 1], axis=1)


def _pairs14(sections: Sections, pointers: Integers, count: int) -> tuple[Integers, Floats, Floats]:
    """Return the 1-4 pairs (P, 2), and the divisors of their Coulomb and Lennard-Jones energies."""
    rows = np.concatenate([
        sections.integers(f"DIHEDRALS_{name}_HYDROGEN", 5 * int(entries)).reshape(-1, 5)
        for name, entries in (("INC", pointers[6]), ("WITHOUT", pointers[14]))
    ])
    # negative atoms mean that there is no 1-4 pair (rings, further terms of a dihedral), or an improper
    rows = rows[(rows[:, 2] >= 0) & (rows[:, 3] >= 0)]
    pairs, kind = rows[:, [0, 3]] // 3, rows[:, 4] - 1
    number = int(pointers[17])
    for name, index, most in (("DIHEDRALS", pairs, count), ("DIHEDRALS", kind, number)):
        if index.size and not (index.min() >= 0 and index.max() < most):
            raise InputError(f"{sections.path}: the sections {name} list atoms or types that do not exist")
    scales = []
    for name, default in (("SCEE_SCALE_FACTOR", SCEE), ("SCNB_SCALE_FACTOR", SCNB)):
        values = sections.floats(name, number)[kind] if name in sections else np.full(len(pairs), default)
        if not (values > 0).all():
            raise InputError(f"{sections.path}: section {name} holds a factor of 1-4 pairs that is not positive")
        scales.append(values)
    return np.sort(pairs, axis=1), scales[0], scales[1]
