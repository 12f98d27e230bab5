"""Engines: where the sums are computed.

An engine prepares a :class:`LatticeSum` once and runs it again and again, for the frames of a trajectory
as for one structure, and sums at arbitrary points (:class:`Engine`). Another engine, of this package or
another, does the same with the same arguments and the same results within the stated accuracy.

Potentials are sums of ``q V(r)`` in e/A, without the Coulomb constant; fields their negative gradients in
e/A^2. An atom nearer than 0.01 A to a point counts as if at that distance, and makes no field there.

Precisions say what is summed in what, and so which relative rms error is kept where charges cancel as in
water (:data:`vmdpotential.engines.accuracy.ROUNDING`):

``single``
    terms in float32; sums in float32, on a GPU carried over to float64 after 128 terms;
``compensated``
    terms to the precision of float32 or better, summed so that no sum loses more than a term does: on a
    GPU carried over to float64 after 16 terms, on the CPU in float64 throughout;
``double``
    terms and sums in float64. Values are float32 in every precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential import registry
from vmdpotential.errors import BackendError, UsageError, in_words
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import Bound
from vmdpotential.molecule.cell import Cell

if TYPE_CHECKING:
    from vmdpotential.engines.bonds import BondSum
    from vmdpotential.engines.charges import ChargePotential
    from vmdpotential.engines.costs import Costs, PointCosts
    from vmdpotential.engines.counting import Counter, Counting
    from vmdpotential.engines.gaussians import GaussianSum
    from vmdpotential.engines.orbitals import OrbitalSum
    from vmdpotential.engines.pairs import PairSum, PreparedPairs
    from vmdpotential.engines.result import Mean, Result
    from vmdpotential.engines.smooth import SmoothPart
    from vmdpotential.splitting.mesh import Mesh

Floats = NDArray[np.float64]

#: How the sums are rounded, see above.
PRECISIONS = ("single", "compensated", "double")

#: How far a cell may shear, as a part of its lengths, before it counts as one of another shape.
SHEAR = 1e-4

#: A point nearer to an atom than this, in A, gets the potential at this distance and no field from it.
SOFT_CORE = 0.01


#: Bytes of a node of the finer lattice, as measured at 15 million nodes: in :class:`Multigrid` 31 for conductances,
#: diagonal, residual, direction and cycle with coarse levels; what ions add, solution, potential of the charges, 13;
#: the coarse lattice, and what is changed by its solution.
MULTIGRID_BYTES = 66


def stretch(cell: Cell, other: Cell) -> Floats | None:
    """Return by how much another cell is longer along x, y and z (3,), None where its shape is another."""
    change = np.linalg.inv(cell.vectors) @ other.vectors
    along = np.diagonal(change)
    return None if abs(change - np.diag(along)).max() > SHEAR or along.min() <= 0 else along


@dataclass(frozen=True, eq=False)
class LatticeSum:
    """What is summed on a lattice: pairs of charges and points, and a smooth part next to them.

    Parameters
    ----------
    lattice : Lattice
    pairs : Bound or None
        All charges where it has no cutoff, else those within it; None where the smooth part is all.
    cell : Cell or None
        Whose images of the charges are within the cutoff.
    precision : str
        One of :data:`PRECISIONS`.
    field : bool
        Whether the field is summed next to the potential.
    smooth : Mesh, SmoothPart or None
        The rest of a potential of which the pairs are the short-range part.
    """

    lattice: Lattice
    pairs: Bound | None
    cell: Cell | None = None
    precision: str = "single"
    field: bool = False
    smooth: Mesh | SmoothPart | None = None

    def __post_init__(self) -> None:
        check_precision(self.precision)
        if self.cell is not None and self.pairs is not None and self.pairs.cutoff is None:
            raise UsageError("cell",
                             f"the sum of {self.pairs} over periodic images does not converge, as it has no cutoff")

    @classmethod
    def split(cls, lattice: Lattice, smooth: Mesh | SmoothPart, precision: str = "single",
              field: bool = False) -> LatticeSum:
        """Return the sum of a smooth part and the pairs that it leaves."""
        return cls(lattice, smooth.short, smooth.cell, precision, field, smooth)

    def in_cell(self, cell: Cell) -> LatticeSum:
        """Return the same sum in another periodic cell: each node where it was, in fractional coordinates.

        Raises
        ------
        UsageError
            In an open boundary, or where the axes of the lattice would not stay along x, y and z.
        TaskError
            For a smooth part that is for one cell.
        """
        if self.cell is None:
            raise UsageError("cell", "an open boundary has none")
        along = stretch(self.cell, cell)
        if along is None:
            raise UsageError("cell", "changes its shape, not its lengths along x, y and z alone: the axes of a map's "
                             "lattice would turn with it", "use the frames' own cells one by one")
        smooth = None if self.smooth is None else self.smooth.in_cell(cell)
        return replace(self, lattice=self.lattice.stretched(along), cell=cell, smooth=smooth)

    @property
    def maps(self) -> int:
        """How many maps are summed: the potential, and with it the field along x, y and z."""
        return 4 if self.field else 1


@dataclass(frozen=True, eq=False)
class PointSum:
    """What is summed at points anywhere, in float64: pairs of charges and points, and a smooth part in addition.

    Parameters
    ----------
    pairs : Bound or None
        All charges where it has no cutoff, else those within it; None where the smooth part is all.
    cell : Cell or None
        Whose images count: all of those within the cutoff.
    smooth : Mesh or None
        The rest of a potential of which the pairs are the short-range part. Its error is that of the mesh; in a
        periodic cell it has all images, and of 1/r a neutralising background.
    """

    pairs: Bound | None
    cell: Cell | None = None
    smooth: Mesh | None = None

    def __post_init__(self) -> None:
        if self.cell is not None and self.pairs is not None and self.pairs.cutoff is None:
            raise UsageError("cell",
                             f"the sum of {self.pairs} over periodic images does not converge, as it has no cutoff")

    @classmethod
    def split(cls, smooth: Mesh, pairs: bool = True) -> PointSum:
        """Return the sum of a smooth part and, with `pairs`, those that it leaves."""
        return cls(smooth.short if pairs else None, smooth.cell, smooth)

    @property
    def own(self) -> float:
        """Potential that a unit charge has at its own place, 1/A: to be taken away where it counts for nothing."""
        pairs = 0.0 if self.pairs is None else float(self.pairs(SOFT_CORE))
        return pairs + (0.0 if self.smooth is None else float(self.smooth.splitting.long(0.0)))

    @property
    def nearest_alone(self) -> bool:
        """Whether no more than one image of a charge is within the cutoff of a point."""
        if self.cell is None or self.pairs is None or self.pairs.cutoff is None:
            return True
        return bool(2 * self.pairs.cutoff <= np.linalg.norm(self.cell.reduced, axis=1).min())


class Prepared(Protocol):
    """A lattice sum on an engine, with what does not depend on the charges made once."""

    def run(self, positions: Floats, charges: Floats) -> Result:
        """Return the sum for positions (N, 3), A, and charges (N,), e; from any thread, any number of times."""

    def parts(self, positions: Floats, charges: Floats, parts: Iterable[Lattice]) -> Iterator[Result]:
        """Yield the sum on parts of the lattice, one after the other, so that no more than one is in memory."""

    def new_mean(self) -> Mean:
        """Return the mean of no sums yet, to which those of many frames can be added."""


class PreparedPoints(Protocol):
    """A sum at points on an engine, with what does not depend on the charges made once."""

    @property
    def own(self) -> float:
        """Potential that a unit charge has at its own place in this sum, 1/A; its field there is zero."""

    def at(self, points: Floats, positions: Floats, charges: Floats, field: bool = False,
           nearest: Floats | None = None) -> tuple[Floats, Floats | None]:
        """Return the potential (P,), e/A, and with `field` the field (P, 3), e/A^2, at points (P, 3), in float64.

        Pairs are exact to rounding (:data:`vmdpotential.engines.accuracy.POINTS`). In an open boundary a mesh is for
        points and charges within the box that it was planned around. `nearest` (P,) is filled with the distances to
        the nearest charge, A, where there are pairs.
        """


class Multigrid(Protocol):
    """The Poisson-Boltzmann equation on a lattice, with all levels of multigrid."""

    @property
    def edges(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """The conductances (nx, ny, nz) of the edges from each node along an axis."""

    def solve(self, w: NDArray[np.float32], nodes: NDArray[np.int64], sources: Floats, tolerance: float) -> int:
        """Replace w (nx, ny, nz), whose faces are the boundary, by the solution; return how many iterations that took.

        `sources` (S,) flow into `nodes` (S,), places in w.ravel(); `tolerance` is the norm of the residual over that of
        the first one.
        """


class Engine(Protocol):
    """What every engine offers; arrays are float64, potentials come back in e/A."""

    name: str

    @property
    def costs(self) -> Costs:
        """Seconds that the parts of its work on maps take."""

    @property
    def point_costs(self) -> PointCosts:
        """Seconds that the parts of its work at points take."""

    @property
    def has_transforms(self) -> bool:
        """Whether it has the Fourier transforms that a mesh needs."""

    def check(self) -> None:
        """Make sure that the engine works here.

        Raises
        ------
        BackendError
            When something that it needs is missing.
        """

    def describe(self) -> str:
        """Return one line on the hardware that computes."""

    def bindings(self) -> Sequence[Callable[[], AbstractContextManager[None]]]:
        """Return for each GPU what binds a thread to it; none where threads share what computes."""

    def environment(self, place: int) -> dict[str, str]:
        """Return the environment in which the process at a place among several has one GPU for its own."""

    def sharers(self, size: int = 0) -> int:
        """Return how many processes are to share each GPU for work such as was done last and `size` bytes more."""

    def prepare(self, work: LatticeSum) -> Prepared:
        """Return a lattice sum, ready to run."""

    def prepare_points(self, work: PointSum) -> PreparedPoints:
        """Return a sum at points, ready to run.

        One with a mesh needs :attr:`has_transforms`; :func:`with_transforms` returns an engine that has them.
        """

    def prepare_pairs(self, work: PairSum) -> PreparedPairs:
        """Return a sum over pairs of atoms, ready to run, see :mod:`vmdpotential.engines.pairs`."""

    def count_distances(self, positions: Floats, others: Floats | None, cell: Cell | None, reach: float,
                        bins: int) -> NDArray[np.int64]:
        """Return how many pairs (bins,) lie in each of `bins` equal ranges of distance from 0 to `reach` (A).

        Pairs of positions (N, 3) and others (M, 3), with all their images; of the positions alone, each pair once,
        where there are no others. A distance of exactly 0 counts.
        """

    def multigrid(self, x: NDArray[np.float32], y: NDArray[np.float32], z: NDArray[np.float32],
                  k2: NDArray[np.float32], ions: Floats, levels: int) -> Multigrid:
        """Return the equation div(eps grad w) - k2 w = -sources on a lattice, or the full one, ready to be solved.

        `x`, `y` and `z` (nx, ny, nz) are the conductances of the edges from each node along an axis, `k2` what ions
        add, and `ions` (I, 2) their valences and shares of the ionic strength for the full equation, else none. The
        numbers of nodes less one are multiples of 2 to the power of `levels` less one.
        """

    def orbitals(self, work: OrbitalSum) -> NDArray[np.float32]:
        """Return an orbital (nx, ny, nz), or the weighted sum of the squares of several."""

    def gaussians(self, work: GaussianSum) -> NDArray[np.float32]:
        """Return the potential (nx, ny, nz) of Gaussian charges and of nuclei, summed in float64."""

    def bonds(self, work: BondSum) -> Floats:
        """Return the energies (P, nx, ny, nz), kcal/mol, of hydrogen bonds of probes with a receptor's atoms."""

    def counter(self, counting: Counting) -> Counter:
        """Return sums over frames of what atoms add to the nodes of a lattice."""

    def charge_potential(self, cell: Cell) -> ChargePotential:
        """Return the potential of one charge and all its images, for many charges one after another.

        In conducting surroundings, with a background; good to 1e-5 of it at half the cell's length.
        """

    def structure_factors(self, fraction: Floats, charges: Floats, counts: NDArray[np.int64]) -> NDArray[np.complex128]:
        """Return the sums over atoms of q exp(-2 pi i (h, k, l) f), each index from -n to n.

        `fraction` (N, 3) are fractional coordinates f, `counts` (3,) the n of each index. Exact to rounding.
        """


