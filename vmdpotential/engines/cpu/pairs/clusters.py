"""Atoms sorted into clusters, and the list of pairs of clusters in range, with the kernels of pairs/search.cu."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines import cells
from vmdpotential.errors import InputError
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, bind_kernel, call_kernel
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

KERNELS = KernelFile(Path(__file__).parents[3] / "pairs" / "search.cu")

#: Coordinate of empty slots in chunks, out of reach of every atom.
FAR_AWAY = 1e6

#: Largest extent of a chunk, A, unless three quarters of the reach is larger: in a dilute gas, the coordinates of a
#: larger chunk would lose digits in single precision.
CLOSE = 8.0

#: Ratio of the side of a column to that of a cube with as many atoms as a chunk: it makes clusters, each a quarter of a
#: chunk, more cubic, so that fewer chunks are in range of them.
FLAT = 1.15

#: Number of parts in which a list is made, and smallest number of chunks of atoms i in a part.
PARTS, LEAST = 64, 16


@dataclass(frozen=True)
class ClusterShape:
    """The layout of clusters.

    Parameters
    ----------
    m, n : int
        Number of atoms i of a cluster, and of atoms j of a chunk.
    real : numpy type
        Type of the numbers in chunks, float32 or float64.
    """

    m: int
    n: int
    real: Any

    @property
    def each(self) -> int:
        """Number of clusters of a chunk."""
        return self.n // self.m


@dataclass(frozen=True)
class CellBox:
    """A rectangular box that contains one image of every atom, for any periodic cell.

    Every lattice has such a unit cell, with the axes rotated so that the lattice vectors are lower triangular.

    Parameters
    ----------
    rotation : (3, 3) float64
        Rotation: positions times this matrix are coordinates along the axes of the box.
    vectors, inverse : (3, 3) float64
        The lattice vectors in these axes, as the rows of a lower triangular matrix, and its inverse; zeros without a
        cell.
    low, sides : (3,) float64, A
        Lower corner and sides of the box in these axes.
    """

    rotation: Floats
    vectors: Floats
    inverse: Floats
    low: Floats
    sides: Floats

    @classmethod
    def around(cls, cell: Cell | None, *sets: Floats) -> CellBox:
        """Return the box of a cell, or the bounding box of sets of positions (N, 3)."""
        if cell is None:
            positions = np.concatenate(sets)
            low = positions.min(0) if len(positions) else np.zeros(3)
            sides = np.ptp(positions, axis=0) if len(positions) else np.zeros(3)
            return cls(np.eye(3), np.zeros((3, 3)), np.zeros((3, 3)), low, sides)
        vectors = cell.vectors if cell.orthogonal else cell.reduced
        rotation, upper = np.linalg.qr(vectors.T)
        sign = np.where(np.diagonal(upper) < 0, -1.0, 1.0)
        rotation, lower = rotation * sign, (upper.T * sign)
        return cls(np.ascontiguousarray(rotation), np.ascontiguousarray(lower), np.linalg.inv(lower), np.zeros(3),
                   np.diagonal(lower).copy())

    def shifts(self, reach: float, half: bool) -> Integers:
        """Return images (S, 3) within reach of the box, as multiples of lattice vectors; the first is (0, 0, 0).

        With `half`, only one of each two opposite images is returned.
        """
        if not self.vectors.any():
            return np.zeros((1, 3), np.int64)
        # solutions of |i a + j b + k c| < side + reach, for z, y and x successively
        results = []
        a, b, c = self.vectors
        most = self.sides + reach
        top = int(np.floor(most[2] / c[2]))
        for k in range(0 if half else -top, top + 1):
            y = k * c[1]
            for j in range(int(np.ceil((-most[1] - y) / b[1])), int(np.floor((most[1] - y) / b[1])) + 1):
                x = k * c[0] + j * b[0]
                for i in range(int(np.ceil((-most[0] - x) / a[0])), int(np.floor((most[0] - x) / a[0])) + 1):
                    if (k, j, i) > (0, 0, 0) or (not half and (k, j, i) != (0, 0, 0)):
                        results.append((i, j, k))
        if np.abs(results).max(initial=0) > 500:
            raise InputError("the periodic cell is too small for the cutoff", "use a supercell")
        return np.array([(0, 0, 0), *results], np.int64)


def aligned_array(shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
    """Return an uninitialised array that begins at a cache line, so that no vector in its rows crosses one."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory_block = np.empty(size + 64, np.uint8)
    first = -memory_block.ctypes.data % 64
    result: NDArray[Any] = memory_block[first : first + size].view(kind).reshape(shape)
    return result


