"""Where the ions go: which waters they replace, by the potential of the solute or at random.

The potential at a water's oxygen is that of all atoms that are not water (the solute, ions that are
there, ions placed before). In a periodic cell it is Ewald's: that of all their images, in conducting
surroundings and with a background that neutralises them, so that its mean over the cell is zero; the
images of the ion itself are not part of it. Waters are not part of it either, so that taking one away
changes nothing but the list of free sites. Ions placed by it move to better sites afterwards (moves).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.errors import NoRoomError, UsageError
from vmdpotential.ions.counts import Species
from vmdpotential.ions.moves import EQUAL, REACH, improve
from vmdpotential.ions.potential import Pair, SitePotential, Waiting, quiet
from vmdpotential.methods.at_points import within
from vmdpotential.molecule.cell import Cell

if TYPE_CHECKING:
    from vmdpotential.engines import Engine

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SITE_METHODS = ("potential", "random")

#: Root mean square error of the potential at the sites, e/A: 6e-5 kT for an ion of one charge.
ERROR = 1e-7


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What is around the sites.

    Parameters
    ----------
    solute : (N, 3) float64, A
        Atoms that are neither water nor free ions.
    solute_charges : (N,) float64, e
    ions : (M, 3) float64, A
        Free ions that are there.
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
        """(N + M, 3) positions of all that makes the potential."""
        return np.concatenate([self.solute, self.ions])

    @property
    def charges(self) -> Floats:
        """(N + M,) charges of all that makes the potential."""
        return np.concatenate([self.solute_charges, self.ion_charges])


@dataclass(frozen=True, eq=False)
class Sites:
    """The sites chosen, in the order they were filled first.

    Parameters
    ----------
    index : (K,) int64
        Rows of the candidates.
    species : tuple of Species
        The ion at each.
    potential : (K,) float64, e/A
        At each site, of the solute, the ions that were there and the ions before it in this list.
    final_potential : (K,) float64, e/A
        At each site, of the solute and all other ions.
    solute_distance, ion_distance : (K,) float64, A
        To the nearest image of a solute atom, and of another ion when all are placed; inf where there is none.
    moves : int
        Moves to better sites.
    gain : float, e^2/A
        By how much they lowered the energy of all.
    """

    index: Integers
    species: tuple[Species, ...]
    potential: Floats
    final_potential: Floats
    solute_distance: Floats
    ion_distance: Floats
    moves: int
    gain: float


def nearest(points: Floats, atoms: Floats, cell: Cell | None, limit: float = np.inf) -> Floats:
    """Return the distance of each point to the nearest image of any atom.

    Parameters
    ----------
    points : (P, 3) float64, A
    atoms : (N, 3) float64, A
    cell : Cell or None
    limit : float
        Distances above it may come back too large, which is faster.

    Returns
    -------
    (P,) float64, A
        inf where there are no atoms.
    """
    from scipy.spatial import cKDTree

    if not len(atoms) or not len(points):
        return np.full(len(points), np.inf)
    if cell is None:
        return np.asarray(cKDTree(atoms).query(points, workers=-1)[0], np.float64)
    tree = cKDTree(cell.wrap(atoms))
    distance = np.asarray(tree.query(cell.wrap(points), workers=-1)[0], np.float64)
    # an image that is nearer than the largest of these lies within that distance of the atoms' box
    reach = min(float(distance.max()), limit)
    images, index = cell.images_in_box(points, tree.mins - reach, tree.maxes + reach)
    found = tree.query(images, distance_upper_bound=reach * (1 + 1e-9) + 1e-9, workers=-1)[0]
    np.minimum.at(distance, index, found)
    return distance


def shortest_repeat(cell: Cell | None) -> float:
    """Return the distance of an ion to its own nearest image, A; inf without a cell."""
    return np.inf if cell is None else float(np.linalg.norm(cell.reduced, axis=1).min())


class _Neighbours:
    """Finds the sites within a distance of a site, of any of its periodic images."""

    def __init__(self, sites: Floats, cell: Cell | None, most: float) -> None:
        """Take the sites, and the largest distance that will be asked for."""
        from scipy.spatial import cKDTree

        self.positions = sites if cell is None else cell.wrap(sites)
        self.tree = cKDTree(self.positions)
        self.shifts = np.zeros((1, 3))
        if cell is not None:
            low, high = self.tree.mins - most, self.tree.maxes + most
            corners = np.array([[(low, high)[(n >> d) & 1][d] for d in range(3)] for n in range(8)])
            fraction = cell.fractional(corners)
            ranges = [np.arange(np.floor(a) - 1, np.floor(b) + 2) for a, b in
                      zip(fraction.min(0), fraction.max(0), strict=True)]
            steps = np.stack(np.meshgrid(*ranges, indexing="ij"), -1).reshape(-1, 3)
            self.shifts = steps @ cell.vectors

    def near(self, site: int, distance: float) -> Integers:
        """Return the rows of the sites that are closer, in order; the site itself is always one of them."""
        images = self.positions[site] + self.shifts
        images = images[((images >= self.tree.mins - distance) & (images <= self.tree.maxes + distance)).all(1)]
        rows = self.tree.query_ball_point(images, distance)
        found = np.unique(np.concatenate([np.asarray(row, np.int64) for row in rows]))
        # the ball includes its surface; a site at exactly the distance is allowed
        apart = self.positions[found][None] - images[:, None]
        close = (apart * apart).sum(-1).min(0) < distance**2
        return np.asarray(found[close | (found == site)], np.int64)

def choose_sites(
    candidates: Floats,
    ions: Sequence[tuple[Species, int]],
    around: Surroundings,
    engine: Engine,
    *,
    method: str = "potential",
    from_solute: float = 5.0,
    between: float = 5.0,
    net_charge: float = 0.0,
    seed: int = 0,
    refine: bool = True,
) -> Sites:
    """Return the sites for some ions.

    The species that brings the running net charge nearest to zero goes next; of several, the one of
    which most charge is left, then the first listed. With ``potential`` it takes the free site where
    its energy is lowest (the first in the file, of equal ones), with ``random`` any free site. Sites
    closer than `between` to it are then no longer free, and its potential is added to that of the rest.
    With `refine` ions chosen by potential move afterwards, as :func:`~vmdpotential.ions.moves.improve` says.

    Parameters
    ----------
    candidates : (W, 3) float64, A
        Positions of the waters' oxygens that may be replaced.
    ions : sequence of (Species, int)
    around : Surroundings
    engine : Engine
        Sums pairs; meshes, and the ions of a periodic cell, are the CPU engine's.
    method : str
        ``potential`` or ``random``.
    from_solute, between : float, A
        Least distance of an ion to every solute atom, and between ions.
    net_charge : float
        Of the structure before, e; decides which species goes first.
    seed : int
        Of the random choice.
    refine : bool
        Whether ions move to better sites when all are placed.

    Returns
    -------
    Sites

    Raises
    ------
    NoRoomError
        When the free sites run out.
    UsageError
        When the method is unknown.
    """
    if method not in SITE_METHODS:
        raise UsageError("site", f"choose one of {', '.join(SITE_METHODS)}", value=method)
    total = sum(number for _, number in ions)
    cell = around.cell
    if not total:
        none = np.zeros(0)
        return Sites(np.zeros(0, np.int64), (), none, none, none, none, 0, 0.0)
    if shortest_repeat(cell) < between:
        raise _no_room(0, total, f"the periodic cell repeats every {shortest_repeat(cell):.1f} A, so that an ion "
                       "is that close to its own image", "lower {between} below that")
    if total > len(candidates):
        raise _no_room(0, total, f"there are only {len(candidates)} waters to replace",
                       "use a larger box or fewer ions")
    # the rows that are free at first; all below runs over these
    rows = np.flatnonzero(nearest(candidates, around.solute, cell, from_solute) >= from_solute)
    if total > len(rows):
        raise _no_room(0, total, f"only {len(rows)} of {len(candidates)} waters are {from_solute:g} A from the "
                       "solute", "lower {from_solute}")
    rows = rows[nearest(candidates[rows], around.ions, cell, between) >= between]
    if total > len(rows):
        raise _no_room(0, total, f"only {len(rows)} of {len(candidates)} waters are {between:g} A from the "
                       "ions there", "lower {between}")
    sites = np.asfortranarray(candidates[rows])  # columns in one piece, as engines take them
    pair = _pair(cell, engine)
    neighbours = _Neighbours(sites, cell, max(between, *(REACH * abs(ion.charge) for ion, _ in ions)))
    by_potential = method == "potential"
    generator = np.random.default_rng(seed)
    if by_potential:
        fixed = within(ERROR, sites, around.positions, around.charges, cell, engine)
        phi = SitePotential(sites, fixed, pair)
    else:
        taken = np.zeros(len(rows), bool)  # by an ion closer than `between`
    placed: list[int] = []
    species: list[Species] = []
    for ion in _order(ions, net_charge):
        free = phi.lowest(float(np.sign(ion.charge)), EQUAL) if by_potential else np.flatnonzero(~taken)
        if not len(free):
            raise _no_room(len(placed), total, f"no water is left that is {between:g} A from the other ions "
                           f"and {from_solute:g} A from the solute", "lower {between} or {from_solute}")
        site = int(free.min() if by_potential else generator.choice(free))
        blocked = neighbours.near(site, between)
        if by_potential:
            phi.take(blocked)
            phi.add(site, float(ion.charge))
        else:
            taken[blocked] = True
        placed.append(site)
        species.append(ion)
        progress.report("placing ions", len(placed) / total)
    chosen = np.array(placed, np.int64)
    moves, gain = 0, 0.0
    if by_potential:
        if refine:
            moves, gain = improve(phi, chosen, species, between, neighbours, pair)
        fixed = fixed[chosen]
    else:
        fixed = within(ERROR, sites[chosen], around.positions, around.charges, cell, engine)
    return _describe(rows[chosen], tuple(species), sites[chosen], fixed, around, pair, moves, gain)


class _OpenPair:
    """The potential of one charge in an open boundary."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def add(self, points: Floats, position: Floats, charge: float, potential: Floats) -> None:
        """Add the potential (e/A) of a charge to that at points."""
        potential += self.engine.at_points(points, position[None], np.array([charge]))

    def waiting(self, sites: Floats) -> Waiting | None:
        """Return None: nothing does the same in less time."""
        return None

    def most(self, distance: float) -> float:
        """Return the potential (1/A) of a unit charge at a distance (A)."""
        return 1 / distance


