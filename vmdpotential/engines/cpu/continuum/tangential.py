"""The flow along a molecule's surface, with the kernels of tangential_kernel.py."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build, threads
from vmdpotential.engines.tangential import TERMS, SurfaceFlow

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Planes, outer nodes and nodes that a thread takes at a time.
PLANES, TOGETHER, NODES = 8, 1024, 1000


def flow_along(work: SurfaceFlow) -> tuple[Integers, Floats]:
    """Return nodes and the flows into them; see :class:`vmdpotential.engines.Engine`."""
    kernel, lattice = build.load("tangential_kernel"), work.lattice
    _, ny, nz = lattice.shape
    strides, unit = np.array([ny * nz, nz, 1]), float(lattice.spacing.mean())
    nodes, outer = threads.joined(partial(kernel.near_surface, work.within, work.distances, work.margin, work.reach),
                                  lattice.shape[0], "surface", PLANES)
    within, rows = work.within.ravel(), np.zeros(lattice.size, np.int32)  # memory where nothing is written is not taken
    coefficients = np.empty((len(outer), TERMS - 1), np.float32)
    order, nearer = _neighbours()
    scales = np.repeat([1, 1 / unit, 1 / unit**2], [1, 3, 5]).astype(np.float32)  # for coordinates in A
    threads.run(partial(kernel.fit, outer, within, work.unknown.ravel(), strides, order, nearer,
                        *_in_monomials(*(lattice.spacing / unit).tolist()), work.stiffness.astype(np.float32), scales,
                        work.few, work.enough, rows, coefficients), len(outer), "surface", TOGETHER)
    weights = np.prod(lattice.spacing) / lattice.spacing**2 / unit
    into, out_of, flows = threads.joined(
        partial(kernel.flows, nodes, outer, rows, coefficients, within, work.distances.ravel(), strides,
                lattice.spacing, weights, work.inside, work.outside), len(nodes), "surface", NODES)
    return np.concatenate([into, out_of]), np.concatenate([flows, -flows])


@cache
def _neighbours() -> tuple[Integers, Integers]:
    """Return the 26 nodes around a node and the node itself, nearer ones first, as indices of an array (3, 3, 3).

    Also returned are three neighbours (27, 3) of each that are one step nearer to the middle.
    """
    places = np.stack(np.unravel_index(np.arange(27), (3, 3, 3)), 1) - 1
    sizes = np.abs(places).sum(1)
    nearer = [np.flatnonzero((np.abs(places - place).sum(1) == 1) & (sizes == size - 1))
              for place, size in zip(places, sizes, strict=True)]
    return np.argsort(sizes, kind="stable"), np.array([np.resize(each if len(each) else [13], 3) for each in nearer])


@cache
def _in_monomials(*spacing: float) -> tuple[Integers, NDArray[np.float32], Integers, NDArray[np.float32]]:
    """Return the basis polynomials, and their products, as sums of x^p y^q z^r for nodes around a node.

    There the powers p, q and r are at most 2, as coordinates are -1, 0 or 1. Each of both is an array (T, 2) of the
    numbers of a polynomial and of a monomial, 9 p + 3 q + r, and their factors (T,). The product of polynomials i and
    j >= i has the number i TERMS + j. `spacing` (3,) is in the unit of the polynomials.
    """
    powers = np.stack([np.ones(3), np.arange(-1, 2), np.arange(-1, 2) ** 2])
    inverse = np.linalg.inv(powers)
    x, y, z = (np.stack(np.unravel_index(np.arange(27), (3, 3, 3)), 1) - 1).T * np.reshape(spacing, (3, 1))
    basis = np.stack([np.ones(27), x, y, z, x * y, y * z, z * x, x * x - y * y, 2 * z * z - x * x - y * y])
    products = (basis[:, None] * basis).reshape(-1, 27)
    first, second = np.divmod(np.arange(TERMS**2), TERMS)
    products[first > second] = 0
    results: list[NDArray[np.generic]] = []
    for values in (basis, products):
        factors = np.einsum("nijk,ip,jq,kr->npqr", values.reshape(-1, 3, 3, 3), *[inverse] * 3).reshape(-1, 27)
        terms = np.argwhere(np.abs(factors) > 1e-9)
        results += [terms, factors[tuple(terms.T)].astype(np.float32)]
    return tuple(results)  # type: ignore[return-value]
