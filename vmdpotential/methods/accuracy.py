"""How far a map is from the definition: the exact potential at some of its points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.errors import TaskError
from vmdpotential.lattice import Lattice
from vmdpotential.methods import Sources

Floats = NDArray[np.float64]

#: Lattice points at which a map is compared with the definition.
POINTS = 200


@dataclass(frozen=True, eq=False)
class Sample:
    """The exact potential at random points of a lattice.

    Parameters
    ----------
    indices : (M, 3) int64
        Of the lattice points.
    values : (M,) float64, e/A
    """

    indices: NDArray[np.int64]
    values: Floats

    @property
    def rms(self) -> float:
        """Root mean square of the potential at the points, e/A."""
        return float(np.sqrt(np.mean(self.values**2)))

    def error(self, values: NDArray[np.float32]) -> float:
        """Return the root mean square error of a map, e/A, over the map's own root mean square.

        `values` are (nx, ny, nz), or (4, nx, ny, nz) with the field.

        A few points near atoms make most of a potential's mean square: the map's is known better than
        that of the sample, by a factor of up to two. Planes with some million values stand for all.
        """
        potential = values[0] if values.ndim == 4 else values  # with the field
        error = float(np.sqrt(np.mean((potential[tuple(self.indices.T)] - self.values) ** 2)))
        flat = potential[:: max(1, potential.size // 2**22)].reshape(-1)
        rms = float(np.sqrt(np.mean(np.square(flat, dtype=np.float64))))
        return error / rms if rms > 0 else 0.0 if error == 0 else np.inf


def exact(lattice: Lattice, sources: Sources, engine: Engine) -> Sample:
    """Return the exact potential at random points of a lattice.

    Without a cutoff it is the full one: a direct sum, or Ewald's in a periodic cell.
    """
    from vmdpotential.methods.reference import full_potential

    if sources.sample is not None:
        return sources.sample
    indices = np.random.default_rng(2009).integers(0, lattice.shape, (POINTS, 3))
    points = lattice.points(indices)
    positions, charges, cell, reach = sources.positions, sources.charges, sources.cell, sources.interaction.cutoff
    if reach is None:
        return Sample(indices, full_potential(points, positions, charges, cell, engine))
    if cell is not None and 2 * reach > np.linalg.norm(cell.reduced, axis=1).min():  # more than the nearest image
        positions, which = cell.images_in_box(positions, points.min(0) - reach, points.max(0) + reach)
        charges, cell = charges[which], None
    return Sample(indices, engine.at_points(points, positions, charges, cell, sources.interaction))


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
        """
        self.made += 1
        self.reached = error
        if error <= SURE * self.tolerance or (error <= self.tolerance and self.made == self.MOST):
            return True
        if self.made == self.MOST:
            raise self.failure
        self.margin *= min(1.5 * error / self.tolerance, 20.0)
        return False
