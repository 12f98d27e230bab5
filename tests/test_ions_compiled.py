"""Compiled steps of Metropolis' sampling do what the plain ones do, step by step."""

import numpy as np
import pytest
from test_ions_montecarlo import BIG, CLA, FACTOR, MG, SOD

from vmdpotential import memory
from vmdpotential.engines import get_engine
from vmdpotential.ions.montecarlo import Metropolis
from vmdpotential.ions.sites import Candidates, Surroundings
from vmdpotential.molecule.cell import Cell


@pytest.mark.slow
@pytest.mark.parametrize("species", [(SOD, CLA, CLA, MG, CLA), (SOD, BIG, CLA, BIG, CLA, CLA)], ids=["one", "sizes"])
def test_compiled_steps_are_the_plain_ones(species, monkeypatch):
    random = np.random.default_rng(8)
    cell = Cell.from_parameters(20, 24, 22, 70, 80, 65)
    around = Surroundings(random.uniform(0, 20, (8, 3)), random.normal(0, 0.3, 8), np.zeros((0, 3)), np.zeros(0), cell)
    candidates = Candidates(random.uniform(-5, 25, (150, 3)), [(ion, 1) for ion in species], around, get_engine("cpu"),
                            2.5, 5.0)
    sizes = np.array([candidates.radii.index(ion.radius) for ion in species])

    def run(start):
        ions = Metropolis(candidates.free, start.copy(), species, sizes, FACTOR)
        return ions, ions.run(60, np.random.default_rng(3))

    start = []
    taken = candidates.barred.copy()
    for size in sizes:  # the first that is free
        start.append(int(np.argmin(taken[size])))
        for row, distance in enumerate(candidates.apart[size]):
            taken[row, candidates.neighbours.near(start[-1], distance)] = True
    compiled, report = run(np.array(start))
    assert compiled._pairs is not None
    monkeypatch.setattr(memory, "limit", lambda: 0)  # no room for the potentials of all pairs
    plain, same = run(np.array(start))
    assert plain._pairs is None
    assert compiled.placed.tolist() == plain.placed.tolist() != start
    assert (report.moves, report.exchanges) == (same.moves, same.exchanges)
    assert 0 < report.moves[1] < report.moves[0]
    assert 0 < report.exchanges[1] < report.exchanges[0]
    np.testing.assert_allclose(report.energies, same.energies, rtol=0, atol=1e-9)
    np.testing.assert_allclose(compiled._phi, plain._phi, rtol=0, atol=1e-9)
