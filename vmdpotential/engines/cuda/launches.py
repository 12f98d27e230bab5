"""Arrays on a GPU, and launches of kernels of files that include ``kernel.h``, which are for CPUs and GPUs."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vmdpotential.engines.cuda import copies, device, driver, pinned
from vmdpotential.engines.cuda.blocks import FETCHED_BYTES, HALF_BYTES, SENT_BYTES, MemoryBlock
from vmdpotential.kernels.launch import Kernel

#: Threads of a block; kernels of blocks and of teams (BLOCK_KERNEL and TEAM_KERNEL in kernel.h) count on it.
THREADS, TEAM_THREADS = 128, 1024


class Flags(NamedTuple):
    """The part of numpy's flags that :class:`vmdpotential.kernels.launch.Arguments` asks for."""

    c_contiguous: bool = True


class MemoryPart(NamedTuple):
    """A part of a block of memory, which it keeps."""

    block: MemoryBlock | MemoryPart
    address: int


class DeviceArray:
    """A contiguous array in the memory of a GPU.

    Parameters
    ----------
    gpu : Gpu
        The current GPU.
    shape : tuple of int
    dtype : dtype
    block : MemoryBlock or MemoryPart, optional
        Memory whose begin has the values; new memory by default.
    """

    flags = Flags()

    def __init__(self, gpu: device.Gpu, shape: int | tuple[int, ...], dtype: DTypeLike,
                 block: MemoryBlock | MemoryPart | None = None) -> None:
        self.shape: tuple[int, ...] = tuple(shape) if isinstance(shape, (tuple, list)) else (int(shape),)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        self.gpu, self._block = gpu, block or gpu.take(max(self.nbytes, 16))
        #: Address of the first value.
        self.address = self._block.address

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, row: int) -> DeviceArray:
        size = self.nbytes // self.shape[0]
        return DeviceArray(self.gpu, self.shape[1:], self.dtype, MemoryPart(self._block, self.address + row * size))


class _Held(threading.local):
    """The GPU whose :func:`room` this thread is in: making it current again would take as long as a launch."""

    gpu: device.Gpu | None = None


_held = _Held()


@contextmanager
def room(size: int, beside: DeviceArray | None = None) -> Iterator[None]:
    """Compute on one GPU, by default the least busy one, with a check that `size` bytes are free on it.

    Raises
    ------
    MemoryPlanError
        If more memory is needed than is free.
    """
    before = _held.gpu
    if before is not None and (beside is None or beside.gpu is before):  # it is current already
        before.require(size)
        yield
        return
    with device.with_room(size, None if beside is None else beside.gpu) as gpu, gpu.bound():
        _held.gpu = gpu
        try:
            yield
        finally:
            _held.gpu = before


@contextmanager
def _made_current() -> Iterator[device.Gpu]:
    gpu = device.least_busy_gpus(1)[0]
    with gpu, driver.converted_errors(f"GPU {gpu.number} ({gpu.name})"):
        yield gpu


def _current() -> AbstractContextManager[device.Gpu]:
    """Return a context in which a GPU is current: the one of the room, or the least busy one."""
    return _made_current() if _held.gpu is None else nullcontext(_held.gpu)


def array(values: NDArray[Any] | DeviceArray) -> DeviceArray:
    """Return a copy of an array on the GPU, or the array itself if it is there."""
    with _current() as gpu:
        return _copied(gpu, values)


def _copied(gpu: device.Gpu, values: NDArray[Any] | DeviceArray) -> DeviceArray:
    if isinstance(values, DeviceArray):
        if values.gpu is gpu:
            return values
        values = to_host(values)
    result = DeviceArray(gpu, values.shape, values.dtype)
    if result.nbytes <= SENT_BYTES:
        gpu.stage.put(np.ascontiguousarray(values), result.address)
    else:
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
            driver.cuda_driver().memset_d8(result.address, 0, result.nbytes)
        return result


def to_host(values: DeviceArray) -> NDArray[Any]:
    """Return a copy of an array on the GPU, after all work queued before."""
    if not values.nbytes:
        return np.empty(values.shape, values.dtype)
    with nullcontext() if _held.gpu is values.gpu else _on(values.gpu):
        if values.nbytes <= FETCHED_BYTES:
            result = np.empty(values.shape, values.dtype)
            values.gpu.stage.get(values.address, result)
        else:
            result = pinned.empty_pinned(values.shape, values.dtype)  # fresh ordinary memory takes longer than the copy
            driver.cuda_driver().memcpy_dtoh(result, values.address)
        return result


@contextmanager
def _on(gpu: device.Gpu) -> Iterator[None]:
    with gpu, driver.converted_errors(f"GPU {gpu.number} ({gpu.name})"):
        yield


def launch(kernel: Kernel, count: int | tuple[int, int], label: str, grain: int = 0, /, **values: Any) -> None:
    """Queue a kernel for range(count), see :func:`vmdpotential.kernels.launch.launch_kernel`.

    Arrays that the kernel only reads may be on the host; they are copied.
    """
    count = count[1] if isinstance(count, tuple) else count
    if not count:
        return
    with _current() as gpu:
        threads = kernel.threads or THREADS
        _queue(gpu, kernel, values, int(count), -(-count // threads), threads)


def team_size(most: tuple[int, int]) -> int:
    """Return how many blocks of a team, at most the second of `most`, run at once: as many as multiprocessors."""
    with _current() as gpu:
        return max(1, min(gpu.multiprocessors, most[1]))


def launch_team(kernel: Kernel, workers: int, /, **values: Any) -> None:
    """Queue a TEAM_KERNEL (kernel.h) for so many blocks of :func:`team_size`, with arguments as in :func:`launch`."""
    with _current() as gpu:
        _queue(gpu, kernel, values, gpu.barriers(), workers, TEAM_THREADS)


def _queue(gpu: device.Gpu, kernel: Kernel, values: dict[str, Any], last: int, blocks: int, threads: int) -> None:
    """Queue a kernel, whose last argument is a whole number."""
    arguments, copied, room = kernel.arguments, [], HALF_BYTES // 2

    def address(array: NDArray[Any] | DeviceArray) -> int:
        nonlocal room
        if isinstance(array, np.ndarray):
            for name in arguments.results:
                if values.get(name) is array:
                    raise TypeError(f"{name} is a result, which has to be on the GPU")
            room -= array.nbytes
            if array.nbytes <= SENT_BYTES and room >= 0:  # the arrays of one launch must not replace each other
                return gpu.stage.put(array)
            array = _copied(gpu, array)
            copied.append(array)  # until the kernel is queued
        return array.address

    packed = arguments.pack(values, address)
    packed += bytes(-len(packed) % 8) + last.to_bytes(8, "little")
    gpu.start(_function(gpu, kernel, threads, len(packed)), blocks, threads, packed)


def _function(gpu: device.Gpu, kernel: Kernel, threads: int, size: int) -> Any:
    """Return a compiled kernel; those without a program are kept by their files and names alone."""
    if kernel.program is not None:
        macros = {**kernel.program.macros, "WARPS": threads // 32}
        return gpu.kernel(kernel.file.path, kernel.name, macros, kernel.program.source, size)
    key = kernel.file.path, kernel.name
    function = gpu.functions.get(key)
    if function is None:
        function = gpu.functions[key] = gpu.kernel(*key, {}, "", size)
    return function
