"""Orbitals and counts of atoms for a GPU, their kernels run on the host, against the CPU engine."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from cuda_host import HostGpu

from vmdpotential.densities.quantities import Counted
from vmdpotential.engines import get_engine
from vmdpotential.engines.cuda import CudaEngine, device
from vmdpotential.engines.orbitals import OrbitalSum
from vmdpotential.frames.density import Densities
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.trajectories.frames import Loaded
from vmdpotential.molecule.cell import Cell
from vmdpotential.orbitals.shells import monomials


@pytest.fixture
def gpu(monkeypatch):
    found = HostGpu()
    monkeypatch.setattr(device, "idlest", lambda count: [found])
    monkeypatch.setattr(device, "errors", lambda *_: nullcontext())
    monkeypatch.setattr(device, "driver", lambda: SimpleNamespace(memcpy_dtoh=found.copy,
                                                                  memcpy_htod=found.copy_back))
    return found


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
    found, expected = (engine.orbitals(work) for engine in (CudaEngine(), get_engine("cpu")))
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("spreading", ["nearest", "gaussian", "occupancy"])
@pytest.mark.parametrize("periodic", [False, True])
def test_counts_are_those_of_the_cpu(gpu, spreading, periodic):
    rng = np.random.default_rng(4)
    positions = rng.uniform(-4, 9, (2, 40, 3))
    cells = [Cell.from_parameters(*lengths, 75, 70, 80) for lengths in ((11, 12, 10), (11.2, 11.9, 10.1))]
    frames = Loaded("frames", list(zip(positions, cells if periodic else (None, None), strict=True)))
    radii = np.array(rng.uniform(0.8, 2, 30)) if spreading == "occupancy" else None
    counted = Counted("number", "1/A^3", np.arange(3, 33), rng.normal(size=30), radii, "")
    lattice = Lattice.over_cell(cells[0], 1.0) if periodic else Lattice(np.full(3, -3.0), np.full(3, 1.1), (9, 8, 10))
    work = Densities(frames, None, lattice, cells[0] if periodic else None, True, None, counted,
                     1.1 if spreading == "gaussian" else 0.0)
    found = []
    for engine in (get_engine("cpu"), CudaEngine()):
        work._spare[:] = [engine.counter(work.counting)]
        for _ in range(2):  # it begins again
            arrays = work.block(range(2))
            values = np.zeros((2, lattice.size))
            values[:, arrays["nodes"]] = arrays["sums"], arrays["squares"]
            found.append(values)
        assert len(arrays["nodes"]) > 10
    assert "add_frame" in gpu.used
    for values in found[1:]:
        np.testing.assert_allclose(values, found[0], rtol=0, atol=1e-10)
