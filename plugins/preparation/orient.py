"""Orientation of waters and of hydroxyl and thiol groups, which rotate freely, by the charges around them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from vmdpotential.molecule.structure import Floats, Integers

#: Largest distance of charges that are included, and distance below which atoms clash, A.
_REACH, _CLASH = 6.0, 1.6
#: Numbers of trial orientations of a group, and of a water.
_TURNS, _WATERS = 12, 60


def orient_hydrogens(positions: Floats, charges: Floats, rotors: Integers, waters: Integers) -> Floats:
    """Return positions (N, 3), A, with hydrogens rotated to the lowest of their trial energies.

    The groups are rotated one after the other, each in the field of the charges around it.

    Parameters
    ----------
    positions : (N, 3) float64, A
        Positions of all atoms.
    charges : (N,) float64, e
        Their charges.
    rotors : (R, 3) int64
        Hydrogen, the atom that it is bonded to, and the next atom.
    waters : (W, 3) int64
        Oxygen and two hydrogens.
    """
    result = positions.copy()
    tree = cKDTree(positions)
    angles = np.arange(_TURNS) * 2 * np.pi / _TURNS
    cos, sin = np.cos(angles), np.sin(angles)
    for hydrogen, holder, root in rotors.tolist():
        axis = positions[holder] - positions[root]
        axis /= np.linalg.norm(axis)
        arm = positions[hydrogen] - positions[holder]
        along, across = axis * (axis @ arm), np.cross(axis, arm)
        trials = along + cos[:, None] * (arm - along) + sin[:, None] * across
        places = (positions[holder] + trials)[:, None]
        result[hydrogen] = _best(tree, result, charges, np.array([hydrogen]), places, {hydrogen, holder, root})[0]
    if len(waters):
        shapes = random_rotations(_WATERS)
        for oxygen, *both in waters.tolist():
            arms = positions[both] - positions[oxygen]
            places = positions[oxygen] + _fit(arms, shapes)
            result[both] = _best(tree, result, charges, np.array(both), places, {oxygen, *both})
    return result


def random_rotations(count: int) -> NDArray[np.float64]:
    """Return random rotations (count, 3, 3), uniformly distributed and always the same."""
    from scipy.spatial.transform import Rotation

    # what Rotation.random does, whose argument for the generator has another name in older versions
    return np.asarray(Rotation.from_quat(np.random.default_rng(7).normal(size=(count, 4))).as_matrix(), np.float64)


def _fit(arms: Floats, rotations: Floats) -> Floats:
    """Return a water's two bond vectors (2, 3) in all orientations, (K, 2, 3)."""
    return np.asarray(np.einsum("kij,nj->kni", rotations, arms), np.float64)


def _best(tree: cKDTree, positions: Floats, charges: Floats, moved: Integers, places: Floats, own: set[int]) -> Floats:
    """Return the positions (m, 3) with the lowest energy among K trial positions `places` (K, m, 3) of hydrogens."""
    near = [k for k in tree.query_ball_point(places.mean((0, 1)), _REACH) if k not in own]
    if not near:
        return np.asarray(places[0], np.float64)
    distances = np.linalg.norm(places[:, :, None] - positions[near], axis=-1)
    energy = (charges[moved][:, None] * charges[near] / np.maximum(distances, 0.5)).sum((1, 2))
    energy += 10 * (np.maximum(_CLASH - distances, 0) ** 2).sum((1, 2))
    return np.asarray(places[int(np.argmin(energy))], np.float64)
