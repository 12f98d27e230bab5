"""Frames made comparable: molecules whole again, a group of atoms back on its place, the rest around it.

A trajectory wraps atoms into its cell and lets molecules drift and turn. The repairs have one order, since each needs
the one before it: molecules are made whole, a reference group is moved onto its place in a reference structure, and
molecules are wrapped around it.

A periodic cell is never rotated: its images would stay where they are while the atoms turn. In a periodic boundary the
group is translated, and nothing else has to be repaired, because a periodic potential does not know which image of an
atom it sees. In an open boundary, which sees each atom once and where it is, all molecules are made whole, brought next
to the group, and turned with it (W. Kabsch, Acta Cryst. A 32 (1976) 922).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import bounds
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.elements import masses
from vmdpotential.molecule.selection import is_lipid, is_nucleic, is_protein, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.whole import Molecules

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Atoms in a row of numbers: numpy is fast along rows of many numbers, not of three.
ROW = 64


@dataclass(frozen=True, eq=False)
class Alignment:
    """How every frame of a trajectory is moved; made by :meth:`of`, small, and the same for all frames.

    Parameters
    ----------
    boundary : str
        ``open`` or ``periodic``.
    molecules : Molecules
        Those that are made whole: of the group in a periodic boundary, all in an open one.
    members : (G,) int64
        Places of the group's atoms in `molecules.atoms`, increasing; none where nothing is to be moved.
    weights : (G,) float64
        Of the group's atoms; their sum is 1.
    reference : (G, 3) float64, A
        Where they belong, in molecules that are whole.
    cell : Cell or None
        Of the reference: in frames of other cells the group's place is the same fraction of theirs.
    rotate : bool
        Whether the group is turned onto its place, with all atoms.
    wrap : bool
        Whether molecules are moved to their image nearest to the group.
    middle : (3,) float64, A
        Of the reference: where molecules are wrapped around when there is no group.
    text : str
        What is done, for reports.
    """

    boundary: str
    molecules: Molecules
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
           rotate: bool | None = None, wrap: bool | None = None, reference: ArrayLike | None = None) -> Alignment:
        """Return what moves frames of a structure's atoms.

        Parameters
        ----------
        structure : Structure
        group : (N,) bool or None
            The reference group; None moves nothing.
        boundary : {"open", "periodic"}
        name : str
            Of the group, for reports.
        weights : {"mass", "equal"}
            What the group's atoms count for; equal where no masses are known.
        rotate : bool, optional
            Whether the group is turned onto its place; where the boundary is open, unless given.
        wrap : bool, optional
            Whether molecules are moved to their image nearest to the group; where the boundary is open, unless given.
        reference : (N, 3), A, optional
            Where the group belongs, such as the first frame; the structure's own positions unless given. Molecules
            of a group lie next to each other as they do here.

        Raises
        ------
        UsageError
            For a periodic cell that shall be rotated.
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
        molecules = Molecules.of(structure, None if open_ or wrap else chosen)
        members = np.flatnonzero(chosen[molecules.atoms])
        rows = molecules.atoms[members]
        weight = masses(structure)[rows] if weights == "mass" else np.ones(len(rows))
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
        middle = np.mean(bounds(places), axis=0) if len(places) else np.zeros(3)
        return cls(boundary, molecules, members, weight, whole, structure.cell, rotate and bool(len(members)), wrap,
                   middle, text)

    def __str__(self) -> str:
        return self.text

    def align(self, positions: NDArray[np.floating[Any]], cell: Cell | None, rows: Integers | None = None) -> Floats:
        """Return the positions of a frame as they are to be used, (N, 3) or (n, 3) float64, A.

        Parameters
        ----------
        positions : (N, 3), A
            Not changed.
        cell : Cell or None
            The frame's.
        rows : (n,) int, optional
            Of the atoms whose positions are needed; all unless given.

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
            turn = rotation(group - middle, self.reference - self._place, self.weights) if self.rotate else np.eye(3)
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
        """Return the molecules that hold the group, where each one's members begin, and the weights of each."""
        molecule = np.searchsorted(self.molecules.starts, self.members, side="right") - 1
        owners, first = np.unique(molecule, return_index=True)
        return owners, first, np.add.reduceat(self.weights, first)

    @cached_property
    def _places(self) -> Floats:
        """(M, 3) centres of the group's parts in the reference, A."""
        return self._centres(self.reference)

    def _centres(self, group: Floats) -> Floats:
        """Return the centre of the group's part in each molecule, (M, 3)."""
        _, first, weights = self._owners
        total: Floats = np.add.reduceat(self.weights[:, None] * group, first)
        return total / np.where(weights > 0, weights, 1)[:, None]

    def _translation(self, group: Floats, cell: Cell) -> Floats:
        """Return how far the group is from its place in a periodic cell, (3,) A.

        This is the mean of what its molecules are from theirs, by the images nearest to the rest.
        """
        weights = self._owners[2]
        steps = cell.fractional(self._centres(group)) - (self.cell or cell).fractional(self._places)
        # about where most are, as the mean of an angle
        about = np.angle(weights @ np.exp(2j * np.pi * steps)) / (2 * np.pi)
        steps -= about
        mean: Floats = (about + weights @ (steps - np.rint(steps))) @ cell.vectors
        return mean

    def _together(self, whole: Floats, cell: Cell) -> Floats:
        """Return positions with the group's molecules next to each other as in the reference, however it is turned.

        Every one goes to the image that is as far from the heaviest one as it is there.
        """
        owners, _, weights = self._owners
        if len(owners) < 2:
            return whole
        centres, places = self._centres(whole[self.members]), self._places
        heaviest = int(np.argmax(weights))
        far = np.linalg.norm(places - places[heaviest], axis=1)
        apart = centres - centres[heaviest]
        near = cell.minimum_image(apart)
        steps = np.indices((3, 3, 3)).reshape(3, -1).T - 1.0
        images = near[:, None] + steps @ (cell.vectors if cell.orthogonal else cell.reduced)
        miss = np.abs(np.linalg.norm(images, axis=2) - far[:, None])
        best = images[np.arange(len(images)), np.argmin(miss, axis=1)]
        best[heaviest] = 0
        sizes = self.molecules.sizes
        moves = np.zeros((len(sizes), 3))
        moves[owners] = best - apart
        return whole + np.repeat(moves, sizes, axis=0)

    def _wrapped(self, whole: Floats, cell: Cell, around: Floats) -> Floats:
        """Return positions with every molecule at the image nearest to a point, but the group's in an open boundary."""
        sizes = self.molecules.sizes
        centres = np.add.reduceat(whole, self.molecules.starts) / sizes[:, None]
        apart = centres - around
        moves = cell.minimum_image(apart) - apart
        if self.boundary == "open":
            moves[self._owners[0]] = 0
        return whole + np.repeat(moves, sizes, axis=0)


