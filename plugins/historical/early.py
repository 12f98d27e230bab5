"""Base class of the methods of 2007 and 2008: on one GPU, with coordinates in single precision, without fields."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice, Points
from vmdpotential.sums import Estimate, Method, Plan, Refusal, Request, check_memory
from vmdpotential.sums.inputs import charges_and_positions
from vmdpotential.sums.potential_sum import PotentialSum
from vmdpotential.sums.result import HostResult

if TYPE_CHECKING:
    from vmdpotential.arrays import Floats

#: Seconds to copy the value of a point to the host.
COPY = 2e-10

#: Function that sums a map from a method's name, a lattice sum, positions and charges; pickled by its module and name.
Kernel = Callable[[str, PotentialSum, "Floats", "Floats"], HostResult]


class TimedResult(HostResult):
    """A map on the host, with the times of the parts of its computation.

    Parameters
    ----------
    maps : (1, nx, ny, nz) float32
        The map.
    device_seconds : float, optional
        Time of the kernels on the GPU.
    parts : dict, optional
        Times of the parts, s, by name.
    """

    def __init__(self, maps: NDArray[np.float32], device_seconds: float | None = None,
                 parts: dict[str, float] | None = None) -> None:
        super().__init__(maps, device_seconds)
        self.parts = parts or {}


@dataclass(frozen=True, eq=False)
class EarlyPlan(Plan):
    """The plan of a sum by a kernel of 2007 or 2008; see :class:`vmdpotential.sums.Plan`.

    It has no state of a GPU, so that it can be made without one, pickled, and run on any GPU.
    """

    method: str
    engine: str
    work: PotentialSum
    estimate: Estimate
    kernel: Kernel
    error: float | None = field(default=None, init=False)  # exact to rounding

    def run(self, positions: ArrayLike, charges: ArrayLike, target: Lattice | Points | None = None) -> HostResult:
        """Return the sum for positions (N, 3), A, and charges (N,), e; it can be called repeatedly, from any thread.

        Raises
        ------
        MemoryPlanError
            When the map does not fit the GPU.
        BackendError
            When no GPU works.
        """
        work = self.work if target is None else replace(self.work, target=target)
        return self.kernel(self.method, work, *charges_and_positions(positions, charges))

    def __str__(self) -> str:
        points = " x ".join(map(str, self.work.lattice.shape))
        return (f"{self.method} on one GPU, {points} points, {self.work.precision} precision: {self.work.pairs}; "
                f"about {self.estimate.seconds:.2g} s")


class Early(Method):
    """A method of 2007 or 2008; see :class:`vmdpotential.sums.Method`.

    Parameters
    ----------
    name, summary : str
        Name of the method, and its description in one line.
    """

    #: Relative rounding errors by precision, of coordinates and sums in float32; compensated sums are Kahan's.
    rounding = MappingProxyType({"single": 2e-5, "compensated": 2e-5})

    field = False
    #: Function that computes the map.
    kernel: Kernel

    def __init__(self, name: str, summary: str) -> None:
        self.name, self.summary = name, summary

    @abc.abstractmethod
    def cost(self, request: Request, engine: Engine) -> Estimate:
        """Return the estimated time and memory of the sum on a GPU."""

    def estimate(self, request: Request, engine: Engine) -> Estimate | Refusal:
        """Return the estimated time and memory; the time exceeds that of present kernels, which ``auto`` prefers."""
        if not engine.runs_cuda:
            return Refusal("only runs on a GPU", "use {engine cuda}")
        return self.cost(request, engine)

    def plan(self, request: Request, engine: Engine) -> EarlyPlan:
        """Return the plan.

        Raises
        ------
        UsageError
            For a request that the method does not support.
        MemoryPlanError
            When the map does not fit into memory.
        """
        estimate = self.require(request, engine)
        check_memory(request, estimate)
        work = PotentialSum(request.lattice, request.interaction, request.cell, request.precision)
        return EarlyPlan(self.name, engine.name, work, estimate, type(self).kernel)


def packed_atoms(lattice: Lattice, positions: Floats, charges: Floats, length: float) -> NDArray[np.float32]:
    """Return data of atoms for the kernels, (N, 4): coordinates relative to the lattice's first point, and charges."""
    atoms: Any = np.column_stack([(positions - lattice.origin) / length, charges])
    return np.ascontiguousarray(atoms, np.float32)
