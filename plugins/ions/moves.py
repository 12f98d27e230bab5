"""Refinement of placed ions: single ions move to sites of lower energy until no move lowers the energy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vmdpotential import progress
from vmdpotential.arrays import Floats, Integers
from vmdpotential.molecule.cell import Cell

from .potential import SitePotential, quiet_sums

if TYPE_CHECKING:
    from .counts import IonSpecies
    from .sites import CandidateSites

#: Potentials that differ by less, e/A, count as equal (6e-4 kT), so that results do not depend on rounding.
EQUAL_POTENTIALS = 1e-6

#: Distance, A per elementary charge, within which all sites around an ion are tried; of the sites beyond it, only those
#: whose potential, which includes the ion's own, allows a lower energy.
SEARCH_CUTOFF = 10.0


class SiteNeighbours:
    """Search for the sites within a distance of any periodic image of a site.

    Parameters
    ----------
    sites : (W, 3) float64, A
    cell : Cell or None
    most : float, A
        Largest distance of a search.
    """

    def __init__(self, sites: Floats, cell: Cell | None, most: float) -> None:
        from scipy.spatial import cKDTree

        self._sites = self._images = sites if cell is None else cell.wrap(sites)
        self._owners = np.arange(len(sites))
        if cell is not None:
            low, high = self._sites.min(0) - most, self._sites.max(0) + most
            self._images, self._owners = cell.images_in_box(self._sites, low, high)
        self._tree = cKDTree(self._images)

    def near(self, site: int, distance: float) -> Integers:
        """Return the sorted indices of the sites closer than a distance, A, including the site itself."""
        rows = np.array(self._tree.query_ball_point(self._sites[site], distance), np.int64)
        # the ball includes its surface; a site at exactly the distance is allowed
        close = ((self._images[rows] - self._sites[site]) ** 2).sum(1) < distance**2
        return np.unique(np.append(self._owners[rows[close]], site))


def sites_blocked_around(site: int, size: int, apart: Floats, neighbours: SiteNeighbours) -> list[Integers]:
    """Return, for ions of each size, the sites that are blocked by an ion of the size `size` at a site."""
    distances = apart[size].tolist()
    result = {distance: neighbours.near(site, distance) for distance in dict.fromkeys(distances)}
    return [result[distance] for distance in distances]


def improve_placement(phi: SitePotential, placed: Integers, species: Sequence[IonSpecies], sizes: Integers,
                      free: CandidateSites) -> tuple[int, float]:
    """Move ions to free sites of lower energy until no move lowers the energy.

    In the order in which they were placed, repeatedly, each ion moves to the free site where its energy with the
    solute and all other ions is lowest (:meth:`SitePotential.choose` selects among equal ones). Two ions do not
    exchange their sites. Ions of several atoms count as charges at their centres.

    Parameters
    ----------
    phi : SitePotential
        Potential of the solute and all ions, in which the sites blocked by ions are taken; changed in place.
    placed : (K,) int64
        The site of each ion; changed in place.
    species : sequence of K Species
    sizes : (K,) int64
        The size of each ion, as a row of `free.apart`.
    free : CandidateSites

    Returns
    -------
    moves : int
        Number of moves.
    gain : float, e^2/A
        Decrease of the total energy.
    """
    apart, neighbours, pair = free.apart, free.neighbours, free.pair
    charge = np.array([float(ion.charge) for ion in species])
    size, sign = abs(charge), np.sign(charge)
    reach = np.maximum(SEARCH_CUTOFF * size, apart[sizes].max(1))
    # the ion's own potential beyond its reach
    farther = size * np.array([pair.upper_bound(distance) for distance in reach])
    itself = np.zeros(1)  # the potential of a unit charge at its own site
    pair.add(phi.sites[:1], phi.sites[0], 1.0, itself)
    near = [neighbours.near(int(site), distance) for site, distance in zip(placed, reach, strict=True)]
    blocked = [sites_blocked_around(int(site), row, apart, neighbours) for site, row in zip(placed, sizes, strict=True)]
    kinds = list(zip(sign.tolist(), sizes.tolist(), strict=True))

    def lowest_first() -> dict[tuple[float, int], tuple[Integers, Floats]]:
        """Return, for each sign and size, the free sites where a distant ion could lower its energy, and energies."""
        limits: dict[tuple[float, int], float] = {}
        for kind, limit in zip(kinds, (here + farther).tolist(), strict=True):
            limits[kind] = max(limit, limits.get(kind, limit))
        return {kind: phi.below(kind[0], limit, kind[1]) for kind, limit in sorted(limits.items())}

    moves, gain, row, tried = 0, 0.0, 0, 0
    here = sign * phi.at(placed) - size * itself
    lowest = lowest_first()
    while tried < len(placed):
        progress.report_progress("moving ions", tried / len(placed))
        far, value = lowest[kinds[row]]
        far = far[: np.searchsorted(value, here[row] + farther[row])]
        phi.take(blocked[row], -1)
        candidates = phi.free(np.union1d(near[row], far), int(sizes[row]))
        own_potential = np.zeros(len(candidates))
        with quiet_sums():
            pair.add(phi.sites[candidates], phi.sites[placed[row]], size[row], own_potential)
        energy = sign[row] * phi.at(candidates) - own_potential
        tried += 1
        # moves must lower the energy by more than rounding, so that the loop ends
        if len(energy) and energy.min() < here[row] - 2 * EQUAL_POTENTIALS:
            site = phi.choose(candidates[energy < energy.min() + EQUAL_POTENTIALS])
            better = float(energy[candidates == site][0])
            moves, gain, tried = moves + 1, gain + size[row] * (here[row] - better), 1
            phi.add(int(placed[row]), -charge[row])
            phi.add(site, charge[row])
            placed[row] = site
            near[row], blocked[row] = neighbours.near(site, reach[row]), sites_blocked_around(site, sizes[row], apart,
                                                                                              neighbours)
        phi.take(blocked[row])
        if tried == 1:
            here = sign * phi.at(placed) - size * itself
            lowest = lowest_first()
        row = (row + 1) % len(placed)
    return moves, float(gain)
