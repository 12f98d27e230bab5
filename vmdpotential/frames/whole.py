"""Alignment of frames: making molecules whole, fitting a group of atoms, and wrapping molecules around it.

Simulation programs wrap atoms into the cell, and molecules drift and rotate. Frames are corrected in a fixed order,
since each step needs the one before it: molecules are made whole, a reference group is superposed on its position in a
reference structure, and molecules are wrapped around it.

A periodic cell is never rotated, because its images would stay where they are while its atoms turn. In a periodic
boundary the group is only translated, and nothing else is needed, because a periodic potential does not depend on which
image of an atom is given. In an open boundary, where each atom counts once at its position, all molecules are made
whole, moved next to the group, and rotated with it (W. Kabsch, Acta Cryst. A 32 (1976) 922).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import coordinate_bounds
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.elements import atom_masses
from vmdpotential.molecule.selection import is_lipid, is_nucleic, is_protein, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.whole import MoleculeTrees

#: Number of atoms whose coordinates are treated as one row, because numpy is slow for rows of only three numbers.
ROW = 64


@dataclass(frozen=True, eq=False)
class FrameAlignment:
    """Alignment of the frames of a trajectory; created by :meth:`of`, small, and the same for all frames.

    Parameters
    ----------
    boundary : str
        ``open`` or ``periodic``.
    molecules : Molecules
        Molecules that are made whole: those of the group in a periodic boundary, all in an open one.
    members : (G,) int64
        Indices of the group's atoms in `molecules.atoms`, increasing; empty if frames are not moved.
    weights : (G,) float64
        Weights of the group's atoms; their sum is 1.
    reference : (G, 3) float64, A
        Positions onto which the group is fitted, in whole molecules.
    cell : Cell or None
        Cell of the reference: in a frame with another cell, the group is moved to the same fractional coordinates.
    rotate : bool
        Whether frames are also rotated to fit the group.
    wrap : bool
        Whether molecules are moved to their image nearest to the group.
    middle : (3,) float64, A
        Centre of the reference's bounding box, around which molecules are wrapped if there is no group.
    text : str
        Description of the alignment, for reports.
    """

    boundary: str
    molecules: MoleculeTrees
    members: Integers
    weights: Floats
    reference: Floats
    cell: Cell | None
    rotate: bool
    wrap: bool
    middle: Floats
    text: str

    @classmethod
    def of(cls, structure: Structure, group: ArrayLike | None, boundary: str, *, name: str = "", weights: str = "mass",
           rotate: bool | None = None, wrap: bool | None = None, reference: ArrayLike | None = None) -> FrameAlignment:
        """Return the alignment of frames of a structure's atoms.

        Parameters
        ----------
        structure : Structure
        group : (N,) bool or None
            The reference group; None if frames are not to be fitted.
        boundary : {"open", "periodic"}
        name : str
            Name of the group, for reports.
        weights : {"mass", "equal"}
            Weights of the group's atoms; equal if no masses are known.
        rotate : bool, optional
            Whether frames are rotated to fit the group; by default only in an open boundary.
        wrap : bool, optional
            Whether molecules are moved to their image nearest to the group; by default only in an open boundary.
        reference : (N, 3), A, optional
            Positions onto which the group is fitted, e.g. those of the first frame; the structure's own unless given.
            They also determine how the molecules of a group are arranged around each other.

        Raises
        ------
        UsageError
            For a rotation in a periodic boundary.
        """
        open_ = boundary == "open"
        if rotate and not open_:
            raise UsageError(
                "motion", "a periodic cell is not rotated: its images would stay where they are while its atoms turn",
                "translate only, or use {boundary open}")
        rotate = open_ if rotate is None else rotate
        wrap = open_ if wrap is None else wrap
        chosen = np.zeros(len(structure), bool) if group is None else np.asarray(group, bool)
        places = structure.positions if reference is None else np.asarray(reference, np.float64)
        molecules = MoleculeTrees.of(structure, None if open_ or wrap else chosen)
        members = np.flatnonzero(chosen[molecules.atoms])
        rows = molecules.atoms[members]
        weight = atom_masses(structure)[rows] if weights == "mass" else np.ones(len(rows))
        by_mass = weights == "mass" and bool((weight > 0).any())
        weight = weight / weight.sum() if by_mass else np.full(len(rows), 1 / max(1, len(rows)))
        whole = molecules.whole(places[molecules.atoms], structure.cell)[members]
        text = "frames are not moved"
        if len(members):
            size = f"{name or 'group'} ({len(members)} atoms, {'mass-weighted' if by_mass else 'equal weights'})"
            motion = "rotation and translation" if rotate else "translation"
            text = f"frames fitted onto the structure by {size}, {motion}"
        if open_ or wrap or len(members):
            text += f"; molecules made whole by their {molecules.by}"
        if wrap:
            text += ", and wrapped around it" if len(members) else ", and wrapped"
        middle = np.mean(coordinate_bounds(places), axis=0) if len(places) else np.zeros(3)
        return cls(boundary, molecules, members, weight, whole, structure.cell, rotate and bool(len(members)), wrap,
                   middle, text)

    def __str__(self) -> str:
        return self.text

    def align(self, positions: NDArray[np.floating[Any]], cell: Cell | None, rows: Integers | None = None) -> Floats:
        """Return the aligned positions of a frame, (N, 3) or (n, 3) float64, A.

        Parameters
        ----------
        positions : (N, 3), A
            Not changed.
        cell : Cell or None
            Cell of the frame.
        rows : (n,) int, optional
            Indices of the atoms whose positions are needed; all unless given.

        Raises
        ------
        InputError
            For a frame without a cell in a periodic boundary.
        """
        if self.boundary == "periodic" and cell is None:
            raise InputError("a frame has no periodic cell", "give {cell}")
        order = self.molecules.atoms
        whole = self.molecules.whole(np.take(positions, order, 0).astype(np.float64), cell)
        group = whole[self.members]
        if cell is not None and self.boundary == "periodic":
            move = -self._translation(group, cell) if len(self.members) else np.zeros(3)
            if not self.wrap:
                return shifted(positions if rows is None else np.take(positions, rows, 0), move)
            around = (self.cell or cell).fractional(self._place if len(self.members) else self.middle) @ cell.vectors
            whole = self._wrapped(whole + move, cell, around)
        elif len(self.members):
            if cell is not None:
                whole = self._together(whole, cell)
                group = whole[self.members]
            middle = self.weights @ group
            if cell is not None and self.wrap:
                whole = self._wrapped(whole, cell, middle)
            turn = superposing_rotation(group - middle, self.reference - self._place,
                                        self.weights) if self.rotate else np.eye(3)
            whole = (whole - middle) @ turn.T + self._place
        elif cell is not None and self.wrap:
            whole = self._wrapped(whole, cell, self.middle)
        out = np.empty((len(positions), 3))
        out[order] = whole
        return out if rows is None else out[rows]

    @property
    def _place(self) -> Floats:
        """(3,) centre of the group in the reference, A."""
        place: Floats = self.weights @ self.reference
        return place

    @cached_property
    def _owners(self) -> tuple[Integers, Integers, Floats]:
        """Molecules that contain atoms of the group, first member in each, and sum of its members' weights."""
        molecule = np.searchsorted(self.molecules.starts, self.members, side="right") - 1
        owners, first = np.unique(molecule, return_index=True)
        return owners, first, np.add.reduceat(self.weights, first)

    @cached_property
    def _reference_centres(self) -> Floats:
        """(M, 3) centres of the group's parts in the reference, A."""
        return self._centres(self.reference)

    def _centres(self, group: Floats) -> Floats:
        """Return the centre of the group's part in each molecule, (M, 3)."""
        _, first, weights = self._owners
        total: Floats = np.add.reduceat(self.weights[:, None] * group, first)
        return total / np.where(weights > 0, weights, 1)[:, None]

    def _translation(self, group: Floats, cell: Cell) -> Floats:
        """Return the displacement of the group from the reference in a periodic cell, (3,) A.

        This is the weighted mean of the displacements of its molecules, each by its image nearest to the others.
        """
        weights = self._owners[2]
        steps = cell.fractional(self._centres(group)) - (self.cell or cell).fractional(self._reference_centres)
        # a first estimate of the mean displacement, from the mean phase factor
        about = np.angle(weights @ np.exp(2j * np.pi * steps)) / (2 * np.pi)
        steps -= about
        mean: Floats = (about + weights @ (steps - np.rint(steps))) @ cell.vectors
        return mean

    def _together(self, whole: Floats, cell: Cell) -> Floats:
        """Return positions with the group's molecules next to each other as in the reference, in any orientation.

        Each molecule is moved to the image whose distance from the heaviest molecule is closest to that in the
        reference.
        """
        owners, _, weights = self._owners
        if len(owners) < 2:
            return whole
        centres, reference = self._centres(whole[self.members]), self._reference_centres
        heaviest = int(np.argmax(weights))
        distances = np.linalg.norm(reference - reference[heaviest], axis=1)
        apart = centres - centres[heaviest]
        near = cell.minimum_image(apart)
        steps = np.indices((3, 3, 3)).reshape(3, -1).T - 1.0
        images = near[:, None] + steps @ (cell.vectors if cell.orthogonal else cell.reduced)
        miss = np.abs(np.linalg.norm(images, axis=2) - distances[:, None])
        best = images[np.arange(len(images)), np.argmin(miss, axis=1)]
        best[heaviest] = 0
        sizes = self.molecules.sizes
        moves = np.zeros((len(sizes), 3))
        moves[owners] = best - apart
        return whole + np.repeat(moves, sizes, axis=0)

    def _wrapped(self, whole: Floats, cell: Cell, around: Floats) -> Floats:
        """Return positions with each molecule at its image nearest to a point.

        In an open boundary the molecules of the group are not moved.
        """
        sizes = self.molecules.sizes
        centres = np.add.reduceat(whole, self.molecules.starts) / sizes[:, None]
        apart = centres - around
        moves = cell.minimum_image(apart) - apart
        if self.boundary == "open":
            moves[self._owners[0]] = 0
        return whole + np.repeat(moves, sizes, axis=0)


