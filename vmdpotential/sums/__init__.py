"""Methods: algorithms that sum maps, or values at points, on an engine.

A :class:`Request` describes the sum, with statistics of the charges instead of the charges. A method returns its cost
(:class:`Estimate`) or the reason why it cannot compute it (:class:`Refusal`), and a :class:`Plan` with every choice
made: splitting, mesh, levels. A plan is small, can be pickled and printed, and can be run many times for any charges
that fit it, such as the frames of a trajectory, in any thread, process or machine.

Methods are independent of files, viewers and units: potentials are sums of ``q V(r)`` in e/A, where e is the unit of
the charges.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential import memory, registry
from vmdpotential.engines import Engine, get_engine
from vmdpotential.errors import TaskError, UsageError, VmdpotentialError
from vmdpotential.grid.targets import Box, Lattice, Points
from vmdpotential.interactions import Bound, Interaction
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.long_range import long_range
from vmdpotential.sums.potential_sum import PRECISIONS, PotentialSum, Prepared, check_precision, prepare_sum
from vmdpotential.sums.result import MeanOfResults, Result, RunningMean

if TYPE_CHECKING:
    from vmdpotential.arrays import Floats


@dataclass(frozen=True)
class ChargeStatistics:
    """Statistics of the charges, on which a plan depends.

    Parameters
    ----------
    count : int
    squares : float, e^2
        Sum of their squares.
    volume : float, A^3
        Volume of the cell, or of the box around them.
    box : Box
        Box around them; in an open boundary, they must stay within it.
    """

    count: int
    squares: float
    volume: float
    box: Box

    @classmethod
    def of(cls, positions: Floats, charges: Floats, cell: Cell | None = None) -> ChargeStatistics:
        """Return the statistics of charges (N,), e, at positions (N, 3), A."""
        box = Box.around(positions)
        # with 1 A around the atoms
        volume = cell.volume if cell is not None else float(np.prod(np.subtract(box.high, box.low) + 2.0))
        return cls(len(charges), float(np.vdot(charges, charges)), volume, box)

    @property
    def density(self) -> float:
        """Root of the sum of squares per volume, e/A^(3/2); errors of uncorrelated charges are proportional to it."""
        return float(np.sqrt(self.squares / self.volume))


@dataclass(frozen=True, eq=False)
class Request:
    """The description of a sum.

    Parameters
    ----------
    target : Lattice or Points
        Nodes of a grid, or arbitrary points; a plan is also valid for others within the same box.
    cell : Cell or None
        The cell of a periodic boundary; None for an open boundary.
    interaction : Bound
    charges : Charges
    precision : str
        One of :data:`vmdpotential.sums.potential_sum.PRECISIONS`.
    tolerance : float
        Greatest relative rms error, as defined by :class:`vmdpotential.sums.result.Errors`.
    field : bool
        Whether the field is computed in addition to the potential.
    error : float, e/A
        The rms error of the potential that corresponds to the tolerance
        (:attr:`vmdpotential.sums.accuracy.Sample.target_rms`); infinite if unknown.
    planes : int or None
        Number of lattice planes across z that are in memory at once, if the map is computed in slabs
        (:mod:`vmdpotential.sums.slabs`).
    radius : float or None, A
        The split radius, if pairs within it are summed elsewhere (:attr:`Plan.short`); otherwise the method chooses it.
    """

    target: Lattice | Points
    cell: Cell | None
    interaction: Bound
    charges: ChargeStatistics
    precision: str = "single"
    tolerance: float = 1e-4
    field: bool = False
    error: float = np.inf
    planes: int | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        check_precision(self.precision)

    @property
    def at_points(self) -> bool:
        """Whether the target is arbitrary points."""
        return self.target.kind == "points"

    @property
    def lattice(self) -> Lattice:
        """The target, which must be a grid."""
        assert isinstance(self.target, Lattice)
        return self.target

    @property
    def boundary(self) -> str:
        """``open`` or ``periodic``."""
        return "open" if self.cell is None else "periodic"

    @property
    def neutralised(self) -> bool:
        """Whether a background neutralises a net charge: in a periodic cell, for an infinite range."""
        return self.cell is not None and self.interaction.cutoff is None and self.interaction.decay is None

    @property
    def points_in_memory(self) -> int:
        """Number of nodes or points that are in memory at once."""
        if self.planes is None:
            return self.target.size
        nx, ny, nz = self.lattice.shape
        return nx * ny * min(nz, self.planes)

    @property
    def relative_error(self) -> float:
        """The error for charges with a density of 1 e/A^(3/2); infinite if there are no charges."""
        density = self.charges.density
        return self.error / density if density > 0 else np.inf

    def images(self, reach: float) -> float:
        """Return about how many images of an atom are within `reach` (A) of the lattice; 1 in an open boundary."""
        return 1.0 if self.cell is None else self.cell.images_near(self.lattice.origin, self.lattice.last, reach)

    def with_error(self, error: float) -> Request:
        """Return the request with another rms error, e/A."""
        return replace(self, error=error)


R = TypeVar("R", bound=Request, contravariant=True)


@dataclass(frozen=True)
class Estimate:
    """The estimated cost of a sum: seconds by the costs of the engine, and bytes of the host's memory."""

    seconds: float
    bytes: int

    def describe(self, engine: str) -> str:
        """Return the time on this machine and the memory, in words."""
        from vmdpotential.sums.machine import expected_seconds

        seconds = expected_seconds(self.seconds, registry.get("engine", engine))
        return f"about {seconds:.2g} s, {memory.size(self.bytes)}"


