"""Smooth parts of sums that are not on one mesh, and what spreading and interpolation know of a mesh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from vmdpotential.engines import LatticeSum, Prepared
    from vmdpotential.grid.lattice import Box
    from vmdpotential.interactions import Bound
    from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]


class Nodes(Protocol):
    """What spreading and interpolation know of a mesh, or of the finest level of a multilevel sum."""

    @property
    def origin(self) -> Floats:
        """(3,) first node, A."""

    @property
    def steps(self) -> Floats:
        """(3, 3) vectors between neighbouring nodes, as rows, A."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Nodes along each axis."""

    @property
    def order(self) -> int:
        """Nodes along each axis that a charge goes to."""

    @property
    def periodic(self) -> bool | tuple[bool, bool, bool]:
        """Whether it is, or whether it is along each axis."""

    def coordinates(self, positions: ArrayLike) -> Floats:
        """Return positions in mesh steps."""


class SmoothPart(Nodes, Protocol):
    """A smooth part that is not on one mesh: nodes that charges are spread to, with a sum of its own on each engine."""

    @property
    def cell(self) -> Cell | None:
        """Whose images the pairs have."""

    @property
    def box(self) -> Box | None:
        """In an open boundary, the box that charges must be in."""

    @property
    def end(self) -> float:
        """Where it ends, A; infinite where it does nowhere."""

    @property
    def short(self) -> Bound:
        """The pair interaction that it leaves."""

    def in_cell(self, cell: Cell) -> SmoothPart:
        """Return the same in another periodic cell, or raise TaskError."""

    def prepare(self, engine: str, work: LatticeSum) -> Prepared:
        """Return a sum of which this is the smooth part, ready to run, on an engine by its name."""
