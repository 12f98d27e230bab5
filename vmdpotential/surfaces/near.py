"""The sphere that a point is the deepest in, or the nearest to, among spheres sorted into cells."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build, threads

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Points that a thread takes at once.
TOGETHER = 20_000

#: Cells for each sphere at most; empty ones are searched in vain.
MOST_CELLS = 8


class Near:
    """Spheres, or points with radii of 0, that are looked for around other points.

    Parameters
    ----------
    centres : (N, 3) float64, A
        One or more.
    radii : (N,) float64, A
    side : float, A
        Of the cells; longer where most would be empty.
    """

    def __init__(self, centres: Floats, radii: Floats, side: float) -> None:
        self._origin = centres.min(0)
        extent = np.ptp(centres, axis=0)
        while np.prod(extent / side + 1) > MOST_CELLS * len(centres) + 1000:
            side *= 1.25
        self._side = side
        cells = ((centres - self._origin) / side).astype(np.int64)
        self._shape = cells.max(0) + 1
        cell = np.ravel_multi_index(tuple(cells.T), tuple(self._shape))
        self._order = np.argsort(cell, kind="stable")
        self._starts = np.searchsorted(cell[self._order], np.arange(np.prod(self._shape) + 1))
        self._centres, self._radii = np.ascontiguousarray(centres[self._order]), radii[self._order]

    def find(self, points: Floats, most: float = np.inf, enough: float = -np.inf) -> tuple[Floats, Integers]:
        """Return the distance, A, to the nearest surface, negative inside, and its sphere, (P,) each.

        Parameters
        ----------
        points : (P, 3) float64, A
        most : float, A
            Larger distances come back as this, and -1 as the sphere.
        enough : float, A
            Of distances below it any is returned.
        """
        best, which = np.full(len(points), most), np.full(len(points), -1, np.int64)
        threads.run(partial(
            build.load("near_kernel").run, np.ascontiguousarray(points), self._centres, self._radii, self._order,
            self._starts, self._shape, self._origin, self._side, float(self._radii.max()), enough, best, which),
            len(points), "surface", TOGETHER)
        return best, which
