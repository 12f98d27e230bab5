"""Hydrogen bonds of probes on a lattice on a GPU, with the kernel of bonds.cu."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.bonds import BondSum, Floats
from vmdpotential.engines.cuda import device
from vmdpotential.engines.cuda.build import address, struct

#: Number of threads of a block, as in bonds.cu.
THREADS = 128

#: Struct BondTask of bonds.cu.
TASK = struct("BondTask", [
    ("positions", address("const double")), ("directions", address("const double")),  # (atoms, 3)
    ("normals", address("const double")), ("powers", address("const double")),
    ("distances", address("const double")), ("depths", address("const double")),  # (probes, types)
    ("kinds", address("const int")), ("type", address("const int")),  # (atoms)
    ("extremes", address("const int")),  # (probes)
    ("values", address("double")),  # (probes, nodes)
    ("origin", np.float64, 3), ("spacing", np.float64, 3),
    ("smooth", np.float64), ("cap", np.float64), ("cutoff", np.float64),
    ("nodes", np.uint64),
    ("shape", np.int32, 3),
    ("atoms", np.int32), ("types", np.int32),
], "bonds.cu")


def bonds(work: BondSum) -> Floats:
    """Return the energies (P, nx, ny, nz), kcal/mol; see :class:`vmdpotential.engines.Engine`."""
    lattice, (probes, types) = work.lattice, work.distances.shape
    values = np.zeros((probes, *lattice.shape))
    if not len(work.kinds):
        return values
    arrays: dict[str, NDArray[Any]] = {
        "positions": work.positions, "directions": work.directions, "normals": work.normals, "powers": work.powers,
        "distances": work.distances, "depths": work.depths, "kinds": work.kinds.astype(np.int32),
        "type": work.types.astype(np.int32), "extremes": work.extremes.astype(np.int32),
    }
    needed = values.nbytes + sum(array.nbytes for array in arrays.values())
    task = np.zeros((), TASK)
    task["origin"], task["spacing"], task["shape"] = lattice.origin, lattice.spacing, lattice.shape
    task["smooth"], task["cap"], task["cutoff"] = work.smooth, work.cap, work.cutoff
    task["nodes"], task["atoms"], task["types"] = lattice.size, len(work.kinds), types
    with device.with_room(needed) as gpu:
        for name, array in arrays.items():
            task[name] = gpu.upload(f"bonds {name}", array)
        task["values"] = gpu.buffer("bonds values", values.nbytes)
        kernel = gpu.kernel("bonds.cu", "bonds", {"REAL": "double", "PROBES": probes}, "", TASK.itemsize)
        kernel.prepared_call((-(-lattice.size // THREADS), 1, 1), (THREADS, 1, 1), task.tobytes())
        device.driver().memcpy_dtoh(values, int(task["values"]))
    return values
