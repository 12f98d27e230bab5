"""The potential of one charge with all its periodic images, at many points and for many charges.

Ewald's pair potential depends on the displacement only, so that its smooth part is computed once, on a mesh for a
unit charge at a node, and interpolated afterwards. With a split radius of half the shortest lattice vector it is
smooth enough for few nodes, and the short-range part is non-zero for the nearest image only.

For many sites, the smooth part of successive charges is summed on the mesh, at a cost that does not depend on the
number of sites, and is added to the potential at the sites only when it is needed there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential.arrays import Floats, Integers
from vmdpotential.interactions import SOFT_CORE, Bound
from vmdpotential.interactions.compiled import radial_arguments
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, bind_kernel, call_kernel, launch_kernel
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.mesh import over_cell

KERNELS = KernelFile(Path(__file__).with_name("ewald_pair.cu"))

#: Order of the B-splines, the same as in the kernel.
ORDER = 4

#: Split radius over mesh spacing, with which the error is about 1e-6 of 1/L, where L is the cell's length.
RATIO = 20.0

#: Number of points up to which computing them takes less time than starting a thread; no thread takes more at a time.
POINTS_PER_THREAD = 4096

#: Number of nodes to which a charge is added in the time of its potential at one site.
_NODES_A_SITE = 8

#: Side of the bins into which sites are sorted, A.
_BIN = 12.0

#: Largest number of nodes, which flat cells reach; their ratio is smaller.
MOST_NODES = 2**23


class OpenPair:
    """The pair potential of charges in an open boundary: Coulomb's law."""

    def __init__(self) -> None:
        # what the kernels have of a cell moves nothing that is nearer than half of 2^40 A, and has no smooth part
        self._bind(COULOMB.bind(), np.inf, 2.0**40 * np.eye(3), np.zeros((0, 3)), np.zeros((1, 1, 1)))

    def _bind(self, pairs: Bound, cutoff: float, vectors: Floats, shifts: Floats, smooth: Floats) -> None:
        """Set the kernels' arguments for both parts of the potential and for the cell."""
        short = pairs.scaled()
        self._short, self._cutoff, self._most_smooth = pairs, cutoff, float(smooth.max())
        self.factor, shifts = short.factor, np.ascontiguousarray(shifts)
        padded = np.ascontiguousarray(np.pad(smooth / short.factor, [(1, 2)] * 3, mode="wrap"))
        self.fixed: dict[str, Any] = {
            "smooth": padded, "shape": padded.shape, "basis": np.ascontiguousarray(vectors),
            "inverse": np.linalg.inv(vectors), "shifts": shifts, "shift_count": len(shifts), "soft2": SOFT_CORE**2,
            "cutoff2": cutoff**2, **radial_arguments(short.program, short.values, False)}
        self._add = bind_kernel(KERNELS["add_one_charge"], **self.fixed, start=None, centres=None, bin_count=0,
                                radius=0.0)
        self._steps = bind_kernel(KERNELS["do_ion_steps"], **self.fixed, unit=short.factor)

    def add(self, points: Floats, position: Floats, charge: float, potential: Floats) -> None:
        """Add the potential (e/A) of a charge (e) at `position`, and of all its images, to that at points.

        Parameters
        ----------
        points : (P, 3) float64, A
            Fastest in Fortran order.
        position : (3,) float64, A
        charge : float, e
        potential : (P,) float64, e/A
            Changed in place. A point nearer than 0.01 A to the charge gets the potential at that distance.
        """
        px, py, pz = (np.ascontiguousarray(points[:, d]) for d in range(3))
        share = len(points) // (threads.count() if len(points) > POINTS_PER_THREAD else 1)
        grain = max(64, min(POINTS_PER_THREAD, share))
        self._add(0, len(points), "one charge", grain, px=px, py=py, pz=pz, out=potential, position=position,
                  charge=charge * self.factor)

    def pending(self, sites: Floats) -> EwaldSites | None:
        """Return a faster sum than :meth:`add` for many sites (P, 3), A; None if there is none."""
        return None

    def steps(self, **state: Any) -> float:
        """Do Metropolis steps of charges at sites; return the change of the energy.

        Parameters
        ----------
        **state
            Members of the struct ``IonSteps`` in ewald_pair.cu, up to `counts`, but for the numbers of rows.
        """
        gained, count = np.zeros(1), len(state["placed"])
        for name in ("sites", "barred", "apart2", "fixed"):
            state[name] = np.ascontiguousarray(state[name])
        self._steps(0, len(state["ions"]), **state, site_count=len(state["fixed"]), count=count,
                    size_count=len(state["apart2"]), scratch=np.empty(count), gained=gained)
        return float(gained[0])

    def upper_bound(self, distance: float) -> float:
        """Return an upper bound of the potential (1/A) of a unit charge at a distance (A) or farther.

        The short-range part decreases with the distance, and B-splines do not exceed their largest coefficient.
        """
        near = float(self._short(np.array([distance]))[0]) if distance < self._cutoff else 0.0
        return near + self._most_smooth


