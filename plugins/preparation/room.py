"""Check of completed residues: whether added atoms have room, and no atom has too many bonds."""

from __future__ import annotations

import numpy as np

from vmdpotential.molecule.structure import Integers

from .draft import METAL_ELEMENTS, Draft

#: Distance, A, within which two atoms that are not bonded to each other or to a third one cannot be.
CLOSE = 1.9
#: Largest numbers of heavy atoms bonded to an atom.
_BONDS = {"C": 4, "N": 4, "O": 2, "P": 5, "S": 6}
#: Notes on residues.
CROWDED_NOTE = f"added atoms are within {CLOSE} A of others that they are not bonded to"
OVERBONDED_NOTE = "an added atom or one next to it has more bonds than its element allows"


def check_room(draft: Draft, bonds: Integers) -> None:
    """Note in residues where added atoms are too close to others, or make too many bonds.

    Parameters
    ----------
    draft : Draft
        Heavy atoms, with no atoms missing.
    bonds : (B, 3) int64
        Two atoms and the order of their bond.
    """
    from scipy.spatial import cKDTree

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
