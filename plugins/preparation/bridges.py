"""Backbone atoms between consecutive residues of a chain: those that the file lacks, and bonds of unusual length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from vmdpotential.molecule.structure import Floats

from .draft import UNUSUAL_NOTE, Draft

#: Bond lengths, A, and angles, degrees, of the protein backbone (R. A. Engh, R. Huber, Acta Cryst. A47, 1991, 392).
C_N, N_CA, CA_C, C_O, CA_CA = 1.329, 1.458, 1.525, 1.231, 3.8
CA_C_N, C_N_CA, O_C_N, N_CA_C = 116.2, 121.7, 123.0, 111.2
#: Bond lengths, A, and an angle, degrees, of the phosphodiester (A. Gelbin et al., J. Am. Chem. Soc. 118, 1996, 519).
C3_O3, O3_P, P_O5, P_OP = 1.42, 1.607, 1.593, 1.485
OP_P_OP = 119.6
#: Distances, A, between atoms that are two bonds apart, by the pair of their names; `+` marks the next residue.
_TWO_BONDS = {
    "C": {"N": 2.46, "CB": 2.51, "O": C_O, "+CA": 2.43},
    "N": {"CA": 2.43, "O": 2.25, "+CB": 2.46, "+C": 2.46},
    "O3'": {"C4'": 2.42, "C2'": 2.42, "+OP1": 2.5, "+OP2": 2.5, "+O5'": 2.5},
    "P": {"C3'": 2.61, "+C5'": 2.61, "+OP1": P_OP, "+OP2": P_OP}}
#: Largest factors by which the distance across missing atoms may exceed the usual one for residues to be bonded; the
#: second is for residues with consecutive numbers, so that none is missing between them.
_LONG, _CONSECUTIVE = 1.25, 1.45
#: Longest distances, A, over which atoms in the file are taken as bonded; the second as above.
_FAR, _FARTHER = 2.5, 3.5
#: Points on a circle around two atoms that are tried for the atom bonded to both.
_POINTS = 72


@dataclass
class Bridges:
    """Atoms to add (name, element, position) by residue, and bonds between atoms given by residue and name."""

    new: dict[int, list[tuple[str, str, Floats]]] = field(default_factory=dict)
    links: list[tuple[tuple[int, str], tuple[int, str]]] = field(default_factory=list)


def consecutive_residues(draft: Draft, chains: Sequence[str], linked: Sequence[set[str]], last: str, first: str,
               ) -> Iterator[tuple[int, int]]:
    """Yield consecutive residues of one chain that have a backbone with these two atoms, and no bond by them."""
    of_kind = [r.component is not None and (r.component.is_amino_acid if last == "C" else r.component.is_nucleotide)
               and {last, first} <= set(r.component.atoms) for r in draft.residues]
    for here, there in pairwise(range(len(draft.residues))):
        if of_kind[here] and of_kind[there] and chains[here] == chains[there] and (
                last not in linked[here] and first not in linked[there]):
            yield here, there


def find_bridges(draft: Draft, chains: Sequence[str], numbers: Sequence[int]) -> Bridges:
    """Return atoms that are missing between residues, and bonds that distances alone do not show.

    Parameters
    ----------
    draft : Draft
        Heavy atoms; notes are added to its residues.
    chains, numbers : sequence
        Chain and number of each residue.
    """
    result = Bridges()
    atoms = [dict(zip(draft.names[a:b].tolist(), draft.positions[a:b], strict=True)) for a, b in pairwise(draft.starts)]
    linked = draft.linked()

    def add(residue: int, name: str, place: Floats) -> None:
        atoms[residue][name] = place
        result.new.setdefault(residue, []).append((name, name[0], place))

    for last, first, before, behind, usual_lengths in (
            ("C", "N", "CA", "CA", (CA_C, C_N, N_CA)), ("O3'", "P", "C3'", "O5'", (C3_O3, O3_P, P_O5))):
        for n, m in consecutive_residues(draft, chains, linked, last, first):
            here, there, after, lengths = atoms[n], atoms[m], behind, usual_lengths
            together = numbers[m] - numbers[n] in (0, 1)
            if last == "O3'" and after not in there and "OP1" in there:  # O5' is added later
                after, lengths = "OP1", (C3_O3, O3_P, P_OP)
            if {"O", "OXT"} <= here.keys() or "OP3" in there or before not in here or after not in there:
                continue
            missing = last not in here, first not in there
            if not any(missing):
                usual, factor = 1.0, _FARTHER if together else _FAR
            elif not all(missing):
                usual = _across(*lengths[:2] if missing[0] else lengths[1:])
                factor = _CONSECUTIVE if together else _LONG
            elif together and {"N", "C"} <= here.keys() | there.keys():
                usual, factor = CA_CA, _LONG
            else:
                continue
            begin, end = here[before if missing[0] else last], there[after if missing[1] else first]
            if np.linalg.norm(begin - end) > usual * factor:
                continue
            if not any(missing):
                draft.residues[n].note = UNUSUAL_NOTE
            known = here | {f"+{name}": place for name, place in there.items()}
            if missing[0]:
                second = (known[f"+{after}"], _across(*lengths[1:])) if missing[1] else (known[f"+{first}"], lengths[1])
                add(n, last, place_between(known, _TWO_BONDS[last], (known[before], lengths[0]), second))
                known[last] = here[last]
            if missing[1]:
                add(m, first, place_between(known, _TWO_BONDS[first], (known[last], lengths[1]),
                                      (known[f"+{after}"], lengths[2])))
            result.links.append(((n, last), (m, first)))
    for (n, last), (m, first) in (*result.links, *_phosphodiesters(draft)):
        chem = draft.residues[m].component
        if first == "P" and "O5'" in atoms[m] and chem is not None and {"OP1", "OP2"} <= chem.row.keys():
            for name, place in _oxygens(atoms[n][last], atoms[m]).items():
                add(m, name, place)
    return result


def _phosphodiesters(draft: Draft) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    """Yield the bonds from O3' to P that the file has."""
    for pair in draft.links.tolist():
        for a, b in (pair, pair[::-1]):
            if (draft.names[a], draft.names[b]) == ("O3'", "P"):
                yield (int(draft.residue[a]), "O3'"), (int(draft.residue[b]), "P")


