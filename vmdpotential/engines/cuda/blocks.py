"""Memory on a GPU, and the pinned memory through which small arrays are copied to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vmdpotential.engines.cuda.driver import cuda_driver

if TYPE_CHECKING:
    from vmdpotential.engines.cuda.device import Gpu

#: Largest numbers of bytes of arrays that are copied through a stage to a GPU and from it, and of each half of a stage.
SENT_BYTES, FETCHED_BYTES, HALF_BYTES = 2**20, 2**16, 2**22


class MemoryBlock:
    """Memory on a GPU, which is kept for reuse when the block is deleted.

    Parameters
    ----------
    gpu : Gpu
    allocation : pycuda.driver.DeviceAllocation
    size : int
        Size in bytes.
    """

    def __init__(self, gpu: Gpu, allocation: Any, size: int) -> None:
        self.gpu, self.size, self._allocation = gpu, size, allocation
        self.address = int(allocation)

    def __del__(self) -> None:
        self.gpu.release_allocation(self._allocation, self.size)


class PinnedStage:
    """Pinned memory through which small arrays are copied to the current GPU and from it."""

    def __init__(self) -> None:
        drv = cuda_driver()
        self._host = drv.pagelocked_empty(2 * HALF_BYTES + FETCHED_BYTES, np.uint8)
        self._device = drv.mem_alloc(2 * HALF_BYTES)
        self._copied, self._next = (drv.Event(), drv.Event()), 0

    def put(self, array: np.ndarray[Any, Any], address: int = 0) -> int:
        """Queue the copy of an array to an address, and return that; the array may be changed immediately.

        The default is memory that keeps it for kernels that are queued next: what overwrites it is queued after these.
        """
        size, half = array.nbytes, self._next // HALF_BYTES
        room = -(-size // 256) * 256
        if self._next + room >= (half + 1) * HALF_BYTES:
            # begin with the other half, from which all copies have to be made
            self._copied[half].record()
            half = 1 - half
            self._copied[half].synchronize()
            self._next = half * HALF_BYTES
        begin, self._next = self._next, self._next + room
        address = address or int(self._device) + begin
        if size:
            part = self._host[begin : begin + size]
            part[:] = array.reshape(-1).view(np.uint8)
            cuda_driver().memcpy_htod_async(address, part, None)
        return address

    def get(self, address: int, result: np.ndarray[Any, Any]) -> None:
        """Copy what is at an address to an array, after all work queued before."""
        part = self._host[2 * HALF_BYTES : 2 * HALF_BYTES + result.nbytes]
        cuda_driver().memcpy_dtoh(part, address)
        result.reshape(-1).view(np.uint8)[:] = part
