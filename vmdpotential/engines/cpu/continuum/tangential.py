"""The flow along a molecule's surface, with the kernels of continuum/tangential.cu."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import threads
from vmdpotential.engines.tangential import TERMS, SurfaceFlow
from vmdpotential.kernels.launch import KernelFile, call, launch

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

KERNELS = KernelFile(Path(__file__).parents[3] / "continuum" / "tangential.cu")

#: Planes, outer nodes and nodes that a thread takes at a time.
PLANES, NODES_PER_FIT, NODES_PER_FLOW = 8, 1024, 1000


def flow_along(work: SurfaceFlow) -> tuple[Integers, Floats]:
    """Return nodes and the flows into them; see :class:`vmdpotential.engines.Engine`."""
    lattice = work.lattice
    _, ny, nz = lattice.shape
    strides, unit = np.array([ny * nz, nz, 1]), float(lattice.spacing.mean())

    def near_surface(first: int, last: int) -> tuple[Integers, Integers]:
        nodes, outer = np.empty((2, (last - first) * ny * nz), np.int64)
        counts = np.zeros(2, np.int64)
        call(KERNELS["find_near_surface"], first, last, within=work.within, distances=work.distances, nodes=nodes,
             outer=outer, counts=counts, inner=np.empty(nz, np.uint8), shape=lattice.shape, margin=work.margin,
             reach=work.reach)
        return nodes[: counts[0]].copy(), outer[: counts[1]].copy()

    nodes, outer = threads.joined(near_surface, lattice.shape[0], "surface", PLANES)
    rows = np.zeros(lattice.size, np.int32)  # memory where nothing is written is not taken
    coefficients = np.empty((len(outer), TERMS - 1), np.float32)
    order, nearer = _neighbours()
    scales = np.repeat([1, 1 / unit, 1 / unit**2], [1, 3, 5]).astype(np.float32)  # for coordinates in A
    terms, factors, product_terms, product_factors = _in_monomials(*(lattice.spacing / unit).tolist())
    launch(KERNELS["fit_polynomials"], len(outer), "surface", NODES_PER_FIT, nodes=outer, within=work.within,
           values=work.unknown, order=order, nearer=nearer, terms=terms, factors=factors, product_terms=product_terms,
           product_factors=product_factors, stiffness=work.stiffness.astype(np.float32), scales=scales, rows=rows,
           out=coefficients, strides=strides, term_count=len(terms), product_count=len(product_terms), few=work.few,
           enough=work.enough)
    weights = np.prod(lattice.spacing) / lattice.spacing**2 / unit

    def flows(first: int, last: int) -> tuple[Integers, Integers, Floats]:
        into, out_of = np.empty((2, 6 * (last - first)), np.int64)
        values, count = np.empty(6 * (last - first)), np.zeros(1, np.int64)
        call(KERNELS["find_flows"], first, last, nodes=nodes, outer=outer, rows=rows, coefficients=coefficients,
             within=work.within, distances=work.distances, outside=work.outside, into=into, out_of=out_of,
             flows=values, count=count, strides=strides, spacing=lattice.spacing, weights=weights, inside=work.inside)
        return into[: count[0]].copy(), out_of[: count[0]].copy(), values[: count[0]].copy()

    into, out_of, values = threads.joined(flows, len(nodes), "surface", NODES_PER_FLOW)
    return np.concatenate([into, out_of]), np.concatenate([values, -values])


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
        terms = np.ascontiguousarray(np.argwhere(np.abs(factors) > 1e-9))
        results += [terms, factors[tuple(terms.T)].astype(np.float32)]
    return tuple(results)  # type: ignore[return-value]
