"""Multigrid for a GPU, its kernels run on the host."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from cuda_host import HostGpu

from vmdpotential.engines.cpu.continuum.multigrid import Multigrid
from vmdpotential.engines.cuda import copies, device, multigrid


@pytest.mark.slow
@pytest.mark.parametrize("ions", [np.zeros((0, 2)), np.array([(1.0, 0.5), (-2.0, 0.5)])], ids=["linear", "full"])
@pytest.mark.parametrize("small", [10, 10**6])
def test_solution_is_that_of_the_cpu(monkeypatch, small, ions):
    gpu = HostGpu()
    monkeypatch.setattr(device, "least_busy_gpus", lambda count: [gpu])
    monkeypatch.setattr(device, "errors", lambda *_: nullcontext())
    driver = SimpleNamespace(memcpy_dtoh=gpu.copy, memcpy_htod=gpu.copy_back)
    monkeypatch.setattr(device, "driver", lambda: driver)
    monkeypatch.setattr(copies, "driver", lambda: driver)
    monkeypatch.setattr(multigrid, "SMALL", small)
    rng = np.random.default_rng(4)
    shape = (25, 17, 33)
    edges = [rng.uniform(1.0, 3.0, shape).astype(np.float32) for _ in range(3)]
    k2 = np.where(rng.uniform(size=shape) < 0.5, 0.1, 0).astype(np.float32)
    nodes = np.ravel_multi_index(rng.integers(1, 16, (3, 50)), shape)
    sources, boundary = rng.normal(size=50), rng.normal(size=shape).astype(np.float32)
    boundary[1:-1, 1:-1, 1:-1] = 0
    results = []
    for kind in (Multigrid, multigrid.CudaMultigrid):
        w = boundary.copy()
        count = kind(*edges, k2, ions, 3).solve(w, nodes, sources, 1e-6)
        results.append((w, count))
    assert abs(results[0][1] - results[1][1]) <= 1
    assert np.abs(results[0][0] - results[1][0]).max() < 1e-4
    assert {"coarse", "advance", "turn"} <= gpu.used
    assert ("prolong" in gpu.used) == (small == 10)
