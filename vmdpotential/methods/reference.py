"""The full potential at points in float64: what maps of the full potential are measured against.

Open, it is the sum over all atoms. Periodic, it is Ewald's sum (P. P. Ewald, Ann. Phys. 369, 253,
1921) over all images, with a conducting boundary at infinity and a neutralising background, split
not by a Gaussian but by a prolate spheroidal function psi, as
:class:`~vmdpotential.splitting.coulomb.Splitting` defines it: of all functions on [-1, 1] the one
whose transform keeps most within a band. The short-range part ends at the split radius, and with half
the shortest lattice vector for a radius only the nearest image of an atom has one; the rest is a
sum over a few hundred waves. A screened potential has the same waves, and no background
(:mod:`vmdpotential.splitting.screened`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.engines import SOFT_CORE, Engine
from vmdpotential.interactions import Bound, coulomb, ewald, short_range
from vmdpotential.interactions.gaussian import ewald_factor
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.coulomb import Splitting
from vmdpotential.splitting.gaussian import Gaussian
from vmdpotential.splitting.screened import Screened

Floats = NDArray[np.float64]

#: Waves up to BAND over the split radius count; those beyond it are below 1e-9 of the potential. (Just
#: below 7 pi, where a cube has no seventh wave along an edge.)
BAND = 21.5

#: Standard deviations of a Gaussian charge beyond which it is as good as a point, and waves up to which it has, over
#: its inverse: to 1e-10.
SMEAR_REACH, SMEAR_BAND = 6.5, 6.8

#: Degree of the short-range part's polynomial in r^2, which holds psi to rounding.
DEGREE = 22

#: The longest split radius, A.
LONGEST = 9999.0

#: The same in Debye lengths: the polynomial of a longer one ends too soon.
DECAYS = 8.0

#: Time of one atom and point in the short-range part over that of one atom and wave.
PAIR_COST = 4.0


def full_potential(points: Floats, positions: Floats, charges: Floats, cell: Cell | None, engine: Engine,
                   nearest: Floats | None = None, interaction: Bound | None = None) -> Floats:
    """Return the potential of all atoms, and of all their periodic images, at points.

    Parameters
    ----------
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    cell : Cell or None
        Periodic boundary where given, open otherwise.
    engine : Engine
        Sums the pairs.
    nearest : (P,) float64, optional
        Filled with the distances to the nearest atom, A.
    interaction : Bound, optional
        coulomb, gaussian or screened_coulomb, which has no background; coulomb unless given.

    Returns
    -------
    (P,) float64, e/A
        Accurate to 1e-9 of the rms potential of points; an atom nearer than 0.01 A counts at that distance.

    Raises
    ------
    MemoryPlanError
        When the waves of a cell with next to no width do not fit.
    """
    points = np.asarray(points, np.float64).reshape(-1, 3)
    if cell is None:
        return engine.at_points(points, positions, charges, None, interaction, nearest)
    values = {} if interaction is None else interaction.values
    smear, length = values.get("smear", 0.0), values.get("debye_length")
    plan = _plan(cell, len(points), len(positions), LONGEST if length is None else min(LONGEST, DECAYS * length))
    smooth: Splitting | Screened | Gaussian = plan.splitting
    radius, band, integral = smooth.radius, BAND / smooth.radius, plan.splitting.short_integral
    pairs = [(1.0, plan.splitting.short())]
    if interaction is not None and length is not None:
        smooth, integral = Screened(plan.splitting, length), 0.0
        pairs = [(1.0, interaction.truncated(radius)), (-1.0, coulomb.INTERACTION.bind().truncated(radius)),
                 (1.0, short_range.bind(radius, smooth.shifted))]
    elif smear and SMEAR_REACH * smear <= radius:  # less what a point has more than a Gaussian
        pairs.append((-1.0, ewald.INTERACTION.bind(beta=ewald_factor(smear), cutoff=SMEAR_REACH * smear)))
        integral -= 2 * np.pi * smear**2
    elif smear:  # waves alone are few; pairs tell the distances
        smooth, band, integral, pairs = Gaussian(smear), SMEAR_BAND / smear, 0.0, [(0.0, plan.splitting.short())]
    memory.require(64 * plan.waves(band), "the reference sum over waves", "correct the cell where it is far too thin")
    total: Floats = _smooth(points, positions, charges, plan, band, smooth, engine)[0]
    least, distances = np.full(len(points), np.inf), np.empty(len(points))
    for shift in np.indices(plan.repeats).reshape(3, -1).T @ plan.basis:
        for n, (sign, bound) in enumerate(pairs):  # the first has the longest reach, and tells the distances
            total += sign * engine.at_points(points, positions + shift, charges, plan.supercell, bound,
                                             None if n else distances)
        np.minimum(least, distances, out=least)
    if nearest is not None:
        nearest[:] = least
    total -= charges.sum() / cell.volume * integral
    return total


@dataclass(frozen=True, eq=False)
class _Plan:
    """How Ewald's sum is split: vectors (rows), how often a thin cell is repeated along each, the longest radius."""

    basis: Floats
    repeats: tuple[int, ...]
    longest: float = LONGEST

    @cached_property
    def supercell(self) -> Cell:
        """The repeated cell."""
        return Cell(self.basis * np.array(self.repeats)[:, None])

    @cached_property
    def splitting(self) -> Splitting:
        """The splitting, with the largest radius within which a point sees one image of an atom alone."""
        width = float(np.linalg.norm(self.supercell.reduced, axis=1).min())
        return Splitting(min(self.longest, 0.499999 * width), _prolate())

    def counts(self, band: float) -> NDArray[np.int64]:
        """Return the largest index (3,) of a wave up to `band` (1/A) along each vector: |h| <= |k| |a| / 2 pi."""
        counts: NDArray[np.int64] = (band * np.linalg.norm(self.basis, axis=1) / (2 * np.pi)).astype(np.int64)
        return counts

    def waves(self, band: float) -> int:
        """Return the number of waves up to these indices, of either sign."""
        return int(np.prod(2.0 * self.counts(band) + 1))