def reference_group(structure: Structure, text: str) -> tuple[NDArray[np.bool_] | None, str]:
    """Return the atoms (N,) bool by which frames are fitted, or None, and their name.

    Parameters
    ----------
    structure : Structure
    text : str
        ``none``, a selection, or ``auto``: protein and nucleic acids; if there are none, lipids; otherwise none.

    Raises
    ------
    UsageError
        When the selection is invalid or selects no atom.
    """
    if text == "none":
        return None, ""
    if text != "auto":
        return select(structure, text, "fit"), text
    for name, group in (("protein and nucleic acids", is_protein(structure) | is_nucleic(structure)),
                        ("lipids", is_lipid(structure))):
        if group.any():
            return group, name
    return None, ""


def shifted(positions: NDArray[np.floating[Any]], shift: Floats) -> Floats:
    """Return positions (N, 3) + shift (3,) in float64, in long rows, which is several times as fast."""
    out = np.empty(positions.shape)
    rows = len(positions) // ROW * ROW
    positions = np.ascontiguousarray(positions)
    np.add(positions[:rows].reshape(-1, 3 * ROW), np.tile(shift, ROW), out=out[:rows].reshape(-1, 3 * ROW))
    np.add(positions[rows:], shift, out=out[rows:])
    return out


def superposing_rotation(positions: Floats, places: Floats, weights: Floats) -> Floats:
    """Return the rotation R (3, 3) that superposes centred positions (G, 3) on places, as positions @ R.T.

    R minimises the weighted mean square distance and is never a reflection. If several rotations are equally good, as
    for collinear atoms, one of them is returned.
    """
    u, _, v = np.linalg.svd((weights[:, None] * positions).T @ places)
    turn: Floats = (v.T * [1, 1, np.sign(np.linalg.det(u @ v))]) @ u.T
    return turn
