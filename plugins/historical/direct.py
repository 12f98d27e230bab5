"""Four stages in the development of direct Coulomb summation on GPUs.

After J. E. Stone, J. C. Phillips, P. L. Freddolino, D. J. Hardy, L. G. Trabuco, K. Schulten,
"Accelerating molecular modeling applications with graphics processors", J. Comput. Chem. 28 (2007)
2618-2640: coordinates in single precision, sums in single precision, one GPU, a map that fits it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.sums import Estimate, Request, result_bytes
from vmdpotential.sums.cuda import kernels
from vmdpotential.sums.potential_sum import PotentialSum

from .early import COPY, Early, TimedResult, packed_atoms

HERE = Path(__file__).parent

#: Number of points along z of a block of 32 x 8 threads.
POINTS = {"simple": 32, "constant": 32, "unrolled": 256, "coalesced": 256}

#: Number of atoms in constant memory at a time. There is room for 4000, but the first-level cache has 2 kB and the
#: second some 32 kB. Threads with 8 points per atom can hide the latency of the second, threads with one point cannot.
#: On an H200, batches of 4000 made `constant` 7 times slower than these, `unrolled` 3 and `coalesced` 2 times.
BATCH = {"constant": 64, "unrolled": 1000, "coalesced": 1000}

#: Times relative to the present direct sum. Here the special function units compute all inverse square roots, which
#: takes 1.2 times as long as computing some of them by arithmetic; the ratios between the versions are those of a
#: GeForce 8800 GTX (18.6, 36.4 and 39.5e9 pairs a second), with `simple` as slow as `constant`.
SLOWER = {"simple": 2.5, "constant": 2.5, "unrolled": 1.3, "coalesced": 1.2}


def all_pairs(name: str, work: PotentialSum, positions: Floats, charges: Floats) -> TimedResult:
    """Return the Coulomb sum over all atoms."""
    lattice = work.lattice
    out = np.zeros(lattice.shape, np.float32)
    if not len(positions):
        return TimedResult(out[None])
    assert work.pairs is not None
    scaled = work.pairs.scaled(float(lattice.spacing.max()))
    atoms = packed_atoms(lattice, positions, charges, scaled.length)
    task = kernels.base_task(lattice, scaled)
    nx, ny, nz = lattice.shape
    grid = (-(-nz // POINTS[name]), -(-ny // 8), nx)
    size = BATCH.get(name, len(atoms))
    macros: dict[str, object] = {"REAL": "float"} | ({"BATCH": size} if name in BATCH else {})
    file = HERE / f"direct_{name}.cu"
    (gpu,) = kernels.least_busy_gpus(1)
    with gpu, kernels.converted_errors(f"GPU {gpu.number} ({gpu.name})"):
        drv = kernels.cuda_driver()
        kernel = gpu.kernel(file, f"direct_{name}", macros, "", kernels.TASK.itemsize)
        start, lanes = gpu.streams()
        stream, end = lanes[0]
        task["out"] = gpu.buffer("map 0", out.nbytes)
        drv.memset_d8(int(task["out"]), 0, out.nbytes)
        task["atoms"] = gpu.upload("atoms", atoms)
        start.record(stream)
        for first in range(0, len(atoms), size):
            task["count"] = min(size, len(atoms) - first)
            if name in BATCH:
                drv.memcpy_dtod_async(gpu.symbol(file, "batch", macros), int(task["atoms"]) + 16 * first,
                                      16 * int(task["count"]), stream)
            kernel.prepared_async_call(grid, (256, 1, 1), stream, task.tobytes())
        end.record(stream)
        end.synchronize()
        drv.memcpy_dtoh(out, int(task["out"]))
        seconds = end.time_since(start) * 1e-3
        gpu.trim()
    return TimedResult(out[None], seconds)


class EarlyDirect(Early):
    """A direct sum of 2007."""

    boundaries = ("open",)
    interactions = ("coulomb",)
    precisions = ("single",)
    kernel = staticmethod(all_pairs)

    def cost(self, request: Request, engine: Engine) -> Estimate:
        """Return the estimated time and memory of the sum on a GPU."""
        pairs = request.lattice.size * request.charges.count
        seconds = engine.costs.fixed + SLOWER[self.name] * engine.costs.direct * pairs + COPY * request.lattice.size
        return Estimate(seconds, result_bytes(request))


SIMPLE = EarlyDirect("simple", "direct sum of 2007: one point per thread, atoms in device memory")
CONSTANT = EarlyDirect("constant", "direct sum of 2007: one point per thread, atoms in constant memory")
UNROLLED = EarlyDirect("unrolled", "direct sum of 2007: 8 neighbouring points per thread")
COALESCED = EarlyDirect("coalesced", "direct sum of 2007: 8 points per thread, coalesced stores")
