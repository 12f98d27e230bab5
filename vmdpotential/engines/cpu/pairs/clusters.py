"""Atoms sorted into clusters, and the list of pairs of clusters in range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.compiling import threads
from vmdpotential.engines.cpu import cells
from vmdpotential.errors import InputError
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Largest extent of a chunk, A, unless three quarters of the reach is larger: in a dilute gas, the coordinates of a
#: larger chunk would lose digits in single precision.
CLOSE = 8.0

#: Ratio of the side of a column to that of a cube with as many atoms as a chunk: it makes clusters, each a quarter of a
#: chunk, more cubic, so that fewer chunks are in range of them.
FLAT = 1.15

#: Number of parts in which a list is made, and smallest number of chunks of atoms i in a part.
PARTS, LEAST = 64, 16


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


def aligned(shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
    """Return an uninitialised array that begins at a cache line, so that no vector in its rows crosses one."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory_block = np.empty(size + 64, np.uint8)
    first = -memory_block.ctypes.data % 64
    result: NDArray[Any] = memory_block[first : first + size].view(kind).reshape(shape)
    return result


class Clusters:
    """Atoms of one set, sorted into chunks and clusters.

    Parameters
    ----------
    kernel : module
        Compiled from :mod:`~vmdpotential.engines.cpu.pairs.search_kernel`.
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

    def __init__(self, kernel: Any, box: CellBox, positions: Floats, rows: Floats, lacks_term: NDArray[np.bool_],
                 reach: float) -> None:
        self.box, self.positions = box, positions
        if not np.isfinite(positions).all():
            raise InputError("a position is not a finite number")
        count, n = len(positions), kernel.N
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
        kernel.place(positions, box.rotation, box.low, box.vectors, box.sides, self.shape, self.side, layers,
                     self.places, column, key)
        order = cells.order(key, columns * layers)
        self.columns = np.zeros(columns + 1, np.int64)
        none = np.empty(0, np.int64)
        chunks = kernel.make_chunks(order, column, self.places, limit, none, self.columns)
        memory.require(chunks * n * (8 * (3 + len(rows)) + 40), "the list of pairs", "use fewer atoms")
        self.slots = np.full(chunks * n, -1, np.int64)
        kernel.make_chunks(order, column, self.places, limit, self.slots, self.columns)
        sort_key = lacks_term.astype(np.float64)[:, None]
        kernel.make_clusters(self.slots, self.places, sort_key)
        self.chunk_boxes = np.empty((chunks, 6))
        kernel.bound(self.slots, self.places, self.chunk_boxes)
        self.rows = np.empty((chunks, len(rows), n), kernel.REAL)
        self.light_clusters = np.empty(chunks * kernel.EACH, np.bool_)
        kernel.fill(self.slots, rows, sort_key, self.rows, self.light_clusters)

    def __len__(self) -> int:
        return len(self.positions)

    def centre(self, kernel: Any, grid: float) -> None:
        """Set the centres of chunks to multiples of `grid`, and store the positions of the search."""
        middle = (self.chunk_boxes[:, :3] + self.chunk_boxes[:, 3:]) / 2
        self.centres = (np.rint(middle / grid) * grid).astype(kernel.REAL)
        self.search_positions, self.search_coordinates = (np.empty((len(self.rows), 3, kernel.N)) for _ in range(2))
        kernel.remember(self.slots, self.positions, self.places, self.centres, self.search_positions,
                        self.search_coordinates)
        # square of half the shortest distance between opposite faces of the cell
        self.half_height2 = 0.25 / max(float((self.box.inverse**2).sum(0).max()), 1e-300)

    def chunks(self, kernel: Any) -> NDArray[Any]:
        """Return the chunks (C, 3 + R, N), without positions so far."""
        atoms = aligned((len(self.rows), 3 + self.rows.shape[1], kernel.N), kernel.REAL)
        atoms[:, :3] = kernel.FAR
        atoms[:, 3:] = self.rows
        return atoms

    def write(self, kernel: Any, positions: Floats, atoms: NDArray[Any], counters: Integers | None = None,
              counter: int = threads.TAKEN, longest: float = np.inf) -> float:
        """Write positions to chunks; return the largest displacement of an atom since the search, A.

        It is infinite if a position is not finite. If threads share `counters`, each writes a part of the chunks, and
        all stop when an atom has moved by more than `longest`.
        """
        box = self.box
        return math.sqrt(kernel.write_places(
            threads.counters() if counters is None else counters, counter, longest**2, self.slots, positions,
            box.rotation, self.search_positions, box.vectors, box.inverse, self.half_height2,
            self.search_coordinates, atoms))


@dataclass(frozen=True)
class PartialList:
    """The list of some clusters, see :mod:`~vmdpotential.engines.cpu.pairs.search_kernel`."""

    entries: Integers
    chunks: NDArray[Any]
    bits: NDArray[Any]
    masks: NDArray[Any]


@dataclass(frozen=True)
class Search:
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


def search(kernel: Any, box: CellBox, i: Clusters, j: Clusters, reach: float, exclusions: Integers | None,
           around: bool, corrects: bool) -> Search:
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
    same = i is j
    images = box.shifts(reach, same)
    shifts = images @ box.vectors
    largest = float(np.abs(shifts).max() + np.max(box.sides) + 2 * reach)
    grid = 2.0 ** (np.ceil(np.log2(largest)) - 22)
    steps = np.rint(shifts / grid) * grid
    remainders = (shifts - steps).astype(kernel.REAL)
    steps = steps.astype(kernel.REAL)
    for item in {id(i): i, id(j): j}.values():
        item.centre(kernel, grid)
    atoms_i = i.chunks(kernel)
    atoms_j = atoms_i if same else j.chunks(kernel)
    i.write(kernel, i.positions, atoms_i)
    if not same:
        j.write(kernel, j.positions, atoms_j)
    starts, partners = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if exclusions is not None and len(exclusions):
        slot = np.empty(len(i), np.int64)
        real = np.flatnonzero(i.slots >= 0)
        slot[i.slots[real]] = real
        starts = np.zeros(len(i.slots) + 2, np.int64)
        partners = np.empty(2 * len(exclusions), np.int64)
        kernel.exclude(np.ascontiguousarray(exclusions, np.int64), slot, i.places, box.vectors, box.inverse,
                       int(around), starts, partners)
        starts = starts[:-1]
    numbers = np.array([kernel.code(*image) for image in images.tolist()], np.int64)
    chunks_i, each = len(i.chunk_boxes), kernel.EACH
    size = max(-(-chunks_i // PARTS), LEAST)
    parts: list[PartialList | None] = [None] * -(-chunks_i // size)
    density = len(j) / max(float(np.prod(box.sides)), 1.0)
    near = 4.2 * (reach + 3 * CLOSE / 4) ** 3 * density / kernel.N / (2 if same else 1) + 8

    def one_part(first: int, _: int) -> None:
        begin, end = first * size, min(first * size + size, chunks_i)
        entries = np.empty((4 * size * each + len(shifts), 9), np.int64)
        chunks, bits = (np.empty(int(size * each * near) + 1024, kind) for kind in (np.int32, np.uint16))
        masks = np.empty((8 * size * each + 1024, kernel.M, 2), np.uint16)
        counts = np.zeros(3, np.int64)
        while True:
            begin = kernel.search(begin, end, same, i.slots, atoms_i, i.centres, i.chunk_boxes, j.slots, atoms_j,
                                  j.centres, j.chunk_boxes, j.columns, j.shape, j.side, np.zeros(3), j.slack, shifts,
                                  steps, remainders, numbers, reach, starts, partners, corrects, i.light_clusters,
                                  entries, chunks, bits, masks, counts)
            if begin == end:
                break
            entries, chunks, bits, masks = (np.resize(a, (2 * len(a), *a.shape[1:]))
                                            for a in (entries, chunks, bits, masks))
        parts[first] = PartialList(entries[: counts[0]].copy(), chunks[: counts[1]].copy(), bits[: counts[1]].copy(),
                                   masks[: counts[2]].copy())

    threads.run(one_part, len(parts), "list of pairs")
    return Search([part for part in parts if part is not None and len(part.entries)], steps, remainders,
                  [atoms_i] if same else [atoms_i, atoms_j])
