"""Pair lists in motion: energy is kept, and what lists miss is less than their buffers' estimate."""

import dataclasses

import numpy as np
import pytest

from vmdpotential.engines.pairs import Atoms, PairSum
from vmdpotential.interactions import lennard_jones
from vmdpotential.interactions.pairs import GEOMETRIC, PairPotential, Term
from vmdpotential.molecule.cell import Cell
from vmdpotential.pairs import samples
from vmdpotential.plugins.historical import buffer

#: kcal/mol in u A^2/fs^2.
MOTION = 4.184e-4


@pytest.mark.slow
def test_energy_is_kept_over_a_thousand_steps(engine):
    """Liquid argon by velocity Verlet, with a list for ten steps at a time."""
    side, edge, mass, step = 6, 22.0, 39.948, 4.0
    sigma, epsilon = 3.405, 0.238
    rng = np.random.default_rng(1)
    x = (np.stack(np.meshgrid(*[np.arange(side)] * 3), -1).reshape(-1, 3) + 0.5) * edge / side
    count = len(x)
    v = rng.normal(0, np.sqrt(buffer.THERMAL * 100.0 / mass), x.shape)
    v -= v.mean(0)
    roots = {"root_a6": np.full(count, np.sqrt(24 * epsilon * sigma**6)),
             "root_a12": np.full(count, np.sqrt(48 * epsilon * sigma**12))}
    potential = PairPotential((Term("lj", lennard_jones.SWITCHED.bind(cutoff=9.0, switch=7.0), GEOMETRIC),))
    cell = Cell.from_parameters(edge, edge, edge)
    masses = np.full(count, mass)
    kinds = buffer.AtomKinds.of(potential, Atoms(x, roots), masses, edge**3, 100.0)
    kt = buffer.GAS_CONSTANT * 100.0
    gap = buffer.buffer_for(kinds, 1e-3 * kt, 10 * step)
    # what the list may miss moves from pairs, and a list ends where one atom has moved by half of the buffer
    work = PairSum(potential, cell, energy=True, buffer=max(gap, 2.0))
    pairs = engine.prepare_pairs(work)

    def energy(result):
        return float(result.energies.sum() + 0.5 * mass * (v**2).sum() / MOTION)

    listed = pairs.search(Atoms(x, roots))
    result = listed.run(x)
    energies = [energy(result)]
    for number in range(1000):
        v += 0.5 * step / mass * result.forces * MOTION
        x = x + step * v
        if number % 10 == 9:
            listed = pairs.search(Atoms(x, roots))
        result = listed.run(x)
        v += 0.5 * step / mass * result.forces * MOTION
        energies.append(energy(result))
    energies = np.array(energies)
    assert np.abs(result.forces.sum(0)).max() < 1e-3
    assert np.abs(v.mean(0)).max() < 1e-6
    drift = np.polyfit(np.arange(len(energies)) * step * 1e-6, energies / count, 1)[0]  # kcal/mol/ns an atom
    assert abs(drift) < 2 * kt
    assert energies[50:].std() / count < 0.02 * kt


def test_lists_miss_less_than_the_estimate(engine):
    """Of water that flies freely for the life of a list, with any buffer; and less with a longer one."""
    water = samples.water(24.8)
    cutoff, life = 9.0, 20.0
    potential = samples.potential("rf", cutoff)
    kinds = buffer.AtomKinds.of(potential, water.atoms, water.masses, water.cell.volume)
    speed = np.sqrt(buffer.THERMAL * 298.15 / water.masses)[:, None]
    later = water.atoms.positions + life * speed * np.random.default_rng(2).normal(size=water.atoms.positions.shape)
    exact, missed = None, []
    for gap in (4.0, 0.0, 0.4, 0.8):
        pairs = engine.prepare_pairs(PairSum(potential, water.cell, energy=True, buffer=gap))
        listed = pairs.search(water.atoms)
        pairs.work = dataclasses.replace(pairs.work, buffer=np.inf)  # it is run beyond its life on purpose
        energy = listed.run(later).energies.sum()
        exact = energy if exact is None else exact
        missed.append(abs(float(energy - exact)) / len(later))
        assert missed[-1] <= kinds.missed_energy(gap, life)
    assert missed[1] > missed[2] > missed[3] > 0
