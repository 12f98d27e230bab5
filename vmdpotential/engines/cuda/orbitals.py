"""Orbitals on a lattice on a GPU, with the kernel of orbitals.cu."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda import device
from vmdpotential.engines.cuda.build import address, struct
from vmdpotential.engines.orbitals import OrbitalSum, Singles

#: Number of points of a block along x, y and z, as in orbitals.cu.
EDGES = (4, 4, 8)

#: Number of orbitals that a thread evaluates together.
TOGETHER = 16

#: Struct OrbitalTask of orbitals.cu.
TASK = struct("OrbitalTask", [
    ("table", address("const int")),  # (shells, 4)
    ("centres", address("const double")),  # (shells, 3)
    ("reaches2", address("const float")),
    ("exponents", address("const float")), ("factors", address("const float")),  # of the primitives
    ("coefficients", address("const float")),  # (orbitals / ORBITALS, monomials, ORBITALS)
    ("weights", address("const float")),  # weights of the squares
    ("values", address("float")),
    ("origin", np.float64, 3), ("spacing", np.float64, 3),
    ("shape", np.int32, 3),
    ("shells", np.int32), ("monomials", np.int32), ("orbitals", np.int32),
    ("squares", np.int32),  # whether squares are summed
], "orbitals.cu")


def orbitals(work: OrbitalSum) -> Singles:
    """Return an orbital, or the weighted sum of the squares of several; see :class:`vmdpotential.engines.Engine`."""
    lattice, together = work.lattice, TOGETHER if len(work.weights) else 1
    count, monomials = work.coefficients.shape
    groups = -(-count // together)
    coefficients = np.zeros((groups * together, monomials), np.float32)
    coefficients[:count] = work.coefficients
    weights = np.zeros(groups * together, np.float32)
    weights[: len(work.weights)] = work.weights
    values = np.empty(lattice.shape, np.float32)
    arrays: dict[str, NDArray[Any]] = {
        "table": work.shells.astype(np.int32), "centres": work.centres, "weights": weights,
        "reaches2": (work.reaches**2).astype(np.float32), "exponents": work.exponents.astype(np.float32),
        "factors": work.factors.astype(np.float32),
        "coefficients": coefficients.reshape(groups, together, monomials).transpose(0, 2, 1),
    }
    needed = values.nbytes + sum(array.nbytes for array in arrays.values())
    task = np.zeros((), TASK)
    task["origin"], task["spacing"], task["shape"] = lattice.origin, lattice.spacing, lattice.shape
    task["shells"], task["monomials"], task["orbitals"] = len(work.shells), monomials, groups * together
    task["squares"] = int(len(work.weights) > 0)
    with device.with_room(needed) as gpu:
        for name, array in arrays.items():
            task[name] = gpu.upload(f"orbitals {name}", array)
        task["values"] = gpu.buffer("orbitals values", values.nbytes)
        kernel = gpu.kernel("orbitals.cu", "orbitals", {"REAL": "float", "ORBITALS": together}, "", TASK.itemsize)
        blocks = [-(-n // edge) for n, edge in zip(lattice.shape, EDGES, strict=True)]
        kernel.prepared_call((blocks[2], blocks[1], blocks[0]), (int(np.prod(EDGES)), 1, 1), task.tobytes())
        device.driver().memcpy_dtoh(values, int(task["values"]))
    return values
