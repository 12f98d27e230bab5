"""Correction for the flow along the surface of the molecule.

A lattice approximates the surface by the faces between the cells of inner and outer nodes. The flow across the surface
is the same on both sides of it; the flow along it is proportional to the permittivity of its side. The equation without
this correction treats each face as if it were inside or outside as a whole, and takes the potential along an edge that
the surface cuts as if it only changed across the surface. Two terms of the first order in the spacing are missing:

- Through a face of which the fraction f is in the solvent goes the additional flow f (outside - inside) E, with E the
  component of the potential's gradient along the surface in the direction of the face's normal; the equation has all
  of it between two outer nodes and none otherwise. What enters the solvent's part of an inner node's cell belongs to
  the outer node next to it.
- Between the surface and the outer node of a cut edge, (1 - t) h away, the potential also changes by (1 - t) h (1 -
  inside / outside) E.

Both are added as sources that are computed from a first solution (deferred correction: V. Pereyra, Numer. Math. 10
(1967) 316). The gradient at the surface is that of polynomials of the second degree that solve Laplace's equation,
fitted to the solution at the outer nodes around each outer node.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build, threads
from vmdpotential.continuum.molecule import Continuum, Floats
from vmdpotential.continuum.region import by_planes
from vmdpotential.grid.lattice import Lattice

Values = NDArray[np.float32]
Integers = NDArray[np.int64]

#: Layers of nodes at the faces of the lattice whose edges are not corrected.
MARGIN = 3

#: Largest distance, in spacings, of an outer node whose cell the surface meets.
REACH = 1.25

#: Nodes that a thread takes at a time.
TOGETHER = 5000

#: Numbers of outer nodes around a node up to which the correction is 0, and from which on it is complete: in narrow
#: pockets of the solvent, few nodes do not determine a polynomial.
FEW, ENOUGH = 9, 14

#: Regularisation of coefficients where few nodes are outside: of the constant, the gradient, and the second degree.
STIFFNESS = np.repeat([1e-6, 0.1, 3.0], [1, 3, 5])


def sources_along(c: Continuum, lattice: Lattice, distances: Values, within: NDArray[np.bool_], outside: Floats,
                  edges: tuple[Values, Values, Values], unknown: Values) -> tuple[Integers, Floats]:
    """Return nodes, as indices of a flat array, and the missing flow into each of them for a solution, kT/e.

    Parameters
    ----------
    c : Continuum
    lattice : Lattice
    distances : (nx, ny, nz) float32, A
        Of nodes to the surface, negative inside.
    within : (nx, ny, nz) bool
        Which nodes are inside.
    outside : (nz,) float64
        Permittivity around the molecule, at each height.
    edges : three (nx, ny, nz) float32
        Conductances.
    unknown : (nx, ny, nz) float32, kT/e
        The potential outside.
    """
    kernel, (_, ny, nz) = build.load("tangential_kernel"), lattice.shape
    strides, unit = np.array([ny * nz, nz, 1]), float(lattice.spacing.mean())
    weights = np.prod(lattice.spacing) / lattice.spacing**2 / unit
    near = np.zeros(lattice.shape, np.bool_)
    by_planes(partial(kernel.near_surface, within, MARGIN, near), lattice)
    nodes = np.flatnonzero(near)
    del near
    inner = within.ravel()
    outer = nodes[(distances.ravel()[nodes] < REACH * lattice.spacing.max()) & ~inner[nodes]]
    around = np.stack(np.meshgrid(*[np.arange(-1, 2)] * 3, indexing="ij"), -1).reshape(-1, 3)
    around = around[np.argsort(np.abs(around).sum(1), kind="stable")]
    x, y, z = (around * (lattice.spacing / unit)).T
    basis = np.stack([np.ones(len(x)), x, y, z, x * y, y * z, z * x, x * x - y * y, 2 * z * z - x * x - y * y], 1)
    products = (basis[:, :, None] * basis[:, None]).reshape(len(x), -1)
    coefficients = np.empty((len(outer), kernel.TERMS))
    threads.run(partial(kernel.fit, outer, inner, unknown.ravel(), around @ strides, _nearer(around), basis,
                        products, STIFFNESS, FEW, ENOUGH, coefficients), len(outer), "surface", TOGETHER)
    rows = np.full(lattice.size, -1, np.int32)
    rows[outer] = np.arange(len(outer))
    parts = {}

    def add(first: int, last: int) -> None:
        size = 6 * (last - first)
        ends, flows = np.empty((size, 2), np.int64), np.empty(size)
        count = kernel.flows(nodes, rows, coefficients, inner, distances.ravel(), strides, lattice.spacing, unit,
                             weights, c.inside, outside, *(each.ravel() for each in edges), ends, flows, first, last)
        parts[first] = ends[:count], flows[:count]

    threads.run(add, len(nodes), "surface", TOGETHER)
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0)
    ends, flows = (np.concatenate(each) for each in zip(*(parts[first] for first in sorted(parts)), strict=True))
    return ends.T.ravel(), np.concatenate([flows, -flows])


def _nearer(around: Integers) -> Integers:
    """Return (27, 3) rows of the neighbours of nodes around a node that are one step nearer to it, three for each."""
    steps = np.abs(around[:, None] - around).sum(2)
    result = []
    for n, size in enumerate(np.abs(around).sum(1)):
        rows = np.flatnonzero((steps[n] == 1) & (np.abs(around).sum(1) == size - 1))
        result.append(np.resize(rows if len(rows) else [0], 3))
    return np.array(result)
