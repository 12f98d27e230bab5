"""Mesh sums on a GPU: spreading, Fourier transforms by VkFFT, interpolation, around mesh.cu, and the pairs.

Charges are spread in fixed point and pairs are summed in one order, so that a map is the same every
time, in slabs too. The mesh stays on the GPU while slabs of the map come and go.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda import fft, maps
from vmdpotential.lattice import Lattice
from vmdpotential.methods.mesh import Mesh, spline_correction
from vmdpotential.methods.splitting import Splitting

Floats = NDArray[np.float64]

#: Points along each side of a block that interpolates, and the atoms of one that spreads; as in mesh.cu.
TILE, ATOMS = 8, 32

#: Shared memory in bytes that a block may ask for, beside what the kernel takes anyway.
SHARED = 40_000

#: Entries of the table of a smooth part's transform for a wave number of 1 over the split radius.
WINDOW = 1024

#: Bytes of the tables that are uploaded, at most.
TABLES = 2**20

#: Struct MeshTask of mesh.cu.
TASK = np.dtype(
    [(name, np.uint64) for name in ("positions", "charges", "fixed", "nodes", "influence", "correction", "squares",
                                    "window", "out")]
    + [("origin", np.float64, 3), ("inverse", np.float64, (3, 3)), ("unit", np.float64), ("place", np.float64, 3),
       ("step", np.float64, (3, 3)), ("inverse_square", np.float64), ("smooth", np.float64, 7),
       ("reciprocal", np.float64, (3, 3)), ("window_scale", np.float64), ("factor", np.float64),
       ("constant", np.float64), ("shape", np.int32, 3), ("transform", np.int32, 3), ("points", np.int32, 3),
       ("first_plane", np.int32), ("span", np.int32, 3), ("slanted", np.int32), ("along", np.int32),
       ("count", np.int32)], align=True)


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


class MeshSum(maps.Sum):
    """A map being summed: the pairs, to which the smooth part is put first."""

    def __init__(self, lattice: Lattice, positions: Floats, charges: Floats, mesh: Mesh, precision: str,
                 field: bool = False) -> None:
        short = mesh.short
        scaled = short.scaled(maps.unit(lattice, mesh.splitting.radius))
        super().__init__(lattice, positions, charges, short, precision, scaled, mesh.cell, True, field)
        self.mesh = mesh
        self.real = np.dtype(np.float32 if precision == "single" else np.float64)
        self.knobs = {"REAL": "float" if precision == "single" else "double", "ORDER": mesh.order}
        self.mesh_task = mesh_task(mesh, lattice, charges)
        self.tiled, self.shared = tiling(self.mesh_task, self.real.itemsize, mesh.order)
        self.sampled = not (mesh.periodic or mesh.compact)
        self.row = 2 * (mesh.transform_shape[2] // 2 + 1)  # values along c, with room for the transform in place

    @property
    def fixed_bytes(self) -> int:
        """Bytes that a GPU needs beside the map."""
        a, b, c = self.mesh.transform_shape
        nodes = a * b * self.row * (2 if max(a, b, c) > 1024 else 1)  # long transforms take two steps
        octant = (a // 2 + 1) * (b // 2 + 1) * (c // 2 + 1) if self.sampled else 0
        mesh = 8 * int(np.prod(self.mesh.shape)) + self.real.itemsize * (nodes + octant)
        return super().fixed_bytes + mesh + TABLES

    def prepare(self, gpu: Any) -> Any:
        """Upload the atoms and the mesh's tables, and return the GPU's task."""
        task, mesh, own = super().prepare(gpu), self.mesh, self.mesh_task
        a, b, c = mesh.transform_shape
        own["positions"], own["charges"] = task["positions"], task["charges"]
        own["fixed"] = gpu.buffer("fixed", 8 * int(np.prod(mesh.shape)))
        own["nodes"] = gpu.buffer("nodes", self.real.itemsize * a * b * self.row)
        corrections = [correction(n, mesh.order) for n in (a, b, c)]
        own["correction"] = gpu.upload("correction", np.concatenate(corrections))
        if self.sampled:
            own["squares"] = gpu.upload("squares", np.concatenate(mesh.squared_distances))
            own["influence"] = gpu.buffer("influence", self.real.itemsize * int(np.prod([len(x) for x in corrections])))
        else:
            own["window"] = gpu.upload("window", window(mesh).astype(self.real))
        return task

    def sort(self, gpu: Any, task: Any, stream: Any) -> None:
        """Queue the kernels that sort the atoms by cell, and the sums on the mesh."""
        from vmdpotential.engines.cuda.device import driver

        super().sort(gpu, task, stream)
        shape, nodes = self.mesh.transform_shape, int(self.mesh_task["nodes"])
        a, b, _ = shape
        transform = gpu.plan((shape, self.real), lambda: fft.Transform(shape, self.real, stream))
        driver().memset_d32_async(int(self.mesh_task["fixed"]), 0, 2 * int(np.prod(self.mesh.shape)), stream)
        self.queue(gpu, stream, "spread", (-(-len(self.positions) // ATOMS), 1, 1), 128)
        if self.sampled:
            self.queue(gpu, stream, "sample", (b, a, 1), 128)
            transform.forward(nodes)
            self.queue(gpu, stream, "keep", (b // 2 + 1, a // 2 + 1, 1), 128)
        self.queue(gpu, stream, "unpack", (b, a, 1), 128)
        transform.forward(nodes)
        self.queue(gpu, stream, "multiply_sampled" if self.sampled else "multiply_transformed", (b, a, 1), 128)
        transform.inverse(nodes)

    def launch(self, gpu: Any, task: Any, slab: maps.Slab, stream: Any) -> None:
        """Queue the kernels of one slab."""
        own = self.mesh_task
        nx, ny, nz = slab.stop - slab.start, *self.lattice.shape[1:]
        own["first_plane"], own["points"] = slab.start, (nx, ny, nz)
        blocks = (-(-nx * ny * nz // 128), 1, 1)
        for number in range(self.maps):
            own["out"], own["along"] = int(task["out"]) + 4 * nx * ny * nz * number, number - 1
            if self.tiled:
                grid = (-(-nz // TILE), -(-ny // TILE), -(-nx // TILE))
                self.queue(gpu, stream, "interpolate", grid, 256, self.shared)
            else:
                self.queue(gpu, stream, "gather", blocks, 128)
        if self.maps > 1:
            own["out"] = int(task["out"]) + 4 * nx * ny * nz
            self.queue(gpu, stream, "field", blocks, 128)
        super().launch(gpu, task, slab, stream)

    def queue(self, gpu: Any, stream: Any, name: str, grid: tuple[int, int, int], threads: int,
              shared: int = 0) -> None:
        """Queue a kernel of mesh.cu."""
        kernel = gpu.kernel("mesh.cu", name, self.knobs, "", TASK.itemsize)
        kernel.prepared_async_call(grid, (threads, 1, 1), stream, self.mesh_task.tobytes(), shared_size=shared)


def mesh_task(mesh: Mesh, lattice: Lattice, charges: Floats) -> Any:
    """Return a filled record of :data:`TASK` without addresses."""
    task = np.zeros((), TASK)
    inverse = np.linalg.inv(mesh.steps)
    counts = np.array(mesh.transform_shape)
    task["origin"], task["inverse"], task["count"] = mesh.origin, inverse, len(charges)
    # no sum on a node is larger than that of all charges, which is below 2^62 units
    task["unit"] = 2.0 ** (int(np.frexp(np.abs(charges).sum())[1]) - 62)
    task["place"] = (lattice.origin - mesh.origin) @ inverse
    task["step"] = lattice.spacing[:, None] * inverse
    task["span"] = np.floor((TILE - 1) * np.abs(task["step"]).sum(0)) + mesh.order + 2
    task["shape"], task["transform"], task["slanted"] = mesh.shape, counts, mesh.slanted
    task["factor"] = 1 / counts.prod()
    if mesh.periodic or mesh.compact:
        volume = abs(np.linalg.det(mesh.steps))
        task["reciprocal"] = 2 * np.pi * inverse / counts
        task["window_scale"] = WINDOW * mesh.splitting.radius
        task["factor"] *= 4 * np.pi / volume
        task["constant"] = mesh.splitting.integral / (volume * counts.prod())
    else:
        assert isinstance(mesh.splitting, Splitting)
        task["inverse_square"], task["smooth"] = mesh.splitting.radius**-2, mesh.splitting.polynomial
    return task


def tiling(task: Any, itemsize: int, order: int) -> tuple[bool, int]:
    """Return whether a lattice can be interpolated in tiles, and the shared memory that a block needs, in bytes."""
    a, b, c = (int(n) for n in task["span"])
    shared = itemsize * (a * b * c + a * b * TILE + a * TILE**2) + 4 * (a + b + c)
    step = np.abs(task["step"])
    return bool(np.triu(step, 1).max() <= 1e-9 * step.max()) and shared <= SHARED, shared


@lru_cache(maxsize=64)
def correction(count: int, order: int) -> Floats:
    """Return the factors that the splines ask for along an axis of `count` nodes, (count / 2 + 1)."""
    return spline_correction(order, 2 * np.pi * np.arange(count // 2 + 1) / count)


_windows: dict[tuple[float, ...], Floats] = {}


def window(mesh: Mesh) -> Floats:
    """Return the smooth part's transform over 4 pi / k^2 at k = n / (WINDOW radius), as far as the mesh has waves.

    Bessel functions take longer than the map, so that the last tables are kept.
    """
    splitting = mesh.splitting
    # the longest wave vector is a corner of the box of phases from -pi to pi
    signs = np.array([[1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1]])
    longest = float(np.linalg.norm(np.pi * signs @ np.linalg.inv(mesh.steps).T, axis=1).max())
    count = WINDOW * int(np.ceil(longest * splitting.radius)) + 2
    key = (*mesh.short.values.values(), splitting.end, count)
    if key not in _windows:
        if len(_windows) >= 8:
            _windows.pop(next(iter(_windows)))
        _windows[key] = splitting.window(np.arange(count) / (WINDOW * splitting.radius))
    return _windows[key]
