"""Pinned host memory, to which the GPU copies at full speed, in a pool.

Pinning memory takes longer than computing a map, so a block returns to the pool when the array in it, and all views of
that array, have been deleted.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda.driver import cuda_driver

#: Bytes above which maps are copied to ordinary memory, because pinned memory cannot be swapped out.
LARGEST = 2**30

_free: dict[int, list[Any]] = {}
_lock = threading.RLock()  # reentrant, because the garbage collector may return a block while the lock is held


class _Block:
    """Owner of a pinned block for as long as an array uses it."""

    def __init__(self, memory: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._memory = memory
        self.__array_interface__ = {
            "shape": shape, "typestr": dtype.str, "version": 3, "strides": None,
            "data": (memory.__array_interface__["data"][0], False),
        }

    def __del__(self) -> None:
        if _give_back is not None:  # module globals are None while the interpreter shuts down
            _give_back(self._memory)


def _give_back(memory: Any) -> None:
    if _lock is None or _free is None:
        return
    with _lock:
        held = sum(size * len(blocks) for size, blocks in _free.items())
        if held + memory.nbytes <= LARGEST:
            _free.setdefault(memory.nbytes, []).append(memory)


def empty_pinned(shape: tuple[int, ...], dtype: Any = np.float32) -> NDArray[Any]:
    """Return an uninitialised array, pinned unless it is very large; a GPU has to be current."""
    dtype = np.dtype(dtype)
    size = dtype.itemsize * int(np.prod(shape))
    if not 0 < size <= LARGEST:
        return np.empty(shape, dtype)
    rounded = 1 << max(16, (size - 1).bit_length() - 2)
    rounded *= -(-size // rounded)  # rounded up by at most a quarter, so that maps of similar sizes reuse blocks
    with _lock:
        blocks = _free.get(rounded, [])
        memory = blocks.pop() if blocks else None
    if memory is None:
        flags = cuda_driver().host_alloc_flags.PORTABLE
        try:
            memory = cuda_driver().pagelocked_empty(rounded, np.uint8, mem_flags=flags)
        except cuda_driver().Error:  # no memory left to pin; ordinary memory is only slower
            return np.empty(shape, dtype)
    return np.asarray(_Block(memory, shape, dtype))


def release() -> None:
    """Free the blocks that no array uses."""
    with _lock:
        _free.clear()
