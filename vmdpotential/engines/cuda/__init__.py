"""The CUDA engine: kernels compiled by nvcc through PyCUDA, the only package that imports it.

Relative rms error against float64, where charges cancel as in water: below 3e-6 for direct and 1e-6
for cutoff sums in single precision, 1e-6 compensated (single precision terms, summed in float64 after
every 16), 1e-7 in double precision. Sums on a mesh add to the mesh's own error below 2e-6 in single
precision and 1e-7 otherwise, when the mesh is in double precision; multilevel sums below 4e-6 and 1e-7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import BackendError

if TYPE_CHECKING:
    from vmdpotential.grid.lattice import Lattice
    from vmdpotential.interactions import Bound
    from vmdpotential.molecule.cell import Cell
    from vmdpotential.splitting.levels import Plan
    from vmdpotential.splitting.mesh import Mesh

Floats = NDArray[np.float64]


class CudaEngine:
    """All NVIDIA GPUs of this machine, or those that the environment variable VMDPOTENTIAL_GPUS names."""

    name = "cuda"

    def check(self) -> None:
        """Make sure that the engine works here.

        Raises
        ------
        BackendError
            When PyCUDA, the driver, nvcc or a GPU that is new enough is missing; the message says which.
        """
        from vmdpotential.engines.cuda import device

        device.gpus()

    @property
    def has_transforms(self) -> bool:
        """Whether pyvkfft works here, which pme needs."""
        from vmdpotential.engines.cuda import fft

        try:
            fft.application()
        except BackendError:
            return False
        return True

    def describe(self) -> str:
        """Return the GPUs in use."""
        from vmdpotential.engines.cuda import device

        return "; ".join(map(str, device.gpus()))

    @property
    def device_seconds(self) -> float:
        """Seconds that a GPU computed for the last map, without transfers; the longest of several GPUs."""
        from vmdpotential.engines.cuda import maps

        return maps.device_seconds

    @property
    def special_limit(self) -> float:
        """Inverse square roots a second that the special function units of all GPUs can make."""
        from vmdpotential.engines.cuda import device

        return sum(gpu.special_limit for gpu in device.gpus())

    def direct(self, lattice: Lattice, positions: Floats, charges: Floats, interaction: Bound,
               precision: str = "single", field: bool = False) -> NDArray[np.float32]:
        """Return the map of all atoms, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cuda import maps

        return maps.direct(lattice, positions, charges, interaction, precision, field)

    def cutoff(self, lattice: Lattice, positions: Floats, charges: Floats, interaction: Bound,
               precision: str = "single", cell: Cell | None = None, field: bool = False) -> NDArray[np.float32]:
        """Return the map of the atoms within the cutoff, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cuda import maps

        return maps.cutoff(lattice, positions, charges, interaction, precision, cell, field)

    def pme(self, lattice: Lattice, positions: Floats, charges: Floats, mesh: Mesh,
            precision: str = "single", field: bool = False) -> NDArray[np.float32]:
        """Return the map of the full potential, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cuda.pme import pme

        return pme(lattice, positions, charges, mesh, precision, field)

    def at_points(self, points: Floats, positions: Floats, charges: Floats, cell: Cell | None = None,
                  interaction: Bound | None = None) -> Floats:
        """Return the potential of all atoms at points, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cuda.points import at_points

        return at_points(points, positions, charges, cell, interaction)

    def msm(self, lattice: Lattice, positions: Floats, charges: Floats, plan: Plan,
            precision: str = "single", field: bool = False) -> NDArray[np.float32]:
        """Return the map of the full potential by multilevel summation, see :mod:`vmdpotential.engines`."""
        from vmdpotential.engines.cuda.msm import msm

        return msm(lattice, positions, charges, plan, precision, field)


ENGINE = CudaEngine()
