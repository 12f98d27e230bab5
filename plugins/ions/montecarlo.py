"""Metropolis sampling of the Boltzmann distribution of ions over the sites of waters.

The model is the primitive model: charges with hard cores in a uniform dielectric medium. A configuration of ions i at
sites has the energy ::

    U = C [ sum_i q_i phi(site_i)  +  sum_(i < j) q_i q_j G(site_i, site_j) ]

where phi is the Coulomb potential of the solute and the existing ions, G that of a unit charge (both with all images in
a periodic cell, by Ewald's sum), and C Coulomb's constant divided by the dielectric constant. Configurations in which
an ion is closer to the solute or to another ion than the minimum distances are not allowed. An ion of several atoms is
a charge at its centre.

There are two kinds of steps, each as likely as its reverse, so that acceptance by U gives detailed balance: a random
ion moves to a random site, or two ions of different kinds exchange their sites. An allowed step is accepted with the
probability min(1, exp(-dU/kT)) (Metropolis et al., J. Chem. Phys. 1953, 21, 1087). A sweep has as many steps as there
are ions. The last configuration of a run is the sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from vmdpotential import memory, progress
from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import MemoryPlanError
from vmdpotential.interactions.screened_coulomb import WATER_PERMITTIVITY

from .counts import IonSpecies
from .potential import quiet_sums

if TYPE_CHECKING:
    from .sites import CandidateSites

#: Default dielectric constant of the medium.
DEFAULT_DIELECTRIC = WATER_PERMITTIVITY

#: Fraction of steps that try an exchange, if there are ions of different kinds.
EXCHANGES = 0.25

#: Default number of sweeps; the energies of DHFR in 0.15 M NaCl, and of 1,860 ions, equilibrate within ten sweeps.
DEFAULT_SWEEPS = 500


@dataclass(frozen=True, eq=False)
class SamplingStatistics:
    """Statistics of a run.

    Parameters
    ----------
    sweeps : int
    moves, exchanges : (int, int)
        Numbers of tried and of accepted steps.
    energies : (sweeps,) float64, kT
        U after each sweep.
    """

    sweeps: int
    moves: tuple[int, int]
    exchanges: tuple[int, int]
    energies: Floats

    @property
    def line(self) -> str:
        """Summary of the run in one line."""
        parts = [f"Metropolis, {self.sweeps} sweeps"]
        for (tried, accepted), name in ((self.moves, "moves"), (self.exchanges, "exchanges")):
            if tried:
                parts.append(f"{tried} {name} tried, {accepted / tried:.0%} accepted")
        half = self.energies[len(self.energies) // 2 :]
        if len(half):
            parts.append(f"energy of the second half {half.mean():.2f} kT, sd {half.std():.2f}")
        return "; ".join(parts)

    @property
    def data(self) -> dict[str, Any]:
        """Statistics as a dictionary for JSON; energies are in kT."""
        middle = len(self.energies) // 2
        halves = [float(part.mean()) if len(part) else None for part in
                  (self.energies[:middle], self.energies[middle:])]
        return {
            "sweeps": self.sweeps, "moves_tried": self.moves[0], "moves_accepted": self.moves[1],
            "exchanges_tried": self.exchanges[0], "exchanges_accepted": self.exchanges[1],
            "energy_of_halves_kT": halves,
        }


class Metropolis:
    """Configuration of ions at sites, and its Metropolis steps.

    Parameters
    ----------
    free : CandidateSites
        Sites and the energies there.
    placed : (K,) int64
        Site of each ion, in an allowed configuration; changed in place.
    species : sequence of K Species
    sizes : (K,) int64
    factor : float
        C/kT, A/e^2.

    Raises
    ------
    MemoryPlanError
        If the potentials of all ions at each other do not fit into memory.
    """

    def __init__(self, free: CandidateSites, placed: Integers, species: Sequence[IonSpecies], sizes: Integers,
                 factor: float) -> None:
        count, fixed, self.placed = len(placed), free.fixed, placed
        if (taken := 8 * count**2) > memory.limit() // 2:
            raise MemoryPlanError(f"the potentials of {count} ions at each other take {memory.size(taken)}, which is "
                                  "more than half of the available memory", "use {site potential} or {site random}")
        charges = np.array([float(ion.charge) for ion in species])
        kinds = {ion: row for row, ion in enumerate(dict.fromkeys(species))}
        self._kind = np.array([kinds[ion] for ion in species])
        self._others = [np.flatnonzero(self._kind != item) for item in range(len(kinds))]
        self._site_count, where = len(free.sites), np.asfortranarray(free.sites[placed])
        pairs = np.zeros((count, count))  # the potential at every ion of a unit charge at the site of every other one
        for ion in range(count):
            free.pair.add(where, where[ion], 1.0, pairs[ion])
        np.fill_diagonal(pairs, 0.0)
        phi = fixed[placed] + charges @ pairs
        self.energy = factor * float(charges @ (phi + fixed[placed])) / 2
        self.counts = np.zeros((2, 2), np.int64)  # moves and exchanges: tried, accepted
        self._steps = partial(
            free.pair.steps, sites=free.sites.T, where=where.T, placed=placed, size=np.asarray(sizes, np.int64),
            apart2=free.apart**2, barred=free.barred, charge=charges, fixed=fixed, phi=phi, pairs=pairs, scale=factor,
            counts=self.counts)

    def sweep(self, random: np.random.Generator) -> None:
        """Perform as many steps as there are ions."""
        count = len(self.placed)
        chosen, sites = random.integers(count, size=count), random.integers(self._site_count, size=count)
        exchanges, chances = random.random(count) < EXCHANGES, random.random(count)
        partners = np.full(count, -1)
        for kind, others in enumerate(self._others if len(self._others) > 1 else ()):
            rows = np.flatnonzero(exchanges & (self._kind[chosen] == kind))
            partners[rows] = others[sites[rows] % len(others)]
        self.energy += self._steps(ions=chosen, partners=partners, targets=sites, chances=chances)

    def run(self, sweeps: int, random: np.random.Generator) -> SamplingStatistics:
        """Perform sweeps, and return their statistics."""
        energies = np.zeros(sweeps)
        for row in range(sweeps):
            progress.report_progress("sampling ions", row / sweeps)
            with quiet_sums():
                self.sweep(random)
            energies[row] = self.energy
        moves, exchanges = self.counts.tolist()
        return SamplingStatistics(sweeps, (moves[0], moves[1]), (exchanges[0], exchanges[1]), energies)
