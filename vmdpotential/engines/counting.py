"""Atoms counted at the nodes of a lattice, frame by frame: what engines get, and what they return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counting:
    """How atoms are counted.

    Parameters
    ----------
    spreading : {"nearest", "gaussian", "occupancy"}
        An atom counts at the node nearest to it, is spread as a Gaussian, or sets nodes within its radius to 1.
    weights, widths : (n,) float64
        What each adds, and its standard deviation or radius, A.
    origin, spacing : (3,) float64, A
    shape : (3,) int64
        Of the lattice.
    cell, inverse : (3, 3) or (0, 3) float64
        Vectors of the periodic cell and their inverse, in spacings; none in an open boundary.
    images : (S, 3) float64
        Shifts by which some of the cell reaches the lattice, in spacings.
    reach : (3,) int64
        Nodes along each axis within which an atom counts.
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
    """Sums over frames of what atoms add to each node, of one thread at a time."""

    def add(self, positions: NDArray[np.floating], change: Floats) -> None:
        """Add a frame.

        Parameters
        ----------
        positions : (n, 3), A
            Of the atoms that are counted.
        change : (3, 3) or (0, 3) float64
            Brings them into the lattice's cell.
        """

    def take(self) -> tuple[Integers, Floats, Floats]:
        """Return the nodes (T,) that were reached, increasing, and sums of their values and squares; begin again."""
