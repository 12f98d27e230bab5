"""Multigrid for one lattice: conjugate gradients that are preconditioned by a cycle, see multigrid.cu."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.errors import TaskError
from vmdpotential.kernels.launch import KernelFile
from vmdpotential.progress import report_progress
from vmdpotential.surfaces.region import planes_at_once

Floats = NDArray[np.float64]

KERNELS = KernelFile(Path(__file__).with_name("multigrid.cu"))

#: Number of nodes below which one thread alone is faster than several that have to synchronise; the fewest planes for
#: each thread of a CPU, and the fewest nodes for each block of a GPU.
SMALL_LATTICE, PLANES, NODES = 90_000, 8, 1024

#: Numbers in a cache line.
CACHE_LINE = 16

#: Threads of a GPU that reduce a plane, as in kernel.h.
BLOCK = 128

#: Reduction of the residual by each round of conjugate gradients, and the limits of rounds and of iterations in each.
GOAL, ROUNDS, ITERATIONS = 1e-4, 4, 60

#: Nodes times iterations of one launch, which must not keep the GPU of a screen busy for a second.
LARGEST_LAUNCH = 30_000_000

#: Error of a node's value by rounding to float32, with a margin.
ROUNDING = 1e-6

#: Limit of the steps of Newton's method, and of the change of the potential by one step where ions are, kT/e.
STEPS, LARGEST_CHANGE = 30, 3.0

#: Arguments of kernels that do not need them.
UNUSED: dict[str, Any] = {"scratch": None, "inverse": None, "w": None, "sources": None, "values": None, "begin": 0,
                          "end": 0, "sums": None, "state": None, "systems": 1, "stride": 0, "parts": 0, "repeats": 0,
                          "tolerance": 0.0, "least": GOAL, "limit": 0.0}


class MultigridSolver:
    """Solves div(eps grad w) - k2 w = -sources, or the same with the full equation's ions.

    Parameters
    ----------
    engine : Engine
        Of all arrays, which are on one device.
    x, y, z : (nx, ny, nz) float32
        Conductances of the edges from each node along an axis; nodes minus one are multiples of 2 to the power of
        `levels` minus one.
    k2 : (nx, ny, nz) float32
        Contribution of the ions to the diagonal.
    ions : (I, 2) float64
        Valence and share of the ionic strength of each kind of ions, for the full equation; none for the linear one.
    levels : int
    """

    def __init__(self, engine: Engine, x: Any, y: Any, z: Any, k2: Any, ions: Floats, levels: int) -> None:
        shapes = np.array([[((n - 1) >> level) + 1 for n in x.shape] for level in range(levels)], np.int64)
        # of a plane that is divided by colours into halves of full cache lines; its rows have odd numbers of places
        planes = 2 * CACHE_LINE * -(-shapes[:, 1] * (shapes[:, 2] | 1) // (2 * CACHE_LINE))
        starts = np.concatenate([[0], np.cumsum(shapes[:, 0] * planes)])
        self.engine, self.shape, self.ions = engine, tuple(x.shape), ions
        self._nodes, self._all_nodes = int(starts[1]), int(starts[-1])
        # the programs of CPUs divide the finest level, too
        copied = -3 * self._nodes if engine.runs_cuda else self._nodes
        self._systems = 0  # for which scratch is allocated
        self._arrays: dict[str, Any] = {
            "shapes": engine.array(shapes), "starts": engine.array(starts), "x": engine.array(x), "y": engine.array(y),
            "z": engine.array(z), "coarse": engine.zeros(3 * self._all_nodes + copied, np.float32),
            "k2": engine.array(k2), "ions": engine.array(ions), "levels": levels, "kinds": len(ions)}
        self._launch("coarsen_conductances")

    @property
    def edges(self) -> tuple[Any, Any, Any]:
        """The conductances of the finest level."""
        return self._arrays["x"], self._arrays["y"], self._arrays["z"]

    def _launch(self, name: str, **values: Any) -> None:
        """Run a kernel of multigrid.cu for the whole lattice."""
        given = UNUSED | self._arrays | values
        self.engine.launch_team(KERNELS[name], self._workers(given["systems"]), **given)

    def _workers(self, systems: int) -> int:
        """Return the number of workers for so many systems."""
        threads = 1 if self._nodes < SMALL_LATTICE else self.shape[0] // PLANES
        return self.engine.team_size((threads, systems * max(1, self._nodes // NODES)))

    def _allocate(self, systems: int) -> None:
        """Allocate the arrays that only :meth:`solve` needs for so many systems, unless they are."""
        if self._systems == systems:
            return
        self.release()
        stride, parts = 2 * self._all_nodes + (2 if len(self.ions) else 1) * self._nodes, \
            max(self.shape[0], self._workers(systems))
        zeros = self.engine.zeros
        self._arrays |= {"scratch": zeros((systems, stride), np.float32), "inverse": zeros(self._all_nodes, np.float32),
                         "sums": zeros((systems, 3, parts), np.float64), "state": zeros((systems, 5), np.float64),
                         "systems": systems, "stride": stride, "parts": parts}
        self._systems = systems
        if not len(self.ions):
            self._launch("invert_diagonals", systems=1)

    def release(self) -> None:
        """Free the arrays that only :meth:`solve` needs, so that another lattice can have theirs."""
        for name in ("scratch", "inverse", "sums", "state", "systems", "stride", "parts"):
            self._arrays.pop(name, None)
        self._systems = 0

    def solve(self, w: Any, sources: Any, tolerance: float) -> int:
        """Replace w, whose faces are the boundary, by the solution; return the largest number of iterations.

        Parameters
        ----------
        w : (nx, ny, nz) float32, or (systems, nx, ny, nz)
            Of one system, or of several, which only the linear equation may have.
        sources : float32
            What flows into nodes, in the shape of `w`.
        tolerance : float
            Norm of the residual, relative to that of the first residual or of the sources, whichever is larger.

        Raises
        ------
        TaskError
            When it does not converge.
        """
        systems = w.shape[0] if len(w.shape) > len(self.shape) else 1
        self._allocate(systems)
        steps = self._newton(w, sources, tolerance) if len(self.ions) else self._rounds(w, sources, tolerance)
        total, left = np.zeros(systems, np.int64), np.ones(systems, bool)
        for step, (count, left) in enumerate(steps, 1):
            total += count
            if not left.any():
                return int(total.max())
            report_progress("Poisson-Boltzmann", min(0.99, step / 8))
        norm, size = self._residual(w, sources, w)
        diagonal = 2 * sum(float(self.engine.to_host(a).mean(dtype=np.float64)) for a in self.edges)
        if (norm[left] <= ROUNDING * diagonal * size[left]).all():
            return int(total.max())
        raise TaskError("the Poisson-Boltzmann equation did not converge", "correct the atoms, their radii or {set}")

    def _residual(self, w: Any, sources: Any, values: Any) -> tuple[Floats, Floats]:
        """Compute residuals; return the norms of each, and of other values if there are any, at inner nodes."""
        self._launch("compute_residual", w=w, sources=sources, values=values)
        residual, other = np.sqrt(self.engine.to_host(self._arrays["sums"])[:, :2].sum(2)).T
        return residual, other

    def _rounds(self, w: Any, sources: Any, tolerance: float) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        """Solve the linear equation; yield the iterations of each round, and which systems are not solved."""
        for number in range(ROUNDS):
            self._launch("compute_residual", w=w, sources=sources, values=sources, tolerance=tolerance,
                         repeats=int(number > 0))
            squares, count, first = self._gradients(w)
            yield count.astype(np.int64), ~(squares <= (0.5 * tolerance * first) ** 2)

    def _newton(self, w: Any, sources: Any, tolerance: float) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Solve the full equation by Newton's method; yield the iterations of each step, and whether others follow."""
        first, planes, count = 0.0, self.shape[0], 0
        for number in range(STEPS):
            (norm,), (inflow,) = self._residual(w, sources, None if number else sources)
            first = first or max(norm, inflow)
            finite = bool(np.isfinite(norm))
            yield count, np.array([not finite or norm > tolerance * first])
            if not finite:
                return
            change, largest = self.engine.zeros(self.shape, np.float32), self.engine.empty(planes, np.float64)
            self._launch("invert_diagonals", w=w)
            count = int(self._gradients(change, limit=max(GOAL * norm, 0.5 * tolerance * first) ** 2)[1][0])
            given = {"change": change, "k2": self._arrays["k2"], "w": w, "sums": largest, "shape": self.shape}
            grain = planes_at_once(planes)
            self.engine.launch(KERNELS["find_largest_change"], (planes, BLOCK * planes), "Poisson-Boltzmann", grain,
                               **given, factor=0.0)
            factor = min(1.0, LARGEST_CHANGE / max(1e-30, float(self.engine.to_host(largest).max())))
            self.engine.launch(KERNELS["add_change"], (planes, math.prod(self.shape)), "Poisson-Boltzmann", grain,
                               **given, factor=factor)

    def _gradients(self, w: Any, **given: Any) -> Floats:
        """Add corrections to w of each system, see solve_gradients; return the last three numbers of its state.

        Returns squares of the residuals, numbers of iterations, and norms of the first residuals.
        """
        end, most = 0, max(1, LARGEST_LAUNCH // (self._nodes * self._systems))
        while True:
            begin, end = end, min(end + most, ITERATIONS)
            self._launch("solve_gradients", w=w, begin=begin, end=end, **given)
            _, squares, count, first, limits = self.engine.to_host(self._arrays["state"]).T.copy()
            if end == ITERATIONS or ((squares <= given.get("limit", limits)) | (count < end)).all():
                return np.stack([squares, count, first])
