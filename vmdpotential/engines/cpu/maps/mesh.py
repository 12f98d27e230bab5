"""Sums on a mesh on the CPU: spreading, Fourier transforms and interpolation by the kernels of ``mesh_kernel``."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build, threads
from vmdpotential.engines.smooth import Nodes
from vmdpotential.grid.lattice import Lattice
from vmdpotential.splitting.mesh import Mesh

Floats = NDArray[np.float64]

#: Number of copies of a coarse mesh to which its atoms are spread, for any number of threads, so that results do not
#: depend on it; and the number of atoms from which on copies are used.
COPIES, ATOMS_A_COPY = 8, 4096

#: Largest number of nodes of a periodic mesh that numpy transforms: scipy would save one or two milliseconds, but takes
#: a hundred to import. The lattice must have many more points, so that the sum takes longer than the transforms.
SMALL = 64**3

#: Nodes (P, taps) and weights (P, taps) of each of P points along an axis; the number of taps is even.
Table = tuple[NDArray[np.int64], NDArray[Any]] | None


class MeshSum:
    """The smooth part of a lattice sum, computed on a mesh.

    Parameters
    ----------
    mesh : Mesh
    lattice : Lattice
        Lattice to which the mesh is interpolated.
    precision : str
        One of :data:`vmdpotential.engines.PRECISIONS`.
    """

    def __init__(self, mesh: Mesh, lattice: Lattice, precision: str) -> None:
        self.mesh, self.lattice = mesh, lattice
        nodes = math.prod(mesh.shape)
        self.small = nodes <= SMALL and lattice.size >= 8 * nodes
        self.kernel = load(mesh, precision)
        self.influence = mesh.influence()  # computed once, because it takes as long as the transforms

    def maps(self, positions: Floats, charges: Floats, field: bool) -> NDArray[np.float32]:
        """Return the smooth part on the lattice, see :func:`smooth_maps`."""
        return self.on(self.lattice, self.potential(positions, charges), field)

    def potential(self, positions: Floats, charges: Floats) -> NDArray[Any]:
        """Return the smooth potential at the nodes of the mesh."""
        return self.solved(spread(self.kernel, self.mesh, positions, charges))

    def solved(self, nodes: Floats) -> NDArray[Any]:
        """Return the smooth potential at the nodes, for charges on the nodes."""
        return solve(self.kernel, self.mesh, nodes.astype(self.kernel.REAL, copy=False), self.influence, self.small)

    def on(self, part: Lattice, potential: NDArray[Any], field: bool) -> NDArray[np.float32]:
        """Return the potential interpolated to a part of the lattice, see :func:`smooth_maps`."""
        return smooth_maps(self.kernel, potential, self.mesh, part, field)


def load(mesh: Nodes, precision: str, basis: str = "bspline") -> Any:
    """Return the kernels for the mesh's order and a basis, one of those described in ``mesh_kernel``."""
    return build.load("mesh_kernel", order=mesh.order, basis=basis,
                      precision="single" if precision == "single" else "double")


