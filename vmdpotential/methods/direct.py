"""Direct summation: every atom to every lattice point; the definition of the open potential.

Work is N times the number of points. Its only error is rounding (:mod:`vmdpotential.engines.accuracy`).
"""

from __future__ import annotations

from vmdpotential.engines import Engine, LatticeSum
from vmdpotential.methods import Estimate, Method, Plan, Request, check_memory, map_bytes
from vmdpotential.methods.cutoff import pairwise


class Direct(Method):
    """The sum over all pairs; see :class:`vmdpotential.methods.Method`."""

    name = "direct"
    summary = "every atom to every point"
    boundaries = ("open",)

    def estimate(self, request: Request, engine: Engine) -> Estimate:
        """Return what the sum should take."""
        if request.interaction.cutoff is not None:  # then a sum over those in range is the same
            return pairwise(request, engine)
        costs = engine.costs
        pairs = (2 if request.field else 1) * request.lattice.size * request.charges.count
        return Estimate(costs.fixed + costs.direct * pairs, map_bytes(request))

    def plan(self, request: Request, engine: Engine) -> Plan:
        """Return the plan.

        Raises
        ------
        UsageError
            For a periodic boundary.
        MemoryPlanError
            When the map does not fit into memory.
        """
        estimate = self.require(request, engine)
        check_memory(request, estimate)
        work = LatticeSum(request.lattice, request.interaction, None, request.precision, request.field)
        return Plan(self.name, engine.name, work, estimate)


METHOD = Direct()
