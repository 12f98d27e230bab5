"""Counting atoms at the nodes of a lattice, frame by frame, and the sums over frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats, Integers
from vmdpotential.engines import Engine
from vmdpotential.kernels.launch import KernelFile

KERNELS = KernelFile(Path(__file__).with_name("counting.cu"))

#: Number of nodes that are collected at a time, as in counting.cu, and threads of a GPU for it.
SEGMENT, WARP = 1024, 32
#: Number of threads of a GPU that spread an atom.
SPREADERS = 128
#: Number of float64 in a cache line.
LINE = 8
#: Number of atoms that are listed before they are summed.
LISTED = 1 << 22
#: Number of parts of a cell along each axis; each part has a list of the images that may reach the lattice.
PARTS = 16
#: Sums in fixed point stay below two to this power.
LARGEST = 62


@dataclass(frozen=True, eq=False)
class AtomCounting:
    """Weights, spreading and lattice by which atoms are counted.

    Parameters
    ----------
    spreading : {"nearest", "gaussian", "occupancy"}
        An atom counts at the node nearest to it, is spread as a Gaussian, or sets nodes within its radius to 1.
    weights, widths : (n,) float64
        Weight of each atom, and its standard deviation or radius, A.
    origin, spacing : (3,) float64, A
        First node of the lattice, and distances of nodes along each axis.
    shape : (3,) int64
        Number of nodes along each axis.
    cell, inverse : (3, 3) or (0, 3) float64
        Vectors of the periodic cell and their inverse, in spacings; size 0 in an open boundary.
    images : (S, 3) float64
        Lattice vectors of the cell, in spacings, that shift a part of the cell onto the lattice.
    reach : (3,) int64
        Number of nodes along each axis, to either side, within which an atom counts.
    """

    spreading: str
    weights: Floats
    widths: Floats
    origin: Floats
    spacing: Floats
    shape: Integers
    cell: Floats
    inverse: Floats
    images: Floats
    reach: Integers


def near_images(counting: AtomCounting) -> tuple[Integers, Integers, Integers]:
    """Return the images by which atoms in each part of the cell may reach the lattice.

    Returns
    -------
    bins : (3,) int64
        Number of parts of the cell along each axis.
    starts : (parts + 1,) int64
        First index of each part in `near`.
    near : (M,) int64
        Rows of :attr:`AtomCounting.images`, part by part.
    """
    if not len(counting.images):
        return np.ones(3, np.int64), np.array([0, 1]), np.zeros(1, np.int64)
    sides = np.stack(np.meshgrid(*[np.arange(PARTS) / PARTS] * 3, indexing="ij"), -1).reshape(-1, 3)
    low = sides @ counting.cell - 0.5
    low, high = (low + limit(0, counting.cell / PARTS).sum(0) for limit in (np.minimum, np.maximum))
    margin = counting.reach + 1e-6
    reached = ((low[:, None] + counting.images < counting.shape - 0.5 + margin)
               & (high[:, None] + counting.images > -0.5 - margin)).all(-1)
    return np.full(3, PARTS), np.concatenate([[0], np.cumsum(reached.sum(1))]), np.nonzero(reached)[1]


class DensityCounter(ABC):
    """Sums over frames of the atoms' contributions to each node; for one thread at a time."""

    def __init__(self, counting: AtomCounting, engine: Engine) -> None:
        self._engine, self._spreading, self._atoms = engine, counting.spreading, len(counting.weights)
        self._frame, self._size = 0, int(np.prod(counting.shape))
        bins, starts, near = near_images(counting)
        #: Greatest number of contributions of a frame.
        self._most = self._atoms * int(np.diff(starts).max())
        periodic, side = len(counting.images) > 0, 2 * int(counting.reach.max()) + 1
        images = counting.images if periodic else np.zeros((1, 3))
        whole = float(np.abs(counting.weights).sum()) * len(images) or 1.0  # 1 if all weights are 0
        fixed = {"weights": counting.weights, "widths": counting.widths, "images": images, "columns": images.T + 0.5,
                 "starts": starts, "near": near}
        self._fixed: dict[str, Any] = {name: engine.array(array) for name, array in fixed.items()}
        self._fixed |= {"along": engine.empty((3, side), np.float64), "origin": counting.origin,
                        "spacing": counting.spacing, "cell": counting.cell if periodic else 0.0,
                        "inverse": counting.inverse if periodic else 0.0, "bins": bins, "reach": counting.reach,
                        "shape": counting.shape, "side": side, "atoms": self._atoms, "nodes": self._size,
                        "image_count": len(images), "periodic": periodic,
                        "scale": 1.0 if counting.spreading == "occupancy" else 2.0 ** (
                            LARGEST - np.ceil(np.log2(whole)))}

    @abstractmethod
    def add(self, positions: NDArray[np.floating], change: Floats | None, rows: Integers | None) -> None:
        """Add a frame.

        Parameters
        ----------
        positions : (N, 3), A
        change : (3, 3) float64, or None
            Matrix that maps positions in the frame's cell to the lattice's cell, if they differ.
        rows : (n,) int64, or None
            Rows of the counted atoms in `positions`, if these are not all.
        """

    @abstractmethod
    def take(self) -> tuple[Integers, Floats, Floats]:
        """Return nodes (T,) with contributions, increasing, and sums of their values and squares; reset the sums."""

    def _count(self, positions: NDArray[np.floating], change: Floats | None, rows: Integers | None,
               **results: Any) -> None:
        self._frame += 1
        single = positions.dtype == np.float32
        at = self._engine.array(positions if single else np.asarray(positions, np.float64))
        values = {"single_positions": at if single else None, "positions": None if single else at, "rows": rows,
                  "changes": change is not None, "change": 0.0 if change is None else change, "frame": self._frame,
                  **self._fixed, **results}
        threads = self._atoms * (1 if self._spreading == "nearest" else SPREADERS)
        self._engine.launch(KERNELS[f"count_{self._spreading}"], (self._atoms, threads), "density", self._atoms,
                            **values)
        self._engine.launch(KERNELS["add_frame"], (0, self._size), "density", **values)


