"""Sums on a mesh on the CPU: spreading, Fourier transforms and interpolation around the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cpu import build, threads, tiles
from vmdpotential.lattice import Lattice
from vmdpotential.methods.mesh import Mesh

Floats = NDArray[np.float64]


def pme(lattice: Lattice, positions: Floats, charges: Floats, mesh: Mesh,
        precision: str = "single") -> NDArray[np.float32]:
    """Return the full potential on a lattice, (nx, ny, nz) float32 in e/A: smooth part on the mesh, and the pairs."""
    kernel = load(mesh, precision)
    potential = solve(kernel, mesh, spread(kernel, mesh, positions, charges))
    smooth = interpolate(kernel, potential, mesh, lattice).astype(np.float32, copy=False)
    return tiles.cutoff(lattice, positions, charges, mesh.short, precision, mesh.cell, smooth)


def load(mesh: Mesh, precision: str) -> Any:
    """Return the kernels for the mesh's order."""
    return build.load("mesh_kernel", order=mesh.order, precision="single" if precision == "single" else "double")


def spread(kernel: Any, mesh: Mesh, positions: Floats, charges: Floats) -> NDArray[Any]:
    """Return the charges on the nodes of the mesh."""
    nodes = np.zeros(mesh.shape, kernel.REAL)
    places = np.ascontiguousarray(mesh.coordinates(positions))
    # an even number of blocks of planes, each thicker than a spline, so that in a round of every
    # second one no two touch the same plane, also around the end of a periodic mesh
    blocks = max(1, mesh.shape[0] // (2 * mesh.order)) * 2 if mesh.shape[0] >= 2 * mesh.order else 1
    plane = np.minimum(places[:, 0], np.nextafter(mesh.shape[0], 0)).astype(np.int64)
    block = plane * blocks // mesh.shape[0]
    order = np.argsort(block.astype(np.int16), kind="stable")
    start = np.searchsorted(block[order], np.arange(blocks + 1))
    fixed = (places, np.ascontiguousarray(charges, np.float64), order)
    for parity in range(min(2, blocks)):
        step = min(2, blocks)
        threads.run(lambda first, last, parity=parity: kernel.spread(  # type: ignore[misc]
            *fixed, start[parity:], nodes, first, last, step), blocks // step, "spreading charges")
    return nodes


def solve(kernel: Any, mesh: Mesh, nodes: NDArray[Any]) -> NDArray[Any]:
    """Return the mesh of the smooth potential for a mesh of charges."""
    from scipy import fft

    influence = mesh.influence()
    workers = threads.count()
    if mesh.periodic:
        spectrum = fft.rfftn(nodes, workers=workers)
        kernel.multiply(spectrum, influence, 0, mesh.shape[1])
        whole: NDArray[Any] = fft.irfftn(spectrum, s=mesh.shape, workers=workers, overwrite_x=True, norm="forward")
        return whole
    # axis by axis, because most lines of the padded mesh hold zeros, or results that nobody needs
    nx, ny, nz = mesh.shape
    full_x, full_y, full_z = mesh.transform_shape
    spectrum = fft.fft(fft.rfft(nodes, full_z, axis=2, workers=workers), full_y, axis=1, workers=workers)
    rows = max(1, 2**20 // (full_x * spectrum.shape[2]))  # what stays in a cache
    for first in range(0, full_y, rows):
        part = fft.fft(spectrum[:, first : first + rows], full_x, axis=0, workers=workers)
        kernel.multiply(part, influence, first, full_y)
        spectrum[:, first : first + rows] = fft.ifft(
            part, axis=0, workers=workers, overwrite_x=True, norm="forward")[:nx]
    spectrum = fft.ifft(spectrum, axis=1, workers=workers, overwrite_x=True, norm="forward")[:, :ny]
    potential: NDArray[Any] = fft.irfft(spectrum, full_z, axis=2, workers=workers, norm="forward")[:, :, :nz]
    return potential


def interpolate(kernel: Any, potential: NDArray[Any], mesh: Mesh, lattice: Lattice) -> NDArray[Any]:
    """Return the mesh interpolated to a lattice."""
    steps = np.diag(lattice.spacing) @ np.linalg.inv(mesh.steps)  # mesh steps along a, b, c of a lattice step
    origin = (lattice.origin - mesh.origin) @ np.linalg.inv(mesh.steps)
    na, nb, nc = mesh.shape
    nx, ny, nz = lattice.shape
    potential = np.ascontiguousarray(potential)
    out = np.empty(lattice.shape, kernel.REAL)
    if abs(np.triu(steps, 1)).max() > 1e-9 * abs(steps).max():  # c of the cell depends on more than z
        def plane(first: int, last: int) -> None:
            part = lattice.slab(first, last)
            places = mesh.coordinates(part.points())
            values = np.empty(len(places))
            kernel.gather(potential, places, values, 0, len(places))
            out[first:last] = values.reshape(part.shape)

        threads.run(plane, nx, "interpolation")
        return out
    along_z = np.empty((na * nb, nz), kernel.REAL)
    tables = [_table(kernel, origin[d] + steps[d, d] * np.arange(lattice.shape[d]), mesh.shape[d]) for d in range(3)]
    threads.run(lambda first, last: kernel.along_rows(
        potential.reshape(-1, nc), *tables[2], along_z, first, last), na * nb, "interpolation", 256)
    along_z = along_z.reshape(na, nb, nz)
    along_y = np.empty((na, ny, nz), kernel.REAL)
    if abs(np.tril(steps, -1)).max() == 0:
        _across(kernel, along_z, tables[1], along_y)
        _across(kernel, along_y.reshape(1, na, ny * nz), tables[0], out.reshape(1, nx, ny * nz))
    else:
        threads.run(lambda first, last: kernel.slanted_b(
            along_z, origin[1], steps[1, 1], steps[2, 1], along_y, first, last), na, "interpolation", 16)
        threads.run(lambda first, last: kernel.slanted_a(
            along_y, origin[0], *steps[:, 0], out, first, last), nx, "interpolation", 4)
    return out


def _table(kernel: Any, places: Floats, shape: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    nodes = np.empty((len(places), kernel.ORDER), np.int64)
    weights = np.empty((len(places), kernel.ORDER), kernel.REAL)
    kernel.table(places, shape, False, nodes, weights)
    return nodes, weights


def _across(kernel: Any, source: NDArray[Any], table: tuple[NDArray[np.int64], NDArray[Any]],
            out: NDArray[Any]) -> None:
    tasks = out.shape[0] * -(-out.shape[2] // kernel.CHUNK)
    threads.run(lambda first, last: kernel.across_rows(source, *table, out, False, first, last), tasks,
                "interpolation", max(1, tasks // (8 * threads.count())))
