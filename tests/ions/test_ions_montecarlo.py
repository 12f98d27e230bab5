"""Metropolis sampling of ions' sites: exact distributions, energies summed again, compiled steps and plain ones."""

import itertools
import math
from collections import Counter

import ewald
import golden
import numpy as np
import pytest
from helpers import refused
from messages import Words, naming
from scipy.stats import chi2

from vmdpotential import memory, place_ions
from vmdpotential.engines import get_engine
from vmdpotential.errors import UsageError
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.ions.command import command
from vmdpotential.plugins.ions.counts import IonSpecies
from vmdpotential.plugins.ions.montecarlo import Metropolis
from vmdpotential.plugins.ions.moves import FreeSites
from vmdpotential.plugins.ions.sites import CandidateSites, Surroundings
from vmdpotential.units import coulomb_constant

SOD, CLA, MG, BIG = IonSpecies("SOD", 1), IonSpecies("CLA", -1), IonSpecies("MG", 2), IonSpecies("TMA", 1, 2.0)
FACTOR = coulomb_constant("kT/e", 298.15, 78.5)


class Plain:
    """Coulomb's law and distances without a cell, in the shortest words."""

    steps = None

    def __init__(self, sites):
        self.sites = sites

    def add(self, points, position, charge, potential):
        potential += charge / np.maximum(np.sqrt(((points - position) ** 2).sum(1)), 1e-3)

    def near(self, site, distance):
        return np.flatnonzero((np.linalg.norm(self.sites - self.sites[site], axis=1) < distance)
                              | (np.arange(len(self.sites)) == site))


def metropolis(sites, fixed, placed, species, apart, barred, plain):
    radii = sorted({ion.radius for ion in species})
    sizes = np.array([radii.index(ion.radius) for ion in species])
    free = FreeSites(sites, fixed, np.asarray(apart), barred, plain, plain)
    return Metropolis(free, np.array(placed), species, sizes, FACTOR)


@pytest.mark.parametrize("species", [(SOD, CLA), (MG, CLA, CLA), (SOD, BIG, CLA)], ids=["two", "three", "sizes"])
def test_arrangements_have_their_boltzmann_factors(species):
    """All arrangements that the distances allow, counted out; exchanges and moves must leave their frequencies."""
    random = np.random.default_rng(5)
    sites = np.array([(0, 0, 0), (3, 0, 0), (0, 4, 0), (5, 5, 0), (0, 1, 6), (6, 0, 3.0)])
    fixed = random.normal(0, 0.1, len(sites))
    apart = np.array([[3.5, 4.5], [4.5, 5.5]]) if BIG in species else np.array([[3.5]])
    barred = np.zeros((len(apart), len(sites)), bool)
    barred[-1, 3] = len(apart) > 1  # never by the large one
    size = [int(ion.radius > 0) for ion in species]
    weights = {}
    for places in itertools.permutations(range(len(sites)), len(species)):
        energy, allowed = 0.0, not any(barred[s, p] for s, p in zip(size, places, strict=True))
        for i, a in enumerate(places):
            energy += species[i].charge * fixed[a]
            for j in range(i):
                r = np.linalg.norm(sites[a] - sites[places[j]])
                energy += species[i].charge * species[j].charge / r
                allowed &= r >= apart[size[i], size[j]]
        if allowed:
            weights[places] = math.exp(-FACTOR * energy)
    plain = Plain(sites)
    start = next(iter(weights))
    run = metropolis(sites, fixed, start, species, apart, barred, plain)
    generator = np.random.default_rng(11)
    actual = Counter()
    samples, between = 2000, 2
    for _ in range(samples):
        for _ in range(between):
            run.sweep(generator)
        actual[tuple(run.placed.tolist())] += 1
    assert set(actual) <= set(weights)
    assert len(weights) > 10
    total = sum(weights.values())
    # arrangements with few samples expected count as one
    expected = {places: samples * weight / total for places, weight in weights.items()}
    common = [places for places in weights if expected[places] >= 5]
    rest = samples - sum(expected[places] for places in common), samples - sum(actual[places] for places in common)
    square = sum((actual[p] - expected[p]) ** 2 / expected[p] for p in common)
    square += (rest[1] - rest[0]) ** 2 / rest[0] if rest[0] >= 5 else 0.0
    assert square < chi2.isf(1e-4, len(common))
    assert run.energy == pytest.approx(-math.log(weights[tuple(run.placed.tolist())]), abs=1e-9)
    tried, accepted = run.counts.T
    assert (accepted > 0).all()
    assert (accepted <= tried).all()


OPTIONS = {"site": "monte-carlo", "concentration": 0.5, "salt": {"NaCl": 0.6, "MgCl2": 0.4}, "from_solute": 4,
           "between": 4.5, "sweeps": 40}