def with_transforms(engine: Engine) -> Engine:
    """Return an engine, or the CPU's where it lacks the Fourier transforms that a mesh needs."""
    return engine if engine.has_transforms else get_engine("cpu")


def check_precision(precision: str) -> None:
    """Make sure that there is a precision.

    Raises
    ------
    UsageError
    """
    if precision not in PRECISIONS:
        raise UsageError("precision", f"choose one of {', '.join(PRECISIONS)}", value=precision)


_reason = ""


def get_engine(name: str = "auto") -> Engine:
    """Return an engine by name; ``auto`` takes cuda where it works, else cpu.

    Raises
    ------
    UsageError
        When there is no engine of that name.
    BackendError
        When the engine cannot work on this machine.
    """
    if name == "auto":
        name = automatic()
    engine: Engine = registry.get("engine", name)
    engine.check()
    return engine


@cache
def automatic() -> str:
    """Return the name of the engine that ``auto`` selects; :func:`reason` says why."""
    global _reason
    try:
        registry.get("engine", "cuda").check()
    except BackendError as error:
        _reason = f"the cuda engine does not work here: {error.message(in_words)}"
        return "cpu"
    _reason = ""
    return "cuda"


def reason() -> str:
    """Return why ``auto`` takes the cpu engine, empty where it takes cuda."""
    automatic()
    return _reason
