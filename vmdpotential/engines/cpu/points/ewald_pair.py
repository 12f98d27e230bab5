"""The potential of one charge with all its periodic images, at many points again and again.

Ewald's pair potential depends on the displacement alone, so that its smooth part is solved on a mesh
once, for a unit charge at a node, and looked up afterwards. With the split radius at half the
shortest lattice vector it is smooth enough for few nodes, and the rest comes from the nearest image.

At many sites, the smooth part of charges that come one after the other waits on the mesh, where it costs
the same however many sites there are, until somebody asks for the potential at some of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build, threads
from vmdpotential.engines import SOFT_CORE
from vmdpotential.engines.cpu.maps import mesh
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.mesh import over_cell

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ORDER = 4  # of the B-splines, as the kernel has it

#: Split radius over mesh spacing: the error is about 1e-6 of 1/L, with L the cell's length.
RATIO = 20.0

#: Blocks of points that take less time than to start a thread.
FEW = 64

#: Nodes that a charge is added to in the time that its potential at a site takes.
_NODES_A_SITE = 8

#: Side of the bins that sites are sorted into, A.
_BIN = 12.0

#: Nodes at most, for cells that are flat; there the ratio is smaller.
MOST_NODES = 2**23


class EwaldPair:
    """The pair potential of a periodic cell in conducting surroundings, with a neutralising background.

    Its mean over the cell is zero. The relative error is below 1e-5 of the potential at half the cell.

    Parameters
    ----------
    cell : Cell
    """

    def __init__(self, cell: Cell) -> None:
        basis = cell if cell.orthogonal else Cell(cell.reduced)
        radius = 0.499999 * float(np.linalg.norm(cell.reduced, axis=1).min())
        spacing = max(radius / RATIO, (cell.volume / MOST_NODES) ** (1 / 3))
        plan = over_cell(basis, spacing, ORDER, radius / spacing)
        nodes = np.zeros(plan.shape)
        nodes[0, 0, 0] = 1.0
        self.unit = mesh.solve(mesh.load(plan, "double"), plan, nodes)
        smooth = self.unit
        for axis in range(3):  # a charge at a node is on its neighbours too, by cubic B-splines
            smooth = (np.roll(smooth, 1, axis) + 4 * smooth + np.roll(smooth, -1, axis)) / 6
        pairs = plan.short
        assert pairs is not None
        short = pairs.scaled()
        self._short, self._cutoff, self._most_smooth = pairs, radius, float(smooth.max())
        self.kernel = build.load("point_kernel", program=short.program, precision="double", masked=True,
                                 field=False)
        self.factor = short.factor
        self._program = short.program
        vectors = np.ascontiguousarray(basis.vectors)
        #: What the kernel takes of the cell and the short part.
        self.fixed = (
            vectors, np.ascontiguousarray(np.linalg.inv(vectors)), np.ascontiguousarray(cell.neighbours[1:]),
            np.array(short.values), SOFT_CORE**2, radius**2,
        )
        self._smooth = np.ascontiguousarray(np.pad(smooth / short.factor, [(1, 2)] * 3, mode="wrap"))
        self.basis = basis

    def add(self, points: Floats, position: Floats, charge: float, potential: Floats) -> None:
        """Add the potential (e/A) of a charge (e) at `position`, and of all its images, to that at points.

        Parameters
        ----------
        points : (P, 3) float64, A
            Best in Fortran order.
        position : (3,) float64, A
        charge : float, e
        potential : (P,) float64, e/A
            Changed in place. A point nearer than 0.01 A has the potential at that distance.
        """
        x, y, z = (float(component) for component in position)
        columns = [np.ascontiguousarray(points[:, d]) for d in range(3)]
        fixed = (*columns, x, y, z, charge * self.factor, *self.fixed, self._smooth, potential)
        blocks = -(-len(points) // self.kernel.BLOCK)
        if blocks <= FEW:
            self.kernel.one_charge(*fixed, 0, blocks)
            return
        grain = max(1, min(64, blocks // threads.count()))
        threads.run(lambda first, last: self.kernel.one_charge(*fixed, first, last), blocks, "one charge", grain)

    def waiting(self, sites: Floats) -> EwaldSites | None:
        """Return what adds charges to the potential at sites (P, 3), A, sooner than :meth:`add`; None for few."""
        return EwaldSites(self, sites) if len(sites) * _NODES_A_SITE > self.unit.size else None

    def steps(self, *state: Any) -> float:
        """Do Metropolis' steps of charges at sites; return by how much the energy changed.

        Parameters
        ----------
        *state
            Those of the function ``steps`` of the kernel file ``metropolis_kernel``, up to `counts`.
        """
        kernel = build.load("metropolis_kernel", program=self._program, kernel=self.kernel.__name__)
        return float(kernel.steps(*state, self.factor, *self.fixed, self._smooth))

    def most(self, distance: float) -> float:
        """Return what the potential (1/A) of a unit charge never exceeds at a distance (A) or farther.

        The short part falls with the distance, and a B-spline is below its largest coefficient.
        """
        near = float(self._short(np.array([distance]))[0]) if distance < self._cutoff else 0.0
        return near + self._most_smooth


class EwaldSites:
    """Sums the potential of charges at many sites, of which the smooth part waits on a mesh.

    The error is that of :class:`EwaldPair`, within a factor of two.

    Parameters
    ----------
    pair : EwaldPair
    sites : (P, 3) float64, A

    Attributes
    ----------
    order : (P,) int64
        The sites as they are sorted here; rows below are places in that order.
    slack : float, e/A
        The smooth part that waits is nowhere larger.
    """

    def __init__(self, pair: EwaldPair, sites: Floats) -> None:
        self._pair = pair
        basis, self._inverse = pair.basis, np.linalg.inv(pair.basis.vectors)
        bins = np.maximum(np.rint(np.linalg.norm(basis.vectors, axis=1) / _BIN), 1).astype(np.int64)
        fraction = self._within(sites)
        place = np.minimum((fraction * bins).astype(np.int64), bins - 1)
        key = np.ravel_multi_index(tuple(place.T), tuple(bins))
        self.order = np.argsort(key, kind="stable")
        self._start = np.searchsorted(key[self.order], np.arange(bins.prod() + 1))
        middles = (np.stack(np.unravel_index(np.arange(bins.prod()), tuple(bins)), 1) + 0.5) / bins @ basis.vectors
        sides = basis.vectors / bins[:, None]
        diagonals = np.array([[1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1]]) @ sides
        radius = float(np.linalg.norm(diagonals, axis=1).max()) / 2 * (1 + 1e-9)
        self._columns = [np.ascontiguousarray(column) for column in sites[self.order].T]
        self._bins = (self._start, np.ascontiguousarray(middles.T), radius)
        self._places = [np.ascontiguousarray(column) for column in (fraction[self.order] * pair.unit.shape).T]
        self._waits = np.zeros([n + 3 for n in pair.unit.shape])
        self.slack = 0.0

    def _within(self, positions: Floats) -> Floats:
        """Return fractional coordinates from 0 to 1."""
        fraction: Floats = positions @ self._inverse
        fraction -= np.floor(fraction)
        return fraction

    def add(self, position: Floats, charge: float, potential: Floats) -> None:
        """Add the potential (e/A) of a charge (e) to that at the sites, but for its smooth part, which waits."""
        pair = self._pair
        x, y, z = (float(component) for component in position)
        u, v, w = (float(component) for component in self._within(position) * pair.unit.shape)
        pair.kernel.one_short(*self._columns, *self._bins, x, y, z, charge * pair.factor, *pair.fixed, potential,
                              0, len(self._start) - 1)
        self.slack = pair.kernel.one_smooth(pair.unit, u, v, w, charge, self._waits)

    def at(self, rows: Integers) -> Floats:
        """Return the smooth part that waits, e/A, at some rows."""
        result = np.zeros(len(rows))
        self._pair.kernel.smooth_at(*(column[rows] for column in self._places), self._waits, result, 0, len(rows))
        return result

    def settle(self, potential: Floats) -> None:
        """Add what waits to the potential at the sites."""
        fixed = (*self._places, self._waits, potential)
        threads.run(lambda first, last: self._pair.kernel.smooth_at(*fixed, first, last), len(potential),
                    "one charge", 2**14)
        self._waits[:], self.slack = 0.0, 0.0
