"""Many threads and several GPUs at once: every map the same as alone."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import interaction

from vmdpotential.engines.cuda import device
from vmdpotential.grid.targets import Box, Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.plugins.historical import levels
from vmdpotential.splitting import mesh
from vmdpotential.sums.cuda import maps
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum

pytestmark = pytest.mark.gpu

EDGE = 40.0
LATTICE = Lattice(np.full(3, 0.3), np.full(3, 0.6), (70, 61, 67))
CELL = Cell.from_parameters(EDGE, EDGE, EDGE)


def split_sums():
    box = Box.around(water_box(EDGE)[0])
    return {
        "direct": interaction("coulomb"), "cutoff": interaction("shifted_coulomb", cutoff=9.0),
        "pme, open": mesh.mesh_around(LATTICE, box, 1.0, 6, 4.5), "pme, periodic": mesh.over_cell(CELL, 1.0, 6, 4.5),
        "msm, open": levels.make(LATTICE, box, None, radius=8.0, spacing=1.2, order=6),
        "msm, periodic": levels.make(LATTICE, box, CELL, radius=8.0, spacing=1.2, order=6),
    }


def work_of(name, field=True):
    summed = split_sums()[name]
    if name in ("direct", "cutoff"):
        return PotentialSum(LATTICE, summed, field=field)
    return PotentialSum.split(LATTICE, summed, field=field)


def test_eight_threads_share_what_gpus_there_are(engine):
    positions, charges = water_box(EDGE)
    sums = [prepare_sum(engine, work_of(name, n % 2 == 0)) for n, name in enumerate(split_sums())]
    alone = [work.run(positions, charges).values() for work in sums]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda n: sums[n % 6].run(positions, charges).values(), range(36)))
    for n, values in enumerate(together):
        assert np.array_equal(values, alone[n % 6])


@pytest.mark.parametrize("name", split_sums())
def test_sums_on_every_gpu_equal_those_on_one(engine, name, monkeypatch):
    if len(device.gpus()) < 2:
        pytest.skip("needs two GPUs")
    positions, charges = water_box(EDGE)
    monkeypatch.setattr(maps, "PAIRS_PER_GPU", 1e30)
    single = prepare_sum(engine, work_of(name)).run(positions, charges)
    monkeypatch.setattr(maps, "PAIRS_PER_GPU", 1.0)
    all_of_them = prepare_sum(engine, work_of(name)).run(positions, charges)
    assert np.array_equal(all_of_them.values(), single.values())
    assert np.array_equal(all_of_them.field(), single.field())
