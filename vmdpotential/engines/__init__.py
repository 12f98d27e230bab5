"""Engines: the back ends (CPU, CUDA) that hold arrays, run kernels and know their costs.

Nothing here knows a feature. The code around kernels is written once for all engines, those of other packages included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vmdpotential import registry
from vmdpotential.engines.costs import CPU_COSTS, Costs
from vmdpotential.errors import BackendError, in_words
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import Kernel, address_of, launch_kernel, launch_team, load_library


class Device(Protocol):
    """One of several GPUs of an engine, among which work is shared out."""

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that give a process this GPU alone."""

    @property
    def special_limit(self) -> float:
        """Results per second of its special function units."""

    def bound(self) -> AbstractContextManager[None]:
        """Return a context in which everything that this thread computes is on this GPU."""

    def process_capacity(self, size: int) -> int:
        """Return how many processes should share it, judged by the last run, with `size` more bytes for each."""


class Engine:
    """The interface of every engine.

    A subclass needs a name. Unless it has members of its own, its arrays are numpy's, its threads share the cores, and
    kernels run on the CPU.
    """

    name: str

    #: Seconds that the steps of a sum take on this engine.
    costs: Costs = CPU_COSTS

    #: Whether programs for PyCUDA run on it, which methods of other packages may have.
    runs_cuda = False

    @property
    def has_transforms(self) -> bool:
        """Whether the engine has the Fourier transforms that a mesh needs."""
        return True

    def check(self) -> None:
        """Make sure that the engine works on this machine.

        Raises
        ------
        BackendError
            If hardware, a driver or a package that the engine needs is missing.
        """

    def describe(self) -> str:
        """Return one line that describes the hardware of the engine."""
        return get_engine("cpu").describe()

    @property
    def vector_size(self) -> int:
        """Number of float32 that its kernels compute at once: of a vector, or the threads of a warp."""
        return int(load_library().vector_floats())

    def devices(self) -> Sequence[Device]:
        """Return the GPUs of the engine; none if threads share the cores."""
        return ()

    def room(self, size: int, beside: Any = None) -> AbstractContextManager[None]:
        """Return a context in which arrays and launches are on one device, where `size` bytes are free.

        It is the device of the array `beside`, if that is given.

        Raises
        ------
        MemoryPlanError
            If more memory is needed than is free.
        """
        return nullcontext()

    def array(self, values: Any) -> Any:
        """Return a contiguous array of values where this engine's kernels run, the same one if it is that already.

        The values are in an array of numpy or the engine.
        """
        return np.ascontiguousarray(values)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return an array where this engine's kernels run, whose values are not set."""
        return _aligned(np.empty, shape, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return an array where this engine's kernels run, whose values are 0."""
        return _aligned(np.zeros, shape, dtype)

    def to_host(self, values: Any) -> NDArray[Any]:
        """Return the values of an array of this engine, after all launches before; on the CPU the same array."""
        host: NDArray[Any] = values
        return host

    def launch(self, kernel: Kernel, count: int | tuple[int, int], label: str, grain: int = 0, /,
               **values: Any) -> None:
        """Run a kernel for range(count), with its arguments by name, see
        :func:`vmdpotential.kernels.launch.launch_kernel`.

        Where a RANGE_KERNEL and a BLOCK_KERNEL have different elements, `count` are the numbers of both.

        Arrays that the kernel only reads may also be numpy's.
        """
        launch_kernel(kernel, count[0] if isinstance(count, tuple) else count, label, grain, **values)

    def team_size(self, most: tuple[int, int]) -> int:
        """Return the number of workers for :meth:`launch_team`: up to so many threads of a CPU, or blocks of a GPU."""
        return max(1, min(threads.count(), most[0]))

    def launch_team(self, kernel: Kernel, workers: int, /, **values: Any) -> None:
        """Run a TEAM_KERNEL (kernel.h), whose workers wait for each other, with its arguments by name."""
        launch_team(kernel, workers, **values)


def _aligned(make: Callable[..., NDArray[Any]], shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array that begins at a cache line, so that no vector in its rows crosses one."""
    kind = np.dtype(dtype)
    size = kind.itemsize * (math.prod(shape) if isinstance(shape, tuple) else shape)
    block = make(size + 64, np.uint8)
    return np.ndarray(shape, kind, block, -address_of(block) % 64)


def with_transforms(engine: Engine) -> Engine:
    """Return the engine, or the CPU engine if it lacks the Fourier transforms that a mesh needs."""
    return engine if engine.has_transforms else get_engine("cpu")


_reason = ""


def get_engine(name: str = "auto") -> Engine:
    """Return an engine by name; ``auto`` selects cuda if it works on this machine, else cpu.

    Raises
    ------
    UsageError
        If there is no engine of that name.
    BackendError
        If the engine does not work on this machine.
    """
    if name == "auto":
        name = automatic_engine()
    engine: Engine = registry.get("engine", name)
    engine.check()
    return engine


@cache
def automatic_engine() -> str:
    """Return the name of the engine that ``auto`` selects; :func:`automatic_reason` says why."""
    global _reason
    try:
        registry.get("engine", "cuda").check()
    except BackendError as error:
        _reason = f"the cuda engine does not work here: {error.message(in_words)}"
        return "cpu"
    _reason = ""
    return "cuda"


def automatic_reason() -> str:
    """Return why ``auto`` selects the cpu engine; empty if it selects cuda."""
    automatic_engine()
    return _reason
