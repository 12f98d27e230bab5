"""The Poisson-Boltzmann equation of a molecule, solved on a lattice.

The unknown is the potential where the solvent is, and inside of the molecule what the charges there do not make by
themselves in a medium of the molecule's permittivity (the reaction potential). What they make, phi_c, is an exact sum,
so that no charge is spread on a lattice; it enters at the edges that the surface cuts, by which the two unknowns jump
(I. L. Chern, J.-G. Liu, W.-C. Wang, Methods Appl. Anal. 10 (2003) 309). Across such an edge from a node a inside to b
outside, of the conductance e (M. E. Davis, J. A. McCammon, J. Comput. Chem. 12 (1991) 909), flows
e (w_b - w_a - phi_c,a), of which eps_in (phi_c,b - phi_c,a) belongs to the charges alone. So outside nothing large is
subtracted from anything large, and phi_c is needed at few nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.continuum import region
from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice

Floats = NDArray[np.float64]
Values = NDArray[np.float32]

#: Gives the sum of q / r, e/A, at points (P, 3) of charges (N,) at positions (N, 3).
Sum = Callable[[Floats, Floats, Floats], Floats]

#: Norm of the residual over that of the first one.
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Continuum:
    """A molecule in a solution of ions.

    Parameters
    ----------
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    radii : (N,) float64, A
    constant : float, kT/e A/e
        Potential of 1 e at 1 A in vacuum.
    inside, outside : float
        Permittivities.
    probe : float, A
        Of the molecular surface; 0 for van der Waals'.
    ion_radius : float, A
        How near the centre of an ion comes to an atom's surface.
    kappa : float, 1/A
        Inverse Debye length of the solution.
    ions : (I, 2) float64
        Valence and share of the ionic strength of each kind, for the full equation; none for the linear one.
    """

    positions: Floats
    charges: Floats
    radii: Floats
    constant: float
    inside: float
    outside: float
    probe: float
    ion_radius: float
    kappa: float
    ions: Floats


@dataclass(frozen=True, eq=False)
class Solved:
    """A solution on a lattice.

    Parameters
    ----------
    lattice : Lattice
    unknown : (nx, ny, nz) float32, kT/e
        The potential outside, the reaction potential inside.
    within : (nx, ny, nz) bool
        Which nodes are inside.
    iterations : int
    """

    lattice: Lattice
    unknown: Values
    within: NDArray[np.bool_]
    iterations: int

    def potential(self, continuum: Continuum, total: Sum, part: tuple[slice, slice, slice]) -> Values:
        """Return the whole potential on a part of the lattice, kT/e."""
        values = self.unknown[part].copy()
        nodes = np.argwhere(self.within[part])
        first = [s.start or 0 for s in part]
        points = self.lattice.origin + self.lattice.spacing * (nodes + first)
        values[tuple(nodes.T)] += (continuum.constant / continuum.inside * total(
            points, continuum.positions, continuum.charges)).astype(np.float32)
        return values

    def reaction(self, continuum: Continuum, total: Sum) -> Floats:
        """Return the reaction potential (N,) at the charges, kT/e, interpolated trilinearly."""
        place = (continuum.positions - self.lattice.origin) / self.lattice.spacing
        cell = np.clip(np.floor(place).astype(np.int64), 0, np.array(self.lattice.shape) - 2)
        corners = np.stack(np.meshgrid(*[[0, 1]] * 3, indexing="ij"), -1).reshape(-1, 3)
        nodes = cell[:, None] + corners
        t = (place - cell)[:, None]
        weights = np.where(corners, t, 1 - t).prod(-1)
        values = self.unknown[tuple(np.moveaxis(nodes, -1, 0))].astype(np.float64)
        out = ~self.within[tuple(np.moveaxis(nodes, -1, 0))]
        if out.any():  # a charge near the surface
            values[out] -= continuum.constant / continuum.inside * total(
                self.lattice.origin + self.lattice.spacing * nodes[out], continuum.positions, continuum.charges)
        result: Floats = (weights * values).sum(1)
        return result


def levels(shape: tuple[int, int, int]) -> int:
    """Return the levels of multigrid for nodes of which there are at least as many along each axis."""
    return max(1, int(np.log2(max(2, (min(shape) - 1) / 8))) + 1)


def enclosing(lattice: Lattice) -> tuple[Lattice, tuple[int, int, int], int]:
    """Return a lattice for multigrid with the nodes of another inside, the first of these, and how many levels."""
    shape = np.maximum(np.array(lattice.shape) + 2, 17)
    depth = levels((int(shape[0]), int(shape[1]), int(shape[2])))
    step = 2 ** (depth - 1)
    nodes = -(-(shape - 1) // step) * step + 1
    a, b, c = (int(n) for n in (nodes - lattice.shape) // 2)
    nx, ny, nz = (int(n) for n in nodes)
    return Lattice(lattice.origin - lattice.spacing * (a, b, c), lattice.spacing, (nx, ny, nz)), (a, b, c), depth


def faces(shape: tuple[int, int, int]) -> NDArray[np.int64]:
    """Return the nodes (F, 3) on the faces of a lattice."""
    on_face = np.ones(shape, bool)
    on_face[1:-1, 1:-1, 1:-1] = False
    return np.argwhere(on_face)


def solve(continuum: Continuum, lattice: Lattice, depth: int, total: Sum, boundary: Callable[[Floats], Floats],
          engine: Engine) -> Solved:
    """Return the solution on a lattice.

    Parameters
    ----------
    continuum : Continuum
    lattice : Lattice
        Of :func:`enclosing`.
    depth : int
        Levels.
    total : callable
        The exact sum of q / r.
    boundary : callable
        The potential, kT/e, at points (P, 3) of the lattice's faces.
    engine : Engine

    Raises
    ------
    TaskError
        When it does not converge.
    """
    c = continuum
    distances = region.signed_distances(c.positions, c.radii, c.probe, lattice)
    within = distances < 0
    x, y, z = region.conductances(distances, c.inside, np.full(lattice.shape[2], c.outside), lattice)
    nodes, sources = _sources(c, lattice, distances, (x, y, z), total)
    del distances
    k2 = np.zeros(lattice.shape, np.float32)
    if c.kappa > 0:
        k2 = region.ion_shares(c.positions, c.radii, c.ion_radius, lattice)
        k2 *= np.float32(c.outside * c.kappa**2 * np.prod(lattice.spacing) / lattice.spacing.mean())
    unknown = np.zeros(lattice.shape, np.float32)
    on_faces = faces(lattice.shape)
    points = lattice.origin + lattice.spacing * on_faces
    values = boundary(points)
    inner = within[tuple(on_faces.T)]
    if inner.any():  # a part of a molecule
        values[inner] -= c.constant / c.inside * total(points[inner], c.positions, c.charges)
    unknown[tuple(on_faces.T)] = values
    solver = engine.multigrid(x, y, z, k2, c.ions if c.kappa > 0 else c.ions[:0], depth)
    del x, y, z  # the solver has them with its coarse levels
    iterations = solver.solve(unknown, nodes, sources, TOLERANCE)
    return Solved(lattice, unknown, within, iterations)


def _sources(c: Continuum, lattice: Lattice, distances: Values, edges: tuple[Values, Values, Values],
             total: Sum) -> tuple[NDArray[np.int64], Floats]:
    """Return the nodes that cut edges end at, as places in a flat array, and what flows into them by the jump."""
    within, places = distances < 0, np.arange(lattice.size).reshape(lattice.shape)
    weights = np.prod(lattice.spacing) / lattice.spacing**2 / lattice.spacing.mean()
    ins, outs, flows, own = [], [], [], []
    for axis, e in enumerate(edges):
        low, high = (tuple(part if d == axis else slice(None) for d in range(3))
                     for part in (slice(None, -1), slice(1, None)))
        cut = within[low] != within[high]
        first, second, low_in = places[low][cut], places[high][cut], within[low][cut]
        ins.append(np.where(low_in, first, second))
        outs.append(np.where(low_in, second, first))
        flows.append(e[low][cut].astype(np.float64))
        own.append(np.full(len(first), weights[axis] * c.inside))
    a, b, e, eps = (np.concatenate(parts) for parts in (ins, outs, flows, own))
    nodes, which = np.unique(np.concatenate([a, b]).astype(np.int64), return_inverse=True)
    points = lattice.origin + lattice.spacing * np.stack(np.unravel_index(nodes, lattice.shape), 1)
    phi = c.constant / c.inside * total(points, c.positions, c.charges)
    at_a, at_b = which[: len(a)], which[len(a) :]
    sums = np.bincount(at_b, e * phi[at_a], len(nodes))
    sums -= np.bincount(at_a, e * phi[at_a] + eps * (phi[at_b] - phi[at_a]), len(nodes))
    result = np.asarray(sums, np.float64)
    return nodes.astype(np.int64), result
