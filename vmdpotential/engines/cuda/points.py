"""Sums at arbitrary points on a GPU, in float64, around points.cu."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import SOFT_CORE, charges_and_positions
from vmdpotential.engines.cuda import device, radial
from vmdpotential.engines.cuda.build import address, struct
from vmdpotential.errors import MemoryPlanError
from vmdpotential.interactions import Bound
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]

#: Struct PointTask of points.cu.
TASK = struct("PointTask", [
    ("points", address("const double")),  # (count, 3)
    ("positions", address("const double")),  # (atoms, 3)
    ("charges", address("const double")),  # (atoms)
    ("sums", address("double")),  # (parts, count)
    ("least", address("double")),  # (parts, count) squared distance to the nearest atom, A^2
    ("basis", np.float64, (3, 3)),  # lattice vectors as rows
    ("inverse", np.float64, (3, 3)),  # its inverse; zeros: not periodic
    ("shifts", np.float64, (26, 3)),  # to images that may be nearer than the rounded one
    ("cutoff2", np.float64),
    ("soft2", np.float64),
    ("doubles", np.float64, radial.MAX_UNIFORMS),  # what the radial function reads
    ("shift_count", np.int32),
    ("count", np.int32),
    ("atoms", np.int32),
    ("part", np.int32),  # atoms of a part
], "points.cu")

#: Blocks that keep a GPU busy; with fewer points the atoms are shared out.
BLOCKS = 1024


def at_points(points: Floats, positions: Floats, charges: Floats, cell: Cell | None = None,
              interaction: Bound | None = None, nearest: Floats | None = None) -> Floats:
    """Return the potential of all atoms, each at its nearest image where a cell is given.

    Parameters
    ----------
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    cell : Cell or None
    interaction : Bound
        Coulomb unless given.
    nearest : (P,) float64, optional
        Filled with the distances to the nearest atom, A.

    Returns
    -------
    (P,) float64, e/A
        Exact to rounding (about 1e-13); an atom nearer than 0.01 A counts at that distance.
    """
    bound = interaction or COULOMB.bind()
    points = np.ascontiguousarray(points, np.float64).reshape(-1, 3)
    positions, charges = charges_and_positions(positions, charges)
    if not len(points) or not len(positions):
        if nearest is not None:
            nearest[:] = np.inf
        return np.zeros(len(points))
    scaled = bound.scaled()
    blocks = -(-len(points) // 128)
    parts = max(1, min(BLOCKS // blocks, len(positions) // 256, 65535))
    task = np.zeros((), TASK)
    if cell is not None:
        task["basis"] = cell.vectors if cell.orthogonal else cell.reduced
        task["inverse"] = np.linalg.inv(task["basis"])
        shifts = cell.neighbours[1:]
        task["shifts"][: len(shifts)], task["shift_count"] = shifts, len(shifts)
    task["cutoff2"], task["soft2"] = (scaled.cutoff or 0.0) ** 2, SOFT_CORE**2
    uniforms = radial.uniforms(scaled)
    task["doubles"][: len(uniforms)] = uniforms
    task["count"], task["atoms"], task["part"] = len(points), len(positions), -(-len(positions) // parts)
    macros = {"REAL": "double", "MASKED": int(bound.masked)}
    sums = np.empty((2, parts, len(points)))  # and the smallest squared distances
    needed = 24 * len(points) + 32 * len(positions) + sums.nbytes
    gpu = device.idlest(1)[0]
    with gpu, device.errors(f"GPU {gpu.number} ({gpu.name})", needed):
        if needed > gpu.free():
            raise MemoryPlanError(f"{len(points)} points and {len(positions)} atoms need {needed} bytes of GPU memory, "
                                  f"{gpu.free()} are free", "use {engine cpu}")
        task["points"], task["sums"] = gpu.upload("points", points), gpu.buffer("sums", sums.nbytes)
        task["least"] = int(task["sums"]) + sums[0].nbytes
        task["positions"], task["charges"] = gpu.upload("positions", positions), gpu.upload("charges", charges)
        kernel = gpu.kernel("points.cu", "at_points", macros, radial.source(scaled, "double"), TASK.itemsize)
        kernel.prepared_call((blocks, parts, 1), (128, 1, 1), task.tobytes())
        device.driver().memcpy_dtoh(sums, int(task["sums"]))
    if nearest is not None:
        nearest[:] = np.sqrt(sums[1].min(0))
    total: Floats = sums[0].sum(0) * scaled.factor
    return total
