"""Pair sums at arbitrary points on a GPU, in float64, with the kernel of points.cu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines.cuda import device, driver, pinned, radial
from vmdpotential.engines.cuda.build import pointer_type, struct_type
from vmdpotential.grid.lattice import coordinate_bounds
from vmdpotential.interactions import SOFT_CORE, Bound
from vmdpotential.molecule.cell import Cell
from vmdpotential.sums.cuda import kernel_file
from vmdpotential.sums.inputs import charges_and_positions
from vmdpotential.sums.potential_sum import PotentialSum, Prepared
from vmdpotential.sums.result import HostResult

#: Struct PointTask of points.cu.
TASK = struct_type("PointTask", [
    ("points", pointer_type("const double")),  # (count, 3)
    ("positions", pointer_type("const double")),  # (atoms, 3)
    ("charges", pointer_type("const double")),  # (atoms)
    ("sums", pointer_type("double")),
    # (parts, 2 or 5, count): potential, field, squared distance to the nearest atom, A^2
    ("basis", np.float64, (3, 3)),  # lattice vectors as rows
    ("inverse", np.float64, (3, 3)),  # its inverse; zeros: not periodic
    ("shifts", np.float64, (26, 3)),  # displacements to images that may be nearer than the rounded one
    ("cutoff2", np.float64),
    ("soft2", np.float64),
    ("doubles", np.float64, radial.MAX_UNIFORMS),  # constants of the radial function
    ("shift_count", np.int32),
    ("count", np.int32),
    ("atoms", np.int32),
    ("part", np.int32),  # number of atoms in a part
], "points.cu")

#: Number of blocks that keep a GPU busy; with fewer blocks of points, the atoms are divided into parts.
BLOCKS = 1024


class PairsAtPoints(Prepared):
    """A sum over pairs at points; see :class:`vmdpotential.engines.Prepared`."""

    def __init__(self, work: PotentialSum) -> None:
        assert work.pairs is not None
        self.work, self._bound = work, work.pairs

    @property
    def self_potential(self) -> float:
        """Potential of a unit charge at its own position, 1/A."""
        return self.work.self_potential

    def run(self, positions: Any, charges: Any, target: Any = None) -> HostResult:
        """Return the sum for positions (N, 3), A, and charges (N,), e."""
        points = np.ascontiguousarray((target or self.work.target).points(), np.float64)
        positions, charges = charges_and_positions(positions, charges)
        if not len(points) or not len(positions):
            return HostResult(np.zeros((self.work.maps, len(points))), distances=np.full(len(points), np.inf))
        cell, reach = self.work.cell, self._bound.cutoff
        if cell is not None and reach is not None and not self.work.single_image:  # all images, not one of each
            cell = cell if cell.orthogonal else Cell(cell.reduced)  # fewer images are in its bounding box
            points = cell.wrap(points)
            low, high = coordinate_bounds(points)
            far = max(reach, float(np.linalg.norm(cell.reduced, axis=1).sum()) / 2) if self.work.distances else reach
            positions, index = cell.images_in_box(positions, low - far, high + far)
            charges, cell = charges[index], None
        values, least = _sums(points, positions, charges, cell, self._bound, self.work.field)
        return HostResult(values, distances=least)


def _sums(points: Floats, positions: Floats, charges: Floats, cell: Cell | None, bound: Bound,
          field: bool) -> tuple[Floats, Floats]:
    """Return sums over the nearest images (1 or 4, P), and distances to the nearest charge (P,)."""
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
    macros = {"REAL": "double", "MASKED": int(bound.masked), "FIELD": int(field)}
    shape = parts, 5 if field else 2, len(points)  # the last row has the smallest squared distances
    needed = 24 * len(points) + 32 * len(positions) + 8 * math.prod(shape)
    with device.with_room(needed) as gpu:
        sums = pinned.empty_pinned(shape, np.float64)
        task["points"], task["sums"] = gpu.upload("points", points), gpu.buffer("sums", sums.nbytes)
        task["positions"], task["charges"] = gpu.upload("positions", positions), gpu.upload("charges", charges)
        kernel = gpu.kernel(kernel_file("points.cu"), "at_points", macros,
                            radial.radial_source(scaled, "double", field), TASK.itemsize)
        kernel.prepared_call((blocks, parts, 1), (128, 1, 1), task.tobytes())
        driver.cuda_driver().memcpy_dtoh(sums, int(task["sums"]))
    values = sums[:, :-1].sum(0) * scaled.factor
    values[1:] *= -2.0  # E = -2 q (x - x_j) dV/d(r^2)
    return values, np.sqrt(sums[:, -1].min(0))
