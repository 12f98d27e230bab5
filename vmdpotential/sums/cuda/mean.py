"""The mean of a mesh sum over frames on one GPU: charges are added up on the nodes, pairs in maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vmdpotential.sums.cuda import maps
from vmdpotential.sums.cuda import result as results
from vmdpotential.sums.inputs import charges_and_positions, in_box
from vmdpotential.sums.result import HostResult, MeanOfResults, Result, check_frames

if TYPE_CHECKING:
    from vmdpotential.sums.cuda.mesh import MeshSum


class MeshMean:
    """The mean of a mesh sum; see :class:`vmdpotential.sums.result.RunningMean`.

    Frames are queued without waiting for the GPU. If its memory is too small for the sums, or for a map at once, the
    maps of all frames are averaged instead.

    Parameters
    ----------
    work : MeshSum
    gpu : Gpu, optional
        By default the least busy GPU.
    """

    def __init__(self, work: MeshSum, gpu: Any = None) -> None:
        self.work, self.gpu, self.count = work, gpu, 0
        self._instead: MeanOfResults | None = None
        self._job: maps.Job | None = None
        self._nodes: Any = None
        self._pairs: Any = None

    def add(self, positions: Any, charges: Any) -> None:
        """Queue the spreading of a frame's charges, and its pairs."""
        work = self.work
        positions, charges = in_box(work.work, *charges_and_positions(positions, charges))
        if self._instead is None and self._job is None and len(positions):
            self._begin(len(positions))
        if self._instead is not None:
            self._instead.add(positions, charges)
        elif len(positions):
            self._queue(positions, charges)
        self.count += 1

    def _begin(self, count: int) -> None:
        """Allocate the sums on a GPU, or change to the mean of maps if they do not fit."""
        from vmdpotential.engines.cuda import device, driver

        work = self.work
        self.gpu = self.gpu or device.least_busy_gpus(1)[0]
        nodes, size = 8 * int(work.node_task["shape"].prod()), work.maps * work.lattice.size
        pairs = 0 if work.work.pairs is None else 8 * size
        with self.gpu, driver.converted_errors(f"GPU {self.gpu.number} ({self.gpu.name})"):
            if work.fixed_bytes(count) + nodes + 4 * size + pairs * 3 // 2 > self.gpu.free():
                self._instead = MeanOfResults(work.run)
                for _ in range(self.count):  # frames without charges
                    self._instead.add(np.zeros((0, 3)), np.zeros(0))
                return
            stream = self._stream()
            self._nodes = self.gpu.take(nodes)
            driver.cuda_driver().memset_d32_async(self._nodes.address, 0, nodes // 4, stream)
            if pairs:
                self._pairs = self.gpu.take(pairs)
                driver.cuda_driver().memset_d32_async(self._pairs.address, 0, pairs // 4, stream)

    def _stream(self) -> Any:
        return self.gpu.streams()[1][0][0]

    def _queue(self, positions: Any, charges: Any) -> None:
        from vmdpotential.engines.cuda import driver

        work, gpu = self.work, self.gpu
        with gpu, driver.converted_errors(f"GPU {gpu.number} ({gpu.name})"):
            stream = self._stream()
            job = self._job = work.prepare(gpu, positions, charges, stream)
            job.nodes["sums"] = self._nodes.address
            work.spread(job)
            work.queue(job, "collect", (-(-int(job.nodes["shape"].prod()) // 128), 1, 1), 128)
            if self._pairs is not None:
                size = work.lattice.size
                out = gpu.buffer("mean", 4 * work.maps * size)
                driver.cuda_driver().memset_d32_async(out, 0, work.maps * size, stream)
                maps.Sum.sort(work, job)
                maps.Sum.launch(work, job, maps.Slab(0, work.lattice.shape[0]), out, size)
                self._launch("total", maps=out, stream=stream)

    def _launch(self, name: str, stream: Any, **addresses: int) -> None:
        """Queue a kernel over all values of the maps."""
        task = np.zeros((), results.TASK)
        task["size"], task["sums"], task["share"] = self.work.lattice.size, self._pairs.address, 1 / max(1, self.count)
        for field, place in addresses.items():
            task[field] = place
        grid = (-(-self.work.lattice.size // 256), self.work.maps, 1)
        results.launch(self.gpu, name, task, grid, 256, stream)

    def result(self) -> Result:
        """Queue the transforms and the interpolation of the mean, and return it."""
        from vmdpotential.engines.cuda import driver

        check_frames(self.count)
        work, gpu, job = self.work, self.gpu, self._job
        if self._instead is not None:
            return self._instead.result()
        shape = work.maps, *work.lattice.shape
        if job is None:
            return HostResult(np.zeros(shape, np.float32))
        with gpu, driver.converted_errors(f"GPU {gpu.number} ({gpu.name})"):
            stream = self._stream()
            start, end = timers = gpu.timers()
            out = gpu.take(4 * work.maps * work.lattice.size)
            start.record(stream)
            work.set_buffers(job)
            job.nodes["share"] = 1 / self.count
            work.solve(job)
            work.interpolate(job, maps.Slab(0, work.lattice.shape[0]), out.address, work.lattice.size)
            if self._pairs is not None:
                self._launch("add_mean", mean=out.address, stream=stream)
            end.record(stream)
            gpu.trim()
        return results.DeviceResult(gpu, out, shape, timers)