@dataclass(frozen=True)
class Refusal:
    """The reason why a method cannot compute a request, and a hint, as in :class:`.VmdpotentialError`."""

    reason: str
    hint: str = ""
    error: type[VmdpotentialError] = UsageError

    def as_error(self, method: str) -> VmdpotentialError:
        """Return the error for a method that was chosen by name."""
        if self.error is UsageError:
            return UsageError("method", self.reason, self.hint, value=method)
        return self.error(f"the method {method}: {self.reason}", self.hint)


#: Largest relative rms error of a sum of pairs against float64, by precision (see :mod:`vmdpotential.engines`). Maps
#: are float32 in every precision.
ROUNDING_ERRORS = {"single": 1e-5, "compensated": 2e-6, "double": 2e-7}

#: Refusals of targets that a method does not declare.
_REFUSED_TARGETS = {"grid": Refusal("cannot compute maps", "use another {method}"),
                    "points": Refusal("only computes maps, no values at points", "use another {method}")}


class Plan(Prepared):
    """A computation for which every choice is made; :class:`SumPlan` is the one for sums on an engine.

    Other plans inherit from this class, declare four attributes, and have :meth:`run`. They can be pickled, and their
    text states what was chosen.
    """

    #: Name of the method.
    method: str
    #: Name of the engine.
    engine: str
    #: Estimated cost of a run.
    estimate: Estimate
    #: Expected rms error of the potential, e/A; None if the sum is exact to rounding.
    error: float | None

    @property
    def concurrent(self) -> bool:
        """Whether several threads may compute maps at the same time, if memory allows."""
        return False

    @property
    def summed(self) -> Bound | None:
        """The interaction as truncated by the method; None if it is summed as requested."""
        return None

    @property
    def short(self) -> Bound | None:
        """The short-range part, which must be summed elsewhere if the request has a split radius."""
        return None

    def prepare(self, target: Lattice | Points, positions: Floats, cell: Cell | None) -> Prepared:
        """Return the sum for a frame: its target, positions (N, 3), A, of all charges or parts of them, and its cell.

        The same plan unless something is prepared.
        """
        return self

    def refuse_parts(self, target: Lattice | Points | None) -> None:
        """Raise an error if only a part of the target is asked for, for a plan that has no parts.

        Raises
        ------
        TaskError
        """
        if target is not None:
            raise TaskError(f"the method {self.method} cannot compute maps in slabs", "use another {method}")

    def new_mean(self) -> RunningMean:
        """Return an empty mean, to which the sums of many frames can be added."""
        return MeanOfResults(self.run)

    def in_cell(self, cell: Cell) -> Plan:
        """Return the same plan for another periodic cell; see :meth:`.PotentialSum.in_cell`.

        Raises
        ------
        UsageError
        TaskError
        """
        raise TaskError(f"the method {self.method} cannot plan for a changing cell",
                        "use {method pme}, or give {cell}")


