"""The smooth part of 1/r, or of a screened potential, at atoms by a mesh, for one frame after another.

The split radius is the cutoff of the pairs, so that one pass over the pairs sums what is left beside Lennard-Jones;
with a radius so long the mesh is coarse, and its transforms take less time than spreading the charges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines import Engine
from vmdpotential.engines.costs import AT_POINTS as COSTS
from vmdpotential.errors import TaskError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.methods import Charges
from vmdpotential.methods.costs import ORDERS, RATIOS
from vmdpotential.methods.reference import smooth_part
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.coulomb import Splitting, optimal
from vmdpotential.splitting.mesh import Mesh, Split, around, over_cell
from vmdpotential.splitting.screened import Screened

Floats = NDArray[np.float64]

#: Error of the potential, 1/A, for uncorrelated unit charges, one in 1 A^3: 1e-4 kcal/mol for a protein in water.
ERROR = 1e-7


@dataclass(frozen=True, eq=False)
class LongRange:
    """A splitting, and the mesh that its smooth part needs.

    Parameters
    ----------
    spacing : float, A
        Of the mesh, at most.
    order : int
        Of its B-splines.
    splitting : Splitting or Screened
    seconds : float
        What a frame takes, about.
    """

    spacing: float
    order: int
    splitting: Splitting | Screened
    seconds: float

    @classmethod
    def plan(cls, radius: float, positions: Floats, charges: Floats, points: int, cell: Cell | None,
             error: float = ERROR, split: Split = optimal) -> LongRange:
        """Return the cheapest plan for a split radius (A), charges at positions, a number of points, and an error.

        `split` makes the splitting, of 1/r unless given.

        Raises
        ------
        TaskError
            When no mesh is good enough.
        """
        density = Charges.of(positions, charges, cell).density
        extents = np.ptp(positions, axis=0) if cell is None else np.linalg.norm(cell.vectors, axis=1)
        plans = []
        for order in ORDERS:
            ratio = next((r for r in RATIOS if split(radius, radius / r, order)[1] * density <= error), None)
            if ratio is None:
                continue
            spacing = radius / ratio
            nodes = (COSTS.node_open * np.prod(2 * (extents / spacing + order)) if cell is None
                     else COSTS.node_periodic * np.prod(extents / spacing + 1))
            time = nodes + order**3 * (COSTS.spread * len(positions) + COSTS.gather * points)
            plans.append((float(time), spacing, order))
        if not plans:
            raise TaskError("no mesh sums the long range so precisely", "use a longer {cutoff}")
        time, spacing, order = min(plans)
        splitting, _ = split(radius, spacing, order)
        assert isinstance(splitting, Splitting | Screened)
        return cls(spacing, order, splitting, time)

    def mesh(self, positions: Floats, cell: Cell | None) -> Mesh:
        """Return the mesh for all positions of a frame.

        Raises
        ------
        MemoryPlanError
            When it does not fit into memory.
        """
        radius = self.splitting.radius
        extents = np.ptp(positions, axis=0) if cell is None else np.linalg.norm(cell.vectors, axis=1)
        size = float(np.prod(2 * (extents / self.spacing + self.order) if cell is None else extents / self.spacing + 1))
        memory.require(int(30 * size), f"a mesh of {size:.3g} points", "correct atoms that are far off")

        def split(*_: float) -> tuple[Splitting | Screened, float]:
            return self.splitting, 0.0  # one for all frames, whose meshes are as fine or a little finer

        ratio = radius / self.spacing
        if cell is not None:
            return over_cell(cell, self.spacing, self.order, ratio, split)
        counts = [int(n) for n in np.ceil(extents / self.spacing)]
        lattice = Lattice(positions.min(0), np.full(3, self.spacing), (counts[0] + 1, counts[1] + 1, counts[2] + 1))
        return around(lattice, Charges.of(positions, np.zeros(0)).box, self.spacing, self.order, ratio, split)


class Waves:
    """The smooth part's potential and field at points, for any charges, wave by wave: Ewald's sum."""

    def __init__(self, splitting: Splitting, cell: Cell, engine: Engine) -> None:
        self.splitting, self.cell, self.engine = splitting, cell, engine

    def at(self, points: Floats, positions: Floats, charges: Floats, field: bool) -> tuple[Floats, Floats | None]:
        """Return the potential (P,), e/A, and with `field` the field (P, 3), e/A^2, of charges at positions."""
        potential, slope = smooth_part(points, positions, charges, self.cell, self.splitting, self.engine)
        return potential, slope if field else None
