"""What flows into nodes because the unknown of the equation jumps at the surface of the molecule.

Outside, the unknown is the potential phi; inside it is w = phi - phi_c, the potential without that which the charges
make by themselves there (I. L. Chern, J.-G. Liu, W.-C. Wang, Methods Appl. Anal. 10 (2003) 309). An edge from a node a
inside to b outside has the conductance e of its two parts in series (M. E. Davis, J. A. McCammon, J. Comput. Chem. 12
(1991) 909), and phi_c on it is known, so that only w and phi outside have to be straight lines: the flow at the surface
is e (phi_b - w_a - phi_c + t phi_c'), with t the part of the edge inside. It enters b's cell, less what phi_c itself
changes between the surface and the face of the cell, and the sum of all these is exactly the charge (Gauss' law).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.continuum.molecule import Continuum, Floats
from vmdpotential.grid.lattice import Lattice

Values = NDArray[np.float32]

#: Charges nearer to an edge than this many spacings have a closed form there.
NEAR = 3.0

#: Pairs of edges and charges that are computed together, and about how many charges are in 1 A^3 around an edge.
TOGETHER, DENSITY = 1_000_000, 0.4


def sources_of_jump(c: Continuum, lattice: Lattice, distances: Values, edges: tuple[Values, Values, Values],
                    phi: Values) -> tuple[NDArray[np.int64], Floats]:
    """Return the nodes that cut edges end at, as places in a flat array, and what flows into them by the jump.

    `phi` (nx + 2, ny + 2, nz + 2) is phi_c, kT/e, at the nodes and one more on each side.

    Where the surface cuts an edge, the flow of the reaction potential is continuous on the inner node's side; what the
    charges add to it through the face between both nodes is their own flow, so that none of it is lost.
    """
    line, t, e, eps = _cut_edges(c, lattice, distances, edges)
    value, slope, bend, through = _known(c, lattice, line, t, phi)
    # e times this is what flows less where the potential is a straight line on both sides of the surface, but for the
    # charges' own; outside that bends by the ratio of the permittivities
    jump = e * (value - t * slope + 0.5 * (eps / e - t) * (1 - t) * bend) + eps * slope
    astray, flows = sources_of_outer_charges(c, lattice, distances)
    ends, which = np.unique(np.concatenate([line[:, 1], line[:, 2], astray]), return_inverse=True)
    sums = np.bincount(which, np.concatenate([-jump, jump - eps * through, flows]), len(ends))
    return at_free_nodes(lattice, ends, sums)


def flow_through_cuts(c: Continuum, lattice: Lattice, distances: Values, edges: tuple[Values, Values, Values],
                      phi: Values) -> tuple[NDArray[np.int64], Floats]:
    """Return the outer nodes (E,) of cut edges, as places in a larger lattice, and phi_c's flow from them (E,)."""
    line, t, _, eps = _cut_edges(c, lattice, distances, edges)
    return line[:, 2], eps * _known(c, lattice, line, t, phi)[3]


def at_free_nodes(lattice: Lattice, ends: NDArray[np.int64], sums: NDArray[Any]) -> tuple[NDArray[np.int64], Floats]:
    """Return places in a larger lattice as those in the lattice, with what flows there; none of its faces."""
    nodes = np.stack(np.unravel_index(ends, tuple(np.array(lattice.shape) + 2)), 1) - 1
    free = ((nodes > 0) & (nodes < np.array(lattice.shape) - 1)).all(1)  # those on the faces have their potential
    return np.ravel_multi_index(tuple(nodes[free].T), lattice.shape), np.asarray(sums[free], np.float64)


def _known(c: Continuum, lattice: Lattice, line: NDArray[np.int64], t: Floats, phi: Values) -> Floats:
    """Return what :func:`along` has of phi_c, (4, E), also next to charges."""
    known: Floats = np.stack(along(phi.ravel()[line].astype(np.float64), t))
    count = max(1000, int(TOGETHER / (DENSITY * (NEAR * lattice.spacing.max()) ** 3)))
    for start in range(0, len(line), count):
        rows = slice(start, start + count)
        known[:, rows] += c.constant / c.inside * _of_near_charges(c, lattice, line[rows], t[rows])
    return known


def sources_of_outer_charges(c: Continuum, lattice: Lattice,
                             distances: Values) -> tuple[NDArray[np.int64], Floats]:
    """Return the outer nodes in whose cells charges are, as places in a larger lattice, and what flows from these."""
    cell = np.rint((c.positions - lattice.origin) / lattice.spacing).astype(np.int64)
    chosen = (c.charges != 0) & ((cell >= 0) & (cell < lattice.shape)).all(1)
    chosen[chosen] = distances[tuple(cell[chosen].T)] >= 0
    places = np.ravel_multi_index(tuple(cell[chosen].T + 1), tuple(np.array(lattice.shape) + 2))
    return places, 4 * np.pi * c.constant / float(lattice.spacing.mean()) * c.charges[chosen]


