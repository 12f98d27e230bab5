"""Ions that were placed one by one move to better sites, until no move of one ion gains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.ions.potential import Pair, SitePotential, quiet

if TYPE_CHECKING:
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


def improve(phi: SitePotential, placed: Integers, species: Sequence[Species], between: float,
            neighbours: Neighbours, pair: Pair) -> tuple[int, float]:
    """Move ions to free sites where their energy is lower, until none gains; return how many moves, and the gain.

    In the order they were placed, again and again, each ion goes to the site where its energy with all that is
    around it is lowest (the first in the file, of equal ones). Two ions do not exchange their sites.

    Parameters
    ----------
    phi : SitePotential
        Of all that is there, the ions placed too, with the sites that are closer than `between` to them taken;
        changed in place.
    placed : (K,) int64
        The site of each ion; changed in place.
    species : sequence of K Species
    between : float, A
    neighbours : Neighbours
    pair : Pair

    Returns
    -------
    moves : int
    gain : float, e^2/A
        By how much the energy of all fell.
    """
    charge = np.array([float(ion.charge) for ion in species])
    size, sign = abs(charge), np.sign(charge)
    reach = np.maximum(REACH * size, between)
    farther = size * np.array([pair.most(distance) for distance in reach])  # by which its own potential may mislead
    itself = np.zeros(1)  # what an ion adds to its own site
    pair.add(phi.sites[:1], phi.sites[0], 1.0, itself)
    near = [neighbours.near(int(site), distance) for site, distance in zip(placed, reach, strict=True)]
    blocked = [neighbours.near(int(site), between) for site in placed]

    def lowest_first() -> dict[float, tuple[Integers, Floats]]:
        """Return, for each sign, the free sites where an ion from afar could gain, and its energies there."""
        return {float(each): phi.below(float(each), float((here + farther)[sign == each].max()))
                for each in np.unique(sign)}

    moves, gain, row, tried = 0, 0.0, 0, 0
    here = sign * phi.at(placed) - size * itself
    lowest = lowest_first()
    while tried < len(placed):
        progress.report("moving ions", tried / len(placed))
        far, value = lowest[float(sign[row])]
        far = far[: np.searchsorted(value, here[row] + farther[row])]
        phi.take(blocked[row], -1)
        candidates = phi.free(np.union1d(near[row], far))
        own = np.zeros(len(candidates))
        with quiet():
            pair.add(phi.sites[candidates], phi.sites[placed[row]], size[row], own)
        energy = sign[row] * phi.at(candidates) - own
        tried += 1
        # with twice the difference of equal sites a move gains more than rounding, so that there is an end
        if len(energy) and energy.min() < here[row] - 2 * EQUAL:
            best = int(np.argmax(energy < energy.min() + EQUAL))
            site = int(candidates[best])
            moves, gain, tried = moves + 1, gain + size[row] * (here[row] - energy[best]), 1
            phi.add(int(placed[row]), -charge[row])
            phi.add(site, charge[row])
            placed[row] = site
            near[row], blocked[row] = neighbours.near(site, reach[row]), neighbours.near(site, between)
        phi.take(blocked[row])
        if tried == 1:
            here = sign * phi.at(placed) - size * itself
            lowest = lowest_first()
        row = (row + 1) % len(placed)
    return moves, float(gain)
