"""One molecule with many sets of charges: the equation is made once, and each solution is that of its charges."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import charges_at
from scipy.spatial import cKDTree

from vmdpotential.engines import get_engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.plugins.continuum import equation
from vmdpotential.plugins.continuum.molecule import Continuum, Membrane
from vmdpotential.plugins.continuum.node_potential import NodePotential
from vmdpotential.plugins.continuum.solution import TwoLattices, solve_charge_sets
from vmdpotential.plugins.continuum.solved_potential import SolvedPotential
from vmdpotential.units import coulomb_constant, debye_length

PLACES = np.array([[0.0, 0.3, 0.1], [1.4, -0.6, 0.7], [-1.9, 1.2, -0.4], [3.1, 0.5, 0.2]])


def balls(**changes):
    """Return four overlapping balls in water with salt."""
    atoms = charges_at(PLACES, np.ones(len(PLACES)))
    result = Continuum(atoms.positions, atoms.known_charges, np.array([1.7, 1.5, 1.9, 1.4]),
                       coulomb_constant("kT/e", 300.0), 4.0, 78.5, 1.4, 2.0, 1 / debye_length(0.1, 300.0, 78.5),
                       np.zeros((0, 2)))
    return replace(result, **changes)


@pytest.mark.parametrize("changes", [
    {}, {"kappa": 0.0}, {"gaussian": 0.9}, {"membrane": Membrane(-6.0, 6.0, 2.0)},
    {"ions": np.array([[1.0, 0.5], [-1.0, 0.5]])}], ids=["salt", "no salt", "smooth", "membrane", "full"])
@pytest.mark.parametrize("together", [1, 3])
def test_solutions_are_those_of_single_charge_sets(changes, together, monkeypatch):
    continuum, engine = balls(**changes), get_engine("cpu")
    monkeypatch.setattr(engine, "team_size", lambda most: max(1, min(together, most[1])) if most[0] == 1 else most[0])
    lattice = Lattice.around(continuum.positions, 0.9, 4.0)
    sets = [np.array(charges) for charges in ([1.0, 0, 0, 0], [0, -0.5, 0.8, 0], [0.0, 0, 0, 0], [0.4, 0.3, 0.2, 0.1])]
    alone = [TwoLattices(continuum.with_charges(charges), lattice, engine, NodePotential("cpu")) for charges in sets]
    made, solver = [], equation.MultigridSolver
    monkeypatch.setattr(equation, "MultigridSolver", lambda *given: made.append(0) or solver(*given))
    count, covers = 0, []
    for single, solved in zip(alone, solve_charge_sets(continuum, lattice, engine, sets), strict=True):
        assert np.array_equal(solved.reaction, single.reaction)
        assert np.array_equal(SolvedPotential(solved).values(), SolvedPotential(single).values())
        assert solved.reaction_errors().of_energy() == single.reaction_errors().of_energy()
        covers.append(solved.continuum.covers)
        count += 1
    assert all(each is covers[0] for each in covers)
    assert (count, len(made)) == (4, 2)  # one equation for each of both lattices, whatever the number of sets


def of(total, lattice, positions, charges):
    """Return the values at the nodes of a lattice."""
    values, (x, y, z) = total(lattice, positions, charges)
    a, b, c = lattice.shape
    return values[x : x + a, y : y + b, z : z + c].copy()


@pytest.mark.parametrize("moved", [0.0, 0.1])
@pytest.mark.parametrize("first", [(2, 3, 1), (-1, 0, 0), (0, 0, 12)])
def test_potentials_of_charges_on_a_part_of_known_nodes(first, moved):
    """They are those that are kept, if the charges and the nodes are the same."""
    charges, total = np.array([1.0, -0.5, 0.3, 0.2]), NodePotential("cpu", keeps_values=True)
    whole = Lattice.around(PLACES, 0.5, 4.0)
    total(whole, PLACES, charges)[0][5, 5, 5] = 0.0
    part = Lattice(whole.origin + 0.5 * np.array(first), whole.spacing, (12, 11, whole.shape[2] - 5))
    values, new = (of(each, part, PLACES + moved, charges) for each in (total, NodePotential("cpu")))
    node = tuple(5 - n for n in first)
    if first == (2, 3, 1) and not moved:
        assert values[node] == 0
        new[node] = 0.0
    assert values == pytest.approx(new, rel=1e-6)


def test_reaction_potentials_are_reciprocal():
    """The potential of a at b is that of b at a; the lattice keeps this to its error."""
    continuum, engine = balls(), get_engine("cpu")
    lattice = Lattice.around(continuum.positions, 0.5, 4.0)
    potentials = np.array([solved.reaction.copy()
                           for solved in solve_charge_sets(continuum, lattice, engine, np.eye(len(PLACES)))])
    assert potentials == pytest.approx(potentials.T, rel=0.01)
    assert (potentials < 0).all()


def test_frames_whose_lattice_differs_by_some_nodes_share_a_plan():
    rng = np.random.default_rng(4)
    positions, charges = rng.uniform(0, 12, (60, 3)), rng.normal(size=60)
    total, first = NodePotential("cpu"), Lattice.around(positions, 1.0, 2.0)
    total(first, positions, charges)
    plans = []
    for low, high in ((0, 0), (-1, 2), (1, -1), (-9, 9)):
        lattice = first.window(np.full(3, low), np.add(first.shape, high))
        values = of(total, lattice, positions + 0.1 * high, charges)
        apart = np.linalg.norm(lattice.points()[:, None] - positions - 0.1 * high, axis=2)
        exact = (charges / apart).sum(1).reshape(lattice.shape)
        far = apart.min(1).reshape(lattice.shape) > 0.5
        np.testing.assert_allclose(values[far], exact[far], atol=1e-4 * np.sqrt(np.mean(exact[far] ** 2)))
        plans.append(total._plans[1.0, 1.0, 1.0][1])
    assert plans[0] is plans[1] is plans[2] is not plans[3]


def test_part_of_a_lattice():
    lattice = Lattice(np.array([0.3, -1.0, 2.0]), 0.5, (9, 8, 7))
    part = lattice.part_of(lattice.window((1, 2, 0), (9, 5, 6)))
    assert part == (slice(1, 9), slice(2, 5), slice(0, 6))
    assert all(lattice.part_of(other) is None for other in (
        lattice.window((-1, 0, 0), (3, 3, 3)), lattice.window((0, 0, 3), (3, 3, 8)), lattice.every(2),
        Lattice(lattice.origin + 0.1, 0.5, (2, 2, 2))))


@pytest.mark.parametrize(("changes", "spacing", "ratio"), [
    ({}, 0.5, 4), ({}, 0.9, 2), ({"kappa": 0.0}, 0.5, 2), ({"gaussian": 0.9}, 0.9, 2),
    ({"membrane": Membrane(-6.0, 6.0, 2.0)}, 0.9, 2), ({"ions": np.array([[1.0, 0.5], [-1.0, 0.5]])}, 0.9, 2)],
    ids=["fine", "coarse", "no salt", "smooth", "membrane", "full"])
def test_reaction_potentials_without_those_of_the_solution(changes, spacing, ratio):
    """Where no ions shield the molecule from the faces, or the equation is not linear, the solutions are the same."""
    continuum, engine = balls(**changes), get_engine("cpu")
    lattice = Lattice.around(continuum.positions, spacing, 4.0)
    whole, energies = (TwoLattices(continuum, lattice, engine, NodePotential("cpu"), energies=alone)
                       for alone in (False, True))
    assert energies.ratio == ratio
    if changes:
        assert np.array_equal(energies.reaction, whole.reaction)
    assert energies.reaction == pytest.approx(whole.reaction, rel=1e-3)
    assert not changes or energies.reaction_errors().of_energy() == whole.reaction_errors().of_energy()
    size = abs(float(continuum.charges @ whole.reaction)) / 2
    assert abs(float(continuum.charges @ (energies.reaction - whole.reaction))) / 2 < 3e-4 * size


@pytest.mark.parametrize(("count", "radius"), [(1, 1.5), (5, 0.0), (400, 1.5)])
def test_covers_are_those_among_the_nearest_atoms(count, radius):
    rng = np.random.default_rng(8)
    places = np.append(rng.uniform(0, 14, (count, 3)), [[90.0, 3.0, 2.0]], 0)  # and one far away
    radii, probe = radius * rng.choice([0.0, 1.0, 1.2], count + 1, p=[0.3, 0.4, 0.3]), 1.4
    radii[0] = radius
    found = replace(balls(), positions=places, charges=np.zeros(len(radii)), radii=radii).covers
    nearest = np.flatnonzero(radii > 0) if radius else np.arange(count + 1)
    distances, near = cKDTree(places[nearest]).query(places, range(1, 1 + min(8, len(nearest))))
    below = radii[nearest[near]] - distances
    owners = nearest[near[np.arange(count + 1), below.argmax(1)]]
    assert np.array_equal(found.owners, owners)
    np.testing.assert_allclose(found.depths, below.max(1), rtol=0, atol=1e-12)
    wide, apart, others = radii + probe, np.maximum(distances, 1e-6), nearest[near]
    caps = (wide[:, None] ** 2 + apart**2 - wide[others] ** 2) / (2 * wide[:, None] * apart)
    free = np.where(others == np.arange(count + 1)[:, None], 1.0, (1 + np.clip(caps, -1, 1)) / 2).prod(1)
    np.testing.assert_allclose(found.exposed, free[owners], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.radii, radii[owners])
