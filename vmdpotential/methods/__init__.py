"""Methods: how a map, or values at points, are summed, written over an engine.

What is asked for is a :class:`Request`, which holds no charges but their statistics. A method says what that would
cost (:class:`Estimate`) or why it cannot be (:class:`Refusal`), and makes a :class:`Plan` with every choice made:
splitting, mesh, levels. A plan is small, can be pickled and printed, and runs for any charges that fit it, again
and again: the frames of a trajectory, in any thread, process or machine.

Methods know neither files nor viewers nor units: potentials are sums of ``q V(r)`` in e/A, where e may be any unit
that the charges are in.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential import memory
from vmdpotential.engines import (
    PRECISIONS,
    Engine,
    LatticeSum,
    PointSum,
    Prepared,
    PreparedPoints,
    check_precision,
    get_engine,
)
from vmdpotential.engines.accuracy import ROUNDING
from vmdpotential.engines.result import Mean, MeanOfResults, Result
from vmdpotential.errors import TaskError, UsageError, VmdpotentialError
from vmdpotential.grid.lattice import Box, Lattice
from vmdpotential.interactions import Bound, Interaction, Quantity, complete
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.long_range import long_range

if TYPE_CHECKING:
    from vmdpotential.engines import Floats


@dataclass(frozen=True)
class Charges:
    """What a plan has to know of the charges.

    Parameters
    ----------
    count : int
    squares : float, e^2
        Sum of their squares.
    volume : float, A^3
        That they share: of the cell, or of the box around them.
    box : Box
        Around them; those of an open boundary have to stay in it.
    """

    count: int
    squares: float
    volume: float
    box: Box

    @classmethod
    def of(cls, positions: Floats, charges: Floats, cell: Cell | None = None) -> Charges:
        """Return the statistics of charges (N,), e, at positions (N, 3), A."""
        box = Box.around(positions)
        # an atom has 1 A around it
        volume = cell.volume if cell is not None else float(np.prod(np.subtract(box.high, box.low) + 2.0))
        return cls(len(charges), float(np.vdot(charges, charges)), volume, box)

    @property
    def density(self) -> float:
        """Root of the sum of squares over the volume, e/A^(3/2): errors of uncorrelated charges are proportional."""
        return float(np.sqrt(self.squares / self.volume))


@dataclass(frozen=True, eq=False)
class Solution:
    """What a method gets that solves for the solution around the charges (:attr:`Method.quantities`).

    Parameters
    ----------
    values : mapping
        Of its parameters.
    radii : (N,) float64, A
        Of the atoms whose charges make the potential, in their order.
    source : str
        Where the radii are from.
    dielectric : float
        Of the solvent.
    temperature : float, K
    unit : str
        Of the potential that is wanted.
    charge : float
        What 1 e is in the unit of the charges, in which the sum of q / r would be the potential.
    spacing : float, A
        Of the lattice from which values at points are interpolated.
    """

    values: Mapping[str, float]
    radii: Floats
    source: str
    dielectric: float
    temperature: float
    unit: str
    charge: float
    spacing: float = 0.5


@dataclass(frozen=True)
class Points:
    """Points anywhere as the target of a sum; where they are is given with each run.

    Parameters
    ----------
    count : int
    box : Box
        Around them.
    radius : float or None, A
        The split radius, where pairs within it are summed elsewhere (:attr:`PointPlan.short`); of the method's choice
        otherwise.
    """

    count: int
    box: Box
    radius: float | None = None


@dataclass(frozen=True, eq=False)
class Request:
    """What a sum is asked for.

    Parameters
    ----------
    target : Lattice or Points
        Nodes of a grid, or points anywhere, whose values are in float64.
    cell : Cell or None
        Periodic boundary where given, open otherwise.
    interaction : Bound
    charges : Charges
    precision : str
        One of :data:`vmdpotential.engines.PRECISIONS`.
    tolerance : float
        Relative rms error, as :class:`vmdpotential.methods.accuracy.Errors` has it, that a method may make.
    field : bool
        Whether the field is wanted next to the potential.
    error : float, e/A
        The rms error of the potential that keeps the tolerance (:func:`vmdpotential.methods.accuracy.goal`);
        infinite where it is not known.
    planes : int or None
        Planes across z of the lattice that are in memory at once, where the map is computed in slabs
        (:mod:`vmdpotential.methods.slabs`).
    solution : Solution or None
        For a method that asks for it.
    """

    target: Lattice | Points
    cell: Cell | None
    interaction: Bound
    charges: Charges
    precision: str = "single"
    tolerance: float = 1e-4
    field: bool = False
    error: float = np.inf
    planes: int | None = None
    solution: Solution | None = None

    def __post_init__(self) -> None:
        check_precision(self.precision)

    @property
    def at_points(self) -> bool:
        """Whether the target is points anywhere."""
        return isinstance(self.target, Points)

    @property
    def lattice(self) -> Lattice:
        """The target, where it is a grid."""
        assert isinstance(self.target, Lattice)
        return self.target

    @property
    def points(self) -> Points:
        """The target, where it is points anywhere."""
        assert isinstance(self.target, Points)
        return self.target

    @property
    def boundary(self) -> str:
        """``open`` or ``periodic``."""
        return "open" if self.cell is None else "periodic"

    @property
    def neutralised(self) -> bool:
        """Whether a background takes a net charge away: in a periodic cell, of what neither ends nor decays."""
        return self.cell is not None and self.interaction.cutoff is None and self.interaction.decay is None

    @property
    def points_held(self) -> int:
        """Points of the lattice that are in memory at once."""
        nx, ny, nz = self.lattice.shape
        return nx * ny * (nz if self.planes is None else min(nz, self.planes))

    @property
    def relative_error(self) -> float:
        """The error for charges of a density of 1 e/A^(3/2); infinite where nothing is charged."""
        density = self.charges.density
        return self.error / density if density > 0 else np.inf

    def images(self, reach: float) -> float:
        """Return about how many images of an atom are within `reach` (A) of the lattice; 1 where it has none."""
        return 1.0 if self.cell is None else self.cell.images_near(self.lattice.origin, self.lattice.last, reach)

    def with_error(self, error: float) -> Request:
        """Return the request with another goal, e/A."""
        return replace(self, error=error)


@dataclass(frozen=True)
class Estimate:
    """What a sum should take: seconds, and bytes of the host's memory."""

    seconds: float
    bytes: int


