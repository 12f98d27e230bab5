"""Results of sums, which stay in the memory where they were computed until they are needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError

Maps = NDArray[np.float32]


@dataclass(frozen=True)
class Errors:
    """Relative rms errors of a sum.

    Parameters
    ----------
    everywhere : float
        Error of the potential over all points.
    away : float or None
        Error of the potential over the points away from charges; None at points.
    field, field_away : float or None
        The same two errors of the field; None without field.
    """

    everywhere: float
    away: float | None = None
    field: float | None = None
    field_away: float | None = None

    @property
    def largest(self) -> float:
        """The largest of these errors, to which a tolerance applies; NaN if any of them is."""
        errors = (self.everywhere, self.away, self.field, self.field_away)
        return float(np.max([error for error in errors if error is not None]))

    def __str__(self) -> str:
        text = f"{self.everywhere:.1e} of the potential"
        text += "" if self.away is None else f", {self.away:.1e} of it away from charges"
        text += "" if self.field is None else f", {self.field:.1e} of the field"
        return text + ("" if self.field_away is None else f", {self.field_away:.1e} of it away from charges")


@dataclass(frozen=True, eq=False)
class SolvationTerms:
    """What a solution around charges adds to their energy.

    Parameters
    ----------
    reaction : (N,) float64, kT/e
        The reaction potential at each charge: what the charges do not make in a medium of the molecule's permittivity.
    energies : (N,) float64, kT
        Half of each charge times that.
    ions : float, kT
        Energy of the ions beyond these, for the full equation.
    error : float, kT
        Of the sum of all energies.
    reaction_errors : (N,) float64, kT/e
        The expected error of each reaction potential, with its sign.
    """

    reaction: Floats
    energies: Floats
    ions: float
    error: float
    reaction_errors: Floats


class Result(ABC):
    """The potential at the nodes of a lattice or at points, and the field where it was requested."""

    #: Computing time of a GPU without transfers, s; None if no GPU was used.
    device_seconds: float | None = None
    #: The errors, if the sum itself estimates them; None if they have to be measured.
    errors: Errors | None = None
    #: Distances of points to the nearest charge (P,), A; None if they were not requested.
    distances: Floats | None = None

    @property
    def solvated(self) -> SolvationTerms | None:
        """What a solution around the charges adds to their energy; None without one."""
        return None

    @property
    def extremes(self) -> tuple[float, float] | None:
        """Lowest and highest potential of a map that was written slab by slab; None for a map in memory."""
        return None

    @abstractmethod
    def values(self) -> NDArray[Any]:
        """Return the potential, e/A: (nx, ny, nz) float32 at nodes, (P,) float64 at points."""

    def array(self) -> Any:
        """Return the potential where it is: in an array of the engine, or of numpy."""
        return self.values()

    @abstractmethod
    def field(self) -> NDArray[Any] | None:
        """Return the field, e/A^2: (3, nx, ny, nz) at nodes, (3, P) at points; None if it was not requested."""

    @abstractmethod
    def at(self, indices: NDArray[np.int64]) -> Floats:
        """Return values at nodes of indices (M, 3), or points (M, 1): (1, M) the potential, (4, M) with the field."""

    @abstractmethod
    def mean_squares(self) -> Floats:
        """Return the mean square of the potential (1,), or also that of the field (2,).

        A mean is not finite if any value is not.
        """

    def new_sums(self) -> Sums:
        """Return empty sums, to which this result and others of the same plan can be added."""
        return HostSums()


class Sums(Protocol):
    """Sums over results, in float64 and in the memory where the results are."""

    #: Number of results added so far.
    count: int

    def add(self, result: Result) -> None:
        """Add the maps of a result, and their squares."""

    def mean(self) -> Floats:
        """Return the mean of the maps, (nx, ny, nz), or with the field (4, nx, ny, nz)."""

    def variance(self) -> Floats:
        """Return the mean square deviation from the mean, in the shape of the mean."""


class RunningMean(Protocol):
    """The mean of a lattice sum over frames: steps that are linear in the charges are done once, for all frames.

    For one thread at a time.
    """

    #: Number of frames added so far.
    count: int

    def add(self, positions: Floats, charges: Floats) -> None:
        """Add a frame: positions (N, 3), A, and charges (N,), e."""

    def result(self) -> Result:
        """Return the mean of the frames so far; more can be added afterwards.

        Raises
        ------
        InputError
            If there are no frames.
        """


class MeanOfResults:
    """The mean of a lattice sum from the result of each frame, for sums that share no step between frames."""

    def __init__(self, run: Callable[[Floats, Floats], Result]) -> None:
        self.run, self.count = run, 0
        self._sums: Any = None

    def add(self, positions: Floats, charges: Floats) -> None:
        """Add a frame."""
        result = self.run(positions, charges)
        if self._sums is None:
            self._sums = result.new_sums()
        self._sums.add(result)
        self.count += 1

    def result(self) -> HostResult:
        """Return the mean."""
        check_frames(self.count)
        mean = self._sums.mean().astype(np.float32)
        return HostResult(mean[None] if mean.ndim == 3 else mean)


def check_frames(count: int) -> None:
    """Make sure that there are frames to average.

    Raises
    ------
    InputError
        If there are none.
    """
    if not count:
        raise InputError("there are no frames to average")


class HostResult(Result):
    """Maps in the memory of the host.

    Parameters
    ----------
    maps : (1 or 4, nx, ny, nz) float32, or (1 or 4, P) float64
        Potential, or potential and field along x, y and z.
    device_seconds : float, optional
        Computing time of a GPU without transfers.
    distances : (P,) float64, optional, A
        Distances of points to the nearest charge.
    errors : Errors, optional
        If the sum itself estimates them.
    """

    def __init__(self, maps: NDArray[Any], device_seconds: float | None = None, distances: Floats | None = None,
                 errors: Errors | None = None) -> None:
        self.maps, self.device_seconds, self.distances, self.errors = maps, device_seconds, distances, errors

    def __repr__(self) -> str:
        points = " x ".join(map(str, self.maps.shape[1:]))
        return f"HostResult({points} points{', with field' if len(self.maps) > 1 else ''})"

    def values(self) -> NDArray[Any]:
        """Return the potential."""
        values: NDArray[Any] = self.maps[0]
        return values

    def field(self) -> NDArray[Any] | None:
        """Return the field."""
        return self.maps[1:] if len(self.maps) > 1 else None

    def at(self, indices: NDArray[np.int64]) -> Floats:
        """Return the maps at nodes or points."""
        return self.maps[(slice(None), *indices.T)].astype(np.float64)

    def mean_squares(self) -> Floats:
        """Return the mean squares of the potential and of the field."""
        squares = np.array([_sum_of_squares(part) for part in self.maps]) / max(1, self.maps[0].size)
        return np.array([squares[0], squares[1:].sum()])[: 1 + (len(squares) > 1)]


def _sum_of_squares(values: NDArray[Any]) -> float:
    """Return the sum of the squares, summed plane by plane with BLAS, which is fast and exact to 1e-6.

    For longer parts, BLAS would use threads of its own.
    """
    planes = values if values.ndim > 1 else np.array_split(values, 1 + values.size // 8192)
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(sum(float(np.vdot(plane, plane)) for plane in planes))
        if not 1e-20 < total < np.inf:  # squares of float32 numbers may overflow or underflow
            total = float(sum(float(np.sum(np.square(plane, dtype=np.float64))) for plane in planes))
    return total


class HostSums:
    """Sums over results in the memory of the host."""

    def __init__(self) -> None:
        self.count = 0
        self._shift: Any = None
        self._sum: Any = None
        self._squares: Any = None

    def add(self, result: Result) -> None:
        """Add the maps of a result; differences from the first result are summed, so that no digits are lost."""
        field = result.field()
        maps = np.stack([result.values(), *([] if field is None else field)])
        if self._shift is None:
            self._shift = maps.astype(np.float64)
            self._sum, self._squares = np.zeros_like(self._shift), np.zeros_like(self._shift)
        else:
            for n, part in enumerate(maps):
                difference = part - self._shift[n]
                self._sum[n] += difference
                self._squares[n] += difference * difference
        self.count += 1

    def mean(self) -> Floats:
        """Return the mean of the maps."""
        return _one_or_four(self._shift + self._sum / self.count)

    def variance(self) -> Floats:
        """Return the mean square deviation from the mean."""
        return _one_or_four(self._squares / self.count - (self._sum / self.count) ** 2)


def _one_or_four(maps: Floats) -> Floats:
    """Return a single map without its first axis, four maps as they are."""
    result: Floats = maps[0] if len(maps) == 1 else maps
    return result
