"""The region of a molecule on a lattice: signed distances of nodes to its surface, and the region of the ions.

The centre of a probe of radius p can be anywhere outside of the spheres with radii r + p around the atoms. The
molecular surface (F. M. Richards, Annu. Rev. Biophys. Bioeng. 6 (1977) 151) is at the distance p from this accessible
region. The nearest accessible point to a node is straight out of the sphere in which the node is deepest, unless
another sphere covers that point; otherwise it is on an arc where two spheres intersect.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine, get_engine
from vmdpotential.grid.lattice import Lattice, coordinate_bounds
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, call_kernel, load_library

Values = NDArray[np.float32]

KERNELS, ARC_KERNELS = (KernelFile(Path(__file__).with_name(name)) for name in ("region.cu", "arcs.cu"))

#: Largest number of cubes along an axis.
MAX_CUBES = 200

#: Number of values that describe an arc.
ARC = 16

#: Number of nodes that a thread takes at a time.
NODES_AT_ONCE = 100_000

#: Numbers of atoms, and of pairs of neighbours, that a thread takes at a time.
ATOMS_AT_ONCE, PAIRS_AT_ONCE = 100, 5000

#: Ranges of distance by which neighbours are sorted, and threads of a GPU for a sphere or an arc, as in the kernels.
BINS, WARP_THREADS = 16, 32

#: Number of arcs per sphere for which there is room at first, in proteins; bytes per sphere, rounded up.
ARCS_PER_SPHERE, BYTES_PER_SPHERE = 6, 2000


class PointCubes:
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
        low, high = coordinate_bounds(points) if len(points) else (np.zeros(3), np.zeros(3))
        self.low, self.side = low, max(side, float((high - low).max()) / MAX_CUBES, 1e-9)
        self.counts = np.floor((high - low) / self.side).astype(np.int64) + 1
        self.starts = np.zeros(int(self.counts.prod()) + 1, np.int64)
        self.order, self.of = np.empty(len(points), np.int64), np.empty((len(points), 3), np.int64)
        call_kernel(ARC_KERNELS["sort_into_cubes"], 0, 1, points=np.ascontiguousarray(points),
                    numbers=np.empty_like(self.order),
             ends=np.empty_like(self.starts), starts=self.starts, order=self.order, cubes=self.of, count=len(points),
             cube_count=len(self.starts) - 1, counts=self.counts, low=low, side=self.side)


class Spheres(NamedTuple):
    """What an engine has of a surface for all lattices, in arrays of the engine."""

    #: (M, 3) and (M,) float64: the spheres that the centre of the probe cannot enter.
    centres: Any
    radii: Any
    #: (M + 1,) int64 the first neighbour of each sphere, and (N,) int32 the neighbours of all.
    first: Any
    others: Any
    #: (A or more, ARC) float64 arcs on which probes roll, and their number A.
    arcs: Any
    arc_count: int


class Surface:
    """The molecular surface of atoms; the van der Waals surface with a probe of 0.

    Parameters
    ----------
    positions : (N, 3) float64, A
    radii : (N,) float64, A
        Atoms with a radius of 0 are ignored.
    probe : float, A
    closed : ((K, 3), (K,)) float64, A, optional
        Centres and radii of balls that the centre of the probe cannot enter either, such as those of cavities.

    Attributes
    ----------
    order : (M,) int64
        Indices of the atoms with a radius, in the order of `centres` and `radii`; the balls follow the last atom.
    centres, radii : (M, 3) and (M,) float64, A
        The spheres that the centre of the probe cannot enter.
    cubes : Cubes
        The cubes by which spheres are sorted; their sides are at least the largest diameter.
    """

    def __init__(self, positions: Floats, radii: Floats, probe: float,
                 closed: tuple[Floats, Floats] | None = None) -> None:
        chosen, spheres = np.flatnonzero(radii > 0), radii + probe
        if closed is not None:
            chosen = np.concatenate([chosen, len(radii) + np.arange(len(closed[1]))])
            positions, spheres = np.concatenate([positions, closed[0]]), np.concatenate([spheres, closed[1]])
        self.probe, self._atoms = probe, len(radii)
        self.cubes = PointCubes(positions.take(chosen, 0), 2 * float(spheres[chosen].max(initial=probe)))
        self.order = chosen[self.cubes.order]  # neighbours in space are neighbours in memory
        self.centres, self.radii = positions.take(self.order, 0), spheres[self.order]
        self._kept: dict[str, Spheres] = {}  # by the names of engines

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
        engine = engine or get_engine("cpu")
        planes, rows, row = lattice.shape
        longer = Lattice(lattice.origin, lattice.spacing, (planes, rows, max(row, load_library().vector_floats())))
        results = self.arrays(longer, ion, engine, layers)
        distances, shares = (None if each is None else np.ascontiguousarray(engine.to_host(each)[..., :row])
                             for each in results)
        assert distances is not None
        return distances, shares

    def arrays(self, lattice: Lattice, ion: float | None, engine: Engine, layers: int = 1) -> tuple[Any, Any]:
        """Return :meth:`with_ions` in arrays of an engine; rows have at least as many nodes as a vector has numbers.

        The sphere in which a node is deepest is the same for ions as for the probe.
        """
        reach = 1.01 * layers * float(lattice.spacing.max())
        planes, size, probe, shares = lattice.shape[0], lattice.size, self.probe, None
        place = {"origin": lattice.origin, "spacing": lattice.spacing, "shape": lattice.shape}
        at_once = planes_at_once(planes)
        kept = self._spheres(engine) if probe else None  # without a probe, nothing rolls
        with engine.room(20 * size, kept and kept.centres):
            spheres = kept or Spheres(engine.array(self.centres), engine.array(self.radii),
                                      engine.empty(0, np.int64), engine.empty(0, np.int32), engine.empty(0, float), 0)
            bare = {"centres": spheres.centres, "radii": spheres.radii}
            depth, deepest = engine.empty(lattice.shape, np.float32), engine.empty(lattice.shape, np.int32)
            stamped = bare | place | {
                "keys": engine.zeros(size, np.uint64), "depth": depth, "deepest": deepest, "spheres": len(self.radii),
                "reach": reach if ion is None else max(reach, ion - probe + reach)}
            engine.launch(KERNELS["stamp_spheres"], (planes, WARP_THREADS * len(self.radii)), "surface", at_once,
                          **stamped)
            engine.launch(KERNELS["unpack_keys"], (0, size), "surface", **stamped)
            del stamped
            if ion is not None:
                side, shares = float(lattice.spacing.mean()), engine.empty(lattice.shape, np.float32)
                engine.launch(KERNELS["compute_shares"], size, "surface", NODES_AT_ONCE, depth=depth, shares=shares,
                              slope=-1 / side, offset=0.5 - (ion - probe) / side)
            place |= {"probe": probe, "reach": reach}
            engine.launch(KERNELS["project_depths"], size, "surface", NODES_AT_ONCE, first=spheres.first,
                          others=spheres.others, depth=depth, deepest=deepest, **bare, **place)
            if spheres.arc_count:
                engine.launch(KERNELS["roll_probes"], (planes, WARP_THREADS * spheres.arc_count), "surface", at_once,
                              arcs=spheres.arcs, count=spheres.arc_count, distances=depth, **place)
            return depth, shares

    def of_atoms(self, values: Floats) -> Floats:
        """Return values (N, ...) of all atoms for those of spheres (M, ...); 0 for atoms without a radius."""
        result, own = np.zeros((self._atoms, *values.shape[1:])), self.order < self._atoms
        result[self.order[own]] = values[own]
        return result

    @cached_property
    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The index of the first neighbour of each sphere, and the intersecting spheres of all, nearer ones first."""
        engine = get_engine("cpu")
        kept = self._kept.get(engine.name)
        first, others = self._neighbours(engine)[2:4] if kept is None else (kept.first, kept.others)
        return first, others

    @cached_property
    def arcs(self) -> Floats:
        """(A, ARC) arcs on which the centres of probes are that touch two atoms; the kernel describes the columns."""
        spheres = self._spheres(get_engine("cpu"))
        arcs: Floats = spheres.arcs[: spheres.arc_count]
        return arcs.take(np.lexsort((arcs[:, 13], arcs[:, 12])), 0)  # threads append them in any order

    def _spheres(self, engine: Engine) -> Spheres:
        """Return what an engine has of the surface for all lattices, which is kept as long as the surface."""
        if engine.name not in self._kept:
            self._kept[engine.name] = self._find(engine)
        return self._kept[engine.name]

    def _neighbours(self, engine: Engine) -> tuple[Any, Any, Any, Any, Any]:
        """Return what :class:`Spheres` has without arcs, in arrays of an engine, and the owner of each neighbour."""
        number, cubes = len(self.radii), self.cubes
        centres, radii = engine.array(self.centres), engine.array(self.radii)
        numbers = engine.empty((number, BINS), np.int32)
        given = {"centres": centres, "radii": radii, "starts": engine.array(cubes.starts),
                 "cubes": engine.array(cubes.of), "numbers": numbers, "counts": cubes.counts,
                 "largest": float(self.radii.max(initial=0.0))}
        engine.launch(ARC_KERNELS["find_neighbours"], number, "surface", ATOMS_AT_ONCE, begins=None, others=None,
                      owners=None, **given)
        begins = np.concatenate([[0], np.cumsum(engine.to_host(numbers))])
        count = int(begins[-1])
        others, owners = engine.empty(count, np.int32), engine.empty(count, np.int32)
        engine.launch(ARC_KERNELS["find_neighbours"], number, "surface", ATOMS_AT_ONCE, begins=begins, others=others,
                      owners=owners, **given)
        return centres, radii, begins[::BINS].copy(), others, owners

    def _find(self, engine: Engine) -> Spheres:
        number = len(self.radii)
        with engine.room(BYTES_PER_SPHERE * number + self.cubes.starts.nbytes):
            centres, radii, first, others, owners = self._neighbours(engine)
            of_spheres = {"centres": centres, "radii": radii, "first": engine.array(first), "others": others}
            room = ARCS_PER_SPHERE * number
            while True:
                arcs, totals = engine.empty((room, ARC), np.float64), engine.zeros(2, np.int64)
                engine.launch(ARC_KERNELS["find_arcs"], int(first[-1]), "surface", PAIRS_AT_ONCE, owners=owners,
                              out=arcs, totals=totals, room=room, most=np.diff(first).max(initial=0), **of_spheres)
                arc_count, crowded = engine.to_host(totals).tolist()
                if arc_count <= room:
                    break
                room = arc_count
            if crowded:  # a GPU has room for few parts of a circle
                arcs, arc_count = engine.array(self.arcs), len(self.arcs)
            return Spheres(arcs=arcs, arc_count=arc_count, **of_spheres)


def planes_at_once(planes: int) -> int:
    """Return the number of planes that a thread takes at a time."""
    return max(8, -(-planes // threads.count()))
