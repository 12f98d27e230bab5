"""Arrays on a GPU, and launches of kernels of files that include ``kernel.h``, which are for CPUs and GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vmdpotential.engines.cuda import copies, device
from vmdpotential.kernels.launch import Kernel

#: Threads of a block; kernels of blocks (BLOCK_KERNEL in kernel.h) count on it.
THREADS = 128


class Flags(NamedTuple):
    """The part of numpy's flags that :class:`vmdpotential.kernels.launch.Arguments` asks for."""

    c_contiguous: bool = True


class DeviceArray:
    """A contiguous array in the memory of a GPU.

    Parameters
    ----------
    gpu : Gpu
        The current GPU.
    shape : tuple of int
    dtype : dtype
    block : Block, optional
        Memory whose begin has the values; new memory by default.
    """

    flags = Flags()

    def __init__(self, gpu: device.Gpu, shape: int | tuple[int, ...], dtype: DTypeLike,
                 block: device.Block | None = None) -> None:
        self.shape: tuple[int, ...] = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        self.gpu, self._block = gpu, block or gpu.take(max(self.nbytes, 16))

    @property
    def address(self) -> int:
        """Address of the first value."""
        return self._block.address

    def __len__(self) -> int:
        return self.shape[0]


@contextmanager
def room(size: int, beside: DeviceArray | None = None) -> Iterator[None]:
    """Compute on one GPU, by default the least busy one, with a check that `size` bytes are free on it.

    Raises
    ------
    MemoryPlanError
        If more memory is needed than is free.
    """
    with device.with_room(size, None if beside is None else beside.gpu) as gpu, device.bound(gpu):
        yield


@contextmanager
def _current() -> Iterator[device.Gpu]:
    gpu = device.least_busy_gpus(1)[0]
    with gpu, device.errors(f"GPU {gpu.number} ({gpu.name})"):
        yield gpu


def array(values: NDArray[Any] | DeviceArray) -> DeviceArray:
    """Return a copy of an array on the GPU, or the array itself if it is there."""
    with _current() as gpu:
        if isinstance(values, DeviceArray):
            if values.gpu is gpu:
                return values
            values = to_host(values)
        result = DeviceArray(gpu, values.shape, values.dtype)
        if result.nbytes:
            copies.put((result.address, values))
        return result


def empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
    """Return an array on the GPU whose values are not set."""
    with _current() as gpu:
        return DeviceArray(gpu, shape, dtype)


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
    """Return an array on the GPU whose values are 0."""
    with _current() as gpu:
        result = DeviceArray(gpu, shape, dtype)
        if result.nbytes:
            device.driver().memset_d8(result.address, 0, result.nbytes)
        return result


def to_host(values: DeviceArray) -> NDArray[Any]:
    """Return a copy of an array on the GPU, after all work queued before."""
    result = np.empty(values.shape, values.dtype)
    if values.nbytes:
        with values.gpu, device.errors(f"GPU {values.gpu.number} ({values.gpu.name})"):
            copies.get(result, values.address)
    return result


def launch(kernel: Kernel, count: int, label: str, grain: int = 0, /, **values: Any) -> None:
    """Queue a kernel for range(count), see :func:`vmdpotential.kernels.launch.launch`.

    Arrays that the kernel only reads may be on the host; they are copied.
    """
    if not count:
        return
    arguments = kernel.arguments
    with _current() as gpu:
        values = {name: array(value) if isinstance(value, np.ndarray) and name in arguments.arrays
                  and name not in arguments.results else value for name, value in values.items()}
        packed = arguments.pack(values, lambda each: each.address)
        packed += bytes(-len(packed) % 8) + np.int64(count).tobytes()
        function = gpu.kernel(kernel.file.path, kernel.name, {}, "", len(packed))
        function.prepared_call((-(-count // THREADS), 1, 1), (THREADS, 1, 1), packed)
