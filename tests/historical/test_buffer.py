"""Pair lists in motion: energy is kept, and what lists miss is less than their buffers' estimate."""

import numpy as np
import pytest
from helpers import refused

from vmdpotential.errors import TaskError
from vmdpotential.interactions import coulomb, reaction_field
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.historical import buffer, samples
from vmdpotential.plugins.historical.lists import ListedPairs
from vmdpotential.plugins.pairs import lennard_jones
from vmdpotential.plugins.pairs.in_range import Atoms
from vmdpotential.plugins.pairs.pair_terms import CHARGES_RULE, GEOMETRIC_RULE, PairPotential, PairTerm

CUTOFF = 9.0
FIELD = PairPotential((PairTerm("coulomb", reaction_field.INTERACTION.bind(cutoff=CUTOFF, permittivity=0.0),
                                CHARGES_RULE),))


def ions(charges=(10.0, -10.0, 10.0)):
    charge = np.tile(charges, 100)
    return Atoms(np.zeros((len(charge), 3)), {"charge": charge})


def kinds(masses=(16.0, 1.0, 1.0)):
    return buffer.AtomKinds.of(FIELD, ions(), np.tile(masses, 100), 3000.0, 300.0)


def test_missed_energy_equals_that_of_sampled_displacements():
    kinds = buffer.AtomKinds.of(FIELD, ions((10.0,)), np.full(100, 20.0), 1000.0, 300.0)
    age, gap = 40.0, 0.3
    sigma = float(np.sqrt(kinds.spread[0, 0])) * age
    assert 0.1 < sigma < 0.3
    rng = np.random.default_rng(1)
    # distances before, evenly over a shell outside of the list's radius, and after
    before = CUTOFF + gap + rng.uniform(0, 8 * sigma, 4_000_000)
    after = before + rng.normal(0, sigma, before.size)
    term = FIELD.terms[0].bound
    energy = np.where(after < CUTOFF, 100.0 * term(after), 0.0)
    shells = 4 * np.pi * before**2 * 0.1 * 8 * sigma
    sampled = 0.5 * float(np.mean(energy * shells))
    assert kinds.missed_energy(gap, age) == pytest.approx(sampled, rel=0.05)  # the shell's radius is a mean one


@pytest.mark.parametrize("length", [3.0, 0.4])
def test_missed_energy_of_constrained_atoms_equals_that_of_sampled_displacements(length):
    """Light atoms on bonds to heavy ones: these move as they like, those around them on arcs."""
    light, heavy, age, gap, count = 4.0, 30.0, 40.0, 0.3, 2_000_000
    charges = np.zeros(200)
    charges[::2] = 10
    bonds = buffer.Constraints(np.arange(200).reshape(-1, 2)[:, ::-1].copy(), np.full(100, length))
    masses = np.tile([light, heavy], 100)
    free, bound = (buffer.AtomKinds.of(FIELD, Atoms(np.zeros((200, 3)), {"charge": charges}),
                                       masses, 1000.0, 300.0, given) for given in (None, bonds))
    rng = np.random.default_rng(1)
    arm, whole = length * heavy / (light + heavy), light + heavy
    variance = buffer.THERMAL * 300.0 * age**2

    def way():
        """Return how far such atoms come along a line."""
        cosine, turn = rng.uniform(-1, 1, count), rng.uniform(0, 2 * np.pi, count)
        angle = np.sqrt(variance * heavy / (light * whole)) / arm * rng.rayleigh(size=count)
        around = arm * (cosine * (np.cos(angle) - 1) + np.sqrt(1 - cosine**2) * np.cos(turn) * np.sin(angle))
        return around + rng.normal(0, np.sqrt(variance / whole), count)

    reach = 4.0
    before = CUTOFF + gap + rng.uniform(0, reach, count)
    after = before + way() - way()
    energy = np.where(after < CUTOFF, 100.0 * FIELD.terms[0].bound(after), 0.0)
    sampled = 0.5 * 0.5 * float(np.mean(energy * 4 * np.pi * before**2 * 0.1 * reach))
    if length > 1:
        assert bound.missed_energy(gap, age) == pytest.approx(sampled, rel=0.06)
    else:  # what cannot go further than twice the arm is taken to be normal: a bound still
        assert sampled < bound.missed_energy(gap, age) < 0.7 * free.missed_energy(gap, age)


def test_buffer_keeps_the_tolerance_and_is_the_least_that_does():
    of = kinds()
    for tolerance in (1e-3, 0.06, 5.0):
        result = buffer.buffer_for(of, tolerance, 20.0)
        assert buffer.drift(of, result, 20.0) <= tolerance < buffer.drift(of, result - 2e-4, 20.0)
    assert buffer.buffer_for(of, 1e9, 20.0) == 0
    with pytest.raises(TaskError):
        buffer.buffer_for(of, 1e-9, 1e5)


def test_what_makes_no_list_is_refused():
    endless = PairPotential((PairTerm("coulomb", coulomb.INTERACTION.bind(), CHARGES_RULE),))
    with refused("cutoff"):
        buffer.AtomKinds.of(endless, Atoms(np.zeros((1, 3)), {"charge": np.ones(1)}), np.ones(1), 10.0)
    with refused("masses"):
        buffer.AtomKinds.of(FIELD, ions(), np.zeros(300), 10.0)


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
    potential = PairPotential((PairTerm("lj", lennard_jones.SWITCHED.bind(cutoff=9.0, switch=7.0), GEOMETRIC_RULE),))
    cell = Cell.from_parameters(edge, edge, edge)
    masses = np.full(count, mass)
    kinds = buffer.AtomKinds.of(potential, Atoms(x, roots), masses, edge**3, 100.0)
    kt = buffer.GAS_CONSTANT * 100.0
    gap = buffer.buffer_for(kinds, 1e-3 * kt, 10 * step)
    # what the list may miss moves from pairs, and a list ends where one atom has moved by half of the buffer
    pairs = ListedPairs(engine, potential, cell, energy=True, buffer=max(gap, 2.0))

    def energy(result):
        return float(result.energies.sum() + 0.5 * mass * (v**2).sum() / MOTION)

    listed = pairs.search(Atoms(x, roots))
    result = listed.run_moved(x)
    energies = [energy(result)]
    for number in range(1000):
        v += 0.5 * step / mass * result.forces * MOTION
        x = x + step * v
        if number % 10 == 9:
            listed = pairs.search(Atoms(x, roots))
        result = listed.run_moved(x)
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
        pairs = ListedPairs(engine, potential, water.cell, energy=True, buffer=gap)
        listed = pairs.search(water.atoms)
        pairs.buffer = np.inf  # it is run beyond its life on purpose
        energy = listed.run_moved(later).energies.sum()
        exact = energy if exact is None else exact
        missed.append(abs(float(energy - exact)) / len(later))
        assert missed[-1] <= kinds.missed_energy(gap, life)
    assert max(missed[1:3]) > missed[3] > 0  # errors of either sign may nearly cancel
