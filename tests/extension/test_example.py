"""Tests of the package, by the public interface; its entry point registers what it has."""

import json
import subprocess
import sys
from pathlib import Path

import example_extension
import MDAnalysisTests
import numpy as np
import pytest

import vmdpotential
from vmdpotential.io.trajectories.frames import Trajectory

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
    with pytest.raises(vmdpotential.UsageError):
        vmdpotential.potential_map(ions, method="numpy")


def test_the_method_for_maps(ions):
    grid, exact = (vmdpotential.potential_map(ions, method=method, spacing=2, padding=2, boundary="open", engine="cpu",
                                              medium="vacuum") for method in ("numpy_map", "direct"))
    np.testing.assert_allclose(grid.values, exact.values, rtol=1e-5, atol=3e-4)


def test_the_task_over_frames():
    atoms = 3341
    mean, error = example_extension.radius_of_gyration(Trajectory(TRAJECTORY, atoms, slice(0, 40)))
    radii = [np.sqrt(frame.positions.var(0).sum()) for frame in Trajectory(TRAJECTORY, atoms, slice(0, 40))]
    assert mean == pytest.approx(np.mean(radii))
    assert error is None or error.sem > 0


def test_the_command():
    done = subprocess.run([sys.executable, "-m", "vmdpotential", "gyration", STRUCTURE, TRAJECTORY, "--json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 15 < json.loads(done.stdout)["mean"] < 25
