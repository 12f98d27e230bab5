"""Direct summation over all atoms at every point of the target, which defines the open potential.

The time is proportional to the number of atoms times that of points. Its only error is rounding
(:data:`vmdpotential.sums.ROUNDING_ERRORS`). At points, an interaction that ends or decays is summed over the pairs
within its range, with all periodic images.
"""

from __future__ import annotations

import numpy as np

from vmdpotential.engines import Engine
from vmdpotential.interactions import Bound
from vmdpotential.sums import Estimate, Method, Refusal, Request, SumPlan, check_memory, result_bytes
from vmdpotential.sums.costs import exponential_count
from vmdpotential.sums.cutoff import pairwise_estimate
from vmdpotential.sums.potential_sum import PotentialSum

#: Approximate part of the tolerance that the neglected part of a decaying interaction takes.
NEGLECTED_PART = 1e-3


class Direct(Method):
    """The sum over all pairs; see :class:`vmdpotential.sums.Method`."""

    name = "direct"
    summary = "every atom to every point"
    targets = ("grid", "points")
    boundaries = ("open",)

    def refusal(self, request: Request) -> Refusal | None:
        """Return why a request is not possible, or None if it is."""
        if request.at_points:
            if request.radius is not None:
                return Refusal("sums all pairs itself, so that none can be summed elsewhere")
            if request.cell is not None and _ended(request).cutoff is not None:
                return None
        return super().refusal(request)

    def estimate(self, request: Request, engine: Engine) -> Estimate:
        """Return the estimated cost of the sum."""
        if request.at_points:
            return _at_points(request, engine)
        if request.interaction.cutoff is not None:  # equals a sum over the pairs in range
            return pairwise_estimate(request, engine)
        costs = engine.costs
        pairs = (2 if request.field else 1) * request.lattice.size * request.charges.count
        seconds = costs.direct * (1 + costs.exponential * exponential_count(request)) * pairs
        return Estimate(costs.fixed + seconds, result_bytes(request))

    def plan(self, request: Request, engine: Engine) -> SumPlan:
        """Return the plan.

        Raises
        ------
        UsageError
            For a periodic boundary, except at points for an interaction that ends or decays.
        MemoryPlanError
            When the map does not fit into memory.
        """
        estimate = self.require(request, engine)
        if not request.at_points:
            check_memory(request, estimate)
        bound, length = _ended(request), request.interaction.decay
        neglected = None if length is None or bound is request.interaction else (
            NEGLECTED_PART * request.tolerance * float(np.sqrt(2 * np.pi * length)) * request.charges.density)
        work = PotentialSum(request.target, bound, request.cell, request.precision, request.field)
        return SumPlan(self.name, engine.name, work, estimate, neglected)


def _ended(request: Request) -> Bound:
    """Return the interaction; in a periodic cell, a decaying one is truncated where it is negligible."""
    bound = request.interaction
    if request.cell is None or bound.decay is None or bound.cutoff is not None:
        return bound
    return bound.truncated(bound.decay * float(np.log(1 / (NEGLECTED_PART * request.tolerance))))


def _at_points(request: Request, engine: Engine) -> Estimate:
    costs, count, charges = engine.costs, request.target.size, request.charges
    reach = _ended(request).cutoff
    pairs = (costs.point_pair_field if request.field else costs.point_pair) * count * charges.count
    if reach is not None:
        within = charges.count / charges.volume * 4 / 3 * np.pi * reach**3
        near = costs.sort * charges.count + costs.near * count * (
            within if request.cell is not None else min(within, charges.count))
        pairs = near if request.cell is not None else min(near, pairs)
    return Estimate(float(pairs), 40 * count + 200 * charges.count)


METHOD = Direct()
