"""Potential and field of a solution on two lattices, at their nodes and at points, and their errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from vmdpotential.grid.lattice import Points, coordinate_bounds
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.sums.points import request_at, sum_at
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum
from vmdpotential.sums.result import Errors

from .boundary import PAIRS, TOLERANCE
from .equation import Values
from .interpolation import SolutionInterpolant
from .lattices import part_shared
from .molecule import Floats
from .solution import TwoLattices, outer_nodes

T = TypeVar("T")

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

#: Number of nodes at which the fields of both lattices are compared; step of differences for a far field, A.
COMPARED, STEP = 2000, 0.01

#: Least number of points at which the potentials of both lattices are compared, if there are so many.
COMPARED_POINTS = 4000


def _beside(method: Callable[..., T]) -> Callable[..., T]:
    """Return a method of :class:`SolvedPotential` that computes on the GPU where its arrays are."""

    @wraps(method)
    def result(self: SolvedPotential, *arguments: Any) -> T:
        with self.engine.room(0, self.fine.unknown):
            return method(self, *arguments)

    return result


class SolvedPotential:
    """The potential of a solution.

    Parameters
    ----------
    solved : TwoLattices
    """

    def __init__(self, solved: TwoLattices) -> None:
        self._solved, self.continuum, self.engine = solved, solved.continuum, solved.engine
        self.fine, self.far, self.ratio = solved.fine, solved.far, solved.ratio

    @_beside
    def values(self, unit: float = 1.0) -> Values:
        """Return the potential at the nodes of the map, kT/e, or in another `unit`."""
        result, applied = self.fine.potential(self._solved.part, unit), self.continuum.applied
        return result if applied is None else result + (unit * applied.at(self._heights)).astype(np.float32)

    @property
    def _heights(self) -> Floats:
        """The heights, A, of the nodes of the map."""
        lattice, part = self.fine.lattice, self._solved.part[2]
        heights: Floats = lattice.origin[2] + lattice.spacing[2] * np.arange(part.start, part.stop)
        return heights

    @_beside
    def field(self) -> Values:
        """Return the field (3, nx, ny, nz) at the nodes of the map, kT/e/A."""
        field = -SolutionInterpolant(self.fine).gradients(self._solved.part)
        if (applied := self.continuum.applied) is not None:
            field[2] -= applied.slope(self._heights).astype(np.float32)
        nodes = np.argwhere(self.engine.to_host(self.fine.within)[self._solved.part])
        if len(nodes):
            points = self.fine.lattice.points(nodes + [s.start for s in self._solved.part])
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
            coarse, gradient = far.at(points[compared], inside[compared], self.engine.to_host(self._solved.coarse))
            differences, slopes = coarse - values[compared], -gradient - field[compared]
            # where there is only the coarse lattice, with the relative error of that one where both are
            only, outside = ~near[compared], self.far.squares(self.fine, self.ratio, self._solved.coarse)[2:]
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
        near, near_apart, all_, apart = self.far.squares(self.fine, self.ratio, self._solved.coarse)
        fine_near, fine_all, pockets = self.fine.in_pockets()
        surface, outside = (float(np.sqrt((factor**2 * b / a if a > 0 else 0.0) + (pockets / c if c > 0 else 0.0)
                                          + unsettled**2 + self._floor**2))
                            for a, b, c, factor, unsettled in (
                                (near, near_apart, fine_near, self._factor(FULL_AT_SURFACE), self._solved.unsettled[0]),
                                (all_, apart, fine_all, self._factor(FULL_OUTSIDE), self._solved.unsettled[1])))
        return Errors(outside, surface if near > 0 else outside)

    @_beside
    def with_field(self, errors: Errors) -> Errors:
        """Return errors with those of the field added, from some of the nodes that both lattices share."""
        part = part_shared(self.far.lattice, self.fine.lattice, self.ratio)
        near, outside = outer_nodes(self.engine.to_host(self.far.within)[part])
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

    def _factor(self, full: float) -> float:
        """The error of potentials relative to the difference of both lattices.

        By the second order, a lattice of twice the spacing has four times the error, but those of coarse ones grow
        less. Where the ions' charge is not that of the linear equation at all, the error is `full` times as large.
        """
        return (1 + (full - 1) * self._solved.curved) * min(LARGEST_FACTOR, SAFETY / (self.ratio - 1))

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
        kind = (1 + (FULL_OUTSIDE - 1) * self._solved.curved) * sharp * 3 / (self.ratio**2 - 1)
        potential, field = (np.where(np.isinf(distances), beyond, kind * np.interp(distances, DISTANCES, each))
                            for beyond, each in zip(far, (OF_POTENTIAL, OF_FIELD), strict=True))
        return potential, field

    def _of_charges(self, points: Floats) -> tuple[Floats, Floats]:
        """Return potential, kT/e, and field, kT/e/A, of the charges in the molecule's medium; exact at few points."""
        c = self.continuum
        factor, charged = c.constant / c.inside, c.charges != 0
        if len(points) * int(charged.sum()) < PAIRS:
            sums = prepare_sum(self.engine, PotentialSum(Points(points), COULOMB.bind(), field=True)).run(
                c.positions[charged], c.charges[charged])
        else:
            request = request_at(points, c.positions, c.charges, None, tolerance=TOLERANCE, field=True)
            sums = sum_at(request, c.positions, c.charges, self.engine)[1]
        field = sums.field()
        assert field is not None
        return factor * sums.values(), factor * field.T

    def _beyond(self, points: Floats) -> tuple[Floats, Floats]:
        """Return potential and field at points beyond the lattices."""
        steps = np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)]) * STEP
        values = self._solved.potential_beyond((points + steps[:, None]).reshape(-1, 3)).reshape(7, -1)
        return values[0], ((values[4:] - values[1:4]) / (2 * STEP)).T
