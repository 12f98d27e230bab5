"""The CPU engine: Numba kernels with vector code made from traced radial functions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.costs import CPU, Costs

if TYPE_CHECKING:
    from vmdpotential.engines import LatticeSum
    from vmdpotential.engines.cpu.continuum.multigrid import Multigrid
    from vmdpotential.engines.cpu.maps.sums import CpuSum
    from vmdpotential.engines.cpu.points.nearby import AtPoints
    from vmdpotential.engines.pairs import PairSum, PreparedPairs
    from vmdpotential.interactions import Bound
    from vmdpotential.molecule.cell import Cell
    from vmdpotential.splitting.mesh import Mesh

Floats = NDArray[np.float64]
Values = NDArray[np.float32]


class CpuEngine:
    """All cores of this machine, or as many as the environment variable VMDPOTENTIAL_THREADS says."""

    name = "cpu"
    has_transforms = True
    costs: Costs = CPU

    def describe(self) -> str:
        """Return cores and vector instructions in use."""
        from vmdpotential.engines.cpu.compiling import build, threads

        return f"{threads.count()} threads, {build.describe()}"

    def bindings(self) -> list[Callable[[], AbstractContextManager[None]]]:
        """Return none: threads share the cores."""
        return []

    def environment(self, place: int) -> dict[str, str]:
        """Return the environment of a process at a place among several: nothing."""
        return {}

    def sharers(self, size: int = 0) -> int:
        """Return 1: no GPU is shared."""
        return 1

    def prepare(self, work: LatticeSum) -> CpuSum:
        """Return a lattice sum, ready to run, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cpu.maps.sums import CpuSum

        return CpuSum(work)

    def at_points(self, points: Floats, positions: Floats, charges: Floats, cell: Cell | None = None,
                  interaction: Bound | None = None, nearest: Floats | None = None) -> Floats:
        """Return the potential of all atoms at points, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cpu.points.nearby import cutoff_at_points
        from vmdpotential.engines.cpu.points.points import at_points

        reach = None if interaction is None or nearest is not None else interaction.cutoff
        # few of all pairs; and no image but the nearest is within reach
        if (interaction is not None and reach is not None and cell is not None and (4 * reach) ** 3 < cell.volume
                and 2 * reach <= np.linalg.norm(cell.reduced, axis=1).min()):
            return cutoff_at_points(points, positions, charges, interaction, cell)
        return at_points(points, positions, charges, cell, interaction, nearest)

    def prepare_points(self, mesh: Mesh, pairs: bool) -> AtPoints:
        """Return the sum by a mesh at points, see :class:`vmdpotential.engines.Engine`."""
        from vmdpotential.engines.cpu.points.nearby import AtPoints

        return AtPoints(mesh, pairs)

    def prepare_pairs(self, work: PairSum) -> PreparedPairs:
        """Return a sum over pairs of atoms, ready to run, see :mod:`vmdpotential.engines.pairs`."""
        from vmdpotential.engines.cpu.pairs import nbody, pairs

        return nbody.AllPairs(work) if work.potential.cutoff is None else pairs.ClusterPairs(work)

    def count_distances(self, positions: Floats, others: Floats | None, cell: Cell | None, reach: float,
                        bins: int) -> NDArray[np.int64]:
        """Return a histogram of the distances of pairs, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cpu.pairs.distances import count_distances

        return count_distances(positions, others, cell, reach, bins)

    def multigrid(self, x: Values, y: Values, z: Values, k2: Values, ions: Floats, levels: int) -> Multigrid:
        """Return the Poisson-Boltzmann equation on a lattice, see :class:`vmdpotential.engines.Engine`."""
        from vmdpotential.engines.cpu.continuum.multigrid import Multigrid

        return Multigrid(x, y, z, k2, ions, levels)

    def structure_factors(self, fraction: Floats, charges: Floats, counts: NDArray[np.int64]) -> NDArray[np.complex128]:
        """Return the sums of waves over atoms, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cpu.points.waves import structure_factors

        return structure_factors(fraction, charges, counts)


ENGINE = CpuEngine()
