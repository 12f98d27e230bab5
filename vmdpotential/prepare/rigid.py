"""Hydrogens whose directions follow from the bonds of the atom that they are on: CH, CH2, and NH and CH in a plane.

Fragments of other molecules, which have other angles, are superposed on the atom and its neighbours alike, and so turn
these hydrogens by up to 15 degrees. Here each has equal angles with the bonds next to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.molecule.structure import Floats, Integers
from vmdpotential.prepare.components import FLAT
from vmdpotential.prepare.draft import Draft

#: Lengths of bonds to hydrogen, A: Amber's (W. D. Cornell et al., J. Am. Chem. Soc. 117, 1995, 5179); in a plane.
_LENGTHS = {"C": 1.09, "N": 1.01}
_FLAT_CH = 1.08
#: Half the angle between the two hydrogens of CH2, degrees.
_HALF = 109.5 / 2
#: Of a sum of the directions of bonds, or the volume between three of them, where these do not determine a direction.
_LEAST = 0.1


def place_rigid(draft: Draft, bonds: Integers, places: list[Floats]) -> None:
    """Replace places (k, 3) of hydrogens, in place, where the heavy atoms determine them."""
    heavy: list[list[int]] = [[] for _ in places]
    for a, b in bonds[:, :2].tolist():
        heavy[a].append(b)
        heavy[b].append(a)
    flat = np.zeros(len(places), bool)
    flat[bonds[np.isin(bonds[:, 2], FLAT), :2]] = True
    elements = draft.elements.tolist()
    kinds: dict[tuple[int, int], list[int]] = {(1, 3): [], (1, 2): [], (2, 2): []}
    for atom, (near, found) in enumerate(zip(heavy, places, strict=True)):
        if not len(found) or (len(found), len(near)) not in kinds or elements[atom] not in _LENGTHS:
            continue
        planar = bool(flat[atom]) or (elements[atom] == "N" and bool(flat[near].any()))
        if planar == (len(near) == 2 and len(found) == 1):
            kinds[len(found), len(near)].append(atom)
    length = np.array([_LENGTHS.get(element, 0.0) for element in elements])
    length[flat & (draft.elements == "C")] = _FLAT_CH
    for (count, _), rows in kinds.items():
        if not rows:
            continue
        units = _units(draft.positions, rows, [heavy[row] for row in rows])
        outwards = _away_of_three(units) if units.shape[1] == 3 else -units.sum(1)
        size = np.linalg.norm(outwards, axis=1, keepdims=True)
        good = (size > _LEAST).ravel()
        outwards /= np.maximum(size, _LEAST)
        directions = outwards[:, None] if count == 1 else _both(units, outwards)
        for k in np.flatnonzero(good & np.isfinite(directions).all((1, 2))).tolist():
            row = rows[k]
            new = draft.positions[row] + length[row] * directions[k]
            if count == 2 and np.linalg.norm(new - places[row]) > np.linalg.norm(new[::-1] - places[row]):
                new = new[::-1]  # each stays on its side
            places[row] = new


def _units(positions: Floats, rows: list[int], near: list[list[int]]) -> NDArray[np.float64]:
    """Return the directions (n, k, 3) of the bonds of some atoms."""
    arms = positions[np.array(near)] - positions[np.array(rows)][:, None]
    return np.asarray(arms / np.maximum(np.linalg.norm(arms, axis=2, keepdims=True), 1e-6), np.float64)


def _away_of_three(units: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the vectors (n, 3) that have equal angles with three bonds; zeros where these are almost in a plane.

    On carbon they are nearer to where a force field has the hydrogen than those opposite to the sum of the bonds.
    """
    good = np.abs(np.linalg.det(units)) > _LEAST
    result = np.zeros((len(units), 3))
    result[good] = np.linalg.solve(units[good], np.full((int(good.sum()), 3, 1), -1.0))[..., 0]
    return result


def _both(units: NDArray[np.float64], outwards: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the directions (n, 2, 3) of the two hydrogens between which the plane of two bonds is."""
    normal = np.cross(units[:, 0], units[:, 1])
    with np.errstate(invalid="ignore", divide="ignore"):
        normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    across, along = np.sin(np.radians(_HALF)) * normal, np.cos(np.radians(_HALF)) * outwards
    return np.stack([along + across, along - across], axis=1)
