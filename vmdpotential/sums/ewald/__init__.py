"""Ewald's exact sum over all periodic images, by pairs within a radius and by waves.

P. P. Ewald, Ann. Phys. 369, 253, 1921, with conducting surroundings and a neutralising background. The splitting is not
a Gaussian but a prolate spheroidal function psi, used as in
:class:`~vmdpotential.splitting.coulomb.CoulombSplitting`: of all functions on [-1, 1], its transform is the most
concentrated within a band. The short-range part ends at the split radius; with half the shortest lattice vector as the
radius, only the nearest image of an atom contributes to it. The smooth part is a sum over a few hundred waves. Errors
of maps and of values at points are measured against this sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import memory
from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine, get_engine
from vmdpotential.engines.costs import Costs
from vmdpotential.grid.lattice import Lattice, Points
from vmdpotential.interactions import Bound
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.coulomb import CoulombSplitting
from vmdpotential.splitting.long_range import LongRange, LongRangeSplit, long_range
from vmdpotential.sums import Estimate, Method, Plan, Request, result_bytes
from vmdpotential.sums.ewald.waves import structure_factors
from vmdpotential.sums.inputs import charges_and_positions
from vmdpotential.sums.potential_sum import PotentialSum, Prepared, prepare_sum
from vmdpotential.sums.result import HostResult

#: Default accuracy: the neglected waves relative to the rms potential.
EWALD_ACCURACY = 1e-9

#: Degree of the short-range part's polynomial in r^2, which represents psi to rounding.
DEGREE = 22

#: Longest split radius, A.
LONGEST = 9999.0


def band_limit(accuracy: float) -> float:
    """Return the greatest wave number that is summed, in inverse split radii; psi beyond it is about exp(-band).

    For 1e-9 it is just below 7 pi, so that a cube has no seventh wave along an edge.
    """
    return 0.78 - float(np.log(max(accuracy, EWALD_ACCURACY)))


@cache
def _prolate(band: float) -> Floats:
    """Return the Legendre coefficients of the prolate spheroidal function of order 0 for a band.

    The first eigenvector of a tridiagonal matrix, which holds the coefficients in normalised Legendre
    polynomials P_0, P_2 ... (H. Xiao, V. Rokhlin, N. Yarvin, Inverse Problems 17, 805, 2001).
    """
    k = 2.0 * np.arange(DEGREE + 20)
    diagonal = k * (k + 1) + (2 * k * (k + 1) - 1) / ((2 * k + 3) * (2 * k - 1)) * band**2
    off_diagonal = (k + 2) * (k + 1) / ((2 * k + 3) * np.sqrt((2 * k + 1) * (2 * k + 5))) * band**2
    matrix = np.diag(diagonal) + np.diag(off_diagonal[:-1], 1) + np.diag(off_diagonal[:-1], -1)
    first = np.linalg.eigh(matrix)[1][:, 0] * np.sqrt(k + 0.5)
    legendre: Floats = first[: DEGREE + 1] / (2 * first[0])
    return legendre


@dataclass(frozen=True, eq=False)
class Tiling:
    """The cell, repeated if it is thin, and the split radius of an Ewald sum.

    Parameters
    ----------
    basis : (3, 3) float64, A
        Lattice vectors as rows.
    repeats : (3,) int
        How often a thin cell is repeated along each vector, so that the radius can be longer.
    radius : float, A
        The split radius.
    """

    basis: Floats
    repeats: tuple[int, ...]
    radius: float

    def counts(self, band: float) -> NDArray[np.int64]:
        """Return the greatest index (3,) of a wave up to `band` (1/A) along each vector, |h| <= |k| |a| / 2 pi."""
        counts: NDArray[np.int64] = (band * np.linalg.norm(self.basis, axis=1) / (2 * np.pi)).astype(np.int64)
        return counts

    def waves(self, band: float) -> int:
        """Return the number of waves up to these indices, of either sign."""
        return int(np.prod(2.0 * self.counts(band) + 1))

    def seconds(self, band: float, points: int, atoms: int, costs: Costs, pairs: bool = True) -> float:
        """Return the estimated seconds of the sum, with or without its pairs."""
        waves = (points + atoms) * self.waves(band / self.radius) * costs.wave
        return float(costs.fixed + waves + (costs.image * points * atoms * np.prod(self.repeats) if pairs else 0.0))


def tiling(cell: Cell, points: int, atoms: int, longest: float, band: float, costs: Costs) -> Tiling:
    """Return the fastest tiling.

    The number of waves is proportional to the volume of the cell over the cube of the split radius. A flat or long cell
    is repeated along its short vectors, which allows a longer radius at the cost of more pairs. The radius is the
    longest for which a point has at most one image of an atom within it.
    """
    basis = cell.vectors if cell.orthogonal else cell.reduced
    length = np.linalg.norm(basis, axis=1)
    widths = np.geomspace(length.min(), length.max(), 1 + int(np.ceil(4 * np.log2(length.max() / length.min()))))
    tilings = []
    for width in widths:
        repeats = tuple(int(n) for n in np.ceil(width / length - 1e-9))
        shortest = float(np.linalg.norm(Cell(basis * np.array(repeats)[:, None]).reduced, axis=1).min())
        tilings.append(Tiling(basis, repeats, min(longest, 0.499999 * shortest)))
    return min(tilings, key=lambda each: each.seconds(band, points, atoms, costs))


class EwaldSum(Prepared):
    """Ewald's sum in a cell; see :class:`vmdpotential.engines.Prepared`.

    Parameters
    ----------
    target : Lattice or Points
    tiling : Tiling
    waves : Waves
    engine : Engine
    field : bool
        Whether the field is summed too.
    distances : bool
        Whether distances to the nearest charge are found too.
    pairs : bool
        Whether pairs are summed; if not, they must be summed elsewhere.

    Raises
    ------
    MemoryPlanError
        When the waves of a very thin cell do not fit into memory.
    """

    def __init__(self, target: Lattice | Points, tiling: Tiling, waves: LongRangeSplit, engine: Engine,
                 field: bool = False, distances: bool = False, pairs: bool = True) -> None:
        self.target, self.tiling, self.waves, self.engine, self.field = target, tiling, waves, engine, field
        self.distances = distances
        memory.require(64 * tiling.waves(waves.band), "the sum over waves",
                       "correct the cell if it is far too thin, or use a longer {cutoff}")
        larger, nowhere = Cell(tiling.basis * np.array(tiling.repeats)[:, None]), Points(np.zeros((0, 3)))
        # the first has the longest range, and gives the distances
        self._pairs = [(sign, prepare_sum(engine, PotentialSum(nowhere, bound, larger, "double", field,
                                                          distances=distances and n == 0)))
                       for n, (sign, bound) in enumerate(waves.pairs) if pairs]
        self._self_potential = float(waves.smooth.long(0.0)) + sum(sign * each.self_potential
                                                                   for sign, each in self._pairs)

    @property
    def self_potential(self) -> float:
        """Potential of a unit charge at its own position, 1/A."""
        return self._self_potential

    def run(self, positions: ArrayLike, charges: ArrayLike, target: Lattice | Points | None = None) -> HostResult:
        """Return the sum for positions (N, 3), A, and charges (N,), e."""
        positions, charges = charges_and_positions(positions, charges)
        target = target or self.target
        points, tiling, basis = Points(target.points()), self.tiling, self.tiling.basis
        values = self._smooth(points.positions, positions, charges, self.field)
        if self.field:
            values[1:] = -(np.linalg.inv(basis) @ values[1:])
        nearest = np.full(points.size, np.inf) if self.distances else None
        for shift in np.indices(tiling.repeats).reshape(3, -1).T @ basis:
            for sign, pairs in self._pairs:
                near = pairs.run(positions + shift, charges, points)
                values[0] += sign * near.values()
                if (slope := near.field()) is not None:
                    values[1:] += sign * slope
                if nearest is not None and near.distances is not None:
                    np.minimum(nearest, near.distances, out=nearest)
        values[0] -= charges.sum() / abs(np.linalg.det(basis)) * self.waves.background
        return HostResult(values.reshape(-1, *target.shape).astype(target.dtype), distances=nearest)

    def _smooth(self, points: Floats, positions: Floats, charges: Floats, field: bool) -> Floats:
        """Return the sum over waves at points, (1, P) e/A.

        With `field`, also its derivatives with respect to fractional coordinates: (4, P).
        """
        tiling, smooth, band = self.tiling, self.waves.smooth, self.waves.band
        inverse = np.linalg.inv(tiling.basis)
        counts = tiling.counts(band)
        factors = structure_factors(positions @ inverse, charges, counts, self.engine)
        nx, ny, nz = counts
        indices = [np.arange(-n, n + 1.0) for n in counts]
        k2 = np.zeros(factors.shape)
        for row in 2 * np.pi * inverse:  # one component of k at a time
            k2 += ((row[0] * indices[0])[:, None, None] + (row[1] * indices[1])[:, None] + row[2] * indices[2]) ** 2
        if not smooth.kappa:
            k2[nx, ny, nz] = np.inf  # the background
        k = np.sqrt(k2)
        inside = k <= band
        k = k[inside]
        weights = np.zeros(factors.shape)
        weights[inside] = 4 * np.pi * smooth.window(k) / (k * k + smooth.kappa**2) / abs(np.linalg.det(tiling.basis))
        factors *= weights
        half = factors[nx:]  # the others are complex conjugates of these
        half[1:] *= 2
        result = np.empty((4 if field else 1, len(points)))
        step = max(1, 2**22 // factors.shape[2] // factors.shape[1])
        for first in range(0, len(points), step):
            fraction = points[first : first + step] @ inverse
            x, y, z = (np.exp(2j * np.pi * np.outer(fraction[:, d] % 1.0, indices[d])) for d in range(3))
            for along, out in enumerate(result, -1):
                u, v, w = (waves if d != along else waves * (2j * np.pi * indices[d])
                           for d, waves in enumerate((x, y, z)))
                out[first : first + step] = sum(
                    (u[:, nx + h] * np.einsum("pk,pk->p", v @ half[h], w)).real for h in range(nx + 1))
        return result


def ewald_sum(bound: Bound, cell: Cell, target: Lattice | Points, atoms: int, engine: Engine,
              accuracy: float = EWALD_ACCURACY, field: bool = False, distances: bool = False) -> EwaldSum:
    """Return Ewald's sum of an interaction that declares a splitting, for a number of atoms."""
    split = long_range(bound)
    assert split is not None
    fastest, band = _fastest(split, cell, target.size, atoms, engine, accuracy)
    waves = split.waves(CoulombSplitting(fastest.radius, _prolate(band)), band)
    return EwaldSum(target, fastest, waves, engine, field, distances)


