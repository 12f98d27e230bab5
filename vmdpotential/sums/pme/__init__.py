"""Particle mesh sum: the full potential in a time proportional to the number of points.

1/r is split into a part that ends at a radius and is summed pair by pair, and a smooth part: charges are
spread to a mesh by B-splines, Fourier transformed, multiplied by the influence function of R. W. Hockney,
J. W. Eastwood (Computer Simulation Using Particles, 1988), transformed back and interpolated (T. Darden,
D. York, L. Pedersen, J. Chem. Phys. 98 (1993) 10089; U. Essmann et al., J. Chem. Phys. 103 (1995) 8577).
A periodic cell of any shape has conducting surroundings and a neutralising background, so that the mean
of the potential is zero. In an open boundary, the mesh is padded with zeros (Hockney, Eastwood, ch. 6).

Gaussian charges (:mod:`vmdpotential.interactions.gaussian`) have a smooth part only, and no pairs. A screened
potential (:mod:`vmdpotential.splitting.screened`) uses the same mesh, without a background.

Radius, mesh and order are the cheapest that keep the error, which is predicted by
:func:`vmdpotential.splitting.coulomb.optimal_splitting`; the cost is a model (:mod:`vmdpotential.sums.costs`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import memory
from vmdpotential.engines import Engine, get_engine
from vmdpotential.errors import BackendError, TaskError
from vmdpotential.grid.targets import Box, Lattice, Points
from vmdpotential.interactions import Bound
from vmdpotential.molecule.cell import Cell, same_cell
from vmdpotential.splitting.long_range import long_range
from vmdpotential.splitting.mesh import Mesh, SmoothSplitting, SplittingChoice, mesh_around, over_cell
from vmdpotential.sums import Estimate, Method, Plan, Refusal, Request, SumPlan, interpolated_bytes, slabs_hint
from vmdpotential.sums.costs import SumSize, cheapest_mesh
from vmdpotential.sums.costs import transform_extents as _transform
from vmdpotential.sums.potential_sum import PotentialSum, Prepared, prepare_sum
from vmdpotential.sums.result import Result

Floats = NDArray[np.float64]

#: A mesh: its spacing, A, the ratio of split radius and spacing, the order of splines, and the estimated seconds.
MeshChoice = tuple[float, float, int, float]


class MeshMethod(Method):
    """A method that sums on the cheapest mesh that keeps the tolerance; see :class:`vmdpotential.sums.Method`."""

    exact = False
    #: Factor by which the predicted error is smaller than requested, and the largest one that is predicted well.
    margin: float
    largest_error: float = np.inf
    #: What sums without Fourier transforms, and what sums exactly, for hints.
    without_transforms: str
    exactly: str

    @abstractmethod
    def split(self, request: Request) -> tuple[SplittingChoice, float | None]:
        """Return the splitting for a radius, spacing and order; and the width of Gaussian charges, which need no pairs.
        """

    def size(self, request: Request) -> SumSize:
        """Return the size of the sum for the cost model."""
        return SumSize.of(request)

    def choose(self, request: Request, engine: Engine) -> MeshChoice | None:
        """Return the cheapest mesh; None if none keeps the tolerance."""
        error = min(request.relative_error / self.margin, self.largest_error)
        return cheapest_mesh(self.size(request), engine.costs, error, *self.split(request))

    def estimate(self, request: Request, engine: Engine) -> Estimate | Refusal:
        """Return the estimated cost of the sum."""
        if not engine.has_transforms:
            return Refusal("needs Fourier transforms, which this engine lacks here",
                           f"install pyvkfft, or use {self.without_transforms} or {{engine cpu}}", BackendError)
        best = self.choose(request, engine)
        if best is None:
            return Refusal(f"no mesh keeps the tolerance {request.tolerance:g}",
                           f"use a larger {{tolerance}}, or {self.exactly}", TaskError)
        spacing, ratio, order, seconds = best
        size = self.size(request)
        nodes = float(np.prod(_transform(size.extents, spacing, order, size.periodic)))
        return Estimate(seconds, _bytes(request, nodes, ratio * spacing))

    def plan(self, request: Request, engine: Engine) -> Plan:
        """Return the plan; values at points are in double precision.

        Raises
        ------
        TaskError
            When no mesh keeps the tolerance.
        MemoryPlanError
            When the mesh does not fit into memory.
        """
        estimate, best, (split, width) = (self.require(request, engine), self.choose(request, engine),
                                          self.split(request))
        assert best is not None
        spacing, ratio, order, _ = best
        splitting, error = split(request.radius or ratio * spacing, spacing, order)
        error *= request.charges.density
        if request.at_points:
            return MeshPlan(request, self.name, engine.name, estimate, error, spacing, order, splitting)
        mesh = (over_cell(request.cell, spacing, order, ratio, split) if request.cell is not None else
                mesh_around(request.lattice, request.charges.box, spacing, order, ratio, split))
        points = " x ".join(map(str, mesh.transform_shape))
        larger = f"{{tolerance}} or {{spacing}}, or {self.exactly}" if width is None else "{smear}"
        memory.require(_bytes(request, float(np.prod(mesh.transform_shape)), ratio * spacing),
                       f"a mesh of {points} points", f"use a larger {larger}{slabs_hint(request)}")
        work = PotentialSum.split(request.lattice, mesh, request.precision, request.field)
        pairs = "no pairs" if mesh.short is None else f"pairs within {mesh.splitting.radius:.3g} A"
        return SumPlan(self.name, engine.name, work, estimate, error,
                       f"mesh of {points}, {np.linalg.norm(mesh.steps, axis=1).max():.3g} A apart, B-splines of order "
                       f"{mesh.order}, {pairs}")


class Pme(MeshMethod):
    """The full potential on a mesh; see :class:`vmdpotential.sums.Method`."""

    name = "pme"
    summary = "all atoms and images by a mesh, to the tolerance"
    targets = ("grid", "points")
    splits = True
    margin = 1.5  # predictions are for uncorrelated charges, and those of molecules are correlated
    without_transforms = "{method msm}"
    exactly = "{method direct}"

    def split(self, request: Request) -> tuple[SplittingChoice, float | None]:
        """Return the splitting of the interaction, and the width of its Gaussian charges."""
        split = long_range(request.interaction)
        assert split is not None
        return split.mesh, split.width


@dataclass(frozen=True, eq=False)
class MeshPlan(Plan):
    """A mesh sum at points, with the same splitting for all frames and a mesh for each cell.

    Parameters
    ----------
    request : Request
    method, engine : str
    estimate : Estimate
    error : float, e/A
    spacing : float, A
        Greatest spacing of the mesh, which depends on the cell of each frame.
    order : int
        Order of its B-splines.
    splitting : SmoothSplitting
    """

    request: Request
    method: str
    engine: str
    estimate: Estimate
    error: float
    spacing: float
    order: int
    splitting: SmoothSplitting
    #: The last periodic cell and its sum, in one attribute, as frames may be prepared by several threads.
    _last: tuple[Cell, Prepared] | None = field(default=None, init=False, repr=False)

    @property
    def short(self) -> Bound | None:
        """The short-range part, if it must be summed elsewhere."""
        return None if self.request.radius is None else self.splitting.short()

    def run(self, positions: ArrayLike, charges: ArrayLike, target: Lattice | Points | None = None) -> Result:
        """Return the sum at the points of the request, or at others in the same cell."""
        target, positions = target or self.request.target, np.asarray(positions, np.float64)
        return self.prepare(target, positions, self.request.cell).run(positions, charges, target)

    def prepare(self, target: Lattice | Points, positions: Floats, cell: Cell | None) -> Prepared:
        """Return the sum for a frame; the last one is used again, for any points, if the cell is the same.

        Raises
        ------
        MemoryPlanError
            When the mesh does not fit into memory.
        """
        last = self._last
        if last is not None and same_cell(last[0], cell):
            return last[1]
        points = target.points()
        nodes = math.prod(_transform(_extents(points, positions, cell), self.spacing, self.order, cell is not None))
        memory.require(_bytes(self.request, nodes, 0.0), f"a mesh of {nodes:.3g} points",
                       "use a larger {tolerance}, or correct atoms and points that are far away")
        ready = prepare_sum(get_engine(self.engine), PotentialSum.split(
            target, self._mesh(points, positions, cell), "double", self.request.field, self.request.radius is None))
        if cell is not None:
            object.__setattr__(self, "_last", (cell, ready))
        return ready

    def _mesh(self, points: Floats, positions: Floats, cell: Cell | None) -> Mesh:
        def split(*_: float) -> tuple[SmoothSplitting, float]:
            return self.splitting, 0.0

        ratio = self.splitting.radius / self.spacing
        if cell is not None:
            return over_cell(cell, self.spacing, self.order, ratio, split)
        nx, ny, nz = (int(n) + 1 for n in np.ceil(np.ptp(points, axis=0) / self.spacing))
        lattice = Lattice(points.min(0), np.full(3, self.spacing), (nx, ny, nz))
        return mesh_around(lattice, Box.around(positions), self.spacing, self.order, ratio, split)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}

    def __str__(self) -> str:
        return (f"{self.method} at points on the {self.engine} engine: mesh {self.spacing:.3g} A apart, B-splines of "
                f"order {self.order}, pairs within {self.splitting.radius:.3g} A; "
                f"{self.estimate.describe(self.engine)}, expected error {self.error:.1e} e/A")


def _extents(points: Floats, positions: Floats, cell: Cell | None) -> list[float]:
    """Return the lengths (3,) of a mesh, A."""
    if cell is not None:
        return [float(length) for length in np.linalg.norm(cell.vectors, axis=1)]
    low, high = np.minimum(points.min(0), positions.min(0)), np.maximum(points.max(0), positions.max(0))
    return [float(length) for length in high - low]


def _bytes(request: Request, nodes: float, radius: float) -> int:
    """Return the bytes of a sum with `nodes` points of the transform and images within the split radius."""
    # at most 3.5 numbers for each point of the transform, including the influence function; the maps; and atoms with
    # their images within the split radius
    images = 0.0 if request.cell is None or request.at_points else request.images(radius)
    real = 4 if request.precision == "single" else 8
    return int(3.5 * real * nodes + interpolated_bytes(request) + (100 + 200 * images) * request.charges.count)


METHOD = Pme()
