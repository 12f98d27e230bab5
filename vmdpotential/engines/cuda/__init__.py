"""The CUDA engine: kernels compiled by nvcc through PyCUDA, which only this package imports."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from numpy.typing import DTypeLike, NDArray

from vmdpotential.engines import Engine
from vmdpotential.engines.costs import CUDA_COSTS, Costs
from vmdpotential.errors import BackendError

if TYPE_CHECKING:
    from vmdpotential.engines.cuda.device import Gpu
    from vmdpotential.engines.cuda.launches import DeviceArray
    from vmdpotential.kernels.launch import Kernel


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
        from vmdpotential.engines.cuda import fft

        try:
            fft.application()
        except BackendError:
            return False
        return True

    def describe(self) -> str:
        """Return the names, memory and compute capabilities of the GPUs in use."""
        return "; ".join(map(str, self.devices()))

    def devices(self) -> tuple[Gpu, ...]:
        """Return the GPUs in use."""
        from vmdpotential.engines.cuda import device

        return device.gpus()

    @property
    def vector_size(self) -> int:
        """Number of threads of a warp."""
        return 32

    def room(self, size: int, beside: DeviceArray | None = None) -> AbstractContextManager[None]:
        """Return a context in which arrays and launches are on one GPU, where `size` bytes are free."""
        from vmdpotential.engines.cuda import launches

        return launches.room(size, beside)

    def array(self, values: NDArray[Any] | DeviceArray) -> DeviceArray:
        """Return a copy of an array on a GPU, or the array itself if it is there."""
        from vmdpotential.engines.cuda import launches

        return launches.array(values)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        """Return an array on a GPU whose values are not set."""
        from vmdpotential.engines.cuda import launches

        return launches.empty(shape, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        """Return an array on a GPU whose values are 0."""
        from vmdpotential.engines.cuda import launches

        return launches.zeros(shape, dtype)

    def to_host(self, values: DeviceArray) -> NDArray[Any]:
        """Return a copy of an array on a GPU."""
        from vmdpotential.engines.cuda import launches

        return launches.to_host(values)

    def launch(self, kernel: Kernel, count: int | tuple[int, int], label: str, grain: int = 0, /,
               **values: Any) -> None:
        """Queue a kernel, see :class:`vmdpotential.engines.Engine`."""
        from vmdpotential.engines.cuda import launches

        launches.launch(kernel, count[1] if isinstance(count, tuple) else count, label, grain, **values)

    def team_size(self, most: tuple[int, int]) -> int:
        """Return the number of blocks of a team, at most one for each multiprocessor."""
        from vmdpotential.engines.cuda import launches

        return launches.team_size(most[1])

    def launch_team(self, kernel: Kernel, workers: int, /, **values: Any) -> None:
        """Queue a TEAM_KERNEL, see :class:`vmdpotential.engines.Engine`."""
        from vmdpotential.engines.cuda import launches

        launches.launch_team(kernel, workers, **values)


ENGINE = CudaEngine()
