"""The GPUs of this machine: their contexts, compiled kernels and memory.

Work runs in the device's primary context, which is pushed before and popped afterwards, so that a viewer in the same
process keeps its own context.

The environment variables VMDPOTENTIAL_GPUS (such as 0,1) and VMDPOTENTIAL_GPU_MEMORY (such as 4G) select the GPUs and
limit the memory taken on each.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential import memory
from vmdpotential.engines.cuda import build
from vmdpotential.engines.cuda.blocks import MemoryBlock, PinnedStage
from vmdpotential.engines.cuda.driver import OTHER_ENGINE, converted_errors, cuda_driver, nvcc
from vmdpotential.errors import BackendError, MemoryPlanError, UsageError

#: Bytes that a process takes on a GPU in addition to its buffers.
CONTEXT = 700_000_000

#: Largest number of processes that share a GPU; this many decode XTC frames as fast as an H200 computes maps of them.
MAX_PROCESSES = 8

#: The oldest compute capability that the kernels run on.
OLDEST = (6, 0)

#: Number of plans of Fourier transforms that are kept, because making one takes a second.
PLANS = 8

#: Bytes for which the driver is not asked how much is free, which takes as long as several launches.
LITTLE = 2**26

#: Bytes between the counters of two teams, as in kernel.h.
BETWEEN_COUNTERS = 128

#: Inverse square roots per clock cycle and multiprocessor that the special function units compute.
SPECIAL_RATE = 16


class Gpu:
    """One GPU: its context, kernels and buffers. ``with gpu:`` makes it current."""

    def __init__(self, number: int) -> None:
        device = cuda_driver().Device(number)
        self.number = number
        self.name = str(device.name())
        self.capability = tuple(device.compute_capability())
        if self.capability < OLDEST:
            raise BackendError(
                f"GPU {number} ({self.name}) is too old: compute capability {_dotted(self.capability)}, "
                f"{_dotted(OLDEST)} is needed", OTHER_ENGINE)
        attribute = cuda_driver().device_attribute
        self.multiprocessors = int(device.get_attribute(attribute.MULTIPROCESSOR_COUNT))
        self.clock = 1e3 * float(device.get_attribute(attribute.CLOCK_RATE))
        self.memory = int(device.total_memory())
        with converted_errors(f"GPU {number}"):
            self._context = device.retain_primary_context()
        self._lock = threading.RLock()
        self._buffers: dict[str, tuple[Any, int]] = {}
        self._lent: dict[int, Any] = {}  # allocations of blocks, by their addresses
        self._spare: dict[int, list[Any]] = {}
        self._timers: list[tuple[Any, Any]] = []
        self._staging: dict[str, list[tuple[Any, Any]]] = {}
        self._stage: PinnedStage | None = None
        self.users, self._counting = 0, threading.Lock()  # threads that use it or wait for it
        self._modules: dict[Any, Any] = {}
        #: Compiled kernels of files without a program, by file and name.
        self.functions: dict[tuple[Path, str], Any] = {}
        self._barriers: MemoryBlock | None = None
        self._plans: dict[Any, Any] = {}
        self._shared: weakref.WeakValueDictionary[Any, MemoryBlock] = weakref.WeakValueDictionary()
        self._streams: tuple[Any, list[tuple[Any, Any]]] | None = None

    def __enter__(self) -> Gpu:
        with self._counting:
            self.users += 1
        self._lock.acquire()
        try:
            self._context.push()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            cuda_driver().Context.pop()
        finally:
            self._leave()

    def _leave(self) -> None:
        self._lock.release()
        with self._counting:
            self.users -= 1

    def timers(self) -> tuple[Any, Any]:
        """Return two events that time a run; :meth:`release_timers` returns them for reuse."""
        try:
            return self._timers.pop()
        except IndexError:
            return cuda_driver().Event(), cuda_driver().Event()

    def release_timers(self, timers: tuple[Any, Any]) -> None:
        """Keep events that are no longer needed for reuse; from any thread."""
        self._timers.append(timers)

    def streams(self) -> tuple[Any, list[tuple[Any, Any]]]:
        """Return an event, and two streams with an event each; created once, as only this context can free them."""
        if self._streams is None:
            drv = cuda_driver()
            self._streams = drv.Event(), [(drv.Stream(), drv.Event()) for _ in range(2)]
        return self._streams

    @property
    def special_limit(self) -> float:
        """Inverse square roots per second that the special function units compute."""
        return SPECIAL_RATE * self.multiprocessors * self.clock

    def free(self) -> int:
        """Return the bytes that may be taken: free memory and our own buffers, up to the limit that is set."""
        # the driver needs some memory for launches
        free: int = int(cuda_driver().mem_get_info()[0]) + self.allocated_bytes() - 64 * 2**20
        limit = memory.from_environment("VMDPOTENTIAL_GPU_MEMORY")
        return free if limit is None else min(free, limit)

    def require(self, size: int) -> None:
        """Make sure that so many bytes may be taken.

        Raises
        ------
        MemoryPlanError
            If they are not free.
        """
        asked = size > LITTLE or (size and memory.from_environment("VMDPOTENTIAL_GPU_MEMORY") is not None)
        if asked and size > self.free():
            raise MemoryPlanError(f"{memory.size(size)} of GPU memory are needed, {memory.size(self.free())} are free",
                                  "use a larger {spacing}, or {engine cpu}")

    def allocated_bytes(self) -> int:
        """Return the bytes of our own buffers and spare allocations."""
        return sum(size for _, size in self._buffers.values()) + sum(
            size * len(spare) for size, spare in self._spare.items())

    def process_capacity(self, size: int) -> int:
        """Return how many processes should share this GPU, if each needs this one's buffers and `size` more bytes."""
        with self:
            return max(1, min(MAX_PROCESSES, int(self.free() // (self.allocated_bytes() + size + CONTEXT))))

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that give a process this GPU alone.

        Contexts on the other GPUs would take a sixth of a second each, in one process after another.
        """
        return {"VMDPOTENTIAL_GPUS": str(self.number)}

    @contextlib.contextmanager
    def bound(self) -> Iterator[None]:
        """Run everything that this thread computes inside the block on this GPU."""
        token = _bound.set(self)
        try:
            yield
        finally:
            _bound.reset(token)

    def buffer(self, name: str, size: int) -> int:
        """Return the address of a named buffer of at least `size` bytes, valid until the next call with this name.

        Raises
        ------
        MemoryPlanError
            If the GPU's memory is full.
        """
        held = self._buffers.get(name)
        if held is None or held[1] < size or held[1] > 2 * size + 2**24:
            self._buffers.pop(name, None)
            held = None  # frees the old buffer before the new one is allocated
            with converted_errors(f"GPU {self.number} ({self.name})", size):
                self._buffers[name] = (cuda_driver().mem_alloc(max(size, 16)), size)
        return int(self._buffers[name][0])

    def take(self, size: int) -> MemoryBlock:
        """Return a block of at least `size` bytes, which belongs to the caller.

        Raises
        ------
        MemoryPlanError
            If the GPU's memory is full.
        """
        # rounded up by at most an eighth, so that results of similar sizes reuse memory
        step = 1 << max(9, size.bit_length() - 3)
        rounded = -(-size // step) * step
        spare = self._spare.get(rounded)
        try:
            allocation = spare.pop() if spare else None
        except IndexError:  # another thread took the last one
            allocation = None
        if allocation is None:
            try:
                allocation = cuda_driver().mem_alloc(rounded)
            except cuda_driver().MemoryError:
                self.trim(0)
                with converted_errors(f"GPU {self.number} ({self.name})", rounded):
                    allocation = cuda_driver().mem_alloc(rounded)
        self._lent[int(allocation)] = allocation
        return MemoryBlock(self, allocation, rounded)

    def keep(self, array: np.ndarray[Any, Any]) -> MemoryBlock:
        """Return a block with a copy of an array."""
        block = self.take(max(array.nbytes, 16))
        if array.nbytes:
            cuda_driver().memcpy_htod(block.address, np.ascontiguousarray(array))
        return block

    def share(self, key: Any, make: Callable[[], np.ndarray[Any, Any]]) -> MemoryBlock:
        """Return a block with a copy of the array that `make` returns; callers with the same key share one block."""
        block = self._shared.get(key)
        if block is None:
            block = self._shared[key] = self.keep(make())
        return block

    def release_allocation(self, allocation: Any, size: int) -> None:
        """Keep an allocation that is no longer in use for the next request of its size; from any thread."""
        address = int(allocation)
        if self._lent.get(address) is allocation:
            del self._lent[address]
            self._spare.setdefault(size, []).append(allocation)

    def trim(self, keep: int = 2**30) -> None:
        """Free named buffers, and spare allocations, if either hold more than `keep` bytes."""
        if sum(size for _, size in self._buffers.values()) > keep:
            self._buffers.clear()
        if sum(size * len(spare) for size, spare in self._spare.items()) > keep:
            self._spare.clear()

    def upload(self, name: str, array: np.ndarray[Any, Any]) -> int:
        """Copy an array to the buffer of that name and return its address."""
        address = self.buffer(name, array.nbytes)
        if array.nbytes:
            cuda_driver().memcpy_htod(address, np.ascontiguousarray(array))
        return address

    def send(self, name: str, array: np.ndarray[Any, Any], stream: Any) -> int:
        """Queue the copy of an array to the buffer of that name, and return its address.

        The array may be changed immediately: it is copied to one of two blocks of pinned memory for each name, so that
        the charges of a frame are transferred while the GPU computes the previous one.
        """
        address, source = self.buffer(name, array.nbytes), np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        waiting = self._staging.setdefault(name, [])
        block, sent = waiting.pop(0) if len(waiting) == 2 else (None, cuda_driver().Event())
        if block is not None:
            sent.synchronize()
        if block is None or len(block) < len(source):
            block = cuda_driver().pagelocked_empty(len(source) + len(source) // 8, np.uint8)
        block[: len(source)] = source
        cuda_driver().memcpy_htod_async(address, block[: len(source)], stream)
        sent.record(stream)
        waiting.append((block, sent))
        return address

    @property
    def stage(self) -> PinnedStage:
        """The memory through which small arrays are copied."""
        if self._stage is None:
            self._stage = PinnedStage()
        return self._stage

    def kernel(self, file: str | Path, function: str, macros: Mapping[str, object], radial: str, size: int) -> Any:
        """Return a compiled kernel whose only argument is a struct of `size` bytes.

        The file, a name in this folder or the path of a file of another package, is compiled once for each set of
        macros and each radial function.
        """
        key = (file, tuple(sorted(macros.items())), radial)
        if key not in self._modules:
            self._modules[key] = build.compile_module(file, macros, radial, nvcc(), self.capability), {}
        module, functions = self._modules[key]
        if function not in functions:
            functions[function] = module.get_function(function)
            functions[function].prepare(f"{size}s")
        return functions[function]

    def start(self, function: Any, blocks: int, threads: int, arguments: bytes) -> None:
        """Queue a compiled kernel whose only argument is a struct."""
        function.prepared_call((blocks, 1, 1), (threads, 1, 1), arguments)

    def barriers(self) -> int:
        """Return the address of a counter, which is 0, for each of the teams into which a launch may be divided."""
        size = BETWEEN_COUNTERS * self.multiprocessors
        self._barriers = self._barriers or self.take(size)
        cuda_driver().memset_d8(self._barriers.address, 0, size)
        return self._barriers.address

    def plan(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the plan of a Fourier transform by its key; `make` creates it if it is not among those kept."""
        if key not in self._plans:
            while len(self._plans) >= PLANS:
                self._plans.pop(next(iter(self._plans)))
            self._plans[key] = make()
        return self._plans[key]

    def symbol(self, file: str | Path, name: str, macros: Mapping[str, object]) -> int:
        """Return the address of a variable in a file without radial function that :meth:`kernel` has compiled."""
        module, _ = self._modules[file, tuple(sorted(macros.items())), ""]
        return int(module.get_global(name)[0])

    def release(self) -> None:
        """Free everything that is kept on the GPU."""
        with self:
            for allocation in self._lent.values():
                allocation.free()
            self._lent.clear()
            self._spare.clear()
            self._buffers.clear()
            self._modules.clear()
            self.functions.clear()
            self._barriers = None
            self._plans.clear()
            self._staging.clear()
            self._stage = None
            self._timers.clear()
            self._streams = None

    def __str__(self) -> str:
        return f"{self.name}, {memory.size(self.memory)}, compute capability {_dotted(self.capability)}"


@cache
def gpus() -> tuple[Gpu, ...]:
    """Return the GPUs that VMDPOTENTIAL_GPUS selects; without it, all that are new enough.

    Raises
    ------
    BackendError
        If none can be used; the message says why.
    UsageError
        If the variable names a GPU that does not exist.
    """
    count = cuda_driver().Device.count()
    nvcc()
    text = os.environ.get("VMDPOTENTIAL_GPUS", "")
    if text:
        numbers = [int(n) if n.strip().isdigit() else -1 for n in text.split(",")]
        if not all(0 <= n < count for n in numbers):
            raise UsageError("VMDPOTENTIAL_GPUS", f"give numbers from 0 to {count - 1}, such as 0,1", value=repr(text))
        results = [Gpu(n) for n in dict.fromkeys(numbers)]
    else:
        results, reasons = [], []
        for n in range(count):
            try:
                results.append(Gpu(n))
            except BackendError as error:
                reasons.append(error)
        if not results:
            raise reasons[0]
    for gpu in results:
        atexit.register(gpu.release)
    return tuple(results)


_bound: ContextVar[Gpu | None] = ContextVar("bound", default=None)


def least_busy_gpus(count: int) -> list[Gpu]:
    """Return up to `count` GPUs, those first that the fewest threads use or wait for.

    A thread that is bound to a GPU (:meth:`Gpu.bound`) gets only this one.
    """
    gpu = _bound.get()
    if gpu is not None:
        return [gpu]
    return sorted(gpus(), key=lambda gpu: gpu.users)[:count]


@contextlib.contextmanager
def with_room(size: int, gpu: Gpu | None = None) -> Iterator[Gpu]:
    """Make a GPU, by default the least busy one, current for work that needs `size` bytes of its memory.

    Raises
    ------
    MemoryPlanError
        If more memory is needed than is free.
    """
    gpu = gpu or least_busy_gpus(1)[0]
    with gpu, converted_errors(f"GPU {gpu.number} ({gpu.name})", size):
        gpu.require(size)
        yield gpu


def _dotted(capability: tuple[int, ...]) -> str:
    return ".".join(map(str, capability))
