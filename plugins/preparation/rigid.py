"""Positions of hydrogens that are determined by the other bonds of their atom: CH, CH2, and planar NH and CH.

Superposed fragments of other molecules, which have other bond angles, deviate from these directions by up to 15
degrees. Here a hydrogen has equal angles with the other bonds. In a peptide group that is not planar, it is between the
plane of the nitrogen's other bonds, where programs place it by geometry alone, and the plane of the carbonyl group,
towards which the torsions of a force field rotate it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.molecule.structure import Floats, Integers

from .components import PLANAR_BONDS
from .draft import Draft

#: Bond lengths of CH, planar CH, and NH, A, as in Amber (W. D. Cornell et al., J. Am. Chem. Soc. 117, 1995, 5179).
_CH, _FLAT_CH, _NH = 1.09, 1.08, 1.01
#: Numbers of hydrogens and of heavy neighbours of the atoms; with one hydrogen and two neighbours they are planar.
_KINDS = ((1, 3), (1, 2), (2, 2))
#: Half of the angle between the two hydrogens of CH2, degrees.
_HALF = 109.5 / 2
#: Smallest length of the sum of the bonds' unit vectors, or volume spanned by three of them, for a defined direction.
_LEAST = 0.1
#: Fraction of the angle from the plane of the nitrogen's bonds to that of the carbonyl group by which hydrogens of
#: amides are rotated: half of that by Amber's ff14SB without charges, 0.8 (J. A. Maier et al., J. Chem. Theory Comput.
#: 11, 2015, 3696).
_TURN = 0.4
#: Largest deviation of a peptide group from planarity, radians; larger ones are due to wrong bonds.
_MOST = np.radians(45.0)


def place_rigid(draft: Draft, bonds: Integers, counts: Integers) -> dict[int, Floats]:
    """Return positions (k, 3), A, of hydrogens by the index of their atom, where the heavy atoms determine them.

    Parameters
    ----------
    draft : Draft
        The heavy atoms.
    bonds : (B, 3) int64
        Two heavy atoms and the order of their bond.
    counts : (N,) int64
        Number of hydrogens of every atom; 0 for atoms without, or whose hydrogens are not to be placed.
    """
    number = np.bincount(bonds[:, :2].ravel(), minlength=len(counts))
    flat = np.zeros(len(counts), bool)
    flat[bonds[np.isin(bonds[:, 2], PLANAR_BONDS), :2]] = True
    nitrogen, carbon = draft.elements == "N", draft.elements == "C"
    planar = flat.copy()
    for a, b in ((0, 1), (1, 0)):
        planar[bonds[nitrogen[bonds[:, a]] & flat[bonds[:, b]], a]] = True
    ends, others = np.concatenate([bonds[:, :2], bonds[:, 1::-1]]).T
    carbonyl = (draft.elements[ends] == "O") & (number[ends] == 1) & carbon[others] & flat[others]
    oxygen = np.full(len(counts), -1, np.int64)  # by the index of its carbon
    oxygen[others[carbonyl]] = ends[carbonyl]
    order = np.argsort(ends, kind="stable")
    first, others = np.searchsorted(ends[order], np.arange(len(counts))), others[order]
    length = np.where(nitrogen, _NH, np.where(flat, _FLAT_CH, _CH))
    result: dict[int, Floats] = {}
    for count, near in _KINDS:
        rows = np.flatnonzero((counts == count) & (number == near) & (carbon | nitrogen)
                              & (planar == ((count, near) == (1, 2))))
        if not len(rows):
            continue
        next_to = others[first[rows][:, None] + np.arange(near)]
        units = _units(draft.positions, rows, next_to)
        outwards = _away_of_three(units) if near == 3 else -units.sum(1)
        size = np.linalg.norm(outwards, axis=1, keepdims=True)
        outwards /= np.maximum(size, _LEAST)
        if (count, near) == (1, 2):
            for k in (0, 1):
                of = np.flatnonzero(nitrogen[rows] & (oxygen[next_to[:, k]] >= 0) & (oxygen[next_to[:, 1 - k]] < 0))
                carbons = next_to[of, k]
                outwards[of] = _between(outwards[of], -units[of, k],
                                        draft.positions[oxygen[carbons]] - draft.positions[carbons])
        directions = outwards[:, None] if count == 1 else _both(units, outwards)
        places = draft.positions[rows][:, None] + length[rows, None, None] * directions
        good = (size > _LEAST).ravel() & np.isfinite(places).all((1, 2))
        result |= dict(zip(rows[good].tolist(), places[good], strict=True))
    return result


def _units(positions: Floats, rows: Integers, near: Integers) -> NDArray[np.float64]:
    """Return unit vectors (n, k, 3) along the bonds of atoms `rows` to their neighbours `near`."""
    arms = positions[near] - positions[rows][:, None]
    return np.asarray(arms / np.maximum(np.linalg.norm(arms, axis=2, keepdims=True), 1e-6), np.float64)


def _away_of_three(units: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return vectors (n, 3) with equal angles to three bonds, pointing away from them; 0 if these are almost coplanar.

    On carbon they are nearer to a force field's direction of the hydrogen than the opposite of the bonds' sum.
    """
    good = np.abs(np.linalg.det(units)) > _LEAST
    result = np.zeros((len(units), 3))
    result[good] = np.linalg.solve(units[good], np.full((int(good.sum()), 3, 1), -1.0))[..., 0]
    return result


def _between(directions: Floats, axes: Floats, carbonyls: Floats) -> Floats:
    """Return directions (n, 3) rotated about the axes from carbon to nitrogen towards the carbonyl groups' planes."""
    across, up = directions - _along(directions, axes), carbonyls - _along(carbonyls, axes)
    sine, cosine = (axes * np.cross(across, up)).sum(1), (across * up).sum(1)
    # the hydrogen is trans to the oxygen, or cis in a cis peptide; at angles between these it is not rotated
    angle = (np.arctan2(sine, cosine) + np.pi / 2) % np.pi - np.pi / 2
    turn = _TURN * np.where(np.abs(angle) < _MOST, angle, 0.0)[:, None]
    return np.asarray(directions + (np.cos(turn) - 1) * across + np.sin(turn) * np.cross(axes, across))


def _along(vectors: Floats, axes: Floats) -> Floats:
    return np.asarray((vectors * axes).sum(1, keepdims=True) * axes)


def _both(units: NDArray[np.float64], outwards: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the directions (n, 2, 3) of two hydrogens on either side of the plane of two bonds."""
    normal = np.cross(units[:, 0], units[:, 1])
    with np.errstate(invalid="ignore", divide="ignore"):
        normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    across, along = np.sin(np.radians(_HALF)) * normal, np.cos(np.radians(_HALF)) * outwards
    return np.stack([along + across, along - across], axis=1)
