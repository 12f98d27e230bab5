"""Charges to nodes, and the nodes' potentials to a lattice, on a GPU, around mesh.cu; and the pairs.

Charges are spread in fixed point and pairs are summed in one order, so that a map is the same every
time, in slabs too. The nodes stay on the GPU while slabs of the map come and go.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import LatticeSum
from vmdpotential.engines.cuda import maps
from vmdpotential.engines.cuda.build import address, struct
from vmdpotential.engines.smooth import SmoothPart
from vmdpotential.errors import TaskError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.splitting.mesh import Mesh

Floats = NDArray[np.float64]

#: Points along each side of a block that interpolates, and the atoms of one that spreads; as in mesh.cu.
TILE, ATOMS = 8, 32

#: Shared memory in bytes that a block may ask for, next to what the kernel takes anyway.
SHARED = 40_000

#: Struct MeshTask of mesh.cu.
TASK = struct("MeshTask", [
    ("positions", address("const double")),  # (count, 3) A
    ("charges", address("const double")),  # (count)
    ("fixed", address("unsigned long long")),  # (shape) charges on the nodes in fixed point
    ("sums", address("double")),  # (shape) charges of many frames, e; nowhere for those of one
    ("nodes", address("REAL")),  # (transform, rows padded) charges, their transform, the potential
    ("influence", address("REAL")),  # (transform / 2 + 1) factors from a sampled smooth part
    ("correction", address("const double")),  # (transform / 2 + 1) along a, b and c, one after another
    ("squares", address("const double")),  # (transform / 2 + 1) squared distances along x, y and z, A^2
    ("window", address("const REAL")),  # the smooth part's transform over 4 pi / (k^2 + kappa^2), from wave number 0 on
    ("out", address("float")),  # the planes [first plane, ...) of the map
    ("places", address("const double")),  # (place count, 3) A, of points anywhere
    ("values", address("double")),  # (4, place count) potential and field there
    ("map_size", np.uint64),  # values from one map of the field to the next
    ("origin", np.float64, 3),  # of the mesh, A
    ("inverse", np.float64, (3, 3)),  # of the steps of the mesh, as rows, 1/A
    ("unit", np.float64),  # of fixed point, e, a power of two
    ("share", np.float64),  # of a frame in the mean of many
    ("place", np.float64, 3),  # of the lattice's first point, in steps of the mesh
    ("step", np.float64, (3, 3)),  # of the lattice along x, y and z, in steps of the mesh along a, b and c
    ("inverse_square", np.float64),  # of the split radius, 1/A^2
    ("gaussian", np.float64),  # 1 / (sqrt(2) s) of Gaussian charges, 1/A; 0 for a polynomial
    ("smooth", np.float64, 9),  # smooth part within it, in powers of (r / radius)^2, 1/A
    ("kappa", np.float64),  # inverse Debye length, 1/A; 0 where nothing screens
    ("reciprocal", np.float64, (3, 3)),  # rows x, y, z of wave vectors for phases of 1 / transform along a, b, c, 1/A
    ("window_scale", np.float64),  # entries of the window per 1/A
    ("factor", np.float64),  # of the influence
    ("constant", np.float64),  # the influence at wave number 0, where the smooth part's transform is known
    ("shape", np.int32, 3),  # nodes that charges reach
    ("transform", np.int32, 3),  # nodes with padding
    ("points", np.int32, 3),  # of the slab of the lattice
    ("first_plane", np.int32),  # of the slab along x
    ("span", np.int32, 3),  # nodes that a tile reaches at most along each axis
    ("slanted", np.int32),  # whether the mesh is not along x, y and z
    ("along", np.int32),  # axis of the mesh along which the derivative is interpolated, -1 for none
    ("count", np.int32),  # of atoms
    ("place_count", np.int32),
], "mesh.cu")


#: Nodes along the first axis: blocks along a grid's second one are 65535 at most, with what surrounds a level.
MOST_PLANES = 65_000


class NodeSum(maps.Sum, ABC):
    """A map being summed: the pairs, to which the smooth part is put first.

    A subclass turns the charges on the nodes into the potential there, by :meth:`solve`.

    Parameters
    ----------
    nodes : Mesh or Plan
        Whose `short` is the interaction of pairs.
    shape : (3,) int
        Nodes with padding; rows along the last axis have room for 2 (n / 2 + 1) values.
    nodal : bool
        Whether the basis takes the nodes' own values at the nodes; B-splines otherwise.
    """

    def __init__(self, work: LatticeSum, shape: tuple[int, int, int], nodal: bool) -> None:
        """Prepare the sum; `shape` are the nodes with padding, `nodal` says by which functions charges are spread."""
        nodes = work.smooth
        assert nodes is not None
        super().__init__(work, add=True)
        if shape[0] > MOST_PLANES:
            raise TaskError(f"a mesh of {shape[0]} points along x is longer than a GPU takes ({MOST_PLANES})",
                            "use {engine cpu} or a larger {tolerance}")
        self.shape = shape
        self.real = np.dtype(np.float32 if work.precision == "single" else np.float64)
        self.knobs = {"REAL": "float" if work.precision == "single" else "double", "ORDER": nodes.order,
                      "NODAL": int(nodal)}
        self.node_task = node_task(nodes, shape, work.lattice)
        self.tiled, self.shared = tiling(self.node_task, self.real.itemsize, nodes.order)

    @property
    def node_bytes(self) -> int:
        """Bytes of the nodes with padding."""
        a, b, c = self.shape
        return self.real.itemsize * a * b * 2 * (c // 2 + 1)

    def fixed_bytes(self, count: int) -> int:
        """Return the bytes that a GPU needs for some atoms next to the map."""
        return super().fixed_bytes(count) + 8 * int(self.node_task["shape"].prod()) + self.node_bytes

    def prepare(self, gpu: Any, positions: Floats, charges: Floats, stream: Any = None) -> maps.Job:
        """Upload the atoms, and return the job."""
        job = super().prepare(gpu, positions, charges, stream)
        own = job.nodes = self.node_task.copy()
        own["count"] = len(charges)
        # no sum on a node is larger than that of all charges, which is below 2^62 units
        own["unit"] = 2.0 ** (int(np.frexp(np.abs(charges).sum())[1]) - 62)
        own["positions"], own["charges"] = job.task["positions"], job.task["charges"]
        self.take_buffers(job)
        return job

    def take_buffers(self, job: maps.Job) -> None:
        """Take the memory for the nodes, which other sums use as well."""
        job.nodes["fixed"] = job.gpu.buffer("fixed", 8 * int(job.nodes["shape"].prod()))
        job.nodes["nodes"] = job.gpu.buffer("nodes", self.node_bytes)

    def sort(self, job: maps.Job) -> None:
        """Queue the kernels that sort the atoms by cell, and that make the potential on the nodes."""
        super().sort(job)
        self.spread(job)
        self.solve(job)

    @abstractmethod
    def solve(self, job: maps.Job) -> None:
        """Queue the kernels that make of the charges the potential on the nodes."""

    def spread(self, job: maps.Job) -> None:
        """Queue the kernel that spreads the charges in fixed point."""
        from vmdpotential.engines.cuda.device import driver

        driver().memset_d32_async(int(job.nodes["fixed"]), 0, 2 * int(job.nodes["shape"].prod()), job.stream)
        self.queue(job, "spread", (-(-len(job.charges) // ATOMS), 1, 1), 128)

    def launch(self, job: maps.Job, slab: maps.Slab, out: int, size: int, stream: Any = None) -> None:
        """Queue the kernels of one slab."""
        self.interpolate(job, slab, out, size, stream)
        super().launch(job, slab, out, size, stream)

    def interpolate(self, job: maps.Job, slab: maps.Slab, out: int, size: int, stream: Any = None) -> None:
        """Queue the kernels that make the smooth part of one slab."""
        own = job.nodes
        nx, ny, nz = slab.stop - slab.start, *self.lattice.shape[1:]
        own["first_plane"], own["points"] = slab.start, (nx, ny, nz)
        blocks = (-(-nx * ny * nz // 128), 1, 1)
        for number in range(self.maps):
            own["out"], own["along"] = out + 4 * size * number, number - 1
            if self.tiled:
                grid = (-(-nz // TILE), -(-ny // TILE), -(-nx // TILE))
                self.queue(job, "interpolate", grid, 256, self.shared, stream)
            else:
                self.queue(job, "gather", blocks, 128, 0, stream)
        if self.maps > 1:
            own["out"], own["map_size"] = out + 4 * size, size
            self.queue(job, "field", blocks, 128, 0, stream)

    def queue(self, job: maps.Job, name: str, grid: tuple[int, int, int], threads: int, shared: int = 0,
              stream: Any = None) -> None:
        """Queue a kernel of mesh.cu."""
        kernel = job.gpu.kernel("mesh.cu", name, self.knobs, "", TASK.itemsize)
        kernel.prepared_async_call(grid, (threads, 1, 1), stream or job.stream, job.nodes.tobytes(), shared_size=shared)


def node_task(nodes: Mesh | SmoothPart, shape: tuple[int, int, int], lattice: Lattice) -> Any:
    """Return a record of :data:`TASK` with what spreading and interpolation need, without addresses and charges."""
    task = np.zeros((), TASK)
    inverse = np.linalg.inv(nodes.steps)
    task["origin"], task["inverse"] = nodes.origin, inverse
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
