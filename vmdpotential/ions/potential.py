"""The potential at the sites while ions are placed, and which of the sites are free."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress

if TYPE_CHECKING:
    from vmdpotential.engines.charges import ChargePotential

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Distances that differ by less, A, are equal.
ALIKE = 1e-6

#: Of so many sites one may be looked at before what waits is added everywhere.
_FEW = 64


def quiet() -> AbstractContextManager[None]:
    """Return a context without progress of what single ions take, next to that of all."""
    return progress.listening(lambda label, fraction: None)


class SitePotential:
    """The potential at sites, e/A, of what is there and of charges that are added.

    Parameters
    ----------
    sites : (W, 3) float64, A
    potential : (W,) float64, e/A
        Of what is there at first.
    pair : ChargePotential
    barred : (S, W) bool
        For ions of each size, the sites that they never take.
    remoteness : callable
        Returns the distance, A, of sites to what is there at first; it decides between sites of equal energies.
    """

    def __init__(self, sites: Floats, potential: Floats, pair: ChargePotential, barred: NDArray[np.bool_],
                 remoteness: Callable[[Floats], Floats]) -> None:
        self.sites, self._pair, self._remoteness = sites, pair, remoteness
        self._waiting = pair.waiting(sites)
        count = len(sites)
        # all below is in an order in which neighbours are close
        self._order = np.arange(count) if self._waiting is None else self._waiting.order
        self._row = np.empty(count, np.int64)
        self._row[self._order] = np.arange(count)
        self._potential = potential[self._order]
        self._taken = barred[:, self._order].astype(np.int32)
        self._barred, self._energy = np.where(self._taken, np.inf, 0.0), np.empty(count)  # inf where a site is not free

    def add(self, site: int, charge: float) -> None:
        """Add a charge (e) at a site."""
        if self._waiting is None:
            with quiet():
                self._pair.add(self.sites, self.sites[site], charge, self._potential)
        else:
            self._waiting.add(self.sites[site], charge, self._potential)

    def take(self, blocked: Sequence[Integers], times: int = 1) -> None:
        """Count sites, some for each size of ions, as taken once more; -1: once less."""
        for size, sites in enumerate(blocked):
            rows = self._row[sites]
            self._taken[size, rows] += times
            self._barred[size, rows] = np.where(self._taken[size, rows], np.inf, 0.0)

    def free(self, sites: Integers, size: int) -> Integers:
        """Return those of some sites that are not taken for ions of a size."""
        result: Integers = sites[self._taken[size, self._row[sites]] == 0]
        return result

    def at(self, sites: Integers) -> Floats:
        """Return the potential at some sites, e/A."""
        rows = self._row[sites]
        result: Floats = self._potential[rows]
        return result if self._waiting is None else result + self._waiting.at(rows)

    def lowest(self, sign: float, margin: float, size: int) -> Integers:
        """Return the free sites where sign * potential is lowest, by less than `margin` (e/A); none is free: none."""
        slack = 0.0 if self._waiting is None else self._waiting.slack
        least = self._free_energies(sign, size).min()
        result, energy = self._below(sign, least + 2 * slack + margin)
        lowest: Integers = result[energy < energy.min(initial=np.inf) + margin]
        return lowest

    def choose(self, sites: Integers) -> int:
        """Return one of several sites of equal energies: the nearest to what is there, then the first in the file.

        A distance is the same for any order of the atoms, and wherever the system is and however it is turned.
        """
        if len(sites) == 1:
            return int(sites[0])
        sites = np.sort(sites)
        distance = self._remoteness(self.sites[sites])
        return int(sites[np.argmax(distance <= distance.min() + ALIKE)])

    def below(self, sign: float, limit: float, size: int) -> tuple[Integers, Floats]:
        """Return the free sites where sign * potential is below a limit (e/A), lowest first, and that energy."""
        slack = 0.0 if self._waiting is None else self._waiting.slack
        self._free_energies(sign, size)
        result, energy = self._below(sign, limit + slack)
        rows = np.argsort(energy)
        rows = rows[: np.searchsorted(energy[rows], limit)]
        return result[rows], energy[rows]

    def _free_energies(self, sign: float, size: int) -> Floats:
        """Return sign * potential of the free sites, inf for others, without what waits."""
        np.multiply(self._potential, sign, out=self._energy)
        self._energy += self._barred[size]
        return self._energy

    def _below(self, sign: float, limit: float) -> tuple[Integers, Floats]:
        """Return the sites with less of what :meth:`_free_energies` found, and their energies with what waits."""
        rows = np.flatnonzero(self._energy < limit)
        energy = self._energy[rows]
        if self._waiting is not None:
            energy += sign * self._waiting.at(rows)
            if len(rows) * _FEW > len(self._order):
                with quiet():
                    self._waiting.settle(self._potential)
        return self._order[rows], energy
