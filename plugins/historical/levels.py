"""The levels of a multilevel sum: lattices, each twice as coarse as the one before, and sums within each.

1/r is split into a part within a radius a, summed over pairs, and smooth parts whose range doubles
with every level (R. D. Skeel, I. Tezcan, D. J. Hardy, J. Comput. Chem. 23 (2002) 673; D. J. Hardy,
J. E. Stone, K. Schulten, Parallel Comput. 35 (2009) 164)::

    1/r = (1/r - gamma(r/a)/a) + (gamma(r/a)/a - gamma(r/2a)/2a) + ... + gamma(r/A)/A,  A = 2^(L-1) a

Charges are spread to the finest lattice, and from each lattice to the next coarser one; potentials are interpolated in
the opposite direction. Both use piecewise polynomials through the nodes: cubic, quintic or septic ones with a
continuous slope. The part of a level is a sum over the nodes within its range, 2a on the finest one. The coarsest level
has the rest, which in a periodic cell is an exact sum over all images
(:mod:`vmdpotential.plugins.historical.images`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import TaskError, UsageError
from vmdpotential.grid.targets import Box, Lattice
from vmdpotential.interactions import Bound, short_range
from vmdpotential.molecule.cell import Cell
from vmdpotential.sums.potential_sum import PotentialSum, Prepared

from .images import all_images, near_images

#: Nodes (P, taps) and weights (P, taps) of a linear map along one axis; None for the identity.
Table = tuple[NDArray[np.int64], Floats] | None

#: Numbers of nodes along each axis for an interpolation: cubic, quintic and septic polynomials.
ORDERS = (4, 6, 8)

#: Numbers of continuous derivatives of the smooth part at the radius.
SMOOTHNESS = (2, 3, 4, 5, 6)


@dataclass(frozen=True, eq=False)
class Level:
    """A lattice of charges and potentials: potential[i] = sum over d of stencil[d] charge[i + first + d].

    Parameters
    ----------
    shape : (3,) int
        Number of nodes; in a periodic cell, in one period.
    halved : (3,) bool
        Whether the spacing along the axis is twice that of the preceding level.
    stencil : (DX, DY, DZ) float64, 1/A
        Potentials of a unit charge at the offsets first + d, equal to those at the opposite offsets.
    first : (3,) int
        Offset, in nodes, of stencil[0, 0, 0].
    """

    shape: tuple[int, int, int]
    halved: tuple[bool, bool, bool]
    stencil: Floats
    first: tuple[int, int, int]

    @property
    def equal_planes(self) -> NDArray[np.int64]:
        """(P, 2) planes of the stencil across x, in pairs if those at +x and -x have equal weights."""
        offsets = np.arange(len(self.stencil)) + self.first[0]
        mirror = (-offsets if offsets[0] < 0 else -offsets % len(offsets)) - self.first[0]
        if not np.allclose(self.stencil[mirror], self.stencil, rtol=1e-12, atol=0):
            mirror = np.arange(len(offsets))
        pairs = np.stack([np.arange(len(offsets)), mirror], 1)
        return pairs[pairs[:, 0] <= pairs[:, 1]]


@dataclass(frozen=True, eq=False)
class Levels:
    """Lattices, splitting and boundaries of a multilevel sum.

    Parameters
    ----------
    origin : (3,) float64, A
        Position of the first node of the finest level.
    steps : (3, 3) float64, A
        Vectors between its nodes, as rows.
    order : int
        Number of nodes for an interpolation, one of :data:`ORDERS`.
    radius : float, A
        Radius within which pairs are summed.
    smoothness : int
        Number of continuous derivatives, one of :data:`SMOOTHNESS`.
    levels : tuple of Level
        The levels, the finest one first.
    cell : Cell or None
        The periodic cell.
    box : Box or None
        Box that contains the charges in an open boundary.
    """

    origin: Floats
    steps: Floats
    order: int
    radius: float
    smoothness: int
    levels: tuple[Level, ...]
    cell: Cell | None
    box: Box | None

    @property
    def periodic(self) -> bool:
        """Whether the levels fill a periodic cell."""
        return self.cell is not None

    @property
    def end(self) -> float:
        """Range of the smooth part, A, which is infinite."""
        return np.inf

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of nodes of the finest level."""
        return self.levels[0].shape

    @property
    def self_potential(self) -> float:
        """The smooth potential of a unit charge at its own position, 1/A."""
        return float(np.polynomial.Polynomial(_taylor(self.smoothness))(-1.0)) / self.radius

    @property
    def short(self) -> Bound:
        """The pair interaction within the radius."""
        # the Taylor polynomial in s - 1, s = (r/a)^2, is converted to the interaction's variable s - 1/2
        shifted = np.polynomial.Polynomial(_taylor(self.smoothness))(np.polynomial.Polynomial([-0.5, 1.0]))
        coefficients = np.asarray(shifted.coef, np.float64)
        return short_range.bind(self.radius, coefficients / self.radius ** (2 * np.arange(len(coefficients)) + 1))

    def prepare(self, engine: str, work: PotentialSum) -> Prepared:
        """Return a prepared sum with this smooth part, on the engine with this name."""
        if engine == "cuda":
            from .msm_cuda import LevelSum

            return LevelSum(work)
        from .msm_cpu import prepared

        return prepared(self, work)

    def in_cell(self, cell: Cell) -> Levels:
        """Raise an error, as the stencils contain sums over the images of one cell.

        Raises
        ------
        TaskError
            In every case.
        """
        raise TaskError("levels are made for one cell and take long", "use {method pme} for cells that change")

    def coordinates(self, positions: ArrayLike) -> Floats:
        """Return positions (..., 3), A, in units of the finest level's steps, within a periodic cell."""
        place: Floats = (np.asarray(positions, np.float64) - self.origin) @ np.linalg.inv(self.steps)
        return place % np.array(self.shape) if self.periodic else place

    def prolongation(self, level: int) -> tuple[Table, Table, Table]:
        """Return the tables along x, y, z that interpolate from `level` + 1 to `level`, with `order` taps."""
        half = halfway(self.order)

        def table(fine: int, coarse: int, shift: int) -> Table:
            place = np.arange(fine) + shift
            nodes = place[:, None] // 2 + np.arange(self.order) - (self.order // 2 - 1)
            on_node = np.arange(self.order) == self.order // 2 - 1
            return nodes % coarse, np.where(place[:, None] % 2 == 0, on_node, half)

        return self._tables(level, table)

    def restriction(self, level: int) -> tuple[Table, Table, Table]:
        """Return the tables that spread charges from `level` to `level` + 1 (the transpose), with `order` + 2 taps."""
        half = halfway(self.order)
        distance = np.concatenate([np.arange(1 - self.order, self.order, 2), [0, 0]])
        weights = np.concatenate([half, [1.0, 0.0]])  # an even number of taps

        def table(fine: int, coarse: int, shift: int) -> Table:
            nodes = 2 * np.arange(coarse)[:, None] - shift + distance
            outside = (shift > 0) & ((nodes < 0) | (nodes >= fine))
            return nodes % fine, np.where(outside, 0.0, weights)

        return self._tables(level, table)

    def _tables(self, level: int, table: Callable[[int, int, int], Table]) -> tuple[Table, Table, Table]:
        """Return the tables for the axes along which the next level is coarser, and None for others.

        In an open boundary, the coarser level starts `order` - 2 nodes earlier, at the first node that is needed.
        """
        fine, coarse = self.levels[level], self.levels[level + 1]
        x, y, z = (table(fine.shape[d], coarse.shape[d], 0 if self.periodic else self.order - 2)
                   if coarse.halved[d] else None for d in range(3))
        return x, y, z


