"""Tests of the package, by the public interface; its entry point registers what it has."""

import json
import subprocess
import sys
from pathlib import Path

import example_extension
import MDAnalysisTests
import nearest
import numpy as np
import numpy_engine
import pytest
from iodata.test import data as wavefunctions
from scipy.spatial import cKDTree

import vmdpotential
from vmdpotential import registry
from vmdpotential.commands import verify
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.trajectories.frames import LoadedFrames, Trajectory
from vmdpotential.plugins.orbitals.potential import potential_map as potential_of_electrons
from vmdpotential.plugins.orbitals.read import read_wavefunction

FILES = Path(MDAnalysisTests.__file__).parent / "data"
STRUCTURE, TRAJECTORY = FILES / "adk_open.pqr", FILES / "adk_dims.dcd"


@pytest.fixture
def ions():
    random = np.random.default_rng(1)
    positions, names = random.uniform(0, 20, (50, 3)), np.full(50, "C")
    return vmdpotential.Structure(positions, names, names, np.ones(50, int), np.zeros(50, int),
                                  charges=random.normal(size=50))


def test_the_interaction_in_a_map(ions):
    grid = vmdpotential.potential_map(ions, interaction="cloud", parameters={"length": 4.0}, method="direct", spacing=2,
                                      padding=2, unit="V", engine="cpu")
    nodes = grid.lattice.points()
    r = np.linalg.norm(nodes[:, None] - ions.positions, axis=2)
    expected = np.exp(-r / 4) / 4 @ ions.charges
    assert np.corrcoef(grid.values.ravel(), expected)[0, 1] > 1 - 1e-9


def test_the_method_at_points(ions):
    points = np.random.default_rng(2).uniform(0, 20, (30, 3))
    result, exact = (vmdpotential.potential_at(ions, points, method=method) for method in ("numpy", "direct"))
    np.testing.assert_allclose(result, exact, rtol=1e-10)


def test_the_method_for_maps(ions):
    grid, exact = (vmdpotential.potential_map(ions, method=method, spacing=2, padding=2, boundary="open", engine="cpu",
                                              medium="vacuum") for method in ("numpy", "direct"))
    np.testing.assert_allclose(grid.values, exact.values, rtol=1e-5, atol=3e-4)
    with pytest.raises(vmdpotential.UsageError):
        vmdpotential.potential_map(ions, method="numpy", field=True)


def test_the_task_over_frames():
    frames = np.random.default_rng(3).normal(size=(300, 50, 3))
    radii = np.sqrt(frames.var(1).sum(1))
    mean, uncertainty = example_extension.radius_of_gyration(LoadedFrames("random",
                                                                          [(frame, None) for frame in frames]))
    assert mean == pytest.approx(radii.mean(), rel=1e-12)
    assert uncertainty.error == pytest.approx(radii.std() / np.sqrt(len(radii)), rel=0.3)


def test_the_task_over_frames_in_other_processes():
    trajectory = Trajectory(TRAJECTORY, 3341, slice(0, 40))
    mean, _ = example_extension.radius_of_gyration(trajectory)
    assert mean == pytest.approx(np.mean([np.sqrt(frame.positions.var(0).sum()) for frame in trajectory]))
    assert example_extension.radius_of_gyration(trajectory, workers=2)[0] == mean


def test_the_command():
    done = subprocess.run([sys.executable, "-m", "vmdpotential", "gyration", STRUCTURE, TRAJECTORY, "--json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 15 < json.loads(done.stdout)["mean"] < 25
    assert vmdpotential.gyration(STRUCTURE, TRAJECTORY).data["mean"] == json.loads(done.stdout)["mean"]


def test_what_verify_checks(monkeypatch):
    """This check is among those of verify, all of which take half a minute: most are left out here."""
    available = registry.available
    assert "gyration" in available("check")
    chosen = {"check": ["gyration"], "method": [], "interaction": [], "pair": []}
    monkeypatch.setattr(registry, "available", lambda kind: chosen[kind] if kind in chosen else available(kind))
    rows = verify.command(engine="cpu", points=40).data["rows"]
    assert ("radius of gyration", True) in [(row["what"], row["passed"]) for row in rows]


def test_the_engine_in_maps(ions, monkeypatch):
    ran, run = [], numpy_engine.DirectSum.run
    monkeypatch.setattr(numpy_engine.DirectSum, "run", lambda *given: ran.append(1) or run(*given))
    for options in ({"method": "direct"}, {"method": "direct", "field": True}, {"method": "pme"},
                    {"method": "cutoff", "cutoff": 6.0}, {"method": "pb", "medium": "water"}):
        given = {"spacing": 1, "padding": 2, "boundary": "open", "medium": "vacuum", **options}
        own, expected = (vmdpotential.potential_map(ions, engine=engine, **given) for engine in ("numpy", "cpu"))
        np.testing.assert_allclose(own.values, expected.values, rtol=1e-5, atol=1e-5 * np.abs(expected.values).max())
        assert ran  # for direct sums; the others are the CPU's


def test_the_engine_with_a_kernel_in_numpy(monkeypatch):
    ran, add = [], numpy_engine.add_nuclei
    monkeypatch.setattr(numpy_engine, "add_nuclei", lambda **given: ran.append(1) or add(**given))
    molecule = read_wavefunction(Path(wavefunctions.__file__).parent / "h2o.molden.input")
    lattice = Lattice.around(molecule.positions, 0.7, 2.0)
    own, expected = (potential_of_electrons(molecule, lattice, "V", engine=engine) for engine in ("numpy", "cpu"))
    assert len(ran) == 1
    np.testing.assert_allclose(own.values, expected.values, rtol=1e-6, atol=1e-6)


def test_the_kernel():
    subprocess.run([sys.executable, nearest.__file__], check=True)
    random = np.random.default_rng(3)
    points, atoms = random.uniform(0, 20, (1001, 3)), random.uniform(0, 20, (300, 3))
    for engine in ("cpu", "numpy"):
        actual = nearest.distances_to_nearest(points, atoms, engine)
        np.testing.assert_allclose(actual, cKDTree(atoms).query(points)[0], rtol=1e-14)
