"""Mesh sums on a GPU: Fourier transforms by VkFFT, and the factors between them by the kernels of mesh.cu."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines.cuda import fft
from vmdpotential.splitting.mesh import Mesh, spline_correction
from vmdpotential.sums.cuda import maps
from vmdpotential.sums.cuda.nodes import NodeSum
from vmdpotential.sums.potential_sum import PotentialSum
from vmdpotential.sums.result import RunningMean


class MeshSum(NodeSum):
    """A lattice sum with its smooth part on a mesh, to which the pairs are added.

    Raises
    ------
    BackendError
        If pyvkfft is missing.
    """

    def __init__(self, work: PotentialSum) -> None:
        mesh = work.smooth
        assert isinstance(mesh, Mesh)
        super().__init__(work, mesh.transform_shape, nodal=False)
        self.label = "mesh sum"
        self.mesh = mesh
        self.sampled = not (mesh.periodic or mesh.compact)
        set_influence(self.node_task, mesh)
        self._sampled_on: set[int] = set()

    def fixed_bytes(self, count: int) -> int:
        """Return the bytes that a GPU needs for a number of atoms, in addition to the map."""
        a, b, c = self.shape
        again = self.node_bytes if max(a, b, c) > 1024 else 0  # long transforms have two steps, with a buffer between
        octant = (a // 2 + 1) * (b // 2 + 1) * (c // 2 + 1) if self.sampled else 0
        tables = 24 * max(self.shape) * 3 + (0 if self.sampled else self.real.itemsize * window_size(self.mesh)[1])
        return super().fixed_bytes(count) + again + self.real.itemsize * octant + tables

    def prepare(self, gpu: Any, positions: Floats, charges: Floats, stream: Any = None) -> maps.Job:
        """Upload the atoms and, once, the mesh's tables, and return the job."""
        job, mesh, shape = super().prepare(gpu, positions, charges, stream), self.mesh, self.shape
        own = job.nodes
        own["correction"] = self.table(gpu, "correction", lambda: np.concatenate(
            [correction(n, mesh.order) for n in shape]), (shape, mesh.order))
        if self.sampled:
            own["squares"] = self.table(gpu, "squares", lambda: np.concatenate(mesh.squared_distances))
            octant = [n // 2 + 1 for n in shape]
            own["influence"] = self.table(gpu, "influence", lambda: np.empty(octant, self.real))
        else:
            size = window_size(mesh)
            own["window"] = self.table(gpu, "window", lambda: mesh.window_table(*size).astype(self.real),
                                       (mesh.splitting, size, self.real))
        return job

    def solve(self, job: maps.Job) -> None:
        """Queue the transforms, and the multiplication by the influence between them."""
        shape, nodes, gpu = self.shape, int(job.nodes["nodes"]), job.gpu
        a, b, _ = shape
        transform = gpu.plan((shape, self.real), lambda: fft.Transform(shape, self.real, job.stream))
        if self.sampled and gpu.number not in self._sampled_on:
            self.queue(job, "sample", (b, a, 1), 128)
            transform.forward(nodes)
            self.queue(job, "keep", (b // 2 + 1, a // 2 + 1, 1), 128)
            self._sampled_on.add(gpu.number)
        self.queue(job, "unpack", (b, a, 1), 128)
        transform.forward(nodes)
        self.queue(job, "multiply_sampled" if self.sampled else "multiply_transformed", (b, a, 1), 128)
        transform.inverse(nodes)


    def new_mean(self) -> RunningMean:
        """Return an empty mean, for which the mesh is transformed only once."""
        from vmdpotential.sums.cuda.mean import MeshMean

        return MeshMean(self)


def set_influence(task: Any, mesh: Mesh) -> None:
    """Set the fields of a task from which the factors between the transforms are computed."""
    counts = np.array(mesh.transform_shape)
    task["factor"], task["kappa"] = 1 / counts.prod(), mesh.splitting.kappa
    if mesh.periodic or mesh.compact:
        volume = abs(np.linalg.det(mesh.steps))
        task["reciprocal"] = 2 * np.pi * np.linalg.inv(mesh.steps) / counts
        task["window_scale"], _ = window_size(mesh)
        task["factor"] *= 4 * np.pi / volume
        task["constant"] = mesh.splitting.integral / (volume * counts.prod())
    else:
        coefficients = mesh.splitting.polynomial
        task["gaussian"], task["inverse_square"] = mesh.splitting.ewald_factor, mesh.splitting.radius**-2
        task["smooth"][: len(coefficients)] = coefficients


@lru_cache(maxsize=64)
def correction(count: int, order: int) -> Floats:
    """Return the factors (count / 2 + 1,) that correct for the splines along an axis of `count` nodes."""
    return spline_correction(order, 2 * np.pi * np.arange(count // 2 + 1) / count)


def window_size(mesh: Mesh) -> tuple[float, int]:
    """Return the scale and the length of the table of the smooth part's transform, up to the longest wave vector."""
    # the longest wave vector is a corner of the box of phases from -pi to pi
    signs = np.array([[1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1]])
    scale, count = mesh.window_size(float(np.linalg.norm(np.pi * signs @ np.linalg.inv(mesh.steps).T, axis=1).max()))
    return scale, -(-count // 4096) * 4096  # rounded, so that cells of similar sizes share a table