def _pair(cell: Cell | None, engine: Engine) -> Pair:
    """Return what adds the potential of a charge, in a periodic cell with all its images."""
    if cell is None:
        return _OpenPair(engine)
    from vmdpotential.engines.cpu.ewald_pair import EwaldPair

    return EwaldPair(cell)


def _order(ions: Sequence[tuple[Species, int]], net_charge: float) -> list[Species]:
    """Return the species in the order they are placed."""
    left = [number for _, number in ions]
    charge = round(net_charge)
    order: list[Species] = []

    def urgency(row: int) -> tuple[int, int]:
        each = ions[row][0].charge
        return abs(charge + each), -abs(each) * left[row]

    while any(left):
        best = min((row for row, number in enumerate(left) if number), key=urgency)
        left[best] -= 1
        charge += ions[best][0].charge
        order.append(ions[best][0])
    return order


def _describe(index: Integers, species: tuple[Species, ...], positions: Floats, fixed: Floats,
              around: Surroundings, pair: Pair, moves: int, gain: float) -> Sites:
    """Return the sites with their potentials and distances; `fixed` is the potential without the ions placed."""
    count = len(index)
    before, others = np.zeros(count), np.zeros(count)
    apart = np.minimum(nearest(positions, around.ions, around.cell), shortest_repeat(around.cell))
    for i in range(count):
        d = positions - positions[i]
        r = np.sqrt(((d if around.cell is None else around.cell.minimum_image(d)) ** 2).sum(1))
        r[i] = np.inf
        apart[i] = min(apart[i], r.min())
        own = np.zeros(count)
        with quiet():
            pair.add(positions, positions[i], float(species[i].charge), own)
        own[i] = 0.0
        others += own
        before[i + 1 :] += own[i + 1 :]
    solute = nearest(positions, around.solute, around.cell)
    return Sites(index, species, fixed + before, fixed + others, solute, apart, moves, gain)


def _no_room(placed: int, total: int, reason: str, cure: str) -> NoRoomError:
    return NoRoomError(f"no room: {placed} of {total} ions placed, nothing written; {reason}", cure)
