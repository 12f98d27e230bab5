"""Targets of sums: the nodes of a Lattice, and arbitrary Points; and the Box around them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError, UsageError
from vmdpotential.molecule.cell import Cell

#: Largest distance, in spacings, between nodes that are the same.
SAME_NODE = 1e-6

#: Limits of the lattice spacing, A: values beyond them come from damaged files, and nodes would differ by less than
#: rounding.
FINEST, COARSEST = 1e-6, 1e6


def _check_spacing(spacing: float, padding: float = 0.0) -> None:
    if not 0 < spacing < np.inf:
        raise UsageError("spacing", "must be a distance in A, above 0", value=f"{spacing:g}")
    if not 0 <= padding < np.inf:
        raise UsageError("padding", "must be a distance in A, at least 0", value=f"{padding:g}")


def _counts(numbers: Floats) -> tuple[int, int, int]:
    """Return the numbers of nodes (3,) as integers; refuse those of distant atoms or huge cells, which overflow."""
    if not (numbers < 2**31).all():
        raise UsageError(
            "spacing", f"a lattice of {' x '.join(f'{n:.3g}' for n in numbers)} points cannot be made",
            "use a larger {spacing}, or correct coordinates or cell lengths that are far too large",
        )
    nx, ny, nz = (int(n) for n in numbers)
    return nx, ny, nz



def coordinate_bounds(positions: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest coordinates of positions (N, 3)."""
    if 0 < len(positions) < 500:
        return positions.min(0), positions.max(0)
    # numpy reduces long rows much faster than rows of three numbers: 64 positions make a row
    count = len(positions) // 64 * 64
    rows, rest = np.ascontiguousarray(positions[:count]).reshape(-1, 192), positions[count:]
    low = np.concatenate([rows.min(0, initial=np.inf).reshape(-1, 3), rest])
    high = np.concatenate([rows.max(0, initial=-np.inf).reshape(-1, 3), rest])
    return low.min(0), high.max(0)