@dataclass(frozen=True, eq=False)
class SumPlan(Plan):
    """A sum on an engine for which everything is chosen, such as the splitting.

    Parameters
    ----------
    method : str
    engine : str
    work : PotentialSum
    estimate : Estimate
    error : float or None
        Expected rms error of the potential, e/A; None if the sum is exact to rounding.
    choices : str
        Description of what was chosen, for reports.
    """

    method: str
    engine: str
    work: PotentialSum
    estimate: Estimate
    error: float | None = None
    choices: str = ""

    @cached_property
    def prepared(self) -> Prepared:
        """The sum prepared on its engine, when and where it is first run."""
        return prepare_sum(get_engine(self.engine), self.work)

    @property
    def concurrent(self) -> bool:
        """Whether several threads may compute maps at the same time: true for engines."""
        return True

    @property
    def summed(self) -> Bound | None:
        """The pair interaction, if the method has truncated it, else None."""
        pairs = self.work.pairs
        return pairs if pairs is not None and pairs.end is not None else None

    @property
    def self_potential(self) -> float:
        """Potential of a unit charge at its own position, 1/A."""
        return self.work.self_potential

    def prepare(self, target: Lattice | Points, positions: Floats, cell: Cell | None) -> Prepared:
        """Return the sum for a frame."""
        return prepare_sum(get_engine(self.engine), replace(self.work, target=target, cell=cell))

    def run(self, positions: ArrayLike, charges: ArrayLike, target: Lattice | Points | None = None) -> Result:
        """Return the sum for positions (N, 3), A, and charges (N,), e."""
        return self.prepared.run(np.asarray(positions, np.float64), np.asarray(charges, np.float64), target)

    def parts(self, positions: ArrayLike, charges: ArrayLike, parts: Iterable[Lattice | Points]) -> Iterator[Result]:
        """Yield the sum on parts of the target; a mesh is solved only once."""
        return self.prepared.parts(np.asarray(positions, np.float64), np.asarray(charges, np.float64), parts)

    def new_mean(self) -> RunningMean:
        """Return an empty mean, which spreads the charges of all frames to one mesh and transforms that at the end."""
        return self.prepared.new_mean()

    def in_cell(self, cell: Cell) -> SumPlan:
        """Return the same plan for another periodic cell; see :meth:`.PotentialSum.in_cell`."""
        return replace(self, work=self.work.in_cell(cell))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "prepared"}

    def __repr__(self) -> str:
        return f"SumPlan({self})"

    def __str__(self) -> str:
        points = " x ".join(map(str, self.work.target.shape))
        field = ", with field" if self.work.field else ""
        text = f"{self.method} on the {self.engine} engine, {points} points{field}, "
        text += f"{self.work.precision} precision: {self.choices or self.work.pairs}; "
        text += self.estimate.describe(self.engine)
        return text if self.error is None else f"{text}, expected error {self.error:.1e} e/A"


class PotentialMethod(abc.ABC, Generic[R]):
    """What sums and solvers of an equation have in common: abilities, declared by attributes, an estimate and a plan.

    :meth:`estimate` quickly returns the cost, and :meth:`plan` makes all choices.
    """

    name: str
    #: One line for help texts.
    summary: str
    #: Possible targets, of ``grid`` and ``points``.
    targets: tuple[str, ...] = ("grid",)
    #: Possible boundaries.
    boundaries: tuple[str, ...] = ("open", "periodic")
    #: Reason why it cannot compute some boundaries, for messages.
    boundary_reason: str = ""
    #: Names of the possible interactions; None for any.
    interactions: tuple[str, ...] | None = None
    #: Possible precisions, of :data:`vmdpotential.sums.potential_sum.PRECISIONS`.
    precisions: tuple[str, ...] = PRECISIONS
    #: Whether it can compute the field.
    field: bool = True

    @abc.abstractmethod
    def estimate(self, request: R, engine: Engine) -> Estimate | Refusal:
        """Return the estimated cost, or why the request cannot be computed; must be fast."""

    @abc.abstractmethod
    def plan(self, request: R, engine: Engine) -> Plan:
        """Return the plan; raise an error if the request cannot be computed."""

    def refusal(self, request: R) -> Refusal | None:
        """Return why a request is not possible according to the declared abilities, or None if it is."""
        name = request.interaction.interaction.name
        if request.target.kind not in self.targets:
            return _REFUSED_TARGETS[request.target.kind]
        if request.boundary not in self.boundaries:
            return Refusal(f"cannot compute a boundary that is {request.boundary}{self.boundary_reason}",
                           f"use {' or '.join(f'{{boundary {b}}}' for b in self.boundaries)}, or another {{method}}")
        if self.interactions is not None and name not in self.interactions:
            *rest, last = self.interactions
            return Refusal(f"only sums {' and '.join(filter(None, (', '.join(rest), last)))}, not {name}",
                           "use {method auto}, {method cutoff} or {method direct}")
        if request.precision not in self.precisions:
            return Refusal(f"has no {request.precision} precision",
                           f"use {' or '.join(f'{{precision {p}}}' for p in self.precisions)}, or another {{method}}")
        if request.field and not self.field:
            return Refusal("cannot compute the field", "use another {method}")
        return None

    def require(self, request: R, engine: Engine) -> Estimate:
        """Return the estimate, or raise the error of its refusal."""
        estimate = self.refusal(request) or self.estimate(request, engine)
        if isinstance(estimate, Refusal):
            raise estimate.as_error(self.name)
        return estimate


