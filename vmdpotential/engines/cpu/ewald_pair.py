"""The potential of one charge with all its periodic images, at many points again and again.

Ewald's pair potential depends on the displacement alone, so that its smooth part is solved on a mesh
once, for a unit charge at a node, and looked up afterwards. With the split radius at half the
shortest lattice vector it is smooth enough for few nodes, and the rest comes from the nearest image.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import SOFT_CORE
from vmdpotential.engines.cpu import build, mesh, threads
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.mesh import over_cell

Floats = NDArray[np.float64]

ORDER = 4  # of the B-splines, as the kernel has it

#: Split radius over mesh spacing: the error is about 1e-6 of 1/L, with L the cell's length.
RATIO = 20.0

#: Blocks of points that take less time than to start a thread.
FEW = 64

#: Nodes at most, for cells that are flat; there the ratio is smaller.
MOST_NODES = 2**23


class EwaldPair:
    """The pair potential of a periodic cell in conducting surroundings, with a neutralising background.

    Its mean over the cell is zero. The relative error is below 1e-5 of the potential at half the cell.

    Parameters
    ----------
    cell : Cell
    """

    def __init__(self, cell: Cell) -> None:
        basis = cell if cell.orthogonal else Cell(cell.reduced)
        radius = 0.499999 * float(np.linalg.norm(cell.reduced, axis=1).min())
        spacing = max(radius / RATIO, (cell.volume / MOST_NODES) ** (1 / 3))
        plan = over_cell(basis, spacing, ORDER, radius / spacing)
        nodes = np.zeros(plan.shape)
        line = np.array([1, 4, 1]) / 6  # a cubic B-spline at the nodes around its middle
        nodes[np.ix_(*[np.array([-1, 0, 1])] * 3)] = line[:, None, None] * line[:, None] * line
        smooth = mesh.solve(mesh.load(plan, "double"), plan, nodes)
        short = plan.short.scaled()
        self._short, self._cutoff, self._smooth = plan.short, radius, float(smooth.max())
        self._kernel = build.load("point_kernel", program=short.program, precision="double", masked=True)
        self._factor = short.factor
        vectors = np.ascontiguousarray(basis.vectors)
        self._fixed = (
            vectors, np.ascontiguousarray(np.linalg.inv(vectors)), np.ascontiguousarray(cell.neighbours[1:]),
            np.array(short.values), SOFT_CORE**2, radius**2,
            np.ascontiguousarray(np.pad(smooth / short.factor, [(1, 2)] * 3, mode="wrap")),
        )

    def add(self, points: Floats, position: Floats, charge: float, potential: Floats) -> None:
        """Add the potential (e/A) of a charge (e) at `position`, and of all its images, to that at points.

        Parameters
        ----------
        points : (P, 3) float64, A
            Best in Fortran order.
        position : (3,) float64, A
        charge : float, e
        potential : (P,) float64, e/A
            Changed in place. A point nearer than 0.01 A has the potential at that distance.
        """
        x, y, z = (float(component) for component in position)
        columns = [np.ascontiguousarray(points[:, d]) for d in range(3)]
        fixed = (*columns, x, y, z, charge * self._factor, *self._fixed, potential)
        blocks = -(-len(points) // self._kernel.BLOCK)
        if blocks <= FEW:
            self._kernel.one_charge(*fixed, 0, blocks)
            return
        grain = max(1, min(64, blocks // threads.count()))
        threads.run(lambda first, last: self._kernel.one_charge(*fixed, first, last), blocks, "one charge", grain)

    def most(self, distance: float) -> float:
        """Return what the potential (1/A) of a unit charge never exceeds at a distance (A) or farther.

        The short part falls with the distance, and a B-spline lies below its largest coefficient.
        """
        near = float(self._short(np.array([distance]))[0]) if distance < self._cutoff else 0.0
        return near + self._smooth
