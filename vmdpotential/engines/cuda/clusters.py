"""Sums over pairs in range and counts of distances on a GPU, around clusters.cu."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda import device
from vmdpotential.engines.cuda.build import address, struct
from vmdpotential.engines.cuda.programs import MAX_UNIFORMS, Programs
from vmdpotential.engines.pairs import Atoms, Floats, Integers, PairResult, PairSum
from vmdpotential.errors import InputError, UsageError
from vmdpotential.molecule.cell import Cell

FILE = "clusters.cu"

#: Atoms of a super cluster.
SUPER = 64

#: Boxes relative to the centre of a super cluster, A.
BOX = struct("Box", [("low", np.float32, 3), ("high", np.float32, 3)], FILE)

#: A pair that is left out: places of both, of the first in its super cluster, and the image of the second.
EXCLUDED = struct("Excluded", [("first", np.int32), ("second", np.int32), ("code", np.int32)], FILE)

#: Atoms of one set.
SIDE = struct("Side", [
    ("atoms", address("struct Atom")),  # (places)
    ("positions", address("const double")),  # (atoms, 3)
    ("index", address("const int")),  # (places) the atom, -1 for none
    ("home", address("const double")),  # (places, 3) where the atom was found
    ("centres", address("const double")),  # (supers, 3)
    ("groups", address("struct Box")),  # (places / 4)
    ("boxes", address("struct Box")),  # (supers)
    ("forces", address("float")),  # (places, 3)
    ("energies", address("double")),  # (places, terms)
    ("out_forces", address("float")),  # (atoms, 3)
    ("out_energies", address("double")),  # (atoms, terms)
    ("supers", np.int32),
], FILE)

#: Struct ClusterTask of clusters.cu.
TASK = struct("ClusterTask", [
    ("first", SIDE),
    ("second", SIDE),
    ("basis", np.float64, (3, 3)),  # lattice vectors as rows
    ("inverse", np.float64, (3, 3)),  # its inverse; zeros: not periodic
    ("entries", address("struct Entry")),  # (room)
    ("items", address("struct Item")),  # (room / chunk)
    ("masks", address("unsigned int")),  # (mask_room, 8) bits of lanes whose pair is excluded, by cluster
    ("starts", address("const int")),  # (supers + 1) of the pairs excluded in
    ("excluded", address("const struct Excluded")),
    ("used", address("unsigned long long")),  # entries, masks, clusters in entries
    ("table", address("const struct Table")),  # (types, types)
    ("virial", address("double")),  # (3, 3)
    ("counts", address("unsigned long long")),  # (bins)
    ("u", np.float32, MAX_UNIFORMS),  # what the programs read
    ("reach", np.float32),
    ("reach2", np.float32),
    ("cutoff2", np.float32),
    ("softening2", np.float32),
    ("per_length", np.float32),  # bins
    ("same", np.int32),  # whether both sets are one
    ("types", np.int32),
    ("chunk", np.int32),  # entries of an item
    ("room", np.int32),
    ("mask_room", np.int32),
    ("item_count", np.int32),
    ("bins", np.int32),
    ("copies", np.int32),  # of the counts in shared memory
], FILE)

#: Bytes of the structs Entry and Item.
ENTRY, ITEM = 32, 8

#: Warps of a block that builds, sums, counts.
WARPS = {"build": 4, "force": 4, "distances": 8}

#: How much farther pairs are listed than asked, A: rounding.
MARGIN = 1e-3

#: Bytes of shared memory for counts.
COUNTS = 40_000

#: What the kernels that count distances are compiled with: macros, and atoms without parameters.
DISTANCES = {"REAL": "float", "WORDS": 1, "DISTANCES": 1}
POINTS = "struct alignas(16) Atom { float x, y, z; };\n"


class Clusters:
    """Atoms in super clusters of 64: eight clusters of 8 and sixteen groups of 4, near each other.

    Parameters
    ----------
    positions : (N, 3) float64, A
    basis, inverse : (3, 3) float64
        Of the lattice; an inverse of zeros where there is none.

    Attributes
    ----------
    home : (N, 3) float64
        The positions, wrapped.
    index : (places,) int32
        The atom of each place, -1 for none.
    """

    def __init__(self, positions: Floats, basis: Floats, inverse: Floats) -> None:
        self.home = positions - np.floor(positions @ inverse) @ basis
        self.index = _ordered(self.home)
        self.supers = len(self.index) // SUPER
        real = self.index >= 0
        self.homes = np.where(real[:, None], self.home[self.index], 0.0)
        count = real.reshape(-1, SUPER).sum(1)
        self.centres = self.homes.reshape(-1, SUPER, 3).sum(1) / count[:, None]


def _ordered(positions: Floats) -> NDArray[np.int32]:
    """Return the atoms by place: columns along z, runs of 64 in them, halved along z, y, x and z."""
    low = positions.min(0)
    extent = positions.max(0) - low
    extent = np.maximum(extent, max(0.1 * float(extent.max()), 1e-3))
    side = (SUPER * extent.prod() / len(positions)) ** (1 / 3)
    across = np.maximum(1, np.rint(extent[:2] / side)).astype(np.int64)
    at = np.minimum(((positions[:, :2] - low[:2]) / extent[:2] * across).astype(np.int64), across - 1)
    column = at[:, 0] * across[1] + at[:, 1]
    order = np.lexsort((positions[:, 2], column))
    count = np.bincount(column, minlength=int(across.prod()))
    padded = -(-count // SUPER) * SUPER
    shift = (np.cumsum(padded) - padded) - (np.cumsum(count) - count)
    index = np.full(int(padded.sum()), -1, np.int32)
    index[np.arange(len(positions)) + shift[column[order]]] = order
    for size, axis in ((64, 2), (32, 1), (16, 0), (8, 2)):
        rows = index.reshape(-1, size)
        along = np.where(rows >= 0, positions[rows, axis], np.inf)
        index = np.take_along_axis(rows, np.argsort(along, axis=1, kind="stable"), 1).ravel()
    return index


def lattice(cell: Cell | None) -> tuple[Floats, Floats]:
    """Return the basis of a cell and its inverse; zeros without one."""
    if cell is None:
        return np.zeros((3, 3)), np.zeros((3, 3))
    basis = cell.vectors if cell.orthogonal else cell.reduced
    return basis, np.asarray(np.linalg.inv(basis), np.float64)


def geometry(cell: Cell | None, reach: float) -> Any:
    """Return a task with what it says of the lattice and the reach (A).

    Raises
    ------
    InputError
        When the cell is so small that more than a hundred images are in range along an axis.
    """
    task = np.zeros((), TASK)
    task["basis"], task["inverse"] = lattice(cell)
    if (reach * np.linalg.norm(task["inverse"], axis=0) > 100).any():
        raise InputError(f"the cell is too small for pairs up to {reach:g} A: more than a hundred images are in range",
                         "take a supercell, or use {engine cpu}")
    task["reach"], task["reach2"] = reach, reach * reach
    return task


class Held:
    """Memory on a GPU of one list, by name."""

    def __init__(self, gpu: Any) -> None:
        self.gpu = gpu
        self.blocks: dict[str, Any] = {}

    def keep(self, name: str, array: NDArray[Any]) -> int:
        """Return the address of a copy."""
        self.blocks[name] = self.gpu.keep(array)
        return int(self.blocks[name].address)

    def take(self, name: str, size: int) -> int:
        """Return the address of so many bytes."""
        self.blocks.pop(name, None)  # freed before the new one is taken
        self.blocks[name] = self.gpu.take(max(size, 16))
        return int(self.blocks[name].address)

    def place(self, name: str, clusters: Clusters, records: NDArray[np.float32]) -> Any:
        """Return the record of atoms that are on the GPU, without what sums need."""
        side = np.zeros((), SIDE)
        side["atoms"] = self.keep(f"{name} atoms", records)
        side["index"] = self.keep(f"{name} index", clusters.index)
        side["home"] = self.keep(f"{name} home", clusters.homes)
        side["centres"] = self.keep(f"{name} centres", clusters.centres)
        side["groups"] = self.take(f"{name} groups", BOX.itemsize * len(clusters.index) // 4)
        side["boxes"] = self.take(f"{name} boxes", BOX.itemsize * clusters.supers)
        side["supers"] = clusters.supers
        return side


class PairsInRange:
    """A sum over the pairs within a cutoff, ready to search and run."""

    def __init__(self, work: PairSum) -> None:
        if work.layout not in ("auto", "8x4"):
            raise UsageError("layout", "of the cuda engine is 8x4", value=work.layout)
        self.work = work
        self.programs = Programs(work)
        self.macros = self.programs.macros | {"VIRIAL": int(work.virial), "DISTANCES": 0}

    def kernel(self, gpu: Any, name: str) -> Any:
        """Return a kernel."""
        macros = self.macros | {"WARPS": WARPS["force" if name != "build" else name]}
        return gpu.kernel(FILE, name, macros, self.programs.source, TASK.itemsize)

    def search(self, atoms: Atoms, others: Atoms | None = None) -> ClusterList:
        """Return the pairs in range, see :mod:`vmdpotential.engines.pairs`."""
        return ClusterList(self, atoms, others)

    def run(self, atoms: Atoms, others: Atoms | None = None) -> PairResult:
        """Search, and return the sum."""
        return self.search(atoms, others).run(atoms.positions, None if others is None else others.positions)


class ClusterList:
    """Pairs in range of some atoms, on a GPU."""

    def __init__(self, pairs: PairsInRange, atoms: Atoms, others: Atoms | None) -> None:
        self.pairs = pairs
        self.counts = [len(atoms)] + ([len(others)] if others is not None else [])
        self.slots = 0
        self.empty = not min(self.counts)
        reach = pairs.work.reach
        assert reach is not None
        self.task = task = geometry(pairs.work.cell, reach + MARGIN)
        if self.empty:
            return
        programs, terms = pairs.programs, len(pairs.work.potential.terms)
        sides = [atoms] + ([others] if others is not None else [])
        clusters = [Clusters(side.positions, task["basis"], task["inverse"]) for side in sides]
        left_out = _excluded(clusters[0], atoms.exclusions if others is None else None, pairs.work.cell)
        self.gpu = gpu = device.idlest(1)[0]
        with gpu, device.errors(f"GPU {gpu.number} ({gpu.name})"):
            self.held = held = Held(gpu)
            for name, of, found in zip(("first", "second"), sides, clusters, strict=False):
                task[name] = side = held.place(name, found, programs.records(of, found.index))
                side["forces"] = held.take(f"{name} forces", 12 * len(found.index))
                side["out_forces"] = held.take(f"{name} out forces", 12 * len(of))
                if pairs.work.energy:
                    side["energies"] = held.take(f"{name} energies", 8 * terms * len(found.index))
                    side["out_energies"] = held.take(f"{name} out energies", 8 * terms * len(of))
                task[name] = side
            task["same"] = others is None
            if others is None:
                task["second"] = task["first"]
            table = programs.table(atoms)
            task["table"], task["types"] = held.keep("table", table), len(table)
            task["starts"], task["excluded"] = (held.keep(n, a) for n, a in zip(("starts", "excluded"), left_out,
                                                                               strict=True))
            task["virial"] = held.take("virial", 72)
            task["used"] = held.take("used", 24)
            task["u"][: len(programs.uniforms)] = programs.uniforms
            task["cutoff2"], task["softening2"] = programs.scaled.cutoff2, programs.scaled.softening2
            self._send([side.positions for side in sides])
            self._queue("place", 256)
            self._queue("bound", 64, supers=True)
            self._build(clusters)

    def _build(self, clusters: list[Clusters]) -> None:
        """Make the list, anew with more room if it does not fit."""
        task, gpu, held = self.task, self.gpu, self.held
        expected = _entries(clusters[-1], float(task["reach"]), bool(task["same"])) * clusters[0].supers
        task["chunk"] = entries_of_items(expected, gpu.multiprocessors)
        used = np.array([expected * 1.3 + WARPS["build"] * int(task["chunk"]) * clusters[0].supers,
                         64 * clusters[0].supers, 0]).astype(np.uint64)
        while True:
            chunk = int(task["chunk"])
            task["room"], task["mask_room"] = -(-int(used[0]) // chunk) * chunk, max(1, int(used[1]))
            task["entries"] = held.take("entries", ENTRY * int(task["room"]))
            task["items"] = held.take("items", ITEM * (int(task["room"]) // chunk))
            task["masks"] = held.take("masks", 32 * int(task["mask_room"]))
            self.build(None)
            device.driver().memcpy_dtoh(used, int(task["used"]))
            if used[0] <= task["room"] and used[1] <= task["mask_room"]:
                break
        self.slots = int(used[2]) * 32
        task["item_count"] = int(used[0]) // chunk

    def build(self, stream: Any) -> None:
        """Queue the kernel that makes the list."""
        task, warps = self.task, WARPS["build"]
        device.driver().memset_d32_async(int(task["used"]), 0, 6, stream)
        kernel = self.pairs.kernel(self.gpu, "build")
        kernel.prepared_async_call((int(task["first"]["supers"]), 1, 1), (32 * warps, 1, 1), stream, task.tobytes())

    def _send(self, positions: list[Floats]) -> None:
        for name, values in zip(("first", "second"), positions, strict=False):
            self.task[name]["positions"] = self.gpu.send(f"pairs {name}", np.asarray(values, np.float64), None)
        if self.task["same"]:
            self.task["second"]["positions"] = self.task["first"]["positions"]

    def _queue(self, name: str, threads: int, stream: Any = None, supers: bool = False) -> None:
        """Queue a kernel with a thread for each place or super cluster."""
        task = self.task
        count = int(task["first"]["supers"]) + (0 if task["same"] else int(task["second"]["supers"]))
        blocks = -(-count * (1 if supers else SUPER) // threads)
        kernel = self.pairs.kernel(self.gpu, name)
        kernel.prepared_async_call((blocks, 1, 1), (threads, 1, 1), stream, task.tobytes())

    def force(self, stream: Any = None) -> None:
        """Queue the kernel that sums over the pairs."""
        if self.task["item_count"]:
            blocks = -(-int(self.task["item_count"]) // WARPS["force"])
            self.pairs.kernel(self.gpu, "force").prepared_async_call(
                (blocks, 1, 1), (32 * WARPS["force"], 1, 1), stream, self.task.tobytes())

    def launch(self, stream: Any = None) -> None:
        """Queue all kernels of a run."""
        self._queue("place", 256, stream)
        self.force(stream)
        self._queue("collect", 256, stream)

    def run(self, positions: Floats, others: Floats | None = None) -> PairResult:
        """Sum for the atoms, see :class:`vmdpotential.engines.pairs.PairList`."""
        work = self.pairs.work
        forces = [np.zeros((n, 3), np.float32) for n in self.counts]
        energies = [np.zeros((n, len(work.potential.terms))) for n in self.counts]
        virial = np.zeros((3, 3))
        if not self.empty:
            with self.gpu as gpu, device.errors(f"GPU {gpu.number} ({gpu.name})"):
                self._send([positions] + ([others] if others is not None else []))
                self.launch()
                copy = device.driver().memcpy_dtoh
                for name, found, its in zip(("first", "second"), forces, energies, strict=False):
                    copy(found, int(self.task[name]["out_forces"]))
                    if work.energy:
                        copy(its, int(self.task[name]["out_energies"]))
                copy(virial, int(self.task["virial"]))
        results = [PairResult(f.astype(np.float64), e if work.energy else None, virial if work.virial else None)
                   for f, e in zip(forces, energies, strict=True)]
        if len(results) == 1:
            return results[0]
        own = results[0]
        return PairResult(own.forces, own.energies, own.virial, None, results[1])


def entries_of_items(expected: float, multiprocessors: int) -> int:
    """Return how many entries of a list an item of work has, so that all multiprocessors are busy."""
    return int(min(64, max(8, 2 ** int(np.log2(max(1, expected / (64 * multiprocessors)))))))


def _entries(second: Clusters, reach: float, same: bool) -> float:
    """Return about how many entries a super cluster has, where atoms are as dense as over all."""
    low, high = second.home.min(0), second.home.max(0)
    density = len(second.home) / float(np.prod(np.maximum(high - low, 1.0)))
    side = (SUPER / density) ** (1 / 3)
    volume = side**3 + 6 * side**2 * reach + 3 * np.pi * side * reach**2 + 4 / 3 * np.pi * reach**3
    return float(density * volume / 4 * (0.5 if same else 1.0))


def _excluded(clusters: Clusters, exclusions: Integers | None,
              cell: Cell | None) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return where the pairs excluded of each super cluster start (supers + 1,), and the pairs (EXCLUDED)."""
    if exclusions is None or not len(exclusions):
        return np.zeros(clusters.supers + 1, np.int32), np.zeros(1, EXCLUDED)
    places = np.empty(len(clusters.home), np.int64)
    real = np.flatnonzero(clusters.index >= 0)
    places[clusters.index[real]] = real
    pairs = np.asarray(exclusions, np.int64)
    image = np.zeros((len(pairs), 3), np.int64)
    if cell is not None:
        apart = clusters.home[pairs[:, 0]] - clusters.home[pairs[:, 1]]
        image = np.rint((apart - cell.minimum_image(apart)) @ lattice(cell)[1]).astype(np.int64)
    first, second = places[pairs].T
    i, j = first // SUPER, second // SUPER
    # the order that the kernel counts in: see neighbours() in clusters.cu
    steps = image @ np.array([1, 256, 65536])
    turned = np.where(i == j, (steps < 0) | ((steps == 0) & (first > second)), ((i + j) % 2 != 0) != (i < j))
    first, second = np.where(turned, second, first), np.where(turned, first, second)
    image = np.where(turned[:, None], -image, image)
    order = np.argsort(first // SUPER, kind="stable")
    made = np.zeros(len(pairs), EXCLUDED)
    made["first"], made["second"] = first[order] % SUPER, second[order]
    made["code"] = ((image + 128) @ np.array([1, 256, 65536]))[order]
    return np.searchsorted(first[order] // SUPER, np.arange(clusters.supers + 1)).astype(np.int32), made


def count_distances(positions: Floats, others: Floats | None, cell: Cell | None, reach: float,
                    bins: int) -> NDArray[np.int64]:
    """Return how many pairs lie in each range of distance, see :class:`vmdpotential.engines.Engine`."""
    task = geometry(cell, reach)
    counts = np.zeros(bins, np.uint64)
    sets = [positions] if others is None else [positions, others]
    if not all(len(of) for of in sets):
        return counts.astype(np.int64)
    clusters = [Clusters(np.asarray(of, np.float64), task["basis"], task["inverse"]) for of in sets]
    gpu = device.idlest(1)[0]
    with gpu, device.errors(f"GPU {gpu.number} ({gpu.name})"):
        held = Held(gpu)
        for name, found in zip(("first", "second"), clusters, strict=False):
            task[name] = held.place(name, found, np.zeros((len(found.index), 4), np.float32))
            task[name]["positions"] = held.keep(f"{name} positions", found.home)
        task["same"] = others is None
        if others is None:
            task["second"] = task["first"]
        task["bins"], task["per_length"] = bins, bins / reach
        task["copies"] = min(WARPS["distances"], COUNTS // (4 * bins))
        task["counts"] = held.keep("counts", counts)
        launch = counting(gpu, task)
        for name in ("place", "bound", "distances"):
            launch(name, None)
        device.driver().memcpy_dtoh(counts, int(task["counts"]))
    return counts.astype(np.int64)


def counting(gpu: Any, task: Any) -> Any:
    """Return what queues a kernel for a task of distances on a stream."""
    warps = WARPS["distances"]
    macros = DISTANCES | {"WARPS": warps}
    supers = int(task["first"]["supers"])
    every = supers + (0 if task["same"] else int(task["second"]["supers"]))
    shapes = {"place": (-(-every * SUPER // 256), 256, 0), "bound": (-(-every // 64), 64, 0),
              "distances": (supers, 32 * warps, max(8, 4 * int(task["bins"]) * int(task["copies"])))}

    def launch(name: str, stream: Any) -> None:
        blocks, threads, shared = shapes[name]
        kernel = gpu.kernel(FILE, name, macros, POINTS, TASK.itemsize)
        kernel.prepared_async_call((blocks, 1, 1), (threads, 1, 1), stream, task.tobytes(), shared_size=shared)

    return launch
