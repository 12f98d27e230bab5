"""Cutoff summation: the atoms within the cutoff of each lattice point (Rodrigues et al. 2008).

Summed pair by pair, the time is proportional to the number of points and to the cube of the cutoff. In a
periodic cell, all images within the cutoff are included, even if the cutoff is longer than the cell. The
relative rms error of single precision is below 1e-6 if the spacing is not longer than the cutoff.

Summed on a mesh (:mod:`vmdpotential.splitting.shifted`), the shifted potential takes about the same time for
every cutoff, and keeps a tolerance. A mesh is faster for long cutoffs and loose tolerances, as a potential that
ends is not smooth enough for an exact mesh sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from vmdpotential.engines import Engine
from vmdpotential.splitting.mesh import SplittingChoice
from vmdpotential.splitting.shifted import optimal_for_cutoff
from vmdpotential.sums import Estimate, Method, Plan, Refusal, Request, SumPlan, check_memory, result_bytes
from vmdpotential.sums.costs import SumSize, exponential_count, mesh_sum_parts
from vmdpotential.sums.pme import MeshMethod
from vmdpotential.sums.potential_sum import PotentialSum


def pairwise_estimate(request: Request, engine: Engine) -> Estimate:
    """Return the estimated cost of a sum over the pairs within the cutoff."""
    size, reach = SumSize.of(request), _cutoff(request)
    density = size.density
    if request.cell is None:
        # of an atom's ball, the mean part beyond an end of the box is 3 / 16 of the radius over the length; and a small
        # group of atoms is not within the cutoff of every point
        room = np.prod(np.array(size.extents) + 3 / 8 * reach)
        density = size.atoms / max(float(room), 4 / 3 * np.pi * reach**3)
    counts = mesh_sum_parts(replace(size, density=density), 1.0, reach, 4)
    costs = engine.costs
    fixed, *_, pairs, candidate, point, _ = np.array(counts) * (*costs[:6], 1.0, *costs[7 : len(counts)])
    pair = costs.plain_pair * costs.pair + costs.exponential * costs.direct * exponential_count(request)
    seconds = float(fixed + (2 if request.field else 1) * pair * pairs + candidate + point)
    atoms = int(200 * request.charges.count * request.images(reach))
    return Estimate(seconds, result_bytes(request) + atoms)


def _cutoff(request: Request) -> float:
    assert request.interaction.cutoff is not None
    return request.interaction.cutoff


class Cutoff(Method):
    """Pairs within the cutoff, one by one; see :class:`vmdpotential.sums.Method`."""

    name = "cutoff"
    summary = "atoms within the cutoff of a point"
    interaction = "shifted_coulomb"
    cutoff = True

    @property
    def algorithms(self) -> Mapping[str, Method]:
        """Algorithms for the sum: ``pair``, exact, and ``mesh``, which keeps the tolerance."""
        return MappingProxyType({"pair": METHOD, "mesh": BY_MESH})

    @property
    def of_tail(self) -> Method:
        """The method that truncates a decaying interaction so that the tolerance is kept."""
        return OF_TAIL

    def estimate(self, request: Request, engine: Engine) -> Estimate | Refusal:
        """Return the estimated cost of the sum."""
        return pairwise_estimate(request, engine)

    def plan(self, request: Request, engine: Engine) -> SumPlan:
        """Return the plan.

        Raises
        ------
        UsageError
            For an interaction without a cutoff.
        MemoryPlanError
            When the map does not fit into memory.
        """
        estimate = self.require(request, engine)
        images = request.images(_cutoff(request))
        check_memory(request, estimate, f" with {images * request.charges.count:.3g} periodic images of atoms"
                     if images > 1 else "", f"{{cutoff}} than {_cutoff(request):g} A")
        work = PotentialSum(request.lattice, request.interaction, request.cell, request.precision, request.field)
        return SumPlan(self.name, engine.name, work, estimate)


class CutoffByMesh(MeshMethod):
    """The shifted potential on a mesh; see :class:`vmdpotential.sums.Method`.

    Pair by pair if hardly any point is within the cutoff, so that there is no relative error.
    """

    name = "cutoff"
    summary = "atoms within the cutoff of a point by a mesh, to the tolerance"
    interaction = "shifted_coulomb"
    interactions = ("shifted_coulomb",)
    cutoff = True
    # the waves of the cutoff are so short that the charges of molecules are uncorrelated (measured in water: 0.95 to
    # 1.1 of the prediction)
    margin, largest_error = 1.2, 1.0
    without_transforms = exactly = "{algorithm pair}"

    def split(self, request: Request) -> tuple[SplittingChoice, float | None]:
        """Return the splitting of the shifted potential."""
        return partial(optimal_for_cutoff, _cutoff(request)), None

    def size(self, request: Request) -> SumSize:
        """Return the size of a map for the cost model: an open mesh is padded by the cutoff, not to twice its size."""
        full = SumSize.of(request)
        if full.periodic:
            return full
        a, b, c = (extent + _cutoff(request) for extent in full.extents)
        return replace(full, extents=(a, b, c), periodic=True)

    def estimate(self, request: Request, engine: Engine) -> Estimate | Refusal:
        """Return the estimated cost of the sum."""
        by_pairs = np.isinf(request.error) and engine.has_transforms
        return pairwise_estimate(request, engine) if by_pairs else super().estimate(request, engine)

    def plan(self, request: Request, engine: Engine) -> Plan:
        """Return the plan, see :class:`.MeshMethod`."""
        by_pairs = np.isinf(request.error) and engine.has_transforms
        return METHOD.plan(request, engine) if by_pairs else super().plan(request, engine)


class CutoffOfTail(Method):
    """An interaction that decays as exp(-r / L) / r, truncated where the neglected part keeps the tolerance.

    The neglected part of uncorrelated charges of density d is d sqrt(2 pi L) exp(-c / L) beyond a cutoff c. The
    stated error is measured against the interaction without a cutoff.
    """

    name = "cutoff"
    summary = "atoms within a cutoff beyond which a screened potential is below the tolerance"
    interaction = "screened_coulomb"
    exact = False

    def refusal(self, request: Request) -> Refusal | None:
        """Return why a request is not possible, or None if it is."""
        bound = request.interaction
        if bound.decay is None or bound.cutoff is not None:
            return Refusal(f"needs an interaction with a cutoff, which {bound.interaction.name} does not have")
        return super().refusal(request)

    def estimate(self, request: Request, engine: Engine) -> Estimate:
        """Return the estimated cost of the sum."""
        return pairwise_estimate(self._ended(request)[0], engine)

    def plan(self, request: Request, engine: Engine) -> SumPlan:
        """Return the plan.

        Raises
        ------
        MemoryPlanError
            When the map does not fit into memory.
        """
        self.require(request, engine)
        ended, error = self._ended(request)
        return replace(METHOD.plan(ended, engine), error=error)

    def _ended(self, request: Request) -> tuple[Request, float]:
        """Return the request with the interaction truncated, and the expected error, e/A."""
        length, least = request.interaction.decay, request.relative_error
        assert length is not None
        norm = np.sqrt(2 * np.pi * length)
        reach = length * max(1.0, float(np.log(norm / least)) if np.isfinite(least) else 1.0)
        error = float(norm * np.exp(-reach / length)) * request.charges.density
        return replace(request, interaction=request.interaction.truncated(reach)), error


METHOD = Cutoff()

BY_MESH = CutoffByMesh()

OF_TAIL = CutoffOfTail()
