"""What flows into nodes because the unknown of the equation jumps at the surface of the molecule.

Outside, the unknown is the potential phi; inside it is w = phi - phi_c, the potential without that which the charges
make by themselves there (I. L. Chern, J.-G. Liu, W.-C. Wang, Methods Appl. Anal. 10 (2003) 309). An edge from a node a
inside to b outside has the conductance e of its two parts in series (M. E. Davis, J. A. McCammon, J. Comput. Chem. 12
(1991) 909), and phi_c on it is known, so that only w and phi outside have to be straight lines: the flow at the surface
is e (phi_b - w_a - phi_c + t phi_c'), with t the part of the edge inside. It enters b's cell, less what phi_c itself
changes between the surface and the face of the cell, and the sum of all these is exactly the charge (Gauss' law).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from vmdpotential.continuum.molecule import Continuum, Floats
from vmdpotential.continuum.region import planes_at_once
from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice, bounds
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, call, launch

KERNELS = KernelFile(Path(__file__).with_name("jump.cu"))

Values = NDArray[np.float32]
Places = NDArray[np.int64]
Scalar = TypeVar("Scalar", float, Floats)

#: Charges nearer to an edge than this many spacings have a closed form there. On the lattice that only gives boundary
#: values, fewer will do: they change DHFR's potential on the finer one by less than 3e-5.
NEAR, NEAR_COARSE = 3.0, 2.5

#: Edges or charges that a thread takes at a time, and edges on which it sums the potential of charges.
EDGES_PER_TASK, EDGES_PER_SUM = 20_000, 500

#: Largest number of cubes along an axis.
MAX_CUBES = 256


class CutEdges(NamedTuple):
    """The edges (E,) that the surface cuts."""

    #: (E,) int64: the nodes inside and outside, as places in a flat array.
    inner: Places
    outer: Places
    #: (E,) float64: the part of each edge that is inside, its conductance, and the conductance of an edge inside.
    share: Floats
    conductance: Floats
    inside: Floats
    #: (E, 4) float32: phi_c at the node before the inner one, at both ends, and at the node after the outer one, kT/e.
    line: Values


def sources_of_jump(c: Continuum, lattice: Lattice, distances: Values, edges: tuple[Values, Values, Values],
                    phi: Values, engine: Engine, near: float = NEAR) -> tuple[Places, Floats]:
    """Return the nodes that cut edges end at, as places in a flat array, and what flows into them by the jump.

    `phi` (nx + 2, ny + 2, nz + 2) is phi_c, kT/e, at the nodes and one more on each side. Nodes on the faces of the
    lattice have their potential, and are left out.

    Where the surface cuts an edge, the flow of the reaction potential is continuous on the inner node's side; what the
    charges add to it through the face between both nodes is their own flow, so that none of it is lost.
    """
    astray, into_astray = sources_of_outer_charges(c, lattice, distances)
    cut, nodes = _cut_edges(c, lattice, distances, edges, phi, len(astray))
    count, flows = len(cut.share), np.empty(len(nodes))
    launch(KERNELS["find_cut_flows"], count, "surface", EDGES_PER_TASK, share=cut.share, conductance=cut.conductance,
           inside=cut.inside, known=_known(c, lattice, cut, engine, near), into_inner=flows[:count],
           into_outer=flows[count : 2 * count], edges=count)
    nodes[2 * count :], flows[2 * count :] = astray, into_astray
    return summed(lattice, (nodes, flows))


def flow_through_cuts(c: Continuum, lattice: Lattice, distances: Values, edges: tuple[Values, Values, Values],
                      phi: Values, engine: Engine) -> tuple[Places, Floats]:
    """Return the outer nodes (E,) of cut edges, as places in a flat array, and phi_c's flow from them (E,)."""
    cut, _ = _cut_edges(c, lattice, distances, edges, phi)
    return cut.outer, cut.inside * _known(c, lattice, cut, engine)[3]


