"""The potential of one charge after another, by which ions are placed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats


class PendingPotential(Protocol):
    """The potential of charges at reordered sites, of which a small and smooth pending part is added later."""

    #: Indices (W,) of the sites in the order of the potentials.
    order: NDArray[np.int64]
    #: Bound on the pending part, e/A.
    slack: float

    def add(self, position: Floats, charge: float, potential: Floats) -> None:
        """Add the potential (e/A) of a charge, except for its pending part, to that at the sites."""

    def at(self, rows: NDArray[np.int64]) -> Floats:
        """Return the pending part, at most `slack` e/A, at some of the sites."""

    def add_pending(self, potential: Floats) -> None:
        """Add the pending part to the potential at the sites."""


class ChargePotential(Protocol):
    """The potential of one charge, in a periodic cell with all its images."""

    @property
    def steps(self) -> Callable[..., float] | None:
        """Compiled steps of :class:`~vmdpotential.plugins.ions.montecarlo.Metropolis`; None if the engine has none."""

    def add(self, points: Floats, position: Floats, charge: float, potential: Floats) -> None:
        """Add the potential (e/A) of a charge, with all its images in a periodic cell, to that at points."""

    def pending(self, sites: Floats) -> PendingPotential | None:
        """Return an object that adds potentials at many sites faster, or None if the engine has none."""

    def upper_bound(self, distance: float) -> float:
        """Return an upper bound of the potential (1/A) of a unit charge at a distance (A) or farther."""
