"""Interfaces of smooth parts of sums that are not on one mesh, and of the nodes for spreading and interpolation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from vmdpotential.grid.targets import Box
    from vmdpotential.interactions import Bound
    from vmdpotential.molecule.cell import Cell
    from vmdpotential.sums.potential_sum import PotentialSum, Prepared

Floats = NDArray[np.float64]


class NodesOfMesh(Protocol):
    """NodesOfMesh of a mesh, or of the finest level of a multilevel sum, for spreading and interpolation."""

    @property
    def origin(self) -> Floats:
        """Position (3,) of the first node, A."""

    @property
    def steps(self) -> Floats:
        """Vectors (3, 3) between neighbouring nodes, as rows, A."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of nodes along each axis."""

    @property
    def order(self) -> int:
        """Number of nodes along each axis that a charge is spread to."""

    @property
    def periodic(self) -> bool | tuple[bool, bool, bool]:
        """Whether the nodes repeat periodically, for all axes or for each."""

    def coordinates(self, positions: ArrayLike) -> Floats:
        """Return positions in units of the steps between nodes, from the first node."""


class SmoothPart(NodesOfMesh, Protocol):
    """A smooth part that is not on one mesh: charges are spread to its nodes, and it prepares its own sum."""

    @property
    def cell(self) -> Cell | None:
        """Periodic cell of the pairs; None in an open boundary."""

    @property
    def box(self) -> Box | None:
        """In an open boundary, the box that has to contain the charges."""

    @property
    def end(self) -> float:
        """Distance from which on the smooth part is zero, A; infinite if it extends without end."""

    @property
    def self_potential(self) -> float:
        """The smooth potential of a unit charge at its own position, 1/A."""

    @property
    def short(self) -> Bound:
        """The short-range pair interaction that completes the smooth part."""

    def in_cell(self, cell: Cell) -> SmoothPart:
        """Return the same smooth part in another periodic cell, or raise TaskError."""

    def prepare(self, engine: str, work: PotentialSum) -> Prepared:
        """Return a sum with this smooth part, prepared to run on the engine of this name."""
