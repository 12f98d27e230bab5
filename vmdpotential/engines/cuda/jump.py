"""The potential of charges on the edges that a molecule's surface cuts, on a GPU, with the kernel of jump.cu."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cpu.continuum import jump
from vmdpotential.engines.cuda import copies, device
from vmdpotential.engines.cuda.build import address, struct
from vmdpotential.engines.jump import EdgeSum

Floats = NDArray[np.float64]

#: Number of threads of a block, as in jump.cu.
THREADS = 128

#: Struct EdgeTask of jump.cu.
TASK = struct("EdgeTask", [
    ("inner", address("const long long")), ("outer", address("const long long")),  # (edges)
    ("share", address("const double")), ("line", address("const float4")),
    ("charges", address("const double4_t")),  # positions and charges, sorted by cubes
    ("starts", address("const long long")),
    ("values", address("double")),  # (4, edges)
    ("origin", np.float64, 3), ("spacing", np.float64, 3),
    ("low", np.float64, 3), ("side", np.float64), ("near", np.float64),
    ("edges", np.uint64),
    ("shape", np.int32, 3), ("counts", np.int32, 3),
], "jump.cu")


def potential_on_edges(work: EdgeSum) -> Floats:
    """Return the potential, its derivatives and its flow (4, E); see :class:`vmdpotential.engines.Engine`."""
    if not len(work.share) or not work.charges.any():
        return jump.potential_on_edges(work)
    values = np.empty((4, len(work.share)))
    charges, starts, low, side, counts = jump.in_cubes(work)
    arrays: dict[str, NDArray[Any]] = {
        "inner": work.inner, "outer": work.outer, "share": work.share, "line": work.line, "charges": charges,
        "starts": starts,
    }
    task = np.zeros((), TASK)
    task["origin"], task["spacing"], task["shape"] = work.lattice.origin, work.lattice.spacing, work.lattice.shape
    task["low"], task["side"], task["counts"], task["near"] = low, side, counts, work.near
    task["edges"] = len(work.share)
    with device.with_room(values.nbytes + sum(array.nbytes for array in arrays.values())) as gpu:
        for name, array in {**arrays, "values": values}.items():
            task[name] = gpu.buffer(f"jump {name}", array.nbytes)
        copies.put(*((int(task[name]), array) for name, array in arrays.items()))
        kernel = gpu.kernel("jump.cu", "known", {"REAL": "float"}, "", TASK.itemsize)
        kernel.prepared_call((-(-len(work.share) // THREADS), 1, 1), (THREADS, 1, 1), task.tobytes())
        copies.get(values, int(task["values"]))
    return values
