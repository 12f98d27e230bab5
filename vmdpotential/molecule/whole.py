"""Restoring molecules that were split by wrapping into a periodic cell, and complexes whose parts are in contact."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential.arrays import Floats, Integers
from vmdpotential.kernels.launch import KernelFile, launch_kernel
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.close import close_pairs
from vmdpotential.molecule.elements import covalent_radii, fill_elements
from vmdpotential.molecule.names import WATER_RESIDUES, in_table
from vmdpotential.molecule.structure import Structure

KERNELS = KernelFile(Path(__file__).with_name("tree.cu"))

#: Largest distance between atoms of molecules that are in contact, A.
CONTACT = 5.0
#: Longest bond between heavy atoms of two residues, A, and how much longer than the sum of covalent radii it may be.
#: Contacts of a model with its own images can be as near as 2 A.
BOND, STRETCHED = 2.2, 0.4


@dataclass(frozen=True, eq=False)
class MoleculeTrees:
    """Spanning trees of molecules, in depth-first order.

    The descendants of every atom are consecutive in this order, so that a shift of an atom and all of its descendants
    is added to all of them by one cumulative sum.

    Parameters
    ----------
    atoms : (A,) int64
        Atom indices in the structure, molecule by molecule, each atom after its parent.
    parents : (A,) int64
        Index in `atoms` of each atom's parent; the root of a molecule is its own parent.
    ends : (A,) int64
        Index in `atoms` after the last descendant of each atom.
    starts : (M,) int64
        Index in `atoms` of each molecule's root.
    by : str
        Connections that the trees follow: ``bonds``, or ``distances`` if the structure has no bonds.
    """

    atoms: Integers
    parents: Integers
    ends: Integers
    starts: Integers
    by: str

    @classmethod
    def of(cls, structure: Structure, among: ArrayLike | None = None) -> MoleculeTrees:
        """Return the molecules of a structure, or only those with at least one atom of the mask `among` (N,).

        An atom without bonds is connected to its neighbours in the file that are of its residue. Residues without bonds
        are connected where heavy atoms, or their nearest images, are at the distance of a bond; names of chains do not
        connect them.
        """
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import breadth_first_order, connected_components

        count = len(structure)
        bonds = _links(structure)
        graph = csr_matrix((np.ones(len(bonds), np.int8), (bonds[:, 0], bonds[:, 1])), shape=(count, count))
        molecule_count, molecule = connected_components(graph, directed=False)
        by = "bonds" if structure.topology is not None and len(structure.topology.bonds) else "distances"
        if among is not None:
            requested = np.zeros(molecule_count, bool)
            requested[molecule[np.asarray(among)]] = True
            rows = np.flatnonzero(requested[molecule])
        else:
            rows = np.arange(count)
        if not len(rows):
            empty = np.zeros(0, np.int64)
            return cls(empty, empty, empty, empty, by)
        # an additional node, the root, connects all molecules to one tree
        first = rows[np.unique(molecule[rows], return_index=True)[1]]
        bonds = np.concatenate([bonds, np.stack([np.full(len(first), count), first], 1)])
        graph = csr_matrix((np.ones(len(bonds), np.int8), (bonds[:, 0], bonds[:, 1])), shape=(count + 1, count + 1))
        order, parent = breadth_first_order(graph, count, directed=False)
        place = np.empty(count + 1, np.int64)
        place[order] = np.arange(len(order))
        above = place[parent[order[1:]]]  # parents of all nodes but the root, in breadth-first order: never decreasing
        sizes, new = np.ones(len(order), np.int64), np.zeros(len(order), np.int64)
        launch_kernel(KERNELS["order_depth_first"], 1, "molecules", parents=above.astype(np.int64), sizes=sizes,
                      places=new, next=np.empty_like(sizes), nodes=len(sizes))
        atoms, parents, ends = (np.empty(len(order) - 1, np.int64) for _ in range(3))
        at = new[1:] - 1
        atoms[at] = order[1:]
        parents[at] = np.where(above == 0, at, new[above] - 1)
        ends[at] = at + sizes[1:]
        return cls(atoms, parents, ends, np.flatnonzero(parents == np.arange(len(parents))), by)

    @property
    def sizes(self) -> Integers:
        """(M,) numbers of atoms of the molecules."""
        return np.diff(self.starts, append=len(self.atoms))

    def whole(self, positions: Floats, cell: Cell | None) -> Floats:
        """Return the positions (A, 3), A, of whole molecules, whose roots stay where they are.

        Parameters
        ----------
        positions : (A, 3) float64, A
            Wrapped positions of :attr:`atoms`; bonds must be shorter than half of the cell.
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


def whole_molecules(structure: Structure) -> Structure:
    """Return a structure whose molecules are not split by its periodic cell; the same one if they are not."""
    if structure.cell is None or not structure.cell.whole:
        return structure
    molecules = MoleculeTrees.of(structure)
    before = structure.positions[molecules.atoms]
    after = molecules.whole(before, structure.cell)
    if after is before:
        return structure
    positions = structure.positions.copy()
    positions[molecules.atoms] = after
    return replace(structure, positions=positions)


def _links(structure: Structure) -> Integers:
    """Return the bonds (E, 2), and for atoms without bonds connections to their neighbours in the file."""
    count = len(structure)
    topology = structure.topology
    bonds = np.zeros((0, 2), np.int64) if topology is None else topology.bonds
    alone = np.bincount(bonds.reshape(-1), minlength=count) == 0
    same = np.diff(structure.residue_index) == 0
    within = np.flatnonzero(same & (alone[1:] | alone[:-1]))
    # residues of several atoms; monatomic ions and waters are no parts of larger molecules
    several = np.append(False, same) | np.append(same, False)
    rows = np.flatnonzero(several & alone & ~in_table(structure.residue_names, WATER_RESIDUES))
    elements = fill_elements(structure).elements
    rows = rows[~np.isin(elements[rows], ["H", "D", ""])]
    between, lengths = close_pairs(structure.positions[rows], BOND, structure.cell)
    radii = covalent_radii(elements[rows])
    between = rows[between[lengths < radii[between].sum(1) + STRETCHED]]
    between = between[np.diff(structure.residue_index[between], axis=1).any(1)]
    return np.concatenate([bonds, np.stack([within, within + 1], 1), between])


@dataclass(frozen=True, eq=False)
class WholeComplex:
    """Function that makes molecules of a periodic cell whole, and moves them into contact with the largest of them.

    Molecules in contact are moved together, as one body. A body without an image in contact with the largest one is
    not moved, as nothing shows where it belongs.

    Parameters
    ----------
    molecules : Molecules
        The molecules to move.
    """

    molecules: MoleculeTrees

    @classmethod
    def of(cls, structure: Structure, among: ArrayLike, frames: bool = False) -> WholeComplex | None:
        """Return the complex of the molecules with at least one atom of the mask `among` (N,).

        None if there are no periodic images: for a crystal's asymmetric unit, and for a structure without a cell,
        unless it has `frames`, which may have cells of their own.
        """
        if not frames if structure.cell is None else not structure.cell.whole:
            return None
        return cls(MoleculeTrees.of(structure, among))

    def __call__(self, positions: Floats, cell: Cell | None) -> Floats:
        """Return positions (N, 3), A, of whole molecules in contact; the same array if nothing has to move."""
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
        """Return positions (A, 3) in which the bodies (molecules in contact) are in contact with the largest body."""
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
