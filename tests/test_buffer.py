"""The estimate of a pair list's buffer: against sampled displacements, and what must hold of it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, special

from vmdpotential.engines.pairs import Atoms
from vmdpotential.errors import TaskError, UsageError
from vmdpotential.interactions import coulomb, reaction_field
from vmdpotential.interactions.pairs import CHARGES, SOURCES, PairPotential, Term
from vmdpotential.plugins.historical import buffer

CUTOFF = 9.0
FIELD = PairPotential((Term("coulomb", reaction_field.INTERACTION.bind(cutoff=CUTOFF, permittivity=0.0), CHARGES),))


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


def test_missed_energy_is_the_integral_of_the_potential_expanded_to_third_order():
    age, gap = 40.0, 0.3
    flat = buffer.AtomKinds.of(FIELD, ions((10.0,)), np.full(100, 20.0), 1000.0, 300.0)
    sigma = float(np.sqrt(flat.spread[0, 0])) * age
    x = np.linspace(0, 12 * sigma, 40_001)  # how far within the cutoff
    weight = np.array([0.5 * special.erfc((gap + y) / (np.sqrt(2) * sigma)) for y in x])  # of pairs from everywhere
    for derivatives in np.diag([3.0, 5.0, 40.0]):
        of = replace(flat, derivatives=derivatives.reshape(3, 1, 1))
        d1, d2, d3 = derivatives
        expected = integrate.trapezoid((-d1 * x + d2 * x**2 / 2 - d3 * x**3 / 6) * weight, x)
        shell = 4 * np.pi * (CUTOFF + gap + sigma) ** 2
        assert of.missed_energy(gap, age) == pytest.approx(0.5 * 0.1 * shell * abs(expected), rel=1e-4)
    both = replace(flat, derivatives=np.array([0.0, 5.0, 60.0]).reshape(3, 1, 1))
    d2, d3 = (replace(flat, derivatives=np.array(d).reshape(3, 1, 1)).missed_energy(gap, age)
                  for d in ((0.0, 5.0, 0.0), (0.0, 0.0, 60.0)))
    assert both.missed_energy(gap, age) == pytest.approx(d2 - d3)  # they are of opposite sign


def test_the_heaviest_constraint_counts_and_none_changes_nothing():
    masses = np.array([1.0, 16.0, 12.0])
    atoms = Atoms(np.zeros((3, 3)), {"charge": np.ones(3)})
    bonds = buffer.Constraints(np.array([[0, 2], [0, 1]]), np.array([1.1, 1.0]))
    result = buffer.AtomKinds.of(FIELD, atoms, masses, 100.0, 300.0, bonds)
    rows = {round(float(a), 4) for a in result.arm}
    assert rows == {round(16 / 17, 4), round(1 / 17, 4), round(1.1 / 13, 4)}
    # all of an atom's motion is in its two parts, along three axes and two
    light = int(np.argmax(result.arm))
    # an arc comes to its widest, and stays
    ways = np.array([result._around(t) for t in np.geomspace(1, 1e5, 60)])
    assert (np.diff(ways, axis=0) >= 0).all()
    assert (ways[-1] < 4 * result.arm**2).all()
    assert result.spread[light, light] / 2 + result.turning[light] == pytest.approx(buffer.THERMAL * 300.0)
    none = buffer.Constraints(np.zeros((0, 2), np.int64), np.zeros(0))
    assert buffer.AtomKinds.of(FIELD, atoms, masses, 100.0, 300.0, none).missed_energy(0.3, 20.0) == pytest.approx(
        buffer.AtomKinds.of(FIELD, atoms, masses, 100.0, 300.0).missed_energy(0.3, 20.0))


def test_buffer_keeps_the_tolerance_and_is_the_least_that_does():
    of = kinds()
    for tolerance in (1e-3, 0.06, 5.0):
        result = buffer.buffer_for(of, tolerance, 20.0)
        assert buffer.drift(of, result, 20.0) <= tolerance < buffer.drift(of, result - 2e-4, 20.0)
    assert buffer.buffer_for(of, 1e9, 20.0) == 0
    with pytest.raises(TaskError, match="update lists more often"):
        buffer.buffer_for(of, 1e-9, 1e5)


def test_kinds_count_every_pair():
    of = kinds()
    assert of.weight.sum() == pytest.approx(300 / 3000.0)
    assert len(of.weight) == 3  # charges differ, or masses do


def test_what_makes_no_list_is_refused():
    gravity = PairPotential((Term("gravity", coulomb.INTERACTION.bind(), SOURCES),))
    with pytest.raises(UsageError, match="without a cutoff"):
        buffer.AtomKinds.of(gravity, Atoms(np.zeros((1, 3)), {"source": np.ones(1)}), np.ones(1), 10.0)
    with pytest.raises(UsageError, match="above 0"):
        buffer.AtomKinds.of(FIELD, ions(), np.zeros(300), 10.0)
