"""Choice of the waters that ions replace: by the potential of the solute, its Boltzmann factor, or at random.

The potential at a water's oxygen is that of all atoms that are not water: the solute, existing ions, and ions placed
before. In a periodic cell it is that of Ewald's sum, with all images, conducting surroundings and a neutralising
background, so that its mean over the cell is zero; the images of the ion itself are not included. Waters are not
included either, so that the removal of a water changes only the list of free sites. Ions placed by the potential move
to better sites afterwards (moves). Of an ion of several atoms the centre is placed, at a site where no rotation brings
an atom too close to other atoms (templates).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vmdpotential import progress
from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import NoRoomError
from vmdpotential.molecule.cell import Cell
from vmdpotential.sums.points import request_at, sum_at

from .counts import IonSpecies
from .ewald_pair import EwaldPair, OpenPair
from .montecarlo import Metropolis, SamplingStatistics
from .moves import EQUAL_POTENTIALS, SEARCH_CUTOFF, SiteNeighbours, improve_placement, sites_blocked_around
from .potential import SitePotential

if TYPE_CHECKING:
    from vmdpotential.engines import Engine

SITE_METHODS = ("potential", "random", "monte-carlo")

#: Default tolerance: root mean square error of the potential at the sites over its rms.
SITE_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Atoms around the sites, which create the potential there.

    Parameters
    ----------
    solute : (N, 3) float64, A
        Positions of the atoms that are neither water nor free ions.
    solute_charges : (N,) float64, e
    ions : (M, 3) float64, A
        Positions of the existing free ions.
    ion_charges : (M,) float64, e
    cell : Cell or None
    """

    solute: Floats
    solute_charges: Floats
    ions: Floats
    ion_charges: Floats
    cell: Cell | None

    @property
    def positions(self) -> Floats:
        """(N + M, 3) positions of solute and ions, A."""
        return np.concatenate([self.solute, self.ions])

    @property
    def charges(self) -> Floats:
        """(N + M,) charges of solute and ions, e."""
        return np.concatenate([self.solute_charges, self.ion_charges])


@dataclass(frozen=True, eq=False)
class ChosenSites:
    """Chosen sites, in the order in which the ions were placed.

    Parameters
    ----------
    index : (K,) int64
        Indices of the candidates.
    species : tuple of Species
        Species of the ion at each site.
    positions : (K, 3) float64, A
    fixed : (K,) float64, e/A
        Potential of the solute and the existing ions at each site.
    moves : int
        Number of moves to better sites.
    gain : float, e^2/A
        Decrease of the total energy by these moves.
    sampling : Sampling or None
        Statistics of the Metropolis sampling.
    """

    index: Integers
    species: tuple[IonSpecies, ...]
    positions: Floats
    fixed: Floats
    moves: int = 0
    gain: float = 0.0
    sampling: SamplingStatistics | None = None


def nearest_distances(points: Floats, atoms: Floats, cell: Cell | None, limit: float = np.inf) -> Floats:
    """Return the distance of each point to the nearest image of any atom.

    Parameters
    ----------
    points : (P, 3) float64, A
    atoms : (N, 3) float64, A
    cell : Cell or None
    limit : float
        Distance above which results may be too large, which is faster.

    Returns
    -------
    (P,) float64, A
        Distances; inf if there are no atoms.
    """
    from scipy.spatial import cKDTree

    if not len(atoms) or not len(points):
        return np.full(len(points), np.inf)
    if cell is None:
        return np.asarray(cKDTree(atoms).query(points, workers=-1)[0], np.float64)
    tree = cKDTree(cell.wrap(atoms))
    distance = np.asarray(tree.query(cell.wrap(points), workers=-1)[0], np.float64)
    # images of points that could be closer are within the largest of these distances from the atoms' box
    reach = min(float(distance.max()), limit)
    images, index = cell.images_in_box(points, tree.mins - reach, tree.maxes + reach)
    result = tree.query(images, distance_upper_bound=reach * (1 + 1e-9) + 1e-9, workers=-1)[0]
    np.minimum.at(distance, index, result)
    return distance


def shortest_repeat(cell: Cell | None) -> float:
    """Return the distance of an ion to its own nearest image, A; inf without a cell."""
    return np.inf if cell is None else float(np.linalg.norm(cell.reduced, axis=1).min())


