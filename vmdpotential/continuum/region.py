"""The region of a molecule on a lattice: signed distances of nodes to its surface, and where ions can be.

The molecular surface (F. M. Richards, Annu. Rev. Biophys. Bioeng. 6 (1977) 151) is a probe's radius inside of where
the probe's centre can be: outside of spheres of the radii r + p. A node's distance to that is the way out of the sphere
that it is the deepest in, where another sphere does not cover its end; elsewhere it is that to an arc between two
spheres.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build, threads
from vmdpotential.grid.lattice import Lattice, bounds

Floats = NDArray[np.float64]
Values = NDArray[np.float32]

#: Atoms whose neighbours or arcs a thread computes at a time.
SOME_ATOMS = 500


class Surface:
    """The molecular surface of atoms; with a probe of 0 van der Waals'.

    Parameters
    ----------
    positions : (N, 3) float64, A
    radii : (N,) float64, A
        Atoms of a radius of 0 have no part in the surface.
    probe : float, A
    """

    def __init__(self, positions: Floats, radii: Floats, probe: float) -> None:
        chosen = radii > 0
        self._centres, self._accessible = np.ascontiguousarray(positions[chosen]), radii[chosen] + probe
        self._probe, self._kernel = probe, build.load("region_kernel")

    def distances(self, lattice: Lattice) -> Values:
        """Return the distances (nx, ny, nz), A, of nodes to the surface, negative inside.

        Exact within a spacing of the surface, farther away only a bound.
        """
        reach = 1.01 * float(lattice.spacing.max())
        centres, accessible, probe = self._centres, self._accessible, self._probe
        depth, deepest = depths(centres, accessible, lattice, reach)
        if probe == 0 or not len(centres):
            return -depth
        place = (lattice.origin, lattice.spacing)
        by_planes(partial(self._kernel.project, centres, accessible, *self._neighbours, *place, probe, reach, depth,
                          deepest), lattice)
        by_planes(partial(self._kernel.roll, self._arcs, probe, reach, *place, depth), lattice)
        return depth

    @cached_property
    def _neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return _neighbours(self._kernel, self._centres, self._accessible)

    @cached_property
    def _arcs(self) -> Floats:
        """Where the centres of probes are that touch two atoms, see the kernel."""
        atoms, parts = (self._centres, self._accessible, *self._neighbours), {}

        def add(first: int, last: int) -> None:
            rows = np.empty((4 * (last - first), 12))
            count = self._kernel.arcs(*atoms, first, last, rows)
            if count > len(rows):
                rows = np.empty((count, 12))
                self._kernel.arcs(*atoms, first, last, rows)
            parts[first] = rows[:count]

        threads.run(add, len(self._centres), "surface", SOME_ATOMS)
        return np.concatenate([parts[first] for first in sorted(parts)])


def depths(centres: Floats, radii: Floats, lattice: Lattice, reach: float) -> tuple[Values, NDArray[np.int32]]:
    """Return how deep nodes are in the sphere that is the deepest, -`reach` at least, A, and which that is."""
    depth = np.full(lattice.shape, -reach, np.float32)
    deepest = np.zeros(lattice.shape, np.int32)
    stamp = build.load("region_kernel").stamp
    by_planes(partial(stamp, centres, radii, reach, lattice.origin, lattice.spacing, depth, deepest), lattice)
    return depth, deepest


def ion_shares(positions: Floats, radii: Floats, ion: float, lattice: Lattice) -> Values:
    """Return which part (nx, ny, nz) of each node's surroundings the centres of ions of a radius (A) can be in."""
    reach, chosen = float(lattice.spacing.max()), radii > 0
    depth, _ = depths(np.ascontiguousarray(positions[chosen]), radii[chosen] + ion, lattice, reach)
    shares: Values = np.clip(np.float32(0.5) - depth / np.float32(lattice.spacing.mean()), 0, 1)
    return shares


def conductances(distances: Values, inside: float, outside: Floats, lattice: Lattice) -> tuple[Values, Values, Values]:
    """Return the conductances of the edges from each node along x, y and z, over the mean spacing.

    Parameters
    ----------
    distances : (nx, ny, nz) float32
        To the surface, negative inside.
    inside : float
        Permittivity of the molecule.
    outside : (nz,) float64
        Of what is around it, at each height.
    lattice : Lattice
    """
    weights = np.prod(lattice.spacing) / lattice.spacing**2 / lattice.spacing.mean()
    x, y, z = (np.empty(lattice.shape, np.float32) for _ in range(3))
    by_planes(partial(build.load("region_kernel").edges, distances, inside, outside, weights, x, y, z), lattice)
    return x, y, z


def by_planes(kernel: Any, lattice: Lattice) -> None:
    """Run a kernel for all planes of a lattice, on all threads."""
    planes = lattice.shape[0]
    threads.run(kernel, planes, "surface", max(8, -(-planes // threads.count())))


def _neighbours(kernel: Any, centres: Floats, radii: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the spheres that meet each sphere, the nearest first, those of sphere n from first[n] on."""
    low, high = bounds(centres)
    side = max(2 * float(radii.max()), float((high - low).max()) / 200)
    cubes = ((centres - low) / side).astype(np.int64)
    counts = cubes.max(0) + 1
    number = (cubes[:, 0] * counts[1] + cubes[:, 1]) * counts[2] + cubes[:, 2]
    order = np.argsort(number, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=int(counts.prod())))])
    first, nothing = np.zeros(len(radii) + 1, np.int64), np.zeros(0, np.int64)
    fixed = (centres, radii, order, starts, low, side, counts)

    def run(*output: Any) -> None:
        threads.run(partial(kernel.neighbours, *fixed, first, *output), len(radii), "surface", SOME_ATOMS)

    run(nothing, np.zeros(0), False)
    first = np.cumsum(first)
    others = np.empty(first[-1], np.int64)
    run(others, np.empty(len(others)), True)
    return first, others