class AtomClusters:
    """Atoms of one set, sorted into chunks and clusters.

    Parameters
    ----------
    shape : ClusterShape
    box : CellBox
        Box into which the atoms are wrapped.
    positions : (N, 3) float64, A
    rows : (R, N) float64
        Parameters of the atoms, which are stored after the coordinates in a chunk.
    lacks_term : (N,) bool
        Whether an atom lacks a term of the potential; these atoms are last in their clusters.
    reach : float, A
        Distance up to which pairs are listed.
    """

    def __init__(self, shape: ClusterShape, box: CellBox, positions: Floats, rows: Floats,
                 lacks_term: NDArray[np.bool_], reach: float) -> None:
        self.layout, self.box, self.positions = shape, box, positions
        if not np.isfinite(positions).all():
            raise InputError("a position is not a finite number")
        count, n = len(positions), shape.n
        extent = np.maximum(box.sides, 3.0)
        limit = max(0.75 * reach, CLOSE)
        side = min(FLAT * (n * np.prod(extent) / max(count, 1)) ** (1 / 3), limit)
        while np.prod(np.ceil(extent[:2] / side)) > max(2**20, 4 * count):
            side *= 2
        self.shape = np.maximum(np.rint(extent[:2] / side), 1).astype(np.int64)
        self.side = np.append(extent[:2] / self.shape, extent[2])
        columns = int(np.prod(self.shape))
        layers = min(4096, 2**32 // columns)
        self.slack = float(self.side[2] / layers)
        self.places = np.empty((count, 3))
        column, key = np.empty(count, np.int64), np.empty(count, np.int64)
        call_kernel(KERNELS["place_atoms"], 0, count, positions=positions, places=self.places, column=column, key=key,
             rotation=box.rotation, low=box.low, vectors=box.vectors, sides=box.sides, side=self.side,
             shape=self.shape, layers=layers)
        order = cells.order(key, columns * layers)
        self.columns = np.zeros(columns + 1, np.int64)
        arguments = {"order": order, "column": column, "places": self.places, "start": self.columns,
                     "columns": columns, "tallest": limit, "n": n}
        call_kernel(KERNELS["make_chunks"], 0, count, slots=None, **arguments)
        chunks = int(self.columns[-1])
        memory.require(chunks * n * (8 * (3 + len(rows)) + 40), "the list of pairs", "use fewer atoms")
        self.slots = np.full(chunks * n, -1, np.int64)
        call_kernel(KERNELS["make_chunks"], 0, count, slots=self.slots, **arguments)
        self.chunk_boxes = np.empty((chunks, 6))
        call_kernel(KERNELS["make_clusters"], 0, chunks, slots=self.slots, places=self.places,
             lacks=lacks_term.astype(np.float64), boxes=self.chunk_boxes, m=shape.m, n=n)
        padded = np.append(rows, np.zeros((len(rows), 1)), axis=1).astype(shape.real)  # 0 in empty slots
        self.rows = padded[:, self.slots].reshape(len(rows), chunks, n).swapaxes(0, 1)
        #: Clusters of which the second half of the atoms lacks a term.
        self.light_clusters = np.append(lacks_term, True)[self.slots].reshape(-1, shape.m)[:, shape.m // 2:].all(1)

    def __len__(self) -> int:
        return len(self.positions)

    def centre(self, grid: float) -> None:
        """Set the centres of chunks to multiples of `grid`, and store the positions of the search."""
        middle = (self.chunk_boxes[:, :3] + self.chunk_boxes[:, 3:]) / 2
        centres = np.rint(middle / grid) * grid
        self.centres = centres.astype(self.layout.real)
        self.search_positions, self.search_coordinates = np.empty((2, len(self.rows), 3, self.layout.n))
        call_kernel(KERNELS["keep_positions"], 0, len(self.rows), slots=self.slots, positions=self.positions,
             places=self.places, centres=centres, before=self.search_positions, homes=self.search_coordinates,
             n=self.layout.n)
        # square of half the shortest distance between opposite faces of the cell
        half_height2 = 0.25 / max(float((self.box.inverse**2).sum(0).max()), 1e-300)
        box = self.box
        self._write = bind_kernel(KERNELS["write_positions"], slots=self.slots, before=self.search_positions,
                           homes=self.search_coordinates, chunks=len(self.rows), rows=3 + self.rows.shape[1],
                           rotation=box.rotation, vectors=box.vectors, inverse=box.inverse, near2=half_height2,
                           n=self.layout.n, written=threads.WRITTEN)

    def chunks(self) -> NDArray[Any]:
        """Return the chunks (C, 3 + R, N), without positions so far."""
        atoms = aligned_array((len(self.rows), 3 + self.rows.shape[1], self.layout.n), self.layout.real)
        atoms[:, :3] = FAR_AWAY
        atoms[:, 3:] = self.rows
        return atoms

    def write(self, positions: Floats, atoms: NDArray[Any], counters: Integers | None = None,
              counter: int = threads.TAKEN, longest: float = np.inf) -> float:
        """Write positions to chunks; return the largest displacement of an atom since the search, A.

        It is infinite if a position is not finite. If threads share `counters`, each writes a part of the chunks, and
        all stop when an atom has moved by more than `longest`.
        """
        displacement, single = np.empty(1), self.layout.real is np.float32
        self._write(0, 1, positions=positions, atoms=atoms if single else None, wide_atoms=None if single else atoms,
                    displacement=displacement, counters=threads.counters() if counters is None else counters,
                    limit2=longest**2, counter=counter)
        return math.sqrt(displacement[0])

    def in_single_precision(self, atoms: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32], int]:
        """Return chunks, or their coordinates alone, in float32, the centres, and the numbers of a chunk."""
        if atoms.dtype != np.float32:
            atoms = np.ascontiguousarray(atoms[:, :3], np.float32)
        return atoms, self.centres.astype(np.float32), atoms.shape[1] * atoms.shape[2]


@dataclass(frozen=True)
class PartialList:
    """The list of some clusters, see pairs/search.cu."""

    entries: Integers
    chunks: NDArray[Any]
    bits: NDArray[Any]
    masks: NDArray[Any]


@dataclass(frozen=True)
class ClusterSearch:
    """The result of a search for pairs.

    Parameters
    ----------
    parts : list of PartialList
        The list of pairs.
    steps, remainders : (S, 3) float32 or float64, A
        Displacement of atoms i for each image: its multiple of the grid of chunk centres, and the remainder.
    chunks : list of arrays (C, 3 + R, N)
        Chunks of one set or of both.
    """

    parts: list[PartialList]
    steps: NDArray[Any]
    remainders: NDArray[Any]
    chunks: list[NDArray[Any]]


def search_cluster_pairs(box: CellBox, i: AtomClusters, j: AtomClusters, reach: float, exclusions: Integers | None,
           around: bool, corrects: bool) -> ClusterSearch:
    """Return all pairs of clusters with atoms within reach (A), each pair of atoms once.

    Parameters
    ----------
    i, j : Clusters
        The same object for pairs within one set, or two sets.
    exclusions : (E, 2) int64 or None
        Excluded pairs, of one set.
    around : bool
        Whether the nearest image may differ from that of rounded fractional coordinates.
    corrects : bool
        Whether excluded pairs are listed too, because they contribute a correction.
    """
    same, shape = i is j, i.layout
    images = box.shifts(reach, same)
    shifts = images @ box.vectors
    largest = float(np.abs(shifts).max() + np.max(box.sides) + 2 * reach)
    grid = 2.0 ** (np.ceil(np.log2(largest)) - 22)
    steps = np.rint(shifts / grid) * grid
    remainders = (shifts - steps).astype(shape.real)
    steps = steps.astype(shape.real)
    for item in {id(i): i, id(j): j}.values():
        item.centre(grid)
    atoms_i = i.chunks()
    atoms_j = atoms_i if same else j.chunks()
    i.write(i.positions, atoms_i)
    if not same:
        j.write(j.positions, atoms_j)
    starts = partners = None
    if exclusions is not None and len(exclusions):
        slot = np.empty(len(i), np.int64)
        real = np.flatnonzero(i.slots >= 0)
        slot[i.slots[real]] = real
        starts = np.zeros(len(i.slots) + 2, np.int64)
        partners = np.empty(2 * len(exclusions), np.int64)
        call_kernel(KERNELS["find_partners"], 0, len(exclusions), pairs=np.ascontiguousarray(exclusions, np.int64),
                    slot=slot,
             places=i.places, start=starts, partners=partners, slots=len(i.slots), vectors=box.vectors,
             inverse=box.inverse, around=int(around))
    chunks_i, each = len(i.chunk_boxes), shape.each
    size = max(-(-chunks_i // PARTS), LEAST)
    parts: list[PartialList | None] = [None] * -(-chunks_i // size)
    density = len(j) / max(float(np.prod(box.sides)), 1.0)
    near = 4.2 * (reach + 3 * CLOSE / 4) ** 3 * density / shape.n / (2 if same else 1) + 8

    (single_i, centres_i, stride_i), (single_j, centres_j, stride_j) = (
        item.in_single_precision(atoms) for item, atoms in ((i, atoms_i), (j, atoms_j)))
    single_steps, single_remainders = steps.astype(np.float32), remainders.astype(np.float32)
    list_clusters = bind_kernel(
        KERNELS["list_clusters"], slots_i=i.slots, slots_j=j.slots, atoms_i=single_i, atoms_j=single_j,
        centres_i=centres_i, centres_j=centres_j, boxes_i=i.chunk_boxes, boxes_j=j.chunk_boxes, columns=j.columns,
        shifts=shifts, steps=single_steps, remainders=single_remainders, images=images, starts=starts,
        partners=partners, light=i.light_clusters, stride_i=stride_i, stride_j=stride_j, image_count=len(images),
        chunk_count=len(j.chunk_boxes) + 1, shape=j.shape, side=j.side, slack=j.slack, reach=reach, m=shape.m,
        n=shape.n, same=same, corrects=corrects)

    def one_part(first: int, _: int) -> None:
        begin, end = first * size, min(first * size + size, chunks_i)
        entries = np.empty((4 * size * each + len(shifts), 9), np.int64)
        chunks, bits = (np.empty(int(size * each * near) + 1024, kind) for kind in (np.int32, np.uint16))
        masks = np.empty((8 * size * each + 1024, shape.m, 2), np.uint16)
        counts = np.zeros(4, np.int64)
        scratch = np.zeros((6, len(j.chunk_boxes) + 1), np.int64)
        while True:
            list_clusters(begin, end, scratch=scratch, entries=entries, chunks=chunks, bits=bits, masks=masks,
                          counts=counts, max_entries=len(entries), max_chunks=len(chunks), max_masks=len(masks))
            begin = int(counts[3])
            if begin == end:
                break
            entries, chunks, bits, masks = (np.resize(a, (2 * len(a), *a.shape[1:]))
                                            for a in (entries, chunks, bits, masks))
        parts[first] = PartialList(entries[: counts[0]].copy(), chunks[: counts[1]].copy(), bits[: counts[1]].copy(),
                                   masks[: counts[2]].copy())

    threads.run(one_part, len(parts), "list of pairs")
    return ClusterSearch([part for part in parts if part is not None and len(part.entries)], steps, remainders,
                  [atoms_i] if same else [atoms_i, atoms_j])
