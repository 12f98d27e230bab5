"""The Poisson-Boltzmann equation solved on two lattices: potential, field, reaction potentials and their errors.

The fine lattice has the requested spacing. The coarse one has at least twice that spacing and reaches far beyond the
molecule; at its faces the potential is the sum of the charges' screened potentials. The coarse solution gives the fine
one its boundary values, is then corrected by the fine solution where they overlap, and is solved again for better
boundary values. The difference of both solutions gives an error.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from copy import copy
from itertools import islice, repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice, coordinate_bounds

from .boundary import (
    EXPOSED_SMOOTH_OVER,
    FREE_COARSE_NODES,
    LAYER_IN_MEMBRANE,
    SMOOTH_OVER,
    FaceNodes,
    coarse_lattice_around,
    equivalent_charges,
    exposed_to_faces,
    far_field,
    screened_potential,
)
from .coarse import CoarseProblem
from .equation import TOLERANCE as SOLUTION_TOLERANCE
from .equation import Problem, Systems, solve_together
from .jump import COARSE_CLOSED_FORM_SPACINGS
from .lattices import enclosing_lattice, part_shared
from .molecule import Continuum, Floats, NodeSum
from .node_potential import KEPT, NodePotential
from .stated_errors import ReactionErrors

T = TypeVar("T")

#: Bytes per node of the finer lattice, rounded up from the measured 81 of a CPU: conductances, there twice, inverse
#: diagonal, residual, direction and cycle of multigrid with its coarse levels; the ions' term, the solution and the
#: potential of the charges; and the coarse lattice.
NODE_BYTES = 82

#: Number of nodes of both lattices, for all sets of charges that a GPU solves for together, at some 35 bytes each.
NODES_TOGETHER = 50_000_000

#: Tolerance of first solutions, which give the flow along the surface, and of second ones and the last one on the
#: coarse lattice. DHFR's potential outside is then converged to 3e-4, a tenth of the error of a lattice of 0.5 A, and
#: energies of binding of adenylate kinase's domains to 0.02 kcal/mol. With 1e-4 for second ones and 3e-5 for the last,
#: some of these energies are wrong by 0.04 kcal/mol, and their stated errors by a fifth.
ROUGH, START = 1e-3, 3e-5

#: Ratio of the spacings of both lattices where only energies are needed, and the largest spacing of the coarse one, A,
#: for which it is not 2. Energies of binding of adenylate kinase's domains change by less than 0.006 kcal/mol, a
#: hundredth of the error of a lattice of 0.5 A.
ENERGY_RATIO, ENERGY_COARSE = 4, 2.0

#: The full equation's boundary values depend on its solution, and are repeated at most this many times, until no
#: relative change is larger than this.
FULL_ROUNDS, SETTLED = 10, 3e-4

#: The largest ratio of the changes of two rounds by which those of further rounds are estimated.
SLOWEST = 0.7

#: Error of boundary values beyond which the full equation is not linear, over an estimate of it: 1.5 times the ratios
#: around highly charged balls in 0.0002 to 0.005 M.
BENT_BEYOND = 0.5

#: Added to what may be 0 before it divides.
TINY = 1e-30

class TwoLattices:
    """The solution for a molecule on the lattice of a map, and on a coarser one around it.

    Parameters
    ----------
    continuum : Continuum
    lattice : Lattice
        The map's.
    engine : Engine
    total : callable
        The exact sum of q / r at the nodes of a lattice.
    lasting : bool
        Whether there is no solution at first, but those for several sets of charges follow (:meth:`solve`).
    energies : bool
        Whether only reaction potentials are needed. Where ions shield the molecule from errors at the faces, the coarse
        lattice then has a larger spacing, and is not corrected by the fine solution.

    Attributes
    ----------
    reaction : (N,) float64, kT/e
        The reaction potential at each atom: the potential without that of the charges in a uniform medium of the
        molecule's permittivity.

    Raises
    ------
    TaskError
        When the solution does not converge.
    MemoryPlanError
        When atoms far away, or large ones, make the coarse lattice too large.
    """

    fine: Problem

    def __init__(self, continuum: Continuum, lattice: Lattice, engine: Engine, total: NodeSum,
                 lasting: bool = False, energies: bool = False) -> None:
        self.continuum, self.engine = continuum, engine
        self._total, self._lasting = total, lasting
        self._energies = (energies and not exposed_to_faces(continuum) and not continuum.gaussian
                          and not len(continuum.ions))
        self._systems: tuple[Any, ...] = ()  # of several sets of charges
        fine, first, self._depth = enclosing_lattice(lattice)
        self._fine_lattice = fine
        x, y, z = (slice(a, a + n) for a, n in zip(first, lattice.shape, strict=True))
        self.part = x, y, z
        margin, (low, high) = float(continuum.radii.max(initial=0.0)), coordinate_bounds(continuum.positions)
        least = ENERGY_RATIO if self._energies and ENERGY_RATIO * fine.spacing.max() <= ENERGY_COARSE else 2
        wide, levels, self.ratio = coarse_lattice_around(fine, low - margin, high + margin, least)
        if wide.size > max(FREE_COARSE_NODES, fine.size):
            memory.require(NODE_BYTES * wide.size, "the solution around the atoms",
                           "correct their positions and radii, or use a larger {spacing}")
        apart = np.full(3, EXPOSED_SMOOTH_OVER if exposed_to_faces(continuum) else SMOOTH_OVER)
        if continuum.membrane is not None:
            apart[2] = 0.0  # its faces are kinks
        self._faces = FaceNodes(wide, apart)
        with engine.room(0):  # everything is on one GPU
            self.far = CoarseProblem(continuum, wide, levels, total, engine, COARSE_CLOSED_FORM_SPACINGS, lasting)
            if lasting:
                self.fine = Problem(continuum, fine, self._depth, total, engine, lasting=True)
                return
            self.far.charge(continuum.charges)
            for problem, boundary, tolerance in self._steps():
                problem.solve(boundary, tolerance)

    def solve(self, charge_sets: Sequence[Floats], totals: Sequence[NodeSum]) -> list[TwoLattices]:
        """Return the solutions for sets of charges (N,), e, which are computed together, for a `lasting` molecule.

        `totals` are the exact sums of q / r for each.
        """
        count, results = len(charge_sets), []
        _ = self.continuum.covers  # once for all sets
        with self.engine.room(0, self.far.within):
            pairs = [Systems.of(self.engine, count, problem.lattice.shape) for problem in (self.far, self.fine)]
            for number, (charges, total) in enumerate(zip(charge_sets, totals, strict=True)):
                each = copy(self)
                each.far, each.fine = copy(self.far), copy(self.fine)
                each.continuum, each._systems = self.continuum.with_charges(charges), (pairs[1], number)
                each.far.total = each.fine.total = total
                each.far.charge(charges, pairs[0], number)
                results.append(each)
            for requests in zip(*(each._steps() for each in results), strict=True):
                problems, boundaries, tolerances = zip(*requests, strict=True)
                solve_together(problems, boundaries, tolerances[0])
        return results

    def _steps(self) -> Iterator[tuple[Problem, Any, float]]:
        """Yield the problems that have to be solved, one after the other, with their boundaries and tolerances."""
        continuum, engine, fine = self.continuum, self.engine, self._fine_lattice
        exposed, faces = exposed_to_faces(continuum), self._faces
        edge = faces.interpolated(engine, far_field(continuum, engine, faces.points))
        yield self.far, edge, ROUGH
        self.far.correct()
        if exposed:
            yield self.far, edge, START
        self._equivalent = None if self._energies else equivalent_charges(self.far)
        if self._equivalent is not None:
            edge = faces.interpolated(engine, self.potential_beyond(faces.points))
        yield self.far, edge, START
        #: Relative errors next to the molecule, and outside, by the values at the faces; of the full equation.
        self.unsettled = np.zeros(2)
        if len(continuum.ions) and self._equivalent is not None:
            edge = yield from self._settle(fine, faces, edge)
        self.far.rest()
        if not self._lasting:
            self.fine = Problem(continuum, fine, self._depth, self._total, engine)
        self.fine.charge(continuum.charges, *self._systems)
        self.far.begin(self.fine, self.ratio)
        boundary = self.far.on_faces(fine)
        yield self.fine, boundary, ROUGH
        spare = fine.size > KEPT
        if spare:
            self.fine.rest()
        self.fine.correct()
        self.coarse = self.far.copy()
        yield self.fine, boundary, START
        ions, coarse = np.zeros(3), 0.0
        if not self._energies:
            if spare:
                self.fine.rest()
            shared = part_shared(self.far.lattice, self.fine.lattice, self.ratio)
            coarse = float(self.far.energy_of_ions()[0])
            self.far.agree(self.fine, self.ratio)
            yield self.far, edge, START
            ions += self.far.energy_of_ions(shared)
            self.far.finish()  # the last solution on the fine lattice needs the most memory
            yield self.fine, self.far.on_faces(fine), SOLUTION_TOLERANCE
            ions += self.fine.energy_of_ions()
        #: Energy of the ions, kT, that half of each charge times its potential does not contain; and its error.
        self.of_ions = float(ions[0])
        self.ion_error = abs(coarse - self.of_ions)
        #: Which part of the ions' charge the linear equation does not have, rms; 0 for that equation.
        self.curved = float(np.sqrt(ions[1] / ions[2])) if ions[2] > 0 else 0.0
        self.fine.finish()
        self.reaction = self.fine.reaction()

    def _settle(self, fine: Lattice, faces: FaceNodes, edge: Any) -> Generator[tuple[Problem, Any, float], None, Any]:
        """Repeat the boundary values of the full equation until they fit the solution; return them."""
        far, changes = self.far, [np.zeros(3)]
        part = part_shared(far.lattice, fine, self.ratio)
        chosen = outer_nodes(far.host(far.within)[part])
        for _ in range(FULL_ROUNDS):
            last, before = far.host(edge), np.array(far.host(far.unknown)[part])
            self._equivalent = equivalent_charges(far)
            edge = faces.interpolated(self.engine, self.potential_beyond(faces.points))
            yield far, edge, START
            after = far.host(far.unknown)[part]
            inside = [_relative(after[nodes], before[nodes]) for nodes in chosen]
            changes.append(np.array([*inside, _relative(far.host(edge), last)]))
            if changes[-1].max() < SETTLED:
                break
        # further rounds would change them less and less
        ratios = np.minimum(SLOWEST, changes[-1] / (changes[-2] + TINY))
        left = changes[-1] * ratios / (1 - ratios)
        near, outside, at_faces = np.sum(changes, axis=0)
        shares = np.array([near, outside]) / (at_faces + TINY)
        self.unsettled = np.hypot(left[:2], shares * self._bent_beyond(far.lattice, far.host(edge)))
        return edge

    def _bent_beyond(self, lattice: Lattice, edge: Floats) -> float:
        """Return the relative error of boundary values, which are potentials of the linear equation.

        Ions beyond the faces screen more than these say. The charge of that difference is that of a potential
        exp(-kappa r) / r whose third power is integrated over the space around a ball as large as the lattice.
        """
        ions, reach = self.continuum.ions, self.continuum.kappa * 0.6 * float((lattice.last - lattice.origin).mean())
        charge = -np.sum(ions[:, 1] / ions[:, 0] * np.expm1(-np.clip(edge, -20, 20)[:, None] * ions[:, 0]), 1)
        integral = reach**2 / (1 + reach) * np.log1p(1 / max(TINY, 3 * reach))
        return BENT_BEYOND * _relative(charge, edge) * float(integral)

    def coarse_reaction(self) -> Floats:
        """Return the reaction potentials (N,), kT/e, of the coarse lattice alone."""
        with self.engine.room(0, self.fine.unknown):
            return self.far.reaction(self.coarse)

    def reaction_errors(self) -> ReactionErrors:
        """Return the errors of the reaction potentials."""
        return ReactionErrors(self.continuum, self.fine.lattice, self.ratio,
                              self.coarse_reaction() - self.reaction)

    def potential_beyond(self, points: Floats) -> Floats:
        """Return the potential (P,), kT/e, at points far from the molecule."""
        if self._equivalent is None:
            return far_field(self.continuum, self.engine, points)
        return screened_potential(self.continuum, self.engine, points, *self._equivalent,
                         min(LAYER_IN_MEMBRANE, 2 * float(self.far.lattice.spacing.mean())))

def solve_charge_sets(continuum: Continuum, lattice: Lattice, engine: Engine, charge_sets: Iterable[Floats],
                      totals: Iterable[NodeSum] | None = None, energies: bool = False) -> Iterator[TwoLattices]:
    """Solve the equation for one molecule with several sets of charges.

    The surface, the permittivity, the ions and the levels of multigrid are made once. On a GPU, as many sets are solved
    together as it has room for: the steps of a single solution are too short for all of its multiprocessors.

    Parameters
    ----------
    continuum : Continuum
        Its charges are ignored.
    lattice : Lattice
    engine : Engine
    charge_sets : iterable of (N,) float64, e
    totals : iterable of callable, optional
        For each set, the exact sum of q / r at the nodes of a lattice; by default one for all.
    energies : bool
        Whether only reaction potentials are needed, see :class:`TwoLattices`.

    Yields
    ------
    TwoLattices
        That of each set.

    Raises
    ------
    TaskError
        When a solution does not converge.
    MemoryPlanError
        When the lattice does not fit into memory.
    """
    memory.require(NODE_BYTES * lattice.size, f"the solution at {lattice.size:,} nodes",
                   "use a larger {spacing}, or correct positions that are far too large")
    alike = NodePotential(engine.name)
    molecule, most = TwoLattices(continuum, lattice, engine, alike, lasting=True, energies=energies), 1
    if not len(continuum.ions):
        nodes = molecule.far.lattice.size + molecule.fine.lattice.size
        most = engine.team_size((1, max(1, NODES_TOGETHER // nodes)))
    sets = zip(charge_sets, repeat(alike) if totals is None else totals, strict=False)
    while chosen := list(islice(sets, most)):
        yield from molecule.solve([charges for charges, _ in chosen], [total for _, total in chosen])


def _relative(values: NDArray[Any], before: NDArray[Any]) -> float:
    """Return the rms change of values relative to what they were."""
    return float(np.linalg.norm(values - before) / (np.linalg.norm(before) + TINY))


def outer_nodes(inside: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the outer nodes next to the surface, and all outer nodes."""
    near = np.zeros_like(inside)
    for axis in range(3):
        for step in (-1, 1):
            near |= np.roll(inside, step, axis)
    return near & ~inside, ~inside
