"""Multigrid for one lattice on the CPU, around the kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build, threads
from vmdpotential.errors import TaskError
from vmdpotential.progress import report

Floats = NDArray[np.float64]
Values = NDArray[np.float32]

#: Of the residual, for each round of conjugate gradients; rounds, and iterations of each at most.
GOAL, ROUNDS, MOST = 1e-4, 4, 60

#: Newton's steps at most, and the largest step of a potential where ions are, kT/e.
STEPS, LARGEST = 30, 3.0


class Multigrid:
    """Solves div(eps grad w) - k2 w = -sources, or the same with the full equation's ions.

    Parameters
    ----------
    x, y, z : (nx, ny, nz) float32
        Conductances of the edges from each node along an axis; nodes minus one are multiples of 2 to the power of
        `levels` minus one.
    k2 : (nx, ny, nz) float32
        What ions add to the diagonal.
    ions : (I, 2) float64
        Valence, and share of the ionic strength, of each kind of ions for the full equation; none for the linear one.
    levels : int
    """

    def __init__(self, x: Values, y: Values, z: Values, k2: Values, ions: Floats, levels: int) -> None:
        shapes = np.array([[((n - 1) >> level) + 1 for n in x.shape] for level in range(levels)], np.int64)
        self.shapes, self.offsets = shapes, np.concatenate([[0], np.cumsum(shapes.prod(1))])
        self.shape, self.k2, self.ions = x.shape, k2, ions
        self._make(x, y, z)

    def _make(self, x: Values, y: Values, z: Values) -> None:
        """Make all levels."""
        self.kernel = build.load("multigrid_kernel")
        self.x, self.y, self.z = (self._flat(a) for a in (x, y, z))
        for level in range(1, len(self.shapes)):
            fine, coarse = ([self._level(a, n) for a in (self.x, self.y, self.z)] for n in (level - 1, level))
            for axis in range(3):
                self.kernel.coarsen(fine[axis], axis, coarse[axis])
        self.d, self.u, self.f = (np.zeros(self.offsets[-1], np.float32) for _ in range(3))
        self.direction = np.zeros(x.shape, np.float32)
        self._invert(self.k2)

    def _flat(self, finest: Values) -> Values:
        flat = np.zeros(self.offsets[-1], np.float32)
        flat[: finest.size] = finest.ravel()
        return flat

    def _level(self, flat: Values, level: int) -> Values:
        part: Values = flat[self.offsets[level] : self.offsets[level + 1]].reshape(self.shapes[level])
        return part

    def _invert(self, k2: Values) -> None:
        """Make the diagonals of all levels, with what ions add."""
        self.added = k2
        for level in range(len(self.shapes)):
            d = self._level(self.d, level)
            self.kernel.invert(1, len(d) - 1, *(self._level(a, level) for a in (self.x, self.y, self.z)), k2, d)
            k2 = np.ascontiguousarray(4 * k2[::2, ::2, ::2])

    def solve(self, w: Values, nodes: NDArray[np.int64], sources: Floats, tolerance: float) -> int:
        """Replace w, whose faces are the boundary, by the solution; return how many iterations that took.

        Parameters
        ----------
        w : (nx, ny, nz) float32
        nodes : (S,) int64
            Places in w.ravel() that have sources.
        sources : (S,) float64
        tolerance : float
            Norm of the residual over that of the first one, or of the sources where that is larger.

        Raises
        ------
        TaskError
            When it does not converge.
        """
        first, count = 0.0, 0
        for step in range(STEPS if len(self.ions) else ROUNDS):
            norm = self._residual(w, nodes, sources)
            first = first or max(norm, float(np.sqrt(np.square(sources).sum())))  # BLAS would wait for threads
            if not np.isfinite(norm):
                break
            if norm <= tolerance * first:
                return count
            goal = max(GOAL, 0.5 * tolerance * first / norm)
            if not len(self.ions):
                count += self._gradients(w, goal)
                if goal > GOAL:
                    return count
            else:
                count += self._newton(w, goal)
            report("Poisson-Boltzmann", min(0.99, (step + 1) / 8))
        raise TaskError("the Poisson-Boltzmann equation did not converge", "correct the atoms, their radii or {set}")

    @property
    def edges(self) -> tuple[Values, Values, Values]:
        """The conductances of the finest level."""
        return self._level(self.x, 0), self._level(self.y, 0), self._level(self.z, 0)

    def _rows(self, kernel: Any, *arguments: Any) -> None:
        """Run a kernel of planes on all threads."""
        threads.run(partial(kernel, *arguments), self.shape[0], "Poisson-Boltzmann",
                    max(4, -(-self.shape[0] // threads.count())))

    def _residual(self, w: Values, nodes: NDArray[np.int64], sources: Floats) -> float:
        """Make the residual; return its norm."""
        residual = self._level(self.f, 0)
        self._rows(self.kernel.residual, w, *self.edges, self.k2, self.ions, residual)
        np.add.at(residual.reshape(-1), nodes, sources.astype(np.float32))
        sums = np.zeros(self.shape[0])
        self.kernel.products(1, self.shape[0] - 1, residual, residual, sums)
        return float(np.sqrt(sums.sum()))

    def _newton(self, w: Values, goal: float) -> int:
        """Make a step by Newton's method from the residual; return how many iterations that took."""
        change = np.zeros_like(w)
        self._linearise(w)
        count = self._gradients(change, goal)
        largest = float(np.abs(change[self.k2 > 0]).max(initial=0))
        w += change * np.float32(min(1.0, LARGEST / max(1e-30, largest)))
        return count

    def _linearise(self, w: Values) -> None:
        """Take the derivative at w of what ions add."""
        slope = np.empty_like(self.k2)
        self._rows(self.kernel.slope, w, self.k2, self.ions, slope)
        self._invert(slope)

    def _gradients(self, w: Values, goal: float) -> int:
        """Add to w what takes the residual away, to a part of it; return how many iterations that took."""
        workers = 1 if w.size < 10 * self.kernel.SMALL else max(1, min(threads.count(), self.shape[0] // 8))
        sums, count = np.zeros((3, self.shape[0])), np.zeros(1, np.int64)

        def work(worker: int, board: NDArray[np.int64]) -> None:
            self.kernel.solve(self.shapes, self.offsets, self.x, self.y, self.z, self.d, self.added, self.u,
                              self.f, self.direction, w, sums, goal, MOST, count, worker, workers, board)

        threads.together(work, workers)
        return int(count[0])