@pytest.fixture(scope="module")
def placement():
    return place_ions(golden.structure(), seed=4, **OPTIONS)


def test_the_energy_carried_along_is_that_of_the_arrangement(placement):
    cell, ions = placement.original.cell, sorted(placement.ions, key=lambda ion: ion.order)
    assert placement.dielectric == 78.5
    assert f"dielectric {placement.dielectric:g}" in "\n".join(placement.lines)
    sites = np.array([ion.position for ion in ions])
    charges = np.array([ion.charge for ion in ions], float)
    solute = placement.original.residue_names == "ANI"
    fixed = ewald.potential(sites, placement.original.positions[solute], placement.original.charges[solute],
                            cell.vectors)
    apart = (sites[:, None] - sites).reshape(-1, 3)
    pairs = ewald.potential(apart, np.zeros((1, 3)), np.ones(1), cell.vectors).reshape(len(sites), -1)
    np.fill_diagonal(pairs, 0.0)
    energy = FACTOR * (charges @ fixed + charges @ pairs @ charges / 2)
    assert placement.sampling.energies[-1] == pytest.approx(energy, abs=1e-3)
    assert sum(ion.energy_kt for ion in ions) == pytest.approx(energy, abs=1e-3)
    assert min(ion.ion_distance for ion in ions) >= 4.5
    assert min(ion.solute_distance for ion in ions) >= 4


def test_samples_differ_by_their_seeds_alone(placement):
    again = place_ions(golden.structure(), seed=4, **OPTIONS)
    other = place_ions(golden.structure(), seed=5, **OPTIONS)
    assert again.ions == placement.ions != other.ions
    assert (placement.counts.added, placement.seed) == (other.counts.added, 4)
    assert placement.sampling.moves[0] + placement.sampling.exchanges[0] == 40 * len(placement.ions)
    data = placement.data["sampling"]
    assert data["exchanges_accepted"] > 0
    assert data["energy_of_halves_kT"][1] == pytest.approx(placement.sampling.energies[20:].mean())
    assert placement.sampling.line in placement.lines


def test_replicas_are_the_placements_of_their_seeds_in_numbered_files(tmp_path, placement):
    options = {**OPTIONS, "salt": "NaCl:0.6,MgCl2:0.4"}
    report = command(structure=golden.structure(), seed=3, replicas=3, table=tmp_path / "t.csv",
                     output=[tmp_path / "a.b.pdb", tmp_path / "c.pqr.gz"], **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{name}_{n}.{end}" for name, end in (("a.b", "pdb"), ("c", "pqr.gz"), ("t", "csv")) for n in (1, 2, 3)]
    three = report.objects["placements"]
    assert three[1].ions == placement.ions
    assert [each.seed for each in three] == [3, 4, 5] == [each["seed"] for each in report.data["replicas"]]
    assert len({each.ions for each in three}) == 3
    rows = (tmp_path / "t_2.csv").read_text().splitlines()
    assert rows[1:] == [",".join(map(str, ion.row)) for ion in placement.ions]
    assert report.data["files"][:3] == [str(tmp_path / name) for name in ("a.b_1.pdb", "c_1.pqr.gz", "t_1.csv")]
    assert report.data["distributions"]["placements"] == 3
    assert report.data["least_distances"]["MG"]["ion"] == min(
        ion.ion_distance for each in three for ion in each.ions if ion.name == "MG")
    with naming(UsageError, Words.EXISTS):
        command(structure=golden.structure(), replicas=2, output=[tmp_path / "a.b.pdb"], site="random")


def test_replicas_that_would_be_the_same_or_have_no_names_are_refused(tmp_path):
    with refused("replicas"):
        command(structure=golden.structure(), replicas=2, output=[tmp_path / "a.pdb"])
    with refused("replicas"):
        command(structure=golden.structure(), replicas=2, output=["-"], format="pdb", site="random")
    with refused("replicas"):
        command(structure=golden.structure(), replicas=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("species", [(SOD, CLA, CLA, MG, CLA), (SOD, BIG, CLA, BIG, CLA, CLA)], ids=["one", "sizes"])
def test_compiled_steps_are_the_plain_ones(species, monkeypatch):
    random = np.random.default_rng(8)
    cell = Cell.from_parameters(20, 24, 22, 70, 80, 65)
    around = Surroundings(random.uniform(0, 20, (8, 3)), random.normal(0, 0.3, 8), np.zeros((0, 3)), np.zeros(0), cell)
    candidates = CandidateSites(random.uniform(-5, 25, (150, 3)), [(ion, 1) for ion in species], around,
                                get_engine("cpu"),
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
