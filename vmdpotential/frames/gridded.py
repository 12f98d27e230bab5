"""Common parts of maps over frames: aligned frames, lattices in changing cells, and their description.

If a periodic cell changes, nodes stay at the same fractional coordinates of each frame's cell, and the map is given in
the mean cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.arrays import Floats
from vmdpotential.execution.blocks import FRAMES_LABEL
from vmdpotential.frames.statistics import Moments
from vmdpotential.frames.task import FrameTask
from vmdpotential.frames.whole import FrameAlignment
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.trajectories.frames import Frame, Frames, periodic_cell
from vmdpotential.maps import build_lattice, choose_cell
from vmdpotential.molecule.cell import SAME_CELL, Cell, cell_stretch
from vmdpotential.molecule.structure import Structure

#: What the maps of statistics are in their :class:`~vmdpotential.grid.provenance.Provenance`, as `derived`.
DERIVED_VALUES = {"mean": "", "std": "deviation", "sem": "error"}

#: Number of random nodes at which the correlation of blocks is estimated.
POINTS = 1024


@dataclass(frozen=True, eq=False)
class GridWork(FrameTask):
    """Base class of maps that are computed from blocks of frames; small, picklable, and the same for all blocks.

    Parameters
    ----------
    frames : Frames
    alignment : Alignment or None
        None if frames are used as they are.
    lattice : Lattice
    cell : Cell or None
        The periodic cell of the lattice; None if the boundary is open.
    own_cells : bool
        Whether each frame has its own cell; otherwise all have `fixed`.
    fixed : Cell or None
    """

    frames: Frames
    alignment: FrameAlignment | None
    lattice: Lattice
    cell: Cell | None
    own_cells: bool
    fixed: Cell | None

    @classmethod
    def of(cls, structure: Structure, frames: Frames, alignment: Mapping[str, Any], lattice: Lattice | None, *,
           spacing: float, padding: float | None, around: Floats, boundary: str, fixed_cell: bool, **own: Any) -> Self:
        """Return the work on frames of a structure's atoms.

        Parameters
        ----------
        structure, frames
        alignment : mapping
            Arguments of :meth:`vmdpotential.frames.whole.FrameAlignment.of`: ``group``, ``name`` and ``rotate``.
        lattice : Lattice or None
            If None, a lattice over the periodic cell; with a padding, or in an open boundary (where 5 A is the
            default), around the group.
        spacing, padding : float, A
        around : (n, 3) float64, A
            Positions around which the lattice is placed if there is no group.
        boundary : str
        fixed_cell : bool
            Whether the structure's cell replaces those of the frames.
        **own
            The fields of the subclass.
        """
        first = next(iter(frames.part(frames.numbers()[:1])))
        own_cells = not fixed_cell and first.cell is not None
        here = replace(structure, positions=np.asarray(first.positions, np.float64),
                       cell=first.cell if own_cells else structure.cell)
        cell = None if alignment.get("rotate") else choose_cell(here, "auto", boundary)
        moves = None if alignment.get("group") is None else FrameAlignment.of(
            structure, boundary="open" if cell is None else "periodic", **alignment)
        if lattice is None and cell is not None and padding is None:
            lattice = build_lattice(structure, structure.positions, cell, spacing, 0.0)
        if lattice is None:
            lattice = Lattice.around(around if moves is None else moves.reference, spacing,
                                     5.0 if padding is None else padding)
        return cls(frames, moves, lattice, cell, own_cells, here.cell, **own)

    def moved(self, numbers: range, cells: Moments, rows: NDArray[np.int64] | None = None) -> Iterator[
            tuple[Floats, Cell | None]]:
        """Yield the aligned positions of some frames and their cells, which are added to `cells`.

        Aligned positions are those of the atoms `rows`, or of all. Without an alignment they are those of all atoms, in
        the precision of the file, which may be float32.
        """
        for done, frame in enumerate(self.frames.part(numbers), 1):
            cell = self._cell_of(frame)
            if cell is not None:
                cells.add(cell.vectors)
            positions = frame.positions
            if self.alignment is not None:
                positions = self.alignment.align(positions, cell, rows)
            yield positions, cell
            progress.report_progress(FRAMES_LABEL, done / len(numbers))

    def _cell_of(self, frame: Frame) -> Cell | None:
        """Return the cell of a frame."""
        if not self.own_cells:
            return self.fixed
        return frame.cell if self.cell is None else periodic_cell(self.frames.name, frame, self.cell)

    @property
    def sample(self) -> NDArray[np.int64]:
        """(P,) indices into the flattened map at which the correlation of blocks is estimated."""
        return np.unique(np.random.default_rng(2010).integers(0, self.lattice.size, POINTS))


def lattice_in(lattice: Lattice, planned: Cell, mean: Cell) -> Lattice:
    """Return the lattice with each node at the same fractional coordinates in the mean cell.

    If the mean cell is sheared with respect to the planned one, a lattice along x, y and z cannot follow it and is
    returned unchanged.
    """
    along = cell_stretch(planned, mean)
    return lattice if along is None or np.abs(along - 1).max() <= SAME_CELL else lattice.stretched(along)


def frames_text(numbers: range) -> str:
    """Return frame numbers as text for the provenance of a map."""
    return f"{len(numbers)}: {numbers[0]} to {numbers[-1]}" + (f", every {numbers.step}" if numbers.step > 1 else "")
