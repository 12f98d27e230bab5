"""Sums over all pairs of atoms: against the definition in float64, and what follows from mechanics."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pairs import reference

from vmdpotential import registry
from vmdpotential.engines import get_engine
from vmdpotential.engines.pairs import Atoms, PairSum
from vmdpotential.errors import UsageError
from vmdpotential.interactions import Interaction, compiled, coulomb, lennard_jones
from vmdpotential.interactions.pairs import CHARGES, LORENTZ_BERTHELOT, SOURCES, TABLE, PairPotential, Term
from vmdpotential.interactions.tracing import erfc
from vmdpotential.plugins.historical import nbody
from vmdpotential.units import coulomb_constant

GRAVITY = PairPotential((Term("gravity", coulomb.INTERACTION.bind(), SOURCES),), 0.3)
LJ = Term("lennard_jones", lennard_jones.INTERACTION.bind(), LORENTZ_BERTHELOT)
LJC = PairPotential((Term("coulomb", coulomb.INTERACTION.bind(), CHARGES), LJ))
#: A third party's: its excluded pairs keep a part.
SCREENED = Interaction("screened", lambda r2, rinv, p: erfc(0.0 * r2 + r2 * rinv * p.a) * rinv,
                       [registry.get("interaction", "screened_coulomb").quantities[0].__class__(
                           "a", "1/A", 0.4, 0.01, 10, "any")],
                       excluded=lambda r2, rinv, p: (erfc(r2 * rinv * p.a) - 1.0) * rinv)
KEPT = PairPotential((Term("screened", SCREENED.bind(), CHARGES),))
#: Potentials with loops of their own in the kernels.
MOVING = PairPotential((Term("gravity", coulomb.INTERACTION.bind(), SOURCES),), 0.2)
ONE_TERM = PairPotential((Term("coulomb", coulomb.INTERACTION.bind(), CHARGES),))
IN_DIELECTRICS = [nbody.ljc_potential(name) for name in nbody.DIELECTRICS]
BY_TYPE = PairPotential((Term("lennard_jones", lennard_jones.INTERACTION.bind(), TABLE),))
TOLERANCE = {"single": 5e-6, "double": 1e-12}


@pytest.fixture(scope="module")
def engine():
    """The CPU's: no other has these sums yet."""
    return get_engine("cpu")