def summed(lattice: Lattice, *lists: tuple[Places, Floats]) -> tuple[Places, Floats]:
    """Return the nodes with flows, each once and increasing, and the sum of the flows into each of them.

    Nodes on the faces of the lattice are left out. Each of `lists` is an array of nodes, as places in a flat array, and
    one of flows into them.
    """
    planes, plane = lattice.shape[0], lattice.shape[1] * lattice.shape[2]
    nodes, flows = (np.concatenate(each) for each in zip(*lists, strict=True))
    of = (nodes // plane).astype(np.min_scalar_type(planes))
    order, grain = np.argsort(of, kind="stable"), planes_at_once(planes)  # of small integers, by radix
    ends = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=planes))])
    result, sums, counts = np.empty(len(nodes), np.int64), np.empty(len(nodes)), np.zeros(planes, np.int64)
    launch(KERNELS["sum_flows"], planes, "surface", grain, nodes=nodes[order], ends=ends, flows=flows[order],
           total=np.zeros((-(-planes // grain), plane)), result=result, sums=sums, counts=counts, shape=lattice.shape,
           grain=grain)
    filled = np.arange(len(nodes)) - np.repeat(ends[:-1], np.diff(ends)) < np.repeat(counts, np.diff(ends))
    return result[filled], sums[filled]


def sources_of_outer_charges(c: Continuum, lattice: Lattice, distances: Values) -> tuple[Places, Floats]:
    """Return the outer nodes in whose cells charges are, as places in a flat array, and what flows from these."""
    positions, charges = np.ascontiguousarray(c.positions), np.ascontiguousarray(c.charges)

    def part(first: int, last: int) -> tuple[Places, Floats]:
        nodes, chosen, count = np.empty(last - first, np.int64), np.empty(last - first), np.zeros(1, np.int64)
        call(KERNELS["find_outer_charges"], first, last, positions=positions, charges=charges, distances=distances,
             nodes=nodes, chosen=chosen, count=count, shape=lattice.shape, origin=lattice.origin,
             spacing=lattice.spacing)
        return nodes[: count[0]], chosen[: count[0]]

    nodes, charges = threads.joined(part, len(charges), "surface", EDGES_PER_TASK)
    return nodes, 4 * np.pi * c.constant / float(lattice.spacing.mean()) * charges


def _known(c: Continuum, lattice: Lattice, cut: CutEdges, engine: Engine, near: float = NEAR) -> Floats:
    """Return phi_c, its first and second derivatives per edge, and its flow (4, E), kT/e, on E cut edges.

    They are interpolated along the edges, but for near charges, which have closed forms. The flow is the mean of the
    derivative over the face of the nodes' cells between both ends. All but phi_c are in the direction from the inner to
    the outer end.
    """
    reach, edges = near * float(lattice.spacing.max()), len(cut.share)
    charges, starts, low, side, counts = in_cubes(c.positions, c.constant / c.inside * c.charges, reach)
    with engine.room(charges.nbytes + starts.nbytes + 80 * edges):
        out = engine.empty((4, edges), np.float64)
        engine.launch(KERNELS["find_potential_on_edge"], edges, "surface", EDGES_PER_SUM, inner=cut.inner,
                      outer=cut.outer, share=cut.share, line=cut.line, charges=charges, starts=starts, out=out,
                      shape=lattice.shape, counts=counts, edges=edges, origin=lattice.origin, spacing=lattice.spacing,
                      low=low, side=side, near=reach)
        return cast(Floats, engine.to_host(out))


def in_cubes(positions: Floats, charges: Floats,
             near: float) -> tuple[Floats, Places, Floats, float, Places]:
    """Return charges that are not 0 sorted by cubes whose side is at least `near`.

    Positions and charges (N, 4); the index (C + 1,) of the first charge of each cube, with z changing fastest; the
    corner (3,) of the first cube, A; the side of a cube, A; and the number of cubes (3,) along each axis.
    """
    low, high = bounds(positions) if len(positions) else (np.zeros(3), np.zeros(3))
    side = max(near, float((high - low).max()) / MAX_CUBES)
    counts = ((high - low) / side).astype(np.int64) + 1
    starts, result = np.zeros(counts.prod() + 1, np.int64), np.empty((len(charges), 4))
    call(KERNELS["sort_charges"], 0, 1, positions=np.ascontiguousarray(positions),
         charges=np.ascontiguousarray(charges), starts=starts, places=np.empty_like(starts),
         numbers=np.empty(len(charges), np.int64), out=result, counts=counts, count=len(charges),
         cubes=len(starts) - 1, low=low, side=side)
    return result[: starts[-1]], starts, low, side, counts


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


def _cut_edges(c: Continuum, lattice: Lattice, distances: Values, edges: tuple[Values, Values, Values], phi: Values,
               more: int = 0) -> tuple[CutEdges, Places]:
    """Return the edges that the surface cuts, and their inner and outer nodes in one array with room for `more`."""
    weights = np.prod(lattice.spacing) / lattice.spacing**2 / lattice.spacing.mean()
    planes, numbers = lattice.shape[0], np.zeros(lattice.shape[0] * lattice.shape[1] + 1, np.int64)
    launch(KERNELS["count_cut_edges"], planes, "surface", planes_at_once(planes), distances=distances,
           numbers=numbers[1:], shape=lattice.shape)
    ends = np.cumsum(numbers)
    count = int(ends[-1])
    nodes, line = np.empty(2 * count + more, np.int64), np.empty((count, 4), np.float32)
    share, conductance, inside = np.empty((3, count))
    cut = CutEdges(nodes[:count], nodes[count : 2 * count], share, conductance, inside, line)
    x, y, z = edges
    launch(KERNELS["find_cut_edges"], planes, "surface", planes_at_once(planes), **cut._asdict(), distances=distances,
           x=x, y=y, z=z, phi=phi, begins=ends, shape=lattice.shape, own=c.inside * weights)
    return cut, nodes
