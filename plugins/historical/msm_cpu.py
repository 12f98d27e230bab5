"""Multilevel sums on the CPU: charges are spread to coarser levels, and potentials interpolated to finer ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.grid.lattice import Lattice
from vmdpotential.kernels.launch import KernelFile, launch_kernel
from vmdpotential.sums.cpu import mesh
from vmdpotential.sums.cpu.nodes import CpuSum
from vmdpotential.sums.potential_sum import PotentialSum

from .levels import Level, Levels, Table

KERNELS = KernelFile(Path(__file__).parent / "msm.cu")

#: Numbers of neighbouring rows along z, and largest number of nodes of each, whose potentials are summed together;
#: number of charges along z that are processed together. As in ``msm.cu``.
ROWS, MAX_NODES, GROUP = 4, 128, 4

#: Multiple to which the number of nodes of a row is padded, for vector instructions.
LANES = 16


def prepared(levels: Levels, work: PotentialSum) -> CpuSum:
    """Return a sum of pairs and levels that is ready to run."""
    return CpuSum(work, LevelSum(levels, work.lattice, work.precision))


class LevelSum:
    """The smooth part of a multilevel sum.

    Its field is the derivative of the interpolation, as in the 2009 paper.
    """

    def __init__(self, levels: Levels, lattice: Lattice, precision: str) -> None:
        self.levels, self.lattice = levels, lattice
        self.basis = mesh.Basis(levels.order, precision != "single", nodal=True)
        self.stencils = [Stencil(level, self.basis.real) for level in levels.levels]

    def maps(self, positions: Floats, charges: Floats, field: bool) -> NDArray[np.float32]:
        """Return the smooth part on the lattice, see :func:`~vmdpotential.sums.cpu.mesh.smooth_maps`."""
        return self.on(self.lattice, self.potential(positions, charges), field)

    def potential(self, positions: Floats, charges: Floats) -> NDArray[Any]:
        """Return the finest level's smooth potential."""
        nodes = mesh.spread(self.basis, self.levels, positions, charges)
        return self.solve(nodes.astype(self.basis.real, copy=False))

    def on(self, part: Lattice, potential: NDArray[Any], field: bool) -> NDArray[np.float32]:
        """Return the smooth part on a part of the lattice; see :func:`~vmdpotential.sums.cpu.mesh.smooth_maps`.
        """
        return mesh.smooth_maps(self.basis, potential, self.levels, part, field)

    def solve(self, charges: NDArray[Any]) -> NDArray[Any]:
        """Return the potential of the finest level for its charges, including the parts of all coarser levels."""
        plan, basis = self.levels, self.basis
        of_levels = [charges]
        for n in range(len(plan.levels) - 1):
            of_levels.append(mesh.separable(basis, of_levels[-1], _tables(basis, plan.restriction(n))))
        potential = convolve(of_levels[-1], self.stencils[-1], plan.periodic)
        for n in reversed(range(len(plan.levels) - 1)):
            potential = mesh.separable(basis, potential, _tables(basis, plan.prolongation(n)))
            potential += convolve(of_levels[n], self.stencils[n], plan.periodic)
        return potential


def _tables(basis: mesh.Basis, tables: tuple[Table, Table, Table]) -> tuple[mesh.Table, mesh.Table, mesh.Table]:
    x, y, z = (None if table is None else (table[0], table[1].astype(basis.real)) for table in tables)
    return x, y, z


class Stencil:
    """The stencil of a level in the layout for the kernel."""

    def __init__(self, level: Level, real: np.dtype[Any]) -> None:
        self.level, self.real = level, real
        _, dy, dz = level.stencil.shape
        self.groups = groups = -(-dz // GROUP)
        self.planes = level.equal_planes
        stencil = np.pad(level.stencil[self.planes[:, 0]], [(0, 0), (0, 0), (0, groups * GROUP - dz)])
        weights = np.zeros((len(self.planes), dy + ROWS - 1, groups, ROWS, GROUP), real)
        for row in range(ROWS):
            weights[:, row : row + dy, :, row] = stencil.reshape(-1, dy, groups, GROUP)
        used = (weights != 0).any((3, 4))
        self.low = used.argmax(-1)
        self.high = np.where(used.any(-1), groups - used[:, :, ::-1].argmax(-1), self.low)
        self.weights = weights.reshape(*weights.shape[:3], -1)


def convolve(charges: NDArray[Any], stencil: Stencil, periodic: bool) -> NDArray[Any]:
    """Return the potential of the charges of a level on the same level."""
    level = stencil.level
    # margins around the level: periodic images, or zeros
    for axis, (n, first, width) in enumerate(zip(level.shape, level.first, level.stencil.shape, strict=True)):
        around = (-first, width - 1 + first)
        if periodic:
            charges = charges.take(np.arange(-around[0], n + around[1]) % n, axis)
        else:
            charges = np.pad(charges, [around if d == axis else (0, 0) for d in range(3)])
    nx, ny, nz = level.shape
    blocks = -(-nz // MAX_NODES)
    block = -(-nz // (blocks * LANES)) * LANES
    beyond = -nz % block + stencil.groups * GROUP - level.stencil.shape[2] + 1
    charges = np.pad(charges, [(0, 0), (0, -ny % ROWS), (0, beyond)])
    out = np.empty(level.shape, stencil.real)
    launch_kernel(KERNELS[f"convolve_level_{'single' if stencil.real == np.float32 else 'double'}"],
                  nx * -(-ny // ROWS),
           "multilevel sum", 4, charges=charges, filled=charges.any(-1), planes=stencil.planes,
           weights=stencil.weights, low=stencil.low, high=stencil.high, out=out, charge_rows=charges.shape[1],
           charge_nodes=charges.shape[2], pairs=len(stencil.planes), weight_rows=stencil.weights.shape[1],
           groups=stencil.groups, ny=ny, nz=nz, block=block)
    return out
