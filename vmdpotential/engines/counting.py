"""The interface of engines for counting atoms at the nodes of a lattice, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counting:
    """Weights, spreading and lattice by which atoms are counted.

    Parameters
    ----------
    spreading : {"nearest", "gaussian", "occupancy"}
        An atom counts at the node nearest to it, is spread as a Gaussian, or sets nodes within its radius to 1.
    weights, widths : (n,) float64
        Weight of each atom, and its standard deviation or radius, A.
    origin, spacing : (3,) float64, A
        First node of the lattice, and distances of nodes along each axis.
    shape : (3,) int64
        Number of nodes along each axis.
    cell, inverse : (3, 3) or (0, 3) float64
        Vectors of the periodic cell and their inverse, in spacings; size 0 in an open boundary.
    images : (S, 3) float64
        Lattice vectors of the cell, in spacings, that shift a part of the cell onto the lattice.
    reach : (3,) int64
        Number of nodes along each axis, to either side, within which an atom counts.
    """

    spreading: str
    weights: Floats
    widths: Floats
    origin: Floats
    spacing: Floats
    shape: Integers
    cell: Floats
    inverse: Floats
    images: Floats
    reach: Integers


class Counter(Protocol):
    """Sums over frames of the atoms' contributions to each node; for one thread at a time."""

    def add(self, positions: NDArray[np.floating], change: Floats, rows: Integers) -> None:
        """Add a frame.

        Parameters
        ----------
        positions : (N, 3), A
        change : (3, 3) or (0, 3) float64
            Matrix that maps positions in the frame's cell to the lattice's cell; size 0 if nothing changes.
        rows : (n,) int64
            Rows of the counted atoms in `positions`.
        """

    def take(self) -> tuple[Integers, Floats, Floats]:
        """Return nodes (T,) with contributions, increasing, and sums of their values and squares; reset the sums."""
