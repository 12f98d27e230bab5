"""Atoms sorted into clusters, and the list of pairs of clusters in range, on any engine: the kernels of search.cu."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats, Integers
from vmdpotential.engines import Engine
from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import coordinate_bounds
from vmdpotential.kernels.launch import KernelFile, launch_kernel
from vmdpotential.molecule.cell import Cell

#: The smallest and the largest coordinates of positions, (3,), A.
Bounds = tuple[Floats, Floats]

KERNELS = KernelFile(Path(__file__).with_name("search.cu"))

#: Number of threads of a warp, whose atoms are not in vectors but in records of their own.
WARP = 32

#: Largest extent of a chunk of a vector's atoms, A, unless three quarters of the reach is larger: in a dilute gas, the
#: coordinates of a larger chunk would lose digits in single precision.
CLOSE = 8.0

#: Ratio of the side of a column to that of a cube with as many atoms as a vector: it makes clusters, each a quarter of
#: a chunk, more cubic, so that fewer chunks are in range of them.
FLAT = 1.15

#: Number of bins of a column in the height of a chunk, least number of bins that there may be, and per atom.
LAYERS, MIN_BINS, BINS_PER_ATOM = 16, 2**17, 8

#: Largest number of columns, unless there are more atoms than a quarter of it.
MAX_COLUMNS = 2**20

#: Number of parts in which a list is made on a CPU, and least number of chunks of atoms i in a part.
PARTS, LEAST = 64, 16

#: Ratio of the memory for a part of a list to what uniformly distributed atoms need: a CPU's memory is used only where
#: it is written to.
ROOM = 2.5

#: Number of atoms or chunks that a thread of a CPU takes at a time.
GRAIN = 8192

#: Threads of a block of a GPU that makes the list of a chunk. Each warp fills items of its own.
LIST_THREADS = 2 * WARP

#: Distance beyond the reach up to which pairs are listed, A, to allow for the rounding of float32.
MARGIN = 1e-3


@dataclass(frozen=True)
class ClusterShape:
    """The layout of clusters.

    Parameters
    ----------
    m, n : int
        Number of atoms of a cluster i, and of a chunk j: as many as a vector has numbers, or eight clusters for a warp.
    real : numpy type
        Type of the numbers of atoms and sums, float32 or float64.
    packed : bool
        Whether the atoms in range of chunks with few of them are packed into vectors.
    """

    m: int
    n: int
    real: Any
    packed: bool = False

    @classmethod
    def of(cls, vector_size: int, real: Any) -> ClusterShape:
        """Return the fastest layout for so many float32 in a vector, or threads of a warp."""
        if vector_size == WARP:
            return cls(8, 2 * WARP, real)
        n = vector_size if real is np.float32 else vector_size // 2
        return cls(min(4, n), n, real, vector_size == 16 or n == 8)

    @property
    def for_warps(self) -> bool:
        """Whether the clusters are those of warps."""
        return self.n > WARP

    @property
    def suffix(self) -> str:
        """The ending of the kernels' names."""
        return "" if self.real is np.float32 else "_double"

    @property
    def empty(self) -> float:
        """Coordinate of places without an atom, which is out of reach of every atom, A."""
        return math.nan if self.for_warps else 1e6

    @property
    def entry_size(self) -> int:
        """Number of int64 of an entry of the list."""
        return 9 if not self.for_warps else 4 if self.real is np.float32 else 6

    def steps(self, rows: int) -> tuple[int, int, int]:
        """Return the numbers between chunks, atoms and rows: atoms are vectors' numbers, or records of four words."""
        if self.for_warps:
            record = -(-rows // 4) * 4
            return self.n * record, record, 1
        return rows * self.n, 1, self.n


@dataclass(frozen=True, eq=False)
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
    def around(cls, cell: Cell | None, *sets: Bounds) -> CellBox:
        """Return the box of a cell, or the bounding box of sets of positions."""
        if cell is None:
            low = np.min([low for low, _ in sets], 0)
            return cls(np.eye(3), np.zeros((3, 3)), np.zeros((3, 3)), low, np.max([high for _, high in sets], 0) - low)
        vectors = cell.vectors if cell.orthogonal else cell.reduced
        rotation, upper = np.linalg.qr(vectors.T)
        sign = np.where(np.diagonal(upper) < 0, -1.0, 1.0)
        rotation, lower = rotation * sign, (upper.T * sign)
        return cls(np.ascontiguousarray(rotation), np.ascontiguousarray(lower), np.linalg.inv(lower), np.zeros(3),
                   np.diagonal(lower).copy())

    @lru_cache(maxsize=16)  # noqa: B019 - frames have the same box
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


class AtomClusters:
    """Atoms of one set, sorted into chunks and clusters in the memory of an engine.

    Atoms are counted in bins, which are layers of columns along z, and each chunk has successive atoms of a column.

    Parameters
    ----------
    engine : Engine
    shape : ClusterShape
    box : CellBox
        Box into which the atoms are wrapped.
    positions : (N, 3) float64, A
    bounds : two (3,) float64, A
        The smallest and the largest of their coordinates.
    rows : (R, N) float32 or float64
        Parameters of the atoms, which are stored after the coordinates.
    lacks_term : (N,) bool
        Whether an atom lacks a term of the potential; these atoms are last in their clusters.
    reach : float, A
        Distance up to which pairs are listed.
    grid : float, A
        Unit of the coordinates of the chunks' centres.
    """

    def __init__(self, engine: Engine, shape: ClusterShape, box: CellBox, positions: Floats, bounds: Bounds,
                 rows: NDArray[Any], lacks_term: NDArray[np.bool_], reach: float, grid: float) -> None:
        self.engine, self.shape, self.box, self.grid = engine, shape, box, grid
        self.count, self.row_count = len(positions), 3 + len(rows)
        across, wraps, corner, extent, tallest = self._bins(positions, bounds, reach)
        #: Numbers of columns along x and y, and their sides and the height, A.
        self.extent, self.across, self.side = extent, across[:2], np.append(extent[:2] / across[:2], extent[2])
        columns, layers, count, n = int(across[0] * across[1]), int(across[2]), len(positions), shape.n
        places, bins = engine.empty((count, 3), np.float64), engine.empty(count, np.int32)
        counts = engine.zeros(columns * layers, np.int64)
        engine.launch(KERNELS["place_atoms"], count, "pairs", GRAIN, positions=positions, places=places, bins=bins,
                      counts=counts, rotation=box.rotation, low=box.low, vectors=box.vectors, sides=box.sides,
                      corner=corner, scale=across / extent, across=across, wraps=wraps)
        chunks, after = self._start_chunks(engine.to_host(counts), columns, layers, tallest * layers / extent[2])
        #: First chunk of every column, with the end of the last.
        self.columns = chunks
        self.chunk_count = int(chunks[-1])
        self.places = places
        room = self.chunk_count * n
        #: Atoms of the places, -1 for none, and places of the atoms.
        self.slots, self.slot_of = engine.empty(room, np.int32), engine.empty(count, np.int32)
        following, placed = engine.array(after), engine.empty(room, np.int32)
        engine.launch(KERNELS["fill_bins"], max(count, room), "pairs", GRAIN, bins=bins, following=following,
                      placed=placed, slots=self.slots, count=count, places=room)
        engine.launch(KERNELS["order_bins"], count, "pairs", GRAIN, bins=bins, counts=counts, following=following,
                      placed=placed, places=places, slots=self.slots)
        self.boxes = self.extents = self.groups = None
        if shape.for_warps:
            self.extents = engine.empty((self.chunk_count, 6), np.float32)
            self.groups = engine.empty((self.chunk_count, 16, 6), np.float32)
        else:
            self.boxes = engine.empty((self.chunk_count, 6), np.float64)
        self.centres = engine.empty((self.chunk_count, 3), np.float32)
        engine.launch(KERNELS["make_clusters"].for_blocks(n), (self.chunk_count, n * self.chunk_count), "pairs",
                      GRAIN // n, slots=self.slots, places=places,
                      lacks=None if shape.for_warps else lacks_term.astype(np.float64), boxes=self.boxes,
                      extents=self.extents, groups=self.groups, centres=self.centres, grid=grid, m=shape.m, n=n)
        steps = shape.steps(self.row_count)
        #: Coordinates relative to the centres, and the parameters, as sums read them; and coordinates for the search.
        self.atoms = engine.empty(self.chunk_count * steps[0], shape.real)
        self.coordinates = engine.empty((self.chunk_count, 3, n), np.float32)
        self.rows = engine.array(rows)
        self.write(places)
        #: Clusters of which the second half of the atoms lacks a term, and the largest extent of a chunk, A.
        self.light: Any = None
        self.largest = 0.0
        if not shape.for_warps:
            boxes = engine.to_host(self.boxes)
            self.largest = float((boxes[:, 3:] - boxes[:, :3]).max(initial=0))
            self.light = np.append(lacks_term, True)[engine.to_host(self.slots)].reshape(-1, shape.m)[
                :, shape.m // 2:].all(1)

    def __len__(self) -> int:
        return self.count

    def _bins(self, positions: Floats, bounds: Bounds, reach: float) -> tuple[Integers, bool, Floats, Floats, float]:
        """Return the numbers of bins along each axis, whether atoms are wrapped into the cell, the lower corner and
        the extent of the bins, and the height (A) of the tallest chunk.

        For warps, atoms that fill a small part of the cell are not wrapped, and have bins of their own.
        """
        shape, box, count = self.shape, self.box, max(len(positions), 1)
        wraps, corner, extent = bool(box.vectors.any()), np.zeros(3), np.maximum(box.sides, 3.0)
        volume, tallest = float(np.prod(extent)), max(0.75 * reach, CLOSE)
        flat = FLAT
        if shape.for_warps:
            upright = (box.rotation == np.eye(3)).all()
            low, high = bounds if upright else coordinate_bounds(positions @ box.rotation)
            wide = high - low
            if not wraps or not ((wide > box.sides).any() or np.prod(wide) > np.prod(box.sides) / 2):
                wraps, corner = False, low - box.low
                extent = np.maximum(wide, max(0.1 * float(wide.max()), 1e-3))
                volume = float(np.prod(extent))
            tallest, flat = math.inf, 1.0
        side = min(flat * (shape.n * volume / count) ** (1 / 3), tallest)
        while np.prod(np.ceil(extent[:2] / side)) > max(MAX_COLUMNS, 4 * count):
            side *= 2
        across = np.maximum(np.rint(extent / [side, side, side / LAYERS]), 1).astype(np.int64)
        across[2] = max(1, min(across[2], max(MIN_BINS, BINS_PER_ATOM * count) // (across[0] * across[1])))
        return across, wraps, corner, extent, tallest

    def _start_chunks(self, counts: Integers, columns: int, layers: int, tallest: float) -> tuple[Integers, Integers]:
        """Return the first chunk of every column, and the first place of every bin.

        Parameters
        ----------
        counts : (columns * layers,) int64
            Number of atoms of every bin.
        columns, layers : int
        tallest : float
            A chunk ends with its column, when it is full, and before it would have more layers than these.
        """
        chunks, following = np.zeros(columns + 1, np.int64), np.empty(columns * layers, np.int64)
        arguments = {"counts": counts, "layers": layers, "tallest": min(tallest, 1e300), "n": self.shape.n}
        launch_kernel(KERNELS["start_chunks"], columns, "pairs", columns, chunks=chunks[1:], first=None, following=None,
                      **arguments)
        np.cumsum(chunks, out=chunks)
        launch_kernel(KERNELS["start_chunks"], columns, "pairs", columns, chunks=np.empty(columns, np.int64),
                      first=chunks, following=following, **arguments)
        return chunks, following

    def write(self, places: Any) -> None:
        """Write places (N, 3) in the axes of the box, and the parameters, to the clusters' atoms."""
        shape = self.shape
        steps = shape.steps(self.row_count)
        self.engine.launch(KERNELS["write_atoms" + shape.suffix], self.chunk_count * shape.n, "pairs", GRAIN,
                           slots=self.slots, places=places, rows=self.rows, centres=self.centres, atoms=self.atoms,
                           coordinates=self.coordinates, slot_of=self.slot_of, count=self.count,
                           row_count=self.row_count - 3, chunk_step=steps[0], atom_step=steps[1], row_step=steps[2],
                           empty=shape.empty, n=shape.n)


@dataclass(frozen=True)
class ExcludedPairs:
    """Excluded pairs by the first of their places, in the memory of an engine.

    Parameters
    ----------
    start : array (keys + 1,) int64
        First pair of each key: a place, or for warps a chunk.
    pairs : array (P, 3) int32
        Places of both atoms, and the code of the image of the second relative to the first.
    """

    start: Any
    pairs: Any


def sort_exclusions(clusters: AtomClusters, exclusions: Integers, around: bool) -> ExcludedPairs:
    """Sort excluded pairs (E, 2) of atoms by their places.

    Parameters
    ----------
    around : bool
        Whether the nearest image may differ from that of rounded fractional coordinates.
    """
    engine, shape, box, count = clusters.engine, clusters.shape, clusters.box, len(exclusions)
    key = shape.n if shape.for_warps else 1
    keys = clusters.chunk_count * shape.n // key
    found, counts = engine.empty((count, 3), np.int32), engine.zeros(keys, np.int64)
    both = not shape.for_warps
    fixed = {"found": found, "key": key, "both": both, "n": shape.n}
    engine.launch(KERNELS["find_excluded"], count, "pairs", GRAIN, pairs=np.ascontiguousarray(exclusions, np.int64),
                  slot_of=clusters.slot_of, places=clusters.places, counts=counts, vectors=box.vectors,
                  inverse=box.inverse, around=around, **fixed)
    start = np.zeros(keys + 1, np.int64)
    np.cumsum(engine.to_host(counts), out=start[1:])
    pairs = engine.empty((int(start[-1]), 3), np.int32)
    engine.launch(KERNELS["place_excluded"], count, "pairs", GRAIN, following=engine.array(start[:-1].copy()),
                  pairs=pairs, **fixed)
    return ExcludedPairs(engine.array(start), pairs)


@dataclass(frozen=True)
class ClusterPairs:
    """Pairs of clusters in range, in the memory of an engine.

    Parameters
    ----------
    entries : array (parts, max_entries, entry_size) int64
    chunks : array (parts, max_chunks) int32
    bits, masks : arrays of uint16
        See search.cu.
    counts : (parts, 5) int64
        Numbers of entries, chunks and masks of each part, that of its chunks of atoms i, and of the pairs to compute.
    limits : tuple of int
        Largest numbers of entries, chunks and masks of a part.
    steps, remainders : (S, 3), A
        Displacement of atoms i for each image: its multiple of the grid of chunk centres, and the remainder.
    item_entries : int
        Number of entries in an item of work of a warp.
    """

    entries: Any
    chunks: Any
    bits: Any
    masks: Any
    counts: Integers
    limits: tuple[int, int, int]
    steps: NDArray[Any]
    remainders: NDArray[Any]
    item_entries: int


@dataclass(frozen=True)
class Images:
    """Images of atoms i that may be in range of the atoms j.

    Parameters
    ----------
    multiples : (S, 3) int64
        Multiples of lattice vectors.
    shifts : (S, 3) float64, A
    grid : float, A
        Unit of coordinates of centres, of which sums and differences are exact in float32.
    """

    multiples: Integers
    shifts: Floats
    grid: float

    @classmethod
    def of(cls, box: CellBox, reach: float, half: bool, *sets: Bounds) -> Images:
        """Return the images for a box and sets of positions, or one of each two opposite images."""
        multiples = box.shifts(reach, half)
        shifts = multiples @ box.vectors
        largest = float(np.abs(shifts).max() + np.max(box.sides) + 2 * reach)
        if box.vectors.any():  # atoms are not always wrapped
            largest += float(np.abs(sets).max())
        return cls(multiples, shifts, 2.0 ** (np.ceil(np.log2(largest)) - 22))


def list_pairs(i: AtomClusters, j: AtomClusters, images: Images, reach: float, excluded: ExcludedPairs | None,
               corrects: bool, expected: float, item_entries: int) -> ClusterPairs:
    """Return all pairs of clusters with atoms within reach (A), each pair of atoms once.

    Parameters
    ----------
    i, j : AtomClusters
        The same object for pairs within one set, or two sets.
    corrects : bool
        Whether excluded pairs are listed too, because they contribute a correction.
    expected : float
        Expected number of entries of a cluster i, or for warps of a chunk.
    item_entries : int
        Number of entries in an item of work of a warp.
    """
    engine, shape, box, same = i.engine, i.shape, i.box, i is j
    each, chunks_i, for_warps = shape.n // shape.m, i.chunk_count, shape.for_warps
    steps = np.rint(images.shifts / images.grid) * images.grid
    remainders = images.shifts - steps
    # what only CPUs read
    by_image = dict.fromkeys(("shifts", "steps", "remainders", "images", "columns")) if for_warps else {
        "shifts": images.shifts, "steps": steps.astype(np.float32), "remainders": remainders.astype(np.float32),
        "images": images.multiples, "columns": j.columns}
    if for_warps:
        parts, size = 1, chunks_i
        rooms = np.array([1.3 * expected * chunks_i + LIST_THREADS // WARP * item_entries * chunks_i, 1, 64 * chunks_i])
    else:
        size = max(-(-chunks_i // PARTS), LEAST)
        parts = -(-chunks_i // size)
        rooms = np.array([ROOM * 6 * size * each + 64, ROOM * size * each * expected + 1024,
                          ROOM * 8 * size * each + 1024])
    limits = rooms.astype(np.int64)
    while True:
        limits[0] = -(-limits[0] // item_entries) * item_entries
        a, b, c = (int(x) for x in limits)
        entries = engine.empty((parts, a, shape.entry_size), np.int64)
        if for_warps:
            chunks, bits = engine.empty((a // item_entries, 2), np.int32), None
            masks = engine.empty((c, 16), np.uint16)
        else:
            chunks, bits = engine.empty((parts, b), np.int32), engine.empty((parts, b), np.uint16)
            masks = engine.empty((parts, c, 2 * shape.m), np.uint16)
        counts = engine.zeros((parts, 5), np.int64)
        engine.launch(
            KERNELS["list_clusters" + shape.suffix].for_blocks(LIST_THREADS), (parts, LIST_THREADS * chunks_i),
            "list of pairs", 1, slots_i=i.slots, slots_j=j.slots, coordinates_i=i.coordinates,
            coordinates_j=j.coordinates, centres_i=i.centres, centres_j=j.centres, boxes_i=i.boxes, boxes_j=j.boxes,
            extents_i=i.extents, extents_j=j.extents, groups_j=j.groups, **by_image,
            starts=None if excluded is None else excluded.start,
            excluded=None if excluded is None else excluded.pairs, light=i.light, entries=entries, chunks=chunks,
            bits=bits, masks=masks, counts=counts, vectors=box.vectors, inverse=box.inverse, image_count=len(steps),
            max_entries=a, max_chunks=b, max_masks=c, chunk_count=j.chunk_count, chunks_i=chunks_i, part_size=size,
            across=j.across, side=j.side, reach=reach, item_entries=item_entries, m=shape.m, n=shape.n, same=same,
            corrects=corrects, packed=shape.packed)
        used = engine.to_host(counts)
        most = used[:, :3].max(0, initial=0)
        if (most <= limits).all():
            return ClusterPairs(entries, chunks, bits, masks, used, (a, b, c), steps.astype(shape.real),
                                remainders.astype(shape.real), item_entries)
        limits = np.maximum(limits, most)
