"""Values at the faces of the coarse lattice: potentials of charges in the solution, far from the molecule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice, Points, coordinate_bounds
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.interactions.screened_coulomb import INTERACTION as SCREENED
from vmdpotential.sums.points import request_at, sum_at
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum

from . import layers
from .coarse import CoarseProblem
from .faces import KERNELS, POINTS_PER_TASK, interpolate_faces, thinned_faces
from .lattices import enclosing_lattice
from .molecule import Continuum, Floats

#: The coarse lattice reaches this far beyond the molecule, A.
FACE_MARGIN = 16.0

#: Number of nodes that the coarse lattice may always have.
FREE_COARSE_NODES = 800_000

#: Tolerance of the charges' potential at nodes.
TOLERANCE = 1e-5

#: Spacing, A, of the clusters that replace charges in the far field.
CLUSTERS = 5.0

#: Spacing of the clusters that replace the layer around the molecule, in spacings of the lattice, but at most CLUSTERS.
LAYER = 4.0

#: Largest spacing, A, of those nodes in a membrane, where charges are distributed to them by cubic polynomials.
LAYER_IN_MEMBRANE = 3.0

#: Width, in those of the atoms' densities, beyond which a smooth permittivity is that of the solution.
DENSITY = 2.0

#: Debye lengths over which the potential of a charge decays to less than that tolerance, 8e-7, in a sum of many pairs.
DECAYED = 14.0

#: Pairs of points and charges below which the charges' own potential is summed exactly.
PAIRS = 1_000_000_000

#: Distance, A, between the nodes on the faces of the coarse lattice at which the far field is summed.
#: Without ions that shield the molecule from its errors, the second one.
SMOOTH_OVER, EXPOSED_SMOOTH_OVER = 4.0, 2.5

#: The full equation is nearly linear at this distance from the molecule, A, at most; from there outwards its potential
#: is that of charges in the solution.
FULL_BEYOND = 8.0


def coarse_lattice_around(fine: Lattice, low: Floats, high: Floats, ratio: int = 2) -> tuple[Lattice, int, int]:
    """Return a lattice around a map, and a molecule between two corners, A, at a multiple of the fine spacing.

    Also returned are its number of multigrid levels, and the ratio of the spacings, which is at least `ratio`.
    """
    while True:
        spacing = ratio * fine.spacing
        before = np.maximum(1, np.ceil((fine.origin - (low - FACE_MARGIN)) / spacing)).astype(int)
        after = np.maximum(1, np.ceil((high + FACE_MARGIN - fine.origin) / spacing)).astype(int)
        after = np.maximum(after, np.ceil((np.array(fine.shape) - 1) / ratio).astype(int) + 1)
        a, b, c = (int(n) for n in before + after + 1)
        if a * b * c <= max(FREE_COARSE_NODES, fine.size) or ratio >= 16:
            result, _, levels = enclosing_lattice(Lattice(fine.origin - before * spacing, spacing, (a, b, c)))
            return result, levels, ratio
        ratio *= 2


def far_field(continuum: Continuum, engine: Engine, points: Floats) -> Floats:
    """Return the potential (P,), kT/e, far from the molecule, as the sum of the charges' screened potentials.

    P. Debye, E. Hueckel, Phys. Z. 24 (1923) 185; exact for one ion. With a membrane it is that of the charges in a slab
    and in the solutions on both of its sides (:mod:`.layers`).
    """
    charged, membrane = np.flatnonzero(continuum.charges), continuum.membrane
    positions, start = continuum.positions[charged], continuum.radii[charged] + continuum.ion_radius
    factors = np.exp(continuum.kappa * start) / (1 + continuum.kappa * start)
    if membrane is not None:
        factors[(positions[:, 2] > membrane.low) & (positions[:, 2] < membrane.high)] = 1.0
    charges = continuum.charges[charged] * factors
    if len(charges) > 200 and membrane is None:
        positions, charges = _gathered(engine, positions, charges, *coordinate_bounds(positions), CLUSTERS,
                                       float(np.abs(charges).sum()))
    return screened_potential(continuum, engine, points, positions, charges, CLUSTERS)


def exposed_to_faces(continuum: Continuum) -> bool:
    """Return whether ions do not shield the molecule from errors at the faces of the coarse lattice."""
    return continuum.kappa * FACE_MARGIN < 1 or continuum.membrane is not None


def screened_potential(continuum: Continuum, engine: Engine, points: Floats, positions: Floats, charges: Floats,
              apart: float) -> Floats:
    """Return the potential (P,), kT/e, of charges (N,), e, in the solution without a molecule.

    In a membrane, charges are distributed to nodes `apart` A apart.
    """
    if continuum.membrane is not None:
        return continuum.constant * layers.potential(layers.slab_of(continuum), points, positions, charges, apart)
    bound = SCREENED.bind(debye_length=1 / continuum.kappa) if continuum.kappa > 0 else COULOMB.bind()
    if len(points) * len(charges) < PAIRS:
        values = prepare_sum(engine, PotentialSum(Points(points), bound)).run(positions, charges).values()
    else:
        if continuum.kappa > 0:
            bound = bound.truncated(FACE_MARGIN + DECAYED / continuum.kappa)
        values = sum_at(request_at(points, positions, charges, None, bound, tolerance=TOLERANCE), positions, charges,
                        engine)[1].values()
    return continuum.constant / continuum.outside * values


def equivalent_charges(problem: CoarseProblem) -> tuple[Floats, Floats] | None:
    """Return positions (N, 3), A, and charges (N,), e, in the solution that have the potential of the whole molecule.

    Outside of a box around the molecule a solution is the potential of a layer of charges and dipoles on the box
    (Green's identity); the part of it that enters from outside, by wrong values at the faces of the lattice, has none.
    Without ions their sum is the charge of the molecule (Gauss' law), whatever the solution has lost of it. None where
    the lattice has no room for the box.
    """
    c, lattice = problem.continuum, problem.lattice
    margin = float(c.radii.max(initial=0.0)) * max(1.0, DENSITY * c.gaussian) + c.ion_radius
    margin += FULL_BEYOND if len(c.ions) else 0.0
    low, high = coordinate_bounds(c.positions)
    first = np.floor((low - margin - lattice.origin) / lattice.spacing).astype(int) - 1
    last = np.ceil((high + margin - lattice.origin) / lattice.spacing).astype(int) + 1
    if (first < 2).any() or (last > np.array(lattice.shape) - 3).any():
        return None
    found = problem.layer(first, last)
    engine, low, high = problem.engine, *lattice.points(np.stack([first, last]))
    # where the box is close to the faces, at which they give the potential, clusters are small, and inside of them
    room = float(np.minimum(low - lattice.origin, lattice.last - high).min())
    apart = min(CLUSTERS, LAYER * float(lattice.spacing.mean()), 0.5 * room)
    if not exposed_to_faces(c):
        return _gathered(engine, *found, low, high, apart, float(np.abs(c.charges).sum()))
    points, charges = (engine.to_host(array) for array in found)
    if c.kappa == 0:
        charges += (c.charges.sum() - charges.sum()) / len(charges)
    if c.membrane is not None:
        return points, charges
    axes = [np.linspace(a, b, max(4, 1 + math.ceil((b - a) / apart))) for a, b in zip(low, high, strict=True)]
    sums = layers.distributed(points, charges, axes)
    filled = np.nonzero(sums)
    return np.stack([axis[n] for axis, n in zip(axes, filled, strict=True)], 1), sums[filled]


class FaceNodes:
    """Nodes on the faces of a lattice, about `apart` (3,) A apart, between which a potential is interpolated.

    Parameters
    ----------
    lattice : Lattice
    apart : (3,) float64, A

    Attributes
    ----------
    points : (P, 3) float64, A
        The nodes, one face after the other.
    """

    def __init__(self, lattice: Lattice, apart: Floats) -> None:
        nodes, self._axes = thinned_faces(lattice.shape,
                                          tuple(np.maximum(1, apart / lattice.spacing).astype(int).tolist()))
        self.points = lattice.points(nodes)

    def interpolated(self, engine: Engine, values: Floats) -> Any:
        """Return a potential with `values` (P,) at :attr:`points` at all nodes, as :meth:`.Problem.solve` takes it."""
        return interpolate_faces(engine, values, self._axes)


def _gathered(engine: Engine, points: Any, charges: Any, low: Floats, high: Floats, apart: float,
              total: float) -> tuple[Floats, Floats]:
    """Return charges distributed trilinearly to nodes `apart` A apart, in a box between two corners.

    This preserves their sum and their dipole moment. The sum of their absolute values is much less than 65,000 `total`.
    """
    a, b, c = (int(n) for n in (high - low) / apart)
    lattice, unit = Lattice(low, np.full(3, apart), (a + 2, b + 2, c + 2)), 2.0 ** (int(np.frexp(total)[1]) - 46)
    sums = engine.zeros(lattice.shape, np.int64)
    engine.launch(KERNELS["spread_charges"], len(charges), "surface", POINTS_PER_TASK, points=points, charges=charges,
                  sums=sums, shape=lattice.shape, origin=lattice.origin, spacing=lattice.spacing, unit=unit)
    found = engine.to_host(sums)
    nodes = np.nonzero(found)
    return lattice.points(np.stack(nodes, 1)), unit * found[nodes]


