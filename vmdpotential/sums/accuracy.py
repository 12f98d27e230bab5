"""Measured errors of sums, by exact values at some of their nodes or points.

A tolerance applies to the rms error relative to the rms of the potential over all points, and to the same over the
points farther than 2 A from every charge, where the potential is smooth and small; and, if the field is computed, to
the field in both regions.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice, Points
from vmdpotential.interactions import SOFT_CORE
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.long_range import long_range
from vmdpotential.sums import Method, Plan, Request, slabs
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum
from vmdpotential.sums.reference import NEGLECTED_WAVES, exact_plan, full_potential
from vmdpotential.sums.refinement import BY_ERROR, BY_ERROR_OF_MAPS, PlanAttempt, refine_to_tolerance
from vmdpotential.sums.result import Errors, Result
from vmdpotential.sums.slabs import Sink

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

log = logging.getLogger(__name__)

#: Numbers of nodes of a lattice and of arbitrary points at which a sum is compared with the exact one.
COMPARED_NODES, COMPARED_POINTS = 400, 200

#: Points farther than this from every charge, A, count as away from charges; if fewer than a quarter are, the farthest
#: quarter.
AWAY_DISTANCE = 2.0

#: Atoms per A^3 of a lattice or a cell, below which some points are chosen around atoms; and how far from an atom along
#: each axis, A.
SPARSE_DENSITY, SURROUNDINGS = 0.01, 8.0

#: In a periodic cell, a screened potential is summed to the distance at which it is the tolerance divided by this.
TAIL_FACTOR = 1e3

#: Part of the tolerance that an exact sum over waves may neglect.
EXACT_TOLERANCE = 1e-3

#: Step of finite differences for the field, A, whose error is 4e-6 at 0.1 A from a charge; and the factor for a smaller
#: step nearer to a charge (error 1e-6 at 0.01 A), where rounding is small compared with the field.
FIELD_STEP, CLOSE_DISTANCE, CLOSE_STEP_FACTOR = 2e-4, 0.1, 0.05


@dataclass(frozen=True, eq=False)
class Sample:
    """The exact potential at random points of a lattice or of others, and the field if it is computed.

    Parameters
    ----------
    indices : (M, 3) or (M, 1) int64
        Indices of the nodes or points.
    values : (1 or 4, M) float64, e/A and e/A^2
    weights : (M,) float64
        Part of the target that each point represents; their sum is 1.
    distances : (M,) float64, A
        Distances of nodes to the nearest charge.
    """

    indices: Indices
    values: Floats
    weights: Floats
    distances: Floats | None = None

    @property
    def away(self) -> NDArray[np.bool_] | None:
        """Mask of the nodes away from charges, (M,); None at points, whose number near charges means nothing."""
        if self.distances is None:
            return None
        far: NDArray[np.bool_] = self.distances > AWAY_DISTANCE
        if 4 * far.sum() >= len(far):
            return far
        farthest = np.zeros(len(far), np.bool_)
        farthest[np.argsort(self.distances)[-(-3 * len(far) // 4) :]] = True
        return farthest

    def _rms(self, values: Floats, where: NDArray[np.bool_] | slice = slice(None)) -> float:
        """Return the root of the weighted mean of squares of values (M,) or (3, M), at some of the points."""
        weights = self.weights[where]
        squares = np.square(values[..., where]).reshape(-1, len(weights)).sum(0)
        return float(np.sqrt(weights @ squares / weights.sum()))

    @property
    def target_rms(self) -> float:
        """The lesser rms of the potential of those over all points and away from charges, e/A; 0 without any."""
        everywhere, away = self._rms(self.values[0]), self.away
        return min(filter(None, (everywhere, everywhere if away is None else self._rms(self.values[0], away))),
                   default=0.0)

    def errors(self, result: Result) -> Errors:
        """Return the errors of a result.

        A few points near atoms contribute most of a potential's mean square. That of all points is therefore taken
        from the map and not from the sample.
        """
        values, away = result.at(self.indices), self.away
        rms = np.sqrt(result.mean_squares()).tolist()
        difference = values - self.values

        def relative(part: slice, everywhere: float) -> tuple[float, float | None]:
            return (_ratio(self._rms(difference[part]), everywhere), None if away is None else
                    # if there is no potential away from charges, errors are relative to that of all points
                    _ratio(self._rms(difference[part], away), self._rms(self.values[part], away) or everywhere))

        errors = relative(slice(0, 1), rms[0])
        return Errors(*errors) if len(values) == 1 else Errors(*errors, *relative(slice(1, 4), rms[1]))


def _ratio(error: float, rms: float) -> float:
    return float(error / rms) if rms > 0 else 0.0 if error == 0 else np.inf


def choose_rows(count: int) -> Indices:
    """Return the indices of the points at which the error is measured, :data:`COMPARED_POINTS` or all, increasing."""
    if count <= COMPARED_POINTS:
        return np.arange(count)
    return np.sort(np.random.default_rng(2009).choice(count, COMPARED_POINTS, replace=False))


def _sample_points(request: Request, positions: Floats, charges: Floats, engine: Engine) -> Sample:
    """Return the exact potential at some of the points, and the field if it is requested."""
    rows = choose_rows(request.target.size)
    exact = exact_plan(replace(request, target=Points(request.target.points(rows))), engine,
                       NEGLECTED_WAVES * request.tolerance).run(positions, charges)
    values, field = exact.values(), exact.field()
    return Sample(rows[:, None], values[None] if field is None else np.concatenate([values[None], field]),
                  np.full(len(rows), 1 / len(rows)))


def sample(request: Request, positions: Floats, charges: Floats, engine: Engine, count: int = COMPARED_NODES) -> Sample:
    """Return the exact potential at random points of a target, and the field if it is requested.

    Without a cutoff, it is the full potential: a direct sum, or Ewald's sum in a periodic cell.
    """
    if request.at_points:
        return _sample_points(request, positions, charges, engine)
    indices, weights = choose_points(request.lattice, positions, request.cell, count)
    points = request.lattice.points(indices)
    steps = np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)]) if request.field else np.zeros((1, 3))

    def exact(points: Floats, step: float) -> tuple[Floats, Floats]:
        """Return potential and field (1 or 4, P) at points (P, 3), and the distance to the nearest charge (P,)."""
        places = (points + step * steps[:, None]).reshape(-1, 3)
        result = _exact(request, places, positions, charges, engine)
        values, distances = np.asarray(result.values(), np.float64).reshape(len(steps), -1), result.distances
        assert distances is not None
        if request.field:
            values = np.concatenate([values[:1], (values[4:] - values[1:4]) / (2 * step)])
        return values, distances[: len(points)]

    result, distances = exact(points, FIELD_STEP)
    if request.field:
        close = np.flatnonzero(distances < CLOSE_DISTANCE)
        if len(close):
            result[:, close], _ = exact(points[close], CLOSE_STEP_FACTOR * FIELD_STEP)
        # finite differences are wrong at the edge of the soft core
        weights = np.where(abs(distances - SOFT_CORE) < 2 * FIELD_STEP, 0.0, weights)
        if request.interaction.masked:  # and across the end of an interaction that jumps there
            weights = np.where(_at_end(request, points, positions), 0.0, weights)
    return Sample(indices, result, weights, distances)


def _at_end(request: Request, points: Floats, positions: Floats) -> NDArray[np.bool_]:
    """Return a mask of the points that have an atom at the cutoff, (P,)."""
    reach, step = request.interaction.cutoff or 0.0, FIELD_STEP
    if request.cell is not None:
        positions, _ = request.cell.images_in_box(positions, points.min(0) - reach - step, points.max(0) + reach + step)
    return np.array([(abs(np.linalg.norm(positions - point, axis=1) - reach) < 1.1 * step).any() for point in points])


def _exact(request: Request, points: Floats, positions: Floats, charges: Floats, engine: Engine) -> Result:
    cell, bound = request.cell, request.interaction
    splits = long_range(bound) is not None
    if cell is not None and bound.decay is not None and bound.cutoff is None:
        far = bound.decay * float(np.log(TAIL_FACTOR / request.tolerance))  # farther than any method sums
        if not splits or 2 * far < np.linalg.norm(cell.reduced, axis=1).min():  # fewer pairs than nearest images
            bound, splits = bound.truncated(far), False
    if splits:
        return full_potential(points, positions, charges, cell, engine, bound, EXACT_TOLERANCE * request.tolerance)
    return prepare_sum(engine, PotentialSum(Points(points), bound, cell, distances=True)).run(positions, charges)


def choose_points(lattice: Lattice, positions: Floats, cell: Cell | None,
                  count: int = COMPARED_NODES) -> tuple[Indices, Floats]:
    """Return random lattice points, (M, 3) indices, and the part of the lattice that each represents, (M,).

    A quarter of the points are next to atoms, and another one near them, where errors are largest: uniformly
    distributed points would miss them if they are a small part of the lattice. If atoms fill only a small part of it,
    a third quarter is around them. Each point represents the inverse of the density of all points at its place (Veach
    and Guibas, SIGGRAPH 1995, 419: the balance heuristic).
    """
    rng = np.random.default_rng(2009)
    shape, size, part = np.array(lattice.shape), lattice.size, count // 4
    volume = size * np.prod(lattice.spacing) if cell is None else cell.volume
    if cell is not None:
        positions, _ = cell.images_in_box(positions, lattice.origin - AWAY_DISTANCE, lattice.last + AWAY_DISTANCE)
    # by axes, as numpy computes rows of three numbers several times as slowly
    voxels = np.stack([np.floor((positions[:, d] - lattice.origin[d]) / lattice.spacing[d]).astype(np.int64)
                       for d in range(3)])
    reaches = np.outer([0.0, AWAY_DISTANCE, *([SURROUNDINGS] if len(positions) <= SPARSE_DENSITY * volume else [])],
                       1 / lattice.spacing).astype(np.int64)
    voxels = _between(voxels, -reaches[-1] - 1, shape + reaches[-1])
    chosen, shares = [rng.integers(0, shape, (count - part * len(reaches), 3))], []
    for steps in reaches:
        near, widths = _between(voxels, -steps - 1, shape + steps), 2 * steps + 2
        shares.append(part / max(1, near.shape[1]) / widths.prod())
        if near.shape[1]:
            nodes = near[:, rng.integers(0, near.shape[1], part)].T + rng.integers(0, widths, (part, 3)) - steps
            chosen.append(nodes[((nodes >= 0) & (nodes < shape)).all(1)])
    points = np.concatenate(chosen)
    density = np.full(len(points), len(chosen[0]) / size)
    for share, counts in zip(shares, _boxes_around(points, voxels, reaches, shape), strict=True):
        density += share * counts
    return points, 1 / density / np.sum(1 / density)


def _boxes_around(points: Indices, voxels: Indices, reaches: Indices, shape: Indices) -> Iterator[Indices]:
    """Yield for each of the reaches, steps (R, 3), how many boxes around voxels (3, N) hold each of the points (M, 3).

    A box ends a step behind its voxel. Voxels, which are at most the last reach off the lattice, are sorted once,
    by their numbers along rows of the lattice with margins, and those of rows are counted.
    """
    margin = reaches[-1] + 1
    padded = shape + 2 * margin
    strides = np.array([padded[1] * padded[2], padded[2], 1])
    numbers, own = np.sort(strides @ (voxels + margin[:, None])), (points + margin) @ strides
    for steps in reaches:
        total = np.zeros(len(points), np.int64)
        for plane in range(-steps[0] - 1, steps[0] + 1):  # plane by plane, which takes little memory
            rows = (own + plane * strides[0])[:, None] + strides[1] * np.arange(-steps[1] - 1, steps[1] + 1)
            total += (np.searchsorted(numbers, rows + steps[2], "right")
                      - np.searchsorted(numbers, rows - steps[2] - 1, "left")).sum(1)
        yield total


def _between(indices: Indices, low: Indices, end: Indices) -> Indices:
    """Return those of the indices (3, N) that are at least `low` (3,) and below `end` (3,)."""
    is_between = np.logical_and.reduce([(row >= least) & (row < after)
                                        for row, least, after in zip(indices, low, end, strict=True)])
    return indices if is_between.all() else indices[:, is_between]


def run_to_tolerance(method: Method, request: Request, positions: Floats, charges: Floats, exact: Sample | None,
                     engine: Engine, sink: Sink | None = None) -> tuple[Plan, Result, Errors | None]:
    """Return a plan, its result, and the measured errors, which are within the tolerance.

    Parameters
    ----------
    method : Method
    request : Request
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    exact : Sample or None
        None for a method that is exact to rounding, or that states its errors itself (:attr:`.Result.errors`).
    engine : Engine
    sink : Sink, optional
        Receives a map that is requested in slabs.

    Raises
    ------
    TaskError
        When the tolerance cannot be kept.
    InputError
        When values are too large for float32.
    MemoryPlanError
        When a plan does not fit into memory.
    """
    def attempt(error: float) -> PlanAttempt[tuple[Plan, Result, Errors | None]]:
        asked = request.with_error(error)
        plan = method.plan(asked, engine)
        log.debug("%s", plan)
        result: Result
        if request.planes and sink:
            points = np.zeros((0, 3), np.int64) if exact is None else exact.indices
            result = slabs.run(plan, asked, positions, charges, points, sink)
        else:
            result = plan.run(positions, charges)
        errors = result.errors if exact is None else exact.errors(result)
        measured = 0.0 if exact is None or errors is None else errors.largest
        return PlanAttempt((plan, result, errors), measured, plan)

    more = ("" if request.precision == "double" else ", {precision double}") + ", or another {method}"
    rule = BY_ERROR if request.at_points else BY_ERROR_OF_MAPS
    return refine_to_tolerance(request.tolerance, request.error, attempt, rule, more)
