"""Potential at the sites while ions are placed, and the sites that are free."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.arrays import Floats, Integers

if TYPE_CHECKING:
    from .ewald_pair import OpenPair

#: Distances that differ by less, A, count as equal.
ALIKE = 1e-6

#: Pending charges are added at all sites once more than one site in this number is evaluated.
_FEW = 64


def quiet_sums() -> AbstractContextManager[None]:
    """Return a context in which the sums of single ions report no progress, because the placement as a whole does."""
    return progress.listen_to_progress(lambda label, fraction: None)


class SitePotential:
    """Potential at sites, e/A, of the solute and the existing ions, and of charges that are added.

    New charges are pending: their potentials are first computed only at the sites that are evaluated.

    Parameters
    ----------
    sites : (W, 3) float64, A
    potential : (W,) float64, e/A
        Potential of the solute and the existing ions.
    pair : OpenPair
        Potential of a single charge.
    barred : (S, W) bool
        For ions of each size, the sites that are never free.
    remoteness : callable
        Returns the distance, A, of sites to the solute and the existing ions, which selects among sites of equal
        energies.
    """

    def __init__(self, sites: Floats, potential: Floats, pair: OpenPair, barred: NDArray[np.bool_],
                 remoteness: Callable[[Floats], Floats]) -> None:
        self.sites, self._pair, self._remoteness = sites, pair, remoteness
        self._waiting = pair.pending(sites)
        count = len(sites)
        # the arrays below are in an order in which neighbours are close in memory
        self._order = np.arange(count) if self._waiting is None else self._waiting.order
        self._row = np.empty(count, np.int64)
        self._row[self._order] = np.arange(count)
        self._potential = potential[self._order]
        self._taken = barred[:, self._order].astype(np.int32)
        self._barred, self._energy = np.where(self._taken, np.inf, 0.0), np.empty(count)  # inf where a site is not free

    def add(self, site: int, charge: float) -> None:
        """Add a charge (e) at a site."""
        if self._waiting is None:
            with quiet_sums():
                self._pair.add(self.sites, self.sites[site], charge, self._potential)
        else:
            self._waiting.add(self.sites[site], charge, self._potential)

    def take(self, blocked: Sequence[Integers], times: int = 1) -> None:
        """Add `times` to the numbers of ions that block sites; `blocked` has the sites for each size of ions."""
        for size, sites in enumerate(blocked):
            rows = self._row[sites]
            self._taken[size, rows] += times
            self._barred[size, rows] = np.where(self._taken[size, rows], np.inf, 0.0)

    def free(self, sites: Integers, size: int) -> Integers:
        """Return those among `sites` that are free for ions of a size."""
        return sites[self._taken[size, self._row[sites]] == 0]

    def at(self, sites: Integers) -> Floats:
        """Return the potential at sites, e/A."""
        rows = self._row[sites]
        result: Floats = self._potential[rows]
        return result if self._waiting is None else result + self._waiting.at(rows)

    def lowest(self, sign: float, margin: float, size: int) -> Integers:
        """Return the free sites where sign * potential is within `margin` (e/A) of its minimum over free sites."""
        slack = 0.0 if self._waiting is None else self._waiting.slack
        least = self._free_energies(sign, size).min()
        result, energy = self._below(sign, least + 2 * slack + margin)
        return result[energy < energy.min(initial=np.inf) + margin]

    def choose(self, sites: Integers) -> int:
        """Return one of several sites of equal energies: the closest to the solute and ions, or else the first.

        The choice by distance does not depend on the order of the atoms, nor on the system's position and rotation.
        """
        if len(sites) == 1:
            return int(sites[0])
        sites = np.sort(sites)
        distance = self._remoteness(self.sites[sites])
        return int(sites[np.argmax(distance <= distance.min() + ALIKE)])

    def below(self, sign: float, limit: float, size: int) -> tuple[Integers, Floats]:
        """Return the free sites where sign * potential is below a limit (e/A), and these values, the lowest first."""
        slack = 0.0 if self._waiting is None else self._waiting.slack
        self._free_energies(sign, size)
        result, energy = self._below(sign, limit + slack)
        rows = np.argsort(energy)
        rows = rows[: np.searchsorted(energy[rows], limit)]
        return result[rows], energy[rows]

    def _free_energies(self, sign: float, size: int) -> Floats:
        """Return sign * potential at the free sites, and inf at others, without the waiting charges."""
        np.multiply(self._potential, sign, out=self._energy)
        self._energy += self._barred[size]
        return self._energy

    def _below(self, sign: float, limit: float) -> tuple[Integers, Floats]:
        """Return the sites with values of :meth:`_free_energies` below a limit, and the values with waiting charges."""
        rows = np.flatnonzero(self._energy < limit)
        energy = self._energy[rows]
        if self._waiting is not None:
            energy += sign * self._waiting.at(rows)
            if len(rows) * _FEW > len(self._order):
                with quiet_sums():
                    self._waiting.add_pending(self._potential)
        return self._order[rows], energy
