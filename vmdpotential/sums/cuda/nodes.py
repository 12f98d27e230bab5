"""Lattice sums with a smooth part on nodes on a GPU: charges are spread and interpolated by the kernels of mesh.cu.

Charges are spread in fixed point and pairs are summed in a fixed order, so that a map has the same bits in every run,
also in slabs. The nodes stay on the GPU while one slab of the map after the other is computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines.cuda.build import pointer_type, struct_type
from vmdpotential.errors import TaskError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.splitting.mesh import Mesh
from vmdpotential.sums.cuda import kernel_file, maps
from vmdpotential.sums.potential_sum import PotentialSum
from vmdpotential.sums.smooth import SmoothPart

#: Points along each axis of a block that interpolates, and atoms of a block that spreads charges, as in mesh.cu.
TILE, ATOMS = 8, 32

#: Largest dynamic shared memory of a block, in bytes.
SHARED = 40_000

#: Struct MeshTask of mesh.cu.
TASK = struct_type("MeshTask", [
    ("positions", pointer_type("const double")),  # (count, 3) A
    ("charges", pointer_type("const double")),  # (count)
    ("fixed", pointer_type("unsigned long long")),  # (shape) charges on the nodes in fixed point
    ("sums", pointer_type("double")),  # (shape) charges summed over frames, e; null for a single frame
    ("nodes", pointer_type("REAL")),  # (transform, rows padded) charges, their transform, the potential
    ("influence", pointer_type("REAL")),  # (transform / 2 + 1) factors from a sampled smooth part
    ("correction", pointer_type("const double")),  # (transform / 2 + 1) for splines along a, b and c, concatenated
    ("squares", pointer_type("const double")),  # (transform / 2 + 1) squared distances along x, y and z, A^2
    ("window", pointer_type("const REAL")),
    # the smooth part's transform over 4 pi / (k^2 + kappa^2), from wave number 0 on
    ("out", pointer_type("float")),  # the planes [first plane, ...) of the map
    ("places", pointer_type("const double")),  # (place count, 3) A, arbitrary points
    ("values", pointer_type("double")),  # (4, place count) potential and field at these points
    ("map_size", np.uint64),  # number of values from one map of the field to the next
    ("origin", np.float64, 3),  # first node of the mesh, A
    ("inverse", np.float64, (3, 3)),  # inverse of the matrix of the mesh's steps as rows, 1/A
    ("unit", np.float64),  # unit of fixed point, e, a power of two
    ("share", np.float64),  # weight of a frame in the mean
    ("place", np.float64, 3),  # the lattice's first point, in steps of the mesh
    ("step", np.float64, (3, 3)),  # steps of the lattice along x, y and z, in steps of the mesh along a, b and c
    ("inverse_square", np.float64),  # 1 / radius^2 with the split radius, 1/A^2
    ("gaussian", np.float64),  # 1 / (sqrt(2) s) of Gaussian charges, 1/A; 0 for a polynomial
    ("smooth", np.float64, 9),  # smooth part within the radius, in powers of (r / radius)^2, 1/A
    ("kappa", np.float64),  # inverse Debye length, 1/A; 0 without screening
    ("reciprocal", np.float64, (3, 3)),  # rows x, y, z of wave vectors for phases of 1 / transform along a, b, c, 1/A
    ("window_scale", np.float64),  # entries of the window per 1/A
    ("factor", np.float64),  # factor of the influence
    ("constant", np.float64),  # the influence at wave number 0, if the smooth part's transform is known
    ("shape", np.int32, 3),  # number of nodes with charges along each axis
    ("transform", np.int32, 3),  # number of nodes with padding
    ("points", np.int32, 3),  # number of points of the slab of the lattice
    ("first_plane", np.int32),  # first plane of the slab along x
    ("span", np.int32, 3),  # largest number of nodes that a tile uses along each axis
    ("slanted", np.int32),  # whether the mesh's axes are not parallel to x, y and z
    ("along", np.int32),  # axis of the mesh along which the derivative is interpolated, -1 for none
    ("count", np.int32),  # number of atoms
    ("place_count", np.int32),
], "mesh.cu")


#: Largest number of nodes along the first axis: a grid has at most 65535 blocks along its second one, and levels of a
#: multilevel sum have surrounding nodes.
MOST_PLANES = 65_000


class NodeSum(maps.Sum, ABC):
    """A lattice sum with a smooth part on nodes, to which the pairs are added.

    A subclass computes the potential at the nodes from the charges there, by :meth:`solve`.

    Parameters
    ----------
    work : PotentialSum
        Sum with a smooth part.
    shape : (3,) int
        Number of nodes with padding; rows along the last axis are stored with 2 (n / 2 + 1) values.
    nodal : bool
        Whether charges are spread by the nodal basis, see ``mesh.cu`` of the CPU engine; otherwise by B-splines.
    """

    def __init__(self, work: PotentialSum, shape: tuple[int, int, int], nodal: bool) -> None:
        nodes = work.smooth
        assert nodes is not None
        super().__init__(work, add=True)
        if shape[0] > MOST_PLANES:
            raise TaskError(f"a mesh of {shape[0]} points along x is longer than a GPU takes ({MOST_PLANES})",
                            "use {engine cpu} or a larger {tolerance}")
        self.shape = shape
        self.real = np.dtype(np.float32 if work.precision == "single" else np.float64)
        self.constants = {"REAL": "float" if work.precision == "single" else "double", "ORDER": nodes.order,
                          "NODAL": int(nodal)}
        self.node_task = node_task(nodes, shape, work.lattice)
        self.tiled, self.shared = tiling(self.node_task, self.real.itemsize, nodes.order)

    @property
    def node_bytes(self) -> int:
        """Number of bytes of the nodes with padding."""
        a, b, c = self.shape
        return self.real.itemsize * a * b * 2 * (c // 2 + 1)

    def fixed_bytes(self, count: int) -> int:
        """Return the bytes that a GPU needs for a number of atoms, in addition to the map."""
        return super().fixed_bytes(count) + 8 * int(self.node_task["shape"].prod()) + self.node_bytes

    def prepare(self, gpu: Any, positions: Floats, charges: Floats, stream: Any = None) -> maps.Job:
        """Upload the atoms, and return the job."""
        job = super().prepare(gpu, positions, charges, stream)
        own = job.nodes = self.node_task.copy()
        own["count"] = len(charges)
        # no sum at a node exceeds the sum of all absolute charges, which is below 2^62 units
        own["unit"] = 2.0 ** (int(np.frexp(np.abs(charges).sum())[1]) - 62)
        own["positions"], own["charges"] = job.task["positions"], job.task["charges"]
        self.set_buffers(job)
        return job

    def set_buffers(self, job: maps.Job) -> None:
        """Set the addresses of the nodes' buffers, which are shared with other sums."""
        job.nodes["fixed"] = job.gpu.buffer("fixed", 8 * int(job.nodes["shape"].prod()))
        job.nodes["nodes"] = job.gpu.buffer("nodes", self.node_bytes)

    def sort(self, job: maps.Job) -> None:
        """Queue the kernels that sort the atoms by cell, and those that compute the potential at the nodes."""
        super().sort(job)
        self.spread(job)
        self.solve(job)

    @abstractmethod
    def solve(self, job: maps.Job) -> None:
        """Queue the kernels that compute the potential at the nodes from the charges there."""

    def spread(self, job: maps.Job) -> None:
        """Queue the kernel that spreads the charges in fixed point."""
        from vmdpotential.engines.cuda.driver import cuda_driver

        cuda_driver().memset_d32_async(int(job.nodes["fixed"]), 0, 2 * int(job.nodes["shape"].prod()), job.stream)
        self.queue(job, "spread", (-(-len(job.charges) // ATOMS), 1, 1), 128)

    def launch(self, job: maps.Job, slab: maps.Slab, out: int, size: int, stream: Any = None) -> None:
        """Queue the kernels of one slab."""
        self.interpolate(job, slab, out, size, stream)
        super().launch(job, slab, out, size, stream)

    def interpolate(self, job: maps.Job, slab: maps.Slab, out: int, size: int, stream: Any = None) -> None:
        """Queue the kernels that interpolate the smooth part to one slab."""
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
        kernel = job.gpu.kernel(kernel_file("mesh.cu"), name, self.constants, "", TASK.itemsize)
        kernel.prepared_async_call(grid, (threads, 1, 1), stream or job.stream, job.nodes.tobytes(), shared_size=shared)


def node_task(nodes: Mesh | SmoothPart, shape: tuple[int, int, int], lattice: Lattice) -> Any:
    """Return a record of :data:`TASK` for spreading and interpolation, without addresses and charges."""
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
