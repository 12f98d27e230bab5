"""Positions of a completed structure's added atoms in other frames, from those of the original atoms."""

from __future__ import annotations

import numpy as np

from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Floats, Integers, Structure

#: Smallest sine of the angle between the two vectors of a local frame.
_STRAIGHT = 0.2
#: Number of nearest atoms from which those of a local frame are chosen.
_NEAREST = 8


class Follower:
    """Function from positions of a structure to those of its completed structure.

    An added atom keeps its position in the local frame of the original atom to which it was added and two others near
    that.

    Parameters
    ----------
    before : Structure
        The original structure, or the selected part of it.
    after : Structure
        The completed structure.
    """

    def __init__(self, before: Structure, after: Structure) -> None:
        origins = np.arange(len(after)) if after.origins is None else after.origins
        #: Number of atoms of the original structure.
        self.atoms = len(before)
        self._origins: Integers = origins
        moved = np.abs(after.positions - before.positions[origins]).max(1, initial=0.0) > 1e-9
        self._added = np.flatnonzero(moved)
        self._frames = _frames(before.positions, origins[self._added])
        axes, centre = self._axes(before.positions)
        self._local = np.einsum("nij,nj->ni", axes, after.positions[self._added] - centre)

    def identity(self) -> tuple[object, ...]:
        """Return the data that determine the results, for fingerprints of computations."""
        return self.atoms, self._origins, self._added, self._frames, self._local

    def __call__(self, positions: Floats, cell: Cell | None = None) -> tuple[Floats, Cell | None]:
        """Return positions (M, 3), A, of the completed structure from those (N, 3) of a frame, and the frame's cell."""
        return self.of_positions(positions), cell

    def of_positions(self, positions: Floats) -> Floats:
        """Return positions (M, 3), A, of the completed structure from those (N, 3) of the original atoms."""
        result = np.asarray(positions, np.float64)[self._origins]
        if len(self._added):
            axes, centre = self._axes(np.asarray(positions, np.float64))
            result[self._added] = centre + np.einsum("nij,ni->nj", axes, self._local)
        return result

    def _axes(self, positions: Floats) -> tuple[Floats, Floats]:
        """Return the orthogonal axes (n, 3, 3), as rows, and the origin (n, 3) of every local frame."""
        a, b, c = (positions[self._frames[:, k]] for k in range(3))
        x = b - a
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
        z = np.cross(x, c - a)
        z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
        return np.stack([x, np.cross(z, x), z], axis=1), a


def _frames(positions: Floats, anchors: Integers) -> Integers:
    """Return three atoms (n, 3) that are not collinear for each anchor: itself and two of the nearest atoms."""
    from scipy.spatial import cKDTree

    count = min(_NEAREST, len(positions))
    if count < 3 or not len(anchors):
        return np.stack([anchors] * 3, axis=1)
    _, near = cKDTree(positions).query(positions[anchors], k=count)
    own = near == anchors[:, None]
    others = np.take_along_axis(near, np.argsort(own, axis=1, kind="stable"), 1)  # the anchor is last, if it is there
    arm = (positions[others[:, 0]] - positions[anchors])[:, None]
    to = positions[others[:, 1:]] - positions[anchors][:, None]
    sizes = np.linalg.norm(arm, axis=2) * np.linalg.norm(to, axis=2)
    bent = np.linalg.norm(np.cross(arm, to), axis=2) / np.maximum(sizes, 1e-12) > _STRAIGHT
    farthest = others.shape[1] - 1 - own.any(1)
    second = np.where(bent.any(1), 1 + bent.argmax(1), farthest)
    return np.stack([anchors, others[:, 0], others[np.arange(len(others)), second]], axis=1)
