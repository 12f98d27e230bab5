"""Drivers of sums on GPUs: at the nodes of a lattice, at points, and on a mesh.

The relative rms error against float64, where charges cancel as in water, is in single precision below 3e-6 for direct
sums and 1e-6 for cutoff sums, 1e-6 in compensated precision (float32 terms, added to float64 sums after every 16), and
1e-7 in double precision. Rounding adds to a mesh's own error less than 2e-6 in single precision, and 1e-7 in the other
two, for which the mesh is float64; to that of multilevel sums less than 4e-6 and 1e-7.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from vmdpotential.splitting.mesh import Mesh
from vmdpotential.sums.potential_sum import PotentialSum, Prepared

#: Folder of the kernels.
KERNEL_FOLDER = Path(__file__).parent

#: Path of a file of kernels by its name; the same object in each call, because to hash a new one takes long.
kernel_file = cache(KERNEL_FOLDER.joinpath)


def prepare(work: PotentialSum) -> Prepared:
    """Return a sum at nodes or points, prepared to run.

    Raises
    ------
    BackendError
        If the sum has a mesh and pyvkfft is missing.
    """
    from vmdpotential.engines.cuda import fft
    from vmdpotential.sums.cuda import anywhere, maps, mesh, points

    at_points = work.target.kind == "points"
    if work.smooth is None:
        return points.PairsAtPoints(work) if at_points else maps.Sum(work)
    if isinstance(work.smooth, Mesh):
        fft.application()
        return anywhere.AtPoints(work) if at_points else mesh.MeshSum(work)
    return work.smooth.prepare("cuda", work)
