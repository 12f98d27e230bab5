"""Lattice sums on the CPU, prepared once and run for any charges: pairs, and the smooth part of a mesh or of levels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import LatticeSum, charges_and_positions, in_box
from vmdpotential.engines.cpu import levels, mesh, tiles
from vmdpotential.engines.result import HostResult
from vmdpotential.splitting.mesh import Mesh

Floats = NDArray[np.float64]


class CpuSum:
    """A lattice sum; see :class:`vmdpotential.engines.Prepared`."""

    def __init__(self, work: LatticeSum) -> None:
        self.work = work
        self.smooth: mesh.MeshSum | levels.LevelSum | None = None
        if isinstance(work.smooth, Mesh):
            self.smooth = mesh.MeshSum(work.smooth, work.lattice, work.precision)
        elif work.smooth is not None:
            self.smooth = levels.LevelSum(work.smooth, work.lattice, work.precision)

    def run(self, positions: Any, charges: Any) -> HostResult:
        """Return the sum for positions (N, 3), A, and charges (N,), e.

        Raises
        ------
        InputError
            For charges outside the box that an open boundary's smooth part was planned for.
        """
        work = self.work
        positions, charges = in_box(work, *charges_and_positions(positions, charges))
        smooth = None
        if self.smooth is not None and len(positions):
            smooth = self.smooth.maps(positions, charges, work.field)
        if work.pairs.cutoff is None:
            maps = tiles.direct(work.lattice, positions, charges, work.pairs, work.precision, work.field)
        else:
            maps = tiles.cutoff(work.lattice, positions, charges, work.pairs, work.precision, work.cell, work.field,
                                smooth)
        return HostResult(maps.reshape(-1, *work.lattice.shape))
