"""How far a map is from the definition: the exact potential at some of its points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.errors import InputError, TaskError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.methods import Sources
from vmdpotential.molecule.cell import Cell

Floats = NDArray[np.float64]

#: Lattice points at which a map is compared with the definition.
POINTS = 200

#: Atoms in 1 A^3 of a lattice, or of a cell, below which points are chosen near atoms too; the blocks' side there, A.
SPARSE, BLOCK = 0.01, 8.0


@dataclass(frozen=True, eq=False)
class Sample:
    """The exact potential at random points of a lattice.

    Parameters
    ----------
    indices : (M, 3) int64
        Of the lattice points.
    values : (M,) float64, e/A
    weights : (M,) float64
        The part of the lattice that each point stands for; their sum is 1.
    """

    indices: NDArray[np.int64]
    values: Floats
    weights: Floats

    @property
    def rms(self) -> float:
        """Root mean square of the potential, e/A, as the points have it."""
        return float(np.sqrt(self.weights @ self.values**2))

    def error(self, values: NDArray[np.float32]) -> float:
        """Return the root mean square error of a map, e/A, over the map's own root mean square.

        `values` are (nx, ny, nz), or (4, nx, ny, nz) with the field.

        A few points near atoms make most of a potential's mean square: the map's is known better than
        that of the sample, by a factor of up to two. Rows with some million values stand for all.
        """
        potential = values[0] if values.ndim == 4 else values  # with the field
        error = float(np.sqrt(self.weights @ (potential[tuple(self.indices.T)] - self.values) ** 2))
        nx, ny, _ = potential.shape
        planes = max(1, min(potential.size // 2**22, nx // 16))
        rows = max(1, min(potential.size // planes // 2**22, ny // 16))
        rms = float(np.sqrt(np.mean(np.square(potential[::planes, ::rows], dtype=np.float64))))
        return error / rms if rms > 0 else 0.0 if error == 0 else np.inf


def exact(lattice: Lattice, sources: Sources, engine: Engine) -> Sample:
    """Return the exact potential at random points of a lattice.

    Without a cutoff it is the full one: a direct sum, or Ewald's in a periodic cell.
    """
    from vmdpotential.methods.reference import full_potential

    if sources.sample is not None:
        return sources.sample
    indices, weights = choose_points(lattice, sources.positions, sources.cell)
    points = lattice.points(indices)
    positions, charges, cell, reach = sources.positions, sources.charges, sources.cell, sources.interaction.cutoff
    if reach is None:
        return Sample(indices, full_potential(points, positions, charges, cell, engine), weights)
    if cell is not None and 2 * reach > np.linalg.norm(cell.reduced, axis=1).min():  # more than the nearest image
        positions, which = cell.images_in_box(positions, points.min(0) - reach, points.max(0) + reach)
        charges, cell = charges[which], None
    return Sample(indices, engine.at_points(points, positions, charges, cell, sources.interaction), weights)


def choose_points(lattice: Lattice, positions: Floats, cell: Cell | None) -> tuple[NDArray[np.int64], Floats]:
    """Return random lattice points, (M, 3) indices, and the part of the lattice that each stands for, (M,).

    Where atoms fill a small part of the lattice, points anywhere would miss them, and with them the errors:
    half of the points are then in blocks with atoms, and half elsewhere.
    """
    rng = np.random.default_rng(2009)
    anywhere = rng.integers(0, lattice.shape, (POINTS, 3)), np.full(POINTS, 1 / POINTS)
    volume = lattice.size * np.prod(lattice.spacing) if cell is None else cell.volume
    if len(positions) > SPARSE * volume:
        return anywhere
    if cell is not None:
        positions, _ = cell.images_in_box(positions, lattice.origin, lattice.last)
    shape = np.array(lattice.shape)
    nodes = np.rint((positions - lattice.origin) / lattice.spacing)
    nodes = nodes[((nodes >= 0) & (nodes < shape)).all(1)].astype(np.int64)
    side = np.maximum(1, np.rint(BLOCK / lattice.spacing).astype(np.int64))
    counts = tuple(int(n) for n in -(-shape // side))
    occupied = np.unique(np.ravel_multi_index(tuple((nodes // side).T), counts))
    first = np.stack(np.unravel_index(occupied, counts), 1) * side
    sizes = np.minimum(first + side, shape) - first
    near = int(sizes.prod(1).sum())
    if not 0 < near < lattice.size // 4:
        return anywhere
    blocks = rng.choice(len(occupied), POINTS // 2, p=sizes.prod(1) / near)
    inside = first[blocks] + rng.integers(0, sizes[blocks])
    outside = rng.integers(0, shape, (20 * POINTS, 3))  # three quarters of them or more are outside
    outside = outside[~np.isin(np.ravel_multi_index(tuple((outside // side).T), counts), occupied)][: POINTS // 2]
    part = near / lattice.size
    weights = np.repeat([part, 1 - part], POINTS // 2) / (POINTS // 2)
    return np.concatenate([inside, outside]), weights


#: An error measured at so few points is uncertain by some percent: one below this part of the tolerance is taken.
SURE = 0.9


class Attempts:
    """Tries of a method until the error that was measured is within the tolerance.

    The error is known beforehand for charges without correlation; those of molecules have one.

    Parameters
    ----------
    method, precision : str
        For the message of a failure.
    tolerance : float
    """

    #: How many times smaller than the tolerance the predicted error is at first.
    MARGIN = 1.5

    MOST = 4

    def __init__(self, method: str, tolerance: float, precision: str) -> None:
        self.method, self.tolerance, self.precision = method, tolerance, precision
        self.margin, self.made = self.MARGIN, 0
        self.reached = np.inf

    @property
    def failure(self) -> TaskError:
        """What to raise when the tolerance cannot be kept."""
        more = "" if self.precision == "double" else "--precision double, "
        return TaskError(f"--tolerance {self.tolerance:g}: the method {self.method} reached {self.reached:.1e} here; "
                         f"use a larger --tolerance, {more}or another --method")

    def target(self, rms: float) -> float:
        """Return the error (e/A) to aim at, for a potential of `rms` e/A."""
        return self.tolerance * rms / self.margin

    def enough(self, error: float) -> bool:
        """Return whether a relative error will do; aim lower if not.

        Raises
        ------
        TaskError
            When it will not and no further try is worth it.
        InputError
            When it is no number, since values are larger than float32 holds.
        """
        self.made += 1
        self.reached = error
        if not np.isfinite(error):
            raise InputError(f"charges are too large for a map in {self.precision} precision; correct them")
        if error <= SURE * self.tolerance or (error <= self.tolerance and self.made == self.MOST):
            return True
        if self.made == self.MOST:
            raise self.failure
        self.margin *= min(1.5 * error / self.tolerance, 20.0)
        return False
