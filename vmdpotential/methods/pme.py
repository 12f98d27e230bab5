"""Particle mesh sum: the full potential in a time proportional to the number of points.

1/r is split into a part that ends at a radius, summed pair by pair, and a smooth one, whose charges
are spread to a mesh by B-splines, transformed by Fourier, multiplied and interpolated back (T. Darden,
D. York, L. Pedersen, J. Chem. Phys. 98 (1993) 10089; U. Essmann et al., J. Chem. Phys. 103 (1995)
8577; with the influence function of R. W. Hockney, J. W. Eastwood, Computer Simulation Using
Particles, 1988). A periodic cell has conducting surroundings and a background that neutralises it,
so that the mean of the potential is zero; it may have any shape. An open boundary is a convolution
with the mesh padded by zeros (Hockney, Eastwood, ch. 6).

Gaussian charges (:mod:`vmdpotential.interactions.gaussian`) have the smooth part alone, and no pairs. A screened
potential (:mod:`vmdpotential.splitting.screened`) takes the same mesh, without a background.

Radius, mesh and order are the cheapest that keep the error: the error is known beforehand
(:func:`vmdpotential.splitting.coulomb.optimal`), the cost is a model (:mod:`vmdpotential.methods.costs`).
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from vmdpotential import memory
from vmdpotential.engines import Engine, LatticeSum
from vmdpotential.errors import BackendError, TaskError
from vmdpotential.interactions import Bound
from vmdpotential.methods import Estimate, Method, Plan, Refusal, Request, interpolated_bytes, slabs_cure
from vmdpotential.methods.costs import Size, cheapest, cheapest_smeared
from vmdpotential.splitting.coulomb import optimal
from vmdpotential.splitting.gaussian import rendered
from vmdpotential.splitting.mesh import Mesh, Split, around, over_cell
from vmdpotential.splitting.screened import optimal_for_screened

#: How many times smaller than asked the predicted error is: it is that of charges without correlation, and those
#: of molecules have one.
MARGIN = 1.5


class Pme(Method):
    """The full potential by a mesh; see :class:`vmdpotential.methods.Method`."""

    name = "pme"
    summary = "all atoms and images by a mesh, to the tolerance"
    interactions = ("coulomb", "gaussian", "screened_coulomb")
    exact = False

    def estimate(self, request: Request, engine: Engine) -> Estimate | Refusal:
        """Return what the sum should take."""
        if not engine.has_transforms:
            return Refusal("needs Fourier transforms, which this engine lacks here",
                           "install pyvkfft, or use {method msm} or {engine cpu}", BackendError)
        best = _choose(request, engine)
        if best is None:
            return Refusal(f"no mesh keeps the tolerance {request.tolerance:g}",
                           "use a larger {tolerance}, or {method direct}", TaskError)
        spacing, ratio, order, seconds = best
        return Estimate(seconds, mesh_bytes(request, Size.of(request), spacing, ratio * spacing, order))

    def plan(self, request: Request, engine: Engine) -> Plan:
        """Return the plan.

        Raises
        ------
        TaskError
            When no mesh keeps the tolerance.
        MemoryPlanError
            When the mesh does not fit into memory.
        """
        estimate = self.require(request, engine)
        best = _choose(request, engine)
        assert best is not None
        spacing, ratio, order, _ = best
        width = _width(request)
        split = split_of(request.interaction)
        mesh = make_mesh(request, spacing, ratio, order, "{tolerance} or {spacing}" if width is None else "{smear}",
                         split)
        work = LatticeSum.split(request.lattice, mesh, request.precision, request.field)
        error = split(ratio * spacing, spacing, order)[1] * request.charges.density
        return Plan(self.name, engine.name, work, estimate, error, choices_of(mesh))


def _width(request: Request) -> float | None:
    """Return the standard deviation of Gaussian charges, A; None for points."""
    return request.interaction.values.get("smear")


def split_of(bound: Bound) -> Split:
    """Return what makes the splitting of an interaction that is among :attr:`Pme.interactions`."""
    width, length = bound.values.get("smear"), bound.decay
    if width is not None:
        return partial(rendered, width)
    return optimal if length is None else _screened(length)


@lru_cache(maxsize=16)
def _screened(length: float) -> Split:
    """Return one splitting for each Debye length, A, so that what is chosen by it is kept."""
    return partial(optimal_for_screened, length)


def _choose(request: Request, engine: Engine) -> tuple[float, float, int, float] | None:
    """Return mesh spacing, ratio of the split radius to it, order and seconds of the cheapest mesh."""
    size, error, width = Size.of(request), request.relative_error / MARGIN, _width(request)
    if width is None:
        return cheapest(size, engine.costs, error, split_of(request.interaction))
    return cheapest_smeared(size, engine.costs, error, width)


def mesh_bytes(request: Request, size: Size, spacing: float, radius: float, order: int) -> int:
    """Return about how many bytes a mesh sum takes on the host."""
    nodes = np.prod([extent / spacing if size.periodic else 2 * (extent / spacing + order) for extent in size.extents])
    return _bytes(request, float(nodes), radius)


def _bytes(request: Request, nodes: float, radius: float) -> int:
    """Return the bytes of a sum with so many points of the transform, and images within the split radius."""
    # 3.5 numbers at most for each point of the transform, the influence among them; the maps; atoms with the images
    # that pairs are summed of
    images = request.images(radius) if request.cell is not None else 0.0
    real = 4 if request.precision == "single" else 8
    return int(3.5 * real * nodes + interpolated_bytes(request) + (100 + 200 * images) * request.charges.count)


def make_mesh(request: Request, spacing: float, ratio: float, order: int, cure: str, split: Split = optimal) -> Mesh:
    """Return a mesh over the cell, or around lattice and charges.

    Parameters
    ----------
    request : Request
    spacing : float, A
        Of the mesh, at most.
    ratio : float
        Split radius over the spacing.
    order : int
        Of the B-splines.
    cure : str
        What has to be larger when it does not fit.
    split : callable
        Makes the splitting for a radius, a mesh spacing and an order.

    Raises
    ------
    MemoryPlanError
        When it does not fit into memory with the map.
    """
    if request.cell is not None:
        mesh = over_cell(request.cell, spacing, order, ratio, split)
    else:
        mesh = around(request.lattice, request.charges.box, spacing, order, ratio, split)
    memory.require(_bytes(request, float(np.prod(mesh.transform_shape)), ratio * spacing),
                   f"a mesh of {' x '.join(map(str, mesh.transform_shape))} points",
                   f"use a larger {cure}{slabs_cure(request)}")
    return mesh


def choices_of(mesh: Mesh) -> str:
    """Return what a mesh is, for people."""
    step = np.linalg.norm(mesh.steps, axis=1).max()
    pairs = "no pairs" if mesh.short is None else f"pairs within {mesh.splitting.radius:.3g} A"
    return (f"mesh of {' x '.join(map(str, mesh.transform_shape))}, {step:.3g} A apart, B-splines of order "
            f"{mesh.order}, {pairs}")


METHOD = Pme()
