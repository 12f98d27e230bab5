"""Populations of coupled sites: exact sums against a sum over all combinations, Monte Carlo against exact sums."""

import itertools

import numpy as np
import pytest

from vmdpotential.plugins.titration.statistics import LN10, SiteEnsemble


def random_ensemble(seed, sites=9, coupling=2.0):
    """Return sites with random energies, one of which has three states."""
    rng = np.random.default_rng(seed)
    site = np.sort(np.append(np.arange(sites), 4))
    protons = rng.choice([-1, 1], len(site))
    protons[np.flatnonzero(site == 4)] = [1, 0]
    between = rng.normal(0, coupling, (len(site), len(site)))
    between = between + between.T
    between[site[:, None] == site] = 0.0
    return SiteEnsemble(site, protons, -12 * protons + rng.normal(0, 3, len(site)), between)


def summed(ensemble, ph):
    """Return populations by the sum over all combinations of states."""
    own, total, result = ensemble.at(ph), 0.0, np.zeros(len(ensemble.site))
    for chosen in itertools.product(*([-1, *ensemble.states_of(n)] for n in range(ensemble.count))):
        rows = [row for row in chosen if row >= 0]
        weight = np.exp(-own[rows].sum() - 0.5 * ensemble.between[np.ix_(rows, rows)].sum())
        total += weight
        result[rows] += weight
    return result / total


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_exact_populations_are_those_of_all_combinations(seed, engine):
    ensemble, ph = random_ensemble(seed), np.array([-3.0, 2.0, 5.0, 6.5, 9.0, 16.0])
    found, errors = ensemble.populations(ph, engine)
    assert found == pytest.approx(np.array([summed(ensemble, each) for each in ph]), abs=3e-6)
    assert not errors.any()


def test_monte_carlo_agrees_within_its_errors(engine):
    """Strongly coupled sites, too, which have to change together."""
    ph = np.array([3.0, 5.0, 7.0])
    deviations = []
    for seed in range(4):
        ensemble = random_ensemble(seed, coupling=3.0)
        exact, _ = ensemble.populations(ph, engine)
        found, errors = ensemble.populations(ph, engine, exact=0, seed=seed)
        assert errors.max() < 0.02
        free = errors > 1e-4
        assert found[~free] == pytest.approx(exact[~free], abs=2e-3)
        deviations.append(((found - exact) / np.maximum(errors, 1e-9))[free])
    every = np.concatenate(deviations)
    assert 0.6 < np.sqrt(np.mean(every**2)) < 1.5  # neither larger nor much smaller than stated
    assert abs(every).max() < 5


def test_uncoupled_sites_titrate_alone(engine):
    pka = np.array([3.0, 7.0, 11.0])
    ensemble = SiteEnsemble(np.arange(3), np.ones(3, np.int64), -LN10 * pka, np.zeros((3, 3)))
    ph = np.arange(0.0, 14.0, 0.5)
    found, _ = ensemble.populations(ph, engine)
    assert found == pytest.approx(1 / (1 + 10 ** (ph[:, None] - pka)), abs=2e-6)