class CandidateSites:
    """Sites that ions of some species may take, prepared once for several choices among them.

    Parameters
    ----------
    points : (W, 3) float64, A
        Positions of the waters' oxygens that may be replaced.
    ions : sequence of (Species, int)
    around : Surroundings
    engine : Engine
        Compute engine of the potential of the solute; meshes, and the potentials of ions, use the CPU.
    from_solute, between : float, A
        Minimum distance of an ion's atoms to every solute atom, and to other ions.
    kept : (M, 3) float64, A, optional
        Waters that are not replaced.
    clear : float, A
        Minimum distance of ions of several atoms to these waters.
    tolerance : float
        Largest rms error of the potential at the sites over its rms.

    Attributes
    ----------
    error : float or None
        Measured value of this error; None if the sum is exact.

    Raises
    ------
    NoRoomError
        If there are not enough sites.
    """

    def __init__(self, points: Floats, ions: Sequence[tuple[IonSpecies, int]], around: Surroundings, engine: Engine,
                 from_solute: float, between: float, kept: Floats | None = None, clear: float = 0.0,
                 tolerance: float = SITE_TOLERANCE) -> None:
        self.tolerance = tolerance
        self.error: float | None = None
        self.total, self.around, self.engine = sum(number for _, number in ions), around, engine
        self.from_solute, self.between, cell = from_solute, between, around.cell
        radii = np.unique([ion.radius for ion, number in ions if number])
        self.radii: list[float] = radii.tolist()
        if not self.total:
            return
        #: Minimum distance of the centres of two ions, by their sizes.
        self.apart = between + radii[:, None] + radii
        if shortest_repeat(cell) < self.apart.max():
            raise self.no_room(0, f"the periodic cell repeats every {shortest_repeat(cell):.1f} A, so that an ion "
                               "is that close to its own image", "lower {between} below that")
        if self.total > len(points):
            raise self.no_room(0, f"there are only {len(points)} waters to replace", "use a larger box or fewer ions")
        # the sites that are free at first for the smallest ions; all arrays below refer to these
        least, most = float(radii[0]), float(radii[-1])
        solute = nearest_distances(points, around.solute, cell, from_solute + most)
        rows = np.flatnonzero(solute >= from_solute + least)
        if self.total > len(rows):
            raise self.no_room(0, f"only {len(rows)} of {len(points)} waters are {from_solute + least:g} A from the "
                               "solute", "lower {from_solute}")
        ionic = nearest_distances(points[rows], around.ions, cell, between + most)
        rows, ionic = rows[ionic >= between + least], ionic[ionic >= between + least]
        if self.total > len(rows):
            raise self.no_room(0, f"only {len(rows)} of {len(points)} waters are {between + least:g} A from the "
                               "existing ions", "lower {between}")
        self.rows = rows
        #: For each size of ions, the sites that are too close to something that stays.
        self.barred = (solute[rows] < from_solute + radii[:, None]) | (ionic < between + radii[:, None])
        if kept is not None and most:
            self.barred |= (radii[:, None] > 0) & (nearest_distances(points[rows], kept, cell, clear + most)
                                                   < clear + radii[:, None])
        self.sites = np.asfortranarray(points[rows])  # contiguous columns, as engines require
        self.pair = OpenPair() if cell is None else EwaldPair(cell)
        self.neighbours = SiteNeighbours(
            self.sites, cell, max(float(self.apart.max()), *(SEARCH_CUTOFF * abs(ion.charge) for ion, _ in ions)))

    @cached_property
    def fixed(self) -> Floats:
        """Potential of the solute and the existing ions at the sites, e/A."""
        return self.potential_at(self.sites)

    def potential_at(self, points: Floats) -> Floats:
        """Return the potential of the solute and the existing ions at points, e/A."""
        around = self.around
        if not len(points) or not len(around.positions):
            return np.zeros(len(points))
        request = request_at(points, around.positions, around.charges, around.cell, tolerance=self.tolerance)
        _, result, errors = sum_at(request, around.positions, around.charges, self.engine)
        if errors is not None:
            self.error = max(errors.largest, self.error or 0.0)
        return result.values()

    def remoteness(self, points: Floats) -> Floats:
        """Return the distance of points to the solute and the existing ions, A."""
        return nearest_distances(points, self.around.positions, self.around.cell)

    def no_room(self, placed: int, reason: str, hint: str) -> NoRoomError:
        """Return the error for a lack of sites, which states the number of ions placed."""
        return NoRoomError(f"no room: {placed} of {self.total} ions placed, nothing written; {reason}", hint)


