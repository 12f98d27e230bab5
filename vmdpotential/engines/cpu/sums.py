"""Lattice sums on the CPU, prepared once and run for any charges: pairs, and the smooth part of a mesh or of levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import LatticeSum, charges_and_positions, in_box
from vmdpotential.engines.cpu import levels, mesh, tiles
from vmdpotential.engines.result import HostResult
from vmdpotential.grid.lattice import Lattice
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
        return next(self.parts(positions, charges, [self.work.lattice]))

    def parts(self, positions: Any, charges: Any, parts: Iterable[Lattice]) -> Iterator[HostResult]:
        """Yield the sum on parts of the lattice; the smooth part's mesh is solved once."""
        work = self.work
        positions, charges = in_box(work, *charges_and_positions(positions, charges))
        solved = self.smooth.potential(positions, charges) if self.smooth is not None and len(positions) else None
        for part in parts:
            yield HostResult(self._on(part, positions, charges, solved).reshape(-1, *part.shape))

    def _on(self, part: Lattice, positions: Floats, charges: Floats, solved: NDArray[Any] | None) -> NDArray[Any]:
        work = self.work
        if work.pairs.cutoff is None:
            return tiles.direct(part, positions, charges, work.pairs, work.precision, work.field)
        smooth = None if solved is None or self.smooth is None else self.smooth.on(part, solved, work.field)
        return tiles.cutoff(part, positions, charges, work.pairs, work.precision, work.cell, work.field, smooth)
