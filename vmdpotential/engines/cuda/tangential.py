"""The flow along a molecule's surface on a GPU, with the kernels of tangential.cu."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda import copies, device
from vmdpotential.engines.cuda.build import address, struct
from vmdpotential.engines.tangential import TERMS, SurfaceFlow

Floats = NDArray[np.float64]

#: Number of threads of a block, and coefficients that are kept of a polynomial, as in tangential.cu.
THREADS, KEPT = 128, TERMS - 1

#: Struct SurfaceTask of tangential.cu.
TASK = struct("SurfaceTask", [
    ("distances", address("const float")), ("unknown", address("const float")),  # (size)
    ("rows", address("unsigned")),  # (size): of each node next to the surface, one plus its row; 0 elsewhere
    ("counter", address("unsigned")),  # how many nodes are next to the surface
    ("nodes", address("long long")), ("fitted", address("unsigned char")),  # (count)
    ("coefficients", address("float")),  # (count, KEPT)
    ("sums", address("unsigned long long")),  # (count): flows into each node, in units of UNIT
    ("flows", address("double")),
    ("outside", address("const double")),
    ("spacing", np.float64, 3), ("stiffness", np.float64, TERMS),
    ("inside", np.float64), ("reach", np.float64),
    ("count", np.uint64), ("size", np.uint64),
    ("shape", np.int32, 3),
    ("margin", np.int32), ("few", np.int32), ("enough", np.int32),
], "tangential.cu")


def flow_along(work: SurfaceFlow) -> tuple[NDArray[np.int64], Floats]:
    """Return nodes and the flows into them; see :class:`vmdpotential.engines.Engine`."""
    lattice, size = work.lattice, work.lattice.size
    task, counter = np.zeros((), TASK), np.zeros(1, np.uint32)
    task["spacing"], task["shape"], task["size"] = lattice.spacing, lattice.shape, size
    task["stiffness"], task["inside"], task["reach"] = work.stiffness, work.inside, work.reach
    task["margin"], task["few"], task["enough"] = work.margin, work.few, work.enough
    with device.with_room(3 * 4 * size) as gpu:

        def start(name: str, count: int) -> None:
            kernel = gpu.kernel("tangential.cu", name, {"REAL": "float"}, "", TASK.itemsize)
            kernel.prepared_call((-(-count // THREADS), 1, 1), (THREADS, 1, 1), task.tobytes())

        for name in ("distances", "unknown", "rows"):
            task[name] = gpu.buffer(f"tangential {name}", 4 * size)
        copies.put((int(task["distances"]), work.distances), (int(task["unknown"]), work.unknown))
        task["outside"], task["counter"] = (gpu.upload(f"tangential {name}", array) for name, array in (
            ("outside", work.outside), ("counter", counter)))
        start("find", size)
        device.driver().memcpy_dtoh(counter, int(task["counter"]))
        count = task["count"] = int(counter[0])
        nodes, flows = np.empty(count, np.int64), np.empty(count)
        if count:
            for name, each in (("nodes", 8), ("fitted", 1), ("coefficients", 4 * KEPT), ("sums", 8), ("flows", 8)):
                task[name] = gpu.buffer(f"tangential {name}", each * count)
            start("list", size)
            start("fit", count)
            start("add", count)
            start("convert", count)
            copies.get(nodes, int(task["nodes"]))
            copies.get(flows, int(task["flows"]))
    return nodes, flows
