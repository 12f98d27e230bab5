"""Room for added atoms: distances from others, and the check that completed residues have room and few enough bonds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from vmdpotential.molecule.structure import Floats, Integers

from .draft import CLOSE, CROWDED_NOTE, METAL_ELEMENTS, OVERBONDED_NOTE, Draft

#: Difference of distances, A, below which the first of two places is taken, so that rounding does not decide.
ALIKE = 1e-3
#: Largest numbers of heavy atoms bonded to an atom.
_BONDS = {"C": 4, "N": 4, "O": 2, "P": 5, "S": 6}


class Room:
    """Distances from the atoms of a draft (N, 3), and from those that were added since."""

    def __init__(self, positions: Floats) -> None:
        self.trees = [cKDTree(positions)]
        self.added: list[Floats] = []

    def add(self, positions: list[Floats]) -> None:
        """Add atoms."""
        self.added += positions
        self.trees[1:] = [cKDTree(np.array(self.added))] if self.added else []

    def remove(self, positions: list[Floats]) -> None:
        """Remove some of the added atoms."""
        self.added = [place for place in self.added if not any(place is other for other in positions)]
        self.add([])

    def nearest(self, places: Floats, count: int = 1, but: Sequence[Floats] = ()) -> Floats:
        """Return the distances (M, count) of places (M, 3) to the nearest atoms, except some, increasing."""
        found = []
        for tree in self.trees:
            distances, rows = (part.reshape(len(places), -1) for part in
                               tree.query(places, k=min(count + len(but), tree.n)))
            for place in but:
                distances[(tree.data[rows] == place).all(-1)] = np.inf
            found.append(distances)
        return np.asarray(np.sort(np.concatenate(found, axis=1), axis=1)[:, :count])


def check_room(draft: Draft, bonds: Integers) -> None:
    """Note in residues where added atoms are too close to others, or make too many bonds.

    Parameters
    ----------
    draft : Draft
        Heavy atoms, with no atoms missing.
    bonds : (B, 3) int64
        Two atoms and the order of their bond.
    """
    added = draft.origin < 0
    if not added.any():
        return
    near: list[set[int]] = [set() for _ in range(len(draft))]
    for a, b, _ in bonds.tolist():
        near[a].add(b)
        near[b].add(a)
    metal = np.isin(draft.elements, list(METAL_ELEMENTS))
    rows = np.flatnonzero(added)
    noted: dict[str, set[int]] = {CROWDED_NOTE: set(), OVERBONDED_NOTE: set()}
    for row, others in zip(rows.tolist(), cKDTree(draft.positions).query_ball_point(draft.positions[rows], CLOSE),
                           strict=True):
        bonded = near[row].union({row}, *(near[k] for k in near[row]))
        if any(k not in bonded and not metal[k] for k in others):
            noted[CROWDED_NOTE].add(int(draft.residue[row]))
        for k in (row, *near[row]):
            if len(near[k]) > _BONDS.get(str(draft.elements[k]), 8):
                noted[OVERBONDED_NOTE].add(int(draft.residue[k]))
    for note, residues in noted.items():
        for n in residues:
            draft.residues[n].note = "; ".join(filter(None, (draft.residues[n].note, note)))
