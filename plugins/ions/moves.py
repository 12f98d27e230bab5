"""Refinement of placed ions: single ions move to sites of lower energy until no move lowers the energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.arrays import Floats, Integers

from .potential import SitePotential, quiet_sums

if TYPE_CHECKING:
    from .charges import ChargePotential
    from .counts import IonSpecies

#: Potentials that differ by less, e/A, count as equal (6e-4 kT), so that results do not depend on rounding.
EQUAL_POTENTIALS = 1e-6

#: Distance, A per elementary charge, within which all sites around an ion are tried; of the sites beyond it, only those
#: whose potential, which includes the ion's own, allows a lower energy.
SEARCH_CUTOFF = 10.0


class Neighbours(Protocol):
    """Search for sites around a site."""

    def near(self, site: int, distance: float) -> Integers:
        """Return the sites closer than a distance (A) to any image of a site, including the site itself."""


@dataclass(frozen=True, eq=False)
class FreeSites:
    """Sites for ions, and the potentials that act on ions there.

    Parameters
    ----------
    sites : (W, 3) float64, A
    fixed : (W,) float64, e/A
        Potential at the sites of the solute and the existing ions.
    apart : (S, S) float64, A
        Minimum distance of two ions' centres, by the sizes of the ions.
    barred : (S, W) bool
        For each size of ions, whether a site is too close to something that stays.
    neighbours : Neighbours
    pair : ChargePotential
        Potential of a single ion.
    """

    sites: Floats
    fixed: Floats
    apart: Floats
    barred: NDArray[np.bool_]
    neighbours: Neighbours
    pair: ChargePotential


def sites_blocked_around(site: int, size: int, apart: Floats, neighbours: Neighbours) -> list[Integers]:
    """Return, for ions of each size, the sites that are blocked by an ion of the size `size` at a site."""
    distances = apart[size].tolist()
    result = {distance: neighbours.near(site, distance) for distance in dict.fromkeys(distances)}
    return [result[distance] for distance in distances]


def improve_placement(phi: SitePotential, placed: Integers, species: Sequence[IonSpecies], sizes: Integers,
            free: FreeSites) -> tuple[int, float]:
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
    free : FreeSites

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
