"""The region of a molecule on a lattice: signed distances of nodes to its surface, and the region of the ions.

The centre of a probe of radius p can be anywhere outside of the spheres with radii r + p around the atoms. The
molecular surface (F. M. Richards, Annu. Rev. Biophys. Bioeng. 6 (1977) 151) is at the distance p from this accessible
region. The nearest accessible point to a node is straight out of the sphere in which the node is deepest, unless
another sphere covers that point; otherwise it is on an arc where two spheres intersect.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import threads
from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice, bounds
from vmdpotential.kernels.launch import KernelFile, call, launch, load_library

Floats = NDArray[np.float64]
Values = NDArray[np.float32]

KERNELS = KernelFile(Path(__file__).with_name("region.cu"))

#: Largest number of cubes along an axis.
MAX_CUBES = 200

#: Number of values that describe an arc.
ARC = 16

#: Number of nodes that a thread takes at a time.
NODES_AT_ONCE = 100_000

#: Number of atoms for which a thread computes neighbours or arcs at a time.
ATOMS_AT_ONCE = 100


class Cubes:
    """Points sorted by the cubes of space that contain them, row by row.

    Parameters
    ----------
    points : (N, 3) float64, A
    side : float, A
        Smallest side of a cube; cubes are larger if there would be too many of them.

    Attributes
    ----------
    order : (N,) int64
        Indices of the points in the order of their cubes.
    of : (N, 3) int64
        The cube of each point, in this order.
    starts : (C + 1,) int64
        Index of the first point of each cube; z changes fastest.
    low : (3,) float64, A
        Corner of the first cube.
    side : float, A
    counts : (3,) int64
        Cubes along each axis.
    """

    def __init__(self, points: Floats, side: float) -> None:
        low, high = bounds(points) if len(points) else (np.zeros(3), np.zeros(3))
        self.low, self.side = low, max(side, float((high - low).max()) / MAX_CUBES, 1e-9)
        self.counts = np.floor((high - low) / self.side).astype(np.int64) + 1
        self.starts = np.zeros(int(self.counts.prod()) + 1, np.int64)
        self.order, self.of = np.empty(len(points), np.int64), np.empty((len(points), 3), np.int64)
        call(KERNELS["sort_into_cubes"], 0, 1, points=np.ascontiguousarray(points), numbers=np.empty_like(self.order),
             ends=np.empty_like(self.starts), starts=self.starts, order=self.order, cubes=self.of, count=len(points),
             cube_count=len(self.starts) - 1, counts=self.counts, low=low, side=self.side)


class Surface:
    """The molecular surface of atoms; the van der Waals surface with a probe of 0.

    Parameters
    ----------
    positions : (N, 3) float64, A
    radii : (N,) float64, A
        Atoms with a radius of 0 are ignored.
    probe : float, A

    Attributes
    ----------
    order : (M,) int64
        Indices of the atoms with a radius, in the order of `centres` and `radii`.
    centres, radii : (M, 3) and (M,) float64, A
        The spheres that the centre of the probe cannot enter.
    cubes : Cubes
        The cubes by which spheres are sorted; their sides are at least the largest diameter.
    """

    def __init__(self, positions: Floats, radii: Floats, probe: float) -> None:
        chosen = np.flatnonzero(radii > 0)
        self.probe = probe
        self.cubes = Cubes(positions.take(chosen, 0), 2 * float(radii.max(initial=0.0) + probe))
        self.order = chosen[self.cubes.order]  # neighbours in space are neighbours in memory
        self.centres, self.radii = positions.take(self.order, 0), radii[self.order] + probe

    def distances(self, lattice: Lattice, layers: int = 1, engine: Engine | None = None) -> Values:
        """Return the distances (nx, ny, nz), A, of nodes to the surface, negative inside.

        They are exact within `layers` spacings of the surface, and bounds farther away.
        """
        return self.with_ions(lattice, None, layers, engine)[0]

    def with_ions(self, lattice: Lattice, ion: float | None, layers: int = 1,
                  engine: Engine | None = None) -> tuple[Values, Values | None]:
        """Return :meth:`distances` and the fraction of each node's cell that is accessible to the centres of ions.

        The centres of ions are outside of spheres with the radii of the atoms plus `ion`, A. The CPU computes both
        unless an engine is given.
        """
        reach = 1.01 * layers * float(lattice.spacing.max())
        return self.signed(lattice, reach, ion) if engine is None else engine.surface(self, lattice, reach, ion)

    def signed(self, lattice: Lattice, reach: float, ion: float | None) -> tuple[Values, Values | None]:
        """Return :meth:`with_ions`, computed on the CPU; distances are exact up to `reach`, A, from the surface.

        The sphere in which a node is deepest is the same for ions as for the probe.
        """
        lanes = load_library().vector_floats()
        if lattice.shape[2] < lanes:
            longer = Lattice(lattice.origin, lattice.spacing, (*lattice.shape[:2], lanes))
            distances, shares = self.signed(longer, reach, ion)
            distances = np.ascontiguousarray(distances[..., :lattice.shape[2]])
            return distances, None if shares is None else np.ascontiguousarray(shares[..., :lattice.shape[2]])
        probe = self.probe
        depth, deepest = self._depths(lattice, reach if ion is None else max(reach, ion - probe + reach))
        shares = None
        if ion is not None:
            side, shares = float(lattice.spacing.mean()), np.empty(lattice.shape, np.float32)
            launch_nodes("compute_shares", lattice, depth=depth, shares=shares, slope=-1 / side,
                         offset=0.5 - (ion - probe) / side)
        if probe == 0 or not len(self.centres):
            return np.negative(depth, out=depth), shares
        place = {"origin": lattice.origin, "spacing": lattice.spacing, "shape": lattice.shape, "probe": probe,
                 "reach": reach}
        first, others = self.neighbours
        launch_planes("project_depths", lattice, centres=self.centres, radii=self.radii, first=first, others=others,
                      depth=depth, deepest=deepest, **place)
        launch_planes("roll_probes", lattice, arcs=self.arcs, count=len(self.arcs), distances=depth, **place)
        return depth, shares

    def _depths(self, lattice: Lattice, reach: float) -> tuple[Values, NDArray[np.int32]]:
        """Return the depth of each node in the sphere in which it is deepest, at least -`reach`, A, and that sphere."""
        depth, deepest = np.empty(lattice.shape, np.float32), np.empty(lattice.shape, np.int32)
        launch_planes("stamp_spheres", lattice, centres=self.centres, radii=self.radii, depth=depth, deepest=deepest,
                      shape=lattice.shape, spheres=len(self.radii), origin=lattice.origin, spacing=lattice.spacing,
                      reach=reach)
        return depth, deepest

    @cached_property
    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The index of the first neighbour of each sphere, and the intersecting spheres of all, nearer ones first."""
        numbers, cubes = np.zeros(len(self.centres), np.int64), self.cubes
        largest, longest = float(self.radii.max(initial=0.0)), int(np.diff(cubes.starts).max(initial=0))
        others = self._of_atoms("find_neighbours", np.empty(100, np.int32), lambda: {
            "starts": cubes.starts, "cubes": cubes.of, "squares": np.empty(3 * longest), "near": np.empty(3 * longest),
            "chosen": np.empty(27 * longest, np.int32), "bins": np.empty(27 * longest, np.int64), "numbers": numbers,
            "counts": cubes.counts, "largest": largest})
        return np.concatenate([[0], np.cumsum(numbers)]), others

    @cached_property
    def arcs(self) -> Floats:
        """(A, ARC) arcs on which the centres of probes are that touch two atoms; the kernel describes the columns."""
        first, others = self.neighbours
        most = int(np.diff(first).max(initial=0))
        return self._of_atoms("find_arcs", np.empty((4, ARC)), lambda: {
            "first": first, "others": others, "scratch": np.empty((7, most)), "most": most})

    def _of_atoms(self, name: str, rows: NDArray[Any], arguments: Callable[[], dict[str, Any]]) -> NDArray[Any]:
        """Return the rows that a kernel writes for all atoms, on all threads.

        The length of `rows` is the expected number of rows per atom, and its type is that of the result. The kernel
        counts the rows for a range of atoms, and runs again if there are more. `arguments` returns its own arguments,
        with scratch memory for one thread.
        """
        def of(first: int, last: int) -> tuple[NDArray[Any]]:
            given, total, count = arguments(), np.zeros(1, np.int64), len(rows) * (last - first)
            while True:
                out = np.empty((count, *rows.shape[1:]), rows.dtype)
                call(KERNELS[name], first, last, centres=self.centres, radii=self.radii, out=out, room=len(out),
                     total=total, **given)
                if total[0] <= count:
                    return (out[: total[0]].copy(),)
                count = int(total[0])

        return threads.joined(of, len(self.centres), "surface", ATOMS_AT_ONCE)[0]


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
    launch_planes("compute_conductances", lattice, distances=distances, outside=outside,
                  between=2 / (1 / outside[:-1] + 1 / outside[1:]), x=x, y=y, z=z, shape=lattice.shape,
                  weights=weights, inside=inside)
    return x, y, z


