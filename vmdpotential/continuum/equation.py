"""The Poisson-Boltzmann equation of a molecule, solved on a lattice.

The unknown is the potential in the solvent, and the reaction potential inside of the molecule: the potential without
phi_c, that of the charges in a uniform medium of the molecule's permittivity. phi_c is an exact sum, so that no charge
is spread on a lattice; it enters at the edges that the surface cuts (:mod:`vmdpotential.continuum.jump`). As the
unknown outside is the potential itself, no small difference of two large numbers is needed there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.continuum import region, smooth
from vmdpotential.continuum.jump import NEAR, sources_of_jump, summed
from vmdpotential.continuum.molecule import Continuum, Floats, Sum
from vmdpotential.continuum.tangential import sources_along
from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.kernels.launch import KernelFile, call, launch

Values = NDArray[np.float32]

KERNELS = KernelFile(Path(__file__).with_name("exchange.cu"))

#: Norm of the residual at convergence, relative to that of the first one.
TOLERANCE = 1e-5

#: Layers of coarse nodes along the faces of a finer lattice, inside of it, that keep the coarse lattice's equation.
MARGIN = 2

#: Largest distance, A, of a node from a kink for which it is on both sides.
ON_KINK = 1e-6

#: Number of charges that a thread interpolates at a time.
CHARGES_PER_TASK = 10_000

#: Spacings around the molecule within which phi_c is needed: at cut edges and for interpolation between lattices.
NEXT = 3


def levels(shape: tuple[int, int, int]) -> int:
    """Return the number of multigrid levels for a lattice of a shape."""
    return max(1, int(np.log2(max(2, (min(shape) - 1) / 8))) + 1)


def enclosing(lattice: Lattice) -> tuple[Lattice, tuple[int, int, int], int]:
    """Return a lattice for multigrid that holds the nodes of another, the first of these, and the number of levels."""
    shape = np.maximum(np.array(lattice.shape) + 2, 17)
    depth = levels((int(shape[0]), int(shape[1]), int(shape[2])))
    step = 2 ** (depth - 1)
    nodes = -(-(shape - 1) // step) * step + 1
    a, b, c = (int(n) for n in (nodes - lattice.shape) // 2)
    nx, ny, nz = (int(n) for n in nodes)
    return Lattice(lattice.origin - lattice.spacing * (a, b, c), lattice.spacing, (nx, ny, nz)), (a, b, c), depth


#: The two faces across each axis: the axis, and the index along it.
FACES: tuple[tuple[int, int], ...] = tuple((axis, end) for axis in range(3) for end in (0, -1))


def on_face(axis: int, end: int) -> tuple[slice | int, ...]:
    """Return the index of a face in an array (nx, ny, nz)."""
    return tuple(end if d == axis else slice(None) for d in range(3))


class Cubic:
    """The cubic polynomial along an axis through the four nodes around each point.

    Parameters
    ----------
    nodes : (N,) float64
        Increasing.
    points : (P,) float64
    kinks : tuple of float
        Where the slope jumps. No node beyond a kink is used for a point, if there are four others.
    """

    def __init__(self, nodes: Floats, points: Floats, kinks: tuple[float, ...] = ()) -> None:
        low, high = np.zeros(len(points), np.int64), np.full(len(points), len(nodes) - 4)
        if kinks:
            ends, side = np.array([-np.inf, *kinks, np.inf]), np.searchsorted(kinks, points)
            begin = np.searchsorted(nodes, ends[side] - ON_KINK)
            end = np.searchsorted(nodes, ends[side + 1] + ON_KINK) - 4
            low, high = np.where(end >= begin, begin, low), np.where(end >= begin, end, high)
        #: (P,) the first of the nodes around each point, and (P, 4) their weights.
        self.first = np.clip(np.searchsorted(nodes, points, "right") - 2, low, high)
        known = nodes[self.first[:, None] + np.arange(4)]
        parts = [np.prod([(points - known[:, i]) / (known[:, j] - known[:, i]) for i in range(4) if i != j], 0)
                 for j in range(4)]
        self.weights: Floats = np.stack(parts, 1)

    def of(self, values: Floats) -> Floats:
        """Return the values (P, M) at the points of functions that have `values` (N, M) at the nodes."""
        result = np.empty((len(self.first), values.shape[1]))
        call(KERNELS["sum_four_rows"], 0, len(self.first), values=np.ascontiguousarray(values, np.float64),
             weights=np.ascontiguousarray(self.weights), first=self.first, out=result, columns=values.shape[1])
        return result


@dataclass(frozen=True, eq=False)
class Known:
    """A solution on a lattice from which another one may start.

    Parameters
    ----------
    lattice : Lattice
    unknown : (nx, ny, nz) float32, kT/e
    within : (nx, ny, nz) bool
    """

    lattice: Lattice
    unknown: Values
    within: NDArray[np.bool_]


def around(c: Continuum, lattice: Lattice) -> tuple[slice, slice, slice]:
    """Return the part of a lattice where phi_c is needed: the molecule, and the nodes next to it.

    The whole lattice for a smooth permittivity, for which the molecule has no boundary.
    """
    if c.gaussian:
        return slice(0, lattice.shape[0]), slice(0, lattice.shape[1]), slice(0, lattice.shape[2])
    far = c.radii.max() + NEXT * lattice.spacing
    first = ((c.positions.min(0) - far - lattice.origin) // lattice.spacing).astype(np.int64)
    last = ((c.positions.max(0) + far - lattice.origin) // lattice.spacing).astype(np.int64) + 2
    x, y, z = (slice(min(max(a, 0), n - 1), max(min(b, n), 1))
               for a, b, n in zip(first.tolist(), last.tolist(), lattice.shape, strict=True))
    return x, y, z


class Problem:
    """The equation on a lattice, solved for one boundary after another, each from the last solution.

    Parameters
    ----------
    continuum : Continuum
    lattice : Lattice
        Of :func:`enclosing`.
    depth : int
        Levels of multigrid.
    total : callable
        The exact sum of q / r at the nodes of a lattice.
    engine : Engine
    near : float
        Spacings within which charges have a closed form on the edges that the surface cuts.

    Attributes
    ----------
    unknown : (nx, ny, nz) float32, kT/e
        The potential outside, the reaction potential inside.
    within : (nx, ny, nz) bool
        Which nodes are inside.
    """

    def __init__(self, continuum: Continuum, lattice: Lattice, depth: int, total: Sum, engine: Engine,
                 near: float = NEAR) -> None:
        self.continuum, self.lattice, self._engine = continuum, lattice, engine
        c = continuum
        nx, ny, nz = lattice.shape
        wide = Lattice(lattice.origin - lattice.spacing, lattice.spacing, (nx + 2, ny + 2, nz + 2))
        phi = np.zeros(wide.shape, np.float32)
        part = around(c, wide)
        needed = Lattice(wide.origin + [s.start for s in part] * wide.spacing, wide.spacing,
                         tuple(s.stop - s.start for s in part))
        np.multiply(total(needed, c.positions, c.charges), np.float32(c.constant / c.inside), out=phi[part])
        self._phi, self._of_charges = phi, phi[1:-1, 1:-1, 1:-1]
        distances, shares = c.surface.with_ions(lattice, c.ion_radius if c.kappa > 0 else None, engine=engine)
        self.within = region.inside_nodes(distances)
        water, self._outside = self._around()
        if c.gaussian:
            self.edges, self.nodes, self.sources = smooth.discretised(c, lattice, distances, phi, engine)
        else:
            self.edges = region.conductances(distances, c.inside, self._outside, lattice)
            self._layer()
            self.nodes, self.sources = sources_of_jump(c, lattice, distances, self.edges, phi, engine, near)
        self._distances = None if c.gaussian else distances  # until the flow along the surface is corrected
        del distances
        self.k2 = np.zeros(lattice.shape, np.float32) if shares is None else shares
        if c.kappa > 0:
            factors = water * (c.outside * c.kappa**2 * np.prod(lattice.spacing) / lattice.spacing.mean())
            region.scale_shares(self.k2, self.within, factors.astype(np.float32))
        self.ions = c.ions if c.kappa > 0 else c.ions[:0]
        self.unknown = np.zeros(lattice.shape, np.float32)
        self._solver = engine.multigrid(*self.edges, self.k2, self.ions, depth)
        self.edges = self._solver.edges  # without a copy

    def distances(self) -> Values:
        """Return the distances (nx, ny, nz) of nodes to the surface, A, negative inside; exact next to it.

        Without a sharp surface that is van der Waals', where the unknown changes.
        """
        return self.continuum.surface.distances(self.lattice, engine=self._engine)

    def _around(self) -> tuple[Floats, Floats]:
        """Return how much of the cells of nodes at each height (nz,) is in the solution, and their permittivity (nz,).

        The cells of nodes on both sides of a face of the membrane end at that face, because the potential in the
        membrane is much steeper than in the solution. Both are relative to the size of other cells.
        """
        c, membrane, count, h = self.continuum, self.continuum.membrane, self.lattice.shape[2], self.lattice.spacing[2]
        if membrane is None:
            return np.ones(count), np.full(count, c.outside)
        z = self.lattice.origin[2] + h * np.arange(count)
        ends = np.append(z - h / 2, z[-1] + h / 2)
        faces = np.array([membrane.low, membrane.high])
        gaps = np.searchsorted(z, faces)
        if gaps[0] < gaps[1]:  # a slab between two nodes is only in their edge
            apart = np.where((gaps > 0) & (gaps < count), abs(z[np.minimum(gaps, count - 1)] - faces), 0)
            moved = (apart > ON_KINK) & (apart < h - ON_KINK)
            ends[gaps[moved]] = faces[moved]
        share, size = membrane.share(ends[:-1], ends[1:]), np.diff(ends) / h
        return (1 - share) * size, (membrane.permittivity * share + c.outside * (1 - share)) * size

    def _layer(self) -> None:
        """Set the conductances of edges across the faces of the membrane to those of their two parts in series."""
        c, h = self.continuum, float(self.lattice.spacing[2])
        if c.membrane is None:
            return
        z = self.lattice.origin[2] + h * np.arange(self.lattice.shape[2] - 1)
        share = c.membrane.share(z, z + h)
        weight = float(np.prod(self.lattice.spacing) / h**2 / self.lattice.spacing.mean())
        for k in np.flatnonzero(((share > 0) & (share < 1)) | (self._outside[1:] != self._outside[:-1])):
            free = ~(self.within[:, :, k] | self.within[:, :, k + 1])
            self.edges[2][:, :, k][free] = weight / (share[k] / c.membrane.permittivity + (1 - share[k]) / c.outside)

    def correct(self) -> None:
        """Add the flow along the surface, computed from the present solution, to the sources; only once."""
        if self._distances is not None:
            flows = sources_along(self.continuum, self.lattice, self._distances, self.within, self._outside,
                                  self.unknown, self._engine)
            self.nodes, self.sources = summed(self.lattice, (self.nodes, self.sources), flows)
            self._distances = None

    def solve(self, boundary: Sequence[Floats], tolerance: float = TOLERANCE) -> int:
        """Solve for given potentials, kT/e, on each of :data:`FACES`; return the number of iterations.

        Raises
        ------
        TaskError
            When it does not converge.
        """
        for face, values in zip(FACES, boundary, strict=True):
            at = on_face(*face)
            inner = self.within[at]
            self.unknown[at] = values - np.where(inner, self._of_charges[at], 0) if inner.any() else values
        return self._solver.solve(self.unknown, self.nodes, self.sources, tolerance)

    def rest(self) -> None:
        """Free the memory that only solving needs until the next solution."""
        self._solver.release()

    def finish(self) -> None:
        """Free the memory that only solving needs, after the last solution."""
        del self._solver, self.edges, self.k2

    def energy_of_ions(self, covered: tuple[slice, slice, slice] | None = None) -> float:
        """Return the energy of the ions, kT, that half of each charge times its potential does not contain.

        That is the integral of half of the potential times the ions' charge, with the other sign, minus their osmotic
        pressure (K. A. Sharp, B. Honig, J. Phys. Chem. 94 (1990) 7684, eq. 11); 0 for the linear equation. Nodes in the
        part `covered` are left out.
        """
        counted = self.k2 > 0
        if covered is not None:
            counted[covered] = False
        potential, total = self.unknown[counted].astype(np.float64), 0.0
        for valence, share in self.ions:
            bound = np.expm1(-valence * potential)
            total -= float(self.k2[counted] @ (share * (0.5 * potential * bound / valence + bound / valence**2)))
        return total * float(self.lattice.spacing.mean()) / (4 * np.pi * self.continuum.constant)

    @property
    def known(self) -> Known:
        """The solution, without the arrays of the equation."""
        return Known(self.lattice, self.unknown, self.within)

    def start(self, known: Known) -> bool:
        """Start from the solution for a similar molecule, if its lattice is the same; return whether it is."""
        fine, coarse = self.lattice, known.lattice
        if fine.shape != coarse.shape or not (np.array_equal(fine.origin, coarse.origin)
                                            and np.array_equal(fine.spacing, coarse.spacing)):
            return False
        self.unknown[:] = known.unknown
        at = np.nonzero(self.within != known.within)  # nodes that are on the other side of the surface now
        self.unknown[at] += np.where(self.within[at], -self._of_charges[at], self._of_charges[at])
        return True

    def begin(self, coarser: Problem, ratio: int) -> None:
        """Start from the solution on a coarser lattice that contains this one and has every `ratio`-th of its nodes."""
        first = np.rint((self.lattice.origin - coarser.lattice.origin) / coarser.lattice.spacing).astype(np.int64)
        planes, cells = self.lattice.shape[0], (self.lattice.shape[2] - 1) // ratio + 2
        grain = region.planes_at_once(planes)
        pieces = -(-planes // grain)
        self._by_parts("refine_solution", planes, coarse=coarser.unknown, charged=coarser._phi,
                       coarse_within=coarser.within, within=self.within, out=self.unknown,
                       line=np.zeros((pieces, cells), np.float32), inner=np.zeros((pieces, cells), np.int64),
                       coarse_shape=coarser.lattice.shape, shape=self.lattice.shape, first=first, ratio=ratio,
                       cells=cells, grain=grain)

    def agree(self, finer: Problem, ratio: int) -> None:
        """Change the equation inside a finer lattice so that the solution of that lattice fulfils it.

        This improves the coarse solution around the finer lattice, too (local defect correction: W. Hackbusch, in:
        Defect Correction Methods, Computing Suppl. 5 (1984) 89).
        """
        shared, values = self.shared(finer, ratio)
        part = tuple(slice(s.start + MARGIN, s.stop - MARGIN) for s in shared)
        if any(s.stop - s.start < 1 for s in part):
            return
        flows = np.empty([s.stop - s.start for s in part])
        begin = np.array([s.start for s in shared])
        x, y, z = self.edges
        self._by_parts("find_fine_flows", len(flows), values=values, x=x, y=y, z=z, k2=self.k2, ions=self.ions,
                       out=flows, value_shape=values.shape, shape=self.lattice.shape, out_shape=flows.shape,
                       begin=begin, margin=MARGIN, kinds=len(self.ions))
        first, last = (np.array([getattr(s, end) for s in part]) for end in ("start", "stop"))
        place = np.stack(np.unravel_index(self.nodes, self.lattice.shape), 1)
        kept = ((place < first) | (place >= last)).any(1)
        # differences of the coarse spacing at the edge of the part give another charge within it, which is known
        flows += (self.sources[~kept].sum() - flows.sum()) / flows.size
        replaced = np.arange(self.lattice.size).reshape(self.lattice.shape)[part].ravel()
        self.nodes = np.concatenate([self.nodes[kept], replaced])
        self.sources = np.concatenate([self.sources[kept], flows.ravel()])

    def shared(self, finer: Problem, ratio: int) -> tuple[tuple[slice, slice, slice], Floats]:
        """Return the part of the lattice that it shares with a finer one, and the finer solution at its nodes."""
        first = np.rint((finer.lattice.origin - self.lattice.origin) / self.lattice.spacing).astype(int)
        own = (slice(None, None, ratio),) * 3
        values, inside = finer.unknown[own].astype(np.float64), finer.within[own]
        x, y, z = (slice(a, a + n) for a, n in zip(first.tolist(), values.shape, strict=True))
        at = np.nonzero(inside != self.within[x, y, z])  # on different sides by rounding
        phi = self._of_charges[x, y, z][at]
        values[at] += np.where(inside[at], phi, -phi)
        return (x, y, z), values

    def potential(self, part: tuple[slice, slice, slice], unit: float = 1.0) -> Values:
        """Return the total potential on a part of the lattice, kT/e, or in another `unit`."""
        result = np.empty([s.stop - s.start for s in part], np.float32)
        self._by_parts("find_potential", len(result), unknown=self.unknown, charged=self._phi, within=self.within,
                       out=result, shape=self.lattice.shape, out_shape=result.shape, first=[s.start for s in part],
                       factor=unit)
        return result

    def squares(self, finer: Problem, ratio: int, unknown: Values) -> Floats:
        """Return sums of squares at the outer nodes that a finer lattice shares: of its solution, and of differences.

        The differences are those from `unknown`, a solution on this lattice. The first two sums are of nodes next to
        the molecule, the last two of all nodes.
        """
        part, values = self.shared(finer, ratio)
        sums = np.zeros((len(values), 4))
        self._by_parts("compare_solutions", len(values), values=values, coarse=unknown, within=self.within, sums=sums,
                       value_shape=values.shape, shape=self.lattice.shape, first=[s.start for s in part])
        result: Floats = sums.sum(0)
        return result

    def _by_parts(self, name: str, planes: int, **values: Any) -> None:
        """Run a kernel of exchange.cu for some planes, on all threads."""
        launch(KERNELS[name], planes, "surface", region.planes_at_once(planes), **values)

    def on_faces(self, finer: Lattice) -> list[Floats]:
        """Return the potential on each of the faces of a finer lattice, by cubic polynomials along the axes."""
        membrane = self.continuum.membrane
        kinks = () if membrane is None else (membrane.low, membrane.high)
        nodes, points = ([grid.origin[d] + grid.spacing[d] * np.arange(grid.shape[d]) for d in range(3)]
                         for grid in (self.lattice, finer))
        axes = [Cubic(nodes[d], points[d], kinks if d == 2 else ()) for d in range(3)]
        results = []
        for axis, end in FACES:
            first, weights = axes[axis].first[end], axes[axis].weights[end]
            plane = sum(weight * self.face(axis, first + n) for n, weight in enumerate(weights))
            y, z = (axes[d] for d in range(3) if d != axis)
            results.append(z.of(y.of(plane).T).T)
        return results

    def face(self, axis: int, place: int) -> Values:
        """Return the potential on a plane of nodes across an axis, kT/e."""
        at = on_face(axis, place)
        result: Values = self.unknown[at].copy()
        np.add(result, self._of_charges[at], out=result, where=self.within[at])
        return result

    def reaction(self, unknown: Values | None = None) -> Floats:
        """Return the reaction potential (N,) at the charges, kT/e, interpolated trilinearly.

        All are 0 if some charges are outside of the lattice; `unknown` replaces the present solution.
        """
        positions, unknown = self.continuum.positions, self.unknown if unknown is None else unknown
        if not ((positions >= self.lattice.origin) & (positions <= self.lattice.last)).all():
            return np.zeros(len(positions))
        place = (self.lattice.origin, self.lattice.spacing)
        result = np.zeros(len(positions))
        launch(KERNELS["find_reaction"], len(positions), "surface", CHARGES_PER_TASK,
               points=np.ascontiguousarray(positions), unknown=unknown, within=self.within, charged=self._phi,
               out=result, shape=self.lattice.shape, origin=self.lattice.origin, spacing=self.lattice.spacing)
        if self.continuum.gaussian:
            kinks, part = smooth.Kinks(self.continuum), ((positions - place[0]) / place[1]) % 1
            for corner in np.ndindex(2, 2, 2):
                r = np.linalg.norm((corner - part) * place[1], axis=1)
                result -= np.where(corner, part, 1 - part).prod(1) * kinks.at(np.arange(len(r)), r)
        return result
