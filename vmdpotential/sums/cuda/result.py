"""Maps that stay on a GPU until they are needed, with the kernels of result.cu."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.engines.cuda import pinned
from vmdpotential.engines.cuda.blocks import MemoryBlock
from vmdpotential.engines.cuda.build import pointer_type, struct_type
from vmdpotential.engines.cuda.device import Gpu
from vmdpotential.engines.cuda.driver import converted_errors, cuda_driver
from vmdpotential.engines.cuda.launches import DeviceArray
from vmdpotential.sums.cuda import kernel_file
from vmdpotential.sums.result import Result

Maps = NDArray[np.float32]

#: Number of parts of a map whose squares are summed separately, as in result.cu.
PARTS = 256

#: Struct ResultTask of result.cu.
TASK = struct_type("ResultTask", [
    ("maps", pointer_type("const float")),  # (maps, size)
    ("places", pointer_type("const long long")),  # (count) indices in a map
    ("values", pointer_type("double")),  # (maps, count), or (maps, PARTS)
    ("shift", pointer_type("const float")),  # (maps, size) the first maps, from which differences are taken
    ("sums", pointer_type("double")),  # (maps, size) sums of the differences
    ("squares", pointer_type("double")),  # (maps, size) sums of their squares
    ("mean", pointer_type("float")),  # (maps, size) maps to which the mean of the sums is added
    ("size", np.uint64),  # number of values of a map
    ("share", np.float64),  # weight of a frame in the mean
    ("count", np.int32),
], "result.cu")


class DeviceResult(Result):
    """Maps in the memory of a GPU; see :class:`vmdpotential.sums.result.Result`.

    Parameters
    ----------
    gpu : Gpu
    block : Block
        Memory of the maps.
    shape : (maps, nx, ny, nz)
    timers : tuple of two pycuda.driver.Event
        Start of the first kernel and end of the last one; the GPU may still be computing.
    """

    def __init__(self, gpu: Gpu, block: MemoryBlock, shape: tuple[int, int, int, int], timers: tuple[Any, Any]) -> None:
        self.gpu, self.block, self.shape, self._timers = gpu, block, shape, timers
        self._squares: Floats | None = None

    def __del__(self) -> None:
        self.gpu.release_timers(self._timers)

    @property
    def device_seconds(self) -> float:  # type: ignore[override]
        """Computing time of the GPU without transfers, s."""
        start, end = self._timers
        with self.gpu, converted_errors(f"GPU {self.gpu.number} ({self.gpu.name})"):
            end.synchronize()
            return float(end.time_since(start) * 1e-3)

    def task(self) -> Any:
        """Return a record of :data:`TASK` with the maps."""
        task = np.zeros((), TASK)
        task["maps"], task["size"] = self.block.address, np.prod(self.shape[1:])
        return task

    def _copy(self, first: int, last: int) -> Maps:
        size = 4 * int(np.prod(self.shape[1:]))
        with self.gpu, converted_errors(f"GPU {self.gpu.number} ({self.gpu.name})"):
            out = pinned.empty_pinned((last - first, *self.shape[1:]))
            cuda_driver().memcpy_dtoh(out, self.block.address + first * size)
        return out

    def values(self) -> Maps:
        """Return a copy of the potential."""
        values: Maps = self._copy(0, 1)[0]
        return values

    def array(self) -> DeviceArray:
        """Return the potential on the GPU."""
        return DeviceArray(self.gpu, self.shape[1:], np.float32, self.block)

    def field(self) -> Maps | None:
        """Return a copy of the field."""
        return self._copy(1, 4) if self.shape[0] > 1 else None

    def at(self, indices: NDArray[np.int64]) -> Floats:
        """Return the maps at lattice points."""
        places = np.ravel_multi_index(tuple(np.asarray(indices, np.int64).T), self.shape[1:]).astype(np.int64)
        out = np.empty((self.shape[0], len(places)))
        with self.gpu, converted_errors(f"GPU {self.gpu.number} ({self.gpu.name})"):
            task = self.task()
            task["places"], task["count"] = self.gpu.upload("places", places), len(places)
            task["values"] = self.gpu.buffer("values", out.nbytes)
            launch(self.gpu, "gather", task, (-(-len(places) // 128), self.shape[0], 1), 128)
            cuda_driver().memcpy_dtoh(out, int(task["values"]))
        return out

    def mean_squares(self) -> Floats:
        """Return the mean squares of the potential and of the field."""
        if self._squares is None:
            out = np.empty((self.shape[0], PARTS))
            with self.gpu, converted_errors(f"GPU {self.gpu.number} ({self.gpu.name})"):
                task = self.task()
                task["values"] = self.gpu.buffer("values", out.nbytes)
                launch(self.gpu, "mean_squares", task, (PARTS, self.shape[0], 1), 256)
                cuda_driver().memcpy_dtoh(out, int(task["values"]))
            squares = out.sum(1) / np.prod(self.shape[1:])
            self._squares = np.array([squares[0], squares[1:].sum()])[: 1 + (len(squares) > 1)]
        return self._squares

    def new_sums(self) -> DeviceSums:
        """Return empty sums on the same GPU."""
        return DeviceSums(self.gpu, self.shape)


class DeviceSums:
    """Sums over results in the memory of a GPU; see :class:`vmdpotential.sums.result.Sums`."""

    def __init__(self, gpu: Gpu, shape: tuple[int, int, int, int]) -> None:
        self.gpu, self.shape, self.count = gpu, shape, 0
        self._shift: MemoryBlock | None = None
        size = 8 * int(np.prod(shape))
        with gpu:
            self._sums, self._squares = gpu.take(size), gpu.take(size)
            for block in (self._sums, self._squares):
                cuda_driver().memset_d32(block.address, 0, size // 4)

    def add(self, result: Result) -> None:
        """Add the maps of a result; differences from the first result are summed."""
        with self.gpu, converted_errors(f"GPU {self.gpu.number} ({self.gpu.name})"):
            block = result.block if isinstance(result, DeviceResult) and result.gpu is self.gpu else self._bring(result)
            if self._shift is None:
                self._shift = block
            else:
                task = np.zeros((), TASK)
                task["maps"], task["shift"] = block.address, self._shift.address
                task["sums"], task["squares"] = self._sums.address, self._squares.address
                task["size"] = np.prod(self.shape[1:])
                # in the default stream, for which later writes to this memory wait
                launch(self.gpu, "add", task, (-(-int(task["size"]) // 256), self.shape[0], 1), 256)
            self.count += 1

    def _bring(self, result: Result) -> MemoryBlock:
        """Return a block with a copy of the maps of a result in other memory."""
        field = result.field()
        return self.gpu.keep(np.stack([result.values(), *([] if field is None else field)]))

    def mean(self) -> Floats:
        """Return the mean of the maps."""
        assert self._shift is not None
        return self._moments(self._shift.address)

    def variance(self) -> Floats:
        """Return the mean square deviation from the mean."""
        return self._moments(0)

    def _moments(self, shift: int) -> Floats:
        with self.gpu, converted_errors(f"GPU {self.gpu.number} ({self.gpu.name})"):
            out = pinned.empty_pinned(self.shape, np.float64)
            task = np.zeros((), TASK)
            task["sums"], task["squares"], task["shift"] = self._sums.address, self._squares.address, shift
            task["size"], task["share"] = np.prod(self.shape[1:]), 1 / self.count
            task["values"] = self.gpu.buffer("moments", out.nbytes)
            launch(self.gpu, "moments", task, (-(-int(task["size"]) // 256), self.shape[0], 1), 256)
            cuda_driver().memcpy_dtoh(out, int(task["values"]))
        result: Floats = out[0] if len(out) == 1 else out
        return result


def launch(gpu: Gpu, name: str, task: Any, grid: tuple[int, int, int], threads: int, stream: Any = None) -> None:
    """Queue a kernel of result.cu, by default in the default stream."""
    kernel = gpu.kernel(kernel_file("result.cu"), name, {"REAL": "float"}, "", TASK.itemsize)
    if stream is None:
        kernel.prepared_call(grid, (threads, 1, 1), task.tobytes())
    else:
        kernel.prepared_async_call(grid, (threads, 1, 1), stream, task.tobytes())
