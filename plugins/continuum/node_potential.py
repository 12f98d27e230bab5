"""The potential of charges at the nodes of lattices, by the fastest method, for one frame after another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from vmdpotential import registry
from vmdpotential.engines import Engine, get_engine
from vmdpotential.errors import MemoryPlanError, TaskError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.sums import ChargeStatistics, Method, Plan, Request
from vmdpotential.sums.accuracy import run_to_tolerance
from vmdpotential.sums.choice import fastest_method

from .boundary import TOLERANCE
from .molecule import Floats

#: Number of nodes up to which the fine lattice's solver keeps its arrays between solutions, which saves 2 % of the time
#: and takes up to 15 bytes a node.
KEPT = 4_000_000

#: Distance, A, by which the lattice around the first frame is enlarged for others.
ROOM = 2.0


class NodePotential:
    """The sum of q / r at the nodes of lattices, by the fastest method, which is chosen once for each spacing.

    The errors are measured at the first lattice of a spacing. They are those of the same charges in another frame too,
    on a lattice that is shifted or a few nodes larger. The last plan of a spacing is kept with its transforms, for
    frames on the same lattice.

    Parameters
    ----------
    engine : str
    keeps_values : bool
        Whether the last values of a spacing are kept for the same charges on a part of the same nodes.
    """

    def __init__(self, engine: str, keeps_values: bool = False) -> None:
        self._engine, self._keeps_values = engine, keeps_values
        self._values: dict[tuple[float, ...], tuple[Lattice, Any, Floats, Floats]] = {}
        self._charges = np.zeros(0)
        self._measured: dict[tuple[float, ...], tuple[str, float, float]] = {}
        self._plans: dict[tuple[float, ...], tuple[Lattice, Plan]] = {}
        self._roomy: dict[tuple[float, ...], Lattice] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies have: the methods that were chosen."""
        return vars(self) | {"_values": {}, "_plans": {}}

    def __call__(self, lattice: Lattice, positions: Floats, charges: Floats) -> tuple[Any, tuple[int, int, int]]:
        """Return the potential, e/A, of positions (N, 3), A, and charges (N,), e, as :data:`.NodeSum` does."""
        spacing = tuple(lattice.spacing.tolist())
        kept = self._values.get(spacing)
        if kept is None or not (np.array_equal(kept[2], positions) and np.array_equal(kept[3], charges)
                                and kept[0].part_of(lattice)):
            kept = *self._of_charges(lattice, positions, charges), positions, charges
            if self._keeps_values:
                self._values[spacing] = kept
        part = kept[0].part_of(lattice)
        assert part is not None
        x, y, z = part
        return kept[1], (x.start, y.start, z.start)

    def _of_charges(self, lattice: Lattice, positions: Floats, charges: Floats) -> tuple[Lattice, Any]:
        """Return the potential at the nodes of a lattice, and perhaps of more, in an array of the engine or numpy."""
        if not charges.any():
            return lattice, np.zeros(lattice.shape, np.float32)
        engine = get_engine(self._engine)
        request = Request(lattice, None, COULOMB.bind(), ChargeStatistics.of(positions, charges), tolerance=TOLERANCE)
        if not np.array_equal(charges, self._charges):
            self._charges, self._measured, self._plans = charges.copy(), {}, {}
        spacing = tuple(lattice.spacing.tolist())
        direct: Method = registry.get("method", "direct")
        if spacing in self._measured:
            lattice, plan = self._plan(spacing, request, positions, engine)
            return lattice, plan.run(positions, charges).array()
        methods: list[Method] = [registry.get("method", name) for name in registry.available("method")]
        method, asked, exact = fastest_method((each for each in methods if not each.algorithms),
                                              request,
                                       positions, charges, engine)
        try:
            plan, result, _ = run_to_tolerance(method, asked, positions, charges, exact, engine)
        except MemoryPlanError:
            raise
        except TaskError:  # rounding near charges is more than the tolerance of a potential that is small far away
            return lattice, direct.plan(request, engine).run(positions, charges).array()
        error = asked.error if plan.error is None else plan.error
        self._measured[spacing] = method.name, error, request.charges.volume
        steps = np.ceil(ROOM / lattice.spacing).astype(int)
        self._roomy[spacing] = lattice.window(-steps, steps + lattice.shape)
        return lattice, result.array()

    def _plan(self, spacing: tuple[float, ...], request: Request, positions: Floats,
              engine: Engine) -> tuple[Lattice, Plan]:
        """Return the plan for a frame by the method that was chosen for the spacing, and its lattice.

        No other frame but the first changes it: the lattice around that frame, with some room, is planned once, and
        holds most of the others.
        """
        name, error, volume = self._measured[spacing]
        method: Method = registry.get("method", name)
        lattice, request = self._roomy[spacing], request.with_error(error)
        if lattice.size > KEPT or lattice.part_of(request.lattice) is None:
            lattice = request.lattice
        if lattice.size > KEPT or not lattice.box.holds(positions):
            return request.lattice, method.plan(request, engine)
        kept = self._plans.get(spacing)
        if kept is None or not kept[0].same_nodes(lattice):
            charges = replace(request.charges, box=lattice.box, volume=volume)
            plan = method.plan(replace(request, target=lattice, charges=charges), engine)
            kept = self._plans[spacing] = lattice, plan
        return kept
