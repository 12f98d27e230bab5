"""Sums over pairs in range on a GPU, with the kernels of clusters.cu."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda import device
from vmdpotential.engines.cuda.build import pointer_type, struct_type
from vmdpotential.engines.cuda.programs import MAX_UNIFORMS, Programs
from vmdpotential.engines.pairs import Atoms, Floats, Integers, PairResult, PairSum
from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import coordinate_bounds
from vmdpotential.molecule.cell import Cell

FILE = "clusters.cu"

#: Number of atoms of a super cluster.
SUPER = 64

#: Boxes relative to the centre of a super cluster, A.
BOX = struct_type("Box", [("low", np.float32, 3), ("high", np.float32, 3)], FILE)

#: An excluded pair: the places of both atoms, the first one within its super cluster, and the image of the second.
EXCLUDED = struct_type("Excluded", [("first", np.int32), ("second", np.int32), ("code", np.int32)], FILE)

#: Atoms of one set.
SIDE = struct_type("Side", [
    ("atoms", pointer_type("struct Atom")),  # (places)
    ("parameters", pointer_type("const struct Atom")),  # (atoms) records without coordinates
    ("positions", pointer_type("const double")),  # (atoms, 3)
    ("bins", pointer_type("int")),  # number of atoms of each bin
    ("next", pointer_type("int")),  # place of the next atom of each bin
    ("bin", pointer_type("int")),  # (atoms) bin of each atom
    ("placed", pointer_type("int")),  # (places) the atoms by bin
    ("places", pointer_type("int")),  # (atoms) place of each atom
    ("index", pointer_type("int")),  # (places) the atom, -1 for none
    ("home", pointer_type("double")),  # (places, 3) position of the atom in the search
    ("centres", pointer_type("double")),  # (supers, 3)
    ("groups", pointer_type("struct Box")),  # (places / 4)
    ("boxes", pointer_type("struct Box")),  # (supers)
    ("forces", pointer_type("REAL")),  # (places, 3)
    ("energies", pointer_type("double")),  # (places, terms)
    ("out_forces", pointer_type("REAL")),  # (atoms, 3)
    ("out_energies", pointer_type("double")),  # (atoms, terms)
    ("low", np.float64, 3),  # lower corner of the bins, A
    ("scale", np.float64, 3),  # bins per A
    ("across", np.int32, 3),  # number of bins along each axis
    ("wraps", np.int32),  # whether atoms are wrapped into the cell
    ("count", np.int32),
    ("supers", np.int32),
], FILE)

#: Struct ClusterTask of clusters.cu.
TASK = struct_type("ClusterTask", [
    ("first", SIDE),
    ("second", SIDE),
    ("basis", np.float64, (3, 3)),  # lattice vectors as rows
    ("inverse", np.float64, (3, 3)),  # its inverse; zeros: not periodic
    ("entries", pointer_type("struct Entry")),  # (room)
    ("items", pointer_type("struct Item")),  # (room / chunk)
    ("masks", pointer_type("unsigned int")),  # (mask_room, 8) bits of lanes whose pair is excluded, by cluster
    ("pairs", pointer_type("const int")),  # (pair_count, 2) excluded pairs of atoms
    ("found", pointer_type("struct Excluded")),  # (pair_count), with the place of the first among all places
    ("cursors", pointer_type("int")),  # (supers) index of the next excluded pair
    ("starts", pointer_type("int")),  # (supers + 1) first index in `excluded`
    ("excluded", pointer_type("struct Excluded")),
    ("used", pointer_type("unsigned long long")),  # numbers of entries, of masks, and of clusters in entries
    ("table", pointer_type("const struct Table")),  # (types, types)
    ("doubles", np.float64, MAX_UNIFORMS),  # constants of the programs
    ("u", np.float32, MAX_UNIFORMS),
    ("reach", np.float32),
    ("reach2", np.float32),
    ("same", np.int32),  # whether both sets are the same
    ("types", np.int32),
    ("chunk", np.int32),  # number of entries of an item
    ("room", np.int32),
    ("mask_room", np.int32),
    ("item_count", np.int32),
    ("pair_count", np.int32),
], FILE)

#: Bytes of the struct Entry, by the size of its floating-point numbers, and of Item.
ENTRY, ITEM = {4: 32, 8: 48}, 8

#: Number of warps of a block, by kernel: search, sum, and sum of forces alone in single precision.
WARPS = {"build": 2, "force": 1, "lean": 2}

#: Number of layers of bins in the height of a super cluster.
LAYERS = 16

#: Distance beyond the reach up to which pairs are listed, A, to allow for rounding.
MARGIN = 1e-3


def lattice(cell: Cell | None) -> tuple[Floats, Floats]:
    """Return the basis of a cell and its inverse; zeros without a cell."""
    if cell is None:
        return np.zeros((3, 3)), np.zeros((3, 3))
    basis = cell.vectors if cell.orthogonal else cell.reduced
    return basis, np.asarray(np.linalg.inv(basis), np.float64)


def geometry(cell: Cell | None, reach: float) -> Any:
    """Return a task with the fields of the cell and of the reach (A).

    Raises
    ------
    InputError
        If the cell is so small that more than a hundred images are in range along an axis.
    """
    task = np.zeros((), TASK)
    task["basis"], task["inverse"] = lattice(cell)
    if (reach * np.linalg.norm(task["inverse"], axis=0) > 100).any():
        raise InputError(f"the cell is too small for pairs up to {reach:g} A: more than a hundred images are in range",
                         "take a supercell, or use {engine cpu}")
    task["reach"], task["reach2"] = reach, reach * reach
    return task


class DeviceBuffers:
    """Named blocks of GPU memory that belong to one list."""

    def __init__(self, gpu: Any) -> None:
        self.gpu = gpu
        self.blocks: dict[str, Any] = {}

    def keep(self, name: str, array: NDArray[Any]) -> int:
        """Copy an array to the GPU and return its address."""
        self.blocks[name] = self.gpu.keep(array)
        return int(self.blocks[name].address)

    def take(self, name: str, size: int) -> int:
        """Allocate a number of bytes and return their address."""
        self.blocks.pop(name, None)  # freed before the new one is taken
        self.blocks[name] = self.gpu.take(max(size, 16))
        return int(self.blocks[name].address)


def set_bins(task: Any, side: Any, positions: Floats) -> int:
    """Set the bins of atoms, layers of columns along z as wide as a super cluster; return the number of bins.

    Atoms are wrapped into the cell, unless they are compact and fill only a small part of it.
    """
    basis = task["basis"]
    low, high = coordinate_bounds(positions)
    extent, box, volume = high - low, np.abs(basis).sum(0), abs(float(np.linalg.det(basis)))
    side["wraps"] = task["inverse"].any() and ((extent > box).any() or extent.prod() > volume / 2)
    if side["wraps"]:
        low, extent = np.minimum(basis, 0).sum(0), box
    else:
        extent = np.maximum(extent, max(0.1 * float(extent.max()), 1e-3))
        volume = float(extent.prod())
    width = (SUPER * volume / len(positions)) ** (1 / 3)
    across = np.maximum(1, np.rint(extent / [width, width, width / LAYERS])).astype(np.int32)
    side["low"], side["across"], side["scale"] = low, across, across / extent
    return int(across.prod())


def arrange(held: DeviceBuffers, task: Any, sets: list[Floats], records: list[NDArray[Any]], launch: Any) -> None:
    """Sort atoms into compact super clusters of 64, each of eight clusters of 8 and sixteen groups of 4.

    Bins are ordered along the columns. Each 64 successive atoms of a column are a super cluster, which is then halved
    along z, y, x and z.

    Parameters
    ----------
    held : DeviceBuffers
        Memory on the current GPU, to which that of the lists is added.
    task : record of TASK
        Task with its cell and `same`.
    sets : list of (N, 3) float64, A
        Positions of one set of atoms or of two.
    records : list of float32 or float64
        Records of the atoms without coordinates.
    launch : callable
        ``launch(name, blocks, threads)`` queues a kernel with the task.
    """
    gpu, drv = held.gpu, device.cuda_driver()
    names = ("first", "second")[: len(sets)]
    for name, positions in zip(names, sets, strict=True):
        side, count = task[name], len(positions)
        side["count"], side["positions"] = count, gpu.upload(f"pairs {name}", positions)
        bins = set_bins(task, side, positions)
        side["bins"] = gpu.buffer(f"pairs bins {name}", 4 * bins)
        drv.memset_d32_async(int(side["bins"]), 0, bins, None)
        side["bin"] = gpu.buffer(f"pairs bin {name}", 4 * count)
        side["places"] = gpu.buffer(f"pairs places {name}", 4 * count)
    for name, own in zip(names, records, strict=True):
        task[name]["parameters"] = gpu.upload(f"pairs parameters {name}", own)
    blocks = -(-sum(map(len, sets)) // 256)
    launch("count", blocks, 256)
    for name in names:
        side = task[name]
        counts = np.empty(side["across"].prod(), np.int32)
        drv.memcpy_dtoh(counts, int(side["bins"]))
        column = counts.reshape(-1, side["across"][2]).sum(1)
        padded = -(-column // SUPER) * SUPER
        shift = (np.cumsum(padded) - padded) - (np.cumsum(column) - column)
        starts = np.cumsum(counts) - counts + np.repeat(shift, side["across"][2])
        places = int(padded.sum())
        side["supers"] = places // SUPER
        side["next"] = gpu.upload(f"pairs next {name}", starts.astype(np.int32))
        side["placed"] = gpu.buffer(f"pairs placed {name}", 4 * places)
        side["index"] = held.take(f"{name} index", 4 * places)
        drv.memset_d32_async(int(side["index"]), 0xFFFFFFFF, places, None)
        side["atoms"] = held.take(f"{name} atoms", places * records[0][:1].nbytes)
        side["home"] = held.take(f"{name} home", 24 * places)
        side["centres"] = held.take(f"{name} centres", 24 * int(side["supers"]))
        side["groups"] = held.take(f"{name} groups", BOX.itemsize * places // 4)
        side["boxes"] = held.take(f"{name} boxes", BOX.itemsize * int(side["supers"]))
    if task["same"]:
        task["second"] = task["first"]
    launch("fill", blocks, 256)
    launch("order", blocks, 256)
    launch("arrange", sum(int(task[name]["supers"]) for name in names), SUPER)


def sort_exclusions(held: DeviceBuffers, task: Any, exclusions: Integers | None, launch: Any) -> None:
    """Sort the excluded pairs by super cluster, after :func:`arrange`."""
    supers = int(task["first"]["supers"])
    counts = np.zeros(supers, np.int32)
    pairs = np.zeros((0, 2), np.int32) if exclusions is None else np.asarray(exclusions, np.int32)
    task["pair_count"] = len(pairs)
    task["excluded"] = held.take("excluded", EXCLUDED.itemsize * len(pairs))
    blocks = -(-len(pairs) // 256)
    if blocks:
        gpu = held.gpu
        task["pairs"] = gpu.upload("pairs excluded", pairs)
        task["found"] = gpu.buffer("pairs found", EXCLUDED.itemsize * len(pairs))
        task["cursors"] = gpu.upload("pairs cursors", counts)
        launch("find_excluded", blocks, 256)
        device.cuda_driver().memcpy_dtoh(counts, int(task["cursors"]))
    starts = np.zeros(supers + 1, np.int32)
    np.cumsum(counts, out=starts[1:])
    task["starts"] = held.keep("starts", starts)
    if blocks:
        task["cursors"] = gpu.upload("pairs cursors", starts)
        launch("place_excluded", blocks, 256)


class PairsInRange:
    """A sum over the pairs within a cutoff; see :class:`vmdpotential.engines.pairs.PreparedPairs`."""

    def __init__(self, work: PairSum) -> None:
        self.work = work
        self.programs = Programs(work)
        lean = work.precision == "single" and not work.energy
        self.macros = self.programs.macros | {"LEAN": int(lean)}
        self.summing = "lean" if lean else "force"

    def kernel(self, gpu: Any, name: str) -> Any:
        """Return a compiled kernel of clusters.cu by name."""
        macros = self.macros | {"WARPS": WARPS["build" if name == "build" else self.summing]}
        return gpu.kernel(FILE, name, macros, self.programs.source, TASK.itemsize)

    def search(self, atoms: Atoms, others: Atoms | None = None) -> ClusterList:
        """Return the pairs in range, see :mod:`vmdpotential.engines.pairs`."""
        return ClusterList(self, atoms, others)

    def run(self, atoms: Atoms, others: Atoms | None = None) -> PairResult:
        """Return the sum over the pairs in range."""
        return self.search(atoms, others).run(atoms.positions, None if others is None else others.positions)


class ClusterList:
    """Pairs in range on a GPU; see :class:`vmdpotential.engines.pairs.PairList`."""

    def __init__(self, pairs: PairsInRange, atoms: Atoms, others: Atoms | None) -> None:
        self.pairs = pairs
        self.counts = [len(atoms)] + ([len(others)] if others is not None else [])
        self.slots = 0
        self.empty = not min(self.counts)
        self.task = task = geometry(pairs.work.cell, pairs.work.reach + MARGIN)
        if self.empty:
            return
        programs, terms, real = pairs.programs, len(pairs.work.potential.terms), pairs.programs.real.itemsize
        sides = [atoms] + ([others] if others is not None else [])
        self.gpu = gpu = device.least_busy_gpus(1)[0]
        with gpu, device.converted_errors(f"GPU {gpu.number} ({gpu.name})"):
            self.allocated_bytes = held = DeviceBuffers(gpu)
            task["same"] = others is None
            arrange(held, task, [np.asarray(side.positions, np.float64) for side in sides],
                    [programs.records(side) for side in sides], self._launch)
            sort_exclusions(held, task, atoms.exclusions if others is None else None, self._launch)
            for name, of in zip(("first", "second"), sides, strict=False):
                side, places = task[name], SUPER * int(task[name]["supers"])
                side["forces"] = held.take(f"{name} forces", 3 * real * places)
                side["out_forces"] = held.take(f"{name} out forces", 3 * real * len(of))
                if pairs.work.energy:
                    side["energies"] = held.take(f"{name} energies", 8 * terms * places)
                    side["out_energies"] = held.take(f"{name} out energies", 8 * terms * len(of))
            if others is None:
                task["second"] = task["first"]
            table = programs.table(atoms)
            task["table"], task["types"] = held.keep("table", table), len(table)
            task["used"] = held.take("used", 24)
            task[programs.field][: len(programs.uniforms)] = programs.uniforms
            self._queue("place", 256)
            self._queue("bound", 64, supers=True)
            self._build()

    def _build(self) -> None:
        """Make the list; if it does not fit into its memory, repeat with more."""
        task, gpu, held = self.task, self.gpu, self.allocated_bytes
        supers = int(task["first"]["supers"])
        expected = _entries(task) * supers
        task["chunk"] = entries_of_items(expected, gpu.multiprocessors, self.pairs.work.energy)
        used = np.array([expected * 1.3 + WARPS["build"] * int(task["chunk"]) * supers, 64 * supers, 0]
                        ).astype(np.uint64)
        while True:
            chunk = int(task["chunk"])
            task["room"], task["mask_room"] = -(-int(used[0]) // chunk) * chunk, max(1, int(used[1]))
            task["entries"] = held.take("entries", ENTRY[self.pairs.programs.real.itemsize] * int(task["room"]))
            task["items"] = held.take("items", ITEM * (int(task["room"]) // chunk))
            task["masks"] = held.take("masks", 32 * int(task["mask_room"]))
            self.build(None)
            device.cuda_driver().memcpy_dtoh(used, int(task["used"]))
            if used[0] <= task["room"] and used[1] <= task["mask_room"]:
                break
        self.slots = int(used[2]) * 32
        task["item_count"] = int(used[0]) // chunk

    def build(self, stream: Any) -> None:
        """Queue the kernel that makes the list."""
        task, warps = self.task, WARPS["build"]
        device.cuda_driver().memset_d32_async(int(task["used"]), 0, 6, stream)
        kernel = self.pairs.kernel(self.gpu, "build")
        kernel.prepared_async_call((int(task["first"]["supers"]), 1, 1), (32 * warps, 1, 1), stream, task.tobytes())

    def _send(self, positions: list[Floats]) -> None:
        for name, values in zip(("first", "second"), positions, strict=False):
            self.task[name]["positions"] = self.gpu.send(f"pairs {name}", np.asarray(values, np.float64), None)
        if self.task["same"]:
            self.task["second"]["positions"] = self.task["first"]["positions"]

    def _launch(self, name: str, blocks: int, threads: int, stream: Any = None) -> None:
        self.pairs.kernel(self.gpu, name).prepared_async_call((blocks, 1, 1), (threads, 1, 1), stream,
                                                              self.task.tobytes())

    def _queue(self, name: str, threads: int, stream: Any = None, supers: bool = False) -> None:
        """Queue a kernel with a thread for each place or super cluster."""
        task = self.task
        count = int(task["first"]["supers"]) + (0 if task["same"] else int(task["second"]["supers"]))
        self._launch(name, -(-count * (1 if supers else SUPER) // threads), threads, stream)

    def force(self, stream: Any = None) -> None:
        """Queue the kernel that sums over the pairs."""
        warps = WARPS[self.pairs.summing]
        if self.task["item_count"]:
            self._launch("force", -(-int(self.task["item_count"]) // warps), 32 * warps, stream)

    def launch(self, stream: Any = None) -> None:
        """Queue all kernels of a run."""
        self._queue("place", 256, stream)
        self.force(stream)
        self._queue("collect", 256, stream)

    def run(self, positions: Floats, others: Floats | None = None) -> PairResult:
        """Return the sum for positions of the atoms, see :class:`vmdpotential.engines.pairs.PairList`."""
        work = self.pairs.work
        forces = [np.zeros((n, 3), self.pairs.programs.real) for n in self.counts]
        energies = [np.zeros((n, len(work.potential.terms))) for n in self.counts]
        if not self.empty:
            with self.gpu as gpu, device.converted_errors(f"GPU {gpu.number} ({gpu.name})"):
                self._send([positions] + ([others] if others is not None else []))
                self.launch()
                copy = device.cuda_driver().memcpy_dtoh
                for name, result, its in zip(("first", "second"), forces, energies, strict=False):
                    copy(result, int(self.task[name]["out_forces"]))
                    if work.energy:
                        copy(its, int(self.task[name]["out_energies"]))
        results = [PairResult(f.astype(np.float64), e if work.energy else None)
                   for f, e in zip(forces, energies, strict=True)]
        return results[0] if len(results) == 1 else replace(results[0], other=results[1])


def entries_of_items(expected: float, multiprocessors: int, energy: bool) -> int:
    """Return the number of entries in an item of work: few balance the load, but each item has an overhead."""
    items = (64 if energy else 192) * multiprocessors
    return int(min(64, max(8, 2 ** int(np.log2(max(1, expected / items))))))


def _entries(task: Any) -> float:
    """Return the expected number of entries of a super cluster, for the mean density of atoms."""
    second, reach = task["second"], float(task["reach"])
    volume = (abs(float(np.linalg.det(task["basis"]))) if second["wraps"]
              else float(np.maximum(second["across"] / second["scale"], 1.0).prod()))
    density = int(second["count"]) / volume
    side = (SUPER / density) ** (1 / 3)
    volume = side**3 + 6 * side**2 * reach + 3 * np.pi * side * reach**2 + 4 / 3 * np.pi * reach**3
    return float(density * volume / 4 * (0.5 if task["same"] else 1.0))