def _cut_edges(c: Continuum, lattice: Lattice, distances: Values,
               edges: tuple[Values, Values, Values]) -> tuple[NDArray[np.int64], Floats, Floats, Floats]:
    """Return the edges that the surface cuts.

    Returns
    -------
    line : (E, 4) int64
        Four nodes in line, the edge's inner and outer one between two more, as places in a lattice that has one more
        node on each side.
    t : (E,) float64
        Part of the edge that is inside.
    e, eps : (E,) float64
        Its conductance, and what it would be inside.
    """
    within, around = distances < 0, np.array(lattice.shape) + 2
    strides = (around[1] * around[2], around[2], 1)
    weights = np.prod(lattice.spacing) / lattice.spacing**2 / lattice.spacing.mean()
    lines, shares, conductances, own = [], [], [], []
    for axis, values in enumerate(edges):
        low, high = (tuple(part if d == axis else slice(None) for d in range(3))
                     for part in (slice(None, -1), slice(1, None)))
        cut = within[low] != within[high]
        low_in, a, b = within[low][cut], abs(distances[low][cut]), abs(distances[high][cut])
        shares.append(np.where(low_in, a, b) / (a + b).astype(np.float64))
        step = np.where(low_in, strides[axis], -strides[axis])
        inner = (np.argwhere(cut) + 1) @ np.array(strides) + np.where(low_in, 0, strides[axis])
        lines.append(inner[:, None] + np.arange(-1, 3) * step[:, None])
        conductances.append(values[low][cut].astype(np.float64))
        own.append(np.full(len(inner), weights[axis] * c.inside))
    return np.concatenate(lines), np.concatenate(shares), np.concatenate(conductances), np.concatenate(own)


def _of_near_charges(c: Continuum, lattice: Lattice, line: NDArray[np.int64], t: Floats) -> Floats:
    """Return by how much what :func:`along` has is wrong, (4, E), by charges too near for a polynomial."""
    from scipy.spatial import cKDTree

    nodes = np.stack(np.unravel_index(line[:, 1:3], tuple(np.array(lattice.shape) + 2)), -1) - 1
    axis = np.argmax(nodes[:, 0] != nodes[:, 1], 1)
    rows = np.arange(len(line))
    sign, step = (nodes[:, 1] - nodes[:, 0])[rows, axis], lattice.spacing[axis]
    inner = lattice.origin + lattice.spacing * nodes[:, 0]
    charged = np.flatnonzero(c.charges)

    pairs = cKDTree(inner).sparse_distance_matrix(cKDTree(c.positions[charged]), NEAR * lattice.spacing.max(),
                                                  output_type="ndarray")
    edge, atom = pairs["i"], charged[pairs["j"]]
    axis, h, part = axis[edge], step[edge], t[edge]
    away = inner[edge] - c.positions[atom]
    rows = np.arange(len(edge))
    shift = sign[edge] * away[rows, axis]
    y, z = away[rows, (axis + 1) % 3], away[rows, (axis + 2) % 3]
    sides = lattice.spacing[(axis + 1) % 3], lattice.spacing[(axis + 2) % 3]
    off = np.maximum(y * y + z * z, 1e-4)  # of the soft core
    fitted = along(1 / np.sqrt((shift[:, None] + h[:, None] * np.arange(-1, 3)) ** 2 + off[:, None]), part)
    x = shift + part * h
    inverse = 1 / np.sqrt(x * x + off)
    middle, angle = shift + h / 2, np.zeros(len(edge))
    middle[middle == 0] = 1e-9  # a charge in the face itself is on its inner side
    for a, b in ((-1, -1), (-1, 1), (1, -1), (1, 1)):  # corners of the face between both nodes' cells
        p, q = y + a * sides[0] / 2, z + b * sides[1] / 2
        angle += a * b * np.arctan(p * q / (middle * np.sqrt(p * p + q * q + middle * middle)))
    exact = (inverse, -x * h * inverse**3, h * h * (3 * x * x * inverse**5 - inverse**3),
             -angle * h / (sides[0] * sides[1]))
    return np.stack([np.bincount(edge, c.charges[atom] * (right - wrong), len(line))
                     for right, wrong in zip(exact, fitted, strict=True)])


def along(phi: Floats, t: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return what is known of a potential at t (E,) between the middle two of four nodes (E, 4) in line.

    Its value, its first and second derivatives per edge by a cubic polynomial; and the mean of its derivative over the
    face of the nodes' cells between both, to the fourth order for a potential without sources.
    """
    a, b, c, d = phi.T
    third = d - 3 * c + 3 * b - a
    second, middle = 0.5 * (a - b - c + d), t - 0.5  # in the edge's middle
    first, mean = c - b - third / 24, 0.5 * (b + c) - second / 8
    value = mean + middle * (first + middle * (second / 2 + middle * third / 6))
    slope = first + middle * (second + middle * third / 2)
    return value, slope, second + middle * third, c - b - third / 12
