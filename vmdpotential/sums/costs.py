"""The cost of a mesh sum, and the cheapest mesh for an error.

The time is a sum of parts that are proportional to known quantities, with coefficients of the engine
(:mod:`vmdpotential.engines.costs`). The error is that of :func:`vmdpotential.splitting.coulomb.optimal_splitting`.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vmdpotential.engines.costs import Costs
from vmdpotential.splitting.coulomb import optimal_splitting
from vmdpotential.splitting.gaussian import gaussian_on_mesh
from vmdpotential.splitting.mesh import SplittingChoice
from vmdpotential.sums import Request

#: Orders of B-splines, ratios of split radius and mesh spacing, and mesh spacings (A) that are tried.
ORDERS = (4, 6, 8)
RATIOS = tuple(2.5 + 0.125 * n for n in range(61))
SPACINGS = tuple(0.2 * 1.12**n for n in range(30))

#: Further ratios of split radius and mesh spacing that are tried for a given radius.
LARGER = tuple(10.5 + 0.5 * n for n in range(20))

#: Mesh spacings that are tried for Gaussian charges, relative to their width.
PARTS = tuple(0.1 * 1.06**n for n in range(72))


def exponential_count(request: Request) -> int:
    """Return how many exponential functions the interaction of a pair has, which take longer than all else in it."""
    program = request.interaction.scaled().program
    return sum(step[0] in ("exp", "erfc") and level == 2 for step, level in zip(
        program.steps, program.levels, strict=True))


@dataclass(frozen=True)
class SumSize:
    """The size of a sum.

    Parameters
    ----------
    atoms, points : int
    spacing : float, A
        Spacing of the lattice; 0 for arbitrary points.
    density : float, 1/A^3
        Number of atoms per volume.
    extents : (3,) float, A
        Lengths of the mesh: of the cell, or the box around atoms and target.
    periodic : bool
        Whether the mesh needs no padding.
    maps : int
        Number of maps: 1, or 4 with the field.
    radius : float or None, A
        The split radius, if pairs within it are summed elsewhere.
    """

    atoms: int
    points: int
    spacing: float
    density: float
    extents: tuple[float, float, float]
    periodic: bool
    maps: int = 1
    radius: float | None = None

    @classmethod
    def of(cls, request: Request) -> SumSize:
        """Return the size of a requested sum."""
        target, charges = request.target, request.charges
        if request.cell is None:
            box = target.box
            extents = np.maximum(box.high, charges.box.high) - np.minimum(box.low, charges.box.low)
        else:
            extents = np.linalg.norm(request.cell.vectors, axis=1)
        a, b, c = extents.tolist()
        spacing = 0.0 if request.at_points else float(request.lattice.spacing.max())
        return cls(charges.count, target.size, spacing, charges.count / charges.volume, (a, b, c),
                   request.cell is not None, 4 if request.field else 1, request.radius)


def mesh_sum_parts(size: SumSize, mesh: float, radius: float, order: int) -> tuple[float, ...]:
    """Return the amounts of the parts of a map by a mesh, in the order of :class:`Costs`; with radius 0, no pairs."""
    points = math.prod(transform_extents(size.extents, mesh, order, size.periodic))
    turns = points * math.log2(points)
    around = size.points * size.density if radius else 0.0
    pairs, candidates = around * _within(3 * size.spacing, radius), around / 512 * _within(7 * size.spacing, radius)
    return (1.0, float(size.atoms), size.atoms * float(order) ** 3, 0.0 if size.periodic else turns,
            turns if size.periodic else 0.0, size.maps * size.points * float(order), pairs, candidates,
            float(size.points), 0.0)


def transform_extents(extents: Sequence[float], mesh: float, order: int, periodic: bool) -> list[float]:
    """Return about how many points a Fourier transform has along each axis."""
    return [extent / mesh if periodic else 2 * (extent / mesh + order) for extent in extents]


def _within(side: float, radius: float) -> float:
    """Return the volume (A^3) within a radius (A) of a cube of some side (A)."""
    return side**3 + 6 * side**2 * radius + 3 * math.pi * side * radius**2 + 4 / 3 * math.pi * radius**3


def mesh_sum_seconds(size: SumSize, costs: Costs, mesh: float, radius: float, order: int) -> float:
    """Return the time that a mesh sum should take."""
    if size.spacing:
        return float(sum(map(operator.mul, costs, mesh_sum_parts(size, mesh, radius, order))))
    nodes = math.prod(transform_extents(size.extents, mesh, order, size.periodic))
    within = 0.0 if size.radius is not None else size.density * _within(0.0, radius)
    return (costs.fixed + costs.at_point * size.points + costs.near * size.points * within
            + (costs.atom + (costs.sort if within else 0.0)) * size.atoms
            + (costs.transform_periodic if size.periodic else costs.transform_open) * nodes * math.log2(nodes)
            + order**3 * (costs.spread * size.atoms + costs.gather * size.points))


def choices(error: float, split: SplittingChoice = optimal_splitting) -> Iterator[tuple[float, float, int]]:
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
def cheapest_mesh(size: SumSize, costs: Costs, error: float, split: SplittingChoice = optimal_splitting,
             width: float | None = None) -> tuple[float, float, int, float] | None:
    """Return mesh spacing (A), ratio of radius and spacing, order and seconds of the cheapest mesh for an error.

    None if no mesh is good enough. Gaussian charges of a `width` (A) have no pairs: the ratio is 0.
    """
    meshes: Iterable[tuple[float, float, int]]
    if width is not None:
        meshes = ((width * part, 0.0, order) for order in ORDERS for part in PARTS
                  if gaussian_on_mesh(width, 0.0, width * part, order)[1] <= error)
    else:
        meshes = choices(error, split) if size.radius is None else _of_radius(size.radius, error, split)
    best = min(((mesh_sum_seconds(size, costs, spacing, ratio * spacing, order), spacing, ratio, order)
                for spacing, ratio, order in meshes), default=None)
    return None if best is None else (*best[1:], best[0])


def _of_radius(radius: float, error: float, split: SplittingChoice) -> Iterator[tuple[float, float, int]]:
    """Yield the meshes as :func:`choices`, for one split radius (A)."""
    for order in ORDERS:
        ratio = next((r for r in (*RATIOS, *LARGER) if split(radius, radius / r, order)[1] <= error), None)
        if ratio is not None:
            yield radius / ratio, ratio, order