@dataclass(frozen=True)
class Refusal:
    """Why a method cannot do what is wanted, and the cure (:class:`vmdpotential.errors.VmdpotentialError`)."""

    reason: str
    cure: str = ""
    error: type[VmdpotentialError] = UsageError

    def as_error(self, method: str) -> VmdpotentialError:
        """Return the error for a method that was asked for by name."""
        if self.error is UsageError:
            return UsageError("method", self.reason, self.cure, value=method)
        return self.error(f"the method {method}: {self.reason}", self.cure)


_NO_MAPS = Refusal("makes no maps", "use another {method}")
_NO_POINTS = Refusal("only makes maps, no sums at points", "use another {method}")


class Planned(abc.ABC):
    """What a method's plan of a map offers; :class:`Plan` is that of an engine's sum.

    A plan of another kind inherits from this one, and declares three attributes and :meth:`run`. It can be pickled, and
    its text states what was chosen.
    """

    #: The method's name.
    method: str
    #: What a run should take.
    estimate: Estimate
    #: The rms error of the potential that is expected, e/A; None where the sum is exact to rounding.
    error: float | None

    @property
    def concurrent(self) -> bool:
        """Whether several maps may be computed at the same time, from several threads, if memory allows."""
        return False

    @property
    def summed(self) -> Bound | None:
        """The interaction as the method ends it; None where that is as requested."""
        return None

    @abc.abstractmethod
    def run(self, positions: ArrayLike, charges: ArrayLike) -> Result:
        """Return the sum for positions (N, 3), A, and charges (N,), e; again and again, from any thread."""

    def in_order(self) -> Callable[[ArrayLike, ArrayLike], Result]:
        """Return what runs the plan for frames in their order, in one thread: a solution may start from the last."""
        return self.run

    def new_mean(self) -> Mean:
        """Return the mean of no sums yet, to which those of many frames can be added."""
        return MeanOfResults(self.in_order())

    def in_cell(self, cell: Cell) -> Planned:
        """Return the same plan for another periodic cell; see :meth:`vmdpotential.engines.LatticeSum.in_cell`.

        Raises
        ------
        UsageError
        TaskError
        """
        raise TaskError(f"the method {self.method} cannot plan for a changing cell",
                        "use {method pme}, or give {cell}")

    def on(self, lattice: Lattice) -> Planned:
        """Return the same plan for a part of the lattice.

        Raises
        ------
        TaskError
        """
        raise TaskError(f"the method {self.method} makes no maps in slabs", "use another {method}")

    def parts(self, positions: ArrayLike, charges: ArrayLike, parts: Iterable[Lattice]) -> Iterator[Result]:
        """Yield the sum on parts of the lattice, one after the other, so that no more than one is in memory."""
        return (self.on(part).run(positions, charges) for part in parts)