def spread(kernel: Any, mesh: Nodes, positions: Floats, charges: Floats, nodes: Floats | None = None) -> Floats:
    """Return the charges on the nodes of the mesh, added to `nodes` if given."""
    nodes = np.zeros(mesh.shape) if nodes is None else nodes
    count = len(charges)
    charges = np.ascontiguousarray(charges, np.float64)
    places = np.empty((count, 3))
    # an even number of blocks of planes, each at least as thick as a spline, so that every second block can be spread
    # at the same time without touching a plane twice, also across the boundary of a periodic mesh
    blocks = max(1, mesh.shape[0] // (2 * mesh.order)) * 2 if mesh.shape[0] >= 2 * mesh.order else 1
    if few := blocks < COPIES and count > ATOMS_A_COPY:  # too few blocks for the threads: spread to copies of the mesh
        block, blocks = np.arange(count) * COPIES // count, COPIES
    else:
        block = np.empty(count, np.int64)
    where = (np.ascontiguousarray(positions, np.float64), np.asarray(mesh.origin, np.float64),
             np.linalg.inv(mesh.steps), np.broadcast_to(mesh.periodic, 3), np.array(mesh.shape))
    threads.run(partial(kernel.place, *where, places, block, 0 if few else blocks), count, "spreading charges",
                max(4096, -(-count // (4 * threads.count()))))
    start, order = kernel.sort(block, blocks)
    fixed = places, charges, order
    if few:
        copies = np.zeros((COPIES, *mesh.shape))

        def part(first: int, last: int) -> None:
            for n in range(first, last):
                kernel.spread(*fixed, start[n:], copies[n], 1, 0, 1)

        threads.run(part, COPIES, "spreading charges")
        nodes += copies.sum(0)
        return nodes
    step = min(2, blocks)
    for parity in range(step):
        threads.run(partial(kernel.spread, *fixed, start[parity:], nodes, step), blocks // step, "spreading charges")
    return nodes


def solve(kernel: Any, mesh: Mesh, nodes: NDArray[Any], influence: NDArray[np.float32] | None = None,
          small: bool = False) -> NDArray[Any]:
    """Return the smooth potential at the nodes for charges on the nodes, by Fourier transforms.

    `influence` are the factors between the transforms, by default the mesh's. A periodic `small` mesh is transformed by
    numpy, in double precision.
    """
    influence = mesh.influence() if influence is None else influence
    if mesh.periodic and small:
        spectrum = np.fft.rfftn(nodes).astype(f"c{2 * nodes.itemsize}", copy=False)
        kernel.multiply(spectrum, influence, 0, mesh.shape[1])
        solved = np.fft.irfftn(spectrum.astype(np.complex128, copy=False), mesh.shape, (0, 1, 2), "forward")
        return solved.astype(nodes.dtype, copy=False)
    from scipy import fft

    workers = threads.count()
    if mesh.periodic:
        spectrum = fft.rfftn(nodes, workers=workers)
        kernel.multiply(spectrum, influence, 0, mesh.shape[1])
        periodic: NDArray[Any] = fft.irfftn(spectrum, s=mesh.shape, workers=workers, overwrite_x=True, norm="forward")
        return periodic
    # axis by axis, because most lines of the padded mesh are zero or are not needed
    nx, ny, nz = mesh.shape
    full_x, full_y, full_z = mesh.transform_shape
    spectrum = fft.fft(fft.rfft(nodes, full_z, axis=2, workers=workers), full_y, axis=1, workers=workers)
    rows = max(1, 2**20 // (full_x * spectrum.shape[2]))  # as many rows as fit into a cache
    for first in range(0, full_y, rows):
        part = fft.fft(spectrum[:, first : first + rows], full_x, axis=0, workers=workers)
        kernel.multiply(part, influence, first, full_y)
        spectrum[:, first : first + rows] = fft.ifft(
            part, axis=0, workers=workers, overwrite_x=True, norm="forward")[:nx]
    spectrum = fft.ifft(spectrum, axis=1, workers=workers, overwrite_x=True, norm="forward")[:, :ny]
    potential: NDArray[Any] = fft.irfft(spectrum, full_z, axis=2, workers=workers, norm="forward")[:, :, :nz]
    return potential


def smooth_maps(kernel: Any, potential: NDArray[Any], mesh: Nodes, lattice: Lattice,
                field: bool) -> NDArray[np.float32]:
    """Return the potential on a mesh interpolated to a lattice, e/A; with `field` also the field, (4, nx, ny, nz)."""
    if not field:
        return interpolate(kernel, potential, mesh, lattice).astype(np.float32, copy=False)
    maps = np.empty((4, *lattice.shape), np.float32)
    for n in range(4):
        maps[n] = interpolate(kernel, potential, mesh, lattice, n - 1)
    to_xyz = -np.linalg.inv(mesh.steps).astype(np.float32)  # d/dx = sum over a, b, c of da/dx d/da
    for plane in maps[1:].swapaxes(0, 1):  # plane by plane: a product of all maps would double the memory
        plane[:] = np.tensordot(to_xyz, plane, 1)
    return maps


def interpolate(kernel: Any, potential: NDArray[Any], mesh: Nodes, lattice: Lattice, along: int = -1) -> NDArray[Any]:
    """Return the potential interpolated to a lattice, or its derivative by the mesh coordinate of axis `along`."""
    steps = np.diag(lattice.spacing) @ np.linalg.inv(mesh.steps)  # mesh steps along a, b, c of a lattice step
    origin = (lattice.origin - mesh.origin) @ np.linalg.inv(mesh.steps)
    nx = lattice.shape[0]
    potential = np.ascontiguousarray(potential)
    if abs(np.triu(steps, 1)).max() > 1e-9 * abs(steps).max():  # c of the cell depends on more than z
        out = np.empty(lattice.shape, kernel.REAL)

        def plane(first: int, last: int) -> None:
            part = lattice.slab(first, last)
            coordinates = mesh.coordinates(part.points())
            values = np.empty(len(coordinates))
            kernel.gather_along(potential, coordinates, along, values, 0, len(coordinates))
            out[first:last] = values.reshape(part.shape)

        threads.run(plane, nx, "interpolation")
        return out
    x, y, z = (_table(kernel, origin[d] + steps[d, d] * np.arange(lattice.shape[d]), mesh.shape[d], d == along)
               for d in range(3))
    if abs(np.tril(steps, -1)).max() == 0:
        used, index = np.unique(x[0], return_inverse=True)
        if len(used) < len(potential):  # a small lattice in a large mesh needs few planes
            return separable(kernel, potential[used], ((index.reshape(x[0].shape), x[1]), y, z))
        return separable(kernel, potential, (x, y, z))
    along_z = separable(kernel, potential, (None, None, z))
    along_y = np.empty((len(along_z), *lattice.shape[1:]), kernel.REAL)
    threads.run(lambda first, last: kernel.slanted_b(
        along_z, origin[1], steps[1, 1], steps[2, 1], along == 1, along_y, first, last), len(along_z),
        "interpolation", 16)
    out = np.empty(lattice.shape, kernel.REAL)
    threads.run(lambda first, last: kernel.slanted_a(
        along_y, origin[0], *steps[:, 0], along == 0, out, first, last), nx, "interpolation", 4)
    return out


def separable(kernel: Any, source: NDArray[Any], tables: tuple[Table, Table, Table]) -> NDArray[Any]:
    """Return values on a mesh interpolated along each axis by a table of nodes and weights; None skips an axis."""
    x, y, z = tables
    if z is not None:
        out = np.empty((*source.shape[:2], len(z[0])), kernel.REAL)
        rows, out_rows = source.reshape(-1, source.shape[2]), out.reshape(-1, out.shape[2])
        threads.run(partial(kernel.along_rows, rows, *z, out_rows), len(rows), "interpolation", 256)
        source = out
    if y is not None:
        out = np.empty((source.shape[0], len(y[0]), source.shape[2]), kernel.REAL)
        _across(kernel, source, y, out)
        source = out
    if x is not None:
        out = np.empty((len(x[0]), *source.shape[1:]), kernel.REAL)
        _across(kernel, source.reshape(1, len(source), -1), x, out.reshape(1, len(out), -1))
        source = out
    return source


def _table(kernel: Any, coordinates: Floats, shape: int, derivative: bool) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return nodes and weights, or derivatives of the weights, for mesh coordinates along an axis."""
    nodes = np.empty((len(coordinates), kernel.ORDER), np.int64)
    weights = np.empty((len(coordinates), kernel.ORDER), kernel.REAL)
    kernel.table(coordinates, shape, nodes, weights)
    if derivative:
        kernel.table_of_slopes(coordinates, weights)
    return nodes, weights


def _across(kernel: Any, source: NDArray[Any], table: tuple[NDArray[np.int64], NDArray[Any]],
            out: NDArray[Any]) -> None:
    """Interpolate along the middle axis of `source`."""
    tasks = out.shape[0] * -(-out.shape[2] // kernel.CHUNK)
    threads.run(lambda first, last: kernel.across_rows(source, *table, out, first, last), tasks,
                "interpolation", max(1, tasks // (8 * threads.count())))