def system(count, seed=0):
    """Return atoms 3.1 A apart or a little less, with all that these potentials take."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil(count ** (1 / 3)))
    lattice = np.stack(np.unravel_index(np.arange(count), (side, side, side)), 1).reshape(-1, 3)
    parameters = {"charge": rng.normal(size=count) * 5, "half_rmin": rng.uniform(1, 2, count),
                  "root_depth": rng.uniform(0, 1, count), "source": -rng.uniform(0.5, 2, count)}
    tables = {name: rng.uniform(1, 2, (3, 3)) * size for name, size in (("a6", 300), ("a12", 2e5))}
    tables = {name: table + table.T for name, table in tables.items()}
    return Atoms(lattice * 3.1 + rng.uniform(-0.3, 0.3, (count, 3)) + 50, parameters, rng.integers(0, 3, count),
                 tables, velocities=rng.normal(size=(count, 3)))


def with_(atoms, **changed):
    return Atoms(**{name: getattr(atoms, name) for name in
                    ("positions", "parameters", "types", "tables", "exclusions", "velocities")} | changed)


def exclusions(count, seed=1):
    """Return neighbours in sequence, and some pairs far apart, i < j, sorted."""
    i = np.arange(count - 1)
    far = np.sort(np.random.default_rng(seed).integers(0, count, (30, 2)), axis=1)
    pairs = np.concatenate([np.stack([i, i + 1], 1), far[far[:, 0] < far[:, 1]]])
    return np.unique(pairs, axis=0)


def close(value, expected, tolerance):
    """Compare arrays by rms."""
    assert np.shape(value) == np.shape(expected)
    assert np.linalg.norm(value - expected) <= tolerance * np.linalg.norm(expected)


def compare(result, expected, tolerance, virial=True):
    close(result.forces, expected.forces, tolerance)
    close(result.energies, expected.energies, tolerance)
    close(result.jerks, expected.jerks, tolerance)
    if virial:
        close(result.virial, expected.virial, 3 * tolerance)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("potential", [GRAVITY, LJC, KEPT, BY_TYPE], ids=["gravity", "ljc", "kept", "by type"])
def test_sums_are_the_definition(engine, potential, precision):
    equal = potential is not GRAVITY
    prepared = engine.prepare_pairs(PairSum(potential, None, precision, True, equal, True))
    for count, left_out in ((150, False), (101, True)):
        atoms = system(count)
        atoms = with_(atoms, exclusions=exclusions(count)) if left_out else atoms
        compare(prepared.run(atoms), reference(potential, atoms, None), TOLERANCE[precision], equal)
    atoms, others = system(37), with_(system(70, 2), positions=system(70, 2).positions + 1.5)
    result, expected = prepared.run(atoms, others), reference(potential, atoms, None, others)
    compare(result, expected, TOLERANCE[precision], equal)
    close(result.other.forces, expected.other.forces, TOLERANCE[precision])
    close(result.other.energies, expected.other.energies, TOLERANCE[precision])
    close(result.other.jerks, expected.other.jerks, TOLERANCE[precision])


def test_few_atoms(engine):
    prepared = engine.prepare_pairs(PairSum(LJC, precision="double", energy=True, virial=True))
    for count in (0, 1, 2, 15, 16, 17, 65):
        atoms = system(count)
        expected = reference(LJC, atoms, None) if count else None
        result = prepared.run(atoms)
        assert result.forces.shape == (count, 3)
        assert result.energies.shape == (count, 2)
        if count:
            close(result.forces, expected.forces, 1e-12)
            close(result.energies, expected.energies, 1e-12)
        assert not prepared.run(atoms, system(0)).forces.any()
        other = prepared.run(system(0), atoms).other
        assert other.forces.shape == (count, 3)
        assert not other.forces.any()


def test_excluded_pairs_do_not_cancel(engine):
    """Bonded atoms would repel each other 1e9 times as strongly as the rest."""
    atoms = system(100)
    positions = atoms.positions.copy()
    positions[1::2] = positions[::2] + np.array([0.02, 0, 0])
    atoms = with_(atoms, positions=positions, exclusions=np.arange(100).reshape(-1, 2))
    close(engine.prepare_pairs(PairSum(LJC)).run(atoms).forces, reference(LJC, atoms, None).forces, 1e-4)


def test_many_atoms_and_threads(engine, monkeypatch):
    """More than one tile, with some left over, and pairs of several threads."""
    atoms = system(2500)
    atoms = with_(atoms, exclusions=exclusions(2500))
    prepared = engine.prepare_pairs(PairSum(LJC, energy=True, virial=True))
    double = engine.prepare_pairs(PairSum(LJC, precision="double", energy=True, virial=True)).run(atoms)
    actual = []
    for threads in "15":
        monkeypatch.setenv("VMDPOTENTIAL_THREADS", threads)
        actual.append(prepared.run(atoms))
        close(actual[-1].forces, double.forces, 5e-6)
        close(actual[-1].energies, double.energies, 5e-6)
        close(actual[-1].virial, double.virial, 5e-6)
        assert np.linalg.norm(actual[-1].forces.sum(0)) < 1e-5 * np.linalg.norm(actual[-1].forces)  # momentum
    close(actual[0].forces, actual[1].forces, 1e-6)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("potential", [GRAVITY, MOVING, ONE_TERM, *IN_DIELECTRICS],
                         ids=["gravity", "jerk", "coulomb", "constant", "linear", "sigmoidal"])
def test_compiled_and_interpreted_programs(engine, potential, precision, monkeypatch):
    """What another package registers is interpreted; these potentials are compiled."""
    atoms, work = with_(system(203), exclusions=exclusions(203)), {"precision": precision, "jerk": potential is MOVING}
    sums = [PairSum(potential, energy=energy, **work) for energy in (True, False)]
    actual = [engine.prepare_pairs(one).run(atoms) for one in sums]
    monkeypatch.setattr(compiled, "number_of", lambda program: -1)
    expected = engine.prepare_pairs(sums[0]).run(atoms)
    for result in actual:
        close(result.forces, expected.forces, TOLERANCE[precision])
        if work["jerk"]:
            close(result.jerks, expected.jerks, TOLERANCE[precision])
    close(actual[0].energies, expected.energies, TOLERANCE[precision])


def test_what_cannot_be_summed_is_refused(engine):
    with pytest.raises(UsageError, match="virial"):
        engine.prepare_pairs(PairSum(GRAVITY, virial=True))
    with pytest.raises(UsageError, match="layout"):
        engine.prepare_pairs(PairSum(GRAVITY, layout="3x3"))
    prepared = engine.prepare_pairs(PairSum(LJC, jerk=True))
    with pytest.raises(UsageError, match="cutoff"):
        prepared.search(system(3))
    with pytest.raises(UsageError, match="velocities"):
        prepared.run(with_(system(3), velocities=None))
    with pytest.raises(UsageError, match="half_rmin"):
        prepared.run(with_(system(3), parameters={"charge": np.ones(3)}))


@pytest.mark.slow
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
    none = nbody.lennard_jones_coulomb(two, [1, -1], [2.5, 2.5], [0.1, 0.1], "sigmoidal", [[1, 0]], "cpu")
    assert not none.forces.any()
    with pytest.raises(UsageError, match="masses"):
        nbody.gravity(two, [1.0])
    with pytest.raises(UsageError, match="linear"):
        nbody.lennard_jones_coulomb(two, [1, -1], [1, 1], [0, 0], "none")
    with pytest.raises(UsageError, match="do not exist"):
        nbody.lennard_jones_coulomb(two, [1, -1], [1, 1], [0, 0], exclusions=[[0, 2]])
