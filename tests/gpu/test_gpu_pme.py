"""Mesh sums on a GPU, against the CPU engine, numpy's Fourier transforms and sums over all atoms.

Run with ``pytest -m gpu``, as tests/gpu/test_cuda.py.
"""

from functools import partial

import numpy as np
import pytest
import sums
from helpers import random_charges, relative_rms

from vmdpotential import engines
from vmdpotential.engines import LatticeSum
from vmdpotential.engines.cuda import device, fft
from vmdpotential.engines.cuda.mesh import MeshSum
from vmdpotential.errors import MemoryPlanError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.splitting.coulomb import optimal
from vmdpotential.splitting.mesh import over_cell
from vmdpotential.splitting.screened import optimal_for_screened
from vmdpotential.splitting.shifted import optimal_for_cutoff

pytestmark = pytest.mark.gpu


LATTICE = Lattice(np.array([-1.0, 2.0, 0.3]), np.array([0.5, 0.6, 0.7]), (17, 33, 40))
POSITIONS, CHARGES = random_charges(2000, -3, 27)
CELLS = [Cell.from_parameters(*parameters) for parameters in (
    (30, 31, 32), (30, 31, 32, 70, 80, 110), (27.1, 27.2, 27.3, 60, 60, 90))]
CELLS.append(Cell(CELLS[1].vectors @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]))
MESHES = [*(sums.mesh_around(LATTICE, POSITIONS, 1.25, order, 3.0) for order in (4, 6, 8)),
          sums.mesh_around(LATTICE, POSITIONS, 1.25, 6, 3.0, partial(optimal_for_cutoff, 9.0)),
          *(over_cell(cell, 1.1, 6, 3.0) for cell in CELLS),
          sums.mesh_around(LATTICE, POSITIONS, 1.25, 6, 3.0, partial(optimal_for_screened, 7.85)),
          *(over_cell(cell, 1.1, 6, 3.0, partial(optimal_for_screened, 7.85)) for cell in CELLS)]


@pytest.mark.parametrize("mesh", MESHES, ids=lambda mesh: f"{mesh.order} {mesh.cell and mesh.cell.parameters}")
def test_the_map_is_that_of_the_cpu_engine_and_the_same_every_time(engine, mesh):
    reference = sums.by_mesh(engines.get_engine("cpu"), LATTICE, POSITIONS, CHARGES, mesh, "double")
    for precision, accuracy in (("single", 2e-6), ("compensated", 1e-6), ("double", 1e-7)):
        prepared = engine.prepare(LatticeSum.split(LATTICE, mesh, precision))
        result, again = (prepared.run(POSITIONS, CHARGES) for _ in range(2))
        assert result.device_seconds > 0
        assert relative_rms(result.values(), reference) < accuracy
        np.testing.assert_array_equal(again.values(), result.values())


@pytest.mark.parametrize(("spacing", "order", "ratio"), [(1.5, 4, 2.5), (1.25, 6, 3.5), (1.0, 8, 4.5)])
def test_the_error_is_the_one_predicted(engine, spacing, order, ratio):
    mesh = sums.mesh_around(LATTICE, POSITIONS, spacing, order, ratio)
    values = sums.by_mesh(engine, LATTICE, POSITIONS, CHARGES, mesh)
    indices = np.random.default_rng(1).integers(0, LATTICE.shape, (500, 3))
    exact = sums.at_points(engine, LATTICE.points(indices), POSITIONS, CHARGES)
    error = np.sqrt(np.mean((values[tuple(indices.T)] - exact) ** 2))
    predicted = optimal(ratio * spacing, spacing, order)[1] * np.sqrt((CHARGES**2).sum() / 30.0**3)
    assert 0.3 * predicted < error < 1.5 * predicted


def test_a_map_in_slabs_and_one_that_does_not_fit(engine, monkeypatch):
    positions, charges = water_box(30.0)
    lattice = Lattice(np.full(3, 0.3), 0.25, (119, 119, 119))
    mesh = sums.mesh_around(lattice, positions, 1.5, 6, 3.0)
    whole = sums.by_mesh(engine, lattice, positions, charges, mesh).copy()
    seen = []
    launch = MeshSum.launch
    monkeypatch.setattr(MeshSum, "launch", lambda self, job, slab, *rest: (
        seen.append(slab), launch(self, job, slab, *rest)))
    needed = MeshSum(LatticeSum.split(lattice, mesh)).fixed_bytes(len(charges))
    monkeypatch.setenv("VMDPOTENTIAL_GPU_MEMORY", str(needed + 10**6))
    np.testing.assert_array_equal(sums.by_mesh(engine, lattice, positions, charges, mesh), whole)
    assert len(seen) == 15
    monkeypatch.setenv("VMDPOTENTIAL_GPU_MEMORY", str(needed))
    with pytest.raises(MemoryPlanError, match="GPU memory"):
        sums.by_mesh(engine, lattice, positions, charges, mesh)


@pytest.mark.parametrize("shape", [(16, 18, 20), (15, 9, 25), (8, 9, 5000), (2700, 8, 8)])
@pytest.mark.parametrize(("real", "accuracy"), [(np.float32, 2e-7), (np.float64, 1e-15)])
def test_transforms_of_any_shape(engine, shape, real, accuracy):
    a, b, c = shape
    values = np.random.default_rng(0).normal(size=shape).astype(real)
    padded = np.zeros((a, b, 2 * (c // 2 + 1)), real)
    padded[..., :c] = values
    gpu = device.gpus()[0]
    with gpu:
        address = gpu.upload("nodes", padded)
        transform = fft.Transform(shape, np.dtype(real), gpu.streams()[1][0][0])
        transform.forward(address)
        device.driver().memcpy_dtoh(padded, address)
        expected = np.fft.rfftn(values.astype(float))
        actual = padded.view(np.result_type(real, np.complex64))
        assert np.sqrt((abs(actual - expected) ** 2).mean() / (abs(expected) ** 2).mean()) < accuracy
        transform.inverse(address)
        device.driver().memcpy_dtoh(padded, address)
        assert relative_rms(padded[..., :c] / values.size, values) < 2 * accuracy


def test_few_plans_are_kept(engine):
    gpu = device.gpus()[0]
    with gpu:
        for n in range(2 * device.PLANS):
            assert gpu.plan(("test", n), object) is gpu.plan(("test", n), object)
            assert len(gpu._plans) <= device.PLANS
        gpu._plans.clear()
