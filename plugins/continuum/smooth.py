"""A molecule without a sharp surface: its permittivity follows from the Gaussian densities of its atoms.

The density of an atom of radius R is exp(-(r / (s R))^2), that of the molecule is 1 - prod (1 - density), and the
permittivity is the mean of the molecule's and the solvent's, weighted by the density (J. A. Grant, B. T. Pickup,
A. Nicholls, J. Comput. Chem. 22 (2001) 608; L. Li, C. Li, Z. Zhang, E. Alexov, J. Chem. Theory Comput. 9 (2013)
2126). The unknown is the same as for a sharp surface: outside of the van der Waals spheres it is the potential phi;
inside it is w = phi - phi_c, where phi_c is the potential of the charges in a uniform medium with the molecule's
permittivity. The permittivity around an atom at the surface doubles within a fraction of an Angstrom of the charge,
where phi_c still causes most of the displacement. The flux along an edge is therefore computed from

    flux = e (w_b - w_a - J) + flux of phi_c,    J = integral of (inside / eps - 1) phi_c' along the edge

which is exact where phi_c causes all of the displacement, so that the equation of a single ion is exact at the nodes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import SOFT_CORE
from vmdpotential.kernels.launch import KernelFile, launch_kernel
from vmdpotential.surfaces.region import planes_at_once

from .jump import flow_through_cuts, interpolate_along_edge
from .molecule import Continuum, Floats

Values = NDArray[np.float32]
Edges = tuple[Values, Values, Values]

KERNELS = KernelFile(Path(__file__).with_name("smooth.cu"))

#: Distance from an atom, in widths, beyond which its density (1e-5 there) is neglected.
REACH = 3.4

#: Distance from an atom, in widths, at which exp(-d^2) no longer changes 1; it stands for all larger ones, because
#: their squares can overflow.
NOTHING_LEFT = 30.0

#: Number of edges whose nearby charges are searched for in one step.
EDGES_PER_BLOCK = 20_000

#: Number of atoms whose neighbours are searched for in one step.
_ATOMS = 2000

#: Charges nearer to an edge than this, in A and in spacings, are integrated one by one.
NEAR, NEAR_SPACINGS = 1.5, 1.5

#: Distance from a charge, A, within which its kink is subtracted before interpolation.
KINKED = 2.5

#: Nodes and weights of the quadrature on [0, 1].
_NODES, _WEIGHTS = 0.5 * (np.polynomial.legendre.leggauss(6)[0] + 1), 0.5 * np.polynomial.legendre.leggauss(6)[1]


def widths(c: Continuum) -> Floats:
    """Return the widths (N,) of the densities of the atoms, A."""
    return c.gaussian * c.radii


def discretised(c: Continuum, lattice: Lattice, distances: Any, potential: Any,
                engine: Engine) -> tuple[Edges, NDArray[np.int64], Floats]:
    """Return the conductances, places of nodes in a flat array, and what flows into each of them; in arrays of numpy.

    Parameters
    ----------
    c : Continuum
    lattice : Lattice
    distances : (nx, ny, nz) float32, an array of the engine
        Of the nodes to the van der Waals surface, where the definition of the unknown changes.
    potential : (nx + 2, ny + 2, nz + 2) float32, kT/e, an array of the engine
        phi_c at the nodes, and at one more layer of nodes on each side.
    engine : Engine
    """
    on_engine = distances, potential
    potential, distances = engine.to_host(potential), engine.to_host(distances)
    within, around = distances < 0, np.array(lattice.shape) + 2
    strides = (around[1] * around[2], around[2], 1)
    nodes_free = _free(c, lattice)
    edges, lines, parts, axes = [], [], [], []
    for axis in range(3):
        half = np.where(np.arange(3) == axis, 0.5, 0.0) * lattice.spacing
        middle = _free(c, Lattice(lattice.origin + half, lattice.spacing, lattice.shape))
        low, high = (tuple(part if d == axis else slice(None) for d in range(3))
                     for part in (slice(None, -1), slice(1, None)))
        a, m, b = nodes_free[low], middle[low], nodes_free[high]
        conductance = np.zeros(lattice.shape, np.float32)
        weight = np.prod(lattice.spacing) / lattice.spacing[axis] ** 2 / lattice.spacing.mean()
        conductance[low] = 6 * weight / (1 / c.mixed(a) + 4 / c.mixed(m) + 1 / c.mixed(b))  # by Simpson's rule
        edges.append(conductance)
        chosen = within[low] | within[high]
        first = (np.argwhere(chosen) + 1) @ np.array(strides)
        lines.append(first[:, None] + np.arange(-1, 3) * strides[axis])
        parts.append(np.stack([a[chosen], m[chosen], b[chosen]], 1).astype(np.float64))
        axes.append(np.full(len(first), axis))
    line, free, axis_of = np.concatenate(lines), np.concatenate(parts), np.concatenate(axes)
    x, y, z = edges
    places, which = np.unique(line, return_inverse=True)
    which = which.reshape(line.shape)
    points = lattice.origin + lattice.spacing * (np.stack(np.unravel_index(places, tuple(around)), 1) - 1)
    phi = potential.ravel()[places].astype(np.float64)
    integrals = np.empty(len(line))
    for start in range(0, len(line), EDGES_PER_BLOCK):
        rows = slice(start, start + EDGES_PER_BLOCK)
        integrals[rows] = _integrals(c, points[which[rows, 1]], lattice.spacing, axis_of[rows], free[rows],
                                     phi[which[rows]])
    nodes = np.stack(np.unravel_index(line[:, 1:3], tuple(around)), -1) - 1
    at = tuple(nodes[:, 0].T)
    e = np.choose(axis_of, [part[at].astype(np.float64) for part in edges])
    inside = within[tuple(np.moveaxis(nodes, -1, 0))]
    # flow into the first node of an edge and out of the second, in addition to e times the difference of the unknown
    flow = e * (np.where(inside[:, 0], 0, phi[which[:, 1]]) - np.where(inside[:, 1], 0, phi[which[:, 2]]) - integrals)
    outer, through = flow_through_cuts(c, lattice, on_engine[0], (engine.array(x), engine.array(y), engine.array(z)),
                                       on_engine[1], engine)
    ends = np.ravel_multi_index(tuple(np.moveaxis(nodes, -1, 0)), lattice.shape)
    return (x, y, z), np.concatenate([*ends.T, outer]), np.concatenate([flow, -flow, -through])


def _free(c: Continuum, lattice: Lattice) -> Values:
    """Return the fraction of the space at each node that is free of the densities of all atoms."""
    result = np.ones(lattice.shape, np.float32)
    width = widths(c)
    chosen = width > 0
    planes = lattice.shape[0]
    launch_kernel(KERNELS["multiply_free_fractions"], planes, "surface", planes_at_once(planes),
           centres=np.ascontiguousarray(c.positions[chosen]), widths=width[chosen], free=result, shape=lattice.shape,
           atoms=int(chosen.sum()), origin=lattice.origin, spacing=lattice.spacing, reach=REACH, core=SOFT_CORE)
    return result


def _integrals(c: Continuum, first: Floats, spacing: Floats, axis: NDArray[np.int64], free: Floats,
               phi: Floats) -> Floats:
    """Return the integrals of (inside / eps - 1) phi_c' along edges, kT/e.

    Parameters
    ----------
    c : Continuum
    first : (E, 3) float64, A
        The first node of each edge.
    spacing : (3,) float64, A
    axis : (E,) int64
    free : (E, 3) float64
        Fraction of the space that is free of densities: at the first end, in the middle, and at the second end.
    phi : (E, 4) float64, kT/e
        phi_c at the node before the edge, at its two ends, and at the node after it.
    """
    from scipy.spatial import cKDTree

    rows, h, charged = np.arange(len(first)), spacing[axis], np.flatnonzero(c.charges)
    middle = first.copy()
    middle[rows, axis] += 0.5 * h
    reach = max(NEAR, NEAR_SPACINGS * float(spacing.max()))
    pairs = cKDTree(middle).sparse_distance_matrix(cKDTree(c.positions[charged]), reach, output_type="ndarray")
    edge, atom = pairs["i"], charged[pairs["j"]]
    away = first[edge] - c.positions[atom]
    own = np.arange(len(edge))
    x, step = away[own, axis[edge]][:, None], h[edge][:, None]
    off = np.maximum((away**2).sum(1, keepdims=True) - x * x, 0)
    factor = (c.constant / c.inside * c.charges[atom])[:, None]
    known = factor / np.maximum(np.sqrt((x + step * np.arange(-1, 3)) ** 2 + off), SOFT_CORE)  # as in phi
    rest = phi - np.stack([np.bincount(edge, part, len(first)) for part in known.T], 1)
    ends = np.array([0.0, 0.5, 1.0])
    a, m, b, d = rest.T
    slopes = np.stack([interpolate_along_edge(a, m, b, d, np.full(len(first), t))[1] for t in ends], 1)
    result: Floats = ((c.inside / c.mixed(free) - 1) * slopes) @ [1 / 6, 4 / 6, 1 / 6]
    # the fraction that the other atoms leave free changes little along the edge, and is interpolated by a parabola
    width = widths(c)[atom][:, None]
    others = free[edge] / _left(np.maximum(np.sqrt((x + step * ends) ** 2 + off), SOFT_CORE), width)  # as in `_free`
    nearest = np.clip(-x / step, 0, 1)
    a, m, b = others.T[..., None]
    # over the distance from the charge, because along an edge that passes it, phi_c' times the density has a step
    for begin, end, side in ((np.zeros_like(nearest), nearest, -1), (nearest, np.ones_like(nearest), 1)):
        low, high = (np.sqrt((x + step * t) ** 2 + off) for t in (begin, end))
        r = np.maximum(low + (high - low) * _NODES, 1e-6)
        t = np.clip((side * np.sqrt(np.maximum(r * r - off, 0)) - x) / step, begin, end)
        left = np.clip(a + t * (4 * m - 3 * a - b) + 2 * t * t * (a - 2 * m + b), 0, 1) * _left(r, width)
        part = (high - low).reshape(-1) * (((c.inside / c.mixed(left) - 1) * -factor / (r * r)) @ _WEIGHTS)
        result += np.bincount(edge, part, len(first))
    return result


def _left(r: Floats, width: Floats) -> Floats:
    """Return the fraction that an atom of a width leaves free at a distance; 1 for a width of 0."""
    widths_away = np.minimum(r, NOTHING_LEFT * width) / np.where(width > 0, width, 1)
    return np.where(width > 0, -np.expm1(-(widths_away**2)), 1.0)


class ChargeKinks:
    """The kinks of the unknown at the charges, caused by the displacement of each; no polynomial interpolates them.

    Parameters
    ----------
    c : Continuum
    """

    def __init__(self, c: Continuum) -> None:
        from scipy.spatial import cKDTree

        self._continuum, self._widths, self._tree = c, widths(c), cKDTree(c.positions)
        #: (N,) fraction that the densities of all other atoms leave free at each atom.
        self._others = np.ones(len(self._widths))
        for start in range(0, len(self._widths), _ATOMS):
            some = c.positions[start : start + _ATOMS]
            pairs = cKDTree(some).sparse_distance_matrix(self._tree, REACH * float(self._widths.max(initial=0.0)),
                                                         output_type="ndarray")
            pairs = pairs[(pairs["i"] + start != pairs["j"]) & (self._widths[pairs["j"]] > 0)]
            with np.errstate(divide="ignore"):
                logs = np.log(_left(pairs["v"], self._widths[pairs["j"]]))
            self._others[start : start + _ATOMS] = np.exp(np.bincount(pairs["i"], logs, len(some)))

    def near(self, points: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the pairs of a point (P, 3) and a charge that are within :data:`KINKED`, as two index arrays."""
        from scipy.spatial import cKDTree

        pairs = cKDTree(points).sparse_distance_matrix(self._tree, KINKED, output_type="ndarray")
        pairs = pairs[self._continuum.charges[pairs["j"]] != 0]
        return pairs["i"], pairs["j"]

    def at(self, atom: NDArray[np.int64], r: Floats) -> Floats:
        """Return the unknown at distances (K, ...), A, from atoms (K,) minus its value at these atoms, kT/e."""
        result: Floats = r * (self.slope(atom, r[..., None] * _NODES) @ _WEIGHTS)
        return result

    def slope(self, atom: NDArray[np.int64], r: Floats) -> Floats:
        """Return the derivative of :meth:`at` with respect to the distance."""
        c, shape = self._continuum, (-1,) + (1,) * (r.ndim - 1)
        factor, others, width = (values[atom].reshape(shape) for values in (
            c.constant / c.inside * c.charges, self._others, self._widths))
        r = np.maximum(r, 1e-6)
        result: Floats = factor * (1 - c.inside / c.mixed(others * _left(r, width))) / (r * r)
        return result
