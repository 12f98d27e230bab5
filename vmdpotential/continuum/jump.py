"""What flows into nodes because the unknown of the equation jumps at the surface of the molecule.

Outside, the unknown is the potential phi; inside it is w = phi - phi_c, the potential without that which the charges
make by themselves there (I. L. Chern, J.-G. Liu, W.-C. Wang, Methods Appl. Anal. 10 (2003) 309). An edge from a node a
inside to b outside has the conductance e of its two parts in series (M. E. Davis, J. A. McCammon, J. Comput. Chem. 12
(1991) 909), and phi_c on it is known, so that only w and phi outside have to be straight lines: the flow at the surface
is e (phi_b - w_a - phi_c + t phi_c'), with t the part of the edge inside. It enters b's cell, less what phi_c itself
changes between the surface and the face of the cell, and the sum of all these is exactly the charge (Gauss' law).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build, threads
from vmdpotential.continuum.molecule import Continuum, Floats
from vmdpotential.continuum.region import Cubes, by_planes
from vmdpotential.grid.lattice import Lattice

Values = NDArray[np.float32]
Scalar = TypeVar("Scalar", float, Floats)

#: Charges nearer to an edge than this many spacings have a closed form there.
NEAR = 3.0

#: Edges that a thread takes at a time.
TOGETHER = 5000


class CutEdges(NamedTuple):
    """The edges (E,) that the surface cuts."""

    #: (E,) int64: the nodes inside and outside, as places in a lattice that has one more node on each side.
    inner: NDArray[np.int64]
    outer: NDArray[np.int64]
    #: (E,) float64: the part of each edge that is inside, its conductance, and the conductance of an edge inside.
    share: Floats
    conductance: Floats
    inside: Floats


def sources_of_jump(c: Continuum, lattice: Lattice, distances: Values, edges: tuple[Values, Values, Values],
                    phi: Values) -> tuple[NDArray[np.int64], Floats]:
    """Return the nodes that cut edges end at, as places in a flat array, and what flows into them by the jump.

    `phi` (nx + 2, ny + 2, nz + 2) is phi_c, kT/e, at the nodes and one more on each side.

    Where the surface cuts an edge, the flow of the reaction potential is continuous on the inner node's side; what the
    charges add to it through the face between both nodes is their own flow, so that none of it is lost.
    """
    inner, outer, t, e, eps = cut = _cut_edges(c, lattice, distances, edges)
    value, slope, bend, through = _known(c, lattice, cut, phi)
    # e times this is what flows less where the potential is a straight line on both sides of the surface, but for the
    # charges' own; outside that bends by the ratio of the permittivities
    jump = e * (value - t * slope + 0.5 * (eps / e - t) * (1 - t) * bend) + eps * slope
    astray, flows = sources_of_outer_charges(c, lattice, distances)
    return at_free_nodes(lattice, *summed(np.concatenate([inner, outer, astray]), np.concatenate(
        [-jump, jump - eps * through, flows])))


def flow_through_cuts(c: Continuum, lattice: Lattice, distances: Values, edges: tuple[Values, Values, Values],
                      phi: Values) -> tuple[NDArray[np.int64], Floats]:
    """Return the outer nodes (E,) of cut edges, as places in a larger lattice, and phi_c's flow from them (E,)."""
    cut = _cut_edges(c, lattice, distances, edges)
    return cut.outer, cut.inside * _known(c, lattice, cut, phi)[3]


def summed(nodes: NDArray[np.int64], flows: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return the nodes with flows, each once and increasing, and the sum of the flows into each of them."""
    first = int(nodes.min()) if len(nodes) else 0
    sums = np.bincount(nodes - first, flows)
    result = np.flatnonzero(sums)
    return result + first, sums[result].astype(np.float64)


def at_free_nodes(lattice: Lattice, ends: NDArray[np.int64], sums: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return places in a larger lattice as those in the lattice, with what flows there; none of its faces."""
    nodes = np.stack(np.unravel_index(ends, tuple(np.array(lattice.shape) + 2)), 1) - 1
    free = ((nodes > 0) & (nodes < np.array(lattice.shape) - 1)).all(1)  # those on the faces have their potential
    return np.ravel_multi_index(tuple(nodes[free].T), lattice.shape), sums[free]


def _known(c: Continuum, lattice: Lattice, cut: CutEdges, phi: Values) -> Floats:
    """Return what :func:`along` has of phi_c, (4, E), also next to charges."""
    result, near = np.empty((4, len(cut.share))), NEAR * float(lattice.spacing.max())
    charged = np.flatnonzero(c.charges)
    cubes = Cubes(c.positions[charged], near)
    charged = charged[cubes.order]
    threads.run(partial(
        build.load("jump_kernel").known, cut.inner, cut.outer, cut.share, phi.ravel(), np.array(phi.shape),
        lattice.origin - lattice.spacing, lattice.spacing, np.ascontiguousarray(c.positions[charged]),
        c.constant / c.inside * c.charges[charged], cubes.starts, cubes.low, cubes.side, cubes.counts, near, result),
        len(cut.share), "surface", TOGETHER)
    return result


def sources_of_outer_charges(c: Continuum, lattice: Lattice,
                             distances: Values) -> tuple[NDArray[np.int64], Floats]:
    """Return the outer nodes in whose cells charges are, as places in a larger lattice, and what flows from these."""
    cell = np.rint((c.positions - lattice.origin) / lattice.spacing).astype(np.int64)
    chosen = (c.charges != 0) & ((cell >= 0) & (cell < lattice.shape)).all(1)
    chosen[chosen] = distances[tuple(cell[chosen].T)] >= 0
    places = np.ravel_multi_index(tuple(cell[chosen].T + 1), tuple(np.array(lattice.shape) + 2))
    return places, 4 * np.pi * c.constant / float(lattice.spacing.mean()) * c.charges[chosen]


def _cut_edges(c: Continuum, lattice: Lattice, distances: Values, edges: tuple[Values, Values, Values]) -> CutEdges:
    """Return the edges that the surface cuts."""
    kernel, weights = build.load("jump_kernel"), np.prod(lattice.spacing) / lattice.spacing**2 / lattice.spacing.mean()
    numbers = np.zeros(lattice.shape[0] + 1, np.int64)
    by_planes(partial(kernel.count_cut, distances, numbers[1:]), lattice)
    ends = np.cumsum(numbers)
    nodes, numbers_of_edges = np.empty((2, ends[-1]), np.int64), np.empty((3, ends[-1]))
    by_planes(partial(kernel.cut, distances, *edges, c.inside * weights, ends, *nodes, *numbers_of_edges), lattice)
    return CutEdges(*nodes, *numbers_of_edges)


def along(a: Scalar, b: Scalar, c: Scalar, d: Scalar, t: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return what is known of a potential at t between the middle two of four nodes in line, by its values there.

    Its value, its first and second derivatives per edge by a cubic polynomial; and the mean of its derivative over the
    face of the nodes' cells between both, to the fourth order for a potential without sources.
    """
    third = d - 3 * c + 3 * b - a
    second, middle = 0.5 * (a - b - c + d), t - 0.5  # in the edge's middle
    first, mean = c - b - third / 24, 0.5 * (b + c) - second / 8
    value = mean + middle * (first + middle * (second / 2 + middle * third / 6))
    slope = first + middle * (second + middle * third / 2)
    return value, slope, second + middle * third, c - b - third / 12
