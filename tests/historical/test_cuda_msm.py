"""The CUDA engine's multilevel sum without a GPU: its kernels compile, and do on the host what the CPU engine does."""


import numpy as np
import pytest
import sums
from cuda_kernels import ARCHITECTURES, compile_for_all
from helpers import relative_rms

from vmdpotential.engines.cuda import build
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.historical import msm_cpu as cpu
from vmdpotential.plugins.historical import msm_cuda as levels
from vmdpotential.sums.cpu import mesh as cpu_mesh
from vmdpotential.sums.cuda import maps
from vmdpotential.sums.potential_sum import PotentialSum

LATTICE = Lattice(np.array([-1.0, 2.0, 0.3]), np.array([0.5, 0.6, 0.7]), (17, 9, 20))
CELL = Cell(np.diag([24.0, 33.0, 18.0]))
SLANTED = Cell.from_parameters(24, 25, 26, 70, 80, 110)


def random_charges(count=150):
    rng = np.random.default_rng(3)
    charges = rng.normal(size=count)
    return rng.uniform([-3, -9, 0], [17, 25, 14], (count, 3)), charges - charges.mean()


POSITIONS, CHARGES = random_charges()

#: Levels of each boundary: some whose stencils cover a whole period, and some whose axes end at different levels.
PLANS = {
    "open": {"spacing": 1.8, "radius": 3.6},
    "wide": {"spacing": 5.0, "radius": 20.0},
    "periodic": {"cell": CELL, "spacing": 1.3, "radius": 3.0},
    "slanted": {"cell": SLANTED, "spacing": 1.5, "radius": 3.5},
}


def plan_of(name, order):
    return sums.levels_around(LATTICE, POSITIONS, order=order, **PLANS[name])


@pytest.fixture(autouse=True)
def without_pairs(monkeypatch):
    for name in ("sort", "launch"):
        monkeypatch.setattr(maps.Sum, name, lambda *_: None)


def check(gpu, plan, positions, charges, precision, accuracy):
    work = levels.LevelSum(PotentialSum.split(LATTICE, plan, precision, field=True))
    job = work.prepare(gpu, positions, charges)
    work.sort(job)
    out = np.full((4, *LATTICE.shape), np.nan, np.float32)
    work.launch(job, maps.Slab(0, LATTICE.shape[0]), out.ctypes.data, LATTICE.size)
    reference = cpu.LevelSum(plan, LATTICE, "double")
    potential = reference.solve(cpu_mesh.spread(reference.basis, plan, positions, charges))
    for actual, expected in zip(out, reference.maps(positions, charges, True), strict=True):
        assert relative_rms(actual, expected) < accuracy
    nodes = gpu.buffers["nodes"].view(work.real).reshape(*plan.shape[:2], -1)[..., : plan.shape[2]]
    assert relative_rms(nodes, potential) < accuracy
    taken = sum(array.nbytes for name, array in gpu.buffers.items() if name in ("fixed", "nodes") or "level" in name)
    taken += sum(array.nbytes for array in gpu.kept.values())
    assert taken == work.fixed_bytes(len(charges)) - maps.Sum.fixed_bytes(work, len(charges))


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize(("order", "precision", "accuracy"), [
    (4, "single", 1e-5), pytest.param(8, "double", 1e-7, marks=pytest.mark.nightly)])
def test_the_smooth_part_is_that_of_the_cpu_engine(gpu, name, order, precision, accuracy):
    check(gpu, plan_of(name, order), POSITIONS, CHARGES, precision, accuracy)


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("periodic", [False, True])
def test_levels_longer_than_a_block(gpu, axis, periodic):
    extent = np.full(3, 9.0)
    extent[axis] = 320.0
    positions = np.random.default_rng(4).uniform(0, 1, (150, 3)) * extent
    plan = sums.levels_around(LATTICE, positions, Cell(np.diag(extent)) if periodic else None, spacing=2.0, radius=4.0)
    assert plan.shape[axis] > levels.STRIP
    check(gpu, plan, positions, CHARGES, "double", 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("real", "order", "architecture"), list(zip(
    ("float", "float", "double"), (4, 8, 6), ARCHITECTURES, strict=True)))
def test_level_kernels_compile(real, order, architecture, tmp_path):
    macros = {"REAL": real, "ORDER": order, "NODAL": 1}
    same = "".join(f"static_assert({actual} == {expected});\n" for actual, expected in (
        *((f"sizeof({name})", dtype.itemsize) for name, dtype in (("Level", levels.LEVEL), ("LevelTask", levels.TASK))),
        *((name, getattr(levels, name)) for name in ("ROWS", "GROUP", "TILE_Y", "TILE_Z", "PARTS", "STRIP")),
        *((f"__builtin_offsetof({struct}, {name})", dtype.fields[name][1])
          for struct, dtype in (("Level", levels.LEVEL), ("LevelTask", levels.TASK)) for name in dtype.names)))
    compile_for_all(build.source(levels.FILE, macros) + same, macros, tmp_path, architectures=(architecture,))
