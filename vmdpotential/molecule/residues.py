"""Boundaries of residues, unambiguous residue numbers, and the choice among alternate locations."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.molecule.elements import POLYMER_RESIDUES
from vmdpotential.molecule.names import ION_RESIDUES, WATER_RESIDUES, in_table, unique_names
from vmdpotential.molecule.structure import Floats, Integers, Names

Mask = NDArray[np.bool_]
log = logging.getLogger(__name__)


#: Distance that two atoms of different residues have at least, A: nearer ones are of two conformers of one residue.
_SEPARATE = 0.9
#: Number of atoms of a residue that no table has, so that it is recognised where its names begin again.
_SEVERAL = 3


def changes(*columns: NDArray[Any]) -> Mask:
    """Return a mask (N,) of the first row, and of those that differ from the preceding one in some column."""
    result = np.ones(len(columns[0]), bool)
    result[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return result


def starts(changed: Mask, residue_names: Names, names: Names | NDArray[Any], unnumbered: Mask | None = None,
           positions: Floats | None = None) -> Integers:
    """Return the first atom of every residue.

    Parameters
    ----------
    changed : (N,) bool
        Whether residue name, number, insertion code, chain or segment differ from those of the preceding atom.
    residue_names : (N,) str
    names : (N,) str or uint64
        Atom names (with their alternate locations), which may be encoded as numbers.
    unnumbered : (N,) bool, optional
        Whether the residue number did not fit into its columns (``****``).
    positions : (N, 3) float64, A, optional
        Positions of the atoms.

    Notes
    -----
    Consecutive waters, ions or residues without a number may have the same number. They are separated by the name of
    their first atom: where it occurs again, the next residue begins. With positions, other residues are separated as
    well, if no name occurs twice in one of the parts, and no two parts are in the same place.
    """
    codes: NDArray[Any] = names if names.dtype.kind == "u" else unique_names(names)[1].astype(np.uint64)
    changed = changed.copy()
    changed[:1] = True
    first = np.flatnonzero(changed)
    run = np.cumsum(changed) - 1
    splits = in_table(residue_names[first], WATER_RESIDUES | ION_RESIDUES.keys())
    if unnumbered is not None:
        splits = splits | unnumbered[first]
    again = codes == codes[first][run]
    again[first] = False
    others = np.unique(run[again & ~splits[run]])
    again &= splits[run]
    if positions is not None:
        ends = np.append(first, len(names))
        several = np.where(in_table(residue_names[first[others]], POLYMER_RESIDUES), 1, _SEVERAL)
        for number, least in zip(others.tolist(), several.tolist(), strict=True):
            part = slice(ends[number], ends[number + 1])
            again[part] = _repeats(codes[part], positions[part], least)
    return np.flatnonzero(changed | again)


def _repeats(names: NDArray[np.uint64], positions: Floats, least: int) -> Mask:
    """Return a mask of the atoms of a run with which a residue like the first begins; of none if they are one residue.

    Each residue has at least `least` atoms.
    """
    begins = names == names[0]
    part = np.cumsum(begins)
    if len(np.unique(np.stack([part.astype(np.uint64), names]), axis=1).T) < len(names) or np.bincount(part)[1:].min(
            ) < least:
        return np.zeros(len(names), bool)
    from scipy.spatial import cKDTree

    pairs = cKDTree(positions).query_pairs(_SEPARATE, output_type="ndarray")
    apart = bool((part[pairs[:, 0]] == part[pairs[:, 1]]).all())
    return begins if apart else np.zeros(len(names), bool)


def boundaries(numbered: Mask, residue_names: Names, kept: Mask) -> Mask:
    """Return whether each of the kept atoms differs in number, chain or name from the one before.

    Parameters
    ----------
    numbered : (N,) bool
        As `changed` of :func:`alternates`.
    residue_names : (N,) str
    kept : (N,) bool
        Mask of the atoms that are kept of alternate locations, whose residues may alternate atom by atom.
    """
    run, names = np.cumsum(numbered)[kept], residue_names[kept]
    return np.append(True, (run[1:] != run[:-1]) | (names[1:] != names[:-1]))[: len(run)]


def index(first: Integers, count: int) -> Integers:
    """Return the residue index of every atom, (count,), from the first atoms of the residues."""
    return np.repeat(np.arange(len(first)), np.diff(np.append(first, count)))


def alternates(locations: Names, names: Names, occupancies: Floats, changed: Mask) -> Mask:
    """Return a mask of the atoms to keep where a file lists alternate locations.

    In every residue the location with the largest sum of occupancies is kept, and the first of equals; atoms without
    a location are always kept. So one whole conformer remains, not a mixture of several.

    Parameters
    ----------
    locations, names : (N,) str
    occupancies : (N,) float64
    changed : (N,) bool
        Whether residue number, insertion code, chain or segment differ from those of the preceding atom (a change of
        the residue name alone may be an alternate residue).
    """
    keep = np.ones(len(names), bool)
    changed = changed.copy()
    changed[:1] = True
    group = np.cumsum(changed) - 1
    marked = np.flatnonzero(locations != "")
    first = np.append(np.flatnonzero(changed), len(names))
    for g in np.unique(group[marked]):
        atoms = np.arange(first[g], first[g + 1])
        letters = locations[atoms]
        total: dict[str, float] = {}
        for letter, occupancy in zip(letters.tolist(), occupancies[atoms].tolist(), strict=True):
            if letter:
                total[letter] = total.get(letter, 0.0) + occupancy
        chosen = max(total, key=lambda letter: total[letter])  # max takes the first of equals
        keep[atoms] = (letters == "") | (letters == chosen)
        # of an atom listed both with and without a location, the one with the higher occupancy is kept
        _keep_one(keep, atoms[keep[atoms]], names, locations, occupancies)
    return keep


def chosen_conformers(where: object, locations: Names, names: Names, residue_names: Names, occupancies: Floats,
                      numbered: Mask) -> tuple[Mask | slice, Mask]:
    """Return the atoms of a file to keep, see :func:`alternates`, and which of them begin a residue; log the others."""
    kept = alternates(locations, names, occupancies, numbered)
    changed = boundaries(numbered, residue_names, kept)
    if kept.all():
        return slice(None), changed
    log.warning("%s: %d atoms of alternate locations are left out", where, int((~kept).sum()))
    return kept, changed


def _keep_one(keep: Mask, atoms: Integers, names: Names, locations: Names, occupancies: Floats) -> None:
    seen: dict[str, int] = {}
    for atom in atoms.tolist():
        name = str(names[atom])
        other = seen.setdefault(name, atom)
        if other != atom and locations[other] != locations[atom]:
            worse = atom if occupancies[atom] <= occupancies[other] else other
            keep[worse] = False
            seen[name] = atom if worse == other else other


def distinct_numbers(keys: Sequence[NDArray[np.generic]], numbers: Integers) -> tuple[Integers, bool]:
    """Return residue numbers that distinguish every residue from the next, and whether they had to be changed.

    Parameters
    ----------
    keys : sequence of (R,) arrays
        Other identifiers of residues (name, insertion code, chain, segment).
    numbers : (R,) int64
        Residue numbers. They are kept, unless two neighbours agree in all identifiers; then residues are numbered
        from 1.
    """
    same = numbers[1:] == numbers[:-1]
    for key in keys:
        same = same & (key[1:] == key[:-1])
    if same.any():
        return np.arange(1, len(numbers) + 1), True
    return numbers, False


def unique_numbers(chains: Names, codes: Names, numbers: Integers) -> tuple[Integers, bool]:
    """Return residue numbers that no two residues of a chain share, and whether some had to be changed.

    In a chain with duplicate numbers, a new part begins where the number decreases (it wrapped, or another molecule
    begins), or where a neighbour has the same number and code. A part that would repeat earlier numbers continues from
    the largest of them; the other numbers are kept.

    Parameters
    ----------
    chains, codes : (R,) str
        Chain and insertion code of every residue.
    numbers : (R,) int64
    """
    result = numbers.copy()
    different, code = unique_names(codes)
    _, chain = unique_names(chains)
    order = np.argsort(chain, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(chain[order])) + 1):
        own = numbers[rows]
        keys = own * len(different) + code[rows]
        if len(np.unique(keys)) == len(keys):
            continue
        # parts in which the numbers do not decrease, and no number with its code occurs twice in succession
        begins = np.ones(len(rows), bool)
        runs = np.cumsum(np.diff(own, prepend=own[0]) != 0)
        begins[np.unique(runs * len(different) + code[rows], return_index=True)[1]] = False
        begins[1:] |= own[1:] < own[:-1]
        parts = np.split(np.arange(len(rows)), np.flatnonzero(begins))
        largest = None
        for part in parts:
            low, high = int(own[part[0]]), int(own[part[-1]])
            shift = 0 if largest is None or low > largest else largest + 1 - low
            result[rows[part]] += shift
            largest = high + shift
    return result, bool((result != numbers).any())


def parts(groups: Integers, keys: Sequence[Integers], numbers: Integers) -> Integers:
    """Return the number (R,) of each residue's part of its group; no two residues of a part have equal identifiers.

    Parameters
    ----------
    groups : (R,) int64
        Chain and segment, encoded as one number.
    keys : sequence of (R,) int64
        Other identifiers of residues.
    numbers : (R,) int64
        Residue numbers.
    """
    code = numbers - numbers.min()
    for key in (*keys, groups):
        code = code * (int(key.max()) + 1) + key
    result = np.zeros(len(code), np.int64)
    if len(np.unique(code)) == len(code):
        return result
    part = [0] * (int(groups.max()) + 1)
    seen: list[set[int]] = [set() for _ in part]
    for row, (group, value) in enumerate(zip(groups.tolist(), code.tolist(), strict=True)):
        if value in seen[group]:
            part[group] += 1
            seen[group].clear()
        seen[group].add(value)
        result[row] = part[group]
    return result


def continued(segments: Names, part: Integers) -> Names:
    """Return segment names (R,) that distinguish parts: from the second on, each gets a new one of up to 4 letters."""
    taken = set(np.unique(segments).tolist())
    result = segments.astype("<U4")
    for number in range(1, int(part.max()) + 1):
        rows = np.flatnonzero(part == number)
        for name in np.unique(segments[rows]).tolist():
            names = (f"{name[: 4 - len(str(n))]}{n}" for n in range(number + 1, 10000))
            free = next(new for new in names if new not in taken)
            taken.add(free)
            result[rows[segments[rows] == name]] = free
    return result
