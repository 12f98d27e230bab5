"""Frames with the periodic cells that apply in a boundary, for tasks that do not align frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from vmdpotential import progress
from vmdpotential.execution.blocks import FRAMES_LABEL
from vmdpotential.io.trajectories.frames import Frame, Frames, LoadedFrames, cell_of
from vmdpotential.maps import choose_cell
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.whole import WholeComplex


@dataclass(frozen=True)
class CellFrames:
    """Frames with the cells that apply in a boundary: each frame's own, unless the user gave one for all.

    Parameters
    ----------
    source : Frames
    first : Frame
        The first frame, with its cell.
    cell : Cell or None
        Cell of all frames, if they have none of their own or the user gave one.
    periodic : bool
        Whether the boundary is periodic; in an open one frames have no cells.
    together : Complex or None
        Function that makes the molecules of frames whole in an open boundary.
    """

    source: Frames
    first: Frame
    cell: Cell | None
    periodic: bool = True
    together: WholeComplex | None = None

    @classmethod
    def with_cells(cls, structure: Structure, source: Frames | None, cell: Cell | None = None) -> CellFrames:
        """Return the frames of a trajectory, or the structure as one frame, with their cells, if any.

        Raises
        ------
        InputError
            When the trajectory cannot be read or has other atoms.
        """
        source = source or LoadedFrames(structure.where, [(structure.positions, structure.cell)])
        first = next(iter(source.part(source.numbers()[:1])))
        usual = cell or (structure.cell if first.cell is None else None)
        return cls(source, first._replace(cell=usual or first.cell), usual)

    @classmethod
    def of(cls, structure: Structure, source: Frames | None, boundary: str, cell: Cell | None = None,
           together: WholeComplex | None = None) -> CellFrames:
        """Return frames as :meth:`with_cells` does; in an open boundary without cells and with whole molecules.

        Raises
        ------
        InputError
            When the trajectory cannot be read or has other atoms, or when a periodic boundary is requested and the
            first frame has no cell, or one that is too small for its atoms.
        """
        result = cls.with_cells(structure, source, cell)
        if boundary == "periodic" and source is not None:
            cell_of(source.name, result.first)
        here = replace(structure, positions=result.first.positions, cell=result.first.cell)
        if choose_cell(here, "auto", boundary) is None:
            result = replace(result, periodic=False, together=together)
            return replace(result, first=result._open(result.first))
        return result

    def identity(self) -> tuple[object, ...]:
        """Return the values that identify the frames, for fingerprints of inputs."""
        return (self.source, None if self.cell is None else self.cell.vectors, self.periodic, self.together is not None)

    def numbers(self) -> range:
        """Return the numbers of the frames."""
        return self.source.numbers()

    def part(self, numbers: range) -> Iterator[Frame]:
        """Yield some of the frames, by number.

        Raises
        ------
        InputError
            When a frame cannot be read, or has no cell where the others have one.
        """
        for done, frame in enumerate(self.source.part(numbers), 1):
            yield (frame._replace(cell=self.cell or cell_of(self.source.name, frame)) if self.periodic
                   else self._open(frame))
            progress.report_progress(FRAMES_LABEL, done / len(numbers))

    def _open(self, frame: Frame) -> Frame:
        """Return a frame without its cell, whose molecules are whole."""
        cell, positions = self.cell or frame.cell, frame.positions
        return frame._replace(positions=positions if self.together is None else self.together(positions, cell),
                              cell=None)
