"""Lattice sums on the CPU, of pairs and a smooth part, prepared once and run for any charges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.grid.lattice import Lattice
from vmdpotential.splitting.mesh import Mesh
from vmdpotential.sums.cpu import mesh, tiles
from vmdpotential.sums.inputs import charges_and_positions, in_box
from vmdpotential.sums.potential_sum import PotentialSum, Prepared
from vmdpotential.sums.result import HostResult, Maps, RunningMean, check_frames


class SmoothSum(Protocol):
    """The smooth part of a lattice sum."""

    def potential(self, positions: Floats, charges: Floats) -> NDArray[Any]:
        """Return the smooth potential at its nodes."""

    def on(self, part: Lattice, potential: NDArray[Any], field: bool) -> Maps:
        """Return the potential interpolated to a part of the lattice."""


class CpuSum(Prepared):
    """A lattice sum; see :class:`vmdpotential.engines.Prepared`."""

    def __init__(self, work: PotentialSum, smooth: SmoothSum | None = None) -> None:
        self.work, self.smooth = work, smooth

    def run(self, positions: Any, charges: Any, target: Any = None) -> HostResult:
        """Return the sum for positions (N, 3), A, and charges (N,), e.

        Raises
        ------
        InputError
            If charges are outside of the box that the smooth part of an open boundary was planned for.
        """
        return next(self.parts(positions, charges, [target or self.work.lattice]))

    def parts(self, positions: Any, charges: Any, parts: Iterable[Any]) -> Iterator[HostResult]:
        """Yield the sum on parts of the lattice; the smooth potential at the nodes is computed once."""
        work = self.work
        positions, charges = in_box(work, *charges_and_positions(positions, charges))
        solved = self.smooth.potential(positions, charges) if self.smooth is not None and len(positions) else None
        for part in parts:
            smooth = None if solved is None or self.smooth is None else self.smooth.on(part, solved, work.field)
            yield HostResult(self.with_pairs(part, positions, charges, smooth).reshape(-1, *part.shape))

    def with_pairs(self, part: Lattice, positions: Floats, charges: Floats, smooth: Maps | None) -> Maps:
        """Return the sum over pairs on a part of the lattice, added to the smooth part if there is one."""
        work = self.work
        if work.pairs is None:
            return np.zeros((work.maps, *part.shape), np.float32) if smooth is None else smooth
        if work.pairs.cutoff is None:
            return tiles.direct(part, positions, charges, work.pairs, work.precision, work.field)
        return tiles.cutoff(part, positions, charges, work.pairs, work.precision, work.cell, work.field, smooth)


class CpuMeshSum(CpuSum):
    """A lattice sum with its smooth part on a mesh."""

    def __init__(self, work: PotentialSum, nodes: Mesh) -> None:
        self.by_mesh = mesh.MeshSum(nodes, work.lattice, work.precision)
        super().__init__(work, self.by_mesh)

    def new_mean(self) -> RunningMean:
        """Return an empty mean, for which the mesh is transformed only once."""
        return MeshMean(self, self.by_mesh)


class MeshMean:
    """The mean of a mesh sum, with one transform at the end; see :class:`~vmdpotential.sums.result.RunningMean`."""

    def __init__(self, lattice_sum: CpuSum, smooth: mesh.MeshSum) -> None:
        self.lattice_sum, self.smooth, self.count = lattice_sum, smooth, 0
        work = lattice_sum.work
        self._nodes = np.zeros(smooth.mesh.shape)
        self._pairs = None if work.pairs is None else np.zeros((work.maps, *work.lattice.shape))

    def add(self, positions: Any, charges: Any) -> None:
        """Spread the charges of a frame, and sum its pairs."""
        work = self.lattice_sum.work
        positions, charges = in_box(work, *charges_and_positions(positions, charges))
        if len(positions):
            mesh.spread(self.smooth.basis, self.smooth.mesh, positions, charges, self._nodes)
        if self._pairs is not None:
            self._pairs += self.lattice_sum.with_pairs(work.lattice, positions, charges, None)
        self.count += 1

    def result(self) -> HostResult:
        """Return the mean."""
        check_frames(self.count)
        work = self.lattice_sum.work
        solved = self.smooth.solved(self._nodes / self.count)
        maps = self.smooth.on(work.lattice, solved, work.field).reshape(-1, *work.lattice.shape)
        if self._pairs is not None:
            maps += self._pairs / self.count
        return HostResult(maps)
