"""The region of a molecule on a lattice: signed distances of nodes to its surface, and the region of the ions.

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

#: Largest number of cubes along an axis.
MOST = 200

#: Numbers that describe an arc.
ARC = 16

#: Atoms for which a thread computes neighbours or arcs at a time.
SOME_ATOMS = 500


class Cubes:
    """Points sorted by the cubes that they are in, row by row.

    Parameters
    ----------
    points : (N, 3) float64, A
    side : float, A
        Smallest side; longer where there would be too many cubes.

    Attributes
    ----------
    order : (N,) int64
        The points in the order of their cubes.
    of : (N, 3) int64
        The cubes of the points in this order.
    starts : (C + 1,) int64
        Index of the first point of each cube; z changes fastest.
    low : (3,) float64, A
        The first cube's corner.
    side : float, A
    counts : (3,) int64
        Cubes along each axis.
    """

    def __init__(self, points: Floats, side: float) -> None:
        low, high = bounds(points) if len(points) else (np.zeros(3), np.zeros(3))
        self.low, self.side = low, max(side, float((high - low).max()) / MOST, 1e-9)
        cubes = ((points - low) / self.side).astype(np.int64)
        self.counts = cubes.max(0, initial=0) + 1
        number = (cubes[:, 0] * self.counts[1] + cubes[:, 1]) * self.counts[2] + cubes[:, 2]
        self.order = np.argsort(number, kind="stable")
        self.of = cubes[self.order]
        ends = np.cumsum(np.bincount(number, minlength=int(self.counts.prod())))
        self.starts = np.concatenate([np.zeros(1, np.int64), ends])


class Surface:
    """The molecular surface of atoms; the van der Waals surface with a probe of 0.

    Parameters
    ----------
    positions : (N, 3) float64, A
    radii : (N,) float64, A
        Atoms of a radius of 0 have no part in the surface.
    probe : float, A

    Attributes
    ----------
    order : (M,) int64
        The atoms with a radius, in the order of the next two.
    centres, radii : (M, 3) and (M,) float64, A
        The spheres outside of which the probe's centre can be.
    """

    def __init__(self, positions: Floats, radii: Floats, probe: float) -> None:
        chosen = np.flatnonzero(radii > 0)
        self.probe, self._kernel = probe, build.load("region_kernel")
        self._cubes = Cubes(positions[chosen], 2 * float(radii.max(initial=0.0) + probe))
        self.order = chosen[self._cubes.order]  # neighbours in space are neighbours in memory
        self.centres, self.radii = positions[self.order], radii[self.order] + probe

    def distances(self, lattice: Lattice, layers: int = 1) -> Values:
        """Return the distances (nx, ny, nz), A, of nodes to the surface, negative inside.

        Exact within `layers` spacings of the surface, a bound farther away.
        """
        return self.with_ions(lattice, None, layers)[0]

    def with_ions(self, lattice: Lattice, ion: float | None, layers: int = 1) -> tuple[Values, Values | None]:
        """Return :meth:`distances` and the fraction of each node's cell that is accessible to the centres of ions.

        The centres are outside of spheres with the atoms' radii plus `ion`, A. The sphere in which a node is the
        deepest is the same for the ions as for the probe.
        """
        if lattice.shape[2] < self._kernel.LANES:
            longer = Lattice(lattice.origin, lattice.spacing, (*lattice.shape[:2], self._kernel.LANES))
            distances, shares = self.with_ions(longer, ion, layers)
            return distances[..., :lattice.shape[2]], None if shares is None else shares[..., :lattice.shape[2]]
        reach, probe = 1.01 * layers * float(lattice.spacing.max()), self.probe
        depth, deepest = self._depths(lattice, reach if ion is None else max(reach, ion - probe + reach))
        shares = None
        if ion is not None:
            side = float(lattice.spacing.mean())
            shares = depth * np.float32(-1 / side)
            shares += np.float32(0.5 - (ion - probe) / side)
            np.clip(shares, 0, 1, out=shares)
        if probe == 0 or not len(self.centres):
            return np.negative(depth, out=depth), shares
        place = (lattice.origin, lattice.spacing)
        by_planes(partial(self._kernel.project, self.centres, self.radii, *self.neighbours, *place, probe,
                          reach, depth, deepest), lattice)
        by_planes(partial(self._kernel.roll, self.arcs, probe, reach, *place, depth), lattice)
        return depth, shares

    def _depths(self, lattice: Lattice, reach: float) -> tuple[Values, NDArray[np.int32]]:
        """Return the depth, at least -`reach`, A, of nodes in the sphere that they are deepest in, and its index."""
        depth = np.full(lattice.shape, -reach, np.float32)
        deepest = np.zeros(lattice.shape, np.int32)
        by_planes(partial(self._kernel.stamp, self.centres, self.radii, reach, lattice.origin, lattice.spacing,
                          depth, deepest), lattice)
        return depth, deepest

    @cached_property
    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The spheres that meet each sphere, the nearest first, those of sphere n from first[n] on."""
        numbers, cubes = np.zeros(len(self.centres), np.int64), self._cubes
        others = self._of_atoms(partial(self._kernel.neighbours, self.centres, self.radii,
                                        cubes.starts, cubes.of, cubes.counts, numbers), np.empty(100, np.int32))
        return np.concatenate([[0], np.cumsum(numbers)]), others

    @cached_property
    def arcs(self) -> Floats:
        """(A, ARC) arcs of the centres of probes that touch two atoms, see the kernel."""
        return self._of_atoms(partial(self._kernel.arcs, self.centres, self.radii, *self.neighbours),
                              np.empty((4, ARC)))

    def _of_atoms(self, kernel: Any, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the rows that a kernel writes for all atoms, on all threads.

        `rows` has the type and the expected number of rows per atom; the kernel returns the actual number for a range
        of atoms, and is called again where that is larger.
        """
        parts = {}

        def add(first: int, last: int) -> None:
            out = np.empty((len(rows) * (last - first), *rows.shape[1:]), rows.dtype)
            count = kernel(first, last, out)
            if count > len(out):
                out = np.empty((count, *rows.shape[1:]), rows.dtype)
                kernel(first, last, out)
            parts[first] = out[:count].copy()

        threads.run(add, len(self.centres), "surface", SOME_ATOMS)
        return np.concatenate([parts[first] for first in sorted(parts)])


def conductances(distances: Values, inside: float, outside: Floats, lattice: Lattice) -> tuple[Values, Values, Values]:
    """Return the conductances of the edges from each node along x, y and z, over the mean spacing.

    Parameters
    ----------
    distances : (nx, ny, nz) float32
        To the surface, negative inside.
    inside : float
        Permittivity of the molecule.
    outside : (nz,) float64
        Permittivity around the molecule, at each height.
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
