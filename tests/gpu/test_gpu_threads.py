"""Many threads and several GPUs at once: every map the same as alone."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from vmdpotential.engines import LatticeSum
from vmdpotential.engines.cuda import device, maps
from vmdpotential.grid.lattice import Box, Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.plugins.historical import levels
from vmdpotential.splitting import mesh

pytestmark = pytest.mark.gpu

EDGE = 40.0
LATTICE = Lattice(np.full(3, 0.3), np.full(3, 0.6), (70, 61, 67))
CELL = Cell.from_parameters(EDGE, EDGE, EDGE)


def split_sums():
    box = Box.around(water_box(EDGE)[0])
    return {
        "pme, open": mesh.around(LATTICE, box, 1.0, 6, 4.5), "pme, periodic": mesh.over_cell(CELL, 1.0, 6, 4.5),
        "msm, open": levels.make(LATTICE, box, None, radius=8.0, spacing=1.2, order=6),
        "msm, periodic": levels.make(LATTICE, box, CELL, radius=8.0, spacing=1.2, order=6),
    }


def test_eight_threads_share_what_gpus_there_are(engine):
    positions, charges = water_box(EDGE)
    sums = [engine.prepare(LatticeSum.split(LATTICE, smooth, field=n % 2 == 0))
            for n, smooth in enumerate(split_sums().values())]
    alone = [work.run(positions, charges).values() for work in sums]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda n: sums[n % 4].run(positions, charges).values(), range(32)))
    for n, values in enumerate(together):
        assert np.array_equal(values, alone[n % 4])


@pytest.mark.parametrize("name", split_sums())
def test_meshes_and_levels_on_every_gpu_equal_those_on_one(engine, name, monkeypatch):
    if len(device.gpus()) < 2:
        pytest.skip("needs two GPUs")
    positions, charges = water_box(EDGE)
    single = engine.prepare(LatticeSum.split(LATTICE, split_sums()[name], field=True)).run(positions, charges)
    monkeypatch.setattr(maps, "PAIRS_PER_GPU", 1.0)
    all_of_them = engine.prepare(LatticeSum.split(LATTICE, split_sums()[name], field=True)).run(positions, charges)
    assert np.array_equal(all_of_them.values(), single.values())
    assert np.array_equal(all_of_them.field(), single.field())
