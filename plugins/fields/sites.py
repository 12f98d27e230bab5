"""Sites of a field: atoms, midpoints of bonds, and points; and the charges that are excluded at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import InputError, UsageError
from vmdpotential.frames.whole import superposing_rotation
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.whole import MoleculeTrees

Mask = NDArray[np.bool_]

#: Charges that can be excluded at a site: its atom (both atoms of a bond), or the residue or molecule of that atom.
EXCLUDED = ("atom", "residue", "molecule")


@dataclass(frozen=True, eq=False)
class FieldSites:
    """Sites at which field and potential are computed.

    Parameters
    ----------
    kind : str
        ``atoms``, ``bonds`` or ``points``.
    first, second : (M,) int64
        Indices of atoms: the two ends of a bond, or twice the same atom. Empty for points.
    points : (M, 3) float64, A
        Empty for atoms and bonds.
    names : sequence of str
    group : (G,) int64
        Atoms that the points move and rotate with, as indices into `molecules.atoms`; empty if the points are fixed in
        the coordinates of the trajectory.
    reference : (G, 3) float64, A
        Positions of these atoms in the structure that the points refer to.
    molecules : Molecules or None
        Molecules that contain these atoms.
    """

    kind: str
    first: Integers
    second: Integers
    points: Floats
    names: Sequence[str]
    group: Integers
    reference: Floats
    molecules: MoleculeTrees | None = None

    @classmethod
    def atoms(cls, rows: Integers, names: Sequence[str]) -> FieldSites:
        """Return sites at atoms."""
        return cls("atoms", rows, rows, np.zeros((0, 3)), names, np.zeros(0, np.int64), np.zeros((0, 3)))

    @classmethod
    def bonds(cls, pairs: Integers, names: Sequence[str]) -> FieldSites:
        """Return sites at the midpoints of bonds (M, 2), whose direction is from the first atom to the second."""
        return cls("bonds", pairs[:, 0], pairs[:, 1], np.zeros((0, 3)), names, np.zeros(0, np.int64), np.zeros((0, 3)))

    @classmethod
    def at(cls, points: Floats, names: Sequence[str], structure: Structure | None = None,
           fit: Mask | None = None) -> FieldSites:
        """Return sites at points (M, 3), A, in the coordinates of the trajectory; or with `fit` in those of the
        structure, whose atoms `fit` (of one molecule, or of molecules near each other) are superposed on each frame.
        """
        none = np.zeros(0, np.int64)
        if structure is None or fit is None:
            return cls("points", none, none, points, names, none, np.zeros((0, 3)))
        molecules = MoleculeTrees.of(structure, fit)
        members = np.flatnonzero(np.asarray(fit)[molecules.atoms])
        if len(members) < 3:
            raise UsageError("fit", f"at least three atoms are needed to fit a rotation, and there are {len(members)}")
        whole = _near(molecules, members, molecules.whole(structure.positions[molecules.atoms], structure.cell),
                      structure.cell)
        return cls("points", none, none, points, names, members, whole, molecules)

    def __len__(self) -> int:
        return len(self.names)

    def subset(self, rows: Integers) -> FieldSites:
        """Return some of the sites."""
        names = [self.names[n] for n in rows.tolist()]
        if self.kind == "points":
            return replace(self, points=self.points[rows], names=names)
        return replace(self, first=self.first[rows], second=self.second[rows], names=names)

    def of(self, positions: Floats, cell: Cell | None) -> tuple[Floats, Floats, Floats]:
        """Return the positions (M, 3) of the sites in a frame, A, the directions (M, 3) of bonds, and the rotation
        (3, 3) of fitted points into the frame.
        """
        if self.kind == "points":
            if self.molecules is None:
                return self.points, np.zeros((0, 3)), np.eye(3)
            order = self.molecules.atoms
            group = _near(self.molecules, self.group, self.molecules.whole(positions[order], cell), cell)
            before, after = self.reference.mean(0), group.mean(0)
            turn = superposing_rotation(self.reference - before, group - after, np.full(len(group), 1 / len(group)))
            return (self.points - before) @ turn.T + after, np.zeros((0, 3)), turn
        start = positions[self.first]
        if self.kind == "atoms":
            return start, np.zeros((0, 3)), np.eye(3)
        along = positions[self.second] - start
        along = along if cell is None else cell.minimum_image(along)
        length = np.linalg.norm(along, axis=1)
        if not (length > 0).all():
            raise InputError("the atoms of a bond are at the same position, so that it has no direction")
        return start + along / 2, along / length[:, None], np.eye(3)


def _near(molecules: MoleculeTrees, members: Integers, whole: Floats, cell: Cell | None) -> Floats:
    """Return the positions of a group's atoms, with its molecules at the images nearest to the first one's."""
    group = whole[members]
    owner = np.searchsorted(molecules.starts, members, side="right")
    _, first = np.unique(owner, return_index=True)
    if cell is None or len(first) == 1:
        return group
    sizes = np.diff(first, append=len(group))
    centres = np.add.reduceat(group, first) / sizes[:, None]
    apart = centres - centres[0]
    return group + np.repeat(cell.minimum_image(apart) - apart, sizes, axis=0)


def excluded_pairs(structure: Structure, places: FieldSites, exclude: str) -> Integers:
    """Return pairs (E, 2) of a site and an atom that is excluded there."""
    if places.kind == "points":
        return np.zeros((0, 2), np.int64)
    rows = np.arange(len(places))
    own = np.stack([np.concatenate([rows, rows]), np.concatenate([places.first, places.second])], axis=1)
    own = np.unique(own, axis=0)
    if exclude == "atom":
        return own
    if exclude == "residue":
        unit = structure.residue_index
    else:
        topology = structure.topology
        if topology is None or not len(topology.bonds):
            raise UsageError("exclude", "bonds are needed", "give a {topology} that has them, or use {exclude residue}",
                             value="molecule")
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components

        count, bonds = len(structure), topology.bonds
        unit = connected_components(
            csr_matrix((np.ones(len(bonds)), (bonds[:, 0], bonds[:, 1])), shape=(count, count)), directed=False)[1]
    order = np.argsort(unit, kind="stable")
    starts = np.searchsorted(unit[order], np.arange(int(unit.max()) + 2))
    requested = np.unique(np.stack([own[:, 0], unit[own[:, 1]]], axis=1), axis=0)
    results = [np.stack([np.full(starts[u + 1] - starts[u], place), order[starts[u] : starts[u + 1]]], axis=1)
             for place, u in requested.tolist()]
    return np.concatenate(results)


def bonds_between(structure: Structure, first: Mask, second: Mask) -> Integers:
    """Return the bonds (M, 2) from atoms of one selection to atoms of another.

    These are bonds of the topology; without one, the k-th atom of the first selection is paired with the k-th of the
    second in every residue. Two selections of one atom each make a pair even without a bond.

    Raises
    ------
    UsageError
        When there are no bonds, or atoms cannot be paired.
    """
    a, b = np.flatnonzero(first), np.flatnonzero(second)
    if len(a) == len(b) == 1 and a[0] != b[0]:
        return np.stack([a, b], axis=1)
    topology = structure.topology
    if topology is not None and len(topology.bonds):
        i, j = topology.bonds.T
        forth, back = first[i] & second[j], first[j] & second[i] & ~(first[i] & second[j])
        pairs = np.concatenate([topology.bonds[forth], topology.bonds[back][:, ::-1]])
        if not len(pairs):
            raise UsageError("bonds", "no atom of the first selection is bonded to one of the second")
        return np.ascontiguousarray(pairs[np.argsort(pairs[:, 0], kind="stable")])
    residues = structure.residue_index
    if not np.array_equal(residues[a], residues[b]) or (a == b).any():
        raise UsageError("bonds", "without bonds, both selections need the same number of atoms in each residue",
                         "give a {topology} that has bonds, or other selections")
    return np.stack([a, b], axis=1)
