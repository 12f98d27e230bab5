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
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import memory
from vmdpotential.engines import Engine, get_engine
from vmdpotential.errors import BackendError, TaskError
from vmdpotential.grid.lattice import Box, Lattice, Points
from vmdpotential.interactions import Bound
from vmdpotential.molecule.cell import Cell, same_cell
from vmdpotential.splitting.coulomb import optimal_splitting
from vmdpotential.splitting.long_range import LongRange, long_range
from vmdpotential.splitting.mesh import Mesh, Smooth, SplittingChoice, mesh_around, over_cell
from vmdpotential.sums import Estimate, Method, Plan, Refusal, Request, SumPlan, interpolated_bytes, slabs_hint
from vmdpotential.sums.costs import SumSize, cheapest_mesh
from vmdpotential.sums.costs import transform_extents as _transform
from vmdpotential.sums.potential_sum import PotentialSum, Prepared, prepare_sum
from vmdpotential.sums.result import Result

Floats = NDArray[np.float64]

#: Factor by which the predicted error is smaller than requested: predictions are for uncorrelated charges, and those
#: of molecules are correlated.
ERROR_MARGIN = 1.5

#: A mesh: its spacing, A, the ratio of split radius and spacing, the order of splines, and the estimated seconds.
MeshChoice = tuple[float, float, int, float]


class Pme(Method):
    """The full potential on a mesh; see :class:`vmdpotential.sums.Method`."""

    name = "pme"
    summary = "all atoms and images by a mesh, to the tolerance"
    targets = ("grid", "points")
    splits = True
    exact = False

    def estimate(self, request: Request, engine: Engine) -> Estimate | Refusal:
        """Return the estimated cost of the sum."""
        if not engine.has_transforms:
            return Refusal("needs Fourier transforms, which this engine lacks here",
                           "install pyvkfft, or use {method msm} or {engine cpu}", BackendError)
        best = _choose(request, engine)
        if best is None:
            return Refusal(f"no mesh keeps the tolerance {request.tolerance:g}",
                           "use a larger {tolerance}, or {method direct}", TaskError)
        spacing, ratio, order, seconds = best
        return Estimate(seconds, mesh_bytes(request, SumSize.of(request), spacing, ratio * spacing, order))

    def plan(self, request: Request, engine: Engine) -> SumPlan | MeshPlan:
        """Return the plan; values at points are in double precision.

        Raises
        ------
        TaskError
            When no mesh keeps the tolerance.
        MemoryPlanError
            When the mesh does not fit into memory.
        """
        estimate = self.require(request, engine)
        best, split = _choose(request, engine), _split(request)
        assert best is not None
        if not request.at_points:
            hint = "{tolerance} or {spacing}" if split.width is None else "{smear}"
            return plan_on_mesh(self.name, request, engine, estimate, best, hint, split.mesh)
        spacing, ratio, order, _ = best
        splitting, error = split.mesh(request.radius or ratio * spacing, spacing, order)
        return MeshPlan(request, self.name, engine.name, estimate, error * request.charges.density, spacing, order,
                        splitting)


def _split(request: Request) -> LongRange:
    split = long_range(request.interaction)
    assert split is not None
    return split


def _choose(request: Request, engine: Engine) -> MeshChoice | None:
    """Return mesh spacing, ratio of split radius and spacing, order and seconds of the cheapest mesh."""
    split = _split(request)
    return cheapest_mesh(SumSize.of(request), engine.costs, request.relative_error / ERROR_MARGIN, split.mesh,
                         split.width)


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
    splitting : Smooth
    """

    request: Request
    method: str
    engine: str
    estimate: Estimate
    error: float
    spacing: float
    order: int
    splitting: Smooth
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
        def split(*_: float) -> tuple[Smooth, float]:
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


def mesh_bytes(request: Request, size: SumSize, spacing: float, radius: float, order: int) -> int:
    """Return the approximate memory of a mesh sum on the host, bytes."""
    return _bytes(request, float(np.prod(_transform(size.extents, spacing, order, size.periodic))), radius)


def _bytes(request: Request, nodes: float, radius: float) -> int:
    """Return the bytes of a sum with `nodes` points of the transform and images within the split radius."""
    # at most 3.5 numbers for each point of the transform, including the influence function; the maps; and atoms with
    # their images within the split radius
    images = 0.0 if request.cell is None or request.at_points else request.images(radius)
    real = 4 if request.precision == "single" else 8
    return int(3.5 * real * nodes + interpolated_bytes(request) + (100 + 200 * images) * request.charges.count)


def make_mesh(request: Request, spacing: float, ratio: float, order: int, hint: str,
              split: SplittingChoice = optimal_splitting) -> Mesh:
    """Return a mesh over the cell, or around lattice and charges.

    Parameters
    ----------
    request : Request
    spacing : float, A
        Greatest spacing of the mesh.
    ratio : float
        Split radius divided by the spacing.
    order : int
        Order of the B-splines.
    hint : str
        Options that must be larger if the mesh does not fit.
    split : callable
        Returns the splitting for a radius, a mesh spacing and an order.

    Raises
    ------
    MemoryPlanError
        When mesh and map do not fit into memory.
    """
    if request.cell is not None:
        mesh = over_cell(request.cell, spacing, order, ratio, split)
    else:
        mesh = mesh_around(request.lattice, request.charges.box, spacing, order, ratio, split)
    memory.require(_bytes(request, float(np.prod(mesh.transform_shape)), ratio * spacing),
                   f"a mesh of {' x '.join(map(str, mesh.transform_shape))} points",
                   f"use a larger {hint}{slabs_hint(request)}")
    return mesh


def plan_on_mesh(method: str, request: Request, engine: Engine, estimate: Estimate, best: MeshChoice, hint: str,
                 split: SplittingChoice) -> SumPlan:
    """Return the plan of a sum on the chosen mesh; `hint` and `split` are those of :func:`make_mesh`."""
    spacing, ratio, order, _ = best
    mesh = make_mesh(request, spacing, ratio, order, hint, split)
    work = PotentialSum.split(request.lattice, mesh, request.precision, request.field)
    error = split(ratio * spacing, spacing, order)[1] * request.charges.density
    return SumPlan(method, engine.name, work, estimate, error, _choices_of(mesh))


def _choices_of(mesh: Mesh) -> str:
    """Return a description of a mesh, for reports."""
    step = np.linalg.norm(mesh.steps, axis=1).max()
    pairs = "no pairs" if mesh.short is None else f"pairs within {mesh.splitting.radius:.3g} A"
    return (f"mesh of {' x '.join(map(str, mesh.transform_shape))}, {step:.3g} A apart, B-splines of order "
            f"{mesh.order}, {pairs}")


METHOD = Pme()
