"""What the methods of 2007 and 2008 have in common: one GPU, single precision coordinates, no field."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.engines import Engine, LatticeSum
from vmdpotential.engines.inputs import charges_and_positions
from vmdpotential.engines.result import HostResult
from vmdpotential.grid.lattice import Lattice
from vmdpotential.methods import Estimate, Method, Planned, Refusal, Request, check_memory

if TYPE_CHECKING:
    from vmdpotential.engines import Floats

#: Seconds that the copy of a point's value to the host takes.
COPY = 2e-10

#: Sums a map by a method's name, a lattice sum, positions and charges; a function of a module, which pickles.
Kernel = Callable[[str, LatticeSum, "Floats", "Floats"], HostResult]


class Timed(HostResult):
    """A map on the host, with the seconds that each part of its making took.

    Parameters
    ----------
    maps : (1, nx, ny, nz) float32
    device_seconds : float, optional
    parts : dict, optional
    """

    def __init__(self, maps: NDArray[np.float32], device_seconds: float | None = None,
                 parts: dict[str, float] | None = None) -> None:
        super().__init__(maps, device_seconds)
        self.parts = parts or {}


@dataclass(frozen=True, eq=False)
class EarlyPlan(Planned):
    """A sum by a kernel of 2007 or 2008; see :class:`vmdpotential.methods.Planned`.

    Nothing of a GPU is in it, so that it is made without one, pickles, and runs wherever there is one.
    """

    method: str
    work: LatticeSum
    estimate: Estimate
    kernel: Kernel
    error: float | None = field(default=None, init=False)  # exact to rounding

    def run(self, positions: ArrayLike, charges: ArrayLike) -> HostResult:
        """Return the sum for positions (N, 3), A, and charges (N,), e; again and again, from any thread.

        Raises
        ------
        MemoryPlanError
            When the map does not fit the GPU.
        BackendError
            When no GPU works.
        """
        return self.kernel(self.method, self.work, *charges_and_positions(positions, charges))

    def on(self, lattice: Lattice) -> EarlyPlan:
        """Return the same plan for a part of the lattice."""
        return replace(self, work=replace(self.work, lattice=lattice))

    def __str__(self) -> str:
        points = " x ".join(map(str, self.work.lattice.shape))
        return (f"{self.method} on one GPU, {points} points, {self.work.precision} precision: {self.work.pairs}; "
                f"about {self.estimate.seconds:.2g} s")


class Early(Method):
    """A method of 2007 or 2008; see :class:`vmdpotential.methods.Method`.

    Parameters
    ----------
    name, summary : str
    """

    #: Coordinates in float32, and sums too, by Kahan's rule where they are compensated.
    rounding = MappingProxyType({"single": 2e-5, "compensated": 2e-5})

    field = False
    #: Makes its map.
    kernel: Kernel

    def __init__(self, name: str, summary: str) -> None:
        self.name, self.summary = name, summary

    @abc.abstractmethod
    def cost(self, request: Request, engine: Engine) -> Estimate:
        """Return what the sum should take on a GPU."""

    def estimate(self, request: Request, engine: Engine) -> Estimate | Refusal:
        """Return what the sum should take: more than today's kernels, so that ``auto`` takes those."""
        if engine.name != "cuda":
            return Refusal("only runs on a GPU", "use {engine cuda}")
        return self.cost(request, engine)

    def plan(self, request: Request, engine: Engine) -> EarlyPlan:
        """Return the plan.

        Raises
        ------
        UsageError
            For what the method cannot do.
        MemoryPlanError
            When the map does not fit into memory.
        """
        estimate = self.require(request, engine)
        check_memory(request, estimate)
        work = LatticeSum(request.lattice, request.interaction, request.cell, request.precision)
        return EarlyPlan(self.name, work, estimate, type(self).kernel)


def four(lattice: Lattice, positions: Floats, charges: Floats, length: float) -> NDArray[np.float32]:
    """Return what the kernels read of atoms, (N, 4): coordinates from the lattice's first point, and charges."""
    atoms: Any = np.column_stack([(positions - lattice.origin) / length, charges])
    return np.ascontiguousarray(atoms, np.float32)