@dataclass(frozen=True, eq=False)
class Plan(Planned):
    """A lattice sum with every choice made: on which engine, and with which splitting.

    Parameters
    ----------
    method : str
    engine : str
    work : LatticeSum
    estimate : Estimate
    error : float or None
        The rms error of the potential that is expected, e/A; None where the sum is exact to rounding.
    choices : str
        What was chosen, for people.
    """

    method: str
    engine: str
    work: LatticeSum
    estimate: Estimate
    error: float | None = None
    choices: str = ""

    @cached_property
    def prepared(self) -> Prepared:
        """The sum on its engine; made where and when it is first run."""
        return get_engine(self.engine).prepare(self.work)

    @property
    def concurrent(self) -> bool:
        """Whether several maps may be computed at the same time: engines do."""
        return True

    @property
    def summed(self) -> Bound | None:
        """The pair interaction, where the method has ended it."""
        pairs = self.work.pairs
        return pairs if pairs is not None and pairs.end is not None else None

    def run(self, positions: ArrayLike, charges: ArrayLike) -> Result:
        """Return the sum for positions (N, 3), A, and charges (N,), e."""
        return self.prepared.run(np.asarray(positions, np.float64), np.asarray(charges, np.float64))

    def parts(self, positions: ArrayLike, charges: ArrayLike, parts: Iterable[Lattice]) -> Iterator[Result]:
        """Yield the sum on parts of the lattice; the mesh is solved once."""
        return self.prepared.parts(np.asarray(positions, np.float64), np.asarray(charges, np.float64), parts)

    def new_mean(self) -> Mean:
        """Return the mean of no sums yet: charges are spread to one mesh, whose transform is made at the end."""
        return self.prepared.new_mean()

    def in_cell(self, cell: Cell) -> Plan:
        """Return the same plan for another periodic cell; see :meth:`vmdpotential.engines.LatticeSum.in_cell`."""
        return replace(self, work=self.work.in_cell(cell))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "prepared"}

    def __repr__(self) -> str:
        return f"Plan({self})"

    def __str__(self) -> str:
        points = " x ".join(map(str, self.work.lattice.shape))
        field = ", with field" if self.work.field else ""
        text = f"{self.method} on the {self.engine} engine, {points} points{field}, "
        text += f"{self.work.precision} precision: {self.choices or self.work.pairs}; "
        text += f"about {self.estimate.seconds:.2g} s, {memory.size(self.estimate.bytes)}"
        return text if self.error is None else f"{text}, expected error {self.error:.1e} e/A"