def _taylor(smoothness: int) -> Floats:
    """Return the Taylor coefficients of s^(-1/2) about s = 1, which define gamma for s = (r/a)^2."""
    return np.array([(-0.25) ** n * comb(2 * n, n) for n in range(smoothness + 1)])


def smooth(r: ArrayLike, radius: float, smoothness: int) -> Floats:
    """Return gamma(r/radius)/radius (1/A) at distances r (A): a polynomial within the radius, 1/r beyond it."""
    s = np.asarray(r, np.float64) / radius
    inside = np.polynomial.polynomial.polyval(np.minimum(s, 1.0) ** 2 - 1, _taylor(smoothness))
    result: Floats = np.where(s < 1, inside, 1 / np.maximum(s, 1.0)) / radius
    return result


def halfway(order: int) -> Floats:
    """Return the weights of nodes for interpolation in the middle between two: the mean of two Lagrange polynomials."""
    x = np.arange(order) - (order - 1) / 2
    weights = np.zeros(order)
    for nodes in (x[:-1], x[1:]):
        for n, here in enumerate(x):
            if here in nodes:
                others = nodes[nodes != here]
                weights[n] += 0.5 * np.prod(-others / (here - others))
    return weights


def make(lattice: Lattice, box: Box, cell: Cell | None = None, *, radius: float = 12.0, spacing: float = 2.0,
         order: int = 4, smoothness: int | None = None) -> Levels:
    """Return the levels of a sum.

    Parameters
    ----------
    lattice : Lattice
        Lattice of the map.
    box : Box
        Box around the charges.
    cell : Cell or None
        The periodic cell; None for open boundaries.
    radius : float, A
        Radius within which pairs are summed; 12 A as in the 2009 paper.
    spacing : float, A
        Largest spacing of the finest level.
    order : int
        Number of nodes for an interpolation, one of :data:`ORDERS`.
    smoothness : int, optional
        Number of continuous derivatives, one of :data:`SMOOTHNESS`; by default half of the order.

    Raises
    ------
    UsageError
        When a number does not fit.
    """
    smoothness = smoothness or order // 2
    if order not in ORDERS or smoothness not in SMOOTHNESS:
        raise UsageError("order", f"{order} with smoothness {smoothness}: choose an order of "
                         f"{', '.join(map(str, ORDERS))} and a smoothness from {SMOOTHNESS[0]} to {SMOOTHNESS[-1]}")
    if not 0 < spacing <= radius < np.inf:
        raise UsageError("spacing", f"{spacing:g} A with a radius of {radius:g} A: it must be above 0 and at most the "
                         "radius")
    low, high = np.minimum(lattice.origin, box.low), np.maximum(lattice.last, box.high)
    widest = 2 * int(np.ceil(radius / spacing))  # range of a stencil in nodes
    if cell is None:
        origin, steps = low - (order // 2 - 1) * spacing, np.diag([spacing] * 3)
        counts = [int(extent / spacing) + order for extent in high - low]
    else:
        counts = [divisible(float(length) / spacing, order, 2 * widest)
                  for length in np.linalg.norm(cell.vectors, axis=1)]
        origin, steps = np.zeros(3), cell.vectors / np.array(counts)[:, None]
    levels = _levels(tuple(counts), steps, order, cell is not None, radius, smoothness, widest)
    return Levels(origin, steps, order, radius, smoothness, levels, cell, box if cell is None else None)


def divisible(count: float, least: int, most: int) -> int:
    """Return the smallest number of nodes, at least `count` and `least`, that can be halved to `most` or fewer."""
    nodes, part = max(int(np.ceil(count - 1e-9)), least), 1
    while nodes > most * part:
        part *= 2
    return -(-nodes // part) * part


def _levels(shape: tuple[int, ...], steps: Floats, order: int, periodic: bool, radius: float,
            smoothness: int, widest: int) -> tuple[Level, ...]:
    """Return the levels of :func:`level_shapes`."""
    levels: list[Level] = []
    shapes = level_shapes(shape, order, periodic, widest)
    for n, finer in zip(shapes, [shape, *shapes], strict=False):
        (a, b, c), (x, y, z) = n, (less < more for less, more in zip(n, finer, strict=True))
        if levels:
            steps, radius = steps * np.where((x, y, z), 2, 1)[:, None], 2 * radius
        levels.append(Level((a, b, c), (x, y, z), *_stencil((a, b, c), steps, periodic, radius, smoothness,
                                                            n == shapes[-1])))
    return tuple(levels)


def level_shapes(shape: tuple[int, ...], order: int, periodic: bool, widest: int
                 ) -> list[tuple[int, ...]]:
    """Return the numbers of nodes of all levels, coarsened along each axis until all of it is in a stencil's range.

    Parameters
    ----------
    shape : (3,) int
        Those of the finest level.
    order : int
    periodic : bool
    widest : int
        The range, in nodes.
    """
    def coarser(n: int) -> int:
        less, enough = (n // 2, 2 * widest) if periodic else (n // 2 + order - 1, widest + order // 2)
        return less if n > enough and less < n else n

    shapes = [shape]
    while (following := tuple(map(coarser, shapes[-1]))) != shapes[-1]:
        shapes.append(following)
    return shapes


def _stencil(shape: tuple[int, int, int], steps: Floats, periodic: bool, radius: float,
             smoothness: int, top: bool) -> tuple[Floats, tuple[int, int, int]]:
    """Return the stencil of a level, and its first offset."""
    offsets: list[NDArray[np.int64]] = []
    widths = 2 * radius * np.linalg.norm(np.linalg.inv(steps), axis=0)
    wraps = [periodic and (top or 2 * int(w) + 1 >= n) for n, w in zip(shape, widths, strict=True)]
    for n, width, around in zip(shape, widths, wraps, strict=True):
        if around:  # all nodes of the period, by their nearest images
            offsets.append(np.arange(n))
        else:
            reach = n - 1 if top else min(int(width), n - 1)
            offsets.append(np.arange(-reach, reach + 1))
    first = (int(offsets[0][0]), int(offsets[1][0]), int(offsets[2][0]))
    nearest = [(o + n // 2) % n - n // 2 if around else o for o, n, around in zip(offsets, shape, wraps, strict=True)]
    points = np.stack(np.meshgrid(*nearest, indexing="ij"), -1) @ steps
    if top:
        if not periodic:
            return smooth(np.linalg.norm(points, axis=-1), radius, smoothness), first
        return all_images(lambda r: smooth(r, radius, smoothness), radius, points, shape, steps), first
    return near_images(lambda r: smooth(r, radius, smoothness) - smooth(r, 2 * radius, smoothness), 2 * radius, points,
                       (steps * np.array(shape)[:, None])[wraps]), first
