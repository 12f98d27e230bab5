"""The input of engines for the potential of charges on the edges that a molecule's surface cuts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Lattice

Floats = NDArray[np.float64]
Scalar = TypeVar("Scalar", float, Floats)

#: Smallest square of the distance of a charge from the line of an edge, A^2 (soft core).
CORE = 1e-4


@dataclass(frozen=True, eq=False)
class EdgeSum:
    """The potential of N charges on E edges, interpolated along them, but for near charges by closed forms.

    Parameters
    ----------
    lattice : Lattice
    inner, outer : (E,) int64
        Ends of the edges, as places in a flat array.
    share : (E,) float64
        Where the potential is wanted: the fraction of the edge from its inner end.
    line : (E, 4) float32, kT/e
        The potential at four nodes in line: the one before the inner end, both ends, and the one after the outer end.
    positions : (N, 3) float64, A
    charges : (N,) float64, kT/e A
        Charges, whose potential is charge / r.
    near : float, A
        Largest distance from the inner end of charges that have closed forms.
    """

    lattice: Lattice
    inner: NDArray[np.int64]
    outer: NDArray[np.int64]
    share: Floats
    line: NDArray[np.float32]
    positions: Floats
    charges: Floats
    near: float


def along(a: Scalar, b: Scalar, c: Scalar, d: Scalar, t: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return what is known of a potential at t between the middle two of four nodes in line, by its values there.

    Its value, its first and second derivatives per edge by a cubic polynomial; and the mean of its derivative over the
    face of the nodes' cells between both, to the fourth order for a potential without sources.
    """
    third = d - 3 * c + 3 * b - a
    second, middle = 0.5 * (a - b - c + d), t - 0.5  # in the edge's middle
    first, mean = c - b - third / 24, 0.5 * (b + c) - second / 8
    value = mean + middle * (first + middle * (second / 2 + middle * third / 6))
    slope = first + middle * (second + middle * third / 2)
    return value, slope, second + middle * third, c - b - third / 12
