"""The potential of Gaussian charges on a lattice on a GPU, summed without a mesh by the kernels of gaussians.cu."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.engines.cuda import device
from vmdpotential.engines.cuda.build import address, struct
from vmdpotential.engines.gaussians import (
    FAR,
    FARTHER,
    FINE,
    TERMS,
    Floats,
    Gaussians,
    GaussianSum,
    boys_table,
    hermite,
)

Singles = NDArray[np.float32]

#: Number of points of a block along x, y and z, as in gaussians.cu.
EDGES = (4, 4, 8)

#: Number of coefficients times points in one launch, which takes some tenths of a second, so that Ctrl-C can act.
TERMS_PER_LAUNCH = 5e10

#: Struct GaussianTask of gaussians.cu.
TASK = struct("GaussianTask", [
    ("gaussians", address("const double")),  # (count, 4 + coefficients): centre, exponent, coefficients; or nuclei
    ("table", address("const double")),  # (rows, 1 + TERMS)
    ("sums", address("double")), ("values", address("float")),  # (points)
    ("origin", np.float64, 3), ("spacing", np.float64, 3),
    ("closest", np.float64),
    ("shape", np.int32, 3),
    ("count", np.int32),
    ("begins", np.int32),  # whether sums begin with 0 instead of those so far
], "gaussians.cu")


def potential(work: GaussianSum) -> Singles:
    """Return the potential (nx, ny, nz); see :class:`vmdpotential.engines.Engine`."""
    lattice, electrons = work.lattice, work.electrons
    values = np.empty(lattice.shape, np.float32)
    task = np.zeros((), TASK)
    task["origin"], task["spacing"], task["shape"] = lattice.origin, lattice.spacing, lattice.shape
    task["closest"], task["begins"] = work.closest, 1
    needed = 12 * lattice.size + 8 * len(electrons.coefficients) + 32 * len(electrons.orders)
    with device.with_room(needed) as gpu:
        task["sums"] = gpu.buffer("gaussians sums", 8 * lattice.size)
        task["values"] = gpu.buffer("gaussians values", values.nbytes)
        blocks = [-(-n // edge) for n, edge in zip(lattice.shape, EDGES, strict=True)][::-1]

        def launch(name: str, order: int, count: int) -> None:
            task["count"] = count
            kernel = gpu.kernel("gaussians.cu", name, macros(order), "", TASK.itemsize)
            kernel.prepared_call(tuple(blocks), (int(np.prod(EDGES)), 1, 1), task.tobytes())
            task["begins"] = 0

        done = 0
        for order in np.unique(electrons.orders).tolist():
            records = _records(electrons, order, -work.factor)
            task["table"] = gpu.upload("gaussians table", _table(order))
            start = gpu.upload("gaussians", records)
            batch = max(1, int(TERMS_PER_LAUNCH / (lattice.size * len(hermite(order)))))
            for begin in range(0, len(records), batch):
                task["gaussians"] = start + begin * records[0].nbytes
                launch("gaussians", order, min(batch, len(records) - begin))
                device.driver().memcpy_dtoh(np.empty(1), int(task["sums"]))  # waits for the kernel
                done += min(batch, len(records) - begin)
                progress.report("potential of electrons", done / len(electrons.orders))
        nuclei = np.column_stack([work.nuclei, work.charges * work.factor])
        task["gaussians"] = gpu.upload("gaussians", nuclei)
        launch("nuclei", 0, len(nuclei))
        device.driver().memcpy_dtoh(values, int(task["values"]))
    return values


def macros(order: int) -> dict[str, Any]:
    """Return the macros of gaussians.cu for Gaussians of an order."""
    return {"REAL": "double", "ORDER": order, "FINE": FINE, "TERMS": TERMS, "BEYOND": FAR + FARTHER * order}


def _records(electrons: Gaussians, order: int, factor: float) -> Floats:
    """Return the Gaussians of an order with their coefficients, (n, 4 + coefficients)."""
    chosen = np.flatnonzero(electrons.orders == order)
    indices = electrons.starts[chosen, None] + np.arange(len(hermite(order)))
    return np.column_stack([electrons.centres[chosen], electrons.exponents[chosen],
                            factor * electrons.coefficients[indices]])


def _table(order: int) -> Floats:
    """Return the part (rows, 1 + TERMS) of the table of Boys functions that an order needs."""
    table = boys_table(order)
    return np.ascontiguousarray(table[:, [0, *range(1 + order, 1 + order + TERMS)]])
