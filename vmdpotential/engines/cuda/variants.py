"""The line of development of direct Coulomb summation on GPUs, for comparison in benchmarks.

After J. E. Stone, J. C. Phillips, P. L. Freddolino, D. J. Hardy, L. G. Trabuco, K. Schulten,
"Accelerating molecular modeling applications with graphics processors", J. Comput. Chem. 28 (2007)
2618-2640: coordinates in single precision, sums in single precision, one GPU, a map that fits it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda import device, maps
from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB

#: Points along z of a block of 32 x 8 threads.
DIRECT = {"simple": 32, "constant": 32, "unrolled": 256, "coalesced": 256}

#: Atoms put in constant memory at a time. It holds 4000, but its first cache holds 2 kB and its second some
#: 32 kB; a thread with 8 points for an atom can wait for the second, a thread with one cannot. On an H200,
#: batches of 4000 made `constant` 7 times slower than these, `unrolled` 3 and `coalesced` 2 times.
BATCH = {"constant": 64, "unrolled": 1000, "coalesced": 1000}

Floats = NDArray[np.float64]


def direct(variant: str, lattice: Lattice, positions: Floats, charges: Floats) -> NDArray[np.float32]:
    """Return the Coulomb sum over all atoms, (nx, ny, nz) float32 in e/A.

    Raises
    ------
    UsageError
        For an unknown variant.
    """
    if variant not in DIRECT:
        raise UsageError(f"there is no variant '{variant}' of the direct sum; choose one of {', '.join(DIRECT)}")
    positions, charges = maps.check(positions, charges, "single")
    out = np.zeros(lattice.shape, np.float32)
    if not len(positions):
        return out
    scaled = COULOMB.bind().scaled(float(lattice.spacing.max()))
    atoms = np.column_stack([(positions - lattice.origin) / scaled.length, charges]).astype(np.float32)
    task = maps.base_task(lattice, scaled, len(atoms))
    nx, ny, nz = lattice.shape
    grid = (-(-nz // DIRECT[variant]), -(-ny // 8), nx)
    size = BATCH.get(variant, len(atoms))
    macros = {"REAL": "float", "BATCH": size} if variant in BATCH else {"REAL": "float"}
    file = f"direct_{variant}.cu"
    gpu = device.gpus()[0]
    with gpu, device.errors(f"GPU {gpu.number} ({gpu.name})"):
        drv = device.driver()
        kernel = gpu.kernel(file, f"direct_{variant}", macros, "", maps.TASK.itemsize)
        start, lanes = gpu.lanes()
        stream, end = lanes[0]
        task["out"] = gpu.buffer("map 0", out.nbytes)
        drv.memset_d8(int(task["out"]), 0, out.nbytes)
        task["atoms"] = gpu.upload("atoms", atoms)
        start.record(stream)
        for first in range(0, len(atoms), size):
            task["count"] = min(size, len(atoms) - first)
            if variant in BATCH:
                drv.memcpy_dtod_async(gpu.symbol(file, "batch", macros), int(task["atoms"]) + 16 * first,
                                      16 * int(task["count"]), stream)
            kernel.prepared_async_call(grid, (256, 1, 1), stream, task.tobytes())
        end.record(stream)
        end.synchronize()
        drv.memcpy_dtoh(out, int(task["out"]))
        maps.device_seconds = end.time_since(start) * 1e-3
    return out
