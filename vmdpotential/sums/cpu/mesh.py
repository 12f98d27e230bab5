"""Sums on a mesh on the CPU: spreading, Fourier transforms and interpolation by the kernels of ``mesh.cu``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, call_kernel, launch_kernel
from vmdpotential.splitting.mesh import Mesh
from vmdpotential.sums.smooth import NodesOfMesh

Floats = NDArray[np.float64]

KERNELS = KernelFile(Path(__file__).parent / "mesh.cu")

#: Orders of the bases that kernels have.
ORDERS = (4, 6, 8)

#: Number of values of a row that a task of `interpolate_columns` has, as in ``mesh.cu``.
CHUNK = 512

#: Number of points in one task of a thread.
GRAIN = 1024

#: Number of copies of a coarse mesh to which its atoms are spread, for any number of threads, so that results do not
#: depend on it; and the number of atoms from which on copies are used.
COPIES, ATOMS_A_COPY = 8, 4096

#: Largest number of nodes of a periodic mesh that numpy transforms: scipy would save one or two milliseconds, but takes
#: a hundred to import. The lattice must have many more points, so that the sum takes longer than the transforms.
SMALL = 64**3

#: Nodes (P, taps) and weights (P, taps) of each of P points along an axis; the number of taps is even.
Table = tuple[NDArray[np.int64], NDArray[Any]] | None


@dataclass(frozen=True)
class Basis:
    """The functions by which charges are spread to a mesh and values interpolated, described in ``mesh.cu``.

    Parameters
    ----------
    order : int
        Number of nodes along each axis, one of :data:`ORDERS`.
    double : bool
        Whether values on the mesh are float64, otherwise float32.
    nodal : bool
        Whether the functions are polynomials through the nodes, otherwise B-splines.
    """

    order: int
    double: bool
    nodal: bool = False

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise UsageError("order", f"an order of {self.order} is not one of {', '.join(map(str, ORDERS))}")

    @cached_property
    def real(self) -> np.dtype[Any]:
        """Type of the values."""
        return np.dtype(np.float64 if self.double else np.float32)

    def launch(self, name: str, count: int, label: str, grain: int = 0, /, **values: Any) -> None:
        """Run the kernel of this name for the type of the values."""
        launch_kernel(KERNELS[f"{name}_{'double' if self.double else 'single'}"], count, label, grain, **values)


class MeshSum:
    """The smooth part of a lattice sum, computed on a mesh.

    Parameters
    ----------
    mesh : Mesh
    lattice : Lattice
        Lattice to which the mesh is interpolated.
    precision : str
        One of :data:`vmdpotential.sums.potential_sum.PRECISIONS`.
    """

    def __init__(self, mesh: Mesh, lattice: Lattice, precision: str) -> None:
        self.mesh, self.lattice = mesh, lattice
        nodes = math.prod(mesh.shape)
        self.small = nodes <= SMALL and lattice.size >= 8 * nodes
        self.basis = Basis(mesh.order, precision != "single")
        self.influence = mesh.influence()  # computed once, because it takes as long as the transforms

    def maps(self, positions: Floats, charges: Floats, field: bool) -> NDArray[np.float32]:
        """Return the smooth part on the lattice, see :func:`smooth_maps`."""
        return self.on(self.lattice, self.potential(positions, charges), field)

    def potential(self, positions: Floats, charges: Floats) -> NDArray[Any]:
        """Return the smooth potential at the nodes of the mesh."""
        return self.solved(spread(self.basis, self.mesh, positions, charges))

    def solved(self, nodes: Floats) -> NDArray[Any]:
        """Return the smooth potential at the nodes, for charges on the nodes."""
        return solve(self.basis, self.mesh, nodes.astype(self.basis.real, copy=False), self.influence, self.small)

    def on(self, part: Lattice, potential: NDArray[Any], field: bool) -> NDArray[np.float32]:
        """Return the potential interpolated to a part of the lattice, see :func:`smooth_maps`."""
        return smooth_maps(self.basis, potential, self.mesh, part, field)


def spread(basis: Basis, mesh: NodesOfMesh, positions: Floats, charges: Floats, nodes: Floats | None = None) -> Floats:
    """Return the charges on the nodes of the mesh, added to `nodes` if given."""
    nodes = np.zeros(mesh.shape) if nodes is None else nodes
    count = len(charges)
    places, shape = np.empty((count, 3)), np.array(mesh.shape)
    # an even number of blocks of planes, each at least as thick as a spline, so that every second block can be spread
    # at the same time without touching a plane twice, also across the boundary of a periodic mesh
    blocks = max(1, mesh.shape[0] // (2 * mesh.order)) * 2 if mesh.shape[0] >= 2 * mesh.order else 1
    if few := blocks < COPIES and count > ATOMS_A_COPY:  # too few blocks for the threads: spread to copies of the mesh
        block, blocks = np.arange(count) * COPIES // count, COPIES
    else:
        block = np.empty(count, np.int64)
    launch_kernel(KERNELS["place_on_mesh"], count, "spreading charges", max(4096, -(-count // (4 * threads.count()))),
           positions=np.ascontiguousarray(positions, np.float64), places=places, block=block, origin=mesh.origin,
           inverse=np.linalg.inv(mesh.steps), shape=shape, blocks=0 if few else blocks, periodic=mesh.periodic)
    start, order = np.zeros(blocks + 1, np.int64), np.empty(count, np.int64)
    call_kernel(KERNELS["sort_by_block"], 0, count, block=block, start=start, sorted=order,
         filled=np.empty(blocks, np.int64), blocks=blocks)
    to = np.zeros((COPIES, *mesh.shape)) if few else nodes
    step = 1 if few else min(2, blocks)
    for parity in range(step):
        launch_kernel(KERNELS["spread_to_mesh"], blocks // step, "spreading charges", 1, places=places,
               charges=np.ascontiguousarray(charges, np.float64), sorted=order, start=start[parity:], nodes=to,
               shape=shape, step=step, copy=nodes.size if few else 0, order=basis.order, nodal=basis.nodal)
    if few:
        nodes += to.sum(0)
    return nodes


def solve(basis: Basis, mesh: Mesh, nodes: NDArray[Any], influence: NDArray[np.float32] | None = None,
          small: bool = False) -> NDArray[Any]:
    """Return the smooth potential at the nodes for charges on the nodes, by Fourier transforms.

    `influence` are the factors between the transforms, by default the mesh's. A periodic `small` mesh is transformed by
    numpy, in double precision.
    """
    influence = mesh.influence() if influence is None else influence
    if mesh.periodic and small:
        # numpy before 2.0 returns another order of the axes
        spectrum = np.ascontiguousarray(np.fft.rfftn(nodes), f"c{2 * nodes.itemsize}")
        _multiply(basis, spectrum, influence, 0, mesh.shape[1])
        solved = np.fft.irfftn(spectrum.astype(np.complex128, copy=False), mesh.shape, (0, 1, 2), "forward")
        return solved.astype(nodes.dtype, copy=False)
    from scipy import fft

    workers = threads.count()
    if mesh.periodic:
        spectrum = fft.rfftn(nodes, workers=workers)
        _multiply(basis, spectrum, influence, 0, mesh.shape[1])
        periodic: NDArray[Any] = fft.irfftn(spectrum, s=mesh.shape, workers=workers, overwrite_x=True, norm="forward")
        return periodic
    # axis by axis, because most lines of the padded mesh are zero or are not needed
    nx, ny, nz = mesh.shape
    full_x, full_y, full_z = mesh.transform_shape
    spectrum = fft.fft(fft.rfft(nodes, full_z, axis=2, workers=workers), full_y, axis=1, workers=workers)
    rows = max(1, 2**20 // (full_x * spectrum.shape[2]))  # as many rows as fit into a cache
    for first in range(0, full_y, rows):
        part = fft.fft(spectrum[:, first : first + rows], full_x, axis=0, workers=workers)
        _multiply(basis, part, influence, first, full_y)
        spectrum[:, first : first + rows] = fft.ifft(
            part, axis=0, workers=workers, overwrite_x=True, norm="forward")[:nx]
    spectrum = fft.ifft(spectrum, axis=1, workers=workers, overwrite_x=True, norm="forward")[:, :ny]
    potential: NDArray[Any] = fft.irfft(spectrum, full_z, axis=2, workers=workers, norm="forward")[:, :, :nz]
    return potential


def _multiply(basis: Basis, spectrum: NDArray[Any], influence: NDArray[np.float32], first_y: int, count_y: int) -> None:
    """Multiply part of a spectrum (NX, y, NZ / 2 + 1), from y = first_y of count_y on, by the influence, in place."""
    nx, ny, nz = spectrum.shape
    basis.launch("multiply_spectrum", nx, "Fourier transforms", nx, spectrum=spectrum.view(basis.real),
                 influence=np.ascontiguousarray(influence), ny=ny, nz=nz, influence_x=influence.shape[0],
                 influence_y=influence.shape[1], count_x=nx, first_y=first_y, count_y=count_y)


def smooth_maps(basis: Basis, potential: NDArray[Any], mesh: NodesOfMesh, lattice: Lattice,
                field: bool) -> NDArray[np.float32]:
    """Return the potential on a mesh interpolated to a lattice, e/A; with `field` also the field, (4, nx, ny, nz)."""
    if not field:
        return interpolate(basis, potential, mesh, lattice).astype(np.float32, copy=False)
    maps = np.empty((4, *lattice.shape), np.float32)
    for n in range(4):
        maps[n] = interpolate(basis, potential, mesh, lattice, n - 1)
    to_xyz = -np.linalg.inv(mesh.steps).astype(np.float32)  # d/dx = sum over a, b, c of da/dx d/da
    for plane in maps[1:].swapaxes(0, 1):  # plane by plane: a product of all maps would double the memory
        plane[:] = np.tensordot(to_xyz, plane, 1)
    return maps


def interpolate(basis: Basis, potential: NDArray[Any], mesh: NodesOfMesh, lattice: Lattice,
                along: int = -1) -> NDArray[Any]:
    """Return the potential interpolated to a lattice, or its derivative by the mesh coordinate of axis `along`."""
    steps = np.diag(lattice.spacing) @ np.linalg.inv(mesh.steps)  # mesh steps along a, b, c of a lattice step
    origin = (lattice.origin - mesh.origin) @ np.linalg.inv(mesh.steps)
    nx = lattice.shape[0]
    potential = np.ascontiguousarray(potential)
    if abs(np.triu(steps, 1)).max() > 1e-9 * abs(steps).max():  # c of the cell depends on more than z
        out = np.empty(lattice.shape, basis.real)
        wide = potential.astype(np.float64, copy=False)
        for i in range(nx):  # plane by plane, as the coordinates need more memory than the values
            part = lattice.slab(i, i + 1)
            out[i : i + 1] = at_places(basis, wide, mesh.coordinates(part.points()), along).reshape(part.shape)
        return out
    x, y, z = (_table(basis, origin[d] + steps[d, d] * np.arange(lattice.shape[d]), mesh.shape[d], d == along)
               for d in range(3))
    if abs(np.tril(steps, -1)).max() == 0:
        used, index = np.unique(x[0], return_inverse=True)
        if len(used) < len(potential):  # a small lattice in a large mesh needs few planes
            return separable(basis, potential[used], ((index.reshape(x[0].shape), x[1]), y, z))
        return separable(basis, potential, (x, y, z))
    along_z = separable(basis, potential, (None, None, z))
    na, nb, _ = along_z.shape
    ny, nz = lattice.shape[1:]
    along_y, out = np.empty((na, ny, nz), basis.real), np.empty(lattice.shape, basis.real)
    fixed = {"rows": ny, "order": basis.order, "nodal": basis.nodal}
    basis.launch("interpolate_b", na, "interpolation", 16, source=along_z, out=along_y, nodes=nb, width=nz,
                 start=origin[1], steps=(0.0, *steps[1:, 1]), derivative=along == 1, **fixed)
    basis.launch("interpolate_a", nx, "interpolation", 4, source=along_y, out=out, nodes=na, width=nz,
                 start=origin[0], steps=steps[:, 0], derivative=along == 0, **fixed)
    return out


def at_places(basis: Basis, nodes: Floats, places: Floats, along: int = -1) -> Floats:
    """Return values (P,) on a mesh interpolated at mesh coordinates (P, 3), or derivatives by that of axis `along`."""
    out = np.empty(len(places))
    launch_kernel(KERNELS["gather_at_points"], len(places), "interpolation", GRAIN, nodes=nodes, places=places, out=out,
           shape=nodes.shape, order=basis.order, along=along, nodal=basis.nodal)
    return out


def separable(basis: Basis, source: NDArray[Any], tables: tuple[Table, Table, Table]) -> NDArray[Any]:
    """Return values on a mesh interpolated along each axis by a table of nodes and weights; None skips an axis."""
    x, y, z = tables
    if z is not None:
        rows, (count, taps) = source.shape[0] * source.shape[1], z[0].shape
        out = np.empty((*source.shape[:2], count), basis.real)
        basis.launch("interpolate_rows", rows, "interpolation", 256, source=source, nodes=z[0], weights=z[1], out=out,
                     length=source.shape[2], count=count, taps=taps)
        source = out
    if y is not None:
        source = _across(basis, source, y)
    if x is not None:
        shape = source.shape[1:]
        source = _across(basis, source.reshape(1, len(source), -1), x).reshape(-1, *shape)
    return source


def _table(basis: Basis, places: Floats, shape: int, derivative: bool) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return nodes and weights, or derivatives of the weights, for mesh coordinates along an axis."""
    nodes, weights = np.empty((len(places), basis.order), np.int64), np.empty((len(places), basis.order))
    call_kernel(KERNELS["fill_mesh_table"], 0, len(places), places=places, nodes=nodes, weights=weights, shape=shape,
         order=basis.order, nodal=basis.nodal, derivative=derivative)
    return nodes, weights.astype(basis.real, copy=False)


def _across(basis: Basis, source: NDArray[Any], table: tuple[NDArray[np.int64], NDArray[Any]]) -> NDArray[Any]:
    """Return values interpolated along the middle axis."""
    nodes, weights = table
    slices, length, width = source.shape
    count, taps = nodes.shape
    out = np.empty((slices, count, width), basis.real)
    basis.launch("interpolate_columns", slices * -(-width // CHUNK), "interpolation", 0, source=source, nodes=nodes,
                 weights=weights, out=out, length=length, count=count, taps=taps, width=width)
    return out