def _plan(cell: Cell, points: int, atoms: int, longest: float) -> _Plan:
    """Return the fastest plan.

    The number of waves is that of the volumes of the split radius in the cell. A plate or a needle is
    repeated along its short vectors, which allows a larger radius for more pairs.
    """
    basis = cell.vectors if cell.orthogonal else cell.reduced
    length = np.linalg.norm(basis, axis=1)
    widths = np.geomspace(length.min(), length.max(), 1 + int(np.ceil(4 * np.log2(length.max() / length.min()))))
    plans = [_Plan(basis, tuple(int(n) for n in np.ceil(width / length - 1e-9)), longest) for width in widths]
    return min(plans, key=lambda plan: (PAIR_COST * points * atoms * np.prod(plan.repeats)
                                        + (points + atoms) * plan.waves(BAND / plan.splitting.radius)))


@cache
def _prolate() -> Floats:
    """Return the Legendre coefficients of the prolate spheroidal function of order 0 for the band.

    The first eigenvector of a tridiagonal matrix, which holds the coefficients in normalised Legendre
    polynomials P_0, P_2 ... (H. Xiao, V. Rokhlin, N. Yarvin, Inverse Problems 17, 805, 2001).
    """
    k = 2.0 * np.arange(DEGREE + 20)
    diagonal = k * (k + 1) + (2 * k * (k + 1) - 1) / ((2 * k + 3) * (2 * k - 1)) * BAND**2
    beside = (k + 2) * (k + 1) / ((2 * k + 3) * np.sqrt((2 * k + 1) * (2 * k + 5))) * BAND**2
    matrix = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    first = np.linalg.eigh(matrix)[1][:, 0] * np.sqrt(k + 0.5)
    legendre: Floats = first[: DEGREE + 1] / (2 * first[0])
    return legendre


def ewald_splitting(radius: float) -> Splitting:
    """Return the splitting whose smooth part is a sum of few waves, to 1e-9, for a split radius in A."""
    return Splitting(radius, _prolate())