@dataclass(frozen=True)
class Box:
    """Box with edges along x, y and z: two opposite corners, (3,) float, A."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]

    @classmethod
    def around(cls, positions: Floats) -> Box:
        """Return the box around positions (N, 3), or an empty box at the origin if there are none."""
        if not len(positions):
            return cls((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        (a, b, c), (d, e, f) = (corner.tolist() for corner in coordinate_bounds(positions))
        return cls((a, b, c), (d, e, f))

    def holds(self, positions: Floats) -> bool:
        """Return whether all positions (N, 3) are inside, up to rounding."""
        other = Box.around(positions)
        return not len(positions) or bool((np.array(other.low) >= np.array(self.low) - 1e-6).all()
                                          and (np.array(other.high) <= np.array(self.high) + 1e-6).all())


@dataclass(frozen=True, eq=False)
class Lattice:
    """Regular points: node [i, j, k] is at ``origin + spacing * (i, j, k)``.

    Parameters
    ----------
    origin : (3,) float64, A
        Position of node [0, 0, 0] (a node, not a cell corner).
    spacing : float or (3,) float64, A
        Distance between nodes along x, y, z.
    shape : (3,) int
        Nodes along x, y, z.

    Examples
    --------
    >>> vp.Lattice((0, 0, 0), 0.5, (41, 41, 61)).last.tolist()
    [20.0, 20.0, 30.0]
    """

    origin: Floats
    spacing: Floats
    shape: tuple[int, int, int]

    #: Kind of a sum's target, and type of the values there.
    kind: ClassVar[str] = "grid"
    dtype: ClassVar[type[np.floating[Any]]] = np.float32

    def __post_init__(self) -> None:
        origin, spacing = np.zeros(3), np.zeros(3)
        origin += np.asarray(self.origin, np.float64)  # 0 for -0
        spacing += np.asarray(self.spacing, np.float64)
        shape = tuple(int(n) for n in self.shape)
        if len(shape) != 3 or min(shape) < 1:
            raise UsageError("shape", f"a lattice of {' x '.join(map(str, shape))} points is empty")
        if not all(map(math.isfinite, origin.tolist())):
            raise UsageError("origin", "must be three finite coordinates in A", value=str(origin.tolist()))
        if not all(FINEST <= h <= COARSEST for h in spacing.tolist()):
            raise UsageError("spacing", f"must be distances of {FINEST:g} to {COARSEST:g} A",
                             value=str(spacing.tolist()))
        origin.setflags(write=False)
        spacing.setflags(write=False)
        object.__setattr__(self, "origin", origin)
        object.__setattr__(self, "spacing", spacing)
        object.__setattr__(self, "shape", shape)

    @classmethod
    def around(cls, positions: ArrayLike, spacing: float, padding: float = 0.0) -> Lattice:
        """Return the lattice that covers positions (N, 3) and `padding` A on every side.

        Nodes are at whole multiples of the spacing, so that maps of different frames or selections
        share their points, and formats that store the origin in units of the spacing can represent it.
        """
        _check_spacing(spacing, padding)
        positions = np.asarray(positions, np.float64)
        if not len(positions):
            raise InputError("there are no atoms to put a lattice around")
        low, high = coordinate_bounds(positions)
        low, high = low - padding, high + padding
        first = np.floor(low / spacing + 1e-9)
        shape = _counts(np.ceil(high / spacing - 1e-9) - first + 1)
        return cls(first * spacing, np.full(3, spacing), shape)

    @classmethod
    def over_cell(cls, cell: Cell, spacing: float, origin: ArrayLike = (0.0, 0.0, 0.0)) -> Lattice:
        """Return the lattice of a periodic cell.

        An orthogonal cell is divided evenly, with at most `spacing` A between nodes and no node twice;
        nodes are at whole multiples of the spacing, the first within half of it from `origin`. A
        triclinic cell gets its axis-aligned bounding box.
        """
        _check_spacing(spacing)
        origin = np.asarray(origin, np.float64)
        if cell.orthogonal:
            length = np.diagonal(cell.vectors)
            shape = _counts(np.maximum(1, np.ceil(np.abs(length) / spacing - 1e-6)))
            steps = np.abs(length) / shape
            low = origin + np.minimum(length, 0)  # a vector may point to negative coordinates
            return cls(np.rint(low / steps) * steps, steps, shape)
        corners = np.array([[n >> 2 & 1, n >> 1 & 1, n & 1] for n in range(8)], float) @ cell.vectors
        return cls.around(corners + origin, spacing)

    def __repr__(self) -> str:
        spacing, *others = dict.fromkeys(f"{h:.4g}" for h in self.spacing)
        step = " x ".join(f"{h:.4g}" for h in self.spacing) if others else spacing
        origin = " ".join(f"{x:.4g}" for x in self.origin)
        return f"Lattice({' x '.join(map(str, self.shape))} points, {step} A apart, from {origin} A)"

    @property
    def size(self) -> int:
        """Number of nodes."""
        nx, ny, nz = self.shape
        return nx * ny * nz

    def same_nodes(self, other: Lattice) -> bool:
        """Return whether another lattice has exactly the same nodes."""
        return self.shape == other.shape and np.array_equal(self.origin, other.origin) and np.array_equal(
            self.spacing, other.spacing)

    def part_of(self, other: Lattice) -> tuple[slice, slice, slice] | None:
        """Return the part of the nodes that is another lattice of the same spacing; None if that has other nodes."""
        place = (other.origin - self.origin) / self.spacing
        first = np.rint(place).astype(np.int64)
        if (np.abs(place - first).max() > SAME_NODE or (first < 0).any()
                or (first + other.shape > self.shape).any() or not np.array_equal(self.spacing, other.spacing)):
            return None
        x, y, z = (slice(a, a + n) for a, n in zip(first.tolist(), other.shape, strict=True))
        return x, y, z

    @property
    def last(self) -> Floats:
        """(3,) position of the last node, A."""
        last: Floats = self.origin + self.spacing * (np.array(self.shape) - 1)
        return last

    @property
    def box(self) -> Box:
        """Box around the nodes."""
        return Box.around(np.array([self.origin, self.last]))

    def axes(self) -> tuple[Floats, Floats, Floats]:
        """Return the x, y and z coordinates of the nodes, A."""
        x, y, z = (self.origin[d] + self.spacing[d] * np.arange(self.shape[d]) for d in range(3))
        return x, y, z

    def points(self, indices: ArrayLike | None = None) -> Floats:
        """Return positions (M, 3), A, of nodes with indices (M, 3), or of all nodes in C order."""
        if indices is None:
            indices = np.indices(self.shape).reshape(3, -1).T
        return self.origin + self.spacing * np.asarray(indices, np.float64)

    def slab(self, start: int, stop: int, axis: int = 0) -> Lattice:
        """Return the nodes with ``start <= i < stop`` along x (the slowest axis in memory), or along y or z."""
        low, high = [0, 0, 0], list(self.shape)
        low[axis], high[axis] = start, stop
        return self.window(low, high)

    def window(self, low: ArrayLike, high: ArrayLike) -> Lattice:
        """Return the nodes from indices `low` (3,) up to but excluding `high` (3,)."""
        low, high = np.asarray(low), np.asarray(high)
        nx, ny, nz = (int(n) for n in high - low)
        return Lattice(self.origin + self.spacing * low, self.spacing, (nx, ny, nz))

    def wraps(self, cell: Cell | None) -> bool:
        """Return whether the nodes cover a whole rectangular cell, so that the last ones are next to the first."""
        return cell is not None and cell.orthogonal and bool(np.allclose(
            self.spacing * self.shape, np.abs(np.diagonal(cell.vectors)), rtol=1e-4))

    def stretched(self, factors: Floats) -> Lattice:
        """Return the lattice with its coordinates multiplied by factors (3,) along x, y and z."""
        return Lattice(self.origin * factors, self.spacing * factors, self.shape)

    def every(self, step: int) -> Lattice:
        """Return the lattice of every `step`-th node along each axis, from the first."""
        nx, ny, nz = (-(-n // step) for n in self.shape)
        return Lattice(self.origin, self.spacing * step, (nx, ny, nz))


@dataclass(frozen=True, eq=False)
class Points:
    """Arbitrary points, at which values are computed.

    Parameters
    ----------
    positions : (P, 3) float64, A
    """

    positions: Floats

    #: Kind of a sum's target, and type of the values there.
    kind: ClassVar[str] = "points"
    dtype: ClassVar[type[np.floating[Any]]] = np.float64

    @property
    def shape(self) -> tuple[int]:
        """Number of points, (1,)."""
        return (len(self.positions),)

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.positions)

    @cached_property
    def box(self) -> Box:
        """Box around them."""
        return Box.around(self.positions)

    def points(self, indices: ArrayLike | None = None) -> Floats:
        """Return positions (M, 3), A, of points with indices (M,) or (M, 1), or of all."""
        return self.positions if indices is None else self.positions[np.ravel(indices)]
