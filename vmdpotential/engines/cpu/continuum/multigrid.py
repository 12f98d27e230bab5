"""Multigrid for one lattice on the CPU; the numerical work is in its kernels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.errors import TaskError
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, launch, launch_team
from vmdpotential.progress import report

Floats = NDArray[np.float64]
Values = NDArray[np.float32]
#: Values at the nodes of the finest level, and at those of all other levels, one level after the other.
Levels = tuple[Values, Values]

KERNELS = KernelFile(Path(__file__).parents[3] / "continuum" / "multigrid.cu")

#: Number of nodes of a level below which one thread alone is faster than several that have to synchronise.
SMALL_LEVEL = 30_000

#: Threads of a GPU that reduce a plane, as in kernel.h.
BLOCK = 128

#: Reduction of the residual by each round of conjugate gradients, and the limits of rounds and of iterations in each.
GOAL, ROUNDS, ITERATIONS = 1e-4, 4, 60

#: Error of a node's value by rounding to float32, with a margin.
ROUNDING = 1e-6

#: Limit of the steps of Newton's method, and of the change of the potential by one step where ions are, kT/e.
STEPS, LARGEST_CHANGE = 30, 3.0


class Multigrid:
    """Solves div(eps grad w) - k2 w = -sources, or the same with the full equation's ions.

    Parameters
    ----------
    x, y, z : (nx, ny, nz) float32
        Conductances of the edges from each node along an axis; nodes minus one are multiples of 2 to the power of
        `levels` minus one.
    k2 : (nx, ny, nz) float32
        Contribution of the ions to the diagonal.
    ions : (I, 2) float64
        Valence and share of the ionic strength of each kind of ions, for the full equation; none for the linear one.
    levels : int
    """

    def __init__(self, x: Any, y: Any, z: Any, k2: Any, ions: Floats, levels: int) -> None:
        shapes = np.array([[((n - 1) >> level) + 1 for n in x.shape] for level in range(levels)], np.int64)
        self.shapes, self.offsets = shapes, np.concatenate([[0], np.cumsum(shapes.prod(1))])
        self.shape, self.k2, self.ions = tuple(x.shape), k2, ions
        self._allocated = False
        self._make(x, y, z)

    @property
    def engine(self) -> Engine:
        """The engine of all arrays."""
        from vmdpotential.engines.cpu import ENGINE

        return ENGINE

    def _make(self, x: Any, y: Any, z: Any) -> None:
        """Make the conductances of all levels."""
        self.x, self.y, self.z = (self._levels(np.ascontiguousarray(a)) for a in (x, y, z))
        for level in range(1, len(self.shapes)):
            for axis, a in enumerate((self.x, self.y, self.z)):
                self._by_planes("coarsen_conductances", level, fine=self._level(a, level - 1),
                                coarse=self._level(a, level), fine_shape=self.shapes[level - 1],
                                shape=self.shapes[level], axis=axis)

    def _levels(self, finest: Values | None = None) -> Levels:
        """Return the given finest level, or zeros, and zeros for all other levels."""
        if finest is None:
            finest = np.zeros(self.offsets[1], np.float32)
        return finest.reshape(-1), np.zeros(self.offsets[-1] - self.offsets[1], np.float32)

    def _level(self, levels: Levels, n: int) -> Values:
        part = levels[0] if n == 0 else levels[1][self.offsets[n] - self.offsets[1] : self.offsets[n + 1] -
                                                  self.offsets[1]]
        return part.reshape(self.shapes[n])

    def _allocate(self) -> None:
        """Allocate the arrays that only :meth:`solve` needs, unless they are."""
        if self._allocated:
            return
        self.d, self.u, self.f = (self._levels() for _ in range(3))
        self.direction = np.zeros(self.shape, np.float32)
        if not len(self.ions):
            self._invert(self.k2)
        self._allocated = True

    def release(self) -> None:
        """Free the arrays that only :meth:`solve` needs, so that another lattice can have theirs."""
        if self._allocated:
            del self.d, self.u, self.f, self.direction
        self._allocated = False

    def _invert(self, k2: Values) -> None:
        """Compute the inverse diagonals of all levels, including the contribution of the ions."""
        self.added = k2
        for level in range(len(self.shapes)):
            self._by_planes("invert_diagonal", level, x=self._level(self.x, level), y=self._level(self.y, level),
                            z=self._level(self.z, level), k2=k2, d=self._level(self.d, level),
                            shape=self.shapes[level], fine_shape=self.shape, step=2**level)

    def solve(self, w: Any, sources: Any, tolerance: float) -> int:
        """Replace w, whose faces are the boundary, by the solution; return the number of iterations.

        Parameters
        ----------
        w : (nx, ny, nz) float32
        sources : (nx, ny, nz) float32
            What flows into nodes.
        tolerance : float
            Norm of the residual, relative to that of the first residual or of the sources, whichever is larger.

        Raises
        ------
        TaskError
            When it does not converge.
        """
        self._allocate()
        first, count = 0.0, 0
        for step in range(STEPS if len(self.ions) else ROUNDS):
            norm = self._residual(w, sources)
            first = first or max(norm, self._norm(sources))
            if not np.isfinite(norm):
                break
            if norm <= tolerance * first:
                return count
            goal = max(GOAL, 0.5 * tolerance * first / norm)
            if not len(self.ions):
                iterations, reduced = self._gradients(w, goal)
                count += iterations
                if goal > GOAL and reduced:
                    return count
            else:
                count += self._newton(w, goal)
            report("Poisson-Boltzmann", min(0.99, (step + 1) / 8))
        if self._residual(w, sources) <= self._rounding(w):
            return count
        raise TaskError("the Poisson-Boltzmann equation did not converge", "correct the atoms, their radii or {set}")

    def _rounding(self, w: Any) -> float:
        """Return the norm of the residual that rounding the values of w causes."""
        diagonal = 2 * sum(float(self.engine.to_host(a).mean(dtype=np.float64)) for a in self.edges)
        return ROUNDING * diagonal * self._norm(w)

    @property
    def edges(self) -> tuple[Any, Any, Any]:
        """The conductances of the finest level."""
        return self._level(self.x, 0), self._level(self.y, 0), self._level(self.z, 0)

    def _by_planes(self, name: str, level: int, **arguments: Any) -> None:
        """Run a kernel for all planes of a level, on all threads, or on one if the level is small."""
        planes = int(self.shapes[level, 0])
        small = level and self.shapes[level].prod() < SMALL_LEVEL
        launch(KERNELS[name], planes, "Poisson-Boltzmann", planes if small else max(4, -(-planes // threads.count())),
               **arguments)

    def _residual(self, w: Any, sources: Any) -> float:
        """Compute the residual; return its norm."""
        residual = self._level(self.f, 0)
        x, y, z = self.edges
        self._by_planes("compute_residual", 0, **self._arguments(residual), **{
            "w": w, "x": x, "y": y, "z": z, "sources": sources})
        return self._norm(residual)

    def _norm(self, values: Any) -> float:
        """Return the square root of the sum of the squares at inner nodes."""
        arguments = self._arguments(values)
        self._by_planes("sum_squares", 0, **arguments, w=None, x=None, y=None, z=None, sources=None)
        return float(np.sqrt(arguments["sums"].sum()))

    def _arguments(self, out: Values) -> dict[str, Any]:
        return {"k2": self.k2, "ions": self.ions, "out": out, "sums": np.zeros(self.shape[0]), "shape": self.shape,
                "kinds": len(self.ions)}

    def _newton(self, w: Any, goal: float) -> int:
        """Make a step of Newton's method from the residual; return the number of iterations."""
        change, largest = self.engine.zeros(self.shape, np.float32), self.engine.empty(self.shape[0], np.float64)
        self._linearise(w)
        count, _ = self._gradients(change, goal)
        planes, size = self.shape[0], math.prod(self.shape)
        given = {"change": change, "k2": self.k2, "w": w, "sums": largest, "shape": self.shape}
        at_once = max(4, -(-planes // threads.count()))
        self.engine.launch(KERNELS["find_largest_change"], (planes, BLOCK * planes), "Poisson-Boltzmann", at_once,
                           **given, factor=0.0)
        factor = min(1.0, LARGEST_CHANGE / max(1e-30, float(self.engine.to_host(largest).max())))
        self.engine.launch(KERNELS["add_change"], (planes, size), "Poisson-Boltzmann", at_once, **given, factor=factor)
        return count

    def _linearise(self, w: Any) -> None:
        """Compute the diagonals with the derivative of the ions' term at w."""
        slope = np.empty_like(self.k2)
        self._by_planes("compute_slope", 0, **self._arguments(slope), w=w, x=None, y=None, z=None, sources=None)
        self._invert(slope)

    def _gradients(self, w: Any, goal: float) -> tuple[int, bool]:
        """Add to w the correction that reduces the residual by the factor `goal`.

        Returns the number of iterations, and whether they reduced it so far.
        """
        workers = 1 if w.size < 3 * SMALL_LEVEL else max(1, min(threads.count(), self.shape[0] // 8))
        count = np.zeros(2, np.int64)
        launch_team(
            KERNELS["solve_gradients"], workers, shapes=self.shapes, offsets=self.offsets, levels=len(self.shapes),
            x=self.x[0], y=self.y[0], z=self.z[0], d=self.d[0], u=self.u[0], f=self.f[0], coarse_x=self.x[1],
            coarse_y=self.y[1], coarse_z=self.z[1], coarse_d=self.d[1], coarse_u=self.u[1], coarse_f=self.f[1],
            k2=self.added, direction=self.direction, w=w, sums=np.zeros((3, self.shape[0])),
            planes=np.empty((workers, 3, *self.shape[1:]), np.float32), iterations=count,
            max_iterations=ITERATIONS, tolerance=goal)
        return int(count[0]), bool(count[1])
