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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import threads
from vmdpotential.continuum.molecule import Continuum, Floats
from vmdpotential.continuum.region import planes_at_once
from vmdpotential.engines import Engine
from vmdpotential.engines.jump import EdgeSum
from vmdpotential.grid.lattice import Lattice
from vmdpotential.kernels.launch import KernelFile, call, launch

KERNELS = KernelFile(Path(__file__).with_name("jump.cu"))

Values = NDArray[np.float32]
Places = NDArray[np.int64]

#: Charges nearer to an edge than this many spacings have a closed form there. On the lattice that only gives boundary
#: values, fewer will do: they change DHFR's potential on the finer one by less than 3e-5.
NEAR, NEAR_COARSE = 3.0, 2.5

#: Edges or charges that a thread takes at a time.
EDGES_PER_TASK = 20_000


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
    """Return value, slope, bend and flow (4, E) of phi_c, kT/e, see :class:`vmdpotential.engines.Engine`."""
    return engine.potential_on_edges(EdgeSum(
        lattice, cut.inner, cut.outer, cut.share, cut.line, c.positions, c.constant / c.inside * c.charges,
        near * float(lattice.spacing.max())))


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
