"""Populations of the states of coupled sites: exact sums over all combinations, or Monte Carlo.

At each pH, sites whose state is certain whatever the others do are fixed, and the others are divided into clusters
without coupling between them (D. Bashford, M. Karplus, J. Phys. Chem. 95 (1991) 9556, who fix sites likewise). A
cluster of few combinations is summed exactly, others by Monte Carlo.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from vmdpotential.arrays import Floats, Integers
from vmdpotential.engines import Engine
from vmdpotential.kernels.launch import KernelFile

KERNELS = KernelFile(Path(__file__).with_name("chains.cu"))

LN10 = float(np.log(10.0))

#: Least population of a state that is not neglected, and least coupling, kT, that is not.
RARE, UNCOUPLED = 1e-6, 1e-4

#: Largest number of combinations that are summed exactly, as a power of 2.
EXACT = 18

#: Chains of Monte Carlo for each pH, sweeps of each, and those before that are left out.
CHAINS, SWEEPS, SKIPPED = 16, 2000, 200

#: Coupling, kT, from which on two sites change their states together as well (P. Beroza, D. R. Fredkin, M. Y. Okamura,
#: G. Feher, Proc. Natl. Acad. Sci. USA 88 (1991) 5804, who take 2 units of pKa).
STRONG = 2.0


@dataclass(frozen=True, eq=False)
class SiteEnsemble:
    """States of sites, each of which has a first state of energy 0 and K others in all.

    Parameters
    ----------
    site : (K,) int64
        The site of each state but first ones, increasing.
    protons : (K,) int64
        Protons more than in the first state.
    energies : (K,) float64, kT
        Energies of the states at pH 0, with all other sites in their first states.
    between : (K, K) float64, kT
        Energies between states of different sites; symmetric.
    """

    site: Integers
    protons: Integers
    energies: Floats
    between: Floats

    @cached_property
    def count(self) -> int:
        """The number of sites."""
        return int(self.site.max(initial=-1)) + 1

    def states_of(self, site: int) -> Integers:
        """Return the states of a site but the first."""
        return self._states[site]

    @cached_property
    def _states(self) -> list[Integers]:
        return [np.flatnonzero(self.site == site) for site in range(self.count)]

    def at(self, ph: float) -> Floats:
        """Return the energies (K,), kT, at a pH."""
        return self.energies + LN10 * ph * self.protons

    def populations(self, ph: Floats, engine: Engine, exact: int = EXACT, seed: int = 0) -> tuple[Floats, Floats]:
        """Return the populations (P, K) of states at P values of pH, and their standard errors, 0 if they are exact.

        Parameters
        ----------
        ph : (P,) float64
        engine : Engine
        exact : int
            Largest number of combinations that are summed exactly, as a power of 2.
        seed : int
            Of Monte Carlo.
        """
        result, errors = np.zeros((len(ph), len(self.site))), np.zeros((len(ph), len(self.site)))
        sampled: dict[bytes, list[tuple[int, Floats]]] = {}
        tables: dict[bytes, _Combinations] = {}
        for n, value in enumerate(ph):
            own, free = self._fixed(self.at(float(value)), result[n])
            for cluster in self._clusters(free):
                size = sum(np.log2(1 + len(self.states_of(site))) for site in cluster)
                key = cluster.tobytes()
                if size > exact:
                    sampled.setdefault(key, []).append((n, own))
                    continue
                if key not in tables:
                    tables = {key: _Combinations(self, cluster)}  # large tables are not kept
                rows, found = tables[key].populations(own)
                result[n, rows] = found
        for key, places in sampled.items():
            cluster = np.frombuffer(key, np.int64)
            rows = np.flatnonzero(np.isin(self.site, cluster))
            means, spread = _sampled(self, cluster, np.array([own for _, own in places]), seed, engine)
            for (n, _), mean, error in zip(places, means, spread, strict=True):
                result[n, rows], errors[n, rows] = mean, error
        return result, errors

    @cached_property
    def _bounds(self) -> tuple[Floats, Floats]:
        """The lowest and the highest energy (K, S) that each site can give each state."""
        parts = [self.between[:, self.states_of(site)] for site in range(self.count)]
        low, high = ([choose(part, 1, initial=0.0) for part in parts] for choose in (np.min, np.max))
        return np.stack(low, 1), np.stack(high, 1)

    def _fixed(self, own: Floats, populations: Floats) -> tuple[Floats, Integers]:
        """Set the populations of states that are certain; return energies with these sites, and the free sites."""
        own, free = own.copy(), np.ones(self.count, bool)
        while True:
            low, high = (own + bounds @ free for bounds in self._bounds)
            before = free.copy()
            for site in np.flatnonzero(before):
                rows = self.states_of(int(site))
                lows, highs = np.append(low[rows], 0.0), np.append(high[rows], 0.0)
                best = int(np.argmin(highs))
                if (np.delete(lows, best) - highs[best] < -np.log(RARE)).any():
                    continue
                free[site] = False
                if best < len(rows):
                    populations[rows[best]] = 1.0
                    own += self.between[rows[best]]
            if (free == before).all():
                return own, np.flatnonzero(free)

    def _clusters(self, free: Integers) -> list[Integers]:
        """Return the clusters of free sites that are coupled."""
        from scipy.sparse.csgraph import connected_components

        if not len(free):
            return []
        coupled = np.zeros((self.count, self.count), bool)
        np.logical_or.at(coupled, (self.site[:, None], self.site[None]), np.abs(self.between) > UNCOUPLED)
        number, of = connected_components(coupled[np.ix_(free, free)], directed=False)
        return [free[of == n] for n in range(number)]


class _Combinations:
    """All combinations of the states of a cluster, with energies that do not depend on the pH."""

    def __init__(self, ensemble: SiteEnsemble, cluster: Integers) -> None:
        self._states = [ensemble.states_of(int(site)) for site in cluster]
        energies, axes = np.zeros((1,) * len(cluster)), len(cluster)
        for k, rows in enumerate(self._states):
            parts = [energies]
            for state in rows:  # with each combination of the sites before
                part = energies
                for j, others in enumerate(self._states[:k]):
                    part = part + _along(np.append(0.0, ensemble.between[state, others]), j, axes)
                parts.append(part)
            energies = np.concatenate(parts, k)
        self._energies = energies

    def populations(self, own: Floats) -> tuple[Integers, Floats]:
        """Return the states of the cluster, and their populations for energies of states (K,), kT."""
        energies, axes = self._energies, self._energies.ndim
        for k, rows in enumerate(self._states):
            energies = energies + _along(np.append(0.0, own[rows]), k, axes)
        weights = np.exp(energies.min() - energies)
        weights /= weights.sum()
        found = [weights.sum(tuple(j for j in range(axes) if j != k))[1:] for k in range(axes)]
        return np.concatenate(self._states), np.concatenate(found)


def _along(values: Floats, axis: int, axes: int) -> Floats:
    return values.reshape([-1 if k == axis else 1 for k in range(axes)])


def _sampled(ensemble: SiteEnsemble, cluster: Integers, own: Floats, seed: int,
             engine: Engine) -> tuple[Floats, Floats]:
    """Return the populations (P, R) of a cluster's states by Monte Carlo at P values of pH, and their standard errors.

    N. Metropolis et al., J. Chem. Phys. 21 (1953) 1087; the error is that of the mean of independent chains.
    """
    rows = np.flatnonzero(np.isin(ensemble.site, cluster))
    between = np.ascontiguousarray(ensemble.between[np.ix_(rows, rows)])
    first = np.searchsorted(ensemble.site[rows], [*cluster, cluster[-1] + 1])
    pairs = [(a, b) for a in range(len(cluster)) for b in range(a)
             if np.abs(between[first[a]:first[a + 1], first[b]:first[b + 1]]).max() > STRONG]
    chains = CHAINS * len(own)
    sums = engine.zeros((chains, len(rows)), np.float64)
    engine.launch(
        KERNELS["run_chains"], chains, "titration", 1, own=np.ascontiguousarray(own[:, rows]), between=between,
        first=first, pairs=np.array(pairs, np.int64).reshape(-1, 2),
        seeds=np.random.default_rng(seed).integers(1, 2**63, chains, np.uint64),
        fields=engine.zeros((chains, len(rows)), np.float64), states=engine.zeros((chains, len(cluster)), np.int64),
        sums=sums, rows=len(rows), sites=len(cluster), pair_count=len(pairs), chains_of_each=CHAINS, sweeps=SWEEPS,
        skipped=SKIPPED)
    means = engine.to_host(sums).reshape(len(own), CHAINS, -1) / SWEEPS
    return means.mean(1), means.std(1, ddof=1) / np.sqrt(CHAINS)
