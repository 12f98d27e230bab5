"""What a mesh sum costs, and the cheapest mesh for an error.

The time is a sum of parts, each in proportion to something known beforehand, with an engine's coefficients
(:mod:`vmdpotential.engines.costs`); the error is known from :func:`vmdpotential.splitting.coulomb.optimal`.
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

#: What is tried: orders of B-splines, split radii over mesh spacings, mesh spacings in A.
ORDERS = (4, 6, 8)
RATIOS = tuple(2.5 + 0.125 * n for n in range(61))
SPACINGS = tuple(0.2 * 1.12**n for n in range(30))

#: Split radii over mesh spacings that are tried where the radius is given, in addition to those of all meshes.
LARGER = tuple(10.5 + 0.5 * n for n in range(20))

#: Mesh spacings that are tried for Gaussian charges, over their width.
PARTS = tuple(0.1 * 1.06**n for n in range(72))


@dataclass(frozen=True)
class Size:
    """The size of a map.

    Parameters
    ----------
    atoms, points : int
    spacing : float, A
        Of the lattice.
    density : float, 1/A^3
        Atoms in a volume.
    extents : (3,) float, A
        Of the mesh: the cell's, or the box around atoms and lattice.
    periodic : bool
        Whether the mesh needs no padding.
    maps : int
        How many maps are summed.
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
        """Return the size of what is requested."""
        lattice, charges = request.lattice, request.charges
        if request.cell is None:
            extents = np.maximum(lattice.last, charges.box.high) - np.minimum(lattice.origin, charges.box.low)
        else:
            extents = np.linalg.norm(request.cell.vectors, axis=1)
        a, b, c = extents.tolist()
        return cls(charges.count, lattice.size, float(lattice.spacing.max()), charges.count / charges.volume, (a, b, c),
                   request.cell is not None, 4 if request.field else 1)


def parts(size: Size, mesh: float, radius: float, order: int) -> tuple[float, ...]:
    """Return how much there is of each part of a mesh sum, in the order of :class:`Costs`; a radius of 0 has no pairs.
    """
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
        # the smallest ratio that will do: the error falls with it, as long as the radius is not too large, and grows
        # with the spacing
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
    """Return mesh spacing (A), ratio of radius to it, order and seconds of the cheapest mesh for an error.

    None where no mesh is good enough.
    """
    best = min(((seconds(size, costs, spacing, ratio * spacing, order), spacing, ratio, order)
                for spacing, ratio, order in choices(error, split)), default=None)
    return None if best is None else (*best[1:], best[0])


@lru_cache(maxsize=64)
def cheapest_smeared(size: Size, costs: Costs, error: float, width: float) -> tuple[float, float, int, float] | None:
    """Return the same for Gaussian charges of a width (A), which have no pairs: the ratio is 0."""
    best = min(((seconds(size, costs, spacing, 0.0, order), spacing, order) for order in ORDERS
                for spacing in (width * part for part in PARTS) if rendered(width, 0.0, spacing, order)[1] <= error),
               default=None)
    return None if best is None else (best[1], 0.0, best[2], best[0])


def point_extents(request: Request) -> tuple[float, ...]:
    """Return the lengths (3,) of what a mesh for points covers, A."""
    if request.cell is not None:
        return tuple(np.linalg.norm(request.cell.vectors, axis=1).tolist())
    atoms, points = request.charges.box, request.points.box
    return tuple((np.maximum(atoms.high, points.high) - np.minimum(atoms.low, points.low)).tolist())


def cheapest_at_points(request: Request, costs: PointCosts, error: float,
                       split: Split = optimal) -> tuple[float, float, int, float] | None:
    """Return mesh spacing (A), ratio of radius to it, order and seconds of the cheapest mesh for points.

    None where no mesh is good enough. Of a given split radius, pairs cost nothing.
    """
    extents, periodic, charges, count = (
        point_extents(request), request.cell is not None, request.charges, request.points.count)
    node, radius = costs.node_periodic if periodic else costs.node_open, request.points.radius
    density = charges.count / charges.volume

    def seconds(spacing: float, ratio: float, order: int) -> float:
        within = 0.0 if radius is not None else density * 4 / 3 * math.pi * (ratio * spacing) ** 3
        return (costs.fixed + costs.point * count + node * math.prod(transform(extents, spacing, order, periodic))
                + costs.near * count * within + order**3 * (costs.spread * charges.count + costs.gather * count))

    result = choices(error, split) if radius is None else _of_radius(radius, error, split)
    best = min(((seconds(*choice), *choice) for choice in result), default=None)
    return None if best is None else (*best[1:], best[0])


def _of_radius(radius: float, error: float, split: Split) -> Iterator[tuple[float, float, int]]:
    """Yield what :func:`choices` yields, for one split radius (A)."""
    for order in ORDERS:
        ratio = next((r for r in (*RATIOS, *LARGER) if split(radius, radius / r, order)[1] <= error), None)
        if ratio is not None:
            yield radius / ratio, ratio, order
