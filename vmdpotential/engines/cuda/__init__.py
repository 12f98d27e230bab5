"""The CUDA engine: kernels compiled by nvcc through PyCUDA, which only this package imports."""

from __future__ import annotations

from vmdpotential.engines import Engine
from vmdpotential.engines.costs import CUDA_COSTS, Costs
from vmdpotential.engines.cuda import device, fft, launches
from vmdpotential.errors import BackendError


class CudaEngine(Engine):
    """All NVIDIA GPUs of this machine, or those that the environment variable VMDPOTENTIAL_GPUS names."""

    name = "cuda"
    costs: Costs = CUDA_COSTS
    runs_cuda = True

    def check(self) -> None:
        """Make sure that the engine works on this machine.

        Raises
        ------
        BackendError
            If PyCUDA, the driver, nvcc or a GPU that is new enough is missing; the message says which.
        """
        self.devices()

    @property
    def has_transforms(self) -> bool:
        """Whether pyvkfft works on this machine, which meshes need."""
        try:
            fft.application()
        except BackendError:
            return False
        return True

    def describe(self) -> str:
        """Return the names, memory and compute capabilities of the GPUs in use."""
        return "; ".join(map(str, self.devices()))

    def devices(self) -> tuple[device.Gpu, ...]:
        """Return the GPUs in use."""
        return device.gpus()

    @property
    def vector_size(self) -> int:
        """Number of threads of a warp."""
        return 32

    room = staticmethod(launches.room)
    array = staticmethod(launches.array)
    empty = staticmethod(launches.empty)
    zeros = staticmethod(launches.zeros)
    to_host = staticmethod(launches.to_host)
    launch = staticmethod(launches.launch)
    team_size = staticmethod(launches.team_size)
    launch_team = staticmethod(launches.launch_team)


ENGINE = CudaEngine()
