"""Search for the sphere whose surface is nearest to a point, or in which the point is deepest, by cell lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vmdpotential.arrays import Floats, Integers
from vmdpotential.kernels.launch import KernelFile, launch_kernel

KERNELS = KernelFile(Path(__file__).with_name("near.cu"))


#: Number of points in a thread's share.
POINTS_PER_TASK = 20_000

#: Edge of the cells, A.
CELL = 3.0

#: Largest number of cells per sphere; searching empty cells wastes time.
MOST_CELLS = 8


class NearestSphere:
    """Spheres in cell lists, for searches of the one nearest to a point.

    Parameters
    ----------
    centres : (N, 3) float64, A
        Centres of the spheres, at least one.
    radii : (N,) float64, A
        Their radii; 0 for a search of points.
    side : float, A
        Edge of the cells; increased if most cells would be empty.
    """

    def __init__(self, centres: Floats, radii: Floats, side: float = CELL) -> None:
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
        self._centres, self._radii = np.ascontiguousarray(centres[self._order]), radii[self._order].astype(np.float64)

    def find(self, points: Floats, most: float = np.inf, enough: float = -np.inf) -> tuple[Floats, Integers]:
        """Return distances (P,), A, to the nearest sphere's surface, negative inside, and the spheres' indices (P,).

        Parameters
        ----------
        points : (P, 3) float64, A
            Points from which to search.
        most : float, A
            Limit of the search; the result is this distance and the index -1 if all spheres are farther away.
        enough : float, A
            Distance below which the search may stop, with a sphere that is not the nearest.
        """
        best, which = np.full(len(points), most), np.full(len(points), -1, np.int64)
        launch_kernel(KERNELS["find_nearest_spheres"], len(points), "surface", POINTS_PER_TASK,
               points=np.ascontiguousarray(points), centres=self._centres, radii=self._radii, order=self._order,
               starts=self._starts, best=best,
               which=which, shape=self._shape, origin=self._origin, side=self._side,
               largest=float(self._radii.max()), enough=enough)
        return best, which
