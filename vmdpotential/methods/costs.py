"""What a mesh sum costs, and the cheapest mesh for an error.

The time is a sum of parts, each in proportion to something known beforehand, with coefficients that
``scripts/tune`` measured for every engine; the error is known from :func:`~.splitting.optimal`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from vmdpotential.errors import TaskError
from vmdpotential.splitting.coulomb import optimal
from vmdpotential.splitting.mesh import Split

#: What is tried: orders of B-splines, split radii over mesh spacings, mesh spacings in A.
ORDERS = (4, 6, 8)
RATIOS = tuple(2.5 + 0.25 * n for n in range(31))
SPACINGS = tuple(0.2 * 1.12**n for n in range(30))


@dataclass(frozen=True)
class Task:
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
    """

    atoms: int
    points: int
    spacing: float
    density: float
    extents: tuple[float, float, float]
    periodic: bool


class Costs(NamedTuple):
    """Seconds of an engine for one of each part of the work.

    Parameters
    ----------
    fixed : float
        Whatever the size.
    atom : float
        An atom: its way to the engine and its place in the order.
    spread : float
        A node that one atom's charge goes to.
    transform_open, transform_periodic : float
        A point of the Fourier transform times the logarithm (base 2) of their number.
    interpolate : float
        A lattice point and node along one axis.
    pair : float
        An atom and lattice point that an engine evaluates.
    candidate : float
        An atom looked at for a tile of 8^3 lattice points.
    point : float
        A lattice point of the pair sum.
    direct : float
        An atom and lattice point of a direct sum.
    """

    fixed: float
    atom: float
    spread: float
    transform_open: float
    transform_periodic: float
    interpolate: float
    pair: float
    candidate: float
    point: float
    direct: float


#: As scripts/tune measured: the CPU engine with two threads of an EPYC (Zen 4) processor, an H200.
#: Only their ratios matter for a choice.
COSTS = {
    "cpu": Costs(fixed=8e-3, atom=1.7e-7, spread=6.5e-10, transform_open=2.8e-10, transform_periodic=1e-9,
                 interpolate=6e-11, pair=9.3e-11, candidate=0.0, point=7.9e-9, direct=5.2e-11),
    "cuda": Costs(fixed=1.0e-3, atom=3.1e-9, spread=4.5e-12, transform_open=1.9e-12, transform_periodic=1.4e-12,
                  interpolate=1.0e-12, pair=4.7e-13, candidate=0.0, point=6.0e-11, direct=2.5e-13),
}


def parts(task: Task, mesh: float, radius: float, order: int) -> tuple[float, ...]:
    """Return how much there is of each part of a mesh sum, in the order of :class:`Costs`."""
    points = math.prod(extent / mesh if task.periodic else 2 * (extent / mesh + order) for extent in task.extents)
    transform = points * math.log2(points)
    pairs = task.points * task.density * _within(3 * task.spacing, radius)
    candidates = task.points / 512 * task.density * _within(7 * task.spacing, radius)
    return (1.0, float(task.atoms), task.atoms * float(order) ** 3, 0.0 if task.periodic else transform,
            transform if task.periodic else 0.0, task.points * float(order), pairs, candidates, float(task.points), 0.0)


def _within(side: float, radius: float) -> float:
    """Return the volume (A^3) within a radius (A) of a cube of some side (A)."""
    return side**3 + 6 * side**2 * radius + 3 * math.pi * side * radius**2 + 4 / 3 * math.pi * radius**3


def seconds(task: Task, costs: Costs, mesh: float, radius: float, order: int) -> float:
    """Return the time that a mesh sum should take."""
    return float(sum(map(operator.mul, costs, parts(task, mesh, radius, order))))


def choices(error: float, split: Split = optimal) -> Iterator[tuple[float, float, int]]:
    """Yield mesh spacing (A), split radius over it, and order of all meshes just good enough for an error.

    Parameters
    ----------
    error : float, 1/A
        For uncorrelated unit charges, one in 1 A^3.
    split : callable
        Makes the splitting for a radius, a mesh spacing and an order, and says its error.
    """
    for order in ORDERS:
        number = 0
        for spacing in SPACINGS:
            # the smallest ratio that will do: the error falls with it, and grows with the spacing
            while number < len(RATIOS) and split(RATIOS[number] * spacing, spacing, order)[1] > error:
                number += 1
            if number == len(RATIOS):
                break
            yield spacing, RATIOS[number], order


def cheapest(task: Task, costs: Costs, error: float,
             split: Split = optimal) -> tuple[float, float, int, float]:
    """Return mesh spacing (A), ratio of radius to it, order and seconds of the cheapest mesh for an error.

    Raises
    ------
    TaskError
        When no mesh is good enough.
    """
    best = min(((seconds(task, costs, spacing, ratio * spacing, order), spacing, ratio, order)
                for spacing, ratio, order in choices(error, split)), default=None)
    if best is None:
        raise TaskError("--tolerance: no mesh reaches it; use a larger one, or --method direct")
    return best[1], best[2], best[3], best[0]
