"""Multilevel summation: the full potential in a time proportional to the number of points, without transforms.

Pairs within a radius are summed directly, and the smooth rest on lattices, each twice as coarse as the one before
(:mod:`vmdpotential.plugins.historical.levels`; R. D. Skeel, I. Tezcan, D. J. Hardy, J. Comput. Chem. 23 (2002) 673;
D. J. Hardy, J. E. Stone, K. Schulten, Parallel Comput. 35 (2009) 164). A periodic cell, of any shape, has
a conducting boundary and a neutralising background as in :mod:`vmdpotential.sums.pme`.

Order, spacing and radius are the cheapest ones whose predicted error is within the tolerance, by errors that were
measured in water.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from vmdpotential import memory
from vmdpotential.engines import Engine
from vmdpotential.engines.costs import Costs
from vmdpotential.errors import TaskError
from vmdpotential.sums import Estimate, Method, Plan, Refusal, Request, SumPlan, interpolated_bytes, slabs_hint
from vmdpotential.sums.costs import SumSize, mesh_sum_seconds
from vmdpotential.sums.potential_sum import PotentialSum

from . import levels

#: Ratios of radius and spacing, and the errors at these by order: root mean square errors of the potential in liquid
#: water over sqrt(spacing * sum of q^2 / volume), with half of the order for the smoothness.
RATIOS = (3.0, 4.0, 6.0, 8.0, 10.0, 12.0)
ERRORS = {
    4: (1.4e-2, 8.2e-3, 3.2e-3, 1.6e-3, 8.7e-4, 6.3e-4),
    6: (8.0e-3, 3.0e-3, 7.3e-4, 2.2e-4, 8.5e-5, 4.2e-5),
    8: (4.2e-3, 1.7e-3, 2.9e-4, 7.0e-5, 2.1e-5, 9.0e-6),
}

#: Trial spacings of the finest level, A.
SPACINGS = tuple(0.6 + 0.1 * n for n in range(20))

#: Shortest radius, A; with shorter ones the charges of a molecule do not cancel, and errors are larger.
SHORTEST = 4.5

#: Seconds of the host to compute one node of a level's stencil: without, and with a sum over periodic images.
STENCIL_NODE, IMAGES_NODE = 1e-7, 2e-6

#: Seconds of the host for each level.
LEVEL = 1e-3

#: Ratio of the tolerance and the predicted error.
MARGIN = 1.5


class Msm(Method):
    """The full potential by levels; see :class:`vmdpotential.sums.Method`."""

    name = "msm"
    summary = "all atoms and images by multilevel summation, to the tolerance"
    interactions = ("coulomb",)
    exact = False

    def estimate(self, request: Request, engine: Engine) -> Estimate | Refusal:
        """Return the estimated time and memory of the sum, or a refusal if no levels keep the tolerance."""
        size = SumSize.of(request)
        order, spacing, radius, time = cheapest(size, engine.costs, request.relative_error / MARGIN)
        if not np.isfinite(time):
            return Refusal(f"no levels keep the tolerance {request.tolerance:g}",
                           "use a larger {tolerance}, or {method pme}", TaskError)
        nodes = float(np.prod([extent / spacing + order for extent in size.extents]))
        return Estimate(time, _bytes(request, nodes, radius))

    def plan(self, request: Request, engine: Engine) -> Plan:
        """Return the plan; for smaller errors than any levels have, which a refinement may request, the most accurate.

        Raises
        ------
        MemoryPlanError
            When the levels do not fit into memory.
        """
        if refusal := self.refusal(request):
            raise refusal.as_error(self.name)
        order, spacing, radius, time = cheapest(SumSize.of(request), engine.costs, request.relative_error / MARGIN)
        extents = SumSize.of(request).extents
        nodes = [extent / spacing + order for extent in extents]
        needed = _bytes(request, float(np.prod(nodes)), radius)
        memory.require(needed,
                       f"a map with a level of {' x '.join(f'{n:.0f}' for n in nodes)} nodes",
                       f"use a larger {{tolerance}} or {{spacing}}{slabs_hint(request)}")
        made = levels.make(request.lattice, request.charges.box, request.cell, order=order, spacing=spacing,
                           radius=radius)
        work = PotentialSum.split(request.lattice, made, request.precision, request.field)
        predicted = np.exp(np.interp(np.log(radius / spacing), np.log(RATIOS), np.log(ERRORS[order]))) * spacing**0.5
        return SumPlan(self.name, engine.name, work, Estimate(time, needed), float(predicted) * request.charges.density,
                    f"{len(made.levels)} levels, the finest of {' x '.join(map(str, made.shape))} nodes "
                    f"{spacing:.3g} A apart, order {order}, pairs within {radius:.3g} A")


def _bytes(request: Request, nodes: float, radius: float) -> int:
    # charges with a margin around them, and potentials; maps; atoms in bins, with images
    images = request.images(radius) if request.cell is not None else 0.0
    real = 4 if request.precision == "single" else 8
    return int(10 * real * nodes + interpolated_bytes(request) + (100 + 200 * images) * request.charges.count)


@lru_cache(maxsize=64)
def cheapest(size: SumSize, costs: Costs, error: float) -> tuple[int, float, float, float]:
    """Return order, spacing (A), radius (A) and seconds of the cheapest levels for an error.

    Parameters
    ----------
    size : SumSize
    costs : Costs
    error : float, 1/A
        Error for unit charges with a density of 1/A^3, correlated as in molecules. If it is below all errors of the
        table, the most accurate levels are returned.
    """
    # the costs of a mesh, without transforms
    meshless = costs._replace(transform_open=0.0, transform_periodic=0.0)
    choices = []
    for order, errors in ERRORS.items():
        for spacing in SPACINGS:
            requested = error / np.sqrt(spacing)
            if requested < errors[-1]:
                continue
            ratio = float(np.exp(np.interp(-np.log(requested), -np.log(errors), np.log(RATIOS))))
            count = float(np.prod([extent / spacing + order for extent in size.extents]))
            if ratio * spacing < SHORTEST:
                continue
            stencil = 4 / 3 * np.pi * (2 * ratio) ** 3
            levels_made = 1 + max(0.0, np.log2(max(size.extents) / spacing / (4 * ratio)))
            # all levels: 1 + 1/8 + 1/64 ... times the finest
            sums = 8 / 7 * count * stencil
            time = (mesh_sum_seconds(size, meshless, spacing, ratio * spacing,
                                     order) + costs.pair * costs.stencil * sums
                    + (IMAGES_NODE if size.periodic else STENCIL_NODE) * levels_made * stencil)
            choices.append((time, order, spacing, ratio * spacing))
    if not choices:
        order, spacing, ratio = max(ERRORS), SPACINGS[0], RATIOS[-1]
        return order, spacing, ratio * spacing, np.inf
    time, order, spacing, radius = min(choices)
    widest = 2 * int(np.ceil(radius / spacing))
    nodes = tuple(levels.divisible(extent / spacing, order, 2 * widest) if size.periodic
                  else int(extent / spacing) + order for extent in size.extents)
    return order, spacing, radius, time + LEVEL * len(levels.level_shapes(nodes, order, size.periodic, widest))


METHOD = Msm()
