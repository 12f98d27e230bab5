"""The potential of one charge after another, as ions are placed by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Waiting(Protocol):
    """Sums the potential of charges at sites in an order of its own; a part that is small and smooth waits."""

    order: NDArray[np.int64]
    slack: float

    def add(self, position: Floats, charge: float, potential: Floats) -> None:
        """Add the potential (e/A) of a charge to that at the sites, but for what waits."""

    def at(self, rows: NDArray[np.int64]) -> Floats:
        """Return what waits, at most `slack` e/A, at some of the sites."""

    def settle(self, potential: Floats) -> None:
        """Add what waits to the potential at the sites."""


class ChargePotential(Protocol):
    """The potential of one charge, in a periodic cell with all its images."""

    @property
    def steps(self) -> Callable[..., float] | None:
        """Compiled steps of :class:`~vmdpotential.ions.montecarlo.Metropolis`; None where there are none."""

    def add(self, points: Floats, position: Floats, charge: float, potential: Floats) -> None:
        """Add the potential (e/A) of a charge, in a periodic cell of all its images, to that at points."""

    def waiting(self, sites: Floats) -> Waiting | None:
        """Return what does the same at many sites in less time, if there is such."""

    def most(self, distance: float) -> float:
        """Return what the potential (1/A) of a unit charge never exceeds at a distance (A) or farther."""
