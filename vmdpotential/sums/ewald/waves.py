"""Structure factors of charges, for sums over waves."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.kernels.launch import KernelFile

KERNELS = KernelFile(Path(__file__).with_name("waves.cu"))

#: Number of threads of a GPU's block, and of blocks that keep a GPU busy; with fewer blocks of waves, the atoms are
#: divided into parts, of at least so many atoms.
THREADS, BLOCKS, PART = 128, 1024, 256


def structure_factors(fraction: Floats, charges: Floats, counts: NDArray[np.int64],
                      engine: Engine) -> NDArray[np.complex128]:
    """Return the sums over atoms of q exp(-2 pi i (h, k, l) f), each index from -n to n, exact to rounding.

    Parameters
    ----------
    fraction : (N, 3) float64
        Fractional coordinates f.
    charges : (N,) float64, e
    counts : (3,) int
        Largest value n of each index.
    engine : Engine
    """
    nx, ny, nz = (int(n) for n in counts)
    shape = (nx + 1, 2 * ny + 1, 2 * nz + 1)
    waves, atoms = math.prod(shape), len(charges)
    blocks = -(-waves // THREADS)
    parts = max(1, min(-(-BLOCKS // blocks), atoms // PART))
    with engine.room(16 * parts * waves + 32 * atoms):
        sums = engine.zeros((parts, *shape, 2), np.float64)
        engine.launch(KERNELS["sum_waves"], (shape[0] * shape[1], blocks * parts * THREADS), "the reference sum",
                      fraction=np.ascontiguousarray(fraction, np.float64),
                      charges=np.ascontiguousarray(charges, np.float64), sums=sums, counts=(nx, ny, nz), waves=waves,
                      atoms=atoms, part=-(-atoms // parts))
        half = engine.to_host(sums).sum(0).view(np.complex128)[..., 0]
    return np.concatenate([half[:0:-1, ::-1, ::-1].conj(), half])
