"""The Poisson-Boltzmann equation of a molecule, solved on a lattice.

The unknown is the potential in the solvent, and the reaction potential inside of the molecule: the potential without
phi_c, that of the charges in a uniform medium of the molecule's permittivity. phi_c is an exact sum, so that no charge
is spread on a lattice; it enters at the edges that the surface cuts (:mod:`.jump`). As the
unknown outside is the potential itself, no small difference of two large numbers is needed there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import SOFT_CORE
from vmdpotential.surfaces.region import planes_at_once

from . import smooth
from .edges import EDGE_KERNELS, edge_conductances, inside_nodes, scale_shares
from .faces import KERNELS, ON_KINK, POINTS_PER_TASK
from .jump import CLOSED_FORM_SPACINGS, NodeFlows, find_cut_edges
from .lattices import around
from .molecule import Continuum, Floats, NodeSum
from .multigrid import MultigridSolver
from .tangential import add_flows_along, find_nodes_near_surface

Values = NDArray[np.float32]

Kept = TypeVar("Kept")

#: Norm of the residual at convergence, relative to that of the first one.
TOLERANCE = 3e-6

#: Threads of a GPU for a plane (kernel.h).
BLOCK = 128

#: Relative errors of the potential at outer nodes by the number of inner neighbours, of six, as far as two lattices do
#: not show them. They are those of 43 fragments of proteins and DNA with the van der Waals surface at 0.5 to 1 A (0.1,
#: 0.2 and 0.7 for 4, 5 and 6, in a tenth twice as much).
POCKETS = (0.0, 0.0, 0.0, 0.0, 0.2, 0.5, 1.5)

#: Number of charges up to which phi_c is summed here, without a choice of the method.
FEW_CHARGES = 32

class Systems(NamedTuple):
    """Arrays of several systems with the same permittivity and other charges, for which one launch solves."""

    #: (systems, nx, ny, nz) float32, kT/e
    unknowns: Any
    sources: Any

    @classmethod
    def of(cls, engine: Engine, count: int, shape: tuple[int, ...]) -> Systems:
        """Return arrays of so many systems."""
        return cls(*(engine.zeros((count, *shape), np.float32) for _ in range(2)))


class Problem:
    """The equation on a lattice, solved for one boundary after another, each from the last solution.

    Its charges are set by :meth:`charge`.

    Parameters
    ----------
    continuum : Continuum
        Its charges are ignored.
    lattice : Lattice
        Of :func:`.enclosing_lattice`.
    depth : int
        Levels of multigrid.
    total : callable
        The exact sum of q / r at the nodes of a lattice.
    engine : Engine
    near : float
        Spacings within which charges have a closed form on the edges that the surface cuts.
    lasting : bool
        Whether other charges follow, so that what does not depend on charges is kept.

    Attributes
    ----------
    unknown : (nx, ny, nz) float32, kT/e
        The potential outside, the reaction potential inside.
    within : (nx, ny, nz) bool
        Which nodes are inside.
    edges : three arrays (nx, ny, nz) float32
        Conductances of the edges from each node along x, y and z.

    Notes
    -----
    All are arrays of the engine, on one GPU, which is the current one where a method is called.
    """

    def __init__(self, continuum: Continuum, lattice: Lattice, depth: int, total: NodeSum, engine: Engine,
                 near: float = CLOSED_FORM_SPACINGS, lasting: bool = False) -> None:
        self.continuum, self.lattice, self.engine = continuum, lattice, engine
        self.total, self._near, self._lasting, self._depth = total, near, lasting, depth
        c = continuum
        distances, shares = c.surface.arrays(lattice, c.ion_radius if c.kappa > 0 else None, engine)
        self.within = inside_nodes(distances, engine)
        water, self._outside, between = self._around()
        pores = None if c.membrane is None or c.membrane.pores is None else c.membrane.pores.at_nodes(lattice)
        self._pores = None if pores is None or not pores.any() else engine.array(pores)
        self.k2 = engine.zeros(lattice.shape, np.float32) if shares is None else shares
        if c.kappa > 0:
            full = float(c.outside * c.kappa**2 * np.prod(lattice.spacing) / lattice.spacing.mean())
            scale_shares(self.k2, self.within, (full * water).astype(np.float32), engine, self._pores, full)
        self.ions = c.ions if c.kappa > 0 else c.ions[:0]
        self._distances = distances
        if not c.gaussian:
            self.edges = edge_conductances(distances, c.inside, self._outside, between, lattice, engine, self._pores,
                                           c.outside)
        self._kept: dict[str, Any] = {}  # of all charges
        self._solvers: list[MultigridSolver] = []  # one, when it is known; shared with copies that have other charges

    def charge(self, charges: Floats, systems: Systems | None = None, number: int = 0) -> None:
        """Set the charges (N,), e, of the atoms, and start from a solution of 0.

        It is then the system `number` of several ones; see :func:`solve_together`.
        """
        c, lattice, engine = self.continuum.with_charges(charges), self.lattice, self.engine
        self.continuum = c
        wide, needed, first = self._once("around", self._around_molecule)
        self._phi = engine.zeros(wide.shape, np.float32)
        charged = np.flatnonzero(c.charges)
        if len(charged) <= FEW_CHARGES:
            sources = np.column_stack([c.positions[charged], c.constant / c.inside * c.charges[charged]])
            self._by_nodes("sum_few_charges", needed.shape, out=self._phi, part=needed.shape, shape=wide.shape,
                           first=first, charges=sources, count=len(charged), origin=needed.origin,
                           spacing=needed.spacing, soft=SOFT_CORE**2)
        else:
            values, begin = self.total(needed, c.positions[charged], c.charges[charged])
            self._insert(needed.shape, engine.array(values), self._phi, begin, first, c.constant / c.inside)
        flows = NodeFlows(c, lattice, engine)
        if c.gaussian:
            edges, nodes, sources = smooth.discretised(c, lattice, self._distances, self._phi, engine)
            flows.add_listed(nodes, sources)
            if not self._solvers:
                self.edges = tuple(map(engine.array, edges))
        else:
            flows.add_jump(self._once("cut", lambda: find_cut_edges(c, lattice, self._distances, self.edges, engine)),
                           self._phi, self._near)
        flows.add_outer_charges(self._distances)
        self._systems = systems or Systems.of(engine, 1, lattice.shape)
        self.unknown, self.sources = self._systems.unknowns[number], self._systems.sources[number]
        flows.write(self.sources)
        del flows
        self._add_applied()
        self._corrected = c.gaussian > 0  # of the flow along a sharp surface
        if self._corrected and not self._lasting:
            self._distances = None
        if not self._solvers:
            self._solvers.append(MultigridSolver(engine, *self.edges, self.k2, self.ions, self._depth))
        self.edges = self._solvers[0].edges  # without a copy

    def _once(self, name: str, make: Callable[[], Kept]) -> Kept:
        """Return what `make` returns, which is made once for all charges of a molecule that lasts."""
        if not self._lasting:
            return make()
        if name not in self._kept:
            self._kept[name] = make()
        found: Kept = self._kept[name]
        return found

    def _around_molecule(self) -> tuple[Lattice, Lattice, list[int]]:
        """Return the lattice with a node more on each side; its part where phi_c is needed, and the first node of that.
        """
        (nx, ny, nz), spacing = self.lattice.shape, self.lattice.spacing
        wide = Lattice(self.lattice.origin - spacing, spacing, (nx + 2, ny + 2, nz + 2))
        part = around(self.continuum, wide)
        first = [s.start for s in part]
        return wide, Lattice(wide.origin + first * spacing, spacing, tuple(s.stop - s.start for s in part)), first

    def _add_applied(self) -> None:
        """Add the sources of a voltage: the unknown is the potential without that across the slab alone."""
        c, lattice, applied = self.continuum, self.lattice, self.continuum.applied
        if applied is None:
            return
        water, _, between = self._around()
        volume, mean = float(np.prod(lattice.spacing)), float(lattice.spacing.mean())
        z = lattice.origin[2] + lattice.spacing[2] * np.arange(lattice.shape[2])
        self._on_nodes("add_applied_flows", z=self.edges[2], k2=self.k2, sources=self.sources,
                       slab_z=between * volume / lattice.spacing[2] ** 2 / mean,
                       slab_k2=water * (c.outside * c.kappa**2 * volume / mean), potential=applied.at(z),
                       side=applied.of_side(z, float(lattice.spacing[2])))

    def _raised(self) -> Any:
        """Return the unknown with the potential that a voltage makes across the slab."""
        applied = self.continuum.applied
        if applied is None:
            return self.unknown
        z = self.lattice.origin[2] + self.lattice.spacing[2] * np.arange(self.lattice.shape[2])
        result = self.engine.empty(self.lattice.shape, np.float32)
        self._on_nodes("raise_potential", unknown=self.unknown, potential=applied.at(z), out=result)
        return result

    def _on_nodes(self, name: str, /, **values: Any) -> None:
        """Run a kernel of edges.cu for all nodes."""
        self.engine.launch(EDGE_KERNELS[name], (self.lattice.shape[0], self.lattice.size), "surface",
                           planes_at_once(self.lattice.shape[0]), shape=self.lattice.shape, **values)

    def distances(self) -> Values:
        """Return the distances (nx, ny, nz) of nodes to the surface, A, negative inside; exact next to it.

        Without a sharp surface that is van der Waals', where the unknown changes.
        """
        return self.continuum.surface.distances(self.lattice, engine=self.engine)

    def _around(self) -> tuple[Floats, Floats, Floats]:
        """Return how much of the cells of nodes at each height is in the solution, and permittivities around molecules.

        These are the permittivities of the cells (nz,), relative to the size of other cells, and of the edges along z
        (nz - 1,), whose parts in the solution and in the membrane are in series. The cells of nodes on both sides of a
        face of the membrane end at that face, because the potential in the membrane is much steeper than in the
        solution.
        """
        c, membrane, count, h = self.continuum, self.continuum.membrane, self.lattice.shape[2], self.lattice.spacing[2]
        if membrane is None:
            return np.ones(count), np.full(count, c.outside), np.full(count - 1, c.outside)
        z = self.lattice.origin[2] + h * np.arange(count)
        ends = np.append(z - h / 2, z[-1] + h / 2)
        faces = np.array([membrane.low, membrane.high])
        gaps = np.searchsorted(z, faces)
        if gaps[0] < gaps[1]:  # a slab between two nodes is only in their edge
            apart = np.where((gaps > 0) & (gaps < count), abs(z[np.minimum(gaps, count - 1)] - faces), 0)
            moved = (apart > ON_KINK) & (apart < h - ON_KINK)
            ends[gaps[moved]] = faces[moved]
        share, size = membrane.share(ends[:-1], ends[1:]), np.diff(ends) / h
        of_edges = membrane.share(z[:-1], z[1:])
        return ((1 - share) * size, (membrane.permittivity * share + c.outside * (1 - share)) * size,
                1 / (of_edges / membrane.permittivity + (1 - of_edges) / c.outside))

    def correct(self) -> None:
        """Add the flow along the surface, computed from the present solution, to the sources; only once."""
        if self._corrected:
            return
        with self.engine.room(20 * self.lattice.size, self.unknown):
            near = self._once("near", lambda: find_nodes_near_surface(self.lattice, self._distances, self.within,
                                                                      self.engine))
            add_flows_along(self.continuum, self.lattice, near, self._distances, self.within, self._outside,
                            self._raised(), self.sources, self.engine, self._pores)
        self._corrected = True
        if not self._lasting:
            self._distances = None

    def solve(self, boundary: Any, tolerance: float = TOLERANCE) -> int:
        """Solve for given potentials, kT/e, at the nodes of :data:`LATTICE_FACES`, one face after the other.

        They are float64 in one array, of numpy or the engine. Returns the number of iterations.

        Raises
        ------
        TaskError
            When it does not converge.
        """
        return solve_together([self], [boundary], tolerance)

    def set_boundary(self, boundary: Any) -> None:
        """Set the potentials of :meth:`solve` at the nodes of the faces."""
        self._launch("set_boundary", len(boundary), values=boundary, within=self.within, charged=self._phi,
                     unknown=self.unknown, shape=self.lattice.shape)

    def rest(self) -> None:
        """Free the memory that only solving needs until the next solution."""
        if not self._lasting:
            for solver in self._solvers:
                solver.release()

    def finish(self) -> None:
        """Free the memory that only solving needs, after the last solution."""
        if not self._lasting:
            del self._solvers, self.edges, self.k2

    def energy_of_ions(self, covered: tuple[slice, slice, slice] | None = None) -> Floats:
        """Return the energy of the ions, kT, that half of each charge times its potential does not contain.

        That is the integral of half of the potential times the ions' charge, with the other sign, minus their osmotic
        pressure (K. A. Sharp, B. Honig, J. Phys. Chem. 94 (1990) 7684, eq. 11); 0 for the linear equation. The second
        and third numbers are the integrals, in the same unit, of the squares of the part of the ions' charge that the
        linear equation does not have, and of all of it. Nodes in the part `covered` are left out.
        """
        if not len(self.ions):
            return np.zeros(3)
        ends = np.array([(part.start, part.stop) for part in covered or (slice(0, 0),) * 3])
        sums = self._reduced("find_ion_energy", self.lattice.shape[0], 3, unknown=self.unknown, k2=self.k2,
                             ions=self.ions, shape=self.lattice.shape, covered=ends[:, 0], uncovered=ends[:, 1],
                             kinds=len(self.ions))
        return sums * (float(self.lattice.spacing.mean()) / (4 * np.pi * self.continuum.constant))

    def copy(self) -> Any:
        """Return a copy of the solution."""
        result = self.engine.empty(self.lattice.shape, np.float32)
        self._insert(self.lattice.shape, self.unknown, result)
        return result

    def potential(self, part: tuple[slice, slice, slice], unit: float = 1.0) -> Values:
        """Return the total potential on a part of the lattice, kT/e, or in another `unit`, in an array of numpy."""
        result = self.engine.empty(tuple(s.stop - s.start for s in part), np.float32)
        self._by_nodes("find_potential", result.shape, unknown=self.unknown, charged=self._phi, within=self.within,
                       out=result, shape=self.lattice.shape, out_shape=result.shape, first=[s.start for s in part],
                       factor=unit)
        return self.engine.to_host(result)

    def in_pockets(self) -> Floats:
        """Return sums of squares of the potential at outer nodes: next to the molecule, all; and of errors in pockets.

        A node with nearly all neighbours inside is in a gap or a cavity as narrow as the spacing. Its potential is
        wrong by a part of itself that depends on how enclosed it is, and a coarser lattice has no such node.
        """
        parts = np.zeros(7) if self.continuum.gaussian else np.array(POCKETS)
        return self._reduced("find_pockets", self.lattice.shape[0], 3, unknown=self.unknown, within=self.within,
                             shape=self.lattice.shape, parts=parts)

    def host(self, values: Any) -> NDArray[Any]:
        """Return the values of an array of the engine in one of numpy."""
        return self.engine.to_host(values)

    def _launch(self, name: str, count: int, /, **values: Any) -> None:
        """Run a kernel of exchange.cu for independent elements."""
        self.engine.launch(KERNELS[name], count, "surface", POINTS_PER_TASK, **values)

    def _by_nodes(self, name: str, shape: tuple[int, ...], /, **values: Any) -> None:
        """Run a kernel of exchange.cu for the nodes of a lattice."""
        self.engine.launch(KERNELS[name], (shape[0], math.prod(shape)), "surface", planes_at_once(shape[0]),
                            **values)

    def _insert(self, part: tuple[int, ...], values: Any, out: Any, begin: Sequence[int] = (0, 0, 0),
                first: Sequence[int] = (0, 0, 0), factor: float = 1.0, shift: float = 0.0) -> None:
        """Write values from the node `begin` on, times a factor, plus a shift, to a part from the node `first` on."""
        self._by_nodes("insert_part", part, values=values, value_shape=values.shape, value_first=begin, out=out,
                       part=part, shape=out.shape, first=first, factor=factor, shift=shift)

    def _reduced(self, name: str, planes: int, numbers: int, /, **values: Any) -> Floats:
        """Run a kernel of exchange.cu that adds up numbers over nodes; return their sums."""
        sums = self.engine.empty((planes, numbers), np.float64)
        self.engine.launch(KERNELS[name], (planes, BLOCK * planes), "surface", planes_at_once(planes),
                            sums=sums, **values)
        result: Floats = self.engine.to_host(sums).sum(0)
        return result

    def reaction(self, unknown: Any = None, rows: NDArray[np.int64] | None = None) -> Floats:
        """Return the reaction potential (N,) at the charges, kT/e, interpolated trilinearly.

        All are 0 if some charges are outside of the lattice; `unknown` replaces the present solution, and `rows` are
        the atoms instead of all, for a sharp surface.
        """
        positions, unknown = self.continuum.positions, self.unknown if unknown is None else unknown
        positions = positions if rows is None else positions[rows]
        if not ((positions >= self.lattice.origin) & (positions <= self.lattice.last)).all():
            return np.zeros(len(positions))
        origin, spacing = self.lattice.origin, self.lattice.spacing
        found = self.engine.empty(len(positions), np.float64)
        self._launch("find_reaction", len(positions), points=np.ascontiguousarray(positions), unknown=unknown,
                     within=self.within, charged=self._phi, out=found, shape=self.lattice.shape, origin=origin,
                     spacing=spacing)
        result = self.engine.to_host(found)
        if self.continuum.gaussian:
            kinks, part = smooth.ChargeKinks(self.continuum), ((positions - origin) / spacing) % 1
            for corner in np.ndindex(2, 2, 2):
                r = np.linalg.norm((corner - part) * spacing, axis=1)
                result -= np.where(corner, part, 1 - part).prod(1) * kinks.at(np.arange(len(r)), r)
        return result


def solve_together(problems: Sequence[Problem], boundaries: Sequence[Any], tolerance: float = TOLERANCE) -> int:
    """Solve all systems of one equation, for boundaries as in :meth:`Problem.solve`; return the most iterations."""
    for problem, boundary in zip(problems, boundaries, strict=True):
        problem.set_boundary(boundary)
    (solver,), systems = problems[0]._solvers, problems[0]._systems
    assert len(systems.unknowns) == len(problems)
    return solver.solve(systems.unknowns, systems.sources, tolerance)