@dataclass(frozen=True, eq=False)
class PointPlan:
    """A sum at points with every choice made, for one frame after another; this one sums pairs.

    Parameters
    ----------
    method, engine : str
    estimate : Estimate
    interaction : Bound
    error : float or None
        The rms error of the potential that is expected, e/A; None where the sum is exact to rounding.
    choices : str
        What was chosen, for people.
    """

    method: str
    engine: str
    estimate: Estimate
    interaction: Bound
    error: float | None = None
    choices: str = ""

    #: Whether the sum needs all atoms, also those whose charges do not count: the shape of the molecule does.
    whole: ClassVar[bool] = False

    @property
    def permittivity(self) -> float:
        """That by which the values have to be divided, over that in which charges are that are near each other."""
        return 1.0

    def measured(self, prepared: PreparedPoints) -> tuple[float, float] | None:
        """Return rms errors of potential, e/A, and field, e/A^2, that a prepared sum knows of its last values."""
        return None

    @property
    def short(self) -> Bound | None:
        """What is left to be summed elsewhere, where the request has a split radius."""
        return None

    def prepare(self, points: Floats, positions: Floats, cell: Cell | None) -> PreparedPoints:
        """Return the sum for a frame: points (P, 3) and positions (N, 3), A, or parts of them, in its cell."""
        return get_engine(self.engine).prepare_points(PointSum(self.interaction, cell))

    def __str__(self) -> str:
        text = f"{self.method} at points on the {self.engine} engine: {self.choices or self.interaction}; "
        text += f"about {self.estimate.seconds:.2g} s, {memory.size(self.estimate.bytes)}"
        return text if self.error is None else f"{text}, expected error {self.error:.1e} e/A"