def _oxygens(before: Floats, known: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the missing oxygens OP1 (pro-S) and OP2 of a phosphate bonded to O3' of the residue before."""
    phosphorus = known["P"]
    first, second = _unit(before - phosphorus), _unit(known["O5'"] - phosphorus)
    middle, normal = -_unit(first + second), _unit(np.cross(first, second))
    half = np.radians(OP_P_OP) / 2
    sides = [phosphorus + P_OP * (np.cos(half) * middle + sign * np.sin(half) * normal) for sign in (1, -1)]
    missing = [name for name in ("OP1", "OP2") if name not in known]
    if len(missing) == 1:  # opposite to the one that is known, whatever its name
        other = known["OP2" if missing == ["OP1"] else "OP1"]
        sides = [max(sides, key=lambda place: float(np.linalg.norm(place - other)))]
    return dict(zip(missing, sides, strict=False))


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-6))


def _across(first: float, second: float, angle: float = 119.0) -> float:
    """Return the distance between atoms two bonds apart."""
    return float(np.sqrt(first**2 + second**2 - 2 * first * second * np.cos(np.radians(angle))))


def place_atom(a: Floats, b: Floats, c: Floats, length: float, angle: float, torsion: float | Floats) -> Floats:
    """Return the positions (..., 3) of atoms bonded to c (..., 3), with the angle to b at c, degrees.

    The torsion to a about the bond from b to c, degrees, may be several.
    """
    along = (c - b) / np.linalg.norm(c - b, axis=-1, keepdims=True)
    normal = np.cross(b - a, along)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    angle, turn = np.radians(angle), np.radians(torsion)[..., None]
    across = np.cos(turn) * np.cross(normal, along) + np.sin(turn) * normal
    return np.asarray(c + length * (np.sin(angle) * across - np.cos(angle) * along), np.float64)


def place_between(known: Mapping[Any, Floats], distances: Mapping[Any, float], first: tuple[Floats, float],
            second: tuple[Floats, float]) -> Floats:
    """Return the place of an atom bonded to two others (position and bond length), with given distances to more."""
    (a, near), (b, far) = first, second
    apart = max(float(np.linalg.norm(b - a)), 1e-6)
    axis = (b - a) / apart
    along = float(np.clip((apart**2 + near**2 - far**2) / (2 * apart), -near, near))
    side = _unit(np.cross(axis, [1.0, 0, 0] if abs(axis[0]) < 0.8 else [0, 1.0, 0]))
    turns = np.linspace(0, 2 * np.pi, _POINTS, endpoint=False)[:, None]
    circle = np.sqrt(near**2 - along**2) * (np.cos(turns) * side + np.sin(turns) * np.cross(axis, side))
    points = a + along * axis + circle
    error = sum((np.linalg.norm(points - known[name], axis=1) - distance) ** 2
                for name, distance in distances.items() if name in known)
    return np.asarray(points[int(np.argmin(error + np.zeros(len(points))))])
