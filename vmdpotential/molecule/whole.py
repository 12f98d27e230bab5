"""Molecules that a periodic cell has split: made whole along their bonds, and those in contact brought together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.elements import POLYMER
from vmdpotential.molecule.names import named
from vmdpotential.molecule.structure import Structure

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Molecules whose atoms are within this distance of each other are in contact, A.
CONTACT = 5.0


@dataclass(frozen=True, eq=False)
class Molecules:
    """Atoms in an order in which the atoms beyond every bond are side by side, so that a sum along bonds is one sum.

    Parameters
    ----------
    atoms : (A,) int64
        Rows of the structure, molecule by molecule, each atom somewhere after the one it hangs on.
    parents : (A,) int64
        Place in `atoms` of the atom that each hangs on; its own for the first of a molecule.
    ends : (A,) int64
        Place after the last atom that hangs on each, directly or not.
    starts : (M,) int64
        Place of each molecule's first atom.
    by : str
        What holds them together: ``bonds``, or ``residues`` where the structure has no bonds.
    """

    atoms: Integers
    parents: Integers
    ends: Integers
    starts: Integers
    by: str

    @classmethod
    def of(cls, structure: Structure, among: ArrayLike | None = None) -> Molecules:
        """Return the molecules of a structure; those that hold an atom `among` (N,) bool where it is given.

        Atoms without bonds hang on the atom before them in their residue, and residues of a polymer without bonds on
        the one before them in their chain.
        """
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import breadth_first_order, connected_components

        count = len(structure)
        bonds = _links(structure)
        graph = csr_matrix((np.ones(len(bonds), np.int8), (bonds[:, 0], bonds[:, 1])), shape=(count, count))
        result, molecule = connected_components(graph, directed=False)
        by = "bonds" if structure.topology is not None and len(structure.topology.bonds) else "residues"
        if among is not None:
            requested = np.zeros(result, bool)
            requested[molecule[np.asarray(among)]] = True
            rows = np.flatnonzero(requested[molecule])
        else:
            rows = np.arange(count)
        if not len(rows):
            nothing = np.zeros(0, np.int64)
            return cls(nothing, nothing, nothing, nothing, by)
        # one tree: all molecules hang on a root that is no atom
        first = rows[np.unique(molecule[rows], return_index=True)[1]]
        bonds = np.concatenate([bonds, np.stack([np.full(len(first), count), first], 1)])
        graph = csr_matrix((np.ones(len(bonds), np.int8), (bonds[:, 0], bonds[:, 1])), shape=(count + 1, count + 1))
        order, parent = breadth_first_order(graph, count, directed=False)
        place = np.empty(count + 1, np.int64)
        place[order] = np.arange(len(order))
        above = place[parent[order[1:]]]  # of every atom but the root, in the order of breadth, in which it increases
        depth = np.zeros(len(order), np.int64)
        levels = [slice(0, 1)]
        while levels[-1].stop < len(order):  # those that hang on the last level
            last = levels[-1]
            levels.append(slice(last.stop, 1 + int(np.searchsorted(above, last.stop))))
            depth[levels[-1]] = len(levels) - 1
        sizes = np.ones(len(order), np.int64)
        for level in reversed(levels[1:]):
            np.add.at(sizes, above[level.start - 1 : level.stop - 1], sizes[level])
        # each after all that hangs on its elder siblings
        before = np.concatenate([[0], np.cumsum(sizes[1:])])  # over siblings, which are side by side, and all else
        eldest = np.searchsorted(above, above)
        among_siblings = before[:-1] - before[eldest]
        new = np.zeros(len(order), np.int64)
        for level in levels[1:]:
            up = slice(level.start - 1, level.stop - 1)
            new[level] = new[above[up]] + 1 + among_siblings[up]
        atoms, parents, ends = (np.empty(len(order) - 1, np.int64) for _ in range(3))
        at = new[1:] - 1
        atoms[at] = order[1:]
        parents[at] = np.where(above == 0, at, new[above] - 1)
        ends[at] = at + sizes[1:]
        return cls(atoms, parents, ends, np.flatnonzero(parents == np.arange(len(parents))), by)

    @property
    def sizes(self) -> Integers:
        """(M,) how many atoms each has."""
        return np.diff(self.starts, append=len(self.atoms))

    def whole(self, positions: Floats, cell: Cell | None) -> Floats:
        """Return the positions (A, 3) of the atoms, each molecule whole around the image of its first atom.

        Parameters
        ----------
        positions : (A, 3) A
            Of :attr:`atoms`, as they are wrapped; atoms that are bonded are nearer to each other than half of the cell.
        cell : Cell or None
        """
        if cell is None or not len(positions):
            return positions
        basis = cell.vectors if cell.orthogonal else cell.reduced
        jumps = np.rint((positions - positions[self.parents]) @ np.linalg.inv(basis))
        crossing = np.flatnonzero(jumps.any(1))
        if not len(crossing):
            return positions
        shifts = np.zeros((len(positions) + 1, 3))
        np.add.at(shifts, crossing, jumps[crossing])
        np.subtract.at(shifts, self.ends[crossing], jumps[crossing])
        moved: Floats = positions - np.cumsum(shifts[:-1], axis=0) @ basis
        return moved


def _links(structure: Structure) -> Integers:
    """Return the bonds (E, 2), and for atoms that have none links to their neighbours in the file."""
    count = len(structure)
    topology = structure.topology
    bonds = np.zeros((0, 2), np.int64) if topology is None else topology.bonds
    alone = np.bincount(bonds.reshape(-1), minlength=count) == 0
    same = np.diff(structure.residue_index) == 0
    if not len(bonds):
        polymer = named(structure.residue_names, POLYMER)
        same |= (polymer[1:] & polymer[:-1] & (structure.chain_ids[1:] == structure.chain_ids[:-1])
                 & (structure.segment_ids[1:] == structure.segment_ids[:-1]))
    to_last = np.flatnonzero(same & alone[1:]) + 1
    links = np.stack([to_last - 1, to_last], 1)
    # the first of a residue, where it is alone and what follows is not
    to_next = np.flatnonzero(same & alone[:-1] & ~alone[1:] & np.append(True, ~same[:-1]))
    return np.concatenate([bonds, links, np.stack([to_next, to_next + 1], 1)])


@dataclass(frozen=True, eq=False)
class Complex:
    """Makes molecules of a periodic cell whole, and moves those to an image that is in contact with the largest ones.

    What is in contact is moved together, and what has no image in contact stays: nothing in the cell shows where it
    belongs.

    Parameters
    ----------
    molecules : Molecules
    """

    molecules: Molecules

    @classmethod
    def of(cls, structure: Structure, among: ArrayLike, frames: bool = False) -> Complex | None:
        """Return this for the molecules with atoms `among` (N,) bool.

        None where there are no images: for a crystal's asymmetric unit, and a structure without a cell, unless there
        are `frames`, which may have one.
        """
        if not frames if structure.cell is None else not structure.cell.whole:
            return None
        return cls(Molecules.of(structure, among))

    def __call__(self, positions: Floats, cell: Cell | None) -> Floats:
        """Return positions (N, 3), A, the same array where nothing was split."""
        if cell is None:
            return positions
        order = self.molecules.atoms
        together = self._together(self.molecules.whole(positions[order], cell), cell)
        if np.array_equal(together, positions[order]):
            return positions
        result = positions.copy()
        result[order] = together
        return result

    def _together(self, whole: Floats, cell: Cell) -> Floats:
        """Return positions (A, 3) of whole molecules with their bodies, which are in contact, next to the largest."""
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components
        from scipy.spatial import cKDTree

        starts = self.molecules.starts
        if len(starts) < 2:
            return whole
        molecule = np.repeat(np.arange(len(starts)), self.molecules.sizes)
        a, b = molecule[cKDTree(whole).query_pairs(CONTACT, output_type="ndarray")].T
        graph = csr_matrix((np.ones(len(a), np.int8), (a, b)), shape=(len(starts), len(starts)))
        count, body = connected_components(graph, directed=False)
        if count < 2:
            return whole
        owner, result = body[molecule], whole.copy()
        largest = np.argsort(-np.bincount(owner), kind="stable")
        tree = cKDTree(whole[owner == largest[0]])
        basis = cell.vectors if cell.orthogonal else cell.reduced
        steps = (np.indices((3, 3, 3)).reshape(3, -1).T - 1) @ basis
        for other in largest[1:]:
            rows = owner == other
            apart = whole[rows].mean(0) - tree.data.mean(0)
            moves = cell.minimum_image(apart[None]) - apart + steps
            distances = [tree.query(whole[rows] + move, distance_upper_bound=CONTACT)[0].min() for move in moves]
            if np.isfinite(min(distances)):
                result[rows] += moves[int(np.argmin(distances))]
        return result
