"""Hydrogen bonds of probes on a lattice on the CPU, with the kernel of probes/bonds.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vmdpotential.compiling import threads
from vmdpotential.engines.bonds import BondSum, Floats
from vmdpotential.kernels.launch import KernelFile, call

KERNELS = KernelFile(Path(__file__).parents[2] / "probes" / "bonds.cu")

#: Number of nodes of a row that the kernel computes together.
WIDTH = 16


def bonds(work: BondSum) -> Floats:
    """Return the energies (P, nx, ny, nz), kcal/mol; see :class:`vmdpotential.engines.Engine`."""
    lattice, (probes, types), atoms = work.lattice, work.distances.shape, len(work.kinds)
    values, padded = np.empty((probes, *lattice.shape)), -(-lattice.shape[2] // WIDTH) * WIDTH
    positions = np.ascontiguousarray(work.positions)

    def compute_planes(first: int, last: int) -> None:
        call(KERNELS["sum_bonds"], first, last, positions=positions, directions=work.directions, normals=work.normals,
             powers=work.powers, kinds=work.kinds, types=work.types, distances=work.distances, depths=work.depths,
             extremes=work.extremes, out=values, low=np.empty((probes, padded), np.float32),
             high=np.empty((probes, padded), np.float32), total=np.empty((probes, padded)),
             nearest=np.empty(padded, np.float32), others=np.empty((3, padded), np.float32),
             closest=np.empty(padded, np.int32), near=np.empty((atoms, 3), np.int32), origin=lattice.origin,
             spacing=lattice.spacing, smooth=work.smooth, cap=work.cap, cutoff=work.cutoff, shape=lattice.shape,
             atoms=atoms, probes=probes, type_count=types, padded=padded)

    threads.run(compute_planes, lattice.shape[0], "hydrogen bonds", 1)
    return values
