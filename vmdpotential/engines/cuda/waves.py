"""Structure factors of charges on a GPU, in float64, with the kernel of waves.cu."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda import device
from vmdpotential.engines.cuda.build import address, struct

Floats = NDArray[np.float64]

#: Struct WaveTask of waves.cu.
TASK = struct("WaveTask", [
    ("fraction", address("const double")),  # (atoms, 3)
    ("charges", address("const double")),  # (atoms)
    ("sums", address("double")),  # (parts, waves, 2) real and imaginary parts
    ("counts", np.int32, 3),  # the largest index along each axis
    ("waves", np.int32),
    ("atoms", np.int32),
    ("part", np.int32),  # number of atoms in a part
], "waves.cu")

#: Number of blocks that keep a GPU busy; with fewer blocks of waves, the atoms are divided into parts.
BLOCKS = 1024


def structure_factors(fraction: Floats, charges: Floats, counts: NDArray[np.int64]) -> NDArray[np.complex128]:
    """Return the sums over atoms of q exp(-2 pi i (h, k, l) f), see :class:`vmdpotential.engines.Engine`."""
    nx, ny, nz = (int(n) for n in counts)
    shape = (nx + 1, 2 * ny + 1, 2 * nz + 1)
    waves = int(np.prod(shape))
    blocks = -(-waves // 128)
    parts = max(1, min(-(-BLOCKS // blocks), len(charges) // 256, 65535))
    task = np.zeros((), TASK)
    task["counts"], task["waves"], task["atoms"] = (nx, ny, nz), waves, len(charges)
    task["part"] = -(-len(charges) // parts)
    sums = np.empty((parts, *shape), np.complex128)
    gpu = device.least_busy_gpus(1)[0]
    with gpu, device.errors(f"GPU {gpu.number} ({gpu.name})", sums.nbytes + 32 * len(charges)):
        task["fraction"] = gpu.upload("positions", np.asarray(fraction, np.float64))
        task["charges"] = gpu.upload("charges", np.asarray(charges, np.float64))
        task["sums"] = gpu.buffer("sums", sums.nbytes)
        kernel = gpu.kernel("waves.cu", "structure_factors", {"REAL": "double"}, "", TASK.itemsize)
        kernel.prepared_call((blocks, parts, 1), (128, 1, 1), task.tobytes())
        device.driver().memcpy_dtoh(sums, int(task["sums"]))
    half = sums.sum(0)
    return np.concatenate([half[:0:-1, ::-1, ::-1].conj(), half])
