"""The CPU engine: kernels in C++, which are compiled with the package."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vmdpotential.engines.costs import CPU, CPU_POINTS, Costs, PointCosts
from vmdpotential.splitting.mesh import Mesh

if TYPE_CHECKING:
    from vmdpotential.engines import LatticeSum, PointSum, Prepared
    from vmdpotential.engines.cpu.continuum.multigrid import Multigrid
    from vmdpotential.engines.cpu.points.sums import CpuPoints
    from vmdpotential.engines.pairs import PairSum, PreparedPairs
    from vmdpotential.kernels.launch import Kernel
    from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]
Values = NDArray[np.float32]


class CpuEngine:
    """All cores of this machine, or as many threads as the environment variable VMDPOTENTIAL_THREADS sets."""

    name = "cpu"
    has_transforms = True
    costs: Costs = CPU
    point_costs: PointCosts = CPU_POINTS

    def check(self) -> None:
        """Do nothing: the required packages of the installation are enough."""

    def describe(self) -> str:
        """Return the number of threads, and the instruction set of the kernels."""
        from vmdpotential.kernels import threads
        from vmdpotential.kernels.launch import describe_vectors

        return f"{threads.count()} threads, {describe_vectors()}"

    def bindings(self) -> list[Callable[[], AbstractContextManager[None]]]:
        """Return no bindings, because threads share the cores."""
        return []

    def environment(self, place: int) -> dict[str, str]:
        """Return no environment variables, because processes share the cores."""
        return {}

    def processes_per_gpu(self, size: int = 0) -> int:
        """Return 1, because there is no GPU to share."""
        return 1

    def room(self, size: int, beside: Any = None) -> AbstractContextManager[None]:
        """Return a context that does nothing: memory is planned by the callers."""
        return nullcontext()

    def array(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the array, or a contiguous copy of it."""
        return np.ascontiguousarray(values)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array whose values are not set."""
        return np.empty(shape, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array whose values are 0."""
        return np.zeros(shape, dtype)

    def to_host(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the array itself."""
        return values

    def launch(self, kernel: Kernel, count: int | tuple[int, int], label: str, grain: int = 0, /,
               **values: Any) -> None:
        """Run a kernel on all threads, see :func:`vmdpotential.kernels.launch.launch`."""
        from vmdpotential.kernels.launch import launch

        launch(kernel, count[0] if isinstance(count, tuple) else count, label, grain, **values)

    def prepare(self, work: LatticeSum) -> Prepared:
        """Return a lattice sum, prepared to run, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cpu.maps.sums import CpuMeshSum, CpuSum

        if work.smooth is None:
            return CpuSum(work)
        if isinstance(work.smooth, Mesh):
            return CpuMeshSum(work, work.smooth)
        return work.smooth.prepare(self.name, work)

    def prepare_points(self, work: PointSum) -> CpuPoints:
        """Return a sum at points, prepared to run, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cpu.points.sums import CpuPoints

        return CpuPoints(work)

    def prepare_pairs(self, work: PairSum) -> PreparedPairs:
        """Return a sum over pairs of atoms, prepared to run, see :mod:`vmdpotential.engines.pairs`."""
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


ENGINE = CpuEngine()
