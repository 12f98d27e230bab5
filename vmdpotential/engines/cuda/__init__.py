"""The CUDA engine: kernels compiled by nvcc through PyCUDA, which only this package imports."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cached_property
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

    @cached_property
    def _launches(self) -> Any:
        """The module of arrays and launches, which imports PyCUDA."""
        from vmdpotential.engines.cuda import launches

        return launches

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
        result: AbstractContextManager[None] = self._launches.room(size, beside)
        return result

    def array(self, values: NDArray[Any] | DeviceArray) -> DeviceArray:
        """Return a copy of an array on a GPU, or the array itself if it is there."""
        result: DeviceArray = self._launches.array(values)
        return result

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        """Return an array on a GPU whose values are not set."""
        result: DeviceArray = self._launches.empty(shape, dtype)
        return result

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        """Return an array on a GPU whose values are 0."""
        result: DeviceArray = self._launches.zeros(shape, dtype)
        return result

    def to_host(self, values: DeviceArray) -> NDArray[Any]:
        """Return a copy of an array on a GPU."""
        result: NDArray[Any] = self._launches.to_host(values)
        return result

    def launch(self, kernel: Kernel, count: int | tuple[int, int], label: str, grain: int = 0, /,
               **values: Any) -> None:
        """Queue a kernel, see :class:`vmdpotential.engines.Engine`."""
        self._launches.launch(kernel, count[1] if isinstance(count, tuple) else count, label, grain, **values)

    def team_size(self, most: tuple[int, int]) -> int:
        """Return the number of blocks of a team, at most one for each multiprocessor."""
        result: int = self._launches.team_size(most[1])
        return result

    def launch_team(self, kernel: Kernel, workers: int, /, **values: Any) -> None:
        """Queue a TEAM_KERNEL, see :class:`vmdpotential.engines.Engine`."""
        self._launches.launch_team(kernel, workers, **values)


ENGINE = CudaEngine()
