"""Metropolis sampling of ions' sites: exact distributions, and energies summed again."""

import itertools
import math
from collections import Counter
from types import SimpleNamespace

import ewald
import golden
import numpy as np
import pytest
from helpers import refused
from messages import Words, naming
from scipy.stats import chi2

from vmdpotential import memory, place_ions
from vmdpotential.errors import MemoryPlanError, UsageError
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.ions.command import command
from vmdpotential.plugins.ions.counts import IonSpecies
from vmdpotential.plugins.ions.ewald_pair import EwaldPair, OpenPair
from vmdpotential.plugins.ions.montecarlo import Metropolis
from vmdpotential.units import coulomb_constant

SOD, CLA, MG, BIG = IonSpecies("SOD", 1), IonSpecies("CLA", -1), IonSpecies("MG", 2), IonSpecies("TMA", 1, 2.0)
FACTOR = coulomb_constant("kT/e", 298.15, 78.5)


def metropolis(sites, fixed, placed, species, apart, barred, pair):
    radii = sorted({ion.radius for ion in species})
    sizes = np.array([radii.index(ion.radius) for ion in species])
    free = SimpleNamespace(sites=np.asfortranarray(sites), fixed=fixed, apart=apart, barred=barred, pair=pair)
    return Metropolis(free, np.array(placed), species, sizes, FACTOR)


@pytest.mark.parametrize("cell", [None, Cell.from_parameters(9, 10, 11, 70, 80, 65)], ids=["open", "periodic"])
@pytest.mark.parametrize("species", [(SOD, CLA), (MG, CLA, CLA), (SOD, BIG, CLA)], ids=["two", "three", "sizes"])
def test_arrangements_have_their_boltzmann_factors(species, cell):
    """All arrangements that the distances allow, counted out; exchanges and moves must leave their frequencies."""
    random = np.random.default_rng(5)
    sites = np.array([(0, 0, 0), (3, 0, 0), (0, 4, 0), (5, 5, 0), (0, 1, 6), (6, 0, 3.0)])
    fixed = random.normal(0, 0.1, len(sites))
    apart = np.array([[3.5, 4.5], [4.5, 5.5]]) if BIG in species else np.array([[3.5]])
    barred = np.zeros((len(apart), len(sites)), bool)
    barred[-1, 3] = len(apart) > 1  # never by the large one
    size = [int(ion.radius > 0) for ion in species]
    between = (sites[:, None] - sites).reshape(-1, 3)
    distances = np.linalg.norm(between, axis=1) if cell is None else ewald.shortest(between, cell.vectors)
    distances = distances.reshape(6, 6)
    pairs = 1 / np.maximum(distances, 1e-3) if cell is None else ewald.potential(
        between, np.zeros((1, 3)), np.ones(1), cell.vectors).reshape(6, 6)
    weights = {}
    for places in itertools.permutations(range(len(sites)), len(species)):
        energy, allowed = 0.0, not any(barred[s, p] for s, p in zip(size, places, strict=True))
        for i, a in enumerate(places):
            energy += species[i].charge * fixed[a]
            for j in range(i):
                energy += species[i].charge * species[j].charge * pairs[a, places[j]]
                allowed &= distances[a, places[j]] >= apart[size[i], size[j]]
        if allowed:
            weights[places] = math.exp(-FACTOR * energy)
    start = next(iter(weights))
    run = metropolis(sites, fixed, start, species, apart, barred, OpenPair() if cell is None else EwaldPair(cell))
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
    energy = -math.log(weights[tuple(run.placed.tolist())])
    assert run.energy == pytest.approx(energy, abs=1e-9 if cell is None else 1e-5)
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


def test_ions_whose_potentials_at_each_other_do_not_fit_into_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "limit", lambda: 100)
    with pytest.raises(MemoryPlanError):
        metropolis(np.eye(3), np.zeros(3), [0, 1, 2], (SOD, CLA, CLA), np.ones((1, 1)), np.zeros((1, 3), bool),
                   OpenPair())
