"""Charges to nodes, and the nodes' potentials to a lattice, on a GPU, around mesh.cu; and the pairs.

Charges are spread in fixed point and pairs are summed in one order, so that a map is the same every
time, in slabs too. The nodes stay on the GPU while slabs of the map come and go.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda import maps
from vmdpotential.errors import TaskError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.splitting.levels import Plan
from vmdpotential.splitting.mesh import Mesh

Floats = NDArray[np.float64]

#: Points along each side of a block that interpolates, and the atoms of one that spreads; as in mesh.cu.
TILE, ATOMS = 8, 32

#: Shared memory in bytes that a block may ask for, beside what the kernel takes anyway.
SHARED = 40_000

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


#: Nodes along the first axis: blocks along a grid's second one are 65535 at most, with what surrounds a level.
MOST_PLANES = 65_000


class NodeSum(maps.Sum):
    """A map being summed: the pairs, to which the smooth part is put first.

    A subclass turns the charges on the nodes into the potential there, at the end of :meth:`sort`.

    Parameters
    ----------
    nodes : Mesh or Plan
        Whose `short` is the interaction of pairs.
    shape : (3,) int
        Nodes with padding; rows along the last axis have room for 2 (n / 2 + 1) values.
    nodal : bool
        Whether the basis takes the nodes' own values at the nodes; B-splines otherwise.
    """

    def __init__(self, lattice: Lattice, positions: Floats, charges: Floats, nodes: Mesh | Plan, precision: str,
                 field: bool, shape: tuple[int, int, int], nodal: bool) -> None:
        short = nodes.short
        assert short.cutoff is not None
        scaled = short.scaled(maps.unit(lattice, short.cutoff))
        super().__init__(lattice, positions, charges, short, precision, scaled, nodes.cell, True, field)
        if shape[0] > MOST_PLANES:
            raise TaskError(f"a mesh of {shape[0]} points along x is longer than a GPU takes ({MOST_PLANES}); use "
                            "--engine cpu or a larger --tolerance")
        self.shape = shape
        self.real = np.dtype(np.float32 if precision == "single" else np.float64)
        self.knobs = {"REAL": "float" if precision == "single" else "double", "ORDER": nodes.order,
                      "NODAL": int(nodal)}
        self.node_task = node_task(nodes, shape, lattice, charges)
        self.tiled, self.shared = tiling(self.node_task, self.real.itemsize, nodes.order)

    @property
    def node_bytes(self) -> int:
        """Bytes of the nodes with padding."""
        a, b, c = self.shape
        return self.real.itemsize * a * b * 2 * (c // 2 + 1)

    @property
    def fixed_bytes(self) -> int:
        """Bytes that a GPU needs beside the map."""
        return super().fixed_bytes + 8 * int(self.node_task["shape"].prod()) + self.node_bytes

    def prepare(self, gpu: Any) -> Any:
        """Upload the atoms, and return the GPU's task."""
        task, own = super().prepare(gpu), self.node_task
        own["positions"], own["charges"] = task["positions"], task["charges"]
        own["fixed"] = gpu.buffer("fixed", 8 * int(own["shape"].prod()))
        own["nodes"] = gpu.buffer("nodes", self.node_bytes)
        return task

    def sort(self, gpu: Any, task: Any, stream: Any) -> None:
        """Queue the kernels that sort the atoms by cell, and that spread the charges in fixed point."""
        from vmdpotential.engines.cuda.device import driver

        super().sort(gpu, task, stream)
        driver().memset_d32_async(int(self.node_task["fixed"]), 0, 2 * int(self.node_task["shape"].prod()), stream)
        self.queue(gpu, stream, "spread", (-(-len(self.positions) // ATOMS), 1, 1), 128)

    def launch(self, gpu: Any, task: Any, slab: maps.Slab, stream: Any) -> None:
        """Queue the kernels of one slab."""
        own = self.node_task
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
        kernel.prepared_async_call(grid, (threads, 1, 1), stream, self.node_task.tobytes(), shared_size=shared)


def node_task(nodes: Mesh | Plan, shape: tuple[int, int, int], lattice: Lattice, charges: Floats) -> Any:
    """Return a record of :data:`TASK` with what spreading and interpolation need, without addresses."""
    task = np.zeros((), TASK)
    inverse = np.linalg.inv(nodes.steps)
    task["origin"], task["inverse"], task["count"] = nodes.origin, inverse, len(charges)
    # no sum on a node is larger than that of all charges, which is below 2^62 units
    task["unit"] = 2.0 ** (int(np.frexp(np.abs(charges).sum())[1]) - 62)
    task["place"] = (lattice.origin - nodes.origin) @ inverse
    task["step"] = lattice.spacing[:, None] * inverse
    task["span"] = np.floor((TILE - 1) * np.abs(task["step"]).sum(0)) + nodes.order + 2
    task["shape"], task["transform"] = nodes.shape, shape
    task["slanted"] = np.count_nonzero(nodes.steps - np.diag(np.diagonal(nodes.steps))) > 0
    return task


def tiling(task: Any, itemsize: int, order: int) -> tuple[bool, int]:
    """Return whether a lattice can be interpolated in tiles, and the shared memory that a block needs, in bytes."""
    a, b, c = (int(n) for n in task["span"])
    shared = itemsize * (a * b * c + a * b * TILE + a * TILE**2) + 4 * (a + b + c)
    step = np.abs(task["step"])
    return bool(np.triu(step, 1).max() <= 1e-9 * step.max()) and shared <= SHARED, shared
