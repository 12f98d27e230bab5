"""Maps on GPUs: what each kernel is given, and slabs of the map that fit a GPU.

The atoms are sorted on each GPU for the whole lattice and every tile of points has one position in
it, so that a map made in slabs, or on several GPUs, equals the whole bit by bit.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, progress
from vmdpotential.engines import PRECISIONS, SOFT_CORE
from vmdpotential.engines.cuda import cells, radial
from vmdpotential.errors import MemoryPlanError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import Bound, Scaled
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]

#: Points along x of a tile: slabs are whole layers of tiles.
LAYER = 8

#: Pairs of one launch, about half a second of a fast GPU, so that Ctrl-C is heard.
PAIRS_PER_LAUNCH = 2e12

#: Bytes of a slab that is copied while the next one is computed, and slabs for this at most; a direct sum
#: takes so much longer than its copy that it has none.
PART, MOST_PARTS = 2**22, 16

#: Pairs below which a second GPU is not worth its start.
PAIRS_PER_GPU = 1e11

#: Struct Task of common.cuh.
TASK = np.dtype(
    [(name, np.uint64) for name in ("positions", "charges", "atoms", "placed", "cell", "index", "image", "filled",
                                    "starts", "rows", "out", "map_size", "partial")]
    + [("origin", np.float64, 3), ("inverse_unit", np.float64), ("spacing", np.float64, 3), ("low", np.float64, 3),
       ("cell_size", np.float64, 3), ("inverse_cell", np.float64, 3), ("basis", np.float64, (3, 3)),
       ("inverse_basis", np.float64, (3, 3)), ("first_image", np.float64, 3), ("last_image", np.float64, 3),
       ("cutoff", np.float64), ("soft", np.float64), ("factor", np.float64), ("field_factor", np.float64),
       ("doubles", np.float64, radial.MAX_UNIFORMS), ("floats", np.float32, radial.MAX_UNIFORMS),
       ("cells", np.int32, 3), ("shape", np.int32, 3), ("first_plane", np.int32), ("count", np.int32)], align=True)


@dataclass(frozen=True)
class Slab:
    """Planes ``start <= i < stop`` of a map along x."""

    start: int
    stop: int


def slabs(shape: tuple[int, int, int], room: int, parts: int = 1, maps: int = 1) -> list[Slab]:
    """Return slabs of whole layers of tiles of which each fits into `room` bytes, at least `parts` where possible.

    A slab holds `maps` maps.

    Raises
    ------
    MemoryPlanError
        When not even one layer fits.
    """
    nx, ny, nz = shape
    layer = 4 * LAYER * ny * nz * maps
    if layer > room:
        raise MemoryPlanError(
            f"a map of {nx} x {ny} x {nz} points needs {memory.size(layer)} of GPU memory at least, "
            f"{memory.size(room)} are free; use a larger --spacing, or --engine cpu")
    layers = -(-nx // LAYER)
    pieces = min(layers, max(parts, -(-layers // (room // layer))))
    each = -(-layers // pieces) * LAYER
    return [Slab(start, min(start + each, nx)) for start in range(0, nx, each)]


def macros(scaled: Scaled, masked: bool, precision: str, direct: bool, add: bool = False,
           field: bool = False) -> dict[str, object]:
    """Return the knobs of a kernel; how many terms are summed before the sum is added in double sets the precision.

    A cutoff sum is added to what is in the map where `add` says so.
    """
    software_charge = radial.software_charge(scaled.program)
    software = 2 if radial.is_plain(scaled.program) and precision == "single" and not field else 0
    knobs: dict[str, object] = {
        "REAL": "double" if precision == "double" else "float",
        "UNIFORMS": "doubles" if precision == "double" else "floats",
        "MASKED": int(masked),
        "FIELD": int(field),
        "FLUSH": {"single": 128, "compensated": 16, "double": 128}[precision],
        "UNROLL": 1 if precision == "double" or (direct and field) else 2 if direct else 4,
    }
    if direct:
        knobs |= {"SOFTWARE": software, "SOFT_CHARGE": software_charge if software else 1.0,
                  "BLOCKS": (2 if precision == "double" else 4) // (2 if field else 1)}
    elif precision == "double":
        knobs |= {"CAPACITY": 48, "BLOCKS": 3 if field else 4}
    else:
        knobs |= {"CAPACITY": 80, "BLOCKS": 4 if field else 7}
    if not direct:
        knobs["ADD"] = int(add)
    return knobs


def check(positions: Floats, charges: Floats, precision: str) -> tuple[Floats, Floats]:
    """Return positions (N, 3) and charges (N,) as contiguous float64.

    Raises
    ------
    UsageError
        For arrays that do not fit together, or an unknown precision.
    """
    positions = np.ascontiguousarray(positions, np.float64)
    charges = np.ascontiguousarray(charges, np.float64)
    if positions.ndim != 2 or positions.shape[1] != 3 or charges.shape != positions.shape[:1]:
        raise UsageError(f"positions {positions.shape} and charges {charges.shape} do not fit: (N, 3) and (N,) are "
                         "needed")
    if precision not in PRECISIONS:
        raise UsageError(f"there is no precision '{precision}'; choose one of {', '.join(PRECISIONS)}")
    if 3 * len(positions) >= 2**31:
        raise MemoryPlanError(f"{len(positions)} atoms are more than the cuda engine can number")
    return positions, charges


def base_task(lattice: Lattice, scaled: Scaled, count: int) -> Any:
    """Return a filled record of :data:`TASK` without addresses and cells."""
    task = np.zeros((), TASK)
    task["origin"], task["inverse_unit"] = lattice.origin, 1 / scaled.length
    task["spacing"], task["shape"] = lattice.spacing / scaled.length, lattice.shape
    task["cutoff"], task["soft"] = scaled.cutoff or 0.0, SOFT_CORE / scaled.length
    task["factor"], task["count"] = scaled.factor, count
    task["field_factor"] = -2 * scaled.factor / scaled.length  # E = -2 q (x - x_j) dV/d(r^2)
    uniforms = radial.uniforms(scaled)
    task["doubles"][: len(uniforms)] = task["floats"][: len(uniforms)] = uniforms
    return task


class Sum:
    """A map being summed: what is the same on every GPU.

    With `add`, a cutoff sum is added to what a subclass puts into each slab before it calls :meth:`launch` here.
    """

    def __init__(self, lattice: Lattice, positions: Floats, charges: Floats, interaction: Bound, precision: str,
                 scaled: Scaled, cell: Cell | None = None, add: bool = False, field: bool = False) -> None:
        self.lattice, self.positions, self.charges, self.cell = lattice, positions, charges, cell
        self.task = base_task(lattice, scaled, len(positions))
        self.direct = scaled.cutoff is None
        #: How many maps are summed: the potential, and the field along x, y and z.
        self.maps = 4 if field else 1
        self.macros = macros(scaled, interaction.masked, precision, self.direct, add, field)
        self.radial = radial.source(scaled, str(self.macros["REAL"]), field)
        reach = interaction.cutoff or 0.0
        self.starts = 0 if self.direct else cells.around_lattice(self.task)
        #: Bound for the images of an atom that are summed.
        self.images = 1 if cell is None else cells.add_images(self.task, lattice, cell, reach)
        box = float(np.prod(lattice.last - lattice.origin + 2 * reach)) if cell is None else cell.volume
        share = 1.0 if self.direct else 4 / 3 * np.pi * reach**3 / box
        self.pairs = float(lattice.size) * len(positions) * (min(1.0, share) if cell is None else share)

    @property
    def fixed_bytes(self) -> int:
        """Bytes that a GPU needs beside the map."""
        sorting = 0 if self.direct else cells.needed(self.task, self.starts, self.images * len(self.positions))
        return 32 * len(self.positions) + sorting

    def prepare(self, gpu: Any) -> Any:
        """Upload the atoms and return the GPU's task."""
        task = self.task.copy()
        task["positions"] = gpu.upload("positions", self.positions)
        task["charges"] = gpu.upload("charges", self.charges)
        if not self.direct:
            cells.reserve(gpu, task, self.starts, self.cell is not None)
        return task

    def sort(self, gpu: Any, task: Any, stream: Any) -> None:
        """Queue the kernels that sort the atoms by cell."""
        cells.sort(gpu, stream, task, self.starts, self.cell is not None)

    def launch(self, gpu: Any, task: Any, slab: Slab, stream: Any) -> None:
        """Queue the kernel of one slab."""
        nx, ny, nz = slab.stop - slab.start, *self.lattice.shape[1:]
        task["first_plane"], task["map_size"] = slab.start, nx * ny * nz
        if self.direct:
            name, grid, block = "direct", (-(-nz // 32), -(-ny // 8), -(-nx // 8)), (256, 1, 1)
        else:
            name, grid, block = "cutoff", (-(-nz // 8), -(-ny // 8), -(-nx // 8)), (128, 1, 1)
        kernel = gpu.kernel(f"{name}.cu", name, self.macros, self.radial, TASK.itemsize)
        kernel.prepared_async_call(grid, block, stream, task.tobytes())


def direct(lattice: Lattice, positions: Floats, charges: Floats, interaction: Bound,
           precision: str = "single", field: bool = False, gpus: Sequence[Any] = ()) -> NDArray[np.float32]:
    """Return the sum over all atoms at all lattice points, see :mod:`vmdpotential.engines`.

    Work is N times the number of points. An interaction with a cutoff belongs in :func:`cutoff`.
    """
    if interaction.cutoff is not None:
        return cutoff(lattice, positions, charges, interaction, precision, field=field, gpus=gpus)
    positions, charges = check(positions, charges, precision)
    if not len(positions):
        return np.zeros((4, *lattice.shape) if field else lattice.shape, np.float32)
    scaled = interaction.scaled(float(lattice.spacing.max()))
    return run(Sum(lattice, positions, charges, interaction, precision, scaled, field=field), "direct sum", gpus)


def cutoff(lattice: Lattice, positions: Floats, charges: Floats, interaction: Bound, precision: str = "single",
           cell: Cell | None = None, field: bool = False, gpus: Sequence[Any] = ()) -> NDArray[np.float32]:
    """Return the sum over the atoms within the cutoff, and their periodic images where a cell is given.

    See :mod:`vmdpotential.engines`.
    """
    reach = interaction.cutoff
    if reach is None:
        raise UsageError(f"the interaction {interaction} has no cutoff; use --method direct")
    positions, charges = check(positions, charges, precision)
    if not len(positions):
        return np.zeros((4, *lattice.shape) if field else lattice.shape, np.float32)
    scaled = interaction.scaled(unit(lattice, reach))
    return run(Sum(lattice, positions, charges, interaction, precision, scaled, cell, field=field), "cutoff sum", gpus)


def unit(lattice: Lattice, reach: float) -> float:
    """Return a length from the cutoff to twice it (A), in which the lattice points have exact coordinates."""
    spacing = float(lattice.spacing.max())
    return float(spacing * 2.0 ** np.ceil(np.log2(reach / spacing)))


#: Seconds from the first kernel's start to the last one's end in the last map; the longest of several GPUs.
device_seconds = 0.0


def run(work: Sum, label: str, chosen: Sequence[Any] = ()) -> NDArray[np.float32]:
    """Sum a map in slabs, one worker a GPU, and return it.

    Raises
    ------
    MemoryPlanError
        When a GPU cannot take one layer of the map.
    BackendError
        When a GPU fails.
    """
    global device_seconds
    from vmdpotential.engines.cuda import device, pinned

    device_seconds = 0.0
    gpus = list(chosen) or list(device.gpus())[: max(1, int(work.pairs // PAIRS_PER_GPU))]
    room = []
    for gpu in gpus:
        with gpu:
            room.append(max(0, gpu.free() - work.fixed_bytes))
    parts = max(int(np.ceil(work.pairs / PAIRS_PER_LAUNCH)), 2 * len(gpus) if len(gpus) > 1 else 1,
                0 if work.direct else min(MOST_PARTS, 4 * work.maps * work.lattice.size // PART))
    todo: queue.SimpleQueue[Slab] = queue.SimpleQueue()
    pieces = slabs(work.lattice.shape, min(room), parts, work.maps)
    buffers = 1
    if len(pieces) > 1 and 4 * LAYER * work.maps * work.lattice.shape[1] * work.lattice.shape[2] <= min(room) // 2:
        pieces, buffers = slabs(work.lattice.shape, min(room) // 2, parts, work.maps), 2
    for piece in pieces:
        todo.put(piece)
    with gpus[0]:
        out = pinned.empty((work.maps, *work.lattice.shape))
    done: list[Slab] = []
    errors: list[BaseException] = []

    def worker(gpu: Any) -> None:
        try:
            _worker(gpu, work, todo, out, buffers, lambda slab: _report(done, slab, len(pieces), label), errors)
        except BaseException as error:
            errors.append(error)

    if len(gpus) == 1:
        worker(gpus[0])
    else:
        threads = [threading.Thread(target=worker, args=(gpu,), daemon=True) for gpu in gpus]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.1)
                    progress.report(label, min(len(done) / len(pieces), 0.999))
        except BaseException as error:
            errors.append(error)  # the workers stop after the slab under way
            for thread in threads:
                thread.join()
    if errors:
        raise errors[0]
    progress.report(label, 1.0)
    return out[0] if work.maps == 1 else out


def _report(done: list[Slab], slab: Slab, count: int, label: str) -> None:
    done.append(slab)
    if threading.current_thread() is threading.main_thread():
        progress.report(label, min(len(done) / count, 0.999))


def _worker(gpu: Any, work: Sum, todo: queue.SimpleQueue[Slab], out: NDArray[np.float32], buffers: int,
            report: Callable[[Slab], None], errors: list[BaseException]) -> None:
    """Take slabs from the queue until it is empty or another worker failed.

    With two buffers a slab is computed while the one before it is copied.
    """
    global device_seconds
    from vmdpotential.engines.cuda import device

    drv = device.driver()
    with gpu, device.errors(f"GPU {gpu.number} ({gpu.name})"):
        start, lanes = gpu.lanes()
        task = work.prepare(gpu)
        waiting: list[tuple[Slab, Any, Any]] = []
        seconds = 0.0
        start.record(lanes[0][0])
        if not work.direct:
            work.sort(gpu, task, lanes[0][0])
            if buffers > 1:
                lanes[0][1].record(lanes[0][0])
                lanes[1][0].wait_for_event(lanes[0][1])
        try:
            for number in itertools.count():
                slab = None if errors else _next(todo)
                if slab is not None:
                    stream, end = lanes[number % buffers]
                    planes = out[:, slab.start : slab.stop]
                    task["out"] = gpu.buffer(f"map {number % buffers}", planes.nbytes)
                    work.launch(gpu, task, slab, stream)
                    end.record(stream)
                    for n, part in enumerate(planes):
                        drv.memcpy_dtoh_async(part, int(task["out"]) + n * part.nbytes, stream)
                    waiting.append((slab, stream, end))
                elif not waiting:
                    break
                if slab is None or len(waiting) == buffers:
                    ready, stream, end = waiting.pop(0)
                    stream.synchronize()
                    seconds = max(seconds, end.time_since(start) * 1e-3)
                    report(ready)
        finally:
            drv.Context.synchronize()  # nothing may write to the map when it is given up
            gpu.trim()
        device_seconds = max(device_seconds, seconds)


def _next(todo: queue.SimpleQueue[Slab]) -> Slab | None:
    try:
        return todo.get_nowait()
    except queue.Empty:
        return None
