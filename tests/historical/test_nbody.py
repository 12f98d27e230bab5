"""Sums over all pairs: against the definition in float64, and what follows from mechanics."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import refused
from pairs import apart, coulomb_by_hand

from vmdpotential import registry
from vmdpotential.engines import get_engine
from vmdpotential.interactions import SOFT_CORE
from vmdpotential.plugins.historical import nbody
from vmdpotential.plugins.pairs import all_pairs, lennard_jones
from vmdpotential.plugins.pairs.all_pairs import sum_coulomb
from vmdpotential.units import coulomb_constant

TOLERANCE = {"single": 5e-6, "double": 1e-12}
#: The interactions that define the dielectrics.
PAGES = {"constant": "coulomb", "linear": "distance_dependent", "sigmoidal": "sigmoidal_dielectric"}


def cloud(count, seed=0):
    """Return positions 3.1 A apart or a little less, and charges."""
    rng = np.random.default_rng(seed)
    side = max(1, int(np.ceil(count ** (1 / 3))))
    lattice = np.stack(np.unravel_index(np.arange(count), (side, side, side)), 1).reshape(-1, 3)
    return lattice * 3.1 + rng.uniform(-0.3, 0.3, (count, 3)) + 50, rng.normal(size=count) * 5


def close(value, expected, tolerance):
    """Compare arrays by rms."""
    assert np.shape(value) == np.shape(expected)
    assert np.linalg.norm(value - expected) <= tolerance * np.linalg.norm(expected)


@pytest.mark.parametrize("count", [1, 2, 3, 15, 16, 17, 65, 127, 128, 129, 300])
def test_coulomb_is_the_definition(engine, count):
    x, q = cloud(count)
    y, p = cloud(70, 2)
    for others in (None, (y + 1.5, p)):
        for actual, expected in zip(sum_coulomb(engine, x, q, others), coulomb_by_hand(x, q, others), strict=True):
            close(actual, expected, 1e-12)


def test_without_atoms(engine):
    x, q = cloud(20)
    none = np.zeros((0, 3)), np.zeros(0)
    assert [values.shape for values in sum_coulomb(engine, *none)] == [(0,), (0, 3)]
    assert not any(values.any() for values in sum_coulomb(engine, x, q, none))
    assert [len(values) for values in sum_coulomb(engine, *none, (x, q))] == [0, 0]


def test_coincident_charges_have_the_energy_of_the_soft_core(engine):
    energies, forces = sum_coulomb(engine, np.ones((2, 3)), np.array([2.0, 3.0]))
    np.testing.assert_allclose(energies, 3.0 / SOFT_CORE, rtol=1e-12)
    assert not forces.any()


def test_many_atoms_and_threads(monkeypatch):
    """More than one tile, with some left over, and pairs of several threads."""
    x, q = cloud(2500)
    monkeypatch.setattr(all_pairs, "MANY_PAIRS", 2**21)
    exact = coulomb_by_hand(x, q)
    for threads in "15":
        monkeypatch.setenv("VMDPOTENTIAL_THREADS", threads)
        energies, forces = sum_coulomb(get_engine("cpu"), x, q)
        close(energies, exact[0], 1e-12)
        close(forces, exact[1], 1e-12)
        assert np.linalg.norm(forces.sum(0)) < 1e-12 * np.linalg.norm(forces)  # momentum
        halves = [sum_coulomb(get_engine("cpu"), x[a:b], q[a:b], (x, q)) for a, b in ((0, 900), (900, 2500))]
        itself = q**2 / SOFT_CORE / 2
        close(np.concatenate([half[0] for half in halves]) - itself, exact[0], 1e-9)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("count", [2, 101, 300])
def test_gravity_is_the_definition(engine, count, precision):
    x, m = cloud(count)
    m = np.abs(m) + 0.1
    v = np.random.default_rng(3).normal(size=x.shape)
    d, r = apart(x, x, 0.3)
    u = v[:, None] - v
    pull = -(m / r**3)[..., None]
    jerks = pull * (u - 3 * ((d * u).sum(2) / r**2)[..., None] * d)
    energy = -0.5 * (m[:, None] * m / r).sum()
    for moving in (None, v):
        actual = nbody.gravity(x, m, moving, 0.3, 2.0, engine.name, precision)
        close(actual.accelerations, 2 * (pull * d).sum(1), TOLERANCE[precision])
        assert actual.energy == pytest.approx(2 * energy, rel=TOLERANCE[precision])
        if moving is not None:
            close(actual.jerks, 2 * jerks.sum(1), TOLERANCE[precision])


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("dielectric", nbody.DIELECTRICS)
def test_lennard_jones_and_coulomb_are_their_pages(engine, dielectric, precision):
    x, q = cloud(203)
    rng = np.random.default_rng(4)
    half, depth = rng.uniform(1, 2, 203), rng.uniform(0, 0.1, 203)
    d, r = apart(x, x)
    r[np.diag_indices(203)] = 1e6
    law = registry.get("interaction", PAGES[dielectric]).bind()
    lj = lennard_jones.INTERACTION.bind()
    a6 = 12 * np.sqrt(depth[:, None] * depth) * (half[:, None] + half) ** 6
    own = {"a6": a6, "a12": a6 * (half[:, None] + half) ** 6}
    charges = q[:, None] * q * coulomb_constant("kcal/mol/e")
    energies = np.stack([(charges * law(r)).sum(1), lj(r, **own).sum(1)], 1) / 2

    def total(r):
        return charges * law(r) + lj(r, **own)

    slope = -(total(r * (1 + 1e-5)) - total(r * (1 - 1e-5))) / (2e-5 * r) / r
    slope[np.diag_indices(203)] = 0
    actual = nbody.lennard_jones_coulomb(x, q, half, depth, dielectric, engine.name, precision)
    itself = charges.diagonal() * law(np.array([1e6])) / 2
    close(actual.energies[:, 0], energies[:, 0] - itself, TOLERANCE[precision])
    close(actual.energies[:, 1], energies[:, 1], TOLERANCE[precision])
    close(actual.forces, (slope[..., None] * d).sum(1), max(TOLERANCE[precision], 1e-8))
    without = nbody.sum_bodies(engine, dielectric, np.column_stack(
        [x, q * coulomb_constant("kcal/mol/e") ** 0.5, half, np.sqrt(12 * depth)]).T, precision, energy=False)
    close(without[:3].T, actual.forces, 1e-6)


@pytest.mark.nightly
def test_the_paper_is_reproduced_without_a_gpu(tmp_path):
    script = Path(__file__).parents[2] / "scripts" / "reproduce_nbody_paper"
    done = subprocess.run([sys.executable, script, "-o", tmp_path, "--engine", "cpu", "--quick"], capture_output=True,
                          text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    assert "lambda repressor" in done.stdout
    assert "not there" not in done.stdout
    with open(tmp_path / "table1.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["kernel"]: row["GFLOPS"] for row in rows if row["where"].startswith("2007")}["GAJ"] == "53.5"
    assert all(float(row["GFLOPS"]) > 0 for row in rows)
    assert len({row["kernel"] for row in rows if row["where"] == "1 CPU core"}) == 5
    for name in ("figure1", "figure2", "figure3"):
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


def test_two_masses_and_two_ions():
    two = np.array([[0.0, 0, 0], [0, 3, 4]])
    actual = nbody.gravity(two, [2.0, 3.0], [[0, 0, 0], [0, 0, 1.0]], engine="cpu", precision="double")
    np.testing.assert_allclose(actual.accelerations, np.outer([3 / 125, -2 / 125], [0, 3, 4]), rtol=1e-13)
    np.testing.assert_allclose(actual.jerks[0], 3 * (np.array([0, 0, 1]) / 125 - 3 * 4 * two[1] / 5**5), rtol=1e-12)
    assert actual.energy == pytest.approx(-6 / 5, rel=1e-13)
    soft = nbody.gravity(two, [2.0, 3.0], softening=12.0, constant=2.0, engine="cpu", precision="double")
    assert soft.energy == pytest.approx(-12 / 13, rel=1e-13)
    assert soft.jerks is None
    ions = nbody.lennard_jones_coulomb(two, [1, -1], [2.5, 2.5], [0.1, 0.1], engine="cpu", precision="double")
    np.testing.assert_allclose(ions.energies.sum(0), [-coulomb_constant("kcal/mol/e") / 5, -0.1], rtol=1e-12)
    with refused("masses"):
        nbody.gravity(two, [1.0])
    with refused("dielectric"):
        nbody.lennard_jones_coulomb(two, [1, -1], [1, 1], [0, 0], "none")