def inside_nodes(distances: Values) -> NDArray[np.bool_]:
    """Return which nodes (nx, ny, nz) are inside, where distances (nx, ny, nz) to the surface are negative."""
    within = np.empty(distances.shape, np.bool_)
    launch(KERNELS["find_sides"], distances.size, "surface", NODES_AT_ONCE,
           distances=np.ascontiguousarray(distances), within=within)
    return within


def scale_shares(shares: Values, within: NDArray[np.bool_], factors: Values) -> None:
    """Multiply the shares (nx, ny, nz) of cells that ions can reach by factors (nz,), and by 0 inside."""
    nz = shares.shape[2]
    launch(KERNELS["scale_shares"], shares.size // nz, "surface", max(1, NODES_AT_ONCE // nz), shares=shares,
           within=within, factors=factors, nz=nz)


def launch_planes(name: str, lattice: Lattice, **values: Any) -> None:
    """Run a kernel of this file for the planes of a lattice, on all threads."""
    launch(KERNELS[name], lattice.shape[0], "surface", planes_at_once(lattice.shape[0]), **values)


def launch_nodes(name: str, lattice: Lattice, **values: Any) -> None:
    """Run a kernel of this file for the nodes of a lattice, on all threads."""
    launch(KERNELS[name], lattice.size, "surface", NODES_AT_ONCE, **values)


def planes_at_once(planes: int) -> int:
    """Return the number of planes that a thread takes at a time."""
    return max(8, -(-planes // threads.count()))