class ListedCounter(DensityCounter):
    """Sums of atoms that contribute to the nearest node, on the CPU; see :class:`DensityCounter`.

    Atoms are listed and sorted, which takes a fourth of the time of adding them to an array of all nodes, and memory
    for those nodes alone that have contributions.
    """

    def __init__(self, counting: AtomCounting, engine: Engine) -> None:
        super().__init__(counting, engine)
        self._bits = self._size.bit_length()
        weights = counting.weights
        self._weight = float(weights[0]) if len(weights) else 0.0
        size = max(LISTED, self._most + 1)
        self._keys = np.empty((2, size), np.int64)
        self._of = [None, None] if (weights == self._weight).all() else [*np.empty((2, size))]
        self._listed = 0
        self._done = _arrays(0)

    def add(self, positions: NDArray[np.floating], change: Floats | None, rows: Integers | None) -> None:
        """Add a frame."""
        if self._listed + self._most >= self._keys.shape[1]:
            self._sum()
        of, listed = self._of[0], np.zeros(1, np.int64)
        self._count(positions, change, rows, keys=self._keys[0, self._listed :],
                    of=None if of is None else of[self._listed :], listed=listed, work=None, reached=None)
        self._listed += int(listed[0])

    def take(self) -> tuple[Integers, Floats, Floats]:
        """Return nodes, sums and sums of squares, and reset them."""
        self._sum()
        done, self._done, self._frame = self._done, _arrays(0), 0
        return done

    def _sum(self) -> None:
        """Add the listed atoms to the sums, and clear the list."""
        arrays, found, listed = _arrays(self._listed), np.zeros(1, np.int64), self._listed
        self._engine.launch(KERNELS["sum_listed"], listed, "density", listed, keys=self._keys[0],
                            more_keys=self._keys[1], of=self._of[0], more_of=self._of[1], weight=self._weight,
                            nodes=arrays[0], sums=arrays[1], squares=arrays[2], found=found, bits=self._bits)
        count, before = int(found[0]), self._done
        if len(before[0]):
            more, arrays = arrays, _arrays(len(before[0]) + count)
            self._engine.launch(KERNELS["unite_lists"], len(before[0]), "density", len(before[0]), nodes=before[0],
                                sums=before[1], squares=before[2], more_nodes=more[0], more_sums=more[1],
                                more_squares=more[2], more_count=count, all_nodes=arrays[0], all_sums=arrays[1],
                                all_squares=arrays[2], found=found)
            count = int(found[0])
        nodes, sums, squares = arrays
        self._done, self._listed = (nodes[:count], sums[:count], squares[:count]), 0


def _arrays(count: int) -> tuple[Integers, Floats, Floats]:
    """Return arrays for nodes, sums and sums of squares; one allocation, as the system's memory pages take time."""
    nodes, sums, squares = np.empty((3, count))
    return nodes.view(np.int64), sums, squares


class NodeCounter(DensityCounter):
    """Sums in arrays of all nodes; see :class:`DensityCounter`."""

    def __init__(self, counting: AtomCounting, engine: Engine) -> None:
        size = int(np.prod(counting.shape))
        with engine.room(33 * size):
            super().__init__(counting, engine)
            self._sums = {"work": engine.zeros(4 * size + LINE, np.float64),
                          "reached": engine.zeros(-(-size // 64), np.uint64)}

    def add(self, positions: NDArray[np.floating], change: Floats | None, rows: Integers | None) -> None:
        """Add a frame."""
        positions = positions if rows is None else np.take(positions, rows, 0)
        with self._engine.room(positions.nbytes, self._sums["work"]):
            self._count(positions, change, None, keys=None, of=None, listed=None, **self._sums)

    def take(self) -> tuple[Integers, Floats, Floats]:
        """Return nodes, sums and sums of squares, and reset them."""
        engine, segments = self._engine, -(-self._size // SEGMENT)

        def launch(kernel: str, **results: Any) -> None:
            engine.launch(KERNELS[kernel], (segments, WARP * segments), "density", segments, **self._sums,
                          size=self._size, **results)

        with engine.room(0, self._sums["work"]):
            counts = engine.empty(segments, np.int32)
            launch("count_reached", counts=counts, starts=None, nodes=None, sums=None, squares=None)
            ends = np.cumsum(engine.to_host(counts), dtype=np.int64)
            nodes, sums, squares = (engine.empty(int(ends[-1]), kind) for kind in (np.int64, np.float64, np.float64))
            launch("take_sums", counts=counts, starts=ends - engine.to_host(counts), nodes=nodes, sums=sums,
                   squares=squares)
            self._frame = 0
            return engine.to_host(nodes), engine.to_host(sums), engine.to_host(squares)