def _fastest(split: LongRange, cell: Cell, points: int, atoms: int, engine: Engine,
             accuracy: float = EWALD_ACCURACY) -> tuple[Tiling, float]:
    band = band_limit(accuracy)
    return tiling(cell, points, atoms, min(LONGEST, split.longest), band, engine.costs), band


@dataclass(frozen=True, eq=False)
class EwaldPlan(Plan):
    """Ewald's sum; at points with a given split radius, the waves alone.

    Parameters
    ----------
    request : Request
    engine : str
    estimate : Estimate
    accuracy : float
        The neglected waves relative to the rms potential, if there is no given radius.
    """

    request: Request
    engine: str
    estimate: Estimate
    accuracy: float = EWALD_ACCURACY
    method: str = dataclass_field(default="ewald", init=False)
    error: float | None = dataclass_field(default=None, init=False)

    @property
    def short(self) -> Bound | None:
        """The short-range part, if it must be summed elsewhere."""
        return None if self.request.radius is None else self._splitting(self.request.radius).short()

    def _splitting(self, radius: float) -> CoulombSplitting:
        return CoulombSplitting(radius, _prolate(band_limit(EWALD_ACCURACY)))

    def prepare(self, target: Lattice | Points, positions: Floats, cell: Cell | None) -> EwaldSum:
        """Return the sum for a frame."""
        engine, request = get_engine(self.engine), self.request
        assert cell is not None
        if request.radius is None:
            return ewald_sum(request.interaction, cell, target, len(positions), engine, self.accuracy, request.field)
        split = long_range(request.interaction)
        assert split is not None
        basis = cell.vectors if cell.orthogonal else cell.reduced
        return EwaldSum(target, Tiling(basis, (1, 1, 1), request.radius),
                        split.waves(self._splitting(request.radius), band_limit(EWALD_ACCURACY)), engine, request.field,
                        pairs=False)

    def run(self, positions: ArrayLike, charges: ArrayLike, target: Lattice | Points | None = None) -> HostResult:
        """Return the sum for positions (N, 3), A, and charges (N,), e."""
        positions = np.asarray(positions, np.float64).reshape(-1, 3)
        return self.prepare(target or self.request.target, positions, self.request.cell).run(positions, charges)

    def __str__(self) -> str:
        return f"ewald on the {self.engine} engine; {self.estimate.describe(self.engine)}"


