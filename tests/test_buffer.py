"""The estimate of a pair list's buffer: against sampled displacements, and what must hold of it."""

import itertools

import numpy as np
import pytest

from vmdpotential.engines.pairs import Atoms
from vmdpotential.errors import TaskError, UsageError
from vmdpotential.interactions import coulomb, reaction_field
from vmdpotential.interactions.pairs import CHARGES, SOURCES, PairPotential, Term
from vmdpotential.pairs import buffer

CUTOFF = 9.0
FIELD = PairPotential((Term("coulomb", reaction_field.INTERACTION.bind(cutoff=CUTOFF, permittivity=0.0), CHARGES),))


def ions(charges=(10.0, -10.0, 10.0)):
    charge = np.tile(charges, 100)
    return Atoms(np.zeros((len(charge), 3)), {"charge": charge})


def kinds(masses=(16.0, 1.0, 1.0)):
    return buffer.Kinds.of(FIELD, ions(), np.tile(masses, 100), 3000.0, 300.0)


def test_missed_energy_equals_that_of_sampled_displacements():
    one = buffer.Kinds.of(FIELD, ions((10.0,)), np.full(100, 20.0), 1000.0, 300.0)
    age, gap = 40.0, 0.3
    sigma = float(np.sqrt(one.spread[0, 0])) * age
    assert 0.1 < sigma < 0.3
    rng = np.random.default_rng(1)
    # distances before, evenly over a shell outside of the list's radius, and after
    before = CUTOFF + gap + rng.uniform(0, 8 * sigma, 4_000_000)
    after = before + rng.normal(0, sigma, before.size)
    term = FIELD.terms[0].bound
    energy = np.where(after < CUTOFF, 100.0 * term(after), 0.0)
    shells = 4 * np.pi * before**2 * 0.1 * 8 * sigma
    sampled = 0.5 * float(np.mean(energy * shells))
    assert one.missed(gap, age) == pytest.approx(sampled, rel=0.05)  # the shell's radius is a mean one


def test_drift_falls_with_the_buffer_and_grows_with_age():
    of = kinds()
    by_buffer = [buffer.drift(of, b, 20.0) for b in (0.0, 0.3, 0.6, 1.2, 2.4)]
    assert all(a > b > 0 for a, b in itertools.pairwise(by_buffer))
    by_life = [of.missed(0.5, t) for t in (5.0, 10.0, 20.0, 40.0)]
    assert all(a < b for a, b in itertools.pairwise(by_life))
    assert of.missed(0.5, 20.0) > kinds((16.0, 4.0, 4.0)).missed(0.5, 20.0)


def test_buffer_keeps_the_tolerance_and_is_the_least_that_does():
    of = kinds()
    for tolerance in (1e-3, 0.06, 5.0):
        found = buffer.buffer_for(of, tolerance, 20.0)
        assert buffer.drift(of, found, 20.0) <= tolerance < buffer.drift(of, found - 2e-4, 20.0)
    assert buffer.buffer_for(of, 1e9, 20.0) == 0
    with pytest.raises(TaskError, match="make lists more often"):
        buffer.buffer_for(of, 1e-9, 1e5)


def test_kinds_count_every_pair():
    of = kinds()
    assert of.weight.sum() == pytest.approx(300 / 3000.0)
    assert len(of.weight) == 3  # charges differ, or masses do


def test_what_makes_no_list_is_refused():
    gravity = PairPotential((Term("gravity", coulomb.INTERACTION.bind(), SOURCES),))
    with pytest.raises(UsageError, match="without a cutoff"):
        buffer.Kinds.of(gravity, Atoms(np.zeros((1, 3)), {"source": np.ones(1)}), np.ones(1), 10.0)
    with pytest.raises(UsageError, match="above 0"):
        buffer.Kinds.of(FIELD, ions(), np.zeros(300), 10.0)
