"""Counting atoms at the nodes of a lattice on a GPU, with the kernels of counting.cu."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.counting import Counting, Floats, Integers
from vmdpotential.engines.cuda import device
from vmdpotential.engines.cuda.build import address, struct

#: Number of threads of a block, as in counting.cu.
THREADS = 128

#: Number of nodes that a warp collects, as in counting.cu.
SEGMENT = 1024

#: Numbers of the kinds of spreading in counting.cu.
SPREADING = {"nearest": 0, "gaussian": 1, "occupancy": 2}

#: Sums in fixed point stay below two to this power.
_LARGEST = 62

#: Struct CountingTask of counting.cu.
TASK = struct("CountingTask", [
    ("positions", address("const REAL")),  # (atoms, 3)
    ("weights", address("const double")), ("widths", address("const double")),  # (atoms)
    ("shifts", address("const double")),  # (images, 3), in spacings
    ("values", address("unsigned long long")),  # values of a frame in fixed point
    ("sums", address("double")), ("squares", address("double")),  # sums over frames
    ("counts", address("int")), ("starts", address("const int")),  # (segments) nodes with contributions
    ("result", address("double")),  # (3, reached): the nodes as 64-bit integers, sums and squares
    ("change", np.float64, 9), ("cell", np.float64, 9), ("inverse", np.float64, 9),
    ("origin", np.float64, 3), ("spacing", np.float64, 3),
    ("scale", np.float64),  # fixed-point units of 1
    ("nodes", np.uint64), ("reached", np.uint64),
    ("shape", np.int32, 3), ("reach", np.int32, 3),
    ("atoms", np.int32), ("images", np.int32),
    ("periodic", np.int32), ("changes", np.int32),
], "counting.cu")


class CudaCounter:
    """See :class:`vmdpotential.engines.counting.Counter`."""

    def __init__(self, counting: Counting) -> None:
        self.atoms, self.nodes = len(counting.weights), int(np.prod(counting.shape))
        self.spreading = counting.spreading
        self.task = np.zeros((), TASK)
        images = counting.images if len(counting.images) else np.zeros((1, 3))
        most = float(np.abs(counting.weights).sum()) * len(images) or 1.0  # 1 if all weights are 0
        values = {"origin": counting.origin, "spacing": counting.spacing, "shape": counting.shape,
                  "reach": counting.reach, "atoms": self.atoms, "images": len(images), "nodes": self.nodes,
                  "periodic": int(len(counting.images) > 0),
                  "scale": 1.0 if self.spreading == "occupancy" else 2.0 ** (_LARGEST - np.ceil(np.log2(most)))}
        if len(counting.cell):
            values |= {"cell": counting.cell.ravel(), "inverse": counting.inverse.ravel()}
        for name, value in values.items():
            self.task[name] = value
        self.gpu = device.least_busy_gpus(1)[0]
        with self.gpu, device.errors(f"GPU {self.gpu.number} ({self.gpu.name})", 24 * self.nodes):
            zeros = np.zeros(self.nodes)  # zero bits, for arrays of any type
            arrays = {"weights": counting.weights, "widths": counting.widths, "shifts": images, "values": zeros,
                      "sums": zeros, "squares": zeros, "counts": zeros[: -(-self.nodes // SEGMENT)]}
            self._kept = {name: self.gpu.keep(array) for name, array in arrays.items()}
        for name, block in self._kept.items():
            self.task[name] = block.address

    def add(self, positions: NDArray[np.floating], change: Floats, rows: Integers) -> None:
        """Add a frame."""
        task, coordinates = self.task, np.take(positions, rows, 0)
        real = "float" if coordinates.dtype == np.float32 else "double"
        task["changes"] = int(len(change) > 0)
        if len(change):
            task["change"] = change.ravel()
        with self.gpu as gpu, device.errors(f"GPU {gpu.number} ({gpu.name})", coordinates.nbytes):
            if self.atoms:
                task["positions"] = gpu.send("positions", coordinates, None)
                if self.spreading == "nearest":
                    self._start("count_nearest", -(-self.atoms // THREADS), real)
                else:
                    self._start("count_spread", self.atoms, real)
            self._start("add_frame", -(-self.nodes // THREADS))

    def take(self) -> tuple[Integers, Floats, Floats]:
        """Return nodes, sums and sums of squares, and reset them."""
        counts = np.empty(-(-self.nodes // SEGMENT), np.int32)
        blocks = -(-len(counts) // (THREADS // 32))
        with self.gpu as gpu:
            with device.errors(f"GPU {gpu.number} ({gpu.name})"):
                self._start("count_reached", blocks)
                device.driver().memcpy_dtoh(counts, self._kept["counts"].address)
            ends = np.cumsum(counts, dtype=np.int64)
            result = np.empty((3, int(ends[-1]) if len(ends) else 0))
            with device.errors(f"GPU {gpu.number} ({gpu.name})", result.nbytes):
                self.task["reached"] = result.shape[1]
                self.task["starts"] = gpu.upload("starts", (ends - counts).astype(np.int32))
                self.task["result"] = gpu.buffer("reached", result.nbytes)
                self._start("collect", blocks)
                device.driver().memcpy_dtoh(result, int(self.task["result"]))
        return result[0].view(np.int64), result[1], result[2]

    def _start(self, name: str, blocks: int, real: str = "double") -> None:
        macros = {"REAL": real, "SPREADING": SPREADING[self.spreading]}
        kernel = self.gpu.kernel("counting.cu", name, macros, "", TASK.itemsize)
        kernel.prepared_call((blocks, 1, 1), (THREADS, 1, 1), self.task.tobytes())
