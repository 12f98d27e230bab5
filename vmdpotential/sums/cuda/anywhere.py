"""Potential and field at arbitrary points by a mesh on a GPU, in float64, with the kernels of mesh.cu and near.cu."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines.cuda import device, driver
from vmdpotential.grid.lattice import Lattice, Points
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.mesh import Mesh
from vmdpotential.sums.cuda import kernel_file, maps
from vmdpotential.sums.cuda.mesh import MeshSum
from vmdpotential.sums.cuda.points import PairsAtPoints
from vmdpotential.sums.inputs import charges_and_positions, in_box
from vmdpotential.sums.potential_sum import PotentialSum
from vmdpotential.sums.result import HostResult

#: Spacing, A, of an auxiliary lattice over all points; atoms near the lattice are sorted by cell.
SPACING = 1.0


class AtPoints(MeshSum):
    """A mesh sum at points; see :class:`vmdpotential.engines.Prepared`."""

    def __init__(self, work: PotentialSum) -> None:
        mesh = work.smooth
        assert isinstance(mesh, Mesh)
        cell = mesh.cell
        if cell is not None and not cell.orthogonal:
            cell = Cell(cell.reduced)  # fewer images are in its bounding box
        super().__init__(PotentialSum(_box(mesh, cell), work.pairs, mesh.cell, "double", True, mesh))
        self.at_points, self._compact = work, cell
        self._nearest = (PairsAtPoints(replace(work, smooth=None, field=False))
                         if work.distances and work.pairs is not None else None)

    @property
    def self_potential(self) -> float:
        """Potential of a unit charge at its own position, 1/A."""
        return self.at_points.self_potential

    def run(self, positions: Any, charges: Any, target: Any = None) -> HostResult:
        """Return the sum for positions (N, 3), A, and charges (N,), e."""
        points = (target or self.at_points.target).points()
        distances = None if self._nearest is None else self._nearest.run(positions, charges, Points(points)).distances
        positions, charges = in_box(self.work, *charges_and_positions(positions, charges))
        values = np.zeros((self.at_points.maps, len(points)))
        if len(points) and len(positions):
            points = np.ascontiguousarray(points if self._compact is None else self._compact.wrap(points), np.float64)
            with device.with_room(self.fixed_bytes(len(positions)) + 56 * len(points)) as gpu:
                self._sum(gpu, points, positions, charges, values)
        return HostResult(values, distances=distances)

    def _sum(self, gpu: device.Gpu, points: Floats, positions: Floats, charges: Floats, values: Floats) -> None:
        stream = gpu.streams()[1][0][0]
        job = self.prepare(gpu, positions, charges, stream)
        self.sort(job)
        places = gpu.send("points", points, stream)
        sums = gpu.buffer("sums", 32 * len(points))
        job.nodes["places"], job.nodes["values"], job.nodes["place_count"] = places, sums, len(points)
        self.queue(job, "at_points", (-(-len(points) // 128), 1, 1), 128)
        if self.work.pairs is not None:
            job.task["places"], job.task["sums"], job.task["place_count"] = places, sums, len(points)
            kernel = gpu.kernel(kernel_file("near.cu"), "near", {"REAL": "double"}, self.radial, maps.TASK.itemsize)
            kernel.prepared_async_call((-(-len(points) // 4), 1, 1), (128, 1, 1), stream, job.task.tobytes())
        stream.synchronize()
        driver.cuda_driver().memcpy_dtoh(values, sums)


def _box(mesh: Mesh, cell: Cell | None) -> Lattice:
    """Return a lattice over all points of a cell, or over the nodes of an open boundary."""
    basis = mesh.steps * np.array(mesh.shape)[:, None] if cell is None else cell.vectors
    low = mesh.origin if cell is None else np.minimum(basis, 0).sum(0)
    counts = np.ceil(np.abs(basis).sum(0) / SPACING).astype(int) + 1
    return Lattice(low, np.full(3, SPACING), (int(counts[0]), int(counts[1]), int(counts[2])))
