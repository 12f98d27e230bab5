"""Directions at the receptor's atoms, with which the hydrogen bonds of AutoGrid's maps have their angles.

A hydrogen points away from the atom that bears it, a lone pair of nitrogen away from its neighbours, and those of
oxygen and sulfur lie in a plane: that of a carbonyl group, or between the two neighbours (D. N. A. Boobbyer,
P. J. Goodford, P. M. McWhinnie, R. C. Wade, J. Med. Chem. 32 (1989) 1083; G. M. Morris et al., J. Comput. Chem. 19
(1998) 1639).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.bonds import DONOR, TWO_PAIRS

Floats = NDArray[np.float64]

#: A: a hydrogen is within the first of the atom that bears it (S-H too) and of others' neighbours within the second;
#: a neighbour of an oxygen or sulfur, of a nitrogen, and of the carbon of a carbonyl group is within the last two.
_BEARING, _HYDROGEN, _BY_OXYGEN, _BY_OTHERS = 1.378, 1.3, 1.9, 1.7


@dataclass(frozen=True, eq=False)
class Directions:
    """Atoms that form hydrogen bonds.

    Parameters
    ----------
    rows : (n,) int64
        Of the receptor.
    kinds : (n,) int64
    directions, normals : (n, 3) float64
        Unit vectors, or 0 where an atom has no neighbour that makes one.
    powers : (n,) float64
        Of the cosine at a hydrogen: 2 on nitrogen, 4 on oxygen and sulfur.
    """

    rows: NDArray[np.int64]
    kinds: NDArray[np.int64]
    directions: Floats
    normals: Floats
    powers: Floats


def directions(positions: Floats, types: Sequence[str], kinds: NDArray[np.int64]) -> Directions:
    """Return the directions of a receptor's atoms.

    Parameters
    ----------
    positions : (N, 3) float64, A
    types : sequence of str
        AutoDock's.
    kinds : (N,) int64
        Of those that form hydrogen bonds; less than 0 for others.
    """
    from scipy.spatial import cKDTree

    rows = np.flatnonzero(kinds >= 0)
    pairs = cKDTree(positions).query_pairs(max(_BEARING, _HYDROGEN, _BY_OXYGEN, _BY_OTHERS), output_type="ndarray")
    near_by: dict[int, list[tuple[int, float]]] = {}
    for (first, second), apart in zip(pairs.tolist(), np.linalg.norm(
            positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1).tolist(), strict=True):
        near_by.setdefault(first, []).append((second, apart))
        near_by.setdefault(second, []).append((first, apart))
    hydrogen = np.isin(types, ["H", "HD"]).tolist()
    # of each atom, the points whose difference is its direction; of those with a plane, its row and two points each
    ends, starts, powers = positions[rows].copy(), positions[rows].copy(), np.full(len(rows), 2.0)
    by_carbonyl: list[tuple[int, int, int]] = []
    between: list[tuple[int, int, int]] = []

    def neighbours(atom: int, heavy: float, light: float) -> list[int]:
        return sorted(n for n, apart in near_by.get(atom, ()) if apart < (light if hydrogen[n] else heavy))

    for place, (atom, kind) in enumerate(zip(rows.tolist(), kinds[rows].tolist(), strict=True)):
        if kind == DONOR:
            near = neighbours(atom, _BEARING, _BEARING)
            if near:
                starts[place] = positions[near[0]]
                powers[place] = 4.0 if types[near[0]] in ("OA", "SA") else 2.0
            continue
        near = neighbours(atom, _BY_OXYGEN if kind == TWO_PAIRS else _BY_OTHERS, _HYDROGEN)[:3]
        if kind == TWO_PAIRS and len(near) == 2:
            between.append((place, near[0], near[1]))
        elif near:
            starts[place] = positions[near[0]] if len(near) == 1 else positions[near].mean(0)
            others = [n for n in neighbours(near[0], _BY_OTHERS, _HYDROGEN) if n != atom]
            if kind == TWO_PAIRS and len(near) == 1 and others:
                by_carbonyl.append((place, near[0], others[0]))
    along, normal = _unit(ends - starts), np.zeros((len(rows), 3))
    if by_carbonyl:
        row, carbon, other = np.array(by_carbonyl).T
        normal[row] = _unit(np.cross(along[row], positions[other] - positions[carbon]))
    if between:
        # the plane of the pairs has the line between the neighbours as its normal
        row, first, second = np.array(between).T
        normal[row] = _unit(positions[second] - positions[first])
        from_first = ends[row] - positions[first]
        along[row] = _unit(from_first - (from_first * normal[row]).sum(1, keepdims=True) * normal[row])
    return Directions(rows, kinds[rows].astype(np.int64), along, normal, powers)


def _unit(vectors: Floats) -> Floats:
    """Return vectors (n, 3) by their lengths; those of no length as they are."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: Floats = vectors / np.where(length > 0, length, 1.0)
    return result
