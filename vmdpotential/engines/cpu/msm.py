"""Multilevel sums on the CPU: charges up the levels, potentials down, around the kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cpu import build, mesh, threads, tiles
from vmdpotential.grid.lattice import Lattice
from vmdpotential.splitting.levels import Level, Plan, Table

Floats = NDArray[np.float64]


def msm(lattice: Lattice, positions: Floats, charges: Floats, plan: Plan,
        precision: str = "single", field: bool = False) -> NDArray[np.float32]:
    """Return the full potential on a lattice: smooth part by the levels and the pairs, see :mod:`vmdpotential.engines`.

    With `field` the slope of the smooth part is that of its interpolation, as in the 2009 paper.
    """
    kernel = mesh.load(plan, precision, "nodal")
    potential = solve(kernel, plan, mesh.spread(kernel, plan, positions, charges))
    smooth = mesh.smooth_maps(kernel, potential, plan, lattice, field)
    return tiles.cutoff(lattice, positions, charges, plan.short, precision, plan.cell, field, smooth)


def solve(kernel: Any, plan: Plan, charges: NDArray[Any]) -> NDArray[Any]:
    """Return the finest level's potential for its charges, with that of all coarser ones."""
    levels = [charges]
    for n in range(len(plan.levels) - 1):
        levels.append(mesh.separable(kernel, levels[-1], _tables(kernel, plan.restriction(n))))
    potential = convolve(kernel, levels[-1], plan.levels[-1], plan.periodic)
    for n in reversed(range(len(plan.levels) - 1)):
        potential = mesh.separable(kernel, potential, _tables(kernel, plan.prolongation(n)))
        potential += convolve(kernel, levels[n], plan.levels[n], plan.periodic)
    return potential


def _tables(kernel: Any, tables: tuple[Table, Table, Table]) -> tuple[mesh.Table, mesh.Table, mesh.Table]:
    x, y, z = (None if table is None else (table[0], table[1].astype(kernel.REAL)) for table in tables)
    return x, y, z


def convolve(kernel: Any, charges: NDArray[Any], level: Level, periodic: tuple[bool, bool, bool]) -> NDArray[Any]:
    """Return the potential that the charges of a level make on it."""
    kernel = build.load("msm_kernel", precision="single" if kernel.REAL is np.float32 else "double")
    dx, dy, dz = level.stencil.shape
    groups = -(-dz // kernel.GROUP)
    planes = level.equal_planes
    stencil = np.pad(level.stencil[planes[:, 0]], [(0, 0), (0, 0), (0, groups * kernel.GROUP - dz)])
    weights = np.zeros((len(planes), dy + kernel.ROWS - 1, groups, kernel.ROWS, kernel.GROUP), kernel.REAL)
    for row in range(kernel.ROWS):
        weights[:, row : row + dy, :, row] = stencil.reshape(-1, dy, groups, kernel.GROUP)
    used = (weights != 0).any((3, 4))
    low = used.argmax(-1)
    high = np.where(used.any(-1), groups - used[:, :, ::-1].argmax(-1), low)
    # what lies around the level: periodic images, or nothing
    for axis, (n, first, width) in enumerate(zip(level.shape, level.first, (dx, dy, dz), strict=True)):
        around = (-first, width - 1 + first)
        if periodic[axis]:
            charges = charges.take(np.arange(-around[0], n + around[1]) % n, axis)
        else:
            charges = np.pad(charges, [around if d == axis else (0, 0) for d in range(3)])
    nx, ny, nz = level.shape
    blocks = -(-nz // kernel.MOST)
    block = -(-nz // (blocks * kernel.LANES)) * kernel.LANES
    beyond = -nz % block + groups * kernel.GROUP - dz + 1
    charges = np.pad(charges, [(0, 0), (0, -ny % kernel.ROWS), (0, beyond)])
    out = np.empty(level.shape, kernel.REAL)
    threads.run(partial(kernel.convolve, charges, charges.any(-1), planes, weights.reshape(*weights.shape[:3], -1), low,
                        high, block, out), nx * -(-ny // kernel.ROWS), "multilevel sum", 4)
    return out
