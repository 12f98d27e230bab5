"""Maps by a mesh or levels on a GPU, against the CPU engine: each sum, and to a tolerance as users ask for them.

Run with ``pytest -m gpu``, as tests/gpu/test_cuda.py.
"""

from functools import partial

import numpy as np
import pytest
import sums
from helpers import charges_at, random_charges, relative_rms
from messages import Words, naming

from vmdpotential import engines
from vmdpotential.engines.cuda import device, driver, fft
from vmdpotential.errors import MemoryPlanError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.maps import potential_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.plugins.historical import msm_cuda
from vmdpotential.splitting.mesh import over_cell
from vmdpotential.splitting.screened import optimal_for_screened
from vmdpotential.splitting.shifted import optimal_for_cutoff
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum

pytestmark = pytest.mark.gpu

CPU = engines.get_engine("cpu")
LATTICE = Lattice(np.array([-1.0, 2.0, 0.3]), np.array([0.5, 0.6, 0.7]), (17, 33, 40))
POSITIONS, CHARGES = random_charges(2000, -3, 27)
BOX, SLANTED = Cell.from_parameters(30, 34, 42), Cell.from_parameters(30, 31, 32, 70, 80, 110)
ROTATED = Cell(SLANTED.vectors @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0])
SPLITS = {"coulomb": (), "cutoff": (partial(optimal_for_cutoff, 9.0),),
          "screened": (partial(optimal_for_screened, 7.85),)}


def around(order=6, split=()):
    return sums.mesh_around(LATTICE, POSITIONS, 1.25, order, 3.0, *split)


def levels(order, **options):
    return sums.levels_around(LATTICE, POSITIONS, order=order, **options)


SMOOTH = {
    **{f"mesh, open, order {order}": partial(around, order) for order in (4, 8)},
    **{f"mesh, open, {name}": partial(around, split=split) for name, split in SPLITS.items()},
    **{f"mesh, {name}, {shape}": partial(over_cell, cell, 1.1, 6, 3.0, *split) for name, split in SPLITS.items()
       for shape, cell in (("box", BOX), ("slanted", SLANTED), ("rotated", ROTATED))},
    "levels, open": partial(levels, 4, spacing=1.0, radius=5.0),
    "levels, one": partial(levels, 8, spacing=4.0, radius=24.0),
    "levels, periodic": partial(levels, 6, cell=BOX, spacing=1.2, radius=4.0),
    "levels, slanted": partial(levels, 8, cell=SLANTED, spacing=1.5, radius=6.0),
    "levels, rotated": partial(levels, 4, cell=ROTATED, spacing=1.5, radius=4.0),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_maps_and_fields_are_those_of_the_cpu_and_the_same_every_time(engine, name):
    smooth = SMOOTH[name]()
    reference = sums.by_mesh(CPU, LATTICE, POSITIONS, CHARGES, smooth, "double", field=True)
    for precision, accuracy in (("single", 1e-5), ("compensated", 3e-6), ("double", 3e-7)):
        prepared = prepare_sum(engine, PotentialSum.split(LATTICE, smooth, precision, field=True))
        result, again = (prepared.run(POSITIONS, CHARGES) for _ in range(2))
        assert result.device_seconds > 0
        for actual, expected in zip([result.values(), *result.field()], reference, strict=True):
            assert relative_rms(actual, expected) < accuracy
        np.testing.assert_array_equal(again.values(), result.values())
        np.testing.assert_array_equal(again.field(), result.field())
        alone = sums.by_mesh(engine, LATTICE, POSITIONS, CHARGES, smooth, precision)
        assert relative_rms(alone, reference[0]) < accuracy


@pytest.mark.parametrize("boundary", sums.CELLS)
@pytest.mark.parametrize("options", [
    {"method": "pme"}, {"method": "pme", "screened": 0.15}, {"method": "msm"},
    {"method": "cutoff", "algorithm": "mesh", "cutoff": 10.0, "field": False}],
    ids=["pme", "screened", "msm", "cutoff"])
def test_the_tolerance_is_kept(engine, boundary, options):
    positions, charges = water_box(30.0)
    structure = charges_at(positions, charges + 0.01, sums.CELLS[boundary])  # k = 0 counts
    options = {"spacing": 0.7, "field": True} | options
    actual = potential_map(structure, tolerance=1e-3, engine=engine.name, **options)
    other = {"msm": {"method": "pme"}, "cutoff": {"algorithm": "pair"}}  # the same sum, to a smaller error
    expected = potential_map(structure, tolerance=1e-4, engine="cpu", **options | other.get(options["method"], {}))
    made = actual.provenance
    assert (made.method, made.engine) == (options["method"], engine.name)
    stated = [made.error, made.error_away, made.error_field, made.error_field_away][: 4 if options["field"] else 2]
    assert 0 < max(stated) <= 1e-3
    assert relative_rms(actual.values, expected.values) < 1.3e-3
    if options["field"]:
        assert relative_rms(*(np.array([part.values for part in grid.field]) for grid in (actual, expected))) < 1.3e-3


@pytest.mark.parametrize("make", [sums.mesh_around, sums.levels_around], ids=["mesh", "levels"])
def test_a_map_in_slabs_and_one_that_does_not_fit(engine, make, monkeypatch):
    positions, charges = water_box(30.0)
    lattice = Lattice(np.full(3, 0.3), 0.25, (119, 119, 119))
    smooth = make(lattice, positions, 1.5, 6, 3.0) if make is sums.mesh_around else make(
        lattice, positions, spacing=1.5, radius=5.0)
    whole = sums.by_mesh(engine, lattice, positions, charges, smooth).copy()
    prepared = prepare_sum(engine, PotentialSum.split(lattice, smooth))
    seen, launch = [], type(prepared).launch
    monkeypatch.setattr(type(prepared), "launch", lambda self, job, slab, *rest: (
        seen.append(slab), launch(self, job, slab, *rest)))
    assert isinstance(prepared, msm_cuda.LevelSum) == (make is sums.levels_around)
    needed = prepared.fixed_bytes(len(charges))
    monkeypatch.setenv("VMDPOTENTIAL_GPU_MEMORY", str(needed + 10**6))
    np.testing.assert_array_equal(sums.by_mesh(engine, lattice, positions, charges, smooth), whole)
    assert len(seen) == 15
    monkeypatch.setenv("VMDPOTENTIAL_GPU_MEMORY", str(needed))
    with naming(MemoryPlanError, Words.GPU_MEMORY):
        sums.by_mesh(engine, lattice, positions, charges, smooth)


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
        driver.cuda_driver().memcpy_dtoh(padded, address)
        expected = np.fft.rfftn(values.astype(float))
        actual = padded.view(np.result_type(real, np.complex64))
        assert np.sqrt((abs(actual - expected) ** 2).mean() / (abs(expected) ** 2).mean()) < accuracy
        transform.inverse(address)
        driver.cuda_driver().memcpy_dtoh(padded, address)
        assert relative_rms(padded[..., :c] / values.size, values) < 2 * accuracy


def test_few_plans_are_kept(engine):
    gpu = device.gpus()[0]
    with gpu:
        for n in range(2 * device.PLANS):
            assert gpu.plan(("test", n), object) is gpu.plan(("test", n), object)
            assert len(gpu._plans) <= device.PLANS
        gpu._plans.clear()