def choose_sites(
    candidates: CandidateSites,
    ions: Sequence[tuple[IonSpecies, int]],
    *,
    method: str = "potential",
    net_charge: float = 0.0,
    seed: int = 0,
    refine: bool = True,
    factor: float = 0.0,
    sweeps: int = 0,
) -> ChosenSites:
    """Return the sites for ions.

    Ions are placed one by one. The next species is the one that brings the net charge closest to zero; of several, the
    one with the most charge left to place, then the first listed. With ``potential`` the ion takes the free site where
    its energy is lowest (of equal ones the closest to the solute and the existing ions, then the first in the file),
    otherwise a random free site. Sites too close to it are then blocked, and its potential is added at the others.
    With `refine` ions placed by potential move afterwards, see
    :func:`~vmdpotential.plugins.ions.moves.improve_placement`; with ``monte-carlo`` their sites are sampled by
    :class:`~vmdpotential.plugins.ions.montecarlo.Metropolis`.

    Parameters
    ----------
    candidates : Candidates
        Sites prepared for these ions.
    ions : sequence of (Species, int)
    method : str
        ``potential``, ``random`` or ``monte-carlo``.
    net_charge : float
        Charge of the structure without the new ions, e, which determines the order of the species.
    seed : int
        Random seed.
    refine : bool
        Whether the ions of ``potential`` move to better sites after all are placed.
    factor : float
        Coulomb's constant over kT and the dielectric constant, A/e^2, for ``monte-carlo``.
    sweeps : int
        Number of sweeps of ``monte-carlo``.

    Returns
    -------
    Sites

    Raises
    ------
    NoRoomError
        If there are not enough free sites.
    UsageError
        If the method is unknown.
    """
    if not candidates.total:
        return ChosenSites(np.zeros(0, np.int64), (), np.zeros((0, 3)), np.zeros(0))
    sites, pair, neighbours, apart = candidates.sites, candidates.pair, candidates.neighbours, candidates.apart
    species = _order(ions, net_charge)
    sizes = np.array([candidates.radii.index(ion.radius) for ion in species], np.int64)
    by_potential = method == "potential"
    generator = np.random.default_rng(seed)
    phi = SitePotential(sites, candidates.fixed, pair, candidates.barred,
                        candidates.remoteness) if by_potential else None
    taken = candidates.barred.copy()  # sites too close to something that stays, or to a placed ion
    placed: list[int] = []
    for ion, size in zip(species, sizes.tolist(), strict=True):
        free = np.flatnonzero(~taken[size]) if phi is None else phi.lowest(float(np.sign(ion.charge)),
                                                                           EQUAL_POTENTIALS, size)
        if not len(free):
            raise candidates.no_room(
                len(placed), f"no water is left that is {candidates.between + ion.radius:g} A from the other ions "
                f"and {candidates.from_solute + ion.radius:g} A from the solute", "lower {between} or {from_solute}")
        site = int(generator.choice(free) if phi is None else phi.choose(free))
        blocked = sites_blocked_around(site, size, apart, neighbours)
        if phi is not None:
            phi.take(blocked)
            phi.add(site, float(ion.charge))
        for row, each in enumerate(blocked):
            taken[row, each] = True
        placed.append(site)
        progress.report_progress("placing ions", len(placed) / candidates.total)
    chosen = np.array(placed, np.int64)
    moves, gain, sampling = 0, 0.0, None
    if phi is not None and refine:
        moves, gain = improve_placement(phi, chosen, species, sizes, candidates)
    if method == "monte-carlo":
        sampling = Metropolis(candidates, chosen, species, sizes, factor).run(sweeps, generator)
    fixed = candidates.potential_at(sites[chosen]) if method == "random" else candidates.fixed[chosen]
    return ChosenSites(candidates.rows[chosen], tuple(species), sites[chosen], fixed, moves, gain, sampling)


def _order(ions: Sequence[tuple[IonSpecies, int]], net_charge: float) -> list[IonSpecies]:
    """Return the species of each ion in the order of placement."""
    left = [number for _, number in ions]
    charge = round(net_charge)
    order: list[IonSpecies] = []

    def urgency(row: int) -> tuple[int, int]:
        added = ions[row][0].charge
        return abs(charge + added), -abs(added) * left[row]

    while any(left):
        best = min((row for row, number in enumerate(left) if number), key=urgency)
        left[best] -= 1
        charge += ions[best][0].charge
        order.append(ions[best][0])
    return order
