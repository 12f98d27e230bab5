"""The CPU engine: kernels in C++, which are compiled with the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vmdpotential.engines import Engine
from vmdpotential.errors import count_of
from vmdpotential.splitting.mesh import Mesh

if TYPE_CHECKING:
    from vmdpotential.engines import PotentialSum, Prepared


class CpuEngine(Engine):
    """All cores of this machine, or as many threads as the environment variable VMDPOTENTIAL_THREADS sets."""

    name = "cpu"

    def describe(self) -> str:
        """Return the number of threads, and the instruction set of the kernels."""
        from vmdpotential.kernels import threads
        from vmdpotential.kernels.launch import describe_vectors

        return f"{count_of(threads.count(), 'thread')}, {describe_vectors()}"

    def prepare(self, work: PotentialSum) -> Prepared:
        """Return a sum at nodes or points, prepared to run, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cpu.maps.sums import CpuMeshSum, CpuSum
        from vmdpotential.engines.cpu.points.sums import CpuPoints

        if work.target.kind == "points":
            return CpuPoints(work)
        if work.smooth is None:
            return CpuSum(work)
        if isinstance(work.smooth, Mesh):
            return CpuMeshSum(work, work.smooth)
        return work.smooth.prepare(self.name, work)


ENGINE = CpuEngine()
