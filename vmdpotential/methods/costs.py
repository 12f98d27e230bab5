"""The cost of a mesh sum, and the cheapest mesh for an error.

The time is a sum of parts that are proportional to known quantities, with coefficients of the engine
(:mod:`vmdpotential.engines.costs`). The error is that of :func:`vmdpotential.splitting.coulomb.optimal`.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vmdpotential.engines.costs import Costs, PointCosts
from vmdpotential.methods import Request
from vmdpotential.splitting.coulomb import optimal
from vmdpotential.splitting.gaussian import rendered
from vmdpotential.splitting.mesh import Split

#: Orders of B-splines, ratios of split radius and mesh spacing, and mesh spacings (A) that are tried.
ORDERS = (4, 6, 8)
RATIOS = tuple(2.5 + 0.125 * n for n in range(61))
SPACINGS = tuple(0.2 * 1.12**n for n in range(30))

#: Further ratios of split radius and mesh spacing that are tried for a given radius.
LARGER = tuple(10.5 + 0.5 * n for n in range(20))

#: Mesh spacings that are tried for Gaussian charges, relative to their width.
PARTS = tuple(0.1 * 1.06**n for n in range(72))


def exponentials(request: Request) -> int:
    """Return how many exponential functions the interaction of a pair has, which take longer than all else in it."""
    program = request.interaction.scaled().program
    return sum(step[0] in ("exp", "erfc") and level == 2 for step, level in zip(
        program.steps, program.levels(), strict=True))


@dataclass(frozen=True)
class Size:
    """The size of a map.

    Parameters
    ----------
    atoms, points : int
    spacing : float, A
        Spacing of the lattice.
    density : float, 1/A^3
        Number of atoms per volume.
    extents : (3,) float, A
        Lengths of the mesh: of the cell, or the box around atoms and lattice.
    periodic : bool
        Whether the mesh needs no padding.
    maps : int
        Number of maps: 1, or 4 with the field.
    """

    atoms: int
    points: int
    spacing: float
    density: float
    extents: tuple[float, float, float]
    periodic: bool
    maps: int = 1

    @classmethod
    def of(cls, request: Request) -> Size:
        """Return the size of a requested map."""
        lattice, charges = request.lattice, request.charges
        if request.cell is None:
            extents = np.maximum(lattice.last, charges.box.high) - np.minimum(lattice.origin, charges.box.low)
        else:
            extents = np.linalg.norm(request.cell.vectors, axis=1)
        a, b, c = extents.tolist()
        return cls(charges.count, lattice.size, float(lattice.spacing.max()), charges.count / charges.volume, (a, b, c),
                   request.cell is not None, 4 if request.field else 1)


def parts(size: Size, mesh: float, radius: float, order: int) -> tuple[float, ...]:
    """Return the amounts of the parts of a mesh sum, in the order of :class:`Costs`; with a radius of 0, no pairs."""
    points = math.prod(transform(size.extents, mesh, order, size.periodic))
    turns = points * math.log2(points)
    around = size.points * size.density if radius else 0.0
    pairs, candidates = around * _within(3 * size.spacing, radius), around / 512 * _within(7 * size.spacing, radius)
    return (1.0, float(size.atoms), size.atoms * float(order) ** 3, 0.0 if size.periodic else turns,
            turns if size.periodic else 0.0, size.maps * size.points * float(order), pairs, candidates,
            float(size.points), 0.0)


def transform(extents: Sequence[float], mesh: float, order: int, periodic: bool) -> list[float]:
    """Return about how many points a Fourier transform has along each axis."""
    return [extent / mesh if periodic else 2 * (extent / mesh + order) for extent in extents]


def _within(side: float, radius: float) -> float:
    """Return the volume (A^3) within a radius (A) of a cube of some side (A)."""
    return side**3 + 6 * side**2 * radius + 3 * math.pi * side * radius**2 + 4 / 3 * math.pi * radius**3


def seconds(size: Size, costs: Costs, mesh: float, radius: float, order: int) -> float:
    """Return the time that a mesh sum should take."""
    return float(sum(map(operator.mul, costs, parts(size, mesh, radius, order))))


def choices(error: float, split: Split = optimal) -> Iterator[tuple[float, float, int]]:
    """Yield mesh spacing (A), split radius over it, and order of all meshes just good enough for an error.

    Parameters
    ----------
    error : float, 1/A
        For uncorrelated unit charges, one in 1 A^3.
    split : callable
        Makes the splitting for a radius, a mesh spacing and an order, and says its error.
    """
    def error_of(number: int, spacing: float, order: int) -> float:
        return split(RATIOS[number] * spacing, spacing, order)[1]

    for order in ORDERS:
        # the smallest ratio that suffices: the error decreases with it, as long as the radius is not too large, and
        # increases with the spacing
        number = bisect_left(
            range(len(RATIOS)), True, key=lambda n: not error < error_of(n, SPACINGS[0], order) < math.inf)
        for spacing in SPACINGS:
            while number < len(RATIOS) and error_of(number, spacing, order) > error:
                number += 1
            if number == len(RATIOS):
                break
            yield spacing, RATIOS[number], order


@lru_cache(maxsize=64)
def cheapest(size: Size, costs: Costs, error: float,
             split: Split = optimal) -> tuple[float, float, int, float] | None:
    """Return mesh spacing (A), ratio of radius and spacing, order and seconds of the cheapest mesh for an error.

    None if no mesh is good enough.
    """
    best = min(((seconds(size, costs, spacing, ratio * spacing, order), spacing, ratio, order)
                for spacing, ratio, order in choices(error, split)), default=None)
    return None if best is None else (*best[1:], best[0])


@lru_cache(maxsize=64)
def cheapest_smeared(size: Size, costs: Costs, error: float, width: float) -> tuple[float, float, int, float] | None:
    """Return the same as :func:`cheapest` for Gaussian charges of a width (A), which have no pairs: the ratio is 0."""
    best = min(((seconds(size, costs, spacing, 0.0, order), spacing, order) for order in ORDERS
                for spacing in (width * part for part in PARTS) if rendered(width, 0.0, spacing, order)[1] <= error),
               default=None)
    return None if best is None else (best[1], 0.0, best[2], best[0])


def point_extents(request: Request) -> tuple[float, ...]:
    """Return the lengths (3,) of a mesh for points, A."""
    if request.cell is not None:
        return tuple(np.linalg.norm(request.cell.vectors, axis=1).tolist())
    atoms, points = request.charges.box, request.target.box
    return tuple((np.maximum(atoms.high, points.high) - np.minimum(atoms.low, points.low)).tolist())


def cheapest_at_points(request: Request, costs: PointCosts, error: float,
                       split: Split = optimal) -> tuple[float, float, int, float] | None:
    """Return mesh spacing (A), ratio of radius and spacing, order and seconds of the cheapest mesh for points.

    None if no mesh is good enough. With a given split radius, pairs do not count, as they are summed elsewhere.
    """
    extents, periodic, charges, count = (
        point_extents(request), request.cell is not None, request.charges, request.target.size)
    node, radius = costs.node_periodic if periodic else costs.node_open, request.radius
    density = charges.count / charges.volume

    def seconds(spacing: float, ratio: float, order: int) -> float:
        within = 0.0 if radius is not None else density * 4 / 3 * math.pi * (ratio * spacing) ** 3
        return (costs.fixed + costs.point * count + node * math.prod(transform(extents, spacing, order, periodic))
                + costs.near * count * within + order**3 * (costs.spread * charges.count + costs.gather * count))

    result = choices(error, split) if radius is None else _of_radius(radius, error, split)
    best = min(((seconds(*choice), *choice) for choice in result), default=None)
    return None if best is None else (*best[1:], best[0])


def _of_radius(radius: float, error: float, split: Split) -> Iterator[tuple[float, float, int]]:
    """Yield the meshes as :func:`choices`, for one split radius (A)."""
    for order in ORDERS:
        ratio = next((r for r in (*RATIOS, *LARGER) if split(radius, radius / r, order)[1] <= error), None)
        if ratio is not None:
            yield radius / ratio, ratio, order
