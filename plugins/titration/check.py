"""What `verify` checks of titration."""

from __future__ import annotations

import numpy as np

from vmdpotential.engines import Engine

from .energies import ChargeChange, Solvent, site_energies
from .statistics import LN10, SiteEnsemble


def check_titration(engine: Engine, seed: int) -> list[tuple[str, float, float]]:
    """Return errors of sites in a ball against Born's and Kirkwood's closed forms, and of Monte Carlo."""
    solvent, radius, ion = Solvent(inside=4.0, salt=0.0), 8.0, 2.0
    positions = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    change = ChargeChange(0, np.array([1]), np.array([1.0]), np.array([1]))
    found = site_energies(positions, np.array([radius, ion]), np.zeros(2), [change], solvent, engine)
    outer = 1 / solvent.outside - 1 / solvent.inside
    exact = 0.5 * solvent.constant * outer * (1 / radius - 1 / ion)
    rng, count = np.random.default_rng(seed), 8
    between = rng.normal(0, 2.0, (count, count))
    between = np.triu(between, 1) + np.triu(between, 1).T
    ensemble = SiteEnsemble(np.arange(count), np.ones(count, np.int64), -LN10 * rng.normal(7, 1.5, count), between)
    ph = np.array([6.0, 8.0])
    exactly, _ = ensemble.populations(ph, engine)
    sampled, errors = ensemble.populations(ph, engine, exact=0, seed=seed)
    return [("titration, desolvation in a ball, closed form", abs(float(found.desolvation[0]) / exact - 1), 0.03),
            ("titration, Monte Carlo within its errors", float((np.abs(sampled - exactly) / (errors + 1e-3)).max()) / 6,
             1.0)]
