"""Lattice sums on GPUs: the kernels' task, maps that stay on one GPU, and maps in slabs if they do not fit.

Every GPU sorts the atoms for the whole lattice, whose tiles do not depend on slabs, so that a map computed in slabs or
on several GPUs has the same bits as a map computed at once.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, progress
from vmdpotential.arrays import Floats
from vmdpotential.engines.cuda import radial
from vmdpotential.engines.cuda.build import pointer_type, struct_type
from vmdpotential.errors import MemoryPlanError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import SOFT_CORE, ScaledInteraction
from vmdpotential.sums.cuda import cells, kernel_file
from vmdpotential.sums.inputs import charges_and_positions, in_box
from vmdpotential.sums.potential_sum import PotentialSum, Prepared
from vmdpotential.sums.result import HostResult, Result

#: Number of points along x of a tile; slabs are whole layers of tiles.
LAYER = 8

#: Number of pairs of one launch, about half a second of a fast GPU, so that Ctrl-C can act.
PAIRS_PER_LAUNCH = 2e12

#: Bytes of a slab that is copied while the next one is computed, and largest number of such slabs. A direct sum has
#: none, because it takes much longer than its copy.
PART, MOST_PARTS = 2**22, 16

#: Number of pairs for each GPU: with fewer, starting another GPU takes longer than it saves.
PAIRS_PER_GPU = 1e11

#: Struct Task of the kernels of lattice sums. Lengths are in units of a power of two times the largest spacing, where
#: lattice points have exact coordinates, and relative to the lattice's first point; only positions are in A.
TASK = struct_type("Task", [
    ("positions", pointer_type("const double")),  # (count, 3) A
    ("charges", pointer_type("const double")),  # (count)
    ("atoms", pointer_type("double4_t")),  # (images) x, y, z, q sorted by cell
    ("placed", pointer_type("double4_t")),  # (images) the same in order of arrival within a cell
    ("cell", pointer_type("int")),  # (images) the cell
    ("index", pointer_type("int")),  # (images) number of the atom
    ("image", pointer_type("int")),  # (images) number of the periodic image among those of the atom
    ("filled", pointer_type("int")),  # (cells x, y, z + 1) atoms placed so far
    ("starts", pointer_type("int")),  # (cells x, y, z + 1) first atom of a cell in its row
    ("rows", pointer_type("int")),  # (cells x * y + 1) first atom of a row of cells along z
    ("out", pointer_type("float")),  # the planes [first plane, ...) of the map, and with FIELD those of the field
    ("map_size", np.uint64),  # number of values from one map to the next
    ("places", pointer_type("const double")),  # (place count, 3) A, arbitrary points
    ("sums", pointer_type("double")),  # (4, place count) potential and field at these points
    ("origin", np.float64, 3),  # A, first point of the lattice
    ("inverse_unit", np.float64),  # 1/A
    ("spacing", np.float64, 3),
    ("low", np.float64, 3),  # lower corner of the cells
    ("cell_size", np.float64, 3),
    ("inverse_cell", np.float64, 3),  # 1/cell_size, for the cell of an atom and the cells in range
    ("basis", np.float64, (3, 3)),  # A, rows: vectors of the periodic cell; zero in an open boundary
    ("inverse_basis", np.float64, (3, 3)),
    ("first_image", np.float64, 3),  # range of fractional coordinates in which images may be within reach
    ("last_image", np.float64, 3),
    ("cutoff", np.float64),  # 0: none
    ("soft", np.float64),  # closest distance: nearer atoms count as at this distance
    ("factor", np.float64),  # factor of sums of the potential
    ("field_factor", np.float64),  # factor of sums of the field
    ("doubles", np.float64, radial.MAX_UNIFORMS),  # constants of the radial function, and the same in single precision
    ("floats", np.float32, radial.MAX_UNIFORMS),
    ("cells", np.int32, 3),  # number of cells along each axis
    ("shape", np.int32, 3),  # shape of the whole lattice
    ("first_plane", np.int32),  # first plane along x, a multiple of 8
    ("count", np.int32),  # number of atoms
    ("place_count", np.int32),
])


@dataclass(frozen=True)
class Slab:
    """Planes ``start <= i < stop`` of a map along x."""

    start: int
    stop: int


def slabs(shape: tuple[int, int, int], room: int, parts: int = 1, maps: int = 1) -> list[Slab]:
    """Return slabs of whole layers of tiles, each of which needs at most `room` bytes for `maps` maps.

    There are at least `parts` slabs if there are as many layers.

    Raises
    ------
    MemoryPlanError
        If not even one layer fits.
    """
    nx, ny, nz = shape
    layer = 4 * LAYER * ny * nz * maps
    if layer > room:
        raise MemoryPlanError(
            f"a map of {nx} x {ny} x {nz} points needs {memory.size(layer)} of GPU memory at least, "
            f"{memory.size(room)} are free", "use a larger {spacing}, or {engine cpu}")
    layers = -(-nx // LAYER)
    pieces = min(layers, max(parts, -(-layers // (room // layer))))
    each = -(-layers // pieces) * LAYER
    return [Slab(start, min(start + each, nx)) for start in range(0, nx, each)]


def macros(scaled: ScaledInteraction, masked: bool, precision: str, direct: bool, add: bool = False,
           field: bool = False) -> dict[str, object]:
    """Return the macros of a kernel.

    FLUSH, the number of terms that are summed before they are added to a float64 sum, depends on the precision. With
    `add` a cutoff sum is added to the values in the map.
    """
    software_charge = radial.software_charge(scaled.program)
    software = 2 if radial.is_plain(scaled.program) and precision == "single" and not field else 0
    settings: dict[str, object] = {
        "REAL": "double" if precision == "double" else "float",
        "UNIFORMS": "doubles" if precision == "double" else "floats",
        "MASKED": int(masked),
        "FIELD": int(field),
        "FLUSH": {"single": 128, "compensated": 16, "double": 128}[precision],
        "UNROLL": 1 if precision == "double" or (direct and field) else 2 if direct else 4,
    }
    if direct:
        settings |= {"SOFTWARE": software, "SOFT_CHARGE": software_charge if software else 1.0,
                     "BLOCKS": (2 if precision == "double" else 4) // (2 if field else 1)}
    elif precision == "double":
        settings |= {"CAPACITY": 48, "BLOCKS": 3 if field else 4}
    else:
        settings |= {"CAPACITY": 80, "BLOCKS": 4 if field else 7}
    if not direct:
        settings["ADD"] = int(add)
    return settings


def base_task(lattice: Lattice, scaled: ScaledInteraction) -> Any:
    """Return a filled record of :data:`TASK` without addresses, atoms and cells."""
    task = np.zeros((), TASK)
    task["origin"], task["inverse_unit"] = lattice.origin, 1 / scaled.length
    task["spacing"], task["shape"] = lattice.spacing / scaled.length, lattice.shape
    task["cutoff"], task["soft"] = scaled.cutoff or 0.0, SOFT_CORE / scaled.length
    task["factor"] = scaled.factor
    task["field_factor"] = -2 * scaled.factor / scaled.length  # E = -2 q (x - x_j) dV/d(r^2)
    uniforms = radial.uniforms(scaled)
    task["doubles"][: len(uniforms)] = task["floats"][: len(uniforms)] = uniforms
    return task


@dataclass
class Job:
    """One run of a sum on one GPU: its charges, and the records that are the arguments of its kernels."""

    gpu: Any
    stream: Any
    charges: Floats
    task: Any
    nodes: Any = None
    levels: Any = None


class Sum(Prepared):
    """A lattice sum, prepared to run: everything that is the same for all charges and on every GPU.

    With `add`, a cutoff sum is added to the values that a subclass writes to each slab before it calls :meth:`launch`.
    """

    label = "sum"

    def __init__(self, work: PotentialSum, add: bool = False) -> None:
        self.work, self.lattice, self.cell, self.maps = work, work.lattice, work.cell, work.maps
        self._tables: dict[tuple[int, str], Any] = {}
        #: Numbers of GPUs and of atoms for which a map is known to fit and to need one launch.
        self.fits: set[tuple[int, int]] = set()
        lattice, interaction = work.lattice, work.pairs
        #: Whether atoms are sorted by cell, and whether all of them are in range of a point.
        self.sorted, self.direct = interaction is not None and interaction.cutoff is not None, False
        self.pairs_per_atom, self.images, self.starts = 0.0, 1, 0
        if interaction is None:  # a smooth part alone
            self.task = np.zeros((), TASK)
            return
        reach = interaction.cutoff
        scaled = interaction.scaled(float(lattice.spacing.max()) if reach is None else internal_unit(lattice, reach))
        self.task = base_task(lattice, scaled)
        self.direct = reach is None
        self.label = "direct sum" if self.direct else "cutoff sum"
        self.macros = macros(scaled, interaction.masked, work.precision, self.direct, add, work.field)
        self.radial = radial.radial_source(scaled, str(self.macros["REAL"]), work.field)
        self.starts = 0 if self.direct else cells.around_lattice(self.task)
        reach = reach or 0.0
        #: Upper bound of the number of images of an atom that are summed.
        self.images = 1 if self.cell is None else cells.add_images(self.task, lattice, self.cell, reach)
        box = float(np.prod(lattice.last - lattice.origin + 2 * reach)) if self.cell is None else self.cell.volume
        share = 1.0 if self.direct else 4 / 3 * np.pi * reach**3 / box
        self.pairs_per_atom = lattice.size * (min(1.0, share) if self.cell is None else share)

    def run(self, positions: Any, charges: Any, target: Any = None) -> Result:
        """Return the sum for positions (N, 3), A, and charges (N,), e; see :class:`vmdpotential.engines.Prepared`.

        Raises
        ------
        InputError
            If charges are outside of the box that the smooth part of an open boundary was planned for.
        MemoryPlanError
            If not even one layer of the map fits into a GPU's memory.
        BackendError
            If a GPU fails.
        """
        if target is not None:  # each part solves the mesh again, which takes little time on a GPU
            return type(self)(replace(self.work, target=target)).run(positions, charges)
        positions, charges = in_box(self.work, *charges_and_positions(positions, charges))
        if 3 * len(positions) >= 2**31:
            raise MemoryPlanError(f"{len(positions)} atoms are more than the cuda engine can number")
        if not len(positions):
            return HostResult(np.zeros((self.maps, *self.lattice.shape), np.float32))
        return run(self, positions, charges)

    def fixed_bytes(self, count: int) -> int:
        """Return the bytes that a GPU needs for a number of atoms, in addition to the map."""
        return 32 * count + (cells.sort_bytes(self.task, self.starts, self.images * count) if self.sorted else 0)

    def table(self, gpu: Any, name: str, make: Callable[[], np.ndarray[Any, Any]], shared: Any = None) -> int:
        """Return the address of an array that is the same for all charges; it stays on the GPU as long as this sum.

        Sums that use the same array share it by the key `shared`.
        """
        key = gpu.number, name
        if key not in self._tables:
            self._tables[key] = gpu.keep(make()) if shared is None else gpu.share((name, shared), make)
        return int(self._tables[key].address)

    def prepare(self, gpu: Any, positions: Floats, charges: Floats, stream: Any = None) -> Job:
        """Upload the atoms and return the job."""
        task = self.task.copy()
        task["count"] = len(charges)
        task["positions"] = gpu.send("positions", positions, stream)
        task["charges"] = gpu.send("charges", charges, stream)
        if self.sorted:
            cells.reserve(gpu, task, self.starts, self.cell is not None)
        return Job(gpu, stream, charges, task)

    def sort(self, job: Job) -> None:
        """Queue the kernels that sort the atoms by cell."""
        if self.sorted:
            cells.sort(job.gpu, job.stream, job.task, self.starts, self.cell is not None)

    def launch(self, job: Job, slab: Slab, out: int, size: int, stream: Any = None) -> None:
        """Queue the kernel of one slab, whose maps begin at the address `out` and are `size` values apart."""
        if self.work.pairs is None:
            return
        nx, ny, nz = slab.stop - slab.start, *self.lattice.shape[1:]
        task = job.task
        task["out"], task["first_plane"], task["map_size"] = out, slab.start, size
        if self.direct:
            name, grid, block = "direct", (-(-nz // 32), -(-ny // 8), -(-nx // 8)), (256, 1, 1)
        else:
            name, grid, block = "cutoff", (-(-nz // 8), -(-ny // 8), -(-nx // 8)), (128, 1, 1)
        kernel = job.gpu.kernel(kernel_file(f"{name}.cu"), name, self.macros, self.radial, TASK.itemsize)
        kernel.prepared_async_call(grid, block, stream or job.stream, task.tobytes())


def internal_unit(lattice: Lattice, reach: float) -> float:
    """Return a length between the cutoff and twice the cutoff (A), in units of which lattice points are exact."""
    spacing = float(lattice.spacing.max())
    return float(spacing * 2.0 ** np.ceil(np.log2(reach / spacing)))


def run(work: Sum, positions: Floats, charges: Floats) -> Result:
    """Return the sum of a map: on one GPU, where it stays, if it fits and is fast, else in slabs on several GPUs."""
    from vmdpotential.engines.cuda import device

    pairs = work.pairs_per_atom * len(charges)
    gpus = device.least_busy_gpus(max(1, int(pairs // PAIRS_PER_GPU)))
    if len(gpus) == 1 and (gpus[0].number, len(charges)) in work.fits:  # avoids a slow query of free memory
        whole = Slab(0, work.lattice.shape[0])
        return on_one_gpu(work, gpus[0], positions, charges, [whole])
    room = []
    for gpu in gpus:
        with gpu:
            room.append(max(0, gpu.free() - work.fixed_bytes(len(charges))))
    parts = int(np.ceil(pairs / PAIRS_PER_LAUNCH))
    if len(gpus) == 1 and 4 * work.maps * work.lattice.size <= room[0]:
        pieces = slabs(work.lattice.shape, room[0], parts, work.maps)
        result = on_one_gpu(work, gpus[0], positions, charges, pieces)
        if len(pieces) == 1:
            work.fits.add((gpus[0].number, len(charges)))
        return result
    return in_slabs(work, gpus, positions, charges, min(room), parts)


def on_one_gpu(work: Sum, gpu: Any, positions: Floats, charges: Floats, pieces: list[Slab]) -> Result:
    """Return the sum of a map that stays on the GPU, without waiting for its end; each slab is one launch."""
    from vmdpotential.engines.cuda import driver
    from vmdpotential.sums.cuda.result import DeviceResult

    size, plane = work.lattice.size, int(np.prod(work.lattice.shape[1:]))
    with gpu, driver.converted_errors(f"GPU {gpu.number} ({gpu.name})"):
        stream = gpu.streams()[1][0][0]
        start, end = timers = gpu.timers()
        out = gpu.take(4 * work.maps * size)
        job = work.prepare(gpu, positions, charges, stream)
        start.record(stream)
        if not work.direct:
            work.sort(job)
        for number, slab in enumerate(pieces, 1):
            work.launch(job, slab, out.address + 4 * slab.start * plane, size)
            if len(pieces) > 1:
                stream.synchronize()
                progress.report_progress(work.label, min(number / len(pieces), 0.999))
        end.record(stream)
        gpu.trim()
    progress.report_progress(work.label, 1.0)
    return DeviceResult(gpu, out, (work.maps, *work.lattice.shape), timers)


def in_slabs(work: Sum, gpus: Sequence[Any], positions: Floats, charges: Floats, room: int, parts: int) -> HostResult:
    """Return the sum of a map in slabs, with one worker per GPU, in the memory of the host."""
    from vmdpotential.engines.cuda import pinned

    parts = max(parts, 2 * len(gpus) if len(gpus) > 1 else 1,
                0 if work.direct else min(MOST_PARTS, 4 * work.maps * work.lattice.size // PART))
    todo: queue.SimpleQueue[Slab] = queue.SimpleQueue()
    pieces = slabs(work.lattice.shape, room, parts, work.maps)
    buffers = 1
    if len(pieces) > 1 and 4 * LAYER * work.maps * work.lattice.shape[1] * work.lattice.shape[2] <= room // 2:
        pieces, buffers = slabs(work.lattice.shape, room // 2, parts, work.maps), 2
    for piece in pieces:
        todo.put(piece)
    with gpus[0]:
        out = pinned.empty_pinned((work.maps, *work.lattice.shape))
    done: list[Slab] = []
    errors: list[BaseException] = []
    seconds: list[float] = []

    def worker(gpu: Any) -> None:
        try:
            seconds.append(_worker(gpu, work, positions, charges, todo, out, buffers,
                                   lambda slab: _report(done, slab, len(pieces), work.label, len(gpus) == 1), errors))
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
                    progress.report_progress(work.label, min(len(done) / len(pieces), 0.999))
        except BaseException as error:
            errors.append(error)  # the workers stop after their current slab
            for thread in threads:
                thread.join()
    if errors:
        raise errors[0]
    progress.report_progress(work.label, 1.0)
    return HostResult(out, max(seconds))


def _report(done: list[Slab], slab: Slab, count: int, label: str, alone: bool) -> None:
    """Note a slab, and report it if there is one GPU, which the calling thread runs: it may be that of a viewer."""
    done.append(slab)
    if alone:
        progress.report_progress(label, min(len(done) / count, 0.999))


def _worker(gpu: Any, work: Sum, positions: Floats, charges: Floats, todo: queue.SimpleQueue[Slab],
            out: NDArray[np.float32], buffers: int, report: Callable[[Slab], None],
            errors: list[BaseException]) -> float:
    """Compute slabs of the queue until it is empty or another worker has failed; return the GPU's computing time, s.

    With two buffers a slab is computed while the previous one is copied.
    """
    from vmdpotential.engines.cuda import driver

    drv = driver.cuda_driver()
    with gpu, driver.converted_errors(f"GPU {gpu.number} ({gpu.name})"):
        start, lanes = gpu.streams()
        job = work.prepare(gpu, positions, charges, lanes[0][0])
        waiting: list[tuple[Slab, Any, Any]] = []
        seconds = 0.0
        start.record(lanes[0][0])
        if not work.direct:
            work.sort(job)
            if buffers > 1:
                lanes[0][1].record(lanes[0][0])
                lanes[1][0].wait_for_event(lanes[0][1])
        try:
            for number in itertools.count():
                slab = None if errors else _next(todo)
                if slab is not None:
                    stream, end = lanes[number % buffers]
                    planes = out[:, slab.start : slab.stop]
                    address = gpu.buffer(f"map {number % buffers}", planes.nbytes)
                    work.launch(job, slab, address, planes[0].size, stream)
                    end.record(stream)
                    for n, part in enumerate(planes):
                        drv.memcpy_dtoh_async(part, address + n * part.nbytes, stream)
                    waiting.append((slab, stream, end))
                elif not waiting:
                    break
                if slab is None or len(waiting) == buffers:
                    ready, stream, end = waiting.pop(0)
                    stream.synchronize()
                    seconds = max(seconds, end.time_since(start) * 1e-3)
                    report(ready)
        finally:
            drv.Context.synchronize()  # no copy may write to the map after an error
            gpu.trim()
    return seconds


def _next(todo: queue.SimpleQueue[Slab]) -> Slab | None:
    try:
        return todo.get_nowait()
    except queue.Empty:
        return None