class EwaldPair(OpenPair):
    """The pair potential of a periodic cell with a conducting boundary and a neutralising background.

    Its mean over the cell is zero. The error is below 1e-5 of the potential at half the cell's length.

    Parameters
    ----------
    cell : Cell
    """

    def __init__(self, cell: Cell) -> None:
        from scipy import fft

        self.basis = cell if cell.orthogonal else Cell(cell.reduced)
        radius = 0.499999 * float(np.linalg.norm(cell.reduced, axis=1).min())
        spacing = max(radius / RATIO, (cell.volume / MOST_NODES) ** (1 / 3))
        plan = over_cell(self.basis, spacing, ORDER, radius / spacing)
        spectrum = plan.influence()  # that of the transform of one charge at the first node, which is 1
        for axis, count in enumerate(plan.shape[:2]):
            if spectrum.shape[axis] < count:  # the rest by symmetry
                numbers = np.arange(count)
                spectrum = spectrum.take(np.minimum(numbers, count - numbers), axis)
        self.unit = np.ascontiguousarray(fft.irfftn(spectrum.astype(np.float64), plan.shape, norm="forward",
                                                    workers=threads.count()))
        smooth = self.unit
        for axis in range(3):  # a cubic B-spline spreads a charge at a node to the neighbouring nodes too
            smooth = (np.roll(smooth, 1, axis) + 4 * smooth + np.roll(smooth, -1, axis)) / 6
        assert plan.short is not None
        self._bind(plan.short, radius, self.basis.vectors, cell.neighbours[1:], smooth)

    def pending(self, sites: Floats) -> EwaldSites | None:
        """Return a faster sum than :meth:`add` for many sites (P, 3), A; None for few sites."""
        return EwaldSites(self, sites) if len(sites) * _NODES_A_SITE > self.unit.size else None


class EwaldSites:
    """The potential of charges at many sites, the smooth part of which is pending on a mesh until it is needed.

    The error is that of :class:`EwaldPair`, within a factor of two.

    Parameters
    ----------
    pair : EwaldPair
    sites : (P, 3) float64, A

    Attributes
    ----------
    order : (P,) int64
        Indices of the sites in the order of the potentials; the methods' rows are positions in it.
    slack : float, e/A
        Largest absolute value of the pending smooth part.
    """

    def __init__(self, pair: EwaldPair, sites: Floats) -> None:
        self._pair = pair
        basis, self._inverse = pair.basis, np.linalg.inv(pair.basis.vectors)
        bins = np.maximum(np.rint(np.linalg.norm(basis.vectors, axis=1) / _BIN), 1).astype(np.int64)
        fraction = self._within(sites)
        site_bins = np.minimum((fraction * bins).astype(np.int64), bins - 1)
        key = np.ravel_multi_index(tuple(site_bins.T), tuple(bins))
        self.order = np.argsort(key, kind="stable")
        self._start = np.searchsorted(key[self.order], np.arange(bins.prod() + 1))
        centres = (np.stack(np.unravel_index(np.arange(bins.prod()), tuple(bins)), 1) + 0.5) / bins @ basis.vectors
        sides = basis.vectors / bins[:, None]
        diagonals = np.array([[1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1]]) @ sides
        radius = float(np.linalg.norm(diagonals, axis=1).max()) / 2 * (1 + 1e-9)
        px, py, pz = (np.ascontiguousarray(column) for column in sites[self.order].T)
        self._add = bind_kernel(KERNELS["add_short_range_of_charge"], **pair.fixed, px=px, py=py, pz=pz,
                         start=self._start, centres=np.ascontiguousarray(centres.T), bin_count=len(centres),
                         radius=radius)
        self._coordinates = [np.ascontiguousarray(column) for column in (fraction[self.order] * pair.unit.shape).T]
        self._pending = np.zeros([n + 3 for n in pair.unit.shape])
        self.slack = 0.0

    def _within(self, positions: Floats) -> Floats:
        """Return fractional coordinates from 0 to 1."""
        fraction: Floats = positions @ self._inverse
        fraction -= np.floor(fraction)
        return fraction

    def add(self, position: Floats, charge: float, potential: Floats) -> None:
        """Add the short-range potential (e/A) of a charge (e) to that at the sites; its smooth part is pending."""
        pair = self._pair
        self._add(0, len(self._start) - 1, out=potential, position=position, charge=charge * pair.factor)
        _, rows, columns = pair.unit.shape
        largest = np.zeros(1)
        call_kernel(KERNELS["add_smooth_part"], 0, len(self._pending), unit=pair.unit, shape=pair.unit.shape,
             place=self._within(position) * pair.unit.shape, charge=charge, total=self._pending,
             scratch=np.empty((rows + 4) * (columns + 5)), largest=largest)
        self.slack = float(largest[0])

    def at(self, rows: Integers) -> Floats:
        """Return the pending smooth part, e/A, at some rows."""
        result = np.zeros(len(rows))
        u, v, w = (column[rows] for column in self._coordinates)
        call_kernel(KERNELS["add_smooth_values"], 0, len(rows), u=u, v=v, w=w, smooth=self._pending,
             shape=self._pending.shape, out=result)
        return result

    def add_pending(self, potential: Floats) -> None:
        """Add the pending smooth part to the potential at the sites, and reset it."""
        u, v, w = self._coordinates
        launch_kernel(KERNELS["add_smooth_values"], len(potential), "one charge", 2**14, u=u, v=v, w=w,
                      smooth=self._pending, shape=self._pending.shape, out=potential)
        self._pending[:], self.slack = 0.0, 0.0
