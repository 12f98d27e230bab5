"""The cutoff sums of 2008 on a GPU, for comparison in benchmarks.

After section 4 of C. I. Rodrigues, D. J. Hardy, J. E. Stone, K. Schulten, W. W. Hwu, "GPU acceleration
of cutoff pair potentials for molecular modeling applications", Proc. 5th Conf. Computing Frontiers
(2008) 273-282: the CPU puts atoms in bins, coordinates are single precision relative to the lattice's
origin, one GPU, a map that fits it.

``largebin``
    bins as wide as the cutoff; a region of points takes all atoms of the bins around it.
``smallbin``
    bins of 4 A with room for 8 atoms; a region walks the bins in range; atoms that do not fit in
    their bin are summed on the CPU afterwards.
``overlap``
    the same with bins so small that few atoms do not fit, and those summed while the GPU works.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory, registry
from vmdpotential.engines.cuda import device, maps, pinned, radial
from vmdpotential.engines.cuda.build import struct
from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import Bound
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: What can be asked for, and the precisions it has.
CUTOFF = {"largebin": ("single",), "smallbin": ("single", "compensated"), "overlap": ("single", "compensated")}

#: Points along each side of a region, the work of a block.
REGION = 8

#: Atoms that a small bin has room for, and its side in A.
CAPACITY, SIDE = 8, 4.0

#: Share of the atoms that ``overlap`` leaves to the CPU at most, and the smallest side in A that it tries.
OVERFLOW, SMALLEST = 0.01, 1.0

#: Bins in a kernel's list: its arguments, which lie in constant memory, may have 4 kB.
LISTED = (4080 - maps.TASK.itemsize) // 4

#: Struct ListTask of cutoff_smallbin.cu.
LIST_TASK = struct("ListTask", [
    ("task", maps.TASK),  # index: the home bin of a region along x, then y, then z; zero of the list's steps
    ("count", np.int32),  # steps in the list
    ("steps", np.int32, LISTED),
], "cutoff_smallbin.cu")


@dataclass(frozen=True)
class Bins:
    """Equal boxes around a lattice: where they begin (A), their sides (A), how many along x, y, z."""

    low: Floats
    side: Floats
    shape: Integers

    @property
    def size(self) -> int:
        """Number of bins."""
        return int(self.shape.prod())

    def numbers(self, positions: Floats) -> Integers:
        """Return the bin of each position (N, 3), -1 outside all."""
        number, outside = np.zeros(len(positions)), np.zeros(len(positions), bool)
        for d in range(3):
            place = np.floor((positions[:, d] - self.low[d]) / self.side[d])
            outside |= (place < 0) | (place >= self.shape[d])
            number = number * self.shape[d] + place
        number[outside] = -1
        return number.astype(np.int64)

    def sort(self, number: Integers) -> tuple[Integers, Integers, Integers]:
        """Return the atoms in the order of their bins, the bin of each, and the first atom of every bin.

        Atoms with a negative number are left out.
        """
        order = np.argsort(number.astype(np.int32) if self.size < 2**31 else number, kind="stable")
        order = order[np.count_nonzero(number < 0):]
        starts = np.zeros(self.size + 1, np.int64)
        np.cumsum(np.bincount(number[order], minlength=self.size), out=starts[1:])
        return order, number[order], starts


def large_bins(lattice: Lattice, reach: float) -> Bins:
    """Return bins at least as wide as the cutoff and as a region, over all that is in range of the lattice."""
    side = np.maximum(reach, REGION * lattice.spacing)
    low = lattice.origin - reach
    return Bins(low, side, np.floor((lattice.last + reach - low) / side).astype(np.int64) + 1)


def small_bins(lattice: Lattice, reach: float, side: float) -> tuple[Bins, list[Integers], Integers]:
    """Return bins of one side (A) and what the regions of the lattice find in them.

    Returns
    -------
    bins : Bins
    homes : list of three arrays
        The place of the bin at a region's centre, for the regions along x, y and z.
    steps : (S,) int64
        From that bin's number to the numbers of all bins that may be in range of the region. One
        list is good for every region, wherever in its home bin a region's centre lies; where
        regions are whole bins, as with 8 points of 0.5 A in bins of 4 A, it is the shortest.
    """
    homes, low, shape, places, gaps = [], [], [], [], []
    for d in range(3):
        h = lattice.spacing[d]
        regions = -(-lattice.shape[d] // REGION)
        half = 0.5 * (REGION - 1) * h
        centre = np.arange(regions) * (REGION * h / side) + 0.5  # in bins; the first is at the centre of its own
        home = np.floor(centre).astype(np.int64)
        left, right = ((centre - home).min() * side - half, (centre - home).max() * side + half)
        first, last = int(np.floor((left - reach) / side)), int(np.floor((right + reach) / side))
        place = np.arange(first, last + 1)
        homes.append(home - first)
        low.append(lattice.origin[d] + half + (first - 0.5) * side)
        shape.append(int(home[-1]) - first + last + 1)
        places.append(place)
        gaps.append(np.maximum(0, np.maximum(place * side - right, left - (place + 1) * side)) ** 2)
    near = gaps[0][:, None, None] + gaps[1][:, None] + gaps[2] < reach**2
    step = (places[0][:, None, None] * shape[1] + places[1][:, None]) * shape[2] + places[2]
    return Bins(np.array(low), np.full(3, side), np.array(shape)), homes, step[near]


def overlap_side(lattice: Lattice, reach: float, positions: Floats) -> float:
    """Return the side (A) of small bins of which few enough overflow."""
    side = SIDE
    while side > SMALLEST:
        number = small_bins(lattice, reach, side)[0].numbers(positions)
        inside = number[number >= 0]
        over = np.maximum(np.bincount(inside) - CAPACITY, 0).sum()
        if over <= OVERFLOW * len(inside):
            break
        side *= 0.9
    return side


def fill(bins: Bins, positions: Floats, atoms: NDArray[np.float32]) -> tuple[NDArray[np.float32], Integers]:
    """Put atoms in small bins.

    Parameters
    ----------
    bins : Bins
    positions : (N, 3) float64, A
    atoms : (N, 4) float32
        What is put there, the charge last.

    Returns
    -------
    filled : (bins, capacity, 4) float32
        From the front; a charge of zero ends a bin.
    overflow : (M,) int64
        Atoms that did not fit.
    """
    memory.require(16 * CAPACITY * bins.size, f"{bins.size} bins", "use a longer --cutoff or a smaller map")
    filled = np.zeros((bins.size, CAPACITY, 4), np.float32)
    number = bins.numbers(positions)
    number[atoms[:, 3] == 0] = -1
    order, number, starts = bins.sort(number)
    rank = np.arange(len(order)) - starts[number]
    fits = rank < CAPACITY
    # an atom is moved as one item of 16 bytes, which is several times as fast as four numbers
    places, items = filled.reshape(-1).view(np.complex128), np.ascontiguousarray(atoms).view(np.complex128)[:, 0]
    places[(number * CAPACITY + rank)[fits]] = items[order[fits]]
    return filled, order[~fits]


@dataclass(frozen=True)
class Plan:
    """What a kernel gets to know, and what is left to the CPU.

    Parameters
    ----------
    file : str
        Of the kernel, ``largebin`` or ``smallbin``.
    bins : Bins
    arrays : mapping
        By the field of the task that gets the address.
    steps : (S,) int64
        The list of bins; empty for large bins, which need none.
    overflow : (M,) int64
        Atoms for the CPU.
    """

    file: str
    bins: Bins
    arrays: Mapping[str, NDArray[Any]]
    steps: Integers
    overflow: Integers


def plan(variant: str, lattice: Lattice, positions: Floats, atoms: NDArray[np.float32], reach: float) -> Plan:
    """Put atoms in bins: positions (N, 3) in A say where, atoms (N, 4) is what the kernel reads."""
    none = np.zeros(0, np.int64)
    if variant == "largebin":
        bins = large_bins(lattice, reach)
        order, _, starts = bins.sort(bins.numbers(positions))
        return Plan("largebin", bins, {"atoms": atoms[order], "starts": starts.astype(np.int32)}, none, none)
    side = SIDE if variant == "smallbin" else overlap_side(lattice, reach, positions)
    bins, homes, steps = small_bins(lattice, reach, side)
    filled, overflow = fill(bins, positions, atoms)
    return Plan("smallbin", bins, {"atoms": filled, "index": np.concatenate(homes).astype(np.int32)}, steps, overflow)


def cutoff(variant: str, lattice: Lattice, positions: Floats, charges: Floats, interaction: Bound,
           precision: str = "single", cell: Cell | None = None) -> NDArray[np.float32]:
    """Return the sum over the atoms within the cutoff, and their periodic images where a cell is given.

    Returns
    -------
    (nx, ny, nz) float32, e/A

    Raises
    ------
    UsageError
        For an unknown variant, a precision that it does not have, or an interaction without a cutoff.
    MemoryPlanError
        When the map does not fit the GPU.
    """
    if variant not in CUTOFF:
        raise UsageError(f"there is no variant '{variant}' of the cutoff sum; choose one of {', '.join(CUTOFF)}")
    if precision not in CUTOFF[variant]:
        raise UsageError(f"the variant {variant} has no precision '{precision}'; choose {' or '.join(CUTOFF[variant])}")
    reach = interaction.cutoff
    if reach is None:
        raise UsageError(f"the interaction {interaction} has no cutoff; use --method direct")
    positions, charges = maps.check(positions, charges, precision)
    if cell is not None and len(positions):
        positions, index = cell.images_in_box(positions, lattice.origin - reach, lattice.last + reach)
        charges = charges[index]
    if not len(positions):
        return np.zeros(lattice.shape, np.float32)
    spacing = float(lattice.spacing.max())
    scaled = interaction.scaled(spacing * 2.0 ** np.ceil(np.log2(reach / spacing)))
    atoms = np.column_stack([(positions - lattice.origin) / scaled.length, charges]).astype(np.float32)
    planned = plan(variant, lattice, positions, atoms, reach)
    task = maps.base_task(lattice, scaled, len(atoms))
    task["low"] = (planned.bins.low - lattice.origin) / scaled.length
    task["cells"], task["inverse_cell"] = planned.bins.shape, scaled.length / planned.bins.side
    knobs: dict[str, object] = {"REAL": "float"}
    if planned.file == "smallbin":
        knobs |= {"COMPENSATED": int(precision == "compensated"), "CAPACITY": CAPACITY, "LISTED": LISTED}
    nx, ny, nz = (-(-n // REGION) for n in lattice.shape)
    gpu = device.gpus()[0]
    needed = 4 * lattice.size + sum(array.nbytes for array in planned.arrays.values())
    with gpu, device.errors(f"GPU {gpu.number} ({gpu.name})", needed):
        drv = device.driver()
        start, lanes = gpu.lanes()
        stream, end = lanes[0]
        out = pinned.empty(lattice.shape)
        task["out"] = gpu.buffer("map 0", out.nbytes)
        drv.memset_d8(int(task["out"]), 0, out.nbytes)
        for name, array in planned.arrays.items():
            task[name] = gpu.upload(name, array)
        arguments = list_tasks(task, planned.steps) if planned.file == "smallbin" else [task.tobytes()]
        name = f"cutoff_{planned.file}"
        kernel = gpu.kernel(f"{name}.cu", name, knobs, radial.source(scaled, "float"), len(arguments[0]))
        start.record(stream)
        for argument in arguments:
            kernel.prepared_async_call((nz, ny, nx), (128, 1, 1), stream, argument)
        end.record(stream)
        if variant != "overlap":
            end.synchronize()
        rest = planned.overflow
        extra = registry.get("engine", "cpu").cutoff(lattice, positions[rest], charges[rest], interaction, precision) \
            if len(rest) else None
        end.synchronize()
        drv.memcpy_dtoh(out, int(task["out"]))
        gpu.trim()
        maps.device_seconds = end.time_since(start) * 1e-3
    if extra is not None:
        out += extra
    return out


def list_tasks(task: Any, steps: Integers) -> list[bytes]:
    """Return the arguments of the launches that walk a list of bins."""
    result = []
    for first in range(0, len(steps), LISTED):
        part = steps[first : first + LISTED]
        whole = np.zeros((), LIST_TASK)
        whole["task"], whole["count"] = task, len(part)
        whole["steps"][: len(part)] = part
        result.append(whole.tobytes())
    return result
