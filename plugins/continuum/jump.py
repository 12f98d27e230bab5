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
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.kernels.launch import KernelFile
from vmdpotential.surfaces.region import WARP_THREADS, PointCubes, planes_at_once

from .molecule import Continuum, Floats

KERNELS = KernelFile(Path(__file__).with_name("jump.cu"))

Values = NDArray[np.float32]
Places = NDArray[np.int64]
Scalar = TypeVar("Scalar", float, Floats)

#: Charges nearer to an edge than this many spacings have a closed form there. On the lattice that only gives boundary
#: values, fewer will do: they change DHFR's potential on the finer one by less than 3e-5.
CLOSED_FORM_SPACINGS, COARSE_CLOSED_FORM_SPACINGS = 3.0, 2.5

#: Edges or charges that a thread takes at a time, and edges on which it sums the potential of charges.
EDGES_PER_TASK, EDGES_PER_SUM = 20_000, 2000


#: Units of sums of flows in 1 kT/e, for charges up to 1 e.
UNITS = 2.0**32


class CutEdges(NamedTuple):
    """The edges (E,) that the surface cuts, in arrays of an engine."""

    #: (E,) int64: the nodes inside and outside, as places in a flat array.
    inner: Any
    outer: Any
    #: (E,) float64: the part of each edge that is inside, its conductance, and the conductance of an edge inside.
    share: Any
    conductance: Any
    inside: Any


class NodeFlows:
    """What flows into the nodes of a lattice, kT/e, summed in whole units, whose sums do not depend on the order.

    Parameters
    ----------
    c : Continuum
    lattice : Lattice
    engine : Engine
    """

    def __init__(self, c: Continuum, lattice: Lattice, engine: Engine) -> None:
        self._continuum, self._lattice, self._engine = c, lattice, engine
        self._sums = engine.zeros(lattice.size, np.int64)
        self._units = UNITS / max(1.0, float(np.abs(c.charges).max(initial=0.0)))

    def add_jump(self, cut: CutEdges, phi: Any, near: float = CLOSED_FORM_SPACINGS) -> None:
        """Add what the jump lets flow into the ends of the edges that the surface cuts, all in arrays of the engine.

        `phi` (nx + 2, ny + 2, nz + 2) is phi_c, kT/e, at the nodes and one more on each side.

        Where the surface cuts an edge, the flow of the reaction potential is continuous on the inner node's side; what
        the charges add to it through the face between both nodes is their own flow, so that none of it is lost.
        """
        known = _known(self._continuum, self._lattice, cut, phi, self._engine, near)
        self._add("add_cut_flows", len(cut.share), share=cut.share, inner=cut.inner, outer=cut.outer,
                  conductance=cut.conductance, inside=cut.inside, known=known, edges=len(cut.share))

    def add_outer_charges(self, distances: Any) -> None:
        """Add what flows from charges in the cells of outer nodes."""
        c, lattice, charged = self._continuum, self._lattice, np.flatnonzero(self._continuum.charges)
        charges = 4 * np.pi * c.constant / float(lattice.spacing.mean()) * c.charges[charged]
        self._add("add_outer_charges", len(charges), positions=c.positions[charged], charges=charges,
                  distances=distances, shape=lattice.shape, origin=lattice.origin, spacing=lattice.spacing)

    def add_listed(self, nodes: Places, flows: Floats) -> None:
        """Add flows (N,) into nodes (N,), places in a flat array, any of which may be listed several times."""
        self._add("add_listed_flows", len(nodes), nodes=nodes, flows=flows)

    def write(self, sources: Any) -> None:
        """Write the sums to an array (nx, ny, nz) float32 of the engine; 0 at the faces of the lattice."""
        shape = self._lattice.shape
        self._engine.launch(KERNELS["convert_flows"], (shape[0], self._lattice.size), "surface",
                            planes_at_once(shape[0]), sums=self._sums, units=self._units, sources=sources, shape=shape)

    def _add(self, name: str, count: int, /, **values: Any) -> None:
        self._engine.launch(KERNELS[name], count, "surface", EDGES_PER_TASK, sums=self._sums, units=self._units,
                            **values)


def flow_through_cuts(c: Continuum, lattice: Lattice, distances: Any, edges: tuple[Any, Any, Any], phi: Any,
                      engine: Engine) -> tuple[Places, Floats]:
    """Return the outer nodes (E,) of cut edges, as places in a flat array, and phi_c's flow from them (E,)."""
    cut = find_cut_edges(c, lattice, distances, edges, engine)
    known = engine.to_host(_known(c, lattice, cut, phi, engine))
    return engine.to_host(cut.outer), engine.to_host(cut.inside) * known[3]


def _known(c: Continuum, lattice: Lattice, cut: CutEdges, phi: Any, engine: Engine,
           near: float = CLOSED_FORM_SPACINGS) -> Any:
    """Return phi_c, its first and second derivatives per edge, and its flow (4, E), kT/e, on E cut edges.

    They are interpolated along the edges, but for near charges, which have closed forms. The flow is the mean of the
    derivative over the face of the nodes' cells between both ends. All but phi_c are in the direction from the inner to
    the outer end.
    """
    reach, edges = near * float(lattice.spacing.max()), len(cut.share)
    charged = np.flatnonzero(c.charges)
    cubes = PointCubes(c.positions[charged], reach)
    rows = charged[cubes.order]
    charges = np.column_stack([c.positions[rows], c.constant / c.inside * c.charges[rows]])
    out = engine.empty((4, edges), np.float64)
    engine.launch(KERNELS["find_potential_on_edge"], edges, "surface", EDGES_PER_SUM, inner=cut.inner, outer=cut.outer,
                  share=cut.share, phi=phi, charges=charges, starts=cubes.starts, out=out, shape=lattice.shape,
                  counts=cubes.counts, edges=edges, origin=lattice.origin, spacing=lattice.spacing, low=cubes.low,
                  side=cubes.side, near=reach)
    return out


def interpolate_along_edge(a: Scalar, b: Scalar, c: Scalar, d: Scalar, t: Scalar) -> tuple[Scalar, Scalar, Scalar,
                                                                                           Scalar]:
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


def find_cut_edges(c: Continuum, lattice: Lattice, distances: Any, edges: tuple[Any, Any, Any],
                   engine: Engine) -> CutEdges:
    """Return the edges that the surface cuts, from the distances of nodes to it and the conductances of all edges."""
    weights = np.prod(lattice.spacing) / lattice.spacing**2 / lattice.spacing.mean()
    planes, rows = lattice.shape[0], lattice.shape[0] * lattice.shape[1]
    elements, grain = (planes, WARP_THREADS * rows), planes_at_once(planes)
    numbers = engine.empty(rows, np.int64)
    engine.launch(KERNELS["count_cut_edges"], elements, "surface", grain, distances=distances, numbers=numbers,
                  shape=lattice.shape)
    ends = np.zeros(rows + 1, np.int64)
    np.cumsum(engine.to_host(numbers), out=ends[1:])
    count = int(ends[-1])
    share, conductance, inside = (engine.empty(count, np.float64) for _ in range(3))
    cut = CutEdges(engine.empty(count, np.int64), engine.empty(count, np.int64), share, conductance, inside)
    x, y, z = edges
    engine.launch(KERNELS["find_cut_edges"], elements, "surface", grain, **cut._asdict(), distances=distances, x=x, y=y,
                  z=z, begins=ends, shape=lattice.shape, own=c.inside * weights)
    return cut