class Method(abc.ABC):
    """A summation method, registered under its name; what it can do it declares here.

    :meth:`estimate` says in no time what a sum would take, so that ``auto`` can take the fastest of all that are
    registered; :meth:`plan` and :meth:`plan_points` make every choice.
    """

    name: str
    #: One line for help texts.
    summary: str
    #: Of ``grid`` and ``points``, the targets it can do.
    targets: tuple[str, ...] = ("grid",)
    #: Of ``open`` and ``periodic``, those it can do.
    boundaries: tuple[str, ...] = ("open", "periodic")
    #: The interaction it sums unless another is asked for.
    interaction: str = "coulomb"
    #: The names of those it sums; None for any.
    interactions: tuple[str, ...] | None = None
    #: Whether it sums those alone that declare how they are split (:attr:`Interaction.splitting`).
    splits: bool = False
    #: Of :data:`vmdpotential.engines.PRECISIONS`, those it has.
    precisions: tuple[str, ...] = PRECISIONS
    #: The relative rms error that rounding may make, by precision.
    rounding: Mapping[str, float] = MappingProxyType(ROUNDING)
    #: Whether it ends interactions at a cutoff.
    cutoff: bool = False
    #: Whether it sums the field too.
    field: bool = True
    #: Whether rounding is its only error; else it keeps the tolerance.
    exact: bool = True
    #: Whether its potential is the sum of the charges' own. If not, ``auto`` never takes it, `verify` has no definition
    #: to hold it against, and no error is stated.
    superposes: bool = True
    #: Parameters of its own; a method that has some gets the solution around the charges.
    quantities: Sequence[Quantity] = ()
    #: The relative permittivity of the medium unless another is given.
    dielectric: float = 1.0
    #: Why there are boundaries that it cannot do, for messages.
    boundary_reason: str = ""

    @abc.abstractmethod
    def estimate(self, request: Request, engine: Engine) -> Estimate | Refusal:
        """Return what the sum should take, or why it cannot be done; in no time."""

    def plan(self, request: Request, engine: Engine) -> Planned:
        """Return the plan of a map; raises where the sum cannot be done."""
        raise _NO_MAPS.as_error(self.name)

    def plan_points(self, request: Request, engine: Engine) -> PointPlan:
        """Return the plan of a sum at points; raises where the sum cannot be done."""
        raise _NO_POINTS.as_error(self.name)

    def closed_form(self, engine: Engine) -> tuple[float, float] | None:
        """Return the relative error of a case with a closed form, and its limit, where a method does not superpose."""
        return None

    def parameters(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the values of all of the method's own parameters; those not given take their defaults.

        Raises
        ------
        UsageError
            For an unknown parameter or one outside its limits.
        """
        return complete(self.quantities, values, f"the method {self.name}")

    @property
    def algorithms(self) -> Mapping[str, Method]:
        """Other ways to do the same sum, which `auto` chooses among; none where there is one way."""
        return {}

    @property
    def of_tail(self) -> Method | None:
        """The way to sum what decays and has no cutoff, to an end that keeps the tolerance; None for want of one."""
        return None

    def takes(self, interaction: Interaction) -> bool:
        """Whether it can sum an interaction, with a cutoff or without one."""
        return ((self.interactions is None or interaction.name in self.interactions)
                and not (self.splits and interaction.splitting is None))

    def refusal(self, request: Request) -> Refusal | None:
        """Return why a request cannot be done by what is declared, None where it can."""
        name = request.interaction.interaction.name
        target = "points" if request.at_points else "grid"
        if target not in self.targets:
            return _NO_POINTS if request.at_points else _NO_MAPS
        if request.boundary not in self.boundaries:
            return Refusal(f"cannot do a boundary that is {request.boundary}{self.boundary_reason}",
                           f"use {' or '.join(f'{{boundary {b}}}' for b in self.boundaries)}, or another {{method}}")
        if self.interactions is not None and name not in self.interactions:
            *rest, last = self.interactions
            return Refusal(f"sums {' and '.join(filter(None, (', '.join(rest), last)))} alone, not {name}",
                           "use {method auto}, {method cutoff} or {method direct}")
        if self.splits and long_range(request.interaction) is None:
            return Refusal(f"needs an interaction with a splitting, which {name} does not declare",
                           "use {method auto}, {method cutoff} or {method direct}")
        if self.cutoff and request.interaction.cutoff is None:
            return Refusal(f"needs an interaction with a cutoff, which {name} has not")
        if request.precision not in self.precisions:
            return Refusal(f"has no {request.precision} precision",
                           f"use {' or '.join(f'{{precision {p}}}' for p in self.precisions)}, or another {{method}}")
        if request.field and not self.field:
            return Refusal("has no field", "use another {method}")
        return None

    def medium(self, request: Request, dielectric: float, temperature: float) -> str:
        """Return what is between the charges, for legends and reports, by a permittivity and K."""
        return request.interaction.medium(dielectric, temperature)

    def sums(self, request: Request, summed: Bound) -> str:
        """Return what is summed, with its parameters, for reports; by an interaction that the method may have ended."""
        return str(summed)

    def require(self, request: Request, engine: Engine) -> Estimate:
        """Return the estimate, or raise the error of its refusal."""
        estimate = self.refusal(request) or self.estimate(request, engine)
        if isinstance(estimate, Refusal):
            raise estimate.as_error(self.name)
        return estimate


def map_bytes(request: Request) -> int:
    """Return the bytes of the maps themselves, and of the atoms with sorted copies."""
    copies = 1 if request.planes is None else 3  # of a slab in a file's order, and in its blocks
    return 4 * copies * request.points_held * (4 if request.field else 1) + 200 * request.charges.count


def interpolated_bytes(request: Request) -> int:
    """Return the bytes of maps that are interpolated from a mesh, with what there is meanwhile.

    The mesh interpolated along two axes is at most as large as a map; what comes of the third is the map itself, or
    goes into it.
    """
    real = 4 if request.precision == "single" else 8
    maps = 4 if request.field else real == 8
    return (4 * maps + 2 * real) * request.points_held


def check_memory(request: Request, estimate: Estimate, what: str = "", cure: str = "") -> None:
    """Refuse a sum of pairs that does not fit into memory.

    Raises
    ------
    MemoryPlanError
    """
    points = " x ".join(map(str, request.lattice.shape))
    memory.require(estimate.bytes, f"a map of {points} points{' with its field' if request.field else ''}{what}",
                   (f"use a shorter {cure} or fewer {{atoms}}" if cure else
                    "use a larger {spacing}, less {padding} or fewer {atoms}") + slabs_cure(request))


def slabs_cure(request: Request) -> str:
    """Return what else to do where a map does not fit: formats that take it in slabs, unless it is made so."""
    return "" if request.planes else ", or write .zarr, .cmap or .mrc, which take it in slabs"