class Method(PotentialMethod[Request]):
    """A method of summation, registered under its name; ``auto`` chooses the one with the lowest estimate."""

    #: The default interaction.
    interaction: str = "coulomb"
    #: Whether interactions need a splitting (:attr:`Interaction.splitting`).
    splits: bool = False
    #: Greatest relative rms error by rounding, by precision.
    rounding: Mapping[str, float] = MappingProxyType(ROUNDING_ERRORS)
    #: Whether it truncates interactions at a cutoff.
    cutoff: bool = False
    #: Whether rounding is its only error; if not, it keeps the tolerance.
    exact: bool = True

    @property
    def algorithms(self) -> Mapping[str, Method]:
        """Alternative algorithms for the same sum, among which `auto` chooses; empty if there is only one."""
        return {}

    @property
    def of_tail(self) -> Method | None:
        """A method that sums a decaying interaction up to a cutoff that keeps the tolerance; None if there is none."""
        return None

    def takes(self, interaction: Interaction) -> bool:
        """Return whether it can sum an interaction, with or without a cutoff."""
        return ((self.interactions is None or interaction.name in self.interactions)
                and not (self.splits and interaction.splitting is None))

    def refusal(self, request: Request) -> Refusal | None:
        """Return why a request is not possible according to the declared abilities, or None if it is."""
        name = request.interaction.interaction.name
        if (refusal := super().refusal(request)) is not None:
            return refusal
        if self.splits and long_range(request.interaction) is None:
            return Refusal(f"needs an interaction with a splitting, which {name} does not declare",
                           "use {method auto}, {method cutoff} or {method direct}")
        if self.cutoff and request.interaction.cutoff is None:
            return Refusal(f"needs an interaction with a cutoff, which {name} does not have")
        return None


def result_bytes(request: Request) -> int:
    """Return the bytes of the values, and of the atoms with sorted copies."""
    copies = 1 if request.planes is None else 3  # a slab, a copy in the order of the file, and one in its blocks
    size = np.dtype(request.target.dtype).itemsize * (4 if request.field else 1)
    return size * copies * request.points_in_memory + 200 * request.charges.count


def interpolated_bytes(request: Request) -> int:
    """Return the bytes of values that are interpolated from a mesh, with temporary arrays.

    Points are sorted. For maps, the mesh interpolated along two axes is at most as large as a map; interpolation along
    the third gives the map, or is added to it.
    """
    if request.at_points:
        return 200 * request.points_in_memory
    real = 4 if request.precision == "single" else 8
    maps = 4 if request.field else real == 8
    return (4 * maps + 2 * real) * request.points_in_memory


def check_memory(request: Request, estimate: Estimate, what: str = "", hint: str = "") -> None:
    """Raise an error if a sum of pairs does not fit into memory.

    Raises
    ------
    MemoryPlanError
    """
    points = " x ".join(map(str, request.target.shape))
    sums = "values at" if request.at_points else "a map of"
    memory.require(estimate.bytes, f"{sums} {points} points{' with its field' if request.field else ''}{what}",
                   (f"use a shorter {hint} or fewer {{atoms}}" if hint else
                    "use a larger {spacing}, less {padding} or fewer {atoms}") + slabs_hint(request))


def slabs_hint(request: Request) -> str:
    """Return a further hint for a map that does not fit: formats that are written in slabs, unless one is in use."""
    return "" if request.planes else ", or write .zarr or .mrc, which are written in slabs"