def reference_group(structure: Structure, text: str) -> tuple[NDArray[np.bool_] | None, str]:
    """Return the atoms (N,) bool that frames are fitted to, None for none, and their name.

    Parameters
    ----------
    structure : Structure
    text : str
        ``none``, a selection, or ``auto``: protein and nucleic acids, where there are none lipids, else none.

    Raises
    ------
    UsageError
        When the selection is none, or selects no atom.
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
    """Return positions (N, 3) + shift (3,) in float64; in rows of many numbers, which is several times as fast."""
    out = np.empty(positions.shape)
    rows = len(positions) // ROW * ROW
    positions = np.ascontiguousarray(positions)
    np.add(positions[:rows].reshape(-1, 3 * ROW), np.tile(shift, ROW), out=out[:rows].reshape(-1, 3 * ROW))
    np.add(positions[rows:], shift, out=out[rows:])
    return out


def rotation(positions: Floats, places: Floats, weights: Floats) -> Floats:
    """Return the rotation R (3, 3) that brings centred positions (G, 3) nearest to places: positions @ R.T.

    Never a reflection. Where several rotations are as good, as for atoms in a row, one of them.
    """
    u, _, v = np.linalg.svd((weights[:, None] * positions).T @ places)
    turn: Floats = (v.T * [1, 1, np.sign(np.linalg.det(u @ v))]) @ u.T
    return turn