class Ewald(Method):
    """Ewald's sum; see :class:`vmdpotential.sums.Method`."""

    name = "ewald"
    summary = "all atoms and images by Ewald's sum, exactly; for few points or atoms"
    targets = ("grid", "points")
    boundaries = ("periodic",)
    splits = True
    boundary_reason = ", where there are no images"

    def estimate(self, request: Request, engine: Engine) -> Estimate:
        """Return the estimated cost of the sum."""
        cell, split = request.cell, long_range(request.interaction)
        assert cell is not None
        assert split is not None
        count, atoms, radius = request.target.size, request.charges.count, request.radius
        fastest, band = _fastest(split, cell, count, atoms, engine)
        if radius is not None:
            fastest = Tiling(fastest.basis, (1, 1, 1), radius)
        seconds = (2 if request.field else 1) * fastest.seconds(band, count, atoms, engine.costs, radius is None)
        needed = 64 * fastest.waves(band / fastest.radius) + (
            40 * count if request.at_points else 12 * result_bytes(request))
        return Estimate(seconds, needed)

    def plan(self, request: Request, engine: Engine) -> EwaldPlan:
        """Return the plan.

        Raises
        ------
        UsageError
            For an open boundary, or an interaction without a splitting.
        """
        return EwaldPlan(request, engine.name, self.require(request, engine))


METHOD = Ewald()
