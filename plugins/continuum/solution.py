"""The Poisson-Boltzmann equation solved on two lattices: potential, field, reaction potentials and their errors.

The fine lattice has the requested spacing. The coarse one has at least twice that spacing and reaches far beyond the
molecule; at its faces the potential is the sum of the charges' screened potentials. The coarse solution gives the fine
one its boundary values, is then corrected by the fine solution where they overlap, and is solved again for better
boundary values. The difference of both solutions gives an error.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import wraps
from itertools import islice, repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice, Points, coordinate_bounds
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.sums.accuracy import Errors
from vmdpotential.sums.points import request_at, sum_at
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum
from vmdpotential.sums.result import Result

from .boundary import (
    EXPOSED_SMOOTH_OVER,
    FREE_COARSE_NODES,
    LAYER_IN_MEMBRANE,
    PAIRS,
    SMOOTH_OVER,
    TOLERANCE,
    FaceNodes,
    coarse_lattice_around,
    equivalent_charges,
    exposed_to_faces,
    far_field,
    screened_potential,
)
from .equation import TOLERANCE as SOLUTION_TOLERANCE
from .equation import (
    Problem,
    Systems,
    Values,
    enclosing_lattice,
    solve_together,
)
from .interpolation import SolutionInterpolant
from .jump import COARSE_CLOSED_FORM_SPACINGS
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
#: energies of binding of adenylate kinase's domains to 0.002 kcal/mol. With 1e-4 for second ones and 3e-5 for the last,
#: some of these energies are wrong by 0.04 kcal/mol, and their stated errors by a fifth.
ROUGH, START = 1e-3, 3e-5

#: Ratio of the spacings of both lattices where only energies are needed, and the largest spacing of the coarse one, A,
#: for which it is not 2. Energies of binding of adenylate kinase's domains change by less than 0.006 kcal/mol, a
#: hundredth of the error of a lattice of 0.5 A.
ENERGY_RATIO, ENERGY_COARSE = 4, 2.0

#: Factors on the extrapolated errors of potentials, chosen so that at most 5 % of 50 structures have a larger error
#: (scripts/pb_errors.py).
SAFETY, LARGEST_FACTOR = 0.8, 0.6

#: Factors on these for the full equation, as far as ions are not those of the linear one: next to highly charged
#: molecules they are in a layer that is thinner than the spacing. At the surface, less depends on that layer.
FULL_OUTSIDE, FULL_AT_SURFACE = 2.5, 1.4

#: Distances of points from the surface, in spacings, negative inside, and the errors of potential and field there over
#: their differences from a lattice of twice the spacing: 1.5 to 2 times the medians of the ratios of rms errors to rms
#: differences in 19 fragments of proteins and DNA at 0.5, 0.7 and 1 A. Next to the surface the error hardly falls with
#: the spacing, somewhat farther much faster than by the second order, by which it falls from there on.
DISTANCES = (-2.3, -1.8, -1.5, -1.0, -0.6, -0.35, -0.1, 0.1, 0.35, 0.6, 1.0, 1.75, 2.5, 4.0)
OF_POTENTIAL = (0.45, 0.4, 0.34, 0.28, 0.26, 0.35, 0.6, 0.8, 0.5, 0.3, 0.25, 0.27, 0.32, 0.36)
OF_FIELD = (0.4, 0.26, 0.2, 0.25, 0.45, 0.65, 1.1, 1.5, 1.0, 0.6, 0.3, 0.24, 0.3, 0.42)

#: Factor on these for a surface with edges sharper than the spacing.
SHARP_FACTOR = 1.5

#: Error of the place where ions begin, in spacings: around a gap of at least a spacing between them and the molecule,
#: and without a gap. Both lattices have it, by the first order (ions around balls, in closed form).
ION_EDGE, BARE_ION_EDGE = 0.03, 0.2

#: Error of potentials from the tolerances of solutions and of boundary values, relative to their rms.
SOLVED = 3e-4

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

#: Number of nodes at which the fields of both lattices are compared; step of differences for a far field, A.
COMPARED, STEP = 2000, 0.01

#: Least number of points at which the potentials of both lattices are compared, if there are so many.
COMPARED_POINTS = 4000


def _beside(method: Callable[..., T]) -> Callable[..., T]:
    """Return a method of :class:`TwoLattices` that computes on the GPU where its arrays are."""

    @wraps(method)
    def result(self: TwoLattices, *arguments: Any) -> T:
        with self.engine.room(0, self.fine.unknown):
            return method(self, *arguments)

    return result


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
        self.part = tuple(slice(a, a + n) for a, n in zip(first, lattice.shape, strict=True))
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
            self.far = Problem(continuum, wide, levels, total, engine, COARSE_CLOSED_FORM_SPACINGS, lasting)
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
            edge = faces.interpolated(engine, self._far_field(faces.points))
        yield self.far, edge, START
        #: Relative errors next to the molecule, and outside, by the values at the faces; of the full equation.
        self._unsettled = np.zeros(2)
        if len(continuum.ions) and self._equivalent is not None:
            edge = yield from self._settle(fine, faces, edge)
        self.far.rest()
        if not self._lasting:
            self.fine = Problem(continuum, fine, self._depth, self._total, engine)
        self.fine.charge(continuum.charges, *self._systems)
        self.fine.begin(self.far, self.ratio)
        boundary = self.far.on_faces(fine)
        yield self.fine, boundary, ROUGH
        spare = fine.size > KEPT
        if spare:
            self.fine.rest()
        self.fine.correct()
        self._coarse = self.far.copy()
        yield self.fine, boundary, START
        ions, coarse = np.zeros(3), 0.0
        if not self._energies:
            if spare:
                self.fine.rest()
            shared = self.far.part_shared(self.fine.lattice, self.ratio)
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
        self._curved = float(np.sqrt(ions[1] / ions[2])) if ions[2] > 0 else 0.0
        self.fine.finish()
        self.reaction = self.fine.reaction()

    def _settle(self, fine: Lattice, faces: FaceNodes, edge: Any) -> Generator[tuple[Problem, Any, float], None, Any]:
        """Repeat the boundary values of the full equation until they fit the solution; return them."""
        far, changes = self.far, [np.zeros(3)]
        part = far.part_shared(fine, self.ratio)
        chosen = _places(far.host(far.within)[part])
        for _ in range(FULL_ROUNDS):
            last, before = far.host(edge), np.array(far.host(far.unknown)[part])
            self._equivalent = equivalent_charges(far)
            edge = faces.interpolated(self.engine, self._far_field(faces.points))
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
        self._unsettled = np.hypot(left[:2], shares * self._bent_beyond(far.lattice, far.host(edge)))
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

    @_beside
    def values(self, unit: float = 1.0) -> Values:
        """Return the potential at the nodes of the map, kT/e, or in another `unit`."""
        result, applied = self.fine.potential(self._part, unit), self.continuum.applied
        return result if applied is None else result + (unit * applied.at(self._heights)).astype(np.float32)

    @property
    def _heights(self) -> Floats:
        """The heights, A, of the nodes of the map."""
        lattice, part = self.fine.lattice, self._part[2]
        heights: Floats = lattice.origin[2] + lattice.spacing[2] * np.arange(part.start, part.stop)
        return heights

    @_beside
    def field(self) -> Values:
        """Return the field (3, nx, ny, nz) at the nodes of the map, kT/e/A."""
        field = -SolutionInterpolant(self.fine).gradients(self._part)
        if (applied := self.continuum.applied) is not None:
            field[2] -= applied.slope(self._heights).astype(np.float32)
        nodes = np.argwhere(self.engine.to_host(self.fine.within)[self._part])
        if len(nodes):
            points = self.fine.lattice.points(nodes + [s.start for s in self._part])
            field[(slice(None), *nodes.T)] += self._of_charges(points)[1].T.astype(np.float32)
        return field

    @_beside
    def at(self, points: Floats, errors: bool = True) -> tuple[Floats, Floats, float, float]:
        """Return potential (P,), kT/e, and field (P, 3), kT/e/A, at points, and their rms errors.

        Without `errors`, which take a third of the time, these are only those of the tolerances.

        Points outside of the fine lattice use the coarse one, points beyond both the charges' screened potentials,
        whose error is not known. An atom at a point contributes the potential at the soft core's distance, and no
        field.
        """
        values, field = np.zeros(len(points)), np.zeros((len(points), 3))
        differences, slopes = np.zeros(0), np.zeros((0, 3))
        inside = np.zeros(len(points), bool)
        fine, far = SolutionInterpolant(self.fine), SolutionInterpolant(self.far)
        near, around = fine.holds(points), far.holds(points)
        depths = np.full(len(points), np.inf)
        if errors:
            depths[near] = fine.distances(points[near]) / self.fine.lattice.spacing.max()
        inside[near] = fine.inside(points[near])  # the coarse lattice is for points far from the molecule
        for rows, smooth in ((near, fine), (around & ~near, far)):
            if rows.any():
                values[rows], gradient = smooth.at(points[rows], inside[rows])
                field[rows] = -gradient
        compared = np.flatnonzero(around & errors)
        compared = compared[:: max(1, len(compared) // COMPARED_POINTS)]
        if len(compared):
            coarse, gradient = far.at(points[compared], inside[compared], self.engine.to_host(self._coarse))
            differences, slopes = coarse - values[compared], -gradient - field[compared]
            # where there is only the coarse lattice, with the relative error of that one where both are
            only, outside = ~near[compared], self.far.squares(self.fine, self.ratio, self._coarse)[2:]
            relative = float(np.sqrt(outside[1] / outside[0])) if outside[0] > 0 else 0.0
            differences[only] = np.hypot(differences[only], relative * values[compared][only])
            slopes[only] = np.hypot(slopes[only], relative * field[compared][only])
        beyond = ~(near | around)
        if beyond.any():
            values[beyond], field[beyond] = self._beyond(points[beyond])
        if inside.any():
            potential, slope = self._of_charges(points[inside])
            values[inside] += potential
            field[inside] += slope
        if (applied := self.continuum.applied) is not None:
            values += applied.at(points[:, 2])
            field[:, 2] -= applied.slope(points[:, 2])
        stated = []
        for each, sizes, fractions in zip((differences, slopes), (values, field), self._fractions(depths[compared]),
                                          strict=True):
            error = float(np.sqrt(np.mean((fractions * each.T) ** 2))) if len(each) else 0.0
            stated.append(float(np.hypot(error, self._floor * np.sqrt(np.mean(sizes[~inside] ** 2))))
                          if not inside.all() else error)
        potential_error, field_error = stated
        return values, field, potential_error, field_error

    @_beside
    def errors(self) -> Errors:
        """Return the relative errors of the potential outside of the molecule, and next to its surface.

        They are extrapolated (L. F. Richardson, Phil. Trans. R. Soc. A 226 (1927) 299) from the nodes that both
        lattices share.
        """
        near, near_apart, all_, apart = self.far.squares(self.fine, self.ratio, self._coarse)
        fine_near, fine_all, pockets = self.fine.in_pockets()
        surface, outside = (float(np.sqrt((factor**2 * b / a if a > 0 else 0.0) + (pockets / c if c > 0 else 0.0)
                                          + unsettled**2 + self._floor**2))
                            for a, b, c, factor, unsettled in (
                                (near, near_apart, fine_near, self._factor(FULL_AT_SURFACE), self._unsettled[0]),
                                (all_, apart, fine_all, self._factor(FULL_OUTSIDE), self._unsettled[1])))
        return Errors(outside, surface if near > 0 else outside)

    @_beside
    def with_field(self, errors: Errors) -> Errors:
        """Return errors with those of the field added, from some of the nodes that both lattices share."""
        part = self.far.part_shared(self.fine.lattice, self.ratio)
        near, outside = _places(self.engine.to_host(self.far.within)[part])
        rng = np.random.default_rng(2009)
        results = []
        for chosen in (outside, near):
            nodes = np.argwhere(chosen)
            if len(nodes) > COMPARED:
                nodes = nodes[np.sort(rng.choice(len(nodes), COMPARED, replace=False))]
            if not len(nodes):
                results.append(0.0)
                continue
            _, field, _, error = self.at(self.far.lattice.points(nodes + [s.start for s in part]))
            size = float(np.sqrt(np.mean(field**2)))
            results.append(error / size if size > 0 else 0.0)
        return replace(errors, field=results[0], field_away=results[1])

    @_beside
    def coarse_reaction(self) -> Floats:
        """Return the reaction potentials (N,), kT/e, of the coarse lattice alone."""
        return self.far.reaction(self._coarse)

    @_beside
    def reaction_errors(self) -> ReactionErrors:
        """Return the errors of the reaction potentials."""
        return ReactionErrors(self.continuum, self.fine.lattice, self.ratio,
                              self.coarse_reaction() - self.reaction)

    def _factor(self, full: float) -> float:
        """The error of potentials relative to the difference of both lattices.

        By the second order, a lattice of twice the spacing has four times the error, but those of coarse ones grow
        less. Where the ions' charge is not that of the linear equation at all, the error is `full` times as large.
        """
        return (1 + (full - 1) * self._curved) * min(LARGEST_FACTOR, SAFETY / (self.ratio - 1))

    @property
    def _floor(self) -> float:
        """The error of potentials outside that both lattices share, relative to their rms.

        Where ions begin at a distance a from the centre of a ball, the potential outside is proportional to
        exp(kappa a) / (1 + kappa a).
        """
        c = self.continuum
        edge = (BARE_ION_EDGE if c.ion_radius < self.fine.lattice.spacing.max() else ION_EDGE)
        low, high = coordinate_bounds(c.positions)
        reach = c.kappa * (0.5 * float((high - low).max()) + float(c.radii.max(initial=0.0)) + c.ion_radius)
        moved = c.kappa * edge * float(self.fine.lattice.spacing.max()) * reach / (1 + reach)
        return float(np.hypot(SOLVED, moved))

    def _fractions(self, distances: Floats) -> tuple[Floats, Floats]:
        """Return the errors of potential and field over their differences from the coarse lattice.

        At points at these distances (P,) from the surface, in spacings, negative inside; infinite beyond the fine
        lattice.
        """
        far = self._factor(FULL_OUTSIDE), SAFETY / (self.ratio - 1)
        if self.continuum.gaussian:
            return np.full(len(distances), far[0]), np.full(len(distances), far[1])
        sharp = SHARP_FACTOR if self.continuum.probe < self.fine.lattice.spacing.max() else 1.0
        kind = (1 + (FULL_OUTSIDE - 1) * self._curved) * sharp * 3 / (self.ratio**2 - 1)
        potential, field = (np.where(np.isinf(distances), beyond, kind * np.interp(distances, DISTANCES, each))
                            for beyond, each in zip(far, (OF_POTENTIAL, OF_FIELD), strict=True))
        return potential, field

    @property
    def _part(self) -> tuple[slice, slice, slice]:
        x, y, z = self.part
        return x, y, z

    def _of_charges(self, points: Floats) -> tuple[Floats, Floats]:
        """Return potential, kT/e, and field, kT/e/A, of the charges in the molecule's medium; exact at few points."""
        c = self.continuum
        factor, charged = c.constant / c.inside, c.charges != 0
        if len(points) * int(charged.sum()) < PAIRS:
            sums = prepare_sum(self.engine, PotentialSum(Points(points), COULOMB.bind(), field=True)).run(
                c.positions[charged], c.charges[charged])
        else:
            sums = _sum(self.engine, points, c.positions, c.charges, True)
        field = sums.field()
        assert field is not None
        return factor * sums.values(), factor * field.T

    def _far_field(self, points: Floats) -> Floats:
        """Return the potential (P,), kT/e, at points far from the molecule."""
        if self._equivalent is None:
            return far_field(self.continuum, self.engine, points)
        return screened_potential(self.continuum, self.engine, points, *self._equivalent,
                         min(LAYER_IN_MEMBRANE, 2 * float(self.far.lattice.spacing.mean())))

    def _beyond(self, points: Floats) -> tuple[Floats, Floats]:
        """Return potential and field at points beyond the lattices."""
        steps = np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)]) * STEP
        values = self._far_field((points + steps[:, None]).reshape(-1, 3)).reshape(7, -1)
        return values[0], ((values[4:] - values[1:4]) / (2 * STEP)).T


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


def _sum(engine: Engine, points: Floats, positions: Floats, charges: Floats, field: bool = False) -> Result:
    return sum_at(request_at(points, positions, charges, None, tolerance=TOLERANCE, field=field), positions, charges,
                  engine)[1]


def _relative(values: NDArray[Any], before: NDArray[Any]) -> float:
    """Return the rms change of values relative to what they were."""
    return float(np.linalg.norm(values - before) / (np.linalg.norm(before) + TINY))


def _places(inside: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the outer nodes next to the surface, and all outer nodes."""
    near = np.zeros_like(inside)
    for axis in range(3):
        for step in (-1, 1):
            near |= np.roll(inside, step, axis)
    return near & ~inside, ~inside
