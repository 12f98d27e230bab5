"""Engines: the back ends (CPU, CUDA) that compute the sums.

An engine prepares a :class:`PotentialSum`, at the nodes of a lattice or at points, once and runs it any number of
times, for one structure or for each frame of a trajectory. All engines, those of other packages included, take the same
arguments and return the same results within the stated accuracy.

Potentials are sums of ``q V(r)`` in e/A, without the Coulomb constant; fields are their negative gradients in
e/A^2. An atom closer than 0.01 A to a point contributes the potential at a distance of 0.01 A, and no field.

The precision selects the types of terms and sums, and thereby the relative rms error where charges cancel as in
water (:data:`vmdpotential.sums.ROUNDING_ERRORS`):

``single``
    terms in float32; sums in float32, which a GPU adds to float64 totals after every 128 terms;
``compensated``
    terms to the precision of float32 or better, and sums that lose no more than a term does: a GPU adds them to
    float64 totals after every 16 terms, the CPU sums in float64 throughout;
``double``
    terms and sums in float64.

The resulting maps are float32 in every precision.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from vmdpotential import registry
from vmdpotential.engines.costs import CPU_COSTS, Costs
from vmdpotential.errors import BackendError, TaskError, UsageError, in_words
from vmdpotential.grid.lattice import Lattice, Points
from vmdpotential.interactions import Bound
from vmdpotential.molecule.cell import Cell, cell_stretch

if TYPE_CHECKING:
    from vmdpotential.engines.result import Result, RunningMean
    from vmdpotential.engines.smooth import SmoothPart
    from vmdpotential.kernels.launch import Kernel
    from vmdpotential.splitting.mesh import Mesh

Floats = NDArray[np.float64]

#: Floating-point precisions of the sums, described in this module's docstring.
PRECISIONS = ("single", "compensated", "double")

#: Closest distance, A: an atom nearer to a point contributes the potential at this distance, and no field.
SOFT_CORE = 0.01


@dataclass(frozen=True, eq=False)
class PotentialSum:
    """A sum at the nodes of a lattice or at points: an interaction of charges and target, a smooth part, or both.

    Parameters
    ----------
    target : Lattice or Points
        Values at points are float64 in every precision.
    pairs : Bound or None
        The interaction summed over pairs of a charge and a node or point: those within its cutoff, or all pairs if it
        has none. None if there is only a smooth part.
    cell : Cell or None
        Periodic cell; images of the charges within the cutoff count. None in an open boundary.
    precision : str
        One of :data:`PRECISIONS`.
    field : bool
        Whether the field is summed in addition to the potential.
    smooth : Mesh, SmoothPart or None
        The long-range part, if `pairs` is only the short-range part of the potential; at points, a Mesh. In a periodic
        cell it includes all images and, for 1/r, a neutralising background.
    distances : bool
        Whether distances to the nearest charge are found too (:attr:`.HostResult.distances`), for pairs at points.
    """

    target: Lattice | Points
    pairs: Bound | None
    cell: Cell | None = None
    precision: str = "single"
    field: bool = False
    smooth: Mesh | SmoothPart | None = None
    distances: bool = False

    def __post_init__(self) -> None:
        check_precision(self.precision)
        if self.cell is not None and self.pairs is not None and self.pairs.cutoff is None:
            raise UsageError("cell",
                             f"the sum of {self.pairs} over periodic images does not converge, as it has no cutoff")

    @classmethod
    def split(cls, target: Lattice | Points, smooth: Mesh | SmoothPart, precision: str = "single", field: bool = False,
              pairs: bool = True) -> PotentialSum:
        """Return the sum of a smooth part and, with `pairs`, of the short-range pairs that complete it."""
        return cls(target, smooth.short if pairs else None, smooth.cell, precision, field, smooth)

    def in_cell(self, cell: Cell) -> PotentialSum:
        """Return the same sum in another periodic cell, in which each node keeps its fractional coordinates.

        Raises
        ------
        UsageError
            In an open boundary, or if the axes of the lattice would no longer be parallel to x, y and z.
        TaskError
            If the smooth part cannot change its cell.
        """
        if self.cell is None:
            raise UsageError("cell", "an open boundary has none")
        ratios = cell_stretch(self.cell, cell)
        if ratios is None:
            raise UsageError("cell", "changes its shape, not only its lengths along x, y and z: the axes of a map's "
                             "lattice would rotate with it", "use the frames' own cells one by one")
        smooth = None if self.smooth is None else self.smooth.in_cell(cell)
        return replace(self, target=self.lattice.stretched(ratios), cell=cell, smooth=smooth)

    @property
    def lattice(self) -> Lattice:
        """The target, which must be a lattice."""
        assert isinstance(self.target, Lattice)
        return self.target

    @property
    def maps(self) -> int:
        """Number of maps that are summed: 1 for the potential, 4 with the field along x, y and z."""
        return 4 if self.field else 1

    @property
    def self_potential(self) -> float:
        """Potential of a unit charge at its own position, 1/A, to be subtracted if a charge must not act on itself."""
        pairs = 0.0 if self.pairs is None else float(self.pairs(SOFT_CORE))
        return pairs + (0.0 if self.smooth is None else self.smooth.self_potential)

    @property
    def single_image(self) -> bool:
        """Whether at most one image of each charge is within the cutoff of a point."""
        if self.cell is None or self.pairs is None or self.pairs.cutoff is None:
            return True
        return bool(2 * self.pairs.cutoff <= np.linalg.norm(self.cell.reduced, axis=1).min())


class Prepared(abc.ABC):
    """A sum that is ready to run: everything that does not depend on the charges is computed once."""

    @property
    def self_potential(self) -> float:
        """Potential of a unit charge at its own position in this sum, 1/A; its field there is zero.

        Raises
        ------
        TaskError
            If it is not known.
        """
        raise TaskError("the potential of a charge at its own position is not known in this sum",
                        "use another {method}")

    @abc.abstractmethod
    def run(self, positions: ArrayLike, charges: ArrayLike, target: Lattice | Points | None = None) -> Result:
        """Return the sum for positions (N, 3), A, and charges (N,), e; from any thread, any number of times.

        Parameters
        ----------
        positions, charges : array_like
        target : Lattice or Points, optional
            A part of the lattice, or other points, instead of those that the sum was prepared for. In an open
            boundary, points and charges have to be within the box that a mesh was planned for.
        """

    def parts(self, positions: ArrayLike, charges: ArrayLike,
              parts: Iterable[Lattice | Points]) -> Iterator[Result]:
        """Yield the sum on one part of the target after the other, so that only one part is in memory."""
        return (self.run(positions, charges, part) for part in parts)

    def new_mean(self) -> RunningMean:
        """Return an empty mean, to which the sums of frames can be added."""
        from vmdpotential.engines.result import MeanOfResults

        return MeanOfResults(self.run)


class Engine:
    """The interface of every engine; arrays are float64, returned potentials are in e/A.

    A subclass needs a name. Unless it has a member of its own, its arrays are numpy's, its threads share the cores, and
    the drivers of the CPU compute the feature.
    """

    name: str

    #: Seconds that the steps of a sum take on this engine.
    costs: Costs = CPU_COSTS

    #: Whether programs for PyCUDA run on it, which methods of other packages may have.
    runs_cuda = False

    @property
    def has_transforms(self) -> bool:
        """Whether the engine has the Fourier transforms that a mesh needs."""
        return True

    def check(self) -> None:
        """Make sure that the engine works on this machine.

        Raises
        ------
        BackendError
            If hardware, a driver or a package that the engine needs is missing.
        """

    def describe(self) -> str:
        """Return one line that describes the hardware of the engine."""
        return get_engine("cpu").describe()

    @property
    def vector_size(self) -> int:
        """Number of float32 that its kernels compute at once: of a vector, or the threads of a warp."""
        from vmdpotential.kernels.launch import load_library

        return int(load_library().vector_floats())

    @property
    def special_limit(self) -> float | None:
        """Results per second of all GPUs' special function units; None for an engine without them."""
        return None

    def bindings(self) -> Sequence[Callable[[], AbstractContextManager[None]]]:
        """Return one function per GPU, whose context manager binds a thread to it; none if threads share the cores."""
        return []

    def environment(self, place: int) -> dict[str, str]:
        """Return environment variables that give the process number `place`, from 0, a GPU of its own."""
        return {}

    def processes_per_gpu(self, size: int = 0) -> int:
        """Return how many processes should share each GPU, judged by the last run, with `size` more bytes for each."""
        return 1

    def room(self, size: int, beside: Any = None) -> AbstractContextManager[None]:
        """Return a context in which arrays and launches are on one device, where `size` bytes are free.

        It is the device of the array `beside`, if that is given.

        Raises
        ------
        MemoryPlanError
            If more memory is needed than is free.
        """
        return nullcontext()

    def array(self, values: Any) -> Any:
        """Return a contiguous array of values where this engine's kernels run, the same one if it is that already.

        The values are in an array of numpy or the engine.
        """
        return np.ascontiguousarray(values)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return an array where this engine's kernels run, whose values are not set."""
        return _aligned(np.empty, shape, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return an array where this engine's kernels run, whose values are 0."""
        return _aligned(np.zeros, shape, dtype)

    def to_host(self, values: Any) -> NDArray[Any]:
        """Return the values of an array of this engine, after all launches before; on the CPU the same array."""
        host: NDArray[Any] = values
        return host

    def launch(self, kernel: Kernel, count: int | tuple[int, int], label: str, grain: int = 0, /,
               **values: Any) -> None:
        """Run a kernel for range(count), with its arguments by name, see
        :func:`vmdpotential.kernels.launch.launch_kernel`.

        Where a RANGE_KERNEL and a BLOCK_KERNEL have different elements, `count` are the numbers of both.

        Arrays that the kernel only reads may also be numpy's.
        """
        from vmdpotential.kernels.launch import launch_kernel

        launch_kernel(kernel, count[0] if isinstance(count, tuple) else count, label, grain, **values)

    def team_size(self, most: tuple[int, int]) -> int:
        """Return the number of workers for :meth:`launch_team`: up to so many threads of a CPU, or blocks of a GPU."""
        from vmdpotential.kernels import threads

        return max(1, min(threads.count(), most[0]))

    def launch_team(self, kernel: Kernel, workers: int, /, **values: Any) -> None:
        """Run a TEAM_KERNEL (kernel.h), whose workers wait for each other, with its arguments by name."""
        from vmdpotential.kernels.launch import launch_team

        launch_team(kernel, workers, **values)

    def prepare(self, work: PotentialSum) -> Prepared:
        """Return a sum at the nodes of a lattice or at points, prepared to run.

        Drivers of sums are registered as kind ``sum`` under the name of their engine; others have those of the CPU. A
        sum with a mesh needs :attr:`has_transforms`; :func:`with_transforms` returns an engine that has them.
        """
        prepared: Prepared = registry.get("sum", self.name if self.name in registry.available("sum") else "cpu")(work)
        return prepared


def _aligned(make: Callable[..., NDArray[Any]], shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array that begins at a cache line, so that no vector in its rows crosses one."""
    kind = np.dtype(dtype)
    size = kind.itemsize * (math.prod(shape) if isinstance(shape, tuple) else shape)
    block = make(size + 64, np.uint8)
    return np.ndarray(shape, kind, block, -block.ctypes.data % 64)


def with_transforms(engine: Engine) -> Engine:
    """Return the engine, or the CPU engine if it lacks the Fourier transforms that a mesh needs."""
    return engine if engine.has_transforms else get_engine("cpu")


def check_precision(precision: str) -> None:
    """Make sure that a precision is one of :data:`PRECISIONS`.

    Raises
    ------
    UsageError
        If it is another string.
    """
    if precision not in PRECISIONS:
        raise UsageError("precision", f"choose one of {', '.join(PRECISIONS)}", value=precision)


_reason = ""


def get_engine(name: str = "auto") -> Engine:
    """Return an engine by name; ``auto`` selects cuda if it works on this machine, else cpu.

    Raises
    ------
    UsageError
        If there is no engine of that name.
    BackendError
        If the engine does not work on this machine.
    """
    if name == "auto":
        name = automatic_engine()
    engine: Engine = registry.get("engine", name)
    engine.check()
    return engine


@cache
def automatic_engine() -> str:
    """Return the name of the engine that ``auto`` selects; :func:`automatic_reason` says why."""
    global _reason
    try:
        registry.get("engine", "cuda").check()
    except BackendError as error:
        _reason = f"the cuda engine does not work here: {error.message(in_words)}"
        return "cpu"
    _reason = ""
    return "cuda"


def automatic_reason() -> str:
    """Return why ``auto`` selects the cpu engine; empty if it selects cuda."""
    automatic_engine()
    return _reason
