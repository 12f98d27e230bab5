"""Lattice sums on the CPU, prepared once and run for any charges: pairs, and the smooth part of a mesh or of levels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import LatticeSum, charges_and_positions, in_box
from vmdpotential.engines.cpu import levels, mesh, tiles
from vmdpotential.engines.result import HostResult, Maps, Mean, MeanOfResults, check_frames
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
        return HostResult(self.with_pairs(positions, charges, smooth).reshape(-1, *work.lattice.shape))

    def with_pairs(self, positions: Floats, charges: Floats, smooth: Maps | None) -> Maps:
        """Return the sum over pairs, added to a smooth part where there is one."""
        work = self.work
        if work.pairs is None:
            return np.zeros((work.maps, *work.lattice.shape), np.float32) if smooth is None else smooth
        if work.pairs.cutoff is None:
            return tiles.direct(work.lattice, positions, charges, work.pairs, work.precision, work.field)
        return tiles.cutoff(work.lattice, positions, charges, work.pairs, work.precision, work.cell, work.field, smooth)

    def new_mean(self) -> Mean:
        """Return the mean of no frames yet."""
        return MeshMean(self, self.smooth) if isinstance(self.smooth, mesh.MeshSum) else MeanOfResults(self.run)


class MeshMean:
    """The mean of a sum by a mesh, with one transform at the end; see :class:`vmdpotential.engines.result.Mean`."""

    def __init__(self, whole: CpuSum, smooth: mesh.MeshSum) -> None:
        self.whole, self.smooth, self.count = whole, smooth, 0
        work = whole.work
        self._nodes = np.zeros(smooth.mesh.shape)
        self._pairs = None if work.pairs is None else np.zeros((work.maps, *work.lattice.shape))

    def add(self, positions: Any, charges: Any) -> None:
        """Spread the charges of a frame, and sum its pairs."""
        positions, charges = in_box(self.whole.work, *charges_and_positions(positions, charges))
        if len(positions):
            mesh.spread(self.smooth.kernel, self.smooth.mesh, positions, charges, self._nodes)
        if self._pairs is not None:
            self._pairs += self.whole.with_pairs(positions, charges, None)
        self.count += 1

    def result(self) -> HostResult:
        """Return the mean."""
        check_frames(self.count)
        work = self.whole.work
        maps = self.smooth.maps_of(self._nodes / self.count, work.field).reshape(-1, *work.lattice.shape)
        if self._pairs is not None:
            maps += self._pairs / self.count
        return HostResult(maps)
