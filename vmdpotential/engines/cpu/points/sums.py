"""Sums at arbitrary points on the CPU, of pairs and a smooth part on a mesh."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import PointSum
from vmdpotential.engines.cpu.maps import mesh as engine
from vmdpotential.engines.cpu.points.nearby import cutoff_at_points, field_at_points
from vmdpotential.engines.cpu.points.points import at_points
from vmdpotential.splitting.mesh import Mesh

Floats = NDArray[np.float64]

#: Points are sorted into blocks of this many nodes along each axis, so that a thread finds their nodes in its cache.
BLOCK = 8


class CpuPoints:
    """A sum at points; see :class:`vmdpotential.engines.PreparedPoints`."""

    def __init__(self, work: PointSum) -> None:
        self.work, self.self_potential = work, work.self_potential
        self._smooth = None if work.smooth is None else MeshAtPoints(work.smooth)

    def at(self, points: Floats, positions: Floats, charges: Floats, field: bool = False,
           nearest: Floats | None = None) -> tuple[Floats, Floats | None]:
        """Return the potential (P,), e/A, and with `field` the field (P, 3), e/A^2."""
        points = np.asarray(points, np.float64).reshape(-1, 3)
        if self._smooth is None:
            return self._pairs(points, positions, charges, field, nearest)
        values = self._smooth.at(points, positions, charges, field)
        if self.work.pairs is not None:
            potential, short_field = self._pairs(points, positions, charges, field, nearest)
            values[0] += potential
            if short_field is not None:
                values[1:] += short_field.T
        return values[0], values[1:].T if field else None

    def _pairs(self, points: Floats, positions: Floats, charges: Floats, field: bool,
               nearest: Floats | None) -> tuple[Floats, Floats | None]:
        """Return potential and field of the pairs, by the fastest kernel."""
        work, bound = self.work, self.work.pairs
        assert bound is not None
        reach = bound.cutoff
        # a sum over all atoms is slower if few of them are within the cutoff, but only it finds the nearest atoms
        few = reach is not None and (work.cell is None or (4 * reach) ** 3 < work.cell.volume)
        if nearest is not None or not (field or few or not work.single_image):
            potential = at_points(points, positions, charges, work.cell, bound, nearest)
            if work.single_image and not field:
                return potential, None
        if reach is None:
            return field_at_points(points, positions, charges, bound)
        slope = np.empty((len(points), 3)) if field else None
        return cutoff_at_points(points, positions, charges, bound, work.cell, slope), slope


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
