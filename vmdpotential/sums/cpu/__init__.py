"""Drivers of sums on the CPU: at the nodes of a lattice, at points, and on a mesh."""

from __future__ import annotations

from vmdpotential.splitting.mesh import Mesh
from vmdpotential.sums.potential_sum import PotentialSum, Prepared


def prepare(work: PotentialSum) -> Prepared:
    """Return a sum at nodes or points, prepared to run."""
    from vmdpotential.sums.cpu.at_points import CpuPoints
    from vmdpotential.sums.cpu.nodes import CpuMeshSum, CpuSum

    if work.target.kind == "points":
        return CpuPoints(work)
    if work.smooth is None:
        return CpuSum(work)
    if isinstance(work.smooth, Mesh):
        return CpuMeshSum(work, work.smooth)
    return work.smooth.prepare("cpu", work)
