"""Orbitals, charges, hydrogen bonds and counts of atoms for a GPU, their kernels run on the host, against the CPU's."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from cuda_host import HostGpu

from vmdpotential.densities.quantities import CountedAtoms
from vmdpotential.engines import get_engine
from vmdpotential.engines.bonds import DONOR, ONE_PAIR, TWO_PAIRS, BondSum
from vmdpotential.engines.cpu.gaussians import summed
from vmdpotential.engines.cuda import CudaEngine, device, gaussians
from vmdpotential.engines.gaussians import Gaussians, GaussianSum, hermite
from vmdpotential.engines.orbitals import OrbitalSum
from vmdpotential.frames.density import Densities
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.trajectories.frames import Loaded
from vmdpotential.molecule.cell import Cell
from vmdpotential.orbitals.shells import monomials


@pytest.fixture
def gpu(monkeypatch):
    result = HostGpu()
    monkeypatch.setattr(device, "least_busy_gpus", lambda count: [result])
    monkeypatch.setattr(device, "errors", lambda *_: nullcontext())
    monkeypatch.setattr(device, "driver", lambda: SimpleNamespace(memcpy_dtoh=result.copy,
                                                                  memcpy_htod=result.copy_back))
    return result


@pytest.mark.slow
@pytest.mark.parametrize("orbitals", [0, 5, 20])
def test_orbitals_are_those_of_the_cpu(gpu, orbitals):
    rng = np.random.default_rng(3)
    momenta = np.array([0, 1, 2, 3, 4, 5, 1])
    ends, counts = 2 * np.arange(1, 8), [len(monomials(n)) for n in momenta]
    table = np.stack([momenta, ends - 2, ends, np.cumsum(counts) - counts], 1)
    work = OrbitalSum(
        Lattice(np.full(3, -2.0), np.array([0.5, 0.6, 0.4]), (9, 7, 11)), table, rng.uniform(-1, 1, (7, 3)),
        np.array([1.5, *np.full(6, 9.0)]), rng.uniform(0.3, 4, 14), rng.uniform(0.5, 1, 14),
        rng.normal(size=(max(1, orbitals), sum(counts))).astype(np.float32),
        rng.uniform(0, 2, orbitals).astype(np.float32))
    actual, expected = (engine.orbitals(work) for engine in (CudaEngine(), get_engine("cpu")))
    assert np.abs(actual - expected).max() < 1e-5 * np.abs(expected).max()


@pytest.mark.slow
def test_potentials_of_charges_are_those_of_the_cpu(gpu, monkeypatch):
    rng = np.random.default_rng(6)
    orders = np.array([0, 3, 1, 4, 2, 6, 0])
    counts = [len(hermite(order)) for order in orders]
    exponents = rng.uniform(0.3, 4, 7)
    electrons = Gaussians(rng.uniform(-1, 1, (7, 3)), exponents, orders, np.cumsum(counts) - counts,
                          rng.normal(size=sum(counts)) * np.repeat(exponents, counts) ** -2)
    lattice = Lattice(np.full(3, -6.0), np.array([1.1, 1.3, 0.9]), (9, 7, 13))  # near and far
    work = GaussianSum(lattice, electrons, lattice.points()[:2] + 0.1, np.array([1.0, 6.0]), 0.02, 0.5)
    expected = summed(work, None)
    assert np.abs(CudaEngine().gaussians(work) - expected).max() < 1e-6 * np.abs(expected).max()
    monkeypatch.setattr(gaussians, "TERMS_PER_LAUNCH", 1.0)
    assert np.abs(CudaEngine().gaussians(work) - expected).max() < 1e-6 * np.abs(expected).max()
    nuclei = replace(work, electrons=Gaussians(np.zeros((0, 3)), *np.zeros((2, 0), np.int64), *np.zeros((2, 0), int)))
    assert np.abs(CudaEngine().gaussians(nuclei) - get_engine("cpu").gaussians(nuclei)).max() < 1e-5


@pytest.mark.parametrize("donors", [False, True])
def test_hydrogen_bonds_are_those_of_the_cpu(gpu, donors):
    rng = np.random.default_rng(5)
    count = 14
    along, axes = rng.normal(size=(2, count, 3))
    along /= np.linalg.norm(along, axis=1)[:, None]
    axes = np.cross(along, axes)
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    work = BondSum(
        Lattice(np.full(3, -4.0), np.array([0.9, 1.1, 0.7]), (9, 8, 21)), rng.uniform(-5, 6, (count, 3)),
        np.full(count, DONOR) if donors else rng.choice([ONE_PAIR, TWO_PAIRS], count), along, axes,
        rng.choice([2.0, 4.0], count), rng.integers(0, 2, count), np.array([[1.9, 2.5], [1.8, 2.0], [2.2, 1.9]]),
        np.array([[0.6, 0.12], [0.5, 0.3], [0.4, 0.2]]), np.array([True, False, False]), 0.25, 1e5, 5.0)
    actual, expected = (engine.bonds(work) for engine in (CudaEngine(), get_engine("cpu")))
    assert "bonds" in gpu.used
    assert expected.min() < -0.3
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spreading", ["nearest", "gaussian", "occupancy"])
@pytest.mark.parametrize("periodic", [False, True])
def test_counts_are_those_of_the_cpu(gpu, spreading, periodic):
    rng = np.random.default_rng(4)
    positions = rng.uniform(-4, 9, (2, 40, 3)).astype(np.float64 if periodic else np.float32)
    cells = [Cell.from_parameters(*lengths, 75, 70, 80) for lengths in ((11, 12, 10), (11.2, 11.9, 10.1))]
    frames = Loaded("frames", list(zip(positions, cells if periodic else (None, None), strict=True)))
    radii = np.array(rng.uniform(0.8, 2, 30)) if spreading == "occupancy" else None
    counted = CountedAtoms("number", "1/A^3", np.arange(3, 33), rng.normal(size=30), radii, "")
    lattice = Lattice.over_cell(cells[0], 1.0) if periodic else Lattice(np.full(3, -3.0), np.full(3, 1.1), (9, 8, 10))
    work = Densities(frames, None, lattice, cells[0] if periodic else None, True, None, counted,
                     1.1 if spreading == "gaussian" else 0.0)
    results = []
    for engine in (get_engine("cpu"), CudaEngine()):
        work._idle_counters[:] = [engine.counter(work.counting)]
        for _ in range(2):  # it begins again
            arrays = work.block(range(2))
            values = np.zeros((2, lattice.size))
            values[:, arrays["nodes"]] = arrays["sums"], arrays["squares"]
            results.append(values)
        assert len(arrays["nodes"]) > 10
    assert "add_frame" in gpu.used
    for values in results[1:]:
        np.testing.assert_allclose(values, results[0], rtol=0, atol=1e-10)
