"""The input of engines for distances to a molecular surface."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Lattice

Floats = NDArray[np.float64]


class Cubes(Protocol):
    """Cubes of space, and the points that are sorted by them, z fastest."""

    low: Floats  # (3,), A, the corner of the first cube
    side: float  # A
    counts: NDArray[np.int64]  # (3,), cubes along each axis
    starts: NDArray[np.int64]  # (C + 1,), first point of each cube


class Spheres(Protocol):
    """The spheres around atoms that the centre of a probe cannot enter, sorted by cubes of their largest diameter."""

    probe: float  # radius, A
    centres: Floats  # (M, 3), A
    radii: Floats  # (M,), A

    @property
    def cubes(self) -> Cubes:
        """The cubes by which the spheres are sorted."""

    def signed(self, lattice: Lattice, reach: float,
               ion: float | None) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Return what :meth:`vmdpotential.engines.Engine.surface` returns, computed on the CPU."""
