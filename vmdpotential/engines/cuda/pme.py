"""Mesh sums on a GPU: Fourier transforms by VkFFT, and the factors between them, around mesh.cu."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda import fft, maps
from vmdpotential.engines.cuda.nodes import NodeSum
from vmdpotential.grid.lattice import Lattice
from vmdpotential.splitting.coulomb import Splitting
from vmdpotential.splitting.mesh import Mesh, spline_correction

Floats = NDArray[np.float64]

#: Entries of the table of a smooth part's transform for a wave number of 1 over the split radius.
WINDOW = 1024


def pme(lattice: Lattice, positions: Floats, charges: Floats, mesh: Mesh, precision: str = "single",
        field: bool = False) -> NDArray[np.float32]:
    """Return the full potential on a lattice, by a mesh and the pairs, see :mod:`vmdpotential.engines`.

    Raises
    ------
    BackendError
        When pyvkfft is missing.
    MemoryPlanError
        When the mesh and a layer of the map do not fit the GPU.
    """
    from vmdpotential.engines.cuda import device

    positions, charges = maps.check(positions, charges, precision)
    if not len(positions):
        return np.zeros((4, *lattice.shape) if field else lattice.shape, np.float32)
    fft.application()
    return maps.run(MeshSum(lattice, positions, charges, mesh, precision, field), "mesh sum", device.gpus()[:1])


class MeshSum(NodeSum):
    """A map being summed: the pairs, to which the smooth part is put first."""

    def __init__(self, lattice: Lattice, positions: Floats, charges: Floats, mesh: Mesh, precision: str,
                 field: bool = False) -> None:
        super().__init__(lattice, positions, charges, mesh, precision, field, mesh.transform_shape, nodal=False)
        self.mesh = mesh
        self.sampled = not (mesh.periodic or mesh.compact)
        set_influence(self.node_task, mesh)

    @property
    def fixed_bytes(self) -> int:
        """Bytes that a GPU needs beside the map."""
        a, b, c = self.shape
        again = self.node_bytes if max(a, b, c) > 1024 else 0  # long transforms take two steps
        octant = (a // 2 + 1) * (b // 2 + 1) * (c // 2 + 1) if self.sampled else 0
        tables = 24 * max(self.shape) * 3 + (0 if self.sampled else self.real.itemsize * len(window(self.mesh)))
        return super().fixed_bytes + again + self.real.itemsize * octant + tables

    def prepare(self, gpu: Any) -> Any:
        """Upload the atoms and the mesh's tables, and return the GPU's task."""
        task, mesh, own = super().prepare(gpu), self.mesh, self.node_task
        corrections = [correction(n, mesh.order) for n in self.shape]
        own["correction"] = gpu.upload("correction", np.concatenate(corrections))
        if self.sampled:
            own["squares"] = gpu.upload("squares", np.concatenate(mesh.squared_distances))
            own["influence"] = gpu.buffer("influence", self.real.itemsize * int(np.prod([len(x) for x in corrections])))
        else:
            own["window"] = gpu.upload("window", window(mesh).astype(self.real))
        return task

    def sort(self, gpu: Any, task: Any, stream: Any) -> None:
        """Queue the kernels that sort the atoms by cell, and the sums on the mesh."""
        super().sort(gpu, task, stream)
        shape, nodes = self.shape, int(self.node_task["nodes"])
        a, b, _ = shape
        transform = gpu.plan((shape, self.real), lambda: fft.Transform(shape, self.real, stream))
        if self.sampled:
            self.queue(gpu, stream, "sample", (b, a, 1), 128)
            transform.forward(nodes)
            self.queue(gpu, stream, "keep", (b // 2 + 1, a // 2 + 1, 1), 128)
        self.queue(gpu, stream, "unpack", (b, a, 1), 128)
        transform.forward(nodes)
        self.queue(gpu, stream, "multiply_sampled" if self.sampled else "multiply_transformed", (b, a, 1), 128)
        transform.inverse(nodes)


def set_influence(task: Any, mesh: Mesh) -> None:
    """Set what the factors between the transforms need."""
    counts = np.array(mesh.transform_shape)
    task["factor"] = 1 / counts.prod()
    if mesh.periodic or mesh.compact:
        volume = abs(np.linalg.det(mesh.steps))
        task["reciprocal"] = 2 * np.pi * np.linalg.inv(mesh.steps) / counts
        task["window_scale"] = window_scale(mesh)
        task["factor"] *= 4 * np.pi / volume
        task["constant"] = mesh.splitting.integral / (volume * counts.prod())
    else:
        assert isinstance(mesh.splitting, Splitting)
        task["inverse_square"], task["smooth"] = mesh.splitting.radius**-2, mesh.splitting.polynomial


@lru_cache(maxsize=64)
def correction(count: int, order: int) -> Floats:
    """Return the factors that the splines ask for along an axis of `count` nodes, (count / 2 + 1)."""
    return spline_correction(order, 2 * np.pi * np.arange(count // 2 + 1) / count)


def window_scale(mesh: Mesh) -> float:
    """Return the entries of the table of a smooth part's transform for a wave number of 1/A.

    That of a potential which ends oscillates with the distance where it does.
    """
    return max(WINDOW * mesh.splitting.radius, 60 * mesh.splitting.end if mesh.compact else 0.0)


_windows: dict[tuple[float, ...], Floats] = {}


def window(mesh: Mesh) -> Floats:
    """Return the smooth part's transform over 4 pi / k^2 at k = n / window_scale, as far as the mesh has waves.

    Bessel functions take longer than the map, so that the last tables are kept.
    """
    splitting = mesh.splitting
    # the longest wave vector is a corner of the box of phases from -pi to pi
    signs = np.array([[1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1]])
    longest = float(np.linalg.norm(np.pi * signs @ np.linalg.inv(mesh.steps).T, axis=1).max())
    scale = window_scale(mesh)
    count = int(longest * scale) + 3  # two for the last interval, one for rounding
    key = (*mesh.short.values.values(), splitting.end, count)
    if key not in _windows:
        if len(_windows) >= 8:
            _windows.pop(next(iter(_windows)))
        _windows[key] = splitting.window(np.arange(count) / scale)
    return _windows[key]
