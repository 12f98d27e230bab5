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

from vmdpotential.engines.bonds import DONOR, ONE_PAIR, TWO_PAIRS

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
    hydrogen = np.isin(types, ["H", "HD"])
    along, normal, powers = np.zeros((len(rows), 3)), np.zeros((len(rows), 3)), np.full(len(rows), 2.0)

    def neighbours(atom: int, heavy: float, light: float) -> list[int]:
        return sorted(n for n, apart in near_by.get(atom, ()) if apart < (light if hydrogen[n] else heavy))

    for place, (atom, kind) in enumerate(zip(rows.tolist(), kinds[rows].tolist(), strict=True)):
        if kind == DONOR:
            near = neighbours(atom, _BEARING, _BEARING)
            if near:
                along[place] = _unit(positions[atom] - positions[near[0]])
                powers[place] = 4.0 if types[near[0]] in ("OA", "SA") else 2.0
            continue
        near = neighbours(atom, _BY_OXYGEN if kind == TWO_PAIRS else _BY_OTHERS, _HYDROGEN)[:3]
        if not near:
            continue
        if kind == ONE_PAIR or len(near) != 2:
            along[place] = _unit(positions[atom] - positions[near].mean(0))
        if kind == TWO_PAIRS and len(near) == 1:
            others = [n for n in neighbours(near[0], _BY_OTHERS, _HYDROGEN) if n != atom]
            if others:
                normal[place] = _unit(np.cross(along[place], positions[others[0]] - positions[near[0]]))
        elif kind == TWO_PAIRS and len(near) == 2:
            # the plane of the pairs has the line between the neighbours as its normal
            normal[place] = _unit(positions[near[1]] - positions[near[0]])
            from_first = positions[atom] - positions[near[0]]
            along[place] = _unit(from_first - (from_first @ normal[place]) * normal[place])
    return Directions(rows, kinds[rows].astype(np.int64), along, normal, powers)


def _unit(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector
