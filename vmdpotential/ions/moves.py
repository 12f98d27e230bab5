"""Ions that were placed one by one move to better sites, until no move of one ion gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.ions.potential import SitePotential, quiet

if TYPE_CHECKING:
    from vmdpotential.engines.charges import ChargePotential
    from vmdpotential.ions.counts import Species

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Sites whose potentials differ by less, e/A, are equal (6e-4 kT), so that rounding decides nothing.
EQUAL = 1e-6

#: Sites nearer to an ion, A for each elementary charge, are all tried; of the rest those where it could gain.
REACH = 10.0


class Neighbours(Protocol):
    """Finds sites around a site."""

    def near(self, site: int, distance: float) -> Integers:
        """Return the sites closer than a distance (A) to any image of a site, with itself."""


@dataclass(frozen=True, eq=False)
class FreeSites:
    """Where ions may go.

    Parameters
    ----------
    sites : (W, 3) float64, A
    fixed : (W,) float64, e/A
        Potential at the sites of all but the ions.
    apart : (S, S) float64, A
        Least distance of two ions' centres, by their sizes.
    barred : (S, W) bool
        Sites that ions of a size never take.
    neighbours : Neighbours
    pair : ChargePotential
    """

    sites: Floats
    fixed: Floats
    apart: Floats
    barred: NDArray[np.bool_]
    neighbours: Neighbours
    pair: ChargePotential


def around(site: int, size: int, apart: Floats, neighbours: Neighbours) -> list[Integers]:
    """Return, for ions of each size, the sites that are too close to an ion of some size at a site."""
    distances = apart[size].tolist()
    result = {distance: neighbours.near(site, distance) for distance in dict.fromkeys(distances)}
    return [result[distance] for distance in distances]


def improve(phi: SitePotential, placed: Integers, species: Sequence[Species], sizes: Integers,
            free: FreeSites) -> tuple[int, float]:
    """Move ions to free sites where their energy is lower, until none gains; return how many moves, and the gain.

    In the order they were placed, again and again, each ion goes to the site where its energy with all that is
    around it is lowest (:meth:`SitePotential.choose` decides between equal ones). Two ions do not exchange their
    sites. Ions of several atoms count as charges at their centres.

    Parameters
    ----------
    phi : SitePotential
        Of all that is there, the ions placed too, with the sites that are too close to them taken; changed in place.
    placed : (K,) int64
        The site of each ion; changed in place.
    species : sequence of K Species
    sizes : (K,) int64
        The size of each ion, as a row of `free.apart`.
    free : FreeSites

    Returns
    -------
    moves : int
    gain : float, e^2/A
        By how much the energy of all fell.
    """
    apart, neighbours, pair = free.apart, free.neighbours, free.pair
    charge = np.array([float(ion.charge) for ion in species])
    size, sign = abs(charge), np.sign(charge)
    reach = np.maximum(REACH * size, apart[sizes].max(1))
    farther = size * np.array([pair.most(distance) for distance in reach])  # by which its own potential may mislead
    itself = np.zeros(1)  # what an ion adds to its own site
    pair.add(phi.sites[:1], phi.sites[0], 1.0, itself)
    near = [neighbours.near(int(site), distance) for site, distance in zip(placed, reach, strict=True)]
    blocked = [around(int(site), row, apart, neighbours) for site, row in zip(placed, sizes, strict=True)]
    kinds = list(zip(sign.tolist(), sizes.tolist(), strict=True))

    def lowest_first() -> dict[tuple[float, int], tuple[Integers, Floats]]:
        """Return, for each sign and size, the free sites where an ion from afar could gain, and its energies there."""
        limits: dict[tuple[float, int], float] = {}
        for kind, limit in zip(kinds, (here + farther).tolist(), strict=True):
            limits[kind] = max(limit, limits.get(kind, limit))
        return {kind: phi.below(kind[0], limit, kind[1]) for kind, limit in sorted(limits.items())}

    moves, gain, row, tried = 0, 0.0, 0, 0
    here = sign * phi.at(placed) - size * itself
    lowest = lowest_first()
    while tried < len(placed):
        progress.report("moving ions", tried / len(placed))
        far, value = lowest[kinds[row]]
        far = far[: np.searchsorted(value, here[row] + farther[row])]
        phi.take(blocked[row], -1)
        candidates = phi.free(np.union1d(near[row], far), int(sizes[row]))
        own = np.zeros(len(candidates))
        with quiet():
            pair.add(phi.sites[candidates], phi.sites[placed[row]], size[row], own)
        energy = sign[row] * phi.at(candidates) - own
        tried += 1
        # with twice the difference of equal sites a move gains more than rounding, so that there is an end
        if len(energy) and energy.min() < here[row] - 2 * EQUAL:
            site = phi.choose(candidates[energy < energy.min() + EQUAL])
            better = float(energy[candidates == site][0])
            moves, gain, tried = moves + 1, gain + size[row] * (here[row] - better), 1
            phi.add(int(placed[row]), -charge[row])
            phi.add(site, charge[row])
            placed[row] = site
            near[row], blocked[row] = neighbours.near(site, reach[row]), around(site, sizes[row], apart, neighbours)
        phi.take(blocked[row])
        if tried == 1:
            here = sign * phi.at(placed) - size * itself
            lowest = lowest_first()
        row = (row + 1) % len(placed)
    return moves, float(gain)
