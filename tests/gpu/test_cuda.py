"""The CUDA kernels on a GPU against float64 definitions.

Run with ``pytest -m gpu``. Where there is no GPU the tests are skipped, or fail when the environment
variable VMDPOTENTIAL_REQUIRE_GPU is set.
"""


import numpy as np
import pytest
import sums
from helpers import definition, interaction, random_charges, relative_rms
from messages import Words, naming

from vmdpotential import registry
from vmdpotential.engines.cuda import device, driver
from vmdpotential.errors import MemoryPlanError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.sums.cuda import maps
from vmdpotential.sums.cuda.result import DeviceResult
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum
from vmdpotential.sums.result import HostResult

pytestmark = pytest.mark.gpu


def test_a_cutoff_sum_is_added_to_what_a_slab_holds(engine, monkeypatch):
    positions, charges = random_charges(2000, -10, 20)
    lattice = Lattice(np.array([-3.0, 1.7, 2.2]), np.array([0.5, 0.7, 0.9]), (30, 31, 33))
    cell = Cell.from_parameters(24, 25, 26, 70, 80, 110)
    before = np.random.default_rng(3).normal(size=lattice.shape).astype(np.float32)

    class RecordingSum(maps.Sum):
        def launch(self, job, slab, out, size, stream=None):
            driver.cuda_driver().memcpy_htod_async(out, before[slab.start : slab.stop], stream or job.stream)
            super().launch(job, slab, out, size, stream)

    monkeypatch.setattr(maps, "PAIRS_PER_LAUNCH", 1e6)  # several slabs
    for bound in (interaction("shifted_coulomb", cutoff=9.0), interaction("coulomb").truncated(5.0)):
        work = PotentialSum(lattice, bound, cell)
        result = RecordingSum(work, add=True).run(positions, charges).values()
        alone = maps.Sum(work).run(positions, charges).values()
        np.testing.assert_allclose(result, before + alone, rtol=1e-6, atol=1e-6)


POSITIONS, CHARGES = water_box(30.0)
BOUNDS = {"direct": interaction("coulomb"), "cutoff": interaction("shifted_coulomb", cutoff=9.0)}


def box_work(method="cutoff", field=False):
    lattice = Lattice(np.full(3, 0.3), np.full(3, 0.6), (50, 49, 51))
    return PotentialSum(lattice, BOUNDS[method], field=field)


def box_map(engine, method="cutoff"):
    return sums.run(engine, box_work(method), POSITIONS, CHARGES)


@pytest.mark.parametrize("method", BOUNDS)
def test_the_same_map_every_time_and_in_slabs(engine, method, monkeypatch):
    whole = box_map(engine, method).copy()
    for _ in range(3):
        np.testing.assert_array_equal(box_map(engine, method), whole)
    seen = []
    launch = maps.Sum.launch
    monkeypatch.setattr(maps.Sum, "launch", lambda self, job, slab, *rest: (
        seen.append(slab), launch(self, job, slab, *rest)))
    monkeypatch.setenv("VMDPOTENTIAL_GPU_MEMORY", "400k" if method == "direct" else "900k")
    np.testing.assert_array_equal(box_map(engine, method), whole)
    assert len(seen) > 1
    monkeypatch.setenv("VMDPOTENTIAL_GPU_MEMORY", "100k")
    with naming(MemoryPlanError, Words.GPU_MEMORY):
        box_map(engine, method)


@pytest.mark.parametrize("field", [False, True])
def test_two_workers_share_the_slabs_and_an_error_reaches_the_caller(engine, field, monkeypatch):
    """Two workers on one GPU take turns at its lock, as two GPUs would take slabs."""
    gpu = device.gpus()[0]
    work = maps.Sum(box_work(field=field))
    whole = work.run(POSITIONS, CHARGES)
    assert isinstance(whole, DeviceResult)
    shared = maps.in_slabs(work, [gpu, gpu], POSITIONS, CHARGES, 2**24, 1)
    assert isinstance(shared, HostResult)
    np.testing.assert_array_equal(shared.values(), whole.values())
    if field:
        np.testing.assert_array_equal(shared.field(), whole.field())

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(maps.Sum, "launch", fail)
    with pytest.raises(KeyboardInterrupt):
        maps.in_slabs(work, [gpu, gpu], POSITIONS, CHARGES, 2**24, 1)


class TestResult:
    """Maps that stay on the GPU."""

    def test_a_result_outlives_others_and_its_memory_serves_again(self, engine):
        prepared, gpu = prepare_sum(engine, box_work()), device.gpus()[0]
        first = prepared.run(POSITIONS, CHARGES)
        before = first.values().copy()
        others = [prepared.run(POSITIONS, -CHARGES) for _ in range(3)]
        np.testing.assert_array_equal(first.values(), before)
        np.testing.assert_allclose(others[2].values(), -before, rtol=1e-6, atol=1e-6)
        addresses = {result.block.address for result in (first, *others)}
        assert len(addresses) == 4
        with gpu:
            free = driver.cuda_driver().mem_get_info()[0]
        del first, others
        assert prepared.run(POSITIONS, CHARGES).block.address in addresses
        with gpu:
            assert driver.cuda_driver().mem_get_info()[0] >= free


def test_the_context_of_a_viewer_stays_current(engine):
    drv = driver.cuda_driver()
    viewer = drv.Device(0).make_context()
    try:
        held = drv.mem_alloc(1024)
        drv.memset_d8(held, 7, 1024)
        box_map(engine)
        back = np.empty(1024, np.uint8)
        drv.memcpy_dtoh(back, held)  # fails in any other context
        assert (back == 7).all()
        held.free()
    finally:
        viewer.pop()
        viewer.detach()


def test_all_atoms_in_one_place(engine):
    positions = np.full((20_000, 3), 3.3) + np.random.default_rng(0).normal(size=(20_000, 3)) * 1e-3
    charges = np.ones(len(positions))
    lattice = Lattice(np.zeros(3), np.ones(3), (9, 9, 9))
    bound = interaction("shifted_coulomb", cutoff=6.0)
    reference = definition(lattice.points(), positions, charges, bound).reshape(9, 9, 9)
    assert relative_rms(sums.cutoff(engine, lattice, positions, charges, bound), reference) < 1e-5


def test_verify_passes(engine):
    assert registry.get("command", "verify")(engine="cuda").data["passed"]
