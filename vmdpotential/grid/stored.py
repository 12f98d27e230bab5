"""Maps in files, which may be larger than memory: only the requested parts are read."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import memory
from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError, MemoryPlanError
from vmdpotential.grid.lattice import Grid, Lattice, Provenance

log = logging.getLogger(__name__)

#: Function read(low, high, step), which returns the values (nx, ny, nz) float32 of every `step`-th node along each
#: axis, from indices `low` up to but excluding `high`.
Read = Callable[[NDArray[np.int64], NDArray[np.int64], int], NDArray[np.float32]]

#: Approximate number of nodes that are read at once.
WINDOW_NODES = 2**22

#: Number of sampled planes that are cached, because a figure requests each plane several times.
CACHED_PLANES = 4


def downsampling_step(shape: ArrayLike, points: int) -> int:
    """Return the smallest power of two n for which every n-th node along each axis makes at most `points` nodes."""
    step, shape = 1, np.asarray(shape)
    while np.prod(-(-shape // step)) > points:
        step *= 2
    return step


class StoredGrid(Grid):
    """Map in a file, whose parts are read when they are requested; :attr:`values` reads all of it.

    Parameters
    ----------
    lattice : Lattice
    header : mapping
        Entries that :meth:`vmdpotential.grid.lattice.Grid.header` wrote.
    read : callable
        Reads a window of the nodes, see :data:`Read`.
    name : str
        Name of the file, for messages.
    """

    #: Smallest and largest value, if they are known.
    extremes: tuple[float, float] | None
    _read: Read
    _name: str
    _cached_planes: dict[bytes, Floats]

    def __init__(self, lattice: Lattice, header: Mapping[str, str], read: Read, name: str = "") -> None:
        known = Grid.from_header(Lattice(np.zeros(3), np.ones(3), (1, 1, 1)), np.zeros((1, 1, 1)), header)
        self._set(lattice, known.unit, known.temperature, known.dielectric, known.provenance, read, name)

    def _set(self, lattice: Lattice, unit: str, temperature: float | None, dielectric: float | None,
             provenance: Provenance, read: Read, name: str, extremes: tuple[float, float] | None = None) -> None:
        items = {"lattice": lattice, "unit": unit, "temperature": temperature, "dielectric": dielectric,
                 "provenance": provenance, "field": None, "extremes": extremes, "_read": read, "_name": name,
                 "_cached_planes": {}}
        for key, value in items.items():
            object.__setattr__(self, key, value)

    @classmethod
    def described(cls, lattice: Lattice, unit: str, temperature: float | None, dielectric: float | None,
                  provenance: Provenance, extremes: tuple[float, float] | None = None) -> StoredGrid:
        """Return the description, without values, of a map that was written to a file while it was computed."""
        def read(*_: Any) -> NDArray[np.float32]:
            raise InputError("the map was written to a file while it was computed, and is not in memory",
                             "read its file")

        grid = cls.__new__(cls)
        grid._set(lattice, unit, temperature, dielectric, provenance, read, "", extremes)
        return grid

    @property
    def values(self) -> NDArray[np.float32]:  # type: ignore[override]
        """All values, (nx, ny, nz), read from the file at each access.

        Raises
        ------
        MemoryPlanError
            If they do not fit into memory.
        """
        memory.require(12 * self.lattice.size, f"reading {self._name}", "read a part of it", 0)
        return self._window(np.zeros(3, np.int64), np.array(self.lattice.shape))

    def _window(self, low: NDArray[np.int64], high: NDArray[np.int64], step: int = 1) -> NDArray[np.float32]:
        values = np.ascontiguousarray(self._read(low, high, step), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            total = values.sum(dtype=np.float64)
        if not np.isfinite(total) and not np.isfinite(values).all():
            raise InputError(f"{self._name}: contains values that are not finite numbers", "compute the map again")
        return values

    def window(self, low: ArrayLike, high: ArrayLike, step: int = 1) -> Grid:
        """Read a part of the map into memory, see :meth:`vmdpotential.grid.lattice.Grid.window`."""
        low, high = np.asarray(low, np.int64), np.asarray(high, np.int64)
        lattice = self.lattice.window(low, high).every(step)
        memory.require(12 * lattice.size, f"reading {self._name}", "read a smaller part of it", 0)
        return self._of(lattice, self._window(low, high, step))

    def covering(self, positions: Floats, margin: float = 0.0) -> Grid:
        """Return the map with nodes of its images; the map itself, with a warning, if it does not fit into memory.
        """
        try:
            return super().covering(positions, margin)
        except MemoryPlanError as error:
            log.warning("%s: its images are not shown: %s", self._name, error)
            return self

    def slabs(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield the index of the first plane and the values (nx, ny, n) of slabs along z that cover the map."""
        nx, ny, nz = self.lattice.shape
        step = max(16, WINDOW_NODES // (nx * ny) // 16 * 16)
        for start in range(0, nz, step):
            yield start, self._window(np.array([0, 0, start]), np.array([nx, ny, min(start + step, nz)]))

    def display_limit(self) -> float:
        """Return a limit for isosurfaces and colours, estimated from a part of the nodes."""
        shape = self.lattice.shape
        return self.window((0, 0, 0), shape, downsampling_step(shape, WINDOW_NODES // 16)).display_limit()

    def sample(self, points: ArrayLike, outside: float = np.nan) -> Floats:
        """Return the trilinear interpolation at points, see :meth:`vmdpotential.grid.lattice.Grid.sample`."""
        points = np.ascontiguousarray(points, np.float64)
        key = hashlib.blake2b(points.tobytes() + repr((points.shape, outside)).encode()).digest()
        if key not in self._cached_planes:
            flat = points.reshape(-1, 3)
            result = np.full(len(flat), outside)
            u = (flat - self.lattice.origin) / self.lattice.spacing
            top = np.array(self.lattice.shape) - 1
            inside = np.flatnonzero(((u > -1e-6) & (u < top + 1e-6)).all(1))
            low = np.clip(np.floor(u[inside] + 1e-6).astype(np.int64), 0, np.maximum(top - 1, 0))
            self._sample(flat, inside, low, result)
            if len(self._cached_planes) >= CACHED_PLANES:
                self._cached_planes.pop(next(iter(self._cached_planes)))
            self._cached_planes[key] = result.reshape(points.shape[:-1])
        values: Floats = self._cached_planes[key].copy()
        return values

    def _sample(self, points: Floats, which: NDArray[np.int64], low: NDArray[np.int64], result: Floats) -> None:
        """Fill `result` at the points `which`, whose lower nodes are `low`, from windows of at most WINDOW nodes."""
        if not len(which):
            return
        first, last = low.min(0), low.max(0)
        # one more node on both sides, because rounding may put a point into the next cell
        start, stop = np.maximum(first - 1, 0), np.minimum(last + 3, self.lattice.shape)
        extent = last - first
        axis = int(np.argmax(extent))
        if np.prod(stop - start) <= WINDOW_NODES or extent[axis] < 2:
            result[which] = self._of(self.lattice.window(start, stop), self._window(start, stop)).sample(points[which])
            return
        lower = low[:, axis] < (first[axis] + last[axis] + 1) // 2
        for half in (lower, ~lower):
            self._sample(points, which[half], low[half], result)

    def __repr__(self) -> str:
        nx, ny, nz = self.lattice.shape
        return f"StoredGrid({self._name!r}, {nx} x {ny} x {nz} points)"

