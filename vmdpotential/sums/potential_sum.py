"""A sum at the nodes of a lattice or at points, which an engine prepares once and runs any number of times.

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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential import registry
from vmdpotential.engines import Engine
from vmdpotential.errors import TaskError, UsageError
from vmdpotential.grid.lattice import Lattice, Points
from vmdpotential.interactions import SOFT_CORE, Bound
from vmdpotential.molecule.cell import Cell, cell_stretch
from vmdpotential.sums.result import MeanOfResults, Result, RunningMean

if TYPE_CHECKING:
    from vmdpotential.splitting.mesh import Mesh
    from vmdpotential.sums.smooth import SmoothPart

#: Floating-point precisions of the sums, described in this module's docstring.
PRECISIONS = ("single", "compensated", "double")


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

    def parts(self, positions: ArrayLike, charges: ArrayLike, parts: Iterable[Lattice | Points]) -> Iterator[Result]:
        """Yield the sum on one part of the target after the other, so that only one part is in memory."""
        return (self.run(positions, charges, part) for part in parts)

    def new_mean(self) -> RunningMean:
        """Return an empty mean, to which the sums of frames can be added."""
        return MeanOfResults(self.run)


def prepare_sum(engine: Engine, work: PotentialSum) -> Prepared:
    """Return a sum that is ready to run on an engine.

    Drivers of sums are registered as kind ``sum`` under the name of their engine; others have those of the CPU. A sum
    with a mesh needs :attr:`.Engine.has_transforms`; :func:`.with_transforms` returns an engine that has them.
    """
    drivers = registry.available("sum")
    prepared: Prepared = registry.get("sum", engine.name if engine.name in drivers else "cpu")(work)
    return prepared


def check_precision(precision: str) -> None:
    """Make sure that a precision is one of :data:`PRECISIONS`.

    Raises
    ------
    UsageError
        If it is another string.
    """
    if precision not in PRECISIONS:
        raise UsageError("precision", f"choose one of {', '.join(PRECISIONS)}", value=precision)