def smooth_part(points: Floats, positions: Floats, charges: Floats, cell: Cell, splitting: Splitting,
                engine: Engine) -> tuple[Floats, Floats]:
    """Return the smooth part of all images of charges, wave by wave, and the background.

    Parameters
    ----------
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    cell : Cell
    splitting : Splitting
        Of :func:`ewald_splitting`.
    engine : Engine
        Sums the structure factors.

    Returns
    -------
    potential : (P,) float64, e/A
    field : (P, 3) float64, e/A^2

    Raises
    ------
    MemoryPlanError
        When the waves do not fit.
    """
    plan = _Plan(cell.vectors if cell.orthogonal else cell.reduced, (1, 1, 1))
    band = BAND / splitting.radius
    memory.require(64 * plan.waves(band), "Ewald's sum over waves", "use a longer {cutoff}")
    found = _smooth(points, positions, charges, plan, band, splitting, engine, field=True)
    found[0] -= charges.sum() / cell.volume * splitting.short_integral
    return found[0], -(found[1:].T @ np.linalg.inv(plan.basis).T)


class Waves:
    """The smooth part's potential and field at points, for any charges, wave by wave: Ewald's sum."""

    def __init__(self, splitting: Splitting, cell: Cell, engine: Engine) -> None:
        self.splitting, self.cell, self.engine = splitting, cell, engine

    def at(self, points: Floats, positions: Floats, charges: Floats, field: bool) -> tuple[Floats, Floats | None]:
        """Return the potential (P,), e/A, and with `field` the field (P, 3), e/A^2, of charges at positions."""
        potential, slope = smooth_part(points, positions, charges, self.cell, self.splitting, self.engine)
        return potential, slope if field else None


def _smooth(points: Floats, positions: Floats, charges: Floats, plan: _Plan, band: float,
            smooth: Splitting | Screened | Gaussian, engine: Engine, field: bool = False) -> Floats:
    """Return the sum over waves up to `band` (1/A) at points, (1, P) e/A, of a smooth part.

    With `field` its derivatives along the plan's vectors too, in fractions of them: (4, P).
    """
    inverse = np.linalg.inv(plan.basis)
    counts = plan.counts(band)
    factors = engine.structure_factors(positions @ inverse, charges, counts)
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
    weights[inside] = 4 * np.pi * smooth.window(k) / (k * k + smooth.kappa**2) / abs(np.linalg.det(plan.basis))
    factors *= weights
    half = factors[nx:]  # the rest are complex conjugates
    half[1:] *= 2
    result = np.empty((4 if field else 1, len(points)))
    step = max(1, 2**22 // factors.shape[2] // factors.shape[1])
    for first in range(0, len(points), step):
        fraction = points[first : first + step] @ inverse
        x, y, z = (np.exp(2j * np.pi * np.outer(fraction[:, d] % 1.0, indices[d])) for d in range(3))
        for along, out in enumerate(result, -1):
            u, v, w = (waves if d != along else waves * (2j * np.pi * indices[d]) for d, waves in enumerate((x, y, z)))
            out[first : first + step] = sum(
                (u[:, nx + h] * np.einsum("pk,pk->p", v @ half[h], w)).real for h in range(nx + 1))
    return result


def definition(points: Floats, positions: Floats, charges: Floats,
               bound: Bound, cell: Cell | None, nearest: bool = False) -> Floats:
    """Return the sum at points (P, 3) written out in float64, (P,) in e/A.

    With a cell, every image within the cutoff counts, or the nearest of each atom with `nearest`.
    """
    if cell is not None and not nearest:
        reach = bound.cutoff or 0.0
        positions, index = cell.images_in_box(positions, points.min(0) - reach, points.max(0) + reach)
        charges = charges[index]
    result = np.empty(len(points))
    for n, point in enumerate(points):
        d = positions - point
        if cell is not None and nearest:
            d = cell.minimum_image(d)
        r = np.maximum(np.sqrt((d * d).sum(1)), SOFT_CORE)
        result[n] = charges @ bound(r)
    return result
