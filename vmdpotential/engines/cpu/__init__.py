"""The CPU engine: Numba kernels with vector code made from traced radial functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from vmdpotential.grid.lattice import Lattice
    from vmdpotential.interactions import Bound
    from vmdpotential.molecule.cell import Cell
    from vmdpotential.splitting.levels import Plan
    from vmdpotential.splitting.mesh import Mesh

Floats = NDArray[np.float64]


class CpuEngine:
    """All cores of this machine, or as many as the environment variable VMDPOTENTIAL_THREADS says."""

    name = "cpu"
    has_transforms = True

    def describe(self) -> str:
        """Return cores and vector instructions in use."""
        from vmdpotential.engines.cpu import build, threads

        return f"{threads.count()} threads, {build.describe()}"

    def direct(self, lattice: Lattice, positions: Floats, charges: Floats, interaction: Bound,
               precision: str = "single", field: bool = False) -> NDArray[np.float32]:
        """Return the map of all atoms, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cpu import tiles

        return tiles.direct(lattice, positions, charges, interaction, precision, field)

    def cutoff(self, lattice: Lattice, positions: Floats, charges: Floats, interaction: Bound,
               precision: str = "single", cell: Cell | None = None, field: bool = False) -> NDArray[np.float32]:
        """Return the map of the atoms within the cutoff, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cpu import tiles

        return tiles.cutoff(lattice, positions, charges, interaction, precision, cell, field)

    def pme(self, lattice: Lattice, positions: Floats, charges: Floats, mesh: Mesh,
            precision: str = "single", field: bool = False) -> NDArray[np.float32]:
        """Return the map of the full potential, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cpu.mesh import pme

        return pme(lattice, positions, charges, mesh, precision, field)

    def msm(self, lattice: Lattice, positions: Floats, charges: Floats, plan: Plan,
            precision: str = "single", field: bool = False) -> NDArray[np.float32]:
        """Return the map of the full potential, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cpu.msm import msm

        return msm(lattice, positions, charges, plan, precision, field)

    def at_points(self, points: Floats, positions: Floats, charges: Floats, cell: Cell | None = None,
                  interaction: Bound | None = None) -> Floats:
        """Return the potential of all atoms at points, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cpu.points import at_points

        return at_points(points, positions, charges, cell, interaction)


ENGINE = CpuEngine()
