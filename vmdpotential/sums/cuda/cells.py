"""Atoms and their periodic images sorted by cell on a GPU, with the kernels of sort.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.sums.cuda import kernel_file

#: Number of cells across the atoms in range of a tile; the kernel supports 16 x 16 rows of cells.
CELLS_ACROSS = 12

#: Largest number of cells; cells are enlarged so as not to exceed it.
MOST_CELLS = 2**27


def around_lattice(task: Any) -> int:
    """Set the cells that cover the lattice and the cutoff around it; return the number of integers for their starts."""
    reach, spacing = float(task["cutoff"]), task["spacing"]
    extent = (task["shape"] - 1) * spacing + 2 * reach
    size = 2 * (reach + 3.5 * spacing) / CELLS_ACROSS
    cells = np.floor(extent / size).astype(np.int64) + 1
    if cells.prod() > MOST_CELLS:
        size = size * (cells.prod() / MOST_CELLS) ** (1 / 3)
        cells = np.floor(extent / size).astype(np.int64) + 1
    task["low"], task["cell_size"], task["inverse_cell"], task["cells"] = -reach, size, 1 / size, cells
    return int(cells[0] * cells[1] * (cells[2] + 1))


def add_images(task: Any, lattice: Lattice, cell: Cell, reach: float) -> int:
    """Set the range of periodic images within `reach` (A) of the lattice; return the largest number for an atom."""
    basis = cell.vectors if cell.orthogonal else cell.reduced
    task["basis"], task["inverse_basis"] = basis, np.linalg.inv(basis)
    box = np.array([lattice.origin - reach, lattice.last + reach])
    corners = np.stack(np.meshgrid(*box.T, indexing="ij"), -1).reshape(8, 3) @ task["inverse_basis"]
    task["first_image"], task["last_image"] = corners.min(0) - 1e-9, corners.max(0) + 1e-9
    return int(np.prod(np.floor(task["last_image"] - task["first_image"]) + 1))


def sort_bytes(task: Any, starts: int, images: int) -> int:
    """Return the bytes that :func:`sort` needs for a number of images."""
    return 76 * images + 4 * (2 * starts + rows(task) + 1)


def reserve(gpu: Any, task: Any, starts: int, periodic: bool) -> None:
    """Set the addresses of the memory that :func:`sort` needs, except that of images, which :func:`sort` allocates.

    Parameters
    ----------
    gpu : Gpu
        The current GPU.
    task : record of maps.TASK
        Task with cells and at least one atom.
    starts : int
        The number returned by :func:`around_lattice`.
    periodic : bool
        Whether the task has images.
    """
    task["starts"] = gpu.buffer("starts", 8 * starts)
    task["filled"] = int(task["starts"]) + 4 * starts
    task["rows"] = gpu.buffer("rows", 4 * (rows(task) + 1))
    if not periodic:
        _reserve_atoms(gpu, task, int(task["count"]))


def sort(gpu: Any, stream: Any, task: Any, starts: int, periodic: bool) -> None:
    """Queue the kernels that sort the atoms by cell, after :func:`reserve`.

    With periodic images, it waits until the GPU has counted them, and then allocates just the memory for them.
    """
    from vmdpotential.engines.cuda.driver import cuda_driver

    drv = cuda_driver()
    blocks, row_count = -(-int(task["count"]) // 256), rows(task)
    order_blocks, arguments = blocks, task.tobytes()

    def queue(name: str, blocks: int, threads: int = 256) -> None:
        kernel = gpu.kernel(kernel_file("sort.cu"), name, {"REAL": "float"}, "", task.itemsize)
        kernel.prepared_async_call((blocks, 1, 1), (threads, 1, 1), stream, arguments)

    drv.memset_d32_async(int(task["starts"]), 0, 2 * starts, stream)
    queue("count", blocks)
    queue("scan_rows", -(-row_count // 8))
    queue("scan_totals", 1, 1024)
    if periodic:
        total = np.empty(1, np.int32)
        drv.memcpy_dtoh_async(total, int(task["rows"]) + 4 * row_count, stream)
        stream.synchronize()
        _reserve_atoms(gpu, task, int(total[0]))
        order_blocks, arguments = max(1, -(-int(total[0]) // 256)), task.tobytes()
    queue("place", blocks)
    queue("order", order_blocks)


def _reserve_atoms(gpu: Any, task: Any, count: int) -> None:
    for name, size in (("atoms", 32), ("placed", 32), ("cell", 4), ("index", 4), ("image", 4)):
        task[name] = gpu.buffer(name, size * count)


def rows(task: Any) -> int:
    """Return the number of rows of cells along z."""
    return int(task["cells"][0] * task["cells"][1])
