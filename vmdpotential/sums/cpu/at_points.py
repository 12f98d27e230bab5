"""Sums at arbitrary points on the CPU, of pairs and a smooth part on a mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.splitting.mesh import Mesh
from vmdpotential.sums.cpu import mesh as engine
from vmdpotential.sums.cpu.nearby import cutoff_at_points, field_at_points
from vmdpotential.sums.cpu.points import at_points
from vmdpotential.sums.inputs import charges_and_positions
from vmdpotential.sums.potential_sum import PotentialSum, Prepared
from vmdpotential.sums.result import HostResult

#: Points are sorted into blocks of this many nodes along each axis, so that a thread finds their nodes in its cache.
BLOCK = 8


class CpuPoints(Prepared):
    """A sum at points; see :class:`vmdpotential.engines.Prepared`."""

    def __init__(self, work: PotentialSum) -> None:
        self.work = work
        self._smooth = MeshAtPoints(work.smooth) if isinstance(work.smooth, Mesh) else None

    @property
    def self_potential(self) -> float:
        """Potential of a unit charge at its own position, 1/A."""
        return self.work.self_potential

    def run(self, positions: Any, charges: Any, target: Any = None) -> HostResult:
        """Return the sum for positions (N, 3), A, and charges (N,), e."""
        work = self.work
        positions, charges = charges_and_positions(positions, charges)
        points = (target or work.target).points()
        distances = np.empty(len(points)) if work.distances else None
        if self._smooth is None:
            return HostResult(self._pairs(points, positions, charges, distances), distances=distances)
        values = self._smooth.at(points, positions, charges, work.field)
        if work.pairs is not None:
            values += self._pairs(points, positions, charges, distances)
        return HostResult(values, distances=distances)

    def _pairs(self, points: Floats, positions: Floats, charges: Floats, nearest: Floats | None) -> Floats:
        """Return potential and field (1 or 4, P) of the pairs, by the fastest kernel."""
        work, bound = self.work, self.work.pairs
        assert bound is not None
        reach = bound.cutoff
        # a sum over all atoms is slower if few of them are within the cutoff, but only it finds the nearest atoms
        few = reach is not None and (work.cell is None or (4 * reach) ** 3 < work.cell.volume)
        if nearest is not None or not (work.field or few or not work.single_image):
            potential = at_points(points, positions, charges, work.cell, bound, nearest)
            if work.single_image and not work.field:
                return potential[None]
        if reach is None:
            return field_at_points(points, positions, charges, bound)
        return cutoff_at_points(points, positions, charges, bound, work.cell, work.field)


class MeshAtPoints:
    """The smooth part at points, computed on a mesh in double precision."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self._basis, self._influence = engine.Basis(mesh.order, True), mesh.influence()
        self._inverse = np.linalg.inv(mesh.steps)

    def at(self, points: Floats, positions: Floats, charges: Floats, field: bool) -> Floats:
        """Return the potential, e/A, and with `field` the field, e/A^2, at the points, (1 or 4, P)."""
        basis, mesh = self._basis, self.mesh
        nodes = engine.spread(basis, mesh, positions, charges)
        smooth = np.ascontiguousarray(engine.solve(basis, mesh, nodes, self._influence))
        coordinates = mesh.coordinates(points)
        block = (coordinates / BLOCK).astype(np.int64)
        _, rows, columns = block.max(0, initial=0) + 1
        key = (block[:, 0] * rows + block[:, 1]) * columns + block[:, 2]
        order = np.argsort(key.astype(np.int16) if key.max(initial=0) < 2**15 else key, kind="stable")
        coordinates = coordinates[order]
        values = np.stack([engine.at_places(basis, smooth, coordinates, along)
                           for along in range(-1, 3 if field else 0)])
        if field:
            values[1:] = -self._inverse @ values[1:]
        result = np.empty_like(values)
        result[:, order] = values
        return result
